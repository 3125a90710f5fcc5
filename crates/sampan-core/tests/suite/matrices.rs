//! Matrix products, decompositions and attention: wrong arguments are said clearly, and large cases agree with small ones.

use sampan_core::dispatch::with_composites;
use sampan_core::ops::attention::ScaledDotProductAttentionOpts;
use sampan_core::ops::einsum::try_einsum;
use sampan_core::ops::products::try_multi_dot;
use sampan_core::sample::{randn, uniform};
use sampan_core::{DType, Result, Tensor};

#[track_caller]
fn refused<T>(result: Result<T>, words: &str) {
    match result {
        Ok(_) => panic!("should have been refused: {words}"),
        Err(e) => assert!(e.to_string().contains(words), "{e}"),
    }
}

#[test]
fn wrong_products_are_refused() {
    let (x, w) = (randn([32, 10]), randn([12, 4]));
    let message = x.try_linear(&w, None).unwrap_err().to_string();
    assert_eq!(
        message,
        "(InvalidArgument) linear: x has 10 columns, weight has 12 rows. \
         Received x=[32, 10] float32, weight=[12, 4] float32. Hint: set in_features=10."
    );
    refused(x.try_linear(&randn([10, 4]), Some(&randn([5]))), "bias has shape [5], weight has 4 columns");
    refused(x.try_matmul(&w), "x has 10 columns, y has 12 rows");
    refused(x.try_bmm(&w), "three axes");
    refused(randn([2, 2, 3]).try_bmm(&randn([3, 3, 2])), "x holds 2 matrices, y holds 3");
    refused(x.try_dot(&w), "same shape");
    refused(x.try_mv(&randn([2, 2])), "a matrix and a vector");
    refused(try_multi_dot(&[x.clone(), w.clone()]), "matrix 0 of the chain has 10 columns");
    refused(x.try_tensordot(&w, 3), "must lie between 0 and the ranks");
    refused(x.try_cross(&w, 9), "");
    refused(randn([3, 2]).try_cross(&randn([3, 2]), 1), "axis 1 has extent 2");
}

#[test]
fn wrong_equations_are_refused() {
    let x = randn([2, 3]);
    let call = |equation: &str, n: usize| try_einsum(equation, &vec![x.clone(); n]);
    refused(call("ij,jk->ik", 1), "names 2 operands, got 1");
    refused(call("ij,jk->ik", 2), "`j` stands for an axis of 3 and for one of 2");
    refused(call("ijk", 1), "names 3 axes, operand 0 has 2");
    refused(call("ij->ik", 1), "in no operand");
    refused(call("ij->ii", 1), "occurs twice in the output");
    refused(call("i1->i", 1), "neither a letter");
    refused(call("...i...->i", 1), "neither a letter");
}

#[test]
fn bad_matrices_are_refused() {
    let singular = Tensor::new([[1.0f32, 2.0], [2.0, 4.0]]);
    refused(singular.try_inverse(), "is singular");
    refused(singular.try_solve(&randn([2])), "is singular");
    refused(Tensor::new([[1.0f32, 2.0], [2.0, 1.0]]).try_cholesky(), "not positive definite");
    refused(Tensor::new([[0.0f32, 1.0], [-1.0, 0.0]]).try_eigvals(), "complex");
    refused(Tensor::new([[f32::NAN, 1.0], [1.0, 0.0]]).try_svd(), "NaN");
    refused(randn([2, 3]).try_det(), "must be square");
    refused(randn([3]).try_svdvals(), "must be a matrix");
    refused(randn([2, 2]).cast(DType::Float16).try_inverse(), "float32 or float64");
    refused(Tensor::new([[1i64, 2], [3, 4]]).try_qr("reduced"), "float32 or float64");
    refused(randn([2, 2]).try_qr("thin"), "mode must be");
    refused(randn([2, 2]).try_cond("two"), "p must be");
    let leaf = randn([3, 2]).requires_grad_();
    let q = leaf.qr("complete").0.swap_remove(0);
    refused(q.sum(()).try_backward(None, false), "has no gradient for matrices with more rows");
}

#[test]
fn greedy_contraction_is_the_naive_sum() {
    let (a, b, c) = (uniform([3, 4, 2], -1.0, 1.0), uniform([4, 5], -1.0, 1.0), uniform([5, 2, 3], -1.0, 1.0));
    let out = try_einsum("ijk,jl,lki->il", &[a.clone(), b.clone(), c.clone()]).unwrap().to_vec::<f32>();
    let (a, b, c) = (a.to_vec::<f32>(), b.to_vec::<f32>(), c.to_vec::<f32>());
    for (i, l) in (0..3).flat_map(|i| (0..5).map(move |l| (i, l))) {
        let mut sum = 0.0;
        for (j, k) in (0..4).flat_map(|j| (0..2).map(move |k| (j, k))) {
            sum += a[(i * 4 + j) * 2 + k] * b[j * 5 + l] * c[(l * 2 + k) * 3 + i];
        }
        assert!((out[i * 5 + l] - sum).abs() < 1e-5);
    }
    let cube = uniform([3, 3, 3], -1.0, 1.0);
    let diagonal = try_einsum("iii->i", &[cube.clone()]).unwrap().to_vec::<f32>();
    assert_eq!(diagonal, [0, 13, 26].map(|i| cube.to_vec::<f32>()[i]));
}

#[test]
fn long_attention_equals_its_composite() {
    let (q, kv) = (randn([2, 150, 4, 8]), uniform([2, 300, 2, 8], -1.0, 1.5));
    let run = || {
        let leaves = [&q, &kv].map(|t| t.detach().requires_grad_());
        let causal = ScaledDotProductAttentionOpts::new().is_causal(true);
        let out = leaves[0].scaled_dot_product_attention_with(&leaves[1], &leaves[1], None, causal);
        (&out * &out).sum(()).backward();
        let grads = leaves.map(|t| t.grad().unwrap().to_vec::<f32>());
        [vec![out.to_vec::<f32>()], grads.to_vec()].concat()
    };
    for (tiled, plain) in run().iter().zip(with_composites(run)) {
        assert!(tiled.iter().zip(&plain).all(|(a, b)| (a - b).abs() < 1e-4 * (1.0 + b.abs())));
    }
}

#[test]
fn wrong_attention_is_refused() {
    let (q, k) = (randn([1, 3, 2, 4]), randn([1, 5, 2, 4]));
    refused(q.try_scaled_dot_product_attention(&randn([1, 5, 2, 3]), &k, None), "query has width 4, key has 3");
    refused(q.try_scaled_dot_product_attention(&k, &randn([1, 4, 2, 4]), None), "key has length 5, value has 4");
    refused(q.try_scaled_dot_product_attention(&k, &k, Some(&randn([4, 5]))), "does not broadcast to [1, 2, 3, 5]");
    refused(randn([3, 3, 4]).try_scaled_dot_product_attention(&k, &k, None), "no batch axis");
    let three = randn([1, 5, 3, 4]);
    refused(q.try_scaled_dot_product_attention(&three, &three, None), "no multiple of the 3 heads");
    let hidden = Tensor::new([[false; 5]; 3]);
    assert_eq!(q.scaled_dot_product_attention(&k, &k, Some(&hidden)).to_vec::<f32>(), [0.0; 24]);
}

#[test]
fn a_nan_is_never_lost_in_a_decomposition() {
    for bad in [[[f64::NAN, 1.0], [1.0, 2.0]], [[1.0, f64::NAN], [0.0, 1.0]], [[0.0, 1.0], [f64::NAN, 2.0]]] {
        let x = Tensor::new(bad);
        assert!(x.det().to_f64().is_nan(), "{bad:?}");
        assert!(x.slogdet().to_f64_vec().iter().all(|v| v.is_nan()), "{bad:?}");
        // Q may be known where R is not.
        let r = &x.qr("reduced").0[1];
        assert!(r.to_f64_vec().iter().any(|v| v.is_nan()), "{bad:?}");
        // What is one whole is refused by name.
        refused(x.try_inverse(), "NaN");
        refused(x.try_svd(), "NaN");
    }
}
