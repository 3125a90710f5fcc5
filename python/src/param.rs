//! Parameters as they are made and as lists: names, initializers written in Python, gradients cut, vectors.

use crate::class::PyObject;
use crate::errors::{self, passing};
use crate::tensor::{PyParameter, PyTensor, parameter_of};
use crate::{dtype, value};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use sampan_core::{DType, Object, Result, Tensor};
use sampan_nn::init::{self, Initializer};
use sampan_nn::{Base, ClipGrad, ParamAttr, Parameter, utils};
use std::sync::Arc;

/// The next name with a prefix, which is a class's name in Paddle's spelling if `from_class`: `MyNet` gives `my_net_0`.
#[pyfunction]
#[pyo3(signature = (prefix, from_class = false))]
pub fn _unique_name(prefix: &str, from_class: bool) -> String {
    if from_class { Base::of(prefix).full_name().to_string() } else { sampan_nn::unique_name::generate(prefix) }
}

/// An initializer written in Python: it gets a parameter to fill.
struct PythonInitializer(Py<PyAny>);

impl Initializer for PythonInitializer {
    fn init(&self, shape: &[usize], dtype: DType) -> Result<Tensor> {
        let p = Parameter::new(Tensor::zeros(shape, dtype));
        let fill = |py: Python<'_>| -> PyResult<()> {
            let handle = PyParameter::wrap(py, p.clone())?;
            let given = self.0.call1(py, (handle, py.None()))?;
            // Some give new values back instead of filling.
            if let Ok(t) = given.bind(py).cast::<PyTensor>()
                && t.borrow().parameter().is_none_or(|q| !q.is_same(&p))
            {
                p.set_value(&t.borrow().tensor()).map_err(errors::raise)?;
            }
            Ok(())
        };
        Python::attach(fill).map_err(passing)?;
        Ok(p.tensor().detach())
    }
}

/// An initializer written in Python, for the core.
#[pyfunction]
pub fn _python_initializer(initializer: Py<PyAny>) -> PyObject {
    PyObject(Object::new(Arc::new(PythonInitializer(initializer)) as Arc<dyn Initializer>))
}

fn initializer_of(given: &Bound<'_, PyAny>, name: &str) -> PyResult<Option<Arc<dyn Initializer>>> {
    use sampan_core::value::Arg;
    if given.is_none() {
        return Ok(None);
    }
    let attr = ParamAttr::get(&value::any(given)?, name).map_err(errors::raise)?;
    let found = attr.own_initializer();
    let got = given.get_type().name()?;
    found.map(Some).ok_or_else(|| PyTypeError::new_err(format!("(InvalidType) {name} is an Initializer, got {got}.")))
}

/// Fills weights and biases wherever nothing else is said about them.
#[pyfunction]
#[pyo3(signature = (weight_init, bias_init = None))]
pub fn _set_global_initializer(weight_init: &Bound<'_, PyAny>, bias_init: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
    let bias = bias_init.map(|b| initializer_of(b, "bias_init")).transpose()?.flatten();
    init::set_global_initializer(initializer_of(weight_init, "weight_init")?, bias);
    Ok(())
}

/// The factor by which a nonlinearity changes a deviation.
#[pyfunction]
#[pyo3(signature = (nonlinearity, param = None))]
pub fn _calculate_gain(nonlinearity: &str, param: Option<f64>) -> PyResult<f64> {
    init::calculate_gain(nonlinearity, param).map_err(errors::raise)
}

/// Parameters from one, or from whatever yields them.
fn parameters(given: &Bound<'_, PyAny>) -> PyResult<Vec<Parameter>> {
    let one = |item: &Bound<'_, PyAny>| -> PyResult<Parameter> {
        match parameter_of(item) {
            Some(p) => Ok(p),
            None => Ok(Parameter::of(item.cast::<PyTensor>()?.borrow().tensor())),
        }
    };
    if given.is_instance_of::<PyTensor>() {
        return Ok(vec![one(given)?]);
    }
    given.try_iter()?.map(|item| one(&item?)).collect()
}

/// Shrinks all gradients so that their norm together is at most `max_norm`; gives the norm before.
#[pyfunction]
#[pyo3(signature = (parameters, max_norm, norm_type = 2.0, error_if_nonfinite = false))]
pub fn clip_grad_norm_(
    py: Python<'_>,
    parameters: &Bound<'_, PyAny>,
    max_norm: f64,
    norm_type: f64,
    error_if_nonfinite: bool,
) -> PyResult<Py<PyAny>> {
    let all = self::parameters(parameters)?;
    let norm = errors::run(py, move || utils::clip_grad_norm_(&all, max_norm, norm_type, error_if_nonfinite))?;
    PyTensor::wrap(py, norm)
}

/// Cuts every element of every gradient to `±clip_value`.
#[pyfunction]
pub fn clip_grad_value_(py: Python<'_>, parameters: &Bound<'_, PyAny>, clip_value: f64) -> PyResult<()> {
    let all = self::parameters(parameters)?;
    errors::run(py, move || utils::clip_grad_value_(&all, clip_value))
}

/// The values of all parameters one after the other, as a new tensor.
#[pyfunction]
#[pyo3(signature = (parameters, name = None))]
pub fn parameters_to_vector(
    py: Python<'_>,
    parameters: &Bound<'_, PyAny>,
    name: Option<String>,
) -> PyResult<Py<PyAny>> {
    let all = self::parameters(parameters)?;
    let vector = errors::run(py, move || utils::parameters_to_vector(&all))?;
    if let Some(name) = name {
        vector.set_name(name);
    }
    PyTensor::wrap(py, vector)
}

/// Takes over values from a vector, as `parameters_to_vector` lays them out.
#[pyfunction]
#[pyo3(signature = (vec, parameters, name = None))]
pub fn vector_to_parameters(
    py: Python<'_>,
    vec: PyRef<'_, PyTensor>,
    parameters: &Bound<'_, PyAny>,
    name: Option<String>,
) -> PyResult<()> {
    let _ = name;
    let (vector, all) = (vec.tensor(), self::parameters(parameters)?);
    errors::run(py, move || utils::vector_to_parameters(&vector, &all))
}

/// The clipped gradients of pairs of parameter and gradient; a pair without a gradient stays as it is.
#[pyfunction]
pub fn _apply_clip<'py>(
    py: Python<'py>,
    clip: PyRef<'py, PyObject>,
    pairs: Vec<(Bound<'py, PyTensor>, Option<Bound<'py, PyTensor>>)>,
) -> PyResult<Vec<(Bound<'py, PyTensor>, Option<Py<PyAny>>)>> {
    let clip = clip.0.downcast::<ClipGrad>().cloned().ok_or_else(|| PyTypeError::new_err("no limit on gradients"))?;
    let mut given = Vec::new();
    for (p, g) in &pairs {
        if let Some(g) = g {
            let own = p.borrow();
            given.push((own.parameter().unwrap_or_else(|| Parameter::of(own.tensor())), g.borrow().tensor()));
        }
    }
    let mut clipped = errors::run(py, move || clip.apply(&given))?.into_iter();
    pairs
        .into_iter()
        .map(|(p, g)| {
            let new = g.and_then(|_| clipped.next()).map(|(_, g)| PyTensor::wrap(py, g)).transpose()?;
            Ok((p, new))
        })
        .collect()
}

/// Changes the dtype of a parameter or tensor in its place, with its gradient.
#[pyfunction]
pub fn _cast_in_place(t: &Bound<'_, PyTensor>, to: &Bound<'_, PyAny>) -> PyResult<()> {
    let (old, to) = (t.borrow().tensor(), dtype::read(to)?);
    if old.dtype() == to {
        return Ok(());
    }
    let new = errors::run(t.py(), move || {
        let new = old.detach().try_cast(to)?;
        new.set_stop_gradient(old.stop_gradient());
        new.set_persistable(old.persistable());
        new.set_name(old.name());
        if let Some(g) = old.grad() {
            new.set_grad(Some(g.detach().try_cast(to)?));
        }
        Ok(new)
    })?;
    t.get().replace(new);
    Ok(())
}
