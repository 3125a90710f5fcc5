//! Decoding step by step; the numbers of the beam search are those of PaddlePaddle with the same weights.

use sampan_core::{DType, Result, Tensor};
use sampan_nn::{
    BeamSearchDecoder, DecodeOpts, Decoder, DecoderState, Embedding, GRUCell, LSTMCell, Layer, Linear, Parameter,
    SharedLayer, dynamic_decode,
};

fn wave(shape: &[usize], step: f64, start: f64, size: f64) -> Tensor {
    let n = shape.iter().product::<usize>();
    Tensor::from_vec((0..n).map(|i| ((step * i as f64 + start).sin() * size) as f32).collect::<Vec<_>>(), shape)
}

/// A beam search with a cell whose weights, those of the embedding before and of the output after them, are waves.
fn decoder(cell: impl Layer, weights: [&Parameter; 4]) -> BeamSearchDecoder {
    let (embedding, output) = (Embedding::new(6, 4), Linear::new(5, 6));
    let ends = [&output.weight, output.bias.as_ref().unwrap()];
    for (i, p) in [&embedding.weight].into_iter().chain(weights).chain(ends).enumerate() {
        p.set_value(&wave(p.value().unwrap().shape(), 1.7 + i as f64, i as f64, 1.5)).unwrap();
    }
    BeamSearchDecoder::with(cell, 0, 1, 3, |o| {
        o.embedding_fn(move |ids: &Tensor| embedding.call(ids)).output_fn(SharedLayer::from(output))
    })
}

fn close(x: &Tensor, want: [f64; 6]) -> bool {
    x.to_f64_vec().iter().zip(want).all(|(a, b)| (a - b).abs() < 1e-4)
}

#[test]
fn beam_search_finds_the_sequences_of_the_peer() {
    let state = wave(&[2, 5], 0.9, 0.3, 1.0);
    let gru = std::sync::Arc::new(GRUCell::new(4, 5));
    let beam = decoder(gru.clone(), [&gru.weight_ih, &gru.weight_hh, &gru.bias_ih, &gru.bias_hh]);
    let opts = DecodeOpts { max_step_num: Some(6), ..DecodeOpts::default() };
    let found = dynamic_decode(&beam, std::slice::from_ref(&state), opts).unwrap();
    assert_eq!(found.outputs[0].shape(), [2, 3, 3]);
    assert_eq!(found.outputs[0].to_vec::<i64>(), [5, 5, 5, 1, 0, 2, 1, 1, 1, 1, 2, 0, 1, 1, 1, 1, 1, 1]);
    assert_eq!(found.lengths.to_vec::<i64>(), [2, 3, 3, 1, 2, 2]);
    assert_eq!(found.states[0].shape(), [2, 3, 5]);
    assert!((found.states[0].sum(()).to_f64() - 0.42331058).abs() < 1e-4);
    assert!(close(&found.states[1], [-0.88823545, -2.78071856, -3.03190422, -0.61614561, -2.42642546, -2.43452096]));

    let lstm = std::sync::Arc::new(LSTMCell::new(4, 5));
    let beam = decoder(lstm.clone(), [&lstm.weight_ih, &lstm.weight_hh, &lstm.bias_ih, &lstm.bias_hh]);
    let opts = DecodeOpts { max_step_num: Some(4), output_time_major: true, ..DecodeOpts::default() };
    let found = dynamic_decode(&beam, &[state.clone(), state], opts).unwrap();
    assert_eq!(found.outputs[0].to_vec::<i64>(), [5, 1, 5, 1, 5, 2, 1, 1, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1]);
    assert_eq!(found.lengths.to_vec::<i64>(), [2, 1, 3, 1, 2, 2]);
    assert!(close(&found.states[2], [-1.16584969, -1.76382136, -2.97756720, -1.13058305, -1.66263568, -2.55875254]));
}

/// Counts down to zero.
struct Countdown;

impl Decoder for Countdown {
    fn initialize(&self, inits: &[Tensor]) -> Result<DecoderState> {
        let finished = inits[0].try_less_equal(0)?;
        Ok(DecoderState { inputs: inits[0].clone(), states: inits.to_vec(), finished })
    }
    fn step(&self, _: usize, inputs: &Tensor, states: &[Tensor]) -> Result<(Vec<Tensor>, DecoderState)> {
        let next = inputs.try_subtract(1)?;
        // It says that a sequence has ended in one step only, and forgets it.
        let finished = next.try_equal(0)?;
        let states = vec![states[0].try_add(10)?];
        Ok((vec![next.clone()], DecoderState { inputs: next, states, finished }))
    }
}

#[test]
fn a_sequence_that_has_ended_stays_so() {
    let start = [Tensor::new([1i64, 3])];
    let run = |impute_finished, max_step_num| {
        let opts = DecodeOpts { impute_finished, max_step_num, output_time_major: false };
        dynamic_decode(&Countdown, &start, opts).unwrap()
    };
    let found = run(true, None);
    assert_eq!(found.outputs[0].to_vec::<i64>(), [0, -1, -2, 2, 1, 0]);
    assert_eq!(found.lengths.to_vec::<i64>(), [0, 2]);
    assert_eq!(found.states[0].to_vec::<i64>(), [1, 23]);
    assert_eq!(run(false, None).states[0].to_vec::<i64>(), [31, 33]);
    assert_eq!(run(false, Some(0)).outputs[0].shape(), [2, 1]);
    let ended = dynamic_decode(&Countdown, &[Tensor::new([0i64])], DecodeOpts::default());
    assert!(ended.err().unwrap().to_string().contains("nothing to decode"));
}

#[test]
fn wrong_tokens_and_states_are_named() {
    let run = |end_token: i64, beam_size: usize, inits: &[Tensor]| {
        let embed = |ids: &Tensor| ids.try_cast(DType::Float32)?.try_unsqueeze(2)?.try_expand([1, 2, 2]);
        let decoder = BeamSearchDecoder::with(GRUCell::new(2, 2), 0, end_token, beam_size, |o| o.embedding_fn(embed));
        dynamic_decode(&decoder, inits, DecodeOpts::default()).err().unwrap().to_string()
    };
    assert!(run(1, 2, &[]).contains("starts from the states"));
    let state = [Tensor::zeros([1, 2], DType::Float32)];
    assert!(run(7, 2, &state).contains("end_token 7 is none of 2 tokens"));
    assert!(run(1, 0, &state).contains("beam_size must be positive"));
}
