//! Putting tensors together and taking them apart.

use super::prelude::*;
use sampan_kernels::{arrange, copy};

/// Joins tensors along an axis that they have; their other extents must agree.
///
/// ```
/// # use sampan_core::{Tensor, ops::joining::concat};
/// let (x, y) = (Tensor::new([[1i64, 2]]), Tensor::new([[3i64, 4]]));
/// assert_eq!(concat(&[x, y], 1).to_vec::<i64>(), [1, 2, 3, 4]);
/// ```
#[op(samples = concat_samples, onnx = "Concat", also("cat"), alias(tensors = x))]
fn concat(cx: &Cx, x: &[Tensor], #[default(0)] axis: i64) -> Result<Tensor> {
    let dtype = promote_all(x)?;
    let first = &x[0];
    ensure!(first.ndim() > 0, "a 0-d tensor has no axis to join along; use stack");
    let axis = resolve_axis(axis, first.ndim())?;
    let mut shape = first.shape_vec();
    for (i, t) in x.iter().enumerate().skip(1) {
        let fits = t.ndim() == first.ndim() && (0..t.ndim()).all(|a| a == axis || t.shape()[a] == first.shape()[a]);
        ensure!(fits, "x[{i}] has shape {:?}, which does not continue {:?} along axis {axis}", t.shape(), first.shape());
        shape[axis] += t.shape()[axis];
    }
    let out = cx.out(&shape, dtype)?;
    cx.cpu(|| {
        let outer: usize = shape[..axis].iter().product();
        let parts = x.iter().map(|t| t.try_cast(dtype)).collect::<Result<Vec<_>>>()?;
        match_dtype!(dtype, T => {
            let mut data = out.data_mut::<T>();
            let mut rest = data.slice();
            if outer == 1 {
                // Each part is one run of the result, whatever its own strides.
                for t in &parts {
                    let (run, after) = rest.split_at_mut(t.numel());
                    copy::copy_strided(t.data::<T>().view(), run);
                    rest = after;
                }
            } else {
                let parts: Vec<Tensor> = parts.iter().map(Tensor::contiguous).collect();
                let guards: Vec<_> = parts.iter().map(|t| t.data::<T>()).collect();
                let slices: Vec<&[T]> = guards.iter().map(|g| g.slice()).collect();
                arrange::concat(&slices, outer, rest);
            }
        });
        Ok(())
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
#[op(samples = stack_samples, alias(tensors = x))]
fn stack(x: &[Tensor], #[default(0)] axis: i64) -> Result<Tensor> {
    ensure!(!x.is_empty(), "needs at least one tensor");
    for (i, t) in x.iter().enumerate() {
        ensure!(t.shape() == x[0].shape(), "x[{i}] has shape {:?}, x[0] has {:?}", t.shape(), x[0].shape());
    }
    let axis = resolve_axis(axis, x[0].ndim() + 1)? as i64;
    let parts: Vec<Tensor> = x.iter().map(|t| t.unsqueeze(axis)).collect();
    try_concat(&parts, axis)
}

/// Views of consecutive pieces of an axis. Their gradient is one concatenation.
///
/// ```
/// # use sampan_core::Tensor;
/// let parts = Tensor::new([1i64, 2, 3]).split_at([1, 2], 0);
/// assert_eq!(parts[1].to_vec::<i64>(), [2, 3]);
/// ```
#[op(samples = split_at_samples, peer = "lambda x, sizes, axis: paddle.split(x, sizes, axis)", onnx = "Split", also("Tensor.split_with_sizes"), alias(split_sizes = sizes))]
fn split_at(cx: &Cx, x: &Tensor, sizes: &[i64], #[default(0)] axis: i64) -> Result<Vec<Tensor>> {
    let axis = resolve_axis(axis, x.ndim())?;
    ensure!(x.ndim() > 0, "a 0-d tensor has no axis to split");
    let n = x.shape()[axis];
    ensure!(sizes.iter().all(|&s| s >= 0), "sizes cannot be negative, got {sizes:?}");
    let total: i64 = sizes.iter().sum();
    ensure!(total == n as i64, "sizes {sizes:?} add up to {total}, axis {axis} has extent {n}");
    let mut start = 0;
    let parts = sizes
        .iter()
        .map(|&len| {
            let part = x.try_narrow(axis as i64, start, len as usize);
            start += len as usize;
            part
        })
        .collect::<Result<Vec<_>>>()?;
    let shapes: Vec<Shape> = parts.iter().map(Tensor::shape_vec).collect();
    let dtype = x.dtype();
    cx.grad(parts, &[], move |g| {
        // Pieces nobody used have no gradient: zeros take their place.
        let grads: Vec<Tensor> = shapes
            .iter()
            .enumerate()
            .map(|(i, s)| if g.has_grad(i) { g.grad_of(i) } else { Tensor::zeros(s, dtype) })
            .collect();
        try_concat(&grads, axis as i64)
    })
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
#[op(samples = split_samples)]
fn split(x: &Tensor, num_or_sections: &Value, #[default(0)] axis: i64) -> Result<Vec<Tensor>> {
    ensure!(x.ndim() > 0, "a 0-d tensor has no axis to split");
    let n = x.shape()[resolve_axis(axis, x.ndim())?] as i64;
    let sizes: Vec<i64> = match num_or_sections {
        Value::Int(num) => {
            ensure!(*num > 0, "the number of pieces must be positive, got {num}");
            if n % num != 0 {
                return Err(Error::invalid(format!("extent {n} cannot be split into {num} equal pieces"))
                    .hint("give the sizes, one of them -1, or use tensor_split"));
            }
            vec![n / num; *num as usize]
        }
        Value::Ints(sections) => {
            let free = sections.iter().filter(|&&s| s == -1).count();
            ensure!(free <= 1, "only one section may be -1, got {sections:?}");
            let known: i64 = sections.iter().filter(|&&s| s != -1).sum();
            ensure!(free == 0 || known <= n, "sections {sections:?} exceed extent {n}");
            sections.iter().map(|&s| if s == -1 { n - known } else { s }).collect()
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
#[op(samples = chunk_samples)]
fn chunk(x: &Tensor, chunks: i64, #[default(0)] axis: i64) -> Result<Vec<Tensor>> {
    x.try_split(chunks, axis)
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
