//! The pickle in a `.metadata` file: objects of three classes of Paddle's, read and written as data.

use super::{Metadata, Piece, boxes};
use crate::cursor::Budget;
use crate::elements;
use crate::fault::{Fault, Parse};
use crate::object::Object;
use crate::pickle::parse;
use crate::pickle::table::{Node, Pickle, Ref};
use crate::pickle::write::{Tensors, Writer};
use sampan_core::DType;
use std::collections::HashMap;
use std::io::Write;

const MODULE: &str = "paddle.distributed.flex_checkpoint.dcp.metadata";
const PROTOCOL: u8 = 4;

fn damaged(what: &str) -> Fault {
    Fault::damaged(format!("{what} is not of the form Paddle writes"))
}

// ---- reading

/// The fields of an object of a class, which Paddle moved between modules once.
fn fields(pickle: &Pickle<'_>, r: Ref, class: &str) -> Parse<HashMap<String, Ref>> {
    let Some(((module, name), &[], Some(state))) = pickle.call(r) else { return Err(damaged(class)) };
    if !(module.starts_with("paddle.distributed.") && module.ends_with(".metadata") && name == class) {
        return Err(Fault::unsupported(format!(
            "the pickle wants Python's {module}.{name}, which is none of a checkpoint's; nothing was run"
        )));
    }
    let pairs = dict(pickle, state, class)?;
    pairs.iter().map(|&(key, value)| Ok((text(pickle, key)?, value))).collect()
}

fn dict<'p>(pickle: &'p Pickle<'_>, r: Ref, what: &str) -> Parse<&'p [(Ref, Ref)]> {
    if let Node::Dict(pairs) = pickle.node(r) { Ok(pairs) } else { Err(damaged(what)) }
}

fn text(pickle: &Pickle<'_>, r: Ref) -> Parse<String> {
    Ok(pickle.text(r).ok_or_else(|| damaged("a name"))?.into_owned())
}

fn items<'p>(pickle: &'p Pickle<'_>, r: Ref, what: &str) -> Parse<&'p [Ref]> {
    pickle.items(r).ok_or_else(|| damaged(what))
}

fn extents(pickle: &Pickle<'_>, r: Ref) -> Parse<Vec<usize>> {
    let dims: Option<Vec<i64>> = items(pickle, r, "a shape")?.iter().take(65).map(|&d| pickle.int(d)).collect();
    elements::shape(dims.ok_or_else(|| damaged("a shape"))?)
}

/// `(first, last)` of a part of a box that is flat.
fn range(pickle: &Pickle<'_>, r: Option<&Ref>) -> Parse<Option<(usize, usize)>> {
    match r.map(|&r| pickle.node(r)) {
        None | Some(Node::None) => Ok(None),
        Some(_) => match extents(pickle, *r.expect("it was matched"))?[..] {
            [first, last] if first <= last => Ok(Some((first, last))),
            _ => Err(damaged("a range")),
        },
    }
}

fn field(fields: &HashMap<String, Ref>, name: &str) -> Parse<Ref> {
    fields.get(name).copied().ok_or_else(|| damaged("an object"))
}

pub(super) fn decode(bytes: &[u8]) -> Parse<Metadata> {
    let pickle = parse::parse(bytes, 0)?;
    let mut budget = Budget::for_input(bytes.len());
    let root = fields(&pickle, pickle.root, "Metadata")?;
    let mut files = HashMap::new();
    for &(index, file) in dict(&pickle, field(&root, "storage_metadata")?, "the table of files")? {
        budget.value()?;
        let index = fields(&pickle, index, "LocalTensorIndex")?;
        let file = text(&pickle, file)?;
        // A checkpoint is one folder: no file elsewhere is read on its word.
        if file.is_empty() || file.starts_with('.') || file.contains(['/', '\\', '\0']) {
            return Err(Fault::damaged(format!("{file:?} is no name of a file in this folder")));
        }
        let place = (
            text(&pickle, field(&index, "tensor_key")?)?,
            extents(&pickle, field(&index, "global_offset")?)?,
            range(&pickle, index.get("flattened_range"))?,
            // Earlier versions of Paddle do not say it.
            match index.get("local_shape") {
                Some(&r) if !matches!(pickle.node(r), Node::None) => Some(extents(&pickle, r)?),
                _ => None,
            },
        );
        // Where several files have the same box, the first is as good as the others.
        files.entry(place).or_insert(file);
    }
    let mut pieces = Vec::new();
    for &(key, held) in dict(&pickle, field(&root, "state_dict_metadata")?, "the table of tensors")? {
        let key = text(&pickle, key)?;
        let held = items(&pickle, held, "the boxes of a tensor")?;
        let mut found = held.iter().map(|&r| {
            budget.value()?;
            piece(&pickle, &key, r, &mut files)
        });
        let found: Vec<Piece> = found.by_ref().filter_map(Result::transpose).collect::<Parse<_>>()?;
        pieces.extend(with_whole(found)?);
    }
    let mut paths = Vec::new();
    if let Some(&table) = root.get("flat_mapping").filter(|&&r| matches!(pickle.node(r), Node::Dict(_))) {
        for &(key, path) in dict(&pickle, table, "the table of names")? {
            let path = items(&pickle, path, "the way to a tensor")?;
            budget.value()?;
            paths.push((text(&pickle, key)?, path.iter().map(|&r| text(&pickle, r)).collect::<Parse<_>>()?));
        }
    }
    Ok(Metadata { pieces, paths })
}

/// The files of boxes: by name, offset, which elements of them, and extents.
type Files = HashMap<(String, Vec<usize>, Option<(usize, usize)>, Option<Vec<usize>>), String>;

/// One box; none if it was listed before, as boxes are that several processes have.
fn piece(pickle: &Pickle<'_>, key: &str, r: Ref, files: &mut Files) -> Parse<Option<Piece>> {
    let told = fields(pickle, r, "LocalTensorMetadata")?;
    let offset = extents(pickle, field(&told, "global_offset")?)?;
    let shape = extents(pickle, field(&told, "local_shape")?)?;
    let name = text(pickle, field(&told, "dtype")?)?;
    let dtype = DType::from_name(&name).ok_or_else(|| Fault::unsupported(format!("{key} has elements of {name}")))?;
    let range = range(pickle, told.get("flattened_range"))?;
    // Versions of Paddle before 3.2 do not say how large the whole is.
    let whole = match told.get("global_shape") {
        Some(&r) if !matches!(pickle.node(r), Node::None) => extents(pickle, r)?,
        _ => Vec::new(),
    };
    let count = boxes::count(&shape)?;
    let ends = offset.iter().zip(&shape).map(|(&o, &s)| o.checked_add(s)).collect::<Option<Vec<_>>>();
    let inside =
        |ends: &[usize]| whole.is_empty() || ends.len() == whole.len() && ends.iter().zip(&whole).all(|(e, w)| e <= w);
    if offset.len() != shape.len() || !ends.is_some_and(|e| inside(&e)) || range.is_some_and(|(_, last)| last > count) {
        return Err(Fault::damaged(format!("a box of {key} that does not lie in it")));
    }
    let mut file = |shape| files.remove(&(key.to_string(), offset.clone(), range, shape));
    let Some(file) = file(Some(shape.clone())).or_else(|| file(None)) else { return Ok(None) };
    Ok(Some(Piece { key: key.to_string(), offset, shape, dtype, whole, range, file }))
}

/// The boxes of one tensor, each with the extents of the whole, which reaches as far as they do if nothing was said.
fn with_whole(mut pieces: Vec<Piece>) -> Parse<Vec<Piece>> {
    let Some(first) = pieces.first() else { return Ok(pieces) };
    let rank = first.shape.len();
    if pieces.iter().any(|p| p.shape.len() != rank || p.whole != first.whole) {
        return Err(Fault::damaged(format!("the boxes of {} do not belong together", first.key)));
    }
    if first.whole.len() != rank {
        let far = |i: usize| pieces.iter().map(|p| p.offset[i] + p.shape[i]).max().unwrap_or(0);
        let whole: Vec<usize> = (0..rank).map(far).collect();
        pieces.iter_mut().for_each(|p| p.whole = whole.clone());
    }
    Ok(pieces)
}

// ---- writing

fn tuple(dims: &[usize]) -> Object {
    Object::Tuple(dims.iter().map(|&d| Object::Int(d as i64)).collect())
}

fn flat(range: Option<(usize, usize)>) -> [(&'static str, Object); 2] {
    let told = range.map_or(Object::None, |(first, last)| tuple(&[first, last]));
    [("is_flattened", Object::Bool(range.is_some())), ("flattened_range", told)]
}

pub(super) fn encode(out: &mut impl Write, metadata: &Metadata) -> Parse<()> {
    let mut keys: Vec<&str> = Vec::new();
    let mut by_key: HashMap<&str, Vec<&Piece>> = HashMap::new();
    for piece in &metadata.pieces {
        let held = by_key.entry(&piece.key).or_default();
        if held.is_empty() {
            keys.push(&piece.key);
        }
        held.push(piece);
    }
    let mut w = Writer::new(out, PROTOCOL, Tensors::PaddleArrays)?;
    w.instance(MODULE, "Metadata", |w| {
        w.text("state_dict_metadata")?;
        w.dict_of(keys.iter(), |w, key| {
            w.text(key)?;
            w.list_of(by_key[*key].iter(), |w, piece| {
                w.instance(MODULE, "LocalTensorMetadata", |w| {
                    w.field("global_offset", &tuple(&piece.offset))?;
                    w.field("local_shape", &tuple(&piece.shape))?;
                    w.field("dtype", &piece.dtype.name().into())?;
                    w.field("global_shape", &tuple(&piece.whole))?;
                    flat(piece.range).iter().try_for_each(|(name, value)| w.field(name, value))
                })
            })
        })?;
        w.text("storage_metadata")?;
        w.dict_of(metadata.pieces.iter(), |w, piece| {
            w.instance(MODULE, "LocalTensorIndex", |w| {
                w.field("tensor_key", &(&*piece.key).into())?;
                w.field("global_offset", &tuple(&piece.offset))?;
                flat(piece.range).iter().try_for_each(|(name, value)| w.field(name, value))?;
                w.field("replica_id", &Object::None)?;
                w.field("local_shape", &tuple(&piece.shape))
            })?;
            w.text(&piece.file)
        })?;
        w.text("flat_mapping")?;
        w.dict_of(metadata.paths.iter(), |w, (key, path)| {
            w.text(key)?;
            w.object(&Object::Tuple(path.iter().map(|part| (&**part).into()).collect()))
        })
    })?;
    w.finish()
}
