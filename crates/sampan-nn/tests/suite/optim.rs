//! Optimizers against the peer's numbers, their states, and what they must leave alone.

use crate::peer::{GOLDEN, argument, cases, close, dict, floats};
use sampan_core::{DType, Dict, Object, Tensor, Value, class, set_num_threads};
use sampan_nn::callable::{NameFilter, ParameterFilter};
use sampan_nn::regularizer::L1Decay;
use sampan_nn::*;
use serde_json::Value as Json;
use std::sync::{Arc, Mutex};

const SHAPES: [(&str, &[usize]); 3] = [("w", &[2, 3]), ("b", &[3]), ("c", &[2])];
const STEPS: usize = 7;

/// The numbers that the script uses.
fn values(name: &str, seed: usize, dtype: DType) -> Tensor {
    let shape = SHAPES.iter().find(|(n, _)| *n == name).unwrap().1;
    let base: u32 = name.chars().map(|c| c as u32).sum();
    let n: usize = shape.iter().product();
    let v: Vec<f64> = (0..n).map(|i| (i as f64 * 1.7 + base as f64 + seed as f64 * 0.9).sin()).collect();
    Tensor::from_vec(v, shape).cast(dtype)
}

/// Parameters named as the script names them.
fn parameters(prefix: &str, dtype: DType, attr: impl Fn(&str) -> ParamAttr) -> Vec<Parameter> {
    let one = |(key, _): &(&str, _)| {
        Parameter::with_attr(values(key, 0, dtype), &attr(key).name(format!("{prefix}.{key}_0")))
    };
    SHAPES.iter().map(one).collect()
}

/// Gives every parameter that is trained the gradient of a step; `c` has none in the first.
fn give_gradients(params: &[Parameter], step: usize) {
    for (p, (key, _)) in params.iter().zip(SHAPES) {
        let some = p.trainable() && !(key == "c" && step == 0);
        p.tensor().set_grad(some.then(|| values(key, step + 1, p.dtype())));
    }
}

fn run(opt: &mut Optimizer, params: &[Parameter], steps: std::ops::Range<usize>) {
    for step in steps {
        give_gradients(params, step);
        opt.step().unwrap();
        if let Some(s) = opt.lr_scheduler() {
            s.step();
        }
    }
}

/// The optimizer of a recipe, built through the registry, and its parameters.
fn build(case: &Json) -> (Optimizer, Vec<Parameter>) {
    let (name, args) = (case["class"].as_str().unwrap(), case["args"].as_object().unwrap());
    let dtype = if args.get("dtype").is_some() { DType::Float64 } else { DType::Float32 };
    let params = parameters(name, dtype, |key| {
        let mut attr = ParamAttr::new().trainable(!(key == "b" && args.contains_key("frozen")));
        if let Some(given) = args.get("attr").filter(|_| key == "w") {
            attr = attr.learning_rate(given["learning_rate"].as_f64().unwrap_or(1.0));
            attr = attr.need_clip(given["need_clip"].as_bool().unwrap_or(true));
            if let Some(c) = given["regularizer"]["L1"].as_f64() {
                attr = attr.regularizer(L1Decay(c));
            }
        }
        attr
    });
    let object = |p: &Parameter| Value::Object(Object::new(p.clone()));
    let given = match args.get("groups") {
        None => Value::List(params.iter().map(object).collect()),
        Some(groups) => {
            let lists = [vec![object(&params[0])], params[1..].iter().map(object).collect()];
            let group = |(list, group): (Vec<Value>, &Json)| {
                let settings = group.as_object().unwrap().iter().map(|(k, v)| (k.clone(), argument(k, v)));
                let mut dict: Dict = settings.collect();
                dict.insert("params", Value::List(list));
                Value::Dict(dict)
            };
            Value::List(lists.into_iter().zip(groups.as_array().unwrap()).map(group).collect())
        }
    };
    let mut named = vec![("parameters", given), ("learning_rate", Value::Float(0.1))];
    for (k, v) in args {
        match k.as_str() {
            "dtype" | "attr" | "groups" | "frozen" => {}
            "learning_rate" => named[1].1 = argument(k, v),
            "decay_only" => {
                let wanted = format!(".{}_", v.as_str().unwrap());
                named.push(("apply_decay_param_fun", NameFilter::from(move |n: &str| n.contains(&wanted)).into()));
            }
            "exclude" => {
                let wanted = format!(".{}_", v.as_str().unwrap());
                let filter = ParameterFilter::from(move |p: &Parameter| p.name().contains(&wanted));
                named.push(("exclude_from_weight_decay_fn", filter.into()));
            }
            _ => named.push((k, argument(k, v))),
        }
    }
    let built = class::find("optimizer", name).unwrap().make(Vec::new(), named).unwrap();
    let shared = built.downcast::<Arc<Mutex<Optimizer>>>().unwrap().clone();
    drop(built);
    (Arc::into_inner(shared).unwrap().into_inner().unwrap(), params)
}

/// The peer's state as a state of ours.
fn peer_state(state: &Json) -> Dict {
    let entry = |(k, v): (&String, &Json)| {
        if k == "LR_Scheduler" {
            return (k.clone(), Value::Dict(dict(v)));
        }
        let shape: Vec<usize> = floats(&v["shape"]).into_iter().map(|n| n as usize).collect();
        let dtype = DType::from_name(v["dtype"].as_str().unwrap()).unwrap();
        (k.clone(), Tensor::from_vec(floats(&v["values"]), shape).cast(dtype).into())
    };
    state.as_object().unwrap().iter().map(entry).collect()
}

fn close_states(what: &str, ours: &Dict, peer: &Dict) {
    let keys = |d: &Dict| {
        let mut keys: Vec<String> = d.iter().map(|(k, _)| k.to_string()).collect();
        keys.sort();
        keys
    };
    assert_eq!(keys(ours), keys(peer), "{what}");
    for (key, value) in ours.iter() {
        if let (Value::Tensor(a), Some(Value::Tensor(b))) = (value, peer.get(key)) {
            assert_eq!((a.shape(), a.dtype()), (b.shape(), b.dtype()), "{what}: {key}");
            close(&format!("{what}: {key}"), &a.to_f64_vec(), &b.to_f64_vec(), 3e-6);
        }
    }
}

#[test]
fn steps_and_states_agree_with_the_peer() {
    for case in cases("optimizers") {
        let what = format!("{} {}", case["class"], case["args"]);
        let (mut opt, params) = build(case);
        for step in 0..STEPS {
            run(&mut opt, &params, step..step + 1);
            for (p, (key, _)) in params.iter().zip(SHAPES) {
                let peer = floats(&case["params"][step][key]);
                close(&format!("{what}, step {step}, {key}"), &p.tensor().to_f64_vec(), &peer, 3e-6);
            }
        }
        close_states(&what, &opt.state_dict().unwrap(), &peer_state(&case["state"]));
    }
}

#[test]
fn the_peers_state_goes_on_here() {
    for case in cases("optimizers") {
        let what = format!("{} {}", case["class"], case["args"]);
        let (mut whole, whole_params) = build(case);
        run(&mut whole, &whole_params, 0..STEPS);
        let (mut resumed, params) = build(case);
        resumed.set_state_dict(&peer_state(&case["state"])).unwrap();
        for (p, (key, _)) in params.iter().zip(SHAPES) {
            p.set_value(&Tensor::from_vec(floats(&case["params"][STEPS - 1][key]), p.shape())).unwrap();
        }
        run(&mut whole, &whole_params, STEPS..STEPS + 2);
        run(&mut resumed, &params, STEPS..STEPS + 2);
        for (a, b) in params.iter().zip(&whole_params) {
            close(&what, &a.tensor().to_f64_vec(), &b.tensor().to_f64_vec(), 1e-5);
        }
    }
}

fn bits(params: &[Parameter]) -> Vec<Vec<u8>> {
    params.iter().map(|p| p.tensor().to_bytes()).collect()
}

/// A state as a file would give it back: other tensors with the same values.
fn copied(state: &Dict) -> Dict {
    let mut value = Value::Dict(state.clone());
    value.map_tensors(&mut |t| t.try_clone_data()).unwrap();
    let Value::Dict(state) = value else { unreachable!() };
    state
}

#[test]
fn a_restored_state_goes_on_to_the_bit() {
    for case in cases("optimizers") {
        let what = format!("{} {}", case["class"], case["args"]);
        let (mut whole, whole_params) = build(case);
        run(&mut whole, &whole_params, 0..3);
        let (mut resumed, params) = build(case);
        resumed.set_state_dict(&copied(&whole.state_dict().unwrap())).unwrap();
        params.iter().zip(&whole_params).for_each(|(p, q)| p.set_value(&q.tensor()).unwrap());
        run(&mut whole, &whole_params, 3..6);
        run(&mut resumed, &params, 3..6);
        assert_eq!(bits(&params), bits(&whole_params), "{what}");
    }
}

#[test]
fn a_network_that_was_built_anew_finds_its_state_by_order() {
    let make = |prefix: &str| {
        let params = parameters(prefix, DType::Float32, |_| ParamAttr::new());
        (Adam::new(0.1, params.clone()), params)
    };
    let (mut first, first_params) = make("first");
    run(&mut first, &first_params, 0..3);
    let (mut second, params) = make("second");
    second.set_state_dict(&first.state_dict().unwrap()).unwrap();
    params.iter().zip(&first_params).for_each(|(p, q)| p.set_value(&q.tensor()).unwrap());
    run(&mut first, &first_params, 3..5);
    run(&mut second, &params, 3..5);
    assert_eq!(bits(&params), bits(&first_params));

    // One that was frozen on the way has a state as well.
    let (mut third, frozen) = make("third");
    frozen[1].set_trainable(false);
    third.set_state_dict(&first.state_dict().unwrap()).unwrap();
    assert_eq!(third.state_dict().unwrap().len(), first.state_dict().unwrap().len());

    // What fits in no way is refused, and says which key it looked for.
    let mut other = Adam::new(0.1, vec![Parameter::new(Tensor::zeros([4], DType::Float32))]);
    let error = other.set_state_dict(&first.state_dict().unwrap()).unwrap_err().to_string();
    assert!(error.contains("moment1") && error.contains("1 parameters"), "{error}");
    let mut reversed = Adam::new(0.1, [2, 1, 0].map(|i| Parameter::new(values(SHAPES[i].0, 0, DType::Float32))));
    let error = reversed.set_state_dict(&first.state_dict().unwrap()).unwrap_err().to_string();
    assert!(error.contains("[2, 3]"), "{error}");
    let mut momentum = Momentum::new(0.1, params);
    let error = momentum.set_state_dict(&first.state_dict().unwrap()).unwrap_err().to_string();
    assert!(error.contains("velocity"), "{error}");
}

#[test]
fn frozen_and_gradless_parameters_are_untouched() {
    let params = parameters("f", DType::Float32, |key| ParamAttr::new().trainable(key != "b"));
    let mut opt = AdamW::with(0.1, params.clone(), |o| o.weight_decay(0.5));
    let before = bits(&params);
    // Not even a gradient that was left there moves a frozen one.
    params[1].tensor().set_grad(Some(values("b", 1, DType::Float32)));
    opt.step().unwrap();
    assert_eq!(bits(&params), before);
    assert!(opt.state_dict().unwrap().is_empty());
    give_gradients(&params, 0);
    opt.step().unwrap();
    assert_ne!(bits(&params)[0], before[0]);
    assert_eq!(bits(&params)[1..], before[1..]);
    opt.clear_grad();
    assert!(params[0].grad().is_none());
}

#[test]
fn the_same_bits_for_any_number_of_threads() {
    // Large enough for several pieces, with a border inside a parameter.
    let sizes = [50_000, 3, 17_000];
    let run = |threads: usize, make: &dyn Fn(Vec<Parameter>) -> Optimizer| {
        set_num_threads(threads);
        let wave = |n: usize, s: f64| (0..n).map(|i| (i as f64 * 0.37 + s).sin() as f32).collect::<Vec<_>>();
        let params: Vec<Parameter> =
            sizes.iter().map(|&n| Parameter::new(Tensor::from_vec(wave(n, 0.0), [n]))).collect();
        let mut opt = make(params.clone());
        for step in 0..3 {
            for p in &params {
                p.tensor().set_grad(Some(Tensor::from_vec(wave(p.numel(), step as f64), [p.numel()])));
            }
            opt.step().unwrap();
        }
        bits(&params)
    };
    let makers: [&dyn Fn(Vec<Parameter>) -> Optimizer; 3] = [
        &|p| Adam::with(0.01, p, |o| o.grad_clip(ClipGradByGlobalNorm::new(1.0)).weight_decay(0.1)),
        &|p| Lamb::new(0.01, p),
        &|p| RMSProp::with(0.01, p, |o| o.centered(true).grad_clip(ClipGradByNorm::new(1.0))),
    ];
    for make in makers {
        assert!(run(1, make) == run(2, make));
    }
}

#[test]
fn half_precision_with_master_weights_follows_single_precision() {
    for dtype in [DType::Float16, DType::BFloat16] {
        let wide = parameters("m", DType::Float32, |_| ParamAttr::new());
        let narrow = parameters("m", dtype, |_| ParamAttr::new());
        // The same start and the same gradients, exactly.
        wide.iter().zip(&narrow).for_each(|(w, n)| w.set_value(&n.tensor()).unwrap());
        let mut plain = Adam::with(0.01, wide.clone(), |o| o.weight_decay(0.1));
        let mut master = Adam::with(0.01, narrow.clone(), |o| o.weight_decay(0.1).multi_precision(true));
        for step in 0..STEPS {
            give_gradients(&narrow, step);
            for (w, n) in wide.iter().zip(&narrow) {
                w.tensor().set_grad(n.grad().map(|g| g.cast(DType::Float32)));
            }
            plain.step().unwrap();
            master.step().unwrap();
        }
        let state = master.state_dict().unwrap();
        let Some(Value::Dict(masters)) = state.get("master_weights") else { panic!("{state:?}") };
        for (w, n) in wide.iter().zip(&narrow) {
            let Some(Value::Tensor(m)) = masters.get(&n.name()) else { panic!("{masters:?}") };
            assert_eq!(m.to_bytes(), w.tensor().to_bytes());
            assert_eq!(n.tensor().to_bytes(), w.tensor().cast(dtype).to_bytes());
        }
        assert!(state.get("m.w_0_fp32_master_0_moment1_0").is_some());
        // Restored from the state, it goes on to the bit.
        let again = parameters("m", dtype, |_| ParamAttr::new());
        let mut resumed = Adam::with(0.01, again.clone(), |o| o.weight_decay(0.1).multi_precision(true));
        resumed.set_state_dict(&copied(&state)).unwrap();
        give_gradients(&narrow, 7);
        give_gradients(&again, 7);
        master.step().unwrap();
        resumed.step().unwrap();
        assert_eq!(bits(&again), bits(&narrow));
        // Without master weights the parameter itself is rounded each time.
        let mut rough = SGD::new(0.001, narrow.clone());
        rough.step().unwrap();
        assert!(rough.state_dict().unwrap().is_empty());
    }
}

#[test]
fn gradients_add_up_until_they_are_cleared() {
    let p = Parameter::new(Tensor::new([1.0f32, 2.0]));
    let mut opt = SGD::new(0.5, [p.clone()]);
    for _ in 0..2 {
        (p.tensor() * 3.0).sum(()).backward();
    }
    opt.minimize(&Tensor::new(0.0f32)).unwrap();
    assert_eq!(p.tensor().to_vec::<f32>(), [-2.0, -1.0]);
    opt.clear_grad_with(true);
    assert_eq!(p.grad().unwrap().to_vec::<f32>(), [0.0, 0.0]);
    // A step is no part of the graph, and a graph that saved the value sees that it changed.
    let t = p.tensor();
    assert!(t.is_leaf() && t.requires_grad());
    let loss = (&t * &t).sum(());
    opt.step().unwrap();
    assert!(loss.try_backward(None, false).is_err());
}

#[test]
fn plain_tensors_and_shared_parameters() {
    let t = Tensor::new([1.0f64]).requires_grad_();
    let mut opt = SGD::new(0.5, vec![t.clone()]);
    (&t * 2.0).sum(()).backward();
    opt.step().unwrap();
    assert_eq!(t.to_vec::<f64>(), [0.0]);
    let p = Parameter::of(t);
    assert_eq!(SGD::new(0.5, vec![p.clone(), p.clone()]).parameters().len(), 1);
    let groups = [ParamGroup::new([p.clone()]), ParamGroup::new([p])];
    assert!(SGD::try_new(0.5, groups).unwrap_err().to_string().contains("more than one group"));
}

#[test]
fn rescaled_gradients() {
    let make = || parameters("s", DType::Float64, |_| ParamAttr::new());
    let (a, b) = (make(), make());
    let mut rescaled = Momentum::with(0.1, a.clone(), |o| o.rescale_grad(0.5).weight_decay(0.1));
    let mut plain = Momentum::with(0.1, b.clone(), |o| o.weight_decay(0.1));
    for step in 0..3 {
        give_gradients(&a, step);
        b.iter().zip(&a).for_each(|(b, a)| b.tensor().set_grad(a.grad().map(|g| g * 0.5)));
        rescaled.step().unwrap();
        plain.step().unwrap();
    }
    assert_eq!(bits(&a), bits(&b));
}

#[test]
fn a_factor_for_each_parameter() {
    let params = parameters("r", DType::Float64, |_| ParamAttr::new());
    let apart = parameters("r", DType::Float64, |_| ParamAttr::new());
    let ratio = |p: &Parameter| if p.name().contains(".w_") { 0.5 } else { 1.0 };
    let mut one = AdamW::with(0.1, params.clone(), |o| o.lr_ratio(ratio));
    let mut half = AdamW::new(0.05, vec![apart[0].clone()]);
    let mut full = AdamW::new(0.1, apart[1..].to_vec());
    for step in 0..3 {
        give_gradients(&params, step);
        give_gradients(&apart, step);
        [&mut one, &mut half, &mut full].into_iter().for_each(|o| o.step().unwrap());
    }
    assert_eq!(bits(&params), bits(&apart));
}

#[test]
fn lbfgs_walks_down_the_valley_as_the_peer_does() {
    for (search, lr) in [("none", 1e-3), ("strong_wolfe", 1.0)] {
        let [x, y] = [-1.2, 1.0].map(|v| Parameter::new(Tensor::new([v])));
        let make = |x: &Parameter, y: &Parameter| {
            LBFGS::with(lr, [x.clone(), y.clone()], |o| {
                let o = o.max_iter(4);
                if search == "none" { o } else { o.line_search_fn(search) }
            })
        };
        let closure = |x: &Parameter, y: &Parameter| {
            x.clear_grad();
            y.clear_grad();
            let (a, b) = (x.tensor(), y.tensor());
            let loss = ((&a - 1.0).square() + (b - &a * &a).square() * 100.0).sum(());
            loss.backward();
            Ok(loss)
        };
        let mut opt = make(&x, &y);
        for (i, wanted) in GOLDEN["lbfgs"][search].as_array().unwrap().iter().enumerate() {
            if i == 3 {
                let state = copied(&opt.state_dict().unwrap());
                opt = make(&x, &y);
                opt.set_state_dict(&state).unwrap();
            }
            let loss = opt.step_with(|| closure(&x, &y)).unwrap().to_f64();
            let ours = [loss, x.tensor().to_f64(), y.tensor().to_f64()];
            close(&format!("{search}, step {i}"), &ours, &floats(wanted), 1e-6);
        }
        assert!(opt.step().unwrap_err().to_string().contains("step_with"));
    }
}

#[test]
fn wrong_arguments_are_errors() {
    let p = || vec![Parameter::new(Tensor::zeros([2], DType::Float32))];
    let said = |r: sampan_core::Result<Optimizer>| r.expect_err("it is refused").to_string();
    assert!(said(SGD::try_new(-0.1, p())).contains("negative"));
    assert!(said(SGD::try_new(f64::NAN, p())).contains("NaN"));
    assert!(said(SGD::try_new(0.1, Vec::<Parameter>::new())).contains("no parameters"));
    assert!(said(Adam::try_with(0.1, p(), |o| o.beta1(1.0))).contains("beta1"));
    assert!(said(Rprop::try_new(100.0, p())).contains("learning_rate_range"));
    assert!(said(ASGD::try_with(0.1, p(), |o| o.batch_num(0))).contains("batch_num"));
    assert!(said(LBFGS::try_with(1.0, p(), |o| o.line_search_fn("golden"))).contains("golden"));
    let groups = [ParamGroup::new(p()).set("rho", 0.5)];
    assert!(said(Adam::try_new(0.1, groups)).contains("`rho`"));
    let ints = Parameter::of(Tensor::new([1i64]));
    assert!(said(SGD::try_new(0.1, [ints])).contains("int64"));
    let wrong = p();
    wrong[0].tensor().set_grad(Some(Tensor::zeros([3], DType::Float32)));
    let error = SGD::new(0.1, wrong).step().unwrap_err().to_string();
    assert!(error.contains("[3]") && error.contains("[2]"), "{error}");
    // A function that fails changes nothing.
    let params = parameters("e", DType::Float32, |_| ParamAttr::new());
    let filter = NameFilter::fallible(|_| Err(sampan_core::Error::invalid("no answer")));
    let mut opt = AdamW::with(0.1, params.clone(), |o| o.apply_decay_param_fun(filter));
    let before = bits(&params);
    give_gradients(&params, 1);
    assert!(opt.step().is_err() && bits(&params) == before && opt.steps() == 0);
    let wrong = class::find("optimizer", "SGD").unwrap().make(vec![Value::from("fast")], Vec::new());
    assert!(wrong.err().unwrap().to_string().contains("learning_rate"));
}

#[test]
fn a_closure_may_use_the_optimizer_that_calls_it() {
    for lbfgs in [false, true] {
        let p = Parameter::new(Tensor::new([3.0f32]));
        let optimizer = match lbfgs {
            true => LBFGS::new(1.0, vec![p.clone()]),
            false => SGD::new(0.25, vec![p.clone()]),
        };
        let shared = Mutex::new(optimizer);
        let closure = || {
            shared.lock().unwrap().clear_grad();
            let loss = p.value()?.square().sum(());
            loss.backward();
            Ok(loss)
        };
        assert_eq!(Optimizer::step_shared(&shared, closure).unwrap().to_f64(), 9.0);
        assert!(p.tensor().to_f64() <= 1.5);
        assert_eq!(shared.lock().unwrap().steps(), 1);
    }
}

#[test]
fn parameters_join_later() {
    let (p, q) = (Parameter::new(Tensor::new([1.0f32])), Parameter::new(Tensor::new([1.0f32])));
    let mut opt = SGD::new(0.5, vec![p.clone()]);
    opt.add_param_group(ParamGroup::new([q.clone()]).learning_rate(0.5)).unwrap();
    for r in [&p, &q] {
        r.tensor().set_grad(Some(Tensor::new([1.0f32])));
    }
    opt.step().unwrap();
    assert_eq!([p.tensor().to_f64(), q.tensor().to_f64()], [0.5, 0.75]);
    let error = opt.add_param_group(ParamGroup::new([q])).unwrap_err();
    assert!(error.to_string().contains("trained already"), "{error}");
}

#[test]
fn a_float32_gradient_of_a_half_parameter_keeps_its_precision() {
    let step = |dtype: DType, grad: f64| {
        let p = Parameter::new(Tensor::new([1.0f32]).cast(dtype));
        let mut opt = SGD::with(1.0, vec![p.clone()], |o| o.multi_precision(true));
        p.tensor().set_grad(Some(Tensor::new([grad as f32])));
        opt.step().unwrap();
        let state = opt.state_dict().unwrap();
        let master = <&Dict as sampan_core::value::Arg>::get(state.get("master_weights").unwrap(), "masters").unwrap();
        let Some((_, Value::Tensor(master))) = master.iter().next() else { panic!("a tensor") };
        assert_eq!(p.tensor().to_f64(), master.cast(dtype).to_f64());
        master.to_f64()
    };
    // 0.1 is not a half: the step must not be that of the half next to it.
    assert_eq!(step(DType::Float16, 0.1), (1.0f32 - 0.1f32) as f64);
    assert_eq!(step(DType::BFloat16, 0.75), 0.25);
}
