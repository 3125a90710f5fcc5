//! Cholesky, LU, QR, singular values and eigenvalues. Batched; float32 and float64.

use crate::ops::linalg::{
    batch_of, check_matrix, check_square, definite, diagonal_matrix, failed, identity, mask, regular, stack,
};
use crate::ops::prelude::*;
use sampan_kernels::{AnySliceMut, linalg as kernel};

/// The triangular `L` of `x = L Lᵀ` for symmetric positive definite matrices, or `U` of `x = Uᵀ U` with `upper=True`.
/// Only the triangle of that name is read.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([[4.0f32, 2.0], [2.0, 5.0]]).cholesky().to_vec::<f32>(), [2.0, 0.0, 1.0, 2.0]);
/// ```
#[op(module = "linalg", also("cholesky"), samples = definites, amp = "black")]
fn cholesky(cx: &Cx, x: &Tensor, #[opt(false)] upper: bool) -> Result<Tensor> {
    let n = check_square(x, "x")?;
    let out = cx.out(x.shape(), x.dtype())?;
    cx.cpu(|| {
        let x = x.contiguous();
        kernel::cholesky(x.values().slice(), n, upper, out.values_mut().slice()).map_err(failed)
    })?;
    cx.grad_from_output(out, &[], move |g| {
        let turn = |t: &Tensor| if upper { t.transpose_last() } else { t.clone() };
        let (l, dl) = (turn(g.output(0)), turn(&g.grad()));
        let half = identity(n, l.dtype()) * 0.5;
        let product = l.transpose_last().matrix_product(&dl);
        let phi = product.tril(-1) + &product * half;
        let left = l.solve_triangle(&phi, false, true, false);
        let s = l.solve_triangle(&left.transpose_last(), false, true, false);
        Ok((&s + s.transpose_last()) * 0.5)
    })
}

/// The orthonormal `Q` and the upper triangular `R` of `x = Q R`: thin (`"reduced"`), with a square `Q` (`"complete"`), or
/// `R` alone (`"r"`). Only a thin `Q` has a gradient.
///
/// ```
/// # use sampan_core::Tensor;
/// let x = Tensor::new([[3.0f32, 1.0], [4.0, 2.0]]);
/// let out = x.qr("reduced").0;
/// assert!((out[0].matmul(&out[1]) - x).to_vec::<f32>().iter().all(|e| e.abs() < 1e-5));
/// ```
#[op(module = "linalg", samples = qr_samples, amp = "black", results("q", "r"))]
fn qr(cx: &Cx, x: &Tensor, #[default("reduced")] mode: &str) -> Result<Varying> {
    let (m, n) = check_matrix(x, "x")?;
    let (complete, only_r) = match mode {
        "reduced" => (false, false),
        "complete" => (true, false),
        "r" => (false, true),
        other => bail!("mode must be \"reduced\", \"complete\" or \"r\", got {other:?}"),
    };
    let k = if complete { m } else { m.min(n) };
    let q = cx.out(stack(batch_of(x), &[m, if only_r { 0 } else { k }]), x.dtype())?;
    let r = cx.out(stack(batch_of(x), &[k, n]), x.dtype())?;
    cx.cpu(|| {
        let x = x.contiguous();
        let (mut q, mut r) = (q.values_mut(), r.values_mut());
        kernel::qr(x.values().slice(), m, n, complete, q.slice(), r.slice()).map_err(failed)
    })?;
    if only_r {
        return cx.grad(Varying(vec![r]), &[x], move |g| {
            let qr = g.saved(0).try_qr("reduced")?.0;
            let none = &qr[0] * 0.0;
            qr_gradient(&qr[0], &qr[1], &none, &g.grad(), g.saved(0))
        });
    }
    cx.grad_from_output(Varying(vec![q, r]), &[x], move |g| {
        ensure!(!(complete && m > n), "mode \"complete\" has no gradient for matrices with more rows than columns");
        qr_gradient(g.output(0), g.output(1), &g.grad_of(0), &g.grad_of(1), g.saved(0))
    })
}

fn qr_gradient(q: &Tensor, r: &Tensor, dq: &Tensor, dr: &Tensor, x: &Tensor) -> Result<Tensor> {
    let (m, n) = (x.dim(-2), x.dim(-1));
    if m >= n {
        return Ok(tall_qr_gradient(q, r, dq, dr));
    }
    // The first m columns are a square problem; the others are Q times theirs.
    let rest = |t: &Tensor| t.try_narrow(-1, m, n - m);
    let (dr1, dr2, y) = (dr.block(m, m), rest(dr)?, rest(x)?);
    let dq = dq + y.matrix_product(&dr2.transpose_last());
    Ok(join(&tall_qr_gradient(q, &r.block(m, m), &dq, &dr1), &q.matrix_product(&dr2), -1))
}

fn tall_qr_gradient(q: &Tensor, r: &Tensor, dq: &Tensor, dr: &Tensor) -> Tensor {
    let inner = r.matrix_product(&dr.transpose_last()) - dq.transpose_last().matrix_product(q);
    let symmetric = inner.tril(0) + inner.tril(-1).transpose_last();
    let right = dq + q.matrix_product(&symmetric);
    // right · R⁻ᵀ
    r.solve_triangle(&right.transpose_last(), true, false, false).transpose_last()
}

/// The factors of `x = U diag(S) VH`: orthonormal columns, singular values in descending order, orthonormal rows. The
/// gradients of `U` and `VH` need distinct singular values and, with `full_matrices`, square matrices.
///
/// ```
/// # use sampan_core::Tensor;
/// let (_, s, _) = Tensor::new([[0.0f32, 2.0], [3.0, 0.0]]).svd();
/// assert_eq!(s.to_vec::<f32>(), [3.0, 2.0]);
/// ```
#[op(module = "linalg", samples = svd_samples, peer = "torch.linalg.svd", amp = "black", results("u", "s", "vh"))]
fn svd(cx: &Cx, x: &Tensor, #[opt(false)] full_matrices: bool) -> Result<(Tensor, Tensor, Tensor)> {
    let (m, n) = check_matrix(x, "x")?;
    let k = m.min(n);
    let (ku, kv) = if full_matrices { (m, n) } else { (k, k) };
    let batch = batch_of(x);
    let u = cx.out(stack(batch, &[m, ku]), x.dtype())?;
    let s = cx.out(stack(batch, &[k]), x.dtype())?;
    let vh = cx.out(stack(batch, &[kv, n]), x.dtype())?;
    cx.cpu(|| {
        let x = x.contiguous();
        let (mut u, mut s, mut vh) = (u.values_mut(), s.values_mut(), vh.values_mut());
        kernel::svd(x.values().slice(), m, n, full_matrices, u.slice(), s.slice(), vh.slice()).map_err(failed)
    })?;
    cx.grad_from_output((u, s, vh), &[], move |g| {
        let vectors = g.has_grad(0) || g.has_grad(2);
        ensure!(
            !(full_matrices && m != n && vectors),
            "full_matrices=True has no gradient of U and VH for matrices that are not square"
        );
        let (u, s, vh) = (g.output(0).block(m, k), g.output(1), g.output(2).block(k, n));
        let mut inner = diagonal_matrix(&g.grad_of(1));
        if !vectors {
            return Ok(u.matrix_product(&inner).matrix_product(&vh));
        }
        let (du, dvh) = (g.grad_of(0), g.grad_of(2));
        let skew = |t: Tensor| &t - t.transpose_last();
        let gaps = inverse_gaps(&(s * s));
        let (row, column) = (s.unsqueeze(-2), s.unsqueeze(-1));
        inner = &inner + skew(u.transpose_last().matrix_product(&du)) * &gaps * row;
        inner = &inner + skew(vh.matrix_product(&dvh.transpose_last())) * &gaps * &column;
        let mut dx = u.matrix_product(&inner).matrix_product(&vh);
        if m > k {
            let scaled = du / s.unsqueeze(-2);
            let outside = &scaled - u.matrix_product(&u.transpose_last().matrix_product(&scaled));
            dx = &dx + outside.matrix_product(&vh);
        }
        if n > k {
            let scaled = dvh / &column;
            let outside = &scaled - scaled.matrix_product(&vh.transpose_last()).matrix_product(&vh);
            dx = &dx + u.matrix_product(&outside);
        }
        Ok(dx)
    })
}

/// `1 / (d[j] - d[i])` off the diagonal, 0 on it.
fn inverse_gaps(d: &Tensor) -> Tensor {
    let n = d.dim(-1);
    let gaps = d.unsqueeze(-2) - d.unsqueeze(-1);
    (gaps + identity(n, d.dtype())).reciprocal() * mask(n, n, d.dtype(), |i, j| i != j)
}

/// The singular values, in descending order.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([[0.0f32, 2.0], [3.0, 0.0]]).svdvals().to_vec::<f32>(), [3.0, 2.0]);
/// ```
#[op(module = "linalg", samples = rectangles, amp = "black")]
fn svdvals(cx: &Cx, x: &Tensor) -> Result<Tensor> {
    let (m, n) = check_matrix(x, "x")?;
    let s = cx.out(stack(batch_of(x), &[m.min(n)]), x.dtype())?;
    cx.cpu(|| {
        let x = x.contiguous();
        let none = || AnySliceMut::new(x.dtype(), &mut []);
        kernel::svd(x.values().slice(), m, n, false, none(), s.values_mut().slice(), none()).map_err(failed)
    })?;
    cx.grad(s, &[x], |g| {
        let (u, _, vh) = g.saved(0).try_svd()?;
        Ok((u * g.grad().unsqueeze(-2)).matrix_product(&vh))
    })
}

/// Does `UPLO` name the upper triangle?
fn is_upper(uplo: &str) -> Result<bool> {
    match uplo {
        "L" => Ok(false),
        "U" => Ok(true),
        other => bail!("UPLO must be \"L\" or \"U\", got {other:?}"),
    }
}

/// The eigenvalues of symmetric matrices, ascending, and their eigenvectors as columns. One triangle is read. The
/// gradient of the vectors needs distinct eigenvalues.
///
/// ```
/// # use sampan_core::Tensor;
/// let (w, _) = Tensor::new([[2.0f32, 0.0], [0.0, 1.0]]).eigh();
/// assert_eq!(w.to_vec::<f32>(), [1.0, 2.0]);
/// ```
#[op(module = "linalg", samples = eigh_samples, peer = "torch.linalg.eigh", amp = "black", alias(UPLO = uplo), results("values", "vectors"))]
fn eigh(cx: &Cx, x: &Tensor, #[opt("L")] uplo: &str) -> Result<(Tensor, Tensor)> {
    let n = check_square(x, "x")?;
    let upper = is_upper(uplo)?;
    let w = cx.out(stack(batch_of(x), &[n]), x.dtype())?;
    let v = cx.out(x.shape(), x.dtype())?;
    cx.cpu(|| {
        let x = x.contiguous();
        let (mut w, mut v) = (w.values_mut(), v.values_mut());
        kernel::eigh(x.values().slice(), n, upper, w.slice(), v.slice()).map_err(failed)
    })?;
    cx.grad_from_output((w, v), &[], |g| {
        let (w, v) = (g.output(0), g.output(1));
        let mut inner = diagonal_matrix(&g.grad_of(0));
        if g.has_grad(1) {
            // Half of it belongs to each triangle: the gradient of a symmetric matrix is symmetric.
            let turned = v.transpose_last().matrix_product(&g.grad_of(1)) * inverse_gaps(w) * 0.5;
            inner = inner + &turned + turned.transpose_last();
        }
        Ok(v.matrix_product(&inner).matrix_product(&v.transpose_last()))
    })
}

/// The eigenvalues of symmetric matrices, ascending. One triangle is read.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([[2.0f32, 0.0], [0.0, 1.0]]).eigvalsh().to_vec::<f32>(), [1.0, 2.0]);
/// ```
#[op(module = "linalg", also("eigvalsh"), samples = eigh_samples, amp = "black", alias(UPLO = uplo))]
fn eigvalsh(cx: &Cx, x: &Tensor, #[opt("L")] uplo: &str) -> Result<Tensor> {
    let n = check_square(x, "x")?;
    let upper = is_upper(uplo)?;
    let w = cx.out(stack(batch_of(x), &[n]), x.dtype())?;
    cx.cpu(|| {
        let x = x.contiguous();
        let none = AnySliceMut::new(x.dtype(), &mut []);
        kernel::eigh(x.values().slice(), n, upper, w.values_mut().slice(), none).map_err(failed)
    })?;
    cx.grad(w, &[x], move |g| {
        let (_, v) = g.saved(0).try_eigh_with(EighOpts::new().uplo(if upper { "U" } else { "L" }))?;
        Ok((&v * g.grad().unsqueeze(-2)).matrix_product(&v.transpose_last()))
    })
}

/// The eigenvalues of square matrices and their unit eigenvectors as columns, where all are real; complex ones are an
/// error.
///
/// ```
/// # use sampan_core::Tensor;
/// let (w, _) = Tensor::new([[2.0f32, 1.0], [0.0, 1.0]]).eig();
/// assert_eq!(w.to_vec::<f32>(), [2.0, 1.0]);
/// ```
#[op(module = "linalg", samples = eig_samples, peer = "lambda x: [t.real for t in torch.linalg.eig(x)]", amp = "black", results("values", "vectors"))]
fn eig(cx: &Cx, x: &Tensor) -> Result<(Tensor, Tensor)> {
    let n = check_square(x, "x")?;
    let w = cx.out(stack(batch_of(x), &[n]), x.dtype())?;
    let v = cx.out(x.shape(), x.dtype())?;
    cx.cpu(|| {
        let x = x.contiguous();
        let all_real = kernel::eig(x.values().slice(), n, w.values_mut().slice(), v.values_mut().slice());
        if all_real.map_err(failed)? { Ok(()) } else { Err(some_complex()) }
    })?;
    cx.grad_from_output((w, v), &[], |g| {
        let (w, v) = (g.output(0), g.output(1));
        let mut inner = diagonal_matrix(&g.grad_of(0));
        if g.has_grad(1) {
            let product = v.transpose_last().matrix_product(&g.grad_of(1));
            let n = w.dim(-1);
            // The vectors keep their length: the part of the gradient along each is nothing.
            let along = (&product * identity(n, w.dtype())).sum(-2).unsqueeze(-2);
            let across = product - v.transpose_last().matrix_product(v) * along;
            inner = &inner + across * inverse_gaps(w);
        }
        Ok(v.transpose_last().solve_matrices(&inner.matrix_product(&v.transpose_last())))
    })
}

fn some_complex() -> Error {
    Error::new(crate::error::Kind::Unimplemented, "some eigenvalues are complex, and this op gives real ones only")
        .hint("use eigh or eigvalsh for symmetric matrices, svd for singular values")
}

/// The eigenvalues of square matrices, where all are real; complex ones are an error.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([[2.0f32, 1.0], [0.0, 1.0]]).eigvals().to_vec::<f32>(), [2.0, 1.0]);
/// ```
#[op(module = "linalg", samples = eig_samples, peer = "lambda x: torch.linalg.eigvals(x).real", amp = "black")]
fn eigvals(x: &Tensor) -> Result<Tensor> {
    Ok(x.try_eig()?.0)
}

/// The first `n` columns of the product of Householder reflections `I - tau[i] v vᵀ`, whose vectors stand below the
/// diagonal of `x` (`m × n`), as LAPACK's `geqrf` leaves them.
///
/// ```
/// # use sampan_core::Tensor;
/// let q = Tensor::new([[0.0f32], [1.0]]).householder_product(&Tensor::new([1.0f32]));
/// assert_eq!(q.to_vec::<f32>(), [0.0, -1.0]);
/// ```
#[op(module = "linalg", samples = reflections, amp = "black")]
fn householder_product(x: &Tensor, tau: &Tensor) -> Result<Tensor> {
    let (m, n) = check_matrix(x, "x")?;
    let k = check_reflections(x, tau)?;
    let mut q = mask(m, n, x.dtype(), |i, j| i == j).expand(x.shape());
    for i in (0..k).rev() {
        q = reflect(x, tau, i, &q)?;
    }
    Ok(q)
}

fn check_reflections(x: &Tensor, tau: &Tensor) -> Result<usize> {
    let (m, n) = check_matrix(x, "x")?;
    ensure!(m >= n, "x must have at least as many rows as columns, its matrices are {m}×{n}");
    ensure!(
        tau.ndim() + 1 == x.ndim() && batch_of(x) == &tau.shape()[..tau.ndim() - 1],
        "tau must be [.., k] for x [.., m, n]"
    );
    ensure!(tau.dim(-1) <= n, "tau has {} scales for {n} columns", tau.dim(-1));
    ensure!(tau.dtype() == x.dtype(), "x is {}, tau is {}", x.dtype(), tau.dtype());
    Ok(tau.dim(-1))
}

/// Reflection number `i` applied from the left.
fn reflect(x: &Tensor, tau: &Tensor, i: usize, y: &Tensor) -> Result<Tensor> {
    let m = x.dim(-2);
    let below = mask(m, 1, x.dtype(), |r, _| r > i as i64);
    let one = mask(m, 1, x.dtype(), |r, _| r == i as i64);
    let v = x.try_narrow(-1, i, 1)? * below + one;
    let scale = tau.try_narrow(-1, i, 1)?.unsqueeze(-1);
    Ok(y - (&v * scale).matrix_product(&v.transpose_last().matrix_product(y)))
}

/// `Q y` or `y Q` (`left=False`), with `Qᵀ` if `transpose`, where `Q` is the full product of the reflections in `x` and `tau`.
///
/// ```
/// # use sampan_core::Tensor;
/// let (x, tau) = (Tensor::new([[0.0f32], [1.0]]), Tensor::new([1.0f32]));
/// assert_eq!(x.ormqr(&tau, &Tensor::new([[1.0f32], [0.0]])).to_vec::<f32>(), [0.0, -1.0]);
/// ```
#[op(
    module = "linalg",
    samples = ormqr_samples,
    amp = "black",
    // Paddle has it on GPUs only.
    peer = "torch.ormqr"
)]
fn ormqr(
    x: &Tensor,
    tau: &Tensor,
    y: &Tensor,
    #[opt(true)] left: bool,
    #[opt(false)] transpose: bool,
) -> Result<Tensor> {
    let k = check_reflections(x, tau)?;
    let (rows, cols) = check_matrix(y, "y")?;
    let (side, m) = (if left { rows } else { cols }, x.dim(-2));
    ensure!(side == m, "Q is {m}×{m}, y is {rows}×{cols}");
    // y Q = (Qᵀ yᵀ)ᵀ
    let mut out = if left { y.clone() } else { y.transpose_last() };
    let forwards = transpose == left;
    for step in 0..k {
        out = reflect(x, tau, if forwards { step } else { k - 1 - step }, &out)?;
    }
    Ok(if left { out } else { out.transpose_last() })
}

/// Two blocks side by side along an axis.
pub(crate) fn join(a: &Tensor, b: &Tensor, axis: i64) -> Tensor {
    crate::ops::joining::concat(&[a.clone(), b.clone()], axis)
}

impl Tensor {
    /// The leading block of each matrix.
    pub(crate) fn block(&self, rows: usize, cols: usize) -> Tensor {
        crate::error::unwrap(self.try_narrow(-2, 0, rows).and_then(|t| t.try_narrow(-1, 0, cols)))
    }
}

fn definites() -> Vec<Sample> {
    vec![
        sample![definite([3, 3])].symmetric(),
        sample![definite([2, 2, 2]); upper = true].symmetric(),
        sample![definite([0, 2, 2])].peer("torch.linalg.cholesky"),
    ]
}

fn qr_samples() -> Vec<Sample> {
    let free = "none: the columns beside the thin Q are free";
    vec![
        sample![randn([3, 2])],
        sample![regular([2, 2, 2])],
        sample![randn([2, 3])],
        sample![randn([3, 2]); mode = "r"].grad_peer("lambda x, mode: torch.linalg.qr(x)[1]"),
        sample![regular([3, 3]); mode = "complete"],
        sample![randn([3, 2]); mode = "complete"].no_grad(free).grad_peer(free),
    ]
}

fn svd_samples() -> Vec<Sample> {
    let free = "none: the columns beside the thin U are free";
    vec![
        sample![randn([3, 2]); full_matrices = false].up_to_sign(),
        sample![randn([2, 3]); full_matrices = false].up_to_sign(),
        sample![regular([2, 2, 2])].up_to_sign(),
        sample![regular([3, 3]); full_matrices = true].up_to_sign(),
        sample![randn([3, 2]); full_matrices = true].up_to_sign().no_grad(free).grad_peer(free),
    ]
}

pub(crate) fn rectangles() -> Vec<Sample> {
    vec![sample![randn([3, 2])], sample![randn([2, 2, 3])]]
}

fn eigh_samples() -> Vec<Sample> {
    vec![
        sample![definite([3, 3])].symmetric().up_to_sign(),
        // Paddle's gradient of eigvalsh lies in one triangle.
        sample![definite([2, 2, 2]), "U"]
            .symmetric()
            .up_to_sign()
            .peer("lambda x, uplo: getattr(torch.linalg, op)(x, uplo)"),
    ]
}

fn eig_samples() -> Vec<Sample> {
    vec![sample![definite([3, 3])].up_to_sign(), sample![positive([2, 2])].up_to_sign()]
}

fn reflections() -> Vec<Sample> {
    let with_grad = |s: Sample| s.grad_peer("torch.linalg.householder_product");
    vec![with_grad(sample![randn([3, 2]), positive([2])]), with_grad(sample![randn([2, 3, 2]), positive([2, 1])])]
}

fn ormqr_samples() -> Vec<Sample> {
    vec![
        sample![randn([3, 2]), positive([2]), randn([3, 2])],
        sample![randn([3, 2]), positive([2]), randn([2, 3]); left = false],
        sample![randn([3, 2]), positive([2]), randn([3, 2]); transpose = true],
        sample![randn([3, 2]), positive([2]), randn([2, 3]); left = false, transpose = true],
    ]
}
