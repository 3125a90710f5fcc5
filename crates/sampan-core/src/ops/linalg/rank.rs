//! What comes from singular values: pseudo-inverses, least squares, ranks, condition numbers, low-rank factors.

use crate::ops::linalg::{check_matrix, check_square, definite, regular};
use crate::ops::prelude::*;
use crate::ops::reduction::{MaxOpts, SumOpts};
use crate::value::Arg;

/// The reciprocals of the values above `cutoff` times the largest magnitude, zero for the others.
fn reciprocals(s: &Tensor, cutoff: &Operand) -> Tensor {
    let magnitude = s.abs();
    let largest = magnitude.max_with(-1, MaxOpts::new().keepdim(true));
    let cutoff = match cutoff {
        Operand::Tensor(t) => largest * t.unsqueeze(-1),
        Operand::Scalar(c) => largest * *c,
    };
    magnitude.greater_than(&cutoff).where_cond(s.reciprocal(), 0.0)
}

/// The Moore–Penrose inverses of matrices. Singular values up to `rcond` times the largest count as zero; `hermitian`
/// says that the matrices are symmetric, and reads their lower triangle.
///
/// ```
/// # use sampan_core::Tensor;
/// let out = Tensor::new([[2.0f32, 0.0], [0.0, 0.0]]).pinv();
/// assert_eq!(out.to_vec::<f32>(), [0.5, 0.0, 0.0, 0.0]);
/// ```
#[op(module = "linalg", samples = pinv_samples, amp = "black")]
fn pinv(cx: &Cx, x: &Tensor, #[opt(1e-15)] rcond: Operand, #[opt(false)] hermitian: bool) -> Result<Tensor> {
    let (m, n) = check_matrix(x, "x")?;
    let counted = rcond.tensor().is_some();
    let out = if x.numel() == 0 {
        cx.out(x.transpose_last().shape(), x.dtype())?
    } else if hermitian {
        check_square(x, "x")?;
        let (w, v) = x.try_eigh()?;
        (&v * reciprocals(&w, &rcond).unsqueeze(-2)).matrix_product(&v.transpose_last())
    } else {
        let (u, s, vh) = x.try_svd()?;
        (vh.transpose_last() * reciprocals(&s, &rcond).unsqueeze(-2)).matrix_product(&u.transpose_last())
    };
    cx.grad_from_output(out, &[x], move |g| {
        let dx = if m <= n {
            wide_pinv_gradient(g.saved(0), g.output(0), &g.grad())
        } else {
            let turned = |t: &Tensor| t.transpose_last();
            turned(&wide_pinv_gradient(&turned(g.saved(0)), &turned(g.output(0)), &turned(&g.grad())))
        };
        let mut grads = vec![Some(dx)];
        grads.resize(1 + counted as usize, None);
        Ok(grads)
    })
}

/// The gradient through `p = pinv(x)` where `x` has no more rows than columns: rank and hence formula stay constant.
fn wide_pinv_gradient(x: &Tensor, p: &Tensor, g: &Tensor) -> Tensor {
    let (pt, gt) = (p.transpose_last(), g.transpose_last());
    let k = gt.matrix_product(p);
    let kp = k.matrix_product(&pt);
    let inside = p.matrix_product(&k).transpose_last();
    kp.clone() - inside - x.matrix_product(p).matrix_product(&kp)
        + pt.matrix_product(p).matrix_product(&(gt - k.matrix_product(x)))
}

/// The shortest `X` that minimises `|x X - y|`, with the squared residuals, the rank of `x` and its singular values.
/// `driver` is LAPACK's: `gelsy` (the default) gives no residuals, `gels` no rank, and only `gelsd` and `gelss` give singular
/// values; what is not given is empty.
///
/// ```
/// # use sampan_core::Tensor;
/// let (x, y) = (Tensor::new([[1.0f32], [1.0]]), Tensor::new([[1.0f32], [3.0]]));
/// assert!((x.lstsq(&y).0.to_f64() - 2.0).abs() < 1e-6);
/// ```
#[op(module = "linalg", samples = lstsq_samples, amp = "black", results("solution", "residuals", "rank", "singular_values"))]
fn lstsq(
    x: &Tensor,
    y: &Tensor,
    #[opt(None)] rcond: Option<f64>,
    #[opt(None)] driver: Option<&str>,
) -> Result<(Tensor, Tensor, Tensor, Tensor)> {
    let (m, n) = check_matrix(x, "x")?;
    let (rows, _) = check_matrix(y, "y")?;
    ensure!(m == rows, "x has {m} rows, y has {rows}");
    ensure!(x.dtype() == y.dtype(), "x is {}, y is {}", x.dtype(), y.dtype());
    let driver = driver.unwrap_or("gelsy");
    ensure!(
        matches!(driver, "gels" | "gelsy" | "gelsd" | "gelss"),
        "driver must be \"gels\", \"gelsy\", \"gelsd\" or \"gelss\", got {driver:?}"
    );
    let rcond = rcond.unwrap_or(epsilon(x.dtype()) * m.max(n) as f64);
    let solution = x.try_pinv_with(PinvOpts::new().rcond(rcond))?.try_matrix_product(y)?;
    let none = |dtype| Tensor::zeros([0], dtype);
    let residuals = if m > n && driver != "gelsy" {
        let error = x.matrix_product(&solution) - y;
        (&error * &error).sum(-2)
    } else {
        none(x.dtype())
    };
    let s = x.try_svdvals()?;
    let rank = if driver == "gels" { none(DType::Int64) } else { count_above(&s, rcond).cast(DType::Int32) };
    let values = if matches!(driver, "gelsd" | "gelss") { s } else { none(x.dtype()) };
    Ok((solution, residuals, rank, values))
}

fn epsilon(dtype: DType) -> f64 {
    if dtype == DType::Float64 { f64::EPSILON } else { f32::EPSILON as f64 }
}

/// How many of the values are above `share` of the largest.
fn count_above(s: &Tensor, share: f64) -> Tensor {
    let cutoff = s.max_with(-1, MaxOpts::new().keepdim(true)) * share;
    s.greater_than(&cutoff).sum(-1)
}

/// The ranks of matrices: how many singular values exceed `tol`, or the larger of `atol` and `rtol` times the largest one.
/// `hermitian` says that the matrices are symmetric.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([[1.0f32, 2.0], [2.0, 4.0]]).matrix_rank().to_vec::<i64>(), [1]);
/// ```
#[op(non_diff, module = "linalg", samples = rank_samples, amp = "black")]
fn matrix_rank(
    x: &Tensor,
    #[opt(None)] tol: &Value,
    #[opt(false)] hermitian: bool,
    #[opt(None)] atol: &Value,
    #[opt(None)] rtol: &Value,
) -> Result<Tensor> {
    let (m, n) = check_matrix(x, "x")?;
    let read = |v, name| <Option<Operand> as Arg>::get(v, name);
    let (tol, atol, rtol) = (read(tol, "tol")?, read(atol, "atol")?, read(rtol, "rtol")?);
    ensure!(tol.is_none() || (atol.is_none() && rtol.is_none()), "tol cannot be combined with atol and rtol");
    let s = if hermitian { x.try_eigvalsh()?.abs() } else { x.try_svdvals()? };
    if s.dim(-1) == 0 {
        return Ok(s.sum_with(-1, SumOpts::new().dtype(DType::Int64)));
    }
    let column = |v: &Operand| match v {
        Operand::Tensor(t) => Operand::Tensor(t.unsqueeze(-1)),
        number => number.clone(),
    };
    if let Some(tol) = &tol {
        return Ok(s.greater_than(column(tol)).sum(-1));
    }
    let largest = s.max_with(-1, MaxOpts::new().keepdim(true));
    let cutoff = match (&atol, &rtol) {
        (None, None) => largest * (epsilon(x.dtype()) * m.max(n) as f64),
        (Some(a), None) => largest * 0.0 + column(a),
        (a, Some(r)) => (largest * column(r)).maximum(column(a.as_ref().unwrap_or(&Operand::from(0.0)))),
    };
    Ok(s.greater_than(&cutoff).sum(-1))
}

/// The condition numbers of matrices under the norm `p`: 2 (the default) and -2 from the singular values; `fro`, `nuc`, 1, -1,
/// inf and -inf for invertible square matrices.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([[4.0f32, 0.0], [0.0, 2.0]]).cond(2).to_f64(), 2.0);
/// ```
#[op(module = "linalg", samples = cond_samples, amp = "black")]
fn cond(x: &Tensor, #[default(None)] p: &Value) -> Result<Tensor> {
    check_matrix(x, "x")?;
    let p = match p {
        Value::None => 2.0,
        Value::Int(i) => *i as f64,
        Value::Float(f) => *f,
        Value::Str(word) => {
            let norm: fn(&Tensor) -> Tensor = match &**word {
                "fro" => |t| (t * t).sum([-2, -1]).sqrt(),
                "nuc" => |t| t.svdvals().sum(-1),
                other => bail!("p must be None, \"fro\", \"nuc\", 1, -1, 2, -2, inf or -inf, got {other:?}"),
            };
            check_square(x, "x")?;
            return Ok(norm(x) * norm(&x.try_inverse()?));
        }
        other => return Err(Error::dtype(format!("p must be None, a number or a str, got {}", other.type_name()))),
    };
    if p.abs() == 2.0 {
        let s = x.try_svdvals()?;
        ensure!(s.dim(-1) > 0, "an empty matrix has no condition number");
        let (high, low) = (s.try_select(-1, 0)?, s.try_select(-1, s.dim(-1) - 1)?);
        return Ok(if p > 0.0 { high / low } else { low / high });
    }
    ensure!(p.abs() == 1.0 || p.is_infinite(), "p must be None, \"fro\", \"nuc\", 1, -1, 2, -2, inf or -inf, got {p}");
    check_square(x, "x")?;
    let summed = if p.is_infinite() { -1 } else { -2 };
    let norm = |t: &Tensor| {
        let sums = t.abs().sum(summed);
        if p > 0.0 { sums.max(-1) } else { sums.min(-1) }
    };
    Ok(norm(x) * norm(&x.try_inverse()?))
}

/// The leading `q` singular triplets `(U, S, V)` of `x - M`, by random projection with `niter` steps of subspace iteration.
///
/// ```
/// # use sampan_core::Tensor;
/// let (_, s, _) = Tensor::new([[3.0f32, 0.0], [0.0, 4.0]]).svd_lowrank();
/// assert!((s.to_vec::<f32>()[0] - 4.0).abs() < 1e-5);
/// ```
#[op(
    random,
    module = "linalg",
    samples = lowrank_samples,
    peer = "lambda x, q=None, niter=2, M=None: (t := torch.linalg.svd(x if M is None else x - M, False), \
            (t[0][..., :q], t[1][..., :q], t[2].mT[..., :q]))[-1]",
    amp = "black",
    alias(M = m),
    results("u", "s", "v")
)]
fn svd_lowrank(
    x: &Tensor,
    #[opt(None)] q: Option<i64>,
    #[opt(2)] niter: i64,
    #[opt(None)] m: Option<&Tensor>,
) -> Result<(Tensor, Tensor, Tensor)> {
    let q = check_lowrank(x, q, niter)?;
    let x = m.map_or(Ok(x.clone()), |m| x.try_subtract(m))?;
    let turned = x.dim(-2) < x.dim(-1);
    let a = if turned { x.transpose_last() } else { x };
    // An orthonormal basis of nearly the range of aᵀ, then the exact factors of what is left of a.
    let thin = |t: &Tensor| t.qr("reduced").0.swap_remove(0);
    let seed = crate::ops::random::randn_with([a.dim(-2), q], crate::ops::random::RandnOpts::new().dtype(a.dtype()));
    let at = a.transpose_last();
    let mut basis = thin(&at.matrix_product(&seed));
    for _ in 0..niter {
        basis = thin(&at.matrix_product(&thin(&a.matrix_product(&basis))));
    }
    let (u, s, vh) = a.matrix_product(&basis).svd();
    let v = basis.matrix_product(&vh.transpose_last());
    Ok(if turned { (v, s, u) } else { (u, s, v) })
}

fn check_lowrank(x: &Tensor, q: Option<i64>, niter: i64) -> Result<usize> {
    let (m, n) = check_matrix(x, "x")?;
    let most = m.min(n) as i64;
    let q = q.unwrap_or(most.min(6));
    ensure!((0..=most).contains(&q), "q must lie between 0 and {most}, the smaller extent of x; got {q}");
    ensure!((0..=10_000).contains(&niter), "niter must lie in [0, 10000], got {niter}");
    Ok(q as usize)
}

/// The leading `q` principal components of the rows of `x`: `svd_lowrank` of `x`, its columns centred first if `center`.
///
/// ```
/// # use sampan_core::Tensor;
/// let (_, s, _) = Tensor::new([[1.0f32, 5.0], [3.0, 5.0]]).pca_lowrank();
/// assert!((s.to_vec::<f32>()[0] - 2f32.sqrt()).abs() < 1e-5);
/// ```
#[op(
    random,
    module = "linalg",
    samples = pca_samples,
    peer = "lambda x, q=None, center=True, niter=2: (t := torch.linalg.svd(x - x.mean(-2, True) * center, False), \
            (t[0][..., :q], t[1][..., :q], t[2].mT[..., :q]))[-1]",
    amp = "black",
    results("u", "s", "v")
)]
fn pca_lowrank(
    x: &Tensor,
    #[opt(None)] q: Option<i64>,
    #[opt(true)] center: bool,
    #[opt(2)] niter: i64,
) -> Result<(Tensor, Tensor, Tensor)> {
    let q = check_lowrank(x, q, niter)? as i64;
    let rows = x.dim(-2).max(1) as f64;
    let x = if center { x - x.sum_with(-2, SumOpts::new().keepdim(true)) / rows } else { x.clone() };
    x.try_svd_lowrank_with(SvdLowrankOpts::new().q(q).niter(niter))
}

fn pinv_samples() -> Vec<Sample> {
    vec![
        sample![randn([3, 2])],
        sample![randn([2, 2, 3])],
        sample![regular([3, 3]); rcond = 0.01],
        sample![definite([3, 3]); hermitian = true]
            .symmetric()
            .peer("lambda x, hermitian: torch.linalg.pinv(x, hermitian=True)"),
    ]
}

fn lstsq_samples() -> Vec<Sample> {
    let grads = "lambda x, y, driver='gelsy': ( \
        s := torch.linalg.pinv(x) @ y, \
        residuals := [(x @ s - y).square().sum(-2)] if len(x) > 2 and driver != 'gelsy' else [], \
        [s, *residuals, *([torch.linalg.svdvals(x)] if driver == 'gelsd' else [])])[-1]";
    vec![
        sample![randn([3, 2]), randn([3, 1])].grad_peer(grads),
        sample![randn([3, 2]), randn([3, 2]); driver = "gelsd"].grad_peer(grads),
        // Paddle's residuals lose an axis of 1.
        sample![randn([4, 2]), randn([4, 1]); driver = "gels"].peer("torch.linalg.lstsq").grad_peer(grads),
        sample![randn([2, 3]), randn([2, 1])].grad_peer(grads),
        sample![regular([2, 2, 2]), randn([2, 2, 1])].grad_peer(grads),
    ]
}

fn rank_samples() -> Vec<Sample> {
    vec![
        sample![randn([3, 2])],
        sample![values::<f32>([1.0, 2.0, 2.0, 4.0], [2, 2])],
        sample![definite([2, 3, 3]); hermitian = true],
        sample![regular([3, 3]); tol = 2.5],
        sample![regular([3, 3]); atol = 2.0, rtol = 0.1],
    ]
}

fn cond_samples() -> Vec<Sample> {
    vec![
        sample![randn([3, 2])],
        sample![regular([2, 2, 2]), -2],
        sample![regular([3, 3]), "fro"],
        sample![regular([3, 3]), "nuc"],
        sample![regular([3, 3]), 1],
        sample![regular([3, 3]), f64::NEG_INFINITY],
    ]
}

fn lowrank_samples() -> Vec<Sample> {
    vec![
        sample![randn([4, 3])].up_to_sign(),
        sample![randn([2, 3]); q = 1, niter = 60]
            .up_to_sign()
            .no_grad("the rest of the spectrum blurs the differences"),
        sample![regular([3, 3]); M = randn([3])].up_to_sign(),
    ]
}

fn pca_samples() -> Vec<Sample> {
    vec![
        sample![randn([4, 2])].up_to_sign(),
        sample![randn([3, 2]); q = 1, center = false, niter = 60]
            .up_to_sign()
            .no_grad("the rest of the spectrum blurs the differences"),
    ]
}
