//! Hooks on the values that are saved for gradients.

use sampan_core::autograd::{Pack, Unpack, pop_saved_hook, push_saved_hook, recompute};
use sampan_core::error::Kind;
use sampan_core::{Error, GradOptions, Result, Tensor, grad};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Runs `f` with a hook.
fn packing<R>(pack: Pack, f: impl FnOnce() -> R) -> R {
    push_saved_hook(pack);
    let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(f));
    pop_saved_hook();
    result.unwrap_or_else(|p| std::panic::resume_unwind(p))
}

/// Keeps values as numbers, and counts.
fn counting(packed: Arc<AtomicUsize>, unpacked: Arc<AtomicUsize>) -> Pack {
    Arc::new(move |t: &Tensor| -> Result<Unpack> {
        packed.fetch_add(1, Ordering::Relaxed);
        let (values, shape, unpacked) = (t.to_vec::<f32>(), t.shape().to_vec(), unpacked.clone());
        Ok(Arc::new(move || {
            unpacked.fetch_add(1, Ordering::Relaxed);
            Tensor::try_from_slice(&values, &shape)
        }))
    })
}

#[test]
fn gradients_of_any_order_come_from_packed_values() {
    let (packed, unpacked) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let x = Tensor::new([0.5f32, 1.0]).requires_grad_();
    let y = packing(counting(packed.clone(), unpacked.clone()), || (&x * &x).exp());
    let count = packed.load(Ordering::Relaxed);
    assert!(count > 0 && unpacked.load(Ordering::Relaxed) == 0);
    let options = GradOptions { create_graph: true, ..Default::default() };
    let first = grad(&[y.sum(())], &[x.clone()], &[None], options).unwrap()[0].clone().unwrap();
    let second = grad(&[first.sum(())], &[x.clone()], &[None], GradOptions::default()).unwrap()[0].clone().unwrap();
    let close = |t: &Tensor, f: fn(f32) -> f32| {
        let pairs = t.to_vec::<f32>().into_iter().zip([0.5, 1.0]);
        pairs.into_iter().all(|(got, x)| (got - f(x)).abs() < 1e-5 * f(x))
    };
    assert!(close(&first, |x| 2.0 * x * (x * x).exp()));
    assert!(close(&second, |x| (2.0 + 4.0 * x * x) * (x * x).exp()));
    assert!(packed.load(Ordering::Relaxed) == count && unpacked.load(Ordering::Relaxed) > 0);
}

#[test]
fn a_hook_that_fails_or_gives_another_shape_is_an_error() {
    let x = Tensor::new([1.0f32, 2.0]).requires_grad_();
    let fail: Pack = Arc::new(|_| Err(Error::new(Kind::External, "the disk is full")));
    let error = packing(fail, || x.try_multiply(&x)).unwrap_err();
    assert_eq!((error.kind(), error.message()), (Kind::External, "the disk is full"));
    let shorter: Pack = Arc::new(|_| Ok(Arc::new(|| Ok(Tensor::new([1.0f32])))));
    let y = packing(shorter, || &x * &x).sum(());
    assert!(y.try_backward(None, false).unwrap_err().to_string().contains("must give shape [2] again, got [1]"));
}

#[test]
fn recompute_saves_nothing_to_pack_but_its_inputs() {
    let (packed, unpacked) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let x = Tensor::new([0.5f32]).requires_grad_();
    let body = |x: &[Tensor]| Ok(vec![x[0].tanh().tanh().tanh()]);
    let y = packing(counting(packed.clone(), unpacked), || recompute(body, &[x.clone()])).unwrap();
    assert_eq!(packed.load(Ordering::Relaxed), 1);
    y[0].backward();
    assert!(x.grad().is_some());
}
