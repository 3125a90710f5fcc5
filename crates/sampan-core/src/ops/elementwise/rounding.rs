//! Rounding and clipping.

use crate::ops::elementwise::sum_to;
use crate::ops::prelude::*;
use crate::value::Arg;
use sampan_formula::Constant;

/// The largest integer not above each element.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([1.5f32, -1.5]).floor().to_vec::<f32>(), [1.0, -2.0]);
/// ```
#[op(inplace, samples = real_line, onnx = "Floor")]
fn floor(cx: &Cx, x: &Tensor) -> Result<Tensor> {
    cx.number(formula!(|x| x.floor()), x)
}

/// The smallest integer not below each element.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([1.5f32, -1.5]).ceil().to_vec::<f32>(), [2.0, -1.0]);
/// ```
#[op(inplace, samples = real_line, onnx = "Ceil")]
fn ceil(cx: &Cx, x: &Tensor) -> Result<Tensor> {
    cx.number(formula!(|x| x.ceil()), x)
}

/// Each element without its fraction: rounded towards zero.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([1.5f32, -1.5]).trunc().to_vec::<f32>(), [1.0, -1.0]);
/// ```
#[op(inplace, samples = real_line)]
fn trunc(cx: &Cx, x: &Tensor) -> Result<Tensor> {
    cx.number(formula!(|x| x.trunc()), x)
}

/// The nearest integer, ties to even, or the nearest number with `decimals` digits after the point.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([0.5f32, 1.5, -1.2]).round(0).to_vec::<f32>(), [0.0, 2.0, -1.0]);
/// assert_eq!(Tensor::new([1234.5f32]).round(-2).to_vec::<f32>(), [1200.0]);
/// ```
#[op(inplace, samples = round_samples)]
fn round(cx: &Cx, x: &Tensor, #[default(0)] decimals: i64) -> Result<Tensor> {
    ensure!((-300..=300).contains(&decimals), "decimals must lie in -300..=300, got {decimals}");
    let unit = 10f64.powi(decimals.unsigned_abs() as i32);
    let to_units = formula!(|x; unit| (x / unit).round() * unit);
    match decimals {
        0.. if !x.dtype().is_float() => cx.number(formula!(|x| x), x),
        0 => cx.number(formula!(|x| x.round()), x),
        1.. => cx.number(formula!(|x; unit| (x * unit).round() / unit), x),
        // Integers too are rounded to tens, hundreds …
        _ if !x.dtype().is_float() => cx.values_in(DType::Float64, to_units, x)?.try_cast(x.dtype()),
        _ => cx.number(to_units, x),
    }
}

/// The fraction of each element, `x - trunc(x)`.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([1.25f32, -1.25]).frac().to_vec::<f32>(), [0.25, -0.25]);
/// ```
#[op(inplace, samples = real_line)]
fn frac(cx: &Cx, x: &Tensor) -> Result<Tensor> {
    cx.number(formula!(|x| x - x.trunc()), x)
}

/// Each element held between `min` and `max`, which are numbers, tensors that broadcast with `x`, or left out (`()` in
/// Rust). The gradient passes where `x` lies between them, ends included.
///
/// ```
/// # use sampan_core::Tensor;
/// let x = Tensor::new([-1.0f32, 0.5, 3.0]);
/// assert_eq!(x.clip(0.0, 1.0).to_vec::<f32>(), [0.0, 0.5, 1.0]);
/// assert_eq!(x.clip((), 1.0).to_vec::<f32>(), [-1.0, 0.5, 1.0]);
/// ```
#[op(inplace, samples = clip_samples, onnx = "Clip", also("clamp"))]
fn clip(cx: &Cx, x: &Tensor, #[default(None)] min: &Value, #[default(None)] max: &Value) -> Result<Tensor> {
    let (min, max) = (Option::<Operand>::get(min, "min")?, Option::<Operand>::get(max, "max")?);
    let number = |v: &Option<Operand>| match v {
        Some(Operand::Scalar(s)) => Some(*s),
        _ => None,
    };
    let (low, high) = (number(&min), number(&max));
    if let (Some(low), Some(high)) = (low, high) {
        let (low, high) = (low.to_f64(), high.to_f64());
        // A NaN passes, as it does in NumPy.
        if low > high {
            bail!("min {low} is above max {high}");
        }
    }
    let numbers = min.is_some() == low.is_some() && max.is_some() == high.is_some();
    let out = if numbers { clip_numbers(cx, x, low, high)? } else { clip_tensors(x, min.as_ref(), max.as_ref())? };

    let tensors: Vec<Tensor> = [&min, &max].into_iter().flatten().filter_map(|o| o.tensor().cloned()).collect();
    let saved: Vec<&Tensor> = std::iter::once(x).chain(&tensors).collect();
    let (has_min, has_max) =
        (min.as_ref().is_some_and(|m| m.tensor().is_some()), max.is_some_and(|m| m.tensor().is_some()));
    cx.grad(out, &saved, move |g| {
        let x = g.saved(0);
        let low = if has_min { Some(g.saved(1).into()) } else { low.map(Operand::from) };
        let high = if has_max { Some(g.saved(1 + has_min as usize).into()) } else { high.map(Operand::from) };
        let inside = match (&low, &high) {
            (None, None) => None,
            (Some(low), None) => Some(x.greater_equal(low)),
            (None, Some(high)) => Some(x.less_equal(high)),
            (Some(low), Some(high)) => Some(x.greater_equal(low).logical_and(x.less_equal(high))),
        };
        let dx = || inside.as_ref().map_or(g.grad(), |inside| g.grad() * inside);
        let mut grads = vec![g.if_needed(0, || sum_to(&dx(), x.shape()))];
        let ends = [(has_min, &low, &high), (has_max, &high, &low)];
        for (end, (_, own, other)) in ends.into_iter().filter(|(has, _, _)| *has).enumerate() {
            let Some(Operand::Tensor(own)) = own else { unreachable!("filtered above") };
            let is_max = !has_min || end == 1;
            grads.push(g.if_needed(end + 1, || {
                // Where the ends are crossed the result is max.
                let here = match (is_max, other) {
                    (false, None) => x.less_than(own),
                    (false, Some(high)) => x.less_than(own).logical_and(own.less_equal(high)),
                    (true, None) => x.greater_than(own),
                    (true, Some(low)) => x.greater_than(own).logical_or(own.less_than(low)),
                };
                sum_to(&(g.grad() * here), own.shape())
            }));
        }
        Ok(grads)
    })
}

fn clip_numbers(cx: &Cx, x: &Tensor, low: Option<Scalar>, high: Option<Scalar>) -> Result<Tensor> {
    let dtype = [low, high].into_iter().flatten().fold(x.dtype(), crate::promote::promote_scalar);
    let x = x.try_cast(dtype)?;
    let (low, high): (Constant, Constant) = match dtype.is_float() {
        true => {
            (low.map_or(f64::NEG_INFINITY, Scalar::to_f64).into(), high.map_or(f64::INFINITY, Scalar::to_f64).into())
        }
        false => (low.map_or(i64::MIN, Scalar::to_i64).into(), high.map_or(i64::MAX, Scalar::to_i64).into()),
    };
    cx.number_values(formula!(|x; low, high| x.max(low).min(high)), &x)
}

fn clip_tensors(x: &Tensor, min: Option<&Operand>, max: Option<&Operand>) -> Result<Tensor> {
    let x = min.map_or_else(|| Ok(x.clone()), |low| x.try_maximum(low))?;
    max.map_or_else(|| Ok(x.clone()), |high| x.try_minimum(high))
}

fn clip_samples() -> Vec<Sample> {
    vec![
        sample![randn([2, 3]), -0.5, 0.8],
        sample![randn([5]), 0.05],
        sample![randn([2, 3]); max = 0.3],
        sample![randn([2, 3]), uniform([3], -1.0, -0.05), uniform([2, 1], 0.05, 1.0)].peer("torch.clamp"),
        sample![randn([2, 3]), uniform([3], -1.0, 0.0)].peer("torch.clamp"),
        sample![ints([5], -5, 5), -2, 3],
        sample![randn([]), -1.0, 0.02],
        sample![randn([0, 2]), 0.0, 1.0],
    ]
}
fn round_samples() -> Vec<Sample> {
    vec![
        sample![randn([2, 3])],
        sample![values([0.5f32, 1.5, -0.5, -2.5], [4])].no_grad("jumps"),
        sample![randn([5]), 1],
        sample![uniform([5], 100.0, 900.0), -2],
        sample![ints([3], 0, 9)],
        sample![randn([])],
        sample![randn([0, 2])],
    ]
}
