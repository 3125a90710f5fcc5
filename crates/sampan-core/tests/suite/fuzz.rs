//! No call of any op with any arguments may panic, hang, abort or take enormous memory: it succeeds or gives an error.
//!
//! Each op's calls follow from its name alone, so a failure comes again whatever else is in the registry.
//! `FUZZ_CALLS=2000` makes more calls of each op, `FUZZ_SEED=7` other ones, `FUZZ_SHOW=1` prints each before it is made
//! (the last one printed is the one that aborted), `OPS=` and `FAMILY=` choose ops.

use crate::alone::alone;
use crate::registry::{chosen_ops, strided};
use sampan_core::dispatch::{dispatch, dispatch_inplace};
use sampan_core::op::{Kind, OpDef};
use sampan_core::sample::Sample;
use sampan_core::value::Args;
use sampan_core::{Complex128, DType, Device, GradOptions, Result, Tensor, Value, grad, random};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Buffers may hold this much in all; what asks for more gets the error of a full memory.
const MEMORY: usize = 32 << 20;
/// Address space that the calls of one op may take beyond it.
const EXCESS_KIB: usize = 256 << 10;
/// A call that takes longer, even without optimisation on a busy machine, would not end soon.
const PATIENCE: Duration = Duration::from_secs(20);

fn env(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|v| v.parse().ok()).unwrap_or(default)
}

/// A weak generator with a state of one word.
struct Dice(u64);

impl Dice {
    fn for_op(op: &OpDef, seed: u64) -> Dice {
        Dice(op.name.bytes().fold(seed, |h, b| (h ^ b as u64).wrapping_mul(0x0100_0000_01B3)))
    }

    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((z ^ (z >> 31)) % n as u64) as usize
    }

    fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    fn pick<T: Clone>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())].clone()
    }

    fn list<T>(&mut self, below: usize, mut make: impl FnMut(&mut Dice) -> T) -> Vec<T> {
        (0..self.below(below)).map(|_| make(self)).collect()
    }

    fn int(&mut self) -> i64 {
        match self.below(12) {
            0 => self.pick(&[i64::MIN, i64::MAX, i64::MIN + 1, i64::MAX - 1, 1 << 62, -(1 << 40), 1 << 33]),
            1 => self.pick(&[-100, 63, 64, 1000, 100_000, i32::MAX as i64, i32::MIN as i64, 1 << 31]),
            _ => self.below(9) as i64 - 3,
        }
    }

    fn float(&mut self) -> f64 {
        const NASTY: [f64; 5] = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1e300, -1e300];
        const PLAIN: [f64; 12] = [0.0, -0.0, 1.0, -1.0, 0.5, 2.0, 3.7, -7.3, 0.1, 1e-300, 1e19, 65520.0];
        if self.one_in(3) { self.pick(&NASTY) } else { self.pick(&PLAIN) }
    }

    fn word(&mut self) -> &'static str {
        const WORDS: &[&str] = &[
            "",
            "é",
            "mean",
            "sum",
            "none",
            "constant",
            "reflect",
            "replicate",
            "circular",
            "bilinear",
            "nearest",
            "bicubic",
            "linear",
            "area",
            "trilinear",
            "NCHW",
            "NHWC",
            "NCL",
            "NLC",
            "NCDHW",
            "NDHWC",
            "SAME",
            "VALID",
            "fro",
            "nuc",
            "left",
            "right",
            "ij",
            "xy",
            "raise",
            "wrap",
            "clip",
            "ij,jk->ik",
            "ii->i",
            "...i,i->...",
            "i->",
            "ij->ji,",
            "->",
            "zeros",
            "border",
            "reflection",
            "tanh",
            "relu",
            "floor",
            "trunc",
            "add",
            "mul",
            "assign",
            "amin",
            "amax",
            "multiply",
            "complete",
            "reduced",
            "r",
            "upscale_in_train",
            "downscale_in_infer",
            "higher",
            "lower",
            "midpoint",
            "min",
            "max",
            "L",
            "U",
            "hann",
            "float32",
            "int64",
            "minlength",
        ];
        self.pick(WORDS)
    }

    fn dtype(&mut self) -> DType {
        self.pick(&DType::ALL)
    }

    fn tensor(&mut self) -> Tensor {
        let rank = self.pick(&[0, 1, 1, 2, 2, 2, 3, 3, 4, 4, 5, 7]);
        let mut shape: Vec<usize> = (0..rank).map(|_| self.pick(&[0, 1, 1, 2, 2, 2, 3, 3, 4, 5])).collect();
        while shape.iter().product::<usize>() > 400 {
            shape.pop();
        }
        let dtype = if self.one_in(2) { DType::Float32 } else { self.dtype() };
        let count = shape.iter().product();
        let nasty = self.one_in(3);
        let t = if dtype.is_inexact() {
            let mut value = || if nasty && self.one_in(3) { self.float() } else { self.below(4000) as f64 / 1e3 - 2.0 };
            Tensor::from_vec((0..count).map(|_| value()).collect::<Vec<f64>>(), &shape)
        } else {
            let mut value = || if nasty { self.int() } else { self.below(3) as i64 };
            Tensor::from_vec((0..count).map(|_| value()).collect::<Vec<i64>>(), &shape)
        };
        self.laid_out(t.cast(dtype))
    }

    /// The same values in another layout, or no values at all.
    fn laid_out(&mut self, t: Tensor) -> Tensor {
        let sizes: Vec<i64> = t.shape().iter().map(|&n| n as i64).collect();
        match self.below(10) {
            0 if t.ndim() >= 2 => t.transpose((1..t.ndim() as i64).chain([0]).collect::<Vec<_>>()),
            1 if t.ndim() >= 1 => t.flip(0),
            2 if t.ndim() < 7 => t.expand([&[2], sizes.as_slice()].concat()),
            3 if t.ndim() < 7 => strided(&t).expect("a copy with gaps"),
            4 => t.to_meta(),
            _ => t,
        }
    }

    fn value(&mut self, kind: Kind) -> Value {
        let kind = if self.one_in(25) { Kind::Any } else { kind };
        match kind {
            Kind::Tensor => self.tensor().into(),
            Kind::Tensors => {
                let one = self.tensor();
                let same = self.one_in(2);
                Value::Tensors(self.list(5, |d| if same { one.clone() } else { d.tensor() }))
            }
            Kind::Operand => match self.below(9) {
                0 | 1 => Value::Int(self.int()),
                2 | 3 => Value::Float(self.float()),
                4 => Value::Complex(Complex128::new(self.float(), self.float())),
                _ => self.tensor().into(),
            },
            Kind::Int => Value::Int(self.int()),
            Kind::Float => Value::Float(self.float()),
            Kind::Bool => Value::Bool(self.one_in(2)),
            Kind::Str => Value::Str(self.word().into()),
            Kind::DType => Value::DType(self.dtype()),
            Kind::Ints if self.one_in(4) => Value::Int(self.int()),
            Kind::Ints => Value::Ints(self.list(7, Dice::int).into()),
            Kind::Floats => Value::Floats(self.list(5, Dice::float)),
            Kind::Scalar => match self.below(4) {
                0 => Value::Int(self.int()),
                1 => Value::Float(self.float()),
                2 => Value::Complex(Complex128::new(self.float(), self.float())),
                _ => Value::Bool(true),
            },
            Kind::Any => match self.below(11) {
                0 => Value::None,
                1 => Value::List(self.list(4, |d| if d.one_in(4) { Value::Int(d.int()) } else { d.tensor().into() })),
                2 => Value::List(self.list(3, |d| Value::List(d.list(3, |d| Value::Int(d.int()))))),
                k => {
                    let kinds = [
                        Kind::Tensor,
                        Kind::Tensors,
                        Kind::Int,
                        Kind::Float,
                        Kind::Bool,
                        Kind::Str,
                        Kind::DType,
                        Kind::Ints,
                    ];
                    self.value(kinds[k - 3])
                }
            },
        }
    }
}

/// Arguments made up by the kinds of the signature.
fn invented(op: &OpDef, dice: &mut Dice) -> Vec<Value> {
    let one = |p: &sampan_core::op::Param, dice: &mut Dice| match p.default {
        _ if p.optional && dice.one_in(3) => Value::None,
        Some(default) if dice.one_in(2) => default(),
        _ => dice.value(p.kind),
    };
    let mut args: Vec<Value> = op.params.iter().map(|p| one(p, dice)).collect();
    match dice.below(30) {
        0 => drop(args.pop()),
        1 => args.push(dice.value(Kind::Any)),
        _ => {}
    }
    args
}

/// The arguments of a sample with one or two of them changed: another dtype, nasty elements, another value.
fn mutated(op: &OpDef, sample: &Sample, dice: &mut Dice) -> Result<Args> {
    let mut args = sample.bind(op)?;
    for _ in 0..(1 + dice.below(2)).min(args.len()) {
        let i = dice.below(args.len());
        args[i] = match (&args[i], dice.below(4)) {
            (Value::Tensor(t), 0) => t.cast(dice.dtype()).into(),
            (Value::Tensor(t), 1) if t.device() == Device::Cpu => {
                let values = t.to_f64_vec().into_iter().map(|v| if dice.one_in(4) { dice.float() } else { v });
                let parts: Vec<usize> = t.shape().iter().copied().chain(t.is_complex().then_some(2)).collect();
                let values = Tensor::from_vec(values.collect::<Vec<f64>>(), parts);
                (if t.is_complex() { values.as_complex() } else { values }).cast(t.dtype()).into()
            }
            (Value::Tensor(t), 2) => dice.laid_out(t.clone()).into(),
            _ => dice.value(op.params[i].kind),
        };
    }
    Ok(args)
}

/// The call in words.
fn describe(op: &OpDef, args: &[Value]) -> String {
    fn word(v: &Value) -> String {
        match v {
            Value::Tensor(t) if t.numel() <= 8 && t.device() == Device::Cpu => {
                format!("{:?} {} {:?}", t.shape(), t.dtype(), t.to_f64_vec())
            }
            Value::Tensor(t) => format!("{:?} {} {}", t.shape(), t.dtype(), t.device()),
            Value::Tensors(list) => {
                format!("({})", list.iter().map(|t| word(&t.into())).collect::<Vec<_>>().join("; "))
            }
            Value::List(list) => format!("[{}]", list.iter().map(word).collect::<Vec<_>>().join("; ")),
            other => format!("{other:?}"),
        }
    }
    format!("{}({})", op.name, args.iter().map(word).collect::<Vec<_>>().join(", "))
}

/// Makes the call, reads what it gives, and walks back through it where there is a way.
fn attempt(op: &'static OpDef, mut args: Args, inplace: bool) -> Result<()> {
    let mut leaves = Vec::new();
    for v in &mut args {
        v.map_tensors(&mut |t| {
            let t = t.detach();
            if inplace || !t.dtype().is_inexact() {
                return Ok(t);
            }
            leaves.push(t.requires_grad_());
            Ok(leaves[leaves.len() - 1].clone())
        })?;
    }
    if inplace {
        return dispatch_inplace(op, args).map(|_| ());
    }
    // A view of few elements may have any size; only what is of ordinary size is worth reading.
    let outputs: Vec<Tensor> =
        dispatch(op, args)?.into_iter().filter(|t| t.device() == Device::Cpu && t.numel() < 1 << 20).collect();
    outputs.iter().for_each(|t| drop(t.to_bytes()));
    let tracked: Vec<Tensor> = outputs.into_iter().filter(|t| t.requires_grad()).collect();
    if !tracked.is_empty() {
        let options = GradOptions { allow_unused: true, ..Default::default() };
        grad(&tracked, &leaves, &[], options)?.iter().flatten().for_each(|g| drop(g.to_bytes()));
    }
    Ok(())
}

/// The call that runs and when it began, for the watch.
static RUNNING: Mutex<Option<(Instant, String)>> = Mutex::new(None);

fn watch() {
    std::thread::spawn(|| {
        loop {
            std::thread::sleep(Duration::from_secs(1));
            if let Some((since, call)) = &*RUNNING.lock().unwrap()
                && since.elapsed() > PATIENCE
            {
                println!("no end after {PATIENCE:?}: {call}");
                std::process::exit(1);
            }
        }
    });
}

/// The most address space this process had, where the system says so.
fn peak_kib() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|l| l.strip_prefix("VmPeak:"));
    line.and_then(|l| l.trim().strip_suffix(" kB")?.parse().ok()).unwrap_or(0)
}

static CALLS: AtomicU64 = AtomicU64::new(0);

fn fuzz(op: &'static OpDef, failures: &mut Vec<String>) {
    let mut dice = Dice::for_op(op, env("FUZZ_SEED", 1));
    let samples = op.samples.map(|f| f()).unwrap_or_default();
    let show = env("FUZZ_SHOW", 0) > 0;
    let before = peak_kib();
    for _ in 0..env("FUZZ_CALLS", 40) {
        let args = if samples.is_empty() || dice.one_in(3) {
            op.bind(invented(op, &mut dice), vec![])
        } else {
            let sample = &samples[dice.below(samples.len())];
            mutated(op, sample, &mut dice)
        };
        let inplace = op.inplace && dice.one_in(4);
        let Ok(args) = args else { continue };
        let call = format!("{}{}", if inplace { "in place " } else { "" }, describe(op, &args));
        if show {
            println!("{call}");
        }
        *RUNNING.lock().unwrap() = Some((Instant::now(), call.clone()));
        random::seed(0);
        let outcome = catch_unwind(AssertUnwindSafe(|| attempt(op, args, inplace)));
        *RUNNING.lock().unwrap() = None;
        CALLS.fetch_add(1, Ordering::Relaxed);
        if outcome.is_err() {
            failures.push(format!("panicked: {call}"));
        }
    }
    if peak_kib() > before + MEMORY / 1024 + EXCESS_KIB {
        failures.push(format!("{} took {} MiB more", op.name, (peak_kib() - before) / 1024));
    }
}

#[test]
fn no_arguments_break_an_op() {
    alone("fuzz::no_arguments_break_an_op", || {
        sampan_kernels::buffer::set_memory_limit(MEMORY);
        // Large buffers come from a range of addresses that is reserved with the first of them.
        drop(sampan_kernels::Buffer::uninit(1 << 20));
        watch();
        let mut failures = Vec::new();
        for op in chosen_ops() {
            println!("{}", op.name);
            fuzz(op, &mut failures);
        }
        assert!(failures.is_empty(), "{} failures:\n{}", failures.len(), failures.join("\n"));
        assert!(CALLS.load(Ordering::Relaxed) > 0);
    });
}
