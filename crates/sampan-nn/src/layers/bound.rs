//! Layers that are an op with its settings filled in: one table row for each.

use crate::layer::{Erased, watched};
use crate::{Base, Members, Parameter, Path, Visitor, invoke};
use sampan_core::dispatch::dispatch;
use sampan_core::op::{self, Kind, OpDef, Outputs};
use sampan_core::value::Args;
use sampan_core::{Axes, Error, Ints, Result, Scalar, Tensor, Value, bail};

/// An op whose settings are known: only tensors are missing, which come first among its arguments.
pub(crate) struct Bound {
    op: &'static OpDef,
    args: Args,
    /// What the layer was told or decided, for its description.
    settings: Vec<(&'static str, Value)>,
    /// Where the op asks whether it is training.
    training: Option<usize>,
    /// How many tensors it cannot do without.
    inputs: usize,
}

impl Bound {
    /// Fills in settings by name; the others keep the op's defaults. `padding as pad` is a setting that the op calls
    /// `pad`, `inplace as _` one that it does not have.
    pub fn new(op: &str, settings: impl IntoIterator<Item = (&'static str, Value)>) -> Result<Bound> {
        let op = op::find(op).ok_or_else(|| Error::invalid(format!("there is no op {op:?}")))?;
        let mut args: Args = op.params.iter().map(|p| p.default.map_or(Value::None, |value| value())).collect();
        let mut told = Vec::new();
        for (name, value) in settings {
            let (name, slot) = name.split_once(" as ").unwrap_or((name, name));
            match op.position(slot) {
                Some(i) => args[i] = value.clone(),
                None if slot == "_" => {}
                None => bail!("the op {} has no argument `{slot}`", op.name),
            }
            told.push((name, value));
        }
        let settings = told;
        let inputs = op.params.iter().take_while(|p| p.kind == Kind::Tensor && p.default.is_none()).count();
        Ok(Bound { op, args, settings, training: op.position("training"), inputs })
    }

    /// The op's outputs for these first arguments.
    pub fn call(&self, base: &Base, first: impl IntoIterator<Item = Value>) -> Result<Vec<Tensor>> {
        self.call_with(base, first, [])
    }

    /// The same with some settings changed.
    pub fn call_with<'a>(
        &self,
        base: &Base,
        first: impl IntoIterator<Item = Value>,
        changed: impl IntoIterator<Item = (&'a str, Value)>,
    ) -> Result<Vec<Tensor>> {
        self.run(base, first, changed).map(Outputs::into_vec)
    }

    /// The op's first output for these first arguments.
    pub fn first(&self, base: &Base, tensors: impl IntoIterator<Item = Value>) -> Result<Tensor> {
        self.run(base, tensors, []).and_then(first)
    }

    fn run<'a>(
        &self,
        base: &Base,
        first: impl IntoIterator<Item = Value>,
        changed: impl IntoIterator<Item = (&'a str, Value)>,
    ) -> Result<Outputs> {
        let mut args = self.args.clone();
        for (slot, value) in args.iter_mut().zip(first) {
            *slot = value;
        }
        if let Some(i) = self.training {
            args[i] = base.training().into();
        }
        for (name, value) in changed {
            let Some(i) = self.op.position(name) else { bail!("the op {} has no argument `{name}`", self.op.name) };
            args[i] = value;
        }
        dispatch(self.op, args)
    }

    /// The outputs for a layer's inputs, of which there must be as many as the op needs tensors. Where the output size
    /// is a setting that may be left out, it may come as one more input.
    pub fn all(&self, base: &Base, inputs: &[Tensor]) -> Result<Vec<Tensor>> {
        if let Some((sizes, tensors)) = inputs.split_last()
            && tensors.len() == self.inputs
            && self.op.position("output_size").is_some_and(|i| self.op.params[i].default.is_some())
        {
            return self.call_with(
                base,
                tensors.iter().map(Value::from),
                [("output_size", sizes.try_to_ints()?.into())],
            );
        }
        if inputs.len() != self.inputs {
            let names: Vec<&str> = self.op.params.iter().take(self.inputs).map(|p| p.name).collect();
            let message = format!("takes {} inputs ({}), got {}", names.len(), names.join(", "), inputs.len());
            return Err(Error::invalid(message).hint("use call_all for several inputs").in_op(self.op.name));
        }
        self.call(base, inputs.iter().map(Value::from))
    }

    /// What the layer was told or decided.
    pub fn settings(&self) -> Vec<(&'static str, Value)> {
        self.settings.clone()
    }

    /// The names of the tensors that it cannot do without.
    pub fn input_names(&self) -> Vec<&'static str> {
        self.op.params.iter().take(self.inputs).map(|p| p.name).collect()
    }

    /// Arguments of a call as the inputs and what else of the op the layer leaves open: `output_size`, `norm_by_times`.
    pub fn bind(
        &self,
        layer: &'static str,
        positional: Vec<Value>,
        named: Vec<(&str, Value)>,
    ) -> Result<(Vec<Tensor>, Vec<(&'static str, Value)>)> {
        let inputs = self.input_names();
        let told = |name: &str| {
            let slot = self.op.position(name);
            let known = |(n, v): &(&str, Value)| {
                self.op.position(n) == slot && !(name == "output_size" && matches!(v, Value::None))
            };
            self.settings.iter().any(known)
        };
        let settled = |name: &str| name == "training" || told(name);
        let open = self.op.params[self.inputs..].iter().map(|p| p.name).filter(|n| !settled(n));
        let names: Vec<&'static str> = inputs.iter().copied().chain(open).collect();
        let mut values = invoke::bind(layer, &names, inputs.len(), positional, named)?;
        let open = values.split_off(inputs.len());
        let changed = names[inputs.len()..].iter().copied().zip(open).filter(|(_, v)| !matches!(v, Value::None));
        Ok((invoke::tensors(layer, &inputs, values)?, changed.collect()))
    }

    /// A layer that is this op, called with arguments as another language gives them.
    pub fn invoke(
        &self,
        layer: &dyn Erased,
        base: &Base,
        positional: Vec<Value>,
        named: Vec<(&str, Value)>,
    ) -> Result<Value> {
        let (inputs, changed) = self.bind(layer.name(), positional, named)?;
        let mut run = || self.call_with(base, inputs.iter().map(Value::from), changed.iter().cloned());
        watched(layer, &inputs, &mut run).map(invoke::outputs)
    }

    /// The first output for a layer's one input.
    pub fn one(&self, base: &Base, x: &Tensor) -> Result<Tensor> {
        if self.inputs == 1 {
            return self.first(base, [x.into()]);
        }
        first(self.all(base, std::slice::from_ref(x))?)
    }

    /// The settings that `show` names, as Paddle prints them: `kernel_size=2, stride=None`. Of `a|b` the first that is
    /// not None, `a?` only where it is not the op's default, `label:a` under another name.
    pub fn describe(&self, show: &str) -> String {
        let value = |name: &str| self.settings.iter().find(|(n, _)| *n == name).map_or(&Value::None, |(_, v)| v);
        let is_default = |name: &str| {
            let default = self.op.position(name).and_then(|i| self.op.params[i].default);
            default.is_some_and(|d| format!("{:?}", d()) == format!("{:?}", value(name)))
        };
        let shown = show.split(", ").filter(|item| !item.is_empty()).filter_map(|item| {
            let name = item.trim_end_matches('?');
            let name = name.split('|').find(|n| !matches!(value(n), Value::None)).unwrap_or(name);
            let (label, name) = name.split_once(':').unwrap_or((name, name));
            (!item.ends_with('?') || !is_default(name)).then(|| format!("{label}={}", Shown(value(name))))
        });
        shown.collect::<Vec<_>>().join(", ")
    }
}

impl Members for Bound {
    fn visit(&self, _: &Path, _: &mut dyn Visitor) {}
}

/// The first of an op's outputs.
pub(crate) fn first(outputs: impl IntoIterator<Item = Tensor>) -> Result<Tensor> {
    outputs.into_iter().next().ok_or_else(|| Error::invalid("the op has no output"))
}

/// Sizes as one more input of a layer.
pub(crate) fn sizes(sizes: Ints) -> Tensor {
    let n = sizes.0.len();
    Tensor::from_vec(sizes.0.into_vec(), [n])
}

/// The value of a parameter that may be absent, as an argument.
pub(crate) fn optional(p: &Option<Parameter>) -> Result<Value> {
    Ok(Value::optional(p.as_ref().map(Parameter::value).transpose()?))
}

/// A setting as Python prints it.
pub(crate) struct Shown<'a>(pub &'a Value);
impl std::fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            Value::None => f.write_str("None"),
            Value::Bool(b) => f.write_str(if *b { "True" } else { "False" }),
            Value::Int(i) => write!(f, "{i}"),
            // An exponent has two digits.
            Value::Float(x) => match format!("{x:?}").split_once("e-") {
                Some((digits, exponent)) => write!(f, "{digits}e-{exponent:0>2}"),
                None => write!(f, "{x:?}"),
            },
            Value::Str(s) => f.write_str(s),
            // One number for all axes.
            Value::Ints(v) if v.len() == 1 => write!(f, "{}", v[0]),
            Value::Ints(v) => write!(f, "{v:?}"),
            Value::Floats(v) => write!(f, "{v:?}"),
            Value::Tensor(t) => write!(f, "Tensor{:?}", t.shape()),
            Value::List(v) => {
                write!(f, "[{}]", v.iter().map(|v| Shown(v).to_string()).collect::<Vec<_>>().join(", "))
            }
            other => write!(f, "{other:?}"),
        }
    }
}

/// An argument of a constructor that is kept as a value.
pub(crate) trait Setting {
    /// The value.
    fn keep(self) -> Value;
}
macro_rules! setting {
    ($($t:ty),*) => {$( impl Setting for $t { fn keep(self) -> Value { self.into() } } )*};
}
setting!(bool, i64, usize, f64, &str, &[i64], &[f64], &Tensor, Axes, Scalar);
impl Setting for &Value {
    fn keep(self) -> Value {
        self.clone()
    }
}
impl<T: Setting> Setting for Option<T> {
    fn keep(self) -> Value {
        self.map_or(Value::None, Setting::keep)
    }
}

/// A table of layers without parameters, each of which is an op:
///
/// ```text
/// /// Documentation.
/// Name = "op" (kernel_size: &[i64], #[opt(0)] padding as pad: &Value) fixed(mode = "x") show "kernel_size" { checks };
/// ```
/// `as` gives the op's name of an argument where it is another one (`_` where the op
/// has none); `fixed` are arguments of the op that the layer decides; `show` is what
/// [`Bound::describe`] prints.
macro_rules! op_layers {
    ($(
        #[doc = $summary:tt]
        $(#[doc = $more:tt])*
        $(#[class($($class:tt)*)])?
        $name:ident = $op:literal ($($(#[$($attr:tt)*])? $arg:ident $(as $slot:tt)?: $ty:ty),* $(,)?)
        $(fixed($($key:ident = $value:expr),*))?
        $(show $show:literal)?
        $({$($check:tt)*})?;
    )*) => {$(
        #[doc = $summary]
        #[derive(crate::Layer)]
        pub struct $name {
            base: crate::Base,
            op: $crate::layers::bound::Bound,
        }
        #[sampan_macros::class(module = "nn", object = crate::layer::object, $($($class)*)?)]
        impl $name {
            #[doc = $summary]
            $(#[doc = $more])*
            fn build($($(#[$($attr)*])? $arg: $ty),*) -> sampan_core::Result<$name> {
                $($($check)*)?
                let settings = [
                    $((stringify!($arg $(as $slot)?), $crate::layers::bound::Setting::keep($arg)),)*
                    $($((stringify!($key), sampan_core::Value::from($value)),)*)?
                ];
                let base = crate::Base::of(stringify!($name));
                Ok($name { base, op: $crate::layers::bound::Bound::new($op, settings)? })
            }
        }
        impl crate::Layer for $name {
            fn forward(&self, x: &sampan_core::Tensor) -> sampan_core::Result<sampan_core::Tensor> {
                self.op.one(&self.base, x)
            }
            fn forward_all(&self, inputs: &[sampan_core::Tensor]) -> sampan_core::Result<Vec<sampan_core::Tensor>> {
                self.op.all(&self.base, inputs)
            }
            fn input_names(&self) -> Vec<&'static str> {
                self.op.input_names()
            }
            fn invoke(
                &self,
                positional: Vec<sampan_core::Value>,
                named: Vec<(&str, sampan_core::Value)>,
            ) -> sampan_core::Result<sampan_core::Value> {
                self.op.invoke(&crate::layer::Of(self), &self.base, positional, named)
            }
            fn settings(&self) -> Vec<(&'static str, sampan_core::Value)> {
                self.op.settings()
            }
            fn extra_repr(&self) -> String {
                self.op.describe(concat!($($show)?))
            }
        }
    )*};
}
pub(crate) use op_layers;
