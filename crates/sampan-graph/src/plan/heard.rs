//! What a call is made of, for tensors of known shapes.

use crate::record::tensors;
use sampan_core::dispatch::{Listener, dispatch, listen};
use sampan_core::op::{OpDef, Outputs};
use sampan_core::value::Args;
use sampan_core::{DType, Error, Result, Tensor, Value};
use sampan_formula::Bound;
use std::cell::RefCell;
use std::rc::Rc;

/// A primitive that ran inside of a call.
pub(super) struct Part {
    pub op: &'static OpDef,
    pub args: Vec<Value>,
}

/// A formula that was applied.
pub(super) struct Applied {
    pub formula: Bound,
    pub dtype: DType,
    /// The tensors it read, by number.
    pub tensors: Vec<u64>,
}

/// A call and its parts.
pub(super) struct Heard {
    pub outputs: Outputs,
    /// Primitives other than formulas.
    pub parts: Vec<Part>,
    pub formulas: Vec<Applied>,
}

#[derive(Default)]
struct Ears {
    /// For each call that is running: was it a formula?
    running: RefCell<Vec<bool>>,
    parts: RefCell<Vec<Part>>,
    formulas: RefCell<Vec<Applied>>,
}

impl Listener for Ears {
    fn enter(&self, _: &'static OpDef, _: &[Value]) {
        self.running.borrow_mut().push(false);
    }

    fn exit(&self, op: &'static OpDef, args: &[Value], _: &[Tensor]) {
        let formula = self.running.borrow_mut().pop().unwrap_or(false);
        if op.primitive && !formula {
            self.parts.borrow_mut().push(Part { op, args: args.to_vec() });
        }
    }

    fn failed(&self, _: &'static OpDef, _: &[Value], _: &Error) {
        self.running.borrow_mut().pop();
    }

    fn formula(&self, formula: &Bound, dtype: DType, tensors: &[&Tensor], output: &Tensor) {
        if let Some(last) = self.running.borrow_mut().last_mut() {
            *last = true;
        }
        // One whose results are of another type than it computes in is no part of a chain.
        let tensors = match output.dtype() == dtype && tensors.iter().all(|t| t.dtype() == dtype) {
            true => tensors.iter().map(|t| t.id()).collect(),
            false => vec![],
        };
        self.formulas.borrow_mut().push(Applied { formula: formula.clone(), dtype, tensors });
    }
}

/// Makes a call and listens to it.
pub(super) fn hear(op: &'static OpDef, args: Args) -> Result<Heard> {
    let ears = Rc::new(Ears::default());
    let outputs = listen(ears.clone(), || dispatch(op, args))?;
    Ok(Heard { outputs, parts: ears.parts.take(), formulas: ears.formulas.take() })
}

/// The numbers of all tensors among arguments.
pub(super) fn ids(args: &[Value]) -> Vec<u64> {
    tensors(args).into_iter().map(Tensor::id).collect()
}
