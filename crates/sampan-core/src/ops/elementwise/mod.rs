//! Elementwise ops: a formula on tensors, with dtype promotion, broadcasting and the gradient that follows from it.

pub mod activation;
pub mod arithmetic;
pub mod closeness;
pub mod complex;
pub mod extremes;
pub mod logic;
pub mod math;
pub mod pairs;
pub mod piecewise;
pub mod rounding;
pub mod special;
pub mod trigonometric;

use crate::ops::prelude::*;
use sampan_formula::{Bound, Constant};
use sampan_kernels::{AnySlice, AnyView, map};
use smallvec::SmallVec;

/// The sum over the axes that broadcasting added or stretched, back to `shape`.
pub(crate) fn sum_to(g: &Tensor, shape: &[usize]) -> Tensor {
    if g.shape() == shape {
        return g.clone();
    }
    let lead = g.ndim() - shape.len();
    let axes: Vec<i64> =
        (0..g.ndim()).filter(|&i| i < lead || (shape[i - lead] == 1 && g.shape()[i] != 1)).map(|i| i as i64).collect();
    let summed = if axes.is_empty() { g.clone() } else { g.sum(axes) };
    summed.reshape_to(shape)
}

/// The gradients of an op of two operands, each brought back to its operand's shape; none for a number.
pub(crate) fn pair_grads(
    g: &Grad,
    x: &[usize],
    y: Option<&[usize]>,
    dx: impl FnOnce() -> Tensor,
    dy: impl FnOnce() -> Tensor,
) -> Vec<Option<Tensor>> {
    let mut out = vec![g.if_needed(0, || sum_to(&dx(), x))];
    if let Some(y) = y {
        out.push(g.if_needed(1, || sum_to(&dy(), y)));
    }
    out
}

/// What a formula is applied to: tensors, and numbers that stand for tensors.
pub(crate) trait Operands<'a> {
    /// The tensors among them, after the numbers became constants of the formula. They are fitted to the dtype that is
    /// computed in, unless a truth value is asked for: a comparison is right with numbers that do not fit.
    fn bind(self, f: Bound, dtype: Option<DType>) -> (Bound, Tensors<'a>);
    /// The dtype they promote to.
    fn promoted(&self) -> DType;
}

type Tensors<'a> = SmallVec<[&'a Tensor; 3]>;

impl<'a> Operands<'a> for &'a Tensor {
    fn bind(self, f: Bound, _: Option<DType>) -> (Bound, Tensors<'a>) {
        (f, smallvec::smallvec![self])
    }
    fn promoted(&self) -> DType {
        self.dtype()
    }
}

impl<'a> Operands<'a> for (&'a Tensor, &'a Operand) {
    fn bind(self, f: Bound, dtype: Option<DType>) -> (Bound, Tensors<'a>) {
        match self.1 {
            Operand::Tensor(y) => (f, smallvec::smallvec![self.0, y]),
            Operand::Scalar(s) => (f.with_number(1, constant(*s, dtype)), smallvec::smallvec![self.0]),
        }
    }
    fn promoted(&self) -> DType {
        promote_operand(self.0, self.1)
    }
}

impl<'a> Operands<'a> for (&'a Tensor, &'a Tensor) {
    fn bind(self, f: Bound, _: Option<DType>) -> (Bound, Tensors<'a>) {
        (f, smallvec::smallvec![self.0, self.1])
    }
    fn promoted(&self) -> DType {
        promote_tensors(self.0, self.1)
    }
}

/// A condition and what it chooses between.
impl<'a> Operands<'a> for (&'a Tensor, &'a Operand, &'a Operand) {
    fn bind(self, mut f: Bound, dtype: Option<DType>) -> (Bound, Tensors<'a>) {
        let mut tensors: Tensors = smallvec::smallvec![self.0];
        // The last one first, so that the places of the others stay.
        for (place, operand) in [(2, self.2), (1, self.1)] {
            match operand {
                Operand::Tensor(t) => tensors.insert(1, t),
                Operand::Scalar(s) => f = f.with_number(place, constant(*s, dtype)),
            }
        }
        (f, tensors)
    }
    fn promoted(&self) -> DType {
        promote_operand(self.0, self.1)
    }
}

impl<'a> Operands<'a> for &'a [Tensor] {
    fn bind(self, f: Bound, _: Option<DType>) -> (Bound, Tensors<'a>) {
        (f, self.iter().collect())
    }
    fn promoted(&self) -> DType {
        self.iter().map(Tensor::dtype).reduce(crate::promote::promote).unwrap_or_else(default_dtype)
    }
}

/// A tensor in another dtype, unless its elements are converted as they are read and that is the same as a cast.
fn fit(t: &Tensor, dtype: DType) -> Result<Option<Tensor>> {
    let exact = !dtype.is_half() && (!dtype.is_int() || dtype == DType::Int64);
    let as_is = exact || t.dtype() == dtype || t.dtype() == DType::Bool;
    if as_is { Ok(None) } else { t.try_cast(dtype).map(Some) }
}

/// A number as a constant of a formula, as the dtype holds it.
pub(crate) fn constant(s: Scalar, dtype: Option<DType>) -> Constant {
    let s = match dtype {
        Some(dtype) => s.rounded(dtype),
        None => s,
    };
    match s {
        Scalar::Bool(b) => Constant::Int(b as i64),
        Scalar::Int(i) => Constant::Int(i),
        Scalar::Float(v) => Constant::Float(v),
        Scalar::Complex(z) => Constant::Complex(z.re, z.im),
    }
}

impl Cx<'_> {
    /// A formula over floats, with its gradient; integers become the default float first.
    pub(crate) fn float<'a>(&self, f: Bound, operands: impl Operands<'a>) -> Result<Tensor> {
        let dtype = to_float(operands.promoted());
        self.derived(f, dtype, operands)
    }

    /// A formula over numbers, with its gradient; integers stay integers.
    pub(crate) fn number<'a>(&self, f: Bound, operands: impl Operands<'a>) -> Result<Tensor> {
        let dtype = operands.promoted();
        self.derived(f, dtype, operands)
    }

    /// The values of [`float`](Self::float), for an op that states its gradient itself.
    pub(crate) fn float_values<'a>(&self, f: Bound, operands: impl Operands<'a>) -> Result<Tensor> {
        let dtype = to_float(operands.promoted());
        let (f, tensors) = operands.bind(f, Some(dtype));
        self.values(&f, dtype, dtype, &tensors)
    }

    /// The values of [`number`](Self::number), for an op that states its gradient itself.
    pub(crate) fn number_values<'a>(&self, f: Bound, operands: impl Operands<'a>) -> Result<Tensor> {
        let dtype = operands.promoted();
        let (f, tensors) = operands.bind(f, Some(dtype));
        self.values(&f, dtype, dtype, &tensors)
    }

    /// The values of a formula computed in a dtype, for an op that states its gradient itself.
    pub(crate) fn values_in<'a>(&self, dtype: DType, f: Bound, operands: impl Operands<'a>) -> Result<Tensor> {
        let (f, tensors) = operands.bind(f, Some(dtype));
        self.values(&f, dtype, dtype, &tensors)
    }

    /// A formula over integers or truth values; floats are refused.
    pub(crate) fn integer<'a>(&self, f: Bound, operands: impl Operands<'a>) -> Result<Tensor> {
        let dtype = operands.promoted();
        if dtype.is_inexact() {
            return Err(Error::dtype(format!("needs integers or bool, got {dtype}")));
        }
        self.number_values(f, operands)
    }

    /// A truth value from each element.
    pub(crate) fn truth<'a>(&self, f: Bound, operands: impl Operands<'a>) -> Result<Tensor> {
        let dtype = operands.promoted();
        self.truth_in(dtype, f, operands)
    }

    /// A truth value from each element, computed in a dtype.
    pub(crate) fn truth_in<'a>(&self, dtype: DType, f: Bound, operands: impl Operands<'a>) -> Result<Tensor> {
        let (f, tensors) = operands.bind(f, None);
        self.values(&f, dtype, DType::Bool, &tensors)
    }

    /// A real number from each complex one.
    pub(crate) fn part(&self, f: Bound, x: &Tensor) -> Result<Tensor> {
        self.values(&f, x.dtype(), x.dtype().real_part(), &[x])
    }

    /// A formula of one number whose gradient follows from the result: `back` is over the result and its gradient. The
    /// input need not be kept then.
    pub(crate) fn by_result(&self, f: Bound, back: Bound, x: &Tensor, keeps_integers: bool) -> Result<Tensor> {
        let dtype = if keeps_integers { x.dtype() } else { to_float(x.dtype()) };
        let out = self.values(&f, dtype, dtype, &[x])?;
        self.grad_from_output(out, &[], move |g| apply(&back, vec![g.output(0).clone(), g.grad()]))
    }

    /// A formula of one number with a gradient written by hand: `back` is over the input and the gradient of the result.
    pub(crate) fn by_input(&self, f: Bound, back: Bound, x: &Tensor) -> Result<Tensor> {
        let dtype = to_float(x.dtype());
        let out = self.values(&f, dtype, dtype, &[x])?;
        self.grad(out, &[x], move |g| apply(&back, vec![g.saved(0).clone(), g.grad()]))
    }

    /// The values of a formula computed in `dtype`, as another dtype.
    fn values(&self, f: &Bound, dtype: DType, result: DType, tensors: &[&Tensor]) -> Result<Tensor> {
        let mut shape = tensors[0].shape_vec();
        for t in &tensors[1..] {
            if t.shape() != &shape[..] {
                shape = broadcast(&shape, t.shape())?;
            }
        }
        let out = if shape.len() > 3 { self.out_like(tensors, &shape, result)? } else { self.out(&shape, result)? };
        crate::dispatch::is_formula(f, dtype, tensors, &out);
        if let Some(gpu) = self.gpu()? {
            let fitted: SmallVec<[Option<Tensor>; 3]> = tensors.iter().map(|t| fit(t, dtype)).collect::<Result<_>>()?;
            let tensors: Tensors = tensors.iter().zip(&fitted).map(|(t, cast)| cast.as_ref().unwrap_or(t)).collect();
            crate::gpu::map(gpu, f, dtype, &tensors, &out)?;
            return Ok(out);
        }
        let own = matches!(dtype, DType::Float32 | DType::Float64 | DType::Int64) && result == dtype;
        let plain = own && tensors.iter().all(|t| t.dtype() == dtype && t.shape() == &shape[..] && t.is_contiguous());
        let kernel = if plain { on_slices } else { on_views };
        self.cpu(|| kernel(f, dtype, tensors, &out))?;
        self.keeps(tensors, &out, || {
            let f = f.clone();
            move |tensors: &[&Tensor], out: &Tensor| kernel(&f, dtype, tensors, out)
        });
        Ok(out)
    }

    /// The values, and the gradient as the formula's derivative.
    fn derived<'a>(&self, f: Bound, dtype: DType, operands: impl Operands<'a>) -> Result<Tensor> {
        let (f, tensors) = operands.bind(f, Some(dtype));
        let out = self.values(&f, dtype, dtype, &tensors)?;
        if !self.records() {
            return self.grad(out, &[], |_| Ok(Vec::<Option<Tensor>>::new()));
        }
        // What the gradients of the tracked inputs read: inputs by number, then the result, then its gradient.
        let (count, complex) = (tensors.len(), dtype.is_complex());
        let mut reads = SmallVec::<[bool; 4]>::from_elem(false, count + 2);
        for (i, pull) in f.formula().pullbacks(complex).iter().enumerate() {
            if tensors[i].is_tracked() {
                pull.reads.iter().for_each(|&r| reads[r] = true);
            }
        }
        let saved: Tensors = tensors.iter().zip(&reads).filter(|&(_, &read)| read).map(|(&t, _)| t).collect();
        let shapes: SmallVec<[Shape; 3]> = tensors.iter().map(|t| t.shape_vec()).collect();
        let from_result = reads[count];
        let formula = move |g: &Grad| {
            let place = |i: usize| reads[..i].iter().filter(|&&read| read).count();
            let read = |r: usize| match r {
                r if r < count => g.saved(place(r)).clone(),
                r if r == count => g.output(0).clone(),
                _ => g.grad(),
            };
            let mut grads = Vec::with_capacity(count);
            for (i, pull) in f.formula().pullbacks(complex).iter().enumerate() {
                if !g.needs(i) {
                    grads.push(None);
                    continue;
                }
                let tensors: Vec<Tensor> = pull.reads.iter().map(|&r| read(r)).collect();
                let grad = if pull.formula.is_zero() {
                    crate::ops::math::zeros_like_grad(g)
                } else {
                    apply(&f.with(pull.formula.clone()), tensors)?
                };
                grads.push(Some(sum_to(&grad, &shapes[i])));
            }
            Ok(grads)
        };
        match from_result {
            true => self.grad_from_output(out, &saved, formula),
            false => self.grad(out, &saved, formula),
        }
    }
}

/// The values of a formula on contiguous tensors of its dtype and of one shape.
fn on_slices(f: &Bound, dtype: DType, tensors: &[&Tensor], out: &Tensor) -> Result<()> {
    let values: SmallVec<[_; 3]> = tensors.iter().map(|t| t.values()).collect();
    let slices: SmallVec<[AnySlice; 3]> = values.iter().map(|v| v.slice()).collect();
    map::map_slices(f, dtype, &slices, out.values_mut().slice());
    Ok(())
}

/// The values of a formula on tensors of any kind.
fn on_views(f: &Bound, dtype: DType, tensors: &[&Tensor], out: &Tensor) -> Result<()> {
    let fitted: SmallVec<[Option<Tensor>; 3]> = tensors.iter().map(|t| fit(t, dtype)).collect::<Result<_>>()?;
    let tensors: Tensors = tensors.iter().zip(&fitted).map(|(t, cast)| cast.as_ref().unwrap_or(t)).collect();
    let shape = out.shape();
    let layouts: SmallVec<[Option<Layout>; 3]> =
        tensors.iter().map(|t| (t.shape() != shape).then(|| t.layout().broadcast_to(shape))).collect();
    let values: SmallVec<[_; 3]> = tensors.iter().map(|t| t.values()).collect();
    let inputs: SmallVec<[AnyView; 3]> = values
        .iter()
        .zip(&layouts)
        .map(|(v, layout)| layout.as_ref().map_or_else(|| v.view(), |l| v.view_as(l)))
        .collect();
    map::map(f, dtype, &inputs, out.values_mut().slice());
    Ok(())
}

/// A formula on tensors, as a call of its own; a tensor that it only passes on is passed on.
pub(crate) fn apply(f: &Bound, tensors: Vec<Tensor>) -> Result<Tensor> {
    match f.formula().is_input() {
        Some(i) => Ok(tensors.into_iter().nth(i).expect("one tensor for each input")),
        None => try_elementwise(&tensors, f.clone()),
    }
}

/// A formula on tensors that broadcast: what gradients of elementwise ops are, and what a chain of them is fused to.
///
/// ```
/// # use sampan_core::{Tensor, formula, ops::elementwise};
/// let (x, y) = (Tensor::new([1.0f32, 2.0]), Tensor::new([3.0f32]));
/// let z = elementwise::elementwise(&[x, y], formula!(|x, y| x * x + y));
/// assert_eq!(z.to_vec::<f32>(), [4.0, 7.0]);
/// ```
#[op(complex, module = "_C_ops", samples = formula_samples, peer = "none: formulas are this library's own")]
fn elementwise(cx: &Cx, x: &[Tensor], formula: Bound) -> Result<Tensor> {
    let (have, want) = (x.len(), formula.formula().inputs());
    ensure!(have == want && have > 0, "the formula is over {want} numbers, got {have} tensors");
    match formula.formula() {
        f if f.is_truth() => cx.truth(formula, x),
        f if f.keeps_integers() => cx.number(formula, x),
        _ => cx.float(formula, x),
    }
}

fn formula_samples() -> Vec<Sample> {
    let slope = 0.3;
    vec![
        sample![vec![randn([2, 3])], formula!(|x| x.times(x.sigmoid()))],
        sample![vec![randn([2, 3]), positive([3])], formula!(|x, y| x.atan2(y) * y.sqrt())],
        sample![
            vec![randn([4]), randn([4]), randn([])],
            formula!(|x, y, z; slope| select(x.gt(0.0), x * y, x * slope) + z)
        ],
        sample![vec![complexes([3]), complexes([3])], formula!(|x, y| x.exp() * y.conj())],
        sample![vec![randn([0, 2])], formula!(|x| x.tanh())],
    ]
}
