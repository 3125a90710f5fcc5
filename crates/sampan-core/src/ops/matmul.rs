//! Matrix products.

use super::elementwise::sum_to;
use super::prelude::*;
use sampan_kernels::gemm::{Batch, Gemm, Mat, MatMut, batched_matmul};

/// The matrix product, with vectors and batches as in NumPy; either operand may be taken transposed.
///
/// ```
/// # use sampan_core::Tensor;
/// let x = Tensor::new([[1.0f32, 2.0], [3.0, 4.0]]);
/// assert_eq!(x.matmul(&x).to_vec::<f32>(), [7.0, 10.0, 15.0, 22.0]);
/// ```
#[op(samples = matmul_samples, onnx = "MatMul", amp = "white")]
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
///
/// ```
/// # use sampan_core::Tensor;
/// let x = Tensor::new([[[1.0f32, 2.0]], [[3.0, 4.0]]]);
/// assert_eq!(x.matrix_product(&Tensor::new([[1.0f32], [1.0]])).to_vec::<f32>(), [3.0, 7.0]);
/// ```
#[op(samples = product_samples, peer = "lambda x, y: paddle.matmul(x, y)", amp = "white")]
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
    cx.cpu(|| {
        let (x, y) = (x.try_cast(dtype)?, y.try_cast(dtype)?);
        match_dtype!(dtype, T in number => product::<T>(&x, &y, &out, &batch, m, n, k), else => {});
        Ok(())
    })?;
    cx.grad(out, &[x, y], |g| {
        let (x, y) = (g.saved(0), g.saved(1));
        Ok([
            g.if_needed(0, || sum_to(&g.grad().matrix_product(&y.transpose_last()), x.shape())),
            g.if_needed(1, || sum_to(&x.transpose_last().matrix_product(&g.grad()), y.shape())),
        ])
    })
}

fn product<T: Gemm>(x: &Tensor, y: &Tensor, out: &Tensor, batch: &[usize], m: usize, n: usize, k: usize) {
    let spread = |t: &Tensor| {
        let mut shape = Shape::from_slice(batch);
        shape.extend_from_slice(&t.shape()[t.ndim() - 2..]);
        t.layout().broadcast_to(&shape)
    };
    let (lx, ly) = (spread(x), spread(y));
    let (xd, yd) = (x.data::<T>(), y.data::<T>());
    let rank = batch.len();
    let mat = |l: &Layout| (l.strides[rank], l.strides[rank + 1]);
    let ((xr, xc), (yr, yc)) = (mat(&lx), mat(&ly));
    batched_matmul(
        Batch { shape: batch, a_strides: &lx.strides[..rank], b_strides: &ly.strides[..rank], c_stride: m * n },
        m,
        n,
        k,
        Mat { data: xd.view().data, offset: lx.offset, row_stride: xr, col_stride: xc },
        Mat { data: yd.view().data, offset: ly.offset, row_stride: yr, col_stride: yc },
        MatMut::rows(out.data_mut::<T>().slice(), n),
        false,
    );
}

fn matmul_samples() -> Vec<Sample> {
    vec![
        sample![randn([2, 3]), randn([3, 4])],
        sample![randn([3]), randn([3])],
        sample![randn([3]), randn([2, 3, 4])],
        sample![randn([2, 1, 2, 3]), randn([4, 3, 2])],
        sample![randn([3, 2]), randn([4, 3]); transpose_x = true, transpose_y = true],
        sample![randn([2, 0]), randn([0, 3])],
    ]
}

fn product_samples() -> Vec<Sample> {
    vec![sample![randn([2, 3]), randn([3, 4])], sample![randn([2, 1, 2, 3]), randn([4, 3, 2])]]
}
