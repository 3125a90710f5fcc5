//! Further functions of two arguments.

use super::arithmetic::y_shape;
use super::elementwise::pair_grads;
use super::math::zeros_like_grad;
use super::prelude::*;
use super::trigonometric::tensor_pairs;
use sampan_kernels::Real;

/// The magnitude of `x` with the sign of `y`.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([1.0f32, 2.0]).copysign(-0.0).to_vec::<f32>(), [-1.0, -2.0]);
/// ```
#[op(inplace, samples = real_pairs)]
fn copysign(cx: &Cx, x: &Tensor, y: Operand) -> Result<Tensor> {
    let out = cx.binary(x, &y, real_fn!(|x, y| x.copysign(y)))?;
    let ys = y_shape(&y);
    cx.grad_from_output(out, &[x], move |g| {
        let x = g.saved(0);
        let dx = || g.grad() * (x.sign() * g.output(0).sign());
        Ok(pair_grads(g, x.shape(), ys.as_deref(), dx, || zeros_like_grad(g)))
    })
}

/// The next number after `x` towards `y` that the dtype can hold.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([1.0f32]).nextafter(&Tensor::new([2.0f32])).to_vec::<f32>(), [1.0 + f32::EPSILON]);
/// ```
#[op(non_diff, samples = tensor_pairs)]
fn nextafter(cx: &Cx, x: &Tensor, y: &Tensor) -> Result<Tensor> {
    let dtype = to_float(promote_tensors(x, y));
    if dtype.is_half() {
        return Err(Error::dtype(format!("works in float32 and float64, got {dtype}")).hint("cast both to float32"));
    }
    cx.binary(x, &y.into(), real_fn!(|x, y| next_after(x, y)))
}

fn next_after<T: Real>(x: T, y: T) -> T {
    let (a, b) = (x.to_f64(), y.to_f64());
    match (T::DTYPE, a < b, a > b) {
        (DType::Float64, true, _) => T::of(a.next_up()),
        (DType::Float64, _, true) => T::of(a.next_down()),
        (_, true, _) => T::of((a as f32).next_up() as f64),
        (_, _, true) => T::of((a as f32).next_down() as f64),
        _ if a == b => y,
        _ => T::NAN,
    }
}

/// The step function: 0 where `x` is negative or NaN, 1 where it is positive, `y` where it is zero.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([-1.0f32, 0.0, 2.0]).heaviside(&Tensor::new([0.5f32])).to_vec::<f32>(), [0.0, 0.5, 1.0]);
/// ```
#[op(samples = heaviside_samples)]
fn heaviside(cx: &Cx, x: &Tensor, y: &Tensor) -> Result<Tensor> {
    let step = real_fn!(|x, y| select(x == T::ZERO, y, select(x > T::ZERO, T::ONE, T::ZERO)));
    let out = cx.binary_number(x, &y.into(), step, |x, y| if x == 0 { y } else { (x > 0) as i64 })?;
    let ys = y.shape_vec();
    cx.grad(out, &[x], move |g| {
        let x = g.saved(0);
        Ok(pair_grads(g, x.shape(), Some(&ys), || zeros_like_grad(g), || g.grad() * x.equal(0.0)))
    })
}

/// The greatest common divisor of integers, never negative.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([12i64, -8]).gcd(&Tensor::new([18i64, 12])).to_vec::<i64>(), [6, 4]);
/// ```
#[op(inplace, non_diff, samples = int_pairs)]
fn gcd(cx: &Cx, x: &Tensor, y: &Tensor) -> Result<Tensor> {
    cx.binary_int(x, &y.into(), common_divisor)
}

/// The least common multiple of integers, never negative.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([4i64, -6]).lcm(&Tensor::new([6i64, 4])).to_vec::<i64>(), [12, 12]);
/// ```
#[op(inplace, non_diff, samples = int_pairs)]
fn lcm(cx: &Cx, x: &Tensor, y: &Tensor) -> Result<Tensor> {
    cx.binary_int(x, &y.into(), |x, y| match common_divisor(x, y) {
        0 => 0,
        d => (x / d).wrapping_mul(y).wrapping_abs(),
    })
}

fn common_divisor(x: i64, y: i64) -> i64 {
    let (mut a, mut b) = (x, y);
    while b != 0 {
        (a, b) = (b, a.wrapping_rem(b));
    }
    a.wrapping_abs()
}

/// The point between `x` and `y` at `weight`: `x + weight * (y - x)`.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([1.0f32]).lerp(&Tensor::new([3.0f32]), 0.25).to_vec::<f32>(), [1.5]);
/// ```
#[op(inplace, complex, samples = lerp_samples)]
fn lerp(x: &Tensor, y: &Tensor, weight: Operand) -> Result<Tensor> {
    x.try_add((y - x).try_multiply(weight)?)
}

/// `log(exp(x) + exp(y))`, without overflow.
///
/// ```
/// # use sampan_core::Tensor;
/// let x = Tensor::new([1000.0f64]);
/// assert_eq!(x.logaddexp(&x).to_vec::<f64>(), [1000.0 + std::f64::consts::LN_2]);
/// ```
#[op(samples = tensor_pairs, amp = "black")]
fn logaddexp(cx: &Cx, x: &Tensor, y: &Tensor) -> Result<Tensor> {
    // Equal infinities differ by NaN.
    let sum = real_fn!(|x, y| {
        let gap = select(x == y, T::ZERO, -(x - y).abs());
        x.max(y) + gap.exp().log1p()
    });
    let out = cx.binary(x, &y.into(), sum)?;
    cx.grad(out, &[x, y], |g| {
        let (x, y) = (g.saved(0), g.saved(1));
        let share = |a: &Tensor, b: &Tensor| g.grad() * (a - b).sigmoid();
        Ok(pair_grads(g, x.shape(), Some(y.shape()), || share(x, y), || share(y, x)))
    })
}

/// The sum of several tensors of one shape.
///
/// ```
/// # use sampan_core::{Tensor, ops::pairs::add_n};
/// let x = Tensor::new([1.0f32, 2.0]);
/// assert_eq!(add_n(&[x.clone(), x.clone(), x]).to_vec::<f32>(), [3.0, 6.0]);
/// ```
#[op(complex, samples = add_n_samples)]
fn add_n(inputs: &[Tensor]) -> Result<Tensor> {
    let Some((first, rest)) = inputs.split_first() else { bail!("needs at least one tensor") };
    for (i, t) in rest.iter().enumerate() {
        ensure!(
            t.shape() == first.shape(),
            "tensor {} has shape {:?}, the first has {:?}",
            i + 1,
            t.shape(),
            first.shape()
        );
    }
    // A sum of one must not share memory with its input.
    let first = if rest.is_empty() { first.try_add(0)? } else { first.clone() };
    rest.iter().try_fold(first, |sum, t| sum.try_add(t))
}

fn heaviside_samples() -> Vec<Sample> {
    vec![
        sample![randn([2, 3]), randn([3])],
        sample![values([-1.0f32, 0.0, 2.0, f32::NAN], [4]), randn([4])].no_grad("jumps"),
        sample![ints([4], -1, 2), ints([4], -1, 2)],
        sample![randn([]), randn([])],
        sample![randn([0, 3]), randn([3])],
    ]
}
fn int_pairs() -> Vec<Sample> {
    vec![
        sample![ints([2, 3], -30, 30), ints([2, 3], -30, 30)],
        sample![ints([4, 1], 0, 30), ints([3], 0, 9)],
        sample![ints([], 1, 30), ints([], 1, 30)],
        sample![ints([0, 3], 1, 9), ints([3], 1, 9)],
    ]
}
fn lerp_samples() -> Vec<Sample> {
    vec![
        sample![randn([2, 3]), uniform([2, 3], 0.0, 1.0), 0.3],
        sample![randn([2, 3]), randn([3]), uniform([2, 1], 0.0, 1.0)].grad_peer("torch.lerp"),
        sample![randn([]), randn([]), uniform([], 0.0, 1.0)],
        sample![randn([0, 3]), randn([3]), 0.5],
    ]
}
fn add_n_samples() -> Vec<Sample> {
    vec![
        sample![vec![randn([2, 3]), uniform([2, 3], 0.0, 1.0), positive([2, 3])]],
        sample![vec![randn([3])]],
        sample![vec![ints([3], 0, 9), ints([3], 1, 4)]],
        sample![vec![randn([]), positive([])]],
        sample![vec![randn([0, 3]), positive([0, 3])]],
    ]
}
