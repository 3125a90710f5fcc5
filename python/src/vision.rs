//! Pictures: what Python calls an image (Pillow's, a NumPy array, a tensor) through the transforms of the core and back.

use crate::class::PyObject;
use crate::function::{self, PyFunction};
use crate::op::bind;
use crate::tensor::PyTensor;
use crate::{array, errors, value};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyDict, PyTuple};
use sampan_core::{DType, Object, Tensor, Value};
use sampan_data::vision::models;
use sampan_data::vision::transforms::{Compose, DataFormat, Image, Role, Transform};
use std::sync::Arc;

static PILLOW: PyOnceLock<Py<PyAny>> = PyOnceLock::new();

/// `PIL.Image`, if the program has imported it; if not, nothing can be one of its pictures.
fn pillow(py: Python<'_>) -> PyResult<Option<&Bound<'_, PyAny>>> {
    if PILLOW.get(py).is_none() {
        let loaded = py.import("sys")?.getattr("modules")?.call_method1("get", ("PIL.Image",))?;
        if loaded.is_none() || !loaded.hasattr("Image")? {
            return Ok(None);
        }
        let _ = PILLOW.set(py, loaded.unbind());
    }
    Ok(PILLOW.get(py).map(|m| m.bind(py)))
}

/// What a picture came as, and goes back as.
enum Form {
    /// Pillow's, with the one it came from.
    Pillow(Py<PyAny>),
    /// The values of Pillow's alone.
    Values,
    Array,
    Tensor,
}

impl Form {
    /// What a transform of that name makes of it.
    fn after(self, name: &str) -> Form {
        match (name, self) {
            ("ToTensor" | "to_tensor", _) => Form::Tensor,
            // These give values that Pillow has no pictures for.
            ("Normalize" | "normalize" | "Transpose", Form::Pillow(_) | Form::Values) => Form::Array,
            (_, form) => form,
        }
    }

    /// The picture that a tensor is in this form. Paddle's rule: tensors have their channels first, all others last.
    fn image(&self, t: &Tensor) -> Image {
        match self {
            Form::Tensor if t.ndim() > 2 => Image::chw(t),
            Form::Array => Image::hwc(t).opencv(),
            _ => Image::hwc(t),
        }
    }
}

/// The picture in a Python object. `values`: only the values count, not what they stand for.
fn take(image: &Bound<'_, PyAny>, values: bool) -> PyResult<(Form, Tensor)> {
    if let Ok(t) = image.cast::<PyTensor>() {
        return Ok((Form::Tensor, t.borrow().tensor()));
    }
    if let Some(module) = pillow(image.py())?
        && image.is_instance(&module.getattr(pyo3::intern!(image.py(), "Image"))?)?
    {
        return Ok((Form::Pillow(image.clone().unbind()), from_pillow(image, values)?));
    }
    if array::is_array(image)? {
        let t = array::from_array(image)?;
        if matches!(t.ndim(), 2 | 3) {
            return Ok((Form::Array, t));
        }
    }
    Err(PyTypeError::new_err(format!(
        "(InvalidType) img should be PIL Image or Tensor Image or ndarray with dim=[2 or 3]. Got {}.",
        image.get_type().repr()?
    )))
}

/// The values of Pillow's picture, `[H, W]` or `[H, W, C]`.
fn from_pillow(image: &Bound<'_, PyAny>, values: bool) -> PyResult<Tensor> {
    let py = image.py();
    let mode: String = image.getattr(pyo3::intern!(py, "mode"))?.extract()?;
    let (w, h): (usize, usize) = image.getattr(pyo3::intern!(py, "size"))?.extract()?;
    // One bit for each pixel is one byte elsewhere.
    let source = if mode == "1" { image.call_method1("convert", ("L",))? } else { image.clone() };
    let (dtype, channels) = match mode.as_str() {
        "L" | "1" | "P" => (DType::UInt8, 1),
        "LA" | "PA" | "La" => (DType::UInt8, 2),
        "RGB" | "YCbCr" | "HSV" | "LAB" => (DType::UInt8, 3),
        "RGBA" => (DType::UInt8, 4),
        // Pictures without an alpha channel whose fourth must not be taken for one.
        "CMYK" | "RGBX" | "RGBa" if values => (DType::UInt8, 4),
        "I" => (DType::Int32, 1),
        "I;16" => (DType::Int16, 1),
        "F" => (DType::Float32, 1),
        _ => {
            return Err(PyTypeError::new_err(format!(
                "(InvalidType) pictures of mode {mode} are not supported. Hint: img.convert('RGB')."
            )));
        }
    };
    let bytes = source.call_method0(pyo3::intern!(py, "tobytes"))?;
    let bytes = bytes.cast::<PyBytes>()?.as_bytes();
    let shape = if channels == 1 { vec![h, w] } else { vec![h, w, channels] };
    let t = Tensor::from_bytes(bytes, dtype, shape).map_err(errors::raise)?;
    let wanted = match mode.as_str() {
        "1" => DType::Bool,
        // Numbers of colours must not be mixed; only bytes are.
        "P" if !values => DType::Int16,
        "I;16" => {
            let t = t.try_cast(DType::Int32).map_err(errors::raise)?;
            return t.try_remainder(65536).map_err(errors::raise);
        }
        _ => return Ok(t),
    };
    t.try_cast(wanted).map_err(errors::raise)
}

/// Values as Pillow's picture, like the one they came from.
fn to_pillow(py: Python<'_>, t: &Tensor, like: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
    let before: String = like.getattr(pyo3::intern!(py, "mode"))?.extract()?;
    let channels = if t.ndim() == 2 { 1 } else { t.shape()[2] };
    let mode = match (t.dtype(), channels) {
        (DType::UInt8, 1) if before == "L" => "L",
        (DType::UInt8, 3) if before.len() > 2 && !before.ends_with(['A', 'K', 'X', 'a']) => &before,
        (DType::UInt8, 1) => "L",
        (DType::UInt8, 2) => "LA",
        (DType::UInt8, 3) => "RGB",
        (DType::UInt8, 4) => "RGBA",
        (DType::Bool, 1) => "1",
        (DType::Int16, 1) => "P",
        (DType::Int32, 1) => "I",
        (DType::Float32, 1) => "F",
        (dtype, _) => {
            return Err(PyValueError::new_err(format!(
                "(InvalidArgument) Pillow has no picture of {channels} channels of {dtype}."
            )));
        }
    };
    let raise = errors::raise;
    let (raw, t) = match mode {
        "1" => ("L", (t.try_cast(DType::UInt8).map_err(raise)? * 255).try_cast(DType::UInt8).map_err(raise)?),
        "P" => ("P", t.try_cast(DType::UInt8).map_err(raise)?),
        same => (same, t.clone()),
    };
    let bytes = PyBytes::new(py, &t.to_bytes());
    let module = pillow(py)?.ok_or_else(|| PyTypeError::new_err("(InvalidType) PIL.Image is not loaded."))?;
    let size = (t.shape()[1], t.shape()[0]);
    let mut made = module.call_method1(pyo3::intern!(py, "frombytes"), (raw, size, bytes))?;
    match mode {
        "1" => made = made.call_method1("convert", ("1", py.None(), 0))?,
        "P" => drop(made.call_method1("putpalette", (like.call_method0("getpalette")?,))?),
        _ => {}
    }
    let info = like.getattr(pyo3::intern!(py, "info"))?;
    if info.is_truthy()? {
        made.setattr("info", info.call_method0("copy")?)?;
    }
    Ok(made.unbind())
}

/// A tensor in the form in which its picture came.
fn give(py: Python<'_>, form: &Form, t: Tensor) -> PyResult<Py<PyAny>> {
    match form {
        Form::Tensor => PyTensor::wrap(py, t),
        Form::Array | Form::Values => array::to_numpy(py, &t),
        Form::Pillow(like) => to_pillow(py, &t, like.bind(py)),
    }
}

/// A tensor as `to_tensor` gives it: it is one already.
fn rearranged(t: &Tensor, to: DataFormat) -> sampan_core::Result<Tensor> {
    if to == DataFormat::Chw { Ok(t.clone()) } else { t.try_transpose([1, 2, 0]) }
}

#[derive(Clone)]
struct Step {
    name: String,
    transform: Arc<dyn Transform>,
    /// This step and the next in one.
    with_next: Option<Arc<dyn Transform>>,
}

/// Transforms of the core, one after the other, on whatever Python calls an image.
#[pyclass(name = "Pipeline", module = "sampan._core", frozen)]
pub struct PyPipeline(Vec<Step>);

#[pymethods]
impl PyPipeline {
    /// Of one transform, with the name of its class.
    #[new]
    fn new(name: String, transform: PyRef<'_, PyObject>) -> PyResult<PyPipeline> {
        let found = transform.0.downcast::<Arc<dyn Transform>>().cloned();
        let transform =
            found.ok_or_else(|| PyTypeError::new_err(format!("(InvalidType) Pipeline: {name} is no transform.")))?;
        Ok(PyPipeline(vec![Step { name, transform, with_next: None }]))
    }

    /// The names of the classes, in order.
    #[getter]
    fn names(&self) -> Vec<&str> {
        self.0.iter().map(|step| step.name.as_str()).collect()
    }

    /// One after the other.
    fn __add__(&self, other: PyRef<'_, PyPipeline>) -> PyResult<PyPipeline> {
        let mut steps = [&self.0[..], &other.0[..]].concat();
        for i in 1..steps.len() {
            let (first, then) = (&steps[i - 1].transform, &steps[i].transform);
            if let (Role::ToTensor(_), Role::Normalize(_)) = (first.role(), then.role()) {
                let both = Compose::try_new(vec![first.clone(), then.clone()]).map_err(errors::raise)?;
                steps[i - 1].with_next = Some(Arc::new(both));
            }
        }
        Ok(PyPipeline(steps))
    }

    fn __call__(&self, py: Python<'_>, img: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        let values = self.0.first().is_some_and(|s| matches!(s.name.as_str(), "ToTensor" | "Normalize" | "Transpose"));
        let (form, t) = take(img, values)?;
        let before = std::mem::discriminant(&form);
        let (form, out) = errors::run(py, || self.run(form, t.clone()))?;
        // An image that no step changed is the image itself. Erasing may have written into the copy of it.
        let kept = std::mem::discriminant(&form) == before && out.shares_memory(&t);
        let erased = !matches!(form, Form::Tensor) && self.0.iter().any(|s| s.name == "RandomErasing");
        if kept && !erased && out.shape() == t.shape() && out.strides() == t.strides() {
            return Ok(img.clone().unbind());
        }
        give(py, &form, out)
    }
}

impl PyPipeline {
    /// What the steps make of the values of a picture, without Python: an array's, or those of Pillow's.
    pub fn on_values(&self, array: bool) -> impl Fn(Tensor) -> sampan_core::Result<Tensor> + Send + Sync + use<> {
        let own = PyPipeline(self.0.clone());
        let form = move || if array { Form::Array } else { Form::Values };
        move |t| own.run(form(), t).map(|(_, t)| t)
    }

    fn run(&self, mut form: Form, mut t: Tensor) -> sampan_core::Result<(Form, Tensor)> {
        let mut steps = self.0.iter();
        while let Some(step) = steps.next() {
            let out = match (step.transform.role(), &step.with_next) {
                (Role::ToTensor(to), _) if matches!(form, Form::Tensor) => rearranged(&t, to.data_format()),
                (_, Some(both)) => {
                    steps.next();
                    both.apply_image(&form.image(&t))
                }
                _ => step.transform.apply_image(&form.image(&t)),
            };
            t = out.map_err(|e| e.in_op(&step.name))?;
            form = form.after(&step.name);
        }
        Ok((form, t))
    }
}

/// A function of the core's on whatever Python calls an image.
#[pyclass(name = "PictureFunction", module = "sampan._core", frozen, extends = PyFunction)]
pub struct PyPictureFunction;

#[pymethods]
impl PyPictureFunction {
    #[new]
    fn new(function: PyRef<'_, PyFunction>) -> PyClassInitializer<PyPictureFunction> {
        PyClassInitializer::from(PyFunction(function.0)).add_subclass(PyPictureFunction)
    }

    /// Pickles by name.
    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> (Bound<'py, PyAny>, (PyFunction,)) {
        (slf.get_type().into_any(), (PyFunction(slf.as_super().get().0),))
    }

    #[pyo3(signature = (*args, **kwargs))]
    fn __call__(
        slf: &Bound<'_, Self>,
        args: &Bound<'_, PyTuple>,
        kwargs: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Py<PyAny>> {
        let (py, def) = (slf.py(), slf.as_super().get().0);
        let first = def.params[0].name;
        let named = || kwargs.and_then(|k| k.get_item(first).ok().flatten());
        let Some(img) = args.get_item(0).ok().or_else(named) else {
            return Err(PyTypeError::new_err(format!("(InvalidType) {}: argument `{first}` is missing.", def.name)));
        };
        let (form, t) = take(&img, matches!(def.name, "to_tensor" | "normalize"))?;
        // The picture is bound by hand: the other arguments are read as always.
        let rest = kwargs.map(|k| k.copy()).transpose()?.unwrap_or_else(|| PyDict::new(py));
        let args = if args.is_empty() {
            rest.set_item(first, py.None())?;
            args.clone()
        } else {
            let others = args.get_slice(1, args.len());
            let none = PyTuple::new(py, [py.None()])?;
            none.as_sequence().concat(others.as_sequence())?.to_tuple()?
        };
        let mut bound = bind(&def.takes(), None, &args, Some(&rest))?;
        let is_tensor = matches!(form, Form::Tensor);
        bound[0] = match def.name {
            "to_tensor" if is_tensor => {
                let chw = matches!(&bound[1], Value::Str(word) if word.eq_ignore_ascii_case("chw"));
                let to = if chw { DataFormat::Chw } else { DataFormat::Hwc };
                return PyTensor::wrap(py, rearranged(&t, to).map_err(errors::raise)?);
            }
            "normalize" => {
                // As in Paddle, which turns the channels of arrays round, and leaves a tensor's.
                if is_tensor {
                    bound[4] = Value::Bool(false);
                }
                Value::Tensor(t.clone())
            }
            _ => Value::Object(Object::new(form.image(&t))),
        };
        let inplace = def.name == "erase" && matches!(bound[6], Value::Bool(true));
        let out = match function::call(py, def, bound)? {
            Value::Tensor(out) => out,
            other => return value::to_python(py, &other),
        };
        let form = form.after(def.name);
        if inplace && is_tensor {
            return Ok(img.unbind());
        }
        let made = give(py, &form, out)?;
        if inplace && matches!(form, Form::Array) {
            array::numpy(py)?.call_method1("copyto", (&img, made))?;
            return Ok(img.unbind());
        }
        Ok(made)
    }
}

/// The picture in a file as the backend gives it, as a tensor.
#[pyfunction]
pub fn _image_load(py: Python<'_>, path: String, backend: &str) -> PyResult<Py<PyAny>> {
    let picture = errors::run(py, || sampan_data::vision::image::image_load(&path, Some(backend)))?;
    PyTensor::wrap(py, picture)
}

/// Every known model: (name, documentation, class, address and MD5 sum of trained weights).
#[pyfunction]
#[allow(clippy::type_complexity)]
pub fn _models() -> Vec<(&'static str, &'static str, &'static str, Option<(&'static str, &'static str)>)> {
    models::all().map(|m| (m.name, m.doc, m.class, m.weights.map(|w| (w.url, w.md5)))).collect()
}

/// What the class of a known model is to be built with, positional and by name, where these arguments are given.
#[pyfunction]
pub fn _model_arguments(
    py: Python<'_>,
    name: &str,
    given: &Bound<'_, PyDict>,
) -> PyResult<(Vec<Py<PyAny>>, Py<PyAny>)> {
    let model = models::find(name).ok_or_else(|| PyValueError::new_err(format!("(NotFound) no model {name}.")))?;
    let given: Vec<(String, Value)> =
        given.iter().map(|(k, v)| Ok((k.extract()?, value::any(&v)?))).collect::<PyResult<_>>()?;
    let given = given.iter().map(|(k, v)| (k.as_str(), v.clone())).collect();
    let (positional, named) = model.arguments(given).map_err(errors::raise)?;
    let positional = positional.iter().map(|v| value::to_python(py, v)).collect::<PyResult<_>>()?;
    let arguments = PyDict::new(py);
    for (k, v) in &named {
        arguments.set_item(k, value::to_python(py, v)?)?;
    }
    Ok((positional, arguments.into_any().unbind()))
}
