//! One run of a program, watched: its outermost calls, writes and reads.

use sampan_core::dispatch::{Listener, Write, listen};
use sampan_core::op::{OpDef, Outputs};
use sampan_core::{Error, Result, Tensor, Value, grad_enabled};
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// What happened, in order.
#[derive(Clone)]
pub(crate) enum Event {
    Call(Heard),
    /// A handle was written; the new values, if a call gave them.
    Wrote {
        before: Tensor,
        after: Tensor,
        values: Option<Tensor>,
        source: Option<String>,
    },
    /// Values went to the host.
    Read {
        tensor: Tensor,
        what: &'static str,
        source: Option<String>,
    },
}

/// A call as it was made.
#[derive(Clone)]
pub(crate) struct Heard {
    pub op: &'static OpDef,
    pub args: Vec<Value>,
    pub outputs: Outputs,
    /// Which tensors among the arguments were left out of gradients at that moment; people may change it later.
    pub stopped: Vec<bool>,
    pub gave: Vec<bool>,
    pub no_grad: bool,
    pub source: Option<String>,
}

/// Listens to one run. Tensors are held, so that no number or memory is used again while it listens.
pub(crate) struct Recorder {
    depth: Cell<usize>,
    /// The depth of the calls that are noted: those of the program, or those that an op makes.
    level: usize,
    stopped: RefCell<Vec<bool>>,
    events: RefCell<Vec<Event>>,
    source: Box<dyn Fn() -> Option<String>>,
}

impl Recorder {
    pub fn new(level: usize, source: Box<dyn Fn() -> Option<String>>) -> Recorder {
        Recorder { depth: Cell::new(0), level, stopped: RefCell::default(), events: RefCell::default(), source }
    }

    pub fn take(&self) -> Vec<Event> {
        self.events.take()
    }

    /// What a part of the run did, which is then no part of it.
    pub fn aside<R>(&self, f: impl FnOnce() -> Result<R>) -> Result<(R, Vec<Event>)> {
        let before = self.events.take();
        let result = f();
        let inside = self.events.replace(before);
        match result {
            Ok(r) => Ok((r, inside)),
            // Whoever explains the error looks at what happened last.
            Err(e) => {
                self.events.borrow_mut().extend(inside);
                Err(e)
            }
        }
    }

    /// The line of the program that is running.
    pub fn line(&self) -> Option<String> {
        (self.source)()
    }

    pub fn note(&self, event: Event) {
        self.events.borrow_mut().push(event);
    }
}

thread_local! {
    static RECORDERS: RefCell<Vec<Rc<Recorder>>> = const { RefCell::new(Vec::new()) };
    static UNHEARD: Cell<bool> = const { Cell::new(false) };
}

/// Whoever records this thread.
pub(crate) fn current() -> Option<Rc<Recorder>> {
    RECORDERS.with_borrow(|all| all.last().cloned()).filter(|_| !UNHEARD.get())
}

/// Runs `f` while a recorder listens.
pub(crate) fn recorded<R>(recorder: &Rc<Recorder>, f: impl FnOnce() -> R) -> R {
    struct Done;
    impl Drop for Done {
        fn drop(&mut self) {
            RECORDERS.with_borrow_mut(Vec::pop);
        }
    }
    RECORDERS.with_borrow_mut(|all| all.push(recorder.clone()));
    let _done = Done;
    listen(recorder.clone(), f)
}

/// Computes something that is no part of the program: a number that decides what the program does.
pub(crate) fn unheard<R>(f: impl FnOnce() -> R) -> R {
    struct Restore(bool);
    impl Drop for Restore {
        fn drop(&mut self) {
            UNHEARD.set(self.0);
        }
    }
    let _restore = Restore(UNHEARD.replace(true));
    f()
}

/// The tensors of arguments, in order.
pub(crate) fn tensors(args: &[Value]) -> Vec<&Tensor> {
    let mut all = Vec::new();
    args.iter().for_each(|v| v.for_each_tensor(&mut |t| all.push(t)));
    all
}

impl Listener for Recorder {
    fn enter(&self, _: &'static OpDef, args: &[Value]) {
        if UNHEARD.get() {
            return;
        }
        if self.depth.replace(self.depth.get() + 1) == self.level {
            self.stopped.replace(tensors(args).into_iter().map(Tensor::stop_gradient).collect());
        }
    }

    fn exit(&self, op: &'static OpDef, args: &[Value], outputs: &[Tensor]) {
        if UNHEARD.get() {
            return;
        }
        self.depth.set(self.depth.get() - 1);
        if self.depth.get() == self.level {
            self.note(Event::Call(Heard {
                op,
                args: args.to_vec(),
                outputs: outputs.iter().cloned().collect(),
                stopped: self.stopped.take(),
                gave: outputs.iter().map(Tensor::stop_gradient).collect(),
                no_grad: !grad_enabled(),
                source: (self.source)(),
            }));
        }
    }

    fn failed(&self, _: &'static OpDef, _: &[Value], _: &Error) {
        if UNHEARD.get() {
            return;
        }
        self.depth.set(self.depth.get() - 1);
    }

    fn wrote(&self, before: &Tensor, after: &Tensor, write: &Write) {
        if self.depth.get() > self.level || UNHEARD.get() {
            // A part of a call, which a replay makes again.
            return;
        }
        let values = match write {
            Write::Op { values, .. } | Write::Index { values } | Write::Value { values } => Some((*values).clone()),
            Write::Update => None,
        };
        let (before, after) = (before.clone(), after.clone());
        self.note(Event::Wrote { before, after, values, source: (self.source)() });
    }

    fn read(&self, tensor: &Tensor, what: &'static str) {
        if self.depth.get() == 0 && !UNHEARD.get() {
            self.note(Event::Read { tensor: tensor.clone(), what, source: (self.source)() });
        }
    }
}
