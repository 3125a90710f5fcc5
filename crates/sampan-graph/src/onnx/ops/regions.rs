//! Boxes, grids and words: what vision and text need beside layers.

use crate::given::Given;
use crate::onnx::eval::Item;
use crate::onnx::export::Writer;
use crate::onnx::node::{Call, one, op};
use crate::record::unheard;
use sampan_core::{DType, Result, Tensor};
use sampan_io::onnx::model::Attr;

fn values(t: &Tensor) -> Result<Vec<f64>> {
    unheard(|| t.try_cast(DType::Float64)?.try_to_vec::<f64>())
}

/// A box by its corners, the smaller first.
fn corners(b: &[f64], centred: bool) -> [f64; 4] {
    if centred {
        let (x, y, w, h) = (b[0], b[1], b[2], b[3]);
        return [y - h / 2.0, x - w / 2.0, y + h / 2.0, x + w / 2.0];
    }
    [b[0].min(b[2]), b[1].min(b[3]), b[0].max(b[2]), b[1].max(b[3])]
}

fn overlap(a: [f64; 4], b: [f64; 4]) -> f64 {
    let side = |i: usize| (a[i + 2].min(b[i + 2]) - a[i].max(b[i])).max(0.0);
    let area = |b: [f64; 4]| (b[2] - b[0]) * (b[3] - b[1]);
    let both = side(0) * side(1);
    let all = area(a) + area(b) - both;
    if all > 0.0 { both / all } else { 0.0 }
}

fn non_max_suppression(c: &Call) -> Result<Tensor> {
    let (boxes, scores) = (c.x(0)?, c.x(1)?);
    let ([batch, count, 4], [_, classes, _]) = (boxes.shape(), scores.shape()) else {
        return Err(c.wrong("boxes are [batch, count, 4], scores [batch, classes, count]"));
    };
    let (batch, count, classes) = (*batch, *count, *classes);
    if scores.shape() != [batch, classes, count] {
        return Err(c.wrong("boxes and scores do not belong together"));
    }
    let number = |i: usize, none: f64| if c.maybe(i).is_some() { c.number(i) } else { Ok(none) };
    let (most, limit, least) = (number(2, 0.0)?, number(3, 0.0)?, number(4, f64::NEG_INFINITY)?);
    let centred = c.flag("center_point_box");
    let (boxes, scores) = (values(boxes)?, values(scores)?);
    let mut found: Vec<i64> = Vec::new();
    for b in 0..batch {
        for class in 0..classes {
            let score = |i: usize| scores[(b * classes + class) * count + i];
            let place = |i: usize| corners(&boxes[(b * count + i) * 4..][..4], centred);
            let mut order = (0..count).filter(|&i| score(i) > least).collect::<Vec<_>>();
            order.sort_by(|&i, &j| score(j).total_cmp(&score(i)));
            let mut kept: Vec<usize> = Vec::new();
            for i in order {
                if kept.len() >= most.max(0.0) as usize {
                    break;
                }
                if kept.iter().all(|&k| overlap(place(k), place(i)) <= limit) {
                    kept.push(i);
                    found.extend([b as i64, class as i64, i as i64]);
                }
            }
        }
    }
    Tensor::try_from_slice(&found, [found.len() / 3, 3])
}

/// Pools of regions by bilinear sampling.
fn roi_align(c: &Call) -> Result<Tensor> {
    let (x, rois, maps) = (c.x(0)?, c.x(1)?, c.numbers(2)?);
    let &[_, channels, h, w] = x.shape() else { return Err(c.wrong("it takes a batch of images")) };
    let (rows, columns) = (c.int("output_height", 1).clamp(1, 4096), c.int("output_width", 1).clamp(1, 4096));
    let (scale, ratio) = (c.float("spatial_scale", 1.0), c.int("sampling_ratio", 0));
    let mode = if c.opset() < 16 { "output_half_pixel" } else { "half_pixel" };
    let half = c.text("coordinate_transformation_mode", mode) == "half_pixel";
    let max = c.text("mode", "avg") == "max";
    let offset = if half { 0.5 } else { 0.0 };
    let rois = values(rois)?;
    let mut pooled = Vec::new();
    for (r, &map) in rois.chunks_exact(4).zip(&maps) {
        let corner = |i: usize| r[i] * scale - offset;
        let (mut wide, mut high) = (corner(2) - corner(0), corner(3) - corner(1));
        if !half {
            (wide, high) = (wide.max(1.0), high.max(1.0));
        }
        let image = op!("reshape", op!("slice", x, [0i64], [map], [map + 1])?, [channels as i64, (h * w) as i64])?;
        let (step_y, step_x) = (high / rows as f64, wide / columns as f64);
        let count = |step: f64| if ratio > 0 { ratio as usize } else { (step.ceil() as usize).clamp(1, 1 << 10) };
        let (ny, nx) = (count(step_y), count(step_x));
        let axis = |start: f64, step: f64, n: usize, parts: i64, extent: usize| {
            let mut all = Vec::new();
            for i in 0..parts {
                for k in 0..n {
                    let at = start + (i as f64 + (k as f64 + 0.5) / n as f64) * step;
                    let inside = at >= -1.0 && at <= extent as f64;
                    let at = at.clamp(0.0, extent as f64 - 1.0);
                    let low = at.floor() as usize;
                    all.push((low, (low + 1).min(extent - 1), at - low as f64, inside));
                }
            }
            all
        };
        let (ys, xs) = (axis(corner(1), step_y, ny, rows, h), axis(corner(0), step_x, nx, columns, w));
        // Four pixels for each sample, and their shares.
        let (mut pixels, mut shares) = (vec![Vec::new(); 4], vec![Vec::new(); 4]);
        for &(y0, y1, dy, inside_y) in &ys {
            for &(x0, x1, dx, inside_x) in &xs {
                let inside = f64::from(u8::from(inside_y && inside_x));
                let four = [
                    (y0, x0, (1.0 - dy) * (1.0 - dx)),
                    (y0, x1, (1.0 - dy) * dx),
                    (y1, x0, dy * (1.0 - dx)),
                    (y1, x1, dy * dx),
                ];
                for (k, (y, x, share)) in four.into_iter().enumerate() {
                    pixels[k].push((y * w + x) as i64);
                    shares[k].push(share * inside);
                }
            }
        }
        let mut sampled: Option<Tensor> = None;
        for (p, s) in pixels.iter().zip(&shares) {
            let part = op!("index_select", &image, Tensor::try_from_slice(p, [p.len()])?, 1i64)?;
            let share = Tensor::try_from_slice(s, [s.len()])?.try_cast(x.dtype())?;
            let part = op!("multiply", part, share)?;
            sampled = Some(match sampled {
                None => part,
                // The largest is taken over the shares themselves, as ONNX has it.
                Some(sum) if max => op!("maximum", sum, part)?,
                Some(sum) => op!("add", sum, part)?,
            });
        }
        let sampled = sampled.ok_or_else(|| c.wrong("a region without samples"))?;
        let shape = [channels as i64, rows, ny as i64, columns, nx as i64];
        let name = if max { "max" } else { "mean" };
        pooled.push(op!(name, op!("reshape", sampled, shape)?; axis = [2i64, 4])?);
    }
    if pooled.is_empty() {
        return op!("full", [0, channels as i64, rows, columns], 0.0, x.dtype());
    }
    op!("stack", pooled, 0i64)
}

fn grid_sample(c: &Call) -> Result<Tensor> {
    let (x, grid) = (c.x(0)?, c.x(1)?);
    let mode = match c.text("mode", "linear").as_str() {
        "linear" | "bilinear" => "bilinear",
        "cubic" | "bicubic" => "bicubic",
        _ => "nearest",
    };
    let padding = c.text("padding_mode", "zeros");
    op!("grid_sample", x, grid, mode, padding, c.flag("align_corners"))
}

/// Counts of groups of words, as an index of a text.
fn tf_idf(c: &Call) -> Result<Tensor> {
    let x = c.x(0)?;
    let words = c.numbers(0)?;
    let pool = c.ints("pool_int64s").ok_or_else(|| c.lacking("words of text"))?;
    let (counts, places) = (c.ints("ngram_counts").unwrap_or_default(), c.ints("ngram_indexes").unwrap_or_default());
    let (least, most) = (c.int("min_gram_length", 1).max(1) as usize, c.int("max_gram_length", 1).max(1) as usize);
    let skips = c.int("max_skip_count", 0).max(0) as usize;
    let weights = c.floats("weights");
    let mode = c.text("mode", "TF");
    let width = places.iter().max().map_or(0, |m| m + 1) as usize;
    if width > 1 << 24 {
        return Err(c.wrong("an index of that size"));
    }
    // The groups: all of one word, all of two …
    let mut grams: Vec<(&[i64], usize)> = Vec::new();
    for (k, &start) in counts.iter().enumerate() {
        let end = counts.get(k + 1).map_or(pool.len(), |e| *e as usize);
        let part = pool.get(start as usize..end).ok_or_else(|| c.wrong("counts beyond the pool"))?;
        for gram in part.chunks_exact(k + 1) {
            let at = *places.get(grams.len()).ok_or_else(|| c.wrong("more groups than places"))?;
            grams.push((gram, at as usize));
        }
    }
    let row = if x.ndim() == 2 { x.shape()[1] } else { x.numel() };
    let mut all = Vec::new();
    for line in words.chunks(row.max(1)) {
        let mut found = vec![0f64; width];
        let mut ones_counted = false;
        for skip in 0..=skips {
            for length in least..=most {
                if length == 1 && std::mem::replace(&mut ones_counted, true) {
                    continue;
                }
                let reach = (length - 1) * (skip + 1);
                for start in 0..line.len().saturating_sub(reach) {
                    let gram = (0..length).map(|i| line[start + i * (skip + 1)]).collect::<Vec<_>>();
                    for (_, at) in grams.iter().filter(|(g, _)| *g == gram) {
                        found[*at] += 1.0;
                    }
                }
            }
        }
        let weight = |i: usize| {
            weights.as_ref().and_then(|w| w.get(grams.iter().position(|g| g.1 == i)?).copied()).unwrap_or(1.0)
        };
        all.extend(found.iter().enumerate().map(|(i, n)| match mode.as_str() {
            "IDF" => {
                if *n > 0.0 {
                    weight(i)
                } else {
                    0.0
                }
            }
            "TFIDF" => n * weight(i),
            _ => *n,
        }));
    }
    let shape = if x.ndim() == 2 { vec![x.shape()[0], width] } else { vec![width] };
    Tensor::try_from_slice(&all, shape)?.try_cast(DType::Float32)
}

pub fn read(c: &Call) -> Result<Option<Vec<Item>>> {
    one(match c.node.op.as_str() {
        "NonMaxSuppression" => non_max_suppression(c)?,
        "RoiAlign" => roi_align(c)?,
        "GridSample" => grid_sample(c)?,
        "AffineGrid" => op!("affine_grid", c.x(0)?, c.numbers(1)?, c.flag("align_corners"))?,
        "TfIdfVectorizer" => tf_idf(c)?,
        _ => return Ok(None),
    })
}

pub fn write(w: &mut Writer, call: &Given) -> Result<bool> {
    if call.name() != "grid_sample" || w.opset() < 16 {
        return Ok(false);
    }
    let (Some(x), Some(grid)) = (call.id("x"), call.id("grid")) else { return Ok(false) };
    let linear = if w.opset() < 20 { "bilinear" } else { "linear" };
    let mode = if call.text("mode") == Some("nearest") { "nearest" } else { linear };
    let padding = call.text("padding_mode").unwrap_or("zeros").to_string();
    let corners = call.arg("align_corners").is_none() || call.bool("align_corners");
    let attrs = vec![
        ("mode", Attr::Text(mode.into())),
        ("padding_mode", Attr::Text(padding.into_bytes())),
        ("align_corners", Attr::Int(i64::from(corners))),
    ];
    let (x, grid) = (w.name(x)?, w.name(grid)?);
    let y = w.node("GridSample", vec![x, grid], attrs);
    w.bind(call.out(), y);
    Ok(true)
}
