//! Boxes that a detector starts from.

use crate::vision::transforms::Numbers;
use sampan_core::{DType, Error, Result, Tensor, bail, ensure};
use sampan_macros::function;

/// The prior boxes of an SSD head on the map `input` `[N, C, H, W]` of the picture `image` `[N, C, H', W']`: boxes and
/// their variances, both `[H, W, priors, 4]`, in shares of the picture.
///
/// Around each pixel stand, for each of `min_sizes`, one box for each of `aspect_ratios` (and its inverse with `flip`) and
/// one of the mean size between it and its partner in `max_sizes`; `min_max_aspect_ratios_order` puts that one second.
/// `steps` is how far pixels are apart, `(width, height)`, by default as the sizes say; `offset` is where in its pixel a
/// box stands.
///
/// ```
/// use sampan_core::Tensor;
/// use sampan_data::vision::ops::prior_box;
/// let (input, image) = (Tensor::from_vec(vec![0f32; 4], [1, 1, 2, 2]), Tensor::from_vec(vec![0f32; 64], [1, 1, 8, 8]));
/// let (boxes, var) = prior_box(&input, &image, 4, None, 1, [0.1, 0.1, 0.2, 0.2], false, false, [0, 0], 0.5, false)?;
/// assert_eq!(boxes.shape(), [2, 2, 1, 4]);
/// assert_eq!(boxes.get((0, 0, 0)).to_vec::<f32>(), [0.0, 0.0, 0.5, 0.5]);
/// assert_eq!(var.get((1, 0, 0)).to_vec::<f32>(), [0.1, 0.1, 0.2, 0.2]);
/// # Ok::<(), sampan_core::Error>(())
/// ```
#[function(module = "vision.ops")]
pub fn prior_box(
    input: &Tensor,
    image: &Tensor,
    min_sizes: impl Into<Numbers>,
    #[default(None)] max_sizes: Option<Numbers>,
    #[default([1.0])] aspect_ratios: impl Into<Numbers>,
    #[default([0.1, 0.1, 0.2, 0.2])] variance: impl Into<Numbers>,
    #[default(false)] flip: bool,
    #[default(false)] clip: bool,
    #[default([0.0, 0.0])] steps: impl Into<Numbers>,
    #[default(0.5)] offset: f64,
    #[default(false)] min_max_aspect_ratios_order: bool,
) -> Result<(Tensor, Tensor)> {
    let run = || -> Result<(Tensor, Tensor)> {
        let (&[_, _, h, w], &[_, _, high, wide]) = (input.shape(), image.shape()) else {
            bail!("input and image must have 4 axes, got {:?} and {:?}", input.shape(), image.shape());
        };
        let (min_sizes, aspect_ratios, steps) = (min_sizes.into(), aspect_ratios.into(), steps.into());
        let &[step_w, step_h] = steps.values() else {
            bail!("steps must be (width, height), got {:?}", steps.values())
        };
        let (min_sizes, max_sizes) = (min_sizes.values(), max_sizes.as_ref().map_or(&[][..], Numbers::values));
        let variance = variance.into();
        ensure!(variance.values().len() == 4, "variance must be four numbers, got {:?}", variance.values());
        ensure!(
            max_sizes.is_empty() || max_sizes.len() == min_sizes.len(),
            "{} max_sizes for {} min_sizes",
            max_sizes.len(),
            min_sizes.len()
        );
        let mut ratios = vec![1.0];
        for &r in aspect_ratios.values() {
            ensure!(r > 0.0, "aspect_ratios must be positive, got {r}");
            if ratios.iter().all(|old| (old - r).abs() >= 1e-6) {
                ratios.push(r);
                if flip {
                    ratios.push(1.0 / r);
                }
            }
        }
        let (high, wide) = (high as f64, wide as f64);
        let step = |given: f64, all: f64, n: usize| if given == 0.0 { all / n as f64 } else { given };
        let (step_w, step_h) = (step(step_w, wide, w), step(step_h, high, h));
        // Half widths and half heights, the same at every pixel.
        let mut sizes: Vec<(f64, f64)> = Vec::new();
        for (i, &size) in min_sizes.iter().enumerate() {
            let of_ratio = |r: &f64| (size * r.sqrt() / 2.0, size / r.sqrt() / 2.0);
            let between = max_sizes.get(i).map(|max| (size * max).sqrt() / 2.0).map(|s| (s, s));
            let (first, rest) = ratios.split_at(if min_max_aspect_ratios_order { 1 } else { ratios.len() });
            sizes.extend(first.iter().map(of_ratio).chain(between).chain(rest.iter().map(of_ratio)));
        }
        let cut = |v: f64| if clip { v.clamp(0.0, 1.0) } else { v };
        let mut boxes = Vec::with_capacity(h * w * sizes.len() * 4);
        for (y, x) in (0..h).flat_map(|y| (0..w).map(move |x| (y, x))) {
            let (x, y) = ((x as f64 + offset) * step_w, (y as f64 + offset) * step_h);
            for (a, b) in &sizes {
                boxes.extend([(x - a) / wide, (y - b) / high, (x + a) / wide, (y + b) / high].map(cut));
            }
        }
        let shape = [h, w, sizes.len(), 4];
        let dtype = if input.dtype() == DType::Float64 { DType::Float64 } else { DType::Float32 };
        let variances = variance.values().repeat(boxes.len() / 4);
        let tensor = |values: &[f64]| Tensor::try_from_slice(values, shape)?.try_cast(dtype);
        Ok((tensor(&boxes)?, tensor(&variances)?))
    };
    run().map_err(|e: Error| e.in_op("prior_box"))
}
