//! Slices as views, and the write into a slice that is their transpose.

use crate::ops::prelude::*;
use sampan_kernels::copy;

/// The region of `shape` that starts at `starts` and steps by `steps`, `lens` elements along each axis.
pub(crate) fn region(layout: &Layout, starts: &[i64], lens: &[i64], steps: &[i64]) -> Result<Layout> {
    let rank = layout.shape.len();
    ensure!(starts.len() == rank && lens.len() == rank && steps.len() == rank, "a slice needs every axis");
    let mut out = layout.clone();
    let mut offset = layout.offset as isize;
    for i in 0..rank {
        let (n, len) = (layout.shape[i] as i64, lens[i]);
        ensure!(len >= 0, "a slice cannot have {len} elements");
        if len > 0 {
            let last = starts[i] as i128 + (len - 1) as i128 * steps[i] as i128;
            let inside = (0..n).contains(&starts[i]) && (0..n as i128).contains(&last);
            ensure!(inside, "the slice leaves axis {i} of extent {n}");
            offset += starts[i] as isize * layout.strides[i];
        }
        out.shape[i] = len as usize;
        // Without a second element the step, which may be any number, means nothing.
        out.strides[i] = if len > 1 { layout.strides[i] * steps[i] as isize } else { layout.strides[i] };
    }
    out.offset = if out.numel() == 0 { layout.offset } else { offset as usize };
    Ok(out)
}

/// A view on `lens[i]` elements of each axis from `starts[i]` in steps of `steps[i]`. Every axis is named; indexing comes
/// down to it.
#[op(internal, complex, samples = view_slice_samples, peer = "lambda x, starts, lens, steps: x[torch_region(starts, lens, steps)]")]
fn view_slice(cx: &Cx, x: &Tensor, starts: &[i64], lens: &[i64], steps: &[i64]) -> Result<Tensor> {
    let out = x.view(region(x.layout(), starts, lens, steps)?);
    let (shape, starts, steps) = (x.shape_vec(), starts.to_vec(), steps.to_vec());
    cx.grad(out, &[], move |g| Ok(g.grad().unslice(&shape, starts.as_slice(), steps.as_slice())))
}

/// Zeros of `shape` with `x` written at the slice that starts at `starts` and steps by `steps`: the transpose of
/// `view_slice`.
#[op(
    internal,
    complex,
    samples = unslice_samples,
    peer = "lambda x, shape, starts, steps: torch_write(torch.zeros(shape), [torch_region(starts, x.shape, steps)], \
            [x])"
)]
fn unslice(cx: &Cx, x: &Tensor, shape: &[i64], starts: &[i64], steps: &[i64]) -> Result<Tensor> {
    let shape = crate::ops::shape::checked_shape(shape)?;
    ensure!(shape.len() == x.ndim(), "shape {shape:?} must have the rank of x");
    let lens: Vec<i64> = x.shape().iter().map(|&n| n as i64).collect();
    let target = region(&Layout::contiguous(&shape), starts, &lens, steps)?;
    let out = cx.zeros(&shape, x.dtype())?;
    cx.run(
        || {
            let x = x.contiguous();
            let (source, mut data) = (x.values(), out.values_mut());
            copy::scatter_strided(source.slice(), data.slice(), &target.shape, &target.strides, target.offset);
            Ok(())
        },
        |gpu| crate::gpu::copy_into(gpu, x, &out, target.clone()).map(|()| true),
    )?;
    let (starts, steps) = (starts.to_vec(), steps.to_vec());
    cx.grad(out, &[], move |g| Ok(g.grad().view_slice(starts.as_slice(), lens.as_slice(), steps.as_slice())))
}

impl Tensor {
    /// A view at one position of one axis, which goes away.
    pub fn try_select(&self, axis: i64, index: usize) -> Result<Tensor> {
        self.try_narrow(axis, index, 1)?.try_squeeze(axis)
    }
}

fn view_slice_samples() -> Vec<Sample> {
    vec![
        sample![randn([4, 5]), [3, 1], [2, 2], [-2, 3]],
        sample![randn([4]), [0], [0], [1]],
        sample![randn([]), Vec::<i64>::new(), Vec::<i64>::new(), Vec::<i64>::new()],
    ]
}
fn unslice_samples() -> Vec<Sample> {
    vec![sample![randn([2, 2]), [4, 5], [3, 1], [-2, 3]], sample![randn([0]), [4], [0], [1]]]
}
