//! NumPy's `.npy` (versions 1 to 3) and `.npz`.
//!
//! bfloat16, which NumPy lacks, is written as raw pairs of bytes (`V2`): `array.view(np.uint16)` has its bits. Unsigned
//! types that sampan lacks are read into the next wider signed one. A dict, which `numpy.save` writes as a pickle behind the
//! usual header, is read and written as well.

use crate::cursor::Cursor;
use crate::elements::{self, Encoding, Item};
use crate::fault::{Fault, Parse};
use crate::pickle::{self, Builder};
use crate::zip::{Archive, Writer};
use crate::{Object, atomic, read_file};
use sampan_core::{Result, Tensor};
use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;

pub(crate) const MAGIC: &[u8] = b"\x93NUMPY";

/// Reads a `.npy` file.
pub fn load(path: impl AsRef<Path>) -> Result<Tensor> {
    let path = path.as_ref();
    let read = || decode(&read_file(path)?);
    read().map_err(|e| e.into_error("load", "npy", Some(path)))
}

/// Reads a `.npy` file in memory.
pub fn from_bytes(bytes: &[u8]) -> Result<Tensor> {
    decode(bytes).map_err(|e| e.into_error("load", "npy", None))
}

/// Writes a `.npy` file.
pub fn save(path: impl AsRef<Path>, tensor: &Tensor) -> Result<()> {
    let path = path.as_ref();
    atomic::replace(path, |out| encode(out, tensor)).map_err(|e| e.into_error("save", "npy", Some(path)))
}

/// A `.npy` file in memory.
pub fn to_bytes(tensor: &Tensor) -> Result<Vec<u8>> {
    let mut out = Vec::new();
    encode(&mut out, tensor).map_err(|e| e.into_error("save", "npy", None))?;
    Ok(out)
}

/// Writes any value as `numpy.save` writes what is no array, such as a dict of arrays: `numpy.load(path,
/// allow_pickle=True).item()` gives it back.
pub fn save_object(path: impl AsRef<Path>, object: &Object) -> Result<()> {
    let path = path.as_ref();
    let write = |out: &mut dyn Write| -> Parse<()> {
        write_header(out, "|O", "")?;
        let mut writer = pickle::write::Writer::new(out, 4, pickle::write::Tensors::Arrays)?;
        writer.only(object)?;
        writer.finish()
    };
    atomic::replace(path, |out| write(out)).map_err(|e| e.into_error("save", "npy", Some(path)))
}

/// Reads a `.npz` archive.
pub fn load_npz(path: impl AsRef<Path>) -> Result<BTreeMap<String, Tensor>> {
    let path = path.as_ref();
    let read = || decode_npz(&read_file(path)?);
    read().map_err(|e| e.into_error("load", "npz", Some(path)))
}

/// Reads a `.npz` archive in memory.
pub fn npz_from_bytes(bytes: &[u8]) -> Result<BTreeMap<String, Tensor>> {
    decode_npz(bytes).map_err(|e| e.into_error("load", "npz", None))
}

/// Writes a `.npz` archive, like `numpy.savez` or, if `compressed`, `numpy.savez_compressed`.
pub fn save_npz(path: impl AsRef<Path>, tensors: &BTreeMap<String, Tensor>, compressed: bool) -> Result<()> {
    let path = path.as_ref();
    let written = atomic::replace(path, |out| encode_npz(out, tensors, compressed));
    written.map_err(|e| e.into_error("save", "npz", Some(path)))
}

/// A `.npz` archive in memory.
pub fn npz_to_bytes(tensors: &BTreeMap<String, Tensor>, compressed: bool) -> Result<Vec<u8>> {
    let mut out = Vec::new();
    encode_npz(&mut out, tensors, compressed).map_err(|e| e.into_error("save", "npz", None))?;
    Ok(out)
}

/// Element type, order and shape of an array, and where its data begins.
pub(crate) struct Header {
    pub encoding: Encoding,
    pub shape: Vec<usize>,
    pub data: usize,
}

/// Reads the header alone; `bytes` may end after it.
pub(crate) fn header(bytes: &[u8]) -> Parse<Header> {
    let mut cursor = Cursor::new(bytes);
    if cursor.take(6)? != MAGIC {
        return Err(Fault::damaged("it does not begin as a .npy file does"));
    }
    let (major, minor) = (cursor.u8()?, cursor.u8()?);
    let len = match major {
        1 => usize::from(cursor.u16()?),
        2 | 3 => cursor.u32()? as usize,
        _ => return Err(Fault::unsupported(format!("version {major}.{minor}; 1, 2 and 3 are known"))),
    };
    let start = cursor.at;
    let text = cursor.take(len)?;
    let text = std::str::from_utf8(text).map_err(|_| Fault::damaged("the header is no text").at(start))?;
    let mut literal = Literal { text, at: 0 };
    let (encoding, shape) = literal.header().map_err(|e| e.at(start + literal.at))?;
    Ok(Header { encoding, shape, data: start + len })
}

/// Where the pickle begins, if the file holds Python's objects and no numbers.
pub(crate) fn pickled(bytes: &[u8]) -> Option<usize> {
    let mut cursor = Cursor::new(bytes);
    let magic = cursor.take(6).ok()?;
    let (major, _) = (cursor.u8().ok()?, cursor.u8().ok()?);
    let len = if major == 1 { usize::from(cursor.u16().ok()?) } else { cursor.u32().ok()? as usize };
    let start = cursor.at;
    let text = std::str::from_utf8(cursor.take(len).ok()?).ok()?;
    (magic == MAGIC && (text.contains("'|O'") || text.contains("'O'"))).then_some(start + len)
}

/// An array, or the value that `numpy.save` pickled.
pub(crate) fn decode_any(bytes: &[u8]) -> Parse<Object> {
    let Some(start) = pickled(bytes) else { return decode(bytes).map(Object::from) };
    let data = &bytes[start..];
    let read = || {
        let pickle = pickle::parse::parse(data, 0)?;
        let items = pickle::numpy::objects(&pickle, pickle.root)?;
        let mut builder = Builder::new(&pickle, data.len());
        match items[..] {
            [one] => builder.build(one),
            _ => Err(Fault::unsupported(format!(
                "an array of {} Python objects; a dict of arrays would be read",
                items.len()
            ))
            .hint("save the arrays in one .npz, or as a dict")),
        }
    };
    read().map_err(|e| e.at(start))
}

pub(crate) fn decode(bytes: &[u8]) -> Parse<Tensor> {
    let header = header(bytes)?;
    let data = &bytes[header.data..];
    let want = elements::byte_len(&header.shape, header.encoding.item)?;
    if data.len() > want {
        let more = data.len() - want;
        return Err(Fault::unsupported(format!("{more} bytes follow the array: several arrays in one file?"))
            .hint("save each array in a file of its own, or all in one .npz"));
    }
    elements::tensor(data, header.encoding, &header.shape).map_err(|e| e.at(header.data))
}

fn encode(out: &mut impl Write, tensor: &Tensor) -> Parse<()> {
    let data = elements::bytes_of(tensor)?;
    let order = if tensor.dtype().size() == 1 { '|' } else { '<' };
    let code = Item::numpy_code(tensor.dtype());
    let dims: String = tensor.shape().iter().map(|d| format!("{d}, ")).collect();
    // Python writes a tuple of one with a comma and longer ones without.
    let dims = if tensor.ndim() == 1 { dims.trim_end() } else { dims.trim_end_matches(", ") };
    write_header(out, &format!("{order}{code}"), dims)?;
    Ok(out.write_all(&data)?)
}

fn write_header(out: &mut (impl Write + ?Sized), descr: &str, dims: &str) -> Parse<()> {
    let mut text = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ({dims}), }}");
    // The data begin at a multiple of 64.
    while (10 + text.len() + 1) % 64 != 0 {
        text.push(' ');
    }
    text.push('\n');
    let len = u16::try_from(text.len()).map_err(|_| Fault::unsupported("a shape too long for a header"))?;
    out.write_all(MAGIC)?;
    out.write_all(&[1, 0])?;
    out.write_all(&len.to_le_bytes())?;
    Ok(out.write_all(text.as_bytes())?)
}

pub(crate) fn decode_npz(bytes: &[u8]) -> Parse<BTreeMap<String, Tensor>> {
    let archive = Archive::open(bytes)?;
    let mut tensors = BTreeMap::new();
    for member in &archive.members {
        let Some(name) = member.name.strip_suffix(".npy") else {
            return Err(Fault::unsupported(format!("{} in the archive is no array", member.name)));
        };
        let tensor = decode(&archive.read(member, true)?).map_err(|e| e.inside(name))?;
        if tensors.insert(name.to_string(), tensor).is_some() {
            return Err(Fault::damaged(format!("{name} is in the archive twice")));
        }
    }
    Ok(tensors)
}

fn encode_npz(out: &mut impl Write, tensors: &BTreeMap<String, Tensor>, compressed: bool) -> Parse<()> {
    let mut archive = Writer::new(out);
    for (name, tensor) in tensors {
        let mut contents = Vec::new();
        encode(&mut contents, tensor).map_err(|e| e.inside(name))?;
        archive.member(&format!("{name}.npy"), &contents, compressed)?;
    }
    archive.finish()
}

/// The header: a Python dict in text.
struct Literal<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Literal<'a> {
    fn header(&mut self) -> Parse<(Encoding, Vec<usize>)> {
        let (mut descr, mut fortran, mut shape) = (None, None, None);
        self.want('{')?;
        while !self.eat('}') {
            let key = self.string()?;
            self.want(':')?;
            match key {
                "descr" => descr = Some(self.descr()?),
                "fortran_order" => fortran = Some(self.truth()?),
                "shape" => shape = Some(elements::shape(self.ints()?)?),
                other => return Err(Fault::damaged(format!("the header has an unknown entry {other:?}"))),
            }
            if !self.eat(',') {
                self.want('}')?;
                break;
            }
        }
        let (Some((item, big_endian)), Some(fortran), Some(shape)) = (descr, fortran, shape) else {
            return Err(Fault::damaged("the header does not say descr, fortran_order and shape"));
        };
        Ok((Encoding { item, big_endian, fortran }, shape))
    }

    fn rest(&mut self) -> &'a str {
        let rest = &self.text[self.at..];
        let trimmed = rest.trim_start();
        self.at += rest.len() - trimmed.len();
        trimmed
    }

    fn eat(&mut self, c: char) -> bool {
        let found = self.rest().starts_with(c);
        self.at += if found { c.len_utf8() } else { 0 };
        found
    }

    fn want(&mut self, c: char) -> Parse<()> {
        if self.eat(c) { Ok(()) } else { Err(Fault::damaged(format!("{c:?} is missing in the header"))) }
    }

    fn string(&mut self) -> Parse<&'a str> {
        let rest = self.rest();
        let quote = rest.chars().next().filter(|c| matches!(c, '\'' | '"'));
        let quote = quote.ok_or_else(|| Fault::damaged("the header has no text where one should be"))?;
        let end = rest[1..].find(quote).ok_or_else(|| Fault::damaged("the header ends within a text"))?;
        self.at += end + 2;
        Ok(&rest[1..=end])
    }

    fn truth(&mut self) -> Parse<bool> {
        for (word, value) in [("True", true), ("False", false)] {
            if self.rest().starts_with(word) {
                self.at += word.len();
                return Ok(value);
            }
        }
        Err(Fault::damaged("fortran_order is neither True nor False"))
    }

    fn ints(&mut self) -> Parse<Vec<i64>> {
        let mut values = Vec::new();
        self.want('(')?;
        while !self.eat(')') {
            let rest = self.rest();
            let len = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
            let value = rest[..len].parse().map_err(|_| Fault::damaged("the shape has something else than numbers"))?;
            values.push(value);
            self.at += len;
            // Python 2 wrote long numbers so.
            self.eat('L');
            if !self.eat(',') {
                self.want(')')?;
                break;
            }
        }
        Ok(values)
    }

    fn descr(&mut self) -> Parse<(Item, bool)> {
        if self.rest().starts_with('[') {
            return Err(Fault::unsupported("an array of structures; sampan has arrays of numbers only"));
        }
        let descr = self.string()?;
        let item = Item::from_numpy(descr.trim_start_matches(['<', '>', '|', '=']))?;
        Ok((item, descr.starts_with('>')))
    }
}
