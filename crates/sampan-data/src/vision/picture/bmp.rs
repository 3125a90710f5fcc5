//! BMP: rows from the bottom, as colours, as numbers of colours in a palette, or as runs of such numbers.

use super::{Decoded, Picture, count};

/// Which bits of a pixel are a channel.
#[derive(Clone, Copy)]
struct Mask {
    shift: u32,
    len: u32,
}

impl Mask {
    fn new(mask: u32) -> Result<Mask, String> {
        let shift = if mask == 0 { 0 } else { mask.trailing_zeros() };
        let len = mask.count_ones();
        if mask != 0 && mask >> shift != u32::MAX >> (32 - len) {
            return Err(format!("the bits of a channel do not lie together: {mask:#x}"));
        }
        // Of more than 8 bits the highest count.
        Ok(Mask { shift: shift + len.saturating_sub(8), len: len.min(8) })
    }

    /// The channel of a pixel, stretched to a byte.
    fn read(self, pixel: u32) -> u8 {
        let max = (1 << self.len) - 1;
        let v = pixel >> self.shift & max;
        if max == 0 { 255 } else { ((v * 255 * 2 + max) / (max * 2)) as u8 }
    }
}

struct File<'a> {
    bytes: &'a [u8],
    width: usize,
    height: usize,
    bits: usize,
    palette: Vec<[u8; 3]>,
    /// The rows as they lie in the file.
    data: &'a [u8],
}

const SHORT: &str = "the file is too short";

fn word(bytes: &[u8], at: usize) -> Result<u32, String> {
    let found = bytes.get(at..at + 4).and_then(|b| b.try_into().ok());
    found.map(u32::from_le_bytes).ok_or_else(|| SHORT.into())
}

fn half(bytes: &[u8], at: usize) -> Result<u32, String> {
    word(bytes, at & !1).map(|v| v & 0xffff)
}

pub(super) fn decode(bytes: &[u8]) -> Decoded {
    let size = word(bytes, 14)? as usize;
    let old = size == 12;
    if !matches!(size, 12 | 40 | 52 | 56 | 108 | 124) {
        return Err(format!("a header of {size} bytes is not known"));
    }
    let (width, height, bits) = if old {
        (half(bytes, 18)? as i32, half(bytes, 20)? as i32, half(bytes, 24)?)
    } else {
        (word(bytes, 18)? as i32, word(bytes, 22)? as i32, half(bytes, 28)?)
    };
    if half(bytes, if old { 22 } else { 26 })? != 1 {
        return Err("it has more than one plane".into());
    }
    let (compression, colours) = if old { (0, 0) } else { (word(bytes, 30)?, word(bytes, 46)?) };
    let from_top = height < 0;
    if !(1..=0xffff).contains(&width) || !(1..=0xffff).contains(&height.unsigned_abs()) {
        return Err(format!("a picture of {width} times {height} pixels is not possible"));
    }
    let (width, height) = (width as usize, height.unsigned_abs() as usize);
    let data = bytes.get(word(bytes, 10)? as usize..).ok_or(SHORT)?;
    let mut file = File { bytes, width, height, bits: bits as usize, palette: Vec::new(), data };
    let mut rows = match (compression, bits) {
        (0, 1 | 2 | 4 | 8) => {
            file.read_palette(14 + size, if old { 3 } else { 4 }, colours)?;
            file.indexed()?
        }
        (1, 8) | (2, 4) if !from_top => {
            file.read_palette(14 + size, 4, colours)?;
            file.runs()?
        }
        (0, 16) => file.masked([0x7c00, 0x3e0, 0x1f, 0])?,
        (0, 24) => file.plain()?,
        (0, 32) => file.masked([0xff0000, 0xff00, 0xff, 0])?,
        (3, 16 | 32) => {
            let alpha = if size >= 56 { word(bytes, 66)? } else { 0 };
            file.masked([word(bytes, 54)?, word(bytes, 58)?, word(bytes, 62)?, alpha])?
        }
        _ => return Err(format!("compression {compression} with {bits} bits for each pixel is not known")),
    };
    let channels = rows.len() / (width * height);
    if !from_top {
        let row = width * channels;
        for y in 0..height / 2 {
            let (above, below) = rows.split_at_mut((height - 1 - y) * row);
            above[y * row..][..row].swap_with_slice(&mut below[..row]);
        }
    }
    Ok(Picture::of_bytes(width, height, channels, rows))
}

impl File<'_> {
    fn read_palette(&mut self, at: usize, bytes_each: usize, colours: u32) -> Result<(), String> {
        let most = 1 << self.bits;
        let n = if colours == 0 { most } else { colours as usize };
        if n > most {
            return Err(format!("{n} colours are too many for {} bits", self.bits));
        }
        let bytes = self.bytes.get(at..at + n * bytes_each).ok_or(SHORT)?;
        self.palette = bytes.chunks_exact(bytes_each).map(|c| [c[2], c[1], c[0]]).collect();
        // A number without a colour is black.
        self.palette.resize(256, [0; 3]);
        Ok(())
    }

    /// The rows, each padded to four bytes.
    fn rows(&self) -> Result<impl Iterator<Item = &[u8]>, String> {
        let stride = (self.width * self.bits).div_ceil(32) * 4;
        // The last row need not be padded.
        let needed = stride * (self.height - 1) + (self.width * self.bits).div_ceil(8);
        if self.data.len() < needed {
            return Err(SHORT.into());
        }
        Ok(self.data.chunks(stride).take(self.height))
    }

    fn indexed(&self) -> Result<Vec<u8>, String> {
        let (width, bits) = (self.width, self.bits);
        let mut samples = Vec::with_capacity(count(width, self.height, 3, 1)?);
        for row in self.rows()? {
            let at = |x: usize| row[x * bits / 8] >> (8 - bits - x * bits % 8) & (0xff >> (8 - bits));
            samples.extend((0..width).flat_map(|x| self.palette[at(x) as usize]));
        }
        Ok(samples)
    }

    fn plain(&self) -> Result<Vec<u8>, String> {
        let mut samples = Vec::with_capacity(count(self.width, self.height, 3, 1)?);
        for row in self.rows()? {
            samples.extend(row[..self.width * 3].chunks_exact(3).flat_map(|p| [p[2], p[1], p[0]]));
        }
        Ok(samples)
    }

    fn masked(&self, masks: [u32; 4]) -> Result<Vec<u8>, String> {
        if masks[..3].contains(&0) || self.bits == 16 && masks.iter().any(|m| m >> 16 != 0) {
            return Err("a colour has no bits in the pixel".into());
        }
        let channels = if masks[3] == 0 { 3 } else { 4 };
        let masks = [Mask::new(masks[0])?, Mask::new(masks[1])?, Mask::new(masks[2])?, Mask::new(masks[3])?];
        let mut samples = Vec::with_capacity(count(self.width, self.height, channels, 1)?);
        let bytes_each = self.bits / 8;
        for row in self.rows()? {
            for p in row[..self.width * bytes_each].chunks_exact(bytes_each) {
                let pixel = p.iter().rev().fold(0, |v, &b| v << 8 | b as u32);
                samples.extend(masks[..channels].iter().map(|m| m.read(pixel)));
            }
        }
        Ok(samples)
    }

    /// Runs of one number, or of several one by one; what they leave out is black.
    fn runs(&self) -> Result<Vec<u8>, String> {
        let mut samples = vec![0; count(self.width, self.height, 3, 1)?];
        let mut data = self.data.iter().copied();
        let mut next = || data.next().ok_or_else(|| SHORT.to_string());
        let (mut x, mut y) = (0, 0);
        let mut put = |x: usize, y: usize, index: u8| {
            if x < self.width && y < self.height {
                let at = (y * self.width + x) * 3;
                samples[at..at + 3].copy_from_slice(&self.palette[index as usize]);
            }
        };
        // In 4 bits two pixels share a byte.
        let narrow = self.bits == 4;
        let part = |byte: u8, i: usize| match (narrow, i % 2) {
            (false, _) => byte,
            (true, 0) => byte >> 4,
            (true, _) => byte & 15,
        };
        while y < self.height {
            match (next()?, next()?) {
                (0, 0) => (x, y) = (0, y + 1),
                (0, 1) => break,
                (0, 2) => {
                    x += next()? as usize;
                    y += next()? as usize;
                }
                (0, n) => {
                    let n = n as usize;
                    if x + n > self.width {
                        return Err("a row is longer than the picture is wide".into());
                    }
                    let bytes = if narrow { n.div_ceil(2) } else { n };
                    let mut byte = 0;
                    for i in 0..n {
                        if !narrow || i % 2 == 0 {
                            byte = next()?;
                        }
                        put(x + i, y, part(byte, i));
                    }
                    if bytes % 2 == 1 {
                        next()?;
                    }
                    x += n;
                }
                (n, byte) => {
                    (0..n as usize).for_each(|i| put(x + i, y, part(byte, i)));
                    x += n as usize;
                }
            }
        }
        Ok(samples)
    }
}
