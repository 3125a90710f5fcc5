//! The head of a YOLO detector: its boxes, and its loss.

use sampan_core::{Error, Result, Tensor, bail, ensure};
use sampan_macros::function;

fn sigmoid(v: f64) -> f64 {
    1.0 / (1.0 + (-v).exp())
}

/// Boxes `[N, anchors * H * W, 4]` and scores `[N, anchors * H * W, class_num]` from the output of a YOLO head, `x`
/// `[N, anchors * (5 + class_num), H, W]`: for each anchor, shift, size, certainty and classes. `img_size` `[N, 2]` holds
/// heights and widths, `anchors` widths and heights in pixels of the network's input, which is `downsample_ratio` times
/// the map. Boxes less certain than `conf_thresh` are 0. `clip_bbox` keeps boxes inside the picture; `scale_x_y` widens
/// the shifts; with `iou_aware`, `anchors` more channels in front hold the expected overlap, which has the share
/// `iou_aware_factor` in the certainty.
///
/// ```
/// use sampan_core::{DType, Tensor};
/// use sampan_data::vision::ops::yolo_box;
/// let (x, size) = (Tensor::zeros([1, 7, 1, 1], DType::Float32), Tensor::new([[32i32, 32]]));
/// let (boxes, scores) = yolo_box(&x, &size, &[8, 16], 2, 0.1, 32, true, 1.0, false, 0.5)?;
/// assert_eq!(boxes.to_vec::<f32>(), [12.0, 8.0, 20.0, 24.0]);
/// assert_eq!(scores.to_vec::<f32>(), [0.25, 0.25]);
/// # Ok::<(), sampan_core::Error>(())
/// ```
#[function(module = "vision.ops")]
pub fn yolo_box(
    x: &Tensor,
    img_size: &Tensor,
    anchors: &[i64],
    class_num: usize,
    conf_thresh: f64,
    downsample_ratio: usize,
    #[default(true)] clip_bbox: bool,
    #[default(1.0)] scale_x_y: f64,
    #[default(false)] iou_aware: bool,
    #[default(0.5)] iou_aware_factor: f64,
) -> Result<(Tensor, Tensor)> {
    let run = || -> Result<(Tensor, Tensor)> {
        let &[n, c, h, w] = x.shape() else { bail!("x must have shape [N, C, H, W], got {:?}", x.shape()) };
        ensure!(!anchors.is_empty() && anchors.len().is_multiple_of(2), "anchors must be pairs, got {anchors:?}");
        ensure!((1..=c).contains(&class_num), "class_num must be positive and below the {c} channels, got {class_num}");
        let (count, each) = (anchors.len() / 2, 5 + class_num);
        let wanted = count * (each + iou_aware as usize);
        ensure!(c == wanted, "x must have {wanted} channels for {count} anchors and {class_num} classes, got {c}");
        ensure!(img_size.shape() == [n, 2], "img_size must have shape [{n}, 2], got {:?}", img_size.shape());
        ensure!(x.dtype().is_float(), "x must be float, got {}", x.dtype());
        let (values, sizes) = (x.to_f64_vec(), img_size.to_f64_vec());
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
            let half_w = entry(2).exp() * anchors[2 * a] as f64 * wide / (downsample_ratio as f64 * w as f64) / 2.0;
            let half_h = entry(3).exp() * anchors[2 * a + 1] as f64 * high / (downsample_ratio as f64 * h as f64) / 2.0;
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

/// A box around its middle, in shares of the picture.
#[derive(Clone, Copy)]
struct Middle {
    x: f64,
    y: f64,
    w: f64,
    h: f64,
}

impl Middle {
    /// What two boxes have in common, over their union.
    fn overlap(&self, other: &Middle) -> f64 {
        let side =
            |a: f64, wa: f64, b: f64, wb: f64| (a + wa / 2.0).min(b + wb / 2.0) - (a - wa / 2.0).max(b - wb / 2.0);
        let (w, h) = (side(self.x, self.w, other.x, other.w), side(self.y, self.h, other.y, other.h));
        let both = if w < 0.0 || h < 0.0 { 0.0 } else { w * h };
        both / (self.w * self.h + other.w * other.h - both)
    }
}

/// Terms of the loss: which elements of `x` they read, what these should be, and how much each term weighs.
#[derive(Default)]
struct Terms {
    places: Vec<i64>,
    targets: Vec<f64>,
    weights: Vec<f64>,
}

impl Terms {
    fn push(&mut self, place: usize, target: f64, weight: f64) {
        self.places.push(place as i64);
        self.targets.push(target);
        self.weights.push(weight);
    }

    /// The sum of the terms of each of `n` pictures, whose elements stand one after another in `x`.
    fn sum(&self, x: &Tensor, n: usize, each: impl Fn(&Tensor, &Tensor) -> Result<Tensor>) -> Result<Tensor> {
        let count = self.places.len();
        let like_x = |values: &[f64]| Tensor::try_from_slice(values, [count])?.try_cast(x.dtype());
        let size = (x.numel() / n.max(1)).max(1) as i64;
        let pictures: Vec<i64> = self.places.iter().map(|p| p / size).collect();
        let read = x.try_reshape([-1])?.try_index_select(&Tensor::try_from_slice(&self.places, [count])?, 0)?;
        let terms = each(&read, &like_x(&self.targets)?)?.try_multiply(like_x(&self.weights)?)?;
        Tensor::full([n], 0.0, x.dtype()).try_index_add(&Tensor::try_from_slice(&pictures, [count])?, 0, &terms)
    }
}

/// The YOLOv3 loss of each picture, `[N]`, from the output of a head on a square map, `x` `[N, masks * (5 + class_num), S, S]`.
///
/// `gt_box` `[N, B, 4]` holds the middle, width and height of the true boxes in shares of the picture (a box without an
/// area is none), `gt_label` `[N, B]` their classes, `gt_score` `[N, B]` how much each counts. `anchors` are widths and
/// heights in pixels of the network's input, which is `downsample_ratio` times the map; `anchor_mask` names those of this
/// head. A true box belongs to the anchor most like it, in the pixel of its middle: there location, certainty and class are
/// asked for. Everywhere else the certainty should be 0, but where the predicted box overlaps a true one by more than
/// `ignore_thresh` nothing is asked. `use_label_smooth` asks for a little less than certain classes; `scale_x_y` widens the
/// shifts. The gradient goes to `x`; where true boxes share an anchor and a pixel theirs add up, as their losses do (Paddle
/// keeps that of the last one).
///
/// ```
/// use sampan_core::{DType, Tensor};
/// use sampan_data::vision::ops::yolo_loss;
/// let x = Tensor::zeros([1, 6, 2, 2], DType::Float32).requires_grad_();
/// let (boxes, labels) = (Tensor::new([[[0.5f32, 0.5, 0.25, 0.25]]]), Tensor::new([[0i32]]));
/// let loss = yolo_loss(&x, &boxes, &labels, &[16, 16], &[0], 1, 0.7, 32, None, false, 1.0)?;
/// loss.backward();
/// assert_eq!(loss.shape(), [1]);
/// assert_eq!(x.grad().unwrap().shape(), [1, 6, 2, 2]);
/// # Ok::<(), sampan_core::Error>(())
/// ```
#[function(module = "vision.ops")]
pub fn yolo_loss(
    x: &Tensor,
    gt_box: &Tensor,
    gt_label: &Tensor,
    anchors: &[i64],
    anchor_mask: &[i64],
    class_num: usize,
    ignore_thresh: f64,
    downsample_ratio: usize,
    #[default(None)] gt_score: Option<&Tensor>,
    #[default(true)] use_label_smooth: bool,
    #[default(1.0)] scale_x_y: f64,
) -> Result<Tensor> {
    let run = || -> Result<Tensor> {
        let &[n, c, size, columns] = x.shape() else { bail!("x must have shape [N, C, S, S], got {:?}", x.shape()) };
        ensure!(size == columns, "the map must be square, got {size} by {columns}");
        ensure!(x.dtype().is_float(), "x must be float, got {}", x.dtype());
        ensure!(!anchors.is_empty() && anchors.len().is_multiple_of(2), "anchors must be pairs, got {anchors:?}");
        ensure!(anchors.iter().all(|&a| a > 0), "anchors must be positive, got {anchors:?}");
        let known = 0..anchors.len() as i64 / 2;
        ensure!(
            !anchor_mask.is_empty() && anchor_mask.iter().all(|m| known.contains(m)),
            "anchor_mask must name some of the {} anchors, got {anchor_mask:?}",
            known.end
        );
        ensure!((1..=c).contains(&class_num), "class_num must be positive and below the {c} channels, got {class_num}");
        ensure!(downsample_ratio > 0, "downsample_ratio must be positive");
        let (masks, each) = (anchor_mask.len(), 5 + class_num);
        ensure!(c == masks * each, "x must have {} channels for {masks} anchors, got {c}", masks * each);
        let &[_, b, 4] = gt_box.shape() else { bail!("gt_box must have shape [N, B, 4], got {:?}", gt_box.shape()) };
        for (name, shape) in [("gt_label", Some(gt_label.shape())), ("gt_score", gt_score.map(Tensor::shape))] {
            ensure!(
                shape.is_none_or(|s| s == [n, b]),
                "{name} must have shape [{n}, {b}], got {:?}",
                shape.unwrap_or(&[])
            );
        }
        ensure!(gt_box.shape()[0] == n, "gt_box must have shape [{n}, B, 4], got {:?}", gt_box.shape());
        let labels = gt_label.to_f64_vec();
        ensure!(
            labels.iter().all(|l| (0.0..class_num as f64).contains(l)),
            "gt_label must hold classes below {class_num}"
        );
        let (values, truths) = (x.to_f64_vec(), gt_box.to_f64_vec());
        let scores = gt_score.map_or(vec![1.0; n * b], Tensor::to_f64_vec);
        let plane = size * size;
        let input = downsample_ratio as f64 * size as f64;
        let anchor = |a: usize| (anchors[2 * a] as f64 / input, anchors[2 * a + 1] as f64 / input);
        let smooth = if use_label_smooth { (1.0 / class_num as f64).min(1.0 / 40.0) } else { 0.0 };
        let shift = |v: f64| sigmoid(v) * scale_x_y - 0.5 * (scale_x_y - 1.0);
        let (mut logistic, mut linear) = (Terms::default(), Terms::default());
        for picture in 0..n {
            let place = |mask: usize, k: usize, at: usize| ((picture * masks + mask) * each + k) * plane + at;
            let boxes: Vec<(usize, Middle)> = (0..b)
                .map(|t| (picture * b + t, &truths[(picture * b + t) * 4..][..4]))
                .map(|(t, v)| (t, Middle { x: v[0], y: v[1], w: v[2], h: v[3] }))
                .filter(|(_, m)| m.w >= 1e-6 && m.h >= 1e-6)
                .collect();
            // How much certainty is asked for; `None`: nothing is.
            let mut wanted = vec![Some(0.0); masks * plane];
            for (i, wanted) in wanted.iter_mut().enumerate() {
                let (mask, at) = (i / plane, i % plane);
                let value = |k: usize| values[place(mask, k, at)];
                let (w, h) = anchor(anchor_mask[mask] as usize);
                let predicted = Middle {
                    x: ((at % size) as f64 + shift(value(0))) / size as f64,
                    y: ((at / size) as f64 + shift(value(1))) / size as f64,
                    w: value(2).exp() * w,
                    h: value(3).exp() * h,
                };
                if boxes.iter().any(|(_, truth)| predicted.overlap(truth) > ignore_thresh) {
                    *wanted = None;
                }
            }
            for &(t, truth) in &boxes {
                let pixel = |v: f64| ((v * size as f64) as usize).min(size - 1);
                let (column, row) = (pixel(truth.x), pixel(truth.y));
                let centred = Middle { x: 0.0, y: 0.0, ..truth };
                let mut best = (0, 0.0);
                for a in 0..anchors.len() / 2 {
                    let (w, h) = anchor(a);
                    let like = Middle { x: 0.0, y: 0.0, w, h }.overlap(&centred);
                    if like > best.1 {
                        best = (a, like);
                    }
                }
                let Some(mask) = anchor_mask.iter().position(|&m| m as usize == best.0) else { continue };
                let (score, at, (w, h)) = (scores[t], row * size + column, anchor(best.0));
                let weight = (2.0 - truth.w * truth.h) * score;
                logistic.push(place(mask, 0, at), truth.x * size as f64 - column as f64, weight);
                logistic.push(place(mask, 1, at), truth.y * size as f64 - row as f64, weight);
                linear.push(place(mask, 2, at), (truth.w / w).ln(), weight);
                linear.push(place(mask, 3, at), (truth.h / h).ln(), weight);
                for k in 0..class_num {
                    let is_it = labels[t] == k as f64;
                    logistic.push(place(mask, 5 + k, at), if is_it { 1.0 - smooth } else { smooth }, score);
                }
                wanted[mask * plane + at] = Some(score);
            }
            for (i, wanted) in wanted.into_iter().enumerate() {
                let place = place(i / plane, 4, i % plane);
                match wanted {
                    Some(score) if score > 1e-5 => logistic.push(place, 1.0, score),
                    Some(score) if score > -0.5 => logistic.push(place, 0.0, 1.0),
                    _ => {}
                }
            }
        }
        let cross_entropy = |x: &Tensor, t: &Tensor| x.try_binary_cross_entropy_with_logits(t, None, "none", None);
        let distance = |x: &Tensor, t: &Tensor| x.try_subtract(t)?.try_abs();
        logistic.sum(x, n, cross_entropy)?.try_add(linear.sum(x, n, distance)?)
    };
    run().map_err(|e: Error| e.in_op("yolo_loss"))
}
