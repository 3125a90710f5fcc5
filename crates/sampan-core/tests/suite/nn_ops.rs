//! What the registry's checks cannot see in activations, losses, normalisation and dropout: messages, state, chance.

use sampan_core::ops::cross_entropy::CrossEntropyOpts;
use sampan_core::ops::dropout::DropoutOpts;
use sampan_core::ops::normalization::BatchNormOpts;
use sampan_core::{DType, Tensor, random};

fn message<T>(result: sampan_core::Result<T>) -> String {
    result.err().expect("must be refused").to_string()
}

#[test]
fn a_wrong_label_is_named() {
    let x = Tensor::zeros([4, 3], DType::Float32);
    let labels = Tensor::new([0i64, 2, 7, 1]);
    let text = message(x.try_cross_entropy(&labels));
    for part in ["label 7", "position 2", "3 classes", "cross_entropy", "ignore_index (-100)"] {
        assert!(text.contains(part), "{part} in {text}");
    }
    assert!(message(x.try_nll_loss(&labels)).contains("label 7 at position 2"));
    assert!(message(x.try_multi_margin_loss(&labels)).contains("label 7 at position 2"));
    // The same label is fine where it is to be ignored.
    let opts = CrossEntropyOpts::new().ignore_index(7);
    assert!((x.cross_entropy_with(&labels, opts).to_f64() - 3f64.ln()).abs() < 1e-6);
    let one = Tensor::new([1i64]);
    let frames = Tensor::zeros([2, 1, 3], DType::Float32);
    let text = message(frames.try_ctc_loss(&Tensor::new([[5i64]]), &Tensor::new([2i64]), &one));
    assert!(text.contains("label 5 at position [0, 0]") && text.contains("3 classes"), "{text}");
}

#[test]
fn wrong_arguments_are_refused_with_reasons() {
    let x = Tensor::zeros([4, 3], DType::Float32);
    let float_labels = Tensor::zeros([4], DType::Float32);
    assert!(message(x.try_cross_entropy(&float_labels)).contains("soft_label=True"));
    assert!(message(x.try_cross_entropy(&Tensor::new([0i64, 1]))).contains("label must have shape [4] or [4, 1]"));
    assert!(
        message(x.try_mse_loss_with(&x, sampan_core::ops::loss::MseLossOpts::new().reduction("avg")))
            .contains("\"avg\"")
    );
    assert!(message(x.try_softmax(2)).contains("axis must lie in [-2, 2)"));
    assert!(message(x.try_layer_norm(4, None, None, 1e-5)).contains("does not end in normalized_shape [4]"));
    assert!(message(x.try_dropout(1.5)).contains("p must lie in [0, 1], got 1.5"));
    let stats = Tensor::zeros([5], DType::Float32);
    assert!(message(x.try_batch_norm(&stats, &stats)).contains("running_mean has shape [5], x has 3 channels"));
    let p = Tensor::new([0.5f32, 1.5]);
    assert!(message(p.try_binary_cross_entropy(&p, None, "mean")).contains("position 1 lies outside of [0, 1]"));
}

#[test]
fn running_statistics_move_by_the_kept_share() {
    let x = Tensor::new([[1.0f32, 10.0], [3.0, 30.0]]);
    let (mean, var) = (Tensor::new([0.0f32, 0.0]), Tensor::new([1.0f32, 1.0]));
    x.batch_norm_with(&mean, &var, BatchNormOpts::new().training(true).momentum(0.75));
    assert_eq!(mean.to_vec::<f32>(), [0.5, 5.0]);
    assert_eq!(var.to_vec::<f32>(), [1.0, 25.75]);
    // Global statistics stay as they are, in training too.
    x.batch_norm_with(&mean, &var, BatchNormOpts::new().training(true).use_global_stats(true));
    assert_eq!(mean.to_vec::<f32>(), [0.5, 5.0]);
}

#[test]
fn dropout_repeats_with_the_seed() {
    // The generator belongs to the whole process.
    crate::alone::alone("nn_ops::dropout_repeats_with_the_seed", seeded_dropout);
}

fn seeded_dropout() {
    let x = Tensor::new([1.0f32]).expand([100, 100]);
    random::seed(3);
    let a = x.dropout(0.3);
    random::seed(3);
    assert_eq!(a.to_vec::<f32>(), x.dropout(0.3).to_vec::<f32>());
    assert!(a.to_vec::<f32>().iter().all(|v| *v == 0.0 || (v - 1.0 / 0.7).abs() < 1e-6));
    // Along an axis whole columns go.
    let columns = x.dropout_with(0.5, DropoutOpts::new().axis(1)).to_vec::<f32>();
    assert!((0..100).all(|j| (0..100).all(|i| columns[i * 100 + j] == columns[j])));
}

#[test]
fn the_gradient_of_an_in_place_relu_needs_no_input() {
    let x = Tensor::new([-1.0f32, 2.0]).requires_grad_();
    let mut y = &x * 3.0;
    y.relu_();
    y.sum(()).backward();
    assert_eq!(x.grad().unwrap().to_vec::<f32>(), [0.0, 3.0]);
}

#[test]
fn extreme_logits_stay_finite() {
    let x = Tensor::new([[1000.0f32, -1000.0]]);
    assert_eq!(x.softmax(-1).to_vec::<f32>(), [1.0, 0.0]);
    assert_eq!(x.log_softmax(-1).to_vec::<f32>(), [0.0, -2000.0]);
    assert_eq!(x.cross_entropy(&Tensor::new([1i64])).to_f64(), 2000.0);
    assert_eq!(x.log_sigmoid().to_vec::<f32>(), [0.0, -1000.0]);
    assert_eq!(x.elu(1.0).to_vec::<f32>(), [1000.0, -1.0]);
    assert_eq!(x.gelu(false).to_vec::<f32>()[0], 1000.0);
    assert!(x.mish().to_vec::<f32>().iter().all(|v| v.is_finite()));
}
