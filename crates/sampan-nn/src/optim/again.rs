//! A step that was recorded with the other work of a GPU, and is done again with other numbers.

use super::rule::{NUMBERS, Rule};
use super::{Numbers, locked, order};
use crate::Parameter;
use crate::lr::LearningRate;
use sampan_core::gpu::written;
use sampan_core::recording::Live;
use sampan_core::{DType, Result};
use sampan_kernels::optim::{Prepare, Written};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// The steps of all parameters.
pub(super) struct Again {
    pub parts: Vec<Part>,
    pub lr: Arc<Mutex<LearningRate>>,
    pub steps: Arc<AtomicU64>,
    /// Steps before the last one.
    pub steps_before: u64,
}

/// One parameter's step.
pub(super) struct Part {
    pub parameter: Parameter,
    pub rule: Box<dyn Rule>,
    pub factor: Option<f64>,
    pub prepare: Prepare,
    pub row: usize,
    pub dtype: DType,
    /// What was recorded.
    pub written: Written,
    pub numbers: Numbers,
    /// The numbers before the last step, should that have been left out.
    pub before: [f64; NUMBERS],
    /// The numbers after the next step, and those of its formulas.
    pub next: Option<([f64; NUMBERS], Vec<f64>)>,
}

impl Part {
    /// Works the next step out; false if it is another than what was recorded.
    fn prepare_next(&mut self, lr: f64) -> Result<bool> {
        let mut numbers = *locked(&self.numbers);
        let lr = lr * self.factor.unwrap_or_else(|| self.parameter.settings().learning_rate);
        let (formula, lr, prepare, row, _) =
            order(&*self.rule, &self.parameter, self.parameter.tensor().dtype(), lr, self.prepare, &mut numbers)?;
        let Some(written) = written(self.dtype, formula, lr, &prepare) else { return Ok(false) };
        let same = Arc::ptr_eq(&written.formulas, &self.written.formulas) && row == self.row;
        self.next = Some((numbers, written.constants));
        Ok(same)
    }
}

impl Live for Again {
    fn still_fits(&mut self) -> Result<bool> {
        let lr = locked(&self.lr).get();
        for part in &mut self.parts {
            if !part.prepare_next(lr)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn next(&mut self, words: &mut [u64]) -> Result<()> {
        let mut words = words.iter_mut();
        for part in &mut self.parts {
            let (numbers, constants) = part.next.take().expect("asked whether it fits just before");
            part.before = std::mem::replace(&mut *locked(&part.numbers), numbers);
            words.by_ref().zip(constants).for_each(|(word, c)| *word = c.to_bits());
        }
        self.steps_before = self.steps.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    fn undo(&mut self) {
        for part in &self.parts {
            *locked(&part.numbers) = part.before;
        }
        self.steps.store(self.steps_before, Ordering::Relaxed);
    }
}
