//! Ops of the registry as Python functions and methods.

use crate::errors::{self, raise};
use crate::tensor::PyTensor;
use crate::value;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyInt, PyList, PyString, PyTuple};
use sampan_core::dispatch::{dispatch, dispatch_inplace};
use sampan_core::op::{self as registry, Kind, OpDef, Outputs, Param, Returns};
use sampan_core::signature::Signature;
use sampan_core::value::Args;
use sampan_core::{Tensor, Value};

// No doc comment: `__doc__` is the op's own.
#[pyclass(name = "Op", module = "sampan._core", frozen)]
pub struct PyOp {
    def: &'static OpDef,
    /// The name it was asked for by.
    name: String,
    inplace: bool,
    /// Where a list of ints may be written as several arguments: `reshape(2, 3)`.
    spread: Option<usize>,
}

/// The parameter that takes a list of ints and after which no int can stand.
fn spread(params: &[Param]) -> Option<usize> {
    let at = params
        .iter()
        .position(|p| p.kind == Kind::Ints || (p.kind == Kind::Any && matches!(p.name, "shape" | "size")))?;
    let last_required = params.iter().rposition(|p| p.default.is_none())?;
    let next = params.get(at + 1).map(|p| p.kind);
    let free = !matches!(next, Some(Kind::Int | Kind::Ints | Kind::Float | Kind::Scalar | Kind::Any | Kind::Operand));
    (at == last_required && free).then_some(at)
}

/// Positional and named arguments in the order of a signature.
pub fn bind(
    takes: &Signature,
    spread: Option<usize>,
    args: &Bound<'_, PyTuple>,
    kwargs: Option<&Bound<'_, PyDict>>,
) -> PyResult<Args> {
    let params = takes.params;
    let fail =
        |message: String| PyTypeError::new_err(format!("(InvalidType) {}: {message}. Hint: {takes}", takes.name));
    let mut slots: smallvec::SmallVec<[Option<Value>; 8]> = smallvec::smallvec![None; params.len()];
    let mut n = args.len();
    if n > 0
        && params.first().is_some_and(|p| p.kind == Kind::Tensors)
        && args.get_item(0)?.is_instance_of::<PyTensor>()
    {
        // `meshgrid(a, b)` is `meshgrid([a, b])`.
        let tensors =
            args.iter().map_while(|a| a.cast::<PyTensor>().ok().map(|t| t.borrow().tensor())).collect::<Vec<_>>();
        let used = tensors.len();
        slots[0] = Some(Value::Tensors(tensors));
        for (i, a) in args.iter().skip(used).enumerate() {
            let p =
                params.get(i + 1).ok_or_else(|| fail(format!("takes at most {} arguments, got {n}", params.len())))?;
            slots[i + 1] = Some(value::of_kind(&a, p.kind)?);
        }
        n = 0;
    } else if let Some(at) = spread
        && n > at + 1
        && (at..n)
            .all(|i| args.get_item(i).is_ok_and(|a| a.is_instance_of::<PyInt>() || a.is_instance_of::<PyTensor>()))
    {
        slots[at] = Some(value::of_kind(args.get_slice(at, n).as_any(), Kind::Ints)?);
        n = at;
    }
    for i in 0..n {
        let a = args.get_borrowed_item(i)?;
        match params.get(i) {
            Some(p) => slots[i] = Some(value::of_kind(&a, p.kind)?),
            // Paddle's last parameter, which does nothing.
            None if i == params.len() && (a.is_none() || a.is_instance_of::<PyString>()) => {}
            None => return Err(fail(format!("takes at most {} arguments, got {}", params.len(), args.len()))),
        }
    }
    for (key, a) in kwargs.into_iter().flatten() {
        let key = key.cast::<PyString>()?;
        let name = key.to_str()?;
        let Some(i) = takes.position(name) else {
            if matches!(name, "name" | "out") {
                continue;
            }
            return Err(fail(format!("has no argument `{name}`")));
        };
        if slots[i].replace(value::of_kind(&a, params[i].kind)?).is_some() {
            return Err(fail(format!("got two values for argument `{}`", params[i].name)));
        }
    }
    params
        .iter()
        .zip(slots)
        .map(|(p, slot)| match (slot, p.default) {
            (Some(v), _) => Ok(v),
            (None, Some(default)) => Ok(default()),
            (None, None) => Err(fail(format!("argument `{}` is missing", p.name))),
        })
        .collect()
}

/// An op's results as Python has them.
pub fn outputs(py: Python<'_>, def: &OpDef, mut outputs: Outputs) -> PyResult<Py<PyAny>> {
    let all = |outputs: Outputs| outputs.into_iter().map(|t| PyTensor::wrap(py, t)).collect::<PyResult<Vec<_>>>();
    match def.returns {
        Returns::One => PyTensor::wrap(py, outputs.remove(0)),
        Returns::Varying if outputs.len() == 1 => PyTensor::wrap(py, outputs.remove(0)),
        Returns::List => Ok(PyList::new(py, all(outputs)?)?.into_any().unbind()),
        Returns::Tuple(_) | Returns::Varying => Ok(PyTuple::new(py, all(outputs)?)?.into_any().unbind()),
    }
}

/// Calls an op with values, without the lock.
pub fn call(py: Python<'_>, def: &'static OpDef, args: Args) -> PyResult<Outputs> {
    errors::run(py, move || dispatch(def, args))
}

/// Calls an op that has one result.
pub fn call_one(py: Python<'_>, def: &'static OpDef, args: Args) -> PyResult<Tensor> {
    Ok(call(py, def, args)?.remove(0))
}

#[pymethods]
impl PyOp {
    #[pyo3(signature = (*args, **kwargs))]
    fn __call__(
        &self,
        py: Python<'_>,
        args: &Bound<'_, PyTuple>,
        kwargs: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Py<PyAny>> {
        let bound = bind(&self.def.takes(), self.spread, args, kwargs)?;
        if self.inplace {
            let first = match args.get_item(0) {
                Ok(first) => first,
                Err(_) => kwargs.and_then(|k| k.get_item(self.def.params[0].name).ok().flatten()).ok_or_else(|| {
                    PyTypeError::new_err(format!("(InvalidType) {}: the tensor to write is missing.", self.name))
                })?,
            };
            let target = first.cast::<PyTensor>()?.clone();
            let def = self.def;
            let new = errors::run(py, move || dispatch_inplace(def, bound))?;
            target.borrow_mut().replace(new);
            return Ok(first.unbind());
        }
        let results = call(py, self.def, bound)?;
        if let Some(out) = kwargs.map(|k| k.get_item("out")).transpose()?.flatten().filter(|o| !o.is_none()) {
            return self.write_out(py, results, out);
        }
        outputs(py, self.def, results)
    }

    /// A method of the tensor it is asked for through.
    fn __get__<'py>(
        slf: &Bound<'py, Self>,
        instance: &Bound<'py, PyAny>,
        _owner: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        if instance.is_none() {
            return Ok(slf.clone().into_any());
        }
        crate::method_type(slf.py())?.call1((slf, instance))
    }

    #[getter]
    fn __name__(&self) -> &str {
        &self.name
    }
    #[getter]
    fn __qualname__(&self) -> &str {
        &self.name
    }
    #[getter]
    fn __module__(&self) -> String {
        module_name(self.def.module)
    }
    #[getter]
    fn __doc__(&self) -> String {
        crate::doc::of_op(self.def, &self.name)
    }
    #[getter]
    fn __text_signature__(&self) -> String {
        text_signature(self.def.params)
    }
    fn __repr__(&self) -> String {
        format!("<function {}>", self.name)
    }
    /// Pickles by name.
    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, (String,))> {
        Ok((py.import("sampan._core")?.getattr("op")?, (self.name.clone(),)))
    }
}

impl PyOp {
    fn write_out(&self, py: Python<'_>, results: Outputs, out: Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        let targets: Vec<Bound<'_, PyTensor>> = match out.cast::<PyTensor>() {
            Ok(one) => vec![one.clone()],
            Err(_) => out.try_iter()?.map(|t| Ok(t?.cast_into::<PyTensor>()?)).collect::<PyResult<_>>()?,
        };
        for (target, result) in targets.iter().zip(results) {
            let new = {
                let t = target.borrow().tensor();
                let assign =
                    registry::find("assign").filter(|_| t.shape() == result.shape() && t.dtype() == result.dtype());
                match assign {
                    Some(_) => errors::run(py, move || t.try_set_value(&result.detach()).map(|()| t))?,
                    // `out` is only a handle to be filled: it takes over whatever came out.
                    None => result,
                }
            };
            target.borrow_mut().replace(new);
        }
        Ok(out.unbind())
    }
}

/// `nn.functional` as a module of the package.
pub fn module_name(module: &str) -> String {
    if module.is_empty() { "sampan".into() } else { format!("sampan.{module}") }
}

/// The signature in the form that `inspect.signature` reads.
pub fn text_signature(params: &[Param]) -> String {
    let one = |p: &Param| match p.default {
        None => p.name.to_string(),
        Some(default) => format!("{}={}", p.name, literal(&default())),
    };
    let mut all: Vec<String> = params.iter().map(one).collect();
    if !params.iter().any(|p| p.name == "name") {
        all.push("name=None".into());
    }
    format!("({})", all.join(", "))
}

/// A value as it is written in Python.
pub fn literal(v: &Value) -> String {
    match v {
        Value::Bool(true) => "True".into(),
        Value::Bool(false) => "False".into(),
        Value::Int(i) => i.to_string(),
        Value::Float(f) if f.is_infinite() => {
            if *f > 0.0 {
                "float('inf')".into()
            } else {
                "float('-inf')".into()
            }
        }
        Value::Float(f) => format!("{f:?}"),
        Value::Str(s) => format!("'{s}'"),
        Value::DType(d) => format!("'{}'", d.name()),
        Value::Ints(v) => format!("{:?}", v.as_slice()),
        Value::Floats(v) => format!("{v:?}"),
        Value::List(v) => format!("[{}]", v.iter().map(literal).collect::<Vec<_>>().join(", ")),
        Value::Tensors(v) if v.is_empty() => "[]".into(),
        _ => "None".into(),
    }
}

/// The op of a name, `relu` or `relu_`.
#[pyfunction]
pub fn op(name: &str) -> PyResult<PyOp> {
    let exact = registry::find(name).map(|def| (def, def.name.ends_with('_')));
    let written = || name.strip_suffix('_').and_then(registry::find).filter(|d| d.inplace).map(|d| (d, true));
    let (def, inplace) = exact.or_else(written).ok_or_else(|| {
        raise(sampan_core::Error::new(sampan_core::error::Kind::NotFound, format!("there is no op {name:?}")))
    })?;
    Ok(PyOp { def, name: name.to_string(), inplace, spread: spread(def.params) })
}

/// Every op: (name, module, other public names, has an in-place form).
#[pyfunction]
pub fn ops() -> Vec<(&'static str, &'static str, Vec<&'static str>, bool)> {
    registry::all().into_iter().map(|d| (d.name, d.module, d.also.to_vec(), d.inplace)).collect()
}

/// What stubs and tables are made from: parameters as (name, kind, default or None, may be None), the kind of result.
#[pyfunction]
pub fn op_info(py: Python<'_>, name: &str) -> PyResult<Py<PyAny>> {
    let def = self::op(name)?.def;
    let info = PyDict::new(py);
    info.set_item("params", params_info(def.params))?;
    info.set_item("aliases", def.aliases.to_vec())?;
    info.set_item("returns", crate::doc::result(def.returns))?;
    info.set_item("doc", def.doc)?;
    info.set_item("module", def.module)?;
    info.set_item("family", def.family())?;
    Ok(info.into_any().unbind())
}

/// Parameters as (name, kind, default or None, may be None, annotation).
pub fn params_info(params: &[Param]) -> Vec<(&'static str, String, Option<String>, bool, String)> {
    params
        .iter()
        .map(|p| {
            let default = p.default.map(|d| literal(&d()));
            (p.name, format!("{:?}", p.kind), default, p.optional, crate::doc::annotation(p))
        })
        .collect()
}
