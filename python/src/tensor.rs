//! `Tensor`: a handle on a tensor of the core.

use crate::errors::{self, raise};
use crate::{array, autograd, dtype, op, value};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString, PyTuple};
use sampan_core::op::OpDef;
use sampan_core::value::Args;
use sampan_core::{DType, Scalar, Tensor, Value};
use sampan_nn::{Buffer, Parameter};
use smallvec::smallvec;
use std::sync::OnceLock;

/// Where a handle finds its tensor. A parameter or buffer of a layer is a place that the layer reads as well, so that
/// both see a replacement.
pub enum Place {
    /// The handle's own.
    Own(Tensor),
    /// A parameter.
    Parameter(Parameter),
    /// A buffer of a layer.
    Buffer(Buffer),
}

/// An n-dimensional array that remembers how it was made.
#[pyclass(name = "Tensor", module = "sampan", subclass, dict, weakref)]
pub struct PyTensor {
    place: Place,
}

impl PyTensor {
    /// A handle on a tensor.
    pub fn own(t: Tensor) -> PyTensor {
        PyTensor { place: Place::Own(t) }
    }

    /// A new Python object for a tensor.
    pub fn wrap(py: Python<'_>, t: Tensor) -> PyResult<Py<PyAny>> {
        Ok(Py::new(py, PyTensor::own(t))?.into_any())
    }

    /// A handle on a buffer of a layer.
    pub fn wrap_buffer(py: Python<'_>, b: Buffer) -> PyResult<Py<PyAny>> {
        Ok(Py::new(py, PyTensor { place: Place::Buffer(b) })?.into_any())
    }

    /// The tensor now.
    pub fn tensor(&self) -> Tensor {
        match &self.place {
            Place::Own(t) => t.clone(),
            Place::Parameter(p) => p.tensor(),
            Place::Buffer(b) => b.tensor(),
        }
    }

    /// The parameter, if it is one.
    pub fn parameter(&self) -> Option<&Parameter> {
        if let Place::Parameter(p) = &self.place { Some(p) } else { None }
    }

    /// Gives its tensor to a buffer and is a handle on that from now on.
    pub fn move_into(&mut self, buffer: &Buffer) {
        buffer.replace(self.tensor());
        self.place = Place::Buffer(buffer.clone());
    }

    /// Puts another tensor in its place.
    pub fn replace(&mut self, t: Tensor) {
        match &mut self.place {
            Place::Own(own) => *own = t,
            Place::Parameter(p) => p.replace(t),
            Place::Buffer(b) => b.replace(t),
        }
    }
}

/// A tensor that is trained.
#[pyclass(name = "Parameter", module = "sampan", extends = PyTensor, subclass, dict, weakref)]
pub struct PyParameter;

impl PyParameter {
    /// The Python object of a parameter.
    pub fn wrap(py: Python<'_>, p: Parameter) -> PyResult<Py<PyAny>> {
        let init = PyClassInitializer::from(PyTensor { place: Place::Parameter(p) }).add_subclass(PyParameter);
        Ok(Py::new(py, init)?.into_any())
    }
}

/// The other operand of an operator; None if it is nothing that a tensor can be combined with.
fn operand(other: &Bound<'_, PyAny>) -> PyResult<Option<Value>> {
    if let Ok(t) = other.cast::<PyTensor>() {
        return Ok(Some(Value::Tensor(t.borrow().tensor())));
    }
    if other.is_none() || other.is_instance_of::<PyString>() || other.is_instance_of::<PyDict>() {
        return Ok(None);
    }
    if other.is_instance_of::<PyList>() || other.is_instance_of::<PyTuple>() {
        return Ok(Some(Value::Tensor(array::to_tensor(other, None)?)));
    }
    match value::any(other) {
        Ok(v @ (Value::Tensor(_) | Value::Int(_) | Value::Float(_) | Value::Bool(_))) => Ok(Some(v)),
        _ => Ok(None),
    }
}

/// The op that an operator means, looked up once.
fn known(cell: &'static OnceLock<&'static OpDef>, name: &str) -> &'static OpDef {
    cell.get_or_init(|| sampan_core::op::find(name).unwrap_or_else(|| panic!("there is no op {name}")))
}

fn binary(slf: &PyTensor, other: &Bound<'_, PyAny>, def: &'static OpDef, swapped: bool) -> PyResult<Py<PyAny>> {
    let py = other.py();
    let Some(rhs) = operand(other)? else { return Ok(py.NotImplemented()) };
    let lhs = Value::Tensor(slf.tensor());
    let args: Args = if swapped { smallvec![rhs, lhs] } else { smallvec![lhs, rhs] };
    let args = filled(def, args);
    PyTensor::wrap(py, op::call_one(py, def, args)?)
}

/// The arguments with the defaults of those that are missing.
pub fn filled(def: &OpDef, mut args: Args) -> Args {
    for p in &def.params[args.len()..] {
        args.push(p.default.map_or(Value::None, |d| d()));
    }
    args
}

fn reflected(
    slf: &PyTensor,
    other: &Bound<'_, PyAny>,
    def: &'static OpDef,
    scalar_first: &'static OpDef,
) -> PyResult<Py<PyAny>> {
    let py = other.py();
    let Some(lhs) = operand(other)? else { return Ok(py.NotImplemented()) };
    let rhs = Value::Tensor(slf.tensor());
    let (def, args): (_, Args) = match lhs {
        Value::Tensor(_) => (def, smallvec![lhs, rhs]),
        number => (scalar_first, smallvec![rhs, number]),
    };
    PyTensor::wrap(py, op::call_one(py, def, filled(def, args))?)
}

fn inplace(slf: &Bound<'_, PyTensor>, other: &Bound<'_, PyAny>, def: &'static OpDef) -> PyResult<()> {
    let py = slf.py();
    let Some(rhs) = operand(other)? else {
        return Err(PyTypeError::new_err(format!(
            "(InvalidType) {}: a Tensor or a number is needed, got {}.",
            def.name,
            other.get_type().name()?
        )));
    };
    let args: Args = filled(def, smallvec![Value::Tensor(slf.borrow().tensor()), rhs]);
    let new = errors::run(py, move || sampan_core::dispatch::dispatch_inplace(def, args))?;
    slf.borrow_mut().replace(new);
    Ok(())
}

macro_rules! op {
    ($name:literal) => {{
        static OP: OnceLock<&'static OpDef> = OnceLock::new();
        known(&OP, $name)
    }};
}

/// A number as a 0-d tensor of a dtype that suits the other operand, for operators that take tensors alone.
fn full(py: Python<'_>, number: Value, like: &Tensor) -> PyResult<Tensor> {
    let dtype = match number {
        Value::Float(_) if !like.dtype().is_float() => sampan_core::promote::default_dtype(),
        _ => like.dtype(),
    };
    op::call_one(
        py,
        op!("full"),
        filled(op!("full"), smallvec![Value::Ints(Default::default()), number, Value::DType(dtype)]),
    )
}

fn unary(py: Python<'_>, t: Tensor, def: &'static OpDef) -> PyResult<Py<PyAny>> {
    PyTensor::wrap(py, op::call_one(py, def, filled(def, smallvec![Value::Tensor(t)]))?)
}

#[pymethods]
impl PyTensor {
    #[new]
    #[pyo3(signature = (data = None, dtype = None, place = None, stop_gradient = true))]
    fn new(
        data: Option<&Bound<'_, PyAny>>,
        dtype: Option<&Bound<'_, PyAny>>,
        place: Option<&Bound<'_, PyAny>>,
        stop_gradient: bool,
    ) -> PyResult<PyTensor> {
        let _ = place;
        let dtype = dtype.filter(|d| !d.is_none()).map(dtype::read).transpose()?;
        let t = match data {
            Some(data) => array::to_tensor(data, dtype)?,
            None => Tensor::zeros([0], dtype.unwrap_or_else(sampan_core::promote::default_dtype)),
        };
        t.set_stop_gradient(stop_gradient);
        Ok(PyTensor::own(t))
    }

    // ---- what it is

    /// Extents of the axes, as a list.
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        PyList::new(py, self.tensor().shape())
    }
    /// The type of the elements.
    #[getter]
    fn dtype(&self, py: Python<'_>) -> Py<dtype::PyDType> {
        dtype::object(py, self.tensor().dtype())
    }
    /// Number of axes.
    #[getter]
    fn ndim(&self) -> usize {
        self.tensor().ndim()
    }
    /// Number of elements.
    #[getter]
    fn size(&self) -> usize {
        self.tensor().numel()
    }
    /// Steps of the axes, in elements.
    #[getter]
    fn strides<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        PyList::new(py, self.tensor().strides())
    }
    /// Where the values of a view begin in the memory it shares, in elements.
    #[getter]
    fn offset(&self) -> usize {
        self.tensor().layout().offset
    }
    /// Is it excluded from gradients?
    #[getter]
    fn get_stop_gradient(&self) -> bool {
        self.tensor().stop_gradient()
    }
    #[setter]
    fn set_stop_gradient(&self, stop: bool) {
        self.tensor().set_stop_gradient(stop);
    }
    /// Is a gradient wanted for it? The opposite of `stop_gradient`.
    #[getter]
    fn get_requires_grad(&self) -> bool {
        self.tensor().requires_grad()
    }
    #[setter]
    fn set_requires_grad(&self, on: bool) {
        self.tensor().set_stop_gradient(!on);
    }
    /// Was it made by the user rather than by a recorded op?
    #[getter]
    fn is_leaf(&self) -> bool {
        let t = self.tensor();
        t.is_leaf()
    }
    /// The name of the op that made it, or None.
    #[getter]
    fn grad_fn(&self) -> Option<&'static str> {
        self.tensor().grad_fn()
    }
    #[getter]
    fn get_name(&self) -> String {
        self.tensor().name()
    }
    #[setter]
    fn set_name(&self, name: String) {
        self.tensor().set_name(name);
    }
    /// Is it part of what a checkpoint keeps?
    #[getter]
    fn get_persistable(&self) -> bool {
        self.tensor().persistable()
    }
    #[setter]
    fn set_persistable(&self, on: bool) {
        self.tensor().set_persistable(on);
    }
    /// How often its memory was written in place.
    #[getter]
    fn inplace_version(&self) -> u64 {
        self.tensor().inplace_version()
    }
    /// Is it row-major without gaps?
    fn is_contiguous(&self) -> bool {
        self.tensor().is_contiguous()
    }
    /// Do both share memory?
    fn _shares_memory(&self, other: PyRef<'_, PyTensor>) -> bool {
        self.tensor().shares_memory(&other.tensor())
    }
    /// Are both handles on one and the same tensor?
    fn _is_same(&self, other: PyRef<'_, PyTensor>) -> bool {
        let (a, b) = (self.tensor(), other.tensor());
        a.shares_memory(&b) && a.layout() == b.layout()
    }

    // ---- gradients

    /// The gradient that `backward` added up here, or None.
    #[getter]
    fn get_grad(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        self.tensor().grad().map(|g| PyTensor::wrap(py, g)).transpose()
    }
    #[setter]
    fn set_grad(&self, grad: Option<PyRef<'_, PyTensor>>) -> PyResult<()> {
        let t = self.tensor();
        if let Some(g) = &grad
            && g.tensor().shape() != t.shape()
        {
            return Err(PyValueError::new_err(format!(
                "(InvalidArgument) grad: the gradient must have the tensor's shape {:?}, got {:?}.",
                t.shape(),
                g.tensor().shape()
            )));
        }
        t.set_grad(grad.map(|g| g.tensor().detach()));
        Ok(())
    }
    /// Forgets the gradient, or sets it to zeros.
    #[pyo3(signature = (set_to_zero = true))]
    fn clear_grad(&self, set_to_zero: bool) {
        let _ = set_to_zero;
        self.tensor().clear_grad();
    }
    /// Forgets the gradient.
    #[pyo3(signature = (set_to_zero = true))]
    fn clear_gradient(&self, set_to_zero: bool) {
        self.clear_grad(set_to_zero);
    }
    /// Adds the gradients of this tensor to `.grad` of every leaf it depends on.
    #[pyo3(signature = (grad_tensor = None, retain_graph = false, *, dump_backward_graph_path = None))]
    fn backward(
        &self,
        py: Python<'_>,
        grad_tensor: Option<PyRef<'_, PyTensor>>,
        retain_graph: bool,
        dump_backward_graph_path: Option<String>,
    ) -> PyResult<()> {
        let _ = dump_backward_graph_path;
        let (t, g) = (self.tensor(), grad_tensor.map(|g| g.tensor()));
        errors::run(py, move || t.try_backward(g.as_ref(), retain_graph))
    }
    /// Calls `hook(grad)` when the gradient reaches this tensor; what it returns replaces the gradient.
    fn register_hook(&self, hook: Py<PyAny>) -> PyResult<autograd::PyHook> {
        autograd::register_hook(&self.tensor(), hook)
    }
    /// Keeps the gradient of this intermediate result in `.grad`.
    fn retain_grads(&self) {
        self.tensor().retain_grads();
    }
    /// The same memory without a history.
    fn detach(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        PyTensor::wrap(py, self.tensor().detach())
    }
    /// Cuts this tensor off from its history.
    fn detach_<'py>(slf: Bound<'py, Self>) -> Bound<'py, Self> {
        let t = slf.borrow().tensor().detach();
        slf.borrow_mut().replace(t);
        slf
    }

    // ---- values

    /// Takes over values of the same shape; parameters may be changed so.
    fn set_value(&self, py: Python<'_>, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let t = self.tensor();
        let values = array::to_tensor(value, None)?;
        errors::run(py, move || {
            let values = values.try_cast(t.dtype())?;
            // Paddle 2 kept parameters of one element as [1] where numpy has no axes, and the other way round.
            let values = if values.numel() == 1 && t.numel() == 1 { values.try_reshape(t.shape())? } else { values };
            t.try_set_value(&values)
        })
    }
    /// Puts another tensor in the place of this one, for everybody who holds this handle.
    fn _replace(&mut self, other: PyRef<'_, PyTensor>) {
        let t = other.tensor();
        self.replace(t);
    }
    /// The value of one element: the only one, or the one at an index.
    #[pyo3(signature = (*args))]
    fn item(&self, py: Python<'_>, args: &Bound<'_, PyTuple>) -> PyResult<Py<PyAny>> {
        let t = self.tensor();
        let s = match args.len() {
            0 => t.try_item(),
            1 => match args.get_item(0)?.extract::<Vec<i64>>() {
                Ok(index) => t.item_at(index),
                Err(_) => op::call_one(py, op!("flatten"), filled(op!("flatten"), smallvec![Value::Tensor(t)]))?
                    .item_at([args.get_item(0)?.extract::<i64>()?]),
            },
            _ => t.item_at(args.extract::<Vec<i64>>()?),
        }
        .map_err(raise)?;
        array::number(py, s)
    }
    /// The values as nested lists of numbers.
    fn tolist(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        array::to_list(py, &self.tensor())
    }
    /// A copy of the values as a NumPy array.
    #[pyo3(signature = (force = false))]
    fn numpy(&self, py: Python<'_>, force: bool) -> PyResult<Py<PyAny>> {
        let _ = force;
        array::to_numpy(py, &self.tensor())
    }
    #[pyo3(signature = (dtype = None, copy = None))]
    fn __array__(&self, py: Python<'_>, dtype: Option<&Bound<'_, PyAny>>, copy: Option<bool>) -> PyResult<Py<PyAny>> {
        let _ = copy;
        let a = array::to_numpy(py, &self.tensor())?;
        match dtype.filter(|d| !d.is_none()) {
            Some(dtype) => Ok(a.bind(py).call_method1("astype", (dtype,))?.unbind()),
            None => Ok(a),
        }
    }
    #[classattr]
    fn __array_priority__() -> f64 {
        100.0
    }
    fn __len__(&self) -> PyResult<usize> {
        let t = self.tensor();
        t.shape().first().copied().ok_or_else(|| PyTypeError::new_err("(InvalidType) len() of a 0-d tensor."))
    }
    fn __bool__(&self) -> PyResult<bool> {
        let s = self.tensor().try_item().map_err(|_| {
            PyValueError::new_err(format!(
                "(InvalidArgument) the truth of a tensor with {} elements is ambiguous. Hint: use any() or all().",
                self.tensor().numel()
            ))
        })?;
        Ok(s.to_f64() != 0.0)
    }
    fn __float__(&self) -> PyResult<f64> {
        Ok(self.tensor().try_item().map_err(|e| PyTypeError::new_err(e.to_string()))?.to_f64())
    }
    fn __int__(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let s = self.tensor().try_item().map_err(|e| PyTypeError::new_err(e.to_string()))?;
        match s {
            Scalar::Float(f) => Ok(f.into_pyobject(py)?.call_method0("__int__")?.unbind()),
            other => Ok(other.to_i64().into_pyobject(py)?.into_any().unbind()),
        }
    }
    fn __index__(&self) -> PyResult<i64> {
        let t = self.tensor();
        match t.try_item() {
            Ok(Scalar::Int(i)) => Ok(i),
            Ok(Scalar::Bool(b)) => Ok(b as i64),
            _ => Err(PyTypeError::new_err(format!(
                "(InvalidType) only an integer tensor with one element is an index, got shape {:?} {}.",
                t.shape(),
                t.dtype()
            ))),
        }
    }
    fn __repr__(&self, py: Python<'_>) -> String {
        let t = self.tensor();
        py.detach(|| format!("{t:?}"))
    }
    fn __str__(&self, py: Python<'_>) -> String {
        self.__repr__(py)
    }
    fn __format__(&self, py: Python<'_>, spec: &str) -> PyResult<String> {
        if spec.is_empty() {
            return Ok(self.__repr__(py));
        }
        let s = self.tensor().try_item().map_err(|e| PyTypeError::new_err(e.to_string()))?;
        array::number(py, s)?.bind(py).call_method1("__format__", (spec,))?.extract()
    }
    fn __hash__(slf: &Bound<'_, Self>) -> isize {
        // By identity, as `==` compares elements.
        (slf.as_ptr() as isize) >> 4
    }
    fn __getitem__(&self, index: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        let py = index.py();
        let args: Args = smallvec![Value::Tensor(self.tensor()), value::index(index)?];
        PyTensor::wrap(py, op::call_one(py, op!("getitem"), args)?)
    }
    fn __setitem__(slf: &Bound<'_, Self>, index: &Bound<'_, PyAny>, new: &Bound<'_, PyAny>) -> PyResult<()> {
        let py = slf.py();
        let index = value::index(index)?;
        let new = operand(new)?
            .ok_or_else(|| PyTypeError::new_err("(InvalidType) setitem: a Tensor, an array or a number is needed."))?;
        let mut t = slf.borrow().tensor();
        let t = errors::run(py, move || {
            let new: sampan_core::Operand = match new {
                Value::Tensor(v) => v.into(),
                Value::Float(f) => f.into(),
                Value::Int(i) => i.into(),
                Value::Bool(b) => b.into(),
                _ => unreachable!("an operand is a tensor or a number"),
            };
            t.try_setitem_(&index, new, false).map(|()| t)
        })?;
        slf.borrow_mut().replace(t);
        Ok(())
    }
    fn __contains__(&self, item: &Bound<'_, PyAny>) -> PyResult<bool> {
        let equal = binary(self, item, op!("equal"), false)?;
        let Ok(equal) = equal.bind(item.py()).cast::<PyTensor>() else { return Ok(false) };
        let any =
            op::call_one(item.py(), op!("any"), filled(op!("any"), smallvec![Value::Tensor(equal.borrow().tensor())]))?;
        Ok(any.try_item().map_err(raise)?.to_f64() != 0.0)
    }

    // ---- operators

    fn __add__(&self, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        binary(self, other, op!("add"), false)
    }
    fn __radd__(&self, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        binary(self, other, op!("add"), false)
    }
    fn __sub__(&self, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        binary(self, other, op!("subtract"), false)
    }
    fn __rsub__(&self, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        reflected(self, other, op!("subtract"), op!("rsubtract"))
    }
    fn __mul__(&self, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        binary(self, other, op!("multiply"), false)
    }
    fn __rmul__(&self, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        binary(self, other, op!("multiply"), false)
    }
    fn __truediv__(&self, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        binary(self, other, op!("divide"), false)
    }
    fn __rtruediv__(&self, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        reflected(self, other, op!("divide"), op!("rdivide"))
    }
    fn __floordiv__(&self, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        binary(self, other, op!("floor_divide"), false)
    }
    fn __rfloordiv__(&self, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        self.with_full(other, op!("floor_divide"))
    }
    fn __mod__(&self, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        binary(self, other, op!("remainder"), false)
    }
    fn __rmod__(&self, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        reflected(self, other, op!("remainder"), op!("rremainder"))
    }
    fn __pow__(&self, other: &Bound<'_, PyAny>, modulo: Option<&Bound<'_, PyAny>>) -> PyResult<Py<PyAny>> {
        match modulo {
            Some(m) if !m.is_none() => Err(PyTypeError::new_err("(InvalidType) pow() with a modulus is for integers.")),
            _ => binary(self, other, op!("pow"), false),
        }
    }
    fn __rpow__(&self, other: &Bound<'_, PyAny>, modulo: Option<&Bound<'_, PyAny>>) -> PyResult<Py<PyAny>> {
        let _ = modulo;
        self.with_full(other, op!("pow"))
    }
    fn __matmul__(&self, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        binary(self, other, op!("matmul"), false)
    }
    fn __rmatmul__(&self, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        binary(self, other, op!("matmul"), true)
    }
    fn __and__(&self, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        binary(self, other, op!("bitwise_and"), false)
    }
    fn __rand__(&self, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        binary(self, other, op!("bitwise_and"), false)
    }
    fn __or__(&self, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        binary(self, other, op!("bitwise_or"), false)
    }
    fn __ror__(&self, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        binary(self, other, op!("bitwise_or"), false)
    }
    fn __xor__(&self, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        binary(self, other, op!("bitwise_xor"), false)
    }
    fn __rxor__(&self, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        binary(self, other, op!("bitwise_xor"), false)
    }
    fn __lshift__(&self, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        binary(self, other, op!("bitwise_left_shift"), false)
    }
    fn __rlshift__(&self, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        self.with_full(other, op!("bitwise_left_shift"))
    }
    fn __rshift__(&self, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        binary(self, other, op!("bitwise_right_shift"), false)
    }
    fn __rrshift__(&self, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        self.with_full(other, op!("bitwise_right_shift"))
    }
    fn __divmod__(&self, other: &Bound<'_, PyAny>) -> PyResult<(Py<PyAny>, Py<PyAny>)> {
        Ok((self.__floordiv__(other)?, self.__mod__(other)?))
    }
    fn __neg__(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        unary(py, self.tensor(), op!("neg"))
    }
    fn __pos__(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        PyTensor::wrap(py, self.tensor())
    }
    fn __abs__(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        unary(py, self.tensor(), op!("abs"))
    }
    fn __invert__(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        unary(py, self.tensor(), op!("bitwise_not"))
    }
    #[pyo3(signature = (ndigits = None))]
    fn __round__(&self, py: Python<'_>, ndigits: Option<i64>) -> PyResult<Py<PyAny>> {
        let args: Args = smallvec![Value::Tensor(self.tensor()), Value::Int(ndigits.unwrap_or(0))];
        PyTensor::wrap(py, op::call_one(py, op!("round"), filled(op!("round"), args))?)
    }
    fn __iadd__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<()> {
        inplace(slf, other, op!("add"))
    }
    fn __isub__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<()> {
        inplace(slf, other, op!("subtract"))
    }
    fn __imul__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<()> {
        inplace(slf, other, op!("multiply"))
    }
    fn __itruediv__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<()> {
        inplace(slf, other, op!("divide"))
    }
    fn __ifloordiv__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<()> {
        inplace(slf, other, op!("floor_divide"))
    }
    fn __imod__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<()> {
        inplace(slf, other, op!("remainder"))
    }
    fn __ipow__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>, modulo: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
        let _ = modulo;
        inplace(slf, other, op!("pow"))
    }
    fn __iand__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<()> {
        inplace(slf, other, op!("bitwise_and"))
    }
    fn __ior__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<()> {
        inplace(slf, other, op!("bitwise_or"))
    }
    fn __ixor__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<()> {
        inplace(slf, other, op!("bitwise_xor"))
    }
    fn __ilshift__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<()> {
        inplace(slf, other, op!("bitwise_left_shift"))
    }
    fn __irshift__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<()> {
        inplace(slf, other, op!("bitwise_right_shift"))
    }
    fn __richcmp__(&self, other: &Bound<'_, PyAny>, how: pyo3::basic::CompareOp) -> PyResult<Py<PyAny>> {
        use pyo3::basic::CompareOp::*;
        let def = match how {
            Lt => op!("less_than"),
            Le => op!("less_equal"),
            Eq => op!("equal"),
            Ne => op!("not_equal"),
            Gt => op!("greater_than"),
            Ge => op!("greater_equal"),
        };
        binary(self, other, def, false)
    }
}

impl PyTensor {
    /// An operator whose left side is a number and which takes tensors alone.
    fn with_full(&self, other: &Bound<'_, PyAny>, def: &'static OpDef) -> PyResult<Py<PyAny>> {
        let py = other.py();
        let t = self.tensor();
        let lhs = match operand(other)? {
            None => return Ok(py.NotImplemented()),
            Some(Value::Tensor(lhs)) => lhs,
            Some(number) => full(py, number, &t)?,
        };
        let args = filled(def, smallvec![Value::Tensor(lhs), Value::Tensor(t)]);
        PyTensor::wrap(py, op::call_one(py, def, args)?)
    }
}

#[pymethods]
impl PyParameter {
    #[new]
    #[pyo3(signature = (data, trainable = true, name = None))]
    fn new(
        data: &Bound<'_, PyAny>,
        trainable: bool,
        name: Option<String>,
    ) -> PyResult<PyClassInitializer<PyParameter>> {
        let t = array::to_tensor(data, None)?;
        let p = Parameter::new(t);
        p.set_trainable(trainable);
        if let Some(name) = name {
            p.tensor().set_name(name);
        }
        Ok(PyClassInitializer::from(PyTensor { place: Place::Parameter(p) }).add_subclass(PyParameter))
    }
    /// Is it trained?
    #[getter]
    fn get_trainable(slf: PyRef<'_, Self>) -> bool {
        !slf.as_super().tensor().stop_gradient()
    }
    #[setter]
    fn set_trainable(slf: PyRef<'_, Self>, on: bool) {
        slf.as_super().tensor().set_stop_gradient(!on);
    }
    fn __repr__(slf: PyRef<'_, Self>) -> String {
        let t = slf.as_super().tensor();
        let trainable = if t.stop_gradient() { "False" } else { "True" };
        format!("Parameter containing:\n{t:?}").replacen(
            "Parameter containing:",
            &format!("Parameter containing (trainable={trainable}):"),
            0,
        )
    }
}

/// The parameter behind a Python object.
pub fn parameter_of(value: &Bound<'_, PyAny>) -> Option<Parameter> {
    value.cast::<PyTensor>().ok().and_then(|t| t.borrow().parameter().cloned())
}

/// The default dtype.
pub fn default_dtype() -> DType {
    sampan_core::promote::default_dtype()
}
