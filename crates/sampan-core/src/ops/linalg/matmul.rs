//! Matrix products.

use crate::gpu;
use crate::ops::elementwise::sum_to;
use crate::ops::grid_sample::vector_jacobian;
use crate::ops::prelude::*;
use sampan_kernels::gemm as kernel;
use std::borrow::Cow;

/// The matrix product, with vectors and batches as in NumPy; either operand may be taken transposed.
///
/// ```
/// # use sampan_core::Tensor;
/// let x = Tensor::new([[1.0f32, 2.0], [3.0, 4.0]]);
/// assert_eq!(x.matmul(&x).to_vec::<f32>(), [7.0, 10.0, 15.0, 22.0]);
/// ```
#[op(complex, samples = matmul_samples, onnx = "MatMul", amp = "white", also("linalg.matmul"))]
fn matmul(x: &Tensor, y: &Tensor, #[opt(false)] transpose_x: bool, #[opt(false)] transpose_y: bool) -> Result<Tensor> {
    ensure!(x.ndim() > 0 && y.ndim() > 0, "a 0-d tensor is no matrix; use x * y");
    let (x_vector, y_vector) = (x.ndim() == 1, y.ndim() == 1);
    let flip = |t: &Tensor, yes: bool| if yes { t.transpose_last() } else { t.clone() };
    let a = if x_vector { x.unsqueeze(0) } else { flip(x, transpose_x) };
    let b = if y_vector { y.unsqueeze(1) } else { flip(y, transpose_y) };
    let (k, kb) = (a.dim(-1), b.dim(-2));
    if k != kb {
        return Err(Error::invalid(format!("x has {k} columns, y has {kb} rows"))
            .hint("the last axis of x must match the second to last of y; see transpose_x and transpose_y"));
    }
    let out = a.try_matrix_product(&b)?;
    Ok(match (x_vector, y_vector) {
        (true, true) => out.squeeze([-2, -1]),
        (true, false) => out.squeeze(-2),
        (false, true) => out.squeeze(-1),
        (false, false) => out,
    })
}

/// The product of two stacks of matrices `[…, m, k]` and `[…, k, n]` with broadcast batches; `matmul` comes down to it.
#[op(internal, complex, samples = product_samples, peer = "lambda x, y: paddle.matmul(x, y)", amp = "white", work = crate::ops::work::product)]
fn matrix_product(cx: &Cx, x: &Tensor, y: &Tensor) -> Result<Tensor> {
    ensure!(x.ndim() >= 2 && y.ndim() >= 2, "both operands must be matrices");
    let dtype = promote_tensors(x, y);
    if dtype == DType::Bool {
        return Err(Error::dtype("bool matrices cannot be multiplied").hint("cast to a number first"));
    }
    let (m, k, n) = (x.dim(-2), x.dim(-1), y.dim(-1));
    ensure!(k == y.dim(-2), "x has {k} columns, y has {} rows", y.dim(-2));
    let batch = broadcast(&x.shape()[..x.ndim() - 2], &y.shape()[..y.ndim() - 2])?;
    let mut shape = batch.clone();
    shape.extend([m, n]);
    let out = cx.out(&shape, dtype)?;
    let lead = batch.clone();
    let cpu = move |t: &[&Tensor], out: &Tensor| {
        let (x, y) = (t[0].as_dtype(dtype)?, t[1].as_dtype(dtype)?);
        if lead.is_empty() {
            kernel::product(x.values().view(), y.values().view(), out.values_mut().slice());
            return Ok(());
        }
        let spread = |t: &Tensor| {
            let mut shape = lead.clone();
            shape.extend_from_slice(&t.shape()[t.ndim() - 2..]);
            t.layout().broadcast_to(&shape)
        };
        let (lx, ly) = (spread(&x), spread(&y));
        kernel::product(x.values().view_as(&lx), y.values().view_as(&ly), out.values_mut().slice());
        Ok(())
    };
    let on_gpu = |gpu| gpu::product(gpu, &x.in_dtype(dtype)?, &y.in_dtype(dtype)?, &batch, &out);
    cx.kernels(&[x, y], &out, cpu, on_gpu)?;
    cx.grad(out, &[x, y], |g| {
        let (x, y) = (g.saved(0), g.saved(1));
        Ok([
            g.if_needed(0, || sum_to(&g.grad().matrix_product(&y.conjugate().transpose_last()), x.shape())),
            g.if_needed(1, || sum_to(&x.conjugate().transpose_last().matrix_product(&g.grad()), y.shape())),
        ])
    })
}

/// The product of two matrices; more axes are batches, as in `matmul`.
///
/// ```
/// # use sampan_core::Tensor;
/// let x = Tensor::new([[1i64, 2], [3, 4]]);
/// assert_eq!(x.mm(&x).to_vec::<i64>(), [7, 10, 15, 22]);
/// ```
#[op(complex, samples = mm_samples, amp = "white")]
fn mm(input: &Tensor, mat2: &Tensor) -> Result<Tensor> {
    ensure!(input.ndim() >= 2 && mat2.ndim() >= 2, "both operands must be matrices");
    input.try_matmul(mat2)
}

/// The products of two batches of matrices, `[b, m, k]` and `[b, k, n]`.
///
/// ```
/// # use sampan_core::Tensor;
/// let x = Tensor::new([[[1i64, 2]], [[3, 4]]]);
/// assert_eq!(x.bmm(&Tensor::new([[[1i64], [1]], [[2], [2]]])).to_vec::<i64>(), [3, 14]);
/// ```
#[op(complex, samples = bmm_samples, amp = "white", alias(mat2 = y))]
fn bmm(x: &Tensor, y: &Tensor) -> Result<Tensor> {
    ensure!(x.ndim() == 3 && y.ndim() == 3, "both operands must have three axes: [batch, rows, columns]");
    ensure!(x.dim(0) == y.dim(0), "x holds {} matrices, y holds {}", x.dim(0), y.dim(0));
    x.try_matmul(y)
}

/// A matrix times a vector.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([[1i64, 2], [3, 4]]).mv(&Tensor::new([1i64, 1])).to_vec::<i64>(), [3, 7]);
/// ```
#[op(complex, samples = mv_samples, amp = "white")]
fn mv(x: &Tensor, vec: &Tensor) -> Result<Tensor> {
    ensure!(x.ndim() == 2 && vec.ndim() == 1, "takes a matrix and a vector");
    x.try_matmul(vec)
}

/// The sum of the products of two vectors; of each pair of rows where both have two axes.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([1.0f32, 2.0]).dot(&Tensor::new([3.0f32, 4.0])).to_f64(), 11.0);
/// ```
#[op(complex, samples = dot_samples, amp = "white", alias(tensor = y))]
fn dot(x: &Tensor, y: &Tensor) -> Result<Tensor> {
    ensure!(x.shape() == y.shape(), "x and y must have the same shape");
    ensure!(matches!(x.ndim(), 1 | 2), "takes vectors or batches of vectors, of one or two axes");
    Ok(x.unsqueeze(-2).matmul(&y.unsqueeze(-1)).squeeze([-2, -1]))
}

/// The sum of products over the last axes: `out[…, *] = Σ x[…, k] y[*, k]`.
///
/// ```
/// # use sampan_core::Tensor;
/// let x = Tensor::new([[1i64, 2], [3, 4]]);
/// assert_eq!(x.inner(&Tensor::new([1i64, 10])).to_vec::<i64>(), [21, 43]);
/// ```
#[op(complex, samples = inner_samples, amp = "white")]
fn inner(x: &Tensor, y: &Tensor) -> Result<Tensor> {
    if x.ndim() == 0 || y.ndim() == 0 {
        return x.try_multiply(y);
    }
    let (k, ky) = (x.dim(-1), y.dim(-1));
    ensure!(k == ky, "the last axes must agree, x has {k} and y has {ky}");
    let rows = |t: &Tensor| t.reshape_to([t.shape()[..t.ndim() - 1].iter().product(), k]);
    let shape = [&x.shape()[..x.ndim() - 1], &y.shape()[..y.ndim() - 1]].concat();
    Ok(rows(x).matrix_product(&rows(y).transpose_last()).reshape_to(shape))
}

/// Every product of an element of `x` with one of `y`, both flattened.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([1i64, 2]).outer(&Tensor::new([3i64, 4])).to_vec::<i64>(), [3, 4, 6, 8]);
/// ```
#[op(complex, samples = outer_samples, alias(vec2 = y), also("ger", "ger"))]
fn outer(x: &Tensor, y: &Tensor) -> Result<Tensor> {
    Ok(x.reshape_to([x.numel(), 1]) * y.reshape_to([1, y.numel()]))
}

/// The sum of the products along `axis`, with broadcasting; of complex numbers the first is conjugated.
///
/// ```
/// # use sampan_core::Tensor;
/// let x = Tensor::new([[1.0f32, 2.0], [3.0, 4.0]]);
/// assert_eq!(x.vecdot(&x, -1).to_vec::<f32>(), [5.0, 25.0]);
/// ```
#[op(complex, module = "linalg", samples = vecdot_samples, also("vecdot"))]
fn vecdot(x: &Tensor, y: &Tensor, #[default(-1)] axis: i64) -> Result<Tensor> {
    Ok((x.conjugate() * y).sum(axis))
}

/// `beta * input + alpha * (x @ y)`.
///
/// ```
/// # use sampan_core::Tensor;
/// let x = Tensor::new([[1.0f32, 2.0], [3.0, 4.0]]);
/// assert_eq!(x.addmm(&x, &x).to_vec::<f32>(), [8.0, 12.0, 18.0, 26.0]);
/// ```
#[op(inplace, complex, samples = addmm_samples, amp = "white", alias(mat1 = x, mat2 = y))]
fn addmm(input: &Tensor, x: &Tensor, y: &Tensor, #[opt(1.0)] beta: f64, #[opt(1.0)] alpha: f64) -> Result<Tensor> {
    ensure!(x.ndim() == 2 && y.ndim() == 2, "x and y must be matrices");
    add_product(input, x, y, beta, alpha)
}

/// `beta * input + alpha * bmm(x, y)`.
///
/// ```
/// # use sampan_core::Tensor;
/// let x = Tensor::new([[[1.0f32, 2.0], [3.0, 4.0]]]);
/// assert_eq!(x.baddbmm(&x, &x).to_vec::<f32>(), [8.0, 12.0, 18.0, 26.0]);
/// ```
#[op(inplace, complex, samples = baddbmm_samples, amp = "white", alias(batch1 = x, batch2 = y))]
fn baddbmm(input: &Tensor, x: &Tensor, y: &Tensor, #[opt(1.0)] beta: f64, #[opt(1.0)] alpha: f64) -> Result<Tensor> {
    ensure!(x.ndim() == 3 && y.ndim() == 3, "x and y must have three axes: [batch, rows, columns]");
    ensure!(x.dim(0) == y.dim(0), "x holds {} matrices, y holds {}", x.dim(0), y.dim(0));
    add_product(input, x, y, beta, alpha)
}

fn add_product(input: &Tensor, x: &Tensor, y: &Tensor, beta: f64, alpha: f64) -> Result<Tensor> {
    let scale = |t: &Tensor, by: f64| if by == 1.0 { t.clone() } else { t * by };
    let product = x.try_matmul(y)?;
    let shape = broadcast(input.shape(), product.shape())?;
    ensure!(
        shape[..] == *product.shape(),
        "input of shape {:?} does not broadcast to {:?}",
        input.shape(),
        product.shape()
    );
    scale(&product, alpha).try_add(scale(input, beta))
}

/// `x @ weight + bias`: the affine map of a fully connected layer. `weight` is `[in_features, out_features]`.
///
/// ```
/// # use sampan_core::Tensor;
/// let (x, weight) = (Tensor::new([[1.0f32, 2.0]]), Tensor::new([[1.0f32, 0.0, 1.0], [0.0, 1.0, 1.0]]));
/// assert_eq!(x.linear(&weight, Some(&Tensor::new([0.5f32, 0.5, 0.5]))).to_vec::<f32>(), [1.5, 2.5, 3.5]);
/// ```
#[op(fused_on_gpu, module = "nn.functional", samples = linear_samples, amp = "white", reference = linear_composite, work = crate::ops::work::product)]
fn linear(cx: &Cx, x: &Tensor, weight: &Tensor, #[default(None)] bias: Option<&Tensor>) -> Result<Tensor> {
    ensure!(x.ndim() >= 1, "x needs at least one axis, of the features");
    let biased = bias.is_some();
    ensure!(weight.ndim() >= 1, "weight needs at least one axis");
    if weight.ndim() != 2 || bias.is_some_and(|b| b.ndim() != 1 || b.numel() == 1 && weight.dim(-1) != 1) {
        // A vector, a batch of matrices, or a bias that is spread out: rare, and so computed by the parts.
        let out = linear_composite(x, weight, bias)?;
        let inputs: Vec<&Tensor> = [x, weight].into_iter().chain(bias).collect();
        return cx.grad(out, &inputs, move |g| {
            let saved: Vec<Tensor> = (0..2 + biased as usize).map(|i| g.saved(i).clone()).collect();
            let composite = |t: &[Tensor]| linear_composite(&t[0], &t[1], t.get(2));
            vector_jacobian(composite, &saved.iter().collect::<Vec<_>>(), g.grad())
        });
    }
    let (k, n) = (x.dim(-1), weight.dim(-1));
    if k != weight.dim(0) {
        return Err(Error::invalid(format!("x has {k} columns, weight has {} rows", weight.dim(0)))
            .hint(format!("set in_features={k}")));
    }
    let mut dtype = promote_tensors(x, weight);
    if let Some(b) = bias {
        ensure!(b.shape() == [n], "bias has shape {:?}, weight has {n} columns", b.shape());
        dtype = crate::promote::promote(dtype, b.dtype());
    }
    if dtype == DType::Bool {
        return Err(Error::dtype("bool matrices cannot be multiplied").hint("cast to a number first"));
    }
    let lead = &x.shape()[..x.ndim() - 1];
    let m: usize = lead.iter().product();
    let mut shape = Shape::from_slice(lead);
    shape.push(n);
    let out = cx.out(&shape, dtype)?;
    let tensors: smallvec::SmallVec<[&Tensor; 3]> = [x, weight].into_iter().chain(bias).collect();
    let cpu = move |t: &[&Tensor], out: &Tensor| {
        let x = as_shape(t[0], [m, k]);
        let (x, w) = (x.as_dtype(dtype)?, t[1].as_dtype(dtype)?);
        let bias = t.get(2).map(|b| b.as_dtype(dtype)).transpose()?;
        let bias = bias.as_deref().map(|b| b.as_rows()).transpose()?;
        let bias = bias.as_ref().map(|b| b.values());
        let bias = bias.as_ref().map(|b| b.slice());
        kernel::affine(x.values().view(), w.values().view(), bias, out.values_mut().slice());
        Ok(())
    };
    cx.kernels(&tensors, &out, cpu, |gpu| {
        let (x, w) = (in_shape(x, [m, k]).in_dtype(dtype)?, weight.in_dtype(dtype)?);
        let bias = bias.map(|b| b.in_dtype(dtype)).transpose()?;
        gpu::affine(gpu, &x, &w, bias.as_ref(), &out)
    })?;
    cx.grad(out, &[x, weight], move |g| {
        let (x, w) = (g.saved(0), g.saved(1));
        let rows = in_shape(&g.grad(), [m, n]);
        let dx = g.if_needed(0, || in_shape(&rows.matrix_product(&w.transpose_last()), x.shape()));
        let dw = g.if_needed(1, || in_shape(x, [m, k]).transpose_last().matrix_product(&rows));
        Ok(if biased { Grads::from([dx, dw, g.if_needed(2, || rows.sum(0))]) } else { Grads::from([dx, dw]) })
    })
}

/// The values under another shape; the tensor itself, without a call, if it has it already.
fn in_shape(x: &Tensor, shape: impl AsRef<[usize]>) -> Tensor {
    as_shape(x, shape).into_owned()
}

/// The same without another handle on the tensor itself.
fn as_shape(x: &Tensor, shape: impl AsRef<[usize]>) -> Cow<'_, Tensor> {
    if x.shape() == shape.as_ref() { Cow::Borrowed(x) } else { Cow::Owned(x.reshape_to(shape.as_ref())) }
}

fn linear_composite(x: &Tensor, weight: &Tensor, bias: Option<&Tensor>) -> Result<Tensor> {
    let out = x.try_matmul(weight)?;
    bias.map_or(Ok(out.clone()), |b| out.try_add(b))
}

fn matmul_samples() -> Vec<Sample> {
    vec![
        sample![randn([2, 3]), randn([3, 4])],
        sample![randn([3]), randn([3])],
        sample![randn([3]), randn([2, 3, 4])],
        sample![randn([2, 1, 2, 3]), randn([4, 3, 2])].grad_peer("torch.matmul"),
        sample![randn([3, 2]), randn([4, 3]); transpose_x = true, transpose_y = true],
        sample![randn([2, 0]), randn([0, 3])],
        sample![complexes([2, 3]), complexes([3, 2])],
        sample![complexes([2, 3]), randn([3, 2])],
    ]
}

fn product_samples() -> Vec<Sample> {
    vec![
        sample![randn([2, 3]), randn([3, 4])],
        sample![randn([2, 1, 2, 3]), randn([4, 3, 2])].grad_peer("torch.matmul"),
    ]
}

fn mm_samples() -> Vec<Sample> {
    vec![sample![randn([2, 3]), randn([3, 4])], sample![randn([2, 0]), randn([0, 3])]]
}

fn bmm_samples() -> Vec<Sample> {
    vec![
        sample![randn([2, 2, 3]), randn([2, 3, 2])],
        sample![ints([2, 2, 3], -3, 4), ints([2, 3, 1], -3, 4)].peer("torch.bmm"),
    ]
}

fn mv_samples() -> Vec<Sample> {
    vec![sample![randn([2, 3]), randn([3])], sample![randn([0, 3]), randn([3])]]
}

fn dot_samples() -> Vec<Sample> {
    vec![
        sample![randn([3]), uniform([3], 0.3, 2.0)],
        sample![randn([2, 3]), uniform([2, 3], 0.3, 2.0)],
        sample![complexes([3]), complexes([3])],
    ]
}

fn inner_samples() -> Vec<Sample> {
    vec![
        sample![randn([2, 3]), randn([2, 2, 3])],
        sample![randn([3]), uniform([3], 0.3, 2.0)],
        sample![randn([2, 3]), randn([])],
        sample![randn([0, 3]), randn([2, 3])].peer("torch.inner"),
        sample![complexes([2, 3]), complexes([2, 3])],
    ]
}

fn outer_samples() -> Vec<Sample> {
    vec![sample![randn([3]), randn([2])], sample![randn([2, 2]), randn([3])], sample![randn([0]), randn([3])]]
}

fn vecdot_samples() -> Vec<Sample> {
    vec![
        sample![randn([2, 3]), uniform([2, 3], 0.3, 2.0)],
        sample![randn([2, 3]), uniform([3, 2, 1], 0.3, 2.0), 0]
            .peer("lambda x, y, axis: torch.linalg.vecdot(x, y, dim=axis)"),
        sample![complexes([2, 3]), complexes([2, 3])],
    ]
}

fn addmm_samples() -> Vec<Sample> {
    vec![
        sample![randn([2, 4]), randn([2, 3]), randn([3, 4])],
        sample![randn([4]), randn([2, 3]), randn([3, 4]); beta = 0.5, alpha = 2.0],
    ]
}

fn baddbmm_samples() -> Vec<Sample> {
    vec![
        sample![randn([2, 2, 2]), randn([2, 2, 3]), randn([2, 3, 2])],
        sample![randn([2, 2, 2]), randn([2, 2, 3]), randn([2, 3, 2]); beta = 0.5, alpha = 2.0],
    ]
}

fn linear_samples() -> Vec<Sample> {
    vec![
        sample![randn([2, 3]), randn([3, 4]), randn([4])],
        sample![randn([2, 2, 3]), randn([3, 2])],
        sample![randn([3]), randn([3, 2]), randn([2])],
        sample![randn([0, 3]), randn([3, 2]), randn([2])],
    ]
}
