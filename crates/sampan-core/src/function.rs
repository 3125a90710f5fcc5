//! The function registry: what is called by name and is no op, because it reads files, takes or returns more than
//! tensors, or shares its name with an op of another module (`vision.transforms.pad`).
//!
//! `#[function]` leaves a Rust function as it is and makes an entry here, from which a Python front makes its function.

use crate::op::Param;
use crate::signature::Signature;
use crate::{Result, Value, dispatch};

/// One function.
pub struct FunctionDef {
    /// Paddle's name.
    pub name: &'static str,
    /// Paddle's module below the top: `"vision.ops"`, `"metric"` …
    pub module: &'static str,
    /// Documentation with a runnable example.
    pub doc: &'static str,
    /// What it takes.
    pub params: &'static [Param],
    /// Other accepted argument names: (alias, name).
    pub aliases: &'static [(&'static str, &'static str)],
    /// Other public names of the same function, with their module.
    pub also: &'static [&'static str],
    /// Calls it with arguments in the order of the signature.
    pub run: fn(&[Value]) -> Result<Value>,
}

impl FunctionDef {
    /// The arguments it takes.
    pub fn takes(&self) -> Signature {
        Signature { name: self.name, params: self.params, aliases: self.aliases }
    }

    /// Calls it with positional and named arguments. A tuple comes back as `Value::List`, a list of tensors as
    /// `Value::Tensors`.
    #[track_caller]
    pub fn call(&self, positional: Vec<Value>, named: Vec<(&str, Value)>) -> Result<Value> {
        let args = self.takes().bind(positional, named)?;
        dispatch::outermost(|| (self.run)(&args)).map_err(|e| e.in_op(self.name))
    }
}

crate::registry::registry!(FunctionDef);
