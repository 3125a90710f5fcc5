//! Boxes: which to keep, and how they are written relative to others.

use super::rows;
use crate::vision::transforms::Numbers;
use sampan_core::value::Arg;
use sampan_core::{DType, Error, Result, Tensor, Value, bail, ensure};
use sampan_macros::function;

/// How much two boxes have in common: their overlap over their union. `extra` is 1 where boxes count pixels.
pub(super) fn overlap(a: &[f64; 4], b: &[f64; 4], extra: f64) -> f64 {
    if (0..2).any(|k| b[k] > a[k + 2] || b[k + 2] < a[k]) {
        return 0.0;
    }
    let area =
        |b: &[f64; 4]| if b[2] < b[0] || b[3] < b[1] { 0.0 } else { (b[2] - b[0] + extra) * (b[3] - b[1] + extra) };
    let side = |k: usize| a[k + 2].min(b[k + 2]) - a[k].max(b[k]) + extra;
    let both = side(0) * side(1);
    // Boxes without an area have nothing in common, not nothing over nothing.
    if both > 0.0 { both / (area(a) + area(b) - both) } else { 0.0 }
}

/// The boxes of `order` that no earlier kept one covers by more than a share.
fn keep(boxes: &[[f64; 4]], order: &[usize], threshold: f64) -> Vec<usize> {
    let mut kept: Vec<usize> = Vec::new();
    for &i in order {
        if kept.iter().all(|&k| overlap(&boxes[k], &boxes[i], 0.0) <= threshold) {
            kept.push(i);
        }
    }
    kept
}

/// Positions of the boxes `[N, 4]` (left, top, right, bottom) that are kept when each box is dropped which overlaps a
/// better one by more than `iou_threshold`. Better means earlier, or of a higher score where `scores` `[N]` are given.
/// With `category_idxs` `[N]` and the list of `categories`, only boxes of one category compete. With scores the
/// positions come best first, with categories at most `top_k` of them.
///
/// ```
/// use sampan_core::Tensor;
/// use sampan_data::vision::ops::nms;
/// let boxes = Tensor::new([[0.0f32, 0.0, 10.0, 10.0], [1.0, 1.0, 11.0, 11.0], [20.0, 20.0, 30.0, 30.0]]);
/// assert_eq!(nms(&boxes, 0.3, None, None, None, None)?.to_vec::<i64>(), [0, 2]);
/// let scores = Tensor::new([0.1f32, 0.8, 0.9]);
/// assert_eq!(nms(&boxes, 0.3, Some(&scores), None, None, None)?.to_vec::<i64>(), [2, 1]);
/// # Ok::<(), sampan_core::Error>(())
/// ```
#[function(module = "vision.ops")]
pub fn nms(
    boxes: &Tensor,
    #[default(0.3)] iou_threshold: f64,
    #[default(None)] scores: Option<&Tensor>,
    #[default(None)] category_idxs: Option<&Tensor>,
    #[default(None)] categories: Option<&[i64]>,
    #[default(None)] top_k: Option<usize>,
) -> Result<Tensor> {
    (|| {
        let all = rows(boxes, "boxes")?;
        let positions = |list: Vec<usize>| {
            let list: Vec<i64> = list.into_iter().map(|i| i as i64).collect();
            Tensor::try_from_slice(&list, [list.len()])
        };
        let column = |t: &Tensor, name: &str| -> Result<Vec<f64>> {
            ensure!(t.shape() == [all.len()], "{name} must have shape [{}], got {:?}", all.len(), t.shape());
            Ok(t.to_f64_vec())
        };
        let Some(scores) = scores else {
            return positions(keep(&all, &(0..all.len()).collect::<Vec<_>>(), iou_threshold));
        };
        let scores = column(scores, "scores")?;
        let best_first = |list: &mut Vec<usize>| list.sort_by(|&a, &b| scores[b].total_cmp(&scores[a]));
        let Some(owners) = category_idxs else {
            let mut order: Vec<usize> = (0..all.len()).collect();
            best_first(&mut order);
            return positions(keep(&all, &order, iou_threshold));
        };
        let owners = column(owners, "category_idxs")?;
        let Some(categories) = categories else { bail!("category_idxs needs categories, the list of all of them") };
        if let Some(k) = top_k {
            ensure!(k <= all.len(), "top_k must be at most the number of boxes, got {k} for {}", all.len());
        }
        let mut kept = Vec::new();
        for &category in categories {
            let mut order: Vec<usize> = (0..all.len()).filter(|&i| owners[i] == category as f64).collect();
            best_first(&mut order);
            kept.extend(keep(&all, &order, iou_threshold));
        }
        kept.sort_unstable();
        kept.dedup();
        best_first(&mut kept);
        kept.truncate(top_k.unwrap_or(usize::MAX));
        positions(kept)
    })()
    .map_err(|e: Error| e.in_op("nms"))
}

/// Width, height, and the middle of a box. `extra` is 1 where boxes count pixels.
fn measure(b: &[f64; 4], extra: f64) -> [f64; 4] {
    let (w, h) = (b[2] - b[0] + extra, b[3] - b[1] + extra);
    [w, h, b[0] + w / 2.0, b[1] + h / 2.0]
}

/// What the codes of boxes are divided by: Paddle's `prior_box_var`.
#[derive(Clone, Debug)]
pub enum Variances {
    /// Nothing.
    None,
    /// The same four numbers for every prior box.
    Same([f64; 4]),
    /// Four numbers for each prior box, `[M, 4]`, or four for all, `[4]`.
    Each(Tensor),
}

impl From<Option<&Tensor>> for Variances {
    fn from(v: Option<&Tensor>) -> Variances {
        v.map_or(Variances::None, |t| Variances::Each(t.clone()))
    }
}

impl From<[f64; 4]> for Variances {
    fn from(v: [f64; 4]) -> Variances {
        Variances::Same(v)
    }
}

impl<'a> Arg<'a> for Variances {
    const EXPECTED: &'static str = "a Tensor, four numbers or None";
    fn read(v: &'a Value) -> Option<Self> {
        Some(match v {
            Value::None => Variances::None,
            Value::Tensor(t) => Variances::Each(t.clone()),
            other => Variances::Same(Numbers::read(other)?.values().try_into().ok()?),
        })
    }
}

impl Variances {
    /// One row for each of `count` prior boxes.
    fn rows(self, count: usize) -> Result<Vec<[f64; 4]>> {
        let all = match self {
            Variances::None => vec![[1.0; 4]; count],
            Variances::Same(row) => vec![row; count],
            Variances::Each(v) if v.shape() == [4] => vec![rows(&v.try_unsqueeze(0)?, "prior_box_var")?[0]; count],
            Variances::Each(v) => rows(&v, "prior_box_var")?,
        };
        ensure!(all.len() == count, "{} variances for {count} prior boxes", all.len());
        Ok(all)
    }
}

/// Boxes written relative to prior boxes, or back. `prior_box` is `[M, 4]`, `prior_box_var` has that shape too, or is one
/// row `[4]` for all, or is `None`.
///
/// `code_type` `"encode_center_size"`: `target_box` `[N, 4]` becomes `[N, M, 4]`, the shift of the middle in widths and
/// heights of the prior and the logarithm of the growth, each over its variance. `"decode_center_size"`: `target_box`
/// `[N, M, 4]` becomes boxes again; the priors run along its axis 1 if `axis` is 0, along its axis 0 if it is 1. Without
/// `box_normalized` the last pixel belongs to a box.
///
/// ```
/// use sampan_core::Tensor;
/// use sampan_data::vision::ops::box_coder;
/// let prior = Tensor::new([[0.0f32, 0.0, 2.0, 2.0]]);
/// let code = box_coder(&prior, None, &Tensor::new([[1.0f32, 0.0, 3.0, 2.0]]), "encode_center_size", true, 0)?;
/// assert_eq!(code.to_vec::<f32>(), [0.5, 0.0, 0.0, 0.0]);
/// assert_eq!(box_coder(&prior, None, &code, "decode_center_size", true, 0)?.to_vec::<f32>(), [1.0, 0.0, 3.0, 2.0]);
/// # Ok::<(), sampan_core::Error>(())
/// ```
#[function(module = "vision.ops")]
pub fn box_coder(
    prior_box: &Tensor,
    prior_box_var: impl Into<Variances>,
    target_box: &Tensor,
    #[default("encode_center_size")] code_type: &str,
    #[default(true)] box_normalized: bool,
    #[default(0)] axis: usize,
) -> Result<Tensor> {
    (|| {
        let priors = rows(prior_box, "prior_box")?;
        let extra = if box_normalized { 0.0 } else { 1.0 };
        let var = prior_box_var.into().rows(priors.len())?;
        let code = |t: &[f64; 4], m: usize| {
            let ([pw, ph, px, py], [w, h, ..], v) = (measure(&priors[m], extra), measure(t, extra), var[m]);
            let (x, y) = ((t[0] + t[2]) / 2.0, (t[1] + t[3]) / 2.0);
            [(x - px) / pw / v[0], (y - py) / ph / v[1], (w / pw).abs().ln() / v[2], (h / ph).abs().ln() / v[3]]
        };
        let decode = |t: &[f64; 4], m: usize| {
            let ([pw, ph, px, py], v) = (measure(&priors[m], extra), var[m]);
            let (x, y) = (v[0] * t[0] * pw + px, v[1] * t[1] * ph + py);
            let (w, h) = ((v[2] * t[2]).exp() * pw, (v[3] * t[3]).exp() * ph);
            [x - w / 2.0, y - h / 2.0, x + w / 2.0 - extra, y + h / 2.0 - extra]
        };
        let (values, shape): (Vec<[f64; 4]>, Vec<usize>) = match code_type {
            "encode_center_size" => {
                let targets = rows(target_box, "target_box")?;
                let pairs = targets.iter().flat_map(|t| (0..priors.len()).map(move |m| (t, m)));
                (pairs.map(|(t, m)| code(t, m)).collect(), vec![targets.len(), priors.len(), 4])
            }
            "decode_center_size" => {
                ensure!(axis < 2, "axis must be 0 or 1, got {axis}");
                let &[n, m, 4] = target_box.shape() else {
                    bail!("target_box must have shape [N, M, 4] to be decoded, got {:?}", target_box.shape());
                };
                let along = [m, n][axis];
                ensure!(along == priors.len(), "{} prior boxes for an axis of {along} in target_box", priors.len());
                let targets = rows(&target_box.try_reshape([-1, 4])?, "target_box")?;
                let prior_of = |i: usize| if axis == 0 { i % m } else { i / m };
                (targets.iter().enumerate().map(|(i, t)| decode(t, prior_of(i))).collect(), vec![n, m, 4])
            }
            _ => bail!("code_type must be 'encode_center_size' or 'decode_center_size', got {code_type:?}"),
        };
        let dtype = if target_box.dtype() == DType::Float64 { DType::Float64 } else { prior_box.dtype() };
        Tensor::try_from_slice(values.as_flattened(), shape)?.try_cast(dtype)
    })()
    .map_err(|e: Error| e.in_op("box_coder"))
}
