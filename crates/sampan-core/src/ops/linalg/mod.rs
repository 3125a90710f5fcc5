//! Systems of linear equations, inverses, determinants and functions of matrices. Batched; float32 and float64.

pub mod decompositions;
pub mod einsum;
pub mod geometry;
pub mod lu;
pub mod matmul;
pub mod products;
pub mod rank;

use crate::ops::elementwise::sum_to;
use crate::ops::prelude::*;
use sampan_kernels::linalg as kernel;

/// Rows and columns of a stack of matrices that can be decomposed.
pub(crate) fn check_matrix(x: &Tensor, name: &str) -> Result<(usize, usize)> {
    ensure!(x.ndim() >= 2, "{name} must be a matrix or a batch of matrices, it has {} axes", x.ndim());
    if !matches!(x.dtype(), DType::Float32 | DType::Float64) {
        return Err(Error::dtype(format!("{name} must be float32 or float64, got {}", x.dtype()))
            .hint("cast it to float32 first"));
    }
    Ok((x.dim(-2), x.dim(-1)))
}

/// The order of a stack of square matrices that can be decomposed.
pub(crate) fn check_square(x: &Tensor, name: &str) -> Result<usize> {
    let (m, n) = check_matrix(x, name)?;
    ensure!(m == n, "{name} must be square, its matrices are {m}×{n}");
    Ok(n)
}

/// The axes before the last two.
pub(crate) fn batch_of(x: &Tensor) -> &[usize] {
    &x.shape()[..x.ndim() - 2]
}

/// A shape of a batch of matrices.
pub(crate) fn stack(batch: &[usize], tail: &[usize]) -> Vec<usize> {
    [batch, tail].concat()
}

/// A failed decomposition as an error of the op.
pub(crate) fn failed(e: kernel::LinalgError) -> Error {
    Error::invalid(e.to_string())
}

/// A constant matrix, ones where `keep(row, column)`.
pub(crate) fn mask(rows: usize, cols: usize, dtype: DType, keep: impl Fn(i64, i64) -> bool) -> Tensor {
    let values: Vec<f32> = (0..rows * cols).map(|i| keep((i / cols) as i64, (i % cols) as i64) as u8 as f32).collect();
    Tensor::from_vec(values, [rows, cols]).cast(dtype)
}

/// The identity.
pub(crate) fn identity(n: usize, dtype: DType) -> Tensor {
    mask(n, n, dtype, |i, j| i == j)
}

/// Diagonal matrices from vectors.
pub(crate) fn diagonal_matrix(d: &Tensor) -> Tensor {
    d.unsqueeze(-1) * identity(d.dim(-1), d.dtype())
}

/// The inverses of square matrices.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([[2.0f32, 0.0], [0.0, 4.0]]).inverse().to_vec::<f32>(), [0.5, 0.0, 0.0, 0.25]);
/// ```
#[op(also("linalg.inv"), samples = squares, amp = "black")]
fn inverse(cx: &Cx, x: &Tensor) -> Result<Tensor> {
    let n = check_square(x, "x")?;
    let out = cx.out(x.shape(), x.dtype())?;
    cx.cpu(|| {
        let x = x.contiguous();
        kernel::inverse(x.values().slice(), n, out.values_mut().slice()).map_err(failed)
    })?;
    cx.grad_from_output(out, &[], |g| {
        let t = g.output(0).transpose_last();
        Ok(-t.matrix_product(&g.grad()).matrix_product(&t))
    })
}

/// The `X` of `x X = y` (or of `X x = y` with `left=False`), where `y` is a matrix or a vector.
///
/// ```
/// # use sampan_core::Tensor;
/// let x = Tensor::new([[3.0f32, 1.0], [1.0, 2.0]]);
/// let out = x.solve(&Tensor::new([9.0f32, 8.0])).to_vec::<f32>();
/// assert!((out[0] - 2.0).abs() < 1e-6 && (out[1] - 3.0).abs() < 1e-6);
/// ```
#[op(module = "linalg", samples = systems, amp = "black", alias(A = x, B = y))]
fn solve(x: &Tensor, y: &Tensor, #[opt(true)] left: bool) -> Result<Tensor> {
    check_square(x, "x")?;
    let vector = y.ndim() == 1 || (y.ndim() + 1 == x.ndim() && *y.shape() == x.shape()[..x.ndim() - 1]);
    if vector {
        ensure!(left, "left=False needs a matrix y, it has {} axes", y.ndim());
        return Ok(x.try_solve_matrices(&y.unsqueeze(-1))?.squeeze(-1));
    }
    if left {
        return x.try_solve_matrices(y);
    }
    ensure!(y.ndim() >= 2, "y must be a vector or a matrix");
    Ok(x.transpose_last().try_solve_matrices(&y.transpose_last())?.transpose_last())
}

/// The `X` of `x X = y` for stacks of matrices with broadcast batches; `solve` comes down to it.
#[op(internal, module = "linalg", samples = matrix_systems, peer = "lambda x, y: paddle.linalg.solve(x, y)", amp = "black")]
fn solve_matrices(cx: &Cx, x: &Tensor, y: &Tensor) -> Result<Tensor> {
    let n = check_square(x, "x")?;
    let (rows, k) = check_matrix(y, "y")?;
    ensure!(rows == n, "x has {n} rows, y has {rows}");
    ensure!(x.dtype() == y.dtype(), "x is {}, y is {}", x.dtype(), y.dtype());
    let batch = broadcast(batch_of(x), batch_of(y))?;
    let out = cx.out(stack(&batch, &[n, k]), x.dtype())?;
    cx.cpu(|| {
        let (x, y) = (spread(x, &batch), spread(y, &batch));
        kernel::solve(x.values().slice(), n, y.values().slice(), k, out.values_mut().slice()).map_err(failed)
    })?;
    let y_shape = y.shape_vec();
    cx.grad_from_output(out, &[x], move |g| {
        let x = g.saved(0);
        let dy = x.transpose_last().solve_matrices(&g.grad());
        let dx = g.if_needed(0, || sum_to(&-dy.matrix_product(&g.output(0).transpose_last()), x.shape()));
        Ok([dx, Some(sum_to(&dy, &y_shape))])
    })
}

/// A stack of matrices repeated to a batch, in row-major memory.
fn spread(x: &Tensor, batch: &[usize]) -> Tensor {
    x.expand(stack(batch, &x.shape()[x.ndim() - 2..])).contiguous()
}

/// The `X` of `x X = y` for triangular `x`, of which only one triangle is read.
///
/// ```
/// # use sampan_core::Tensor;
/// let x = Tensor::new([[2.0f32, 2.0], [0.0, 4.0]]);
/// assert_eq!(x.triangular_solve(&Tensor::new([[6.0f32], [4.0]])).to_vec::<f32>(), [2.0, 1.0]);
/// ```
#[op(module = "linalg", samples = triangular_systems, amp = "black")]
fn triangular_solve(
    cx: &Cx,
    x: &Tensor,
    y: &Tensor,
    #[opt(true)] upper: bool,
    #[opt(false)] transpose: bool,
    #[opt(false)] unitriangular: bool,
) -> Result<Tensor> {
    let n = check_square(x, "x")?;
    let (rows, k) = check_matrix(y, "y")?;
    ensure!(rows == n, "x has {n} rows, y has {rows}");
    ensure!(x.dtype() == y.dtype(), "x is {}, y is {}", x.dtype(), y.dtype());
    let batch = broadcast(batch_of(x), batch_of(y))?;
    let out = cx.out(stack(&batch, &[n, k]), x.dtype())?;
    let how = kernel::Triangle { upper, transpose, unit: unitriangular };
    cx.cpu(|| {
        let (x, y) = (spread(x, &batch), spread(y, &batch));
        let (x, y, mut out) = (x.values(), y.values(), out.values_mut());
        kernel::solve_triangular(x.slice(), n, how, y.slice(), k, out.slice()).map_err(failed)
    })?;
    let y_shape = y.shape_vec();
    cx.grad_from_output(out, &[x], move |g| {
        let (x, out) = (g.saved(0), g.output(0));
        let dy = x.solve_triangle(&g.grad(), upper, !transpose, unitriangular);
        let dx = g.if_needed(0, || {
            let (a, b) = if transpose { (out, &dy) } else { (&dy, out) };
            let full = -a.matrix_product(&b.transpose_last());
            let k = unitriangular as i64;
            sum_to(&if upper { full.triu(k) } else { full.tril(-k) }, x.shape())
        });
        Ok([dx, Some(sum_to(&dy, &y_shape))])
    })
}

impl Tensor {
    /// [`triangular_solve`](Self::triangular_solve) with every argument in a row.
    pub(crate) fn solve_triangle(&self, y: &Tensor, upper: bool, transpose: bool, unit: bool) -> Tensor {
        let how = TriangularSolveOpts::new().upper(upper).transpose(transpose).unitriangular(unit);
        self.triangular_solve_with(y, how)
    }
}

/// The `X` of `A X = x`, where `y` is the Cholesky factor of `A` (lower, or upper with `upper=True`).
///
/// ```
/// # use sampan_core::Tensor;
/// let factor = Tensor::new([[2.0f32, 0.0], [0.0, 1.0]]);
/// assert_eq!(Tensor::new([[4.0f32], [3.0]]).cholesky_solve(&factor).to_vec::<f32>(), [1.0, 3.0]);
/// ```
#[op(module = "linalg", samples = factored_systems, amp = "black")]
fn cholesky_solve(x: &Tensor, y: &Tensor, #[opt(false)] upper: bool) -> Result<Tensor> {
    check_square(y, "y")?;
    check_matrix(x, "x")?;
    Ok(y.solve_triangle(&y.solve_triangle(x, upper, upper, false), upper, !upper, false))
}

/// The inverse of the matrix whose Cholesky factor is `x`.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([[2.0f32, 0.0], [0.0, 1.0]]).cholesky_inverse().to_vec::<f32>(), [0.25, 0.0, 0.0, 1.0]);
/// ```
#[op(module = "linalg", samples = factors, amp = "black")]
fn cholesky_inverse(x: &Tensor, #[opt(false)] upper: bool) -> Result<Tensor> {
    let n = check_square(x, "x")?;
    identity(n, x.dtype()).try_cholesky_solve_with(x, CholeskySolveOpts::new().upper(upper))
}

/// The determinants of square matrices. The gradient needs an invertible matrix.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([[1.0f32, 2.0], [3.0, 4.0]]).det().to_f64(), -2.0);
/// ```
#[op(module = "linalg", samples = determinants, onnx = "Det", amp = "black")]
fn det(cx: &Cx, x: &Tensor) -> Result<Tensor> {
    let n = check_square(x, "x")?;
    let out = cx.out(batch_of(x), x.dtype())?;
    cx.cpu(|| {
        let x = x.contiguous();
        kernel::det(x.values().slice(), n, out.values_mut().slice());
        Ok(())
    })?;
    cx.grad_from_output(out, &[x], |g| {
        Ok((g.grad() * g.output(0)).unsqueeze([-1, -1]) * g.saved(0).inverse().transpose_last())
    })
}

/// The signs of the determinants and the logarithms of their absolute values, stacked: `[2, …]`. A singular matrix has
/// sign 0 and logarithm -inf.
///
/// ```
/// # use sampan_core::Tensor;
/// let out = Tensor::new([[1.0f32, 2.0], [3.0, 4.0]]).slogdet().to_vec::<f32>();
/// assert!(out[0] == -1.0 && (out[1] - 2f32.ln()).abs() < 1e-6);
/// ```
#[op(module = "linalg", samples = determinants, amp = "black")]
fn slogdet(cx: &Cx, x: &Tensor) -> Result<Tensor> {
    let n = check_square(x, "x")?;
    let count: usize = batch_of(x).iter().product();
    let out = cx.out([&[2], batch_of(x)].concat(), x.dtype())?;
    cx.cpu(|| {
        let x = x.contiguous();
        let mut out = out.values_mut();
        let (sign, logdet) = out.slice().split_at(count);
        kernel::slogdet(x.values().slice(), n, sign, logdet);
        Ok(())
    })?;
    cx.grad(out, &[x], |g| {
        let weight = g.grad().try_select(0, 1)?.unsqueeze([-1, -1]);
        Ok(weight * g.saved(0).inverse().transpose_last())
    })
}

/// The `n`-th power of square matrices; a negative one is a power of the inverse.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([[1.0f32, 1.0], [0.0, 1.0]]).matrix_power(5).to_vec::<f32>(), [1.0, 5.0, 0.0, 1.0]);
/// ```
#[op(module = "linalg", samples = powers, amp = "black")]
fn matrix_power(x: &Tensor, n: i64) -> Result<Tensor> {
    let order = check_square(x, "x")?;
    if n == 0 {
        return Ok(x * 0.0 + identity(order, x.dtype()));
    }
    let mut square = if n < 0 { x.try_inverse()? } else { x.clone() };
    let (mut left, mut out) = (n.unsigned_abs(), None::<Tensor>);
    loop {
        if left & 1 == 1 {
            out = Some(out.map_or_else(|| square.clone(), |o| o.matrix_product(&square)));
        }
        left >>= 1;
        match out {
            Some(out) if left == 0 => return Ok(out),
            _ => square = square.matrix_product(&square),
        }
    }
}

/// The exponential of square matrices: the sum of `xᵏ / k!`, by scaling and squaring.
///
/// ```
/// # use sampan_core::Tensor;
/// let out = Tensor::new([[0.0f32, 1.0], [0.0, 0.0]]).matrix_exp().to_vec::<f32>();
/// assert_eq!(out, [1.0, 1.0, 0.0, 1.0]);
/// ```
#[op(module = "linalg", samples = exponents, amp = "black")]
fn matrix_exp(x: &Tensor) -> Result<Tensor> {
    let n = check_square(x, "x")?;
    if x.numel() == 0 {
        return Ok(x.clone());
    }
    // Halved until no row sums to more than 0.7: there 16 terms reach the last bit of a float64.
    let mut halvings = 0;
    if x.device() != Device::Meta {
        let rows = x.detach().to_f64_vec();
        let norm = rows.chunks(n).map(|r| r.iter().map(|v| v.abs()).sum::<f64>()).fold(0.0, f64::max);
        ensure!(norm.is_finite(), "x holds NaN or infinity");
        halvings = (norm / 0.7).log2().ceil().max(0.0) as u32;
    }
    let x = x * 0.5f64.powi(halvings as i32);
    let x2 = x.matrix_product(&x);
    let x3 = x2.matrix_product(&x);
    let x4 = x2.matrix_product(&x2);
    let term = |k: usize| 1.0 / (1..=k).map(|i| i as f64).product::<f64>();
    let four = |k: usize| identity(n, x.dtype()) * term(k) + &x * term(k + 1) + &x2 * term(k + 2) + &x3 * term(k + 3);
    let mut out = four(12) + &x4 * term(16);
    for k in [8, 4, 0] {
        out = four(k) + x4.matrix_product(&out);
    }
    for _ in 0..halvings {
        out = out.matrix_product(&out);
    }
    Ok(out)
}

/// Square matrices far from singular.
pub(crate) fn regular(shape: impl AsRef<[usize]>) -> Tensor {
    shifted(&uniform(shape, -1.0, 1.0))
}

/// Symmetric positive definite matrices with distinct eigenvalues.
pub(crate) fn definite(shape: impl AsRef<[usize]>) -> Tensor {
    let x = uniform(shape, -1.0, 1.0);
    shifted(&((&x + x.transpose_last()) * 0.5))
}

/// With 2, 3, 4 … added on the diagonal.
fn shifted(x: &Tensor) -> Tensor {
    let n = x.dim(-1);
    let diagonal = Tensor::from_vec((0..n).map(|i| i as f32 + 2.0).collect(), [n]);
    x + diagonal_matrix(&diagonal)
}

pub(crate) fn squares() -> Vec<Sample> {
    vec![sample![regular([3, 3])], sample![regular([2, 2, 2])], sample![randn([0, 2, 2])]]
}

fn determinants() -> Vec<Sample> {
    vec![sample![regular([3, 3])], sample![regular([2, 2, 2])], sample![randn([2, 2])]]
}

fn systems() -> Vec<Sample> {
    vec![
        sample![regular([3, 3]), randn([3])],
        sample![regular([3, 3]), randn([3, 2])],
        sample![regular([2, 2, 2]), randn([2, 2])],
        sample![regular([2, 2]), randn([3, 2]); left = false],
        sample![regular([2, 2]), randn([2, 2, 3])],
    ]
}

fn matrix_systems() -> Vec<Sample> {
    vec![sample![regular([3, 3]), randn([3, 2])], sample![regular([2, 1, 2, 2]), randn([3, 2, 1])]]
}

fn triangular_systems() -> Vec<Sample> {
    vec![
        sample![regular([3, 3]), randn([3, 2])],
        sample![regular([3, 3]), randn([3, 2]); upper = false, transpose = true],
        sample![regular([2, 2, 2]), randn([2, 2, 1]); unitriangular = true],
        sample![regular([2, 2]), randn([2, 2, 1]); transpose = true],
    ]
}

fn factored_systems() -> Vec<Sample> {
    vec![
        sample![randn([3, 2]), regular([3, 3]).tril(0)],
        sample![randn([2, 2, 1]), regular([2, 2, 2]).triu(0); upper = true],
    ]
}

fn factors() -> Vec<Sample> {
    // Paddle's gradient does not stay in the triangle.
    let lower = "lambda x: torch.cholesky_inverse(x.tril())";
    let upper = "lambda x, upper: torch.cholesky_inverse(x.triu(), upper=True)";
    vec![sample![regular([3, 3]).tril(0)].peer(lower), sample![regular([3, 3]).triu(0); upper = true].peer(upper)]
}

fn powers() -> Vec<Sample> {
    vec![
        sample![regular([2, 2]), 3],
        sample![regular([2, 2, 2]), -2],
        sample![regular([3, 3]), 0],
        sample![regular([3, 3]), 1],
    ]
}

fn exponents() -> Vec<Sample> {
    vec![sample![uniform([2, 2], -0.5, 0.5)], sample![randn([2, 3, 3])]]
}
