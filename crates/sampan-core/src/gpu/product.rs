//! Products of matrices.

use super::{Gpu, Held};
use crate::shape::Layout;
use crate::{Result, Tensor};
use sampan_cuda::blas::{self, Extents, Matrices};
use sampan_cuda::{affine, small};

/// The product of two stacks of matrices of one dtype, into a new tensor; their batches broadcast to `batch`.
pub(crate) fn product(gpu: &'static Gpu, x: &Tensor, y: &Tensor, batch: &[usize], out: &Tensor) -> Result<bool> {
    let dtype = out.dtype();
    if !blas::takes(dtype) {
        return Ok(false);
    }
    let spread = |t: &Tensor| {
        let mut shape = batch.to_vec();
        shape.extend_from_slice(&t.shape()[t.ndim() - 2..]);
        t.layout().broadcast_to(&shape)
    };
    let (m, k, n) = (x.dim(-2), x.dim(-1), y.dim(-1));
    let count = batch.iter().product();
    // Rows of a stack that meet the same matrix are rows of one.
    let (lx, ly) = (spread(x), spread(y));
    if count > 1
        && ly.strides[..batch.len()].iter().all(|&s| s == 0)
        && let Some(rows) = lx.reshape(&[count * m, k])
    {
        return stacks(
            gpu,
            x,
            y,
            rows,
            y.layout().broadcast_to(&[k, n]),
            Extents { count: 1, m: count * m, n, k },
            out,
        );
    }
    let joined = |l: &Layout| l.reshape(&[count, l.shape[batch.len()], l.shape[batch.len() + 1]]);
    match (joined(&lx), joined(&ly)) {
        (Some(lx), Some(ly)) => stacks(gpu, x, y, lx, ly, Extents { count, m, n, k }, out),
        _ if scattered(gpu, [x, y], [&lx, &ly], Extents { count, m, n, k }, out)? => Ok(true),
        _ => {
            // Read neither by rows nor by columns: the copies are laid out side by side.
            let whole = |t: &Tensor| {
                let mut shape = batch.to_vec();
                shape.extend_from_slice(&t.shape()[t.ndim() - 2..]);
                t.try_expand(&shape[..])?.try_contiguous()
            };
            let (x, y) = (whole(x)?, whole(y)?);
            let flat = |rows, columns| Layout::contiguous([count, rows, columns]);
            let at = |l: Layout, t: &Tensor| Layout { offset: t.layout().offset, ..l };
            let (lx, ly) = (at(flat(m, k), &x), at(flat(k, n), &y));
            stacks(gpu, &x, &y, lx, ly, Extents { count, m, n, k }, out)
        }
    }
}

/// `x · weight + bias` for two matrices, into a new tensor.
pub(crate) fn affine(
    gpu: &'static Gpu,
    x: &Tensor,
    weight: &Tensor,
    bias: Option<&Tensor>,
    out: &Tensor,
) -> Result<bool> {
    if let Some(bias) = bias.filter(|b| b.is_contiguous()) {
        let at = |t: &Tensor| -> Option<[usize; 2]> {
            let steps = &t.layout().strides;
            Some([usize::try_from(steps[0]).ok()?, usize::try_from(steps[1]).ok()?])
        };
        let (hx, hw, hb) = (Held::values(x, gpu)?, Held::values(weight, gpu)?, Held::values(bias, gpu)?);
        if let (Some([xr, xc]), Some([wr, wc])) = (at(x), at(weight)) {
            let extents = Extents { count: 1, m: x.dim(0), n: weight.dim(1), k: x.dim(1) };
            let ((ax, ox), (aw, ow)) = (hx.start(), hw.start());
            let pair = [
                Matrices { block: ax, offset: ox, row: xr, column: xc, matrix: 0 },
                Matrices { block: aw, offset: ow, row: wr, column: wc, matrix: 0 },
            ];
            let to = Held::to_fill(out)?;
            let (dtype, to) = (out.dtype(), to.block());
            if small::product(gpu, dtype, extents, pair, Some(hb.start()), to)?
                || affine::product(gpu, dtype, extents, pair, hb.start(), to)?
            {
                return Ok(true);
            }
        }
    }
    Ok(product(gpu, x, weight, &[], out)? && super::add_along(gpu, out, bias, -1)?)
}

/// Multiplies matrices that lie anywhere, as heads of attention do, each by its own address.
fn scattered(
    gpu: &'static Gpu,
    tensors: [&Tensor; 2],
    layouts: [&Layout; 2],
    extents: Extents,
    out: &Tensor,
) -> Result<bool> {
    if layouts.iter().any(|l| l.strides.iter().any(|&s| s < 0)) || extents.count == 0 {
        return Ok(false);
    }
    let places = layouts.map(|l| {
        let axes = l.shape.len() - 2;
        let mut places = vec![0usize];
        for axis in 0..axes {
            let step = l.strides[axis] as usize;
            places = places.iter().flat_map(|p| (0..l.shape[axis]).map(move |i| p + i * step)).collect();
        }
        places
    });
    let held = [Held::values(tensors[0], gpu)?, Held::values(tensors[1], gpu)?];
    let matrices = |which: usize| {
        let Layout { strides, offset, .. } = layouts[which];
        let rank = strides.len();
        let (row, column) = (strides[rank - 2] as usize, strides[rank - 1] as usize);
        Matrices { block: held[which].block(), offset: *offset, row, column, matrix: 0 }
    };
    let to = Held::to_fill(out)?;
    let pair = [matrices(0), matrices(1)];
    Ok(blas::product_at(gpu, out.dtype(), extents, pair, [&places[0], &places[1]], to.block())?)
}

/// Multiplies stacks that layouts of two or three axes see.
fn stacks(
    gpu: &'static Gpu,
    x: &Tensor,
    y: &Tensor,
    lx: Layout,
    ly: Layout,
    extents: Extents,
    out: &Tensor,
) -> Result<bool> {
    // The library reads rows or columns that lie side by side; anything else is copied first.
    let plain = |t: &Tensor, l: Layout| -> Result<(Tensor, Layout)> {
        let steps = &l.strides[l.strides.len() - 2..];
        let extents = &l.shape[l.shape.len() - 2..];
        let rows = (steps[1] == 1 || extents[1] <= 1) && (steps[0] >= extents[1] as isize || extents[0] <= 1);
        let columns = (steps[0] == 1 || extents[0] <= 1) && (steps[1] >= extents[0] as isize || extents[1] <= 1);
        if (rows || columns) && l.strides.iter().all(|&s| s >= 0) {
            return Ok((t.clone(), l));
        }
        let copy = t.detach().view(l.clone()).try_clone_data()?;
        Ok((copy, Layout::contiguous(&l.shape)))
    };
    let ((x, lx), (y, ly)) = (plain(x, lx)?, plain(y, ly)?);
    let (hx, hy, to) = (Held::seen(&x, gpu, lx)?, Held::seen(&y, gpu, ly)?, Held::to_fill(out)?);
    let matrices = |h: &'_ Held| {
        let strides = &h.layout.strides;
        let rank = strides.len();
        let step = |at: usize| strides[at].unsigned_abs();
        let matrix = if rank > 2 { step(0) } else { 0 };
        (h.layout.offset, step(rank - 2), step(rank - 1), matrix)
    };
    let (ax, bx) = (matrices(&hx), matrices(&hy));
    let a = Matrices { block: hx.block(), offset: ax.0, row: ax.1, column: ax.2, matrix: ax.3 };
    let b = Matrices { block: hy.block(), offset: bx.0, row: bx.1, column: bx.2, matrix: bx.3 };
    Ok(blas::product(gpu, out.dtype(), extents, a, b, to.block())?)
}
