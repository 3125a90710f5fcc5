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
    pub(crate) def: &'static OpDef,
    /// The name it was asked for by.
    name: String,
    pub(crate) inplace: bool,
    /// Where a list of ints may be written as several arguments: `reshape(2, 3)`.
    pub(crate) spread: Option<usize>,
}

/// The parameter that takes a list of ints and after which no int can stand.
fn spread(params: &[Param]) -> Option<usize> {
    let at = params.iter().position(|p| {
        p.kind == Kind::Ints || (p.kind == Kind::Any && matches!(p.name, "shape" | "size" | "shape_or_dtype"))
    })?;
    let last_required = params.iter().rposition(|p| p.default.is_none())?;
    let next = params.get(at + 1).map(|p| p.kind);
    let free = !matches!(
        next,
        Some(Kind::Int | Kind::Ints | Kind::Float | Kind::Scalar | Kind::Any | Kind::Operand | Kind::Tensor)
    );
    (at == last_required && free).then_some(at)
}

/// Does it make a tensor from no other, or from one that it resembles?
fn makes_tensors(params: &[Param]) -> bool {
    let first = params.first().map(|p| p.kind);
    !matches!(first, Some(Kind::Tensor | Kind::Tensors)) || params.iter().any(|p| p.name == "dtype")
}

/// Checks an option that every function that makes tensors takes; false if it is none.
fn creation_option(name: &str, value: &Bound<'_, PyAny>) -> PyResult<bool> {
    match name {
        "device" if !value.is_none() => crate::device::check_place(value).map(|_| true),
        "pin_memory" if value.is_truthy()? => {
            crate::device::check_place(PyString::new(value.py(), "gpu_pinned").as_any()).map(|_| true)
        }
        other => Ok(matches!(other, "device" | "pin_memory" | "requires_grad")),
    }
}

/// Positional and named arguments in the order of a signature.
pub fn bind(
    takes: &Signature,
    spread: Option<usize>,
    args: &Bound<'_, PyTuple>,
    kwargs: Option<&Bound<'_, PyDict>>,
) -> PyResult<Args> {
    let params = takes.params;
    let fail = |message: String| {
        let (name, takes) = (takes.name, text_signature(params));
        PyTypeError::new_err(format!("(InvalidType) {name}: {message}. Hint: {name}{takes}"))
    };
    let mut slots: smallvec::SmallVec<[Option<Value>; 8]> = smallvec::smallvec![None; params.len()];
    let mut n = args.len();
    if let Some(at) = params.iter().position(|p| p.kind == Kind::Tensors)
        && n > at
        && args.get_item(at)?.is_instance_of::<PyTensor>()
    {
        // `meshgrid(a, b)` is `meshgrid([a, b])`, and `einsum(text, a, b)` is `einsum(text, [a, b])`.
        let many = args.iter().skip(at);
        let tensors = many.map_while(|a| a.cast::<PyTensor>().ok().map(|t| t.borrow().tensor())).collect::<Vec<_>>();
        for (i, a) in args.iter().skip(at + tensors.len()).enumerate() {
            let p = params
                .get(at + 1 + i)
                .ok_or_else(|| fail(format!("takes at most {} arguments, got {n}", params.len())))?;
            slots[at + 1 + i] = Some(value::of_param(&a, p)?);
        }
        slots[at] = Some(Value::Tensors(tensors));
        n = at;
    } else if let Some(at) = spread
        && n > at + usize::from(params[at].name != "shape_or_dtype")
        && (at..n)
            .all(|i| args.get_item(i).is_ok_and(|a| a.is_instance_of::<PyInt>() || a.is_instance_of::<PyTensor>()))
    {
        slots[at] = Some(value::of_kind(args.get_slice(at, n).as_any(), Kind::Ints)?);
        n = at;
    }
    for i in 0..n {
        let a = args.get_borrowed_item(i)?;
        match params.get(i) {
            Some(p) => slots[i] = Some(value::of_param(&a, p)?),
            // Paddle's last parameter, which does nothing.
            None if i == params.len() && (a.is_none() || a.is_instance_of::<PyString>()) => {}
            None => return Err(fail(format!("takes at most {} arguments, got {}", params.len(), args.len()))),
        }
    }
    for (key, a) in kwargs.into_iter().flatten() {
        let key = key.cast::<PyString>()?;
        let name = key.to_str()?;
        let Some(i) = takes.position(name) else {
            if matches!(name, "name" | "out") || makes_tensors(params) && creation_option(name, &a)? {
                continue;
            }
            return Err(fail(format!("has no argument `{name}`")));
        };
        if slots[i].replace(value::of_param(&a, &params[i])?).is_some() {
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

/// Calls an op that makes tensors, on a device.
fn call_on(py: Python<'_>, def: &'static OpDef, args: Args, device: sampan_core::Device) -> PyResult<Outputs> {
    let made = sampan_core::device::with(device, || call(py, def, args))?;
    if made.iter().all(|t| t.device() == device) {
        return Ok(made);
    }
    errors::run(py, move || made.into_iter().map(|t| t.try_to_device(&device.to_string())).collect())
}

/// An op's results as Python has them. `several` says that even a single one is meant as one of many.
pub fn outputs(py: Python<'_>, def: &OpDef, mut outputs: Outputs, several: bool) -> PyResult<Py<PyAny>> {
    let all = |outputs: Outputs| outputs.into_iter().map(|t| PyTensor::wrap(py, t)).collect::<PyResult<Vec<_>>>();
    let single = match def.returns {
        Returns::One => true,
        Returns::Varying => outputs.len() == 1 && !several,
        Returns::Tuple(_) | Returns::List => false,
    };
    if single {
        return PyTensor::wrap(py, outputs.remove(0));
    }
    if let Some(name) = def.tuple {
        return Ok(py.import("sampan._types")?.getattr(name)?.call1(PyTuple::new(py, all(outputs)?)?)?.unbind());
    }
    // The last name may stand for a list of all results from there on.
    let listed = def.results.iter().position(|name| name.ends_with("..."));
    if let Some(at @ 1..) = listed {
        let rest = PyList::new(py, all(outputs.drain(at..).collect())?)?.into_any().unbind();
        return Ok(PyTuple::new(py, all(outputs)?.into_iter().chain([rest]).collect::<Vec<_>>())?.into_any().unbind());
    }
    Ok(match listed.is_some() || def.returns == Returns::List {
        true => PyList::new(py, all(outputs)?)?.into_any().unbind(),
        false => PyTuple::new(py, all(outputs)?)?.into_any().unbind(),
    })
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
        slf: &Bound<'_, Self>,
        args: &Bound<'_, PyTuple>,
        kwargs: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Py<PyAny>> {
        match crate::elsewhere::call(slf.as_any(), args, kwargs)? {
            Some(result) => Ok(result),
            None => slf.get().call_here(slf.py(), args, kwargs),
        }
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
        let signature = text_signature(self.def.params);
        let options = self.options();
        if options.is_empty() { signature } else { format!("{}, *, {options})", &signature[..signature.len() - 1]) }
    }
    /// Is the first argument a tensor, so that it can be a method of one?
    #[getter]
    fn is_method(&self) -> bool {
        self.def.params.first().is_some_and(|p| matches!(p.kind, Kind::Tensor | Kind::Operand))
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
    fn call_here(
        &self,
        py: Python<'_>,
        args: &Bound<'_, PyTuple>,
        kwargs: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Py<PyAny>> {
        if let Some(kwargs) = kwargs
            && !self.def.keywords.is_empty()
            && let Some(result) = self.with_options(py, args, kwargs)?
        {
            return Ok(result);
        }
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
            target.get().replace(new);
            return Ok(first.unbind());
        }
        let several = self.def.several.is_some_and(|asked| asked(&bound));
        let Some(kwargs) = kwargs else {
            let results = call(py, self.def, bound)?;
            return outputs(py, self.def, results, several);
        };
        let device =
            kwargs.get_item(pyo3::intern!(py, "device"))?.filter(|d| !d.is_none() && makes_tensors(self.def.params));
        let results = match device.map(|d| crate::device::read(&d)).transpose()? {
            // One that resembles another tensor is made where that one is, and then moved.
            Some(device) => call_on(py, self.def, bound, device)?,
            None => call(py, self.def, bound)?,
        };
        if kwargs.get_item(pyo3::intern!(py, "requires_grad"))?.is_some_and(|on| on.is_truthy().unwrap_or(false)) {
            for t in &results {
                t.set_stop_gradient(false);
            }
        }
        if let Some(out) = kwargs.get_item(pyo3::intern!(py, "out"))?.filter(|o| !o.is_none()) {
            return self.write_out(py, results, out);
        }
        outputs(py, self.def, results, several)
    }

    /// What it takes by name beside its parameters, as it is written.
    fn options(&self) -> String {
        let mut options = self.def.keywords.to_vec();
        if !self.inplace {
            options.push("out=None");
        }
        if makes_tensors(self.def.params) {
            options.extend(["device=None", "requires_grad=False", "pin_memory=False"]);
        }
        let taken = |o: &&str| self.def.params.iter().any(|p| o.starts_with(&format!("{}=", p.name)));
        options.retain(|o| !taken(o));
        options.join(", ")
    }

    /// Arithmetic with an option that Paddle took over from torch: `alpha` or `rounding_mode`.
    fn with_options(
        &self,
        py: Python<'_>,
        args: &Bound<'_, PyTuple>,
        kwargs: &Bound<'_, PyDict>,
    ) -> PyResult<Option<Py<PyAny>>> {
        let given = |keyword: &&str| kwargs.contains(keyword.split('=').next().unwrap_or(keyword)).unwrap_or(false);
        if !self.def.keywords.iter().any(given) {
            return Ok(None);
        }
        let call = py.import("sampan._options")?.getattr("call")?;
        Ok(Some(call.call1((self.def.name, self.inplace, args, kwargs))?.unbind()))
    }

    fn write_out(&self, py: Python<'_>, results: Outputs, out: Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        let targets: Vec<Bound<'_, PyTensor>> = match out.cast::<PyTensor>() {
            Ok(one) => vec![one.clone()],
            Err(_) => out.try_iter()?.map(|t| Ok(t?.cast_into::<PyTensor>()?)).collect::<PyResult<_>>()?,
        };
        for (target, result) in targets.iter().zip(results) {
            let new = {
                let t = target.borrow().tensor();
                match t.shape() == result.shape() && t.dtype() == result.dtype() {
                    true => errors::run(py, move || t.try_set_value(&result.detach()).map(|()| t))?,
                    // `out` is only a handle to be filled: it takes over whatever came out.
                    false => result,
                }
            };
            target.get().replace(new);
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
    let public = |name: &str| registry::find(name).filter(|d| !d.internal);
    let exact = public(name).map(|def| (def, def.name.ends_with('_')));
    let written = || name.strip_suffix('_').and_then(public).filter(|d| d.inplace).map(|d| (d, true));
    let (def, inplace) = exact.or_else(written).ok_or_else(|| {
        raise(sampan_core::Error::new(sampan_core::error::Kind::NotFound, format!("there is no op {name:?}")))
    })?;
    Ok(PyOp { def, name: name.to_string(), inplace, spread: spread(def.params) })
}

/// Every op that is no mere part of others: (name, module, other public names, has an in-place form).
#[pyfunction]
pub fn ops() -> Vec<(&'static str, &'static str, Vec<&'static str>, bool)> {
    let public = registry::all().into_iter().filter(|d| !d.internal);
    public.map(|d| (d.name, d.module, d.also.to_vec(), d.inplace)).collect()
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
