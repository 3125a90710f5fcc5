//! What a recurrent layer is called with, as one list of tensors.

use sampan_core::ops::loss::SequenceMaskOpts;
use crate::invoke;
use sampan_core::{DType, Error, Result, Tensor, Value, ensure};

/// The inputs of a recurrent layer: data, states if there are any, lengths of the sequences if there are any. The lengths
/// are integers, which tells them from a state.
pub(crate) struct Inputs<'a> {
    pub data: &'a Tensor,
    pub states: Option<&'a [Tensor]>,
    pub lengths: Option<&'a Tensor>,
}

impl<'a> Inputs<'a> {
    pub fn new(inputs: &'a [Tensor], states: usize) -> Result<Inputs<'a>> {
        let [data, rest @ ..] = inputs else { return Err(Error::invalid("needs an input")) };
        let (rest, lengths) = match rest {
            [rest @ .., last] if !last.dtype().is_float() => (rest, Some(last)),
            _ => (rest, None),
        };
        ensure!(
            rest.is_empty() || rest.len() == states,
            "takes an input, {states} states or none, and an integer sequence_length or none; got {} tensors",
            inputs.len()
        );
        Ok(Inputs { data, states: (!rest.is_empty()).then_some(rest), lengths })
    }

    /// The list that `new` takes apart.
    pub fn list(data: &Tensor, states: &[&Tensor], lengths: Option<&Tensor>) -> Vec<Tensor> {
        [data].into_iter().chain(states.iter().copied()).chain(lengths).cloned().collect()
    }
}

/// The arguments `inputs`, `states` (nested as one likes) and `sequence_length` as the list that `Inputs::new` takes apart.
pub(crate) fn listed(
    layer: &'static str,
    names: &[&str],
    positional: Vec<Value>,
    named: Vec<(&str, Value)>,
) -> Result<Vec<Tensor>> {
    let values = invoke::bind(layer, names, 1, positional, named)?;
    let missing = || Error::dtype(format!("`{}` must be a Tensor, got None", names[0])).in_op(layer);
    let mut list = vec![invoke::tensor(layer, names[0], &values[0])?.cloned().ok_or_else(missing)?];
    list.extend(invoke::all_tensors(&values[1]));
    if let Some(lengths) = values.get(2) {
        let lengths = match lengths {
            Value::Ints(lengths) => Some(Tensor::from_vec(lengths.to_vec(), [lengths.len()])),
            other => invoke::tensor(layer, names[2], other)?.cloned(),
        };
        // Floats would be taken for a state.
        list.extend(lengths.map(|l| if l.dtype().is_float() { l.try_cast(DType::Int64) } else { Ok(l) }).transpose()?);
    }
    Ok(list)
}

/// One state as it is, several as a list.
pub(crate) fn states(states: Vec<Tensor>) -> Value {
    invoke::outputs(states)
}

/// Which of the steps each sequence takes, `[batch, steps]`.
pub(crate) fn taken(lengths: &Tensor, batch: usize, steps: usize) -> Result<Tensor> {
    ensure!(
        lengths.shape() == [batch],
        "sequence_length must have shape [{batch}], one number for each sequence, got {:?}",
        lengths.shape()
    );
    lengths.try_sequence_mask_with(steps as i64, SequenceMaskOpts::new().dtype(DType::Bool))
}
