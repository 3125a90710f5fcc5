//! Putting tensors together and taking them apart.

use crate::ops::prelude::*;
use sampan_kernels::{arrange, copy};

/// Joins tensors along an axis that they have; their other extents must agree.
///
/// ```
/// # use sampan_core::{Tensor, ops::joining::concat};
/// let (x, y) = (Tensor::new([[1i64, 2]]), Tensor::new([[3i64, 4]]));
/// assert_eq!(concat(&[x, y], 1).to_vec::<i64>(), [1, 2, 3, 4]);
/// ```
#[op(complex, samples = concat_samples, onnx = "Concat", also("Tensor.concat", "concatenate", "cat"), alias(tensors = x))]
fn concat(cx: &Cx, x: &[Tensor], #[default(0)] axis: i64) -> Result<Tensor> {
    let dtype = promote_all(x)?;
    let first = &x[0];
    ensure!(first.ndim() > 0, "a 0-d tensor has no axis to join along; use stack");
    let axis = resolve_axis(axis, first.ndim())?;
    let mut shape = first.shape_vec();
    for (i, t) in x.iter().enumerate().skip(1) {
        let fits = t.ndim() == first.ndim() && (0..t.ndim()).all(|a| a == axis || t.shape()[a] == first.shape()[a]);
        ensure!(
            fits,
            "x[{i}] has shape {:?}, which does not continue {:?} along axis {axis}",
            t.shape(),
            first.shape()
        );
        shape[axis] += t.shape()[axis];
    }
    let out = cx.out(&shape, dtype)?;
    let cpu = || {
        let outer: usize = shape[..axis].iter().product();
        let parts = x.iter().map(|t| t.try_cast(dtype)).collect::<Result<Vec<_>>>()?;
        let mut data = out.values_mut();
        let mut rest = data.slice();
        if outer == 1 {
            // Each part is one run of the result, whatever its own strides.
            for t in &parts {
                let (run, after) = rest.split_at(t.numel());
                copy::copy_strided(t.values().view(), run);
                rest = after;
            }
        } else {
            let parts: Vec<Tensor> = parts.iter().map(Tensor::contiguous).collect();
            let guards: Vec<_> = parts.iter().map(|t| t.values()).collect();
            let slices: Vec<_> = guards.iter().map(|g| g.slice()).collect();
            arrange::concat(&slices, outer, rest);
        }
        Ok(())
    };
    cx.run(cpu, |gpu| {
        let whole = Layout::contiguous(&shape);
        let mut at = 0;
        for t in x {
            let offset = at * whole.strides[axis].unsigned_abs();
            let place = Layout { shape: t.shape_vec(), strides: whole.strides.clone(), offset };
            crate::gpu::copy_into(gpu, &t.try_cast(dtype)?, &out, place)?;
            at += t.shape()[axis];
        }
        Ok(true)
    })?;
    let ends: Vec<(usize, usize, DType)> = x
        .iter()
        .scan(0, |at, t| {
            *at += t.shape()[axis];
            Some((*at - t.shape()[axis], t.shape()[axis], t.dtype()))
        })
        .collect();
    cx.grad(out, &[], move |g| {
        let each = |(i, &(start, len, dtype)): (usize, &(usize, usize, DType))| {
            g.needs(i).then(|| g.grad().try_narrow(axis as i64, start, len)?.try_cast(dtype)).transpose()
        };
        ends.iter().enumerate().map(each).collect::<Result<Vec<_>>>()
    })
}

/// Joins tensors of one shape along a new axis.
///
/// ```
/// # use sampan_core::{Tensor, ops::joining::stack};
/// let (x, y) = (Tensor::new([1i64, 2]), Tensor::new([3i64, 4]));
/// assert_eq!(stack(&[x, y], 1).to_vec::<i64>(), [1, 3, 2, 4]);
/// ```
#[op(complex, samples = stack_samples, alias(tensors = x), also("Tensor.stack"))]
fn stack(x: &[Tensor], #[default(0)] axis: i64) -> Result<Tensor> {
    ensure!(!x.is_empty(), "needs at least one tensor");
    for (i, t) in x.iter().enumerate() {
        ensure!(t.shape() == x[0].shape(), "x[{i}] has shape {:?}, x[0] has {:?}", t.shape(), x[0].shape());
    }
    let axis = resolve_axis(axis, x[0].ndim() + 1)? as i64;
    let parts: Vec<Tensor> = x.iter().map(|t| t.unsqueeze(axis)).collect();
    try_concat(&parts, axis)
}

/// Consecutive pieces of an axis. Their gradient is one concatenation.
///
/// ```
/// # use sampan_core::Tensor;
/// let parts = Tensor::new([1i64, 2, 3]).split_at([1, 2], 0);
/// assert_eq!(parts[1].to_vec::<i64>(), [2, 3]);
/// ```
#[op(
    module = "_C_ops",
    complex,
    samples = split_at_samples,
    peer = "lambda x, sizes, axis: paddle.split(x, sizes, axis)",
    onnx = "Split",
    also("Tensor.split_with_sizes"),
    alias(split_sizes = sizes)
)]
fn split_at(cx: &Cx, x: &Tensor, sizes: &[i64], #[default(0)] axis: i64) -> Result<Vec<Tensor>> {
    let axis = resolve_axis(axis, x.ndim())?;
    ensure!(x.ndim() > 0, "a 0-d tensor has no axis to split");
    let n = x.shape()[axis];
    ensure!(sizes.iter().all(|&s| s >= 0), "sizes cannot be negative, got {sizes:?}");
    let total: i128 = sizes.iter().map(|&s| s as i128).sum();
    ensure!(total == n as i128, "sizes {sizes:?} add up to {total}, axis {axis} has extent {n}");
    let mut start = 0;
    let parts = sizes
        .iter()
        .map(|&len| {
            let part = x.try_narrow(axis as i64, start, len as usize)?;
            start += len as usize;
            x.lazy_copy(part.layout().clone())
        })
        .collect::<Result<Vec<_>>>()?;
    let count = parts.len();
    // Pieces nobody used have zeros for a gradient.
    cx.grad(parts, &[], move |g| try_concat(&(0..count).map(|i| g.grad_of(i)).collect::<Vec<_>>(), axis as i64))
}

/// Splits an axis into that many equal pieces, or into pieces of the given sizes, one of which may be -1 (what is left).
///
/// ```
/// # use sampan_core::Tensor;
/// let parts = Tensor::new([1i64, 2, 3, 4]).split(2, 0);
/// assert_eq!(parts[1].to_vec::<i64>(), [3, 4]);
/// let parts = Tensor::new([1i64, 2, 3, 4]).split([1, -1], 0);
/// assert_eq!(parts[1].to_vec::<i64>(), [2, 3, 4]);
/// ```
#[op(complex, samples = split_samples)]
fn split(x: &Tensor, num_or_sections: &Value, #[default(0)] axis: i64) -> Result<Vec<Tensor>> {
    ensure!(x.ndim() > 0, "a 0-d tensor has no axis to split");
    let n = x.shape()[resolve_axis(axis, x.ndim())?] as i64;
    let sizes: Vec<i64> = match num_or_sections {
        Value::Int(num) => {
            ensure!(*num > 0 && *num <= 1 << 24, "the number of pieces must be positive and reasonable, got {num}");
            if n % num != 0 {
                return Err(Error::invalid(format!("extent {n} cannot be split into {num} equal pieces"))
                    .hint("give the sizes, one of them -1, or use tensor_split"));
            }
            vec![n / num; *num as usize]
        }
        Value::Ints(sections) => {
            let free = sections.iter().filter(|&&s| s == -1).count();
            ensure!(free <= 1, "only one section may be -1, got {sections:?}");
            let known: i128 = sections.iter().filter(|&&s| s != -1).map(|&s| s as i128).sum();
            ensure!(free == 0 || (0..=n as i128).contains(&known), "sections {sections:?} do not fit extent {n}");
            sections.iter().map(|&s| if s == -1 { n - known as i64 } else { s }).collect()
        }
        other => bail!("num_or_sections must be an int or a list of ints, got {}", other.type_name()),
    };
    x.try_split_at(sizes, axis)
}

/// Splits an axis into that many equal pieces.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([1i64, 2, 3, 4]).chunk(2, 0)[0].to_vec::<i64>(), [1, 2]);
/// ```
#[op(complex, samples = chunk_samples)]
fn chunk(x: &Tensor, chunks: i64, #[default(0)] axis: i64) -> Result<Vec<Tensor>> {
    x.try_split(chunks, axis)
}

/// Splits an axis into that many pieces, the first ones longer by one where it does not divide, or before each of the
/// given positions.
///
/// ```
/// # use sampan_core::Tensor;
/// let x = Tensor::new([1i64, 2, 3, 4, 5]);
/// assert_eq!(x.tensor_split(2, 0)[0].to_vec::<i64>(), [1, 2, 3]);
/// assert_eq!(x.tensor_split([1, 3], 0)[1].to_vec::<i64>(), [2, 3]);
/// ```
#[op(
    complex,
    samples = tensor_split_samples,
    alias(indices = num_or_indices, sections = num_or_indices, indices_or_sections = num_or_indices)
)]
fn tensor_split(x: &Tensor, num_or_indices: &Value, #[default(0)] axis: i64) -> Result<Vec<Tensor>> {
    ensure!(x.ndim() > 0, "a 0-d tensor has no axis to split");
    let n = x.shape()[resolve_axis(axis, x.ndim())?] as i64;
    let bounds: Vec<(i64, i64)> = match num_or_indices {
        Value::Int(num) => {
            ensure!(*num > 0 && *num <= 1 << 24, "the number of pieces must be positive and reasonable, got {num}");
            let start = |i: i64| i * (n / num) + i.min(n % num);
            (0..*num).map(|i| (start(i), start(i + 1))).collect()
        }
        Value::Ints(at) => {
            let clip = |i: i64| if i < 0 { (i + n).max(0) } else { i.min(n) };
            let mut ends: Vec<i64> = std::iter::once(0).chain(at.iter().map(|&i| clip(i))).collect();
            ends.push(n);
            ends.windows(2).map(|w| (w[0], w[1].max(w[0]))).collect()
        }
        other => bail!("num_or_indices must be an int or a list of ints, got {}", other.type_name()),
    };
    if bounds.iter().map(|(a, b)| b - a).sum::<i64>() == n {
        return x.try_split_at(bounds.iter().map(|(a, b)| b - a).collect::<Vec<_>>(), axis);
    }
    // Positions that go backwards give pieces that overlap.
    bounds.iter().map(|&(a, b)| x.try_narrow(axis, a as usize, (b - a) as usize)?.try_assign()).collect()
}

/// `tensor_split` along the second axis, or along the only one.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([[1i64, 2], [3, 4]]).hsplit(2)[0].to_vec::<i64>(), [1, 3]);
/// ```
#[op(complex, samples = hsplit_samples)]
fn hsplit(x: &Tensor, num_or_indices: &Value) -> Result<Vec<Tensor>> {
    ensure!(x.ndim() >= 1, "needs at least 1 axis");
    even_split(x, num_or_indices, if x.ndim() == 1 { 0 } else { 1 })
}

/// `tensor_split` along the first of at least two axes.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([[1i64, 2], [3, 4]]).vsplit(2)[0].to_vec::<i64>(), [1, 2]);
/// ```
#[op(complex, samples = vsplit_samples)]
fn vsplit(x: &Tensor, num_or_indices: &Value) -> Result<Vec<Tensor>> {
    ensure!(x.ndim() >= 2, "needs at least 2 axes");
    even_split(x, num_or_indices, 0)
}

/// `tensor_split` along the third axis.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([[[1i64, 2]]]).dsplit(2)[1].to_vec::<i64>(), [2]);
/// ```
#[op(complex, samples = dsplit_samples)]
fn dsplit(x: &Tensor, num_or_indices: &Value) -> Result<Vec<Tensor>> {
    ensure!(x.ndim() >= 3, "needs at least 3 axes");
    even_split(x, num_or_indices, 2)
}

fn even_split(x: &Tensor, at: &Value, axis: i64) -> Result<Vec<Tensor>> {
    if let Value::Int(num) = at {
        let n = x.shape()[axis as usize] as i64;
        ensure!(*num > 0 && n % num == 0, "axis {axis} of extent {n} cannot be split into {num} equal pieces");
    }
    x.try_tensor_split(at.clone(), axis)
}

/// Joins side by side: along the second axis, vectors along their only one.
///
/// ```
/// # use sampan_core::{Tensor, ops::joining::hstack};
/// assert_eq!(hstack(&[Tensor::new([1i64, 2]), Tensor::new([3i64])]).to_vec::<i64>(), [1, 2, 3]);
/// ```
#[op(complex, samples = hstack_samples)]
fn hstack(x: &[Tensor]) -> Result<Tensor> {
    let parts = crate::ops::shape::try_atleast_1d(x)?.0;
    let axis = if parts.first().is_some_and(|t| t.ndim() == 1) { 0 } else { 1 };
    try_concat(&parts, axis)
}

/// Joins on top of each other; vectors count as rows.
///
/// ```
/// # use sampan_core::{Tensor, ops::joining::vstack};
/// assert_eq!(vstack(&[Tensor::new([1i64, 2]), Tensor::new([3i64, 4])]).shape(), [2, 2]);
/// ```
#[op(complex, samples = vstack_samples, also("row_stack"))]
fn vstack(x: &[Tensor]) -> Result<Tensor> {
    try_concat(&crate::ops::shape::try_atleast_2d(x)?.0, 0)
}

/// Joins along the third axis; tensors of fewer axes get them as in `atleast_3d`.
///
/// ```
/// # use sampan_core::{Tensor, ops::joining::dstack};
/// assert_eq!(dstack(&[Tensor::new([1i64, 2]), Tensor::new([3i64, 4])]).to_vec::<i64>(), [1, 3, 2, 4]);
/// ```
#[op(complex, samples = dstack_samples)]
fn dstack(x: &[Tensor]) -> Result<Tensor> {
    try_concat(&crate::ops::shape::try_atleast_3d(x)?.0, 2)
}

/// Joins side by side; vectors count as columns.
///
/// ```
/// # use sampan_core::{Tensor, ops::joining::column_stack};
/// assert_eq!(column_stack(&[Tensor::new([1i64, 2]), Tensor::new([3i64, 4])]).to_vec::<i64>(), [1, 3, 2, 4]);
/// ```
#[op(complex, samples = column_stack_samples)]
fn column_stack(x: &[Tensor]) -> Result<Tensor> {
    let column = |t: &Tensor| if t.ndim() < 2 { t.try_reshape_to([t.numel(), 1]) } else { Ok(t.clone()) };
    try_concat(&x.iter().map(column).collect::<Result<Vec<_>>>()?, 1)
}

/// Matrices placed along the diagonal of a larger one, zeros elsewhere; vectors count as rows.
///
/// ```
/// # use sampan_core::{Tensor, ops::joining::block_diag};
/// assert_eq!(block_diag(&[Tensor::new([[1i64, 2]]), Tensor::new(3i64)]).to_vec::<i64>(), [1, 2, 0, 0, 0, 3]);
/// ```
#[op(complex, samples = block_diag_samples, also("Tensor.block_diag"))]
fn block_diag(inputs: &[Tensor]) -> Result<Tensor> {
    let blocks = crate::ops::shape::try_atleast_2d(inputs)?.0;
    for (i, b) in blocks.iter().enumerate() {
        ensure!(b.ndim() == 2, "inputs[{i}] has rank {}, at most 2 is possible", b.ndim());
    }
    let width: usize = blocks.iter().map(|b| b.shape()[1]).sum();
    let mut at = 0;
    let rows = blocks
        .iter()
        .map(|b| {
            let before = at as i64;
            at += b.shape()[1];
            b.try_pad_around([0, before], [0, (width - at) as i64], 0)
        })
        .collect::<Result<Vec<_>>>()?;
    try_concat(&rows, 0)
}

/// Coordinates of a grid: each vector repeated along the axes of the others. `indexing` is `ij` (the first vector runs
/// down the rows) or `xy` (along the columns).
///
/// ```
/// # use sampan_core::{Tensor, ops::joining::meshgrid};
/// let grid = meshgrid(&[Tensor::new([1i64, 2]), Tensor::new([3i64, 4])]);
/// assert_eq!(grid[0].to_vec::<i64>(), [1, 1, 2, 2]);
/// ```
#[op(complex, samples = meshgrid_samples)]
fn meshgrid(inputs: &[Tensor], #[opt("ij")] indexing: &str) -> Result<Vec<Tensor>> {
    ensure!(indexing == "ij" || indexing == "xy", "indexing must be \"ij\" or \"xy\", got {indexing:?}");
    for (i, t) in inputs.iter().enumerate() {
        ensure!(t.ndim() <= 1, "inputs[{i}] has rank {}, a vector is needed", t.ndim());
    }
    let rank = inputs.len();
    let place = |i: usize| if indexing == "xy" && rank > 1 && i < 2 { 1 - i } else { i };
    let mut shape = vec![0; rank];
    inputs.iter().enumerate().for_each(|(i, t)| shape[place(i)] = t.numel());
    let spread = |(i, t): (usize, &Tensor)| {
        let mut own = vec![1; rank];
        own[place(i)] = t.numel();
        t.try_reshape_to(own)?.try_expand(shape.as_slice())
    };
    inputs.iter().enumerate().map(spread).collect()
}

/// Every way to take one element of each vector, as rows.
///
/// ```
/// # use sampan_core::{Tensor, ops::joining::cartesian_prod};
/// let rows = cartesian_prod(&[Tensor::new([1i64, 2]), Tensor::new([3i64, 4])]);
/// assert_eq!(rows.to_vec::<i64>(), [1, 3, 1, 4, 2, 3, 2, 4]);
/// ```
#[op(complex, samples = cartesian_samples)]
fn cartesian_prod(x: &[Tensor]) -> Result<Tensor> {
    ensure!(x.iter().all(|t| t.ndim() == 1), "every tensor must be a vector");
    if let [one] = x {
        return Ok(one.clone());
    }
    let columns = try_meshgrid(x)?.iter().map(|t| t.try_flatten(0, -1)).collect::<Result<Vec<_>>>()?;
    try_stack(&columns, -1)
}

/// Every choice of `r` elements of a vector, in order of their positions, as rows.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([1i64, 2, 3]).combinations(2).to_vec::<i64>(), [1, 2, 1, 3, 2, 3]);
/// ```
#[op(complex, samples = combinations_samples)]
fn combinations(x: &Tensor, #[default(2)] r: i64, #[opt(false)] with_replacement: bool) -> Result<Tensor> {
    ensure!(x.ndim() == 1, "x must be a vector");
    ensure!(r >= 0, "r cannot be negative, got {r}");
    if r == 0 {
        return Ok(Tensor::zeros([0], x.dtype()));
    }
    let (n, r) = (x.numel() as i64, r as usize);
    let choices = if with_replacement { (x.numel() + r).saturating_sub(1) } else { x.numel() };
    let count = binomial(choices, r);
    if count == 0 {
        return x.try_index_select(&Tensor::zeros([0], DType::Int64), 0)?.try_reshape_to([0, r]);
    }
    crate::shape::check_room(count.saturating_mul(r))?;
    let mut rows: Vec<i64> = Vec::new();
    let mut pick: Vec<i64> = (0..r as i64).map(|i| if with_replacement { 0 } else { i }).collect();
    // The largest value of each position, and the next choice in lexicographic order.
    let last = |i: usize| if with_replacement { n - 1 } else { n - (r - i) as i64 };
    let mut more = n > 0 && pick[r - 1] < n;
    while more {
        rows.extend_from_slice(&pick);
        more = match (0..r).rev().find(|&i| pick[i] < last(i)) {
            Some(i) => {
                pick[i] += 1;
                for j in i + 1..r {
                    pick[j] = pick[j - 1] + !with_replacement as i64;
                }
                true
            }
            None => false,
        };
    }
    let count = rows.len() / r;
    x.try_index_select(&Tensor::from_vec(rows, [count * r]), 0)?.try_reshape_to([count, r])
}

/// The number of ways to choose `r` of `n`; `usize::MAX` where it is larger.
fn binomial(n: usize, r: usize) -> usize {
    let Some(rest) = n.checked_sub(r) else { return 0 };
    let (mut ways, r) = (1u128, r.min(rest));
    for i in 1..=r {
        ways = ways * (n - r + i) as u128 / i as u128;
        if ways > usize::MAX as u128 {
            return usize::MAX;
        }
    }
    ways as usize
}

fn pair(a: Tensor, b: Tensor) -> Vec<Tensor> {
    vec![a, b]
}

fn concat_samples() -> Vec<Sample> {
    vec![
        sample![pair(randn([2, 3]), randn([1, 3]))],
        sample![pair(randn([2, 3]), randn([2, 1])), -1],
        sample![vec![randn([2, 1, 2]), randn([2, 0, 2]), randn([2, 3, 2])], 1],
        sample![vec![randn([3])]],
        sample![vec![complexes([2, 3]), complexes([2, 1])], 1],
    ]
}
fn stack_samples() -> Vec<Sample> {
    vec![
        sample![pair(randn([2, 3]), uniform([2, 3], 0.0, 1.0))],
        sample![pair(randn([2, 3]), uniform([2, 3], 0.0, 1.0)), -1],
        sample![pair(randn([]), uniform([], 0.0, 1.0))],
        sample![pair(randn([0, 2]), randn([0, 2])), 1],
    ]
}
fn split_at_samples() -> Vec<Sample> {
    vec![sample![randn([2, 5]), [2, 0, 3], -1], sample![randn([4]), [1, 3], 0]]
}
fn split_samples() -> Vec<Sample> {
    vec![sample![randn([4, 3]), 2], sample![randn([2, 5]), [1, -1, 2], 1], sample![randn([2, 3]), [2, 1], -1]]
}
fn chunk_samples() -> Vec<Sample> {
    vec![sample![randn([4, 3]), 2], sample![randn([2, 6]), 3, -1]]
}
fn tensor_split_samples() -> Vec<Sample> {
    vec![
        sample![randn([5, 2]), 3],
        sample![randn([2, 4]), [1, 3], 1],
        sample![randn([4]), [3, 1]],
        sample![randn([2, 4]), [-1], -1],
    ]
}
fn hsplit_samples() -> Vec<Sample> {
    vec![sample![randn([4]), 2], sample![randn([2, 3]), [1]]]
}
fn vsplit_samples() -> Vec<Sample> {
    vec![sample![randn([4, 2]), 2], sample![randn([3, 2]), [1]]]
}
fn dsplit_samples() -> Vec<Sample> {
    vec![sample![randn([1, 2, 4]), 2], sample![randn([1, 2, 3]), [1]]]
}
fn hstack_samples() -> Vec<Sample> {
    vec![
        sample![pair(randn([2]), randn([3]))],
        sample![pair(randn([2, 1]), randn([2, 2]))],
        sample![pair(randn([]), uniform([], 0.0, 1.0))],
    ]
}
fn vstack_samples() -> Vec<Sample> {
    vec![sample![pair(randn([2]), randn([2]))], sample![pair(randn([1, 2]), randn([2, 2]))], sample![vec![randn([])]]]
}
fn dstack_samples() -> Vec<Sample> {
    vec![sample![pair(randn([2]), randn([2]))], sample![pair(randn([2, 2]), randn([2, 2, 2]))]]
}
fn column_stack_samples() -> Vec<Sample> {
    vec![sample![pair(randn([2]), randn([2, 2]))], sample![pair(randn([3]), randn([3]))]]
}
fn block_diag_samples() -> Vec<Sample> {
    vec![sample![vec![randn([2]), randn([]), randn([2, 3])]], sample![vec![randn([2, 2])]]]
}
fn meshgrid_samples() -> Vec<Sample> {
    vec![
        sample![pair(randn([2]), randn([3]))],
        sample![vec![randn([2]), randn([3]), randn([1])]; indexing = "xy"]
            .peer("lambda xs, indexing: torch.meshgrid(*xs, indexing=indexing)"),
        sample![vec![randn([2])]].grad_peer("lambda xs: torch.clone(xs[0])"),
    ]
}
fn cartesian_samples() -> Vec<Sample> {
    vec![sample![pair(randn([2]), randn([3]))], sample![vec![randn([2])]]]
}
fn combinations_samples() -> Vec<Sample> {
    vec![
        sample![randn([4])],
        sample![randn([3]), 2; with_replacement = true],
        sample![randn([3]), 0],
        sample![randn([2]), 3].peer("torch.combinations"),
    ]
}
