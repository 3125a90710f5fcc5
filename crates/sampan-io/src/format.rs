//! The formats, and how a file tells which one it is.

use crate::{events, npy, pdiparams, pth, safetensors, zip};
use std::fmt;
use std::path::Path;

/// The formats of whole values.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Format {
    /// What `paddle.save` writes: `.pdparams`, `.pdopt`, `.pdtensor`, `.pd`, `.pkl`.
    Paddle,
    /// `.pdiparams`, and `paddle.save` with `use_binary_format`: tensors without names.
    PaddleBinary,
    /// `.safetensors`: a flat dict of tensors.
    SafeTensors,
    /// `.npy`: one tensor.
    Npy,
    /// `.npz`: a flat dict of tensors.
    Npz,
    /// `.pth`, `.pt`.
    PyTorch,
    /// `.onnx`: the initialisers of a graph, read only; see [`onnx`](crate::onnx) for putting others in their place.
    Onnx,
    /// TensorBoard's event files: read as a list of scalars; see [`events`] for writing.
    Events,
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Format::Paddle => "Paddle",
            Format::PaddleBinary => "Paddle binary",
            Format::SafeTensors => "safetensors",
            Format::Npy => "npy",
            Format::Npz => "npz",
            Format::PyTorch => "PyTorch",
            Format::Onnx => "ONNX",
            Format::Events => "TensorBoard events",
        })
    }
}

impl Format {
    /// By the end of the name.
    pub fn from_path(path: impl AsRef<Path>) -> Option<Format> {
        let name = path.as_ref().file_name()?.to_str()?.to_ascii_lowercase();
        if name.contains(".tfevents.") {
            return Some(Format::Events);
        }
        Some(match name.rsplit_once('.')?.1 {
            "pdparams" | "pdopt" | "pdtensor" | "pd" | "pkl" | "pickle" => Format::Paddle,
            "pdiparams" => Format::PaddleBinary,
            "safetensors" => Format::SafeTensors,
            "npy" => Format::Npy,
            "npz" => Format::Npz,
            "pth" | "pt" => Format::PyTorch,
            "onnx" => Format::Onnx,
            _ => return None,
        })
    }

    /// By the contents.
    pub fn from_bytes(bytes: &[u8]) -> Option<Format> {
        Some(match bytes {
            _ if bytes.starts_with(npy::MAGIC) => Format::Npy,
            _ if zip::Archive::is(bytes) => {
                let archive = zip::Archive::open(bytes).ok()?;
                let torch = archive.members.iter().any(|m| m.name == "data.pkl" || m.name.ends_with("/data.pkl"));
                if torch { Format::PyTorch } else { Format::Npz }
            }
            _ if bytes.starts_with(pth::LEGACY_MAGIC) => Format::PyTorch,
            _ if bytes.starts_with(pdiparams::MAGIC) => Format::PaddleBinary,
            _ if safetensors::is(bytes) => Format::SafeTensors,
            _ if events::is(bytes) => Format::Events,
            [0x80, 0..=5, ..] => Format::Paddle,
            _ => return None,
        })
    }
}
