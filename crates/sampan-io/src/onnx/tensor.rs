//! ONNX's `TensorProto`.

use crate::cursor::Cursor;
use crate::elements::{self, Encoding, Item};
use crate::fault::{Fault, Parse};
use crate::proto::{self, Field, Message};
use sampan_core::{DType, Tensor};
use std::collections::HashMap;
use std::path::Path;

/// ONNX's numbers of the element types.
const TYPES: [(u64, Item); 15] = [
    (1, Item::Ours(DType::Float32)),
    (2, Item::Ours(DType::UInt8)),
    (3, Item::Ours(DType::Int8)),
    (4, Item::U16),
    (5, Item::Ours(DType::Int16)),
    (6, Item::Ours(DType::Int32)),
    (7, Item::Ours(DType::Int64)),
    (9, Item::Ours(DType::Bool)),
    (10, Item::Ours(DType::Float16)),
    (11, Item::Ours(DType::Float64)),
    (12, Item::U32),
    (13, Item::U64),
    (14, Item::Ours(DType::Complex64)),
    (15, Item::Ours(DType::Complex128)),
    (16, Item::Ours(DType::BFloat16)),
];

/// The files beside a model that hold values, each read once.
pub struct Beside<'a> {
    folder: Option<&'a Path>,
    files: HashMap<String, Vec<u8>>,
    /// The bytes that were given out. Weights do not overlap, so they are no more than there are.
    given: u64,
}

impl<'a> Beside<'a> {
    pub fn new(folder: Option<&'a Path>) -> Beside<'a> {
        Beside { folder, files: HashMap::new(), given: 0 }
    }

    /// Bytes of a file in the folder of the model; nothing else can be asked for.
    fn read(&mut self, name: &str, offset: u64, length: Option<u64>) -> Parse<&[u8]> {
        let folder = self.folder.ok_or_else(|| {
            Fault::unsupported("its values lie in a file beside it")
                .hint("give the path of the file instead of its bytes")
        })?;
        if name.is_empty() || name.contains(['/', '\\']) || name == ".." || name == "." {
            return Err(Fault::unsupported(format!("its values lie in {name:?}, outside the folder of the model")));
        }
        if !self.files.contains_key(name) {
            let bytes = crate::read_file(&folder.join(name)).map_err(|e| e.inside(name))?;
            self.files.insert(name.to_string(), bytes);
        }
        let mut cursor = Cursor::new(&self.files[name]);
        cursor.take_u64(offset).map_err(|e| e.inside(name))?;
        let length = length.unwrap_or(cursor.remaining() as u64);
        self.given = self.given.saturating_add(length);
        if self.given > self.files.values().map(|f| f.len() as u64).sum() {
            return Err(Fault::damaged("more values are asked for than the file holds").inside(name));
        }
        cursor.take_u64(length).map_err(|e| e.inside(name))
    }
}

/// Numbers of a field that is one value or many packed ones.
pub fn varints(field: &Field<'_>, into: &mut Vec<u64>) -> Parse<()> {
    match field {
        Field::Varint(v) => into.push(*v),
        Field::Bytes(packed) => {
            let mut packed = Cursor::new(packed);
            while packed.remaining() > 0 {
                into.push(proto::varint(&mut packed)?);
            }
        }
        _ => {}
    }
    Ok(())
}

/// Does the message stand alone, with its values inside?
pub fn stands_alone(message: &[u8]) -> bool {
    !proto::fields(message).any(|field| matches!(field, Ok((14, Field::Varint(1)))))
}

/// The name and the values of a message.
pub fn read(message: &[u8], beside: &mut Beside<'_>) -> Parse<(String, Tensor)> {
    let (mut dims, mut code, mut name) = (Vec::new(), 0, String::new());
    let (mut raw, mut integers, mut floats, mut doubles) = (None, Vec::new(), Vec::new(), Vec::new());
    let mut external: HashMap<String, String> = HashMap::new();
    let mut is_external = false;
    for field in proto::fields(message) {
        let (number, field) = field?;
        match (number, &field) {
            (1, _) => varints(&field, &mut dims)?,
            (2, Field::Varint(v)) => code = *v,
            (4, Field::Bytes(b)) => floats.extend_from_slice(b),
            (4, Field::Fixed32(v)) => floats.extend(v.to_le_bytes()),
            (5 | 7 | 11, _) => varints(&field, &mut integers)?,
            (8, Field::Bytes(b)) => name = super::text(b)?,
            (9, Field::Bytes(b)) => raw = Some(*b),
            (10, Field::Bytes(b)) => doubles.extend_from_slice(b),
            (10, Field::Fixed64(v)) => doubles.extend(v.to_le_bytes()),
            (13, Field::Bytes(b)) => {
                let (mut key, mut value) = (String::new(), String::new());
                for field in proto::fields(b) {
                    match field? {
                        (1, Field::Bytes(b)) => key = super::text(b)?,
                        (2, Field::Bytes(b)) => value = super::text(b)?,
                        _ => {}
                    }
                }
                external.insert(key, value);
            }
            (14, Field::Varint(v)) => is_external = *v == 1,
            _ => {}
        }
    }
    let inside = |fault: Fault| fault.inside(&name);
    let item = TYPES.iter().find(|(c, _)| *c == code).map(|&(_, item)| item).ok_or_else(|| {
        inside(Fault::unsupported(format!("elements of ONNX's type number {code}, which sampan does not have")))
    })?;
    let shape = elements::shape(dims.iter().map(|&d| d as i64)).map_err(inside)?;
    // Integers travel as varints of their value; a half as one of its bits.
    let widened: Vec<u8>;
    let bytes: &[u8] = if is_external {
        let number = |key: &str| -> Parse<Option<u64>> {
            external
                .get(key)
                .map(|v| v.parse().map_err(|_| inside(Fault::damaged(format!("{key} is {v:?}")))))
                .transpose()
        };
        let location = external.get("location").map_or("", String::as_str);
        beside.read(location, number("offset")?.unwrap_or(0), number("length")?).map_err(inside)?
    } else if let Some(raw) = raw {
        raw
    } else if !floats.is_empty() {
        &floats
    } else if !doubles.is_empty() {
        &doubles
    } else {
        widened = integers.iter().flat_map(|v| v.to_le_bytes().into_iter().take(item.size().min(8))).collect();
        &widened
    };
    let encoding = Encoding { item, big_endian: false, fortran: false };
    let tensor = elements::tensor(bytes, encoding, &shape).map_err(inside)?;
    Ok((name, tensor))
}

/// ONNX's number of a dtype.
pub fn code_of(dtype: DType) -> u64 {
    TYPES.iter().find(|(_, item)| *item == Item::Ours(dtype)).expect("every dtype is listed").0
}

/// The dtype in which elements of ONNX's number are kept.
pub fn dtype_of(code: u64) -> Option<DType> {
    TYPES.iter().find(|(c, _)| *c == code).map(|(_, item)| item.dtype())
}

/// A message without values.
fn head(name: &str, tensor: &Tensor) -> Message {
    let message = tensor.shape().iter().fold(Message::new(), |m, &d| m.int(1, d as i64));
    message.int(2, code_of(tensor.dtype()) as i64).text(8, name)
}

/// A message with the values inside of it.
pub fn write(name: &str, tensor: &Tensor) -> Parse<Message> {
    Ok(head(name, tensor).bytes(9, &elements::bytes_of(tensor)?))
}

/// The values of a model that is written in two files.
pub struct Written {
    /// The name of the second.
    pub name: String,
    pub bytes: Vec<u8>,
}

/// A message whose values go beside the file; small ones stay.
pub fn write_beside(name: &str, tensor: &Tensor, beside: &mut Written) -> Parse<Message> {
    let bytes = elements::bytes_of(tensor)?;
    if bytes.len() < 1024 {
        return write(name, tensor);
    }
    let entry = |key: &str, value: &str| Message::new().text(1, key).text(2, value);
    let (offset, length) = (beside.bytes.len().to_string(), bytes.len().to_string());
    beside.bytes.extend_from_slice(&bytes);
    let message = head(name, tensor).message(13, &entry("location", &beside.name));
    Ok(message.message(13, &entry("offset", &offset)).message(13, &entry("length", &length)).int(14, 1))
}
