//! Images at other sizes: interpolation along each axis.

use crate::ops::pool_core::need_float;
use crate::ops::prelude::*;
use crate::ops::windows::channels_last;
use sampan_kernels::resample::{self, Corners, Method, Table};

/// Names of methods and of places as the primitive takes them.
fn method_of(word: &str) -> Result<Method> {
    Ok(match word {
        "nearest" => Method::Nearest,
        "linear" => Method::Linear,
        "cubic" => Method::Cubic,
        "area" => Method::Area,
        _ => bail!("method must be nearest, linear, cubic or area, got {word:?}"),
    })
}

fn corners_of(word: &str) -> Result<Corners> {
    Ok(match word {
        "aligned" => Corners::Aligned,
        "half_pixel" => Corners::HalfPixel,
        "asymmetric" => Corners::Asymmetric,
        _ => bail!("corners must be aligned, half_pixel or asymmetric, got {word:?}"),
    })
}

/// Interpolates axes `first`, `first + 1` … from the extents `input` to the extents `output`; `transposed` does the
/// transpose, from `output` to `input`, which is the gradient. `scale` holds scale factors, or nothing.
#[op(
    internal,
    module = "nn.functional",
    samples = resample_samples,
    peer = "lambda x, first, before, after: F.interpolate(torch.unsqueeze(x, 0), after, mode='linear')[0]"
)]
fn resample_axes(
    cx: &Cx,
    x: &Tensor,
    first: i64,
    input: &[i64],
    output: &[i64],
    #[default(Vec::<f64>::new())] scale: &[f64],
    #[default("linear")] method: &str,
    #[default("half_pixel")] corners: &str,
    #[default(false)] antialias: bool,
    #[default(false)] transposed: bool,
) -> Result<Tensor> {
    let dims = input.len();
    let (how, place) = (method_of(method)?, corners_of(corners)?);
    ensure!(output.len() == dims && (scale.is_empty() || scale.len() == dims), "as many sizes as axes are needed");
    ensure!(
        first >= 0 && first as usize <= x.ndim() && first as usize + dims <= x.ndim(),
        "x has no {dims} axes from axis {first} on"
    );
    need_float(x)?;
    let (from, to) = if transposed { (output, input) } else { (input, output) };
    let axes = first as usize..first as usize + dims;
    let have: Vec<i64> = x.shape()[axes.clone()].iter().map(|&n| n as i64).collect();
    ensure!(have == from, "the axes have extents {have:?}, not {from:?}");
    ensure!(input.iter().all(|&n| n > 0), "x has no elements to interpolate: {input:?}");
    let mut shape = x.shape_vec();
    shape[axes.clone()].copy_from_slice(&crate::ops::shape::checked_shape(to)?);
    let out = cx.out(&shape, x.dtype())?;
    cx.cpu(|| {
        let make = if antialias { Table::antialiased } else { Table::new };
        let table = |a: usize| make(how, place, input[a] as usize, output[a] as usize, scale.get(a).copied());
        let tables: Vec<Table> = (0..dims).map(table).collect();
        let planes = x.shape()[..axes.start].iter().product();
        let inner = x.shape()[axes.end..].iter().product();
        let apply = if transposed { resample::resample_backward } else { resample::resample };
        apply(&tables, planes, inner, x.try_contiguous()?.values().slice(), out.values_mut().slice());
        Ok(())
    })?;
    let (input, output, scale) = (input.to_vec(), output.to_vec(), scale.to_vec());
    let (method, corners) = (method.to_string(), corners.to_string());
    cx.grad(out, &[], move |g| {
        Ok(g.grad().resample_axes(first, &*input, &*output, &*scale, &method, &corners, antialias, !transposed))
    })
}

/// Numbers given as one, as a list, as a tensor, or as a list that mixes numbers and tensors.
fn numbers(name: &str, value: &Value) -> Result<Vec<f64>> {
    let of_tensor = |t: &Tensor| {
        if t.device() == Device::Meta {
            bail!("the result's shape depends on the values of {name}, which a meta tensor lacks");
        }
        Ok(t.to_f64_vec())
    };
    Ok(match value {
        Value::Int(v) => vec![*v as f64],
        Value::Float(v) => vec![*v],
        Value::Ints(v) => v.iter().map(|&v| v as f64).collect(),
        Value::Floats(v) => v.clone(),
        Value::Tensor(t) => of_tensor(t)?,
        Value::Tensors(ts) => ts.iter().map(of_tensor).collect::<Result<Vec<_>>>()?.concat(),
        Value::List(vs) => vs.iter().map(|v| numbers(name, v)).collect::<Result<Vec<_>>>()?.concat(),
        other => {
            return Err(Error::dtype(format!("{name} must be numbers or a Tensor of them, got {}", other.type_name())));
        }
    })
}

/// One number for each of `dims` axes.
fn per_axis(name: &str, value: &Value, dims: usize) -> Result<Option<Vec<f64>>> {
    if matches!(value, Value::None) {
        return Ok(None);
    }
    let list = numbers(name, value)?;
    let list = if list.len() == 1 { vec![list[0]; dims] } else { list };
    ensure!(list.len() == dims, "{name} must be one number or {dims} of them, got {list:?}");
    ensure!(list.iter().all(|v| v.is_finite() && *v > 0.0), "{name} must be positive, got {list:?}");
    Ok(Some(list))
}

/// The image at another size, given as `size` or as `scale_factor`, for each spatial axis or for all alike. `mode` is
/// nearest, linear (3 axes), bilinear, bicubic (4 axes), trilinear (5 axes) or area. With `align_corners` the corner pixels
/// keep their values; without, `align_mode` 0 places pixels by their centres and 1 by their first corner.
///
/// ```
/// # use sampan_core::{Tensor, ops::resample::InterpolateOpts};
/// let x = Tensor::new([[[[1.0f32, 2.0]]]]);
/// assert_eq!(x.interpolate([2, 4]).to_vec::<f32>(), [1.0, 1.0, 2.0, 2.0, 1.0, 1.0, 2.0, 2.0]);
/// let smooth = InterpolateOpts::new().mode("bilinear").align_corners(true);
/// assert_eq!(x.interpolate_with([1, 3], smooth).to_vec::<f32>(), [1.0, 1.5, 2.0]);
/// ```
#[op(module = "nn.functional", samples = interpolate_samples, onnx = "Resize", amp = "black_o2")]
fn interpolate(
    x: &Tensor,
    #[default(None)] size: &Value,
    #[opt(None)] scale_factor: &Value,
    #[opt("nearest")] mode: &str,
    #[opt(false)] align_corners: bool,
    #[opt(0)] align_mode: i64,
    #[opt(None)] data_format: Option<&str>,
    #[opt(None)] recompute_scale_factor: Option<bool>,
    #[opt(false)] antialias: bool,
) -> Result<Tensor> {
    let dims = x.ndim().wrapping_sub(2);
    ensure!((1..=3).contains(&dims), "x must have 3, 4 or 5 axes, it has {}", x.ndim());
    let last = channels_last(x, data_format.unwrap_or(["NCW", "NCHW", "NCDHW"][dims - 1]), dims)?;
    need_float(x)?;
    let mode = mode.to_lowercase();
    let (method, only) = match mode.as_str() {
        "nearest" => ("nearest", None),
        "area" => ("area", None),
        "linear" => ("linear", Some(1)),
        "bilinear" => ("linear", Some(2)),
        "trilinear" => ("linear", Some(3)),
        "bicubic" => ("cubic", Some(2)),
        _ => bail!("mode must be nearest, linear, bilinear, trilinear, bicubic or area, got {mode:?}"),
    };
    if let Some(want) = only {
        ensure!(want == dims, "mode {mode:?} needs {} axes, x has {}", want + 2, x.ndim());
    }
    ensure!(matches!(align_mode, 0 | 1), "align_mode must be 0 or 1, got {align_mode}");
    ensure!(!align_corners || method != "nearest", "align_corners goes with linear and cubic modes only");
    ensure!(!antialias || matches!(&*mode, "bilinear" | "bicubic"), "antialias goes with bilinear and bicubic only");
    let first = if last { 1 } else { 2 };
    let input: Vec<i64> = x.shape()[first..first + dims].iter().map(|&n| n as i64).collect();
    let size = per_axis("size", size, dims)?;
    let factors = per_axis("scale_factor", scale_factor, dims)?;
    let (output, scale): (Vec<i64>, Vec<f64>) = match (size, factors) {
        (Some(size), None) => (size.iter().map(|&n| n as i64).collect(), vec![]),
        (None, Some(f)) => {
            let output = (0..dims).map(|a| (input[a] as f64 * f[a]) as i64).collect();
            (output, if recompute_scale_factor == Some(true) || method == "area" { vec![] } else { f })
        }
        (None, None) => bail!("one of size and scale_factor must be given"),
        _ => bail!("only one of size and scale_factor may be given"),
    };
    ensure!(output.iter().all(|&n| n > 0), "the result would have the spatial extents {output:?}");
    let corners = match (align_corners, align_mode, method) {
        (true, ..) => "aligned",
        (_, _, "cubic") | (_, 0, _) => "half_pixel",
        _ => "asymmetric",
    };
    x.try_resample_axes(first as i64, input, output, scale, method, corners, antialias, false)
}

/// The image at another size; the same as `interpolate`.
///
/// ```
/// # use sampan_core::Tensor;
/// let x = Tensor::new([[[[1.0f32, 2.0]]]]);
/// assert_eq!(x.upsample([1, 4]).to_vec::<f32>(), [1.0, 1.0, 2.0, 2.0]);
/// ```
#[op(module = "nn.functional", samples = upsample_samples, amp = "black_o2")]
fn upsample(
    x: &Tensor,
    #[default(None)] size: &Value,
    #[opt(None)] scale_factor: &Value,
    #[opt("nearest")] mode: &str,
    #[opt(false)] align_corners: bool,
    #[opt(0)] align_mode: i64,
    #[opt(None)] data_format: Option<&str>,
) -> Result<Tensor> {
    let mut options = InterpolateOpts::new().scale_factor(scale_factor.clone()).mode(mode);
    options = options.align_corners(align_corners).align_mode(align_mode);
    if let Some(data_format) = data_format {
        options = options.data_format(data_format);
    }
    x.try_interpolate_with(size.clone(), options)
}

fn resample_samples() -> Vec<Sample> {
    vec![
        sample![randn([2, 3]), 1, 3, 5],
        sample![randn([2, 5]), 1, 3, 5, Vec::<f64>::new(), "cubic", "aligned", false, true].peer(
            "lambda x, *_: torch_pull(lambda z: F.interpolate(z[None, :, None], (1, 5), mode='bicubic', \
                align_corners=True)[0, :, 0], torch.zeros(2, 3), x)",
        ),
        sample![randn([4, 3, 2]), 0, [4, 3], [2, 2], [0.5, 0.7], "nearest", "asymmetric"].peer(
            "lambda x, *_: F.interpolate(torch.movedim(x, 2, 0)[None], scale_factor=(0.5, 0.7), \
                mode='nearest')[0].movedim(0, 2)",
        ),
    ]
}
fn interpolate_samples() -> Vec<Sample> {
    vec![
        sample![randn([1, 2, 2, 3]), [4, 2]],
        sample![randn([1, 2, 2, 3]); scale_factor = [1.5, 2.0]],
        sample![randn([1, 1, 2, 3]), [3, 5]; mode = "bilinear"],
        sample![randn([1, 1, 3, 3]); scale_factor = 1.4, mode = "bilinear", align_mode = 1],
        sample![randn([1, 3, 3, 2]), [5, 2]; mode = "bilinear", align_corners = true, data_format = "NHWC"],
        sample![randn([1, 1, 3, 3]), [4, 5]; mode = "bicubic"],
        sample![randn([1, 1, 3, 3]), [4, 5]; mode = "bicubic", align_corners = true],
        sample![randn([1, 1, 5, 4]), [3, 2]; mode = "bilinear", antialias = true],
        sample![randn([1, 1, 5, 4]), [3, 6]; mode = "bicubic", antialias = true],
        sample![randn([2, 2, 4]), [7]; mode = "linear"],
        sample![randn([1, 1, 2, 2, 3]), [3, 2, 4]; mode = "trilinear"],
        sample![randn([1, 1, 2, 2, 2]); scale_factor = [1.5, 1.0, 2.0], mode = "nearest"],
        sample![randn([1, 1, 5, 4]), [2, 3]; mode = "area"],
        sample![randn([1, 1, 2, 3]), values([4i64, 2], [2])],
        sample![randn([1, 1, 3, 3]); scale_factor = 1.4, mode = "bilinear", recompute_scale_factor = true],
    ]
}
fn upsample_samples() -> Vec<Sample> {
    vec![
        sample![randn([1, 1, 2, 3]), [4, 2]],
        sample![randn([1, 1, 2, 3]); scale_factor = 2, mode = "bilinear", align_corners = true],
    ]
}
