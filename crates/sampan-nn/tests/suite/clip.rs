//! Gradient clipping on its own; inside optimizers it is compared with the peer (`optim.rs`).

use sampan_core::{DType, Tensor};
use sampan_nn::{ClipGrad, ClipGradByGlobalNorm, ClipGradByNorm, ClipGradByValue, ParamAttr, Parameter};

fn gradients() -> Vec<(Parameter, Tensor)> {
    let p = |attr: ParamAttr| Parameter::with_attr(Tensor::zeros([2], DType::Float32), &attr);
    vec![
        (p(ParamAttr::new()), Tensor::new([3.0f32, 4.0])),
        (p(ParamAttr::new().need_clip(false)), Tensor::new([30.0f32, 40.0])),
        (p(ParamAttr::new()), Tensor::new([[0.0f32, 12.0], [0.0, 0.0]]).narrow(1, 1, 1).reshape([2])),
    ]
}

fn clipped(clip: ClipGrad) -> Vec<Vec<f32>> {
    clip.apply(&gradients()).unwrap().iter().map(|(_, g)| g.to_vec::<f32>()).collect()
}

#[test]
fn each_kind_leaves_out_what_is_not_to_be_clipped() {
    assert_eq!(clipped(ClipGradByValue::new(3.5)), [[3.0, 3.5], [30.0, 40.0], [3.5, 0.0]]);
    assert_eq!(clipped(ClipGradByValue::with(3.5, |o| o.min(3.25))), [[3.25, 3.5], [30.0, 40.0], [3.5, 3.25]]);
    assert_eq!(clipped(ClipGradByNorm::new(6.0)), [[3.0, 4.0], [30.0, 40.0], [6.0, 0.0]]);
    // sqrt(3² + 4² + 12²) = 13.
    assert_eq!(clipped(ClipGradByGlobalNorm::new(6.5)), [[1.5, 2.0], [30.0, 40.0], [6.0, 0.0]]);
    assert_eq!(clipped(ClipGradByGlobalNorm::new(13.0)), [[3.0, 4.0], [30.0, 40.0], [12.0, 0.0]]);
}

#[test]
fn wrong_limits_are_refused() {
    assert!(ClipGradByValue::try_new(-1.0).is_err());
    assert!(ClipGradByValue::try_with(1.0, |o| o.min(2.0)).is_err());
    assert!(ClipGradByNorm::try_new(0.0).is_err());
    assert!(ClipGradByGlobalNorm::try_new(f64::NAN).is_err());
}
