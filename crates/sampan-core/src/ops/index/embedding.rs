//! Rows of a table by their ids, and the table of unit rows.

use crate::gpu;
use crate::ops::gather::{as_indices, outside};
use crate::ops::prelude::*;
use sampan_cuda::index::Rule;
use sampan_kernels::index;

/// Rows of `weight` for the ids in `x`. The row `padding_idx` reads as zeros and gets no gradient; rows longer than
/// `max_norm` in the norm `norm_type` are shortened in place; `scale_grad_by_freq` divides each row's gradient by how
/// often it was read. `sparse` is accepted; gradients are dense, but only rows in use are computed.
///
/// ```
/// # use sampan_core::Tensor;
/// let weight = Tensor::new([[0.0f32, 1.0], [2.0, 3.0]]);
/// assert_eq!(Tensor::new([1i64, 0]).embedding(&weight, None).to_vec::<f32>(), [2.0, 3.0, 0.0, 1.0]);
/// ```
#[op(module = "nn.functional", samples = embedding_samples, amp = "black_o2")]
fn embedding(
    x: &Tensor,
    weight: &Tensor,
    #[default(None)] padding_idx: Option<i64>,
    #[opt(None)] max_norm: Option<f64>,
    #[opt(2.0)] norm_type: f64,
    #[opt(false)] sparse: bool,
    #[opt(false)] scale_grad_by_freq: bool,
) -> Result<Tensor> {
    let _ = sparse;
    ensure!(weight.ndim() == 2, "weight must be 2-D [num_embeddings, embedding_dim], got {:?}", weight.shape());
    let rows = weight.shape()[0] as i64;
    let padding = match padding_idx {
        Some(p) if p < -rows || p >= rows => {
            return Err(Error::range(format!("padding_idx must lie in [{}, {rows}), got {p}", -rows)));
        }
        Some(p) => p.rem_euclid(rows.max(1)),
        None => -1,
    };
    if let Some(limit) = max_norm {
        ensure!(limit > 0.0, "max_norm must be positive, got {limit}");
        renorm_rows(weight, &as_indices(x, "x")?, limit, norm_type)?;
    }
    x.try_embedding_rows(weight, padding, scale_grad_by_freq)
}

/// Shortens the rows in use to a norm, in place and unrecorded.
fn renorm_rows(weight: &Tensor, ids: &Tensor, limit: f64, p: f64) -> Result<()> {
    if !weight.device().has_values() || !ids.device().has_values() {
        return Ok(());
    }
    let (rows, width) = (weight.shape()[0], weight.shape()[1]);
    let ids = ids.to_vec::<i64>();
    index::check(&ids, rows, false).map_err(|e| outside(0, e))?;
    let mut values = weight.detach().try_clone_data()?.try_to_f64_rows()?;
    let mut changed = false;
    let mut seen = vec![false; rows];
    for id in ids {
        if std::mem::replace(&mut seen[id as usize], true) {
            continue;
        }
        let row = &mut values[id as usize * width..][..width];
        let norm = match p {
            f64::INFINITY => row.iter().fold(0.0, |m: f64, v| m.max(v.abs())),
            _ => row.iter().map(|v| v.abs().powf(p)).sum::<f64>().powf(1.0 / p),
        };
        if norm > limit {
            changed = true;
            row.iter_mut().for_each(|v| *v *= limit / (norm + 1e-7));
        }
    }
    if changed {
        weight.try_set_value(&Tensor::from_vec(values, weight.shape()).try_cast(weight.dtype())?)?;
    }
    Ok(())
}

impl Tensor {
    fn try_to_f64_rows(&self) -> Result<Vec<f64>> {
        self.try_cast(DType::Float64)?.try_to_vec::<f64>()
    }
}

/// The lookup of `embedding`: `padding` is a row or -1.
#[op(
    internal,
    samples = embedding_rows_samples,
    peer = "lambda x, w, padding, by_freq: torch.where((x == padding)[..., None], 0, F.embedding(x, w))"
)]
fn embedding_rows(cx: &Cx, x: &Tensor, weight: &Tensor, padding: i64, by_freq: bool) -> Result<Tensor> {
    let ids = as_indices(x, "x")?;
    ensure!(weight.ndim() == 2, "weight must have the axes row and width, got shape {:?}", weight.shape());
    let (rows, width) = (weight.shape()[0], weight.shape()[1]);
    let mut shape = x.shape_vec();
    shape.push(width);
    let out = cx.out(&shape, weight.dtype())?;
    let cpu = || {
        let w = weight.contiguous();
        let ids = ids.data::<i64>();
        // Rows without columns tell the kernel nothing about their number.
        index::check(ids.slice(), rows, false)
            .and_then(|_| match width {
                0 => Ok(()),
                _ => {
                    let (w, mut out) = (w.values(), out.values_mut());
                    index::embedding(w.slice(), width, ids.slice(), Some(padding), out.slice())
                }
            })
            .map_err(|e| outside(0, e).hint("ids must lie in [0, num_embeddings)"))
    };
    let rule = Rule { op: "embedding", wrap: false, skip: (padding >= 0).then_some(padding) };
    cx.run(cpu, |gpu| gpu::index::rows(gpu, rule, weight, 0, &ids, &out))?;
    cx.grad(out, &[x], move |g| {
        let (ids, mut d) = (g.saved(0), g.grad());
        if by_freq {
            d = d * frequency(ids, rows)?.reciprocal().cast(g.grad().dtype());
        }
        Ok([None, Some(d.unembed(ids, rows as i64, padding))])
    })
}

/// How often each id occurs, in the shape of the ids with one more axis.
fn frequency(ids: &Tensor, rows: usize) -> Result<Tensor> {
    let flat = ids.try_reshape_to([ids.numel()].as_slice())?;
    let ones = Tensor::full_on(flat.shape(), 1.0, DType::Float32, ids.device());
    let counts = ones.try_unselect(&flat, 0, rows as i64)?.try_index_select(&flat, 0)?;
    let mut shape = ids.shape_vec();
    shape.push(1);
    counts.try_reshape_to(shape)
}

/// Zeros with `n` rows, to which the rows of `x` are added at `ids`, none at `padding`: the gradient of `embedding`.
#[op(
    internal,
    samples = unembed_samples,
    peer = "lambda x, i, n, padding: torch.zeros(n, x.shape[-1]).index_add(0, i.reshape(-1), \
            torch.where((i == padding)[..., None], 0, x).reshape(-1, x.shape[-1]))"
)]
fn unembed(cx: &Cx, x: &Tensor, ids: &Tensor, n: i64, padding: i64) -> Result<Tensor> {
    let idx = as_indices(ids, "ids")?;
    let width = *x.shape().last().ok_or_else(|| Error::invalid("x must have a last axis, the row"))?;
    ensure!(n >= 0 && x.shape()[..x.ndim() - 1] == *ids.shape(), "x must have one row for each id");
    let out = cx.zeros([n as usize, width], x.dtype())?;
    let cpu = || {
        if width == 0 {
            return Ok(());
        }
        let x = x.contiguous();
        let idx = idx.data::<i64>();
        let x = x.values();
        index::embedding_grad(out.values_mut().slice(), width, idx.slice(), Some(padding), x.slice())
            .map_err(|e| outside(0, e))
    };
    let rule = Rule { op: "embedding", wrap: false, skip: (padding >= 0).then_some(padding) };
    cx.run(cpu, |gpu| gpu::index::add_rows(gpu, rule, x, 1.0, 0, &idx, &out))?;
    cx.grad(out, &[ids], move |g| Ok([Some(g.saved(0).embedding_rows(&g.grad(), padding, false)), None]))
}

/// One row for each id in `x`, one at the id and zero elsewhere. Without `num_classes` it is the largest id plus one.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([1i64, 0]).one_hot(3).to_vec::<f32>(), [0.0, 1.0, 0.0, 1.0, 0.0, 0.0]);
/// ```
#[op(non_diff, module = "nn.functional", samples = one_hot_samples)]
fn one_hot(cx: &Cx, x: &Tensor, #[default(-1)] num_classes: i64) -> Result<Tensor> {
    let idx = as_indices(x, "x")?;
    ensure!(num_classes >= -1, "num_classes must be positive, or -1 to find it, got {num_classes}");
    let classes = if num_classes == -1 {
        cx.needs_values()?;
        let largest = idx.data::<i64>().slice().iter().max().copied();
        largest.map_or(0, |m| m.max(-1).saturating_add(1))
    } else {
        num_classes
    };
    let mut shape = x.shape_vec();
    shape.push(classes as usize);
    let out = cx.out(&shape, default_dtype())?;
    let cpu = || {
        let idx = idx.data::<i64>();
        index::one_hot(idx.slice(), classes as usize, out.values_mut().slice()).map_err(|e| {
            Error::range(format!(
                "label {} at position {} must lie in [0, {classes}), the number of classes",
                e.value, e.position
            ))
        })
    };
    cx.run(cpu, |gpu| gpu::index::one_hot(gpu, &idx, classes as usize, &out))?;
    Ok(out)
}

fn embedding_samples() -> Vec<Sample> {
    vec![
        sample![values([1i64, 0, 1, 3], [2, 2]), randn([4, 3])],
        sample![values([1i32, 0, 1], [3]), randn([4, 2]), 1],
        sample![values([1i64, 0, 1], [3]), randn([4, 2]), -1; sparse = true]
            .peer("lambda x, w, padding, sparse: F.embedding(x, w, padding)"),
        sample![values([2i64], []), randn([4, 2])],
        sample![values([1i64, 0, 1], [3]), randn([4, 2]); scale_grad_by_freq = true]
            .no_grad("the gradient is scaled on purpose")
            .peer("torch.nn.functional.embedding"),
        sample![values([1i64, 0, 1], [3]), positive([4, 2]); max_norm = 0.5, norm_type = 1.0]
            .no_grad("rows are shortened in place"),
    ]
}
fn embedding_rows_samples() -> Vec<Sample> {
    vec![
        sample![values([1i64, 0, 1, 3], [2, 2]), randn([4, 3]), 1, false],
        sample![values(Vec::<i64>::new(), [0]), randn([4, 3]), -1, false],
    ]
}
fn unembed_samples() -> Vec<Sample> {
    vec![
        sample![randn([2, 2, 3]), values([1i64, 0, 1, 3], [2, 2]), 5, 0],
        sample![randn([2]), values([1i64], []), 3, -1],
    ]
}
fn one_hot_samples() -> Vec<Sample> {
    vec![
        sample![values([1i64, 0, 2], [3]), 4],
        sample![values([1i32, 0, 2, 2], [2, 2])],
        sample![values([1i64], []), 3],
    ]
}
