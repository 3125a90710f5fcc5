//! Questions about whole tensors: equal, close, contained, empty. Nothing here has a gradient.

use crate::ops::logic::odd_complex_numbers;
use crate::ops::prelude::*;

/// Is `|x - y| <= atol + rtol * |y|`, element by element? Equal infinities are close; NaN only with `equal_nan`.
///
/// ```
/// # use sampan_core::{Bool, Tensor};
/// let x = Tensor::new([1.0f32, 1.1]);
/// assert_eq!(x.isclose(&Tensor::new([1.0f32, 1.0])).to_vec::<Bool>(), [true, false]);
/// ```
#[op(non_diff, complex, samples = close_samples)]
fn isclose(
    cx: &Cx,
    x: &Tensor,
    y: &Tensor,
    #[opt(1e-5)] rtol: f64,
    #[opt(1e-8)] atol: f64,
    #[opt(false)] equal_nan: bool,
) -> Result<Tensor> {
    close(cx, x, y, rtol, atol, equal_nan)
}

/// Are all elements close, in the sense of `isclose`? A 0-d bool.
///
/// ```
/// # use sampan_core::Tensor;
/// let x = Tensor::new([1.0f32, 2.0]);
/// assert!(x.allclose(&(&x + 1e-7)).to_f64() == 1.0);
/// ```
#[op(non_diff, complex, samples = close_samples)]
fn allclose(
    cx: &Cx,
    x: &Tensor,
    y: &Tensor,
    #[opt(1e-5)] rtol: f64,
    #[opt(1e-8)] atol: f64,
    #[opt(false)] equal_nan: bool,
) -> Result<Tensor> {
    all_true(cx, close(cx, x, y, rtol, atol, equal_nan)?)
}

fn close(cx: &Cx, x: &Tensor, y: &Tensor, rtol: f64, atol: f64, equal_nan: bool) -> Result<Tensor> {
    ensure!(rtol >= 0.0 && atol >= 0.0, "rtol and atol must not be negative, got {rtol} and {atol}");
    let near = formula!(|x, y; rtol, atol, equal_nan| {
        let close = y.is_finite().and((x - y).abs().le(atol + rtol * y.abs()));
        x.equals(y).or(close).or(equal_nan.and(x.is_nan()).and(y.is_nan()))
    });
    let wide = if promote_tensors(x, y).is_complex() { DType::Complex128 } else { DType::Float64 };
    cx.truth_in(wide, near, (x, y))
}

/// Have `x` and `y` the same shape and the same elements? A 0-d bool.
///
/// ```
/// # use sampan_core::{Bool, Tensor};
/// let x = Tensor::new([1i64, 2]);
/// assert_eq!(x.equal_all(&x).to_vec::<Bool>(), [true]);
/// assert_eq!(x.equal_all(&Tensor::new([1i64])).to_vec::<Bool>(), [false]);
/// ```
#[op(non_diff, complex, samples = equal_samples)]
fn equal_all(cx: &Cx, x: &Tensor, y: &Tensor) -> Result<Tensor> {
    if x.shape() != y.shape() {
        return cx.zeros([], DType::Bool);
    }
    all_true(cx, x.try_equal(y)?)
}

/// Do all elements of a bool tensor hold? A 0-d bool.
fn all_true(cx: &Cx, t: Tensor) -> Result<Tensor> {
    let out = cx.out([], DType::Bool)?;
    cx.run(
        || {
            out.data_mut::<Bool>().slice()[0] = t.data::<Bool>().slice().iter().all(|b| b.get()).into();
            Ok(())
        },
        |gpu| crate::gpu::reduce(gpu, sampan_cuda::reduce::Reduction::All, &t, &vec![true; t.ndim()], &out),
    )?;
    Ok(out)
}

/// Is each element of `x` among the elements of `test_x`? With `invert`, is it not? (`assume_unique` changes nothing:
/// the search is over sorted elements anyway.)
///
/// ```
/// # use sampan_core::{Bool, Tensor};
/// assert_eq!(Tensor::new([1i64, 2, 3]).isin(&Tensor::new([2i64, 5])).to_vec::<Bool>(), [false, true, false]);
/// ```
#[op(non_diff, samples = isin_samples, alias(elements = x, test_elements = test_x))]
fn isin(
    cx: &Cx,
    x: &Tensor,
    test_x: &Tensor,
    #[opt(false)] assume_unique: bool,
    #[opt(false)] invert: bool,
) -> Result<Tensor> {
    let _ = assume_unique;
    let dtype = promote_tensors(x, test_x);
    let out = cx.out(x.shape(), DType::Bool)?;
    cx.cpu(|| {
        let wide = |t: &Tensor| t.in_dtype(dtype)?.widened()?.in_rows();
        let (x, known) = (wide(x)?, wide(test_x)?);
        sampan_kernels::sort::isin(x.values().slice(), known.values().slice(), invert, out.data_mut().slice());
        Ok(())
    })?;
    Ok(out)
}

/// Is each element a real number? A complex one is where its imaginary part is zero.
///
/// ```
/// # use sampan_core::{Bool, Tensor};
/// assert_eq!(Tensor::new([1.5f32]).isreal().to_vec::<Bool>(), [true]);
/// ```
#[op(non_diff, complex, samples = odd_complex_numbers)]
fn isreal(cx: &Cx, x: &Tensor) -> Result<Tensor> {
    match x.dtype().is_complex() {
        true => cx.truth(formula!(|z| z.im().equals(0.0)), x),
        false => cx.truth(formula!(|_x| 1.0), x),
    }
}

/// Has `x` no elements? A 0-d bool.
///
/// ```
/// # use sampan_core::{Bool, DType, Tensor};
/// assert_eq!(Tensor::zeros([0, 3], DType::Float32).is_empty().to_vec::<Bool>(), [true]);
/// ```
#[op(non_diff, complex, samples = empty_samples)]
fn is_empty(cx: &Cx, x: &Tensor) -> Result<Tensor> {
    crate::ops::creation::filled(cx, &[], Scalar::Bool(x.numel() == 0), DType::Bool)
}

impl Tensor {
    /// Does it hold floating-point numbers?
    pub fn is_floating_point(&self) -> bool {
        self.dtype().is_float()
    }

    /// Does it hold complex numbers?
    pub fn is_complex(&self) -> bool {
        self.dtype().is_complex()
    }

    /// Does it hold integers? bool is none.
    pub fn is_integer(&self) -> bool {
        self.dtype().is_int()
    }
}

fn close_samples() -> Vec<Sample> {
    let (nan, inf) = (f32::NAN, f32::INFINITY);
    let odd = || values([1.0f32, nan, inf, 2.0], [4]);
    vec![
        sample![odd(), values([1.0f32, nan, inf, 2.1], [4])],
        sample![odd(), values([1.0f32, nan, inf, 2.1], [4]); equal_nan = true, rtol = 0.1],
        sample![values([1.0f32, 2.0], [2]), values([1.0f32, 2.05], [2]); atol = 0.1],
        sample![randn([2, 3]), randn([3])].peer("lambda x, y: getattr(torch, op)(x, y)"),
        sample![ints([3], 0, 3), ints([3], 0, 3)].peer("lambda x, y: getattr(torch, op)(x, y)"),
        sample![randn([]), randn([])],
        sample![randn([0, 3]), randn([0, 3])],
        sample![complexes([3]), complexes([3]) * 1.000001].peer("lambda x, y: getattr(torch, op)(x, y)"),
    ]
}
fn equal_samples() -> Vec<Sample> {
    vec![
        sample![randn([2, 3]), randn([2, 3])],
        sample![randn([2, 3]), randn([3])],
        sample![ints([3], 0, 9), ints([3], 1, 9)],
        sample![randn([]), randn([])],
        sample![randn([0, 3]), randn([0, 3])].peer("np.array_equal"),
        sample![complexes([3]), complexes([3])].peer("np.array_equal"),
    ]
}
fn isin_samples() -> Vec<Sample> {
    vec![
        sample![ints([2, 3], 0, 9), ints([5], 0, 9)],
        sample![ints([2, 3], 0, 9), ints([2, 2], 0, 9); invert = true],
        sample![values([1.0f32, f32::NAN, 3.0], [3]), values([f32::NAN, 3.0], [2])],
        sample![randn([]), randn([])],
        sample![ints([0, 3], 0, 9), ints([3], 0, 9)],
    ]
}
fn empty_samples() -> Vec<Sample> {
    vec![sample![randn([2])], sample![randn([0, 2])], sample![randn([])]]
}
