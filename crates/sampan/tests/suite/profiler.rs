//! What the profiler notes, and what it makes of it.

use crate::Folder;
use sampan::autograd::recompute;
use sampan::data::{DataLoader, TensorDataset, fields};
use sampan::prelude::*;
use sampan::profiler::{self, Event, Kind, Options, Profile, Profiler, SortBy, Unit};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// There is one recording in a process.
fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

const PLAIN: Options = Options { shapes: false, memory: false, capacity: 100_000 };
const ALL: Options = Options { shapes: true, memory: true, capacity: 100_000 };

/// What this thread does in `f`; other tests run beside it.
fn record(options: Options, f: impl FnOnce(&mut Profiler)) -> Profile {
    let _turn = turn();
    let mut running = Profiler::start(options).unwrap();
    // Other tests call ops meanwhile; this one's thread is the one that notes the mark.
    const MARK: &str = "the thread of the test";
    drop(profiler::range(MARK));
    f(&mut running);
    let mut recording = running.stop().recording().clone();
    let own = recording.events.iter().find(|e| e.label() == MARK).expect("the mark is noted").thread;
    recording.events.retain(|e| e.thread == own && e.label() != MARK);
    recording.events.iter_mut().for_each(|e| e.thread = 0);
    Profile::new(recording)
}

fn events(profile: &Profile) -> &[Event] {
    &profile.recording().events
}

fn names(profile: &Profile, kind: Kind) -> Vec<String> {
    events(profile).iter().filter(|e| e.kind == kind).map(|e| e.label().into_owned()).collect()
}

#[derive(Layer)]
struct Net {
    conv: Conv2D,
    head: Sequential,
}

impl Net {
    fn new() -> Net {
        Net { conv: Conv2D::new(1, 2, 3), head: sequential![ReLU::new(), Flatten::new(), Linear::new(2 * 6 * 6, 3)] }
    }
}

impl Layer for Net {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        x.apply(&self.conv)?.apply(&self.head)
    }
}

fn train(profiler: &mut Profiler, steps: usize) -> Result<()> {
    let net = Net::new();
    let mut opt = SGD::new(0.1, net.parameters());
    let data = TensorDataset::new(vec![Tensor::ones([4 * steps, 1, 8, 8], DType::Float32)])?;
    for batch in &DataLoader::new(data, 4, false)? {
        let [x] = fields(batch?)?;
        net.call(&x)?.square().mean(()).backward();
        opt.step()?;
        opt.clear_grad();
        profiler.step();
    }
    Ok(())
}

#[test]
fn nothing_is_noted_while_off() {
    let x = Tensor::new([1.0f32, 2.0]).requires_grad_();
    let y = {
        let _range = profiler::range("outside");
        x.tanh().sum(())
    };
    let profile = record(PLAIN, |_| {});
    assert_eq!(names(&profile, Kind::Op), [""; 0]);
    assert_eq!(names(&profile, Kind::Range), [""; 0]);
    // A graph made before has names all the same.
    assert!(names(&record(PLAIN, |_| y.backward()), Kind::Gradient).contains(&"tanh_grad".into()));
}

#[test]
fn one_recording_at_a_time() {
    let _turn = turn();
    let running = Profiler::start(PLAIN).unwrap();
    let error = Profiler::start(PLAIN).err().expect("there is one already").to_string();
    assert!(error.contains("(PreconditionNotMet) profiler: the profiler is recording already"), "{error}");
    drop(running);
    assert!(!profiler::on());
    assert!(profiler::stop().is_none());
}

#[test]
fn calls_nest_and_leave_their_own_time() {
    let x = Tensor::ones([8, 8], DType::Float32);
    let profile = record(PLAIN, |_| drop(x.matmul(&x)));
    let all = events(&profile);
    let outer = all.iter().find(|e| &*e.name == "matmul").unwrap();
    let inner = all.iter().find(|e| &*e.name == "matrix_product").unwrap();
    assert!(outer.start <= inner.start && inner.end() <= outer.end() && inner.depth == outer.depth + 1);

    let rows = profile.ops().detail(true).rows();
    let row = |name: &str| rows.iter().find(|r| r.name == name).unwrap();
    assert_eq!((row("matmul").level, row("matrix_product").level), (0, 1));
    let inside: u64 = rows.iter().filter(|r| r.level == 1).map(|r| r.total).sum();
    assert_eq!(row("matmul").own, row("matmul").total - inside);
    assert_eq!(row("matmul").multiply_adds, 8 * 8 * 8);
    // Without detail the user's call alone.
    assert_eq!(profile.ops().rows().iter().map(|r| r.name.clone()).collect::<Vec<_>>(), ["matmul"]);
}

#[test]
fn an_error_inside_a_call_leaves_the_names_right() {
    let x = Tensor::ones([2, 3], DType::Float32);
    let profile = record(PLAIN, |_| {
        assert!(x.try_matmul(&x).is_err());
        drop(x.exp());
    });
    let exp = events(&profile).iter().find(|e| &*e.name == "exp").unwrap();
    assert_eq!(exp.depth, 0);
}

#[test]
fn gradients_have_the_names_and_layers_of_the_users_calls() {
    let profile = record(PLAIN, |p| train(p, 2).unwrap());
    let rows = profile.ops().rows();
    for name in ["conv2d", "conv2d_grad", "relu", "relu_grad", "linear", "linear_grad", "mean", "mean_grad"] {
        let row = rows.iter().find(|r| r.name == name).unwrap_or_else(|| panic!("no {name} in\n{profile}"));
        assert_eq!(row.calls, 2, "{name}");
        assert!(row.min <= row.average() && row.average() <= row.max && row.max <= row.total, "{row:?}");
    }
    let layers = profile.layers().rows();
    let paths: Vec<&str> = layers.iter().map(|r| r.path.as_str()).collect();
    assert_eq!(paths, ["Net", "Net.conv", "Net.head", "Net.head.0", "Net.head.1", "Net.head.2"]);
    let conv = layers.iter().find(|r| r.path == "Net.conv").unwrap();
    assert_eq!((conv.type_name.as_str(), conv.calls), ("Conv2D", 2));
    assert!(conv.backward > 0 && conv.multiply_adds > 0);
    let net = &layers[0];
    assert!(net.backward >= layers[1].backward + layers[2].backward && net.forward > net.own);
    assert_eq!(profile.layers().depth(1).rows().len(), 1);

    let whole = profile.overview();
    assert_eq!((whole.steps, whole.calls[1], whole.calls[2]), (2, 2, 2));
    assert!(whole.forward > 0 && whole.backward > 0 && whole.optimizer > 0 && whole.loader > 0);
    assert!(whole.forward + whole.backward + whole.optimizer + whole.loader + whole.other == whole.total);
}

#[test]
fn sums_of_gradients_are_noted() {
    let x = Tensor::new([0.5f32, 0.25]).requires_grad_();
    let profile = record(PLAIN, |_| (x.exp() + x.tanh() + x.sin()).sum(()).backward());
    let sums = profile.ops().rows().into_iter().find(|r| r.name == "grad_add").expect("two of the three are added");
    assert_eq!(sums.calls, 2);
}

#[test]
fn gradients_of_gradients_and_recomputation() {
    let x = Tensor::new([0.5f32, 0.25]).requires_grad_();
    let profile = record(PLAIN, |_| {
        let options = sampan::GradOptions { create_graph: true, ..Default::default() };
        let first = sampan::grad(&[x.tanh().sum(())], std::slice::from_ref(&x), &[], options).unwrap();
        first[0].as_ref().unwrap().sum(()).backward();
    });
    assert!(names(&profile, Kind::Gradient).contains(&"tanh_grad_grad".into()), "{profile}");

    let profile = record(PLAIN, |_| {
        let y = recompute(|x| Ok(vec![x[0].exp().tanh()]), std::slice::from_ref(&x)).unwrap();
        y[0].sum(()).backward();
    });
    let again = names(&profile, Kind::Op).iter().filter(|n| *n == "exp").count();
    assert_eq!(again, 2, "{profile}");
}

#[test]
fn shapes_and_memory_where_asked_for() {
    let (x, w) = (Tensor::ones([16, 8], DType::Float32), Tensor::ones([8, 4], DType::Float32));
    let profile = record(ALL, |_| {
        drop(x.linear(&w, None));
        drop(x.linear(&w, None));
        drop(x.narrow(0, 0, 4).linear(&w, None));
    });
    let rows: Vec<_> = profile.ops().by_shape(true).rows().into_iter().filter(|r| r.name == "linear").collect();
    let mut lines: Vec<_> = rows.iter().map(|r| (r.inputs.as_str(), r.calls)).collect();
    lines.sort();
    assert_eq!(
        lines,
        [("x=[16, 8] float32, weight=[8, 4] float32", 2), ("x=[4, 8] float32, weight=[8, 4] float32", 1)]
    );
    let linear = events(&profile).iter().find(|e| &*e.name == "linear").unwrap();
    let memory = linear.memory.unwrap();
    assert!(memory.allocated >= 16 * 4 * 4 && memory.live >= memory.allocated, "{memory:?}");
    assert!(profile.overview().peak_memory.unwrap() >= memory.live);
    assert!(
        record(PLAIN, |_| drop(x.exp())).recording().events.iter().all(|e| e.memory.is_none() && e.inputs.is_none())
    );
}

#[test]
fn threads_are_told_apart() {
    let _turn = turn();
    let running = Profiler::start(PLAIN).unwrap();
    let work = || drop(Tensor::new([1.0f32]).exp());
    std::thread::Builder::new().name("helper".into()).spawn(work).unwrap().join().unwrap();
    let profile = running.stop();
    let helper = profile.recording().threads.iter().position(|name| name == "helper").expect("it made events");
    let rows = profile.ops().by_thread(true).rows();
    assert!(rows.iter().any(|r| r.name == "exp" && r.thread == Some(helper as u32)));
    assert!(helper > 0 && profile.ops().by_thread(true).to_string().contains("helper"));
}

#[test]
fn memory_is_bounded_and_says_so() {
    let _turn = turn();
    let running = Profiler::start(Options { capacity: 3, ..PLAIN }).unwrap();
    let x = Tensor::new([1.0f32]);
    (0..5).for_each(|_| drop(x.exp()));
    let profile = running.stop();
    assert_eq!(profile.recording().events.len(), 3);
    assert!(profile.recording().dropped >= 2);
    assert!(profile.to_string().contains("events found no room and are missing: the limit is 3."), "{profile}");
}

#[test]
fn tables_are_sorted_cut_and_aligned() {
    let x = Tensor::ones([4], DType::Float32);
    let profile = record(PLAIN, |_| {
        (0..3).for_each(|_| drop(x.exp()));
        drop(x.tanh());
        let _range = profiler::range("by hand");
    });
    let by = |order| profile.ops().sort(order).rows().into_iter().map(|r| r.name).collect::<Vec<_>>();
    assert_eq!(by(SortBy::Calls), ["exp", "tanh"]);
    assert_eq!(by(SortBy::Name), ["exp", "tanh"]);
    for order in [SortBy::Total, SortBy::Own, SortBy::Average, SortBy::Max, SortBy::Min] {
        let rows = profile.ops().sort(order).rows();
        let key = |i: usize| match order {
            SortBy::Total => rows[i].total,
            SortBy::Own => rows[i].own,
            SortBy::Average => rows[i].average(),
            SortBy::Max => rows[i].max,
            _ => rows[i].min,
        };
        assert!(key(0) >= key(1), "{order:?}");
    }
    assert_eq!(profile.ops().limit(1).rows().len(), 1);
    let text = profile.ops().unit(Unit::Microseconds).to_string();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], "Ops (time in us)");
    assert!(lines.iter().skip(1).all(|l| l.chars().count() <= lines[1].chars().count()), "{text}");
    let ranges = profile.ranges().rows();
    assert_eq!((ranges[0].name.as_str(), ranges[0].calls), ("by hand", 1));
}

#[test]
fn a_trace_is_json_and_can_be_read_back() {
    let folder = Folder::new("profiler");
    let profile = record(ALL, |p| {
        let late = profiler::range("crosses");
        train(p, 2).unwrap();
        let later = profiler::range("crossed");
        drop(late);
        drop(later);
    });
    let path = folder.path().join("new").join("trace.json");
    profile.save_trace(&path).unwrap();
    let file: serde_json::Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    let lines = file["traceEvents"].as_array().unwrap();
    let count =
        |ph: &str, cat: &str| lines.iter().filter(|l| l["ph"] == ph && (cat.is_empty() || l["cat"] == cat)).count();
    assert_eq!((count("X", "step"), count("i", "step"), count("X", "optimizer"), count("X", "backward")), (2, 2, 2, 2));
    assert_eq!((count("b", "range"), count("e", "range")), (1, 1));
    assert!(count("X", "layer") == 12 && count("X", "gradient") > 0 && count("C", "") > 0 && count("M", "") >= 3);
    assert!(lines.iter().filter(|l| l["ph"] == "X").all(|l| l["ts"].is_number() && l["dur"].is_number()));

    let again = Profile::load_trace(&path).unwrap();
    assert_eq!(again.to_string(), profile.to_string());
    assert_eq!(again.layers().to_string(), profile.layers().to_string());
    assert_eq!(again.ops().by_shape(true).to_string(), profile.ops().by_shape(true).to_string());

    let blocked = path.join("below a file.json");
    let error = profile.save_trace(&blocked).unwrap_err().to_string();
    assert!(error.contains("cannot write") && error.contains("below a file.json"), "{error}");
    let error = Profile::load_trace(folder.path().join("none.json")).err().unwrap().to_string();
    assert!(error.contains("none.json"), "{error}");
    std::fs::write(&path, b"{\"traceEvents\": []}").unwrap();
    let error = Profile::load_trace(&path).err().unwrap().to_string();
    assert!(error.contains("it is no trace that this profiler wrote"), "{error}");
}
