//! Distances and angles between vectors.

use crate::ops::elementwise::sum_to;
use crate::ops::norms::VectorNormOpts;
use crate::ops::prelude::*;
use crate::ops::reduction::SumOpts;

/// `x` divided by its `p`-norm along `axis`, or by `epsilon` where that is larger.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([[3.0f32, 4.0]]).normalize().to_vec::<f32>(), [0.6, 0.8]);
/// ```
#[op(module = "nn.functional", samples = normalize_samples, amp = "black", alias(eps = epsilon))]
fn normalize(x: &Tensor, #[opt(2.0)] p: f64, #[opt(1)] axis: i64, #[opt(1e-12)] epsilon: f64) -> Result<Tensor> {
    let axis = resolve_axis(axis, x.ndim())? as i64;
    let norm = x.try_vector_norm_with(p, axis, VectorNormOpts::new().keepdim(true))?;
    Ok(x / norm.maximum(epsilon))
}

/// The cosine of the angle between `x1` and `x2` along `axis`: their dot product over the product of their lengths, which
/// counts as at least `eps`.
///
/// ```
/// # use sampan_core::Tensor;
/// let (x, y) = (Tensor::new([[1.0f32, 0.0]]), Tensor::new([[3.0f32, 4.0]]));
/// assert_eq!(x.cosine_similarity(&y).to_vec::<f32>(), [0.6]);
/// ```
#[op(module = "nn.functional", samples = cosine_samples, amp = "black")]
fn cosine_similarity(x1: &Tensor, x2: &Tensor, #[opt(1)] axis: i64, #[opt(1e-8)] eps: f64) -> Result<Tensor> {
    let shape = broadcast(x1.shape(), x2.shape())?;
    let axis = resolve_axis(axis, shape.len())? as i64;
    let kept = || VectorNormOpts::new().keepdim(true);
    // Both brought to length one by a constant first, so that no product overflows or vanishes.
    let unit = |x: &Tensor| -> Result<[Tensor; 3]> {
        let x = x.try_expand(&shape)?;
        let length = x.try_vector_norm_with(2.0, axis, kept())?;
        let scale = crate::ops::cross_entropy::or_one(&length.detach());
        Ok([&x / &scale, length / &scale, scale])
    };
    let ([x1, n1, s1], [x2, n2, s2]) = (unit(x1)?, unit(x2)?);
    let floor = s1.reciprocal() * s2.reciprocal() * eps;
    Ok((x1 * x2).sum(axis) / (n1 * n2).maximum(&floor).squeeze(axis))
}

/// The `p`-norm of `x - y + epsilon` along the last axis.
///
/// ```
/// # use sampan_core::Tensor;
/// let (x, y) = (Tensor::new([[3.0f32, 4.0]]), Tensor::new([[0.0f32, 0.0]]));
/// assert!((x.pairwise_distance(&y).to_vec::<f32>()[0] - 5.0).abs() < 1e-5);
/// ```
#[op(module = "nn.functional", samples = pairwise_samples, amp = "black", alias(x1 = x, x2 = y, eps = epsilon))]
fn pairwise_distance(
    x: &Tensor,
    y: &Tensor,
    #[opt(2.0)] p: f64,
    #[opt(1e-6)] epsilon: f64,
    #[opt(false)] keepdim: bool,
) -> Result<Tensor> {
    let apart = x.try_subtract(y)?;
    let apart = if epsilon == 0.0 { apart } else { apart + epsilon };
    apart.try_vector_norm_with(p, -1, VectorNormOpts::new().keepdim(keepdim))
}

/// Above this many rows on either side distances come from one matrix product.
const BY_PRODUCT: usize = 25;

/// The `p`-norm distances between every row of `x` (`[…, m, d]`) and every row of `y` (`[…, n, d]`): `[…, m, n]`. Euclidean
/// distances between many rows come from a matrix product unless `compute_mode` is
/// `"donot_use_mm_for_euclid_dist"`; `"use_mm_for_euclid_dist"` forces it.
///
/// ```
/// # use sampan_core::Tensor;
/// let (x, y) = (Tensor::new([[0.0f32, 0.0]]), Tensor::new([[3.0f32, 4.0], [0.0, 1.0]]));
/// assert_eq!(x.cdist(&y).to_vec::<f32>(), [5.0, 1.0]);
/// ```
#[op(samples = cdist_samples, amp = "black", tol = 1e-4)]
fn cdist(
    x: &Tensor,
    y: &Tensor,
    #[opt(2.0)] p: f64,
    #[opt("use_mm_for_euclid_dist_if_necessary")] compute_mode: &str,
) -> Result<Tensor> {
    ensure!(x.ndim() >= 2 && y.ndim() >= 2, "x and y must be matrices or batches of matrices");
    ensure!(x.dim(-1) == y.dim(-1), "the rows of x have {} elements, those of y have {}", x.dim(-1), y.dim(-1));
    ensure!(p >= 0.0, "p must not be negative, got {p}");
    let product = match compute_mode {
        "use_mm_for_euclid_dist_if_necessary" => x.dim(-2) > BY_PRODUCT || y.dim(-2) > BY_PRODUCT,
        "use_mm_for_euclid_dist" => true,
        "donot_use_mm_for_euclid_dist" => false,
        other => bail!("compute_mode {other:?} is not known"),
    };
    if p == 2.0 {
        return x.try_euclidean_distances(y, product);
    }
    (x.unsqueeze(-2) - y.unsqueeze(-3)).try_vector_norm(p, -1)
}

/// The distances between every row of `x` and every row of `y`, from one matrix product if `by_product`. The gradient of a
/// distance of zero is zero.
#[op(internal, samples = euclid_samples, peer = "lambda x, y, by_product: paddle.cdist(x, y)", amp = "black", tol = 1e-4)]
fn euclidean_distances(cx: &Cx, x: &Tensor, y: &Tensor, by_product: bool) -> Result<Tensor> {
    ensure!(x.ndim() >= 2 && y.ndim() >= 2, "x and y must be matrices, got {:?} and {:?}", x.shape(), y.shape());
    let squares = |t: &Tensor| (t * t).sum_with(-1, SumOpts::new().keepdim(true));
    let out = if by_product {
        let cross = x.try_matrix_product(&y.transpose_last())? * -2.0;
        (cross + squares(x) + squares(y).transpose_last()).maximum(0.0).sqrt()
    } else {
        (x.unsqueeze(-2) - y.unsqueeze(-3)).try_vector_norm(2.0, -1)?
    };
    cx.grad_from_output(out, &[x, y], |g| {
        let (x, y, d) = (g.saved(0), g.saved(1), g.output(0));
        let apart = d.greater_than(0.0);
        let share = apart.where_cond(g.grad(), 0.0) / apart.where_cond(d, 1.0);
        let total = |axis: i64| share.sum_with(axis, SumOpts::new().keepdim(true));
        let dx = || sum_to(&(total(-1) * x - share.matrix_product(y)), x.shape());
        let dy = || sum_to(&(total(-2).transpose_last() * y - share.transpose_last().matrix_product(x)), y.shape());
        Ok([g.if_needed(0, dx), g.if_needed(1, dy)])
    })
}

/// The `p`-norm distances between all pairs of different rows of `x`: rows 0 and 1, 0 and 2, … as one vector.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([[0.0f32], [1.0], [3.0]]).pdist().to_vec::<f32>(), [1.0, 3.0, 2.0]);
/// ```
#[op(also("nn.functional.pdist"), samples = pdist_samples, amp = "black")]
fn pdist(x: &Tensor, #[opt(2.0)] p: f64) -> Result<Tensor> {
    ensure!(x.ndim() == 2, "x must be a matrix, it has {} axes", x.ndim());
    let n = x.dim(0) as i64;
    let (first, second): (Vec<i64>, Vec<i64>) = (0..n).flat_map(|i| (i + 1..n).map(move |j| (i, j))).unzip();
    let rows = |index: Vec<i64>| x.index_select(&Tensor::from_vec(index.clone(), [index.len()]), 0);
    (rows(first) - rows(second)).try_vector_norm(p, -1)
}

fn normalize_samples() -> Vec<Sample> {
    vec![
        sample![randn([2, 3])],
        sample![randn([2, 3]); p = 3.0, axis = 0],
        sample![randn([3]); p = 1.0, axis = 0],
        sample![randn([2, 3]); epsilon = 10.0],
    ]
}

fn cosine_samples() -> Vec<Sample> {
    vec![
        sample![randn([2, 3]), uniform([2, 3], 0.3, 2.0)],
        sample![randn([2, 3]), uniform([1, 3], 0.3, 2.0); axis = 0],
        sample![randn([3]), uniform([3], 0.3, 2.0); axis = 0],
    ]
}

fn pairwise_samples() -> Vec<Sample> {
    vec![
        sample![randn([2, 3]), uniform([2, 3], 0.3, 2.0)],
        sample![randn([2, 3]), uniform([3], 0.3, 2.0); p = 1.0, keepdim = true],
        sample![randn([3]), uniform([3], 0.3, 2.0); p = 3.0, epsilon = 0.0],
    ]
}

fn cdist_samples() -> Vec<Sample> {
    vec![
        sample![randn([3, 2]), uniform([4, 2], -3.0, 3.0)],
        sample![randn([2, 2, 2]), uniform([3, 2], -3.0, 3.0); p = 1.0],
        sample![randn([2, 2]), uniform([3, 2], -3.0, 3.0); p = 3.0],
        sample![randn([2, 2]), uniform([3, 2], -3.0, 3.0); p = f64::INFINITY].peer("torch.cdist"),
        sample![randn([2, 2]), uniform([3, 2], -3.0, 3.0); compute_mode = "use_mm_for_euclid_dist"],
        sample![randn([0, 2]), uniform([3, 2], -3.0, 3.0)].peer("torch.cdist"),
    ]
}

fn euclid_samples() -> Vec<Sample> {
    vec![
        sample![randn([2, 3]), uniform([3, 3], -3.0, 3.0), false],
        sample![randn([2, 1, 2]), uniform([3, 2], -3.0, 3.0), true],
    ]
}

fn pdist_samples() -> Vec<Sample> {
    vec![sample![randn([4, 2])], sample![randn([3, 2]); p = 1.0], sample![randn([1, 2])].peer("torch.pdist")]
}
