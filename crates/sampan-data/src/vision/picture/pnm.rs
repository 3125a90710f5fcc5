//! PBM, PGM, PPM and PAM: a header in words, then samples as text or as bytes.

use super::{Decoded, Picture, count};

struct Header {
    width: usize,
    height: usize,
    channels: usize,
    max: u32,
}

pub(super) fn decode(bytes: &[u8]) -> Decoded {
    let mut rest = Rest(&bytes[2..]);
    let kind = bytes[1];
    let header = if kind == b'7' { rest.lines()? } else { rest.words(kind)? };
    let Header { width, height, channels, max } = header;
    if !(1..=0xffff).contains(&max) {
        return Err(format!("the greatest sample must be 1 to 65535, it is {max}"));
    }
    let n = count(width, height, channels, 2)?;
    // A text or a bit takes no less than a bit of the file.
    if n / 8 > rest.0.len() {
        return Err("the file is too short".into());
    }
    if kind == b'1' || kind == b'4' {
        // Ones are black.
        let samples = if kind == b'4' { rest.bits(width, height)? } else { rest.digits(n)? };
        return Ok(Picture::of_bytes(width, height, 1, samples.iter().map(|bit| (1 - bit) * 255).collect()));
    }
    let words: Vec<u16> = match (kind, max > 255) {
        (b'2' | b'3', _) => (0..n).map(|_| rest.number()).collect::<Result<_, _>>()?,
        (_, true) => rest.take(n * 2)?.chunks_exact(2).map(|pair| u16::from_be_bytes([pair[0], pair[1]])).collect(),
        (_, false) => rest.take(n)?.iter().map(|&b| b.into()).collect(),
    };
    Ok(if max > 255 {
        Picture::of_words(width, height, channels, words.into_iter().map(|v| scaled(v, max, 65535) as u16).collect())
    } else {
        Picture::of_bytes(width, height, channels, words.into_iter().map(|v| scaled(v, max, 255) as u8).collect())
    })
}

/// A sample of a range as one of the whole range.
fn scaled(v: u16, max: u32, whole: u32) -> f32 {
    if max == whole { v.into() } else { (f32::from(v) * (whole as f32 / max as f32)).round() }
}

/// What of the file has not been read.
struct Rest<'a>(&'a [u8]);

impl<'a> Rest<'a> {
    fn take(&mut self, n: usize) -> Result<&'a [u8], String> {
        let (taken, rest) = self.0.split_at_checked(n).ok_or("the file is too short")?;
        self.0 = rest;
        Ok(taken)
    }

    /// A number of text, and the one blank behind it.
    fn number<T: TryFrom<u32>>(&mut self) -> Result<T, String> {
        self.0 = self.0.trim_ascii_start();
        let end = self.0.iter().position(u8::is_ascii_whitespace).unwrap_or(self.0.len());
        let (word, rest) = self.0.split_at(end);
        self.0 = rest.get(1..).unwrap_or_default();
        let number = std::str::from_utf8(word).ok().and_then(|word| word.parse::<u32>().ok());
        let bad = || format!("a number is expected, it has {:?}", String::from_utf8_lossy(&word[..word.len().min(20)]));
        number.and_then(|n| T::try_from(n).ok()).ok_or_else(bad)
    }

    /// A number of the header: lines that begin with `#` are comments.
    fn named<T: TryFrom<u32>>(&mut self) -> Result<T, String> {
        self.0 = self.0.trim_ascii_start();
        while self.0.first() == Some(&b'#') {
            let end = self.0.iter().position(|b| matches!(b, b'\n' | b'\r')).unwrap_or(self.0.len());
            self.0 = self.0[end..].trim_ascii_start();
        }
        self.number()
    }

    fn words(&mut self, kind: u8) -> Result<Header, String> {
        let (width, height) = (self.named::<u32>()? as usize, self.named::<u32>()? as usize);
        let max = if matches!(kind, b'1' | b'4') { 1 } else { self.named()? };
        Ok(Header { width, height, channels: if matches!(kind, b'3' | b'6') { 3 } else { 1 }, max })
    }

    /// The header of PAM: a word and its value on each line.
    fn lines(&mut self) -> Result<Header, String> {
        let mut found = [None; 4];
        loop {
            let end = self.0.iter().position(|&b| b == b'\n').ok_or("the header has no end")?;
            let line = String::from_utf8_lossy(&self.take(end + 1)?[..end]).trim().to_string();
            let (name, value) = line.split_once(char::is_whitespace).unwrap_or((&line, ""));
            let place = match name {
                "ENDHDR" => break,
                "WIDTH" => 0,
                "HEIGHT" => 1,
                "DEPTH" => 2,
                "MAXVAL" => 3,
                // The number of channels says what they are.
                _ if name.is_empty() || name == "TUPLTYPE" || name.starts_with('#') => continue,
                _ => return Err(format!("the header has an unknown line {name:?}")),
            };
            found[place] = Some(value.trim().parse::<u32>().map_err(|e| format!("{name} {value:?}: {e}"))?);
        }
        let [Some(width), Some(height), Some(channels @ 1..=4), Some(max)] = found else {
            return Err("WIDTH, HEIGHT, DEPTH (1 to 4) and MAXVAL are needed".into());
        };
        Ok(Header { width: width as usize, height: height as usize, channels: channels as usize, max })
    }

    /// Rows of bits, each from the beginning of a byte.
    fn bits(&mut self, width: usize, height: usize) -> Result<Vec<u8>, String> {
        let row = width.div_ceil(8);
        let packed = self.take(row * height)?;
        Ok((0..height).flat_map(|y| (0..width).map(move |x| packed[y * row + x / 8] >> (7 - x % 8) & 1)).collect())
    }

    /// Bits as text, with or without blanks between them.
    fn digits(&mut self, n: usize) -> Result<Vec<u8>, String> {
        let bits = self.0.iter().filter(|b| !b.is_ascii_whitespace()).take(n).map(|b| match b {
            b'0' | b'1' => Ok(b - b'0'),
            _ => Err(format!("a bit is expected, it has {:?}", *b as char)),
        });
        let bits: Vec<u8> = bits.collect::<Result<_, _>>()?;
        if bits.len() == n { Ok(bits) } else { Err("the file is too short".into()) }
    }
}
