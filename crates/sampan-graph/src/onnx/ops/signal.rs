//! Fourier transforms and what belongs to them.

use crate::onnx::eval::Item;
use crate::onnx::node::{Call, one, op};
use sampan_core::{DType, Result, Tensor};
use std::f64::consts::PI;

/// Numbers in pairs, or real ones, as complex ones.
fn complex(c: &Call, x: &Tensor) -> Result<Tensor> {
    match x.shape().last() {
        Some(2) => op!("as_complex", x),
        Some(1) => {
            let real = op!("squeeze", x, -1i64)?;
            op!("complex", &real, op!("zeros_like", &real)?)
        }
        _ => Err(c.wrong("the last axis has one or two elements, real and imaginary")),
    }
}

fn dft(c: &Call) -> Result<Tensor> {
    let x = c.x(0)?;
    let axis = match (c.opset() >= 20, c.maybe(2)) {
        (true, Some(_)) => c.number(2)? as i64,
        (true, None) => -2,
        (false, _) => c.int("axis", 1),
    };
    let axis = c.axis(axis, x.ndim())? as i64;
    // In float64, as a sum of many terms whose sum may be nothing.
    let wide = if c.flag("inverse") { x.dtype() } else { DType::Float64 };
    let z = complex(c, &op!("cast", x, wide)?)?;
    let length = if c.maybe(1).is_some() { c.number(1)? as i64 } else { z.shape()[axis as usize] as i64 };
    let y = match c.flag("inverse") {
        true => op!("ifft", z, length, axis)?,
        false => op!("fft", z, length, axis)?,
    };
    let y = match c.flag("onesided") {
        true => op!("slice", op!("as_real", y)?, [axis], [0i64], [length / 2 + 1])?,
        false => op!("as_real", y)?,
    };
    op!("cast", y, x.dtype())
}

fn stft(c: &Call) -> Result<Tensor> {
    let (x, step) = (c.x(0)?, c.number(1)? as i64);
    let window = c.maybe(2);
    let length = match (c.maybe(3), window) {
        (Some(_), _) => c.number(3)? as i64,
        (None, Some(w)) => w.numel() as i64,
        (None, None) => return Err(c.wrong("neither a window nor its length is given")),
    };
    if step < 1 || length < 1 {
        return Err(c.wrong(format!("steps of {step} and frames of {length}")));
    }
    let z = if x.ndim() == 3 { x.clone() } else { op!("unsqueeze", x, -1i64)? };
    let n = z.shape()[1] as i64;
    let frames = (0..=(n - length).max(-1) / step).map(|k| op!("slice", &z, [1i64], [k * step], [k * step + length]));
    let mut y = op!("stack", frames.collect::<Result<Vec<_>>>()?, 1i64)?;
    if let Some(w) = window {
        y = op!("multiply", y, op!("reshape", w, [1i64, 1, -1, 1])?)?;
    }
    let y = op!("as_real", op!("fft", complex(c, &y)?, length, 2i64)?)?;
    match c.int("onesided", 1) != 0 {
        true => op!("slice", y, [2i64], [0i64], [length / 2 + 1]),
        false => Ok(y),
    }
}

/// A window of cosines.
fn window(c: &Call, parts: &[f64]) -> Result<Tensor> {
    let n = c.number(0)?.max(0.0);
    let periodic = c.int("periodic", 1) != 0;
    let over = if periodic { n } else { n - 1.0 };
    let one = |i: usize| {
        let turn = 2.0 * PI * i as f64 / over;
        parts.iter().enumerate().map(|(k, a)| a * (turn * k as f64).cos()).sum::<f64>()
    };
    let all = (0..n as usize).map(one).collect::<Vec<f64>>();
    Tensor::try_from_slice(&all, [all.len()])?.try_cast(c.dtype("output_datatype")?.unwrap_or(DType::Float32))
}

fn mel(c: &Call) -> Result<Tensor> {
    let number = |i| c.number(i);
    let (bins, length, rate) = (number(0)? as usize, number(1)?, number(2)?);
    let (low, high) = (number(3)?, number(4)?);
    let spectrum = (length / 2.0).floor() as usize + 1;
    if bins == 0 || bins > 1 << 20 || spectrum > 1 << 24 {
        return Err(c.wrong("a matrix of that size"));
    }
    let to_mel = |f: f64| 2595.0 * (1.0 + f / 700.0).log10();
    let (low, high) = (to_mel(low), to_mel(high));
    let step = (high - low) / (bins + 2) as f64;
    let edge = |i: usize| {
        let mel = low + i as f64 * step;
        let hertz = 700.0 * (10f64.powf(mel / 2595.0) - 1.0);
        ((length + 1.0) * hertz / rate).floor()
    };
    let mut all = vec![0f64; spectrum * bins];
    for i in 0..bins {
        let (left, mid, right) = (edge(i) as i64, edge(i + 1) as i64, edge(i + 2) as i64);
        let mut set = |j: i64, v: f64| {
            if let Some(place) = usize::try_from(j).ok().and_then(|j| all.get_mut(j * bins + i)) {
                *place = v;
            }
        };
        if mid == left {
            set(mid, 1.0);
        } else {
            (left..=mid).for_each(|j| set(j, (j - left) as f64 / (mid - left) as f64));
        }
        if right > mid {
            (mid..right).for_each(|j| set(j, (right - j) as f64 / (right - mid) as f64));
        }
    }
    Tensor::try_from_slice(&all, [spectrum, bins])?.try_cast(c.dtype("output_datatype")?.unwrap_or(DType::Float32))
}

pub fn read(c: &Call) -> Result<Option<Vec<Item>>> {
    one(match c.node.op.as_str() {
        "DFT" => dft(c)?,
        "STFT" => stft(c)?,
        "HannWindow" => window(c, &[0.5, -0.5])?,
        "HammingWindow" => window(c, &[25.0 / 46.0, -21.0 / 46.0])?,
        "BlackmanWindow" => window(c, &[0.42, -0.5, 0.08])?,
        "MelWeightMatrix" => mel(c)?,
        _ => return Ok(None),
    })
}
