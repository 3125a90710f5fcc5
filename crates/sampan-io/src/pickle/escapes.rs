//! The text forms of strings in protocol 0.

use crate::fault::{Fault, Parse};

fn hex(digits: Option<&[u8]>) -> Parse<u32> {
    let text = digits.and_then(|d| std::str::from_utf8(d).ok());
    let value = text.filter(|t| t.bytes().all(|b| b.is_ascii_hexdigit())).and_then(|t| u32::from_str_radix(t, 16).ok());
    value.ok_or_else(|| Fault::damaged("a broken escape in a text"))
}

/// Latin-1 with `\uXXXX` and `\UXXXXXXXX`; a backslash before anything else stands for itself.
pub(super) fn raw_unicode(line: &[u8]) -> Parse<String> {
    let mut text = String::with_capacity(line.len());
    let mut at = 0;
    while let Some(&byte) = line.get(at) {
        let digits = match (byte, line.get(at + 1)) {
            (b'\\', Some(b'u')) => 4,
            (b'\\', Some(b'U')) => 8,
            _ => {
                text.push(byte as char);
                at += 1;
                continue;
            }
        };
        let code = hex(line.get(at + 2..at + 2 + digits))?;
        text.push(char::from_u32(code).ok_or_else(|| Fault::damaged(format!("{code:#x} is no character")))?);
        at += 2 + digits;
    }
    Ok(text)
}

/// The bytes of a string in quotes with Python's escapes.
pub(super) fn quoted(line: &[u8]) -> Parse<Vec<u8>> {
    let line = line.trim_ascii();
    let inner = match line {
        [b'\'', inner @ .., b'\''] | [b'"', inner @ .., b'"'] => inner,
        _ => return Err(Fault::damaged("a string without quotes")),
    };
    let mut bytes = Vec::with_capacity(inner.len());
    let mut at = 0;
    while let Some(&byte) = inner.get(at) {
        at += 1;
        if byte != b'\\' {
            bytes.push(byte);
            continue;
        }
        let escape = *inner.get(at).ok_or_else(|| Fault::damaged("a string that ends in a backslash"))?;
        at += 1;
        match escape {
            b'\\' | b'\'' | b'"' => bytes.push(escape),
            b'n' => bytes.push(b'\n'),
            b'r' => bytes.push(b'\r'),
            b't' => bytes.push(b'\t'),
            b'a' => bytes.push(7),
            b'b' => bytes.push(8),
            b'v' => bytes.push(11),
            b'f' => bytes.push(12),
            b'x' => {
                bytes.push(hex(inner.get(at..at + 2))? as u8);
                at += 2;
            }
            b'0'..=b'7' => {
                let digits = inner[at - 1..].iter().take(3).take_while(|b| (b'0'..=b'7').contains(b));
                let (n, value) = digits.fold((0, 0u32), |(n, v), d| (n + 1, v * 8 + u32::from(d - b'0')));
                bytes.push(value as u8);
                at += n - 1;
            }
            other => bytes.extend([b'\\', other]),
        }
    }
    Ok(bytes)
}
