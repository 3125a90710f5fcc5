//! Overlapping boxes made less certain instead of dropped.

use super::boxes::overlap;
use sampan_core::{Error, Result, Tensor, Value, bail, ensure};
use sampan_macros::function;

/// What [`matrix_nms`] gives.
pub struct Detections {
    /// Class, score, left, top, right and bottom of each box, `[R, 6]`, the best of each picture first.
    pub out: Tensor,
    /// How many belong to each picture, int32 `[N]`, where it was asked for.
    pub rois_num: Option<Tensor>,
    /// Where each box stood among those of all pictures, int32 `[R, 1]`, where it was asked for.
    pub index: Option<Tensor>,
}

impl From<Detections> for Value {
    fn from(d: Detections) -> Value {
        (d.out, Value::optional(d.rois_num), Value::optional(d.index)).into()
    }
}

/// What is left of the scores: (position, decayed score) of those above `post_threshold`, for one class.
fn decayed(
    boxes: &[[f64; 4]],
    ranked: &[(usize, f64)],
    extra: f64,
    post_threshold: f64,
    decay: impl Fn(f64, f64) -> f64,
) -> Vec<(usize, f64)> {
    // Each box's largest overlap with a better one.
    let mut most: Vec<f64> = Vec::with_capacity(ranked.len());
    let mut left = Vec::new();
    for (i, &(at, score)) in ranked.iter().enumerate() {
        let overlaps: Vec<f64> = ranked[..i].iter().map(|&(j, _)| overlap(&boxes[at], &boxes[j], extra)).collect();
        let factor = overlaps.iter().zip(&most).map(|(&iou, &most)| decay(iou, most)).fold(1.0, f64::min);
        most.push(overlaps.into_iter().fold(0.0, f64::max));
        if factor * score > post_threshold {
            left.push((at, factor * score));
        }
    }
    left
}

/// The boxes `[N, M, 4]` with `scores` `[N, C, M]` above `score_threshold`, at most the `nms_top_k` best of each class,
/// their scores lowered by how much they overlap better ones of their class. Those that are still above `post_threshold`
/// are detections, at most `keep_top_k` of each picture (-1: all). A score falls in proportion to what is not shared,
/// or with `use_gaussian` as `exp(gaussian_sigma * -overlap²)`, each relative to the better box's own fall.
/// `background_label` is a class that is none (-1: all are). Without `normalized` the last pixel belongs to a box.
///
/// ```
/// use sampan_core::Tensor;
/// use sampan_data::vision::ops::matrix_nms;
/// let boxes = Tensor::new([[[0.0f32, 0.0, 1.0, 1.0], [0.0, 0.0, 1.0, 0.5]]]);
/// let scores = Tensor::new([[[0.8f32, 0.6]]]);
/// let found = matrix_nms(&boxes, &scores, 0.1, 0.0, 10, 10, false, 2.0, -1, true, true, true)?;
/// assert_eq!(found.out.to_vec::<f32>(), [0.0, 0.8, 0.0, 0.0, 1.0, 1.0, 0.0, 0.3, 0.0, 0.0, 1.0, 0.5]);
/// assert_eq!(found.index.unwrap().to_vec::<i32>(), [0, 1]);
/// # Ok::<(), sampan_core::Error>(())
/// ```
#[function(module = "vision.ops")]
pub fn matrix_nms(
    bboxes: &Tensor,
    scores: &Tensor,
    score_threshold: f64,
    post_threshold: f64,
    nms_top_k: i64,
    keep_top_k: i64,
    #[default(false)] use_gaussian: bool,
    #[default(2.0)] gaussian_sigma: f64,
    #[default(0)] background_label: i64,
    #[default(true)] normalized: bool,
    #[default(false)] return_index: bool,
    #[default(true)] return_rois_num: bool,
) -> Result<Detections> {
    let run = || -> Result<Detections> {
        let &[n, m, 4] = bboxes.shape() else {
            bail!("bboxes must have shape [N, M, 4], got {:?}", bboxes.shape());
        };
        let classes = match *scores.shape() {
            [a, classes, b] if (a, b) == (n, m) => classes,
            _ => bail!("scores must have shape [{n}, C, {m}], got {:?}", scores.shape()),
        };
        ensure!(bboxes.dtype().is_float() && scores.dtype().is_float(), "bboxes and scores must be float");
        let decay = |iou: f64, most: f64| {
            if use_gaussian { ((most * most - iou * iou) * gaussian_sigma).exp() } else { (1.0 - iou) / (1.0 - most) }
        };
        let limit = |k: i64| if k > -1 { k as usize } else { usize::MAX };
        let best_first = |list: &mut Vec<(usize, f64)>| list.sort_by(|a, b| b.1.total_cmp(&a.1));
        let (places, certain) = (bboxes.to_f64_vec(), scores.to_f64_vec());
        let extra = if normalized { 0.0 } else { 1.0 };
        let (mut out, mut index, mut counts) = (Vec::new(), Vec::new(), Vec::new());
        for picture in 0..n {
            let boxes: Vec<[f64; 4]> =
                places[picture * m * 4..][..m * 4].chunks_exact(4).map(|b| [b[0], b[1], b[2], b[3]]).collect();
            // (class * M + position, score)
            let mut found: Vec<(usize, f64)> = Vec::new();
            for class in (0..classes).filter(|&c| c as i64 != background_label) {
                let of_class = &certain[(picture * classes + class) * m..][..m];
                let mut ranked: Vec<(usize, f64)> =
                    of_class.iter().copied().enumerate().filter(|(_, s)| *s > score_threshold).collect();
                best_first(&mut ranked);
                ranked.truncate(limit(nms_top_k));
                let left = decayed(&boxes, &ranked, extra, post_threshold, decay);
                found.extend(left.into_iter().map(|(at, score)| (class * m + at, score)));
            }
            best_first(&mut found);
            found.truncate(limit(keep_top_k));
            counts.push(found.len() as i32);
            for (at, score) in found {
                out.extend([(at / m) as f64, score]);
                out.extend(boxes[at % m]);
                index.push((picture * m + at % m) as i32);
            }
        }
        let total = index.len();
        let tensor = |wanted: bool, values: &[i32], shape: &[usize]| {
            wanted.then(|| Tensor::try_from_slice(values, shape)).transpose()
        };
        Ok(Detections {
            out: Tensor::try_from_slice(&out, [total, 6])?.try_cast(bboxes.dtype())?,
            rois_num: tensor(return_rois_num, &counts, &[n])?,
            index: tensor(return_index, &index, &[total, 1])?,
        })
    };
    run().map_err(|e: Error| e.in_op("matrix_nms"))
}
