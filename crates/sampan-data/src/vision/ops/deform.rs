//! Convolution at places that the input chooses.

use sampan_core::ops::grid_sample::GridSampleOpts;
use sampan_core::ops::joining::try_stack;
use sampan_core::{Error, Ints, Result, Tensor, bail, ensure};
use sampan_macros::function;

/// One number or (vertical, horizontal).
fn pair(v: impl Into<Ints>, name: &str, least: i64) -> Result<[usize; 2]> {
    let v = v.into().0;
    let (a, b) = match v[..] {
        [a] => (a, a),
        [a, b] => (a, b),
        _ => bail!("{name} must be one number or two, got {:?}", &v[..]),
    };
    ensure!(a >= least && b >= least, "{name} must be at least {least}, got {:?}", &v[..]);
    ensure!(a.max(b) <= i32::MAX as i64, "{name} is too large: {:?}", &v[..]);
    Ok([a as usize, b as usize])
}

/// Convolution of `x` `[N, C, H, W]` with `weight` `[M, C / groups, kh, kw]`, each tap of which is read at its own place
/// moved by `offset` `[N, 2 * deformable_groups * kh * kw, H', W']` (down, right, in turn) and, in the second version,
/// scaled by `mask` `[N, deformable_groups * kh * kw, H', W']`. Gradients go to all tensors.
///
/// ```
/// use sampan_core::{DType, Tensor};
/// use sampan_data::vision::ops::deform_conv2d;
/// let x = Tensor::from_vec((0..9).map(|v| v as f32).collect(), [1, 1, 3, 3]);
/// let (offset, weight) = (Tensor::full([1, 2, 3, 3], 0.5, DType::Float32), Tensor::new([[[[2.0f32]]]]));
/// let y = deform_conv2d(&x, &offset, &weight, None, 1, 0, 1, 1, 1, None)?;
/// // Half a pixel down and right of each pixel; beyond the edge is 0.
/// assert_eq!(y.to_vec::<f32>(), [4.0, 6.0, 3.5, 10.0, 12.0, 6.5, 6.5, 7.5, 4.0]);
/// # Ok::<(), sampan_core::Error>(())
/// ```
#[function(module = "vision.ops")]
pub fn deform_conv2d(
    x: &Tensor,
    offset: &Tensor,
    weight: &Tensor,
    #[default(None)] bias: Option<&Tensor>,
    #[default(1)] stride: impl Into<Ints>,
    #[default(0)] padding: impl Into<Ints>,
    #[default(1)] dilation: impl Into<Ints>,
    #[default(1)] deformable_groups: usize,
    #[default(1)] groups: usize,
    #[default(None)] mask: Option<&Tensor>,
) -> Result<Tensor> {
    let run = || -> Result<Tensor> {
        let &[n, c, h, w] = x.shape() else { bail!("x must have shape [N, C, H, W], got {:?}", x.shape()) };
        let &[m, per_group, kh, kw] = weight.shape() else {
            bail!("weight must have shape [M, C / groups, kh, kw], got {:?}", weight.shape());
        };
        let (stride, padding) = (pair(stride, "stride", 1)?, pair(padding, "padding", 0)?);
        let dilation = pair(dilation, "dilation", 1)?;
        let (dg, taps) = (deformable_groups, kh * kw);
        ensure!(groups > 0 && dg > 0, "groups and deformable_groups must be positive, got {groups} and {dg}");
        ensure!(
            Some(c) == per_group.checked_mul(groups) && m % groups == 0 && c % dg == 0,
            "{c} channels, {groups} groups and {dg} deformable groups do not fit weight {:?}",
            weight.shape()
        );
        let extent = |size: usize, k: usize, axis: usize| {
            let (all, reach) = (size + 2 * padding[axis], dilation[axis] * k.checked_sub(1)? + 1);
            (all >= reach).then(|| (all - reach) / stride[axis] + 1)
        };
        let (Some(rows), Some(columns)) = (extent(h, kh, 0), extent(w, kw, 1)) else {
            bail!("a kernel of {kh} by {kw} does not fit {h} by {w} pixels");
        };
        let wanted = [n, 2 * dg * taps, rows, columns];
        ensure!(offset.shape() == wanted, "offset must have shape {wanted:?}, got {:?}", offset.shape());

        // Where each tap stands without offsets, as [taps, rows, columns] down and right.
        let places = |axis: usize| {
            let (k, size) = ([kh, kw][axis], [rows, columns][axis]);
            let values: Vec<f64> = (0..k)
                .flat_map(|t| (0..size).map(move |i| (t, i)))
                .map(|(t, i)| (i * stride[axis] + t * dilation[axis]) as f64 - padding[axis] as f64)
                .collect();
            let shape: [usize; 4] = if axis == 0 { [kh, 1, rows, 1] } else { [1, kw, 1, columns] };
            let spread = [kh as i64, kw as i64, rows as i64, columns as i64];
            Tensor::try_from_slice(&values, shape)?.try_cast(offset.dtype())?.try_expand(spread)?.try_reshape([
                1,
                1,
                taps as i64,
                rows as i64,
                columns as i64,
            ])
        };
        let dims = |v: &[usize]| v.iter().map(|&d| d as i64).collect::<Vec<i64>>();
        let offset = offset.try_reshape(dims(&[n, dg, taps, 2, rows, columns]))?;
        let moved = |axis: usize| places(axis)?.try_add(offset.try_get((.., .., .., axis as i64))?);
        // From pixels to the grid's -1 … 1, whose ends are the outer edges of the outermost pixels.
        let to_grid = |places: Tensor, size: usize| (places * 2.0 + 1.0) / size as f64 - 1.0;
        let grid = try_stack(&[to_grid(moved(1)?, w), to_grid(moved(0)?, h)], -1)?;
        let read = x
            .try_reshape(dims(&[n * dg, c / dg, h, w]))?
            .try_grid_sample_with(
                &grid.try_reshape(dims(&[n * dg, taps * rows, columns, 2]))?,
                GridSampleOpts::new().align_corners(false),
            )?
            .try_reshape(dims(&[n, dg, c / dg, taps, rows * columns]))?;
        let read = match mask {
            Some(mask) => {
                let wanted = [n, dg * taps, rows, columns];
                ensure!(mask.shape() == wanted, "mask must have shape {wanted:?}, got {:?}", mask.shape());
                read.try_multiply(mask.try_reshape(dims(&[n, dg, 1, taps, rows * columns]))?)?
            }
            None => read,
        };
        let read = read.try_reshape(dims(&[n, groups, per_group * taps, rows * columns]))?;
        let weight = weight.try_reshape(dims(&[groups, m / groups, per_group * taps]))?;
        let out = weight.try_matmul(&read)?.try_reshape(dims(&[n, m, rows, columns]))?;
        match bias {
            Some(bias) => {
                ensure!(bias.shape() == [m], "bias must have shape [{m}], got {:?}", bias.shape());
                out.try_add(bias.try_reshape(dims(&[m, 1, 1]))?)
            }
            None => Ok(out),
        }
    };
    run().map_err(|e: Error| e.in_op("deform_conv2d"))
}
