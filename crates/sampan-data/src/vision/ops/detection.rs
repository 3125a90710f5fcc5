//! Boxes that detectors start from and end with: priors, levels of a pyramid, grids of predictions.

use super::rows;
use crate::vision::transforms::Numbers;
use sampan_core::{DType, Error, Result, Tensor, bail, ensure};

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
/// let (boxes, var) = prior_box(&input, &image, 4, &[], 1, [0.1, 0.1, 0.2, 0.2], false, false, [0, 0], 0.5, false)?;
/// assert_eq!(boxes.shape(), [2, 2, 1, 4]);
/// assert_eq!(boxes.get((0, 0, 0)).to_vec::<f32>(), [0.0, 0.0, 0.5, 0.5]);
/// assert_eq!(var.get((1, 0, 0)).to_vec::<f32>(), [0.1, 0.1, 0.2, 0.2]);
/// # Ok::<(), sampan_core::Error>(())
/// ```
pub fn prior_box(
    input: &Tensor,
    image: &Tensor,
    min_sizes: impl Into<Numbers>,
    max_sizes: &[f64],
    aspect_ratios: impl Into<Numbers>,
    variance: [f64; 4],
    flip: bool,
    clip: bool,
    steps: impl Into<Numbers>,
    offset: f64,
    min_max_aspect_ratios_order: bool,
) -> Result<(Tensor, Tensor)> {
    let run = || -> Result<(Tensor, Tensor)> {
        let (&[_, _, h, w], &[_, _, high, wide]) = (input.shape(), image.shape()) else {
            bail!("input and image must have 4 axes, got {:?} and {:?}", input.shape(), image.shape());
        };
        let (min_sizes, aspect_ratios, steps) = (min_sizes.into(), aspect_ratios.into(), steps.into());
        let &[step_w, step_h] = steps.values() else {
            bail!("steps must be (width, height), got {:?}", steps.values())
        };
        let min_sizes = min_sizes.values();
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
        let variances = variance.repeat(boxes.len() / 4);
        let tensor = |values: &[f64]| Tensor::try_from_slice(values, shape)?.try_cast(dtype);
        Ok((tensor(&boxes)?, tensor(&variances)?))
    };
    run().map_err(|e: Error| e.in_op("prior_box"))
}

/// What [`distribute_fpn_proposals`] gives.
pub struct Levels {
    /// The boxes of each level, from the lowest.
    pub rois: Vec<Tensor>,
    /// Where each box went in the levels joined together, int32 `[R, 1]`.
    pub restore_index: Tensor,
    /// How many boxes of each picture lie in each level, int32 `[N]`.
    pub rois_num: Vec<Tensor>,
}

/// Boxes `[R, 4]` sorted into the levels of a pyramid by their size: a box of `refer_scale` pixels belongs to
/// `refer_level`, one of twice that to the next. `rois_num` `[N]` says how many belong to each picture, in order. With
/// `pixel_offset` the last pixel belongs to a box.
///
/// ```
/// use sampan_core::Tensor;
/// use sampan_data::vision::ops::distribute_fpn_proposals;
/// let rois = Tensor::new([[0.0f32, 0.0, 300.0, 300.0], [0.0, 0.0, 20.0, 20.0]]);
/// let levels = distribute_fpn_proposals(&rois, 2, 5, 4, 224, false, &Tensor::new([2i32]))?;
/// assert_eq!(levels.rois.iter().map(|r| r.shape()[0]).collect::<Vec<_>>(), [1, 0, 1, 0]);
/// assert_eq!(levels.restore_index.to_vec::<i32>(), [1, 0]);
/// # Ok::<(), sampan_core::Error>(())
/// ```
pub fn distribute_fpn_proposals(
    fpn_rois: &Tensor,
    min_level: i64,
    max_level: i64,
    refer_level: i64,
    refer_scale: i64,
    pixel_offset: bool,
    rois_num: &Tensor,
) -> Result<Levels> {
    let run = || -> Result<Levels> {
        ensure!(
            min_level > 0 && max_level > min_level,
            "levels must be positive and rise, got {min_level} to {max_level}"
        );
        ensure!(max_level - min_level < 99, "at most 99 levels, got {min_level} to {max_level}");
        ensure!(refer_scale > 0, "refer_scale must be positive, got {refer_scale}");
        let boxes = rows(fpn_rois, "fpn_rois")?;
        let counts = rois_num.detach().try_cast(DType::Int64)?.try_to_vec::<i64>()?;
        let total = counts.iter().fold(0i64, |a, &b| a.saturating_add(b));
        ensure!(
            total == boxes.len() as i64 && counts.iter().all(|&n| n >= 0),
            "rois_num must add up to the {} boxes, got {counts:?}",
            boxes.len()
        );
        let extra = pixel_offset as u8 as f64;
        let level = |b: &[f64; 4]| {
            let (w, h) = (b[2] - b[0], b[3] - b[1]);
            let area = if w < 0.0 || h < 0.0 { 0.0 } else { (w + extra) * (h + extra) };
            let level = ((area.sqrt() / refer_scale as f64 + 1e-6).log2() + refer_level as f64).floor();
            level.clamp(min_level as f64, max_level as f64) as i64 - min_level
        };
        let picture: Vec<usize> =
            counts.iter().enumerate().flat_map(|(i, &n)| std::iter::repeat_n(i, n as usize)).collect();
        let levels: Vec<i64> = boxes.iter().map(level).collect();
        let (mut rois, mut numbers, mut restore) = (Vec::new(), Vec::new(), vec![0i32; boxes.len()]);
        let mut placed = 0;
        for wanted in 0..=max_level - min_level {
            let members: Vec<i64> = (0..boxes.len() as i64).filter(|&i| levels[i as usize] == wanted).collect();
            let mut here = vec![0i32; counts.len()];
            for &i in &members {
                restore[i as usize] = placed;
                placed += 1;
                here[picture[i as usize]] += 1;
            }
            rois.push(fpn_rois.detach().try_index_select(&Tensor::try_from_slice(&members, [members.len()])?, 0)?);
            numbers.push(Tensor::try_from_slice(&here, [here.len()])?);
        }
        let restore_index = Tensor::try_from_slice(&restore, [restore.len(), 1])?;
        Ok(Levels { rois, restore_index, rois_num: numbers })
    };
    run().map_err(|e: Error| e.in_op("distribute_fpn_proposals"))
}

/// Boxes `[N, anchors * H * W, 4]` and scores `[N, anchors * H * W, class_num]` from the output of a YOLO head, `x`
/// `[N, anchors * (5 + class_num), H, W]`: for each anchor, shift, size, certainty and classes. `img_size` `[N, 2]` holds
/// heights and widths, `anchors` widths and heights in pixels of the network's input, which is `downsample_ratio` times
/// the map. Boxes less certain than `conf_thresh` are 0. `clip_bbox` keeps boxes inside the picture; `scale_x_y` widens
/// the shifts; with `iou_aware`, `anchors` more channels in front hold the expected overlap, which has the share
/// `iou_aware_factor` in the certainty.
pub fn yolo_box(
    x: &Tensor,
    img_size: &Tensor,
    anchors: &[i64],
    class_num: usize,
    conf_thresh: f64,
    downsample_ratio: usize,
    clip_bbox: bool,
    scale_x_y: f64,
    iou_aware: bool,
    iou_aware_factor: f64,
) -> Result<(Tensor, Tensor)> {
    let run = || -> Result<(Tensor, Tensor)> {
        let &[n, c, h, w] = x.shape() else { bail!("x must have shape [N, C, H, W], got {:?}", x.shape()) };
        ensure!(!anchors.is_empty() && anchors.len().is_multiple_of(2), "anchors must be pairs, got {anchors:?}");
        ensure!(class_num > 0, "class_num must be positive");
        let (count, each) = (anchors.len() / 2, 5 + class_num);
        let wanted = count * (each + iou_aware as usize);
        ensure!(c == wanted, "x must have {wanted} channels for {count} anchors and {class_num} classes, got {c}");
        ensure!(img_size.shape() == [n, 2], "img_size must have shape [{n}, 2], got {:?}", img_size.shape());
        ensure!(x.dtype().is_float(), "x must be float, got {}", x.dtype());
        let (values, sizes) = (x.to_f64_vec(), img_size.to_f64_vec());
        let sigmoid = |v: f64| 1.0 / (1.0 + (-v).exp());
        let (plane, total) = (h * w, count * h * w);
        let (mut boxes, mut scores) = (vec![0f64; n * total * 4], vec![0f64; n * total * class_num]);
        for at in 0..n * total {
            let (b, a, y, x) = (at / total, at / plane % count, at / w % h, at % w);
            let place = |channel: usize| values[((b * c + channel) * h + y) * w + x];
            let entry = |k: usize| place(iou_aware as usize * count + a * each + k);
            let mut certain = sigmoid(entry(4));
            if iou_aware {
                certain = certain.powf(1.0 - iou_aware_factor) * sigmoid(place(a)).powf(iou_aware_factor);
            }
            if certain < conf_thresh {
                continue;
            }
            let (high, wide) = (sizes[2 * b], sizes[2 * b + 1]);
            let shift = |v: f64| sigmoid(v) * scale_x_y - 0.5 * (scale_x_y - 1.0);
            let middle_x = (x as f64 + shift(entry(0))) * wide / w as f64;
            let middle_y = (y as f64 + shift(entry(1))) * high / h as f64;
            let half_w = entry(2).exp() * anchors[2 * a] as f64 * wide / (downsample_ratio * w) as f64 / 2.0;
            let half_h = entry(3).exp() * anchors[2 * a + 1] as f64 * high / (downsample_ratio * h) as f64 / 2.0;
            let mut corners = [middle_x - half_w, middle_y - half_h, middle_x + half_w, middle_y + half_h];
            if clip_bbox {
                let [l, t, r, d] = corners;
                corners = [l.max(0.0), t.max(0.0), r.min(wide - 1.0), d.min(high - 1.0)];
            }
            boxes[at * 4..][..4].copy_from_slice(&corners);
            for k in 0..class_num {
                scores[at * class_num + k] = certain * sigmoid(entry(5 + k));
            }
        }
        let boxes = Tensor::try_from_slice(&boxes, [n, total, 4])?.try_cast(x.dtype())?;
        Ok((boxes, Tensor::try_from_slice(&scores, [n, total, class_num])?.try_cast(x.dtype())?))
    };
    run().map_err(|e: Error| e.in_op("yolo_box"))
}
