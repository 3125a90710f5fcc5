//! Metrics against the peer's numbers, on batches of which the last is short.

use crate::peer::{GOLDEN, close, floats};
use sampan_core::{DType, Tensor};
use sampan_nn::metric::{Accuracy, Auc, Metric, Precision, Recall, accuracy};

fn wave(n: usize, speed: f64, start: f64) -> impl Iterator<Item = f64> {
    (0..n).map(move |i| (i as f64 * speed + start).sin())
}

#[test]
fn numbers_agree_with_the_peer() {
    let golden = &GOLDEN["metrics"];
    let mut acc = Accuracy::with(|o| o.topk([1, 2]));
    assert_eq!(acc.name(), ["acc_top1", "acc_top2"]);
    let (mut precision, mut recall, mut auc) = (Precision::new(), Recall::new(), Auc::with(|o| o.num_thresholds(200)));
    for (i, n) in [4, 4, 2].into_iter().enumerate() {
        let scores: Vec<f32> = wave(n * 5, 2.3, i as f64).map(|v| v as f32).collect();
        let scores = Tensor::from_vec(scores, [n, 5]);
        let label: Vec<i64> = (0..n).map(|k| ((k * 3 + i) % 5) as i64).collect();
        let label = Tensor::from_vec(label, [n]);
        let column = label.reshape([n, 1]);
        let one_hot = column.equal(Tensor::new([[0i64, 1, 2, 3, 4]])).cast(DType::Float32);
        let shaped = [label, column.clone(), one_hot][i].clone();
        let batch = acc.compute(&[scores.clone()], &[shaped]).unwrap();
        close("batch accuracy", &acc.update(&batch).unwrap(), &floats(&golden["accuracy"][i]), 1e-6);
        let (correct, total) = (Tensor::new([0i32]), Tensor::new(0i64));
        let functional = accuracy(&scores, &column, 2, Some(&correct), Some(&total)).unwrap();
        assert_eq!((correct.to_f64() / n as f64, total.to_f64()), (functional.to_f64(), n as f64));
        close("functional", &[functional.to_f64()], &[golden["functional"][i].as_f64().unwrap()], 1e-6);

        let p: Vec<f32> = wave(n, 1.9, i as f64).map(|v| (v / 2.0 + 0.5) as f32).collect();
        let yes = Tensor::from_vec((0..n).map(|k| ((k + i) % 2) as i64).collect::<Vec<_>>(), [n]);
        let predictions = Tensor::from_vec(p.clone(), [n]);
        let both = [precision.update(&[predictions.clone(), yes.clone()]), recall.update(&[predictions, yes.clone()])];
        close("binary", &both.map(|v| v.unwrap()[0]), &floats(&golden["binary"][i]), 1e-9);
        let rows = Tensor::from_vec(p.iter().flat_map(|&p| [1.0 - p, p]).collect::<Vec<_>>(), [n, 2]);
        let area = auc.update(&[rows, yes.reshape([n, 1])]).unwrap();
        close("auc", &area, &[golden["auc"][i].as_f64().unwrap()], 1e-9);
    }
    close("accuracy", &acc.accumulate(), &floats(&golden["accuracy"][3]), 1e-6);
    acc.reset();
    assert_eq!(acc.accumulate(), [0.0, 0.0]);
}

#[test]
fn a_precision_recall_curve() {
    let mut m = Auc::with(|o| o.curve("PR"));
    let p = Tensor::new([[0.1f32, 0.9], [0.2, 0.8], [0.7, 0.3]]);
    m.update(&[p, Tensor::new([1i64, 1, 0])]).unwrap();
    assert_eq!(m.accumulate(), [1.0]);
    assert!(Auc::try_with(|o| o.curve("DET")).is_err());
}

#[test]
fn wrong_shapes_are_errors() {
    let acc = Accuracy::new();
    let scores = Tensor::zeros([4, 3], DType::Float32);
    let error = acc.compute(&[scores.clone()], &[Tensor::zeros([5], DType::Int64)]).unwrap_err().to_string();
    assert!(error.contains("[5]") && error.contains("[4, 3]"), "{error}");
    assert!(Precision::new().update(&[scores.clone()]).is_err());
    assert!(Recall::new().update(&[scores.clone(), Tensor::zeros([2], DType::Int64)]).is_err());
    let labels = Tensor::zeros([4], DType::Int64);
    assert!(Auc::new().update(&[scores, labels.clone()]).is_err());
    let outside = Tensor::new([[0.0f32, 2.0]; 4]);
    assert!(Auc::new().update(&[outside, labels]).unwrap_err().to_string().contains("probabilities"));
}
