//! TFRecord: length, checksum of the length, bytes, checksum of the bytes.

use crate::cursor::Cursor;
use crate::fault::{Fault, Parse};
use std::io::Write;

/// CRC-32C, one byte at a time.
const TABLE: [u32; 256] = {
    let mut table = [0u32; 256];
    let mut i = 0;
    while i < 256 {
        let mut crc = i as u32;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 1 == 1 { crc >> 1 ^ 0x82f6_3b78 } else { crc >> 1 };
            bit += 1;
        }
        table[i] = crc;
        i += 1;
    }
    table
};

/// The checksum, turned and shifted so that a checksum of bytes that hold checksums stays a good one.
fn masked(bytes: &[u8]) -> u32 {
    let crc = !bytes.iter().fold(!0u32, |crc, &b| TABLE[usize::from(crc as u8 ^ b)] ^ crc >> 8);
    crc.rotate_right(15).wrapping_add(0xa282_ead8)
}

/// Writes one record. It goes out in one piece, so that a file never ends within one unless the process was killed.
pub(super) fn write(out: &mut impl Write, bytes: &[u8]) -> Parse<()> {
    let len = (bytes.len() as u64).to_le_bytes();
    let mut record = Vec::with_capacity(bytes.len() + 16);
    record.extend(len);
    record.extend(masked(&len).to_le_bytes());
    record.extend(bytes);
    record.extend(masked(bytes).to_le_bytes());
    Ok(out.write_all(&record)?)
}

/// The records of a file; ends without an error where the last one was cut short.
pub(super) struct Records<'a>(Cursor<'a>);

impl<'a> Records<'a> {
    pub fn new(bytes: &'a [u8]) -> Records<'a> {
        Records(Cursor::new(bytes))
    }

    /// Where the next record begins.
    pub fn position(&self) -> usize {
        self.0.at
    }

    fn read(&mut self) -> Parse<Option<&'a [u8]>> {
        let (at, cursor) = (self.0.at, &mut self.0);
        if cursor.remaining() < 12 {
            return Ok(None);
        }
        let len: [u8; 8] = cursor.array()?;
        if cursor.u32()? != masked(&len) {
            return Err(Fault::damaged("the checksum of a record's length does not fit").at(at));
        }
        let len = u64::from_le_bytes(len);
        if len.saturating_add(4) > cursor.remaining() as u64 {
            return Ok(None);
        }
        let bytes = cursor.take_u64(len)?;
        if cursor.u32()? != masked(bytes) {
            return Err(Fault::damaged("the checksum of a record does not fit").at(at));
        }
        Ok(Some(bytes))
    }
}

impl<'a> Iterator for Records<'a> {
    type Item = Parse<&'a [u8]>;
    fn next(&mut self) -> Option<Parse<&'a [u8]>> {
        let record = self.read().transpose();
        if !matches!(record, Some(Ok(_))) {
            self.0.at = self.0.bytes.len();
        }
        record
    }
}
