//! The Rust contender of `benches/compare`: the same workloads, the same lines in and out as its `contender.py`.

mod peak;

use sampan::core::Captured;
use sampan::core::ops::random::try_randint;
use sampan::prelude::*;
use serde_json::{Value, json};
use std::io::{BufRead, Write};
use std::time::Instant;

type Step = Box<dyn FnMut() -> Result<()>>;

fn network(name: &str) -> Result<Box<dyn Layer>> {
    let model = |name: &str, classes: i64| -> Result<Box<dyn Layer>> {
        let known = models::find(name).expect("a model of the zoo");
        Ok(Box::new(known.build_with(vec![("num_classes", classes.into())])?))
    };
    Ok(match name {
        "linear" => Box::new(Linear::new(784, 1)),
        "mlp" => Box::new(sequential![
            Linear::new(784, 10),
            Sigmoid::new(),
            Linear::new(10, 10),
            Sigmoid::new(),
            Linear::new(10, 1)
        ]),
        "cnn" => Box::new(sequential![
            Conv2D::with(1, 20, 5, |o| o.padding(2)),
            ReLU::new(),
            MaxPool2D::with(2, |o| o.stride(2)),
            Conv2D::with(20, 20, 5, |o| o.padding(2)),
            ReLU::new(),
            MaxPool2D::with(2, |o| o.stride(2)),
            Flatten::new(),
            Linear::new(980, 10)
        ]),
        "lenet" => Box::new(LeNet::new()),
        "lstm" => Box::new(LSTM::new(256, 256)),
        "transformer" => {
            let layer = TransformerEncoderLayer::new(256, 4, 1024);
            Box::new(TransformerEncoder::new(layer, 4))
        }
        "resnet18" => model("resnet18", 10)?,
        "resnet50" => model("resnet50", 1000)?,
        _ => model("mobilenet_v3_small", 1000)?,
    })
}

fn training(network_name: &str, shape: &[usize], classes: Option<i64>, kind: &str, captured: bool) -> Result<Step> {
    let net = network(network_name)?;
    let x = Tensor::randn(shape);
    let y = match classes {
        Some(n) if n > 0 => try_randint(0, n, [shape[0]])?,
        _ => Tensor::randn([shape[0], 1]),
    };
    let mut optimizer = match kind {
        "sgd" => SGD::new(0.001, net.parameters()),
        "momentum" => Momentum::new(0.001, net.parameters()),
        "adam" => Adam::new(0.001, net.parameters()),
        _ => AdamW::new(0.001, net.parameters()),
    };
    let mut learn = move |given: &[Tensor]| {
        let out = net.call(&given[0])?;
        let loss = match classes {
            Some(0) => out.try_mse_loss(&given[1])?,
            Some(_) => out.try_cross_entropy(&given[1])?,
            None => (&out * &out).mean(()),
        };
        loss.try_backward(None, false)?;
        optimizer.step()?;
        optimizer.clear_grad();
        Ok(vec![loss])
    };
    let given = [x, y];
    if !captured {
        return Ok(Box::new(move || learn(&given).map(|_| ())));
    }
    let mut recorded = Captured::default();
    Ok(Box::new(move || recorded.call("", &given, &mut learn).map(|_| ())))
}

fn inference(network_name: &str, shape: &[usize]) -> Result<Step> {
    let net = network(network_name)?;
    net.eval();
    let x = Tensor::randn(shape);
    Ok(Box::new(move || no_grad(|| net.call(&x)).map(|_| ())))
}

fn epoch() -> Result<Step> {
    let data = Mnist::new(Split::Train)?.normalized(&[0.1307 * 255.0], &[0.3081 * 255.0])?;
    let loader = DataLoader::new(data, 64, true)?;
    Ok(Box::new(move || {
        let mut count = 0;
        for batch in &loader {
            let [images, _] = fields(batch?)?;
            count += images.shape()[0];
        }
        assert_eq!(count, 60_000);
        Ok(())
    }))
}

/// The workload of a name, or None where only Python has it.
fn build(name: &str) -> Option<Result<Step>> {
    let (name, captured) = match name.strip_suffix(", captured") {
        Some(name) => (name, true),
        None => (name, false),
    };
    let training =
        |network: &str, shape: &[usize], classes, kind: &str| training(network, shape, classes, kind, captured);
    Some(match name {
        "linear b16" => training("linear", &[16, 784], Some(0), "sgd"),
        "mlp b100" => training("mlp", &[100, 784], Some(0), "sgd"),
        "seeds' cnn b100" => training("cnn", &[100, 1, 28, 28], Some(10), "adam"),
        "lenet b64" => training("lenet", &[64, 1, 28, 28], Some(10), "adam"),
        "lenet b1024" => training("lenet", &[1024, 1, 28, 28], Some(10), "adam"),
        "resnet18 32px b32" => training("resnet18", &[32, 3, 32, 32], Some(10), "momentum"),
        "resnet50 224px b4" => training("resnet50", &[4, 3, 224, 224], Some(1000), "momentum"),
        "mobilenetv3-small 224px b8" => training("mobilenet", &[8, 3, 224, 224], Some(1000), "momentum"),
        "transformer encoder b8" => training("transformer", &[8, 128, 256], None, "adamw"),
        "lstm 256 s64 b32" => training("lstm", &[32, 64, 256], None, "adam"),
        "lenet b1" => inference("lenet", &[1, 1, 28, 28]),
        "mobilenetv3-small b1" => inference("mobilenet", &[1, 3, 224, 224]),
        "mobilenetv3-small b8" => inference("mobilenet", &[8, 3, 224, 224]),
        "resnet50 b1" => inference("resnet50", &[1, 3, 224, 224]),
        "mnist epoch b64" => epoch(),
        _ => return None,
    })
}

/// A workload that is being timed.
struct Running {
    step: Step,
    /// Steps between two looks at the clock.
    batch: usize,
}

/// Long enough that looking at the clock costs nothing beside it.
const BATCH_SECONDS: f64 = 0.001;
const WARM_UP_SECONDS: f64 = 0.3;
/// A step of this length warms itself up, and one of them is enough for a round.
const LONG_SECONDS: f64 = 2.0;

fn seconds(step: &mut Step, times: usize) -> Result<f64> {
    let began = Instant::now();
    for _ in 0..times {
        step()?;
    }
    Ok(began.elapsed().as_secs_f64())
}

impl Running {
    /// Makes the first step and warms up: the workload, and the seconds of that first step.
    fn start(mut step: Step) -> Result<(Running, f64)> {
        let first = seconds(&mut step, 1)?;
        let (mut spent, mut steps) = if first >= LONG_SECONDS { (first, 1) } else { (0.0, 0) };
        while spent < WARM_UP_SECONDS || (steps < 2 && spent < LONG_SECONDS) {
            spent += seconds(&mut step, 1)?;
            steps += 1;
        }
        let batch = (BATCH_SECONDS * steps as f64 / spent).ceil() as usize;
        Ok((Running { step, batch }, first))
    }

    /// Seconds of a step: the median over batches for `enough` seconds, at least two of them unless they are long.
    fn time(&mut self, enough: f64) -> Result<f64> {
        let (mut spent, mut batches) = (0.0, Vec::new());
        while spent < enough || (batches.len() < 2 && spent < LONG_SECONDS) {
            let batch = seconds(&mut self.step, self.batch)?;
            spent += batch;
            batches.push(batch / self.batch as f64);
        }
        batches.sort_by(f64::total_cmp);
        Ok((batches[(batches.len() - 1) / 2] + batches[batches.len() / 2]) / 2.0)
    }
}

/// The peak resident size in MiB.
fn memory() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status.lines().find_map(|l| l.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB")?.parse::<f64>().ok());
    peak.unwrap_or(0.0) / 1024.0
}

/// What a line asks for: `["build", name]`, `["time", seconds]`, `["memory"]`, `["peak"]`, or `["first", name]`, which
/// is a build that ends with the first step.
fn answer(command: &Value, threads: usize, running: &mut Option<Running>) -> Result<Value> {
    let name = command[1].as_str().unwrap_or_default();
    Ok(match (command[0].as_str(), running) {
        (Some("memory"), _) => json!({ "memory": memory() }),
        (Some("peak"), _) => peak::measure(threads),
        (Some("time"), Some(running)) => json!({ "step": running.time(command[1].as_f64().unwrap_or(0.5))? }),
        (Some("build"), running) => match build(name) {
            None => json!({ "absent": true }),
            Some(step) => {
                let (started, first) = Running::start(step?)?;
                *running = Some(started);
                json!({ "first": first })
            }
        },
        (Some("first"), _) => match build(name) {
            None => json!({ "absent": true }),
            Some(step) => json!({ "first": seconds(&mut step?, 1)? }),
        },
        _ => json!({ "error": format!("no such command: {command}") }),
    })
}

fn main() {
    let threads = std::env::args().nth(1).and_then(|a| a.parse().ok()).unwrap_or(1);
    sampan::core::set_num_threads(threads);
    let mut running = None;
    for line in std::io::stdin().lock().lines().map_while(std::result::Result::ok) {
        let command = serde_json::from_str(&line).unwrap_or_default();
        let found = answer(&command, threads, &mut running);
        println!("{}", found.unwrap_or_else(|e| json!({ "error": e.to_string() })));
        let _ = std::io::stdout().flush();
    }
}
