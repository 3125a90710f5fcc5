//! Layers that walk a cell along sequences.

use super::rnn_cell::{CellRef, RnnCell};
use super::rnn_inputs::{Inputs, listed, states, taken};
use crate::{Base, Layer, layer};
use sampan_core::ops::joining::{try_concat, try_stack};
use sampan_core::{Result, Tensor, Value, device, ensure};
use sampan_macros::class;
use std::sync::Arc;

/// The arguments of a call.
const NAMES: [&str; 3] = ["inputs", "initial_states", "sequence_length"];

/// Walks a cell along the sequences: outputs of all steps, last states. A sequence that is shorter than the others keeps
/// its states after its end.
pub(crate) fn walk(
    cell: &dyn RnnCell,
    inputs: &Inputs,
    is_reverse: bool,
    time_major: bool,
) -> Result<(Tensor, Vec<Tensor>)> {
    let x = inputs.data;
    ensure!(x.ndim() >= 3, "the input must have axes for batch, time and features, got shape {:?}", x.shape());
    let features = *x.shape().last().expect("checked above");
    ensure!(features == cell.input_size(), "the input has {features} features, the cell takes {}", cell.input_size());
    let time = if time_major { 0 } else { 1 };
    let (batch, steps) = (x.dim(1 - time), x.dim(time));
    ensure!(steps > 0, "the sequences have no steps, the input has shape {:?}", x.shape());
    let zeros = || device::with(x.device(), || cell.get_initial_states(batch, x.dtype()));
    let mut states = inputs.states.map_or_else(zeros, <[Tensor]>::to_vec);
    let masks = match inputs.lengths {
        Some(lengths) => Some(taken(lengths, batch, steps)?.try_unbind(1)?),
        None => None,
    };
    let prepared = cell.prepare(x)?;
    if masks.is_none()
        && prepared.ndim() == 3
        && let Some(whole) = cell.whole(&prepared, &states, is_reverse, time_major)?
    {
        return Ok(whole);
    }
    let (prepared, step) = (prepared.try_unbind(time)?, cell.stepper()?);
    let mut outputs: Vec<Option<Tensor>> = vec![None; steps];
    for i in 0..steps {
        let t = if is_reverse { steps - 1 - i } else { i };
        let (output, mut new) = step(&prepared[t], &states)?;
        if let Some(masks) = &masks {
            for (new, old) in new.iter_mut().zip(&states) {
                let mut column = vec![1; new.ndim()];
                column[0] = batch;
                *new = masks[t].try_reshape(column)?.try_where_cond(&*new, old)?;
            }
        }
        states = new;
        outputs[t] = Some(output);
    }
    let outputs: Vec<Tensor> = outputs.into_iter().flatten().collect();
    Ok((try_stack(&outputs, time)?, states))
}

/// A cell walked along sequences.
#[derive(Layer)]
pub struct RNN {
    base: Base,
    /// What computes a step.
    pub cell: Arc<dyn RnnCell>,
    is_reverse: bool,
    time_major: bool,
}

#[class(module = "nn", object = layer::object)]
impl RNN {
    /// Walks a cell along sequences `[batch, time, features]` (`[time, batch, features]` if `time_major`), from the end if
    /// `is_reverse`.
    ///
    /// ```
    /// use sampan_core::Tensor;
    /// use sampan_nn::{LSTMCell, RNN};
    /// let rnn = RNN::new(LSTMCell::new(3, 4));
    /// let (y, states) = rnn.run(&Tensor::randn([2, 5, 3]), None, Some(&Tensor::new([5i64, 2])))?;
    /// assert_eq!((y.shape(), states.len()), (&[2, 5, 4][..], 2));
    /// # Ok::<(), sampan_core::Error>(())
    /// ```
    fn build(cell: CellRef, #[opt(false)] is_reverse: bool, #[opt(false)] time_major: bool) -> Result<RNN> {
        Ok(RNN { base: Base::new("rnn"), cell: cell.0, is_reverse, time_major })
    }
}

impl RNN {
    /// The outputs of all steps and the last states, from `initial_states` or zeros.
    pub fn run(
        &self,
        inputs: &Tensor,
        initial_states: Option<&[Tensor]>,
        sequence_length: Option<&Tensor>,
    ) -> Result<(Tensor, Vec<Tensor>)> {
        let states: Vec<&Tensor> = initial_states.unwrap_or_default().iter().collect();
        let mut out = self.call_all(&Inputs::list(inputs, &states, sequence_length))?;
        let states = out.split_off(1);
        Ok((out.swap_remove(0), states))
    }
}

impl Layer for RNN {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        Ok(self.forward_all(std::slice::from_ref(x))?.swap_remove(0))
    }
    fn invoke(&self, positional: Vec<Value>, named: Vec<(&str, Value)>) -> Result<Value> {
        let mut out = self.call_unhooked(&listed("RNN", &NAMES, positional, named)?)?;
        let last = states(out.split_off(1));
        Ok(Value::List(vec![Value::Tensor(out.swap_remove(0)), last]))
    }
    fn forward_all(&self, inputs: &[Tensor]) -> Result<Vec<Tensor>> {
        let inputs = Inputs::new(inputs, self.cell.state_sizes().len())?;
        let (outputs, states) = walk(&*self.cell, &inputs, self.is_reverse, self.time_major)?;
        Ok([vec![outputs], states].concat())
    }
}

/// Two cells walked along sequences in both directions.
#[derive(Layer)]
pub struct BiRNN {
    base: Base,
    /// The cell that goes forward.
    pub cell_fw: Arc<dyn RnnCell>,
    /// The cell that goes backward.
    pub cell_bw: Arc<dyn RnnCell>,
    time_major: bool,
}

#[class(module = "nn", object = layer::object)]
impl BiRNN {
    /// Walks one cell forward and one backward along sequences; their outputs are joined on the last axis.
    ///
    /// ```
    /// use sampan_core::Tensor;
    /// use sampan_nn::{BiRNN, GRUCell};
    /// let rnn = BiRNN::new(GRUCell::new(3, 4), GRUCell::new(3, 4));
    /// let (y, (forward, _)) = rnn.run(&Tensor::randn([2, 5, 3]), None, None)?;
    /// assert_eq!((y.shape(), forward[0].shape()), (&[2, 5, 8][..], &[2, 4][..]));
    /// # Ok::<(), sampan_core::Error>(())
    /// ```
    fn build(cell_fw: CellRef, cell_bw: CellRef, #[opt(false)] time_major: bool) -> Result<BiRNN> {
        let (fw, bw) = (cell_fw.0.input_size(), cell_bw.0.input_size());
        ensure!(fw == bw, "both cells must take the same inputs, cell_fw takes {fw} features, cell_bw {bw}");
        Ok(BiRNN { base: Base::new("bi_rnn"), cell_fw: cell_fw.0, cell_bw: cell_bw.0, time_major })
    }
}

/// The states of a forward and a backward cell.
pub type BothStates = (Vec<Tensor>, Vec<Tensor>);

impl BiRNN {
    /// The outputs of all steps and the last states of both directions, from `initial_states` or zeros.
    pub fn run(
        &self,
        inputs: &Tensor,
        initial_states: Option<(&[Tensor], &[Tensor])>,
        sequence_length: Option<&Tensor>,
    ) -> Result<(Tensor, BothStates)> {
        let states: Vec<&Tensor> = initial_states.into_iter().flat_map(|(fw, bw)| fw.iter().chain(bw)).collect();
        let mut out = self.call_all(&Inputs::list(inputs, &states, sequence_length))?;
        let backward = out.split_off(1 + self.cell_fw.state_sizes().len());
        let forward = out.split_off(1);
        Ok((out.swap_remove(0), (forward, backward)))
    }
}

impl Layer for BiRNN {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        Ok(self.forward_all(std::slice::from_ref(x))?.swap_remove(0))
    }
    fn invoke(&self, positional: Vec<Value>, named: Vec<(&str, Value)>) -> Result<Value> {
        let mut out = self.call_unhooked(&listed("BiRNN", &NAMES, positional, named)?)?;
        let backward = out.split_off(1 + self.cell_fw.state_sizes().len());
        let last = Value::List(vec![states(out.split_off(1)), states(backward)]);
        Ok(Value::List(vec![Value::Tensor(out.swap_remove(0)), last]))
    }
    fn forward_all(&self, inputs: &[Tensor]) -> Result<Vec<Tensor>> {
        let (n, m) = (self.cell_fw.state_sizes().len(), self.cell_bw.state_sizes().len());
        let Inputs { data, states, lengths } = Inputs::new(inputs, n + m)?;
        let (fw, bw) = (states.map(|s| &s[..n]), states.map(|s| &s[n..]));
        let one = |cell: &dyn RnnCell, states, is_reverse| {
            walk(cell, &Inputs { data, states, lengths }, is_reverse, self.time_major)
        };
        let (forward, fw) = one(&*self.cell_fw, fw, false)?;
        let (backward, bw) = one(&*self.cell_bw, bw, true)?;
        Ok([vec![try_concat(&[forward, backward], -1)?], fw, bw].concat())
    }
}
