//! Triangles and diagonals.

use crate::ops::prelude::*;
use sampan_kernels::{arrange, copy};
use std::ops::Range;

/// The lower triangles of the last two axes, zeros above; `diagonal` moves the border to the right.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([[1i64, 2], [3, 4]]).tril(0).to_vec::<i64>(), [1, 0, 3, 4]);
/// ```
#[op(inplace, complex, samples = triangle_samples, onnx = "Trilu")]
fn tril(cx: &Cx, x: &Tensor, #[default(0)] diagonal: i64) -> Result<Tensor> {
    let out = triangle(cx, x, diagonal, true)?;
    cx.grad(out, &[], move |g| Ok(g.grad().tril(diagonal)))
}

/// The upper triangles of the last two axes, zeros below; `diagonal` moves the border to the right.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([[1i64, 2], [3, 4]]).triu(0).to_vec::<i64>(), [1, 2, 0, 4]);
/// ```
#[op(inplace, complex, samples = triangle_samples, onnx = "Trilu")]
fn triu(cx: &Cx, x: &Tensor, #[default(0)] diagonal: i64) -> Result<Tensor> {
    let out = triangle(cx, x, diagonal, false)?;
    cx.grad(out, &[], move |g| Ok(g.grad().triu(diagonal)))
}

fn triangle(cx: &Cx, x: &Tensor, diagonal: i64, lower: bool) -> Result<Tensor> {
    ensure!(x.ndim() >= 2, "needs at least 2 axes");
    let (rows, cols) = (x.dim(-2), x.dim(-1));
    let out = cx.out(x.shape(), x.dtype())?;
    cx.run(
        || {
            let x = x.contiguous();
            arrange::triangle(x.values().slice(), out.values_mut().slice(), rows, cols, diagonal, lower);
            Ok(())
        },
        |gpu| crate::gpu::index::triangle(gpu, &x.in_rows()?, diagonal, lower, &out),
    )?;
    Ok(out)
}

/// The layout of a diagonal: the two axes go, their diagonal becomes the last axis.
fn diagonal_layout(layout: &Layout, offset: i64, axis1: i64, axis2: i64) -> Result<Layout> {
    let rank = layout.shape.len();
    ensure!(rank >= 2, "needs at least 2 axes");
    let (a, b) = (resolve_axis(axis1, rank)?, resolve_axis(axis2, rank)?);
    ensure!(a != b, "a diagonal needs two axes, got {axis1} and {axis2}");
    let (m, n) = (layout.shape[a] as i64, layout.shape[b] as i64);
    let (down, right) = (offset.saturating_neg().max(0), offset.max(0));
    let len = m.saturating_sub(down).min(n.saturating_sub(right)).max(0) as usize;
    let mut out = layout.clone();
    if len > 0 {
        let start = down as isize * layout.strides[a] + right as isize * layout.strides[b];
        out.offset = (layout.offset as isize + start) as usize;
    }
    for axis in [a.max(b), a.min(b)] {
        out.shape.remove(axis);
        out.strides.remove(axis);
    }
    out.shape.push(len);
    out.strides.push(layout.strides[a] + layout.strides[b]);
    Ok(out)
}

/// A view on a diagonal of two axes, which becomes the last axis; `offset` moves it to the right.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([[1i64, 2], [3, 4]]).diagonal(0, 0, 1).to_vec::<i64>(), [1, 4]);
/// ```
#[op(complex, samples = diagonal_samples, also("linalg.diagonal"), alias(dim1 = axis1, dim2 = axis2))]
fn diagonal(
    cx: &Cx,
    x: &Tensor,
    #[default(0)] offset: i64,
    #[default(0)] axis1: i64,
    #[default(1)] axis2: i64,
) -> Result<Tensor> {
    let out = x.view(diagonal_layout(x.layout(), offset, axis1, axis2)?);
    let (shape, dtype) = (x.shape_vec(), x.dtype());
    cx.grad(out, &[], move |g| Ok(Tensor::zeros(&shape, dtype).diagonal_scatter(&g.grad(), offset, axis1, axis2)))
}

/// `x` with a diagonal replaced by `y`, which has the diagonal's shape.
///
/// ```
/// # use sampan_core::Tensor;
/// let x = Tensor::new([[1i64, 2], [3, 4]]);
/// assert_eq!(x.diagonal_scatter(&Tensor::new([8i64, 9]), 0, 0, 1).to_vec::<i64>(), [8, 2, 3, 9]);
/// ```
#[op(complex, samples = diagonal_scatter_samples)]
fn diagonal_scatter(
    cx: &Cx,
    x: &Tensor,
    y: &Tensor,
    #[default(0)] offset: i64,
    #[default(0)] axis1: i64,
    #[default(1)] axis2: i64,
) -> Result<Tensor> {
    let place = diagonal_layout(&Layout::contiguous(x.shape()), offset, axis1, axis2)?;
    ensure!(y.shape() == place.shape.as_slice(), "y must have the diagonal's shape {:?}", place.shape);
    let out = cx.out(x.shape(), x.dtype())?;
    cx.run(
        || {
            let y = y.fitting(x.dtype())?.contiguous();
            let mut data = out.values_mut();
            copy::copy_strided(x.values().view(), data.slice());
            if y.numel() > 0 {
                copy::scatter_strided(y.values().slice(), data.slice(), &place.shape, &place.strides, place.offset);
            }
            Ok(())
        },
        |gpu| {
            crate::gpu::copy(gpu, x, &out)?;
            crate::gpu::copy_into(gpu, &y.fitting(x.dtype())?, &out, place.clone()).map(|()| true)
        },
    )?;
    let (shape, dtype) = (y.shape_vec(), y.dtype());
    cx.grad(out, &[], move |g| {
        Ok([
            g.if_needed(0, || {
                g.grad().diagonal_scatter(&Tensor::zeros(&shape, g.grad().dtype()), offset, axis1, axis2)
            }),
            g.if_needed(1, || g.grad().diagonal(offset, axis1, axis2).cast(dtype)),
        ])
    })
}

/// A vector as the diagonal of a square matrix filled with `padding_value`, or the diagonal of a matrix.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([1i64, 2]).diag(0).to_vec::<i64>(), [1, 0, 0, 2]);
/// assert_eq!(Tensor::new([[1i64, 2], [3, 4]]).diag(1).to_vec::<i64>(), [2]);
/// ```
#[op(complex, samples = diag_samples)]
fn diag(x: &Tensor, #[default(0)] offset: i64, #[opt(0)] padding_value: Scalar) -> Result<Tensor> {
    match x.ndim() {
        1 => {
            let n = x.numel() + reach(offset)?;
            Tensor::full([n, n], padding_value, x.dtype()).try_diagonal_scatter(x, offset, 0, 1)
        }
        2 => x.try_diagonal(offset, 0, 1),
        n => bail!("x must have 1 or 2 axes, it has {n}"),
    }
}

/// How many rows an offset adds to a square matrix, if that is possible at all.
fn reach(offset: i64) -> Result<usize> {
    let n = offset.unsigned_abs() as usize;
    ensure!(n < 1 << 24, "offset {offset} is too far out");
    Ok(n)
}

/// The elements of a tensor of any shape as the diagonal of a square matrix.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([[1i64, 2]]).diagflat(0).to_vec::<i64>(), [1, 0, 0, 2]);
/// ```
#[op(complex, samples = diagflat_samples)]
fn diagflat(x: &Tensor, #[default(0)] offset: i64) -> Result<Tensor> {
    x.try_flatten(0, -1)?.try_diag(offset)
}

/// The last axis as the diagonal of two new axes at `dim1` and `dim2` of the result.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([[1i64, 2], [3, 4]]).diag_embed(0, -2, -1).to_vec::<i64>(), [1, 0, 0, 2, 3, 0, 0, 4]);
/// ```
#[op(complex, samples = diag_embed_samples, also("nn.functional.diag_embed"))]
fn diag_embed(
    input: &Tensor,
    #[default(0)] offset: i64,
    #[default(-2)] dim1: i64,
    #[default(-1)] dim2: i64,
) -> Result<Tensor> {
    ensure!(input.ndim() >= 1, "needs at least 1 axis");
    let rank = input.ndim() + 1;
    let (a, b) = (resolve_axis(dim1, rank)?, resolve_axis(dim2, rank)?);
    ensure!(a != b, "dim1 and dim2 name one axis");
    let n = input.dim(-1) + reach(offset)?;
    let mut shape = input.shape_vec();
    shape.pop();
    shape.insert(a.min(b), n);
    shape.insert(a.max(b), n);
    Tensor::zeros(&shape, input.dtype()).try_diagonal_scatter(input, offset, a as i64, b as i64)
}

/// The sum of a diagonal.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([[1i64, 2], [3, 4]]).trace(0, 0, 1).to_vec::<i64>(), [5]);
/// ```
#[op(complex, samples = diagonal_samples)]
fn trace(x: &Tensor, #[default(0)] offset: i64, #[default(0)] axis1: i64, #[default(1)] axis2: i64) -> Result<Tensor> {
    x.try_diagonal(offset, axis1, axis2)?.try_sum(-1)
}

/// `x` with a diagonal replaced by `y`; the in-place form is the usual one.
///
/// ```
/// # use sampan_core::Tensor;
/// let x = Tensor::new([[1i64, 2], [3, 4]]);
/// assert_eq!(x.fill_diagonal_tensor(&Tensor::new([8i64, 9]), 0, 0, 1).to_vec::<i64>(), [8, 2, 3, 9]);
/// ```
#[op(inplace, complex, samples = diagonal_scatter_samples)]
fn fill_diagonal_tensor(
    x: &Tensor,
    y: &Tensor,
    #[default(0)] offset: i64,
    #[default(0)] dim1: i64,
    #[default(1)] dim2: i64,
) -> Result<Tensor> {
    x.try_diagonal_scatter(y, offset, dim1, dim2)
}

/// `x` with its diagonal (that of all axes: each step is one along every axis) set to one number. With `wrap` a tall
/// matrix gets the diagonal again below each square block.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([[1i64, 2], [3, 4]]).fill_diagonal(9, 0).to_vec::<i64>(), [9, 2, 3, 9]);
/// ```
#[op(inplace, complex, samples = fill_diagonal_samples, peer = "lambda x, *a, **k: x.clone().fill_diagonal_(*a, **k)")]
fn fill_diagonal(
    cx: &Cx,
    x: &Tensor,
    value: Scalar,
    #[default(0)] offset: i64,
    #[opt(false)] wrap: bool,
) -> Result<Tensor> {
    let rank = x.ndim();
    ensure!(rank >= 2, "needs at least 2 axes");
    let cols = x.dim(-1);
    let out = cx.out(x.shape(), x.dtype())?;
    cx.cpu(|| {
        let step: isize = Layout::contiguous(x.shape()).strides.iter().sum();
        let end = if rank == 2 && !wrap { x.numel().min(cols * cols) } else { x.numel() };
        let mut data = out.values_mut();
        copy::copy_strided(x.values().view(), data.slice());
        arrange::fill_diagonal(data.slice(), cols, step as usize, end, offset, value);
        Ok(())
    })?;
    cx.grad(out, &[], move |g| Ok(g.grad().fill_diagonal_with(0, offset, FillDiagonalOpts::new().wrap(wrap))))
}

/// Rows and columns of the elements of a lower triangle, as a tensor of two rows.
///
/// ```
/// # use sampan_core::ops::diagonal::tril_indices;
/// assert_eq!(tril_indices(2, 2, 0).to_vec::<i64>(), [0, 1, 1, 0, 0, 1]);
/// ```
#[op(non_diff, samples = tril_indices_samples)]
fn tril_indices(
    row: i64,
    #[default(None)] col: Option<i64>,
    #[default(0)] offset: i64,
    #[opt(DType::Int64)] dtype: DType,
) -> Result<Tensor> {
    let col = col.unwrap_or(row);
    // Rows before −offset have no element, all others have their first.
    let first = if col > 0 { offset.saturating_neg().max(0) } else { row };
    triangle_indices(row, col, first..row, |r| 0..r.saturating_add(offset).saturating_add(1).min(col), dtype)
}

/// Rows and columns of the elements of an upper triangle, as a tensor of two rows.
///
/// ```
/// # use sampan_core::ops::diagonal::triu_indices;
/// assert_eq!(triu_indices(2, 2, 0).to_vec::<i64>(), [0, 0, 1, 0, 1, 1]);
/// ```
#[op(non_diff, samples = triu_indices_samples)]
fn triu_indices(
    row: i64,
    #[default(None)] col: Option<i64>,
    #[default(0)] offset: i64,
    #[opt(DType::Int64)] dtype: DType,
) -> Result<Tensor> {
    let col = col.unwrap_or(row);
    // Rows from col − offset on have no element, all others have their last.
    triangle_indices(row, col, 0..row.min(col.saturating_sub(offset)), |r| r.saturating_add(offset).max(0)..col, dtype)
}

/// The cells of a matrix that lie in `rows` and, in each of these, in `columns(row)`, which is never empty.
fn triangle_indices(
    row: i64,
    col: i64,
    rows: Range<i64>,
    columns: impl Fn(i64) -> Range<i64>,
    dtype: DType,
) -> Result<Tensor> {
    ensure!(row >= 0 && col >= 0, "row and col cannot be negative, got {row} and {col}");
    // As many rows as there are cells at least: the count does not take longer than the list would.
    let at_least = rows.end.saturating_sub(rows.start).max(0) as usize;
    crate::shape::check_room(at_least.saturating_mul(4))?;
    let lens = rows.clone().map(|r| columns(r).end.saturating_sub(columns(r).start).max(0) as usize);
    let count = lens.fold(0, usize::saturating_add);
    crate::shape::check_room(count.saturating_mul(4))?;
    let cells = rows.flat_map(|r| columns(r).map(move |c| (r, c)));
    let (rows, cols): (Vec<i64>, Vec<i64>) = cells.unzip();
    Tensor::from_vec([rows, cols].concat(), [2, count]).try_cast(dtype)
}

fn triangle_samples() -> Vec<Sample> {
    vec![
        sample![randn([3, 3])],
        sample![randn([2, 3, 4]), 1],
        sample![randn([4, 2]), -1],
        sample![randn([2, 3]), 7],
        sample![randn([0, 3])],
    ]
}
fn diagonal_samples() -> Vec<Sample> {
    vec![
        sample![randn([3, 3])],
        sample![randn([2, 3, 4]), 1, 0, 2],
        sample![randn([3, 2]), -1, 1, 0],
        sample![randn([2, 3]), 5],
        sample![randn([0, 3])],
        sample![complexes([3, 3])],
    ]
}
fn diagonal_scatter_samples() -> Vec<Sample> {
    let all = vec![sample![randn([2, 3]), randn([2]), 1], sample![randn([2, 3, 2]), randn([3, 2]), 0, 0, 2]];
    all.into_iter().map(|s| s.grad_peer("torch.diagonal_scatter")).collect()
}
fn diag_samples() -> Vec<Sample> {
    vec![
        sample![randn([2])],
        sample![randn([2]), 1; padding_value = 5],
        sample![randn([3]), -2],
        sample![randn([2, 3]), 1],
        sample![randn([2, 3]), 5],
    ]
}
fn diagflat_samples() -> Vec<Sample> {
    vec![sample![randn([2, 2])], sample![randn([3]), -1]]
}
fn diag_embed_samples() -> Vec<Sample> {
    let all = vec![sample![randn([2, 3])], sample![randn([2, 3]), 1, 0, 2], sample![randn([2]), -1, 1, 0]];
    all.into_iter().map(|s| s.grad_peer("torch.diag_embed")).collect()
}
fn fill_diagonal_samples() -> Vec<Sample> {
    vec![
        sample![randn([3, 3]), 1.5],
        sample![randn([2, 4]), 1.5, 1],
        sample![randn([5, 2]), 0.5; wrap = true],
        sample![randn([2, 2, 2]), 0.5],
        sample![randn([5, 2]), 0.5, -1],
    ]
}
fn tril_indices_samples() -> Vec<Sample> {
    vec![sample![3, 2, -1], sample![2, 4, 1], sample![0, 2, 0].peer("torch.tril_indices")]
}
fn triu_indices_samples() -> Vec<Sample> {
    vec![sample![3], sample![2, 4, 1], sample![3, 3, -1; dtype = DType::Int32]]
}
