//! Windows on images, and convolutions.

use super::padding::padded;
use super::products::centred;
use crate::given::Given;
use crate::onnx::eval::Item;
use crate::onnx::export::Writer;
use crate::onnx::node::{Call, call, one, op, shape_of};
use sampan_core::{DType, Result, Tensor, Value};
use sampan_io::onnx::model::Attr;

/// How windows lie on an image: for each axis of it.
pub(super) struct Windows {
    pub kernel: Vec<i64>,
    pub strides: Vec<i64>,
    pub dilations: Vec<i64>,
    pub begins: Vec<i64>,
    pub ends: Vec<i64>,
}

impl Windows {
    pub fn new(c: &Call, x: &Tensor, kernel: Vec<i64>) -> Result<Windows> {
        let n = x.ndim().saturating_sub(2);
        if n == 0 || kernel.len() != n || kernel.iter().any(|k| *k < 1) {
            return Err(c.wrong(format!("a window of {kernel:?} on a tensor of {} axes", x.ndim())));
        }
        let each = |name: &str, default: i64| c.ints(name).filter(|v| v.len() == n).unwrap_or_else(|| vec![default; n]);
        let (strides, dilations) = (each("strides", 1), each("dilations", 1));
        if strides.iter().chain(&dilations).any(|s| *s < 1) {
            return Err(c.wrong("strides and dilations are at least 1"));
        }
        let mut w = Windows { kernel, strides, dilations, begins: vec![0; n], ends: vec![0; n] };
        match c.text("auto_pad", "NOTSET").as_str() {
            "NOTSET" | "" => {
                if let Some(pads) = c.ints("pads").filter(|p| p.len() == 2 * n) {
                    (w.begins, w.ends) = (pads[..n].to_vec(), pads[n..].to_vec());
                }
            }
            "VALID" => {}
            same => {
                for i in 0..n {
                    let (extent, stride) = (x.shape()[i + 2] as i64, w.strides[i]);
                    let out = (extent + stride - 1) / stride;
                    let total = ((out - 1) * stride + w.reach(i) - extent).max(0);
                    w.begins[i] = if same == "SAME_LOWER" { (total + 1) / 2 } else { total / 2 };
                    w.ends[i] = total - w.begins[i];
                }
            }
        }
        Ok(w)
    }

    pub fn rank(&self) -> usize {
        self.kernel.len()
    }

    /// How far a window reaches along an axis.
    pub fn reach(&self, i: usize) -> i64 {
        (self.kernel[i] - 1) * self.dilations[i] + 1
    }

    pub fn symmetric(&self) -> bool {
        self.begins == self.ends && self.begins.iter().all(|p| *p >= 0)
    }

    /// Padding as our ops take it: one number for each axis if both sides are alike, else two.
    pub fn padding(&self) -> Vec<i64> {
        match self.symmetric() {
            true => self.begins.clone(),
            false => self.begins.iter().zip(&self.ends).flat_map(|(b, e)| [*b, *e]).collect(),
        }
    }

    /// The extents of the result. With `ceil` the last window may hang over, if it begins inside.
    pub fn outputs(&self, x: &Tensor, ceil: bool) -> Vec<i64> {
        let one = |i: usize| {
            let (extent, stride) = (x.shape()[i + 2] as i64, self.strides[i]);
            let free = extent + self.begins[i] + self.ends[i] - self.reach(i);
            let out = if ceil { (free + stride - 1).div_euclid(stride) } else { free.div_euclid(stride) } + 1;
            let beyond = ceil && (out - 1) * stride >= extent + self.begins[i];
            (out - i64::from(beyond)).max(0)
        };
        (0..self.rank()).map(one).collect()
    }

    /// The image with its padding, as long as the last window reaches.
    pub fn laid_out(&self, x: &Tensor, out: &[i64], value: f64) -> Result<Tensor> {
        let mut ends = vec![0; x.ndim()];
        let mut begins = vec![0; x.ndim()];
        for i in 0..self.rank() {
            let needed = (out[i] - 1) * self.strides[i] + self.reach(i);
            begins[i + 2] = self.begins[i];
            ends[i + 2] = needed - x.shape()[i + 2] as i64 - self.begins[i];
        }
        padded(x, &begins, &ends, "constant", value)
    }

    /// The elements of all windows, one tensor for each place in the window.
    pub fn places(&self, x: &Tensor, out: &[i64]) -> Result<Vec<Tensor>> {
        let n = self.rank();
        let axes = (2..2 + n as i64).collect::<Vec<_>>();
        let count = self.kernel.iter().product::<i64>();
        let one = |k: i64| {
            let (mut rest, mut starts, mut ends) = (k, vec![0; n], vec![0; n]);
            for i in (0..n).rev() {
                starts[i] = rest % self.kernel[i] * self.dilations[i];
                ends[i] = starts[i] + (out[i] - 1) * self.strides[i] + 1;
                rest /= self.kernel[i];
            }
            op!("strided_slice", x, axes.clone(), starts, ends, self.strides.clone())
        };
        (0..count).map(one).collect()
    }
}

fn conv(c: &Call, x: &Tensor, weight: &Tensor, bias: Option<&Tensor>) -> Result<Tensor> {
    let kernel = shape_of(weight).get(2..).unwrap_or(&[]).to_vec();
    let w = Windows::new(c, x, kernel)?;
    let mut x = x.clone();
    let mut padding = w.padding();
    if w.rank() != 2 && !w.symmetric() {
        let zeros = [0; 2];
        let (begins, ends) = ([&zeros[..], &w.begins].concat(), [&zeros[..], &w.ends].concat());
        x = padded(&x, &begins, &ends, "constant", 0.0)?;
        padding = vec![0; w.rank()];
    }
    let name = match w.rank() {
        1 => "conv1d",
        2 => "conv2d",
        3 => "conv3d",
        n => return Err(c.lacking(format!("a convolution over {n} axes"))),
    };
    let bias = bias.map_or(Value::None, Value::from);
    op!(name, x, weight, bias, w.strides.clone(), padding, w.dilations.clone(), c.int("group", 1))
}

fn conv_transpose(c: &Call) -> Result<Tensor> {
    let (x, weight, bias) = (c.x(0)?, c.x(1)?, c.maybe(2));
    let kernel = shape_of(weight).get(2..).unwrap_or(&[]).to_vec();
    let mut w = Windows::new(c, x, kernel)?;
    let n = w.rank();
    let extra = c.ints("output_padding").filter(|v| v.len() == n).unwrap_or_else(|| vec![0; n]);
    let auto = c.text("auto_pad", "NOTSET");
    let whole = |i: usize| (x.shape()[i + 2] as i64 - 1) * w.strides[i] + w.reach(i);
    let wanted = c.ints("output_shape").map(|s| s[s.len().saturating_sub(n)..].to_vec());
    let wanted = wanted.or_else(|| {
        let same = auto.starts_with("SAME");
        same.then(|| (0..n).map(|i| x.shape()[i + 2] as i64 * w.strides[i]).collect::<Vec<_>>())
    });
    if let Some(wanted) = wanted.filter(|s| s.len() == n) {
        let pads = (0..n).map(|i| whole(i) + extra[i] - wanted[i]).collect::<Vec<_>>();
        for (i, total) in pads.into_iter().enumerate() {
            let small = total.div_euclid(2);
            (w.begins[i], w.ends[i]) =
                if auto == "SAME_UPPER" { (small, total - small) } else { (total - small, small) };
        }
    }
    let name = match n {
        1 => "conv1d_transpose",
        2 => "conv2d_transpose",
        3 => "conv3d_transpose",
        n => return Err(c.lacking(format!("a convolution over {n} axes"))),
    };
    let groups = c.int("group", 1);
    let fits = w.symmetric() && (0..n).all(|i| extra[i] < w.strides[i].max(w.dilations[i]));
    if fits {
        let bias = bias.map_or(Value::None, Value::from);
        return op!(name, x, weight, bias, w.strides.clone();
            padding = w.begins.clone(), output_padding = extra, groups = groups, dilation = w.dilations.clone());
    }
    // All of it, then without what is cut off.
    let y = op!(name, x, weight; stride = w.strides.clone(), groups = groups, dilation = w.dilations.clone())?;
    let (mut begins, mut ends) = (vec![0; n + 2], vec![0; n + 2]);
    for i in 0..n {
        (begins[i + 2], ends[i + 2]) = (-w.begins[i], extra[i] - w.ends[i]);
    }
    let y = padded(&y, &begins, &ends, "constant", 0.0)?;
    match bias {
        Some(b) => {
            let mut shape = vec![1; n + 2];
            shape[1] = -1;
            op!("add", y, op!("reshape", b, shape)?)
        }
        None => Ok(y),
    }
}

fn col2im(c: &Call) -> Result<Tensor> {
    let (x, image, block) = (c.x(0)?, c.numbers(1)?, c.numbers(2)?);
    let n = image.len();
    if n == 0 || block.len() != n || x.ndim() != 3 {
        return Err(c.wrong("columns are [batch, channels × window, windows]"));
    }
    let each = |name: &str, d: i64| c.ints(name).filter(|v| v.len() == n).unwrap_or_else(|| vec![d; n]);
    let (strides, dilations) = (each("strides", 1), each("dilations", 1));
    let pads = c.ints("pads").filter(|p| p.len() == 2 * n).unwrap_or_else(|| vec![0; 2 * n]);
    let area = block.iter().product::<i64>().max(1);
    let (batch, channels) = (x.shape()[0] as i64, x.shape()[1] as i64 / area);
    let padded_extent = |i: usize| image[i] + pads[i] + pads[n + i];
    let out = |i: usize| (padded_extent(i) - (block[i] - 1) * dilations[i] - 1) / strides[i] + 1;
    let rows = (0..n).map(out).collect::<Vec<_>>();
    // The place in the padded image of each element of each window.
    let (mut place, mut step) = (vec![0i64; (area * rows.iter().product::<i64>()) as usize], 1);
    for i in (0..n).rev() {
        let inner: i64 = block[i + 1..].iter().product();
        let row_inner: i64 = rows[i + 1..].iter().product();
        let windows: i64 = rows.iter().product();
        for (at, p) in place.iter_mut().enumerate() {
            let (k, r) = (at as i64 / windows, at as i64 % windows);
            *p += step * (k / inner % block[i] * dilations[i] + r / row_inner % rows[i] * strides[i]);
        }
        step *= padded_extent(i);
    }
    let index = Tensor::try_from_slice(&place, [1, 1, place.len()])?;
    let index = op!("expand", index, [batch, channels, place.len() as i64])?;
    let flat = op!("reshape", x, [batch, channels, -1])?;
    let zeros = op!("full", [batch, channels, step], 0.0, x.dtype())?;
    let y = op!("put_along_axis", zeros, index, flat, 2i64, "add"; broadcast = false)?;
    let whole = [vec![batch, channels], (0..n).map(padded_extent).collect()].concat();
    let cut = |p: &[i64]| [vec![0; 2], p.iter().map(|p| -p).collect()].concat();
    padded(&op!("reshape", y, whole)?, &cut(&pads[..n]), &cut(&pads[n..]), "constant", 0.0)
}

fn conv_integer(c: &Call) -> Result<Tensor> {
    let (x, w) = (centred(c.x(0)?, c.maybe(2), None)?, centred(c.x(1)?, c.maybe(3), Some(0))?);
    op!("cast", conv(c, &x, &w, None)?, DType::Int32)
}

/// A convolution of numbers that are whole, for those who scale it themselves.
pub(super) fn conv_of(c: &Call, x: &Tensor, weight: &Tensor, bias: Option<&Tensor>) -> Result<Tensor> {
    conv(c, x, weight, bias)
}

fn deform_conv(c: &Call) -> Result<Tensor> {
    let (x, weight, offset) = (c.x(0)?, c.x(1)?, c.x(2)?);
    let w = Windows::new(c, x, shape_of(weight).get(2..).unwrap_or(&[]).to_vec())?;
    if !w.symmetric() || w.rank() != 2 {
        return Err(c.lacking("padding that differs between the sides, or images of other than two axes"));
    }
    let maybe = |i| c.maybe(i).map_or(Value::None, Value::from);
    let args = vec![
        x.into(),
        offset.into(),
        weight.into(),
        maybe(3),
        w.strides.clone().into(),
        w.begins.clone().into(),
        w.dilations.clone().into(),
        c.int("offset_group", 1).into(),
        c.int("group", 1).into(),
        maybe(4),
    ];
    Ok(call("deform_conv2d", args, vec![])?.swap_remove(0))
}

pub fn read(c: &Call) -> Result<Option<Vec<Item>>> {
    one(match c.node.op.as_str() {
        "Conv" => conv(c, c.x(0)?, c.x(1)?, c.maybe(2))?,
        "ConvTranspose" => conv_transpose(c)?,
        "ConvInteger" => conv_integer(c)?,
        "DeformConv" => deform_conv(c)?,
        "Col2Im" => col2im(c)?,
        _ => return Ok(None),
    })
}

/// Windows of a call as attributes of a node.
pub(super) fn window_attrs(call: &Given, n: usize) -> Option<Vec<(&'static str, Attr)>> {
    let (pads, word) = call.padding(n)?;
    let mut attrs = Vec::new();
    match word {
        "SAME" => attrs.push(("auto_pad", Attr::Text("SAME_UPPER".into()))),
        "VALID" => {}
        _ => {
            let side = |k: usize| pads.chunks(2).map(|p| p[k]).collect::<Vec<_>>();
            let all = if pads.len() == n { pads.repeat(2) } else { [side(0), side(1)].concat() };
            if all.len() != 2 * n {
                return None;
            }
            attrs.push(("pads", Attr::Ints(all)));
        }
    }
    Some(attrs)
}

fn write_conv(w: &mut Writer, call: &Given, n: usize, transposed: bool) -> Result<Option<String>> {
    let (Some(x), Some(f)) = (call.id("x"), call.id("weight")) else { return Ok(None) };
    let last = call.text("data_format").is_some_and(|f| f.ends_with('C'));
    let (Some(mut attrs), Some(strides)) = (window_attrs(call, n), call.each("stride", n, 1)) else { return Ok(None) };
    let Some(dilations) = call.each("dilation", n, 1) else { return Ok(None) };
    let same = attrs.iter().any(|(name, _)| *name == "auto_pad");
    if call.arg("output_size").is_some() || (transposed && same) || w.known(call.out()).dtype.is_complex() {
        return Ok(None);
    }
    let Some(kernel) = w.known(f).dims.get(2..) else { return Ok(None) };
    let kernel = kernel.iter().map(|d| d.fixed().map(|n| n as i64)).collect::<Option<Vec<_>>>();
    attrs.extend(kernel.map(|k| ("kernel_shape", Attr::Ints(k))));
    attrs.push(("strides", Attr::Ints(strides)));
    attrs.push(("dilations", Attr::Ints(dilations)));
    attrs.push(("group", Attr::Int(call.int("groups").unwrap_or(1))));
    if transposed {
        let Some(extra) = call.each("output_padding", n, 0) else { return Ok(None) };
        attrs.push(("output_padding", Attr::Ints(extra)));
    }
    let mut name = w.name(x)?;
    if last {
        name = super::layers::moved(w, name, n + 2, false);
    }
    let mut inputs = vec![name, w.name(f)?];
    if let Some(bias) = call.id("bias") {
        inputs.push(w.name(bias)?);
    }
    let y = w.node(if transposed { "ConvTranspose" } else { "Conv" }, inputs, attrs);
    Ok(Some(if last { super::layers::moved(w, y, n + 2, true) } else { y }))
}

pub fn write(w: &mut Writer, call: &Given) -> Result<bool> {
    let y = match call.name() {
        "conv1d" => write_conv(w, call, 1, false)?,
        "conv2d" => write_conv(w, call, 2, false)?,
        "conv3d" => write_conv(w, call, 3, false)?,
        "conv1d_transpose" => write_conv(w, call, 1, true)?,
        "conv2d_transpose" => write_conv(w, call, 2, true)?,
        "conv3d_transpose" => write_conv(w, call, 3, true)?,
        _ => None,
    };
    match y {
        Some(y) => w.bind(call.out(), y),
        None => return Ok(false),
    }
    Ok(true)
}
