//! PyTorch's `.pth` and `.pt`. Read are the archive of today and the plain file of before PyTorch 1.6; written is the
//! archive.

use crate::cursor::Cursor;
use crate::elements::{self, Encoding, Item};
use crate::fault::{Fault, Parse};
use crate::object::Object;
use crate::pickle::table::{Node, Pickle, Ref};
use crate::pickle::write::{Tensors, Writer};
use crate::pickle::{Builder, Dialect, parse};
use crate::zip::{self, Archive};
use crate::{atomic, read_file};
use sampan_core::{DType, Result};
use std::borrow::Cow;
use std::collections::HashMap;
use std::io::Write;
use std::path::Path;

const FORMAT: &str = "PyTorch file";
/// How a file of before PyTorch 1.6 begins: the pickled magic number.
pub(crate) const LEGACY_MAGIC: &[u8] = b"\x80\x02\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19.";

/// Reads what `torch.save` wrote, if it is made of tensors, numbers, strings, lists and dicts.
///
/// ```no_run
/// let state = sampan_io::pth::load("resnet50.pth")?.tensors();
/// # Ok::<(), sampan_core::Error>(())
/// ```
pub fn load(path: impl AsRef<Path>) -> Result<Object> {
    let path = path.as_ref();
    let read = || decode(&read_file(path)?);
    read().map_err(|e| e.into_error("load", FORMAT, Some(path)))
}

/// Like [`load`], from memory.
pub fn from_bytes(bytes: &[u8]) -> Result<Object> {
    decode(bytes).map_err(|e| e.into_error("load", FORMAT, None))
}

/// Writes what `torch.load` reads, with `weights_only` as well.
///
/// ```
/// use sampan_core::Tensor;
/// use sampan_io::{Dict, pth};
/// let state: Dict = [("weight", Tensor::new([[1.0f32, 2.0]]))].into_iter().collect();
/// let bytes = pth::to_bytes(&state.into())?;
/// assert_eq!(pth::from_bytes(&bytes)?.tensors()["weight"].to_vec::<f32>(), [1.0, 2.0]);
/// # Ok::<(), sampan_core::Error>(())
/// ```
pub fn save(path: impl AsRef<Path>, object: &Object) -> Result<()> {
    let path = path.as_ref();
    atomic::replace(path, |out| encode(out, object)).map_err(|e| e.into_error("save", FORMAT, Some(path)))
}

/// Like [`save`], to memory.
pub fn to_bytes(object: &Object) -> Result<Vec<u8>> {
    let mut out = Vec::new();
    encode(&mut out, object).map_err(|e| e.into_error("save", FORMAT, None))?;
    Ok(out)
}

/// PyTorch maps storages into memory from multiples of 64 bytes.
const ALIGN: u64 = 64;

fn encode(out: &mut impl Write, object: &Object) -> Parse<()> {
    let mut pickled = Vec::new();
    let mut writer = Writer::new(&mut pickled, 2, Tensors::Storages)?;
    writer.object(object)?;
    let storages = writer.finish_beside()?;
    let mut archive = zip::Writer::new(out);
    archive.aligned("archive/data.pkl", &pickled, ALIGN)?;
    archive.aligned("archive/byteorder", b"little", ALIGN)?;
    for (i, tensor) in storages.iter().enumerate() {
        archive.aligned(&format!("archive/data/{i}"), &elements::bytes_of(tensor)?, ALIGN)?;
    }
    archive.aligned("archive/version", b"3\n", ALIGN)?;
    archive.finish()
}

/// The memory of tensors by key.
struct Storages<'a> {
    data: HashMap<String, Cow<'a, [u8]>>,
    big_endian: bool,
}

pub(crate) fn decode(bytes: &[u8]) -> Parse<Object> {
    if bytes.starts_with(LEGACY_MAGIC) {
        return legacy(bytes);
    }
    if !Archive::is(bytes) {
        return Err(Fault::damaged("it is neither an archive nor a file of the older form"));
    }
    let archive = Archive::open(bytes)?;
    let pickled = archive.members.iter().find(|m| m.name == "data.pkl" || m.name.ends_with("/data.pkl"));
    let pickled = pickled.ok_or_else(|| Fault::damaged("there is no data.pkl in the archive: not one of PyTorch's"))?;
    let folder = pickled.name.strip_suffix("data.pkl").unwrap_or_default();
    if archive.members.iter().any(|m| m.name.strip_prefix(folder).is_some_and(|n| n.starts_with("code/"))) {
        return Err(Fault::unsupported("a TorchScript program").hint("save the state_dict of the model instead"));
    }
    let mut storages = Storages { data: HashMap::new(), big_endian: false };
    for member in &archive.members {
        let name = member.name.strip_prefix(folder);
        if let Some(key) = name.and_then(|n| n.strip_prefix("data/")) {
            storages.data.insert(key.to_string(), archive.read(member, false)?);
        } else if name == Some("byteorder") {
            storages.big_endian = archive.read(member, false)?.trim_ascii() == b"big";
        }
    }
    let pickled_bytes = archive.read(pickled, false)?;
    let pickle = parse::parse(&pickled_bytes, 0).map_err(|e| e.inside("data.pkl"))?;
    storages.build(&pickle, bytes.len()).map_err(|e| e.inside("data.pkl"))
}

/// Five pickles (magic, version, machine, value, keys of the storages) and then the storages with their lengths.
fn legacy(bytes: &[u8]) -> Parse<Object> {
    let version = parse::parse(bytes, LEGACY_MAGIC.len())?;
    let machine = parse::parse(bytes, version.end)?;
    let value = parse::parse(bytes, machine.end)?;
    let keys = parse::parse(bytes, value.end)?;
    let references = value.persistent().filter_map(|id| Reference::new(&value, id));
    let sizes: HashMap<String, Option<Item>> = references.map(|r| (r.key, r.item)).collect();
    let mut storages = Storages { data: HashMap::new(), big_endian: false };
    let mut cursor = Cursor { bytes, at: keys.end };
    for &key in keys.items(keys.root).ok_or_else(|| Fault::damaged("the list of storages is missing"))? {
        let key = keys.text(key).ok_or_else(|| Fault::damaged("a storage without a name"))?.into_owned();
        let item = sizes.get(&key).ok_or_else(|| Fault::damaged(format!("storage {key} belongs to no tensor")))?;
        let size = item.as_ref().map_or(1, |i| i.size()) as u64;
        let at = cursor.at;
        let count = cursor.u64()?;
        let len = count.checked_mul(size).ok_or_else(|| Fault::damaged("a storage of impossible size").at(at))?;
        storages.data.insert(key, Cow::Borrowed(cursor.take_u64(len)?));
    }
    storages.build(&value, bytes.len())
}

/// What a persistent id says: `("storage", type, key, place, count, …)`.
struct Reference {
    key: String,
    /// `None` for memory without a type, which the tensor gives.
    item: Option<Item>,
    /// The type sampan lacks, if it is one.
    lacking: Option<String>,
}

impl Reference {
    fn new(pickle: &Pickle<'_>, id: Ref) -> Option<Reference> {
        let &[tag, class, key, _, _, ref view @ ..] = pickle.items(id)? else { return None };
        // The oldest files could make one storage a part of another.
        if view.iter().any(|&r| !matches!(pickle.node(r), Node::None)) {
            return None;
        }
        let (("torch" | "torch.storage", class), Some("storage")) =
            (pickle.global(class)?, pickle.text(tag).as_deref())
        else {
            return None;
        };
        let key = pickle.text(key)?.into_owned();
        let item = match class {
            "UntypedStorage" => None,
            _ => class.strip_suffix("Storage").and_then(storage_item),
        };
        let lacking = (item.is_none() && class != "UntypedStorage").then(|| class.to_string());
        Some(Reference { key, item, lacking })
    }
}

/// PyTorch's names of the classes of storages.
const STORAGES: [(&str, DType); 12] = [
    ("Bool", DType::Bool),
    ("Byte", DType::UInt8),
    ("Char", DType::Int8),
    ("Short", DType::Int16),
    ("Int", DType::Int32),
    ("Long", DType::Int64),
    ("Half", DType::Float16),
    ("BFloat16", DType::BFloat16),
    ("Float", DType::Float32),
    ("Double", DType::Float64),
    ("ComplexFloat", DType::Complex64),
    ("ComplexDouble", DType::Complex128),
];

fn storage_item(class: &str) -> Option<Item> {
    STORAGES.iter().find(|(name, _)| *name == class).map(|&(_, dtype)| Item::Ours(dtype))
}

/// The class of the storage that holds a dtype, without the word itself: `Float`.
pub(crate) fn storage_name(dtype: DType) -> &'static str {
    STORAGES.iter().find(|(_, known)| *known == dtype).expect("every dtype is listed").0
}

/// `torch.float32` and the like.
fn dtype_item(name: &str) -> Option<Item> {
    match name {
        "uint16" => Some(Item::U16),
        "uint32" => Some(Item::U32),
        "uint64" => Some(Item::U64),
        _ => DType::from_name(name).map(Item::Ours),
    }
}

fn lacks(kind: &str) -> Fault {
    Fault::unsupported(format!("a tensor of type {kind}, which sampan does not have"))
}

impl Storages<'_> {
    fn build(&self, pickle: &Pickle<'_>, input_len: usize) -> Parse<Object> {
        let mut builder = Builder::new(pickle, input_len);
        let dialect: &Dialect<'_> = &|builder, r| self.made(builder, r);
        builder.dialect = Some(dialect);
        builder.build(pickle.root)
    }

    /// What PyTorch's own globals make.
    fn made(&self, builder: &mut Builder<'_, '_>, r: Ref) -> Parse<Option<Object>> {
        let pickle = builder.pickle;
        if let Some(("torch", name)) = pickle.global(r) {
            return Ok(dtype_item(name).map(|_| Object::Str(format!("torch.{name}"))));
        }
        let Some(((module, name), args, _)) = pickle.call(r) else { return Ok(None) };
        match (module, name, args) {
            ("torch._utils", "_rebuild_tensor" | "_rebuild_tensor_v2" | "_rebuild_tensor_v3", _) => {
                let v3 = name == "_rebuild_tensor_v3";
                self.tensor(builder, args, v3).map(Some)
            }
            ("torch._utils", "_rebuild_parameter" | "_rebuild_parameter_with_state", &[data, ..]) => {
                builder.build(data).map(Some)
            }
            ("torch._utils", "_rebuild_sparse_tensor", _) => Err(Fault::unsupported("a sparse tensor")),
            ("torch._utils", "_rebuild_qtensor", _) => Err(Fault::unsupported("a quantized tensor")),
            ("torch", "Size", &[dims]) => builder.build(dims).map(Some),
            ("torch", "device", &[place, ..]) => builder.build(place).map(Some),
            _ => Ok(None),
        }
    }

    /// `(storage, offset, shape, strides, requires_grad, hooks[, dtype][, metadata])`.
    fn tensor(&self, builder: &mut Builder<'_, '_>, args: &[Ref], v3: bool) -> Parse<Object> {
        let damaged = || Fault::damaged("a tensor is not of the form PyTorch writes");
        let pickle = builder.pickle;
        let &[storage, offset, shape, strides, ..] = args else { return Err(damaged()) };
        let Node::Persistent(id) = pickle.node(storage) else { return Err(damaged()) };
        let reference = Reference::new(pickle, *id).ok_or_else(damaged)?;
        if let Some(class) = reference.lacking {
            return Err(lacks(&class));
        }
        let item = if v3 {
            let (_, name) = args.get(6).and_then(|&r| pickle.global(r)).ok_or_else(damaged)?;
            dtype_item(name).ok_or_else(|| lacks(name))?
        } else {
            reference.item.ok_or_else(damaged)?
        };
        // Bits that say "read me negated" or "conjugated"; they change the values.
        if let Some(&metadata) = args.get(if v3 { 7 } else { 6 })
            && !matches!(pickle.node(metadata), Node::None)
            && !matches!(pickle.node(metadata), Node::Dict(d) if d.is_empty())
        {
            return Err(Fault::unsupported("a tensor with a negation that was put off")
                .hint("call resolve_neg() before saving it"));
        }
        let ints = |r: Ref| -> Parse<Vec<i64>> {
            // A shape may be a torch.Size, which is a call around the tuple.
            let r = match pickle.call(r) {
                Some((("torch", "Size"), &[inner], _)) => inner,
                _ => r,
            };
            let items = pickle.items(r).filter(|i| i.len() <= 64).ok_or_else(damaged)?;
            items.iter().map(|&i| pickle.int(i).ok_or_else(damaged)).collect()
        };
        let (shape, strides) = (elements::shape(ints(shape)?)?, ints(strides)?);
        let offset = pickle.int(offset).and_then(|o| usize::try_from(o).ok()).ok_or_else(damaged)?;
        if shape.len() != strides.len() {
            return Err(damaged());
        }
        let key = &reference.key;
        let data = self.data.get(key).ok_or_else(|| Fault::damaged(format!("storage {key} is missing in the file")))?;
        // Twice: the gathered elements and the tensor.
        builder.budget.bytes(elements::byte_len(&shape, item)?.saturating_mul(2))?;
        let rows = elements::gather(data, item.size(), offset, &shape, &strides)?;
        let encoding = Encoding { item, big_endian: self.big_endian, fortran: false };
        Ok(Object::Tensor(elements::tensor(&rows, encoding, &shape)?))
    }
}
