//! Weights in other forms, gradients cut, parameters as a vector.

use sampan_core::{DType, Result, Tensor};
use sampan_nn::{Conv2D, Layer, Linear, Members, ParamAttr, Parameter, SGD, utils};

fn close(a: &Tensor, b: &Tensor) -> bool {
    a.shape() == b.shape() && (a - b).abs().max(()).to_f64() < 1e-5
}

fn text(r: Result<()>) -> String {
    r.unwrap_err().to_string()
}

#[test]
fn weight_norm_changes_nothing_until_it_is_trained_and_can_be_removed() {
    let (fc, x) = (Linear::new(3, 4), Tensor::randn([2, 3]));
    let before = fc.call(&x).unwrap();
    for dim in [None, Some(0), Some(1), Some(-2)] {
        utils::weight_norm(&fc, "weight", dim).unwrap();
        assert!(close(&fc.call(&x).unwrap(), &before), "{dim:?}");
        assert!(text(utils::weight_norm(&fc, "weight", dim)).contains("already"));
        assert!(text(utils::remove_spectral_norm(&fc, "weight")).contains("no such norm"));
        utils::remove_weight_norm(&fc, "weight").unwrap();
    }
    assert_eq!(fc.state_dict().keys().collect::<Vec<_>>(), ["bias", "weight"]);
    assert!(close(&fc.call(&x).unwrap(), &before));
    assert!(text(utils::remove_weight_norm(&fc, "weight")).contains("no such norm"));
    assert!(text(utils::weight_norm(&fc, "wait", None)).contains("there are weight, bias"));
    assert!(utils::weight_norm(&fc, "weight", Some(2)).is_err());
}

#[test]
fn lengths_and_directions_are_trained_apart() {
    let (fc, x) = (Linear::new(3, 4), Tensor::randn([2, 3]));
    utils::weight_norm(&fc, "weight", Some(1)).unwrap();
    let before = fc.state_dict().into_iter().map(|(name, t)| (name, t.to_vec::<f32>())).collect::<Vec<_>>();
    let mut sgd = SGD::new(0.1, fc.parameters());
    fc.call(&x).unwrap().square().sum(()).backward();
    sgd.step().unwrap();
    let after = fc.state_dict();
    assert!(before.iter().all(|(name, old)| after[name].to_vec::<f32>() != *old));
    utils::remove_weight_norm(&fc, "weight").unwrap();
    let norms = fc.weight.tensor().square().sum(0).sqrt();
    assert!(close(&norms, &after["weight_g"].abs()));
}

#[test]
fn spectral_norm_finds_the_largest_singular_value_in_training_and_rests_in_evaluation() {
    let (conv, x) = (Conv2D::new(2, 3, 2), Tensor::randn([1, 2, 4, 4]));
    utils::spectral_norm(&conv, "weight", Default::default()).unwrap();
    for _ in 0..60 {
        conv.call(&x).unwrap();
    }
    conv.eval();
    let u = conv.state_dict()["weight_u"].to_vec::<f32>();
    let y = conv.call(&x).unwrap();
    assert_eq!(conv.state_dict()["weight_u"].to_vec::<f32>(), u);
    utils::remove_spectral_norm(&conv, "weight").unwrap();
    let matrix = conv.weight.tensor().detach().reshape([3, -1]);
    let largest = matrix.matmul(&matrix.t()).eigvalsh().max(()).to_f64().sqrt();
    assert!((largest - 1.0).abs() < 1e-4, "{largest}");
    assert!(close(&conv.call(&x).unwrap(), &y));
}

#[test]
fn two_calls_before_one_gradient_are_no_error() {
    let (fc, x) = (Linear::new(3, 4), Tensor::randn([2, 3]));
    utils::spectral_norm(&fc, "weight", Default::default()).unwrap();
    let (a, b) = (fc.call(&x).unwrap(), fc.call(&x).unwrap());
    (a + b).sum(()).backward();
    assert!(fc.parameters().iter().all(|p| p.grad().is_some()));
}

#[test]
fn a_form_keeps_the_settings_of_its_parameter() {
    let fc = Linear::with(3, 4, |o| o.weight_attr(ParamAttr::new().learning_rate(0.5).trainable(false)));
    utils::weight_norm(&fc, "weight", Some(0)).unwrap();
    let forms: Vec<Parameter> = fc.parameters().into_iter().filter(|p| p.shape() != [4]).collect();
    assert_eq!(forms.len(), 2);
    assert!(forms.iter().all(|p| !p.trainable() && p.settings().learning_rate == 0.5));
}

fn with_grads() -> Vec<Parameter> {
    let make = |grad: Tensor| {
        let p = Parameter::new(Tensor::zeros(grad.shape(), DType::Float32));
        p.tensor().set_grad(Some(grad));
        p
    };
    vec![make(Tensor::new([3.0f32, 0.0])), make(Tensor::new([[-4.0f32]])), Parameter::new(Tensor::new([1.0f32]))]
}

#[test]
fn gradients_are_cut_by_their_norm_together() {
    for (p, norm) in [(0.0, 2.0), (1.0, 7.0), (2.0, 5.0), (f64::INFINITY, 4.0)] {
        let ps = with_grads();
        let handle = ps[0].grad().unwrap();
        assert_eq!(utils::clip_grad_norm_(&ps, 1.0, p, true).unwrap().to_f64(), norm);
        assert!((handle.to_vec::<f32>()[0] as f64 - 3.0 / norm).abs() < 1e-5, "the gradient itself is changed");
        assert!((ps[1].grad().unwrap().to_f64() + 4.0 / norm).abs() < 1e-5 && ps[2].grad().is_none());
    }
    let ps = with_grads();
    utils::clip_grad_norm_(&ps, 100.0, 2.0, false).unwrap();
    assert_eq!(ps[0].grad().unwrap().to_vec::<f32>(), [3.0, 0.0], "small gradients stay");
    assert_eq!(utils::clip_grad_norm_(&ps[2..], 1.0, 2.0, false).unwrap().to_f64(), 0.0);
    assert!(utils::clip_grad_norm_(&ps, 1.0, 3.0, false).is_err());
    ps[0].tensor().set_grad(Some(Tensor::new([f32::NAN, 0.0])));
    let e = utils::clip_grad_norm_(&ps, 1.0, 2.0, true).map(|_| ());
    assert!(text(e).contains("NaN"));
}

#[test]
fn parameters_go_into_a_vector_and_back() {
    let (a, b) = (Linear::new(3, 4), Linear::new(3, 4));
    let vector = utils::parameters_to_vector(&a.parameters()).unwrap();
    assert!(!vector.stop_gradient());
    utils::vector_to_parameters(&vector, &b.parameters()).unwrap();
    assert!(close(&a.weight.tensor(), &b.weight.tensor()));
    assert!(text(utils::vector_to_parameters(&vector.narrow(0, 0, 15), &b.parameters())).contains("16 elements"));
    assert!(utils::vector_to_parameters(&vector.reshape([4, 4]), &b.parameters()).is_err());
    assert!(utils::parameters_to_vector(&[]).is_err());
}
