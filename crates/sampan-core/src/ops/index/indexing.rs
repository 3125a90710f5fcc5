//! `x[index]` and `x[index] = value`. The language is in `tensor/indexing.rs`; `lowering.rs` brings an index down to one
//! view and at most one gather or scatter.

use crate::gpu;
use crate::i;
use crate::ops::elementwise::sum_to;
use crate::ops::gather::as_indices;
use crate::ops::lowering::Lowered;
use crate::ops::prelude::*;
use crate::tensor::indexing::{Index, decode};
use sampan_cuda::index::Rule;
use sampan_kernels::copy;
use sampan_kernels::index::{IndexPlan, index_fill, index_get as get_kernel, index_put, index_put_add};

/// The part of `x` that `index` names, as NumPy's brackets do: integers, slices, `...`, `None`, integer tensors and
/// boolean masks. A view where there is no tensor in the index.
///
/// ```
/// # use sampan_core::{i, Tensor};
/// let x = Tensor::new([[1i64, 2, 3], [4, 5, 6]]);
/// assert_eq!(x.getitem(i![.., 1]).to_vec::<i64>(), [2, 5]);
/// ```
#[op(
    module = "_C_ops",
    complex,
    samples = getitem_samples,
    peer = "lambda x, i: x[at(i)]"
)]
fn getitem(x: &Tensor, index: &Value) -> Result<Tensor> {
    let low = Lowered::new(x.shape(), &decode(index)?)?;
    let view = low.view_of(x)?;
    if low.advanced.is_empty() {
        return Ok(view);
    }
    let (positions, axes) = low.positions()?;
    view.try_index_get(&positions, axes, low.place as i64).map_err(|e| low.explain(e))
}

/// Shape of a result: axes left alone with the index's shape among them.
fn indexed_shape(shape: &[usize], axes: &[usize], place: usize, index: &[usize]) -> Shape {
    let rest: Shape = (0..shape.len()).filter(|a| !axes.contains(a)).map(|a| shape[a]).collect();
    rest[..place].iter().chain(index).chain(&rest[place..]).copied().collect()
}

/// Checks the arguments of the pair below: the axes and the common shape of the indices.
fn indexed_axes(rank: usize, indices: &[Tensor], axes: &[i64], place: i64) -> Result<(Vec<usize>, Shape)> {
    let first = indices.first().ok_or_else(|| Error::invalid("needs at least one index"))?;
    ensure!(indices.len() == axes.len(), "{} indices for {} axes", indices.len(), axes.len());
    ensure!(indices.iter().all(|i| i.shape() == first.shape()), "the indices must have one shape");
    let axes: Vec<usize> = axes.iter().map(|&a| resolve_axis(a, rank)).collect::<Result<_>>()?;
    ensure!((1..axes.len()).all(|i| !axes[..i].contains(&axes[i])), "axes {axes:?} repeat");
    ensure!(rank >= axes.len() && (0..=(rank - axes.len()) as i64).contains(&place), "place {place} is outside");
    Ok((axes, first.shape_vec()))
}

const RULE: Rule = Rule { op: "getitem", wrap: true, skip: None };

/// How indexed axes are brought to the front, where they count rows, and the index's axes to their place.
struct Turn {
    /// Extents of the indexed axes, in the order of the indices.
    indexed: Shape,
    /// Extents of the other axes.
    rest: Shape,
    /// The axes of the index.
    index: Shape,
    /// Indexed axes first.
    to_front: Vec<i64>,
    /// The index's axes after the first `place` others.
    to_place: Vec<i64>,
}

impl Turn {
    fn new(shape: &[usize], axes: &[usize], place: usize, index: &[usize]) -> Turn {
        let others: Vec<usize> = (0..shape.len()).filter(|a| !axes.contains(a)).collect();
        let (k, rest) = (index.len(), others.len());
        let order = (k..k + place).chain(0..k).chain(k + place..k + rest);
        Turn {
            indexed: axes.iter().map(|&a| shape[a]).collect(),
            rest: others.iter().map(|&a| shape[a]).collect(),
            index: index.into(),
            to_front: axes.iter().chain(&others).map(|&a| a as i64).collect(),
            to_place: order.map(|a| a as i64).collect(),
        }
    }

    /// Rows and their width.
    fn table(&self) -> [usize; 2] {
        [self.indexed.iter().product(), self.rest.iter().product()]
    }

    /// The shape with the indexed axes first.
    fn turned(&self) -> Shape {
        self.indexed.iter().chain(&self.rest).copied().collect()
    }

    /// The shape with the index's axes first.
    fn picked(&self) -> Shape {
        self.index.iter().chain(&self.rest).copied().collect()
    }
}

/// The order of axes that undoes another.
fn back(order: &[i64]) -> Vec<i64> {
    let mut undo = vec![0; order.len()];
    order.iter().enumerate().for_each(|(at, &axis)| undo[axis as usize] = at as i64);
    undo
}

/// The offsets of an index over a layout.
fn plan(layout: &Layout, indices: &[Tensor], axes: &[usize], place: usize) -> Result<IndexPlan> {
    let positions = indices.iter().map(|i| as_indices(i, "an index")).collect::<Result<Vec<_>>>()?;
    let guards: Vec<_> = positions.iter().map(|i| i.data::<i64>()).collect();
    let slices: Vec<&[i64]> = guards.iter().map(|g| g.slice()).collect();
    IndexPlan::new(&layout.shape, &layout.strides, axes, &slices, place).map_err(|e| {
        Error::range(format!("index {} at position {} is out of range for extent {}", e.value, e.position, e.limit))
    })
}

/// The elements at integer tensors of one shape along `axes`; the axes of the index stand after the first `place` axes
/// left alone. Advanced indexing comes down to it.
#[op(
    internal,
    complex,
    samples = index_get_samples,
    peer = "lambda x, i, axes, place: torch.Tensor.__getitem__(x, tuple( \
            i[axes.index(a)] if a in axes else slice(None) for a in range(x.ndim)))"
)]
fn index_get(cx: &Cx, x: &Tensor, indices: &[Tensor], axes: &[i64], place: i64) -> Result<Tensor> {
    let (axes, index_shape) = indexed_axes(x.ndim(), indices, axes, place)?;
    let out = cx.out(indexed_shape(x.shape(), &axes, place as usize, &index_shape), x.dtype())?;
    cx.run(
        || {
            let plan = plan(x.layout(), indices, &axes, place as usize)?;
            get_kernel(x.values().view(), &plan, out.values_mut().slice());
            Ok(())
        },
        |gpu| {
            let turn = Turn::new(x.shape(), &axes, place as usize, &index_shape);
            let rows = gpu::index::flat(gpu, RULE, indices, &turn.indexed)?;
            let table = x.detach().try_transpose(turn.to_front.as_slice())?.try_reshape_to(turn.table())?;
            let picked = table.try_index_select(&rows, 0)?.try_reshape_to(turn.picked())?;
            gpu::copy(gpu, &picked.try_transpose(turn.to_place.as_slice())?, &out)?;
            Ok(true)
        },
    )?;
    let (shape, count) = (x.shape_vec(), indices.len());
    let axes: Vec<i64> = axes.iter().map(|&a| a as i64).collect();
    cx.grad(out, &indices.iter().collect::<Vec<_>>(), move |g| {
        let indices: Vec<Tensor> = (0..count).map(|i| g.saved(i).clone()).collect();
        let mut grads = vec![Some(g.grad().index_unget(&indices, axes.as_slice(), place, &shape))];
        grads.resize(1 + count, None);
        Ok(grads)
    })
}

/// Zeros of `shape`, to which `x` is added where `index_get` reads: its transpose.
#[op(
    internal,
    complex,
    samples = index_unget_samples,
    peer = "lambda x, i, axes, place, shape: torch_pull(lambda z: z[tuple( \
            i[axes.index(a)] if a in axes else slice(None) for a in range(z.ndim))], torch.zeros(shape), x)"
)]
fn index_unget(cx: &Cx, x: &Tensor, indices: &[Tensor], axes: &[i64], place: i64, shape: &[i64]) -> Result<Tensor> {
    let shape = crate::ops::shape::checked_shape(shape)?;
    let (axes, index_shape) = indexed_axes(shape.len(), indices, axes, place)?;
    let expected = indexed_shape(&shape, &axes, place as usize, &index_shape);
    ensure!(x.shape() == &expected[..], "x has shape {:?} where the index reads {expected:?}", x.shape());
    let out = cx.zeros(&shape, x.dtype())?;
    cx.run(
        || {
            let plan = plan(out.layout(), indices, &axes, place as usize)?;
            let x = x.contiguous();
            index_put_add(out.values_mut().slice(), &plan, x.values().slice());
            Ok(())
        },
        |gpu| {
            let turn = Turn::new(&shape, &axes, place as usize, &index_shape);
            let rows = gpu::index::flat(gpu, RULE, indices, &turn.indexed)?;
            let [count, width] = turn.table();
            let picked = x.detach().try_transpose(back(&turn.to_place))?.try_reshape_to([rows.numel(), width])?;
            let table = picked.try_unselect(&rows, 0, count as i64)?.try_reshape_to(turn.turned())?;
            gpu::copy(gpu, &table.try_transpose(back(&turn.to_front))?, &out)?;
            Ok(true)
        },
    )?;
    let count = indices.len();
    let axes: Vec<i64> = axes.iter().map(|&a| a as i64).collect();
    cx.grad(out, &indices.iter().collect::<Vec<_>>(), move |g| {
        let indices: Vec<Tensor> = (0..count).map(|i| g.saved(i).clone()).collect();
        let mut grads = vec![Some(g.grad().index_get(&indices, axes.as_slice(), place))];
        grads.resize(1 + count, None);
        Ok(grads)
    })
}

/// A copy of `x` with `value`, a number or a tensor that broadcasts, written to the part that `index` names (see
/// `getitem`), or added to it with `accumulate`. `Tensor::set` is the form that writes into `x` itself.
///
/// ```
/// # use sampan_core::{i, Tensor};
/// let x = Tensor::new([[1i64, 2, 3], [4, 5, 6]]);
/// assert_eq!(x.setitem(i![.., 1], 0).to_vec::<i64>(), [1, 0, 3, 4, 0, 6]);
/// ```
#[op(
    module = "_C_ops",
    complex,
    samples = setitem_samples,
    peer = "lambda x, i, v: (y := x.clone(), y.__setitem__(at(i), v), y)[-1]"
)]
fn setitem(cx: &Cx, x: &Tensor, index: &Value, value: Operand, #[opt(false)] accumulate: bool) -> Result<Tensor> {
    let index = decode(index)?;
    let out = match cx.device() {
        Device::Cpu | Device::Cuda(_) => x.try_clone_data()?,
        _ => cx.out(x.shape(), x.dtype())?,
    };
    write_at(&out, &index, &value, accumulate)?;
    let (skeleton, kept) = Skeleton::new(&index);
    let shape = value.tensor().map(Tensor::shape_vec);
    cx.grad(out, &kept.iter().collect::<Vec<_>>(), move |g| set_grads(g, &skeleton, shape.as_deref(), accumulate))
}

/// Writes to the part of a tensor's memory that an index names; does not count the write.
pub(crate) fn write_at(x: &Tensor, index: &[Index], value: &Operand, accumulate: bool) -> Result<()> {
    let low = Lowered::new(x.shape(), index)?;
    let view = low.view_of(&x.detach())?;
    let (positions, axes) = low.positions()?;
    let axes: Vec<usize> = axes.iter().map(|&a| a as usize).collect();
    let shape = match positions.first() {
        Some(p) => indexed_shape(view.shape(), &axes, low.place, p.shape()),
        None => view.shape_vec(),
    };
    let value = fitted(value, &shape)?;
    if !x.device().has_values() {
        return Ok(());
    }
    let plan_over = |l: &Layout| plan(l, &positions, &axes, low.place).map_err(|e| low.explain(e));
    match (positions.is_empty(), accumulate) {
        (true, false) => write_view(&view, &value),
        (true, true) => write_view(&view, &Operand::Tensor(view.try_add(value)?)),
        (false, false) => write_plan(&view, &plan_over(view.layout())?, &value, &shape),
        (false, true) => {
            let target = if view.is_contiguous() { view.clone() } else { view.try_clone_data()? };
            let plan = plan_over(target.layout())?;
            let values = whole(&value, &view, &shape)?;
            {
                let (mut to, from) = Tensor::values_pair(&target, &values);
                index_put_add(to.slice(), &plan, from.slice());
            }
            if target.shares_memory(&view) { Ok(()) } else { write_view(&view, &Operand::Tensor(target)) }
        }
    }
}

/// The value as it is written: a tensor loses leading axes of extent 1 and must then broadcast.
fn fitted(value: &Operand, shape: &[usize]) -> Result<Operand> {
    let Operand::Tensor(t) = value else { return Ok(value.clone()) };
    let excess = t.ndim().saturating_sub(shape.len());
    let (lead, own) = t.shape().split_at(excess);
    let fits =
        lead.iter().all(|&n| n == 1) && own.iter().rev().zip(shape.iter().rev()).all(|(&o, &n)| o == n || o == 1);
    if !fits {
        return Err(Error::invalid(format!(
            "a value of shape {:?} does not fit the indexed part {shape:?}",
            t.shape()
        ))
        .hint("the value must broadcast to the part it is written to"));
    }
    t.detach().try_reshape_to(own).map(Operand::Tensor)
}

/// A value as contiguous elements of a shape, in the dtype of a target and outside its memory.
fn whole(value: &Operand, target: &Tensor, shape: &[usize]) -> Result<Tensor> {
    match value {
        Operand::Tensor(t) => {
            let t = t.fitting(target.dtype())?.try_expand(shape)?.try_contiguous()?;
            if t.shares_memory(target) { t.try_clone_data() } else { Ok(t) }
        }
        Operand::Scalar(s) => Ok(Tensor::full_on(shape, *s, target.dtype(), target.device())),
    }
}

/// Fills a strided region.
fn write_view(view: &Tensor, value: &Operand) -> Result<()> {
    let l = view.layout();
    if view.numel() == 0 {
        return Ok(());
    }
    if let Device::Cuda(number) = view.device() {
        let gpu = gpu::gpu(number)?;
        return match value {
            Operand::Scalar(s) => gpu::fill(gpu, *s, view, l.clone()),
            Operand::Tensor(_) => gpu::copy_into(gpu, &whole(value, view, view.shape())?, view, l.clone()),
        };
    }
    match value {
        Operand::Scalar(s) => {
            copy::fill_strided(*s, view.values_mut().storage(), &l.shape, &l.strides, l.offset);
        }
        tensor => {
            let values = whole(tensor, view, &l.shape)?;
            let (mut to, from) = Tensor::values_pair(view, &values);
            copy::scatter_strided(from.slice(), to.storage(), &l.shape, &l.strides, l.offset);
        }
    }
    Ok(())
}

/// Fills the elements of a plan.
fn write_plan(view: &Tensor, plan: &IndexPlan, value: &Operand, shape: &[usize]) -> Result<()> {
    let origin = view.layout().offset;
    match value {
        Operand::Scalar(s) => {
            index_fill(view.values_mut().storage(), origin, plan, *s);
        }
        tensor => {
            let values = whole(tensor, view, shape)?;
            let (mut to, from) = Tensor::values_pair(view, &values);
            index_put(to.storage(), origin, plan, from.slice());
        }
    }
    Ok(())
}

/// An index whose tensors are kept elsewhere: what a gradient formula may hold on to.
pub(crate) struct Skeleton(Vec<Option<Index>>);

impl Skeleton {
    /// The index without its tensors, and those.
    pub fn new(index: &[Index]) -> (Skeleton, Vec<Tensor>) {
        let mut kept = Vec::new();
        let parts = index.iter().map(|part| match part {
            Index::Tensor(t) => {
                kept.push(t.clone());
                None
            }
            other => Some(other.clone()),
        });
        (Skeleton(parts.collect()), kept)
    }

    fn filled(&self, g: &Grad) -> Vec<Index> {
        let mut next = 0;
        let mut tensor = || {
            next += 1;
            Index::Tensor(g.saved(next - 1).clone())
        };
        self.0.iter().map(|part| part.clone().unwrap_or_else(&mut tensor)).collect()
    }
}

/// The gradients of a write: for the tensor, for those in its index, for the value if it is one (of that shape).
pub(crate) fn set_grads(
    g: &Grad,
    skeleton: &Skeleton,
    value: Option<&[usize]>,
    accumulate: bool,
) -> Result<Vec<Option<Tensor>>> {
    let index = skeleton.filled(g);
    let d = g.grad();
    let dx = g.if_needed(0, || if accumulate { d.clone() } else { d.setitem(index.clone(), 0.0) });
    let mut grads = vec![dx];
    grads.extend(skeleton.0.iter().filter(|part| part.is_none()).map(|_| None));
    if let Some(shape) = value {
        let wanted = g.needs(grads.len());
        grads.push(if wanted { Some(value_grad(&d, index, shape, accumulate)?) } else { None });
    }
    Ok(grads)
}

fn value_grad(d: &Tensor, index: Vec<Index>, shape: &[usize], accumulate: bool) -> Result<Tensor> {
    let lost = if accumulate { None } else { Lowered::new(d.shape(), &index)?.overwritten()? };
    let mut part = d.try_getitem(index)?;
    if let Some(lost) = lost {
        part = lost.try_where_cond(0.0, part)?;
    }
    let excess = shape.len().saturating_sub(part.ndim());
    sum_to(&part, &shape[excess..]).try_reshape_to(shape)
}

fn getitem_samples() -> Vec<Sample> {
    let x = || randn([2, 3, 4]);
    let rows = || values([1i64, 0], [2]);
    vec![
        sample![x(), i![1, .., -1]],
        sample![x(), i![..; -1, 1.., ..; 2]],
        sample![x(), i![..., None, 0]],
        sample![x(), i![.., [2, 0, 2]]],
        sample![x(), i![rows(), .., rows()]],
        sample![x(), i![.., 0, [1, 3]]],
        sample![randn([2, 3]), i![bools([2, 3])]],
        sample![randn([2, 3]), i![.., bools([3])]],
        sample![randn([2, 3]), i![true, ..1]],
        sample![randn([]), i![...]],
        sample![randn([2, 3]), i![values(Vec::<i64>::new(), [0])]],
    ]
}
fn index_get_samples() -> Vec<Sample> {
    let i = || values([1i64, 0, -1], [3]);
    vec![
        sample![randn([2, 3]), vec![i()], [1], 1],
        sample![randn([2, 3, 2]), vec![i(), i()], [0, 2], 0],
        sample![randn([3, 2]).t(), vec![values([1i64], [])], [0], 0],
    ]
}
fn index_unget_samples() -> Vec<Sample> {
    let i = || values([1i64, 0, -1], [3]);
    vec![
        sample![randn([2, 3]), vec![i()], [1], 1, [2, 3]],
        sample![randn([3, 3]), vec![i(), i()], [0, 2], 0, [2, 3, 2]],
    ]
}
fn setitem_samples() -> Vec<Sample> {
    vec![
        sample![randn([2, 3]), i![.., 1], 2.5],
        sample![randn([2, 3]), i![..; -1, 1..], randn([2])],
        sample![randn([2, 3]), i![1], randn([])],
        sample![randn([2, 3]), i![bools([2, 3])], 0.0],
        sample![randn([2, 3]), i![.., [2, 0]], randn([2, 2])].peer("lambda x, i, v: torch_write(x, [at(i)], [v])"),
        sample![randn([2, 3]), i![..., [1, 1]], randn([2, 2])]
            .peer("lambda x, i, v: torch_write(x, [(..., 1)] * 2, v.T)"),
        sample![randn([2, 3]), i![[1, 1, 0]], randn([3, 3]); accumulate = true]
            .peer("lambda x, i, v, accumulate: torch.index_put(x, at(i), v, accumulate)"),
        sample![randn([2, 3]), i![..1], randn([3]); accumulate = true]
            .peer("lambda x, i, v, accumulate: torch.cat([x[:1] + v, x[1:]])"),
    ]
}
