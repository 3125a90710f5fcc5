//! Checkpoints that many processes write together: Paddle's `save_state_dict`.
//!
//! A folder has a file for each process, `RANK_ID.distcp` (a state dict as `.pdparams` has it) or `RANK_ID.safetensors`, and
//! one, `ID.metadata`, that says which box of which tensor lies in which file. Whoever reads asks for boxes of its own.

mod boxes;
mod metadata;

use crate::fault::{Fault, Parse};
use crate::object::Object;
use crate::{atomic, elements, read_file};
use boxes::{copy_common, numel};
use sampan_core::error::Kind;
use sampan_core::{DType, Error, Result, Tensor};
use std::collections::{BTreeSet, HashMap};
use std::path::Path;

const FORMAT: &str = "distributed checkpoint";

/// A box of a tensor that lies in a file under the tensor's name.
#[derive(Clone, Debug, PartialEq)]
pub struct Piece {
    /// The name of the tensor.
    pub key: String,
    /// Where the box begins.
    pub offset: Vec<usize>,
    /// Its extents.
    pub shape: Vec<usize>,
    /// The dtype of the tensor.
    pub dtype: DType,
    /// The extents of the whole tensor.
    pub whole: Vec<usize>,
    /// Which elements of the box the file has, one after the other; all of them if nothing is said.
    pub range: Option<(usize, usize)>,
    /// The name of the file, in the folder of the metadata.
    pub file: String,
}

/// What lies in a folder.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Metadata {
    /// Every box of every tensor.
    pub pieces: Vec<Piece>,
    /// The way to each tensor through the dicts it was saved in.
    pub paths: Vec<(String, Vec<String>)>,
}

/// A box of a tensor that somebody wants.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// The name of the tensor.
    pub key: String,
    /// Where the box begins.
    pub offset: Vec<usize>,
    /// Its extents.
    pub shape: Vec<usize>,
}

/// Reads a `.metadata` file. Nothing in it is run.
pub fn load_metadata(path: impl AsRef<Path>) -> Result<Metadata> {
    let path = path.as_ref();
    let read = || metadata::decode(&read_file(path)?);
    read().map_err(|e| e.into_error("load_state_dict", FORMAT, Some(path)))
}

/// Writes a `.metadata` file as Paddle reads it.
pub fn save_metadata(path: impl AsRef<Path>, metadata: &Metadata) -> Result<()> {
    let path = path.as_ref();
    let written = atomic::replace(path, |out| metadata::encode(out, metadata));
    written.map_err(|e| e.into_error("save_state_dict", FORMAT, Some(path)))
}

/// The values of boxes, from the files of a folder that have something of them; each file is read once.
pub fn read(folder: impl AsRef<Path>, metadata: &Metadata, wanted: &[Wanted]) -> Result<Vec<Tensor>> {
    let folder = folder.as_ref();
    collect(folder, metadata, wanted).map_err(|e| e.into_error("load_state_dict", FORMAT, Some(folder)))
}

fn collect(folder: &Path, metadata: &Metadata, wanted: &[Wanted]) -> Parse<Vec<Tensor>> {
    let mut by_key: HashMap<&str, Vec<&Piece>> = HashMap::new();
    let mut in_files: HashMap<(&str, &str), &Piece> = HashMap::new();
    for piece in &metadata.pieces {
        match in_files.insert((&piece.file, &piece.key), piece) {
            None => by_key.entry(&piece.key).or_default().push(piece),
            Some(same) if same == piece => {}
            // A file has one tensor of a name. Counted for many boxes, it would be given far more memory than it holds.
            Some(_) => return Err(Fault::damaged(format!("two boxes of {} in one file, {}", piece.key, piece.file))),
        }
    }
    let touching = |want: &Wanted| -> Parse<(DType, Vec<&Piece>)> {
        let all = by_key.get(&*want.key).ok_or_else(|| Fault::damaged(format!("there is no {}", want.key)))?;
        if all[0].whole.len() != want.shape.len() {
            return Err(Fault::damaged(format!("{} has shape {:?}", want.key, all[0].whole)));
        }
        Ok((all[0].dtype, all.iter().copied().filter(|p| boxes::touch(p, want)).collect()))
    };
    let sources = wanted.iter().map(touching).collect::<Parse<Vec<_>>>()?;
    let pieces = || sources.iter().flat_map(|(_, pieces)| pieces);
    let mut parts = Parts::new();
    for file in pieces().map(|p| &*p.file).collect::<BTreeSet<_>>() {
        let mut held = crate::load(folder.join(file)).map_err(Fault::from)?.tensors();
        for piece in pieces().filter(|p| p.file == file) {
            if let Some(tensor) = held.remove(&piece.key) {
                parts.insert((file, &piece.key), tensor);
            }
        }
    }
    wanted.iter().zip(&sources).map(|(want, (dtype, pieces))| assembled(want, *dtype, pieces, &parts)).collect()
}

/// What lies in files, by file and name.
type Parts<'a> = HashMap<(&'a str, &'a str), Tensor>;

/// What the file of a piece has of it.
fn values<'p>(piece: &'p Piece, parts: &'p Parts<'p>) -> Parse<&'p Tensor> {
    let (start, end) = piece.range.unwrap_or((0, numel(&piece.shape)));
    let found = parts.get(&(&*piece.file, &*piece.key)).filter(|tensor| tensor.numel() == end - start);
    found.ok_or_else(|| Fault::damaged(format!("{} has no such box of {}", piece.file, piece.key)))
}

/// A box out of the pieces that have something of it; `told` is the dtype that the metadata has for it.
fn assembled<'p>(want: &Wanted, told: DType, pieces: &[&'p Piece], parts: &'p Parts<'p>) -> Parse<Tensor> {
    let incomplete = || Fault::damaged(format!("the files do not have all of {}", want.key));
    let found = pieces.iter().map(|p| values(p, parts)).collect::<Parse<Vec<_>>>()?;
    let count = boxes::count(&want.shape)?;
    let Some(first) = found.first() else {
        if count > 0 {
            return Err(incomplete());
        }
        return elements::tensor(&[], elements::Encoding::plain(told), &want.shape);
    };
    // Only what the files really hold is given memory.
    if found.iter().map(|t| t.numel()).sum::<usize>() < count {
        return Err(incomplete());
    }
    let dtype = first.dtype();
    let mut bytes = zeros(count * dtype.size())?;
    // Pieces may overlap: what counts is how many elements came at least once.
    let mut covered = boxes::Covered::new(if pieces.len() > 1 { zeros(count.div_ceil(8))? } else { Vec::new() });
    let mut filled = 0;
    for (piece, tensor) in pieces.iter().zip(&found) {
        if tensor.dtype() != dtype {
            return Err(Fault::damaged(format!(
                "{} is {dtype} in one file and {} in another",
                want.key,
                tensor.dtype()
            )));
        }
        let from = elements::bytes_of(tensor)?;
        filled += copy_common(piece, &from, want, &mut bytes, dtype.size(), |start, len| covered.add(start, len));
    }
    if filled < count {
        return Err(incomplete());
    }
    elements::tensor(&bytes, elements::Encoding::plain(dtype), &want.shape)
}

/// So many zeros; an error where there is no memory for them.
fn zeros(len: usize) -> Parse<Vec<u8>> {
    let mut bytes = Vec::new();
    let full = |_| Fault::from(Error::new(Kind::Unavailable, format!("there is no memory for {len} bytes")));
    bytes.try_reserve_exact(len).map_err(full)?;
    bytes.resize(len, 0);
    Ok(bytes)
}

/// The whole tensors of a folder, by name.
pub fn read_whole(folder: impl AsRef<Path>, metadata: &Metadata) -> Result<Object> {
    let mut wanted: Vec<Wanted> = Vec::new();
    let mut seen = BTreeSet::new();
    for piece in &metadata.pieces {
        if seen.insert(&*piece.key) {
            wanted.push(Wanted {
                key: piece.key.clone(),
                offset: vec![0; piece.whole.len()],
                shape: piece.whole.clone(),
            });
        }
    }
    let tensors = read(folder, metadata, &wanted)?;
    Ok(wanted.into_iter().zip(tensors).map(|(want, t)| (want.key, t)).collect::<crate::Dict>().into())
}
