//! Which dtype elementwise ops give, what they do at the edges of their domain, and what they refuse.

use sampan_core::dispatch::dispatch;
use sampan_core::error::Kind;
use sampan_core::{DType, DType::*, GradOptions, Scalar, Tensor, grad, op};

fn ones(dtype: DType) -> Tensor {
    Tensor::new([1i64]).cast(dtype)
}

#[test]
fn two_tensors_promote() {
    // Paddle's table for floats; integers, which it refuses to mix, as in NumPy and PyTorch.
    let table = [
        (Float16, BFloat16, Float32),
        (Float16, Float32, Float32),
        (BFloat16, Float64, Float64),
        (Float32, Float64, Float64),
        (Bool, UInt8, UInt8),
        (UInt8, Int8, Int16),
        (Int8, Int32, Int32),
        (UInt8, Int64, Int64),
        (Bool, Float16, Float16),
        (Int64, Float16, Float16),
        (Int64, Float32, Float32),
    ];
    for (a, b, expected) in table {
        let (x, y) = (ones(a), ones(b));
        for (op, out) in
            [("add", x.add(&y)), ("add", y.add(&x)), ("maximum", x.maximum(&y)), ("multiply", x.multiply(&y))]
        {
            assert_eq!(out.dtype(), expected, "{op} of {a} and {b}");
        }
        assert_eq!(x.less_than(&y).dtype(), Bool);
    }
    for d in DType::ALL {
        assert_eq!(ones(d).add(ones(d)).dtype(), d);
        assert_eq!(ones(d).divide(ones(d)).dtype(), if d.is_inexact() { d } else { Float32 });
    }
    let wide = Tensor::from_vec(vec![2.0f64], []);
    assert_eq!((&wide + ones(Float32)).dtype(), Float32, "a 0-d tensor does not widen");
    assert_eq!((&wide + ones(Int32)).dtype(), Float64, "unless its category is higher");
}

#[test]
fn a_tensor_and_a_number_promote() {
    for d in DType::ALL {
        let x = ones(d);
        let with_float = if d.is_inexact() { d } else { Float32 };
        let with_int = if d == Bool { Int64 } else { d };
        for (number, expected) in
            [(Scalar::Bool(true), d), (Scalar::Int(2), with_int), (Scalar::Float(1.5), with_float)]
        {
            assert_eq!(x.add(number).dtype(), expected, "{d} + {number:?}");
            assert_eq!(x.multiply(number).dtype(), expected, "{d} * {number:?}");
            assert_eq!(x.pow(number).dtype(), expected, "{d} ** {number:?}");
            if !d.is_complex() {
                assert_eq!(x.floor_divide(number).dtype(), expected, "{d} // {number:?}");
                assert_eq!(x.remainder(number).dtype(), expected, "{d} % {number:?}");
            }
            let args = smallvec::smallvec![x.clone().into(), number.into()];
            let power = dispatch(op::find("rpow").unwrap(), args).unwrap();
            assert_eq!(power[0].dtype(), expected, "{number:?} ** {d}");
            assert_eq!(x.divide(number).dtype(), with_float, "{d} / {number:?}");
        }
        if d.is_complex() {
            assert_eq!((x.exp().dtype(), x.abs().dtype()), (d, d.real_part()));
            continue;
        }
        for (name, y) in
            [("exp", x.exp()), ("sqrt", x.sqrt()), ("sin", x.sin()), ("lgamma", x.lgamma()), ("sigmoid", x.sigmoid())]
        {
            assert_eq!(y.dtype(), with_float, "{name} of {d}");
        }
        for (name, y) in
            [("abs", x.abs()), ("square", x.square()), ("floor", x.floor()), ("sign", x.sign()), ("round", x.round(0))]
        {
            assert_eq!(y.dtype(), d, "{name} of {d}");
        }
    }
}

fn slope(f: impl Fn(&Tensor) -> Tensor, at: f64) -> f64 {
    let x = Tensor::new([at]).requires_grad_();
    let options = GradOptions { allow_unused: true, ..Default::default() };
    grad(&[f(&x)], &[x], &[], options).unwrap()[0].as_ref().map_or(0.0, Tensor::to_f64)
}

#[test]
fn gradients_at_the_edges() {
    assert_eq!(slope(|x| x.pow(0), 0.0), 0.0);
    assert_eq!(slope(|x| x.pow(1), 0.0), 1.0);
    assert_eq!(slope(|x| x.pow(2), 0.0), 0.0);
    assert_eq!(slope(|x| x.pow(3), -2.0), 12.0);
    assert_eq!(slope(|x| x.pow(Tensor::new([0.0f64])), 0.0), 0.0);
    assert_eq!(slope(|x| Tensor::new([0.0f64]).pow(x), 2.0), 0.0);
    assert_eq!(slope(|x| x.sqrt(), 0.0), f64::INFINITY);
    assert_eq!(slope(|x| x.abs(), 0.0), 0.0);
    assert_eq!(slope(|x| x.sinc(), 0.0), 0.0);
    assert_eq!(slope(|x| x.i1(), 0.0), 0.5);
    assert_eq!(slope(|x| x.clip(0.0, 1.0), 1.0), 1.0);
    assert_eq!(slope(|x| x.maximum(1.0), 1.0), 0.5);

    // Second order at zero, where the formulas divide by x.
    let second = |f: &dyn Fn(&Tensor) -> Tensor| {
        let x = Tensor::new([0.0f64]).requires_grad_();
        let options = GradOptions { create_graph: true, ..Default::default() };
        let first = grad(&[f(&x)], &[x.clone()], &[], options).unwrap()[0].clone().unwrap();
        grad(&[first], &[x], &[], GradOptions::default()).unwrap()[0].as_ref().unwrap().to_f64()
    };
    let pi = std::f64::consts::PI;
    assert!((second(&|x| x.sinc()) + pi * pi / 3.0).abs() < 1e-12);
    assert_eq!(second(&|x| x.i1()), 0.0);
    assert_eq!(second(&|x| x.i0()), 0.5);
    assert_eq!(second(&|x| x.pow(2)), 2.0);
}

#[test]
fn special_values() {
    let (nan, inf) = (f64::NAN, f64::INFINITY);
    let of = |v: f64| Tensor::new([v]);
    assert_eq!(of(-5.0).remainder(3.0).to_f64(), 1.0);
    assert_eq!(of(1.0).floor_divide(0.0).to_f64(), inf);
    assert!(of(1.0).remainder(0.0).to_f64().is_nan());
    assert_eq!(of(1.0).floor_divide(0.1).to_f64(), 9.0, "as in Python");
    assert!(of(nan).maximum(1.0).to_f64().is_nan());
    assert_eq!(of(nan).fmax(1.0).to_f64(), 1.0);
    assert!(of(nan).clip(0.0, 1.0).to_f64().is_nan());
    assert_eq!(of(-inf).logaddexp(&of(-inf)).to_f64(), -inf);
    assert_eq!(of(-8.0).pow(of(3.0)).to_f64(), -512.0);
    assert!(of(-8.0).pow(0.5).to_f64().is_nan());
    assert_eq!(of(5e-324).frexp().1.to_f64(), -1073.0);
    assert_eq!(of(2.0).ldexp(&of(-1074.0)).to_f64(), 1e-323);
    assert_eq!(of(0.0).nextafter(&of(-1.0)).to_f64(), -5e-324);
    assert_eq!(Tensor::new([i64::MIN]).floor_divide(-1).to_vec::<i64>(), [i64::MIN]);
    assert_eq!(Tensor::new([200u8]).less_than(300).to_vec::<sampan_core::Bool>(), [true]);
    assert_eq!(Tensor::new([2i64, 0, -1]).pow(Tensor::new([-1i64, 3, -3])).to_vec::<i64>(), [0, 0, -1]);
}

#[test]
fn wrong_arguments_are_refused() {
    let (f, i) = (Tensor::new([1.0f32, 2.0]), Tensor::new([1i64, 2]));
    let three = Tensor::new([1.0f32, 2.0, 3.0]);
    let cases = [
        (f.try_add(&three), Kind::InvalidArgument),
        (f.try_maximum(&three), Kind::InvalidArgument),
        (f.try_clip(1.0, 0.0), Kind::InvalidArgument),
        (f.try_clip("a", 0.0), Kind::InvalidType),
        (f.try_clip(&three, ()), Kind::InvalidArgument),
        (i.try_pow(-1), Kind::InvalidArgument),
        (i.try_remainder(0), Kind::InvalidArgument),
        (i.try_floor_divide(Tensor::new([1i64, 0])), Kind::InvalidArgument),
        (f.try_bitwise_and(1), Kind::InvalidType),
        (f.try_bitwise_not(), Kind::InvalidType),
        (f.try_bitwise_left_shift(1), Kind::InvalidType),
        (f.try_gcd(&f), Kind::InvalidType),
        (Tensor::new([true]).try_subtract(true), Kind::InvalidType),
        (f.try_polygamma(-1), Kind::InvalidArgument),
        (f.try_multigammaln(0), Kind::InvalidArgument),
        (f.try_logit(0.7), Kind::InvalidArgument),
        (f.try_increment(1.0), Kind::InvalidArgument),
        (f.try_isclose(&three), Kind::InvalidArgument),
        (sampan_core::ops::pairs::try_add_n(&[]), Kind::InvalidArgument),
        (sampan_core::ops::pairs::try_add_n(&[f.clone(), three.clone()]), Kind::InvalidArgument),
    ];
    for (n, (result, kind)) in cases.into_iter().enumerate() {
        let error = result.err().unwrap_or_else(|| panic!("case {n} was accepted"));
        assert_eq!(error.kind(), kind, "case {n}: {error}");
    }
    let order = Tensor::new([1.0f64]).requires_grad_();
    let out = order.gammainc(&Tensor::new([1.0f64]));
    let error = grad(&[out], &[order], &[], GradOptions::default()).unwrap_err().to_string();
    assert!(error.contains("has no gradient along x"), "{error}");
}

#[test]
fn integers_stay_exact() {
    use sampan_core::ops::math::ScaleOpts;
    let odd = (1i64 << 53) + 1;
    let x = Tensor::new([odd, -odd]);
    assert_eq!(x.scale(1.0).to_vec::<i64>(), [odd, -odd]);
    let (after, before) = (ScaleOpts::new().bias(2.0), ScaleOpts::new().bias(2.0).bias_after_scale(false));
    assert_eq!(x.scale_with(3.0, after).to_vec::<i64>(), [3 * odd + 2, 2 - 3 * odd]);
    assert_eq!(x.scale_with(3.0, before).to_vec::<i64>(), [3 * odd + 6, 6 - 3 * odd]);
    assert_eq!(Tensor::new([3i64, -3]).scale(0.5).to_vec::<i64>(), [1, -1]);
    let counter = Tensor::new([odd]);
    counter.increment(1.0);
    assert_eq!(counter.to_vec::<i64>(), [odd + 1]);
    // Powers: what PaddlePaddle answers for a tensor of exponents; it never returns from a negative number.
    let (base, exponent) = (Tensor::new([2i64, 0, 1, -1, -1, 5]), Tensor::new([-1i64, -1, -3, -3, -2, -2]));
    assert_eq!(base.pow(&exponent).to_vec::<i64>(), [0, 0, 1, -1, 1, 0]);
    assert!(base.try_pow(-1).unwrap_err().message().contains("negative power"));
}
