//! Creation, joining, views and random fills, where the checks of the registry do not reach.

use sampan_core::ops::creation::{arange, eye, full, linspace};
use sampan_core::ops::joining::{concat, try_concat, try_stack};
use sampan_core::ops::random::{
    RandintOpts, UniformOpts, rand, randint_with, randperm, try_randint, try_uniform, uniform_with,
};
use sampan_core::{DType, Result, Tensor, no_grad, random};

#[test]
fn in_place_shapes_keep_memory_and_history() {
    let x = Tensor::new([1.0f32, 2.0, 3.0, 4.0]).requires_grad_();
    let mut y = &x * 2.0;
    let before = y.clone();
    y.reshape_([2, 2]).t_().unsqueeze_(0);
    assert_eq!(y.shape(), [1, 2, 2]);
    assert!(y.shares_memory(&before));
    assert_eq!(y.to_vec::<f32>(), [2.0, 6.0, 4.0, 8.0]);
    // A recorded write into the reshaped tensor is allowed: it is no view of another one.
    y.add_(Tensor::new([1.0f32, 10.0]));
    assert_eq!(before.to_vec::<f32>(), [3.0, 5.0, 16.0, 18.0]);
    y.sum(()).backward();
    assert_eq!(x.grad().unwrap().to_vec::<f32>(), [2.0; 4]);

    let mut leaf = Tensor::new([1.0f32, 2.0]).requires_grad_();
    // A leaf may have other handles, an optimizer's say, which would keep the old shape: never in place.
    assert!(leaf.try_reshape_([2, 1]).is_err());
    let error = no_grad(|| leaf.try_reshape_([2, 1]).unwrap_err().to_string());
    assert!(error.contains("other handles") && error.contains("Hint"), "{error}");
    assert!(leaf.shape() == [2]);
    // A shape that needs a copy cannot be had in place.
    let mut z = Tensor::new([[1.0f32, 2.0], [3.0, 4.0]]).t();
    assert!(z.try_reshape_([4]).is_err());
}

#[test]
fn a_fill_cuts_the_history() {
    let x = Tensor::new([1.0f32, 2.0]).requires_grad_();
    let mut y = &x * 2.0;
    y.uniform_(0.0, 1.0, 0);
    y.sum(()).backward();
    assert_eq!(x.grad().unwrap().to_vec::<f32>(), [0.0, 0.0]);
}

#[test]
fn unused_pieces_have_zero_gradients() {
    let x = Tensor::new([1.0f32, 2.0, 3.0, 4.0]).requires_grad_();
    let parts = x.split([1, -1], 0);
    (&parts[1] * &parts[1]).sum(()).backward();
    assert_eq!(x.grad().unwrap().to_vec::<f32>(), [0.0, 4.0, 6.0, 8.0]);
}

#[test]
fn dtypes_join_to_the_wider_one() {
    let y = concat(&[Tensor::new([1i32]), Tensor::new([2.5f64])], 0);
    assert_eq!((y.dtype(), y.to_vec::<f64>()), (DType::Float64, vec![1.0, 2.5]));
}

#[test]
fn large_and_odd_ranges() {
    assert_eq!(arange(9_007_199_254_740_993i64, 9_007_199_254_740_995i64, 1).to_vec::<i64>()[1], 9_007_199_254_740_994);
    assert_eq!(arange(0.0, 1.0, 0.1).numel(), 10);
    assert_eq!(arange(1, 1, 1).numel(), 0);
    assert_eq!(linspace(0, 1, 0).shape(), [0]);
    assert_eq!(linspace(-1, 1, 3).to_vec::<f32>(), [-1.0, 0.0, 1.0]);
    assert_eq!(eye(0, 3).shape(), [0, 3]);
    assert_eq!(full([2], true).dtype(), DType::Bool);
    assert_eq!(Tensor::from(vec![1i64, 2]).dtype(), DType::Int64);
}

#[test]
fn random_numbers_follow_the_seed() {
    // The generator belongs to the whole process.
    crate::alone::alone("arrange::random_numbers_follow_the_seed", seeded_draws);
}

fn seeded_draws() {
    let draw = || (rand([5]).to_vec::<f32>(), randperm(20).to_vec::<i64>(), Tensor::randn([3]).to_vec::<f32>());
    random::seed(3);
    let a = draw();
    let b = draw();
    random::seed(3);
    assert_eq!(a, draw());
    assert_ne!(a, b);
    let own = || uniform_with([4], 0.0, 1.0, UniformOpts::new().seed(9)).to_vec::<f32>();
    assert_eq!(own(), own());
    let ints = randint_with(0, 3, [200], RandintOpts::new().dtype(DType::UInt8)).to_vec::<u8>();
    assert!((0..3).all(|v| ints.contains(&v)) && ints.iter().all(|&v| v < 3));
}

#[test]
fn wrong_arguments_are_errors() {
    fn refused<T>(what: &str, result: Result<T>) {
        let Err(e) = result else { panic!("{what} was accepted") };
        assert!(!e.op().is_empty(), "{what}: {e}");
    }
    let x = Tensor::zeros([2, 3], DType::Float32);
    let v = Tensor::zeros([3], DType::Float32);
    let scalar = Tensor::new(1.0f32);
    refused("concat of nothing", try_concat(&[], 0));
    refused("concat of other extents", try_concat(&[x.clone(), v.clone()], 0));
    refused("concat on axis 2", try_concat(&[x.clone(), x.clone()], 2));
    refused("concat of 0-d", try_concat(&[scalar.clone()], 0));
    refused("stack of other shapes", try_stack(&[x.clone(), v.clone()], 0));
    refused("split in 2", x.try_split(2, 1));
    refused("split in 0", x.try_split(0, 1));
    refused("split with two holes", x.try_split([-1, -1], 1));
    refused("split beyond", x.try_split([7, -1], 1));
    refused("split of 0-d", scalar.try_split(1, 0));
    refused("reshape", x.try_reshape([4, -1]));
    refused("flatten backwards", x.try_flatten(1, 0));
    refused("unflatten", x.try_unflatten(1, [2, -1]));
    refused("moveaxis twice", x.try_moveaxis([0, 0], [0, 1]));
    refused("moveaxis uneven", x.try_moveaxis([0], [0, 1]));
    refused("expand", x.try_expand([2, 4]));
    refused("flip axis", x.try_flip(2));
    refused("flip twice", x.try_flip([1, -1]));
    refused("tile negative", x.try_tile([-1]));
    refused("tile too large", x.try_tile([i64::MAX / 2, 1]));
    refused("repeat count", x.try_repeat_interleave(Tensor::new([1i64, 2]), 1));
    refused("roll", x.try_roll([1, 2], 0));
    refused("rot90 of a vector", v.try_rot90(1));
    refused("pad odd", x.try_pad([1]));
    refused("pad too many", x.try_pad([1, 1, 1, 1, 1, 1]));
    refused("pad to less than nothing", v.try_pad([-2, -2]));
    refused("tril of a vector", v.try_tril(0));
    refused("diagonal of one axis", x.try_diagonal(0, 1, 1));
    refused("diag of three axes", Tensor::zeros([1, 1, 1], DType::Float32).try_diag(0));
    refused("diag far out", v.try_diag(i64::MIN));
    refused("as_strided outside", x.try_as_strided([2, 3], [3, 2], 0));
    refused("as_strided far outside", x.try_as_strided([i64::MAX, 2], [1, i64::MAX], 0));
    refused("as_strided before", x.try_as_strided([2], [-1], 0));
    refused("as_strided between elements", x.try_as_strided([2], [1], 2));
    refused("window", v.try_sliding_window(0, 4, 1));
    refused("window step", v.try_sliding_window(0, 1, 0));
    refused("narrow", v.try_narrow(0, 2, 2));
    refused("narrow overflow", v.try_narrow(0, i64::MAX, i64::MAX));
    refused("slice lengths", v.try_slice([0], [0, 1], [1]));
    refused("stride 0", v.try_strided_slice([0], [0], [1], [0]));
    refused("view that copies", x.t().try_reinterpret([6]));
    refused("view as wider", v.try_reinterpret(DType::Float64));
    refused("low above high", try_randint(5, 5, [1]));
    refused("min above max", try_uniform([1], 2.0, 1.0));
    refused("negative shape", try_uniform([-1], 0.0, 1.0));
    refused("multinomial", v.try_multinomial(1));
    refused("too many draws", Tensor::new([1.0f32]).try_multinomial(2));
    refused("probability 2", Tensor::new([2.0f32]).try_bernoulli(None));
    refused("integers", Tensor::new([2i64]).try_uniform_(0.0, 1.0, 0));
}
