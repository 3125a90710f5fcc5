//! Boxes between the two stages of a detector: proposals from anchors, and the levels of a pyramid.

use super::boxes::overlap;
use super::rows;
use sampan_core::{DType, Error, Result, Tensor, Value, bail, ensure};
use sampan_macros::function;

/// What [`distribute_fpn_proposals`] gives.
pub struct Levels {
    /// The boxes of each level, from the lowest.
    pub rois: Vec<Tensor>,
    /// Where each box went in the levels joined together, int32 `[R, 1]`.
    pub restore_index: Tensor,
    /// How many boxes of each picture lie in each level, int32 `[N]`; one picture where none were told apart.
    pub rois_num: Vec<Tensor>,
}

impl From<Levels> for Value {
    fn from(levels: Levels) -> Value {
        (levels.rois, levels.restore_index, levels.rois_num).into()
    }
}

/// Boxes `[R, 4]` sorted into the levels of a pyramid by their size: a box of `refer_scale` pixels belongs to
/// `refer_level`, one of twice that to the next. `rois_num` `[N]` says how many belong to each picture, in order. With
/// `pixel_offset` the last pixel belongs to a box.
///
/// ```
/// use sampan_core::Tensor;
/// use sampan_data::vision::ops::distribute_fpn_proposals;
/// let rois = Tensor::new([[0.0f32, 0.0, 300.0, 300.0], [0.0, 0.0, 20.0, 20.0]]);
/// let levels = distribute_fpn_proposals(&rois, 2, 5, 4, 224, false, None)?;
/// assert_eq!(levels.rois.iter().map(|r| r.shape()[0]).collect::<Vec<_>>(), [1, 0, 1, 0]);
/// assert_eq!(levels.restore_index.to_vec::<i32>(), [1, 0]);
/// # Ok::<(), sampan_core::Error>(())
/// ```
#[function(module = "vision.ops")]
pub fn distribute_fpn_proposals(
    fpn_rois: &Tensor,
    min_level: i64,
    max_level: i64,
    refer_level: i64,
    refer_scale: i64,
    #[default(false)] pixel_offset: bool,
    #[default(None)] rois_num: Option<&Tensor>,
) -> Result<Levels> {
    let run = || -> Result<Levels> {
        ensure!(
            min_level > 0 && max_level > min_level,
            "levels must be positive and rise, got {min_level} to {max_level}"
        );
        ensure!(max_level - min_level < 99, "at most 99 levels, got {min_level} to {max_level}");
        ensure!(refer_scale > 0, "refer_scale must be positive, got {refer_scale}");
        let boxes = rows(fpn_rois, "fpn_rois")?;
        let counts = match rois_num {
            Some(n) => n.detach().try_cast(DType::Int64)?.try_to_vec::<i64>()?,
            None => vec![boxes.len() as i64],
        };
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

/// What [`generate_proposals`] gives.
pub struct Proposals {
    /// The boxes of all pictures, `[R, 4]`, the best of each picture first.
    pub rois: Tensor,
    /// Their scores, `[R, 1]`.
    pub roi_probs: Tensor,
    /// How many belong to each picture, int32 `[N]`, where it was asked for.
    pub rois_num: Option<Tensor>,
}

impl From<Proposals> for Value {
    fn from(p: Proposals) -> Value {
        match p.rois_num {
            Some(n) => (p.rois, p.roi_probs, n).into(),
            None => (p.rois, p.roi_probs).into(),
        }
    }
}

/// The largest logarithm by which a side may grow.
const MOST_GROWTH: f64 = 4.135_166_556_742_356; // ln(1000 / 16)

/// An anchor moved and resized as the network says.
fn moved(anchor: &[f64], delta: [f64; 4], var: &[f64], extra: f64) -> [f64; 4] {
    let (w, h) = (anchor[2] - anchor[0] + extra, anchor[3] - anchor[1] + extra);
    let (x, y) = (anchor[0] + 0.5 * w + var[0] * delta[0] * w, anchor[1] + 0.5 * h + var[1] * delta[1] * h);
    let w = (var[2] * delta[2]).min(MOST_GROWTH).exp() * w / 2.0;
    let h = (var[3] * delta[3]).min(MOST_GROWTH).exp() * h / 2.0;
    [x - w, y - h, x + w - extra, y + h - extra]
}

/// Where an object may be, from what a network says about `anchors` `[H, W, A, 4]`: `scores` `[N, A, H, W]` how likely
/// each is one, `bbox_deltas` `[N, 4 * A, H, W]` how to move and resize it, in widths and heights of the anchor and
/// logarithms of the growth, each times its place in `variances` `[H, W, A, 4]`.
///
/// Of each picture the `pre_nms_top_n` best boxes are cut to `img_size` `[N, 2]` (height, width) and dropped where a side is
/// shorter than `min_size` or 1; of what is left, a box that overlaps a better one by more than `nms_thresh` is dropped (the
/// threshold shrinks by `eta` with each box kept while it is above 0.5), and the `post_nms_top_n` best are the proposals. A
/// picture without any has one box of zeros. With `pixel_offset` the last pixel belongs to a box. No gradients.
///
/// ```
/// use sampan_core::{DType, Tensor};
/// use sampan_data::vision::ops::generate_proposals;
/// let anchors = Tensor::from_vec(vec![0f32, 0.0, 4.0, 4.0, 2.0, 2.0, 9.0, 9.0], [1, 2, 1, 4]);
/// let (ones, deltas) = (Tensor::ones([1, 2, 1, 4], DType::Float32), Tensor::zeros([1, 4, 1, 2], DType::Float32));
/// let scores = Tensor::new([[[[0.2f32, 0.7]]]]);
/// let size = Tensor::new([[8.0f32, 8.0]]);
/// let found = generate_proposals(&scores, &deltas, &size, &anchors, &ones, 10, 10, 0.5, 0.1, 1.0, false, true)?;
/// assert_eq!(found.rois.to_vec::<f32>(), [2.0, 2.0, 8.0, 8.0, 0.0, 0.0, 4.0, 4.0]);
/// assert_eq!(found.roi_probs.to_vec::<f32>(), [0.7, 0.2]);
/// # Ok::<(), sampan_core::Error>(())
/// ```
#[function(module = "vision.ops")]
pub fn generate_proposals(
    scores: &Tensor,
    bbox_deltas: &Tensor,
    img_size: &Tensor,
    anchors: &Tensor,
    variances: &Tensor,
    #[default(6000)] pre_nms_top_n: i64,
    #[default(1000)] post_nms_top_n: i64,
    #[default(0.5)] nms_thresh: f64,
    #[default(0.1)] min_size: f64,
    #[default(1.0)] eta: f64,
    #[default(false)] pixel_offset: bool,
    #[default(false)] return_rois_num: bool,
) -> Result<Proposals> {
    let run = || -> Result<Proposals> {
        let &[n, a, h, w] = scores.shape() else {
            bail!("scores must have shape [N, A, H, W], got {:?}", scores.shape());
        };
        for (name, tensor, wanted) in [
            ("bbox_deltas", bbox_deltas, &[n, 4 * a, h, w][..]),
            ("img_size", img_size, &[n, 2]),
            ("anchors", anchors, &[h, w, a, 4]),
            ("variances", variances, &[h, w, a, 4]),
        ] {
            // Anchors are also taken as rows, `[H * W * A, 4]`.
            let rows = matches!(name, "anchors" | "variances") && tensor.shape() == [h * w * a, 4];
            ensure!(rows || tensor.shape() == wanted, "{name} must have shape {wanted:?}, got {:?}", tensor.shape());
        }
        let [scored, deltas, sizes] = [scores, bbox_deltas, img_size].map(Tensor::to_f64_vec);
        let (places, variances) = (anchors.to_f64_vec(), variances.to_f64_vec());
        let (extra, plane) = (pixel_offset as u8 as f64, h * w);
        let limit = |n: i64| if n > 0 { n as usize } else { usize::MAX };
        let (mut rois, mut probs, mut counts) = (Vec::<[f64; 4]>::new(), Vec::new(), Vec::new());
        for picture in 0..n {
            let (high, wide) = (sizes[2 * picture], sizes[2 * picture + 1]);
            // Boxes are numbered as in `anchors`; scores and deltas have the anchors before the pixels.
            let score = |i: usize| scored[(picture * a + i % a) * plane + i / a];
            let proposal = |i: usize| {
                let delta = [0, 1, 2, 3].map(|k| deltas[(picture * 4 * a + i % a * 4 + k) * plane + i / a]);
                let [l, t, r, b] = moved(&places[4 * i..], delta, &variances[4 * i..], extra);
                let cut = |v: f64, end: f64| v.min(end - extra).max(0.0);
                [cut(l, wide), cut(t, high), cut(r, wide), cut(b, high)]
            };
            let mut order: Vec<usize> = (0..a * plane).collect();
            order.sort_by(|&i, &j| score(j).total_cmp(&score(i)));
            order.truncate(limit(pre_nms_top_n));
            let large = |b: &[f64; 4]| {
                let (w, h) = (b[2] - b[0] + extra, b[3] - b[1] + extra);
                let inside = !pixel_offset || (b[0] + w / 2.0 <= wide && b[1] + h / 2.0 <= high);
                w.min(h) >= min_size.max(1.0) && inside
            };
            let candidates = order.into_iter().map(|i| (proposal(i), score(i))).filter(|(b, _)| large(b));
            let candidates: Vec<([f64; 4], f64)> = candidates.collect();
            let mut kept: Vec<([f64; 4], f64)> = Vec::new();
            let mut threshold = nms_thresh;
            for candidate in &candidates {
                let apart = |k: &([f64; 4], f64)| overlap(&k.0, &candidate.0, extra) <= threshold;
                if nms_thresh <= 0.0 || kept.iter().all(apart) {
                    kept.push(*candidate);
                    if eta < 1.0 && threshold > 0.5 {
                        threshold *= eta;
                    }
                }
            }
            if nms_thresh > 0.0 {
                kept.truncate(limit(post_nms_top_n));
            }
            if kept.is_empty() {
                kept.push(([0.0; 4], 0.0));
            }
            counts.push(kept.len() as i32);
            rois.extend(kept.iter().map(|(b, _)| *b));
            probs.extend(kept.iter().map(|(_, p)| *p));
        }
        let total = rois.len();
        Ok(Proposals {
            rois: Tensor::try_from_slice(rois.as_flattened(), [total, 4])?.try_cast(bbox_deltas.dtype())?,
            roi_probs: Tensor::try_from_slice(&probs, [total, 1])?.try_cast(scores.dtype())?,
            rois_num: return_rois_num.then(|| Tensor::try_from_slice(&counts, [n])).transpose()?,
        })
    };
    run().map_err(|e: Error| e.in_op("generate_proposals"))
}
