//! Repeating, reversing and rolling.

use crate::ops::prelude::*;
use crate::value::Arg;

/// The elements in reverse order along the named axes.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([[1i64, 2], [3, 4]]).flip(1).to_vec::<i64>(), [2, 1, 4, 3]);
/// ```
#[op(complex, samples = flip_samples, also("reverse"))]
fn flip(cx: &Cx, x: &Tensor, axis: &[i64]) -> Result<Tensor> {
    let mut layout = x.layout().clone();
    let mut turned = Shape::new();
    for &a in axis {
        let a = resolve_axis(a, x.ndim())?;
        ensure!(!turned.contains(&a), "axis {axis:?} names axis {a} twice");
        turned.push(a);
        if let Some(&n) = x.shape().get(a).filter(|&&n| n > 0) {
            layout.offset = (layout.offset as isize + (n as isize - 1) * layout.strides[a]) as usize;
            layout.strides[a] = -layout.strides[a];
        }
    }
    // A copy: nobody expects a write into the result to change the input.
    let out = x.view(layout).try_clone_data()?;
    let axis = axis.to_vec();
    cx.grad(out, &[], move |g| Ok(g.grad().flip(axis.as_slice())))
}

/// The tensor repeated `repeat_times[i]` times along each axis; the shorter of the two lists gets leading ones.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([1i64, 2]).tile([2, 2]).to_vec::<i64>(), [1, 2, 1, 2, 1, 2, 1, 2]);
/// ```
#[op(complex, samples = tile_samples, onnx = "Tile", also("Tensor.repeat"), alias(dims = repeat_times, repeats = repeat_times))]
fn tile(x: &Tensor, repeat_times: &[i64]) -> Result<Tensor> {
    ensure!(repeat_times.iter().all(|&r| r >= 0), "repeat_times cannot be negative, got {repeat_times:?}");
    let rank = x.ndim().max(repeat_times.len());
    let extent = |i: usize| if i + x.ndim() >= rank { x.shape()[i + x.ndim() - rank] as i64 } else { 1 };
    let times = |i: usize| if i + repeat_times.len() >= rank { repeat_times[i + repeat_times.len() - rank] } else { 1 };
    let (mut apart, mut wide, mut out) = (Vec::new(), Vec::new(), Vec::new());
    for i in 0..rank {
        let (n, r) = (extent(i), times(i));
        apart.extend([1, n]);
        wide.extend([r, n]);
        out.push(n.checked_mul(r).ok_or_else(|| Error::invalid("the result is too large for this machine"))?);
    }
    // One copy, made by the last reshape.
    x.try_reshape_to(apart)?.try_expand(wide)?.try_reshape_to(out)
}

/// Each element `repeats` times in a row along an axis, or each its own number of times; without an axis along the
/// flattened tensor.
///
/// ```
/// # use sampan_core::Tensor;
/// let x = Tensor::new([[1i64, 2], [3, 4]]);
/// assert_eq!(x.repeat_interleave(2, 1).to_vec::<i64>(), [1, 1, 2, 2, 3, 3, 4, 4]);
/// assert_eq!(x.repeat_interleave(&Tensor::new([0i64, 2]), 0).to_vec::<i64>(), [3, 4, 3, 4]);
/// ```
#[op(complex, samples = repeat_interleave_samples)]
fn repeat_interleave(
    x: &Tensor,
    repeats: &Value,
    #[default(None)] axis: Option<i64>,
    #[opt(None)] output_size: Option<i64>,
) -> Result<Tensor> {
    let (x, axis) = match axis {
        Some(axis) if x.ndim() > 0 => (x.clone(), resolve_axis(axis, x.ndim())?),
        _ => (x.try_flatten(0, -1)?, 0),
    };
    let n = x.shape()[axis];
    let out = match repeats {
        Value::Int(r) => {
            ensure!(*r >= 0, "repeats cannot be negative, got {r}");
            let mut shape: Vec<i64> = x.shape().iter().map(|&n| n as i64).collect();
            let mut out = shape.clone();
            shape.insert(axis + 1, *r);
            out[axis] = r.saturating_mul(n as i64);
            x.try_unsqueeze(axis as i64 + 1)?.try_expand(shape)?.try_reshape_to(out)?
        }
        Value::Tensor(_) | Value::Ints(_) => {
            let times = if let Value::Tensor(t) = repeats {
                t.try_to_ints()?
            } else {
                <&[i64]>::get(repeats, "repeats")?.to_vec()
            };
            ensure!(
                times.len() == n || times.len() == 1,
                "repeats has {} numbers, axis {axis} has extent {n}",
                times.len()
            );
            ensure!(times.iter().all(|&r| r >= 0), "repeats cannot be negative, got {times:?}");
            let times = |i: usize| times[if times.len() == 1 { 0 } else { i }] as usize;
            crate::shape::check_room((0..n).fold(0, |sum: usize, i| sum.saturating_add(times(i))))?;
            let index: Vec<i64> = (0..n).flat_map(|i| std::iter::repeat_n(i as i64, times(i))).collect();
            let len = index.len();
            x.try_index_select(&Tensor::from_vec(index, [len]), axis as i64)?
        }
        other => bail!("repeats must be an int or a Tensor of ints, got {}", other.type_name()),
    };
    let len = out.shape()[axis] as i64;
    ensure!(output_size.is_none_or(|n| n == len), "output_size is {output_size:?}, the repeats add up to {len}");
    Ok(out)
}

/// The elements moved along the axes by `shifts`; those that leave at one end come back at the other. Without an axis
/// the flattened tensor is rolled.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([1i64, 2, 3]).roll(1, ()).to_vec::<i64>(), [3, 1, 2]);
/// ```
#[op(complex, samples = roll_samples)]
fn roll(x: &Tensor, shifts: &[i64], #[default(None)] axis: Axes) -> Result<Tensor> {
    let Some(axes) = axis.0 else {
        ensure!(shifts.len() == 1, "without an axis there is one shift, got {shifts:?}");
        return x.try_flatten(0, -1)?.try_roll(shifts, 0)?.try_reshape_to(x.shape());
    };
    ensure!(axes.len() == shifts.len(), "{} shifts for {} axes", shifts.len(), axes.len());
    let mut out = x.clone();
    for (&shift, &axis) in shifts.iter().zip(&axes) {
        let a = resolve_axis(axis, x.ndim())?;
        let n = x.shape().get(a).copied().unwrap_or(1);
        let shift = if n == 0 { 0 } else { shift.rem_euclid(n as i64) as usize };
        if shift > 0 {
            let (front, back) = (out.try_narrow(axis, 0, n - shift)?, out.try_narrow(axis, n - shift, shift)?);
            out = crate::ops::joining::try_concat(&[back, front], axis)?;
        }
    }
    // A copy also where nothing moves.
    if out.shares_memory(x) { out.try_assign() } else { Ok(out) }
}

/// A quarter turn in the plane of two axes, `k` times, from the first axis towards the second.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([[1i64, 2], [3, 4]]).rot90(1).to_vec::<i64>(), [2, 4, 1, 3]);
/// ```
#[op(complex, samples = rot90_samples)]
fn rot90(x: &Tensor, #[default(1)] k: i64, #[opt([0i64, 1])] axes: &[i64]) -> Result<Tensor> {
    ensure!(axes.len() == 2, "axes must name two axes, got {axes:?}");
    ensure!(x.ndim() >= 2, "needs at least 2 axes");
    let (a, b) = (resolve_axis(axes[0], x.ndim())? as i64, resolve_axis(axes[1], x.ndim())? as i64);
    ensure!(a != b, "axes {axes:?} name one axis twice");
    match k.rem_euclid(4) {
        0 => x.try_assign(),
        1 => x.try_flip(b)?.try_swapaxes(a, b),
        2 => x.try_flip([a, b]),
        _ => x.try_swapaxes(a, b)?.try_flip(b),
    }
}

/// The powers of each element as a row: `n` of them, falling unless `increasing`; `n` is the length of `x` unless given.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([2i64, 3]).vander(3).to_vec::<i64>(), [4, 2, 1, 9, 3, 1]);
/// ```
#[op(samples = vander_samples)]
fn vander(x: &Tensor, #[default(None)] n: Option<i64>, #[opt(false)] increasing: bool) -> Result<Tensor> {
    ensure!(x.ndim() == 1, "x must be a vector");
    let n = n.unwrap_or(x.numel() as i64);
    ensure!(n >= 0, "n cannot be negative, got {n}");
    if n == 0 {
        return Ok(Tensor::zeros([x.numel(), 0], x.dtype()));
    }
    let column = x.try_unsqueeze(-1)?;
    let factors = [column.ones_like(), column.try_expand([x.numel() as i64, n - 1])?];
    let powers = crate::ops::joining::try_concat(&factors, -1)?.try_cumprod(-1)?.try_cast(x.dtype())?;
    if increasing { Ok(powers) } else { powers.try_flip(-1) }
}

/// Ids of a table cut into `nshards` equal parts, seen from part `shard_id`: the position inside it, or `ignore_value`
/// for ids of other parts.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([16i64, 1]).shard_index(20, 2, 0, -1).to_vec::<i64>(), [-1, 1]);
/// ```
#[op(non_diff, samples = shard_samples)]
fn shard_index(
    cx: &Cx,
    input: &Tensor,
    index_num: i64,
    nshards: i64,
    shard_id: i64,
    #[default(-1)] ignore_value: i64,
) -> Result<Tensor> {
    ensure!(index_num > 0 && nshards > 0, "index_num and nshards must be positive, got {index_num} and {nshards}");
    ensure!((0..nshards).contains(&shard_id), "shard_id must lie in [0, {nshards}), got {shard_id}");
    if !input.dtype().is_int() {
        return Err(Error::dtype(format!("ids must be integers, got {}", input.dtype())));
    }
    cx.cpu(|| {
        let bad = input.try_to_ints()?.into_iter().find(|v| !(0..index_num).contains(v));
        if let Some(bad) = bad {
            bail!("ids must lie in [0, {index_num}), got {bad}");
        }
        Ok(())
    })?;
    let size = (index_num - 1) / nshards + 1;
    let local = formula!(|v; size, shard_id, ignore_value| {
        select(v.floor_div(size).equals(shard_id), v.remainder(size), ignore_value)
    });
    cx.integer(local, input)
}

fn flip_samples() -> Vec<Sample> {
    vec![
        sample![randn([2, 3]), 0],
        sample![randn([2, 3, 2]), [0, -1]],
        sample![randn([0, 3]), [0]],
        sample![randn([2]), Vec::<i64>::new()].peer("torch.flip"),
    ]
}
fn tile_samples() -> Vec<Sample> {
    vec![
        sample![randn([2]), [2, 3]],
        sample![randn([2, 3]), [2]],
        sample![randn([2, 1]), [1, 4]],
        sample![randn([]), [3]],
        sample![randn([2]), [0]].peer("torch.tile"),
    ]
}
fn repeat_interleave_samples() -> Vec<Sample> {
    vec![
        sample![randn([2, 3]), 2],
        sample![randn([2, 3]), 2, 0],
        sample![randn([2, 3]), values([1i64, 0, 2], [3]), -1],
        sample![randn([3]), values([2i64], [1]), 0].peer("torch.repeat_interleave"),
        sample![randn([2, 3]), 0, 1].peer("torch.repeat_interleave"),
    ]
}
fn roll_samples() -> Vec<Sample> {
    vec![
        sample![randn([2, 3]), 1],
        sample![randn([2, 3]), [1, -2], [0, 1]],
        sample![randn([2, 3]), 7, -1],
        sample![randn([2, 3]), 3, 1],
        sample![randn([0, 3]), 1, 0],
    ]
}
fn rot90_samples() -> Vec<Sample> {
    vec![
        sample![randn([2, 3])],
        sample![randn([2, 3]), 2],
        sample![randn([2, 3, 2]), -1; axes = [1, 2]],
        sample![randn([2, 3]), 4],
    ]
}
fn vander_samples() -> Vec<Sample> {
    vec![
        sample![randn([3])],
        sample![randn([3]), 2; increasing = true],
        sample![ints([3], 0, 5), 4],
        sample![randn([2]), 1],
    ]
}
fn shard_samples() -> Vec<Sample> {
    vec![sample![ints([3, 1], 0, 20), 20, 2, 0], sample![ints([4, 1], 0, 7), 7, 3, 2, 9]]
}
