//! Generating sequences step by step: what a decoder is, the loop around it, and beam search.

use crate::callable::TensorMap;
use crate::{Layer, SharedLayer};
use sampan_core::ops::joining::try_stack;
use sampan_core::value::Arg;
use sampan_core::{Bool, DType, Object, Result, Tensor, Value, bail, ensure};
use sampan_macros::{class, function};
use std::sync::Arc;

/// What the first step of a decoder starts from, and what a step leaves to the next one.
pub struct DecoderState {
    /// The input of the next step.
    pub inputs: Tensor,
    /// The states of the next step, each with the batch as its first axis.
    pub states: Vec<Tensor>,
    /// Which sequences have ended.
    pub finished: Tensor,
}

/// Makes sequences one step at a time in [`dynamic_decode`].
pub trait Decoder: Send + Sync {
    /// The start, from what the caller gives.
    fn initialize(&self, inits: &[Tensor]) -> Result<DecoderState>;

    /// Step `time`: its outputs, and what the next step starts from.
    fn step(&self, time: usize, inputs: &Tensor, states: &[Tensor]) -> Result<(Vec<Tensor>, DecoderState)>;

    /// Turns the outputs of all steps, stacked along a new first axis, into the results.
    fn finalize(&self, outputs: Vec<Tensor>, states: &[Tensor], lengths: &Tensor) -> Result<Vec<Tensor>> {
        let _ = (states, lengths);
        Ok(outputs)
    }

    /// The lengths so far, from a decoder that follows itself which sequences have ended, because it reorders them.
    /// Without them, a sequence that has ended once stays so, and its length is the number of steps before.
    fn own_lengths(&self, states: &[Tensor]) -> Option<Tensor> {
        let _ = states;
        None
    }
}

/// How [`dynamic_decode`] decodes.
#[derive(Clone, Copy, Debug, Default)]
pub struct DecodeOpts {
    /// The number of the last step, counted from 0. Without it, decoding goes on until all sequences have ended.
    pub max_step_num: Option<usize>,
    /// Whether the results keep time as their first axis, or have it second after the batch.
    pub output_time_major: bool,
    /// Whether the states of a sequence stay as they are when it has ended.
    pub impute_finished: bool,
}

/// What [`dynamic_decode`] gives.
pub struct Decoded {
    /// The results of the decoder.
    pub outputs: Vec<Tensor>,
    /// The states after the last step.
    pub states: Vec<Tensor>,
    /// The length of each sequence.
    pub lengths: Tensor,
}

fn all(flags: &Tensor) -> Result<bool> {
    Ok(flags.try_to_vec::<Bool>()?.iter().all(|flag| flag.get()))
}

/// Calls the decoder step by step until every sequence has ended or `max_step_num` is reached.
///
/// ```
/// use sampan_core::{DType, Tensor};
/// use sampan_nn::{BeamSearchDecoder, DecodeOpts, Embedding, GRUCell, Layer, Linear, dynamic_decode};
/// let (embedding, output) = (Embedding::new(100, 8), Linear::new(16, 100));
/// let decoder = BeamSearchDecoder::with(GRUCell::new(8, 16), 0, 1, 4, |o| {
///     o.embedding_fn(move |ids: &Tensor| embedding.call(ids)).output_fn(move |h: &Tensor| output.call(h))
/// });
/// let states = [Tensor::zeros([2, 16], DType::Float32)];
/// let found = dynamic_decode(&decoder, &states, DecodeOpts { max_step_num: Some(5), ..Default::default() })?;
/// assert_eq!(found.outputs[0].shape(), [2, 6, 4]);
/// # Ok::<(), sampan_core::Error>(())
/// ```
pub fn dynamic_decode(decoder: &dyn Decoder, inits: &[Tensor], opts: DecodeOpts) -> Result<Decoded> {
    let mut now = decoder.initialize(inits)?;
    let mut lengths = Tensor::zeros(now.finished.shape(), DType::Int64);
    let mut steps: Vec<Vec<Tensor>> = Vec::new();
    while !all(&now.finished)? && opts.max_step_num.is_none_or(|last| steps.len() <= last) {
        let (outputs, mut next) = decoder.step(steps.len(), &now.inputs, &now.states)?;
        match decoder.own_lengths(&next.states) {
            Some(own) => lengths = own,
            None => {
                next.finished = next.finished.try_logical_or(&now.finished)?;
                lengths = lengths.try_add(&next.finished.try_logical_not()?.try_cast(DType::Int64)?)?;
                if opts.impute_finished {
                    for (new, old) in next.states.iter_mut().zip(&now.states) {
                        let mut shape = next.finished.shape().to_vec();
                        shape.resize(new.ndim().max(shape.len()), 1);
                        *new = next.finished.try_reshape(shape)?.try_where_cond(old, &*new)?;
                    }
                }
            }
        }
        steps.push(outputs);
        now = next;
    }
    let count = steps.first().map_or(0, Vec::len);
    ensure!(count > 0, "there is nothing to decode: every sequence has ended before the first step");
    let stack = |i: usize| try_stack(&steps.iter().map(|s| s[i].clone()).collect::<Vec<_>>(), 0);
    let outputs = (0..count).map(stack).collect::<Result<Vec<_>>>()?;
    let mut outputs = decoder.finalize(outputs, &now.states, &lengths)?;
    if !opts.output_time_major {
        outputs = outputs.iter().map(|x| x.try_swapaxes(0, 1)).collect::<Result<_>>()?;
    }
    Ok(Decoded { outputs, states: now.states, lengths })
}

/// A decoder for those who build by name.
fn object<D: Decoder + 'static>(decoder: D) -> Object {
    Object::new(Arc::new(decoder) as Arc<dyn Decoder>)
}

/// A decoder that is shared with whoever passes it.
struct SharedDecoder(Arc<dyn Decoder>);

impl<'a> Arg<'a> for SharedDecoder {
    const EXPECTED: &'static str = "a decoder";
    fn read(v: &'a Value) -> Option<Self> {
        let Value::Object(o) = v else { return None };
        o.downcast::<Arc<dyn Decoder>>().cloned().map(SharedDecoder)
    }
}

/// Calls a decoder step by step until every sequence has ended or `max_step_num` is reached: its results (one tensor or
/// several), the states after the last step and, with `return_length`, the length of each sequence.
///
/// `inits` holds the first states, in any arrangement. Without `output_time_major` the batch comes first in the results.
/// With `impute_finished` the states of a sequence stay as they are when it has ended. `is_test` is a hint to save memory,
/// which nothing here needs.
///
/// ```
/// use sampan_core::{DType, Tensor, Value, class, function};
/// use sampan_nn::{GRUCell, SharedLayer};
/// let cell = Value::from(SharedLayer::from(GRUCell::new(6, 6)));
/// let embed = Value::from(SharedLayer::from(sampan_nn::Embedding::new(6, 6)));
/// let decoder = class::find("nn", "BeamSearchDecoder").expect("it is registered");
/// let decoder = decoder.make(vec![cell, 0.into(), 1.into(), 4.into(), embed], vec![])?;
/// let states = Value::List(vec![Tensor::zeros([2, 6], DType::Float32).into()]);
/// let decode = function::find("nn", "dynamic_decode").expect("it is registered");
/// let found = decode.call(vec![decoder.into(), states, 5.into()], vec![("return_length", true.into())])?;
/// assert!(matches!(found, Value::List(parts) if parts.len() == 3));
/// # Ok::<(), sampan_core::Error>(())
/// ```
#[function(module = "nn", name = "dynamic_decode")]
fn dynamic_decode_by_name(
    decoder: SharedDecoder,
    #[default(None)] inits: &Value,
    #[default(None)] max_step_num: Option<usize>,
    #[default(false)] output_time_major: bool,
    #[default(false)] impute_finished: bool,
    #[default(false)] is_test: bool,
    #[default(false)] return_length: bool,
) -> Result<Value> {
    let _ = is_test;
    let mut states = Vec::new();
    inits.for_each_tensor(&mut |t| states.push(t.clone()));
    let opts = DecodeOpts { max_step_num, output_time_major, impute_finished };
    let mut found = dynamic_decode(&*decoder.0, &states, opts)?;
    let outputs =
        if found.outputs.len() == 1 { Value::Tensor(found.outputs.remove(0)) } else { Value::Tensors(found.outputs) };
    Ok(if return_length { (outputs, found.states, found.lengths).into() } else { (outputs, found.states).into() })
}

/// Keeps the `beam_size` most probable sequences at each step. The decoder's states are those of the cell, then the
/// log-probability, the end and the length of each sequence, all `[batch, beam, …]`; its result is the tokens
/// `[time, batch, beam]`, the best sequence first.
pub struct BeamSearchDecoder {
    cell: SharedLayer,
    start_token: i64,
    end_token: i64,
    beam_size: usize,
    embedding_fn: Option<TensorMap>,
    output_fn: Option<TensorMap>,
}

/// The log-probability of what cannot be.
const NEVER: f64 = -1e9;
/// How many states a beam search adds to those of the cell.
const OWN: usize = 3;

#[class(module = "nn", object = object)]
impl BeamSearchDecoder {
    /// A beam search with a recurrent cell, or any layer that takes an input and states and gives an output and states.
    /// `embedding_fn` makes the cell's input of the tokens, `output_fn` the scores of all tokens of the cell's output.
    ///
    /// ```
    /// use sampan_nn::{BeamSearchDecoder, Embedding, GRUCell, Linear, SharedLayer};
    /// let (embedding, output) = (SharedLayer::from(Embedding::new(100, 8)), SharedLayer::from(Linear::new(16, 100)));
    /// let cell = GRUCell::new(8, 16);
    /// let decoder = BeamSearchDecoder::with(cell, 0, 1, 4, |o| o.embedding_fn(embedding).output_fn(output));
    /// ```
    fn build(
        cell: SharedLayer,
        start_token: i64,
        end_token: i64,
        beam_size: usize,
        #[opt(None)] embedding_fn: Option<TensorMap>,
        #[opt(None)] output_fn: Option<TensorMap>,
    ) -> Result<BeamSearchDecoder> {
        Ok(BeamSearchDecoder { cell, start_token, end_token, beam_size, embedding_fn, output_fn })
    }

    /// Each entry of the batch `beam_size` times in a row: for a tensor that the cell uses beside its states, such as
    /// what an encoder has found.
    pub fn tile_beam_merge_with_batch(x: &Tensor, beam_size: usize) -> Result<Tensor> {
        merge(&expand(x, beam_size)?)
    }

    fn embed(&self, tokens: Tensor) -> Result<Tensor> {
        self.embedding_fn.as_ref().map_or(Ok(tokens.clone()), |f| f.call(&tokens))
    }
}

/// `[batch, …]` as `[batch, beam, …]`.
fn expand(x: &Tensor, beams: usize) -> Result<Tensor> {
    let mut shape = x.shape().to_vec();
    ensure!(!shape.is_empty(), "a state needs the batch as its first axis, got a 0-d tensor");
    shape.insert(1, beams);
    x.try_unsqueeze(1)?.try_expand(shape)
}

/// `[batch, beam, …]` as `[batch * beam, …]`.
fn merge(x: &Tensor) -> Result<Tensor> {
    x.try_flatten(0, 1)
}

/// `[batch * beam, …]` as `[batch, beam, …]`.
fn split(x: &Tensor, beams: usize) -> Result<Tensor> {
    let mut shape = x.shape().to_vec();
    let Some(rows) = shape.first().copied() else { bail!("the cell gave a 0-d tensor") };
    shape.splice(..1, [rows / beams, beams]);
    x.try_reshape(shape)
}

impl Decoder for BeamSearchDecoder {
    fn initialize(&self, inits: &[Tensor]) -> Result<DecoderState> {
        ensure!(self.beam_size > 0, "beam_size must be positive");
        let Some(first) = inits.first().filter(|t| t.ndim() > 0) else {
            bail!("beam search starts from the states of the cell, each with the batch as its first axis")
        };
        let shape = [first.dim(0), self.beam_size];
        let mut states = inits.iter().map(|t| expand(t, self.beam_size)).collect::<Result<Vec<_>>>()?;
        // All beams begin alike; only the first one counts, or the same sequence would fill them all.
        let row: Vec<f64> = (0..self.beam_size).map(|k| if k == 0 { 0.0 } else { NEVER }).collect();
        let dtype = if first.dtype().is_float() { first.dtype() } else { DType::Float32 };
        let log_probs = Tensor::from_vec(row, [1, self.beam_size]).try_cast(dtype)?.try_expand(shape)?;
        let tokens = Tensor::zeros(shape, DType::Int64);
        let finished = Tensor::zeros(shape, DType::Bool);
        states.extend([log_probs, finished.clone(), tokens.clone()]);
        Ok(DecoderState { inputs: self.embed(tokens.try_add(self.start_token)?)?, states, finished })
    }

    fn step(&self, _: usize, inputs: &Tensor, states: &[Tensor]) -> Result<(Vec<Tensor>, DecoderState)> {
        let beams = self.beam_size;
        let (cell_states, [log_probs, finished, lengths]) = states.split_at(states.len().saturating_sub(OWN)) else {
            bail!("the states must be those that initialize or step gave")
        };
        let mut merged = vec![merge(inputs)?];
        for state in cell_states {
            merged.push(merge(state)?);
        }
        let found = self.cell.0.call_all(&merged)?;
        ensure!(found.len() == merged.len(), "the cell got {} states and gave {}", merged.len() - 1, found.len() - 1);
        let output = split(&found[0], beams)?;
        let scores = self.output_fn.as_ref().map_or(Ok(output.clone()), |f| f.call(&output))?;
        let &[batch, _, vocab] = scores.shape() else {
            bail!("scores must have the axes batch, beam, token; got shape {:?}", scores.shape())
        };
        let end = self.end_token;
        ensure!((0..vocab as i64).contains(&end), "end_token {end} is none of {vocab} tokens");

        // A sequence that has ended goes on with the end token at no cost.
        let only_end: Vec<f64> = (0..vocab as i64).map(|t| if t == end { 0.0 } else { NEVER }).collect();
        let only_end = Tensor::from_vec(only_end, [vocab]).try_cast(scores.dtype())?;
        let each = finished.try_unsqueeze(2)?.try_where_cond(only_end, scores.try_log_softmax(-1)?)?;
        let total = each.try_add(log_probs.try_unsqueeze(2)?)?.try_reshape([batch, beams * vocab])?;
        let (best, at) = total.try_topk(beams as i64)?;
        let parents = at.try_floor_divide(vocab as i64)?;
        let tokens = at.try_remainder(vocab as i64)?;

        let first = Tensor::arange(0, batch as i64, 1).try_multiply(beams as i64)?.try_unsqueeze(1)?;
        let rows = parents.try_add(first)?.try_reshape([batch * beams])?;
        let follow = |merged: &Tensor| split(&merged.try_index_select(&rows, 0)?, beams);
        let mut states = found[1..].iter().map(follow).collect::<Result<Vec<_>>>()?;
        let ended = follow(&merge(finished)?)?;
        let lengths = follow(&merge(lengths)?)?.try_add(ended.try_logical_not()?.try_cast(DType::Int64)?)?;
        let finished = ended.try_logical_or(&tokens.try_equal(end)?)?;
        states.extend([best.clone(), finished.clone(), lengths]);
        let inputs = self.embed(tokens.clone())?;
        Ok((vec![best, tokens, parents], DecoderState { inputs, states, finished }))
    }

    fn finalize(&self, outputs: Vec<Tensor>, _: &[Tensor], _: &Tensor) -> Result<Vec<Tensor>> {
        Ok(vec![outputs[1].try_gather_tree(&outputs[2])?])
    }

    fn own_lengths(&self, states: &[Tensor]) -> Option<Tensor> {
        states.last().cloned()
    }
}
