//! What we write, we read back to the bit.

use proptest::prelude::*;
use sampan_core::{DType, Tensor};
use sampan_io::events::{EventWriter, scalars};
use sampan_io::{Dict, Key, Object, npy, pdiparams, pdparams, pickle, pth, safetensors};
use std::collections::BTreeMap;

fn dtype() -> impl Strategy<Value = DType> {
    prop::sample::select(DType::ALL.to_vec())
}

fn tensor() -> impl Strategy<Value = Tensor> {
    (dtype(), prop::collection::vec(0usize..4, 0..4)).prop_flat_map(|(dtype, shape)| {
        let len = shape.iter().product::<usize>() * dtype.size();
        let byte = if dtype == DType::Bool { 0u8..=1 } else { 0..=255 };
        prop::collection::vec(byte, len).prop_map(move |bytes| Tensor::from_bytes(&bytes, dtype, &shape).unwrap())
    })
}

fn tensors() -> impl Strategy<Value = BTreeMap<String, Tensor>> {
    prop::collection::btree_map("[a-zü._/ \"\\\\]{1,12}", tensor(), 0..5)
}

fn key() -> impl Strategy<Value = Key> {
    prop_oneof![".{0,6}".prop_map(Key::Str), any::<i64>().prop_map(Key::Int)]
}

fn object() -> impl Strategy<Value = Object> {
    let leaf = prop_oneof![
        Just(Object::None),
        any::<bool>().prop_map(Object::Bool),
        any::<i64>().prop_map(Object::Int),
        any::<f64>().prop_map(Object::Float),
        ".{0,300}".prop_map(Object::Str),
        prop::collection::vec(any::<u8>(), 0..400).prop_map(Object::Bytes),
        tensor().prop_map(Object::Tensor),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Object::List),
            prop::collection::vec(inner.clone(), 0..4).prop_map(Object::Tuple),
            prop::collection::vec((key(), inner), 0..4).prop_map(|e| Object::Dict(e.into_iter().collect())),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(64) })]

    #[test]
    fn pickles(object in object(), protocol in 2u8..=4) {
        let bytes = pickle::to_bytes(&object, protocol).unwrap();
        prop_assert_eq!(pickle::from_bytes(&bytes).unwrap(), object);
    }

    #[test]
    fn paddle(object in object(), protocol in 2u8..=4) {
        let bytes = pdparams::to_bytes(&object, protocol).unwrap();
        prop_assert_eq!(pdparams::from_bytes(&bytes).unwrap(), object);
    }

    #[test]
    fn state_dicts_keep_names(tensors in tensors(), protocol in 2u8..=4) {
        tensors.iter().for_each(|(k, t)| t.set_name(format!("own {k}")));
        let bytes = pdparams::to_bytes(&(&tensors).into(), protocol).unwrap();
        let back = pdparams::from_bytes(&bytes).unwrap();
        prop_assert_eq!(&back, &Object::from(&tensors));
        for (k, t) in back.tensors() {
            prop_assert_eq!(t.name(), format!("own {k}"));
        }
    }

    #[test]
    fn pytorch(object in object()) {
        let bytes = pth::to_bytes(&object).unwrap();
        prop_assert_eq!(pth::from_bytes(&bytes).unwrap(), object);
    }

    #[test]
    fn binary(tensors in prop::collection::vec(tensor(), 0..4)) {
        let bytes = pdiparams::to_bytes(&tensors).unwrap();
        let back: Vec<_> = pdiparams::from_bytes(&bytes).unwrap().into_iter().map(Object::from).collect();
        prop_assert_eq!(back, tensors.into_iter().map(Object::from).collect::<Vec<_>>());
    }

    #[test]
    fn npy_and_npz(tensors in tensors(), compressed: bool) {
        for tensor in tensors.values() {
            let bytes = npy::to_bytes(tensor).unwrap();
            prop_assert_eq!(Object::from(npy::from_bytes(&bytes).unwrap()), Object::from(tensor));
        }
        let bytes = npy::npz_to_bytes(&tensors, compressed).unwrap();
        prop_assert_eq!(Object::from(npy::npz_from_bytes(&bytes).unwrap()), Object::from(tensors));
    }

    #[test]
    fn safetensors_and_notes(mut tensors in tensors(), notes in prop::collection::btree_map(".{0,8}", ".{0,8}", 0..4)) {
        // The format has no wide complex numbers, and we say so.
        let wide = tensors.values().any(|t| t.dtype() == DType::Complex128);
        prop_assert_eq!(safetensors::to_bytes(&tensors, &notes).is_err(), wide);
        tensors.retain(|_, t| t.dtype() != DType::Complex128);
        let bytes = safetensors::to_bytes(&tensors, &notes).unwrap();
        let back = safetensors::from_bytes(&bytes).unwrap();
        prop_assert_eq!(Object::from(back.tensors), Object::from(tensors));
        prop_assert_eq!(back.notes, notes);
    }
}

#[test]
fn views_are_saved_as_they_look() {
    let t = Tensor::new([[1i64, 2], [3, 4], [5, 6]]).t();
    assert_eq!(npy::from_bytes(&npy::to_bytes(&t).unwrap()).unwrap().to_vec::<i64>(), [1, 3, 5, 2, 4, 6]);
}

#[test]
fn logged_scalars() {
    let folder = crate::Folder::new();
    let mut log = EventWriter::create(&folder.0).unwrap();
    for step in 0..25 {
        log.scalar("a/b", step as f32, step).unwrap();
        log.text("t", "words", step).unwrap();
        log.histogram("h", &Tensor::new([f32::NAN, 1.0, 2.0]), step).unwrap();
    }
    let path = log.path().to_path_buf();
    drop(log);
    let back: Vec<_> = scalars(path).unwrap().into_iter().map(|s| (s.tag, s.step, s.value)).collect();
    assert_eq!(back, (0..25).map(|i| ("a/b".to_string(), i, i as f32)).collect::<Vec<_>>());
    let again = EventWriter::resume(&folder.0, 10).unwrap();
    assert_eq!(scalars(again.path()).unwrap(), []);
    assert_eq!(std::fs::read_dir(&folder.0).unwrap().count(), 2);
}

#[test]
fn dicts_keep_order_and_the_last_value() {
    let mut dict: Dict = [("b", 1i64), ("a", 2), ("b", 3), ("c", 4)].into_iter().collect();
    assert_eq!(dict.remove("a"), Some(Object::Int(2)));
    let entries: Vec<_> = dict.iter().map(|(k, v)| (k.to_string(), v.as_int().unwrap())).collect();
    assert_eq!(entries, [("b".to_string(), 3), ("c".to_string(), 4)]);
    assert_eq!(dict.get("c"), Some(&Object::Int(4)));
}

#[test]
fn values_follow_each_other() {
    let array = || Tensor::new([1i64, 2]);
    let first = Object::List(vec![Tensor::new([1.0f32]).into(), Object::Array(array())]);
    let mut bytes = pdparams::to_bytes(&first, 4).unwrap();
    let end = bytes.len();
    bytes.extend(pdparams::to_bytes(&Object::Int(3), 2).unwrap());
    assert_eq!(sampan_io::load_bytes(&bytes, false).unwrap(), (first, end));
    assert_eq!(sampan_io::load_bytes(&bytes[end..], false).unwrap(), (Object::Int(3), bytes.len() - end));
    // Where there is no tensor beside it, an array is one, as in Paddle.
    let alone = pdparams::to_bytes(&Object::Array(array()), 4).unwrap();
    assert_eq!(pdparams::from_bytes(&alone).unwrap(), Object::Tensor(array()));
    assert!(sampan_io::load_bytes(&[], false).unwrap_err().to_string().contains("nothing left"));
}

#[test]
fn a_table_of_names_stays_where_it_is_wanted() {
    let weight = Tensor::new([1.0f32]);
    weight.set_name("fc.w_0");
    let state: Dict = [("w", Object::from(weight))].into_iter().collect();
    let bytes = pdparams::to_bytes(&state.into(), 4).unwrap();
    let (found, _) = sampan_io::load_bytes(&bytes, true).unwrap();
    let names = found.as_dict().and_then(|d| d.get("StructuredToParameterName@@")).and_then(Object::as_dict);
    assert_eq!(names.and_then(|n| n.get("w")).and_then(Object::as_str), Some("fc.w_0"));
    assert_eq!(pdparams::from_bytes(&bytes).unwrap().as_dict().map(Dict::len), Some(1));
}
