//! What those who watch a thread hear: calls, failures, writes, reads, and where new tensors are put.

use sampan_core::autograd::no_grad;
use sampan_core::dispatch::{Listener, Write, listen, reading};
use sampan_core::op::OpDef;
use sampan_core::{DType, Device, Error, Tensor, Value, device, grad, i, op};
use std::cell::RefCell;
use std::rc::Rc;

/// Notes everything as text; tensors by their ids.
#[derive(Default)]
struct Notes(RefCell<Vec<String>>);

impl Notes {
    fn note(&self, text: String) {
        self.0.borrow_mut().push(text);
    }
}

impl Listener for Notes {
    fn enter(&self, op: &'static OpDef, _: &[Value]) {
        self.note(format!("enter {}", op.name));
    }
    fn exit(&self, op: &'static OpDef, _: &[Value], _: &[Tensor]) {
        self.note(format!("exit {}", op.name));
    }
    fn failed(&self, op: &'static OpDef, _: &[Value], error: &Error) {
        self.note(format!("failed {}: {}", op.name, error.message()));
    }
    fn wrote(&self, before: &Tensor, after: &Tensor, write: &Write) {
        let same = before.id() == after.id();
        let (how, values) = match write {
            Write::Op { name, values } => (*name, Some(values)),
            Write::Index { values } => ("index", Some(values)),
            Write::Value { values } => ("value", Some(values)),
            Write::Update => ("update", None),
        };
        // The written handle has the values that the call before gave.
        let right = values.is_none_or(|v| v.values_equal(after));
        self.note(format!("wrote {how} same={same} right={right}"));
    }
    fn read(&self, _: &Tensor, what: &'static str) {
        self.note(format!("read {what}"));
    }
}

trait ValuesEqual {
    fn values_equal(&self, other: &Tensor) -> bool;
}
impl ValuesEqual for Tensor {
    /// Compares without a call or a read that is noted.
    fn values_equal(&self, other: &Tensor) -> bool {
        let (a, b) = (self.data::<f32>(), other.data::<f32>());
        a.slice() == b.slice()
    }
}

/// What is heard while `f` runs.
fn heard(f: impl FnOnce()) -> Vec<String> {
    let notes = Rc::new(Notes::default());
    listen(notes.clone(), f);
    notes.0.take()
}

#[test]
fn creation_is_a_call() {
    let all = heard(|| {
        let _ =
            (Tensor::zeros([2], DType::Float32), Tensor::ones([2], DType::Int64), Tensor::full([1], 2, DType::Float32));
    });
    assert_eq!(all, ["enter zeros", "exit zeros", "enter full", "exit full", "enter full", "exit full"]);
}

#[test]
fn writes_are_heard() {
    let mut x = Tensor::new([1.0f32, -2.0]);
    assert_eq!(heard(|| _ = x.abs_()), ["enter abs", "exit abs", "wrote abs_ same=true right=true"]);
    let mut y = Tensor::new([1.0f32, 2.0]).requires_grad_().multiply(1.0);
    let id = y.id();
    assert_eq!(heard(|| _ = y.exp_()), ["enter exp", "exit exp", "wrote exp_ same=false right=true"]);
    assert_ne!(id, y.id());
    let said = heard(|| _ = x.set(i![0], 5.0));
    assert_eq!(said.first().map(String::as_str), Some("enter setitem"));
    assert_eq!(said[said.len() - 2..], ["exit setitem", "wrote index same=true right=true"]);
    let said = heard(|| x.set_value(&Tensor::new([3.0f32, 4.0])));
    assert_eq!(said, ["enter assign", "exit assign", "wrote value same=true right=true"]);
    let said = heard(|| Tensor::update(&[&x], &[], |targets, _| targets[0].fill(0)).unwrap());
    assert_eq!(said, ["wrote update same=true right=true"]);
    assert_eq!(x.to_vec::<f32>(), [0.0, 0.0]);
}

#[test]
fn failures_are_heard_at_every_level() {
    let (x, y) = (Tensor::new([[1.0f32, 2.0]]), Tensor::new([[1.0f32, 2.0]]));
    let said = heard(|| assert!(x.try_matmul(&y).is_err()));
    let begun = said.iter().filter(|s| s.starts_with("enter")).count();
    let ended = said.iter().filter(|s| s.starts_with("exit") || s.starts_with("failed")).count();
    assert_eq!(begun, ended, "{said:?}");
    assert!(said.last().is_some_and(|s| s.starts_with("failed matmul: ")), "{said:?}");
    let z = Tensor::new([1.0f32]).complex(&Tensor::new([1.0f32]));
    let said = heard(|| assert!(z.try_floor().is_err()));
    assert!(said[0] == "enter floor" && said[1].starts_with("failed floor: works on real numbers"), "{said:?}");
}

#[test]
fn reads_are_heard_once_and_by_name() {
    let x = Tensor::new([2.0f32]);
    assert_eq!(heard(|| _ = x.item()), ["read item"]);
    assert_eq!(heard(|| drop(x.to_vec::<f32>())), ["read to_vec"]);
    assert_eq!(heard(|| drop(x.to_f64_vec())), ["read to_f64_vec"]);
    assert_eq!(heard(|| drop(format!("{x}"))), ["read print"]);
    assert_eq!(heard(|| _ = f64::try_from(&x).unwrap()), ["read float"]);
    assert_eq!(heard(|| _ = bool::try_from(&Tensor::new([true])).unwrap()), ["read bool"]);
    let said = heard(|| drop(reading(&x, "numpy", || x.to_vec::<f32>())));
    assert_eq!(said, ["read numpy"]);
    let first = |said: Vec<String>| said.first().cloned().unwrap_or_default();
    assert_eq!(first(heard(|| drop(x.to_bytes()))), "read to_bytes");
    assert_eq!(first(heard(|| drop(Tensor::new([1i32]).try_to_ints().unwrap()))), "read ints");
    // An op that looks at a number is no reader: who calls it again, looks again.
    let said = heard(|| drop(Tensor::new([1.0f32, 2.0]).full_like(&x)));
    assert_eq!(said, ["enter full_like", "exit full_like"]);
}

#[test]
fn new_tensors_follow_the_device() {
    let made = device::with(Device::Meta, || {
        let nothing = [Tensor::zeros([2], DType::Float32), Tensor::full([2], 1.5, DType::Float32)];
        nothing.into_iter().chain([Tensor::arange(0, 3, 1), Tensor::randn([2])]).collect::<Vec<_>>()
    });
    assert!(made.iter().all(|t| t.device() == Device::Meta));
    assert_eq!(device::current(), Device::Cpu);
    // A call is where its inputs are, and so is what it makes on the way.
    struct Outputs(RefCell<Vec<(String, Device)>>);
    impl Listener for Outputs {
        fn exit(&self, op: &'static OpDef, _: &[Value], outputs: &[Tensor]) {
            self.0.borrow_mut().extend(outputs.iter().map(|t| (op.name.to_string(), t.device())));
        }
    }
    let found = Rc::new(Outputs(RefCell::default()));
    let x = Tensor::meta([3, 3], DType::Float32).requires_grad_();
    listen(found.clone(), || {
        let y = x.diag_embed(0, -2, -1).diagonal(0, -2, -1).square().sum(());
        grad(&[y], &[x.clone()], &[], Default::default()).unwrap();
    });
    let elsewhere: Vec<_> = found.0.take().into_iter().filter(|(_, device)| *device != Device::Meta).collect();
    assert!(elsewhere.is_empty(), "{elsewhere:?}");
    // A thread's device comes back after an error too.
    assert!(device::with(Device::Meta, || op::find("zeros").unwrap().bind(vec![], vec![])).is_err());
    assert_eq!(device::current(), Device::Cpu);
}

#[test]
fn ids_are_of_tensors_not_of_handles() {
    let x = Tensor::new([1.0f32]);
    let id = x.id();
    assert_eq!((x.clone().id(), x.id()), (id, id));
    assert!(x.detach().id() != id && x.reshape([1, 1]).id() != id && Tensor::new([1.0f32]).id() != id);
    let mut y = x.clone();
    no_grad(|| _ = y.add_(1.0));
    assert_eq!(y.id(), id);
    let ids: Vec<u64> = std::thread::scope(|s| {
        let threads: Vec<_> =
            (0..4).map(|_| s.spawn(|| (0..100).map(|_| Tensor::new([0i64]).id()).collect::<Vec<_>>())).collect();
        threads.into_iter().flat_map(|t| t.join().unwrap()).collect()
    });
    let different: std::collections::HashSet<u64> = ids.iter().copied().collect();
    assert_eq!(different.len(), ids.len());
}
