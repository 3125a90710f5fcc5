//! Functions that are no ops: attention under the names of its kernels, shapes, and calls by name.

use sampan_core::ops::attention::ScaledDotProductAttentionOpts;
use sampan_core::ops::flash_attention::*;
use sampan_core::ops::sparse_attention::*;
use sampan_core::{DType, Tensor, Value, function};

fn wave(shape: &[usize], step: f64) -> Tensor {
    let n = shape.iter().product::<usize>();
    Tensor::from_vec((0..n).map(|i| (step * i as f64).sin() as f32).collect(), shape)
}

fn close(x: &Tensor, want: &[f64]) {
    let x = x.to_f64_vec();
    assert_eq!(x.len(), want.len());
    assert!(x.iter().zip(want).all(|(a, b)| (a - b).abs() < 2e-6), "{x:?} against {want:?}");
}

fn one(v: Value) -> Tensor {
    let Value::Tensor(t) = v else { panic!("{v:?} is not one tensor") };
    t
}

/// The numbers are PaddlePaddle's.
#[test]
fn packed_attention_is_paddles() {
    let qkv = wave(&[1, 3, 3, 2, 2], 0.37);
    let run = |causal| flash_attn_qkvpacked(&qkv, 0.0, causal, true, None, "", true).unwrap();
    let last = [0.203481, 0.107946, 0.109779, 0.193394];
    let first = [0.19997, 0.158779, 0.161771, -0.011029, -0.218732, 0.004999, 0.087231, 0.293734];
    close(&run(false).out, &[&first[..], &last].concat());
    let first = [0.180596, -0.187295, -0.529836, -0.800667, 0.77726, 0.796274, 0.287899, 0.074112];
    close(&run(true).out, &[&first[..], &last].concat());
    let weights = run(true).softmax.unwrap();
    close(&weights.get((0, 0)), &[1.0, 0.0, 0.0, 0.169122, 0.830878, 0.0, 0.512837, 0.277962, 0.2092]);
    let plain = flash_attn_qkvpacked(&qkv, 0.0, true, false, None, "", true).unwrap();
    close(&plain.out, &run(true).out.to_f64_vec());
    assert!(plain.softmax.is_none());
}

#[test]
fn each_sequence_attends_to_itself() {
    let (q, k, v) = (wave(&[7, 4, 3], 0.3), wave(&[8, 2, 3], 0.7), wave(&[8, 2, 3], 1.1));
    let (ends_q, ends_k) = (Tensor::new([0i32, 3, 5, 5, 7]), Tensor::new([0i32, 3, 6, 6, 8]));
    let opts = ScaledDotProductAttentionOpts::new().scale(0.4);
    let part = |i: usize, causal: bool| {
        let [q0, q1, k0, k1] = [[0, 3, 0, 3], [3, 5, 3, 6], [5, 7, 6, 8]][i];
        let (q, k, v) = (q.get(q0..q1), k.get(k0..k1), v.get(k0..k1));
        // With two queries for three keys, the first query sees two keys.
        let mask = Tensor::new([[0.0f32, 0.0, f32::NEG_INFINITY], [0.0; 3]]);
        let (mask, causal) = if i == 1 && causal { (Some(&mask), false) } else { (None, causal) };
        q.scaled_dot_product_attention_with(&k, &v, mask, opts.clone().is_causal(causal)).to_f64_vec()
    };
    for causal in [false, true] {
        let found =
            flash_attn_unpadded(&q, &k, &v, &ends_q, &ends_k, 3, 3, 0.4, 0.0, causal, true, None, "", true).unwrap();
        close(&found.out, &[part(0, causal), part(1, causal), part(2, causal)].concat());
        let weights = found.softmax.unwrap();
        assert_eq!(weights.shape(), [4, 4, 3, 3]);
        close(&weights.sum(-1).get((.., 0)), &[1., 1., 1., 1., 1., 0., 0., 0., 0., 1., 1., 0.]);
    }
    // The same rows with room for three each, packed with their keys and values.
    let qkv = wave(&[6, 4, 2, 3], 0.5);
    let ends = Tensor::new([0i32, 2, 5]);
    let packed = |rows: &Tensor, padded| {
        flash_attn_varlen_qkvpacked(rows, &ends, &ends, 3, 3, 0.4, 0.0, true, false, None, "", padded, true)
            .unwrap()
            .out
    };
    let joined = sampan_core::ops::joining::concat(&[qkv.get(0..2), qkv.get(3..6)], 0);
    let (roomy, tight) = (packed(&qkv, true), packed(&joined, false));
    close(&roomy.get(0..2), &tight.get(0..2).to_f64_vec());
    close(&roomy.get(2), &[0.0; 12]);
    close(&roomy.get(3..6), &tight.get(2..5).to_f64_vec());
}

/// Against a mask written out, key by key as the rule says.
#[test]
fn flash_masks_hide_ranges_of_rows() {
    let (n, m) = (5usize, 5usize);
    let (q, k, v) = (wave(&[2, n, 4, 3], 0.3), wave(&[2, m, 2, 3], 0.7), wave(&[2, m, 2, 3], 1.1));
    for (causal, numbers, heads) in [(true, 1, 1), (true, 2, 2), (false, 2, 4), (false, 4, 2)] {
        let count = 2 * heads * m * numbers;
        let rows: Vec<i32> = (0..count).map(|i| ((i * 7 + i / 3) % 6) as i32).collect();
        let at = |b: usize, h: usize, j: usize| &rows[((b * heads + h) * m + j) * numbers..][..numbers];
        let mut mask = Vec::new();
        for (b, h) in (0..2).flat_map(|b| (0..4).map(move |h| (b, h * heads / 4))) {
            for (i, j) in (0..n).flat_map(|i| (0..m).map(move |j| (i, j))) {
                let (row, r) = (i as i32, at(b, h, j));
                let hidden = match (causal, numbers) {
                    (true, 1) => row >= r[0],
                    (true, _) => (r[0]..r[1]).contains(&row),
                    (false, 2) => row >= r[0] || row < r[1],
                    _ => (r[0]..r[1]).contains(&row) || (r[2]..r[3]).contains(&row),
                };
                mask.push(if hidden || causal && j > i { f32::NEG_INFINITY } else { 0.0 });
            }
        }
        let mask = Tensor::from_vec(mask, [2, 4, n, m]);
        let expected = q.scaled_dot_product_attention(&k, &v, Some(&mask));
        let rows = Tensor::from_vec(rows, [2, heads, m, numbers]);
        let call = |lse: bool| {
            let rows = Some(&rows);
            flashmask_attention(&q, &k, &v, rows, 0.0, causal, None, lse, false, None, "", true, None, None).unwrap()
        };
        close(&one(call(false)), &expected.to_f64_vec());
        assert!(matches!(call(true), Value::Tensors(both) if both[1].shape() == [2, 4, n]));
    }
    for (causal, window) in [(true, &[1][..]), (false, &[1, 2])] {
        let far = |i: i64| i / 5 - i % 5 > window[0] || !causal && i % 5 - i / 5 > *window.last().unwrap();
        let hidden = |i: i64| if far(i) { f32::NEG_INFINITY } else { 0.0 };
        let mask = Tensor::from_vec((0..25).map(hidden).collect(), [5, 5]);
        let opts = ScaledDotProductAttentionOpts::new().is_causal(causal);
        let expected = q.scaled_dot_product_attention_with(&k, &v, Some(&mask), opts);
        let (window, off) = (Some(window), false);
        let found = flashmask_attention(&q, &k, &v, None, 0.0, causal, window, off, off, None, "", true, None, None);
        close(&one(found.unwrap()), &expected.to_f64_vec());
    }
}

/// The numbers are those of PaddlePaddle's documentation; its kernel runs on graphics cards only.
#[test]
fn sparse_attention_sees_its_columns() {
    let x = Tensor::new([[[[0.0f32, 1.0], [2.0, 3.0], [0.0, 1.0], [2.0, 3.0]]]]);
    let offset = Tensor::new([[[0i32, 2, 4, 6, 8]]]);
    let columns = Tensor::new([[[0i32, 1, 0, 1, 2, 3, 2, 3]]]);
    let plain = sparse_attention(&x, &x, &x, &offset, &columns, None, None).unwrap();
    let rows = [1.60885942, 2.60885954, 1.9983027, 2.9983027];
    close(&plain, &[rows, rows].concat());
    let keys = Tensor::new([[1.0f32, 1.0, 1.0, 0.0]]);
    let pairs = Tensor::new([[1.0f32, 0.0, 1.0, 1.0], [1.0; 4], [1.0; 4], [1.0; 4]]);
    let masked = sparse_attention(&x, &x, &x, &offset, &columns, Some(&keys), Some(&pairs)).unwrap();
    close(&masked, &[0.0, 1.0, 1.9983027, 2.9983027, 0.0, 1.0, 0.0, 1.0]);
    let wrong = sparse_attention(&x, &x, &x, &offset, &(&columns + 3), None, None).unwrap_err().to_string();
    assert!(wrong.contains("there is no key"), "{wrong}");
}

#[test]
fn shapes_and_attention_are_called_by_name() {
    let call = |module: &str, name: &str, args: Vec<Value>| function::find(module, name).unwrap().call(args, vec![]);
    let shapes = |v: &[&[i64]]| Value::List(v.iter().map(|&s| s.into()).collect());
    let ints = |v: Value| if let Value::Ints(v) = v { v.to_vec() } else { panic!("{v:?}") };
    let [x, y] = [[2i64, 1, 3], [1, 3, 1]].map(Value::from);
    assert_eq!(ints(call("", "broadcast_shape", vec![x, y]).unwrap()), [2, 3, 3]);
    assert_eq!(ints(call("", "broadcast_shapes", vec![shapes(&[&[2, 1], &[3], &[1, 1, 1]])]).unwrap()), [1, 2, 3]);
    let error = call("", "broadcast_shape", vec![vec![2i64].into(), vec![3i64].into()]).unwrap_err().to_string();
    assert!(error.contains("broadcast_shape") && error.contains("cannot be broadcast"), "{error}");
    let x = Tensor::ones([1, 4, 3, 2, 8], DType::Float16);
    let Value::List(parts) = call("nn.functional", "flash_attn_qkvpacked", vec![x.into()]).unwrap() else { panic!() };
    assert!(matches!(&parts[..], [Value::Tensor(t), Value::None] if t.shape() == [1, 4, 2, 8]));
}

#[test]
fn a_handle_moves_to_other_memory() {
    let mut source = Tensor::new([[0i64, 1, 2], [3, 4, 5]]);
    let mut x = Tensor::new([7.0f32]);
    x.try_set_(Some(&source), None, None, 0).unwrap();
    assert!(x.shares_memory(&source) && x.dtype() == DType::Int64 && x.shape() == [2, 3]);
    x.try_set_(Some(&source), Some(&[2, 2]), Some(&[3, 1]), 8).unwrap();
    source.set((1, 1), 40i64);
    assert_eq!(x.to_vec::<i64>(), [1, 2, 40, 5]);
    assert!(x.try_set_(Some(&source), Some(&[7]), None, 0).is_err());
    let turned = source.transpose([1, 0]);
    assert!(x.try_set_(Some(&turned), Some(&[2]), None, 0).unwrap_err().to_string().contains("gaps"));
    x.try_set_(Some(&turned), None, None, 0).unwrap();
    assert_eq!(x.to_vec::<i64>(), [0, 3, 1, 40, 2, 5]);
    x.try_set_(None, None, None, 0).unwrap();
    assert_eq!(x.shape(), [0]);

    let mut row = source.get(1);
    row.try_resize_(&[2], false).unwrap();
    assert!(row.shares_memory(&source) && row.to_vec::<i64>() == [3, 40]);
    assert!(row.try_resize_(&[3], false).unwrap_err().to_string().contains("fill_zero"));
    row.try_resize_(&[2, 2], true).unwrap();
    assert_eq!(row.to_vec::<i64>(), [3, 40, 0, 0]);
    let mut leaf = Tensor::new([1.0f32, 2.0]).requires_grad_();
    assert!(leaf.try_resize_(&[1], false).is_err() && leaf.try_set_(None, None, None, 0).is_err());
}
