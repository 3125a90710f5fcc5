//! Choosing by truth values.

use crate::ops::elementwise::sum_to;
use crate::ops::prelude::*;
use sampan_kernels::index;

/// A condition as truth values.
pub(crate) fn as_mask(t: &Tensor, name: &str) -> Result<Tensor> {
    if t.dtype() != DType::Bool {
        return Err(Error::dtype(format!("`{name}` must be bool, got {}", t.dtype()))
            .hint(format!("{name}.cast(\"bool\") or a comparison")));
    }
    Ok(t.detach())
}

/// Without choices the positions are meant, one tensor for each axis.
fn where_alone(args: &[Value]) -> bool {
    matches!(args.get(1), Some(Value::None))
}

/// One tensor of positions for each axis.
fn nonzero_as_tuple(args: &[Value]) -> bool {
    matches!(args.get(1), Some(Value::Bool(true)))
}

/// The elements of `x` where `condition` holds and of `y` elsewhere, all broadcast together; with the condition alone,
/// the positions where it holds, one tensor for each axis.
///
/// ```
/// # use sampan_core::Tensor;
/// let x = Tensor::new([1.0f32, -2.0]);
/// let y = Tensor::new([true, false]).where_cond(&x, 0.0);
/// assert_eq!(y.to_vec::<f32>(), [1.0, 0.0]);
/// ```
#[op(complex, samples = where_samples, peer = "paddle.where", several = where_alone)]
fn r#where(
    condition: &Tensor,
    #[default(None)] x: Option<Operand>,
    #[default(None)] y: Option<Operand>,
) -> Result<Varying> {
    match (x, y) {
        (Some(x), Some(y)) => Ok(Varying(vec![condition.try_where_cond(x, y)?])),
        (None, None) => condition.try_nonzero(true),
        _ => bail!("give both x and y, or neither for the positions where the condition holds"),
    }
}

fn operand_dtype(x: &Operand, y: &Operand) -> DType {
    match (x, y) {
        (Operand::Tensor(x), y) => promote_operand(x, y),
        (x, Operand::Tensor(y)) => promote_operand(y, x),
        (Operand::Scalar(a), Operand::Scalar(b)) => match (a, b) {
            (Scalar::Complex(_), _) | (_, Scalar::Complex(_)) => default_dtype().complex(),
            (Scalar::Float(_), _) | (_, Scalar::Float(_)) => default_dtype(),
            (Scalar::Bool(_), Scalar::Bool(_)) => DType::Bool,
            _ => DType::Int64,
        },
    }
}

/// `where` with both choices given: a tensor or a number each.
///
/// ```
/// # use sampan_core::Tensor;
/// let c = Tensor::new([[true], [false]]);
/// assert_eq!(c.where_cond(&Tensor::new([1i64, 2]), 0).to_vec::<i64>(), [1, 2, 0, 0]);
/// ```
#[op(module = "_C_ops", complex, samples = where_cond_samples, onnx = "Where", peer = "paddle.where")]
fn where_cond(cx: &Cx, condition: &Tensor, x: Operand, y: Operand) -> Result<Tensor> {
    let mask = as_mask(condition, "condition")?;
    let dtype = operand_dtype(&x, &y);
    let out = cx.values_in(dtype, formula!(|c, x, y| select(c, x, y)), (&mask, &x, &y))?;
    let (xs, ys) = (x.tensor().map(Tensor::shape_vec), y.tensor().map(Tensor::shape_vec));
    cx.grad(out, &[condition], move |g| {
        let (c, d) = (g.saved(0), g.grad());
        let mut grads = vec![None];
        if let Some(xs) = &xs {
            grads.push(g.if_needed(1, || sum_to(&c.where_cond(&d, 0.0), xs)));
        }
        if let Some(ys) = &ys {
            grads.push(g.if_needed(grads.len(), || sum_to(&c.where_cond(0.0, &d), ys)));
        }
        Ok(grads)
    })
}

impl Tensor {
    /// `where` that writes into this tensor: it keeps its elements where `condition` holds and takes `y` elsewhere.
    ///
    /// ```
    /// # use sampan_core::Tensor;
    /// let mut x = Tensor::new([1.0f32, -2.0]);
    /// x.where_(&Tensor::new([true, false]), 0.0);
    /// assert_eq!(x.to_vec::<f32>(), [1.0, 0.0]);
    /// ```
    #[track_caller]
    pub fn where_(&mut self, condition: &Tensor, y: impl Into<Operand>) -> &mut Tensor {
        crate::error::unwrap(self.try_where_(condition, y));
        self
    }

    /// Like [`where_`](Self::where_), returning the error instead of panicking.
    #[track_caller]
    pub fn try_where_(&mut self, condition: &Tensor, y: impl Into<Operand>) -> Result<()> {
        self.replaced_by("where_", |x| condition.try_where_cond(x, y))
    }
}

/// A number brought to a dtype, so that it cannot widen a tensor of that dtype.
pub(crate) fn scalar_as(s: Scalar, dtype: DType) -> Scalar {
    match dtype {
        // Whoever writes it finds out whether it fits.
        _ if matches!(s, Scalar::Complex(_)) => s,
        DType::Bool => Scalar::Bool(s.to_f64() != 0.0),
        d if d.is_int() => Scalar::Int(s.to_i64()),
        _ => Scalar::Float(s.to_f64()),
    }
}

/// `value` where `mask` is true, `x` elsewhere. The value is a number or a tensor that broadcasts, usually 0-d.
///
/// ```
/// # use sampan_core::Tensor;
/// let x = Tensor::new([1.0f32, 2.0, 3.0]);
/// assert_eq!(x.masked_fill(&Tensor::new([true, false, true]), 0.0).to_vec::<f32>(), [0.0, 2.0, 0.0]);
/// ```
#[op(inplace, complex, samples = masked_fill_samples)]
fn masked_fill(x: &Tensor, mask: &Tensor, value: Operand) -> Result<Tensor> {
    as_mask(mask, "mask")?;
    let value = match value {
        Operand::Scalar(s) => Operand::Scalar(scalar_as(s, x.dtype())),
        Operand::Tensor(t) => Operand::Tensor(t.fitting(x.dtype())?),
    };
    mask.try_where_cond(value, x)
}

/// Positions of the elements that are not zero, one row each.
///
/// ```
/// # use sampan_core::Tensor;
/// let x = Tensor::new([[0.0f32, 2.0], [3.0, 0.0]]);
/// assert_eq!(x.argwhere().to_vec::<i64>(), [0, 1, 1, 0]);
/// ```
#[op(non_diff, complex, samples = positions_samples, onnx = "NonZero")]
fn argwhere(cx: &Cx, x: &Tensor) -> Result<Tensor> {
    cx.needs_values()?;
    let x = x.contiguous();
    let flat = index::nonzero(x.values().slice(), x.shape());
    let count = match x.ndim() {
        0 => x.try_cast(DType::Bool)?.to_f64() as usize,
        rank => flat.len() / rank,
    };
    Tensor::try_from_slice(&flat, [count, x.ndim()])
}

/// Positions of the elements that are not zero: one row each, or with `as_tuple` one tensor for each axis.
///
/// ```
/// # use sampan_core::Tensor;
/// let x = Tensor::new([0.0f32, 2.0, 3.0]);
/// assert_eq!(x.nonzero(false).0[0].shape(), [2, 1]);
/// assert_eq!(x.nonzero(true).0[0].to_vec::<i64>(), [1, 2]);
/// ```
#[op(non_diff, complex, samples = nonzero_samples, several = nonzero_as_tuple)]
fn nonzero(x: &Tensor, #[default(false)] as_tuple: bool) -> Result<Varying> {
    let rows = x.try_argwhere()?;
    if !as_tuple {
        return Ok(Varying(vec![rows]));
    }
    (0..x.ndim()).map(|a| rows.try_select(1, a)?.try_contiguous()).collect::<Result<_>>().map(Varying)
}

/// The elements of `x` where `mask` is true, in order, both broadcast together.
///
/// ```
/// # use sampan_core::Tensor;
/// let x = Tensor::new([[1i64, 2], [3, 4]]);
/// assert_eq!(x.masked_select(&Tensor::new([true, false])).to_vec::<i64>(), [1, 3]);
/// ```
#[op(complex, samples = masked_select_samples)]
fn masked_select(x: &Tensor, mask: &Tensor) -> Result<Tensor> {
    let mask = as_mask(mask, "mask")?;
    let shape = broadcast(x.shape(), mask.shape())?;
    let n = shape.iter().product::<usize>();
    let places = mask.try_expand(&shape)?.try_reshape_to([n].as_slice())?.try_argwhere()?;
    let count = places.shape()[0];
    let flat = x.try_expand(&shape)?.try_reshape_to([n].as_slice())?;
    flat.try_index_select(&places.try_reshape_to([count].as_slice())?, 0)
}

/// Rows picked from several tensors: row `i` of the result is row `i` of `inputs[index[i]]`.
///
/// ```
/// # use sampan_core::{ops::masking::multiplex, Tensor};
/// let (a, b) = (Tensor::new([[1i64, 2], [3, 4]]), Tensor::new([[5i64, 6], [7, 8]]));
/// assert_eq!(multiplex(&[a, b], &Tensor::new([[1i64], [0]])).to_vec::<i64>(), [5, 6, 3, 4]);
/// ```
#[op(complex, samples = multiplex_samples, also("Tensor.multiplex"))]
fn multiplex(inputs: &[Tensor], index: &Tensor) -> Result<Tensor> {
    let first = inputs.first().ok_or_else(|| Error::invalid("inputs must hold at least one tensor"))?;
    ensure!(first.ndim() > 0, "inputs must have rows");
    ensure!(inputs.iter().all(|t| t.shape() == first.shape()), "inputs must all have the shape {:?}", first.shape());
    let rows = index.numel();
    ensure!(rows <= first.shape()[0], "index has {rows} entries, the inputs have {} rows", first.shape()[0]);
    let index = crate::ops::gather::as_indices(index, "index")?.try_reshape_to([rows].as_slice())?;
    let mut column = Shape::from_elem(1, first.ndim());
    column[0] = rows;
    let mut out = first.try_narrow(0, 0, rows)?;
    let picks = index.try_one_hot(inputs.len() as i64)?.try_cast(DType::Bool)?;
    for (i, t) in inputs.iter().enumerate().skip(1) {
        let mask = picks.try_select(1, i)?.try_reshape_to(&column)?;
        out = mask.try_where_cond(t.try_narrow(0, 0, rows)?, out)?;
    }
    Ok(out)
}

fn where_samples() -> Vec<Sample> {
    vec![
        sample![bools([2, 3]), randn([2, 3]), randn([2, 3])],
        sample![bools([2, 3]), randn([3]), 0.5],
        sample![values([Bool(1), Bool(0), Bool(1)], [3])],
    ]
}
fn where_cond_samples() -> Vec<Sample> {
    vec![
        sample![bools([2, 3]), randn([2, 3]), uniform([2, 3], -1.0, 1.0)],
        sample![bools([2, 1]), randn([3]), randn([1, 3])],
        sample![bools([2, 3]), randn([]), 2.0],
        sample![bools([3]), 1.0, 2.0],
        sample![bools([]), 3, ints([2], 0, 5)],
        sample![bools([0, 3]), randn([3]), 1.0],
        sample![bools([2, 3]), complexes([2, 3]), complexes([3])],
    ]
}
fn masked_fill_samples() -> Vec<Sample> {
    vec![
        sample![randn([2, 3]), bools([2, 3]), 1.5],
        sample![randn([2, 3]), bools([3]), randn([])].peer("torch.masked_fill"),
        sample![randn([3]), bools([2, 3]), 0.0],
        sample![ints([2, 3], 0, 5), bools([2, 1]), 7],
        sample![randn([]), bools([]), 1.0],
    ]
}
fn positions_samples() -> Vec<Sample> {
    vec![
        sample![values([0.0f32, 1.0, 2.0, 0.0, 0.0, -1.0], [2, 3])],
        sample![bools([2, 2, 2])],
        sample![ints([4], 0, 2)],
    ]
}
fn nonzero_samples() -> Vec<Sample> {
    vec![sample![bools([2, 3])], sample![bools([2, 3]), true], sample![ints([4], 0, 2), true]]
}
fn masked_select_samples() -> Vec<Sample> {
    vec![sample![randn([2, 3]), bools([2, 3])], sample![randn([2, 3]), bools([3])], sample![randn([3]), bools([2, 1])]]
}
fn multiplex_samples() -> Vec<Sample> {
    vec![
        sample![vec![randn([3, 2]), uniform([3, 2], 0.0, 1.0), positive([3, 2])], values([2i32, 0, 1], [3, 1])],
        sample![vec![randn([2]), positive([2])], values([1i32, 0], [2, 1])]
            .peer("lambda xs, i: torch.gather(torch.stack(xs), 0, i.T.long())[0]"),
    ]
}
