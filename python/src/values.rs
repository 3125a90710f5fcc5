//! The values of a tensor, in and out: arrays, lists, numbers, text.

use crate::errors::{self, raise, run_here};
use crate::operators::{filled, op};
use crate::tensor::PyTensor;
use crate::{array, op as call, value};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyComplex, PyDict, PyTuple};
use sampan_core::{Scalar, Value};
use smallvec::smallvec;

#[pymethods]
impl PyTensor {
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
    /// Looks at the memory of another tensor from now on, with a shape, steps and an offset in bytes.
    #[pyo3(signature = (source = None, shape = None, stride = None, offset = 0, name = None))]
    fn set_<'py>(
        slf: Bound<'py, Self>,
        source: Option<PyRef<'py, PyTensor>>,
        shape: Option<&Bound<'py, PyAny>>,
        stride: Option<&Bound<'py, PyAny>>,
        offset: i64,
        name: Option<&str>,
    ) -> PyResult<Bound<'py, Self>> {
        let _ = name;
        let mut t = slf.borrow().tensor();
        let ints = |v: Option<&Bound<'py, PyAny>>| v.filter(|v| !v.is_none()).map(value::ints).transpose();
        let (source, shape, stride) = (source.map(|s| s.tensor()), ints(shape)?, ints(stride)?);
        run_here(|| t.try_set_(source.as_ref(), shape.as_deref(), stride.as_deref(), offset))?;
        slf.get().replace(t);
        Ok(slf)
    }
    /// Another shape for the same values; elements that are new are zeros, if `fill_zero` allows them.
    #[pyo3(signature = (shape, fill_zero = false, name = None))]
    fn resize_<'py>(
        slf: Bound<'py, Self>,
        shape: &Bound<'py, PyAny>,
        fill_zero: bool,
        name: Option<&str>,
    ) -> PyResult<Bound<'py, Self>> {
        let _ = name;
        let mut t = slf.borrow().tensor();
        let shape = value::ints(shape)?;
        run_here(|| t.try_resize_(&shape, fill_zero))?;
        slf.get().replace(t);
        Ok(slf)
    }
    /// Puts another tensor in the place of this one, for everybody who holds this handle.
    fn _replace(&self, other: PyRef<'_, PyTensor>) {
        self.replace(other.tensor());
    }
    /// The value of one element: the only one, or the one at an index.
    #[pyo3(signature = (*args))]
    fn item(&self, py: Python<'_>, args: &Bound<'_, PyTuple>) -> PyResult<Py<PyAny>> {
        let t = self.tensor();
        let s = match args.len() {
            0 => t.try_item(),
            1 => match value::ints(&args.get_item(0)?) {
                Ok(index) => t.item_at(index),
                Err(_) => call::call_one(py, op!("flatten"), filled(op!("flatten"), smallvec![Value::Tensor(t)]))?
                    .item_at([args.get_item(0)?.extract::<i64>()?]),
            },
            _ => t.item_at(args.extract::<Vec<i64>>()?),
        }
        .map_err(raise)?;
        array::number(py, s)
    }
    /// The values' bytes, row-major.
    fn _bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        if self.tensor().device() == sampan_core::Device::Meta {
            return Err(PyValueError::new_err("(InvalidArgument) Tensor: a meta tensor holds no values."));
        }
        let t = self.tensor();
        Ok(PyBytes::new(py, &py.detach(move || t.to_bytes())))
    }
    /// The address of the first value.
    fn data_ptr(&self) -> usize {
        self.tensor().data_ptr()
    }
    /// The values as nested lists of numbers.
    fn tolist(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        errors::guard(|| array::to_list(py, &self.tensor()))
    }
    /// A copy of the values as a NumPy array. `numpy.asarray(x)` is a view on the same memory instead: whoever writes
    /// through it changes the tensor, and autograd does not know of it.
    #[pyo3(signature = (force = false))]
    fn numpy(&self, py: Python<'_>, force: bool) -> PyResult<Py<PyAny>> {
        let _ = force;
        array::to_numpy(py, &self.tensor())
    }
    /// The values as an array: on the same memory, or a copy where `copy` or another dtype asks for one.
    #[pyo3(signature = (dtype = None, copy = None))]
    fn __array__(slf: &Bound<'_, Self>, dtype: Option<&Bound<'_, PyAny>>, copy: Option<bool>) -> PyResult<Py<PyAny>> {
        let py = slf.py();
        if copy == Some(true) && dtype.is_none_or(|d| d.is_none()) {
            return array::to_numpy(py, &slf.borrow().tensor());
        }
        let view = pyo3::types::PyMemoryView::from(slf.as_any())?;
        let array = array::numpy(py)?.call_method1(pyo3::intern!(py, "asarray"), (view,))?;
        match dtype.filter(|d| !d.is_none()) {
            Some(dtype) => {
                let options = PyDict::new(py);
                options.set_item("copy", copy == Some(true))?;
                let cast = array.call_method("astype", (dtype,), Some(&options))?;
                if copy == Some(false) && !cast.is(&array) {
                    return Err(PyValueError::new_err(
                        "(InvalidArgument) __array__: another dtype cannot be had without a copy.",
                    ));
                }
                Ok(cast.unbind())
            }
            None => Ok(array.unbind()),
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
        let s = self.read("bool").map_err(|_| {
            PyValueError::new_err(format!(
                "(InvalidArgument) the truth of a tensor with {} elements is ambiguous. Hint: use any() or all().",
                self.tensor().numel()
            ))
        })?;
        Ok(match s {
            Scalar::Complex(z) => z.re != 0.0 || z.im != 0.0,
            real => real.to_f64() != 0.0,
        })
    }
    fn __float__(&self) -> PyResult<f64> {
        match self.read("float").map_err(|e| PyTypeError::new_err(e.to_string()))? {
            Scalar::Complex(z) => Err(PyTypeError::new_err(format!(
                "(InvalidType) the complex number {z} is no float. Hint: x.real() or abs(x)."
            ))),
            real => Ok(real.to_f64()),
        }
    }
    fn __complex__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyComplex>> {
        let (re, im) = match self.read("complex").map_err(|e| PyTypeError::new_err(e.to_string()))? {
            Scalar::Complex(z) => (z.re, z.im),
            real => (real.to_f64(), 0.0),
        };
        Ok(PyComplex::from_doubles(py, re, im))
    }
    fn __int__(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let s = self.read("int").map_err(|e| PyTypeError::new_err(e.to_string()))?;
        match s {
            Scalar::Float(f) => Ok(f.into_pyobject(py)?.call_method0("__int__")?.unbind()),
            Scalar::Complex(z) => {
                Err(PyTypeError::new_err(format!("(InvalidType) the complex number {z} is no integer.")))
            }
            other => Ok(other.to_i64().into_pyobject(py)?.into_any().unbind()),
        }
    }
    fn __index__(&self) -> PyResult<i64> {
        let t = self.tensor();
        match self.read("index") {
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
        let s = self.read("format").map_err(|e| PyTypeError::new_err(e.to_string()))?;
        array::number(py, s)?.bind(py).call_method1("__format__", (spec,))?.extract()
    }
    fn __hash__(slf: &Bound<'_, Self>) -> isize {
        // By identity, as `==` compares elements.
        slf.as_ptr() as isize
    }
}
