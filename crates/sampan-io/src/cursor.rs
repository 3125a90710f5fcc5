//! Reading bytes that may be cut short, and a limit on what they may ask for.

use crate::fault::{Fault, Parse};

/// A place in bytes; every read checks that they are there.
pub(crate) struct Cursor<'a> {
    pub bytes: &'a [u8],
    pub at: usize,
}

macro_rules! numbers {
    ($($name:ident: $t:ty),*) => { $(
        /// A little-endian number.
        pub fn $name(&mut self) -> Parse<$t> {
            Ok(<$t>::from_le_bytes(self.array()?))
        }
    )* };
}

impl<'a> Cursor<'a> {
    pub fn new(bytes: &'a [u8]) -> Cursor<'a> {
        Cursor { bytes, at: 0 }
    }

    pub fn remaining(&self) -> usize {
        self.bytes.len() - self.at
    }

    pub fn take(&mut self, n: usize) -> Parse<&'a [u8]> {
        if n > self.remaining() {
            let left = self.remaining();
            return Err(Fault::damaged(format!("{n} bytes are announced, {left} are left")).at(self.at));
        }
        self.at += n;
        Ok(&self.bytes[self.at - n..self.at])
    }

    pub fn array<const N: usize>(&mut self) -> Parse<[u8; N]> {
        Ok(self.take(N)?.try_into().expect("take gives what was asked for"))
    }

    /// Bytes whose number is a 64-bit count.
    pub fn take_u64(&mut self, n: u64) -> Parse<&'a [u8]> {
        let at = self.at;
        let n = usize::try_from(n).map_err(|_| Fault::damaged(format!("{n} bytes are announced")).at(at))?;
        self.take(n)
    }

    /// The bytes up to a line feed, which is skipped.
    pub fn line(&mut self) -> Parse<&'a [u8]> {
        let rest = &self.bytes[self.at..];
        let end = rest.iter().position(|&b| b == b'\n');
        let end = end.ok_or_else(|| Fault::damaged("the file ends within a line").at(self.at))?;
        self.at += end + 1;
        Ok(&rest[..end])
    }

    numbers! { u8: u8, u16: u16, u32: u32, u64: u64, i32: i32 }
}

/// How much a file may still ask for. Without it a few bytes that refer to each other again and again could ask for more
/// memory than any machine has.
pub(crate) struct Budget {
    bytes: usize,
    values: usize,
}

impl Budget {
    /// Enough for every honest file of a length.
    pub fn for_input(len: usize) -> Budget {
        Budget {
            bytes: len.saturating_mul(8).saturating_add(16 << 20),
            values: len.saturating_mul(2).saturating_add(1 << 20),
        }
    }

    /// One more value.
    pub fn value(&mut self) -> Parse<()> {
        self.values = self.values.checked_sub(1).ok_or_else(|| exhausted("values"))?;
        Ok(())
    }

    /// So many bytes more.
    pub fn bytes(&mut self, n: usize) -> Parse<()> {
        self.bytes = self.bytes.checked_sub(n).ok_or_else(|| exhausted("bytes"))?;
        Ok(())
    }
}

fn exhausted(what: &str) -> Fault {
    Fault::damaged(format!("what the file describes has far more {what} than the file itself"))
}
