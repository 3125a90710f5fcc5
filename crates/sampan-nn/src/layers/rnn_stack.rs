//! Recurrent layers on top of each other: SimpleRNN, LSTM, GRU.

use super::MAX_LAYERS;
use super::rnn::{BiRNN, RNN};
use super::rnn_cell::{CellRef, GRUCell, LSTMCell, RnnCell, SimpleRNNCell};
use super::rnn_inputs::{Inputs, listed, states, taken};
use crate::{Base, Layer, LayerRef, Members, ParamAttr, Parameter, Path, Visitor, layer};
use sampan_core::ops::dropout::DropoutOpts;
use sampan_core::ops::joining::try_stack;
use sampan_core::ops::rnn::RnnOpts;
use sampan_core::{Result, Tensor, Value, bail, ensure};
use sampan_macros::class;

/// One layer of a stack.
enum Level {
    Forward(RNN),
    Both(BiRNN),
}

impl Level {
    fn cells(&self) -> Vec<&dyn RnnCell> {
        match self {
            Level::Forward(rnn) => vec![&*rnn.cell],
            Level::Both(rnn) => vec![&*rnn.cell_fw, &*rnn.cell_bw],
        }
    }
    fn layer(&self) -> &dyn Layer {
        match self {
            Level::Forward(rnn) => rnn,
            Level::Both(rnn) => rnn,
        }
    }
}

/// The layers and how they are joined.
struct Stack {
    levels: Vec<Level>,
    /// Names of the parameters that are also listed beside the layers, as `weight_ih_l0`.
    listed: Vec<&'static str>,
    time_major: bool,
    dropout: f64,
}

/// What the three kinds of stack are told alike.
struct Plan<'a> {
    input_size: usize,
    num_layers: usize,
    direction: &'a str,
    time_major: bool,
    dropout: f64,
    attrs: [&'a ParamAttr; 4],
}

impl Stack {
    /// `output` is the number of features a cell puts out, `cell` makes one that takes that many inputs.
    fn new(plan: Plan, output: usize, cell: impl Fn(usize) -> Result<CellRef>) -> Result<Stack> {
        let Plan { input_size, num_layers, direction, time_major, dropout, attrs } = plan;
        ensure!(
            (1..=MAX_LAYERS).contains(&num_layers),
            "num_layers must lie between 1 and {MAX_LAYERS}, got {num_layers}"
        );
        ensure!((0.0..=1.0).contains(&dropout), "dropout must lie in [0, 1], got {dropout}");
        let both = match direction {
            "forward" => false,
            "bidirect" | "bidirectional" => true,
            other => bail!("direction must be \"forward\", \"bidirect\" or \"bidirectional\", got {other:?}"),
        };
        let level = |i: usize| {
            let inputs = if i == 0 { input_size } else { output * (1 + both as usize) };
            Ok(if both {
                let (fw, bw) = (cell(inputs)?, cell(inputs)?);
                Level::Both(BiRNN::try_with(fw, bw, |o| o.time_major(time_major))?)
            } else {
                Level::Forward(RNN::try_with(cell(inputs)?, |o| o.time_major(time_major))?)
            })
        };
        let levels = (0..num_layers).map(level).collect::<Result<Vec<_>>>()?;
        let names = ["weight_ih", "weight_hh", "bias_ih", "bias_hh"];
        let wanted = |i: &usize| *i < 2 || attrs[*i].is_wanted();
        let listed = (0..4).filter(wanted).map(|i| names[i]).collect();
        Ok(Stack { levels, listed, time_major, dropout })
    }

    fn visit(&self, path: &Path, visitor: &mut dyn Visitor) {
        for (i, level) in self.levels.iter().enumerate() {
            for (cell, direction) in level.cells().into_iter().zip(["", "_reverse"]) {
                let suffix = format!("_l{i}{direction}");
                cell.visit(&Path::default(), &mut Listed { names: &self.listed, suffix, path, visitor });
            }
        }
        for (i, level) in self.levels.iter().enumerate() {
            level.layer().visit(&path.join(&i.to_string()), visitor);
        }
    }

    /// The formula of the cells and all their parameters, if one op computes the whole stack: nobody watches a layer of it.
    fn formula(&self) -> Result<Option<(&'static str, Vec<Tensor>)>> {
        let (mut mode, mut weights) = ("", Vec::new());
        for level in &self.levels {
            if layer::is_watched(level.layer().base()) {
                return Ok(None);
            }
            for cell in level.cells() {
                let Some((of_cell, values)) = cell.formula()? else { return Ok(None) };
                mode = of_cell;
                weights.extend(values);
            }
        }
        Ok(Some((mode, weights)))
    }

    /// The outputs of the last layer and the last states of all, each state of shape `[layers * directions, batch, size]`.
    fn run(&self, inputs: &[Tensor], training: bool) -> Result<Vec<Tensor>> {
        // An input of other sizes is refused by the layer that it does not fit.
        let fits = |x: &Tensor| x.shape().last() == Some(&self.levels[0].cells()[0].input_size());
        if inputs.first().is_some_and(fits)
            && let Some((mode, weights)) = self.formula()?
        {
            let Inputs { data, states, lengths } = Inputs::new(inputs, self.levels[0].cells()[0].state_sizes().len())?;
            let direction = if self.levels[0].cells().len() == 1 { "forward" } else { "bidirect" };
            let options = RnnOpts::new().dropout(self.dropout).training(training).time_major(self.time_major);
            let layers = self.levels.len() as i64;
            return data.try_rnn_with(states.unwrap_or_default(), &weights, lengths, mode, layers, direction, options);
        }
        self.run_apart(inputs, training)
    }

    /// The same layer by layer, as those who watch expect it.
    fn run_apart(&self, inputs: &[Tensor], training: bool) -> Result<Vec<Tensor>> {
        let directions = self.levels[0].cells().len();
        let sizes = self.levels[0].cells()[0].state_sizes();
        let Inputs { data, states, lengths } = Inputs::new(inputs, sizes.len())?;
        ensure!(
            data.ndim() == 3,
            "the input must have axes for batch, time and features, got shape {:?}",
            data.shape()
        );
        let (batch, steps) = if self.time_major { (data.dim(1), data.dim(0)) } else { (data.dim(0), data.dim(1)) };
        let total = self.levels.len() * directions;
        let mut before: Vec<Vec<Tensor>> = Vec::new();
        for (state, size) in states.unwrap_or_default().iter().zip(&sizes) {
            let expected = [total, batch, *size];
            ensure!(state.shape() == expected, "a state must have shape {expected:?}, got {:?}", state.shape());
            before.push(state.try_unbind(0)?);
        }
        let mut after = vec![Vec::with_capacity(total); sizes.len()];
        let mut x = data.clone();
        for (i, level) in self.levels.iter().enumerate() {
            if i > 0 && self.dropout > 0.0 {
                x = x.try_dropout_with(self.dropout, DropoutOpts::new().training(training))?;
            }
            let cells = i * directions..(i + 1) * directions;
            let own: Vec<&Tensor> = cells.flat_map(|k| before.iter().map(move |state| &state[k])).collect();
            let mut out = level.layer().call_all(&Inputs::list(&x, &own, lengths))?;
            for (k, state) in out.split_off(1).into_iter().enumerate() {
                after[k % sizes.len()].push(state);
            }
            x = out.swap_remove(0);
        }
        if let Some(lengths) = lengths {
            // What a sequence puts out after its end is zero.
            let mask = taken(lengths, batch, steps)?;
            let mask = if self.time_major { mask.try_t()? } else { mask };
            x = mask.try_unsqueeze(-1)?.try_where_cond(&x, 0.0)?;
        }
        let states = after.iter().map(|state| try_stack(state, 0)).collect::<Result<Vec<_>>>()?;
        Ok([vec![x], states].concat())
    }
}

/// Shows a cell's parameters under their names in the stack: `weight_ih` as `weight_ih_l0_reverse`.
struct Listed<'a> {
    names: &'a [&'static str],
    suffix: String,
    path: &'a Path,
    visitor: &'a mut dyn Visitor,
}

impl Visitor for Listed<'_> {
    fn parameter(&mut self, path: &Path, p: &Parameter) {
        if self.names.contains(&path.as_str()) {
            self.visitor.parameter(&self.path.join(&format!("{}{}", path.as_str(), self.suffix)), p);
        }
    }
}

/// What every stack is. `run` is the typed form of a call, which differs by the states.
macro_rules! stack {
    ($name:ident, $states:ty, $state:ty, |$given:ident| $list:expr, |$out:ident| $take:expr) => {
        impl $name {
            /// The outputs of all steps and the last states, each of shape `[layers * directions, batch, size]`, from
            /// `initial_states` or zeros. The outputs after the end of a sequence are zero.
            pub fn run(
                &self,
                inputs: &Tensor,
                initial_states: Option<$states>,
                sequence_length: Option<&Tensor>,
            ) -> Result<(Tensor, $state)> {
                let states: Vec<&Tensor> = match initial_states {
                    Some($given) => $list,
                    None => Vec::new(),
                };
                let mut $out = self.call_all(&Inputs::list(inputs, &states, sequence_length))?;
                let states = $take;
                Ok(($out.swap_remove(0), states))
            }
        }

        impl Members for $name {
            fn visit(&self, path: &Path, visitor: &mut dyn Visitor) {
                visitor.layer(path, LayerRef { type_name: stringify!($name), layer: self });
                self.base.visit(path, visitor);
                self.stack.visit(path, visitor);
            }
            fn base(&self) -> Option<&Base> {
                Some(&self.base)
            }
        }

        impl Layer for $name {
            fn forward(&self, x: &Tensor) -> Result<Tensor> {
                Ok(self.forward_all(std::slice::from_ref(x))?.swap_remove(0))
            }
            fn forward_all(&self, inputs: &[Tensor]) -> Result<Vec<Tensor>> {
                self.stack.run(inputs, self.base.training())
            }
            fn invoke(&self, positional: Vec<Value>, named: Vec<(&str, Value)>) -> Result<Value> {
                let names = ["inputs", "initial_states", "sequence_length"];
                let inputs = listed(stringify!($name), &names, positional, named)?;
                let mut out = self.call_unhooked(&inputs)?;
                let last = states(out.split_off(1));
                Ok(Value::List(vec![Value::Tensor(out.swap_remove(0)), last]))
            }
            fn extra_repr(&self) -> String {
                let stack = &self.stack;
                let mut text = format!("{}, {}", stack.levels[0].cells()[0].input_size(), self.hidden_size);
                if stack.levels.len() > 1 {
                    text += &format!(", num_layers={}", stack.levels.len());
                }
                if stack.time_major {
                    text += ", time_major=True";
                }
                if stack.dropout > 0.0 {
                    text += &format!(", dropout={}", stack.dropout);
                }
                text
            }
        }
    };
}

/// Simple recurrent layers.
pub struct SimpleRNN {
    base: Base,
    hidden_size: usize,
    stack: Stack,
}

#[class(module = "nn", object = layer::object)]
impl SimpleRNN {
    /// `num_layers` simple recurrent layers over sequences `[batch, time, features]` (`[time, batch, features]` if
    /// `time_major`); `direction` may be `"bidirect"`, and `dropout` acts between the layers.
    ///
    /// ```
    /// use sampan_core::Tensor;
    /// use sampan_nn::SimpleRNN;
    /// let (y, h) = SimpleRNN::with(3, 4, |o| o.num_layers(2)).run(&Tensor::randn([2, 5, 3]), None, None)?;
    /// assert_eq!((y.shape(), h.shape()), (&[2, 5, 4][..], &[2, 2, 4][..]));
    /// # Ok::<(), sampan_core::Error>(())
    /// ```
    fn build(
        input_size: usize,
        hidden_size: usize,
        #[opt(1)] num_layers: usize,
        #[opt("forward")] direction: &str,
        #[opt(false)] time_major: bool,
        #[opt(0.0)] dropout: f64,
        #[opt("tanh")] activation: &str,
        #[opt(None)] weight_ih_attr: ParamAttr,
        #[opt(None)] weight_hh_attr: ParamAttr,
        #[opt(None)] bias_ih_attr: ParamAttr,
        #[opt(None)] bias_hh_attr: ParamAttr,
    ) -> Result<SimpleRNN> {
        let base = Base::new("simple_rnn");
        let attrs = [&weight_ih_attr, &weight_hh_attr, &bias_ih_attr, &bias_hh_attr];
        let plan = Plan { input_size, num_layers, direction, time_major, dropout, attrs };
        let stack = Stack::new(plan, hidden_size, |inputs| {
            let [w_ih, w_hh, b_ih, b_hh] = attrs.map(Clone::clone);
            let set = |o: super::SimpleRNNCellOpts| {
                o.activation(activation).weight_ih_attr(w_ih).weight_hh_attr(w_hh).bias_ih_attr(b_ih).bias_hh_attr(b_hh)
            };
            Ok(SimpleRNNCell::try_with(inputs, hidden_size, set)?.into())
        })?;
        Ok(SimpleRNN { base, hidden_size, stack })
    }
}
stack!(SimpleRNN, &Tensor, Tensor, |h| vec![h], |out| out.remove(1));

/// Long short-term memory.
pub struct LSTM {
    base: Base,
    hidden_size: usize,
    stack: Stack,
}

#[class(module = "nn", object = layer::object)]
impl LSTM {
    /// `num_layers` LSTMs over sequences `[batch, time, features]` (`[time, batch, features]` if `time_major`); `direction`
    /// may be `"bidirect"`, `dropout` acts between the layers, and `proj_size` makes the outputs smaller than the cells.
    ///
    /// ```
    /// use sampan_core::Tensor;
    /// use sampan_nn::LSTM;
    /// let lstm = LSTM::with(3, 4, |o| o.num_layers(2).direction("bidirect"));
    /// let (y, (h, c)) = lstm.run(&Tensor::randn([2, 5, 3]), None, Some(&Tensor::new([5i64, 3])))?;
    /// assert_eq!((y.shape(), h.shape(), c.shape()), (&[2, 5, 8][..], &[4, 2, 4][..], &[4, 2, 4][..]));
    /// # Ok::<(), sampan_core::Error>(())
    /// ```
    fn build(
        input_size: usize,
        hidden_size: usize,
        #[opt(1)] num_layers: usize,
        #[opt("forward")] direction: &str,
        #[opt(false)] time_major: bool,
        #[opt(0.0)] dropout: f64,
        #[opt(None)] weight_ih_attr: ParamAttr,
        #[opt(None)] weight_hh_attr: ParamAttr,
        #[opt(None)] bias_ih_attr: ParamAttr,
        #[opt(None)] bias_hh_attr: ParamAttr,
        #[opt(0)] proj_size: usize,
    ) -> Result<LSTM> {
        let base = Base::new("lstm");
        let attrs = [&weight_ih_attr, &weight_hh_attr, &bias_ih_attr, &bias_hh_attr];
        let plan = Plan { input_size, num_layers, direction, time_major, dropout, attrs };
        let stack = Stack::new(plan, if proj_size > 0 { proj_size } else { hidden_size }, |inputs| {
            let [w_ih, w_hh, b_ih, b_hh] = attrs.map(Clone::clone);
            let set = |o: super::LSTMCellOpts| {
                o.proj_size(proj_size).weight_ih_attr(w_ih).weight_hh_attr(w_hh).bias_ih_attr(b_ih).bias_hh_attr(b_hh)
            };
            Ok(LSTMCell::try_with(inputs, hidden_size, set)?.into())
        })?;
        Ok(LSTM { base, hidden_size, stack })
    }
}
stack!(LSTM, (&Tensor, &Tensor), (Tensor, Tensor), |states| vec![states.0, states.1], |out| {
    let c = out.remove(2);
    (out.remove(1), c)
});

/// Gated recurrent units.
pub struct GRU {
    base: Base,
    hidden_size: usize,
    stack: Stack,
}

#[class(module = "nn", object = layer::object)]
impl GRU {
    /// `num_layers` GRUs over sequences `[batch, time, features]` (`[time, batch, features]` if `time_major`); `direction` may
    /// be `"bidirect"`, and `dropout` acts between the layers.
    ///
    /// ```
    /// use sampan_core::Tensor;
    /// use sampan_nn::GRU;
    /// let (y, h) = GRU::new(3, 4).run(&Tensor::randn([2, 5, 3]), None, None)?;
    /// assert_eq!((y.shape(), h.shape()), (&[2, 5, 4][..], &[1, 2, 4][..]));
    /// # Ok::<(), sampan_core::Error>(())
    /// ```
    fn build(
        input_size: usize,
        hidden_size: usize,
        #[opt(1)] num_layers: usize,
        #[opt("forward")] direction: &str,
        #[opt(false)] time_major: bool,
        #[opt(0.0)] dropout: f64,
        #[opt(None)] weight_ih_attr: ParamAttr,
        #[opt(None)] weight_hh_attr: ParamAttr,
        #[opt(None)] bias_ih_attr: ParamAttr,
        #[opt(None)] bias_hh_attr: ParamAttr,
    ) -> Result<GRU> {
        let base = Base::new("gru");
        let attrs = [&weight_ih_attr, &weight_hh_attr, &bias_ih_attr, &bias_hh_attr];
        let plan = Plan { input_size, num_layers, direction, time_major, dropout, attrs };
        let stack = Stack::new(plan, hidden_size, |inputs| {
            let [w_ih, w_hh, b_ih, b_hh] = attrs.map(Clone::clone);
            let set = |o: super::GRUCellOpts| {
                o.weight_ih_attr(w_ih).weight_hh_attr(w_hh).bias_ih_attr(b_ih).bias_hh_attr(b_hh)
            };
            Ok(GRUCell::try_with(inputs, hidden_size, set)?.into())
        })?;
        Ok(GRU { base, hidden_size, stack })
    }
}
stack!(GRU, &Tensor, Tensor, |h| vec![h], |out| out.remove(1));
