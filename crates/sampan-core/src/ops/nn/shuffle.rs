//! Pixels, channels and frames in other places: blocks as columns and back, pixel and channel shuffles, temporal shift.

use crate::ops::joining::concat;
use crate::ops::pool_core::need_float;
use crate::ops::prelude::*;
use crate::ops::windows::{channels_last, per_axis, to_channels_first, to_channels_last};
use sampan_kernels::unfold::{self, Blocks};

/// Reads the arguments of `unfold` and `fold` for an image of these extents.
fn blocks(image: [usize; 2], kernel: &[i64], strides: &[i64], paddings: &[i64], dilations: &[i64]) -> Result<Blocks> {
    let two =
        |name: &str, list: &[i64], least: i64| per_axis(name, list, 2, least).map(|v| [v[0] as usize, v[1] as usize]);
    let (kernel, stride) = (two("kernel_sizes", kernel, 1)?, two("strides", strides, 1)?);
    let dilation = two("dilations", dilations, 1)?;
    // Four numbers are top, left, bottom, right.
    let (begin, end) = match paddings {
        [_, _, _, _] => (two("paddings", &paddings[..2], 0)?, two("paddings", &paddings[2..], 0)?),
        _ => (two("paddings", paddings, 0)?, two("paddings", paddings, 0)?),
    };
    Blocks::new(image, kernel, stride, dilation, begin, end).ok_or_else(|| {
        Error::invalid(format!(
            "no block of {kernel:?} with dilation {dilation:?} fits into the padded image {image:?}"
        ))
    })
}

/// The sliding blocks of an image as columns: `[batch, channels × block, blocks]`. `paddings` is one number, (height,
/// width) or (top, left, bottom, right).
///
/// ```
/// # use sampan_core::Tensor;
/// let x = Tensor::new([[[[1.0f32, 2.0, 3.0]]]]);
/// assert_eq!(x.unfold([1, 2]).to_vec::<f32>(), [1.0, 2.0, 2.0, 3.0]);
/// ```
#[op(module = "nn.functional", samples = unfold_samples)]
fn unfold(
    cx: &Cx,
    x: &Tensor,
    kernel_sizes: &[i64],
    #[opt(1)] strides: &[i64],
    #[opt(0)] paddings: &[i64],
    #[opt(1)] dilations: &[i64],
) -> Result<Tensor> {
    ensure!(x.ndim() == 4, "x must have 4 axes (NCHW), it has {}", x.ndim());
    need_float(x)?;
    let (n, c, image) = (x.shape()[0], x.shape()[1], [x.shape()[2], x.shape()[3]]);
    let s = blocks(image, kernel_sizes, strides, paddings, dilations)?;
    let (taps, count) = (s.kernel[0].saturating_mul(s.kernel[1]), s.count[0].saturating_mul(s.count[1]));
    let out = cx.out([n, c.saturating_mul(taps), count], x.dtype())?;
    cx.cpu(|| {
        let x = x.try_contiguous()?;
        unfold::unfold(&s, n * c, x.values().slice(), out.values_mut().slice());
        Ok(())
    })?;
    let options = FoldOpts::new().strides(strides).paddings(paddings).dilations(dilations);
    let kernel = kernel_sizes.to_vec();
    cx.grad(out, &[], move |g| Ok(g.grad().fold_with(image, &*kernel, options.clone())))
}

/// Columns of blocks added up to the image of extents `output_sizes` that they were taken from: the transpose of `unfold`.
///
/// ```
/// # use sampan_core::Tensor;
/// let x = Tensor::new([[[1.0f32, 2.0], [2.0, 3.0]]]);
/// assert_eq!(x.fold([1, 3], [1, 2]).to_vec::<f32>(), [1.0, 4.0, 3.0]);
/// ```
#[op(
    module = "nn.functional",
    samples = fold_samples,
    alias(
        output_size = output_sizes,
        kernel_size = kernel_sizes,
        stride = strides,
        padding = paddings,
        dilation = dilations
    )
)]
fn fold(
    cx: &Cx,
    x: &Tensor,
    output_sizes: &[i64],
    kernel_sizes: &[i64],
    #[opt(1)] strides: &[i64],
    #[opt(0)] paddings: &[i64],
    #[opt(1)] dilations: &[i64],
) -> Result<Tensor> {
    ensure!(x.ndim() == 3, "x must have 3 axes [batch, channels × block, blocks], it has {}", x.ndim());
    need_float(x)?;
    let size = per_axis("output_sizes", output_sizes, 2, 0)?;
    let image = [size[0] as usize, size[1] as usize];
    let s = blocks(image, kernel_sizes, strides, paddings, dilations)?;
    let (taps, count) = (s.kernel[0].saturating_mul(s.kernel[1]), s.count[0].saturating_mul(s.count[1]));
    let (n, rows) = (x.shape()[0], x.shape()[1]);
    ensure!(rows.is_multiple_of(taps), "x has {rows} rows, which blocks of {taps} elements do not divide");
    ensure!(x.shape()[2] == count, "x has {} blocks, an image of {image:?} has {count}", x.shape()[2]);
    let out = cx.out([n, rows / taps, image[0], image[1]], x.dtype())?;
    cx.cpu(|| {
        let x = x.try_contiguous()?;
        unfold::fold(&s, n * (rows / taps), x.values().slice(), out.values_mut().slice());
        Ok(())
    })?;
    let options = UnfoldOpts::new().strides(strides).paddings(paddings).dilations(dilations);
    let kernel = kernel_sizes.to_vec();
    cx.grad(out, &[], move |g| Ok(g.grad().unfold_with(&*kernel, options.clone())))
}

/// Extents of an image with its channels first, and the layout it came in.
fn image(x: &Tensor, data_format: &str) -> Result<(Tensor, bool, [usize; 4])> {
    let last = channels_last(x, data_format, 2)?;
    let x = to_channels_first(x, last)?;
    let s = x.shape();
    let extents = [s[0], s[1], s[2], s[3]];
    Ok((x, last, extents))
}

/// Groups of `upscale_factor²` channels laid out as squares of pixels: `[n, c·r², h, w]` to `[n, c, h·r, w·r]`.
///
/// ```
/// # use sampan_core::Tensor;
/// let x = Tensor::new([[[[1i64]], [[2]], [[3]], [[4]]]]);
/// let y = x.pixel_shuffle(2);
/// assert_eq!((y.shape(), y.to_vec::<i64>()), (&[1, 1, 2, 2][..], vec![1, 2, 3, 4]));
/// ```
#[op(module = "nn.functional", samples = pixel_shuffle_samples, onnx = "DepthToSpace")]
fn pixel_shuffle(x: &Tensor, upscale_factor: i64, #[opt("NCHW")] data_format: &str) -> Result<Tensor> {
    let (x, last, [n, c, h, w]) = image(x, data_format)?;
    ensure!((1..1 << 20).contains(&upscale_factor), "upscale_factor must be at least 1, got {upscale_factor}");
    let r = upscale_factor as usize;
    ensure!(c.is_multiple_of(r * r), "x has {c} channels, which must be a multiple of upscale_factor² = {}", r * r);
    let y = x.reshape_to([n, c / (r * r), r, r, h, w]).transpose([0, 1, 4, 2, 5, 3]);
    to_channels_last(y.reshape_to([n, c / (r * r), h * r, w * r]), last)
}

/// Squares of `downscale_factor²` pixels gathered into channels: the inverse of `pixel_shuffle`.
///
/// ```
/// # use sampan_core::Tensor;
/// let x = Tensor::new([[[[1i64, 2], [3, 4]]]]);
/// assert_eq!(x.pixel_unshuffle(2).shape(), [1, 4, 1, 1]);
/// ```
#[op(module = "nn.functional", samples = pixel_unshuffle_samples, onnx = "SpaceToDepth")]
fn pixel_unshuffle(x: &Tensor, downscale_factor: i64, #[opt("NCHW")] data_format: &str) -> Result<Tensor> {
    let (x, last, [n, c, h, w]) = image(x, data_format)?;
    ensure!((1..1 << 20).contains(&downscale_factor), "downscale_factor must be at least 1, got {downscale_factor}");
    let r = downscale_factor as usize;
    ensure!(
        h.is_multiple_of(r) && w.is_multiple_of(r),
        "an image of {h} by {w} pixels cannot be cut into squares of downscale_factor {r}"
    );
    let y = x.reshape_to([n, c, h / r, r, w / r, r]).transpose([0, 1, 3, 5, 2, 4]);
    to_channels_last(y.reshape_to([n, c * r * r, h / r, w / r]), last)
}

/// Channels dealt out anew, one from each of `groups` groups in turn.
///
/// ```
/// # use sampan_core::Tensor;
/// let x = Tensor::new([[[[1i64]], [[2]], [[3]], [[4]]]]);
/// assert_eq!(x.channel_shuffle(2).to_vec::<i64>(), [1, 3, 2, 4]);
/// ```
#[op(module = "nn.functional", samples = channel_shuffle_samples)]
fn channel_shuffle(x: &Tensor, groups: i64, #[opt("NCHW")] data_format: &str) -> Result<Tensor> {
    let (x, last, [n, c, h, w]) = image(x, data_format)?;
    ensure!(groups > 0 && c.is_multiple_of(groups as usize), "x has {c} channels, which {groups} groups do not divide");
    let g = groups as usize;
    let y = x.reshape_to([n, g, c / g, h, w]).transpose([0, 2, 1, 3, 4]);
    to_channels_last(y.reshape_to([n, c, h, w]), last)
}

/// Some channels moved one frame on and as many one frame back within each clip of `seg_num` frames; zeros come in at the
/// ends. `shift_ratio` is the share of channels that move each way.
///
/// ```
/// # use sampan_core::{Tensor, ops::shuffle::TemporalShiftOpts};
/// let x = Tensor::new([[[[1.0f32]], [[2.0]]], [[[3.0]], [[4.0]]]]);
/// let y = x.temporal_shift_with(2, TemporalShiftOpts::new().shift_ratio(0.5));
/// assert_eq!(y.to_vec::<f32>(), [0.0, 4.0, 1.0, 0.0]);
/// ```
#[op(module = "nn.functional", samples = temporal_shift_samples)]
fn temporal_shift(
    x: &Tensor,
    seg_num: i64,
    #[opt(0.25)] shift_ratio: f64,
    #[opt("NCHW")] data_format: &str,
) -> Result<Tensor> {
    let (x, last, [n, c, h, w]) = image(x, data_format)?;
    ensure!(seg_num > 0 && n.is_multiple_of(seg_num as usize), "{n} frames are no clips of seg_num = {seg_num}");
    ensure!((0.0..=0.5).contains(&shift_ratio), "shift_ratio must lie between 0 and 0.5, got {shift_ratio}");
    let t = seg_num as usize;
    let (first, second) = ((c as f64 * shift_ratio) as usize, (c as f64 * 2.0 * shift_ratio) as usize);
    let clips = x.reshape_to([n / t, t, c, h, w]);
    let part = |from: usize, to: usize| clips.try_narrow(2, from, to - from);
    let shape = |channels: usize| [n / t, t, channels, h, w];
    // Frame i takes its first channels from frame i - 1 and its second ones from frame i + 1.
    let moved = |p: Tensor, from: usize, to: i64| {
        let extents = shape(p.shape()[2]);
        p.try_narrow(1, from, t - 1)?.try_unslice(extents, [0, to, 0, 0, 0], [1; 5])
    };
    let parts = [moved(part(0, first)?, 0, 1)?, moved(part(first, second)?, 1, 0)?, part(second, c)?];
    to_channels_last(concat(&parts, 2).reshape_to([n, c, h, w]), last)
}

fn unfold_samples() -> Vec<Sample> {
    vec![
        sample![randn([2, 2, 3, 3]), 2],
        sample![randn([1, 2, 4, 3]), [2, 1], [2, 1], [1, 0], [1, 2]],
        sample![randn([1, 1, 3, 4]), [2, 2], 1, [1, 0, 2, 1], 1],
    ]
}
fn fold_samples() -> Vec<Sample> {
    vec![
        sample![randn([1, 8, 4]), [3, 3], 2],
        sample![randn([1, 2, 12]), [4, 3], [2, 1], [1, 1], [0, 0, 1, 0], [1, 1]]
            .peer("lambda x, out, k, s, p, d: torch.nn.functional.fold(x, (5, 3), k, d, 0, s)[..., :4, :]"),
        sample![randn([2, 4, 2]), [4, 2], 2; strides = 2],
    ]
}
fn pixel_shuffle_samples() -> Vec<Sample> {
    vec![
        sample![randn([1, 8, 2, 1]), 2],
        sample![randn([1, 2, 1, 8]), 2; data_format = "NHWC"],
        sample![randn([0, 4, 2, 2]), 2].peer("torch.pixel_shuffle"),
    ]
}
fn pixel_unshuffle_samples() -> Vec<Sample> {
    vec![sample![randn([1, 2, 4, 2]), 2], sample![randn([1, 2, 4, 2]), 2; data_format = "NHWC"]]
}
fn channel_shuffle_samples() -> Vec<Sample> {
    vec![sample![randn([1, 6, 2, 1]), 3], sample![randn([1, 2, 1, 6]), 2; data_format = "NHWC"]]
}
fn temporal_shift_samples() -> Vec<Sample> {
    vec![
        sample![randn([4, 4, 1, 2]), 2],
        sample![randn([3, 5, 1, 1]), 3; shift_ratio = 0.2],
        sample![randn([4, 1, 2, 4]), 2; data_format = "NHWC"],
        sample![randn([2, 4, 1, 1]), 1],
    ]
}
