//! Sequential, lists and maps.

use sampan_core::Tensor;
use sampan_nn::*;
use std::sync::Arc;

fn row(n: usize) -> Tensor {
    Tensor::from_vec((0..n).map(|i| i as f32).collect(), [1, n])
}

#[test]
fn a_sequence_changes_and_keeps_its_names_in_order() {
    let mut net = sequential![Linear::new(3, 4), ReLU::new()];
    net.append(Linear::new(5, 2));
    net.insert(2, Linear::new(4, 5)).unwrap();
    assert_eq!(net.names(), ["0", "1", "2", "3"]);
    assert_eq!(net.call(&row(3)).unwrap().shape(), [1, 2]);
    assert_eq!(net.get::<Linear>(-2).unwrap().weight.shape(), [4, 5]);
    assert!(net.get::<ReLU>(0).is_none() && net.get::<Linear>(9).is_none());
    assert!(net.insert(5, ReLU::new()).is_err() && net.insert(-5, ReLU::new()).is_err());
    net.insert(-1, ReLU::new()).unwrap();
    assert_eq!(net.len(), 5);
    net.remove(-1).unwrap();
    assert_eq!(net[2].call(&row(4)).unwrap().shape(), [1, 5]);
    assert_eq!(net.remove(9).err().unwrap().message(), "index 9 is out of range [-4, 4)");
}

#[test]
fn a_slice_shares_its_layers() {
    let net = sequential!["a" => Linear::new(2, 2), "b" => Linear::new(2, 2), "c" => Linear::new(2, 2)];
    let tail = net.slice(1..);
    assert_eq!(tail.names(), ["0", "1"]);
    assert!(tail.get::<Linear>(0).unwrap().weight.is_same(&net.get::<Linear>(1).unwrap().weight));
    assert_eq!((net.slice(..=0).len(), net.slice(2..9).len(), net.slice(5..).len()), (1, 1, 0));
    assert_eq!(net["b"].named_parameters()[0].0, "weight");
    // A shared layer goes in as it is, so it can still be asked for by its type.
    let shared: AnyLayer = Arc::new(Linear::new(2, 2));
    let both: Sequential = [shared.clone(), shared].into_iter().collect();
    assert!(both.get::<Linear>(1).is_some());
    assert_eq!(both.named_parameters().len(), 2);
}

#[test]
fn several_outputs_go_from_layer_to_layer() {
    let net = sequential![MaxPool1D::with(2, |o| o.return_mask(true)), MaxUnPool1D::new(2)];
    let y = net.call_all(&[Tensor::new([[[1.0f32, 2.0, 4.0, 3.0]]])]).unwrap();
    assert_eq!(y[0].to_vec::<f32>(), [0.0, 2.0, 4.0, 0.0]);
}

#[test]
fn lists_and_maps_hold_members_and_do_not_run() {
    let mut list: LayerList = (1..4).map(|n| Linear::new(n, 1)).collect();
    list.append(ReLU::new()).insert(0, Identity::new()).unwrap();
    assert_eq!(list.len(), 5);
    assert_eq!(list.iter().count(), (&list).into_iter().count());
    list.set(-1, Linear::new(7, 1)).unwrap();
    list.pop(0).unwrap();
    assert_eq!(list.named_parameters().iter().filter(|(n, _)| n.ends_with("weight")).count(), 4);
    assert_eq!(list.get::<Linear>(3).unwrap().weight.shape(), [7, 1]);
    let error = list.call(&row(1)).unwrap_err().to_string();
    assert!(error.contains("a LayerList has no forward") && error.contains("In: LayerList"), "{error}");

    let mut map = LayerDict::new();
    assert!(map.insert("z", Linear::new(1, 2)).is_none());
    map.insert("a", ReLU::new());
    assert!(map.insert("z", Linear::new(1, 3)).is_some());
    assert_eq!(map.keys().collect::<Vec<_>>(), ["z", "a"]);
    assert_eq!(map["z"].call(&row(1)).unwrap().shape(), [1, 3]);
    map.update([("b", Arc::new(Identity::new()) as AnyLayer)]);
    assert!(map.contains("b") && map.pop("a").is_some() && map.pop("a").is_none());
    assert_eq!(map.len(), 2);
    map.clear();
    assert!(map.is_empty());

    let mut parameters = ParameterList::new();
    parameters.append(Parameter::new(row(2))).append(Parameter::new(row(3)));
    assert_eq!(parameters[1].shape(), [1, 3]);
    assert_eq!(parameters.state_dict().keys().cloned().collect::<Vec<_>>(), ["0", "1"]);
    assert_eq!(parameters.base().unwrap().full_name().rsplit_once('_').unwrap().0, "parameter_list");
}
