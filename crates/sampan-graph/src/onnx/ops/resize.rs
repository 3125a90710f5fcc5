//! Images in other sizes.

use crate::given::Given;
use crate::graph::Size;
use crate::onnx::eval::Item;
use crate::onnx::export::Writer;
use crate::onnx::node::{Call, one, op};
use crate::record::unheard;
use sampan_core::{DType, Result, Tensor, Value as Plain};
use sampan_io::onnx::model::Attr;
use smallvec::SmallVec;

/// What happens along one axis.
struct Axis {
    from: usize,
    to: usize,
    scale: f64,
    region: Option<(f64, f64)>,
}

/// Elements of an axis that is made larger, at most: a file may ask for any number.
const MOST: usize = 1 << 22;

/// How places of the result are places of the input.
struct Rules {
    coordinates: String,
    nearest: String,
    mode: String,
    cubic: f64,
    exclude_outside: bool,
    antialias: bool,
    outside: f64,
}

impl Rules {
    fn place(&self, axis: &Axis, i: usize) -> f64 {
        let (i, scale) = (i as f64, axis.scale);
        let (from, to) = (axis.from as f64, axis.to as f64);
        let length = scale * from;
        match self.coordinates.as_str() {
            "asymmetric" => i / scale,
            "align_corners" => {
                if length == 1.0 {
                    0.0
                } else {
                    i * (from - 1.0) / (length - 1.0)
                }
            }
            "pytorch_half_pixel" => {
                if length > 1.0 {
                    (i + 0.5) / scale - 0.5
                } else {
                    0.0
                }
            }
            "tf_half_pixel_for_nn" => (i + 0.5) / scale,
            "half_pixel_symmetric" => {
                let adjustment = to / length;
                (from / 2.0) * (1.0 - adjustment) + (i + 0.5) / scale - 0.5
            }
            "tf_crop_and_resize" => {
                let (start, end) = axis.region.unwrap_or((0.0, 1.0));
                match to > 1.0 {
                    true => start * (from - 1.0) + i * (end - start) * (from - 1.0) / (to - 1.0),
                    false => 0.5 * (start + end) * (from - 1.0),
                }
            }
            _ => (i + 0.5) / scale - 0.5,
        }
    }

    /// The input's element that a place belongs to.
    fn nearest(&self, x: f64) -> f64 {
        match self.nearest.as_str() {
            "floor" => x.floor(),
            "ceil" => x.ceil(),
            "round_prefer_ceil" => (x + 0.5).floor(),
            _ => (x - 0.5).ceil(),
        }
    }

    /// The weights of elements around a place, and the first of them.
    fn weights(&self, axis: &Axis, x: f64) -> (i64, SmallVec<[f64; 4]>) {
        if self.mode == "nearest" {
            return (self.nearest(x) as i64, SmallVec::from_slice(&[1.0]));
        }
        // A smaller image with anti-aliasing takes wider windows.
        let shrink = if self.antialias { axis.scale.min(1.0) } else { 1.0 };
        let support = if self.mode == "cubic" { 2.0 } else { 1.0 } / shrink;
        // No wider than the image, whatever the file says of scales.
        let support = support.min(2.0 * axis.from as f64 + 4.0);
        let kernel = |d: f64| {
            let (d, a) = (d.abs(), self.cubic);
            match (self.mode.as_str(), d) {
                ("cubic", d) if d <= 1.0 => (a + 2.0) * d.powi(3) - (a + 3.0) * d * d + 1.0,
                ("cubic", d) if d < 2.0 => a * d.powi(3) - 5.0 * a * d * d + 8.0 * a * d - 4.0 * a,
                ("cubic", _) => 0.0,
                (_, d) => (1.0 - d).max(0.0),
            }
        };
        let first = (x - support).floor() as i64 + 1;
        let last = (x + support).ceil() as i64 - 1;
        let mut all = (first..=last.max(first)).map(|j| kernel((j as f64 - x) * shrink)).collect::<SmallVec<_>>();
        if self.exclude_outside {
            for (k, w) in all.iter_mut().enumerate() {
                let j = first + k as i64;
                if j < 0 || j >= axis.from as i64 {
                    *w = 0.0;
                }
            }
        }
        let sum: f64 = all.iter().sum();
        all.iter_mut().for_each(|w| *w /= sum);
        (first, all)
    }

    /// The result along one axis: each element a sum of the input's.
    fn along(&self, x: &Tensor, at: usize, axis: &Axis) -> Result<Tensor> {
        let (n, m) = (axis.from as i64, axis.to);
        if self.mode == "nearest" && self.coordinates != "tf_crop_and_resize" {
            let place = |i| self.weights(axis, self.place(axis, i)).0.clamp(0, n - 1);
            let places = (0..m).map(place).collect::<Vec<_>>();
            return op!("index_select", x, Tensor::try_from_slice(&places, [m])?, at);
        }
        let mut matrix = vec![0f64; m * axis.from];
        let mut beyond = vec![0f64; m];
        for i in 0..m {
            let place = self.place(axis, i);
            if self.coordinates == "tf_crop_and_resize" && (place < 0.0 || place > n as f64 - 1.0) {
                beyond[i] = 1.0;
                continue;
            }
            let (first, weights) = self.weights(axis, place);
            for (k, w) in weights.into_iter().enumerate() {
                let j = (first + k as i64).clamp(0, n - 1) as usize;
                matrix[i * axis.from + j] += w;
            }
        }
        let dtype = if x.dtype().is_float() { x.dtype() } else { DType::Float32 };
        let matrix = unheard(|| Tensor::try_from_slice(&matrix, [m, axis.from])?.try_cast(dtype))?;
        let turned = op!("moveaxis", op!("cast", x, dtype)?, at as i64, -1i64)?;
        let mut y = op!("matmul", turned, matrix, false, true)?;
        if beyond.iter().any(|b| *b != 0.0) {
            let fill = beyond.iter().map(|b| b * self.outside).collect::<Vec<_>>();
            y = op!("add", y, unheard(|| Tensor::try_from_slice(&fill, [m])?.try_cast(dtype))?)?;
        }
        let y = op!("moveaxis", y, -1i64, at as i64)?;
        if y.dtype() == x.dtype() { Ok(y) } else { op!("cast", y, x.dtype()) }
    }
}

/// One of our own calls does what is asked, if it is the usual.
fn usual(rules: &Rules, x: &Tensor, axes: &[Axis], by_scale: bool) -> Result<Option<Tensor>> {
    let image = x.ndim() == 4 && x.dtype().is_float();
    let outer = image && axes[..2].iter().all(|a| a.from == a.to);
    let exact = axes.iter().all(|a| a.to as f64 == a.from as f64 * a.scale);
    let special = rules.exclude_outside || rules.antialias || !outer || !exact;
    let (mode, corners) = match (rules.mode.as_str(), rules.coordinates.as_str()) {
        ("nearest", "asymmetric") if rules.nearest == "floor" => ("nearest", false),
        ("linear", "half_pixel") => ("bilinear", false),
        ("linear", "pytorch_half_pixel") if axes[2..].iter().all(|a| a.to > 1) => ("bilinear", false),
        ("linear", "align_corners") => ("bilinear", true),
        ("cubic", "half_pixel") if rules.cubic == -0.75 => ("bicubic", false),
        ("cubic", "align_corners") if rules.cubic == -0.75 => ("bicubic", true),
        _ => return Ok(None),
    };
    if special {
        return Ok(None);
    }
    let y = match by_scale {
        true => {
            op!("interpolate", x; scale_factor = vec![axes[2].scale, axes[3].scale], mode = mode, align_corners = corners)
        }
        false => {
            op!("interpolate", x; size = vec![axes[2].to as i64, axes[3].to as i64], mode = mode, align_corners = corners)
        }
    };
    y.map(Some)
}

fn floats(c: &Call, i: usize) -> Result<Option<Vec<f64>>> {
    let Some(t) = c.maybe(i) else { return Ok(None) };
    let all = unheard(|| t.try_cast(DType::Float64)?.try_to_vec::<f64>())?;
    Ok(Some(all).filter(|v| !v.is_empty()))
}

fn resize(c: &Call) -> Result<Tensor> {
    let x = c.x(0)?;
    let upsample = c.node.op == "Upsample";
    let early = c.opset() < 11 || upsample;
    let at = if early { (None, 1, usize::MAX) } else { (Some(1), 2, 3) };
    let scales = match (floats(c, at.1)?, c.floats("scales")) {
        (Some(s), _) | (None, Some(s)) => Some(s),
        (None, None) => None,
    };
    let sizes = floats(c, at.2)?;
    let region = at.0.map(|i| floats(c, i)).transpose()?.flatten();
    let rank = x.ndim();
    let on = match c.ints("axes") {
        Some(axes) => axes.into_iter().map(|a| c.axis(a, rank)).collect::<Result<Vec<_>>>()?,
        None => (0..rank).collect(),
    };
    let given = scales.as_ref().or(sizes.as_ref()).ok_or_else(|| c.wrong("there are neither scales nor sizes"))?;
    if given.len() != on.len() {
        return Err(c.wrong(format!("{} numbers for {} axes", given.len(), on.len())));
    }
    let mut axes = x.shape().iter().map(|&n| Axis { from: n, to: n, scale: 1.0, region: None }).collect::<Vec<_>>();
    let policy = c.text("keep_aspect_ratio_policy", "stretch");
    for (k, &i) in on.iter().enumerate() {
        let axis = &mut axes[i];
        match (&scales, &sizes) {
            (Some(s), _) => (axis.scale, axis.to) = (s[k], (axis.from as f64 * s[k]).floor().max(0.0) as usize),
            (_, Some(s)) => (axis.scale, axis.to) = (s[k] / axis.from as f64, s[k].max(0.0) as usize),
            _ => {}
        }
        axis.region = region.as_ref().filter(|r| r.len() == 2 * on.len()).map(|r| (r[k], r[on.len() + k]));
    }
    if scales.is_none() && policy != "stretch" {
        let all = on.iter().map(|&i| axes[i].scale);
        let scale = if policy == "not_larger" { all.fold(f64::INFINITY, f64::min) } else { all.fold(0.0, f64::max) };
        for &i in &on {
            (axes[i].scale, axes[i].to) = (scale, (scale * axes[i].from as f64).round() as usize);
        }
    }
    let coordinates = if early { "asymmetric" } else { "half_pixel" };
    let mode = c.text("mode", "nearest");
    let rules = Rules {
        coordinates: c.text("coordinate_transformation_mode", coordinates),
        nearest: c.text("nearest_mode", if early { "floor" } else { "round_prefer_floor" }),
        mode: if mode.ends_with("linear") { "linear".into() } else { mode },
        cubic: c.float("cubic_coeff_a", -0.75),
        exclude_outside: c.flag("exclude_outside"),
        antialias: c.flag("antialias"),
        outside: c.float("extrapolation_value", 0.0),
    };
    let wild = |a: &&Axis| !a.scale.is_finite() || a.to > MOST || a.to.saturating_mul(a.from) > 4 * MOST;
    if let Some(axis) = axes.iter().filter(|a| a.from != a.to || a.scale != 1.0).find(wild) {
        return Err(c.wrong(format!("an axis of {} elements cannot be one of {}", axis.from, axis.to)));
    }
    if let Some(y) = usual(&rules, x, &axes, scales.is_some())? {
        return Ok(y);
    }
    let mut y = x.clone();
    for (at, axis) in axes.iter().enumerate() {
        let crop = rules.coordinates == "tf_crop_and_resize" && axis.region.is_some_and(|r| r != (0.0, 1.0));
        if axis.from != axis.to || axis.scale != 1.0 || crop {
            y = rules.along(&y, at, axis)?;
        }
    }
    Ok(y)
}

pub fn read(c: &Call) -> Result<Option<Vec<Item>>> {
    match c.node.op.as_str() {
        "Resize" | "Upsample" => one(resize(c)?),
        _ => Ok(None),
    }
}

pub fn write(w: &mut Writer, call: &Given) -> Result<bool> {
    if !matches!(call.name(), "interpolate" | "upsample") {
        return Ok(false);
    }
    let Some(id) = call.id("x") else { return Ok(false) };
    let (from, out) = (w.known(id).clone(), w.known(call.out()).clone());
    let mode = call.text("mode").unwrap_or("nearest").to_lowercase();
    if call.bool("antialias") || call.text("data_format").is_some_and(|f| f.ends_with('C')) || from.dims.len() < 3 {
        return Ok(false);
    }
    let (corners, align) = (call.bool("align_corners"), call.int("align_mode").unwrap_or(0));
    let (theirs, coordinates) = match mode.as_str() {
        "nearest" if !corners => ("nearest", "asymmetric"),
        "linear" | "bilinear" | "trilinear" if corners => ("linear", "align_corners"),
        "linear" | "bilinear" | "trilinear" if align == 1 => ("linear", "asymmetric"),
        "linear" | "bilinear" | "trilinear" => ("linear", "half_pixel"),
        "bicubic" => ("cubic", if corners { "align_corners" } else { "half_pixel" }),
        _ => return Ok(false),
    };
    let attrs = vec![
        ("mode", Attr::Text(theirs.into())),
        ("coordinate_transformation_mode", Attr::Text(coordinates.into())),
        ("nearest_mode", Attr::Text("floor".into())),
    ];
    let spatial = from.dims.len() - 2;
    let scale = match call.plain("scale_factor") {
        Some(Plain::Float(f)) => Some(vec![*f; spatial]),
        Some(Plain::Int(i)) => Some(vec![*i as f64; spatial]),
        Some(Plain::Floats(f)) => Some(f.clone()),
        Some(Plain::Ints(f)) => Some(f.iter().map(|&i| i as f64).collect()),
        _ => None,
    };
    let x = w.name(id)?;
    let y = match scale.filter(|s| s.len() == spatial && !call.bool("recompute_scale_factor")) {
        Some(scale) => {
            let all = [1.0, 1.0].into_iter().chain(scale).map(|s| s as f32).collect::<Vec<_>>();
            let scales = w.tensor(&Tensor::try_from_slice(&all, [all.len()])?);
            w.node("Resize", vec![x, String::new(), scales], attrs)
        }
        None => {
            let (Some(spatial), [n, c, ..]) = (out.dims.get(2..), &from.dims[..]) else { return Ok(false) };
            let sizes = match spatial.iter().map(|d| d.fixed()).collect::<Option<Vec<_>>>() {
                Some(all) => all.into_iter().map(|n| Size::fixed(n as i64)).collect(),
                None => match call.sizes("size") {
                    Some(sizes) => sizes,
                    None => return Ok(false),
                },
            };
            let outer = [n, c].into_iter().enumerate();
            let outer = outer.map(|(i, d)| d.fixed().map_or(Size::extent(id, i), |n| Size::fixed(n as i64)));
            let sizes = w.sizes(&outer.chain(sizes).collect::<Vec<_>>())?;
            w.node("Resize", vec![x, String::new(), String::new(), sizes], attrs)
        }
    };
    w.bind(call.out(), y);
    Ok(true)
}
