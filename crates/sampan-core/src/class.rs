//! The class registry: layers, initializers, optimizers, schedules, transforms … that are built from arguments.
//!
//! `#[class]` on the `impl` block with a `build` function makes the typed Rust constructors and an entry here, from which
//! a Python front makes its class: name, module, documentation and signature are written once.

use crate::op::Param;
use crate::signature::Signature;
use crate::{Object, Result, Value};

/// One class.
pub struct ClassDef {
    /// Paddle's name.
    pub name: &'static str,
    /// Paddle's module below the top: `"nn"`, `"optimizer.lr"` …
    pub module: &'static str,
    /// Documentation with a runnable example.
    pub doc: &'static str,
    /// What its constructor takes.
    pub params: &'static [Param],
    /// Other accepted argument names: (alias, name).
    pub aliases: &'static [(&'static str, &'static str)],
    /// Other public names of the same class, with their module.
    pub also: &'static [&'static str],
    /// Makes one from arguments in the order of the signature.
    pub build: fn(&[Value]) -> Result<Object>,
}

impl ClassDef {
    /// The arguments of its constructor.
    pub fn takes(&self) -> Signature {
        Signature { name: self.name, params: self.params, aliases: self.aliases }
    }

    /// Makes one from positional and named arguments.
    pub fn make(&self, positional: Vec<Value>, named: Vec<(&str, Value)>) -> Result<Object> {
        let args = self.takes().bind(positional, named)?;
        (self.build)(&args).map_err(|e| e.in_op(self.name))
    }
}

crate::registry::registry!(ClassDef);
