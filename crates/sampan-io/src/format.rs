//! The formats, and how a file tells which one it is.

use crate::{events, npy, pth, zip};
use std::fmt;
use std::path::Path;

/// The formats of whole values.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Format {
    /// What `paddle.save` writes: `.pdparams`, `.pdopt`, `.pdtensor`, `.pd`, `.pkl`.
    Paddle,
    /// `.safetensors`: a flat dict of tensors.
    SafeTensors,
    /// `.npy`: one tensor.
    Npy,
    /// `.npz`: a flat dict of tensors.
    Npz,
    /// `.pth`, `.pt`: read only.
    PyTorch,
    /// TensorBoard's event files: read as a list of scalars; see [`events`] for writing.
    Events,
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Format::Paddle => "Paddle",
            Format::SafeTensors => "safetensors",
            Format::Npy => "npy",
            Format::Npz => "npz",
            Format::PyTorch => "PyTorch",
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
            "safetensors" => Format::SafeTensors,
            "npy" => Format::Npy,
            "npz" => Format::Npz,
            "pth" | "pt" => Format::PyTorch,
            _ => return None,
        })
    }

    /// By the contents.
    pub fn from_bytes(bytes: &[u8]) -> Option<Format> {
        let json_after_length = |b: &[u8]| {
            b.first_chunk::<9>().is_some_and(|h| h[8] == b'{' && u64::from_le_bytes(*h.first_chunk().expect("8 of 9")) < b.len() as u64)
        };
        Some(match bytes {
            _ if bytes.starts_with(npy::MAGIC) => Format::Npy,
            _ if zip::Archive::is(bytes) => {
                let archive = zip::Archive::open(bytes).ok()?;
                let torch = archive.members.iter().any(|m| m.name == "data.pkl" || m.name.ends_with("/data.pkl"));
                if torch { Format::PyTorch } else { Format::Npz }
            }
            _ if bytes.starts_with(pth::LEGACY_MAGIC) => Format::PyTorch,
            _ if json_after_length(bytes) => Format::SafeTensors,
            _ if events::is(bytes) => Format::Events,
            [0x80, 0..=5, ..] => Format::Paddle,
            _ => return None,
        })
    }
}
