//! Zip archives, as far as `.npz` and `.pth` need them: stored or deflated members, archives beyond 4 GB.

use crate::cursor::Cursor;
use crate::fault::{Fault, Parse};
use flate2::Compression;
use flate2::read::DeflateDecoder;
use flate2::write::DeflateEncoder;
use std::borrow::Cow;
use std::io::{Read, Write};

const LOCAL: u32 = 0x0403_4b50;
const CENTRAL: u32 = 0x0201_4b50;
const END: u32 = 0x0605_4b50;
const END64: u32 = 0x0606_4b50;
const LOCATOR64: u32 = 0x0706_4b50;
/// Deflate makes at most so many bytes of one.
const MAX_RATIO: u64 = 1032;

/// One file in an archive.
#[derive(Debug)]
pub(crate) struct Member {
    pub name: String,
    pub size: u64,
    stored: u64,
    crc: u32,
    method: u16,
    header: u64,
}

/// An archive in memory.
pub(crate) struct Archive<'a> {
    bytes: &'a [u8],
    pub members: Vec<Member>,
}

impl<'a> Archive<'a> {
    /// Does it look like one?
    pub fn is(bytes: &[u8]) -> bool {
        bytes.starts_with(b"PK\x03\x04") || bytes.starts_with(b"PK\x05\x06")
    }

    /// Reads the list of members.
    pub fn open(bytes: &'a [u8]) -> Parse<Archive<'a>> {
        let (count, start) = directory(bytes)?;
        let mut cursor = Cursor { bytes, at: start };
        let mut members = Vec::new();
        let mut total = 0u64;
        for _ in 0..count {
            let member = central(&mut cursor)?;
            // Members that overlap could unfold the same bytes again and again.
            total = total.saturating_add(member.stored);
            if total > bytes.len() as u64 {
                return Err(Fault::damaged(format!("{}: the members are larger than the archive", member.name)));
            }
            members.push(member);
        }
        Ok(Archive { bytes, members })
    }

    /// The contents of a member. Some writers leave the checksum out, so it is looked at only if asked for.
    pub fn read(&self, member: &Member, check: bool) -> Parse<Cow<'a, [u8]>> {
        self.unpack(member, check).map_err(|e| e.inside(&member.name))
    }

    fn unpack(&self, member: &Member, check: bool) -> Parse<Cow<'a, [u8]>> {
        let at = usize::try_from(member.header).ok().filter(|&at| at <= self.bytes.len());
        let mut cursor =
            Cursor { bytes: self.bytes, at: at.ok_or_else(|| Fault::damaged("it lies outside the archive"))? };
        expect(&mut cursor, LOCAL, "the header of a member")?;
        cursor.take(22)?;
        let (name, extra) = (cursor.u16()?, cursor.u16()?);
        cursor.take(usize::from(name) + usize::from(extra))?;
        let data = cursor.take_u64(member.stored)?;
        let contents = match member.method {
            0 if member.size == member.stored => Cow::Borrowed(data),
            0 => return Err(Fault::damaged("it is stored, but with two sizes")),
            8 if member.size / MAX_RATIO > member.stored => {
                return Err(Fault::damaged(format!("{} bytes cannot unfold to {}", member.stored, member.size)));
            }
            8 => {
                let mut out = Vec::new();
                let mut decoder = DeflateDecoder::new(data).take(member.size.saturating_add(1));
                decoder.read_to_end(&mut out).map_err(|e| Fault::damaged(format!("it does not unpack: {e}")))?;
                if out.len() as u64 != member.size {
                    return Err(Fault::damaged(format!("it has not the {} bytes it should have", member.size)));
                }
                Cow::Owned(out)
            }
            method => return Err(Fault::unsupported(format!("zip method {method}; stored and deflated are known"))),
        };
        if check && crc32fast::hash(&contents) != member.crc {
            return Err(Fault::damaged("its checksum does not fit: the file is damaged"));
        }
        Ok(contents)
    }
}

fn expect(cursor: &mut Cursor<'_>, signature: u32, what: &str) -> Parse<()> {
    let at = cursor.at;
    if cursor.u32()? != signature {
        return Err(Fault::damaged(format!("{what} is not where it should be")).at(at));
    }
    Ok(())
}

/// The number of members and where their list starts.
fn directory(bytes: &[u8]) -> Parse<(u64, usize)> {
    // The end record is followed by a comment of at most 65535 bytes.
    let last = bytes.len().checked_sub(22).ok_or_else(|| Fault::damaged("too short for a zip archive"))?;
    let first = last.saturating_sub(0xffff);
    let end = (first..=last).rev().find(|&at| bytes[at..].starts_with(&END.to_le_bytes()));
    let end = end.ok_or_else(|| Fault::damaged("the archive has no end: it was cut short"))?;
    let mut cursor = Cursor { bytes, at: end + 10 };
    let (mut count, size, mut start) = (u64::from(cursor.u16()?), cursor.u32()?, u64::from(cursor.u32()?));
    if count == 0xffff || size == u32::MAX || start == u64::from(u32::MAX) {
        let locator = end.checked_sub(20).ok_or_else(|| Fault::damaged("the end of a large archive is missing"))?;
        let mut cursor = Cursor { bytes, at: locator };
        expect(&mut cursor, LOCATOR64, "the end of a large archive")?;
        cursor.u32()?;
        let at = usize::try_from(cursor.u64()?).ok().filter(|&at| at <= bytes.len());
        let mut cursor =
            Cursor { bytes, at: at.ok_or_else(|| Fault::damaged("the archive's end lies outside of it"))? };
        expect(&mut cursor, END64, "the end of a large archive")?;
        cursor.take(28)?;
        count = cursor.u64()?;
        cursor.u64()?;
        start = cursor.u64()?;
    }
    let start = usize::try_from(start).ok().filter(|&at| at <= bytes.len());
    Ok((count, start.ok_or_else(|| Fault::damaged("the archive's list of members lies outside of it"))?))
}

fn central(cursor: &mut Cursor<'_>) -> Parse<Member> {
    expect(cursor, CENTRAL, "an entry of the archive's list")?;
    cursor.take(4)?;
    let flags = cursor.u16()?;
    let method = cursor.u16()?;
    cursor.take(4)?;
    let crc = cursor.u32()?;
    let (mut stored, mut size) = (u64::from(cursor.u32()?), u64::from(cursor.u32()?));
    let (name, extra, comment) = (cursor.u16()?, cursor.u16()?, cursor.u16()?);
    cursor.take(8)?;
    let mut header = u64::from(cursor.u32()?);
    let name = String::from_utf8_lossy(cursor.take(name.into())?).into_owned();
    if flags & 1 != 0 {
        return Err(Fault::unsupported(format!("{name}: the member is encrypted")));
    }
    let mut extras = Cursor::new(cursor.take(extra.into())?);
    cursor.take(comment.into())?;
    while extras.remaining() >= 4 {
        let (id, len) = (extras.u16()?, extras.u16()?);
        let mut field = Cursor::new(extras.take(len.into())?);
        if id == 1 {
            for value in [&mut size, &mut stored, &mut header] {
                if *value == u64::from(u32::MAX) {
                    *value = field.u64()?;
                }
            }
        }
    }
    Ok(Member { name, size, stored, crc, method, header })
}

/// Writes an archive, member by member.
pub(crate) struct Writer<W: Write> {
    out: W,
    at: u64,
    list: Vec<u8>,
    count: u64,
}

impl<W: Write> Writer<W> {
    pub fn new(out: W) -> Writer<W> {
        Writer { out, at: 0, list: Vec::new(), count: 0 }
    }

    fn put(&mut self, bytes: &[u8]) -> Parse<()> {
        self.at += bytes.len() as u64;
        Ok(self.out.write_all(bytes)?)
    }

    /// Adds a file.
    pub fn member(&mut self, name: &str, contents: &[u8], deflate: bool) -> Parse<()> {
        self.place(name, contents, deflate, 1)
    }

    /// Adds a file as it is, which starts at a multiple of `align` bytes, for readers that map archives into memory.
    pub fn aligned(&mut self, name: &str, contents: &[u8], align: u64) -> Parse<()> {
        self.place(name, contents, false, align)
    }

    fn place(&mut self, name: &str, contents: &[u8], deflate: bool, align: u64) -> Parse<()> {
        let name_len = u16::try_from(name.len()).map_err(|_| Fault::unsupported("a name of more than 65535 bytes"))?;
        let crc = crc32fast::hash(contents);
        let packed = if deflate {
            let mut encoder = DeflateEncoder::new(Vec::new(), Compression::default());
            encoder.write_all(contents)?;
            Cow::Owned(encoder.finish()?)
        } else {
            Cow::Borrowed(contents)
        };
        let header = self.at;
        // Sizes always stand in the 64-bit field, as NumPy does it: one form for small and large.
        let sizes = [contents.len() as u64, packed.len() as u64].map(u64::to_le_bytes).concat();
        let common = |extra: u16| -> Vec<u8> {
            let utf8 = if name.is_ascii() { 0u16 } else { 1 << 11 };
            let mut h = Vec::new();
            h.extend(45u16.to_le_bytes());
            h.extend(utf8.to_le_bytes());
            h.extend(if deflate { 8u16 } else { 0 }.to_le_bytes());
            // The first day a zip archive can name: the same tensors give the same file.
            h.extend([0, 0, 0x21, 0]);
            h.extend(crc.to_le_bytes());
            h.extend([0xff; 8]);
            h.extend(name_len.to_le_bytes());
            h.extend(extra.to_le_bytes());
            h
        };
        // Space in an extra field, whose head takes four bytes; "FB" is PyTorch's mark for it.
        let padding = if align > 1 {
            let data = header + 30 + name.len() as u64 + 20 + 4;
            let mut field = vec![b'F', b'B', 0, 0];
            field.resize(4 + (align - data % align) as usize % align as usize, 0);
            field[2] = (field.len() - 4) as u8;
            field
        } else {
            Vec::new()
        };
        let mut local = LOCAL.to_le_bytes().to_vec();
        local.extend(common(20 + padding.len() as u16));
        local.extend(name.as_bytes());
        local.extend([1, 0, 16, 0]);
        local.extend(&sizes);
        local.extend(&padding);
        self.put(&local)?;
        self.put(&packed)?;

        self.list.extend(CENTRAL.to_le_bytes());
        self.list.extend(45u16.to_le_bytes());
        self.list.extend(common(28));
        self.list.extend([0; 10]);
        self.list.extend([0xff; 4]);
        self.list.extend(name.as_bytes());
        self.list.extend([1, 0, 24, 0]);
        self.list.extend(&sizes);
        self.list.extend(header.to_le_bytes());
        self.count += 1;
        Ok(())
    }

    /// Writes the list of members.
    pub fn finish(mut self) -> Parse<()> {
        let (start, size, count) = (self.at, self.list.len() as u64, self.count);
        let list = std::mem::take(&mut self.list);
        self.put(&list)?;
        let large = count >= 0xffff || size >= u64::from(u32::MAX) || start >= u64::from(u32::MAX);
        let mut end = Vec::new();
        if large {
            end.extend(END64.to_le_bytes());
            end.extend(44u64.to_le_bytes());
            end.extend([45, 0, 45, 0]);
            end.extend([0; 8]);
            end.extend([count, count, size, start].map(u64::to_le_bytes).concat());
            end.extend(LOCATOR64.to_le_bytes());
            end.extend([0; 4]);
            end.extend(self.at.to_le_bytes());
            end.extend(1u32.to_le_bytes());
        }
        let short = |v: u64| if large { u32::MAX } else { v as u32 };
        end.extend(END.to_le_bytes());
        end.extend([0; 4]);
        end.extend([short(count) as u16; 2].map(u16::to_le_bytes).concat());
        end.extend([short(size), short(start)].map(u32::to_le_bytes).concat());
        end.extend([0; 2]);
        self.put(&end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// More members than 16 bits count: the end of the archive takes its 64-bit form.
    #[test]
    fn many_members() {
        let mut bytes = Vec::new();
        let mut writer = Writer::new(&mut bytes);
        (0..70_000)
            .for_each(|i| writer.member(&i.to_string(), if i == 69_999 { b"last" } else { b"" }, false).unwrap());
        writer.finish().unwrap();
        let archive = Archive::open(&bytes).unwrap();
        assert_eq!(archive.members.len(), 70_000);
        assert_eq!(*archive.read(&archive.members[69_999], true).unwrap(), *b"last");
    }
}
