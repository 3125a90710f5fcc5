//! The same bits with one thread and with several, on inputs large enough to be cut up.

use crate::alone::alone;
use sampan_core::ops::random::{rand, randn};
use sampan_core::{Tensor, random};

fn bits(label: &str, f: impl Fn() -> Vec<Tensor>) {
    let run = |threads: usize| {
        sampan_core::set_num_threads(threads);
        random::seed(3);
        f().iter().map(Tensor::to_bytes).collect::<Vec<_>>()
    };
    let one = run(1);
    for threads in [2, 3, 5] {
        assert!(run(threads) == one, "{label} differs between 1 and {threads} threads");
    }
    sampan_core::set_num_threads(2);
}

#[test]
fn results_do_not_depend_on_the_number_of_threads() {
    // The generator belongs to the whole process.
    alone("threads::results_do_not_depend_on_the_number_of_threads", same_bits);
}

fn same_bits() {
    bits("random", || vec![rand([300, 1000]), randn([300, 1000])]);
    bits("elementwise and reductions", || {
        let x = randn([257, 1031]);
        let y = (&x * 3.0 + 1.0).tanh();
        vec![y.sum(()), y.sum(0), y.sum(1), y.mean(()), y.max(0), y.cumsum(1), y.softmax(-1)]
    });
    bits("denormals", || {
        let y = rand([300, 1000]) * 1e-20 * 1e-20;
        assert!(y.max(()).to_f64() > 0.0, "kept on every thread");
        vec![y.sum(1), y]
    });
    bits("sort", || {
        let (values, indices) = randn([40, 5000]).topk(7);
        vec![values, indices]
    });
    bits("matrix product with gradients", || {
        let (x, w) = (randn([333, 517]).requires_grad_(), randn([517, 255]).requires_grad_());
        let y = x.matmul(&w);
        (&y * &y).sum(()).backward();
        vec![y, x.grad().unwrap(), w.grad().unwrap()]
    });
    bits("complex product and Fourier transforms with gradients", || {
        let (re, im) = (randn([64, 3, 300]), randn([64, 3, 300]));
        let x = re.complex(&im).requires_grad_();
        let y = x.fft2().matmul(&x.fftn().matrix_transpose());
        let z = x.real().reshape([64, 900]).stft(64).abs();
        (y.abs().sum(()) + z.sum(())).backward();
        vec![y, z, x.grad().unwrap()]
    });
    bits("convolution with gradients", || {
        let (x, w) = (randn([5, 3, 37, 41]).requires_grad_(), randn([16, 3, 3, 3]).requires_grad_());
        let y = x.conv2d(&w, None).max_pool2d(2);
        (&y * &y).sum(()).backward();
        vec![y, x.grad().unwrap(), w.grad().unwrap()]
    });
    bits("normalisation and loss", || {
        let x = randn([64, 999]).requires_grad_();
        let labels = sampan_core::sample::ints([64], 0, 999);
        let y = x.cross_entropy(&labels);
        y.backward();
        vec![y, x.grad().unwrap()]
    });
}
