//! Products of tensors that come down to matrix products: Kronecker, over chosen axes, chains, bilinear forms.

use crate::ops::einsum::einsum;
use crate::ops::prelude::*;

/// The Kronecker product: every element of `x` times a copy of `y`, axis by axis.
///
/// ```
/// # use sampan_core::Tensor;
/// let x = Tensor::new([[1i64, 2]]);
/// assert_eq!(x.kron(&Tensor::new([[1i64, 10]])).to_vec::<i64>(), [1, 10, 2, 20]);
/// ```
#[op(complex, samples = kron_samples)]
fn kron(x: &Tensor, y: &Tensor) -> Result<Tensor> {
    let rank = x.ndim().max(y.ndim());
    let padded = |t: &Tensor| [vec![1; rank - t.ndim()], t.shape().to_vec()].concat();
    let (a, b) = (padded(x), padded(y));
    let left: Vec<usize> = a.iter().flat_map(|&n| [n, 1]).collect();
    let right: Vec<usize> = b.iter().flat_map(|&n| [1, n]).collect();
    let shape: Vec<usize> = a.iter().zip(&b).map(|(m, n)| m * n).collect();
    Ok((x.reshape_to(left) * y.reshape_to(right)).reshape_to(shape))
}

/// The sum of products over chosen axes: the last `n` of `x` with the first `n` of `y` for a number, the same axes of both
/// for a list, or those of a pair of lists. A shorter list is continued by the longer one; axes of 1 broadcast.
///
/// ```
/// # use sampan_core::Tensor;
/// let x = Tensor::new([[1i64, 2], [3, 4]]);
/// assert_eq!(x.tensordot(&x, 1).to_vec::<i64>(), [7, 10, 15, 22]);
/// assert_eq!(x.tensordot(&x, [0, 1]).to_vec::<i64>(), [30]);
/// ```
#[op(complex, samples = tensordot_samples, amp = "white")]
fn tensordot(x: &Tensor, y: &Tensor, #[default(2)] axes: &Value) -> Result<Tensor> {
    let (ax, ay) = contracted_axes(x, y, axes)?;
    let mut sum_x = Vec::new();
    let (mut a, mut b) = (x.clone(), y.clone());
    for (&i, &j) in ax.iter().zip(&ay) {
        let (n, m) = (a.shape()[i], b.shape()[j]);
        let add_up = |t: &Tensor, axis: usize| {
            t.sum_with(axis, crate::ops::reduction::SumOpts::new().dtype(t.dtype()).keepdim(true))
        };
        match (n, m) {
            (n, m) if n == m => {}
            (1, _) => b = add_up(&b, j),
            (_, 1) => a = add_up(&a, i),
            _ => bail!("axis {i} of x has extent {n}, axis {j} of y has {m}"),
        }
        sum_x.push(a.shape()[i]);
    }
    let k: usize = sum_x.iter().product();
    let free = |t: &Tensor, used: &[usize]| (0..t.ndim()).filter(|i| !used.contains(i)).collect::<Vec<_>>();
    let (fx, fy) = (free(&a, &ax), free(&b, &ay));
    let sizes = |t: &Tensor, axes: &[usize]| axes.iter().map(|&i| t.shape()[i]).collect::<Vec<usize>>();
    let (sx, sy) = (sizes(&a, &fx), sizes(&b, &fy));
    let rows = a.transpose([fx, ax].concat()).reshape_to([sx.iter().product(), k]);
    let columns = b.transpose([ay, fy].concat()).reshape_to([k, sy.iter().product()]);
    Ok(rows.matrix_product(&columns).reshape_to([sx, sy].concat()))
}

/// The axes that `tensordot` sums over, as positions in `x` and in `y`.
fn contracted_axes(x: &Tensor, y: &Tensor, axes: &Value) -> Result<(Vec<usize>, Vec<usize>)> {
    let list = |v: &Value| -> Result<Vec<i64>> {
        match v {
            Value::Ints(v) => Ok(v.to_vec()),
            Value::Int(i) => Ok(vec![*i]),
            Value::Tensor(t) if t.dtype().is_int() => t.try_to_ints(),
            Value::List(v) if v.is_empty() => Ok(Vec::new()),
            other => Err(Error::dtype(format!("axes must be ints or lists of ints, got {}", other.type_name()))),
        }
    };
    let (mut ax, mut ay) = match axes {
        Value::Int(n) => {
            let n = usize::try_from(*n).ok().filter(|&n| n <= x.ndim().min(y.ndim()));
            let Some(n) = n else { bail!("axes={axes:?} must lie between 0 and the ranks of x and y") };
            ((x.ndim() - n..x.ndim()).map(|i| i as i64).collect(), (0..n as i64).collect())
        }
        Value::Tensor(t) if t.ndim() == 2 => {
            ensure!((1..=2).contains(&t.dim(0)), "axes must have one or two rows, got shape {:?}", t.shape());
            let rows = list(axes)?;
            let (a, b) = rows.split_at(t.dim(1));
            (a.to_vec(), b.to_vec())
        }
        Value::List(lists) if !lists.is_empty() => {
            (list(&lists[0])?, lists.get(1).map(list).transpose()?.unwrap_or_default())
        }
        other => (list(other)?, Vec::new()),
    };
    let (n, m) = (ax.len(), ay.len());
    ax.extend_from_slice(ay.get(n..).unwrap_or_default());
    ay.extend_from_slice(ax.get(m..n.max(m)).unwrap_or_default());
    let resolve = |axes: &[i64], t: &Tensor, name: &str| -> Result<Vec<usize>> {
        let mut out = Vec::new();
        for &a in axes {
            ensure!(t.ndim() > 0, "{name} has no axes, {axes:?} were named");
            let a = resolve_axis(a, t.ndim())?;
            ensure!(!out.contains(&a), "axis {a} of {name} is named twice in {axes:?}");
            out.push(a);
        }
        Ok(out)
    };
    Ok((resolve(&ax, x, "x")?, resolve(&ay, y, "y")?))
}

/// The product of a chain of matrices, multiplied in the order that takes the fewest multiplications. The first and the
/// last may be vectors.
///
/// ```
/// # use sampan_core::{Tensor, ops::products::multi_dot};
/// let x = Tensor::new([[1.0f32, 2.0], [3.0, 4.0]]);
/// let v = Tensor::new([1.0f32, 1.0]);
/// assert_eq!(multi_dot(&[v.clone(), x.clone(), x, v]).to_f64(), 54.0);
/// ```
#[op(module = "linalg", samples = chains, amp = "white")]
fn multi_dot(x: &[Tensor]) -> Result<Tensor> {
    let last = x.len().wrapping_sub(1);
    ensure!(x.len() >= 2, "needs at least two matrices, got {}", x.len());
    for (i, t) in x.iter().enumerate() {
        let end = i == 0 || i == last;
        ensure!(t.ndim() == 2 || (end && t.ndim() == 1), "matrix {i} of the chain has {} axes", t.ndim());
    }
    let mut chain = x.to_vec();
    let (row, column) = (x[0].ndim() == 1, x[last].ndim() == 1);
    if row {
        chain[0] = chain[0].unsqueeze(0);
    }
    if column {
        chain[last] = chain[last].unsqueeze(1);
    }
    for (i, pair) in chain.windows(2).enumerate() {
        let (k, rows) = (pair[0].dim(1), pair[1].dim(0));
        ensure!(k == rows, "matrix {i} of the chain has {k} columns, matrix {} has {rows} rows", i + 1);
    }
    let sizes: Vec<usize> = std::iter::once(chain[0].dim(0)).chain(chain.iter().map(|t| t.dim(1))).collect();
    let out = multiply_range(&chain, &cheapest_splits(&sizes), 0, last);
    Ok(match (row, column) {
        (true, true) => out.squeeze([0, 1]),
        (true, false) => out.squeeze(0),
        (false, true) => out.squeeze(1),
        (false, false) => out,
    })
}

/// Where to split each range of a chain whose matrix `i` is `sizes[i] × sizes[i + 1]`.
fn cheapest_splits(sizes: &[usize]) -> Vec<Vec<usize>> {
    let n = sizes.len() - 1;
    let mut cost = vec![vec![0f64; n]; n];
    let mut split = vec![vec![0; n]; n];
    for len in 1..n {
        for i in 0..n - len {
            let j = i + len;
            cost[i][j] = f64::INFINITY;
            for s in i..j {
                let product = sizes[i] as f64 * sizes[s + 1] as f64 * sizes[j + 1] as f64;
                let total = cost[i][s] + cost[s + 1][j] + product;
                if total < cost[i][j] {
                    (cost[i][j], split[i][j]) = (total, s);
                }
            }
        }
    }
    split
}

fn multiply_range(chain: &[Tensor], split: &[Vec<usize>], i: usize, j: usize) -> Tensor {
    if i == j {
        return chain[i].clone();
    }
    let s = split[i][j];
    multiply_range(chain, split, i, s).matrix_product(&multiply_range(chain, split, s + 1, j))
}

/// The cross product of vectors of three elements along `axis`; by default along the first axis of that extent.
///
/// ```
/// # use sampan_core::Tensor;
/// let (x, y) = (Tensor::new([1.0f32, 0.0, 0.0]), Tensor::new([0.0f32, 1.0, 0.0]));
/// assert_eq!(x.cross(&y, 0).to_vec::<f32>(), [0.0, 0.0, 1.0]);
/// ```
#[op(also("linalg.cross"), samples = crosses)]
fn cross(x: &Tensor, y: &Tensor, #[default(9)] axis: i64) -> Result<Tensor> {
    let shape = broadcast(x.shape(), y.shape())?;
    let axis = if axis == 9 {
        let first = shape.iter().position(|&n| n == 3);
        first.ok_or_else(|| Error::invalid("no axis has extent 3").hint("the vectors must have three elements"))?
    } else {
        resolve_axis(axis, shape.len())?
    };
    let extent = shape.get(axis).copied().unwrap_or(1);
    ensure!(extent == 3, "axis {axis} has extent {extent}, it must be 3");
    let (x, y) = (x.expand(&shape), y.expand(&shape));
    let part = |t: &Tensor, i: usize| crate::error::unwrap(t.try_narrow(axis as i64, i % 3, 1));
    let minor = |i: usize| part(&x, i + 1) * part(&y, i + 2) - part(&x, i + 2) * part(&y, i + 1);
    crate::ops::joining::try_concat(&[minor(0), minor(1), minor(2)], axis as i64)
}

/// A form that is linear in both inputs: `out[b, o] = Σ x1[b, i] weight[o, i, j] x2[b, j] + bias[o]`.
///
/// ```
/// # use sampan_core::Tensor;
/// let (x1, x2) = (Tensor::new([[1.0f32, 2.0]]), Tensor::new([[3.0f32]]));
/// let weight = Tensor::new([[[1.0f32], [1.0]]]);
/// assert_eq!(x1.bilinear(&x2, &weight, None).to_vec::<f32>(), [9.0]);
/// ```
#[op(module = "nn.functional", samples = bilinears, amp = "white")]
fn bilinear(x1: &Tensor, x2: &Tensor, weight: &Tensor, #[default(None)] bias: Option<&Tensor>) -> Result<Tensor> {
    ensure!(x1.ndim() == 2 && x2.ndim() == 2, "x1 and x2 must be [batch, features]");
    ensure!(weight.ndim() == 3, "weight must be [out_features, in1_features, in2_features]");
    ensure!(x1.dim(0) == x2.dim(0), "x1 has {} rows, x2 has {}", x1.dim(0), x2.dim(0));
    let (i, j) = (weight.dim(1), weight.dim(2));
    ensure!(x1.dim(1) == i, "x1 has {} columns, weight takes {i}", x1.dim(1));
    ensure!(x2.dim(1) == j, "x2 has {} columns, weight takes {j}", x2.dim(1));
    let out = einsum("bi,oij,bj->bo", &[x1.clone(), weight.clone(), x2.clone()]);
    match bias {
        Some(b) => {
            ensure!(
                b.numel() == weight.dim(0),
                "bias has {} elements, weight has {} outputs",
                b.numel(),
                weight.dim(0)
            );
            out.try_add(b)
        }
        None => Ok(out),
    }
}

fn kron_samples() -> Vec<Sample> {
    vec![
        sample![randn([2, 2]), randn([2, 3])],
        sample![randn([2]), randn([2, 1, 2])],
        sample![randn([]), randn([2, 2])].peer("torch.kron"),
        sample![complexes([2]), complexes([3])],
    ]
}

fn tensordot_samples() -> Vec<Sample> {
    let list = |a: &[i64], b: &[i64]| Value::List(vec![Value::from(a), Value::from(b)]);
    vec![
        sample![randn([2, 3]), randn([3, 2]), 1],
        sample![randn([2, 2, 3]), randn([2, 3])],
        sample![randn([2, 2]), randn([3]), 0],
        sample![randn([2, 3]), randn([2, 3, 2]), [0, 1]],
        sample![randn([2, 3]), randn([3, 2, 2]), list(&[0, 1], &[1, 0])],
        sample![randn([2, 1]), randn([3, 2]), 1],
    ]
}

fn chains() -> Vec<Sample> {
    vec![
        sample![vec![randn([2, 3]), randn([3, 1]), randn([1, 2])]],
        sample![vec![randn([2]), randn([2, 3]), randn([3])]],
        sample![vec![randn([2, 2]), randn([2])]],
    ]
}

fn crosses() -> Vec<Sample> {
    vec![
        sample![randn([3]), uniform([3], 0.3, 2.0)],
        sample![randn([2, 3]), uniform([2, 3], 0.3, 2.0)],
        sample![randn([3, 3]), uniform([3, 3], 0.3, 2.0), 1],
    ]
}

fn bilinears() -> Vec<Sample> {
    vec![
        sample![randn([2, 3]), randn([2, 2]), randn([2, 3, 2]), randn([1, 2])],
        sample![randn([2, 3]), randn([2, 2]), randn([1, 3, 2])],
    ]
}
