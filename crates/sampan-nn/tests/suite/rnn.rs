//! Recurrent layers: sequences of different lengths, cells of one's own, names and errors.

use sampan_core::dispatch::{Listener, listen};
use sampan_core::op::OpDef;
use sampan_core::ops::joining::concat;
use sampan_core::{DType, Device, GradOptions, Result, Tensor, Value, grad};
use sampan_nn::{
    Base, BiRNN, GRU, GRUCell, LSTM, LSTMCell, Layer, LayerId, Linear, Members, Observer, RNN, RnnCell, SimpleRNN,
    SimpleRNNCell, Step, observe, utils,
};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

fn close(a: &Tensor, b: &Tensor) -> bool {
    a.shape() == b.shape() && (a - b).abs().max(()).to_f64() < 1e-6
}

#[test]
fn a_padded_sequence_gives_what_it_gives_alone() {
    let lstm = LSTM::with(3, 4, |o| o.num_layers(2).direction("bidirect"));
    let x = Tensor::randn([2, 5, 3]);
    let (y, (h, c)) = lstm.run(&x, None, Some(&Tensor::new([5i64, 2]))).unwrap();
    let (alone, (h1, c1)) = lstm.run(&x.narrow(0, 1, 1).narrow(1, 0, 2), None, None).unwrap();
    assert!(close(&y.narrow(0, 1, 1).narrow(1, 0, 2), &alone));
    assert!(close(&h.narrow(1, 1, 1), &h1) && close(&c.narrow(1, 1, 1), &c1));
    assert_eq!(y.narrow(0, 1, 1).narrow(1, 2, 3).abs().sum(()).to_f64(), 0.0);
}

#[test]
fn a_sequence_can_be_walked_in_two_parts() {
    let (gru, x) = (GRU::with(3, 4, |o| o.num_layers(2)), Tensor::randn([2, 6, 3]));
    let (whole, end) = gru.run(&x, None, None).unwrap();
    let (first, middle) = gru.run(&x.narrow(1, 0, 2), None, None).unwrap();
    let (second, last) = gru.run(&x.narrow(1, 2, 4), Some(&middle), None).unwrap();
    assert!(close(&whole, &concat(&[first, second], 1)) && close(&end, &last));
}

#[test]
fn time_major_only_changes_the_order_of_axes() {
    let rnn = SimpleRNN::with(3, 4, |o| o.direction("bidirect"));
    let other = SimpleRNN::with(3, 4, |o| o.direction("bidirect").time_major(true));
    other.set_state_dict(&rnn.state_dict()).unwrap();
    let (x, lengths) = (Tensor::randn([2, 5, 3]), Tensor::new([3i64, 5]));
    let (y, h) = rnn.run(&x, None, Some(&lengths)).unwrap();
    let (y1, h1) = other.run(&x.transpose([1, 0, 2]), None, Some(&lengths)).unwrap();
    assert!(close(&y, &y1.transpose([1, 0, 2])) && close(&h, &h1));
}

/// A cell without states of interest: adds up its inputs.
#[derive(sampan_nn::Layer)]
struct Sum {
    base: Base,
    scale: Linear,
}

impl Layer for Sum {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        self.scale.call(x)
    }
}

impl RnnCell for Sum {
    fn input_size(&self) -> usize {
        2
    }
    fn state_sizes(&self) -> Vec<usize> {
        vec![2]
    }
    fn step(&self, x: &Tensor, states: &[Tensor]) -> Result<Step> {
        let sum = self.scale.call(x)?.try_add(&states[0])?;
        Ok((sum.clone(), vec![sum]))
    }
}

#[test]
fn a_cell_of_one_s_own_walks_in_both_directions() {
    let cell = || {
        let scale = Linear::new(2, 2);
        scale.weight.tensor().set_value(&Tensor::new([[1.0f32, 0.0], [0.0, 1.0]]));
        Sum { base: Base::new("sum"), scale }
    };
    let x = Tensor::new([[[1.0f32, 10.0], [2.0, 20.0], [3.0, 30.0]]]);
    let forward = Arc::new(cell());
    let rnn = BiRNN::new(forward.clone(), cell());
    assert!(rnn.parameters()[0].is_same(&forward.scale.weight));
    let (y, (fw, bw)) = rnn.run(&x, None, Some(&Tensor::new([2i64]))).unwrap();
    assert_eq!(y.to_vec::<f32>(), [1.0, 10.0, 3.0, 30.0, 3.0, 30.0, 2.0, 20.0, 6.0, 60.0, 3.0, 30.0]);
    assert_eq!((fw[0].to_vec::<f32>(), bw[0].to_vec::<f32>()), (vec![3.0, 30.0], vec![3.0, 30.0]));
    assert_eq!(rnn.named_parameters()[0].0, "cell_fw.scale.weight");
}

#[test]
fn parameters_are_listed_beside_the_layers_and_counted_once() {
    let lstm = LSTM::with(3, 4, |o| o.num_layers(2).direction("bidirect"));
    let names: Vec<String> = lstm.named_parameters().into_iter().map(|(name, _)| name).collect();
    assert_eq!(names.len(), 16);
    assert_eq!((&*names[0], &*names[4], &*names[15]), ("weight_ih_l0", "weight_ih_l0_reverse", "bias_hh_l1_reverse"));
    let state = lstm.state_dict();
    assert_eq!(state.len(), 32);
    state["weight_hh_l1"].set_value(&state["weight_hh_l1"].zeros_like());
    assert_eq!(state["1.cell_fw.weight_hh"].abs().sum(()).to_f64(), 0.0);
}

#[test]
fn parameters_that_are_not_wanted_are_fixed() {
    let gru = GRU::with(3, 4, |o| o.bias_ih_attr(false).weight_hh_attr(false));
    let cell = "0.cell.";
    let state = gru.state_dict();
    assert!(!state.contains_key("bias_ih_l0") && state.contains_key("bias_hh_l0"));
    assert_eq!(state[&format!("{cell}bias_ih")].abs().sum(()).to_f64(), 0.0);
    assert_eq!(state[&format!("{cell}weight_hh")].mean(()).to_f64(), 1.0);
    assert!(state[&format!("{cell}weight_hh")].stop_gradient() && !state[&format!("{cell}weight_ih")].stop_gradient());
}

#[test]
fn weight_norm_reaches_into_a_stack() {
    let (lstm, x) = (LSTM::new(3, 4), Tensor::randn([2, 5, 3]));
    let before = lstm.call(&x).unwrap();
    utils::weight_norm(&lstm, "0.cell.weight_hh", Some(0)).unwrap();
    let after = lstm.call(&x).unwrap();
    assert!(close(&before, &after));
    after.sum(()).backward();
    let g = lstm.named_parameters().into_iter().find(|(name, _)| name == "0.cell.weight_hh_g").unwrap().1;
    assert_eq!(g.grad().unwrap().shape(), [16]);
}

#[test]
fn dropout_acts_between_layers_in_training_only() {
    let (rnn, x) = (GRU::with(3, 4, |o| o.num_layers(2).dropout(0.5)), Tensor::randn([2, 5, 3]));
    let call = || rnn.call(&x).unwrap();
    assert!(!close(&call(), &call()));
    rnn.eval();
    assert!(close(&call(), &call()));
}

#[test]
fn wrong_arguments_and_inputs_are_refused() {
    let text = |r: Result<()>| r.unwrap_err().to_string();
    assert!(text(LSTM::try_with(3, 4, |o| o.direction("backward")).map(|_| ())).contains("\"backward\""));
    assert!(text(LSTMCell::try_with(3, 4, |o| o.proj_size(4)).map(|_| ())).contains("proj_size 4"));
    assert!(text(SimpleRNNCell::try_with(3, 4, |o| o.activation("gelu")).map(|_| ())).contains("\"gelu\""));
    assert!(text(GRUCell::try_new(3, 0).map(|_| ())).contains("hidden_size"));
    assert!(text(BiRNN::try_new(GRUCell::new(3, 4), GRUCell::new(2, 4)).map(|_| ())).contains("cell_bw 2"));
    let lstm = LSTM::new(3, 4);
    let call = |shape: &[usize], states: &[&[usize]], lengths: Option<Tensor>| {
        let mut inputs = vec![Tensor::randn(shape)];
        inputs.extend(states.iter().map(|s| Tensor::randn(*s)));
        inputs.extend(lengths);
        text(lstm.call_all(&inputs).map(|_| ()))
    };
    let e = call(&[2, 5, 4], &[], None);
    assert!(e.contains("4 features") && e.contains("In: LSTM.0 (RNN)"), "{e}");
    assert!(call(&[2, 5], &[], None).contains("[2, 5]"));
    assert!(call(&[2, 0, 3], &[], None).contains("no steps"));
    assert!(call(&[2, 5, 3], &[&[1, 2, 4]], None).contains("2 states or none"));
    assert!(call(&[2, 5, 3], &[&[1, 2, 4], &[2, 2, 4]], None).contains("[1, 2, 4], got [2, 2, 4]"));
    assert!(call(&[2, 5, 3], &[], Some(Tensor::new([5i64]))).contains("sequence_length"));
    assert!(text(RNN::new(GRUCell::new(3, 4)).run(&Tensor::randn([2, 3]), None, None).map(|_| ())).contains("[2, 3]"));
}

/// The outermost calls.
#[derive(Default)]
struct Outermost(Cell<usize>, RefCell<Vec<&'static str>>);
impl Listener for Outermost {
    fn enter(&self, op: &'static OpDef, _: &[Value]) {
        if self.0.replace(self.0.get() + 1) == 0 {
            self.1.borrow_mut().push(op.name);
        }
    }
    fn exit(&self, _: &'static OpDef, _: &[Value], _: &[Tensor]) {
        self.0.set(self.0.get() - 1);
    }
}

struct Watcher;
impl Observer for Watcher {
    fn exit(&self, _: LayerId, _: &'static str, _: &[Tensor], _: &[Tensor]) {}
}

#[test]
fn a_stack_is_one_call_with_the_bits_of_its_layers() {
    let x = Tensor::randn([2, 5, 3]);
    let lengths = Tensor::new([5i64, 2]);
    let stacks: [Box<dyn Layer>; 4] = [
        Box::new(SimpleRNN::with(3, 4, |o| o.num_layers(2).activation("relu"))),
        Box::new(LSTM::with(3, 4, |o| o.num_layers(2).direction("bidirect"))),
        Box::new(LSTM::with(3, 4, |o| o.proj_size(2))),
        Box::new(GRU::with(3, 4, |o| o.direction("bidirect"))),
    ];
    for stack in &stacks {
        for inputs in [vec![x.clone()], vec![x.clone(), lengths.clone()]] {
            let calls = Rc::new(Outermost::default());
            let whole = listen(calls.clone(), || stack.call_all(&inputs)).unwrap();
            assert_eq!(*calls.1.borrow(), ["rnn"]);
            let apart = observe(Rc::new(Watcher), || stack.call_all(&inputs)).unwrap();
            let leaves: Vec<Tensor> = stack.parameters().iter().map(|p| p.tensor()).collect();
            let slopes = |out: &Tensor| {
                let options = GradOptions { allow_unused: true, ..Default::default() };
                grad(&[out.square().sum(())], &leaves, &[], options).unwrap()
            };
            for (a, b) in whole.iter().zip(&apart) {
                assert_eq!(a.to_vec::<f32>(), b.to_vec::<f32>());
            }
            for (a, b) in slopes(&whole[0]).iter().zip(slopes(&apart[0])) {
                assert_eq!(a.as_ref().map(Tensor::to_vec::<f32>), b.as_ref().map(Tensor::to_vec::<f32>));
            }
        }
        let shapes = stack.call_all(&[Tensor::meta([2, 5, 3], DType::Float32)]).unwrap();
        assert!(shapes.iter().all(|t| t.device() == Device::Meta));
    }
}
