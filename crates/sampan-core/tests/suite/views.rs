//! Tensors that share memory, and gradients when one of them is written.

use crate::alone::alone;
use sampan_core::autograd::{GradCheck, gradcheck, gradgradcheck};
use sampan_core::{Complex128, DType, Result, Tensor, i, no_grad};
use sampan_kernels::buffer::bytes_in_use;

fn leaf(values: &[f64]) -> Tensor {
    Tensor::from_vec(values.to_vec(), [values.len()]).requires_grad_()
}

fn grad_of(x: &Tensor) -> Vec<f64> {
    x.grad().expect("has a gradient").to_f64_vec()
}

/// The elements of a memory one by one, and views as lists of positions: what in-place writes mean, without writing.
struct Model {
    elements: Vec<Tensor>,
}

/// A tensor with the positions it sees in the model.
struct Seen {
    tensor: Tensor,
    at: Vec<usize>,
    shape: Vec<usize>,
}

/// Numbers for random choices.
struct Dice(u64);
impl Dice {
    fn roll(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) as usize % n
    }
}

/// Random views of random views, written by random ops and used in between; the same with the elements one by one.
#[test]
fn random_views_written_and_used() {
    for seed in 0..300 {
        let mut dice = Dice(seed);
        let x = leaf(&(1..=12).map(|v| v as f64 / 8.0).collect::<Vec<_>>());
        let w = leaf(&[0.5]);
        let base = &x * 1.5;
        // The model's elements come from a computation of their own.
        let (x2, w2) = (leaf(&x.to_f64_vec()), leaf(&[0.5]));
        let mut model = Model { elements: (0..12).map(|k| x2.get(k) * 1.5).collect() };
        let mut all = vec![Seen { tensor: base.reshape([3, 4]), at: (0..12).collect(), shape: vec![3, 4] }];
        all.push(Seen { tensor: base, at: (0..12).collect(), shape: vec![12] });
        let (mut loss, mut loss2) = (Tensor::new(0.0f64), Tensor::new(0.0f64));
        for _ in 0..12 {
            let pick = dice.roll(all.len());
            match dice.roll(4) {
                0 | 1 => {
                    let new = view_of(&all[pick], &mut dice);
                    all.push(new);
                }
                2 => write(&mut all[pick], &mut model, &w, &w2, &mut dice),
                _ => {
                    let (seen, factor) = (&all[pick], 1.0 + dice.roll(3) as f64);
                    // Sums need no values, so nothing that is written later matters to their gradient.
                    loss = loss + seen.tensor.sum(()) * factor;
                    let sum = seen.at.iter().fold(Tensor::new(0.0f64), |s, &p| s + &model.elements[p]);
                    loss2 = loss2 + sum * factor;
                }
            }
        }
        for seen in &all {
            loss = loss + seen.tensor.square().sum(());
            for &p in &seen.at {
                loss2 = loss2 + model.elements[p].square();
            }
        }
        assert!((loss.to_f64() - loss2.to_f64()).abs() < 1e-9 * loss2.to_f64().abs(), "seed {seed}: values");
        loss.backward();
        loss2.backward();
        let near = |a: &Tensor, b: &Tensor| {
            let zero = || vec![0.0; a.numel()];
            let (a, b) =
                (a.grad().map_or_else(zero, |g| g.to_f64_vec()), b.grad().map_or_else(zero, |g| g.to_f64_vec()));
            a.iter().zip(&b).all(|(a, b)| (a - b).abs() < 1e-9 * (1.0 + b.abs()))
        };
        assert!(near(&x, &x2), "seed {seed}: {:?} against {:?}", grad_of(&x), grad_of(&x2));
        assert!(near(&w, &w2), "seed {seed}: the parameter");
    }
}

fn view_of(seen: &Seen, dice: &mut Dice) -> Seen {
    let t = &seen.tensor;
    let index =
        |at: &[usize], shape: &[usize]| -> Tensor { Tensor::from_vec(at.iter().map(|&p| p as i64).collect(), shape) };
    // The same view of the tensor and of its positions.
    let positions = index(&seen.at, &seen.shape);
    let both = |f: &dyn Fn(&Tensor) -> Tensor| (f(t), f(&positions));
    let n = seen.shape.first().copied().unwrap_or(1);
    let (view, at) = match (dice.roll(5), t.ndim()) {
        (0, 1..) if n > 1 => {
            let k = dice.roll(n) as i64;
            both(&|t| t.get(k))
        }
        (1, 1..) if n > 1 => both(&|t| t.get(i![..; -1])),
        (2, 1..) if n > 1 => both(&|t| t.get(1..)),
        (3, 2..) => both(&|t| t.transpose((0..t.ndim() as i64).rev().collect::<Vec<_>>())),
        _ => {
            // A copy where the memory does not allow it: then it is no view, and the whole itself is taken.
            let flat = t.reshape([-1]);
            if flat.shares_memory(t) { both(&|t| t.reshape([-1])) } else { both(&|t| t.unsqueeze(0)) }
        }
    };
    let shape = view.shape().to_vec();
    Seen { tensor: view, at: at.to_f64_vec().into_iter().map(|p| p as usize).collect(), shape }
}

fn write(seen: &mut Seen, model: &mut Model, w: &Tensor, w2: &Tensor, dice: &mut Dice) {
    match dice.roll(5) {
        0 => {
            seen.tensor.multiply_(w.get(0));
            seen.at.iter().for_each(|&p| model.elements[p] = &model.elements[p] * w2.get(0));
        }
        1 => {
            seen.tensor.sin_();
            seen.at.iter().for_each(|&p| model.elements[p] = model.elements[p].sin());
        }
        2 => {
            seen.tensor.set(i![...], w.get(0));
            seen.at.iter().for_each(|&p| model.elements[p] = w2.get(0));
        }
        3 => {
            seen.tensor.fill_(0.25);
            seen.at.iter().for_each(|&p| model.elements[p] = Tensor::new(0.25f64));
        }
        _ => {
            let half = seen.tensor.clone() * 0.5;
            seen.tensor.set(i![...], half);
            seen.at.iter().for_each(|&p| model.elements[p] = &model.elements[p] * 0.5);
        }
    }
}

#[test]
fn gradients_of_gradients() {
    let f = |t: &[Tensor]| -> Result<Vec<Tensor>> {
        let mut y = &t[0] * 2.0;
        let mut row = y.get(0);
        let early = y.t();
        row.multiply_(&t[1]);
        row.sin_();
        y.set((1, 0), t[1].get(1) * t[0].get((0, 0)));
        Ok(vec![early.square() * &y.t()])
    };
    let x = Tensor::new([[0.5f64, -0.25], [1.5, 0.75]]);
    let w = Tensor::new([0.75f64, 1.25]);
    gradcheck(f, &[x.clone(), w.clone()], GradCheck::default()).unwrap();
    gradgradcheck(f, &[x, w], GradCheck::default()).unwrap();
}

#[test]
fn parts_of_complex_numbers_are_views() {
    let x = Tensor::new([Complex128::new(1.0, 2.0), Complex128::new(3.0, 4.0)]);
    x.real().set(0, 9.0);
    x.imag().set(1, 8.0);
    assert_eq!(x.to_vec::<Complex128>(), [Complex128::new(9.0, 2.0), Complex128::new(3.0, 8.0)]);
    let f = |t: &[Tensor]| -> Result<Vec<Tensor>> {
        let y = t[0].complex(&t[1]);
        y.real().multiply_(&t[1]);
        Ok(vec![y.abs()])
    };
    let parts = [Tensor::new([0.5f64, 2.0]), Tensor::new([1.5f64, -0.5])];
    gradcheck(f, &parts, GradCheck::default()).unwrap();
}

#[test]
fn pieces_and_expanded_tensors_are_their_own() {
    let mut x = Tensor::new([1.0f64, 2.0, 3.0, 4.0]);
    let mut parts = x.split(2, 0);
    let mut wide = x.get(0..2).expand([2, 2]);
    let mut same = x.cast(DType::Float64);
    x.fill_(0.0);
    assert_eq!((parts[0].to_f64_vec(), wide.to_f64_vec()), (vec![1.0, 2.0], vec![1.0, 2.0, 1.0, 2.0]));
    assert_eq!(same.to_f64_vec(), [1.0, 2.0, 3.0, 4.0]);
    parts[1].fill_(7.0);
    wide.set((0, 1), 5.0);
    same.add_(1.0);
    assert_eq!(x.to_f64_vec(), [0.0; 4]);
    assert_eq!(wide.to_f64_vec(), [1.0, 5.0, 1.0, 2.0]);
    assert_eq!((parts[0].to_f64_vec(), parts[1].to_f64_vec()), (vec![1.0, 2.0], vec![7.0, 7.0]));
    // The address of memory that others may write is known: nothing is put off.
    let shown = Tensor::zeros([4], DType::Float64);
    let address = shown.data_ptr();
    let mut late = shown.split(2, 0);
    late[0].fill_(1.0);
    assert_eq!((shown.to_f64_vec(), shown.data_ptr()), (vec![0.0; 4], address));
}

/// Large results are taken over, not copied: the memory of an in-place op is that of the same op elsewhere.
#[test]
fn large_results_are_taken_over() {
    alone("views::large_results_are_taken_over", || {
        const BIG: usize = 4 << 16;
        let x = Tensor::zeros([1 << 16], DType::Float32).requires_grad_();
        let base = bytes_in_use();
        let mut y = &x + 1.0;
        y.exp_();
        assert!(bytes_in_use() <= base + BIG + 4096, "the values and what the gradient keeps are one memory");
        let before = y.to_vec::<f32>();
        y.sin_();
        assert!(bytes_in_use() <= base + 2 * BIG + 4096);
        assert_eq!(y.to_vec::<f32>(), before.iter().map(|v| v.sin()).collect::<Vec<_>>());
        y.sum(()).backward();
        drop(y);
        x.clear_grad();
        assert_eq!(bytes_in_use(), base);
    });
}

/// Whatever is written through views, and never walked, goes with its last handle.
#[test]
fn writes_keep_nothing_alive() {
    alone("views::writes_keep_nothing_alive", || {
        let x = Tensor::zeros([1 << 14], DType::Float32).requires_grad_();
        let base = bytes_in_use();
        for _ in 0..3 {
            let mut y = &x + 1.0;
            let saved = &y * &y;
            let mut v = y.reshape([2, -1]);
            v.set(0, saved.get(..1 << 13) * 2.0);
            v.get(1).multiply_(saved.get(..1 << 13));
            let _used = v.sum(()) + y.sum(());
            y.add_(&saved);
        }
        assert_eq!(bytes_in_use(), base);
    });
}

#[test]
fn leaves() {
    let x = leaf(&[1.0, 2.0, 3.0]);
    let mut v = x.get(..2);
    v.set(0, 5.0);
    (v.square().sum(()) + x.square().sum(())).backward();
    // By its own values, as they are now.
    assert_eq!(grad_of(&x), [10.0, 8.0, 6.0]);
    let mut y = x.clone();
    assert!(y.try_sin_().unwrap_err().to_string().contains("a leaf that requires a gradient"));
    no_grad(|| y.sin_());
    assert!(y.is_same(&x));
    // Data that becomes a leaf after a parameter was written into a view of it.
    let (data, w) = (Tensor::zeros([2], DType::Float64), leaf(&[3.0]));
    data.get(..1).set(0, w.get(0));
    assert!(!data.stop_gradient());
    data.set_stop_gradient(false);
    data.square().sum(()).backward();
    assert_eq!((grad_of(&data), w.grad().is_none()), (vec![6.0, 0.0], true));
}
