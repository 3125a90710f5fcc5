//! What layers do around their mathematics: hooks, errors, shared and frozen weights, states, dtypes, names.

use sampan_core::{DType, Result, Tensor, Value, class};
use sampan_nn::*;
use std::collections::{BTreeMap, HashSet};
use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

#[derive(Layer)]
struct Net {
    base: Base,
    fc1: Linear,
    fc2: Linear,
}

impl Net {
    fn new(hidden: usize) -> Net {
        Net { base: Base::new("net"), fc1: Linear::new(3, 4), fc2: Linear::new(hidden, 2) }
    }
}

impl Layer for Net {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        x.apply(&self.fc1)?.apply(&self.fc2)
    }
}

fn ones(shape: &[usize]) -> Tensor {
    Tensor::ones(shape, DType::Float32)
}

#[test]
fn an_error_says_where_in_the_network_it_arose() {
    let net = Net::new(5);
    let error = net.call(&ones(&[1, 3])).unwrap_err().to_string();
    assert!(error.contains("linear"), "{error}");
    assert!(error.contains("In: Net.fc2 (Linear)"), "{error}");
    let deep = sequential!["body" => sequential![Conv2D::new(1, 2, 3), BatchNorm2D::new(3)]];
    let error = deep.call(&ones(&[1, 1, 5, 5])).unwrap_err().to_string();
    assert!(error.contains("num_features") && error.contains("In: Sequential.body.1 (BatchNorm2D)"), "{error}");
    // A failure leaves nothing behind.
    assert!(Net::new(4).call(&ones(&[1, 3])).is_ok());
}

#[test]
fn constructors_refuse_what_cannot_work() {
    let message = |e: sampan_core::Error| e.to_string();
    let e = message(Conv2D::try_with(3, 4, 3, |o| o.groups(2usize)).err().unwrap());
    assert!(e.contains("Conv2D") && e.contains("in_channels 3 must be a multiple of groups 2"), "{e}");
    let e = message(Conv2D::try_new(3, 4, [3, 3, 3]).err().unwrap());
    assert!(e.contains("kernel_size must be an int or a list of 2"), "{e}");
    let e = message(Conv1D::try_with(3, 4, 3, |o| o.padding("SAME").padding_mode("reflect")).err().unwrap());
    assert!(e.contains("the padding must be an int"), "{e}");
    let e = message(Conv1D::try_with(3, 4, 3, |o| o.padding_mode("mirror")).err().unwrap());
    assert!(e.contains("padding_mode") && e.contains("mirror"), "{e}");
    let e = message(Conv2D::try_with(3, 4, 3, |o| o.weight_attr(false)).err().unwrap());
    assert!(e.contains("weight_attr cannot be False"), "{e}");
    let e = message(Conv2D::try_with(3, 4, 3, |o| o.data_format("NCL")).err().unwrap());
    assert!(e.contains("data_format"), "{e}");
    assert!(BatchNorm1D::try_with(3, |o| o.data_format("NCDHW")).is_err());
    assert!(InstanceNorm2D::try_with(3, |o| o.weight_attr(false)).is_err());
    assert!(GroupNorm::try_new(2, 3).is_err());
    assert!(Embedding::try_with(3, 2, |o| o.padding_idx(3)).is_err());
    assert!(Embedding::try_new(0, 2).is_err());
    assert!(SpectralNorm::try_with([2, 3], |o| o.dim(2)).is_err());
    assert!(PixelUnshuffle::try_new(0).is_err());
    assert!(LayerNorm::try_with(3, |o| o.device("gpu")).is_err());
    assert!(BatchNorm::try_with(3, |o| o.act("no such op")).is_err());
    let by_name = class::find("nn", "Linear").unwrap();
    let e = message(by_name.make(vec![Value::Int(-1), Value::Int(2)], vec![]).err().unwrap());
    assert!(e.contains("in_features") && e.contains("not negative"), "{e}");
    let e =
        message(by_name.make(vec![Value::Int(1), Value::Int(2)], vec![("bias", Value::Bool(false))]).err().unwrap());
    assert!(e.contains("has no argument `bias`"), "{e}");
}

#[test]
fn hooks_see_and_change_what_passes() {
    let fc = Linear::new(2, 2);
    let seen = Arc::new(AtomicUsize::new(0));
    let count = seen.clone();
    let pre = fc.base().unwrap().register_forward_pre_hook(move |inputs| {
        count.fetch_add(1, Ordering::Relaxed);
        Ok(Some(vec![&inputs[0] * 2.0]))
    });
    let post = fc.base().unwrap().register_forward_post_hook(|inputs, outputs| {
        assert_eq!(inputs[0].to_vec::<f32>(), [2.0, 2.0]);
        Ok(Some(vec![&outputs[0] + 1.0]))
    });
    let plain = fc.forward(&ones(&[1, 2])).unwrap();
    let hooked = fc.call(&ones(&[1, 2])).unwrap();
    let close = |a: &Tensor, b: &Tensor| a.allclose(b).to_f64() == 1.0;
    assert!(close(&hooked, &(&plain * 2.0 + 1.0)));
    assert!(pre.remove() && !pre.remove() && post.remove());
    assert!(close(&fc.call(&ones(&[1, 2])).unwrap(), &plain));
    assert_eq!(seen.load(Ordering::Relaxed), 1);
    let failing = fc.base().unwrap().register_forward_pre_hook(|_| Err(sampan_core::Error::invalid("no entry")));
    assert!(fc.call(&ones(&[1, 2])).unwrap_err().to_string().contains("no entry"));
    failing.remove();
    let _empty = fc.base().unwrap().register_forward_post_hook(|_, _| Ok(Some(Vec::new())));
    assert!(fc.call(&ones(&[1, 2])).unwrap_err().to_string().contains("no output"));
}

#[test]
fn observers_see_every_layer_that_runs() {
    #[derive(Default)]
    struct Log(Mutex<Vec<(&'static str, Vec<usize>)>>);
    impl Observer for Log {
        fn exit(&self, _: LayerId, name: &'static str, _: &[Tensor], outputs: &[Tensor]) {
            self.0.lock().unwrap().push((name, outputs[0].shape().to_vec()));
        }
    }
    let log = Rc::new(Log::default());
    observe(log.clone(), || Net::new(4).call(&ones(&[1, 3])).unwrap());
    let want = [("Linear", vec![1, 4]), ("Linear", vec![1, 2]), ("Net", vec![1, 2])];
    assert_eq!(*log.0.lock().unwrap(), want);
}

#[test]
fn a_shared_weight_is_one_parameter_that_both_places_train() {
    let a = Linear::new(2, 2);
    let mut b = Linear::new(2, 2);
    b.weight = a.weight.clone();
    let net = sequential!["a" => a, "b" => b];
    let names: Vec<String> = net.named_parameters().into_iter().map(|(n, _)| n).collect();
    assert_eq!(names, ["a.weight", "a.bias", "b.bias"]);
    assert_eq!(net.state_dict().len(), 4);
    net.call(&ones(&[1, 2])).unwrap().sum(()).backward();
    let w = &net.get::<Linear>(0).unwrap().weight;
    // d(sum(x W W))/dW = xᵀ (W 1)ᵀ + (x W)ᵀ 1ᵀ.
    let (x, one) = (ones(&[1, 2]), ones(&[1, 2]));
    let v = w.tensor().detach();
    let want = x.t().matmul(&one.matmul(&v.t())) + x.matmul(&v).t().matmul(&one);
    assert!(w.grad().unwrap().allclose(&want).to_f64() == 1.0);
}

#[test]
fn frozen_parameters_get_no_gradient_and_thaw() {
    let net = Net::new(4);
    net.fc1.freeze();
    net.call(&ones(&[1, 3])).unwrap().sum(()).backward();
    assert!(net.fc1.weight.grad().is_none() && net.fc2.weight.grad().is_some());
    net.clear_gradients();
    net.unfreeze();
    net.call(&ones(&[1, 3])).unwrap().sum(()).backward();
    assert!(net.parameters().iter().all(|p| p.trainable() && p.grad().is_some()));
    let never = GroupNorm::with(1, 2, |o| o.weight_attr(ParamAttr::new().learning_rate(0.0)));
    assert!(!never.weight.unwrap().trainable() && never.bias.unwrap().trainable());
}

#[test]
fn a_state_that_does_not_fit_is_reported_whole_and_changes_nothing() {
    let net = Net::new(4);
    let mut state: BTreeMap<String, Tensor> = Net::new(4).state_dict();
    state.remove("fc1.bias");
    state.insert("fc2.weight".into(), ones(&[3, 3]));
    state.insert("fc3.weight".into(), ones(&[1]));
    let before = net.fc1.weight.tensor().to_vec::<f32>();
    let error = net.set_state_dict(&state).unwrap_err().to_string();
    for part in ["fc1.bias is missing", "fc2.weight has shape [3, 3], expected [4, 2]", "fc3.weight is unexpected"] {
        assert!(error.contains(part), "{error}");
    }
    assert_eq!(net.fc1.weight.tensor().to_vec::<f32>(), before);
    let report = net.load_matching(&state).unwrap();
    assert_eq!(report.unexpected, ["fc3.weight"]);
    assert_eq!(net.fc1.weight.tensor().to_vec::<f32>(), state["fc1.weight"].to_vec::<f32>());
}

#[test]
fn apply_reaches_every_layer_with_its_path() {
    let net = sequential![Net::new(4), Dropout::new(0.5)];
    let mut paths = Vec::new();
    net.apply(&mut |path, layer| {
        paths.push(path.as_str().to_string());
        if let Some(fc) = layer.downcast_ref::<Linear>() {
            fc.weight.set_value(&Tensor::zeros(fc.weight.shape(), DType::Float32)).unwrap();
        }
    });
    assert_eq!(paths, ["", "0", "0.fc1", "0.fc2", "1"]);
    net.eval();
    assert_eq!(net.call(&ones(&[1, 3])).unwrap().to_vec::<f32>(), [0.0, 0.0]);
}

#[test]
fn to_dtype_casts_parameters_and_buffers_and_keeps_names() {
    let net = sequential![Conv2D::new(1, 2, 1), BatchNorm2D::new(2)];
    let names = |net: &Sequential| net.state_dict().into_iter().map(|(k, t)| (k, t.name())).collect::<Vec<_>>();
    let before = names(&net);
    net.to_dtype(DType::Float64).unwrap();
    assert!(net.state_dict().values().all(|t| t.dtype() == DType::Float64));
    assert_eq!(names(&net), before);
    let y = net.call(&Tensor::ones([2, 1, 2, 2], DType::Float64)).unwrap();
    assert_eq!(y.dtype(), DType::Float64);
    y.sum(()).backward();
    assert!(net.parameters().iter().all(|p| p.grad().is_some_and(|g| g.dtype() == DType::Float64)));
    // What was cast still follows the batches.
    assert!(net.get::<BatchNorm2D>(1).unwrap().mean.tensor().to_f64_vec() != [0.0, 0.0]);
    let wide = Conv1D::with(1, 2, 1, |o| o.dtype(DType::Float64));
    assert_eq!(wide.weight.dtype(), DType::Float64);
}

#[test]
fn names_are_unique_and_follow_the_class() {
    let layers: Vec<Conv2DTranspose> = (0..3).map(|_| Conv2DTranspose::new(1, 1, 1)).collect();
    let names: HashSet<String> = layers.iter().flat_map(|l| l.parameters()).map(|p| p.name()).collect();
    assert_eq!(names.len(), 6);
    assert!(names.iter().all(|n| n.starts_with("conv2d_transpose_") && (n.ends_with(".w_0") || n.ends_with(".b_0"))));
    let named = Linear::with(2, 2, |o| o.weight_attr("mine"));
    assert_eq!(named.weight.name(), "mine");
}

#[test]
fn initial_values_follow_the_defaults() {
    sampan_core::random::own(7);
    let spread = |p: &Parameter| {
        let v = p.tensor().to_f64_vec();
        (v.iter().map(|x| x * x).sum::<f64>() / v.len() as f64).sqrt()
    };
    // Normal with sqrt(2 / (in_channels * kernel)), the groups not counted.
    let conv = Conv2D::with(16, 64, 3, |o| o.groups(4usize));
    assert!((spread(&conv.weight) / (2.0f64 / 144.0).sqrt() - 1.0).abs() < 0.1);
    // Uniform in sqrt(6 / (fan_in + fan_out)), whose deviation is that over sqrt(3).
    let up = Conv2DTranspose::new(16, 32, 3);
    assert!((spread(&up.weight) / (2.0f64 / (9.0 * 48.0)).sqrt() - 1.0).abs() < 0.1);
    let words = Embedding::with(50, 40, |o| o.padding_idx(-1));
    assert!((spread(&words.weight) / (2.0f64 / 90.0).sqrt() - 1.0).abs() < 0.1);
    assert_eq!(words.weight.tensor().to_f64_vec()[49 * 40..], [0.0; 40]);
    assert!(conv.bias.unwrap().tensor().to_f64_vec().iter().all(|b| *b == 0.0));
    let given = Embedding::with(2, 2, |o| o._weight(&ones(&[2, 2]))._freeze(true));
    assert_eq!((spread(&given.weight), given.weight.trainable()), (1.0, false));
}

#[test]
fn only_training_moves_running_statistics() {
    let bn = BatchNorm1D::with(1, |o| o.momentum(0.5));
    let x = Tensor::new([[1.0f32], [3.0]]);
    bn.call(&x).unwrap();
    let now = |bn: &BatchNorm1D| (bn.mean.tensor().to_f64(), bn.variance.tensor().to_f64());
    assert_eq!(now(&bn), (1.0, 1.0));
    bn.eval();
    bn.call(&x).unwrap();
    assert_eq!(now(&bn), (1.0, 1.0));
    bn.train();
    // A meta tensor has shapes only.
    bn.call(&Tensor::meta([2, 1], DType::Float32)).unwrap();
    assert_eq!(now(&bn), (1.0, 1.0));
    assert!(bn.call(&ones(&[1, 1, 1, 1])).unwrap_err().to_string().contains("needs an input of 2 or 3 axes, got 4"));
}

#[test]
fn dropout_drops_what_its_arguments_say() {
    sampan_core::random::own(3);
    let x = ones(&[200, 50]);
    let share = |t: &Tensor| t.to_vec::<f32>().iter().filter(|v| **v == 0.0).count() as f64 / t.numel() as f64;
    let y = Dropout::new(0.3).call(&x).unwrap();
    assert!((share(&y) - 0.3).abs() < 0.03);
    let kept: HashSet<u32> = y.to_vec::<f32>().into_iter().map(f32::to_bits).collect();
    assert_eq!(kept, HashSet::from([0.0f32.to_bits(), (1.0f32 / 0.7).to_bits()]));
    let whole_rows = Dropout::with(0.5, |o| o.axis(0).mode("downscale_in_infer"));
    for row in whole_rows.call(&x).unwrap().to_vec::<f32>().chunks(50) {
        assert!(row.iter().all(|v| *v == row[0]) && (row[0] == 0.0 || row[0] == 1.0));
    }
    whole_rows.eval();
    assert_eq!(whole_rows.call(&x).unwrap().to_vec::<f32>(), vec![0.5; 10_000]);
    let channels = Dropout2D::new(0.5).call(&ones(&[8, 8, 2, 2])).unwrap();
    assert!(channels.to_vec::<f32>().chunks(4).all(|c| c.iter().all(|v| *v == c[0])));
    assert!(Dropout::new(1.5).call(&x).is_err());
}

#[test]
fn batch_norms_are_made_sync_in_place() {
    let net = sequential![sequential![Conv1D::new(1, 2, 1), BatchNorm1D::new(2)], BatchNorm3D::new(2)];
    let before = net.state_dict().len();
    let net = SyncBatchNorm::convert_sync_batchnorm(net);
    assert!(net.get::<BatchNorm3D>(1).unwrap().is_sync());
    assert!(net.get::<Sequential>(0).unwrap().get::<BatchNorm1D>(1).unwrap().is_sync());
    assert_eq!(net.state_dict().len(), before);
    assert!(!BatchNorm2D::new(1).is_sync());
    let bare = SyncBatchNorm::with(2, |o| o.weight_attr(false).bias_attr(false));
    assert!(bare.parameters().iter().all(|p| !p.trainable()));
    assert_eq!(bare.state_dict().len(), 4);
}
