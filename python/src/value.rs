//! Python arguments as values of the core.

use crate::class::PyObject;
use crate::dtype::{self, PyDType};
use crate::tensor::PyTensor;
use crate::{array, cache, python_layer};
use pyo3::exceptions::{PyOverflowError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{
    PyBool, PyComplex, PyDict, PyEllipsis, PyFloat, PyInt, PyList, PyRange, PySequence, PySlice, PyString, PyTuple,
};
use sampan_core::op::{Kind, Param};
use sampan_core::value::Dict;
use sampan_core::{Scalar, Tensor, Value};
use smallvec::SmallVec;

/// An integer, if it is one or pretends to be (a NumPy integer).
pub fn int(value: &Bound<'_, PyAny>) -> PyResult<Option<i64>> {
    if !value.is_instance_of::<PyInt>() && !value.hasattr(pyo3::intern!(value.py(), "__index__"))? {
        return Ok(None);
    }
    value.extract::<i64>().map(Some).map_err(|e| {
        if e.is_instance_of::<PyOverflowError>(value.py()) {
            PyOverflowError::new_err(format!("(OutOfRange) {value} does not fit into 64 bits."))
        } else {
            e
        }
    })
}

fn scalar(s: Scalar) -> Value {
    s.into()
}

/// More items than anybody means: an iterator may have no end, and a range may be longer than the memory.
pub const MAX_ITEMS: usize = 1 << 26;

/// The items of anything that can be iterated over.
pub fn items<'py>(value: &Bound<'py, PyAny>) -> PyResult<Vec<Bound<'py, PyAny>>> {
    let endless = || PyValueError::new_err(format!("(InvalidArgument) an argument has more than {MAX_ITEMS} items."));
    match value.len() {
        Ok(n) if n > MAX_ITEMS => return Err(endless()),
        Err(e) if e.is_instance_of::<PyOverflowError>(value.py()) => return Err(endless()),
        _ => {}
    }
    let mut found = Vec::new();
    for item in value.try_iter()? {
        if found.len() == MAX_ITEMS {
            return Err(endless());
        }
        found.push(item?);
    }
    Ok(found)
}

/// The integers of a sequence.
pub fn ints(value: &Bound<'_, PyAny>) -> PyResult<Vec<i64>> {
    items(value.cast::<PySequence>()?)?.iter().map(|item| item.extract()).collect()
}

/// The deepest nesting that is read; a list that contains itself has no end.
const MAX_DEPTH: usize = 64;

/// The value of a Python object, whatever is expected.
pub fn any(value: &Bound<'_, PyAny>) -> PyResult<Value> {
    at_depth(value, 0)
}

fn at_depth(value: &Bound<'_, PyAny>, depth: usize) -> PyResult<Value> {
    if depth > MAX_DEPTH {
        return Err(PyValueError::new_err(format!(
            "(InvalidArgument) an argument is nested more than {MAX_DEPTH} deep."
        )));
    }
    // The common ones first.
    if let Ok(t) = value.cast::<PyTensor>() {
        return Ok(Value::Tensor(t.borrow().tensor()));
    }
    if value.is_none() {
        return Ok(Value::None);
    }
    if let Ok(b) = value.cast::<PyBool>() {
        return Ok(Value::Bool(b.is_true()));
    }
    if let Ok(f) = value.cast::<PyFloat>() {
        return Ok(Value::Float(f.value()));
    }
    if value.is_instance_of::<PyInt>() {
        return Ok(int(value)?.map_or(Value::None, Value::Int));
    }
    if let Ok(s) = value.cast::<PyString>() {
        return Ok(Value::Str(s.to_str()?.into()));
    }
    if let Ok(c) = value.cast::<PyComplex>() {
        return Ok(Value::Complex(sampan_core::Complex128::new(c.real(), c.imag())));
    }
    if let Ok(list) = value.cast::<PyList>() {
        return sequence(list.iter(), list.len(), depth);
    }
    if let Ok(tuple) = value.cast::<PyTuple>() {
        if !tuple.is_exact_instance_of::<PyTuple>()
            && let Some(kept) = cache::read(tuple)?
        {
            return Ok(kept.into());
        }
        return sequence(tuple.iter(), tuple.len(), depth);
    }
    if let Ok(d) = value.cast::<PyDType>() {
        return Ok(Value::DType(d.get().0));
    }
    if let Ok(o) = value.cast::<PyObject>() {
        return Ok(Value::Object(o.get().0.clone()));
    }
    if let Ok(dict) = value.cast::<PyDict>() {
        let pairs = dict.iter().map(|(k, v)| Ok((k.str()?.to_str()?.to_string(), at_depth(&v, depth + 1)?)));
        return Ok(Value::Dict(pairs.collect::<PyResult<Dict>>()?));
    }
    if let Ok(range) = value.cast::<PyRange>() {
        return Ok(Value::Ints(ints(range.as_any())?.into()));
    }
    if let Some(object) = python_layer::object(value)? {
        return Ok(Value::Object(object));
    }
    // An object of the package that stands for one of the core's: an initializer, a regularizer, a schedule.
    if let Some(inner) = value.getattr_opt(pyo3::intern!(value.py(), "_core"))? {
        return at_depth(&inner, depth + 1);
    }
    if array::is_array(value)? {
        let t = array::from_array(value)?;
        return Ok(if t.ndim() == 0 { scalar(t.try_item().map_err(crate::errors::raise)?) } else { Value::Tensor(t) });
    }
    if let Some(i) = int(value)? {
        return Ok(Value::Int(i));
    }
    if value.hasattr(pyo3::intern!(value.py(), "__float__"))? {
        return Ok(Value::Float(value.extract()?));
    }
    if value.try_iter().is_ok() {
        let items = items(value)?;
        let n = items.len();
        return sequence(items.into_iter(), n, depth);
    }
    if value.is_callable() {
        return Ok(Value::Object(sampan_core::Object::new(crate::class::Callable::new(value))));
    }
    Err(PyTypeError::new_err(format!("(InvalidType) {} cannot be an argument.", value.get_type().name()?)))
}

/// A list in its narrowest form: ints, floats, tensors, or values of any kind.
fn sequence<'py>(items: impl Iterator<Item = Bound<'py, PyAny>>, len: usize, depth: usize) -> PyResult<Value> {
    let mut values = Vec::with_capacity(len);
    for item in items {
        values.push(at_depth(&item, depth + 1)?);
    }
    Ok(narrow(values))
}

fn narrow(values: Vec<Value>) -> Value {
    if values.iter().all(|v| matches!(v, Value::Int(_))) {
        return Value::Ints(values.iter().map(|v| if let Value::Int(i) = v { *i } else { 0 }).collect());
    }
    if values.iter().all(|v| matches!(v, Value::Int(_) | Value::Float(_))) {
        let float = |v: &Value| match v {
            Value::Int(i) => *i as f64,
            Value::Float(f) => *f,
            _ => 0.0,
        };
        return Value::Floats(values.iter().map(float).collect());
    }
    if values.iter().all(|v| matches!(v, Value::Tensor(_))) {
        return Value::Tensors(
            values.into_iter().filter_map(|v| if let Value::Tensor(t) = v { Some(t) } else { None }).collect(),
        );
    }
    Value::List(values)
}

/// The value for a parameter of some kind: where numbers are wanted, a tensor that holds them will do.
pub fn of_kind(value: &Bound<'_, PyAny>, kind: Kind) -> PyResult<Value> {
    if kind == Kind::DType {
        return if value.is_none() { Ok(Value::None) } else { Ok(Value::DType(dtype::read(value)?)) };
    }
    let v = any(value)?;
    fit(v, kind)
}

/// The value for a parameter.
pub fn of_param(value: &Bound<'_, PyAny>, param: &Param) -> PyResult<Value> {
    // `full([2], "-inf")`: what fills a tensor may be written out.
    if param.name == "fill_value"
        && let Ok(written) = value.cast::<PyString>()
        && let Ok(number) = written.to_str()?.trim().parse::<f64>()
    {
        return Ok(Value::Float(number));
    }
    match of_kind(value, param.kind)? {
        // Sections, sizes and paddings. Only the axes of a product may be lists of tensors.
        Value::Tensors(ts) if param.kind == Kind::Any && param.name != "axes" && ts.iter().all(is_whole) => {
            Ok(Value::Ints(ints_of(&ts)?))
        }
        v => Ok(v),
    }
}

fn fit(v: Value, kind: Kind) -> PyResult<Value> {
    let raise = crate::errors::raise;
    Ok(match (kind, v) {
        (Kind::Int | Kind::Float | Kind::Bool | Kind::Scalar, Value::Tensor(t)) if t.numel() == 1 => {
            scalar(t.try_item().map_err(raise)?)
        }
        (Kind::Int, Value::Float(f)) if f.fract() == 0.0 => Value::Int(f as i64),
        (Kind::Ints, Value::Tensor(t)) if !t.dtype().is_float() => Value::Ints(t.try_to_ints().map_err(raise)?.into()),
        (Kind::Ints, Value::Tensors(ts)) if ts.iter().all(|t| t.numel() == 1) => Value::Ints(ints_of(&ts)?),
        (Kind::Ints | Kind::Any, Value::List(list)) if is_ints(&list) => {
            let mut ints = SmallVec::new();
            for v in list {
                match v {
                    Value::Int(i) => ints.push(i),
                    Value::Tensor(t) => ints.push(t.try_item().map_err(raise)?.to_i64()),
                    Value::Bool(b) => ints.push(b as i64),
                    _ => {}
                }
            }
            Value::Ints(ints)
        }
        (Kind::Floats, Value::Ints(v)) => Value::Floats(v.iter().map(|&i| i as f64).collect()),
        (Kind::Floats, Value::Int(i)) => Value::Float(i as f64),
        (Kind::Floats, Value::Tensor(t)) => Value::Floats(t.to_f64_vec()),
        // An empty list of tensors looks like an empty list of ints.
        (Kind::Tensors, Value::Ints(v)) if v.is_empty() => Value::Tensors(Vec::new()),
        (_, v) => v,
    })
}

/// One integer, as a tensor.
fn is_whole(t: &Tensor) -> bool {
    t.numel() == 1 && t.dtype().is_int()
}

fn is_ints(list: &[Value]) -> bool {
    let one = |v: &Value| match v {
        Value::Int(_) => true,
        Value::Tensor(t) => t.numel() == 1 && !t.dtype().is_float(),
        _ => false,
    };
    list.iter().any(|v| matches!(v, Value::Int(_))) && list.iter().all(one)
}

fn ints_of(ts: &[Tensor]) -> PyResult<SmallVec<[i64; 4]>> {
    ts.iter().map(|t| t.try_item().map(Scalar::to_i64).map_err(crate::errors::raise)).collect()
}

/// One part of an index, in the encoding that `getitem` takes.
fn index_part(part: &Bound<'_, PyAny>) -> PyResult<Value> {
    if let Ok(slice) = part.cast::<PySlice>() {
        let bound = |name: &str| -> PyResult<Value> {
            let v = slice.getattr(name)?;
            match any(&v)? {
                Value::Tensor(t) if t.numel() == 1 => {
                    Ok(Value::Int(t.try_item().map_err(crate::errors::raise)?.to_i64()))
                }
                other => Ok(other),
            }
        };
        return Ok(Value::List(vec![bound("start")?, bound("stop")?, bound("step")?]));
    }
    if part.is_instance_of::<PyEllipsis>() {
        return Ok(Value::Str("...".into()));
    }
    if part.is_instance_of::<PyList>() || part.is_instance_of::<PyTuple>() || part.is_instance_of::<PyRange>() {
        let t = array::to_tensor(part, None)?;
        return Ok(Value::Tensor(if t.numel() == 0 {
            t.try_cast(sampan_core::DType::Int64).map_err(crate::errors::raise)?
        } else {
            t
        }));
    }
    if !part.is_instance_of::<PyTensor>() && array::is_array(part)? {
        let t = array::from_array(part)?;
        // A NumPy integer is an integer; an array of one is an array.
        if t.ndim() == 0 && !t.dtype().is_float() {
            return Ok(scalar(t.try_item().map_err(crate::errors::raise)?));
        }
        return Ok(Value::Tensor(t));
    }
    any(part)
}

/// What stands between the brackets of `x[…]`.
pub fn index(value: &Bound<'_, PyAny>) -> PyResult<Value> {
    match value.cast::<PyTuple>() {
        Ok(parts) => Ok(Value::List(parts.iter().map(|p| index_part(&p)).collect::<PyResult<_>>()?)),
        Err(_) => Ok(Value::List(vec![index_part(value)?])),
    }
}

/// A value as a Python object; a list becomes a tuple where the core means several results.
pub fn to_python(py: Python<'_>, value: &Value) -> PyResult<Py<PyAny>> {
    Ok(match value {
        Value::None => py.None(),
        Value::Bool(b) => PyBool::new(py, *b).to_owned().into_any().unbind(),
        Value::Int(i) => i.into_pyobject(py)?.into_any().unbind(),
        Value::Float(f) => f.into_pyobject(py)?.into_any().unbind(),
        Value::Complex(c) => PyComplex::from_doubles(py, c.re, c.im).into_any().unbind(),
        Value::Str(s) => PyString::new(py, s).into_any().unbind(),
        Value::DType(d) => dtype::object(py, *d).into_any(),
        Value::Ints(v) => PyList::new(py, v.iter())?.into_any().unbind(),
        Value::Floats(v) => PyList::new(py, v)?.into_any().unbind(),
        Value::Tensor(t) => PyTensor::wrap(py, t.clone())?,
        Value::Tensors(ts) => {
            let each: Vec<_> = ts.iter().map(|t| PyTensor::wrap(py, t.clone())).collect::<PyResult<_>>()?;
            PyList::new(py, each)?.into_any().unbind()
        }
        Value::List(vs) => {
            let each: Vec<_> = vs.iter().map(|v| to_python(py, v)).collect::<PyResult<_>>()?;
            PyTuple::new(py, each)?.into_any().unbind()
        }
        Value::Dict(d) => {
            let dict = PyDict::new(py);
            for (k, v) in d.iter() {
                dict.set_item(k, to_python(py, v)?)?;
            }
            dict.into_any().unbind()
        }
        Value::Object(o) => crate::class::wrap(py, o.clone())?,
    })
}
