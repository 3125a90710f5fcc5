//! Values of the core as what files hold, and back: an optimizer's state is saved this way.

use crate::{Dict, Object};
use sampan_core::{Error, Result, Value};

impl TryFrom<&Value> for Object {
    type Error = Error;
    fn try_from(value: &Value) -> Result<Object> {
        Ok(match value {
            Value::None => Object::None,
            Value::Bool(b) => Object::Bool(*b),
            Value::Int(i) => Object::Int(*i),
            Value::Float(f) => Object::Float(*f),
            Value::Str(s) => Object::Str(s.to_string()),
            Value::DType(d) => Object::Str(d.name().to_string()),
            Value::Tensor(t) => Object::Tensor(t.clone()),
            Value::Ints(v) => Object::List(v.iter().map(|i| Object::Int(*i)).collect()),
            Value::Floats(v) => Object::List(v.iter().map(|f| Object::Float(*f)).collect()),
            Value::Tensors(v) => Object::List(v.iter().cloned().map(Object::Tensor).collect()),
            Value::List(v) => Object::List(v.iter().map(Object::try_from).collect::<Result<_>>()?),
            Value::Dict(d) => Object::try_from(d)?,
            other => return Err(Error::invalid(format!("a file cannot hold a {}", other.type_name())).in_op("save")),
        })
    }
}

/// `sampan_io::save("net.pdopt", &optimizer.state_dict()?.try_into()?)`.
impl TryFrom<&sampan_core::Dict> for Object {
    type Error = Error;
    fn try_from(dict: &sampan_core::Dict) -> Result<Object> {
        let pairs = dict.iter().map(|(k, v)| Ok((k.to_string(), Object::try_from(v)?)));
        Ok(Object::Dict(pairs.collect::<Result<Vec<_>>>()?.into_iter().collect::<Dict>()))
    }
}

impl TryFrom<sampan_core::Dict> for Object {
    type Error = Error;
    fn try_from(dict: sampan_core::Dict) -> Result<Object> {
        Object::try_from(&dict)
    }
}

impl From<&Object> for Value {
    fn from(object: &Object) -> Value {
        match object {
            Object::None => Value::None,
            Object::Bool(b) => Value::Bool(*b),
            Object::Int(i) => Value::Int(*i),
            Object::Float(f) => Value::Float(*f),
            Object::Str(s) => Value::from(s.as_str()),
            Object::Bytes(b) => Value::Ints(b.iter().map(|b| *b as i64).collect()),
            Object::Tensor(t) | Object::Array(t) => Value::Tensor(t.clone()),
            Object::List(v) | Object::Tuple(v) => Value::List(v.iter().map(Value::from).collect()),
            Object::Dict(d) => Value::Dict(d.iter().map(|(k, v)| (k.to_string(), Value::from(v))).collect()),
        }
    }
}

/// `optimizer.set_state_dict(&sampan_io::load("net.pdopt")?.try_into()?)`.
impl TryFrom<Object> for sampan_core::Dict {
    type Error = Error;
    fn try_from(object: Object) -> Result<sampan_core::Dict> {
        match Value::from(&object) {
            Value::Dict(dict) => Ok(dict),
            other => {
                Err(Error::dtype(format!("expected a dict, the file holds a {}", other.type_name())).in_op("load"))
            }
        }
    }
}
