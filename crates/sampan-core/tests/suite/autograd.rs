//! The graph, the walk over it, and what hangs on both.

use crate::alone::alone;
use sampan_core::autograd::functional::{self, hessian, jacobian, jvp};
use sampan_core::autograd::{Function, FunctionContext, GradCheck, apply, gradcheck, gradgradcheck, recompute};
use sampan_core::error::Kind;
use sampan_core::{DType, GradOptions, Result, Tensor, amp, backward, enable_grad, grad, no_grad, random};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

fn leaf(values: &[f64]) -> Tensor {
    Tensor::from_vec(values.to_vec(), [values.len()]).requires_grad_()
}

fn values(t: &Tensor) -> Vec<f64> {
    t.to_f64_vec()
}

fn grad_of(t: &Tensor) -> Vec<f64> {
    values(&t.grad().expect("a gradient"))
}

#[test]
fn gradients_add_up_until_cleared() {
    let x = leaf(&[1.0, 2.0]);
    (&x * &x).sum(()).backward();
    (&x * 3.0).sum(()).backward();
    assert_eq!(grad_of(&x), [5.0, 7.0]);
    x.clear_grad();
    assert!(x.grad().is_none());
}

#[test]
fn leaves_own_their_gradients() {
    let (x, y) = (leaf(&[1.0]), leaf(&[2.0]));
    (&x + &y).backward();
    let mut g = x.grad().unwrap();
    g.add_(1.0);
    assert_eq!((grad_of(&x), grad_of(&y)), (vec![2.0], vec![1.0]));
    // A gradient somebody holds is not added to where it lies.
    let held = y.grad().unwrap();
    (&y * 2.0).backward();
    assert_eq!((values(&held), grad_of(&y)), (vec![1.0], vec![3.0]));
    // Nor is one that the caller gave.
    let given = leaf(&[10.0]).detach();
    let z = leaf(&[1.0]);
    z.try_backward(Some(&given), false).unwrap();
    z.try_backward(Some(&given), false).unwrap();
    assert_eq!((values(&given), grad_of(&z)), (vec![10.0], vec![20.0]));
}

#[test]
fn given_gradients() {
    let x = leaf(&[1.0, 2.0, 3.0]);
    let y = &x * &x;
    y.try_backward(Some(&Tensor::new([1.0f64, 0.0, -1.0])), false).unwrap();
    assert_eq!(grad_of(&x), [2.0, 0.0, -6.0]);
    let e = (&x * 2.0).try_backward(Some(&Tensor::new([1.0f64])), false).unwrap_err();
    assert!(e.to_string().contains("grad_tensor 0 has shape [1], its output has [3]"), "{e}");
    let e = backward(&[&x * 2.0], &[None, None], false).unwrap_err();
    assert!(e.to_string().contains("2 gradients are given for 1 outputs"), "{e}");
    // Another float dtype is brought to the output's.
    x.clear_grad();
    (&x * 2.0).try_backward(Some(&Tensor::new([1.0f32, 1.0, 1.0])), false).unwrap();
    assert_eq!(x.grad().unwrap().dtype(), DType::Float64);
}

#[test]
fn several_outputs_in_one_walk() {
    let x = leaf(&[2.0]);
    let (a, b) = (&x * &x, &x * 5.0);
    backward(&[a, b], &[], false).unwrap();
    assert_eq!(grad_of(&x), [9.0]);
}

#[test]
fn a_graph_is_walked_once_unless_retained() {
    let x = leaf(&[3.0]);
    let y = (&x * &x).tanh();
    y.try_backward(None, true).unwrap();
    y.try_backward(None, false).unwrap();
    let e = y.try_backward(None, false).unwrap_err();
    assert_eq!(e.kind(), Kind::PreconditionNotMet);
    assert!(
        e.to_string().contains("tanh: the values saved for this gradient were freed by an earlier backward"),
        "{e}"
    );
    assert!(e.to_string().contains("retain_graph=True"), "{e}");
}

#[test]
fn outputs_without_a_graph_have_nothing_to_tell() {
    let constant = Tensor::new([1.0f32]);
    constant.backward();
    assert!(constant.grad().is_none());
    assert!(constant.try_backward(Some(&Tensor::new([1.0f32, 2.0])), false).is_err());
    let x = leaf(&[1.0]);
    let y = no_grad(|| &x * 2.0);
    y.backward();
    assert!(x.grad().is_none());
    let e = grad(&[y], std::slice::from_ref(&x), &[None], GradOptions::default()).unwrap_err();
    assert!(e.to_string().contains("allow_unused"), "{e}");
    let z = no_grad(|| enable_grad(|| &x * 2.0));
    z.backward();
    assert_eq!(grad_of(&x), [2.0]);
}

#[test]
fn unused_and_blocked_inputs() {
    let (x, y) = (leaf(&[1.0]), leaf(&[2.0]));
    let z = &x * 3.0;
    let e = grad(&[z.clone()], &[y.clone()], &[], GradOptions { retain_graph: Some(true), ..Default::default() })
        .unwrap_err();
    assert!(e.to_string().contains("grad: input 0 of shape [1] does not take part in the outputs"), "{e}");
    assert!(e.to_string().contains("allow_unused"), "{e}");
    let options = GradOptions { allow_unused: true, ..Default::default() };
    let got = grad(&[z], &[x.clone(), y], &[], options).unwrap();
    assert_eq!(values(got[0].as_ref().unwrap()), [3.0]);
    assert!(got[1].is_none());
    assert!(x.grad().is_none(), "grad touches no .grad");
    // y = a(x) + b(x) with a held constant.
    let a = &x * &x;
    let y = &a + &x * 5.0;
    let blocked = [a];
    let options = GradOptions { no_grad_vars: &blocked, ..Default::default() };
    assert_eq!(values(grad(&[y], &[x], &[], options).unwrap()[0].as_ref().unwrap()), [5.0]);
}

#[test]
fn intermediate_inputs_and_the_output_itself() {
    let x = leaf(&[2.0]);
    let h = &x * &x;
    let y = &h * 3.0 + &h;
    let options = GradOptions { retain_graph: Some(true), ..Default::default() };
    let got = grad(&[y.clone()], &[h, y, x], &[], options).unwrap();
    let got: Vec<f64> = got.iter().map(|g| g.as_ref().unwrap().to_f64()).collect();
    assert_eq!(got, [4.0, 1.0, 16.0]);
}

#[test]
fn third_order() {
    let x = leaf(&[0.7]);
    let create = GradOptions { create_graph: true, ..Default::default() };
    let mut y = x.multiply(&x).multiply(&x).multiply(&x);
    for expected in [4.0 * 0.343, 12.0 * 0.49, 24.0 * 0.7] {
        y = grad(&[y], &[x.clone()], &[], create).unwrap()[0].clone().unwrap();
        assert!((y.to_f64() - expected).abs() < 1e-12, "{y}");
    }
    let mut t = x.tanh();
    for _ in 0..3 {
        t = grad(&[t], &[x.clone()], &[], create).unwrap()[0].clone().unwrap();
    }
    let h = 0.7f64.tanh();
    let s = 1.0 - h * h;
    assert!((t.to_f64() - (-2.0 * s * (1.0 - 3.0 * h * h))).abs() < 1e-12, "{t}");
}

#[test]
fn hooks_see_and_replace_the_whole_gradient_once() {
    let x = leaf(&[1.0, 1.0]);
    let calls = Arc::new(AtomicUsize::new(0));
    let count = calls.clone();
    let on_leaf = x
        .register_hook(move |g| {
            count.fetch_add(1, Ordering::Relaxed);
            assert_eq!(g.to_f64_vec(), [50.0, 50.0]);
            Ok(Some(g * 2.0))
        })
        .unwrap();
    let h = &x * 10.0;
    let on_middle = h.register_hook(|g| Ok(Some(g + 2.0))).unwrap();
    (&h + &h + &h).sum(()).backward();
    assert_eq!((grad_of(&x), calls.load(Ordering::Relaxed)), (vec![100.0, 100.0], 1));
    assert!(on_leaf.remove() && !on_leaf.remove());
    let h = &x * 10.0;
    let on_second = h.register_hook(|_| Ok(None)).unwrap();
    assert!(on_second.remove());
    drop(on_middle);
    x.clear_grad();
    h.sum(()).backward();
    assert_eq!((grad_of(&x), calls.load(Ordering::Relaxed)), (vec![10.0, 10.0], 1));
}

#[test]
fn hooks_that_are_wrong() {
    assert!(
        Tensor::new([1.0f32]).register_hook(|_| Ok(None)).err().unwrap().to_string().contains("stop_gradient=True")
    );
    let x = leaf(&[1.0, 2.0]);
    let h = &x * 2.0;
    let _on = h.register_hook(|g| Ok(Some(g.sum(())))).unwrap();
    let e = h.sum(()).try_backward(None, false).unwrap_err();
    assert!(e.to_string().contains("register_hook: a hook gave shape [] for a tensor of shape [2]"), "{e}");
    assert!(x.grad().is_none(), "a walk that fails leaves gradients as they were");
    // An error of a panicking op inside a hook comes back as an error.
    let h = &x * 2.0;
    let _on = h.register_hook(|g| Ok(Some(g + Tensor::new([1.0f64, 2.0, 3.0])))).unwrap();
    assert!(h.sum(()).try_backward(None, false).unwrap_err().to_string().contains("cannot be broadcast"));
}

#[test]
fn retained_gradients_of_intermediates() {
    let x = leaf(&[3.0]);
    let h = &x * &x;
    h.retain_grads();
    (&h * 5.0).backward();
    assert_eq!((grad_of(&h), grad_of(&x)), (vec![5.0], vec![30.0]));
    let k = &x * 2.0;
    (&k * 5.0).backward();
    assert!(k.grad().is_none());
}

#[test]
fn changed_values_are_noticed() {
    let x = leaf(&[1.0, 2.0]);
    let h = &x * 2.0;
    let y = h.log();
    let mut changed = h.clone();
    changed.add_(1.0);
    changed.add_(1.0);
    let e = y.sum(()).try_backward(None, false).unwrap_err();
    assert_eq!(e.kind(), Kind::PreconditionNotMet);
    let text = e.to_string();
    assert!(text.contains("log: the gradient needs the input of shape [2]"), "{text}");
    assert!(text.contains("at version 0, but it was changed in place and is at version 2"), "{text}");
    assert!(text.contains("autograd.rs:"), "names the call: {text}");
    // A saved output too.
    let mut y = (&x * 2.0).exp();
    let z = &y + 0.0;
    no_grad(|| y.add_(1.0));
    let e = z.sum(()).try_backward(None, false).unwrap_err();
    assert!(e.to_string().contains("exp: the gradient needs the output of shape [2]"), "{e}");
    // What nobody reads may change: the gradient of x needs only the mask.
    let mut h = &x * 1.0;
    h.multiply_(Tensor::new([0.0f64, 3.0]));
    h.sum(()).backward();
    assert_eq!(grad_of(&x), [0.0, 3.0]);
}

#[test]
fn in_place_is_recorded() {
    let x = leaf(&[1.0, 2.0]);
    let mut y = &x * 2.0;
    y.exp_().add_(1.0).multiply_(3.0);
    assert_eq!(y.inplace_version(), 3);
    y.sum(()).backward();
    let expected: Vec<f64> = [1.0f64, 2.0].iter().map(|x| 6.0 * (2.0 * x).exp()).collect();
    for (a, b) in grad_of(&x).iter().zip(expected) {
        assert!((a - b).abs() < 1e-9 * b);
    }
    // Writing tracked values into data makes it part of the graph.
    let w = leaf(&[5.0, 5.0]);
    let mut data = Tensor::new([1.0f64, 1.0]);
    data.add_(&w);
    assert!(!data.stop_gradient());
    data.sum(()).backward();
    assert_eq!(grad_of(&w), [1.0, 1.0]);
}

#[test]
fn in_place_that_is_refused() {
    let mut x = leaf(&[1.0, 2.0]);
    let e = x.try_add_(1.0).unwrap_err();
    assert!(e.to_string().contains("add_: a leaf that requires a gradient cannot be changed in place"), "{e}");
    no_grad(|| x.add_(1.0));
    assert_eq!(values(&x), [2.0, 3.0]);
    let mut small = Tensor::new([1.0f64]);
    assert!(small.try_add_(Tensor::new([1.0f64, 2.0])).unwrap_err().to_string().contains("does not fit in place"));
    let mut y = Tensor::new([1.5f32]);
    y.cast_(DType::Int64);
    assert_eq!((y.dtype(), y.to_vec::<i64>()), (DType::Int64, vec![1]));
}

#[test]
fn detached_and_stopped() {
    let x = leaf(&[2.0]);
    let d = (&x * &x).detach();
    assert!(d.is_leaf() && d.stop_gradient());
    (&d * &x).backward();
    assert_eq!(grad_of(&x), [4.0]);
    let h = &x * 3.0;
    assert_eq!(h.grad_fn(), Some("multiply"));
    h.set_stop_gradient(true);
    x.clear_grad();
    (&h * &x).backward();
    assert_eq!(grad_of(&x), [6.0]);
}

/// `exp`, with its gradient from the saved output.
struct MyExp;
impl Function for MyExp {
    fn forward(&self, cx: &mut FunctionContext, inputs: &[Tensor]) -> Result<Vec<Tensor>> {
        let y = inputs[0].try_exp()?;
        cx.save_for_backward(&[y.clone()]);
        Ok(vec![y])
    }
    fn backward(&self, cx: &FunctionContext, grads: &[Option<Tensor>]) -> Result<Vec<Option<Tensor>>> {
        Ok(vec![Some(grads[0].as_ref().unwrap() * &cx.saved_tensor()[0])])
    }
}

/// `a * b` from saved inputs, with a number kept on the side and an output without a gradient.
struct MyProduct {
    scale: f64,
}
impl Function for MyProduct {
    fn forward(&self, cx: &mut FunctionContext, inputs: &[Tensor]) -> Result<Vec<Tensor>> {
        cx.save_for_backward(inputs);
        cx.set_state(inputs[0].numel());
        let sign = &inputs[0] + 0.0;
        cx.mark_non_differentiable(&[sign.clone()]);
        Ok(vec![&inputs[0] * &inputs[1] * self.scale, sign])
    }
    fn backward(&self, cx: &FunctionContext, grads: &[Option<Tensor>]) -> Result<Vec<Option<Tensor>>> {
        assert_eq!(cx.state::<usize>(), Some(&cx.saved_tensor()[0].numel()));
        let g = grads[0].as_ref().unwrap() * self.scale;
        let [a, b] = cx.saved_tensor() else { unreachable!() };
        Ok(vec![cx.needs_input_grad(0).then(|| &g * b), cx.needs_input_grad(1).then(|| &g * a)])
    }
    fn name(&self) -> &'static str {
        "my_product"
    }
}

#[test]
fn functions_with_their_own_gradient() {
    let (a, b) = (Tensor::new([0.3f64, -1.0]), Tensor::new([2.0f64, 0.5]));
    let exp = |x: &[Tensor]| apply(MyExp, &x[..1]);
    gradcheck(exp, &[a.clone()], GradCheck::default()).unwrap();
    gradgradcheck(exp, &[a.clone()], GradCheck::default()).unwrap();
    let product = |x: &[Tensor]| Ok(apply(MyProduct { scale: 3.0 }, x)?[..1].to_vec());
    gradcheck(product, &[a.clone(), b.clone()], GradCheck::default()).unwrap();
    gradgradcheck(product, &[a.clone(), b.clone()], GradCheck::default()).unwrap();

    let x = a.requires_grad_();
    let out = apply(MyProduct { scale: 1.0 }, &[x.clone(), b.clone()]).unwrap();
    assert_eq!(out[0].grad_fn(), Some("my_product"));
    assert!(out[1].stop_gradient());
    assert_eq!(apply(MyExp, &[x.clone()]).unwrap()[0].grad_fn(), Some("MyExp"));
    assert!(apply(MyExp, &[b]).unwrap()[0].stop_gradient());
    assert!(no_grad(|| apply(MyExp, &[x.clone()])).unwrap()[0].stop_gradient());
}

#[test]
fn functions_that_are_wrong() {
    struct Few;
    impl Function for Few {
        fn forward(&self, _: &mut FunctionContext, x: &[Tensor]) -> Result<Vec<Tensor>> {
            Ok(vec![&x[0] + &x[1]])
        }
        fn backward(&self, _: &FunctionContext, g: &[Option<Tensor>]) -> Result<Vec<Option<Tensor>>> {
            Ok(g.to_vec())
        }
    }
    let x = leaf(&[1.0]);
    let y = apply(Few, &[x.clone(), x.clone()]).unwrap();
    let e = y[0].try_backward(None, false).unwrap_err();
    assert!(e.to_string().contains("Few: backward must return one gradient for each of 2 inputs, got 1"), "{e}");
    let e = apply(Few, &[x.clone(), leaf(&[1.0, 2.0, 3.0]).reshape([3, 1]).matmul(&leaf(&[1.0, 1.0]).reshape([1, 2]))]);
    assert!(e.is_ok());
    let e = apply(Few, &[leaf(&[1.0, 2.0]), leaf(&[1.0, 2.0, 3.0])]).unwrap_err();
    assert!(e.to_string().contains("cannot be broadcast"), "{e}");
}

#[test]
fn outputs_that_nothing_came_back_to() {
    struct Two(bool);
    impl Function for Two {
        fn forward(&self, cx: &mut FunctionContext, x: &[Tensor]) -> Result<Vec<Tensor>> {
            cx.set_materialize_grads(self.0);
            Ok(vec![&x[0] * 2.0, &x[0] * 3.0])
        }
        fn backward(&self, _: &FunctionContext, g: &[Option<Tensor>]) -> Result<Vec<Option<Tensor>>> {
            assert_eq!(g[1].is_some(), self.0);
            Ok(vec![g[0].as_ref().map(|g| g * 2.0)])
        }
    }
    for materialize in [true, false] {
        let x = leaf(&[1.0]);
        apply(Two(materialize), &[x.clone()]).unwrap()[0].backward();
        assert_eq!(grad_of(&x), [2.0]);
    }
}

fn deep(x: &Tensor, w: &Tensor) -> Tensor {
    let mut h = x.clone();
    for _ in 0..3 {
        h = (&h * w).tanh().exp() + x;
    }
    h
}

#[test]
fn recompute_gives_the_same_gradients() {
    let (x, w) = (Tensor::new([0.3f64, -0.2]), leaf(&[0.5, 0.7]));
    // The parameter is captured, and the input needs no gradient of its own.
    let plain = grad(&[deep(&x, &w)], &[w.clone()], &[], GradOptions::default()).unwrap();
    let captured = w.clone();
    let y = recompute(move |x| Ok(vec![deep(&x[0], &captured)]), &[x.clone()]).unwrap();
    let again =
        grad(&[y[0].clone()], &[w.clone()], &[], GradOptions { retain_graph: Some(true), ..Default::default() });
    assert_eq!(values(plain[0].as_ref().unwrap()), values(again.unwrap()[0].as_ref().unwrap()));
    y[0].backward();
    assert_eq!(values(plain[0].as_ref().unwrap()), grad_of(&w));

    let once = |x: &[Tensor]| recompute(|x| Ok(vec![deep(&x[0], &x[1])]), x);
    let nested = |x: &[Tensor]| {
        recompute(
            |x| {
                let h = deep(&x[0], &x[1]);
                let inner = recompute(|x| Ok(vec![deep(&x[0], &x[1]), &x[0] * 2.0]), &[h.tanh(), x[1].clone()])?;
                Ok(vec![&inner[0] * &inner[1]])
            },
            x,
        )
    };
    let inputs = [x, w.detach()];
    for f in [&once as &dyn Fn(&[Tensor]) -> Result<Vec<Tensor>>, &nested] {
        gradcheck(f, &inputs, GradCheck::default()).unwrap();
        gradgradcheck(f, &inputs, GradCheck::default()).unwrap();
    }
}

#[test]
fn recompute_repeats_random_numbers_and_precision() {
    // Another test's numbers must not come in between.
    alone("autograd::recompute_repeats_random_numbers_and_precision", || {
        let x = Tensor::new([1.0f32; 8]).requires_grad_();
        let y = recompute(|x| Ok(vec![(&x[0] * sampan_core::ops::random::rand([8])).tanh()]), &[x.clone()]).unwrap();
        let drawn = y[0].to_vec::<f32>();
        let state = random::state();
        y[0].backward();
        assert_eq!(random::state(), state, "the stream goes on where it was");
        for (g, t) in x.grad().unwrap().to_vec::<f32>().iter().zip(drawn) {
            let r = t.atanh();
            assert!((g - (1.0 - t * t) * r).abs() < 1e-4, "{g} {t}");
        }
        let m = Tensor::new([[0.5f32, 1.0], [1.5, 2.0]]).requires_grad_();
        let body = |x: &[Tensor]| Ok(vec![x[0].matmul(&x[0].t()).tanh()]);
        let y = amp::auto_cast(DType::BFloat16, || recompute(body, &[m.clone()])).unwrap();
        assert_eq!(y[0].dtype(), DType::BFloat16);
        y[0].sum(()).backward();
        let half = grad_of(&m);
        m.clear_grad();
        amp::auto_cast(DType::BFloat16, || body(&[m.clone()])).unwrap()[0].sum(()).backward();
        assert_eq!(half, grad_of(&m));
    });
}

#[test]
fn recompute_that_does_not_repeat() {
    let x = leaf(&[1.0]);
    let calls = AtomicUsize::new(0);
    let y = recompute(
        move |x| {
            let again = calls.fetch_add(1, Ordering::Relaxed) > 0;
            Ok(vec![if again { x[0].tanh() } else { x[0].tanh().tanh() }])
        },
        &[x.clone()],
    )
    .unwrap();
    let e = y[0].try_backward(None, false).unwrap_err();
    assert!(e.to_string().contains("saved 1 values, not 2 when it ran again"), "{e}");
    let y = recompute(|x| Ok(vec![x[0].tanh()]), &[x.clone()]).unwrap();
    no_grad(|| {
        x.clone().add_(1.0);
    });
    let e = y[0].try_backward(None, false).unwrap_err();
    assert!(e.to_string().contains("changed in place"), "{e}");
    // An error inside leaves no trace.
    assert!(
        recompute(
            |x| Ok(vec![&x[0] + Tensor::new([1.0f64, 2.0]).reshape([2]) + Tensor::new([1.0f64; 3])]),
            &[x.clone()]
        )
        .is_err()
    );
    x.tanh().backward();
}

#[test]
fn products_with_jacobians() {
    let x = Tensor::new([0.5f64, 1.5, -1.0]);
    let f = |x: &[Tensor]| Ok(vec![&x[0] * &x[0].sum(()), x[0].tanh()]);
    let v = [Tensor::new([1.0f64, 2.0, 3.0])];
    let (y, forward) = jvp(f, &[x.clone()], Some(&v)).unwrap();
    let u = [Tensor::new([0.3f64, -1.0, 2.0]), Tensor::new([1.0f64, 0.0, 1.0])];
    let (y2, back) = functional::vjp(f, &[x.clone()], Some(&u)).unwrap();
    assert_eq!(values(&y[0]), values(&y2[0]));
    // <u, J v> = <uᵀ J, v>.
    let dot = |a: &Tensor, b: &Tensor| (a * b).sum(()).to_f64();
    let left: f64 = forward.iter().zip(&u).map(|(a, b)| dot(a, b)).sum();
    assert!((left - dot(&back[0], &v[0])).abs() < 1e-12);
    // By hand: d(x·s) = v·s + x·Σv with s = 1.
    let expected: Vec<f64> = (0..3).map(|i| v[0].to_f64_vec()[i] + 6.0 * x.to_f64_vec()[i]).collect();
    for (a, b) in values(&forward[0]).iter().zip(expected) {
        assert!((a - b).abs() < 1e-12);
    }
    let e = jvp(f, &[x.clone()], Some(&u)).unwrap_err();
    assert!(e.to_string().contains("jvp: v must have the shapes of the inputs, [3], got [3], [3]"), "{e}");
    // What does not depend on the inputs has zero derivatives.
    let (_, zero) = functional::vjp(|_| Ok(vec![Tensor::new([1.0f64])]), &[x.clone()], None).unwrap();
    assert_eq!(values(&zero[0]), [0.0; 3]);
    let (_, zero) = jvp(|_| Ok(vec![Tensor::new([1.0f64])]), &[x], None).unwrap();
    assert_eq!(values(&zero[0]), [0.0]);
}

#[test]
fn jacobians_and_hessians() {
    let x = leaf(&[1.0, 2.0, 3.0]);
    let y = x.matmul(&Tensor::new([[1.0f64, 4.0], [2.0, 5.0], [3.0, 6.0]]));
    let j = jacobian(&y, &[x.clone()], None).unwrap();
    assert_eq!((j[0].shape(), values(&j[0])), (&[2usize, 3][..], vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0]));
    let cubes = (&x * &x * &x).sum(());
    let h = hessian(&cubes, &[x.clone()], None).unwrap();
    assert_eq!(values(&h[0][0]), [6.0, 0.0, 0.0, 0.0, 12.0, 0.0, 0.0, 0.0, 18.0]);
    // Batched: cases do not mix, and the batch axis appears once.
    let b = Tensor::new([[1.0f64, 2.0], [3.0, 4.0], [5.0, 6.0]]).requires_grad_();
    let y = &b * &b;
    let j = jacobian(&y, &[b.clone()], Some(0)).unwrap();
    assert_eq!(
        (j[0].shape(), values(&j[0])),
        (&[3usize, 2, 2][..], vec![2., 0., 0., 4., 6., 0., 0., 8., 10., 0., 0., 12.])
    );
    let h = hessian(&(&y * &b).sum(1), &[b.clone()], Some(0)).unwrap();
    assert_eq!(h[0][0].shape(), [3, 2, 2]);
    assert_eq!(values(&h[0][0])[..4], [6.0, 0.0, 0.0, 12.0]);
    let j = jacobian(&y.sum(1), &[b.clone()], Some(0)).unwrap();
    assert_eq!(j[0].shape(), [3, 1, 2]);
    // Two inputs; a linear function has a zero Hessian.
    let c = leaf(&[5.0, 5.0, 5.0]);
    let h = hessian(&(&x * &c).sum(()), &[x.clone(), c], None).unwrap();
    assert_eq!(values(&h[0][0]), [0.0; 9]);
    assert_eq!(values(&h[0][1]), [1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0]);
    assert_eq!(values(&hessian(&(&x * 2.0).sum(()), &[x.clone()], None).unwrap()[0][0]), [0.0; 9]);
    assert!(jacobian(&Tensor::new([1.0f64]), &[x.clone()], None).unwrap_err().to_string().contains("stop_gradient"));
    assert!(hessian(&(&x * 2.0), &[x], None).unwrap_err().to_string().contains("one number"));
}

#[test]
fn a_history_is_never_lost_in_silence() {
    // The shape of a recorded tensor, changed where nothing is recorded.
    let x = Tensor::new([3.0f32, 4.0]).requires_grad_();
    let mut y = &x * 2.0;
    let error = sampan_core::no_grad(|| y.try_reshape_([2, 1])).unwrap_err().to_string();
    assert!(error.contains("history would be lost"), "{error}");

    // A view and a handle from before a recorded change of their memory.
    let w = Tensor::new([3.0f32, 4.0]).requires_grad_();
    let mut y = Tensor::new([1.0f32, 2.0]);
    let (view, handle, cut) = (y.get(0..1), y.clone(), y.detach());
    y.add_(&w);
    assert!(!view.stop_gradient() && !handle.stop_gradient() && cut.stop_gradient());
    assert_eq!((cut + 1.0).to_vec::<f32>(), [5.0, 7.0]);
    (y.sum(()) + view.sum(()) * 10.0 + handle.sum(()) * 100.0).backward();
    assert_eq!(w.grad().unwrap().to_vec::<f32>(), [111.0, 101.0]);
}
