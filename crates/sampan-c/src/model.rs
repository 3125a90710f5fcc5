//! Models and what they give.

use crate::errors::{Status, or_default, status};
use crate::types::{Buffer, Port, Tensor, dtype, number, read, slice, write};
use sampan_core::{Error, Result};
use sampan_graph::{Graph, Id, Predictor};
use std::ffi::{CStr, CString, c_char};
use std::path::Path;
use std::sync::Arc;

/// A network that is ready to run.
pub struct Model {
    predictor: Predictor,
    ports: Arc<Ports>,
}

struct Ports {
    inputs: Vec<OwnPort>,
    outputs: Vec<OwnPort>,
}

struct OwnPort {
    name: CString,
    dims: Vec<i64>,
    dtype: i32,
}

impl OwnPort {
    fn new(graph: &Graph, name: &str, id: Id) -> OwnPort {
        let known = &graph.values[id];
        OwnPort {
            name: CString::new(name.replace('\0', "\u{fffd}")).unwrap_or_default(),
            dims: known.dims.iter().map(|d| d.fixed().map_or(-1, |n| n as i64)).collect(),
            dtype: number(known.dtype),
        }
    }

    fn borrowed(&self) -> Port {
        Port { name: self.name.as_ptr(), dims: self.dims.as_ptr(), rank: self.dims.len(), dtype: self.dtype }
    }
}

/// What a run gave: contiguous tensors, and their extents as C has them.
pub struct Results(Vec<(sampan_core::Tensor, Vec<i64>)>);

impl Model {
    fn load(path: &CStr) -> Result<Model> {
        let path = path.to_str().map_err(|_| Error::invalid("the path of a model is text in UTF-8"))?;
        let mut graph = sampan_graph::load(Path::new(path))?;
        // What the ports say is what is taken.
        graph.strict = true;
        let names = graph.output_names();
        let ports = Ports {
            inputs: graph.inputs.iter().map(|i| OwnPort::new(&graph, &i.name, i.value)).collect(),
            outputs: names.iter().zip(&graph.outputs).map(|(name, &id)| OwnPort::new(&graph, name, id)).collect(),
        };
        Ok(Model { predictor: Predictor::new(&graph)?, ports: Arc::new(ports) })
    }

    fn run(&self, inputs: &[Tensor]) -> Result<Results> {
        let own = &self.ports.inputs;
        if inputs.len() != own.len() {
            let message = format!("the model takes {} inputs, got {}", own.len(), inputs.len());
            return Err(Error::invalid(message).in_op("run"));
        }
        let named = inputs.iter().zip(own).enumerate();
        let tensors = named.map(|(i, (given, port))| {
            let what = format!("input {i} ({})", port.name.to_string_lossy());
            // SAFETY: what the header asks of the pointers of an input.
            unsafe { taken(given, &what) }.map_err(|e| e.in_op("run"))
        });
        let given = self.predictor.run(&tensors.collect::<Result<Vec<_>>>()?)?;
        let lie = |t: sampan_core::Tensor| {
            let t = t.try_contiguous()?;
            let dims = t.shape().iter().map(|&n| n as i64).collect();
            Ok((t, dims))
        };
        Ok(Results(given.into_iter().map(lie).collect::<Result<_>>()?))
    }
}

/// A copy of the values of an input.
///
/// # Safety
/// Its pointers, where they are not null, must point to what its lengths say.
unsafe fn taken(given: &Tensor, what: &str) -> Result<sampan_core::Tensor> {
    let dtype =
        dtype(given.dtype).ok_or_else(|| Error::dtype(format!("{what}: {} is the number of no dtype", given.dtype)))?;
    // SAFETY: the caller's promise.
    let dims = unsafe { slice(given.dims, given.rank, &format!("{what}: dims")) }?;
    let extent = |&n: &i64| {
        usize::try_from(n)
            .map_err(|_| Error::invalid(format!("{what}: the extents {dims:?} are not all numbers from 0")))
    };
    let shape = dims.iter().map(extent).collect::<Result<Vec<_>>>()?;
    let needed = shape.iter().try_fold(dtype.size(), |n, &d| n.checked_mul(d));
    if needed != Some(given.bytes) {
        return Err(Error::invalid(format!(
            "{what}: {} bytes do not fill a {dtype} tensor of shape {shape:?}",
            given.bytes
        )));
    }
    // SAFETY: the caller's promise.
    let bytes = unsafe { slice(given.data.cast::<u8>(), given.bytes, &format!("{what}: data")) }?;
    sampan_core::Tensor::from_bytes(bytes, dtype, shape)
}

/// Reads a network.
///
/// # Safety
/// `path` is null or points to text that ends with a zero; `model` is null or a place for a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sampan_model_load(path: *const c_char, model: *mut *mut Model) -> Status {
    let make = || {
        if path.is_null() {
            return Err(Error::invalid("the path of a model is NULL").in_op("load"));
        }
        // SAFETY: not null, and text by the caller's promise.
        let path = unsafe { CStr::from_ptr(path) };
        Ok(Box::into_raw(Box::new(Model::load(path)?)))
    };
    // SAFETY: the caller's promise.
    status(|| unsafe { write(model, "the model", make) })
}

/// Another handle of a network.
///
/// # Safety
/// `model` is null or a model; `clone` is null or a place for a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sampan_model_clone(model: *const Model, clone: *mut *mut Model) -> Status {
    let make = || {
        // SAFETY: the caller's promise.
        let model = unsafe { read(model, "the model") }?;
        let own = Model { predictor: model.predictor.clone(), ports: model.ports.clone() };
        Ok(Box::into_raw(Box::new(own)))
    };
    // SAFETY: the caller's promise.
    status(|| unsafe { write(clone, "the clone", make) })
}

/// Gives a model back.
///
/// # Safety
/// `model` is null or a model that nobody uses any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sampan_model_free(model: *mut Model) {
    if !model.is_null() {
        // SAFETY: it came from a box, and by the caller's promise it is given back once.
        or_default(|| drop(unsafe { Box::from_raw(model) }));
    }
}

/// How many inputs there are.
///
/// # Safety
/// `model` is null or a model.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sampan_model_inputs(model: *const Model) -> usize {
    // SAFETY: the caller's promise.
    unsafe { model.as_ref() }.map_or(0, |m| m.ports.inputs.len())
}

/// How many outputs there are.
///
/// # Safety
/// `model` is null or a model.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sampan_model_outputs(model: *const Model) -> usize {
    // SAFETY: the caller's promise.
    unsafe { model.as_ref() }.map_or(0, |m| m.ports.outputs.len())
}

fn found<'a, T>(all: &'a [T], index: usize, what: &str) -> Result<&'a T> {
    all.get(index).ok_or_else(|| Error::range(format!("{what} {index} of {}; the first is 0", all.len())))
}

/// What is known of an input.
///
/// # Safety
/// `model` is null or a model; `port` is null or a place for a port.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sampan_model_input(model: *const Model, index: usize, port: *mut Port) -> Status {
    // SAFETY: the caller's promise.
    let make = || Ok(found(&unsafe { read(model, "the model") }?.ports.inputs, index, "input")?.borrowed());
    // SAFETY: the caller's promise.
    status(|| unsafe { write(port, "the port", make) })
}

/// What is known of an output.
///
/// # Safety
/// `model` is null or a model; `port` is null or a place for a port.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sampan_model_output(model: *const Model, index: usize, port: *mut Port) -> Status {
    // SAFETY: the caller's promise.
    let make = || Ok(found(&unsafe { read(model, "the model") }?.ports.outputs, index, "output")?.borrowed());
    // SAFETY: the caller's promise.
    status(|| unsafe { write(port, "the port", make) })
}

/// # Safety
/// `model` is null or a model; `inputs` is null or points to so many inputs, whose pointers are as their lengths say.
unsafe fn run(model: *const Model, inputs: *const Tensor, count: usize) -> Result<Results> {
    // SAFETY: the caller's promise.
    let (model, inputs) = unsafe { (read(model, "the model")?, slice(inputs, count, "the inputs")?) };
    model.run(inputs)
}

/// Runs the network.
///
/// # Safety
/// `model` is null or a model; `inputs` is null or points to so many inputs, whose pointers are as their lengths say;
/// `results` is null or a place for a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sampan_model_run(
    model: *const Model,
    inputs: *const Tensor,
    count: usize,
    results: *mut *mut Results,
) -> Status {
    // SAFETY: the caller's promise.
    let make = || Ok(Box::into_raw(Box::new(unsafe { run(model, inputs, count) }?)));
    // SAFETY: the caller's promise.
    status(|| unsafe { write(results, "the results", make) })
}

/// Runs the network, with the results in memory of the caller.
///
/// # Safety
/// `model` is null or a model; `inputs` and `outputs` are null or point to so many inputs and buffers, whose pointers are as
/// their lengths say. Nobody else uses the buffers meanwhile.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sampan_model_run_into(
    model: *const Model,
    inputs: *const Tensor,
    count: usize,
    outputs: *const Buffer,
    output_count: usize,
) -> Status {
    status(|| {
        // SAFETY: the caller's promise.
        let own = unsafe { read(model, "the model") }?.ports.outputs.len();
        // SAFETY: the caller's promise.
        let buffers = unsafe { slice(outputs, output_count, "the outputs") }?;
        if buffers.len() != own {
            return Err(Error::invalid(format!("the model gives {own} outputs, got {} buffers", buffers.len())));
        }
        // SAFETY: the caller's promise.
        let Results(given) = unsafe { run(model, inputs, count) }?;
        for (i, ((tensor, _), buffer)) in given.iter().zip(buffers).enumerate() {
            let needed = tensor.numel() * tensor.dtype().size();
            if buffer.bytes != needed || (needed > 0 && buffer.data.is_null()) {
                let (kind, shape, bytes) = (tensor.dtype(), tensor.shape(), buffer.bytes);
                let null = if buffer.data.is_null() { ", at NULL" } else { "" };
                let message =
                    format!("output {i} is {kind} of shape {shape:?}, {needed} bytes; its buffer has {bytes}{null}");
                return Err(Error::invalid(message));
            }
        }
        for ((tensor, _), buffer) in given.iter().zip(buffers) {
            let values = tensor.values();
            let bytes = values.slice().bytes();
            if !bytes.is_empty() {
                // SAFETY: not null, of this length by the caller's promise, and not our memory.
                unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), buffer.data.cast::<u8>(), bytes.len()) };
            }
        }
        Ok(())
    })
}

/// How many results there are.
///
/// # Safety
/// `results` is null or results.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sampan_results_count(results: *const Results) -> usize {
    // SAFETY: the caller's promise.
    unsafe { results.as_ref() }.map_or(0, |r| r.0.len())
}

/// A result.
///
/// # Safety
/// `results` is null or results; `tensor` is null or a place for a tensor.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sampan_results_get(results: *const Results, index: usize, tensor: *mut Tensor) -> Status {
    let make = || {
        // SAFETY: the caller's promise.
        let (held, dims) = found(&unsafe { read(results, "the results") }?.0, index, "result")?;
        // From here on its memory stays where it is, even if another tensor that shares it is written.
        held.data_ptr();
        Ok(Tensor {
            data: held.values().slice().bytes().as_ptr().cast(),
            bytes: held.numel() * held.dtype().size(),
            dims: dims.as_ptr(),
            rank: dims.len(),
            dtype: number(held.dtype()),
        })
    };
    // SAFETY: the caller's promise.
    status(|| unsafe { write(tensor, "the tensor", make) })
}

/// Gives results back.
///
/// # Safety
/// `results` is null or results that nobody uses any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sampan_results_free(results: *mut Results) {
    if !results.is_null() {
        // SAFETY: it came from a box, and by the caller's promise it is given back once.
        or_default(|| drop(unsafe { Box::from_raw(results) }));
    }
}
