//! Calls with arguments as another language gives them: by position or by name, tensors among other values.

use crate::{Base, Layer};
use sampan_core::{Error, Result, Tensor, Value};

/// Names that mean the same where a layer has one input.
const INPUT: [&str; 3] = ["x", "input", "inputs"];

/// Puts arguments in the order of `names`, of which the first `required` must be given; the others may be `None`.
pub(crate) fn bind(
    layer: &'static str,
    names: &[&str],
    required: usize,
    positional: Vec<Value>,
    named: Vec<(&str, Value)>,
) -> Result<Vec<Value>> {
    let fail = |message: String| {
        let takes: Vec<String> = names
            .iter()
            .enumerate()
            .map(|(i, n)| if i < required { (*n).into() } else { format!("{n}=None") })
            .collect();
        Err(Error::dtype(message).hint(format!("{layer} takes ({})", takes.join(", "))).in_op(layer))
    };
    if positional.len() > names.len() {
        return fail(format!("takes at most {} arguments, got {}", names.len(), positional.len()));
    }
    let mut slots: Vec<Option<Value>> = positional.into_iter().map(Some).collect();
    slots.resize_with(names.len(), || None);
    for (name, value) in named {
        let same = |n: &&str| *n == name || (INPUT.contains(n) && INPUT.contains(&name));
        let Some(i) = names.iter().position(|n| *n == name).or_else(|| names.iter().position(same)) else {
            return fail(format!("has no argument `{name}`"));
        };
        if slots[i].replace(value).is_some() {
            return fail(format!("got two values for argument `{}`", names[i]));
        }
    }
    if let Some(i) = slots.iter().take(required).position(Option::is_none) {
        return fail(format!("argument `{}` is missing", names[i]));
    }
    Ok(slots.into_iter().map(|v| v.unwrap_or(Value::None)).collect())
}

/// The inputs of a layer that takes tensors alone, of which the first must be given.
pub(crate) fn inputs(
    layer: &'static str,
    names: &[&str],
    positional: Vec<Value>,
    named: Vec<(&str, Value)>,
) -> Result<Vec<Tensor>> {
    tensors(layer, names, bind(layer, names, 1, positional, named)?)
}

/// The tensors of arguments that are tensors, sizes as tensors of ints; those that are None at the end are left out.
pub(crate) fn tensors(layer: &'static str, names: &[&str], mut values: Vec<Value>) -> Result<Vec<Tensor>> {
    while matches!(values.last(), Some(Value::None)) {
        values.pop();
    }
    let mut found = Vec::new();
    for (value, name) in values.into_iter().zip(names) {
        match value {
            Value::Tensor(t) => found.push(t),
            Value::Tensors(ts) => found.extend(ts),
            Value::Int(size) if *name == "output_size" => found.push(Tensor::from_vec(vec![size], [1])),
            Value::Ints(sizes) if *name == "output_size" => {
                let n = sizes.len();
                found.push(Tensor::from_vec(sizes.into_vec(), [n]));
            }
            other => {
                return Err(Error::dtype(format!("`{name}` must be a Tensor, got {}", other.type_name())).in_op(layer));
            }
        }
    }
    Ok(found)
}

/// An argument that is a tensor or None.
pub(crate) fn tensor<'a>(layer: &'static str, name: &str, value: &'a Value) -> Result<Option<&'a Tensor>> {
    match value {
        Value::None => Ok(None),
        Value::Tensor(t) => Ok(Some(t)),
        other => Err(Error::dtype(format!("`{name}` must be a Tensor, got {}", other.type_name())).in_op(layer)),
    }
}

/// Results as another language takes them: one, or a list.
pub(crate) fn outputs(mut outputs: Vec<Tensor>) -> Value {
    match outputs.len() {
        1 => Value::Tensor(outputs.swap_remove(0)),
        _ => Value::List(outputs.into_iter().map(Value::Tensor).collect()),
    }
}

/// All tensors of a value, in order.
pub(crate) fn all_tensors(value: &Value) -> Vec<Tensor> {
    let mut found = Vec::new();
    value.for_each_tensor(&mut |t| found.push(t.clone()));
    found
}

/// Calls a layer that takes more than tensors, with its hooks around it: they see the tensors, a stand-in sees all.
pub fn call_values(layer: &dyn Layer, args: Vec<Value>) -> Result<Value> {
    match layer.base().filter(|b| b.has_hooks()) {
        None => layer.invoke(args, Vec::new()),
        Some(base) => around(base, args, |args| layer.invoke(args, Vec::new())),
    }
}

fn around(base: &Base, args: Vec<Value>, invoke: impl Fn(Vec<Value>) -> Result<Value>) -> Result<Value> {
    if let Some(out) = base.stood_in(&|| args.clone())? {
        return Ok(out);
    }
    let mut args = Value::List(args);
    let mut out = Value::None;
    let inputs = all_tensors(&args);
    let results = base.around(&inputs, &mut |inputs| {
        put(&mut args, inputs)?;
        let Value::List(args) = std::mem::replace(&mut args, Value::None) else {
            return Err(Error::invalid("the arguments are no list"));
        };
        out = invoke(args)?;
        Ok(all_tensors(&out))
    })?;
    put(&mut out, &results)?;
    Ok(out)
}

/// Puts other tensors in the places of those of a value.
fn put(value: &mut Value, tensors: &[Tensor]) -> Result<()> {
    let mut next = tensors.iter();
    value.map_tensors(&mut |_| next.next().cloned().ok_or_else(|| Error::invalid("a hook took away a tensor")))
}
