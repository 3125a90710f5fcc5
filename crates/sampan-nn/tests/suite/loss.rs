//! What losses do besides their mathematics, which is compared with the peer's.

use sampan_core::{DType, Tensor};
use sampan_nn::{
    AdaptiveLogSoftmaxWithLoss, CTCLoss, CrossEntropyLoss, KLDivLoss, Layer, MSELoss, TripletMarginWithDistanceLoss,
};

#[test]
fn unknown_reductions_and_wrong_inputs_are_refused() {
    let e = CrossEntropyLoss::try_with(|o| o.reduction("avg")).map(|_| ()).unwrap_err().to_string();
    assert!(e.contains("CrossEntropyLoss") && e.contains("\"avg\""), "{e}");
    assert!(CrossEntropyLoss::try_with(|o| o.reduction("batchmean")).is_err());
    assert!(KLDivLoss::try_with(|o| o.reduction("batchmean")).is_ok());
    let x = Tensor::zeros([2], DType::Float32);
    let e = MSELoss::new().call(&x).unwrap_err().to_string();
    assert!(e.contains("2 inputs (input, label), got 1"), "{e}");
}

#[test]
fn the_adaptive_softmax_is_a_distribution_and_its_loss_reads_from_it() {
    let layer = AdaptiveLogSoftmaxWithLoss::with(8, 9, [3, 6], |o| o.div_value(2.0).head_bias(true));
    let (x, label) = (Tensor::randn([5, 8]), Tensor::new([0i64, 4, 8, 2, 6]));
    let all = layer.log_prob(&x).unwrap();
    assert!((all.exp().sum(1) - 1.0).abs().max(()).to_f64() < 1e-6);
    let (log_p, loss) = layer.of(&x, &label).unwrap();
    let read = all.take_along_axis(&label.unsqueeze(1), 1).squeeze(1);
    assert!((&read - &log_p).abs().max(()).to_f64() < 1e-6);
    assert!((loss + read.mean(())).abs().to_f64() < 1e-6);
    assert_eq!(layer.predict(&x).unwrap().to_vec::<i64>(), all.argmax(1).to_vec::<i64>());
    let e = AdaptiveLogSoftmaxWithLoss::try_new(8, 9, [6, 3]).map(|_| ()).unwrap_err().to_string();
    assert!(e.contains("[6, 3]"), "{e}");
}

#[test]
fn any_distance_makes_a_triplet_loss_and_its_errors_come_back() {
    let (a, p, n) = (Tensor::randn([3, 2]), Tensor::randn([3, 2]), Tensor::randn([3, 2]));
    let euclidean = |x: &Tensor, y: &Tensor| Ok((x - y + 1e-6).square().sum(-1).sqrt());
    let own =
        TripletMarginWithDistanceLoss::with(|o| o.distance_function(euclidean).margin(2.0)).of(&a, &p, &n).unwrap();
    let usual = TripletMarginWithDistanceLoss::with(|o| o.margin(2.0)).of(&a, &p, &n).unwrap();
    assert!((own - usual).abs().to_f64() < 1e-6);
    let broken = |x: &Tensor, _: &Tensor| x.try_matmul(x);
    assert!(TripletMarginWithDistanceLoss::with(|o| o.distance_function(broken)).of(&a, &p, &n).is_err());
}

#[test]
fn ctc_may_divide_gradients_by_the_number_of_frames() {
    let (labels, frames, lengths) = (Tensor::new([[1i32, 2]]), Tensor::new([4i64]), Tensor::new([2i64]));
    let scores = Tensor::randn([4, 1, 3]);
    let loss = CTCLoss::with(|o| o.reduction("sum"));
    let gradient = |normed: bool| {
        let x = scores.detach().requires_grad_();
        let value = if normed {
            loss.of_normed(&x, &labels, &frames, &lengths)
        } else {
            loss.of(&x, &labels, &frames, &lengths)
        };
        value.unwrap().backward();
        x.grad().unwrap()
    };
    assert!((gradient(false) / 4.0 - gradient(true)).abs().max(()).to_f64() < 1e-6);
}
