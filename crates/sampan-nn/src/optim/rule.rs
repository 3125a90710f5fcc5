//! What tells one optimizer from another.

use crate::Parameter;
use sampan_core::{Error, Result, Value};
use sampan_kernels::optim::{Formula, Prepare};

/// The most numbers that are remembered about a parameter.
pub(crate) const NUMBERS: usize = 3;

/// Something an optimizer remembers about each parameter, under Paddle's name.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Accumulator {
    pub name: &'static str,
    /// What it holds before the first step.
    pub fill: f64,
    pub kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Kind {
    /// A tensor of the parameter's shape.
    Elements,
    /// So many of them; each step uses one.
    Rows(usize),
    /// A number, saved with shape `[1]`.
    Number,
    /// A number, saved as a tensor of the parameter's shape.
    Spread,
    /// A count, saved as int64.
    Count,
}

impl Kind {
    /// Is it kept as a number rather than as a tensor?
    pub fn is_number(self) -> bool {
        matches!(self, Kind::Number | Kind::Spread | Kind::Count)
    }
}

impl Accumulator {
    pub const fn elements(name: &'static str) -> Accumulator {
        Accumulator { name, fill: 0.0, kind: Kind::Elements }
    }
    pub const fn number(name: &'static str, fill: f64) -> Accumulator {
        Accumulator { name, fill, kind: Kind::Number }
    }
    pub const fn spread(name: &'static str, fill: f64) -> Accumulator {
        Accumulator { name, fill, kind: Kind::Spread }
    }
}

/// One parameter's next step, which a rule may change.
pub(crate) struct Step<'a> {
    pub parameter: &'a Parameter,
    /// The learning rate of this parameter.
    pub lr: f64,
    /// What happens to the gradient first.
    pub prepare: Prepare,
    /// The accumulators that are numbers, in order.
    pub numbers: &'a mut [f64; NUMBERS],
    /// Which row of accumulators with rows is used.
    pub row: usize,
    /// Is the step scaled by norms, where the rule does that?
    pub adapt: bool,
    /// Rounds to the precision numbers are saved in, so that a restored run has the same bits.
    pub round: fn(f64) -> f64,
}

/// How an optimizer works: what it remembers and what a step does.
pub(crate) trait Rule: Send + Sync {
    /// Paddle's class name.
    fn name(&self) -> &'static str;
    /// What is remembered; tensors are the formula's states in this order.
    fn accumulators(&self) -> Vec<Accumulator>;
    /// The formula of a parameter's step; advances its numbers.
    fn formula(&self, step: &mut Step) -> Result<Formula>;
    /// Changes a setting, for a group of parameters; false if it has none of that name.
    fn set(&mut self, name: &str, value: &Value) -> Result<bool>;
    /// A copy for a group.
    fn boxed(&self) -> Box<dyn Rule>;
    /// Are rows of sparse parameters left alone where the gradient is zero?
    fn lazy(&self) -> bool {
        false
    }
    /// Is the step scaled by norms of parameter and direction?
    fn scaled_by_norms(&self) -> bool {
        false
    }
}

/// `set` and `boxed` of a rule whose settings are fields of the same names.
macro_rules! settings {
    ($($field:ident: $t:ty),* $(,)?) => {
        #[allow(unused_variables)]
        fn set(&mut self, name: &str, value: &sampan_core::Value) -> sampan_core::Result<bool> {
            match name {
                $(stringify!($field) => self.$field = <$t as sampan_core::value::Arg>::get(value, name)?,)*
                _ => return Ok(false),
            }
            #[allow(unreachable_code)]
            Ok(true)
        }
        fn boxed(&self) -> Box<dyn $crate::optim::rule::Rule> {
            Box::new(self.clone())
        }
    };
}
pub(crate) use settings;

/// Fails unless a decay rate lies in `[0, 1)`.
pub(crate) fn check_betas(betas: &[(&str, f64)]) -> Result<()> {
    match betas.iter().find(|(_, b)| !(0.0..1.0).contains(b)) {
        Some((name, b)) => Err(Error::invalid(format!("{name} must lie in [0, 1), got {b}"))),
        None => Ok(()),
    }
}
