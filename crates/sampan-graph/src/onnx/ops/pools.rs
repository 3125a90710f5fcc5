//! Pools: what windows hold, as one number.

use super::padding::padded;
use super::windows::{Windows, window_attrs};
use crate::given::Given;
use crate::graph::Dim;
use crate::onnx::eval::Item;
use crate::onnx::export::Writer;
use crate::onnx::node::{Call, many, one, op, shape_of};
use crate::record::unheard;
use sampan_core::{DType, Result, Tensor};
use sampan_io::onnx::model::Attr;

/// The smallest number of a dtype.
fn lowest(dtype: DType) -> f64 {
    match dtype {
        DType::UInt8 => 0.0,
        DType::Int8 => -128.0,
        _ => f64::NEG_INFINITY,
    }
}

fn max_pool(c: &Call) -> Result<Vec<Tensor>> {
    let x = c.x(0)?;
    let w = Windows::new(c, x, c.ints("kernel_shape").unwrap_or_default())?;
    let ceil = c.flag("ceil_mode");
    let out = w.outputs(x, ceil);
    let plain = x.dtype().is_float() && w.symmetric() && w.dilations.iter().all(|d| *d == 1);
    let fits = w.begins.iter().zip(&w.kernel).all(|(p, k)| 2 * p <= *k);
    if plain && fits && !c.wants(1) && (!ceil || out == w.outputs(x, false)) && w.rank() <= 3 {
        let name = ["max_pool1d", "max_pool2d", "max_pool3d"][w.rank() - 1];
        return Ok(vec![op!(name, x, w.kernel.clone(), w.strides.clone(), w.begins.clone())?]);
    }
    let laid = w.laid_out(x, &out, lowest(x.dtype()))?;
    let all = w.places(&laid, &out)?;
    let best = all[1..].iter().try_fold(all[0].clone(), |a, b| op!("maximum", a, b))?;
    if !c.wants(1) {
        return Ok(vec![best]);
    }
    // The place of each element in the image, through the same windows.
    let mut order = (0..w.rank()).collect::<Vec<_>>();
    if c.flag("storage_order") {
        order.reverse();
    }
    let spatial = &x.shape()[2..];
    let (mut step, mut steps) = (1i64, vec![0; w.rank()]);
    for &i in order.iter().rev() {
        steps[i] = step;
        step *= spatial[i] as i64;
    }
    let mut index = op!("full", vec![1; x.ndim()], 0i64, DType::Int64)?;
    for (i, &n) in spatial.iter().enumerate() {
        let mut shape = vec![1; x.ndim()];
        shape[i + 2] = n as i64;
        let along = op!("multiply", op!("arange", 0i64, n, 1i64, DType::Int64)?, steps[i])?;
        index = op!("add", index, op!("reshape", along, shape)?)?;
    }
    let plane = x.shape()[0] as i64 * x.shape()[1] as i64;
    let base = op!("multiply", op!("arange", 0i64, plane, 1i64, DType::Int64)?, step)?;
    let mut shape = vec![1; x.ndim()];
    (shape[0], shape[1]) = (x.shape()[0] as i64, x.shape()[1] as i64);
    let index = op!("add", index, op!("reshape", base, shape)?)?;
    let places = w.places(&w.laid_out(&index, &out, -1.0)?, &out)?;
    let mut found = op!("full_like", &best, 0i64, DType::Int64)?;
    for (value, place) in all.iter().zip(&places).rev() {
        let hit = op!("logical_and", op!("equal", value, &best)?, op!("greater_equal", place, 0i64)?)?;
        found = op!("where_cond", hit, place, found)?;
    }
    Ok(vec![best, found])
}

/// The sum over windows, and how many elements count.
fn summed(w: &Windows, x: &Tensor, out: &[i64]) -> Result<Tensor> {
    let all = w.places(&w.laid_out(x, out, 0.0)?, out)?;
    all[1..].iter().try_fold(all[0].clone(), |a, b| op!("add", a, b))
}

fn average_pool(c: &Call) -> Result<Tensor> {
    let x = c.x(0)?;
    let w = Windows::new(c, x, c.ints("kernel_shape").unwrap_or_default())?;
    let (ceil, include) = (c.flag("ceil_mode"), c.flag("count_include_pad"));
    let out = w.outputs(x, ceil);
    let plain = x.dtype().is_float() && w.symmetric() && w.dilations.iter().all(|d| *d == 1);
    let fits = w.begins.iter().zip(&w.kernel).all(|(p, k)| 2 * p <= *k);
    if plain && fits && (!ceil || out == w.outputs(x, false)) && w.rank() <= 3 {
        let name = ["avg_pool1d", "avg_pool2d", "avg_pool3d"][w.rank() - 1];
        return op!(name, x, w.kernel.clone(), w.strides.clone(), w.begins.clone(); exclusive = !include);
    }
    let mut ones = [vec![1; 2], shape_of(x)[2..].to_vec()].concat();
    let mut counted =
        Windows { begins: w.begins.clone(), ends: w.ends.clone(), ..Windows::new(c, x, w.kernel.clone())? };
    if include {
        // Padding counts, but not what hangs over it.
        for i in 0..w.rank() {
            ones[i + 2] += w.begins[i] + w.ends[i];
            (counted.begins[i], counted.ends[i]) = (0, 0);
        }
    }
    let ones = op!("full", ones, 1.0, x.dtype())?;
    let count = summed(&counted, &ones, &out)?;
    op!("divide", summed(&w, x, &out)?, count)
}

fn lp_pool(c: &Call) -> Result<Tensor> {
    let (x, p) = (c.x(0)?, c.int("p", 2) as f64);
    let w = Windows::new(c, x, c.ints("kernel_shape").unwrap_or_default())?;
    let out = w.outputs(x, c.flag("ceil_mode"));
    let powers = op!("pow", op!("abs", x)?, p)?;
    op!("pow", summed(&w, &powers, &out)?, 1.0 / p)
}

fn global(c: &Call, ours: &str) -> Result<Tensor> {
    let x = c.x(0)?;
    let axes = (2..x.ndim() as i64).collect::<Vec<_>>();
    match (x.ndim(), ours) {
        (4, "mean") => op!("adaptive_avg_pool2d", x, 1i64),
        (4, "max") => op!("adaptive_max_pool2d", x, 1i64),
        (_, name) => op!(name, x; axis = axes, keepdim = true),
    }
}

fn max_unpool(c: &Call) -> Result<Tensor> {
    let (x, index) = (c.x(0)?, c.x(1)?);
    let w = Windows::new(c, x, c.ints("kernel_shape").unwrap_or_default())?;
    let own = || {
        let one = |i: usize| (x.shape()[i + 2] as i64 - 1) * w.strides[i] + w.kernel[i] - w.begins[i] - w.ends[i];
        [shape_of(x)[..2].to_vec(), (0..w.rank()).map(one).collect()].concat()
    };
    // Places are those in the smaller result; a larger one has it at its beginning.
    let small = own();
    let zeros = op!("full", vec![small.iter().product::<i64>()], 0.0, x.dtype())?;
    let flat = |t: &Tensor| op!("reshape", t, [-1i64]);
    let y = op!("put_along_axis", zeros, flat(index)?, flat(x)?, 0i64, "assign"; broadcast = false)?;
    let large = if c.maybe(2).is_some() { c.numbers(2)? } else { small.clone() };
    let ends = large.iter().zip(&small).map(|(l, s)| l - s).collect::<Vec<_>>();
    if ends.len() != x.ndim() {
        return Err(c.wrong("the shape of the result has other axes"));
    }
    padded(&op!("reshape", y, small)?, &vec![0; x.ndim()], &ends, "constant", 0.0)
}

pub fn read(c: &Call) -> Result<Option<Vec<Item>>> {
    one(match c.node.op.as_str() {
        "MaxPool" => return many(max_pool(c)?),
        "AveragePool" => average_pool(c)?,
        "LpPool" => lp_pool(c)?,
        "GlobalAveragePool" => global(c, "mean")?,
        "GlobalMaxPool" => global(c, "max")?,
        "GlobalLpPool" => {
            let (x, p) = (c.x(0)?, c.int("p", 2) as f64);
            op!("norm", x, p, (2..x.ndim() as i64).collect::<Vec<_>>(), true)?
        }
        "MaxUnpool" => max_unpool(c)?,
        _ => return Ok(None),
    })
}

fn write_pool(w: &mut Writer, call: &Given, n: usize, max: bool) -> Result<Option<String>> {
    let Some(x) = call.id("x") else { return Ok(None) };
    let last = call.text("data_format").is_some_and(|f| f.ends_with('C'));
    if call.bool("return_mask") || call.arg("divisor_override").is_some() {
        return Ok(None);
    }
    let Some(kernel) = call.each("kernel_size", n, 1) else { return Ok(None) };
    let strides = call.arg("stride").map_or(Some(kernel.clone()), |_| call.each("stride", n, 1));
    let (Some(strides), Some(mut attrs)) = (strides, window_attrs(call, n)) else { return Ok(None) };
    attrs.push(("kernel_shape", Attr::Ints(kernel)));
    attrs.push(("strides", Attr::Ints(strides)));
    attrs.push(("ceil_mode", Attr::Int(i64::from(call.bool("ceil_mode")))));
    if !max {
        let exclusive = call.arg("exclusive").is_none() || call.bool("exclusive");
        attrs.push(("count_include_pad", Attr::Int(i64::from(!exclusive))));
    }
    let mut name = w.name(x)?;
    if last {
        name = super::layers::moved(w, name, n + 2, false);
    }
    let y = w.node(if max { "MaxPool" } else { "AveragePool" }, vec![name], attrs);
    Ok(Some(if last { super::layers::moved(w, y, n + 2, true) } else { y }))
}

/// The means of parts of an axis, as a matrix that is multiplied with it.
fn means(from: usize, to: usize) -> Result<Tensor> {
    let mut all = vec![0f32; from * to];
    for j in 0..to {
        let (begin, end) = (j * from / to, ((j + 1) * from).div_ceil(to));
        (begin..end).for_each(|i| all[i * to + j] = 1.0 / (end - begin) as f32);
    }
    Tensor::try_from_slice(&all, [from, to])
}

/// Pools whose windows follow the size of the result.
fn write_adaptive(w: &mut Writer, call: &Given, n: usize, max: bool) -> Result<Option<String>> {
    let Some(x) = call.id("x") else { return Ok(None) };
    if call.bool("return_mask") || call.text("data_format").is_some_and(|f| f.ends_with('C')) {
        return Ok(None);
    }
    let spatial = |w: &Writer, id| w.known(id).dims.get(2..).map(<[Dim]>::to_vec);
    let (Some(from), Some(to)) = (spatial(w, x), spatial(w, call.out())) else { return Ok(None) };
    let name = w.name(x)?;
    if to.iter().all(|d| *d == Dim::Fixed(1)) {
        return Ok(Some(w.op(if max { "GlobalMaxPool" } else { "GlobalAveragePool" }, &[&name])));
    }
    let pairs = from.iter().zip(&to).map(|(f, t)| Some((f.fixed()?, t.fixed()?))).collect::<Option<Vec<_>>>();
    // Larger matrices of means than these are no network's.
    let sound =
        |p: &Vec<(usize, usize)>| p.len() == n && p.iter().all(|(f, t)| *t > 0 && f.saturating_mul(*t) < 1 << 24);
    let Some(pairs) = pairs.filter(sound) else { return Ok(None) };
    if pairs.iter().all(|(f, t)| f == t) {
        return Ok(Some(w.op("Identity", &[&name])));
    }
    if pairs.iter().all(|(f, t)| f % t == 0) {
        let kernel = pairs.iter().map(|(f, t)| (f / t) as i64).collect::<Vec<_>>();
        let attrs = vec![("kernel_shape", Attr::Ints(kernel.clone())), ("strides", Attr::Ints(kernel))];
        return Ok(Some(w.node(if max { "MaxPool" } else { "AveragePool" }, vec![name], attrs)));
    }
    if max || n > 2 || w.known(x).dtype != DType::Float32 {
        return Ok(None);
    }
    let across = w.tensor(&means(pairs[n - 1].0, pairs[n - 1].1)?);
    let mut y = w.op("MatMul", &[&name, &across]);
    if n == 2 {
        let down = unheard(|| op!("transpose", means(pairs[0].0, pairs[0].1)?, [1i64, 0])?.try_contiguous())?;
        let down = w.tensor(&down);
        y = w.op("MatMul", &[&down, &y]);
    }
    Ok(Some(y))
}

pub fn write(w: &mut Writer, call: &Given) -> Result<bool> {
    let y = match call.name() {
        "max_pool1d" => write_pool(w, call, 1, true)?,
        "max_pool2d" => write_pool(w, call, 2, true)?,
        "max_pool3d" => write_pool(w, call, 3, true)?,
        "avg_pool1d" => write_pool(w, call, 1, false)?,
        "avg_pool2d" => write_pool(w, call, 2, false)?,
        "avg_pool3d" => write_pool(w, call, 3, false)?,
        "adaptive_avg_pool1d" => write_adaptive(w, call, 1, false)?,
        "adaptive_avg_pool2d" => write_adaptive(w, call, 2, false)?,
        "adaptive_avg_pool3d" => write_adaptive(w, call, 3, false)?,
        "adaptive_max_pool1d" => write_adaptive(w, call, 1, true)?,
        "adaptive_max_pool2d" => write_adaptive(w, call, 2, true)?,
        "adaptive_max_pool3d" => write_adaptive(w, call, 3, true)?,
        _ => None,
    };
    match y {
        Some(y) => w.bind(call.out(), y),
        None => return Ok(false),
    }
    Ok(true)
}
