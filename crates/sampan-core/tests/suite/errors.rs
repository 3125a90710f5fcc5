//! What errors say, and that they arrive as errors.

use crate::alone::alone;
use sampan_core::error::Kind;
use sampan_core::{DType, Error, Tensor, flags};

#[test]
fn the_parts_of_a_message() {
    let e = Error::invalid("x has 10 columns, weight has 12 rows")
        .received("x=[32, 10] float32")
        .hint("set in_features=10")
        .in_op("linear")
        .in_op("outer")
        .in_layer("fc2 (Linear)")
        .in_layer("net");
    assert_eq!(
        e.to_string(),
        "(InvalidArgument) linear: x has 10 columns, weight has 12 rows. Received x=[32, 10] float32. \
         Hint: set in_features=10. In: net > fc2 (Linear)"
    );
    assert_eq!((e.kind(), e.op()), (Kind::InvalidArgument, "linear"));
}

#[test]
fn ops_say_what_they_got() {
    let (x, y) = (Tensor::new([1.0f32, 2.0]), Tensor::new([1i64, 2, 3]));
    let e = x.try_add(&y).unwrap_err();
    assert_eq!(
        e.to_string(),
        "(InvalidArgument) add: shapes [2] and [3] cannot be broadcast: axis 0 of the result would be 2 and 3. \
         Received x=[2] float32, y=[3] int64. Hint: axes are matched from the last; each pair must be equal or contain \
         a 1."
    );
    assert_eq!(x.try_sum(2).unwrap_err().kind(), Kind::OutOfRange);
    let e = Tensor::try_from_slice(&[1.0f32; 3], [2, 2]).unwrap_err();
    assert_eq!(e.to_string(), "(InvalidArgument) to_tensor: 3 values do not fill shape [2, 2], which has 4.");
    assert_eq!(x.try_to_vec::<i64>().unwrap_err().kind(), Kind::InvalidType);
    assert!(x.try_item().unwrap_err().to_string().contains("item: only a tensor with one element is a number"));
    let e = x.try_set_value(&y).unwrap_err();
    assert!(e.to_string().contains("set_value: the tensor has shape [2], the new values have [3]"), "{e}");
}

#[test]
fn the_panicking_form_says_the_same() {
    let payload = std::panic::catch_unwind(|| Tensor::new([1.0f32, 2.0]) + Tensor::new([1.0f32; 3])).unwrap_err();
    let text = payload.downcast_ref::<String>().expect("a panic with a text");
    assert!(text.starts_with("(InvalidArgument) add: shapes [2] and [3] cannot be broadcast"), "{text}");
    // Afterwards everything works as before.
    assert!(Tensor::new([1.0f32]).try_add(Tensor::new([1.0f32])).is_ok());
    // Inside a composite the error of the inner op comes out as a Result.
    let e = Tensor::new([[1.0f32]]).try_matmul(&Tensor::new([[1.0f32], [2.0]])).unwrap_err();
    assert!(e.to_string().contains("x has 1 columns, y has 2 rows"), "{e}");
}

#[test]
fn anomalies_name_the_forward_call() {
    alone("errors::anomalies_name_the_forward_call", || {
        flags::set_anomaly_mode(true);
        let x = Tensor::new([0.0f64, 1.0]).requires_grad_();
        let h = &x * 0.0;
        let line = line!() + 1;
        let y = h.log();
        let z = &y * 0.0;
        let e = z.sum(()).try_backward(None, false).unwrap_err();
        flags::set_anomaly_mode(false);
        assert_eq!(e.kind(), Kind::NotFinite);
        let text = e.to_string();
        assert!(
            text.contains("log: the gradient of the call called at")
                || text.contains("log: the gradient of the call at"),
            "{text}"
        );
        assert!(text.contains(&format!("errors.rs:{line}:")), "{text}");
        assert!(text.contains("2 NaN in an input of shape [2]"), "{text}");
    });
}

#[test]
fn the_first_op_that_is_not_finite_is_named() {
    alone("errors::the_first_op_that_is_not_finite_is_named", || {
        flags::set_check_nan_inf(true);
        let x = Tensor::new([0.0f32, -1.0, 1.0]);
        let line = line!() + 1;
        let e = x.try_log().unwrap_err();
        flags::set_check_nan_inf(false);
        assert_eq!(e.kind(), Kind::NotFinite);
        let text = e.to_string();
        assert!(text.contains("log: output 0 of shape [3] has 1 NaN and 1 Inf, called at"), "{text}");
        assert!(text.contains(&format!("errors.rs:{line}:")), "{text}");
        assert!(text.contains("x=[3] float32 with 0 NaN, 0 Inf"), "{text}");
        assert!(x.try_log().is_ok());
    });
}

#[test]
fn hostile_arguments_are_errors() {
    let one = Tensor::new([1.0f32]);
    assert!(one.try_set_value(&one.to_meta()).is_err());
    assert!(one.clone().try_add_(one.to_meta()).is_err());
    assert!(one.expand([3]).try_set_value(&Tensor::new([1.0f32, 2.0, 3.0])).is_err());
    assert!(Tensor::try_from_slice::<f32>(&[], [1 << 33, 1 << 31]).is_err());
    assert!(Tensor::from_bytes(&[], DType::Float32, [1 << 62, 4]).is_err());
    assert!(Tensor::new([1i64]).try_embedding(&one, None).is_err());
    assert!(one.try_tensor_split(i64::MAX - 1, 0).is_err());
    assert!(one.try_multigammaln(i64::MAX).is_err());
    assert_eq!(Tensor::new([f32::INFINITY]).standard_gamma().to_vec::<f32>(), [f32::INFINITY]);
    // More than any machine has: an error, not the end of the process.
    let error = sampan_core::ops::creation::try_ones([1i64 << 15, 1 << 30]).unwrap_err().to_string();
    assert!(error.contains("out of memory"), "{error}");
}
