//! Every function of the registry with random, mostly wrong arguments: each call gives a result or an error.
//! `FUZZ_CALLS=5000` makes a longer run.

use sampan_core::function::{self, FunctionDef};
use sampan_core::op::Kind;
use sampan_core::{DType, Tensor, Value};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// A generator of small numbers.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) as usize % n
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.roll(from.len())]
    }

    fn tensor(&mut self) -> Tensor {
        let shapes: [&[usize]; 16] = [
            &[],
            &[0],
            &[1],
            &[2],
            &[3],
            &[4],
            &[0, 4],
            &[1, 4],
            &[2, 4],
            &[2, 2],
            &[4, 4, 3],
            &[3, 4, 4],
            &[2, 3, 4, 4],
            &[1, 7, 2, 2],
            &[1, 0, 2, 2],
            &[2, 2, 3, 2, 2],
        ];
        let dtype =
            self.pick(&[DType::Float32, DType::Float32, DType::Float64, DType::Int32, DType::Int64, DType::UInt8]);
        let shape = self.pick(&shapes);
        let low = self.pick(&[0.0, -3.0, f64::NAN, 1e30]);
        let values: Vec<f64> = (0..shape.iter().product()).map(|i| low + (i % 5) as f64).collect();
        Tensor::from_vec(values, shape).cast(dtype)
    }

    fn value(&mut self, kind: Kind) -> Value {
        let int = self.pick(&[-7i64, -1, 0, 1, 2, 3, 4, 32, 1 << 40, i64::MIN, i64::MAX]);
        let float = self.pick(&[0.0, 0.5, 1.0, -1.0, 7.5, 1e300, f64::NAN, f64::INFINITY]);
        let count = self.roll(7);
        match kind {
            Kind::Tensor => self.tensor().into(),
            Kind::Tensors => vec![self.tensor(), self.tensor()].into(),
            Kind::Int => int.into(),
            Kind::Float | Kind::Scalar => float.into(),
            Kind::Bool => (int > 0).into(),
            Kind::Str => {
                self.pick(&["", "CHW", "HWC", "nearest", "bilinear", "reflect", "rgb", "decode_center_size"]).into()
            }
            Kind::DType => DType::Float32.into(),
            Kind::Ints => (0..count).map(|_| self.pick(&[-1i64, 0, 1, 2, 3, 8])).collect::<Vec<_>>().into(),
            Kind::Floats => vec![float; count].into(),
            Kind::Operand | Kind::Any => match self.roll(8) {
                0 => Value::None,
                1 => int.into(),
                2 => float.into(),
                3 => vec![float; count].into(),
                4 => Value::List(vec![vec![1.0, 2.0].into(); count]),
                5 => vec![self.roll(9) as i64; count].into(),
                _ => self.tensor().into(),
            },
        }
    }

    fn arguments(&mut self, function: &FunctionDef) -> Vec<Value> {
        let shown = function.params.iter().map(|p| match (p.default, self.roll(10)) {
            (Some(default), 0..7) => default(),
            (_, 9) => self.value(Kind::Any),
            _ => self.value(p.kind),
        });
        shown.collect()
    }
}

#[test]
fn wrong_arguments_are_errors() {
    let calls = std::env::var("FUZZ_CALLS").ok().and_then(|n| n.parse().ok()).unwrap_or(200);
    let mut bad = Vec::new();
    // Gradients of parameters and files are out of a dice's reach.
    for function in function::all()
        .into_iter()
        .filter(|f| ["vision", "text", "metric", "nn.functional"].iter().any(|m| f.module.starts_with(m)))
    {
        let mut dice = Dice(7);
        for i in 0..calls {
            let arguments = dice.arguments(function);
            let shown = format!("{arguments:?}");
            if catch_unwind(AssertUnwindSafe(|| function.call(arguments, vec![]).map(|_| ()).ok())).is_err() {
                bad.push(format!("{}, call {i}: {}", function.name, shown.chars().take(400).collect::<String>()));
                break;
            }
        }
    }
    assert!(bad.is_empty(), "{} panicked:\n{}", bad.len(), bad.join("\n"));
}
