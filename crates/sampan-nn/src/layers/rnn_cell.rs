//! One step of a recurrent layer.

use super::rnn_inputs::{Inputs, listed, states};
use crate::init::{Constant, Initializer, Uniform};
use crate::{Base, Layer, ParamAttr, Parameter, layer};
use sampan_core::value::Arg;
use sampan_core::{DType, Error, Object, Result, Tensor, Value, device, ensure};
use sampan_macros::class;
use std::any::Any;
use std::sync::Arc;

/// An output and the new states.
pub type Step = (Tensor, Vec<Tensor>);
/// A step with the parameters as they are now.
pub type Stepper<'a> = Box<dyn Fn(&Tensor, &[Tensor]) -> Result<Step> + 'a>;

/// What [`RnnCell::whole`] gives.
pub type Whole = Result<Option<Step>>;

/// What a recurrent layer computes at each step. A cell of your own implements it next to [`Layer`] and can then be used
/// with [`RNN`](crate::RNN) and [`BiRNN`](crate::BiRNN).
pub trait RnnCell: Layer {
    /// The number of features of an input.
    fn input_size(&self) -> usize;

    /// The number of features of each state.
    fn state_sizes(&self) -> Vec<usize>;

    /// What does not depend on the states, computed for the inputs of all steps at once.
    fn prepare(&self, inputs: &Tensor) -> Result<Tensor> {
        Ok(inputs.clone())
    }

    /// One step from a prepared input and the states before it.
    fn step(&self, prepared: &Tensor, states: &[Tensor]) -> Result<Step>;

    /// The same step for many times: what it needs of the parameters is made once.
    fn stepper(&self) -> Result<Stepper<'_>> {
        Ok(Box::new(|x, states| self.step(x, states)))
    }

    /// All steps at once, where there is a kernel for it: from prepared inputs of three axes to the outputs and the last
    /// states.
    fn whole(&self, _prepared: &Tensor, _states: &[Tensor], _is_reverse: bool, _time_major: bool) -> Whole {
        Ok(None)
    }

    /// The name of its formula and its parameters in the order of the op `rnn`, if that op computes it.
    fn formula(&self) -> Result<Option<(&'static str, Vec<Tensor>)>> {
        Ok(None)
    }

    /// States of zeros.
    fn get_initial_states(&self, batch: usize, dtype: DType) -> Vec<Tensor> {
        self.state_sizes().iter().map(|&n| Tensor::zeros([batch, n], dtype)).collect()
    }
}

/// A cell of any type, as an argument.
#[derive(Clone)]
pub struct CellRef(pub(crate) Arc<dyn RnnCell>);

impl<C: RnnCell> From<C> for CellRef {
    fn from(cell: C) -> CellRef {
        CellRef(Arc::new(cell))
    }
}
impl<C: RnnCell> From<Arc<C>> for CellRef {
    fn from(cell: Arc<C>) -> CellRef {
        CellRef(cell)
    }
}
impl From<CellRef> for Value {
    fn from(cell: CellRef) -> Value {
        Value::Object(Object::new(cell))
    }
}
impl<'a> Arg<'a> for CellRef {
    const EXPECTED: &'static str = "a recurrent cell";
    fn read(v: &'a Value) -> Option<Self> {
        let Value::Object(o) = v else { return None };
        let built_in = |layer: &Arc<dyn Layer>| -> Option<CellRef> {
            let any = || -> Arc<dyn Any + Send + Sync> { layer.clone() };
            let simple = || any().downcast::<SimpleRNNCell>().ok().map(|c| CellRef(c));
            let lstm = || any().downcast::<LSTMCell>().ok().map(|c| CellRef(c));
            simple().or_else(lstm).or_else(|| any().downcast::<GRUCell>().ok().map(|c| CellRef(c)))
        };
        o.downcast::<CellRef>().cloned().or_else(|| o.downcast::<Arc<dyn Layer>>().and_then(built_in))
    }
}

/// The parameters of a cell before they have a place in it.
struct Weights {
    base: Base,
    weight_ih: Parameter,
    weight_hh: Parameter,
    bias_ih: Parameter,
    bias_hh: Parameter,
}

/// One parameter: uniform values in `±std`; a parameter that is not wanted is there with fixed values that do not matter.
fn parameter(base: &Base, shape: &[usize], attr: &ParamAttr, is_bias: bool, std: f64) -> Result<Parameter> {
    let fixed = ParamAttr::new().trainable(false);
    let neutral = Constant::new(if is_bias { 0.0 } else { 1.0 });
    let random = Uniform::try_new(-std, std)?;
    let (attr, values): (_, &dyn Initializer) = if attr.is_wanted() { (attr, &random) } else { (&fixed, &neutral) };
    base.parameter(shape, attr, is_bias, values)?.ok_or_else(|| Error::invalid("a parameter is missing"))
}

impl Weights {
    /// `sizes` are those of the input, the gates, the state that is fed back, and the hidden units.
    fn new(prefix: &str, sizes: [usize; 4], attrs: [&ParamAttr; 4]) -> Result<Weights> {
        let [input, gates, state, hidden] = sizes;
        ensure!(hidden > 0, "hidden_size must be positive");
        let std = 1.0 / (hidden as f64).sqrt();
        let base = Base::new(prefix);
        Ok(Weights {
            weight_ih: parameter(&base, &[gates, input], attrs[0], false, std)?,
            weight_hh: parameter(&base, &[gates, state], attrs[1], false, std)?,
            bias_ih: parameter(&base, &[gates], attrs[2], true, std)?,
            bias_hh: parameter(&base, &[gates], attrs[3], true, std)?,
            base,
        })
    }
}

/// `x @ weightᵀ + bias`: recurrent weights are `[outputs, inputs]`.
fn affine(x: &Tensor, weight: &Parameter, bias: &Parameter) -> Result<Tensor> {
    x.try_linear(&weight.value()?.try_t()?, Some(&bias.value()?))
}

/// What the three cells have in common: the sizes of the states, what else a description says, the name of its formula and
/// its projection if there is one, and the stepper made of the cell, the transposed weight and the bias of the state.
macro_rules! cell {
    ($name:ident, $sizes:expr, $more:expr, $mode:expr, $projection:expr, $stepper:expr) => {
        impl $name {
            /// The name of the formula; is its output projected?
            fn mode(&self) -> (&'static str, bool) {
                let mode: fn(&$name) -> &'static str = $mode;
                (mode(self), self.projection().is_some())
            }
            fn projection(&self) -> Option<&Parameter> {
                let projection: fn(&$name) -> Option<&Parameter> = $projection;
                projection(self)
            }
        }

        impl RnnCell for $name {
            fn input_size(&self) -> usize {
                self.weight_ih.shape()[1]
            }
            fn state_sizes(&self) -> Vec<usize> {
                let sizes: fn(&$name) -> Vec<usize> = $sizes;
                sizes(self)
            }
            fn prepare(&self, inputs: &Tensor) -> Result<Tensor> {
                affine(inputs, &self.weight_ih, &self.bias_ih)
            }
            fn step(&self, prepared: &Tensor, states: &[Tensor]) -> Result<Step> {
                self.stepper()?(prepared, states)
            }
            fn stepper(&self) -> Result<Stepper<'_>> {
                let (weight, bias) = (self.weight_hh.value()?.try_t()?, self.bias_hh.value()?);
                let make: fn(&$name, Tensor, Tensor) -> Result<Stepper<'_>> = $stepper;
                make(self, weight, bias)
            }
            fn whole(&self, prepared: &Tensor, states: &[Tensor], is_reverse: bool, time_major: bool) -> Whole {
                let (mode, projects) = self.mode();
                if projects {
                    return Ok(None);
                }
                let (weight, bias) = (self.weight_hh.value()?, self.bias_hh.value()?);
                let (h, c) = (&states[0], states.get(1));
                let mut out = prepared.try_recurrent_walk(&weight, &bias, h, c, mode, is_reverse, time_major)?;
                let states = out.split_off(1);
                Ok(Some((out.swap_remove(0), states)))
            }
            fn formula(&self) -> Result<Option<(&'static str, Vec<Tensor>)>> {
                let own = [&self.weight_ih, &self.weight_hh, &self.bias_ih, &self.bias_hh].into_iter();
                let values = own.chain(self.projection()).map(Parameter::value).collect::<Result<_>>()?;
                Ok(Some((self.mode().0, values)))
            }
        }

        impl Layer for $name {
            fn forward(&self, x: &Tensor) -> Result<Tensor> {
                Ok(self.forward_all(std::slice::from_ref(x))?.swap_remove(0))
            }
            fn forward_all(&self, inputs: &[Tensor]) -> Result<Vec<Tensor>> {
                let inputs = Inputs::new(inputs, self.state_sizes().len())?;
                let x = inputs.data;
                ensure!(
                    x.ndim() == 2 && x.dim(1) == self.input_size(),
                    "the input must have shape [batch, {}], got {:?}",
                    self.input_size(),
                    x.shape()
                );
                let zeros = || device::with(x.device(), || self.get_initial_states(x.dim(0), x.dtype()));
                let states = inputs.states.map_or_else(zeros, <[Tensor]>::to_vec);
                let (output, states) = self.step(&self.prepare(x)?, &states)?;
                Ok([vec![output], states].concat())
            }
            fn invoke(&self, positional: Vec<Value>, named: Vec<(&str, Value)>) -> Result<Value> {
                let inputs = listed(stringify!($name), &["inputs", "states"], positional, named)?;
                let mut out = self.call_unhooked(&inputs)?;
                let new = states(out.split_off(1));
                Ok(Value::List(vec![Value::Tensor(out.swap_remove(0)), new]))
            }
            fn extra_repr(&self) -> String {
                let more: fn(&$name) -> &'static str = $more;
                format!("{}, {}{}", self.input_size(), self.hidden_size, more(self))
            }
        }
    };
}

/// A step of a simple recurrent layer.
#[derive(Layer)]
pub struct SimpleRNNCell {
    base: Base,
    /// `[hidden_size, input_size]`.
    pub weight_ih: Parameter,
    /// `[hidden_size, hidden_size]`.
    pub weight_hh: Parameter,
    /// `[hidden_size]`.
    pub bias_ih: Parameter,
    /// `[hidden_size]`.
    pub bias_hh: Parameter,
    hidden_size: usize,
    activation: String,
}

#[class(module = "nn", object = layer::object)]
impl SimpleRNNCell {
    /// `h' = tanh(W_ih x + b_ih + W_hh h + b_hh)`; `activation` may be `"relu"`.
    ///
    /// ```
    /// use sampan_core::Tensor;
    /// use sampan_nn::SimpleRNNCell;
    /// let (out, h) = SimpleRNNCell::new(3, 4).run(&Tensor::randn([2, 3]), None)?;
    /// assert_eq!((out.shape(), h.shape()), (&[2, 4][..], &[2, 4][..]));
    /// # Ok::<(), sampan_core::Error>(())
    /// ```
    fn build(
        input_size: usize,
        hidden_size: usize,
        #[opt("tanh")] activation: &str,
        #[opt(None)] weight_ih_attr: ParamAttr,
        #[opt(None)] weight_hh_attr: ParamAttr,
        #[opt(None)] bias_ih_attr: ParamAttr,
        #[opt(None)] bias_hh_attr: ParamAttr,
    ) -> Result<SimpleRNNCell> {
        let known = matches!(activation, "tanh" | "relu");
        ensure!(known, "activation must be \"tanh\" or \"relu\", got {activation:?}");
        let attrs = [&weight_ih_attr, &weight_hh_attr, &bias_ih_attr, &bias_hh_attr];
        let sizes = [input_size, hidden_size, hidden_size, hidden_size];
        let Weights { base, weight_ih, weight_hh, bias_ih, bias_hh } = Weights::new("simple_rnn_cell", sizes, attrs)?;
        let activation = activation.into();
        Ok(SimpleRNNCell { base, weight_ih, weight_hh, bias_ih, bias_hh, hidden_size, activation })
    }
}

impl SimpleRNNCell {
    fn described(&self) -> &'static str {
        if self.activation == "relu" { ", activation=relu" } else { "" }
    }

    /// The output and the state after a step from `state`, or from zeros.
    pub fn run(&self, input: &Tensor, state: Option<&Tensor>) -> Result<(Tensor, Tensor)> {
        let states: Vec<&Tensor> = state.into_iter().collect();
        let mut out = self.call_all(&Inputs::list(input, &states, None))?;
        Ok((out.swap_remove(0), out.swap_remove(0)))
    }
}

cell!(
    SimpleRNNCell,
    |cell| vec![cell.hidden_size],
    SimpleRNNCell::described,
    |cell| if cell.activation == "relu" { "RNN_RELU" } else { "RNN_TANH" },
    |_| None,
    |cell, weight, bias| {
        Ok(Box::new(move |x, states| {
            let h = x.try_simple_rnn_cell(&states[0].try_linear(&weight, Some(&bias))?, &cell.activation)?;
            Ok((h.clone(), vec![h]))
        }))
    }
);

/// A step of an LSTM.
#[derive(Layer)]
pub struct LSTMCell {
    base: Base,
    /// `[4 * hidden_size, input_size]`: input, forget, candidate and output gates.
    pub weight_ih: Parameter,
    /// `[4 * hidden_size, proj_size or hidden_size]`.
    pub weight_hh: Parameter,
    /// `[4 * hidden_size]`.
    pub bias_ih: Parameter,
    /// `[4 * hidden_size]`.
    pub bias_hh: Parameter,
    /// `[hidden_size, proj_size]`.
    pub weight_ho: Option<Parameter>,
    hidden_size: usize,
}

#[class(module = "nn", object = layer::object)]
impl LSTMCell {
    /// `c' = f * c + i * tanh(g)`, `h' = o * tanh(c')` with the gates `i, f, g, o` from `W_ih x + b_ih + W_hh h + b_hh`.
    /// With `proj_size` the output is `h' W_ho`, which has that many features.
    ///
    /// ```
    /// use sampan_core::Tensor;
    /// use sampan_nn::LSTMCell;
    /// let (out, (h, c)) = LSTMCell::with(3, 4, |o| o.proj_size(2)).run(&Tensor::randn([2, 3]), None)?;
    /// assert_eq!((out.shape(), h.shape(), c.shape()), (&[2, 2][..], &[2, 2][..], &[2, 4][..]));
    /// # Ok::<(), sampan_core::Error>(())
    /// ```
    fn build(
        input_size: usize,
        hidden_size: usize,
        #[opt(None)] weight_ih_attr: ParamAttr,
        #[opt(None)] weight_hh_attr: ParamAttr,
        #[opt(None)] bias_ih_attr: ParamAttr,
        #[opt(None)] bias_hh_attr: ParamAttr,
        #[opt(0)] proj_size: usize,
    ) -> Result<LSTMCell> {
        ensure!(hidden_size > 0, "hidden_size must be positive");
        ensure!(proj_size < hidden_size, "proj_size {proj_size} must be smaller than hidden_size {hidden_size}");
        let attrs = [&weight_ih_attr, &weight_hh_attr, &bias_ih_attr, &bias_hh_attr];
        let fed_back = if proj_size > 0 { proj_size } else { hidden_size };
        let sizes = [input_size, hidden_size.saturating_mul(4), fed_back, hidden_size];
        let Weights { base, weight_ih, weight_hh, bias_ih, bias_hh } = Weights::new("lstm_cell", sizes, attrs)?;
        let std = 1.0 / (hidden_size as f64).sqrt();
        let project = || parameter(&base, &[hidden_size, proj_size], &weight_hh_attr, false, std);
        let weight_ho = (proj_size > 0).then(project).transpose()?;
        Ok(LSTMCell { base, weight_ih, weight_hh, bias_ih, bias_hh, weight_ho, hidden_size })
    }
}

impl LSTMCell {
    /// The output and the states `(h, c)` after a step from `states`, or from zeros.
    pub fn run(&self, input: &Tensor, states: Option<(&Tensor, &Tensor)>) -> Result<(Tensor, (Tensor, Tensor))> {
        let states: Vec<&Tensor> = states.into_iter().flat_map(|(h, c)| [h, c]).collect();
        let mut out = self.call_all(&Inputs::list(input, &states, None))?;
        let c = out.remove(2);
        let h = out.remove(1);
        Ok((out.remove(0), (h, c)))
    }
}

cell!(
    LSTMCell,
    |cell| vec![cell.weight_ho.as_ref().map_or(cell.hidden_size, |w| w.shape()[1]), cell.hidden_size],
    |_| "",
    |_| "LSTM",
    |cell| cell.weight_ho.as_ref(),
    |cell, weight, bias| {
        let project = cell.projection().map(Parameter::value).transpose()?;
        Ok(Box::new(move |x, states| {
            let (h, c) = x.try_lstm_cell(&states[0].try_linear(&weight, Some(&bias))?, &states[1])?;
            let h = project.as_ref().map_or(Ok(h.clone()), |w| h.try_matmul(w))?;
            Ok((h.clone(), vec![h, c]))
        }))
    }
);

/// A step of a GRU.
#[derive(Layer)]
pub struct GRUCell {
    base: Base,
    /// `[3 * hidden_size, input_size]`: reset, update and candidate.
    pub weight_ih: Parameter,
    /// `[3 * hidden_size, hidden_size]`.
    pub weight_hh: Parameter,
    /// `[3 * hidden_size]`.
    pub bias_ih: Parameter,
    /// `[3 * hidden_size]`.
    pub bias_hh: Parameter,
    hidden_size: usize,
}

#[class(module = "nn", object = layer::object)]
impl GRUCell {
    /// `h' = z * h + (1 - z) * c` with `c = tanh(x_c + r * h_c)`; the parts of `W_ih x + b_ih` and `W_hh h + b_hh` are those
    /// of the reset gate `r`, the update gate `z` and the candidate `c`.
    ///
    /// ```
    /// use sampan_core::Tensor;
    /// use sampan_nn::GRUCell;
    /// let (out, h) = GRUCell::new(3, 4).run(&Tensor::randn([2, 3]), None)?;
    /// assert_eq!((out.shape(), h.shape()), (&[2, 4][..], &[2, 4][..]));
    /// # Ok::<(), sampan_core::Error>(())
    /// ```
    fn build(
        input_size: usize,
        hidden_size: usize,
        #[opt(None)] weight_ih_attr: ParamAttr,
        #[opt(None)] weight_hh_attr: ParamAttr,
        #[opt(None)] bias_ih_attr: ParamAttr,
        #[opt(None)] bias_hh_attr: ParamAttr,
    ) -> Result<GRUCell> {
        let attrs = [&weight_ih_attr, &weight_hh_attr, &bias_ih_attr, &bias_hh_attr];
        let sizes = [input_size, hidden_size.saturating_mul(3), hidden_size, hidden_size];
        let Weights { base, weight_ih, weight_hh, bias_ih, bias_hh } = Weights::new("gru_cell", sizes, attrs)?;
        Ok(GRUCell { base, weight_ih, weight_hh, bias_ih, bias_hh, hidden_size })
    }
}

impl GRUCell {
    /// The output and the state after a step from `state`, or from zeros.
    pub fn run(&self, input: &Tensor, state: Option<&Tensor>) -> Result<(Tensor, Tensor)> {
        let states: Vec<&Tensor> = state.into_iter().collect();
        let mut out = self.call_all(&Inputs::list(input, &states, None))?;
        Ok((out.swap_remove(0), out.swap_remove(0)))
    }
}

cell!(GRUCell, |cell| vec![cell.hidden_size], |_| "", |_| "GRU", |_| None, |_cell, weight, bias| {
    Ok(Box::new(move |x, states| {
        let h = x.try_gru_cell(&states[0].try_linear(&weight, Some(&bias))?, &states[0])?;
        Ok((h.clone(), vec![h]))
    }))
});
