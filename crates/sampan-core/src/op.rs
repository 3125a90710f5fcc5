//! The op registry: everything about an op, in one place, for everyone who asks.

use crate::dispatch::Cx;
use crate::sample::Sample;
use crate::signature::Signature;
pub use crate::signature::{Kind, Param};
use crate::value::Args;
use crate::{Result, Tensor, Value};
use smallvec::SmallVec;
use std::collections::HashMap;
use std::sync::LazyLock;

/// What an op returns.
pub type Outputs = SmallVec<[Tensor; 2]>;

/// One op. `#[op]` writes these; see `docs/adding-an-op.md`.
pub struct OpDef {
    /// Paddle's name.
    pub name: &'static str,
    /// Paddle's module below the top: `""`, `"nn.functional"`, `"linalg"` …
    pub module: &'static str,
    /// The source file; its stem is the op's family.
    pub file: &'static str,
    /// Documentation with a runnable example.
    pub doc: &'static str,
    /// The signature.
    pub params: &'static [Param],
    /// Other accepted argument names: (alias, name).
    pub aliases: &'static [(&'static str, &'static str)],
    /// Other public names of the same op, such as `nn.functional.tanh` for `tanh`.
    pub also: &'static [&'static str],
    /// A part of other ops: gradient formulas and other ops call it, people do not, so it is no public method.
    pub internal: bool,
    /// Has a GPU one kernel for it too? Else it computes the reference, part by part.
    pub fused_on_gpu: bool,
    /// The shape of the result.
    pub returns: Returns,
    /// The names of several results: `values` and `indices`. One that ends in `...` is a list of all that are left.
    pub results: &'static [&'static str],
    /// The named tuple that Paddle gives them as.
    pub tuple: Option<&'static str>,
    /// Do these arguments ask for a tuple, even if it holds one tensor only?
    pub several: Option<fn(&[Value]) -> bool>,
    /// Keywords with their defaults that the Python function takes beside the signature: `alpha=1`.
    pub keywords: &'static [&'static str],
    /// Computes by itself and states its own gradient; otherwise it is composed of other ops.
    pub primitive: bool,
    /// The mathematics has no gradient.
    pub non_diff: bool,
    /// Takes complex tensors and dtypes; others refuse them before their body runs.
    pub complex: bool,
    /// Has a form `name_` that writes into its first argument.
    pub inplace: bool,
    /// Draws random numbers, with some arguments at least.
    pub random: bool,
    /// What automatic mixed precision does with its inputs.
    pub amp: Amp,
    /// Multiply-adds of the kernel that it runs itself; a composite leaves them to the ops it calls.
    pub work: Option<fn(&[Value], &[Tensor]) -> u64>,
    /// The work as Paddle's `flops` counts it, where that is not `work`. What such an op calls is not counted again.
    pub flops: Option<fn(&[Value], &[Tensor]) -> u64>,
    /// The ONNX operator it maps to one to one.
    pub onnx: Option<&'static str>,
    /// Who answers the samples in the comparison where it is not Paddle's function of this name: a Python expression (see
    /// `scripts/golden.py`); `none: reason` where nobody does.
    pub peer: Option<&'static str>,
    /// Relative error against the peer in float32 where the usual 1e-5 is too strict.
    pub tol: Option<f64>,
    /// The body.
    pub run: fn(&Cx) -> Result<Outputs>,
    /// The composite that a fused kernel replaces, to test it against.
    pub reference: Option<fn(&Cx) -> Result<Outputs>>,
    /// Sample inputs for the tests.
    pub samples: Option<fn() -> Vec<Sample>>,
}

/// The shape of a result.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Returns {
    /// One tensor.
    One,
    /// A tuple of that many.
    Tuple(usize),
    /// A list.
    List,
    /// One tensor or a tuple, depending on the arguments (`return_mask` and the like).
    Varying,
}

/// What automatic mixed precision does with an op's float inputs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Amp {
    /// Cast to the low precision.
    White,
    /// Cast to float32.
    Black,
    /// As [`Follow`](Amp::Follow), and cast to float32 at level O2: slow or much less exact in a low precision.
    BlackO2,
    /// As [`Black`](Amp::Black), and as [`Data`](Amp::Data) at level O2.
    BlackData,
    /// Left as they come; mixed inputs go to the widest.
    Follow,
    /// Left as they come, mixed or not. Where they are cast, it is the first one, the data; weights and statistics stay.
    Data,
    /// Never touched: the op itself says what it computes in.
    Keep,
}

/// What an op's body may return.
pub trait OutputSet: Sized {
    /// Which kind of result this is.
    const RETURNS: Returns;
    /// What the form without options returns.
    type Plain;
    /// The result of the form without options.
    fn plain(self) -> Self::Plain;
    /// As a flat list.
    fn into_outputs(self) -> Outputs;
    /// Back from a flat list.
    fn from_outputs(outputs: Outputs) -> Self;
}

/// A result whose number of tensors depends on the arguments.
#[derive(Clone, Debug)]
pub struct Varying(pub Vec<Tensor>);

/// The first tensor, which is the result proper: `x.max_pool2d(2).relu()`.
impl std::ops::Deref for Varying {
    type Target = Tensor;
    fn deref(&self) -> &Tensor {
        &self.0[0]
    }
}
impl From<Varying> for Tensor {
    fn from(mut v: Varying) -> Tensor {
        v.0.swap_remove(0)
    }
}

impl OutputSet for Tensor {
    const RETURNS: Returns = Returns::One;
    type Plain = Self;
    fn plain(self) -> Self {
        self
    }
    #[inline]
    fn into_outputs(self) -> Outputs {
        smallvec::smallvec![self]
    }
    #[inline]
    fn from_outputs(mut outputs: Outputs) -> Self {
        outputs.pop().expect("an op with one output returns one tensor")
    }
}
impl OutputSet for Vec<Tensor> {
    const RETURNS: Returns = Returns::List;
    type Plain = Self;
    fn plain(self) -> Self {
        self
    }
    fn into_outputs(self) -> Outputs {
        self.into()
    }
    fn from_outputs(outputs: Outputs) -> Self {
        outputs.into_vec()
    }
}
impl OutputSet for Varying {
    const RETURNS: Returns = Returns::Varying;
    type Plain = Tensor;
    /// With every option at its default there is one tensor.
    fn plain(self) -> Tensor {
        Tensor::from_outputs(self.0.into_iter().take(1).collect())
    }
    fn into_outputs(self) -> Outputs {
        self.0.into()
    }
    fn from_outputs(outputs: Outputs) -> Self {
        Varying(outputs.into_vec())
    }
}
macro_rules! output_tuple {
    ($n:literal: $($v:ident $t:ident),*) => {
        impl OutputSet for ($($t,)*) {
            const RETURNS: Returns = Returns::Tuple($n);
            type Plain = Self;
            fn plain(self) -> Self {
                self
            }
            fn into_outputs(self) -> Outputs {
                let ($($v,)*) = self;
                smallvec::smallvec![$($v),*]
            }
            fn from_outputs(outputs: Outputs) -> Self {
                let mut it = outputs.into_iter();
                $(let $v = it.next().expect("an op returns as many tensors as it declares");)*
                ($($v,)*)
            }
        }
    };
}
output_tuple!(2: a Tensor, b Tensor);
output_tuple!(3: a Tensor, b Tensor, c Tensor);
output_tuple!(4: a Tensor, b Tensor, c Tensor, d Tensor);
output_tuple!(5: a Tensor, b Tensor, c Tensor, d Tensor, e Tensor);

/// Looks through `Result` at what an op returns.
pub trait ReturnType {
    /// The value inside.
    type Value: OutputSet;
    /// Which kind of result it is.
    const RETURNS: Returns = <Self::Value as OutputSet>::RETURNS;
}
impl<T: OutputSet> ReturnType for Result<T> {
    type Value = T;
}

/// An op as it is collected at link time.
pub struct Entry(pub &'static OpDef);
inventory::collect!(Entry);

static REGISTRY: LazyLock<HashMap<&'static str, &'static OpDef>> = LazyLock::new(|| {
    let mut map = HashMap::new();
    for Entry(op) in inventory::iter::<Entry> {
        assert!(map.insert(op.name, *op).is_none(), "two ops are called {}", op.name);
    }
    map
});

/// Every op, sorted by name.
pub fn all() -> Vec<&'static OpDef> {
    let mut ops: Vec<_> = REGISTRY.values().copied().collect();
    ops.sort_by_key(|op| op.name);
    ops
}

/// The op of that name.
pub fn find(name: &str) -> Option<&'static OpDef> {
    REGISTRY.get(name).copied()
}

impl OpDef {
    /// The family: the stem of the source file, or its folder's name.
    pub fn family(&self) -> &'static str {
        let mut parts = self.file.rsplit(['/', '\\']);
        let stem = parts.next().unwrap_or(self.file);
        match stem.strip_suffix(".rs").unwrap_or(stem) {
            "mod" => parts.next().unwrap_or("mod"),
            family => family,
        }
    }

    /// The arguments it takes.
    pub fn takes(&self) -> Signature {
        Signature { name: self.name, params: self.params, aliases: self.aliases }
    }

    /// The signature as a person reads it: `sum(x, axis=None, keepdim=false)`.
    pub fn signature(&self) -> String {
        self.takes().to_string()
    }

    /// Multiply-adds of a call of this op by itself; zero where they are not known or lie in the ops it calls.
    ///
    /// ```
    /// # use sampan_core::{Tensor, Value, op};
    /// let (x, y) = (Tensor::new([[1.0f32, 2.0]]), Tensor::new([[3.0f32], [4.0]]));
    /// let args = [x.clone(), y.clone()].map(Value::Tensor);
    /// assert_eq!(op::find("matrix_product").unwrap().multiply_adds(&args, &[x.matmul(&y)]), 2);
    /// ```
    pub fn multiply_adds(&self, args: &[Value], outputs: &[Tensor]) -> u64 {
        self.work.map_or(0, |count| count(args, outputs))
    }

    /// Position of a parameter by its name or one of its aliases.
    pub fn position(&self, name: &str) -> Option<usize> {
        self.takes().position(name)
    }

    /// Puts positional and named arguments in the order of the signature and fills in defaults.
    pub fn bind(&self, positional: Vec<Value>, named: Vec<(&str, Value)>) -> Result<Args> {
        self.takes().bind(positional, named)
    }
}
