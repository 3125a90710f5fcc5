//! Batch normalisation, forward and backward, with an activation after it where one is wanted.
//!
//! A channel is taken at a time: what the first pass over it read (for the statistics, or for the sums of the gradient)
//! is still in the cache for the second. Sums are made in pieces that no sample shares with another part of the batch, and
//! go on in `f64`, so that a batch that is cut into parts (of a multiple of 16 samples) has the statistics of the whole to the bit.
//! They are kept in the computing type (`f32` for half types).

use crate::activation::{Activation, Function, Identity, with_function};
use crate::parallel::CHUNK;
use crate::shared::Shared;
use crate::simd::simd_fn;
use crate::vmath::Real;
use crate::widen::RealElement;
use crate::{Ordered, parallel};
use sampan_macros::by_dtype;
use sums::{Lines, statistics, sum_pieces};

mod sums;

/// Extents of data normalised by channel: batch, channels, and what follows (1 for a matrix).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub struct Channels {
    pub batch: usize,
    pub channels: usize,
    pub inner: usize,
}

/// Lines shorter than this are gathered first.
const SHORT: usize = 16;

/// `(x − mean)·scale + shift`.
#[derive(Clone, Copy)]
struct Affine<T> {
    mean: T,
    scale: T,
    shift: T,
}

impl<T: Real> Affine<T> {
    #[inline(always)]
    fn of(self, x: T) -> T {
        (x - self.mean).mul_add(self.scale, self.shift)
    }
}

simd_fn! {
    /// `y = f((x − mean)·scale + shift)`.
    fn normalise[T: Real, F: Function](x: &'a [T], y: Shared<T>, lines: Lines, k: Affine<T>, f: F) {
        for i in 0..lines.count {
            let at = lines.line(i);
            // SAFETY: a line of one channel, inside `y`, which is as long as `x`; no other task has this channel.
            let y = unsafe { std::slice::from_raw_parts_mut(y.get().add(at.start), at.len()) };
            for (y, &x) in y.iter_mut().zip(&x[at]) {
                *y = f.value(k.of(x));
            }
        }
    }
}

simd_fn! {
    /// Σ g' and Σ g'·(x − mean), where g' is the gradient before the activation.
    fn gradient_sums[T: Real, F: Function](x: &'a [T], g: &'a [T], lines: Lines, k: Affine<T>, f: F) -> (f64, f64) {
        let mut total = (0.0, 0.0);
        sum_pieces(x, g, lines, |_, x, g| {
            let g = if F::CHANGES { g * f.slope(k.of(x)) } else { g };
            (g, g * (x - k.mean))
        }, |_, _, [a, b]| total = (total.0 + a.to_f64(), total.1 + b.to_f64()));
        total
    }
}

simd_fn! {
    /// `dx = g'·scale + (x − mean)·slope + rest`.
    fn gradient[T: Real, F: Function](
        x: &'a [T], g: &'a [T], dx: Shared<T>, lines: Lines, k: Affine<T>, slope: T, rest: T, f: F
    ) {
        for i in 0..lines.count {
            let at = lines.line(i);
            // SAFETY: a line of one channel, inside `dx`, which is as long as `x`; no other task has this channel.
            let dx = unsafe { std::slice::from_raw_parts_mut(dx.get().add(at.start), at.len()) };
            for ((dx, &x), &g) in dx.iter_mut().zip(&x[at.clone()]).zip(&g[at]) {
                let g = if F::CHANGES { g * f.slope(k.of(x)) } else { g };
                *dx = (x - k.mean).mul_add(slope, g.mul_add(k.scale, rest));
            }
        }
    }
}

/// A channel in the computing type.
struct Channel<'a, T> {
    /// `x`, and for a backward pass the gradient.
    inputs: [&'a [T]; 2],
    out: Shared<T>,
    lines: Lines,
}

/// Calls `f(channel number, channel)` for every channel. Channels of half types, and those of short lines, are gathered
/// into copies, and what is written to these is brought back. Without `out` nothing is written.
fn for_each_channel<T: RealElement>(
    d: Channels,
    inputs: [&[T]; 2],
    out: Option<&mut [T]>,
    f: impl Fn(usize, Channel<T::Wide>) + Sync + Send,
) {
    let Channels { batch, channels, inner } = d;
    let size = batch * inner;
    assert!(inputs.iter().all(|x| x.is_empty() || x.len() == size * channels));
    assert!(out.as_ref().is_none_or(|out| out.len() == size * channels));
    if size * channels == 0 {
        return;
    }
    let written = out.is_some();
    let gathered = T::HALF || inner < SHORT;
    // Short lines of neighbours lie in one cache line.
    let together = if gathered { SHORT.div_ceil(inner) } else { 1 };
    let group = (CHUNK / size).max(1).next_multiple_of(together);
    let out = Shared::new(out.unwrap_or_default());
    parallel::for_each_range(channels, group, 2 * size, |range| {
        if !gathered {
            let inputs = inputs.map(bytemuck::cast_slice::<T, T::Wide>);
            let out = Shared::from_ptr(out.get().cast::<T::Wide>());
            for c in range {
                let lines = Lines { first: c * inner, step: channels * inner, count: batch, len: inner };
                f(c, Channel { inputs, out, lines });
            }
            return;
        }
        let mut rooms = [(); 3].map(|()| vec![T::Wide::ZERO; together * size]);
        let [room_x, room_g, room_out] = &mut rooms;
        for first in range.clone().step_by(together) {
            let n = together.min(range.end - first);
            let beside = |i: usize| (i * channels + first) * inner..(i * channels + first + n) * inner;
            for (input, room) in inputs.iter().zip([&mut *room_x, &mut *room_g]) {
                if !input.is_empty() {
                    (0..batch).for_each(|i| gather(&input[beside(i)], room, i * inner, inner, size));
                }
            }
            let copies: [&[T::Wide]; 2] = [room_x, if inputs[1].is_empty() { &[] } else { room_g }];
            let shared = Shared::new(room_out);
            for c in 0..n {
                let lines = Lines { first: c * size, step: inner, count: batch, len: inner };
                f(first + c, Channel { inputs: copies, out: shared, lines });
            }
            for i in 0..if written { batch } else { 0 } {
                // SAFETY: lines of channels of this task, inside `out`, whose length was checked.
                let out = unsafe { std::slice::from_raw_parts_mut(out.get().add(beside(i).start), beside(i).len()) };
                scatter(room_out, i * inner, inner, size, out);
            }
        }
    });
}

/// Widens lines of `len` elements that follow each other in `x` into lines of `room`, `step` apart.
#[inline]
fn gather<T: RealElement>(x: &[T], room: &mut [T::Wide], at: usize, len: usize, step: usize) {
    if len >= SHORT {
        x.chunks_exact(len).enumerate().for_each(|(i, x)| T::widen_slice(x, &mut room[at + i * step..][..len]));
    } else {
        x.iter().enumerate().for_each(|(i, x)| room[at + i / len * step + i % len] = x.wide());
    }
}

/// The inverse of [`gather`].
#[inline]
fn scatter<T: RealElement>(room: &[T::Wide], at: usize, len: usize, step: usize, x: &mut [T]) {
    if len >= SHORT {
        x.chunks_exact_mut(len).enumerate().for_each(|(i, x)| T::narrow_slice(&room[at + i * step..][..len], x));
    } else {
        x.iter_mut().enumerate().for_each(|(i, x)| *x = T::narrow(room[at + i / len * step + i % len]));
    }
}

/// What a channel is multiplied by, and what is added.
#[derive(Clone, Copy)]
struct Weights<'a, T> {
    weight: Option<&'a [T]>,
    bias: Option<&'a [T]>,
}

impl<T: Real> Weights<'_, T> {
    fn affine(&self, c: usize, mean: T, rstd: T) -> Affine<T> {
        let scale = self.weight.map_or(rstd, |w| rstd * w[c]);
        Affine { mean, scale, shift: self.bias.map_or(T::ZERO, |b| b[c]) }
    }
}

/// One over the deviation.
fn rstd<T: Real>(var: T, eps: f64) -> T {
    (var + T::of(eps)).rsqrt()
}

/// Batch normalisation by the statistics of `x` itself, which it also gives: mean and biased variance of each channel.
#[by_dtype(T in float)]
pub fn train<T: RealElement>(
    x: &[T],
    d: Channels,
    weight: Option<&[T::Wide]>,
    bias: Option<&[T::Wide]>,
    eps: f64,
    activation: Activation,
    y: &mut [T],
    mean: &mut [T::Wide],
    var: &mut [T::Wide],
) {
    assert!(mean.len() == d.channels && var.len() == d.channels, "batch norm: one statistic a channel");
    if x.is_empty() {
        mean.fill(T::Wide::NAN);
        return var.fill(T::Wide::NAN);
    }
    let weights = Weights { weight, bias };
    let (mean, var) = (Shared::new(mean), Shared::new(var));
    with_function!(activation, f => for_each_channel(d, [x, &[]], Some(y), |c, channel| {
        let (m, v) = statistics(channel.inputs[0], channel.lines);
        let (m, v) = (T::Wide::of(m), T::Wide::of(v));
        // SAFETY: the place of a channel, which no other task has; there are as many as channels.
        unsafe {
            *mean.get().add(c) = m;
            *var.get().add(c) = v;
        }
        normalise(channel.inputs[0], channel.out, channel.lines, weights.affine(c, m, rstd(v, eps)), f);
    }));
}

/// Mean and biased variance of each channel, before they are rounded to the computing type.
#[by_dtype(T in float)]
pub fn moments<T: RealElement>(x: &[T], d: Channels, mean: &mut [f64], var: &mut [f64]) {
    assert!(mean.len() == d.channels && var.len() == d.channels, "batch norm: one statistic a channel");
    if x.is_empty() {
        mean.fill(f64::NAN);
        return var.fill(f64::NAN);
    }
    let (mean, var) = (Shared::new(mean), Shared::new(var));
    for_each_channel(d, [x, &[]], None, |c, channel| {
        let (m, v) = statistics(channel.inputs[0], channel.lines);
        // SAFETY: the place of a channel, which no other task has; there are as many as channels.
        unsafe {
            *mean.get().add(c) = m;
            *var.get().add(c) = v;
        }
    });
}

/// Batch normalisation by given statistics.
#[by_dtype(T in float)]
pub fn infer<T: RealElement>(
    x: &[T],
    d: Channels,
    mean: &[T::Wide],
    var: &[T::Wide],
    weight: Option<&[T::Wide]>,
    bias: Option<&[T::Wide]>,
    eps: f64,
    activation: Activation,
    y: &mut [T],
) {
    let weights = Weights { weight, bias };
    with_function!(activation, f => for_each_channel(d, [x, &[]], Some(y), |c, channel| {
        let k = weights.affine(c, mean[c], rstd(var[c], eps));
        normalise(channel.inputs[0], channel.out, channel.lines, k, f);
    }));
}

/// What `x` of a channel has of the gradient: by its slope, and by what the statistics have of all of it.
struct Slopes<T> {
    slope: T,
    rest: T,
}

impl<T: Real> Slopes<T> {
    /// `dx = scale·(g − mean g − x̂·mean(g·x̂))`, from the sums of g and g·(x − mean) over `count` elements.
    fn new(scale: T, r: T, (sg, sgx): (f64, f64), count: f64) -> Slopes<T> {
        let (wide, r) = (scale.to_f64(), r.to_f64());
        Slopes { slope: T::of(-wide * sgx * r * r / count), rest: T::of(-wide * sg / count) }
    }
}

/// Σ g and Σ g·(x − mean) of each channel, before they are rounded to the computing type.
#[by_dtype(T in float)]
pub fn backward_sums<T: RealElement>(
    x: &[T],
    g: &[T],
    d: Channels,
    mean: &[T::Wide],
    sum: &mut [f64],
    product: &mut [f64],
) {
    assert!(sum.len() == d.channels && product.len() == d.channels, "batch norm: one sum a channel");
    sum.fill(0.0);
    product.fill(0.0);
    let (sum, product) = (Shared::new(sum), Shared::new(product));
    for_each_channel(d, [x, g], None, |c, channel| {
        let k = Affine { mean: mean[c], scale: T::Wide::ONE, shift: T::Wide::ZERO };
        let (sg, sgx) = gradient_sums(channel.inputs[0], channel.inputs[1], channel.lines, k, Identity);
        // SAFETY: the place of a channel, which no other task has; there are as many as channels.
        unsafe {
            *sum.get().add(c) = sg;
            *product.get().add(c) = sgx;
        }
    });
}

/// The gradient of [`train`] by `x` alone, from sums of [`backward_sums`] over `count` elements: those of this batch, or of several.
#[by_dtype(T in float)]
pub fn backward_by<T: RealElement>(
    x: &[T],
    g: &[T],
    d: Channels,
    mean: &[T::Wide],
    var: &[T::Wide],
    weight: Option<&[T::Wide]>,
    eps: f64,
    sum: &[f64],
    product: &[f64],
    count: f64,
    dx: &mut [T],
) {
    let weights = Weights { weight, bias: None };
    for_each_channel(d, [x, g], Some(dx), |c, channel| {
        let Channel { inputs: [x, g], out, lines } = channel;
        let r = rstd(var[c], eps);
        let k = weights.affine(c, mean[c], r);
        let s = Slopes::new(k.scale, r, (sum[c], product[c]), count);
        gradient(x, g, out, lines, k, s.slope, s.rest, Identity);
    });
}

/// Gradients of [`train`], whose statistics are given, by `x`, weight and bias.
#[by_dtype(T in float)]
pub fn backward<T: RealElement>(
    x: &[T],
    g: &[T],
    d: Channels,
    mean: &[T::Wide],
    var: &[T::Wide],
    weight: Option<&[T::Wide]>,
    bias: Option<&[T::Wide]>,
    eps: f64,
    activation: Activation,
    dx: &mut [T],
    dweight: &mut [T::Wide],
    dbias: &mut [T::Wide],
) {
    assert!(dweight.len() == d.channels && dbias.len() == d.channels, "batch norm: one gradient a channel");
    dweight.fill(T::Wide::ZERO);
    dbias.fill(T::Wide::ZERO);
    let weights = Weights { weight, bias };
    let count = (d.batch * d.inner) as f64;
    let (dweight, dbias) = (Shared::new(dweight), Shared::new(dbias));
    with_function!(activation, f => for_each_channel(d, [x, g], Some(dx), |c, channel| {
        let Channel { inputs: [x, g], out, lines } = channel;
        let r = rstd(var[c], eps);
        let k = weights.affine(c, mean[c], r);
        let (sg, sgx) = gradient_sums(x, g, lines, k, f);
        // SAFETY: the place of a channel, which no other task has; there are as many as channels.
        unsafe {
            *dweight.get().add(c) = T::Wide::of(sgx * r.to_f64());
            *dbias.get().add(c) = T::Wide::of(sg);
        }
        let s = Slopes::new(k.scale, r, (sg, sgx), count);
        gradient(x, g, out, lines, k, s.slope, s.rest, f);
    }));
}

#[cfg(test)]
mod tests;
