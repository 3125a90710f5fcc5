//! Memory is given back when it is no longer needed, and never grows.

use crate::alone::alone;
use sampan_core::autograd::{Function, FunctionContext, apply, recompute};
use sampan_core::{DType, GradOptions, Result, Tensor, grad, no_grad};
use sampan_kernels::buffer::{bytes_in_use, peak_bytes, reset_peak};

const N: usize = 1 << 16;
/// Bytes of one large tensor.
const BIG: usize = 4 * N;

fn big() -> Tensor {
    Tensor::zeros([N], DType::Float32)
}

#[test]
fn saved_values_are_freed_by_the_walk() {
    alone("memory::saved_values_are_freed_by_the_walk", || {
        let x = big().requires_grad_();
        let base = bytes_in_use();
        let y = (0..10).fold(x.clone(), |h, _| h.tanh()).sum(());
        assert!(bytes_in_use() >= base + 10 * BIG, "the outputs of tanh are kept for its gradient");
        y.backward();
        assert!(bytes_in_use() <= base + BIG + 4096, "only the gradient is left, though y is alive");
        drop(y);
        x.clear_grad();
        assert_eq!(bytes_in_use(), base);
        // A graph that is never walked goes with its outputs.
        let y = (0..10).fold(x.clone(), |h, _| h.tanh());
        drop(y);
        assert_eq!(bytes_in_use(), base);
        // The walk itself holds few gradients at a time.
        let y = (0..30).fold(x.clone(), |h, _| h + 1.0).sum(());
        reset_peak();
        let before = bytes_in_use();
        y.backward();
        assert!(peak_bytes() <= before + 4 * BIG, "{} tensors at once", (peak_bytes() - before) / BIG);
    });
}

#[test]
fn nothing_keeps_itself_alive() {
    struct Own;
    impl Function for Own {
        fn forward(&self, cx: &mut FunctionContext, x: &[Tensor]) -> Result<Vec<Tensor>> {
            let y = x[0].exp();
            cx.save_for_backward(&[x[0].clone(), y.clone()]);
            Ok(vec![y])
        }
        fn backward(&self, cx: &FunctionContext, g: &[Option<Tensor>]) -> Result<Vec<Option<Tensor>>> {
            Ok(vec![Some(g[0].as_ref().unwrap() * &cx.saved_tensor()[1])])
        }
    }
    alone("memory::nothing_keeps_itself_alive", || {
        let base = bytes_in_use();
        {
            let x = big().requires_grad_();
            let y = apply(Own, &[x.clone()]).unwrap().remove(0);
            y.retain_grads();
            let _hook = y.register_hook(|g| Ok(Some(g * 2.0))).unwrap();
            let z = y.exp().tanh();
            let z = recompute(|z| Ok(vec![z[0].exp().tanh()]), &[z]).unwrap().remove(0).sum(());
            let create = GradOptions { create_graph: true, ..Default::default() };
            let g = grad(&[z.clone()], &[x.clone()], &[], create).unwrap().remove(0).unwrap();
            g.sum(()).try_backward(None, true).unwrap();
            z.try_backward(None, true).unwrap();
            let mut w = &x * 2.0;
            w.add_(1.0).exp_();
            let unused = recompute(|x| Ok(vec![x[0].tanh().tanh()]), &[w]).unwrap();
            drop(unused);
        }
        assert_eq!(bytes_in_use(), base);
    });
}

fn step(w: &mut [Tensor; 2], x: &Tensor) {
    let y = x.matmul(&w[0]).tanh().matmul(&w[1]);
    let loss = (&y * &y).sum(());
    loss.backward();
    for w in w {
        let g = w.grad().unwrap();
        no_grad(|| w.subtract_(g * 0.01));
        w.clear_grad();
    }
}

#[test]
fn training_and_inference_are_flat() {
    alone("memory::training_and_inference_are_flat", || {
        let x = Tensor::from_vec((0..32).map(|i| (i as f32 * 0.3).sin()).collect(), [4, 8]);
        let weight = |m: usize, n: usize| {
            Tensor::from_vec((0..m * n).map(|i| (i as f32 * 0.7).cos() * 0.1).collect(), [m, n]).requires_grad_()
        };
        let mut w = [weight(8, 16), weight(16, 2)];
        step(&mut w, &x);
        let base = bytes_in_use();
        (0..1000).for_each(|_| step(&mut w, &x));
        assert_eq!(bytes_in_use(), base, "1000 steps of training");
        (0..1000).for_each(|_| drop(x.matmul(&w[0]).tanh().matmul(&w[1])));
        assert_eq!(bytes_in_use(), base, "1000 recorded forward runs");
        no_grad(|| (0..1000).for_each(|_| drop(x.matmul(&w[0]).tanh().matmul(&w[1]))));
        assert_eq!(bytes_in_use(), base, "1000 unrecorded forward runs");
    });
}

#[test]
fn recompute_needs_less() {
    alone("memory::recompute_needs_less", || {
        let x = big().requires_grad_();
        let block = |h: &Tensor| (0..8).fold(h.clone(), |h, _| h.tanh());
        let peak = |f: &dyn Fn() -> Tensor| {
            reset_peak();
            let before = bytes_in_use();
            f().backward();
            x.clear_grad();
            assert_eq!(bytes_in_use(), before);
            (peak_bytes() - before) / BIG
        };
        let plain = peak(&|| (0..8).fold(x.clone(), |h, _| block(&h)).sum(()));
        let again = |h: Tensor, _| recompute(move |x| Ok(vec![block(&x[0])]), &[h]).unwrap().remove(0);
        let less = peak(&|| (0..8).fold(x.clone(), again).sum(()));
        assert!(plain >= 64, "{plain}");
        assert!(less <= 22, "8 inputs of blocks, 8 values of one block, some gradients; got {less}");
    });
}

/// `n` additions, walked and dropped on a thread with a small stack.
fn chain(n: usize) {
    let run = move || {
        let x = Tensor::new([1.0f32]).requires_grad_();
        let mut y = x.clone();
        for _ in 0..n {
            y = y + 1.0;
        }
        y.try_backward(None, true).unwrap();
        assert_eq!(x.grad().unwrap().to_vec::<f32>(), [1.0]);
        drop(y);
        // Dropped without a walk, through inputs, saved values and gradients of gradients.
        let mut y = x.clone();
        for _ in 0..n / 10 {
            y = y.tanh() * &x;
        }
        let create = GradOptions { create_graph: true, ..Default::default() };
        drop(grad(&[y], &[x], &[], create).unwrap());
    };
    std::thread::Builder::new().stack_size(256 << 10).spawn(run).unwrap().join().unwrap();
}

#[test]
fn deep_graphs_need_no_stack() {
    chain(10_000);
}

#[test]
fn very_deep_graphs_need_no_stack() {
    alone("memory::very_deep_graphs_need_no_stack", || {
        let base = bytes_in_use();
        chain(200_000);
        assert_eq!(bytes_in_use(), base);
    });
}
