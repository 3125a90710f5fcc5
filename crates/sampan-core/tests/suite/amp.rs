//! Mixed precision: levels, lists of the user's own, and calls that have no half precision.

use sampan_core::amp::{self, Level, Policy, with_level};
use sampan_core::{DType, Tensor};
use std::sync::Arc;

fn policy(level: Level, use_promote: bool) -> Policy {
    Policy { level, use_promote, ..Policy::new(DType::BFloat16) }
}

fn run<R>(policy: Policy, f: impl FnOnce() -> R) -> R {
    with_level(Some(Arc::new(policy)), f)
}

const LOW: DType = DType::BFloat16;
const WIDE: DType = DType::Float32;

#[test]
fn levels_choose_the_precision_of_white_black_and_other_ops() {
    let x = Tensor::ones([2, 2], WIDE);
    let dtypes = |p: Policy| {
        run(p, || {
            let m = x.matmul(&x);
            [m.dtype(), (&m + &m).dtype(), (&m + &x).dtype(), (&x + &x).dtype(), m.exp().dtype(), m.softmax(-1).dtype()]
        })
    };
    assert_eq!(dtypes(policy(Level::O1, true)), [LOW, LOW, WIDE, WIDE, WIDE, WIDE]);
    assert_eq!(dtypes(policy(Level::O2, true)), [LOW, LOW, WIDE, WIDE, LOW, LOW]);
    assert_eq!(dtypes(policy(Level::O2, false)), [LOW; 6]);
    assert_eq!(dtypes(policy(Level::OD, true)), [LOW, WIDE, WIDE, WIDE, WIDE, WIDE]);
    assert!(!amp::enabled());
}

#[test]
fn a_black_listed_op_computes_in_float32_as_a_whole() {
    let x = Tensor::ones([2, 2], WIDE);
    let mut p = policy(Level::O1, true);
    p.black.insert("linear".into());
    p.white.insert("add".into());
    let (linear, sum, product) = run(p, || (x.linear(&x, None), &x + &x, x.matmul(&x)));
    assert_eq!([linear.dtype(), sum.dtype(), product.dtype()], [WIDE, LOW, LOW]);
}

#[test]
fn what_is_written_in_place_keeps_its_precision() {
    let mut x = Tensor::ones([2, 2], WIDE);
    run(policy(Level::O2, false), || {
        let product = x.matmul(&x);
        x.add_(&product);
    });
    assert_eq!((x.dtype(), x.to_vec::<f32>()), (WIDE, vec![3.0; 4]));
}

#[test]
fn an_op_without_half_precision_computes_in_float32() {
    let x = Tensor::new([[2.0f32, 0.0], [0.0, 3.0]]).cast(LOW);
    assert!(x.try_det().is_err());
    let det = run(policy(Level::O2, true), || x.det());
    assert_eq!((det.dtype(), det.to_f64()), (WIDE, 6.0));
}
