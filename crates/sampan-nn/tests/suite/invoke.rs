//! Calls as another language makes them, and layers of its own in the place of others.

use sampan_core::{DType, Object, Tensor, Value};
use sampan_nn::{
    Apply, AttentionCache, Conv2DTranspose, CrossEntropyLoss, Layer, Linear, MaxUnPool2D, Members, MultiHeadAttention,
    TransformerEncoder, TransformerEncoderLayer, call_values,
};
use std::sync::{Arc, Mutex};

fn text(result: sampan_core::Result<Value>) -> String {
    result.map(|_| ()).unwrap_err().to_string()
}

#[test]
fn inputs_are_bound_by_position_or_by_name() {
    let (x, label) = (Tensor::randn([2, 3]), Tensor::new([0i64, 2]));
    let loss = CrossEntropyLoss::new();
    let Ok(Value::Tensor(a)) = loss.invoke(vec![(&x).into(), (&label).into()], vec![]) else { panic!("one tensor") };
    let named = vec![("label", (&label).into()), ("input", (&x).into())];
    let Ok(Value::Tensor(b)) = loss.invoke(vec![], named) else { panic!("one tensor") };
    assert_eq!(a.to_f64(), b.to_f64());
    assert!(text(loss.invoke(vec![(&x).into()], vec![])).contains("argument `label` is missing"));
    assert!(text(loss.invoke(vec![(&x).into(), 3.into()], vec![])).contains("`label` must be a Tensor, got"));
    assert!(text(Linear::new(3, 1).invoke(vec![], vec![("y", (&x).into())])).contains("has no argument `y`"));
    assert!(Linear::new(3, 1).invoke(vec![], vec![("input", (&x).into())]).is_ok());
}

#[test]
fn what_a_layer_leaves_open_may_be_given_in_a_call() {
    let x = Tensor::ones([1, 2, 2, 2], DType::Float32);
    let up = Conv2DTranspose::with(2, 1, 3, |o| o.stride(2));
    let size = || Value::from(vec![6i64, 6]);
    let Ok(Value::Tensor(y)) = up.invoke(vec![(&x).into(), size()], vec![]) else { panic!("one tensor") };
    assert_eq!(y.shape(), [1, 1, 6, 6]);
    let places = Tensor::zeros([1, 2, 2, 2], DType::Int32);
    let args = || vec![(&x).into(), (&places).into()];
    let unpool = |named| MaxUnPool2D::new(2).invoke(args(), named);
    let Ok(Value::Tensor(y)) = unpool(vec![("output_size", vec![5i64, 5].into())]) else { panic!("one tensor") };
    assert_eq!(y.shape(), [1, 2, 5, 5]);
    assert!(text(unpool(vec![("kernel_size", 3.into())])).contains("has no argument `kernel_size`"));
}

#[test]
fn attention_takes_and_gives_caches() {
    let attention = MultiHeadAttention::new(8, 2);
    let x = Tensor::randn([1, 3, 8]);
    let cache = attention.gen_cache(&x).unwrap();
    let named = vec![("cache", Value::Object(Object::new(cache)))];
    let Ok(Value::List(out)) = attention.invoke(vec![(&x).into()], named) else { panic!("output and cache") };
    let Value::Object(cache) = &out[1] else { panic!("a cache") };
    assert_eq!(cache.downcast::<AttentionCache>().unwrap().parts().0.shape(), [1, 2, 3, 4]);
    assert!(text(attention.invoke(vec![(&x).into()], vec![("cache", 3.into())])).contains("`cache` must be a Cache"));
}

#[test]
fn a_stand_in_sees_all_arguments_of_an_inner_call() {
    let encoder = TransformerEncoder::new(TransformerEncoderLayer::new(8, 2, 16), 1);
    let seen = Arc::new(Mutex::new(Vec::new()));
    let note = seen.clone();
    let attention = encoder.layer(0).unwrap().self_attn.base().unwrap();
    attention.set_stand_in(Some(Arc::new(move |args: Vec<Value>| {
        *note.lock().unwrap() = args.iter().map(Value::type_name).collect();
        Ok(args.into_iter().next())
    })));
    let (x, mask) = (Tensor::randn([1, 3, 8]), Tensor::zeros([3, 3], DType::Float32));
    encoder.run(&x, Some(&mask), None).unwrap();
    let tensor = Value::from(&mask).type_name();
    assert_eq!(*seen.lock().unwrap(), [tensor, tensor, tensor, tensor, Value::None.type_name()]);
    attention.set_stand_in(None);
    let y = call_values(&encoder, vec![(&x).into(), (&mask).into()]).unwrap();
    assert!(matches!(y, Value::Tensor(_)));
}

#[test]
fn a_parameter_can_stand_for_another_one() {
    let (a, b) = (Linear::new(2, 2), Linear::new(2, 2));
    let x = Tensor::randn([1, 2]);
    let own = x.apply(&a).unwrap().to_vec::<f32>();
    a.weight.share(&b.weight);
    assert_eq!(x.apply(&a).unwrap().to_vec::<f32>(), x.apply(&b).unwrap().to_vec::<f32>());
    assert!(a.named_parameters().iter().any(|(name, p)| name == "weight" && p.is_same(&b.weight)));
    a.weight.set_given(Tensor::zeros([2, 3], DType::Float32));
    assert_eq!(a.weight.shape(), [2, 3]);
    a.weight.share(&a.weight);
    assert_eq!(x.apply(&a).unwrap().to_vec::<f32>(), own);
}
