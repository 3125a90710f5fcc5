//! Every formula of the ops: its derivatives of three orders, the same bits fused and step by step, and its device text.

use sampan_core::ops::elementwise::{elementwise, try_elementwise};
use sampan_core::{DType, GradOptions, Tensor, formula, grad};
use sampan_formula::text;
use sampan_formula::{Bound, Constant, Formula, Source};

/// Constants for a formula that is looked at outside of its op.
fn bound(f: &Formula) -> Bound {
    Bound::new(f.clone(), (0..f.captured()).map(|i| Constant::Float(0.75 + 0.5 * i as f64)).collect())
}

/// Is it over real numbers, without operations that only integers or complex numbers know?
fn is_real(f: &Formula) -> bool {
    use sampan_formula::{Binary::*, Unary::*};
    !f.values().iter().any(|s| {
        matches!(
            s,
            Source::Unary(BitNot | Im | Angle, _)
                | Source::Binary(BitAnd | BitOr | BitXor | Shl | Shr | Gcd | Lcm | Complex, ..)
        )
    })
}

#[test]
fn there_are_formulas() {
    let all = sampan_formula::registered();
    assert!(all.len() > 100, "found {}", all.len());
    assert!(all.iter().any(|r| (r.get)().to_string() == "times(x, sigmoid(x))"));
}

/// One formula, computed operation by operation with tensors of float64.
fn by_ops(f: &Bound, inputs: &[Tensor]) -> Tensor {
    let captured: Vec<Tensor> = f
        .constants()
        .iter()
        .map(|c| match *c {
            Constant::Float(v) => Tensor::new(v),
            Constant::Int(i) => Tensor::new(i as f64),
            Constant::Complex(..) => unreachable!("real formulas only"),
        })
        .collect();
    f.formula().replay(inputs, &captured, &mut |source, v| {
        let one = match source {
            Source::Literal(v) => return Tensor::new(v),
            Source::Unary(op, _) => single(|x| unary(op, x)),
            Source::Binary(op, ..) => pair(op),
            Source::Select(..) => {
                Bound::new(Formula::write(3, 0, &|x, _| sampan_formula::select(x[0], x[1], x[2])), vec![])
            }
            Source::Input(_) | Source::Captured(_) => unreachable!(),
        };
        elementwise(v, one).cast(DType::Float64)
    })
}

fn single(body: impl Fn(sampan_formula::Number) -> sampan_formula::Number) -> Bound {
    Bound::new(Formula::write(1, 0, &|x, _| body(x[0])), vec![])
}

fn unary(op: sampan_formula::Unary, x: sampan_formula::Number) -> sampan_formula::Number {
    Formula::unary_of(op, x)
}

fn pair(op: sampan_formula::Binary) -> Bound {
    Bound::new(Formula::write(2, 0, &|x, _| Formula::binary_of(op, x[0], x[1])), vec![])
}

#[test]
fn a_chain_gives_the_bits_of_its_steps() {
    for r in sampan_formula::registered() {
        let f = (r.get)();
        if !is_real(f) {
            continue;
        }
        let inputs: Vec<Tensor> =
            (0..f.inputs()).map(|i| Tensor::from_vec(points(i), [64]).cast(DType::Float64)).collect();
        let f = bound(f);
        let (fused, steps) = (elementwise(&inputs, f.clone()), by_ops(&f, &inputs));
        let bits = |t: Tensor| {
            let t = t.cast(DType::Float64).expand([64]).contiguous();
            t.to_vec::<f64>().into_iter().map(|v| if v.is_nan() { u64::MAX } else { v.to_bits() }).collect::<Vec<_>>()
        };
        assert_eq!(bits(fused), bits(steps), "{f} at {}:{}", r.file, r.line);
    }
}

/// Numbers on both sides of zero, and some that are not ordinary.
fn points(seed: usize) -> Vec<f64> {
    let odd = [0.0, -0.0, 1.0, -1.0, f64::INFINITY, f64::NEG_INFINITY, f64::NAN, 1e30, -1e30, 1e-30];
    let plain = |i: usize| ((i * 37 + seed * 11) % 64) as f64 * 0.11 - 3.3;
    (0..64).map(|i| if i < odd.len() { odd[(i + seed) % odd.len()] } else { plain(i) }).collect()
}

#[test]
fn derivatives_of_three_orders_are_those_of_differences() {
    let (alpha, beta) = (0.7, 1.3);
    let smooth = [
        formula!(|x| x.times(x.sigmoid())),
        formula!(|x| (0.5 * x).times(1.0 + (x * std::f64::consts::FRAC_1_SQRT_2).erf())),
        formula!(|x| x.times(x.softplus().tanh())),
        formula!(|x; alpha, beta| select(x.gt(0.0), x, alpha * (x * (1.0 / beta)).expm1())),
        formula!(|x| (x * x + 1.0).sqrt().ln() / (x.cosh() + 2.0)),
        formula!(|x| x.atan2(x * x + 0.5) + x.sin().exp()),
        formula!(|x| (x * x + 0.3).rsqrt() * (x * 0.3).erfinv().asinh()),
        formula!(|x| (x * x + 1.5).lgamma() - (x * x + 0.5).pow(1.7)),
    ];
    for f in smooth {
        let mut order = f.clone();
        for n in 1..=3 {
            let next = order.with(order.formula().derivative(0).clone());
            for x in [-1.7, -0.4, 0.3, 1.1, 2.2] {
                let at = |f: &Bound, x: f64| elementwise(&[Tensor::new(x)], f.clone()).to_f64();
                // Richardson's step takes the error of the difference from h² to h⁴.
                let difference = |h: f64| (at(&order, x + h) - at(&order, x - h)) / (2.0 * h);
                let want = (4.0 * difference(5e-4) - difference(1e-3)) / 3.0;
                let have = at(&next, x);
                assert!(
                    (have - want).abs() <= 1e-7 * want.abs().max(1.0),
                    "order {n} of {f} at {x}: {have}, not {want}"
                );
            }
            order = next;
        }
    }
}

/// A gradient of zero ends the chain on the side that was not taken, however large the slopes there are.
#[test]
fn what_was_not_taken_has_no_slope() {
    let at_zero = [
        formula!(|x| select(x.equals(0.0), 1.0, x.sin() / x)),
        formula!(|x| select(x.equals(0.0), 1.0, 1.0 / x)),
        formula!(|x| select(x.gt(0.0), x.sqrt(), 0.0)),
        formula!(|x| select(x.gt(0.0), (x * x) / x, 0.0)),
        formula!(|x| select(x.gt(0.0), x.hypot(x), 0.0)),
        formula!(|x| select(x.gt(0.0), (x - 1.0).acosh(), 0.0)),
        formula!(|x| x.sqrt().max(0.0)),
        formula!(|x| x.times(x.sqrt())),
    ];
    for f in at_zero {
        let text = f.to_string();
        let x = Tensor::new([0.0f64]).requires_grad_();
        let y = elementwise(std::slice::from_ref(&x), f);
        let options = || GradOptions { create_graph: true, allow_unused: true, ..Default::default() };
        let slope = grad(&[y], std::slice::from_ref(&x), &[], options()).unwrap().remove(0).unwrap();
        assert_eq!(slope.to_f64(), 0.0, "{text}");
        let second = grad(&[slope], &[x], &[], options()).unwrap().remove(0).map_or(0.0, |t| t.to_f64());
        assert!(!second.is_nan(), "{text}");
    }
}

#[test]
fn composition_is_one_formula() {
    let twice = formula!(|x, y| x * 2.0 + y);
    let chain = twice.compose(0, &formula!(|x| x.exp()));
    let (x, y) = (Tensor::new([0.5f32, 1.0]), Tensor::new([3.0f32, 4.0]));
    // What is left of the outer one comes first.
    let fused = elementwise(&[y.clone(), x.clone()], chain);
    assert_eq!(fused.to_vec::<f32>(), (x.exp() * 2.0 + y).to_vec::<f32>());
}

#[test]
fn wrong_calls_say_what_is_wrong() {
    let error = try_elementwise(&[Tensor::new([1.0f32])], formula!(|x, y| x + y)).unwrap_err().to_string();
    assert!(error.contains("the formula is over 2 numbers, got 1 tensors"), "{error}");
    let error = try_elementwise(&[Tensor::new([1.0f32])], formula!(|x| x.bit_not())).unwrap_err().to_string();
    assert!(error.contains("does not work on float32"), "{error}");
}

/// The device text of every formula, its gradients and their gradients, for a compiler to read: see
/// `scripts/device_text.py`. Written where `SAMPAN_DEVICE_TEXT` says, else only made.
#[test]
fn device_text() {
    let mut all = String::from(text::PRELUDE);
    let mut count = 0;
    let mut add = |f: &Formula, compute: DType| {
        let inputs = vec![compute; f.inputs()];
        all.push_str(&text::kernel(f, &format!("k{count}"), compute, &inputs, compute));
        count += 1;
    };
    for r in sampan_formula::registered() {
        let f = (r.get)();
        if !is_real(f) {
            continue;
        }
        for compute in [DType::Float32, DType::Float64] {
            add(f, compute);
            for first in f.pullbacks(false) {
                add(&first.formula, compute);
                for second in first.formula.pullbacks(false) {
                    add(&second.formula, compute);
                }
            }
        }
    }
    for (f, compute) in [
        (formula!(|x, y| select(x.lt(y), x.gcd(y), x.shl(y).bit_xor(!x))), DType::Int64),
        (formula!(|x, y| x.exp() * y.conj() + x.tanh().sqrt().ln() / y.asin()), DType::Complex64),
        (formula!(|x, y| x.pow(y) + x.acosh() * y.atanh() - x.log1p().expm1()), DType::Complex128),
    ] {
        add(f.formula(), compute);
    }
    for memory in ["bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "complex64"] {
        let memory = DType::from_name(memory).unwrap();
        let f = formula!(|x| x + 1.0);
        all.push_str(&text::kernel(f.formula(), &format!("m{}", memory as u8), DType::Float32, &[memory], memory));
    }
    assert!(count > 500, "{count}");
    if let Ok(path) = std::env::var("SAMPAN_DEVICE_TEXT") {
        std::fs::write(path, all).unwrap();
    }
}
