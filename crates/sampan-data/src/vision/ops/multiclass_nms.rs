//! The boxes of each class that no better one of the class covers.

use super::Detections;
use super::boxes::overlap;
use sampan_core::{DType, Error, Result, Tensor, bail, ensure};
use sampan_macros::function;

/// Detections among boxes `[N, M, 4]` with `scores` `[N, C, M]`: of each class the boxes above `score_threshold`, at most the
/// `nms_top_k` best, without those that a better one covers by more than `nms_threshold` (which shrinks by `nms_eta` with
/// each box kept while it is above 0.5); of each picture at most the `keep_top_k` best (-1: all). They come sorted by class,
/// and best first in each. `background_label` is a class that is none (-1: all are). Without `normalized` the last pixel
/// belongs to a box. Boxes that each class has for itself are `[M, C, 4]`, with scores `[M, C]` and `rois_num`, which says
/// how many belong to each picture; the index then counts all classes of all boxes.
///
/// ```
/// use sampan_core::Tensor;
/// use sampan_data::vision::ops::multiclass_nms3;
/// let boxes = Tensor::new([[[0.0f32, 0.0, 1.0, 1.0], [0.0, 0.0, 1.0, 0.9], [2.0, 2.0, 3.0, 3.0]]]);
/// let scores = Tensor::new([[[0.6f32, 0.8, 0.3]]]);
/// let found = multiclass_nms3(&boxes, &scores, None, 0.1, -1, -1, 0.5, true, 1.0, -1)?;
/// assert_eq!(found.index.unwrap().to_vec::<i32>(), [1, 2]);
/// # Ok::<(), sampan_core::Error>(())
/// ```
#[function(module = "_C_ops")]
pub fn multiclass_nms3(
    bboxes: &Tensor,
    scores: &Tensor,
    #[default(None)] rois_num: Option<&Tensor>,
    #[default(0.0)] score_threshold: f64,
    #[default(-1)] nms_top_k: i64,
    #[default(-1)] keep_top_k: i64,
    #[default(0.3)] nms_threshold: f64,
    #[default(true)] normalized: bool,
    #[default(1.0)] nms_eta: f64,
    #[default(0)] background_label: i64,
) -> Result<Detections> {
    let run = || -> Result<Detections> {
        ensure!(bboxes.dtype().is_float() && scores.dtype().is_float(), "bboxes and scores must be float");
        // How many boxes each picture has, and how far apart the numbers of neighbouring boxes and classes are.
        let (pictures, classes, shared) = match (bboxes.shape(), scores.shape()) {
            (&[n, m, 4], &[a, classes, b]) if (a, b) == (n, m) => (vec![m; n], classes, true),
            (&[m, c, 4], &[a, b]) if (a, b) == (m, c) => {
                let Some(counts) = rois_num else { bail!("scores [M, C] need rois_num") };
                let counts: Vec<usize> = counts.try_to_ints()?.into_iter().map(|n| n.max(0) as usize).collect();
                ensure!(counts.iter().sum::<usize>() == m, "rois_num must add up to {m}, got {counts:?}");
                (counts, c, false)
            }
            (b, s) => bail!("bboxes must have shape [N, M, 4] and scores [N, C, M], got {b:?} and {s:?}"),
        };
        // Thresholds are numbers of the boxes' precision.
        let rounded = |x: f64| if bboxes.dtype() == DType::Float64 { x } else { f64::from(x as f32) };
        let (least, extra) = (rounded(score_threshold), if normalized { 0.0 } else { 1.0 });
        let limit = |k: i64| if k > -1 { k as usize } else { usize::MAX };
        let best_first = |list: &mut Vec<(usize, usize, f64)>| list.sort_by(|a, b| b.2.total_cmp(&a.2));
        let (places, certain) = (bboxes.to_f64_vec(), scores.to_f64_vec());
        let corners = |i: usize| [0, 1, 2, 3].map(|k| places[4 * i + k]);
        let (mut out, mut index, mut counts) = (Vec::new(), Vec::new(), Vec::new());
        let mut start = 0;
        for &m in &pictures {
            let number = |class: usize, at: usize| if shared { start + at } else { (start + at) * classes + class };
            let score = |class: usize, at: usize| {
                if shared { certain[start * classes + class * m + at] } else { certain[number(class, at)] }
            };
            // (class, number of the box, score)
            let mut found: Vec<(usize, usize, f64)> = Vec::new();
            for class in (0..classes).filter(|&c| c as i64 != background_label) {
                let all = (0..m).map(|at| (class, number(class, at), score(class, at)));
                let mut ranked: Vec<_> = all.filter(|r| r.2 > least).collect();
                best_first(&mut ranked);
                ranked.truncate(limit(nms_top_k));
                let mut kept: Vec<(usize, usize, f64)> = Vec::new();
                let mut threshold = rounded(nms_threshold);
                for candidate in ranked {
                    let apart =
                        |k: &(usize, usize, f64)| overlap(&corners(candidate.1), &corners(k.1), extra) <= threshold;
                    if kept.iter().all(apart) {
                        kept.push(candidate);
                        if nms_eta < 1.0 && threshold > 0.5 {
                            threshold *= nms_eta;
                        }
                    }
                }
                found.append(&mut kept);
            }
            if found.len() > limit(keep_top_k) {
                best_first(&mut found);
                found.truncate(limit(keep_top_k));
                found.sort_by_key(|f| f.0);
            }
            if !shared {
                // In the order of the boxes.
                found.sort_by_key(|f| (f.0, f.1));
            }
            counts.push(found.len() as i32);
            for (class, at, score) in found {
                out.extend([class as f64, score]);
                out.extend(corners(at));
                index.push(at as i32);
            }
            start += m;
        }
        let total = index.len();
        Ok(Detections {
            out: Tensor::try_from_slice(&out, [total, 6])?.try_cast(bboxes.dtype())?,
            rois_num: Some(Tensor::try_from_slice(&counts, [pictures.len()])?),
            index: Some(Tensor::try_from_slice(&index, [total, 1])?),
        })
    };
    run().map_err(|e: Error| e.in_op("multiclass_nms3"))
}
