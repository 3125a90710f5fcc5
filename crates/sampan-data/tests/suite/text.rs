//! Decoding of tags; the numbers are PaddlePaddle's.

use sampan_core::Tensor;
use sampan_data::text::{ViterbiDecoder, viterbi_decode};
use sampan_nn::Layer;

#[test]
fn the_best_tags_are_paddles() {
    let numbers =
        |n: usize, f: fn(f64) -> f64, step: f64| (0..n).map(|i| f(step * i as f64) as f32).collect::<Vec<_>>();
    let fits = Tensor::from_vec(numbers(24, f64::sin, 0.7), [2, 3, 4]);
    let follows = Tensor::from_vec(numbers(16, f64::cos, 0.9), [4, 4]);
    let cases: [(bool, [i64; 2], [f64; 2], &[i64]); 4] = [
        (false, [3, 2], [3.1480494, 1.9885268], &[3, 1, 3, 1, 3, 0]),
        (false, [0, 1], [0.9854497, 0.8545989], &[0, 0]),
        (true, [3, 2], [3.9053082, 1.7469320], &[2, 0, 0, 1, 3, 0]),
        (true, [0, 1], [1.9848843, 1.2686203], &[0, 0]),
    ];
    for (tag, lengths, scores, tags) in cases {
        let found = viterbi_decode(&fits, &follows, &Tensor::new(lengths), tag).unwrap();
        assert!(found.0.to_f64_vec().iter().zip(scores).all(|(a, b)| (a - b).abs() < 1e-6), "{:?}", found.0);
        assert_eq!(found.1.to_vec::<i64>(), tags);
        let decoder = ViterbiDecoder::with(&follows, |o| o.include_bos_eos_tag(tag));
        let layer = decoder.call_all(&[fits.clone(), Tensor::new(lengths)]).unwrap();
        assert_eq!(layer[1].to_vec::<i64>(), tags);
    }
    let error = viterbi_decode(&fits, &follows, &Tensor::new([4i64, 1]), false).unwrap_err().to_string();
    assert!(error.contains("lengths must lie in 0..=3"), "{error}");
}
