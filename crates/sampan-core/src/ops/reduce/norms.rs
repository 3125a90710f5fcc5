//! Norms of vectors and matrices.

use crate::gpu;
use crate::ops::prelude::*;
use crate::ops::reduction::{Plan, SumOpts};
use sampan_cuda::reduce::Reduction;
use sampan_kernels::reduce;

/// `x` with one in place of zero: a divisor.
fn nonzero(x: &Tensor) -> Tensor {
    x + x.tie_mask(&Tensor::zeros_on([], x.dtype(), x.device()))
}

/// The `p`-norm of the elements over `axis` (all axes by default): `(Σ |x|^p)^(1/p)`, the largest for p = inf, the smallest
/// for -inf, how many are not zero for 0.
///
/// ```
/// # use sampan_core::Tensor;
/// let x = Tensor::new([3.0f32, -4.0]);
/// assert_eq!(x.vector_norm(2.0, ()).to_f64(), 5.0);
/// assert_eq!(x.vector_norm(f64::INFINITY, ()).to_f64(), 4.0);
/// ```
#[op(module = "linalg", samples = vector_samples, amp = "black_data", alias(ord = p))]
fn vector_norm(
    cx: &Cx,
    x: &Tensor,
    #[default(2.0)] p: f64,
    #[default(None)] axis: Axes,
    #[opt(false)] keepdim: bool,
    #[opt(None)] dtype: Option<DType>,
) -> Result<Tensor> {
    let dtype = dtype.unwrap_or(to_float(x.dtype()));
    if !dtype.is_float() {
        return Err(Error::dtype(format!("a norm is no {dtype}")).hint("leave dtype out, or pass a float"));
    }
    let plan = Plan::new(x, &axis, keepdim)?;
    if p.is_infinite() {
        plan.nonempty(x)?;
    }
    ensure!(!p.is_nan(), "p must be a number");
    let out = cx.out(&plan.out, dtype)?;
    let magnitudes = || {
        let x = x.try_cast(dtype)?;
        if p.is_infinite() { x.try_abs() } else { Ok(x) }
    };
    cx.run(
        || {
            let x = magnitudes()?;
            let (x, mut out) = (x.values(), out.values_mut());
            match p {
                f64::INFINITY => reduce::max(x.view(), &plan.mask, out.slice()),
                f64::NEG_INFINITY => reduce::min(x.view(), &plan.mask, out.slice()),
                p => reduce::power_norm(x.view(), &plan.mask, p, out.slice()),
            }
            Ok(())
        },
        |gpu| {
            let kind = match p {
                f64::INFINITY => Reduction::Max,
                f64::NEG_INFINITY => Reduction::Min,
                p => Reduction::Norm(p),
            };
            gpu::reduce(gpu, kind, &magnitudes()?, &plan.mask, &out)
        },
    )?;
    cx.grad_from_output(out, &[x], move |g| {
        let x = g.saved(0);
        let (norm, d) = (g.output(0).reshape_to(&plan.kept), g.grad().reshape_to(&plan.kept));
        let dx = match p {
            0.0 => Tensor::zeros_on(x.shape(), dtype, x.device()),
            1.0 => x.sign() * d,
            2.0 => x / nonzero(&norm) * d,
            p if p.is_infinite() => {
                let mask = x.abs().tie_mask(&norm);
                let ties = mask.sum_with(plan.axes(), SumOpts::new().keepdim(true));
                x.sign() * mask * (d / ties)
            }
            // The power of zero is infinite, and has the sign zero.
            p if p < 1.0 => x.sign() * (nonzero(&x.abs()) / nonzero(&norm)).pow(p - 1.0) * d,
            p => x.sign() * (x.abs() / nonzero(&norm)).pow(p - 1.0) * d,
        };
        Ok(dx.cast(x.dtype()))
    })
}

/// A norm of the matrices in two axes (the last by default): `fro` (the root of the sum of squares), `nuc` (the sum of
/// the singular values), 1 and -1 (the largest and smallest sum of a column's magnitudes), inf and -inf (of a row's), 2
/// and -2 (the largest and smallest singular value).
///
/// ```
/// # use sampan_core::Tensor;
/// let x = Tensor::new([[1.0f32, -2.0], [3.0, 4.0]]);
/// assert_eq!(x.matrix_norm(1).to_f64(), 6.0);
/// ```
#[op(module = "linalg", samples = matrix_samples, amp = "black_data")]
fn matrix_norm(
    x: &Tensor,
    #[default("fro")] p: &Value,
    #[opt([-2, -1])] axis: &[i64],
    #[opt(false)] keepdim: bool,
    #[opt(None)] dtype: Option<DType>,
) -> Result<Tensor> {
    ensure!(axis.len() == 2, "axis must name the two axes of a matrix, got {axis:?}");
    let (row, column) = (resolve_axis(axis[0], x.ndim())?, resolve_axis(axis[1], x.ndim())?);
    ensure!(row != column && x.ndim() >= 2, "axis {axis:?} must name two different axes");
    let x = x.try_cast(dtype.unwrap_or(to_float(x.dtype())))?;
    let both = [row as i64, column as i64];
    let singular = || x.try_moveaxis(both, [-2i64, -1])?.try_svdvals();
    let magnitudes = |along: usize| x.try_abs()?.try_sum_with(along, SumOpts::new().keepdim(true));
    let out = match matrix_kind(p)? {
        Kind::Frobenius => x.try_vector_norm(2.0, both)?,
        Kind::Nuclear => singular()?.try_sum(-1)?,
        Kind::Number(2.0) => singular()?.try_max(-1)?,
        Kind::Number(-2.0) => singular()?.try_min(-1)?,
        Kind::Number(1.0) => magnitudes(row)?.try_max(both)?,
        Kind::Number(-1.0) => magnitudes(row)?.try_min(both)?,
        Kind::Number(f64::INFINITY) => magnitudes(column)?.try_max(both)?,
        Kind::Number(f64::NEG_INFINITY) => magnitudes(column)?.try_min(both)?,
        Kind::Number(p) => bail!("a matrix has the norms fro, nuc, 1, -1, 2, -2, inf and -inf, not {p}"),
    };
    let mask: Vec<bool> = (0..x.ndim()).map(|i| i == row || i == column).collect();
    out.try_reshape_to(Cx::reduced_shape(x.shape(), &mask, keepdim))
}

/// Which norm `p` asks for.
enum Kind {
    Frobenius,
    Nuclear,
    Number(f64),
}

fn matrix_kind(p: &Value) -> Result<Kind> {
    Ok(match p {
        Value::None => Kind::Frobenius,
        Value::Str(s) if &**s == "fro" => Kind::Frobenius,
        Value::Str(s) if &**s == "nuc" => Kind::Nuclear,
        Value::Str(s) if &**s == "inf" => Kind::Number(f64::INFINITY),
        Value::Str(s) if &**s == "-inf" => Kind::Number(f64::NEG_INFINITY),
        Value::Int(p) => Kind::Number(*p as f64),
        Value::Float(p) => Kind::Number(*p),
        other => bail!("p must be fro, nuc or a number, got {other:?}"),
    })
}

/// The norm over `axis`: of vectors over none, one, or more than two axes, of matrices over two. `p` is a number, `fro`
/// (the default: the root of the sum of squares) or `nuc`.
///
/// ```
/// # use sampan_core::Tensor;
/// let x = Tensor::new([[3.0f32, 4.0], [0.0, 0.0]]);
/// assert_eq!(x.norm().to_f64(), 5.0);
/// ```
#[op(complex, also("linalg.norm"), samples = norm_samples, amp = "black", alias(A = x, ord = p))]
fn norm(
    x: &Tensor,
    #[opt(None)] p: &Value,
    #[opt(None)] axis: Axes,
    #[opt(false)] keepdim: bool,
    #[opt(None)] dtype: Option<DType>,
) -> Result<Tensor> {
    let kind = matrix_kind(p)?;
    let x = if x.is_complex() {
        // All but the singular values depend on the lengths alone.
        if matches!(kind, Kind::Nuclear) || (matches!(kind, Kind::Number(2.0 | -2.0)) && axis.0.is_some()) {
            return Err(Error::dtype(format!("singular values are known of real matrices only, got {}", x.dtype())));
        }
        &x.try_abs()?
    } else {
        x
    };
    let x = x.try_cast(dtype.unwrap_or(to_float(x.dtype())))?;
    let pair = match &axis.0 {
        Some(a) if a.len() == 2 => Some([a[0], a[1]]),
        None if x.ndim() == 2 => Some([0, 1]),
        _ => None,
    };
    let vector = |p: f64| x.try_vector_norm_with(p, &axis, VectorNormOpts::new().keepdim(keepdim));
    match (kind, pair) {
        (Kind::Frobenius, _) => vector(2.0),
        (Kind::Number(p), None) => vector(p),
        (Kind::Number(p), Some(_)) if axis.0.is_none() => vector(p),
        (Kind::Nuclear, None) => bail!("the nuclear norm is that of a matrix: axis must name two axes"),
        (_, Some(pair)) => x.try_matrix_norm_with(p.clone(), MatrixNormOpts::new().axis(pair).keepdim(keepdim)),
    }
}

/// The `p`-norm of `x - y`, which broadcast together.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([3.0f32, 4.0]).dist(&Tensor::new([0.0f32, 0.0]), 2.0).to_f64(), 5.0);
/// ```
#[op(samples = dist_samples, amp = "black")]
fn dist(x: &Tensor, y: &Tensor, #[default(2.0)] p: f64) -> Result<Tensor> {
    x.try_subtract(y)?.try_vector_norm(p, ())
}

/// The slices along `axis` scaled down to a `p`-norm of `max_norm` where theirs is larger.
///
/// ```
/// # use sampan_core::Tensor;
/// let x = Tensor::new([[3.0f32, 4.0], [0.5, 0.0]]);
/// assert_eq!(x.renorm(2.0, 0, 1.0).to_vec::<f32>(), [0.6, 0.8, 0.5, 0.0]);
/// ```
#[op(inplace, samples = renorm_samples, amp = "black")]
fn renorm(x: &Tensor, p: f64, axis: i64, max_norm: f64) -> Result<Tensor> {
    ensure!(x.ndim() >= 2, "x must have at least two axes, got {:?}", x.shape());
    ensure!(p > 0.0, "p must be positive, got {p}");
    ensure!(max_norm > 0.0, "max_norm must be positive, got {max_norm}");
    let axis = resolve_axis(axis, x.ndim())?;
    let others: Vec<i64> = (0..x.ndim()).filter(|&i| i != axis).map(|i| i as i64).collect();
    let norms = x.try_vector_norm_with(p, others, VectorNormOpts::new().keepdim(true))?;
    let limit = Tensor::zeros_on([], norms.dtype(), x.device()) + 1.0;
    Ok(x / (norms / max_norm).maximum(limit))
}

fn vector_samples() -> Vec<Sample> {
    vec![
        sample![randn([2, 3])],
        sample![randn([2, 3, 2]), 3.0, [0, -1]; keepdim = true],
        sample![randn([2, 3]), 1.0, 1],
        sample![randn([2, 3]), f64::INFINITY, 1],
        sample![randn([2, 3]), f64::NEG_INFINITY, 0],
        sample![randn([2, 3]), 0.0, 0],
        sample![positive([2, 3]), -1.5, 0],
        sample![randn([])],
    ]
}
fn matrix_samples() -> Vec<Sample> {
    vec![
        sample![randn([2, 3])],
        sample![distinct([2, 3]), 1],
        sample![distinct([2, 3, 2]), -1; axis = [0, 2]],
        sample![distinct([2, 3]), f64::INFINITY; keepdim = true],
        sample![distinct([2, 3]), f64::NEG_INFINITY],
        sample![distinct([3, 2]), 2],
        sample![distinct([2, 3, 2]), -2; axis = [2, 0]],
        sample![distinct([2, 3]), "nuc"; keepdim = true],
    ]
}
fn norm_samples() -> Vec<Sample> {
    vec![
        sample![randn([2, 3])],
        sample![randn([2, 3]), 3],
        sample![randn([2, 3]), 2.0, 1; keepdim = true],
        sample![distinct([2, 3]), 1, [0, 1]],
        sample![randn([2, 3, 2]), "fro", [0, 2]],
        sample![randn([2, 3, 2]), 3.0, [0, 1, 2]],
        sample![randn([2, 3]), f64::INFINITY],
        sample![randn([])],
        sample![complexes([2, 3])],
        sample![complexes([2, 3]), 1, 1],
    ]
}
fn dist_samples() -> Vec<Sample> {
    vec![
        sample![randn([2, 3]), distinct([2, 3])],
        sample![randn([2, 3]), distinct([3]), 1.0],
        sample![randn([4]), distinct([4]), f64::INFINITY],
        sample![randn([4]), distinct([4]), 0.0],
    ]
}
fn renorm_samples() -> Vec<Sample> {
    vec![
        sample![randn([3, 4]), 2.0, 0, 1.5],
        sample![randn([2, 3, 2]), 1.0, -1, 3.0],
        sample![randn([2, 3]), 3.0, 1, 50.0],
    ]
}
