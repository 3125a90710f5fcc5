//! Tensors themselves: making, reading, sharing, promoting, listening.

use sampan_core::dispatch::{Listener, listen};
use sampan_core::op::OpDef;
use sampan_core::promote::{promote, promote_scalar, promote_tensors};
use sampan_core::{Bool, DType, Scalar, Tensor, Value, f16};
use std::cell::RefCell;
use std::rc::Rc;

#[test]
fn from_and_into() {
    assert_eq!(Tensor::from(2.5f64).ndim(), 0);
    assert_eq!(Tensor::from(true).dtype(), DType::Bool);
    assert_eq!(Tensor::from(vec![vec![1i32, 2], vec![3, 4], vec![5, 6]]).shape(), [3, 2]);
    assert_eq!(Tensor::from(&[[[1.0f32]; 2]; 3]).shape(), [3, 2, 1]);
    assert_eq!(Tensor::from(&vec![f16::ONE][..]).dtype(), DType::Float16);
    assert_eq!(Tensor::from(Vec::<[f32; 3]>::new()).shape(), [0]);
    let e = Tensor::try_new(vec![vec![1.0f32, 2.0], vec![3.0], vec![4.0, 5.0, 6.0]]).unwrap_err();
    assert!(e.to_string().contains("to_tensor: the rows differ in length"), "{e}");
    let t = Tensor::new([3i64]);
    assert_eq!(i64::try_from(&t).unwrap(), 3);
    assert_eq!(usize::try_from(&t).unwrap(), 3);
    assert_eq!(f32::try_from(&t).unwrap(), 3.0);
    assert!(i64::try_from(&Tensor::new(1.5f32)).is_err());
    assert!(usize::try_from(&Tensor::new(-1i64)).is_err());
    assert!(bool::try_from(&Tensor::new(true)).unwrap());
    assert!(f64::try_from(&Tensor::new([1.0f32, 2.0])).is_err());
    assert_eq!(Vec::<Bool>::try_from(&Tensor::new([true, false])).unwrap(), [true, false]);
    assert!(Vec::<f64>::try_from(&Tensor::new([1.0f32])).is_err());
}

#[cfg(feature = "ndarray")]
#[test]
fn arrays_of_ndarray() {
    use ndarray::{ArrayD, arr2};
    let a = arr2(&[[1.0f32, 2.0, 3.0], [4.0, 5.0, 6.0]]);
    let t = Tensor::from(a.clone().reversed_axes());
    assert_eq!((t.shape(), t.to_vec::<f32>()), (&[3usize, 2][..], vec![1.0, 4.0, 2.0, 5.0, 3.0, 6.0]));
    let back = ArrayD::<f32>::try_from(&t.t()).unwrap();
    assert_eq!(back, a.into_dyn());
    assert!(ArrayD::<f64>::try_from(&t).is_err());
    assert_eq!(ArrayD::<i64>::try_from(&Tensor::new(7i64)).unwrap().ndim(), 0);
}

#[test]
fn along_the_first_axis() {
    let x = Tensor::new([[1.0f64, 2.0], [3.0, 4.0], [5.0, 6.0]]).requires_grad_();
    let rows: Vec<Tensor> = x.iter().rev().collect();
    assert_eq!(rows[0].to_vec::<f64>(), [5.0, 6.0]);
    assert!(rows[0].shares_memory(&x));
    assert_eq!(x.iter().len(), 3);
    let mut total = Tensor::new(0.0f64);
    for row in &x {
        total = total + row.sum(()) * 2.0;
    }
    total.backward();
    assert_eq!(x.grad().unwrap().to_vec::<f64>(), [2.0; 6]);
    assert!(Tensor::new(1.0f32).try_iter().is_err());
    assert_eq!(x.item_at([2, 0]).unwrap(), Scalar::Float(5.0));
    assert_eq!(x.t().item_at([0, -1]).unwrap(), Scalar::Float(5.0));
    assert!(x.item_at([3, 0]).unwrap_err().to_string().contains("position 3 lies outside axis 0 of extent 3"));
    assert!(x.item_at([0]).is_err());
}

#[test]
fn handles_and_views_share() {
    let x = Tensor::new([[1i64, 2], [3, 4]]);
    let (same, view) = (x.clone(), x.t());
    same.set_value(&Tensor::new([[5i64, 6], [7, 8]]));
    assert_eq!(view.to_vec::<i64>(), [5, 7, 6, 8]);
    assert_eq!((x.inplace_version(), view.inplace_version()), (1, 1));
    // Values that lie in the target itself.
    let mut y = Tensor::new([1i64, 2, 3, 4]);
    let reversed = y.strided_slice([0], [3], [-5], [-1]);
    y.set_value(&reversed);
    assert_eq!(y.to_vec::<i64>(), [4, 3, 2, 1]);
    y.try_fill_(7).unwrap();
    assert_eq!(y.to_vec::<i64>(), [7; 4]);
    let bytes = Tensor::from_bytes(&x.t().to_bytes(), DType::Int64, [2, 2]).unwrap();
    assert_eq!(bytes.to_vec::<i64>(), [5, 7, 6, 8]);
}

#[test]
fn promotion_table() {
    use DType::*;
    // Row and column in the order of `DType::ALL`; NumPy's and PyTorch's table.
    #[rustfmt::skip]
    let table = [
        [Bool, UInt8, Int8, Int16, Int32, Int64, Float16, BFloat16, Float32, Float64, Complex64, Complex128],
        [UInt8, UInt8, Int16, Int16, Int32, Int64, Float16, BFloat16, Float32, Float64, Complex64, Complex128],
        [Int8, Int16, Int8, Int16, Int32, Int64, Float16, BFloat16, Float32, Float64, Complex64, Complex128],
        [Int16, Int16, Int16, Int16, Int32, Int64, Float16, BFloat16, Float32, Float64, Complex64, Complex128],
        [Int32, Int32, Int32, Int32, Int32, Int64, Float16, BFloat16, Float32, Float64, Complex64, Complex128],
        [Int64, Int64, Int64, Int64, Int64, Int64, Float16, BFloat16, Float32, Float64, Complex64, Complex128],
        [Float16, Float16, Float16, Float16, Float16, Float16, Float16, Float32, Float32, Float64, Complex64, Complex128],
        [BFloat16, BFloat16, BFloat16, BFloat16, BFloat16, BFloat16, Float32, BFloat16, Float32, Float64, Complex64, Complex128],
        [Float32, Float32, Float32, Float32, Float32, Float32, Float32, Float32, Float32, Float64, Complex64, Complex128],
        [Float64, Float64, Float64, Float64, Float64, Float64, Float64, Float64, Float64, Float64, Complex128, Complex128],
        [Complex64, Complex64, Complex64, Complex64, Complex64, Complex64, Complex64, Complex64, Complex64, Complex128, Complex64, Complex128],
        [Complex128; 12],
    ];
    for (i, &a) in DType::ALL.iter().enumerate() {
        for (j, &b) in DType::ALL.iter().enumerate() {
            assert_eq!(promote(a, b), table[i][j], "{a} {b}");
            let sum = Tensor::zeros([2], a).add(Tensor::zeros([2], b));
            assert_eq!(sum.dtype(), table[i][j], "{a} + {b}");
        }
    }
}

#[test]
fn numbers_and_0d_tensors_do_not_widen() {
    let half = Tensor::zeros([2], DType::Float16);
    assert_eq!(promote_tensors(&half, &Tensor::new(1.0f64)), DType::Float16);
    assert_eq!(promote_tensors(&half, &Tensor::new([1.0f64])), DType::Float64);
    assert_eq!(promote_tensors(&Tensor::new([1i32]), &Tensor::new(1.0f64)), DType::Float64);
    assert_eq!(promote_scalar(DType::Int32, Scalar::Int(1 << 40)), DType::Int32);
    assert_eq!(promote_scalar(DType::Int32, Scalar::Float(0.5)), DType::Float32);
    assert_eq!(promote_scalar(DType::Bool, Scalar::Int(1)), DType::Int64);
    assert_eq!(promote_scalar(DType::BFloat16, Scalar::Float(0.5)), DType::BFloat16);
}

#[test]
fn meta_tensors_infer_and_compute_nothing() {
    let x = Tensor::meta([1 << 40, 3], DType::Float32).requires_grad_();
    let y = (&x * 2.0 + Tensor::new([1.0f32, 2.0, 3.0])).tanh();
    assert_eq!((y.shape(), y.dtype()), (&[1usize << 40, 3][..], DType::Float32));
    y.sum(()).backward();
    assert_eq!(x.grad().unwrap().shape(), x.shape());
    assert!(y.try_to_vec::<f32>().unwrap_err().to_string().contains("a meta tensor holds no values"));
    assert!(y.sum(()).try_item().is_err());
    assert!(x.try_matmul(&Tensor::meta([4, 2], DType::Float32)).is_err());
    assert_eq!(Tensor::new([1.0f32]).to_meta().shape(), [1]);
}

#[derive(Default)]
struct Log(RefCell<Vec<String>>);
impl Listener for Log {
    fn enter(&self, op: &'static OpDef, _: &[Value]) {
        self.0.borrow_mut().push(format!("+{}", op.name));
    }
    fn exit(&self, op: &'static OpDef, _: &[Value], outputs: &[Tensor]) {
        self.0.borrow_mut().push(format!("-{} {:?}", op.name, outputs[0].shape()));
    }
}

#[test]
fn listeners_see_every_call() {
    let log = Rc::new(Log::default());
    let x = Tensor::new([[2.0f32, 4.0]]);
    listen(log.clone(), || {
        let _ = x.tanh() + 1.0;
        let _ = x.matmul(&x.t());
    });
    let _ = x.tanh();
    let seen = log.0.borrow().join(" ");
    assert!(seen.starts_with("+tanh -tanh [1, 2] +add -add [1, 2]"), "{seen}");
    assert!(
        seen.contains("+matmul +matrix_product") && seen.contains("-matrix_product [1, 1] -matmul [1, 1]"),
        "{seen}"
    );
    assert_eq!(seen.matches("+tanh").count(), 1);
    // One that is taken off by an unwinding is off.
    let result = std::panic::catch_unwind(|| listen(Rc::new(Log::default()), || panic!("out")));
    assert!(result.is_err());
    let _ = x.tanh();
}

#[test]
fn many_threads_at_once() {
    let w = Tensor::from_vec((0..64).map(|i| i as f64 * 0.01).collect(), [8, 8]).requires_grad_();
    let expected = {
        w.matmul(&w).tanh().sum(()).backward();
        let g = w.grad().unwrap().to_vec::<f64>();
        w.clear_grad();
        g
    };
    let rounds = 20;
    std::thread::scope(|s| {
        for _ in 0..8 {
            s.spawn(|| {
                for _ in 0..rounds {
                    let own = w.detach().requires_grad_();
                    own.matmul(&own).tanh().sum(()).backward();
                    assert_eq!(own.grad().unwrap().to_vec::<f64>(), expected);
                    let shared = w.matmul(&w).tanh().sum(());
                    let g = sampan_core::grad(&[shared], &[w.clone()], &[], Default::default()).unwrap();
                    assert_eq!(g[0].as_ref().unwrap().to_vec::<f64>(), expected);
                }
            });
        }
    });
}

#[test]
fn names_and_flags() {
    let x = Tensor::new([1.0f32]);
    let generated = x.name();
    assert_eq!((x.name(), x.clone().name()), (generated.clone(), generated));
    x.set_name("weight");
    assert_eq!(x.name(), "weight");
    assert!(!x.persistable());
    x.set_persistable(true);
    assert!(x.persistable() && x.is_leaf() && x.stop_gradient());
}
