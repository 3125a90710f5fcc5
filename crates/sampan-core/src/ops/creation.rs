//! Tensors from nothing: constants, ranges, copies.

use super::prelude::*;
use super::shape::checked_shape;
use crate::{device, gpu};
use sampan_kernels::{arrange, copy};

impl Tensor {
    /// Zeros of a shape and dtype, on the [current device](crate::device::current).
    pub fn zeros(shape: impl AsRef<[usize]>, dtype: DType) -> Tensor {
        Tensor::zeros_on(shape, dtype, device::current())
    }

    /// Zeros on a device. Nobody pays for a call unless somebody watches the calls.
    pub(crate) fn zeros_on(shape: impl AsRef<[usize]>, dtype: DType, device: Device) -> Tensor {
        if !crate::dispatch::listening() {
            return Tensor::zeroed(shape, dtype, device);
        }
        let call = || try_zeros_with(shape.as_ref(), ZerosOpts::new().dtype(dtype));
        crate::error::unwrap(device::with(device, call))
    }

    /// Ones of a shape and dtype, on the [current device](crate::device::current).
    ///
    /// ```
    /// # use sampan_core::{DType, Tensor};
    /// assert_eq!(Tensor::ones([2], DType::Float32).to_vec::<f32>(), [1.0, 1.0]);
    /// ```
    pub fn ones(shape: impl AsRef<[usize]>, dtype: DType) -> Tensor {
        Tensor::full(shape, 1, dtype)
    }

    /// One number everywhere, in a shape and dtype, on the [current device](crate::device::current).
    ///
    /// ```
    /// # use sampan_core::{DType, Tensor};
    /// assert_eq!(Tensor::full([2], 7, DType::Int64).to_vec::<i64>(), [7, 7]);
    /// ```
    pub fn full(shape: impl AsRef<[usize]>, value: impl Into<Scalar>, dtype: DType) -> Tensor {
        Tensor::full_on(shape, value, dtype, device::current())
    }

    /// One number everywhere, on a device.
    pub(crate) fn full_on(
        shape: impl AsRef<[usize]>,
        value: impl Into<Scalar>,
        dtype: DType,
        device: Device,
    ) -> Tensor {
        let value = value.into();
        if crate::dispatch::listening() {
            let call = || try_full_with(shape.as_ref(), value, FullOpts::new().dtype(dtype));
            return crate::error::unwrap(device::with(device, call));
        }
        let out = Tensor::uninit(shape, dtype, device);
        match device {
            Device::Cpu => fill(&out, value),
            Device::Cuda(number) => {
                let filled = crate::gpu::gpu(number).and_then(|gpu| gpu::fill(gpu, value, &out, out.layout().clone()));
                crate::error::unwrap(filled);
            }
            Device::Meta => {}
        }
        out
    }

    /// One number everywhere, in the shape and dtype and on the device of another tensor.
    pub(crate) fn full_like_scalar(like: &Tensor, value: impl Into<Scalar>) -> Tensor {
        if crate::dispatch::listening() {
            return crate::error::unwrap(like.try_full_like(value.into()));
        }
        Tensor::full_on(like.shape(), value, like.dtype(), like.device())
    }

    /// The numbers from `start` up to, not including, `end`; see [`arange`](crate::ops::creation::arange).
    ///
    /// ```
    /// # use sampan_core::Tensor;
    /// assert_eq!(Tensor::arange(0, 6, 2).to_vec::<i64>(), [0, 2, 4]);
    /// ```
    #[track_caller]
    pub fn arange(start: impl Into<Scalar>, end: impl Into<Scalar>, step: impl Into<Scalar>) -> Tensor {
        arange(start, end.into(), step)
    }

    /// Standard normal numbers in the default float.
    ///
    /// ```
    /// # use sampan_core::Tensor;
    /// assert_eq!(Tensor::randn([2, 3]).shape(), [2, 3]);
    /// ```
    #[track_caller]
    pub fn randn(shape: impl AsRef<[usize]>) -> Tensor {
        super::random::randn(shape.as_ref())
    }

    /// Uniform numbers in [0, 1) in the default float.
    ///
    /// ```
    /// # use sampan_core::Tensor;
    /// assert_eq!(Tensor::rand([2, 3]).shape(), [2, 3]);
    /// ```
    #[track_caller]
    pub fn rand(shape: impl AsRef<[usize]>) -> Tensor {
        super::random::rand(shape.as_ref())
    }

    /// A tensor of shapes and dtypes only, on which ops infer and compute nothing.
    pub fn meta(shape: impl AsRef<[usize]>, dtype: DType) -> Tensor {
        Tensor::uninit(shape, dtype, Device::Meta)
    }

    /// This tensor's shape and dtype without its values.
    pub fn to_meta(&self) -> Tensor {
        let t = Tensor::meta(self.shape(), self.dtype());
        t.set_stop_gradient(self.stop_gradient());
        t
    }
}

fn fill(out: &Tensor, value: Scalar) {
    arrange::fill(out.values_mut().slice(), value);
}

pub(super) fn filled(cx: &Cx, shape: &[usize], value: Scalar, dtype: DType) -> Result<Tensor> {
    if matches!(value, Scalar::Int(0) | Scalar::Bool(false)) {
        return cx.zeros(shape, dtype);
    }
    let out = cx.out(shape, dtype)?;
    let on_cpu = move |_: &[&Tensor], out: &Tensor| {
        fill(out, value);
        Ok(())
    };
    cx.kernels(&[], &out, on_cpu, |gpu| gpu::fill(gpu, value, &out, out.layout().clone()).map(|()| true))?;
    Ok(out)
}

/// The number in an operand; a tensor must hold one element.
fn number(y: &Operand) -> Result<Scalar> {
    match y {
        Operand::Scalar(s) => Ok(*s),
        Operand::Tensor(t) => t.try_item(),
    }
}

/// Zeros of a shape, in the default float unless a dtype is given.
///
/// ```
/// # use sampan_core::ops::creation::zeros;
/// assert_eq!(zeros([2, 3]).to_vec::<f32>(), [0.0; 6]);
/// ```
#[op(non_diff, complex, samples = shape_samples, also("Tensor.new_zeros"))]
fn zeros(cx: &Cx, shape: &[i64], #[opt(None)] dtype: Option<DType>) -> Result<Tensor> {
    filled(cx, &checked_shape(shape)?, Scalar::Int(0), dtype.unwrap_or_else(default_dtype))
}

/// Ones of a shape, in the default float unless a dtype is given.
///
/// ```
/// # use sampan_core::ops::creation::ones;
/// assert_eq!(ones([2]).to_vec::<f32>(), [1.0, 1.0]);
/// ```
#[op(non_diff, complex, samples = shape_samples)]
fn ones(cx: &Cx, shape: &[i64], #[opt(None)] dtype: Option<DType>) -> Result<Tensor> {
    filled(cx, &checked_shape(shape)?, Scalar::Int(1), dtype.unwrap_or_else(default_dtype))
}

/// One number in every element. Without a dtype, truth values give `bool`, numbers the default float and complex numbers
/// the complex type of its width.
///
/// ```
/// # use sampan_core::ops::creation::full;
/// assert_eq!(full([2], 2.5).to_vec::<f32>(), [2.5, 2.5]);
/// ```
#[op(non_diff, complex, samples = full_samples)]
fn full(cx: &Cx, shape: &[i64], fill_value: Operand, #[opt(None)] dtype: Option<DType>) -> Result<Tensor> {
    let shape = checked_shape(shape)?;
    let value = number(&fill_value)?;
    let dtype = dtype.unwrap_or_else(|| match (&fill_value, value) {
        (Operand::Tensor(t), _) => t.dtype(),
        (_, Scalar::Bool(_)) => DType::Bool,
        (_, Scalar::Complex(_)) => default_dtype().complex(),
        _ => default_dtype(),
    });
    filled(cx, &shape, value, dtype)
}

/// A tensor whose values are unspecified until they are written.
///
/// ```
/// # use sampan_core::ops::creation::empty;
/// assert_eq!(empty([2, 3]).shape(), [2, 3]);
/// ```
#[op(non_diff, complex, samples = shape_samples, peer = "none: unspecified values")]
fn empty(cx: &Cx, shape: &[i64], #[opt(None)] dtype: Option<DType>) -> Result<Tensor> {
    cx.out(&checked_shape(shape)?, dtype.unwrap_or_else(default_dtype))
}

/// Zeros in the shape (and, unless one is given, the dtype) of `x`.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([3i64, 4]).zeros_like().to_vec::<i64>(), [0, 0]);
/// ```
#[op(non_diff, complex, samples = like_samples)]
fn zeros_like(cx: &Cx, x: &Tensor, #[opt(None)] dtype: Option<DType>) -> Result<Tensor> {
    filled(cx, x.shape(), Scalar::Int(0), dtype.unwrap_or(x.dtype()))
}

/// Ones in the shape (and, unless one is given, the dtype) of `x`.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([3i64, 4]).ones_like().to_vec::<i64>(), [1, 1]);
/// ```
#[op(non_diff, complex, samples = like_samples)]
fn ones_like(cx: &Cx, x: &Tensor, #[opt(None)] dtype: Option<DType>) -> Result<Tensor> {
    filled(cx, x.shape(), Scalar::Int(1), dtype.unwrap_or(x.dtype()))
}

/// One number in the shape (and, unless one is given, the dtype) of `x`.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([3i64, 4]).full_like(9).to_vec::<i64>(), [9, 9]);
/// ```
#[op(non_diff, complex, samples = full_like_samples)]
fn full_like(cx: &Cx, x: &Tensor, fill_value: Operand, #[opt(None)] dtype: Option<DType>) -> Result<Tensor> {
    filled(cx, x.shape(), number(&fill_value)?, dtype.unwrap_or(x.dtype()))
}

/// Unspecified values in the shape (and, unless one is given, the dtype) of `x`.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([3i64, 4]).empty_like().shape(), [2]);
/// ```
#[op(non_diff, complex, samples = like_samples, peer = "none: unspecified values")]
fn empty_like(cx: &Cx, x: &Tensor, #[opt(None)] dtype: Option<DType>) -> Result<Tensor> {
    cx.out(x.shape(), dtype.unwrap_or(x.dtype()))
}

/// The numbers from `start` up to, not including, `end` in steps of `step`; with `end` left out, from 0 up to `start`.
/// Integers give int64, otherwise the default float, unless a dtype is given.
///
/// ```
/// # use sampan_core::ops::creation::arange;
/// assert_eq!(arange(3, None, 1).to_vec::<i64>(), [0, 1, 2]);
/// assert_eq!(arange(5, 0, -2).to_vec::<i64>(), [5, 3, 1]);
/// ```
#[op(non_diff, samples = arange_samples)]
fn arange(
    cx: &Cx,
    #[default(0)] start: Scalar,
    #[default(None)] end: Option<Scalar>,
    #[default(1)] step: Scalar,
    #[opt(None)] dtype: Option<DType>,
) -> Result<Tensor> {
    let (start, end) = end.map_or((Scalar::Int(0), start), |end| (start, end));
    let whole = [start, end, step].iter().all(|v| !matches!(v, Scalar::Float(_)));
    let dtype = dtype.unwrap_or_else(|| if whole { DType::Int64 } else { default_dtype() });
    let (a, b, s) = (start.to_f64(), end.to_f64(), step.to_f64());
    ensure!(
        a.is_finite() && b.is_finite() && s.is_finite(),
        "the bounds and the step must be finite, got {a}, {b}, {s}"
    );
    ensure!(s != 0.0, "step cannot be 0");
    // Whole numbers are counted exactly; an f64 would round beyond 2⁵³.
    let len = if whole {
        let (a, b, s) = (start.to_i64() as i128, end.to_i64() as i128, step.to_i64() as i128);
        let span = if s > 0 { b - a } else { a - b };
        if span <= 0 { 0.0 } else { ((span + s.abs() - 1) / s.abs()) as f64 }
    } else {
        ((b - a) / s).ceil().max(0.0)
    };
    ensure!(len < (1u64 << 48) as f64, "{len} elements are too many for this machine");
    let out = cx.out([len as usize], dtype)?;
    cx.run(
        || {
            let mut data = out.values_mut();
            if whole {
                arrange::arange_ints(data.slice(), start.to_i64(), step.to_i64());
            } else {
                arrange::arange_floats(data.slice(), a, s);
            }
            Ok(())
        },
        |gpu| {
            // Counted exactly in the one or the other.
            let counts = dtype.is_float() || (whole && dtype.is_int());
            let (first, step) = ((start.to_i64(), a), (step.to_i64(), s));
            Ok(counts && gpu::count_up(gpu, first, step, &out)?)
        },
    )?;
    Ok(out)
}

/// `num` numbers from `start` to `stop`, both included, evenly spaced.
///
/// ```
/// # use sampan_core::ops::creation::linspace;
/// assert_eq!(linspace(0, 1, 5).to_vec::<f32>(), [0.0, 0.25, 0.5, 0.75, 1.0]);
/// ```
#[op(non_diff, samples = linspace_samples, alias(end = stop, steps = num))]
fn linspace(cx: &Cx, start: Operand, stop: Operand, num: i64, #[opt(None)] dtype: Option<DType>) -> Result<Tensor> {
    spaced(cx, &start, &stop, num, dtype, None)
}

/// `num` powers of `base`, their exponents evenly spaced from `start` to `stop`, both included.
///
/// ```
/// # use sampan_core::ops::creation::logspace;
/// assert_eq!(logspace(0, 2, 3, 10).to_vec::<f32>(), [1.0, 10.0, 100.0]);
/// ```
#[op(non_diff, samples = logspace_samples)]
fn logspace(
    cx: &Cx,
    start: Operand,
    stop: Operand,
    num: i64,
    #[default(10.0)] base: Operand,
    #[opt(None)] dtype: Option<DType>,
) -> Result<Tensor> {
    let base = number(&base)?.to_f64();
    spaced(cx, &start, &stop, num, dtype, Some(base))
}

fn spaced(
    cx: &Cx,
    start: &Operand,
    stop: &Operand,
    num: i64,
    dtype: Option<DType>,
    base: Option<f64>,
) -> Result<Tensor> {
    ensure!(num >= 0, "num cannot be negative, got {num}");
    let dtype = dtype.unwrap_or_else(default_dtype);
    let out = cx.out([num as usize], dtype)?;
    if !cx.device().has_values() {
        return Ok(out);
    }
    let (a, b) = (number(start)?.to_f64(), number(stop)?.to_f64());
    cx.run(
        || {
            arrange::spaced(out.values_mut().slice(), a, b, base);
            Ok(())
        },
        |gpu| gpu::spaced(gpu, a, b, base, &out),
    )?;
    Ok(out)
}

/// A matrix with ones on the diagonal; square unless `num_columns` is given.
///
/// ```
/// # use sampan_core::ops::creation::eye;
/// assert_eq!(eye(2, None).to_vec::<f32>(), [1.0, 0.0, 0.0, 1.0]);
/// ```
#[op(non_diff, complex, samples = eye_samples, alias(n = num_rows, m = num_columns))]
fn eye(
    cx: &Cx,
    num_rows: i64,
    #[default(None)] num_columns: Option<i64>,
    #[opt(None)] dtype: Option<DType>,
) -> Result<Tensor> {
    let shape = checked_shape(&[num_rows, num_columns.unwrap_or(num_rows)])?;
    let dtype = dtype.unwrap_or_else(default_dtype);
    let out = cx.zeros(&shape, dtype)?;
    let (diagonal, step) = (shape[0].min(shape[1]), shape[1] as isize + 1);
    cx.run(
        || {
            copy::fill_strided(Scalar::Int(1), out.values_mut().slice(), &[diagonal], &[step], 0);
            Ok(())
        },
        |gpu| {
            let place = Layout { shape: [diagonal][..].into(), strides: [step][..].into(), offset: 0 };
            gpu::fill(gpu, Scalar::Int(1), &out, place).map(|()| true)
        },
    )?;
    Ok(out)
}

/// A copy in memory of its own, through which gradients flow. (A Rust `clone()` is another handle on the same tensor.)
///
/// ```
/// # use sampan_core::Tensor;
/// let x = Tensor::new([1i64, 2]);
/// assert!(!x.assign().shares_memory(&x));
/// ```
#[op(complex, samples = any_line, also("clone"), onnx = "Identity")]
fn assign(cx: &Cx, x: &Tensor) -> Result<Tensor> {
    cx.grad(x.try_clone_data()?, &[], |g| Ok(g.grad()))
}

/// The same values on another device, `"cpu"` or `"gpu:0"`; the tensor itself if it is there already. Gradients go back the
/// same way.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([1i64, 2]).to_device("cpu").to_vec::<i64>(), [1, 2]);
/// ```
#[op(complex, module = "_C_ops", samples = device_samples, peer = "none: the values stay what they are")]
fn to_device(cx: &Cx, x: &Tensor, device: &str) -> Result<Tensor> {
    let (from, to) = (x.device(), Device::named(device)?);
    let out = match (from, to) {
        _ if from == to => x.clone(),
        // Without values there is nothing to move.
        (Device::Meta, _) => x.clone(),
        (_, Device::Cuda(number)) => gpu::upload(gpu::gpu(number)?, x)?,
        _ => gpu::download(x)?,
    };
    cx.grad(out, &[], move |g| g.grad().try_to_device(&from.to_string()))
}

/// Sets every element to one number.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([1i64, 2]).fill_(7).to_vec::<i64>(), [7, 7]);
/// ```
#[op(complex, samples = fill_samples, peer = "lambda x, value: x.clone().fill_(value)")]
fn fill_(cx: &Cx, x: &Tensor, value: Operand) -> Result<Tensor> {
    let out = filled(cx, x.shape(), number(&value)?, x.dtype())?;
    let has_value_tensor = value.tensor().is_some();
    cx.grad(out, &[], move |g| {
        let mut grads = vec![Some(g.grad().zeros_like())];
        if has_value_tensor {
            grads.push(None);
        }
        Ok(grads)
    })
}

/// Sets every element to zero.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([1i64, 2]).zero_().to_vec::<i64>(), [0, 0]);
/// ```
#[op(complex, samples = real_line, peer = "lambda x: x.clone().zero_()")]
fn zero_(cx: &Cx, x: &Tensor) -> Result<Tensor> {
    let out = cx.zeros(x.shape(), x.dtype())?;
    cx.grad(out, &[], |g| Ok(g.grad().zeros_like()))
}

fn device_samples() -> Vec<Sample> {
    vec![sample![randn([2, 3]), "cpu"], sample![ints([0], 0, 2), "cpu"]]
}
fn shape_samples() -> Vec<Sample> {
    vec![sample![[2, 3]], sample![[2]; dtype = DType::Int64], sample![Vec::<i64>::new()], sample![[0, 2]]]
}
fn full_samples() -> Vec<Sample> {
    vec![
        sample![[2, 3], 1.5],
        sample![[2], 3],
        sample![[2], true],
        sample![Vec::<i64>::new(), 7; dtype = DType::Int32],
        sample![[0], 1.0],
        sample![[2], Complex128::new(1.0, -2.0)],
        sample![[2], 3; dtype = DType::Complex128],
    ]
}
fn like_samples() -> Vec<Sample> {
    vec![sample![randn([2, 3])], sample![ints([2], 0, 5); dtype = DType::Float32], sample![randn([])]]
}
fn full_like_samples() -> Vec<Sample> {
    vec![sample![randn([2, 3]), 1.5], sample![ints([2], 0, 5), 2.5], sample![randn([]), 3; dtype = DType::Int32]]
}
fn arange_samples() -> Vec<Sample> {
    vec![sample![5], sample![5, 0, -2], sample![0.5, 3.0, 0.4], sample![3, 0], sample![1, 4; dtype = DType::Float32]]
}
fn linspace_samples() -> Vec<Sample> {
    vec![sample![0, 1, 5], sample![5.0, -3.0, 4], sample![2, 9, 1], sample![0, 7, 3; dtype = DType::Int32]]
}
fn logspace_samples() -> Vec<Sample> {
    vec![sample![0, 2, 3], sample![1.0, 2.0, 4, 2.0], sample![2, 9, 1]]
}
fn eye_samples() -> Vec<Sample> {
    vec![sample![3], sample![2, 4], sample![4, 2; dtype = DType::Int64]]
}
fn fill_samples() -> Vec<Sample> {
    vec![sample![randn([2, 3]), 1.5], sample![ints([3], 0, 5), 2], sample![randn([]), 0.5]]
}
