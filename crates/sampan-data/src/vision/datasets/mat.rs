//! Arrays of numbers in MATLAB's file format, version 5.

use flate2::read::ZlibDecoder;
use sampan_core::{Error, Result};
use std::collections::BTreeMap;
use std::io::Read;

/// No label file comes near this size; a hostile one stops there.
const MOST: u64 = 1 << 28;
const COMPRESSED: u32 = 15;
const MATRIX: u32 = 14;

/// All arrays of numbers in the file by name, each in the order it is stored.
pub(super) fn read(bytes: &[u8]) -> Result<BTreeMap<String, Vec<f64>>> {
    let header = bytes.get(..128).ok_or_else(|| bad("it is shorter than a header"))?;
    if &header[126..128] != b"IM" {
        return Err(bad("expected version 5 in little-endian order"));
    }
    let mut arrays = BTreeMap::new();
    let mut rest = &bytes[128..];
    while !rest.is_empty() {
        let (kind, data) = element(&mut rest)?;
        let unpacked;
        let matrix = match kind {
            COMPRESSED => {
                let mut plain = Vec::new();
                let read = ZlibDecoder::new(data).take(MOST).read_to_end(&mut plain);
                read.map_err(|e| bad(format!("zlib: {e}")))?;
                unpacked = plain;
                let mut inner = unpacked.as_slice();
                match element(&mut inner)? {
                    (MATRIX, data) => data,
                    _ => continue,
                }
            }
            MATRIX => data,
            _ => continue,
        };
        let (name, values) = array(matrix)?;
        arrays.insert(name, values);
    }
    Ok(arrays)
}

fn bad(why: impl std::fmt::Display) -> Error {
    Error::invalid(format!("not a MATLAB file that can be read: {why}"))
}

/// Takes the type and the bytes of the next element.
fn element<'a>(rest: &mut &'a [u8]) -> Result<(u32, &'a [u8])> {
    let word = |at: usize| rest.get(at..at + 4).map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]]));
    let short = || bad("an element is cut short");
    let tag = word(0).ok_or_else(short)?;
    // Up to four bytes of data may stand in the tag itself.
    let (kind, start, size, padded) = match tag >> 16 {
        0 => {
            let size = word(4).ok_or_else(short)? as usize;
            // All but compressed elements fill up to 8 bytes.
            (tag, 8, size, if tag == COMPRESSED { size } else { size.next_multiple_of(8) })
        }
        size => (tag & 0xffff, 4, size as usize, 4),
    };
    let data = rest.get(start..start + size).ok_or_else(short)?;
    *rest = &rest[(start + padded).min(rest.len())..];
    Ok((kind, data))
}

fn array(mut matrix: &[u8]) -> Result<(String, Vec<f64>)> {
    let _flags = element(&mut matrix)?;
    let _extents = element(&mut matrix)?;
    let (_, name) = element(&mut matrix)?;
    let (kind, data) = element(&mut matrix)?;
    macro_rules! numbers {
        ($t:ty) => {
            data.chunks_exact(size_of::<$t>())
                .map(|b| <$t>::from_le_bytes(b.try_into().expect("exact")) as f64)
                .collect()
        };
    }
    let values = match kind {
        1 => numbers!(i8),
        2 => numbers!(u8),
        3 => numbers!(i16),
        4 => numbers!(u16),
        5 => numbers!(i32),
        6 => numbers!(u32),
        7 => numbers!(f32),
        9 => numbers!(f64),
        other => return Err(bad(format!("an array holds values of type {other}"))),
    };
    Ok((String::from_utf8_lossy(name).into_owned(), values))
}
