//! Files of tensors: Paddle's own, safetensors, NumPy's, PyTorch's, ONNX's initialisers, and TensorBoard's event files.
//!
//! Each format is one module with its reader beside its writer. Files are data: nothing in them is run, and no length is
//! believed before it is checked. A file appears whole or not at all.
//!
//! ```
//! use sampan_core::Tensor;
//! use sampan_io::{Dict, Object};
//! let path = std::env::temp_dir().join("sampan-io-doc").join("linear.pdparams");
//! let state: Dict = [("weight", Tensor::new([[1.0f32, 2.0]])), ("bias", Tensor::new([0.5f32]))].into_iter().collect();
//! sampan_io::save(&path, &state.into())?;
//! assert_eq!(sampan_io::load(&path)?.tensors()["weight"].shape(), [1, 2]);
//! # Ok::<(), sampan_core::Error>(())
//! ```

pub mod atomic;
mod cursor;
mod describe;
pub mod distcp;
mod elements;
pub mod events;
mod fault;
mod format;
pub mod npy;
mod object;
pub mod onnx;
pub mod pdiparams;
pub mod pdmodel;
pub mod pdparams;
pub mod pickle;
mod proto;
pub mod pth;
pub mod safetensors;
pub mod set;
mod value;
mod zip;

pub use describe::{Description, Entry, describe};
pub use format::Format;
pub use object::{Dict, Key, Object};

use fault::{Fault, Parse};
use sampan_core::{Error, Result, Tensor};
use std::collections::BTreeMap;
use std::path::Path;

/// A device or a pipe might never end.
fn check_regular(path: &Path) -> Parse<()> {
    let found = std::fs::metadata(path)?;
    if found.is_file() {
        return Ok(());
    }
    let what = if found.is_dir() { "a folder" } else { "no regular file" };
    Err(Fault::damaged(format!("there is {what} at this path")))
}

pub(crate) fn read_file(path: &Path) -> Parse<Vec<u8>> {
    check_regular(path)?;
    Ok(std::fs::read(path)?)
}

fn formats_hint() -> &'static str {
    "known are .pdparams, .pdopt, .pdtensor, .pdiparams, .safetensors, .npy, .npz, .pth, .pt and, for reading, .onnx"
}

/// Writes a value in the format that the end of the path names; other ends mean Paddle's, as for `paddle.save`.
pub fn save(path: impl AsRef<Path>, object: &Object) -> Result<()> {
    save_with(path, object, pdparams::DEFAULT_PROTOCOL)
}

/// Like [`save`], with the pickle protocol of Paddle's format: 2, 3 or 4.
pub fn save_with(path: impl AsRef<Path>, object: &Object, protocol: u8) -> Result<()> {
    let path = path.as_ref();
    let flat = |format: Format| -> Result<BTreeMap<String, Tensor>> {
        BTreeMap::try_from(object.clone()).map_err(|e| {
            let message = format!("{}: {format} holds a flat dict of tensors: {}", path.display(), e.message());
            Error::new(e.kind(), message).hint("use .pdparams, which holds any value").in_op("save")
        })
    };
    match Format::from_path(path) {
        Some(Format::SafeTensors) => safetensors::save(path, &flat(Format::SafeTensors)?, &BTreeMap::new()),
        Some(Format::Npz) => npy::save_npz(path, &flat(Format::Npz)?, false),
        Some(Format::Npy) => match object {
            Object::Tensor(tensor) | Object::Array(tensor) => npy::save(path, tensor),
            // As NumPy does; what reads it there is `numpy.load(path, allow_pickle=True).item()`.
            Object::Dict(_) => npy::save_object(path, object),
            other => Err(Fault::damaged(format!(
                "a .npy file holds one tensor or a dict, and this is a {}",
                other.type_name()
            ))
            .hint("use .npz for several tensors and .pdparams for anything")
            .into_error("save", "npy", Some(path))),
        },
        Some(Format::PaddleBinary) => match object {
            Object::Tensor(tensor) | Object::Array(tensor) => pdiparams::save(path, std::slice::from_ref(tensor)),
            Object::List(list) if list.iter().all(|o| o.as_tensor().is_some()) => {
                pdiparams::save(path, &list.iter().filter_map(|o| o.as_tensor().cloned()).collect::<Vec<_>>())
            }
            other => Err(Fault::damaged(format!(
                "a .pdiparams file holds a list of tensors, and this is a {}",
                other.type_name()
            ))
            .hint("use .pdparams, which holds any value")
            .into_error("save", "Paddle binary", Some(path))),
        },
        Some(Format::PyTorch) => pth::save(path, object),
        Some(Format::Onnx | Format::Events) => Err(Fault::unsupported("this format is not written")
            .hint(formats_hint())
            .into_error("save", "format", Some(path))),
        Some(Format::Paddle) | None => pdparams::save_with(path, object, protocol),
    }
}

/// Reads a file of any known format: by its contents, which never lie, or else by the end of its name.
pub fn load(path: impl AsRef<Path>) -> Result<Object> {
    open(path.as_ref()).map(|(_, object)| object)
}

/// Reads the value at the start of `bytes` in any known format, and says where it ends: what `paddle.save` wrote may be
/// followed by more. `names`: a state dict keeps its table of the tensors' own names.
pub fn load_bytes(bytes: &[u8], names: bool) -> Result<(Object, usize)> {
    match Format::from_bytes(bytes) {
        Some(Format::Paddle) => pdparams::read(bytes, names).map_err(|e| e.into_error("load", "Paddle", None)),
        Some(format) => {
            let object = decode(bytes, format).map_err(|e| e.into_error("load", &format.to_string(), None))?;
            Ok((object, bytes.len()))
        }
        None => {
            let fault = if bytes.is_empty() {
                Fault::damaged("there is nothing left to read").hint("go back to the start: file.seek(0)")
            } else {
                Fault::unsupported("the contents do not tell what it is").hint(formats_hint())
            };
            Err(fault.into_error("load", "cannot read", None))
        }
    }
}

fn open(path: &Path) -> Result<(Format, Object)> {
    set::finish_around(path);
    let bytes = read_file(path).map_err(|e| e.into_error("load", "cannot read", Some(path)))?;
    if bytes.is_empty() {
        return Err(Fault::damaged("the file is empty").into_error("load", "cannot read", Some(path)));
    }
    let Some(format) = Format::from_bytes(&bytes).or_else(|| Format::from_path(path)) else {
        let fault = Fault::unsupported("neither its contents nor its name tell what it is").hint(formats_hint());
        return Err(fault.into_error("load", "unknown format", Some(path)));
    };
    let object = match format {
        Format::Onnx => onnx::Graph::read(&bytes, Some(atomic::folder_of(path))).map(|graph| graph.tensors().into()),
        _ => decode(&bytes, format),
    };
    let object = object.map_err(|e| e.into_error("load", &format.to_string(), Some(path)))?;
    Ok((format, object))
}

fn decode(bytes: &[u8], format: Format) -> Parse<Object> {
    Ok(match format {
        Format::Paddle => pdparams::decode(bytes)?,
        Format::SafeTensors => safetensors::decode(bytes)?.tensors.into(),
        Format::PaddleBinary => {
            let mut tensors = pdiparams::decode(bytes)?;
            match (tensors.len(), tensors.pop()) {
                (1, Some(one)) => one.into(),
                (_, last) => Object::List(tensors.into_iter().chain(last).map(Object::Tensor).collect()),
            }
        }
        Format::Npy => npy::decode_any(bytes)?,
        Format::Npz => npy::decode_npz(bytes)?.into(),
        Format::PyTorch => pth::decode(bytes)?,
        Format::Onnx => onnx::Graph::read(bytes, None)?.tensors().into(),
        Format::Events => Object::List(events::decode(bytes)?.into_iter().map(Object::from).collect()),
    })
}
