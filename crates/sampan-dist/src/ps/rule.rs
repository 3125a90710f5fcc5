//! What a gradient does to a row.

use sampan_core::{Error, Result};
use sampan_kernels::DType;
use sampan_kernels::optim::{Formula, Job, Prepare, step};

/// How a row changes by its gradient. The formulas are those of the optimizers; each row counts its own steps.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Rule {
    /// Plain descent.
    Sgd,
    /// With a velocity.
    Momentum {
        /// The share of the velocity that is kept.
        mu: f64,
        /// Nesterov's form.
        nesterov: bool,
    },
    /// With the sum of squares.
    Adagrad {
        /// Keeps the divisor from zero.
        epsilon: f64,
        /// The sum of squares in the beginning.
        start: f64,
    },
    /// With two moments.
    Adam {
        /// Of the first moment.
        beta1: f64,
        /// Of the second moment.
        beta2: f64,
        /// Keeps the divisor from zero.
        epsilon: f64,
        /// The share of the value, times the rate, that goes in each step.
        decay: f64,
    },
}

impl Rule {
    /// A rule by its name, with the numbers of the others in order.
    pub fn named(name: &str, n: [f64; 4]) -> Result<Rule> {
        Ok(match name {
            "sgd" => Rule::Sgd,
            "momentum" => Rule::Momentum { mu: n[0], nesterov: n[1] != 0.0 },
            "adagrad" => Rule::Adagrad { epsilon: n[0], start: n[1] },
            "adam" => Rule::Adam { beta1: n[0], beta2: n[1], epsilon: n[2], decay: n[3] },
            _ => {
                return Err(Error::invalid(format!("a parameter server has no rule {name:?}"))
                    .hint("sgd, momentum, adagrad or adam"));
            }
        })
    }

    /// As numbers on the wire.
    pub fn numbers(self) -> [f64; 5] {
        match self {
            Rule::Sgd => [0.0; 5],
            Rule::Momentum { mu, nesterov } => [1.0, mu, f64::from(nesterov), 0.0, 0.0],
            Rule::Adagrad { epsilon, start } => [2.0, epsilon, start, 0.0, 0.0],
            Rule::Adam { beta1, beta2, epsilon, decay } => [3.0, beta1, beta2, epsilon, decay],
        }
    }

    /// From numbers on the wire.
    pub fn from_numbers(n: &[f64]) -> Option<Rule> {
        let &[kind, a, b, c, d] = n else { return None };
        let name = ["sgd", "momentum", "adagrad", "adam"].get(kind as usize)?;
        Rule::named(name, [a, b, c, d]).ok()
    }

    /// How many numbers it remembers for a row of `dim`.
    pub fn state(self, dim: usize) -> usize {
        match self {
            Rule::Sgd => 0,
            Rule::Momentum { .. } | Rule::Adagrad { .. } => dim,
            // The last one counts steps.
            Rule::Adam { .. } => 2 * dim + 1,
        }
    }

    /// What it remembers in the beginning.
    pub fn begin(self, state: &mut [f32]) {
        state.fill(if let Rule::Adagrad { start, .. } = self { start as f32 } else { 0.0 });
    }

    /// Changes a row, which is `dim` values and then what is remembered. `l2` adds a share of the value to the gradient.
    pub fn apply(self, lr: f64, l2: f64, row: &mut [f32], grad: &[f32]) {
        let dim = grad.len();
        let (values, state) = row.split_at_mut(dim);
        let (mut first, mut second): (&mut [f32], &mut [f32]) = (&mut [], &mut []);
        let (formula, lr) = match self {
            Rule::Sgd => (Formula::Sgd, lr),
            Rule::Momentum { mu, nesterov } => {
                first = state;
                (Formula::Momentum { mu, nesterov }, lr)
            }
            Rule::Adagrad { epsilon, .. } => {
                first = state;
                (Formula::Adagrad { epsilon }, lr)
            }
            Rule::Adam { beta1, beta2, epsilon, decay } => {
                let (moments, count) = state.split_at_mut(2 * dim);
                (first, second) = moments.split_at_mut(dim);
                count[0] += 1.0;
                let t = f64::from(count[0]);
                let (one, two) = (1.0 - beta1.powf(t), (1.0 - beta2.powf(t)).sqrt());
                let shrink = lr * decay;
                (Formula::Adam { beta1, beta2, epsilon: epsilon * two, shrink, amsgrad: false }, lr * two / one)
            }
        };
        step(&mut [Job {
            dtype: DType::Float32,
            formula,
            lr,
            prepare: Prepare { l2, ..Prepare::default() },
            param: bytemuck::cast_slice_mut(values),
            grad: bytemuck::cast_slice(grad),
            master: &mut [],
            states: [bytemuck::cast_slice_mut(first), bytemuck::cast_slice_mut(second), &mut []],
        }]);
    }
}
