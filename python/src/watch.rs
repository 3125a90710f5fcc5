//! Watching the calls of a thread: which precision ops compute in, and where numbers stop being finite.

use pyo3::prelude::*;
use sampan_core::dispatch::{Listener, add_listener, remove_listener};
use sampan_core::op::OpDef;
use sampan_core::{DType, Tensor, Value};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, HashSet};
use std::rc::Rc;

/// Prints a line the way Python does, so that a redirected output gets it.
pub fn print(line: &str) {
    Python::attach(|py| {
        let printed = py.import("builtins").and_then(|b| b.call_method1("print", (line,)));
        printed.map(|_| ()).unwrap_or_else(|_| println!("{line}"));
    });
}

/// Counts the outermost calls of each op by the precision of their first result.
#[derive(Default)]
struct Stats {
    depth: Cell<usize>,
    /// float16, bfloat16, float32, others.
    calls: RefCell<BTreeMap<&'static str, [usize; 4]>>,
}

impl Listener for Stats {
    fn enter(&self, _: &'static OpDef, _: &[Value]) {
        self.depth.set(self.depth.get() + 1);
    }
    fn exit(&self, op: &'static OpDef, _: &[Value], outputs: &[Tensor]) {
        // A call that failed has left no exit; the outermost one puts that right.
        self.depth.set(self.depth.get().saturating_sub(1));
        if self.depth.get() > 0 {
            return;
        }
        let column = match outputs.first().map(Tensor::dtype) {
            Some(DType::Float16) => 0,
            Some(DType::BFloat16) => 1,
            Some(DType::Float32) => 2,
            _ => 3,
        };
        self.calls.borrow_mut().entry(op.name).or_default()[column] += 1;
    }
}

/// Prints which results are not finite.
struct Numerics {
    checked: HashSet<String>,
    skipped: HashSet<String>,
}

impl Listener for Numerics {
    fn exit(&self, op: &'static OpDef, _: &[Value], outputs: &[Tensor]) {
        let wanted = (self.checked.is_empty() || self.checked.contains(op.name)) && !self.skipped.contains(op.name);
        if !wanted {
            return;
        }
        for (i, t) in outputs.iter().enumerate().filter(|(_, t)| t.dtype().is_float()) {
            let (nan, inf, _) = crate::amp::count_numerics(t);
            if nan + inf > 0 {
                let (shape, dtype) = (t.shape(), t.dtype());
                print(&format!(
                    "[PRECISION] {}: output {i} of shape {shape:?} {dtype} has {nan} NaN and {inf} Inf.",
                    op.name
                ));
            }
        }
    }
}

thread_local! {
    static STATS: RefCell<Option<Rc<Stats>>> = const { RefCell::new(None) };
    static NUMERICS: RefCell<Option<Rc<dyn Listener>>> = const { RefCell::new(None) };
}

/// Counts the calls of this thread from now on.
#[pyfunction]
pub fn _start_op_stats() {
    _stop_op_stats();
    let stats = Rc::new(Stats::default());
    add_listener(stats.clone());
    STATS.set(Some(stats));
}

/// Ends the counting: for each op how many calls gave float16, bfloat16, float32 and anything else.
#[pyfunction]
pub fn _stop_op_stats() -> Vec<(&'static str, [usize; 4])> {
    let Some(stats) = STATS.take() else { return Vec::new() };
    remove_listener(&(stats.clone() as Rc<dyn Listener>));
    stats.calls.take().into_iter().collect()
}

/// Prints from now on which results of this thread's calls are not finite: of the ops named, or of all but those skipped.
#[pyfunction]
pub fn _report_numerics(checked: HashSet<String>, skipped: HashSet<String>) {
    _stop_report_numerics();
    let listener: Rc<dyn Listener> = Rc::new(Numerics { checked, skipped });
    add_listener(listener.clone());
    NUMERICS.set(Some(listener));
}

/// Ends the reports.
#[pyfunction]
pub fn _stop_report_numerics() {
    if let Some(listener) = NUMERICS.take() {
        remove_listener(&listener);
    }
}
