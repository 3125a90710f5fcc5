//! What convolution and pooling share: layouts of images, lists with one number an axis, and the many forms of padding.

use crate::ops::prelude::*;
use smallvec::{SmallVec, smallvec};
use std::borrow::Cow;

/// One number for each spatial axis, or two.
pub(crate) type Sizes = SmallVec<[i64; 4]>;
/// What comes before and after each spatial axis.
pub(crate) type Pads = SmallVec<[[i64; 2]; 3]>;

/// The layouts of images with one, two or three spatial axes: channels first, channels last.
const LAYOUTS: [(&str, &str); 3] = [("NCL", "NLC"), ("NCHW", "NHWC"), ("NCDHW", "NDHWC")];

/// Checks the rank of `x` and reads its layout: do the channels come last?
pub(crate) fn channels_last(x: &Tensor, data_format: &str, dims: usize) -> Result<bool> {
    let (first, last) = LAYOUTS[dims - 1];
    // A one-dimensional image is called NCL or NCW.
    let name = if dims == 1 { Cow::from(data_format.replace('W', "L")) } else { Cow::from(data_format) };
    ensure!(name == first || name == last, "data_format must be \"{first}\" or \"{last}\", got {data_format:?}");
    if x.ndim() != dims + 2 {
        let hint = if x.ndim() == dims + 1 { "add a batch axis with unsqueeze(0)" } else { "see data_format" };
        return Err(Error::invalid(format!("x must have {} axes ({name}), it has {}", dims + 2, x.ndim())).hint(hint));
    }
    Ok(name == last)
}

/// `x` with its channels first, as a view.
pub(crate) fn to_channels_first(x: &Tensor, last: bool) -> Result<Tensor> {
    if !last {
        return Ok(x.clone());
    }
    let n = x.ndim() as i64;
    x.try_transpose([0, n - 1].into_iter().chain(1..n - 1).collect::<Vec<_>>())
}

/// The inverse of [`to_channels_first`].
pub(crate) fn to_channels_last(x: Tensor, last: bool) -> Result<Tensor> {
    if !last {
        return Ok(x);
    }
    let n = x.ndim() as i64;
    x.try_transpose([0].into_iter().chain(2..n).chain([1]).collect::<Vec<_>>())
}

/// One number for each spatial axis, given as one number or as a list, none below `least`.
pub(crate) fn per_axis(name: &str, values: &[i64], dims: usize, least: i64) -> Result<Sizes> {
    let list = match values {
        [v] => smallvec![*v; dims],
        _ => Sizes::from_slice(values),
    };
    ensure!(list.len() == dims, "{name} must be one int or {dims} of them, got {values:?}");
    ensure!(list.iter().all(|&v| v >= least), "{name} must be at least {least}, got {values:?}");
    // Larger numbers fit no image, and would overflow further on.
    ensure!(list.iter().all(|&v| v < 1 << 31), "{name} is too large: {values:?}");
    Ok(list)
}

/// Padding of the spatial axes.
pub(crate) enum Padding {
    /// As much as makes the output `⌈input / stride⌉`.
    Same,
    /// Before and after each axis.
    Explicit(Pads),
}

impl Padding {
    /// Reads `"SAME"`, `"VALID"`, one number, one an axis, a pair an axis (flat or nested), or a pair for every axis of
    /// `x` with those of batch and channels zero.
    pub fn read(value: &Value, dims: usize, last: bool) -> Result<Padding> {
        let refuse = || {
            let message = format!(
                "padding must be \"SAME\", \"VALID\", an int, {dims} ints, {} ints or pairs for all axes, got {value:?}",
                2 * dims
            );
            Error::invalid(message)
        };
        let pairs: Pads = match value {
            Value::Str(word) => match word.to_uppercase().as_str() {
                "SAME" => return Ok(Padding::Same),
                "VALID" => smallvec![[0, 0]; dims],
                _ => return Err(refuse()),
            },
            Value::Int(p) => smallvec![[*p; 2]; dims],
            Value::Ints(list) if list.len() == dims => list.iter().map(|&p| [p; 2]).collect(),
            Value::Ints(list) if list.len() == 2 * dims => list.chunks(2).map(|p| [p[0], p[1]]).collect(),
            Value::Ints(list) if list.len() == 1 => smallvec![[list[0]; 2]; dims],
            Value::List(list) => {
                let pair = |v: &Value| match v {
                    Value::Ints(p) if p.len() == 2 => Ok([p[0], p[1]]),
                    _ => Err(refuse()),
                };
                let all = list.iter().map(pair).collect::<Result<Pads>>()?;
                if all.len() == dims {
                    all
                } else if all.len() == dims + 2 {
                    let channels = if last { dims + 1 } else { 1 };
                    ensure!(all[0] == [0, 0] && all[channels] == [0, 0], "padding of batch and channels must be zero");
                    Pads::from_slice(if last { &all[1..=dims] } else { &all[2..] })
                } else {
                    return Err(refuse());
                }
            }
            _ => return Err(refuse()),
        };
        ensure!(
            pairs.iter().flatten().all(|&p| (0..1 << 31).contains(&p)),
            "padding cannot be negative or huge: {pairs:?}"
        );
        Ok(Padding::Explicit(pairs))
    }

    /// Before and after each axis, for windows that span `window` elements.
    pub fn resolve(&self, input: &[usize], window: &[i64], stride: &[i64]) -> Pads {
        match self {
            Padding::Explicit(pairs) => pairs.clone(),
            Padding::Same => (0..input.len())
                .map(|a| {
                    let n = input[a] as i64;
                    let all = (((n + stride[a] - 1) / stride[a] - 1) * stride[a] + window[a] - n).max(0);
                    [all / 2, all - all / 2]
                })
                .collect(),
        }
    }
}

/// A list of extents as up to three unsigned numbers, filled up at the front, as kernels take them.
pub(crate) fn lifted(values: &[i64], fill: usize) -> [usize; 3] {
    let mut out = [fill; 3];
    let start = 3 - values.len();
    values.iter().zip(&mut out[start..]).for_each(|(&v, o)| *o = v as usize);
    out
}

/// The spatial extents of a channels-first image.
pub(crate) fn spatial(x: &Tensor) -> Sizes {
    x.shape()[2..].iter().map(|&n| n as i64).collect()
}
