//! Whole sequences of a recurrent layer. Sequences of a batch do not meet, so each thread walks some of them from the
//! first step to the last and nobody waits for anybody; the weights are laid out for the product of a step once.

use super::product::{Lanes, Packed};
use crate::gemm::{Gemm, Mat, MatMut, matmul};
use crate::reduce;
use crate::shared::Shared;
use crate::simd::simd_fn;
use crate::vmath::Real;
use crate::{Buffer, View, parallel};
use sampan_macros::by_dtype;
use std::ops::Range;

/// The formula of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cell {
    /// Input, forget, candidate and output gate.
    Lstm,
    /// Reset, update and candidate.
    Gru,
    /// `tanh` of the sum of both preactivations.
    Tanh,
    /// `relu` of it.
    Relu,
}

impl Cell {
    /// Preactivations of a unit.
    pub fn gates(self) -> usize {
        match self {
            Cell::Lstm => 4,
            Cell::Gru => 3,
            _ => 1,
        }
    }

    /// Numbers of a unit that a step leaves for its gradient.
    pub fn kept(self) -> usize {
        match self {
            Cell::Lstm | Cell::Gru => 4,
            _ => 1,
        }
    }

    /// Is there a cell state besides the output?
    pub fn has_cell_state(self) -> bool {
        self == Cell::Lstm
    }
}

/// The extents of a walk along sequences. Where the text says `[batch, steps, …]` it is `[steps, batch, …]` if `time_major`.
#[derive(Clone, Copy, Debug)]
pub struct Walk {
    /// The formula of a step.
    pub cell: Cell,
    /// Sequences.
    pub batch: usize,
    /// Steps of each.
    pub steps: usize,
    /// Units of the layer.
    pub units: usize,
    /// The order of the axes.
    pub time_major: bool,
    /// From the last step to the first.
    pub reverse: bool,
}

/// The parameters and first states, as [`forward`] takes them.
struct Given<'a, T> {
    weight: &'a [T],
    bias: &'a [T],
    h: &'a [T],
    c: &'a [T],
}

impl<T> Clone for Given<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for Given<'_, T> {}

/// What a forward walk leaves for the gradient.
struct Kept<S> {
    gates: S,
    cells: S,
}

/// The gradients, as [`backward`] takes them.
struct Gradients<'a, T> {
    x: &'a mut [T],
    weight: &'a mut [T],
    bias: &'a mut [T],
    h: &'a mut [T],
    c: &'a mut [T],
}

simd_fn! {
    /// From the preactivations of input and state; `z` goes with the four gates.
    fn lstm[T: Real](x: &'a [T], s: &'a [T], z: &'a mut [T], h: &'a mut [T], c: &'a mut [T]) {
        let n = h.len();
        let c = &mut c[..n];
        let (xi, xf, xg, xo) = (&x[..n], &x[n..2 * n], &x[2 * n..3 * n], &x[3 * n..4 * n]);
        let (zi, z) = z.split_at_mut(n);
        let (zf, z) = z.split_at_mut(n);
        let (zg, zo) = z.split_at_mut(n);
        let zo = &mut zo[..n];
        let (si, sf, sg, so) = (&s[..n], &s[n..2 * n], &s[2 * n..3 * n], &s[3 * n..4 * n]);
        for j in 0..n {
            let i = (xi[j] + si[j]).sigmoid();
            let f = (xf[j] + sf[j]).sigmoid();
            let g = (xg[j] + sg[j]).tanh();
            let o = (xo[j] + so[j]).sigmoid();
            let new = f * c[j] + i * g;
            (zi[j], zf[j], zg[j], zo[j]) = (i, f, g, o);
            c[j] = new;
            h[j] = o * new.tanh();
        }
    }
}

simd_fn! {
    /// `dh` goes with what reaches the state before without a weight: nothing.
    fn lstm_back[T: Real](
        z: &'a [T], before: &'a [T], after: &'a [T], dh: &'a mut [T], dc: &'a mut [T], dz: &'a mut [T]
    ) {
        let n = dh.len();
        let (before, after, dc) = (&before[..n], &after[..n], &mut dc[..n]);
        let (zi, zf, zg, zo) = (&z[..n], &z[n..2 * n], &z[2 * n..3 * n], &z[3 * n..4 * n]);
        let (di, d) = dz.split_at_mut(n);
        let (df, d) = d.split_at_mut(n);
        let (dg, d_o) = d.split_at_mut(n);
        let d_o = &mut d_o[..n];
        for j in 0..n {
            let (i, f, g, o) = (zi[j], zf[j], zg[j], zo[j]);
            let t = after[j].tanh();
            let d = dc[j] + dh[j] * o * (T::ONE - t * t);
            di[j] = d * g * i * (T::ONE - i);
            df[j] = d * before[j] * f * (T::ONE - f);
            dg[j] = d * i * (T::ONE - g * g);
            d_o[j] = dh[j] * t * o * (T::ONE - o);
            dc[j] = d * f;
            dh[j] = T::ZERO;
        }
    }
}

simd_fn! {
    /// `z` goes with the reset and update gates, the candidate's preactivation of the state, and the candidate.
    fn gru[T: Real](x: &'a [T], z: &'a mut [T], h: &'a mut [T]) {
        let n = h.len();
        let (xr, xz, xc) = (&x[..n], &x[n..2 * n], &x[2 * n..3 * n]);
        let (zr, z) = z.split_at_mut(n);
        let (zz, z) = z.split_at_mut(n);
        let (zc, out) = z.split_at_mut(n);
        let out = &mut out[..n];
        for j in 0..n {
            let r = (xr[j] + zr[j]).sigmoid();
            let z = (xz[j] + zz[j]).sigmoid();
            let c = (xc[j] + r * zc[j]).tanh();
            (zr[j], zz[j], out[j]) = (r, z, c);
            h[j] = (h[j] - c) * z + c;
        }
    }
}

simd_fn! {
    /// Gradients of both preactivations: those of the candidate differ by the reset gate.
    fn gru_back[T: Real](z: &'a [T], h: &'a [T], dh: &'a mut [T], dx: &'a mut [T], dz: &'a mut [T]) {
        let n = dh.len();
        let h = &h[..n];
        let (zr, zz, zc, out) = (&z[..n], &z[n..2 * n], &z[2 * n..3 * n], &z[3 * n..4 * n]);
        let (xr, x) = dx.split_at_mut(n);
        let (xz, xc) = x.split_at_mut(n);
        let xc = &mut xc[..n];
        let (dr, d) = dz.split_at_mut(n);
        let (du, dc) = d.split_at_mut(n);
        let dc = &mut dc[..n];
        for j in 0..n {
            let (r, z, c, g) = (zr[j], zz[j], out[j], dh[j]);
            let for_z = g * (h[j] - c) * z * (T::ONE - z);
            let for_c = g * (T::ONE - z) * (T::ONE - c * c);
            let for_r = for_c * zc[j] * r * (T::ONE - r);
            (xr[j], xz[j], xc[j]) = (for_r, for_z, for_c);
            (dr[j], du[j], dc[j]) = (for_r, for_z, for_c * r);
            dh[j] = g * z;
        }
    }
}

simd_fn! {
    fn simple[T: Real](relu: bool, x: &'a [T], z: &'a mut [T], h: &'a mut [T]) {
        for ((h, z), &x) in h.iter_mut().zip(z).zip(x) {
            let sum = x + *z;
            *h = if relu { sum.max(T::ZERO) } else { sum.tanh() };
            *z = *h;
        }
    }
}

simd_fn! {
    fn simple_back[T: Real](relu: bool, z: &'a [T], dh: &'a mut [T], dz: &'a mut [T]) {
        for ((dz, dh), &y) in dz.iter_mut().zip(dh).zip(z) {
            *dz = if relu { if y > T::ZERO { *dh } else { T::ZERO } } else { *dh * (T::ONE - y * y) };
            *dh = T::ZERO;
        }
    }
}

impl Walk {
    /// Numbers of one gate of all sequences and steps.
    pub fn len(&self) -> usize {
        self.batch * self.steps * self.units
    }

    /// Is there nothing to do?
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The number of a sequence's step among the rows of all.
    pub(super) fn row(&self, b: usize, t: usize) -> usize {
        if self.time_major { t * self.batch + b } else { b * self.steps + t }
    }

    /// The `i`-th step of the walk.
    pub(super) fn time(&self, i: usize) -> usize {
        if self.reverse { self.steps - 1 - i } else { i }
    }

    fn check<T>(&self, x: usize, given: Given<'_, T>) {
        let (gates, states) = (self.cell.gates() * self.units, self.batch * self.units);
        assert!(x == self.len() * self.cell.gates(), "recurrent: preactivations");
        assert!(given.weight.len() == gates * self.units && given.bias.len() == gates, "recurrent: parameters");
        let cells = if self.cell.has_cell_state() { states } else { 0 };
        assert!(given.h.len() == states && given.c.len() == cells, "recurrent: states");
    }

    /// Calls `f` for groups of sequences. A sequence gives the same bits in any group, so the size of a group may look at
    /// the number of threads: one group each, unless a product's rows would leave the cache.
    pub(super) fn groups(&self, f: impl Fn(Range<usize>) + Sync + Send) {
        let each = self.batch.div_ceil(parallel::num_threads()).next_multiple_of(8).min(64);
        parallel::for_each_range(self.batch, each, self.steps * self.units * self.units * self.cell.gates(), f);
    }

    fn forward<T: Lanes>(
        &self,
        x: &[T],
        given: Given<'_, T>,
        y: &mut [T],
        h_last: &mut [T],
        c_last: &mut [T],
        kept: Option<Kept<&mut [T]>>,
    ) {
        self.check(x.len(), given);
        assert!(y.len() == self.len() && h_last.len() == given.h.len() && c_last.len() == given.c.len());
        let (n, gates, width) = (self.units, self.cell.gates() * self.units, self.cell.kept() * self.units);
        if let Some(kept) = &kept {
            let cells = if self.cell.has_cell_state() { self.len() } else { 0 };
            assert!(kept.gates.len() == self.len() * self.cell.kept() && kept.cells.len() == cells);
        }
        if self.is_empty() {
            h_last.copy_from_slice(given.h);
            c_last.copy_from_slice(given.c);
            return;
        }
        let weight = Packed::new(n, gates, Mat::rows(given.weight, n).t());
        let kept = kept.map(|k| (Shared::new(k.gates), Shared::new(k.cells)));
        let (y, h_last, c_last) = (Shared::new(y), Shared::new(h_last), Shared::new(c_last));
        self.groups(|group| {
            let states = group.start * n..group.end * n;
            let mut h = given.h[states.clone()].to_vec();
            let mut c = if given.c.is_empty() { Vec::new() } else { given.c[states].to_vec() };
            let mut products = vec![T::ZERO; group.len() * gates];
            let mut room = vec![T::ZERO; width];
            for i in 0..self.steps {
                weight.product_and(given.bias, &h, &mut products);
                for (r, b) in group.clone().enumerate() {
                    let row = self.row(b, self.time(i));
                    let product = &products[r * gates..][..gates];
                    let z = match kept {
                        // SAFETY: rows of sequences of this group, which no other task touches; lengths were checked.
                        Some((gates, _)) => unsafe { part(gates, row, width) },
                        None => &mut room[..],
                    };
                    let (x, h) = (&x[row * gates..][..gates], &mut h[r * n..][..n]);
                    let c = if c.is_empty() { &mut [][..] } else { &mut c[r * n..][..n] };
                    match self.cell {
                        Cell::Lstm => lstm(x, product, z, h, c),
                        Cell::Gru => {
                            z[..gates].copy_from_slice(product);
                            gru(x, z, h);
                        }
                        simple_cell => {
                            z.copy_from_slice(product);
                            simple(simple_cell == Cell::Relu, x, z, h);
                        }
                    }
                    // SAFETY: as above.
                    unsafe {
                        part(y, row, n).copy_from_slice(h);
                        if let (Some((_, cells)), false) = (kept, c.is_empty()) {
                            part(cells, row, n).copy_from_slice(c);
                        }
                    }
                }
            }
            for (r, b) in group.enumerate() {
                // SAFETY: as above.
                unsafe {
                    part(h_last, b, n).copy_from_slice(&h[r * n..][..n]);
                    if !c.is_empty() {
                        part(c_last, b, n).copy_from_slice(&c[r * n..][..n]);
                    }
                }
            }
        });
    }

    fn backward<T: Lanes + Gemm>(
        &self,
        given: Given<'_, T>,
        y: &[T],
        kept: Kept<&[T]>,
        dy: &[T],
        grads: Gradients<'_, T>,
    ) {
        self.check(grads.x.len(), given);
        assert!(y.len() == self.len() && dy.len() == y.len() && kept.gates.len() == self.len() * self.cell.kept());
        assert!(grads.weight.len() == given.weight.len() && grads.bias.len() == given.bias.len());
        assert!(grads.h.len() == given.h.len() && grads.c.len() == given.c.len());
        let (n, gates, width) = (self.units, self.cell.gates() * self.units, self.cell.kept() * self.units);
        if self.is_empty() {
            grads.weight.fill(T::ZERO);
            grads.bias.fill(T::ZERO);
            return;
        }
        let weight = Packed::new(gates, n, Mat::rows(given.weight, n));
        // The state before each step, which the gradient of the weight meets.
        let mut before = Buffer::uninit(size_of_val(y));
        // The gradients of the state's preactivations, where they are not those of the input's.
        let split = self.cell == Cell::Gru;
        let mut own = Buffer::uninit(if split { size_of_val(&*grads.x) } else { 0 });
        {
            let (before, own) = (Shared::new(before.as_mut_slice::<T>()), Shared::new(own.as_mut_slice::<T>()));
            let (dx, dh_all, dc_all) = (Shared::new(grads.x), Shared::new(grads.h), Shared::new(grads.c));
            self.groups(|group| {
                // SAFETY: states of the sequences of this group, which no other task touches; lengths were checked.
                let dh = unsafe { part(dh_all, group.start, n) }.as_mut_ptr();
                // SAFETY: as above: they follow one another.
                let dh = unsafe { std::slice::from_raw_parts_mut(dh, group.len() * n) };
                let mut products = vec![T::ZERO; group.len() * gates];
                for i in (0..self.steps).rev() {
                    for (r, b) in group.clone().enumerate() {
                        let row = self.row(b, self.time(i));
                        let last = (i > 0).then(|| self.row(b, self.time(i - 1)));
                        let h = last.map_or(&given.h[b * n..][..n], |last| &y[last * n..][..n]);
                        let (z, dz) = (&kept.gates[row * width..][..width], &mut products[r * gates..][..gates]);
                        let dh = &mut dh[r * n..][..n];
                        dh.iter_mut().zip(&dy[row * n..]).for_each(|(h, &y)| *h += y);
                        // SAFETY: rows of sequences of this group, as above.
                        let dx = unsafe { part(dx, row, gates) };
                        match self.cell {
                            Cell::Lstm => {
                                let c = last.map_or(&given.c[b * n..][..n], |last| &kept.cells[last * n..][..n]);
                                // SAFETY: as above.
                                let dc = unsafe { part(dc_all, b, n) };
                                lstm_back(z, c, &kept.cells[row * n..][..n], dh, dc, dz);
                                dx.copy_from_slice(dz);
                            }
                            Cell::Gru => {
                                gru_back(z, h, dh, dx, dz);
                                // SAFETY: as above.
                                unsafe { part(own, row, gates) }.copy_from_slice(dz);
                            }
                            simple_cell => {
                                simple_back(simple_cell == Cell::Relu, z, dh, dz);
                                dx.copy_from_slice(dz);
                            }
                        }
                        // SAFETY: as above.
                        unsafe { part(before, row, n) }.copy_from_slice(h);
                    }
                    weight.add_product(&products, dh);
                }
            });
        }
        let own = if split { own.as_slice::<T>() } else { &*grads.x };
        let rows = self.batch * self.steps;
        let (dz, h) = (Mat::rows(own, gates).t(), Mat::rows(before.as_slice::<T>(), n));
        matmul(gates, n, rows, dz, h, MatMut::rows(grads.weight, n), false);
        let (shape, strides) = ([rows, gates], [gates as isize, 1]);
        let own = View { data: own, shape: &shape, strides: &strides, offset: 0 };
        reduce::sum(own.into(), &[true, false], grads.bias.into());
    }
}

/// Walks from the preactivations of the inputs `x` `[batch, steps, gates * units]` to the outputs `y`
/// `[batch, steps, units]` and the last states. `weight` is `[gates * units, units]`, `bias` `[gates * units]`, `h` and `c` are
/// the first states `[batch, units]`, `c` empty where there is no cell state. What the gradient needs is left in `gates`
/// `[batch, steps, kept * units]` and `cells` `[batch, steps, units]` (empty where there is no cell state), if these are given.
#[by_dtype(T in [f32, f64])]
pub fn forward<T: Lanes>(
    walk: &Walk,
    x: &[T],
    weight: &[T],
    bias: &[T],
    h: &[T],
    c: &[T],
    y: &mut [T],
    h_last: &mut [T],
    c_last: &mut [T],
    gates: Option<&mut [T]>,
    cells: Option<&mut [T]>,
) {
    let kept = gates.zip(cells).map(|(gates, cells)| Kept { gates, cells });
    walk.forward(x, Given { weight, bias, h, c }, y, h_last, c_last, kept);
}

/// Walks back from the gradients `dy` of the outputs of [`forward`], which left `gates` and `cells`. `dh` and `dc` hold the
/// gradients of the last states and are changed to those of the first.
#[by_dtype(T in [f32, f64])]
pub fn backward<T: Lanes + Gemm>(
    walk: &Walk,
    weight: &[T],
    bias: &[T],
    h: &[T],
    c: &[T],
    y: &[T],
    gates: &[T],
    cells: &[T],
    dy: &[T],
    dx: &mut [T],
    dweight: &mut [T],
    dbias: &mut [T],
    dh: &mut [T],
    dc: &mut [T],
) {
    let grads = Gradients { x: dx, weight: dweight, bias: dbias, h: dh, c: dc };
    walk.backward(Given { weight, bias, h, c }, y, Kept { gates, cells }, dy, grads);
}

/// A row of a matrix.
///
/// # Safety
/// The row lies inside the matrix and nobody else uses it.
unsafe fn part<'a, T>(all: Shared<T>, row: usize, width: usize) -> &'a mut [T] {
    // SAFETY: as promised.
    unsafe { std::slice::from_raw_parts_mut(all.get().add(row * width), width) }
}

#[cfg(test)]
mod tests;
