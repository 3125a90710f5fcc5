//! Operators and indexing of tensors.

use crate::errors::{self, raise};
use crate::tensor::PyTensor;
use crate::{array, op as call, value};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyFloat, PyInt, PyList, PyString, PyTuple};
use sampan_core::op::OpDef;
use sampan_core::value::Args;
use sampan_core::{Tensor, Value};
use smallvec::smallvec;
use std::sync::OnceLock;

/// The other operand of an operator; None if it is nothing that a tensor can be combined with.
fn operand(other: &Bound<'_, PyAny>) -> PyResult<Option<Value>> {
    if let Ok(t) = other.cast::<PyTensor>() {
        return Ok(Some(Value::Tensor(t.borrow().tensor())));
    }
    if let Ok(number) = other.cast_exact::<PyFloat>() {
        return Ok(Some(Value::Float(number.value())));
    }
    if other.is_exact_instance_of::<PyInt>() {
        return Ok(value::int(other)?.map(Value::Int));
    }
    if other.is_none() || other.is_instance_of::<PyString>() || other.is_instance_of::<PyDict>() {
        return Ok(None);
    }
    if other.is_instance_of::<PyList>() || other.is_instance_of::<PyTuple>() {
        return Ok(Some(Value::Tensor(array::to_tensor(other, None)?)));
    }
    match value::any(other) {
        Ok(v @ (Value::Tensor(_) | Value::Int(_) | Value::Float(_) | Value::Bool(_) | Value::Complex(_))) => {
            Ok(Some(v))
        }
        _ => Ok(None),
    }
}

/// The op that an operator means, looked up once.
pub fn known(cell: &'static OnceLock<&'static OpDef>, name: &str) -> &'static OpDef {
    cell.get_or_init(|| sampan_core::op::find(name).unwrap_or_else(|| panic!("there is no op {name}")))
}

fn binary(slf: &PyTensor, other: &Bound<'_, PyAny>, def: &'static OpDef, swapped: bool) -> PyResult<Py<PyAny>> {
    let py = other.py();
    if crate::elsewhere::is_elsewhere(other) {
        // Its own operator knows.
        return Ok(py.NotImplemented());
    }
    let Some(rhs) = operand(other)? else { return Ok(py.NotImplemented()) };
    let lhs = Value::Tensor(slf.tensor());
    let args: Args = if swapped { smallvec![rhs, lhs] } else { smallvec![lhs, rhs] };
    let args = filled(def, args);
    PyTensor::wrap(py, call::call_one(py, def, args)?)
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
    PyTensor::wrap(py, call::call_one(py, def, filled(def, args))?)
}

/// The op of a name, looked up once.
macro_rules! op {
    ($name:literal) => {{
        static OP: std::sync::OnceLock<&'static sampan_core::op::OpDef> = std::sync::OnceLock::new();
        $crate::operators::known(&OP, $name)
    }};
}

/// A number as a 0-d tensor of a dtype that suits the other operand, for operators that take tensors alone.
fn full(py: Python<'_>, number: Value, like: &Tensor) -> PyResult<Tensor> {
    let dtype = match number {
        Value::Float(_) if !like.dtype().is_float() => sampan_core::promote::default_dtype(),
        // `2 ** True` is 2.
        Value::Int(_) if like.dtype() == sampan_core::DType::Bool => sampan_core::DType::Int64,
        _ => like.dtype(),
    };
    call::call_one(
        py,
        op!("full"),
        filled(op!("full"), smallvec![Value::Ints(Default::default()), number, Value::DType(dtype)]),
    )
}

fn unary(py: Python<'_>, t: Tensor, def: &'static OpDef) -> PyResult<Py<PyAny>> {
    PyTensor::wrap(py, call::call_one(py, def, filled(def, smallvec![Value::Tensor(t)]))?)
}

pub(crate) use op;

#[pymethods]
impl PyTensor {
    fn __getitem__(&self, index: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        let py = index.py();
        let args: Args = smallvec![Value::Tensor(self.tensor()), value::index(index)?];
        PyTensor::wrap(py, call::call_one(py, op!("getitem"), args)?)
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
                Value::Complex(z) => z.into(),
                _ => unreachable!("an operand is a tensor or a number"),
            };
            t.try_setitem_(&index, new, false).map(|()| t)
        })?;
        slf.get().replace(t);
        Ok(())
    }
    fn __contains__(&self, item: &Bound<'_, PyAny>) -> PyResult<bool> {
        let equal = binary(self, item, op!("equal"), false)?;
        let Ok(equal) = equal.bind(item.py()).cast::<PyTensor>() else { return Ok(false) };
        let any = call::call_one(
            item.py(),
            op!("any"),
            filled(op!("any"), smallvec![Value::Tensor(equal.borrow().tensor())]),
        )?;
        Ok(any.try_item().map_err(raise)?.to_f64() != 0.0)
    }

    // ---- operators. `x += y` has no methods of its own, as in Paddle: Python takes `__add__` and binds the name anew.

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
    fn __rdivmod__(&self, other: &Bound<'_, PyAny>) -> PyResult<(Py<PyAny>, Py<PyAny>)> {
        Ok((self.__rfloordiv__(other)?, self.__rmod__(other)?))
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
        PyTensor::wrap(py, call::call_one(py, op!("round"), filled(op!("round"), args))?)
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
        PyTensor::wrap(py, call::call_one(py, def, args)?)
    }
}
