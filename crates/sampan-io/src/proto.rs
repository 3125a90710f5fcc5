//! As much of protocol buffers as event files, Paddle's binary files and ONNX need.

use crate::cursor::Cursor;
use crate::fault::{Fault, Parse};

/// A message that is being written.
pub(crate) struct Message(pub Vec<u8>);

impl Message {
    pub fn new() -> Message {
        Message(Vec::new())
    }

    fn varint(&mut self, mut v: u64) {
        while v >= 0x80 {
            self.0.push(v as u8 | 0x80);
            v >>= 7;
        }
        self.0.push(v as u8);
    }

    fn key(&mut self, field: u32, wire: u32) {
        self.varint(u64::from(field << 3 | wire));
    }

    pub fn int(mut self, field: u32, v: i64) -> Message {
        self.key(field, 0);
        self.varint(v as u64);
        self
    }

    pub fn double(mut self, field: u32, v: f64) -> Message {
        self.key(field, 1);
        self.0.extend(v.to_le_bytes());
        self
    }

    pub fn float(mut self, field: u32, v: f32) -> Message {
        self.key(field, 5);
        self.0.extend(v.to_le_bytes());
        self
    }

    pub fn bytes(mut self, field: u32, v: &[u8]) -> Message {
        self.key(field, 2);
        self.varint(v.len() as u64);
        self.0.extend(v);
        self
    }

    pub fn text(self, field: u32, v: &str) -> Message {
        self.bytes(field, v.as_bytes())
    }

    pub fn message(self, field: u32, v: &Message) -> Message {
        self.bytes(field, &v.0)
    }

    pub fn doubles(self, field: u32, v: &[f64]) -> Message {
        let packed: Vec<u8> = v.iter().flat_map(|x| x.to_le_bytes()).collect();
        self.bytes(field, &packed)
    }

    /// A field as it was read.
    pub fn field(mut self, number: u64, field: &Field<'_>) -> Message {
        let wire = match field {
            Field::Varint(_) => 0,
            Field::Fixed64(_) => 1,
            Field::Bytes(_) => 2,
            Field::Fixed32(_) => 5,
        };
        self.varint(number << 3 | wire);
        match field {
            Field::Varint(v) => self.varint(*v),
            Field::Fixed64(v) => self.0.extend(v.to_le_bytes()),
            Field::Bytes(b) => {
                self.varint(b.len() as u64);
                self.0.extend(*b);
            }
            Field::Fixed32(v) => self.0.extend(v.to_le_bytes()),
        }
        self
    }

    /// The fields of another message after these.
    pub fn append(mut self, other: Message) -> Message {
        self.0.extend(other.0);
        self
    }
}

/// The value of a field.
pub(crate) enum Field<'a> {
    Varint(u64),
    Fixed64(u64),
    Bytes(&'a [u8]),
    Fixed32(u32),
}

/// The fields of a message, each with its number; the first error is the last item.
pub(crate) fn fields(message: &[u8]) -> impl Iterator<Item = Parse<(u64, Field<'_>)>> {
    let mut cursor = Cursor::new(message);
    std::iter::from_fn(move || {
        if cursor.remaining() == 0 {
            return None;
        }
        let field = one(&mut cursor);
        if field.is_err() {
            cursor.at = cursor.bytes.len();
        }
        Some(field)
    })
}

fn one<'a>(cursor: &mut Cursor<'a>) -> Parse<(u64, Field<'a>)> {
    let key = varint(cursor)?;
    let value = match key & 7 {
        0 => Field::Varint(varint(cursor)?),
        1 => Field::Fixed64(cursor.u64()?),
        2 => {
            let len = varint(cursor)?;
            Field::Bytes(cursor.take_u64(len)?)
        }
        5 => Field::Fixed32(cursor.u32()?),
        wire => return Err(Fault::damaged(format!("a message has a field of the unknown kind {wire}"))),
    };
    Ok((key >> 3, value))
}

pub(crate) fn varint(cursor: &mut Cursor<'_>) -> Parse<u64> {
    let mut value = 0u64;
    for shift in (0..64).step_by(7) {
        let byte = cursor.u8()?;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Ok(value);
        }
    }
    Err(Fault::damaged("a message has a number that does not end"))
}
