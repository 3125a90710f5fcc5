//! Numbers in eight bits: codes, the steps between them, and the code of zero.

use crate::ops::prelude::*;

/// The codes of a dtype: from the least to the greatest.
fn codes(dtype: DType) -> Result<(f64, f64)> {
    Ok(match dtype {
        DType::UInt8 => (0.0, 255.0),
        DType::Int8 => (-128.0, 127.0),
        DType::Int16 => (-32768.0, 32767.0),
        DType::Int32 => (f64::from(i32::MIN), f64::from(i32::MAX)),
        _ => bail!("codes are int8, uint8, int16 or int32, got {dtype}"),
    })
}

/// Steps or zero points as they spread over `x`: one for all, one for each place of an axis, or laid out already.
fn along(what: &str, t: &Tensor, x: &Tensor, axis: i64) -> Result<Tensor> {
    if t.numel() == 1 && t.ndim() <= 1 {
        return t.try_reshape([0i64; 0]);
    }
    if t.ndim() == x.ndim() && t.ndim() > 1 {
        return Ok(t.clone());
    }
    let at = resolve_axis(axis, x.ndim())?;
    ensure!(
        t.ndim() == 1 && t.numel() == x.shape()[at],
        "{what} must be one number or {} of them, one for each place of axis {at}; got shape {:?}",
        x.shape()[at],
        t.shape()
    );
    let mut shape = vec![1i64; x.ndim()];
    shape[at] = -1;
    t.try_reshape(shape)
}

/// Numbers as codes: `round(x / scale) + zero_point`, held inside of `dtype`. `scale` is the step between two codes: one for
/// all, or one for each place of `axis`.
///
/// ```
/// # use sampan_core::{DType, Tensor};
/// let (x, step) = (Tensor::new([-1.0f32, 0.24, 0.26, 100.0]), Tensor::new([0.5f32]));
/// assert_eq!(x.quantize_linear(&step, None, 0, DType::Int8).to_vec::<i8>(), [-2, 0, 1, 127]);
/// ```
#[op(non_diff, module = "_C_ops", samples = quantize_samples, amp = "keep", onnx = "QuantizeLinear",
     peer = "lambda x, s, z=None, axis=1, dtype='int8': (sh := [-1 if i == axis % max(x.ndim, 1) else 1 for i in range(x.ndim)], \
             sp := (lambda t: t.reshape(sh) if t.size > 1 else t.reshape(())), i := np.iinfo(dtype), \
             np.clip(np.rint(x / sp(s)) + (0 if z is None else sp(z).astype('float64')), i.min, i.max).astype(dtype))[-1]")]
fn quantize_linear(
    x: &Tensor,
    scale: &Tensor,
    #[default(None)] zero_point: Option<&Tensor>,
    #[default(1)] axis: i64,
    #[default(DType::Int8)] dtype: DType,
) -> Result<Tensor> {
    let (low, high) = codes(dtype)?;
    ensure!(scale.dtype().is_float(), "scale must hold floats, got {}", scale.dtype());
    let x = &if x.dtype().is_float() { x.clone() } else { x.try_cast(scale.dtype())? };
    let mut y = x.try_divide(along("scale", scale, x, axis)?.try_cast(x.dtype())?)?.try_round(0)?;
    if let Some(zero) = zero_point {
        y = y.try_add(along("zero_point", zero, x, axis)?.try_cast(x.dtype())?)?;
    }
    y.try_clip(low, high)?.try_cast(dtype)
}

/// Codes as numbers: `(x - zero_point) * scale`, in the dtype of `scale`.
///
/// ```
/// # use sampan_core::Tensor;
/// let (codes, step) = (Tensor::new([-2i8, 0, 127]), Tensor::new([0.5f32]));
/// assert_eq!(codes.dequantize_linear(&step, None, 0).to_vec::<f32>(), [-1.0, 0.0, 63.5]);
/// ```
#[op(module = "_C_ops", samples = dequantize_samples, amp = "keep", onnx = "DequantizeLinear",
     peer = "lambda x, s, z=None, axis=1: (sh := [-1 if i == axis % max(x.ndim, 1) else 1 for i in range(x.ndim)], \
             sp := (lambda t: t.reshape(sh) if t.size > 1 else t.reshape(())), \
             (x.astype('float64') - (0 if z is None else sp(z).astype('float64'))) * sp(s))[-1]")]
fn dequantize_linear(
    x: &Tensor,
    scale: &Tensor,
    #[default(None)] zero_point: Option<&Tensor>,
    #[default(1)] axis: i64,
) -> Result<Tensor> {
    let dtype = scale.dtype();
    ensure!(dtype.is_float(), "scale must hold floats, got {dtype}");
    let mut y = x.try_cast(dtype)?;
    if let Some(zero) = zero_point {
        y = y.try_subtract(along("zero_point", zero, x, axis)?.try_cast(dtype)?)?;
    }
    y.try_multiply(along("scale", scale, x, axis)?)
}

/// The step with which each sample of a batch (`x[0]`, `x[1]` …) fits into the codes -127 to 127.
///
/// ```
/// # use sampan_core::Tensor;
/// let x = Tensor::new([[127.0f32, -3.0], [0.5, -254.0]]);
/// assert_eq!(x.sample_steps().to_vec::<f32>(), [1.0, 2.0]);
/// ```
#[op(non_diff, module = "_C_ops", samples = step_samples, amp = "keep",
     peer = "lambda x: np.abs(x).reshape(len(x), -1).max(1) / 127 + 1e-12")]
fn sample_steps(x: &Tensor) -> Result<Tensor> {
    ensure!(
        x.ndim() >= 1 && x.dtype().is_float(),
        "x must hold floats and have a batch axis, got shape {:?}",
        x.shape()
    );
    let largest = match x.ndim() {
        1 => x.try_abs()?,
        n => x.try_abs()?.try_max((1..n as i64).collect::<Vec<_>>())?,
    };
    // A sample of zeros has a step too.
    largest.try_scale_with(1.0 / 127.0, crate::ops::math::ScaleOpts::new().bias(1e-12))
}

/// Numbers moved to the nearest code, from `low` to `high`, and back. Gradients pass as if nothing had happened, so that a
/// network can learn to live with its codes.
///
/// ```
/// # use sampan_core::Tensor;
/// let (x, step) = (Tensor::new([-1.1f32, 0.24, 100.0]), Tensor::new([0.5f32]));
/// assert_eq!(x.fake_quantize_dequantize(&step, 0, -128.0, 127.0).to_vec::<f32>(), [-1.0, 0.0, 63.5]);
/// ```
#[op(module = "_C_ops", samples = fake_samples, amp = "keep",
     peer = "lambda x, s, axis=1, low=-128, high=127: (sh := [-1 if i == axis % max(x.ndim, 1) else 1 for i in range(x.ndim)], \
             s := s.reshape(sh) if s.size > 1 else s.reshape(()), np.clip(np.rint(x / s), low, high) * s)[-1]")]
fn fake_quantize_dequantize(
    cx: &Cx,
    x: &Tensor,
    scale: &Tensor,
    #[default(1)] axis: i64,
    #[default(-128.0)] low: f64,
    #[default(127.0)] high: f64,
) -> Result<Tensor> {
    ensure!(x.dtype().is_float(), "x must hold floats, got {}", x.dtype());
    ensure!(low <= high, "low {low} is above high {high}");
    let step = along("scale", scale, x, axis)?.try_cast(x.dtype())?;
    let y = cx.number_values(formula!(|x, s; low, high| (x / s).round().max(low).min(high) * s), (x, &step))?;
    cx.grad(y, &[], |g| Ok([Some(g.grad()), None]))
}

fn quantize_samples() -> Vec<Sample> {
    vec![
        sample![randn([2, 3]), values([0.02f32], [1]), (), 1, DType::Int8],
        sample![randn([2, 3, 2]), uniform([3], 0.001, 0.02), ints([3], -5, 5), 1, DType::Int8],
        sample![randn([4, 3]), uniform([4], 0.1, 0.2), ints([4], 100, 140), 0, DType::UInt8],
        sample![randn([0, 3]), values([0.5f32], [1])],
    ]
}
fn dequantize_samples() -> Vec<Sample> {
    vec![
        sample![ints([2, 3], -128, 127), values([0.02f32], [1])].no_grad("codes have no gradient"),
        sample![ints([2, 3, 2], -128, 127), uniform([3], 0.001, 0.02), ints([3], -5, 5), 1].no_grad("as above"),
        sample![ints([0, 3], 0, 5), values([0.5f32], [1])].no_grad("as above"),
    ]
}
fn step_samples() -> Vec<Sample> {
    vec![sample![randn([3, 4])], sample![randn([2, 3, 2, 2])], sample![randn([3])]]
}
fn fake_samples() -> Vec<Sample> {
    vec![
        sample![randn([2, 3]), values([0.02f32], [1])].no_grad("it is said to be one"),
        sample![randn([2, 3, 2]), uniform([3], 0.01, 0.02), 1, -8.0, 7.0].no_grad("as above"),
        sample![randn([0, 3]), values([0.5f32], [1])].no_grad("as above"),
    ]
}
