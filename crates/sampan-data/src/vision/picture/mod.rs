//! What a picture file holds. Each format has its decoder; this is what they have in common.

mod bmp;
mod codecs;
mod pnm;
mod tiff;

/// Headers may promise more than there is memory for: no picture takes more bytes than this.
const MAX_BYTES: usize = 512 << 20;

/// The samples of a picture in rows from the top, with 1 (grey), 2 (grey, alpha), 3 (red, green, blue) or 4 channels.
pub(crate) struct Picture {
    pub width: usize,
    pub height: usize,
    pub channels: usize,
    samples: Samples,
}

enum Samples {
    Bytes(Vec<u8>),
    Words(Vec<u16>),
}

type Decoded = Result<Picture, String>;

/// Reads a picture; the format is told from the first bytes.
pub(crate) fn decode(bytes: &[u8]) -> Decoded {
    match bytes {
        [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', ..] => codecs::png(bytes),
        [0xff, 0xd8, 0xff, ..] => codecs::jpeg(bytes),
        [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => codecs::gif(bytes),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => codecs::webp(bytes),
        [b'M', b'M', 0, b'*', ..] | [b'I', b'I', b'*', 0, ..] => tiff::decode(bytes),
        [b'B', b'M', ..] => bmp::decode(bytes),
        [b'P', b'1'..=b'7', ..] => pnm::decode(bytes),
        _ => Err("it is none of PNG, JPEG, GIF, WebP, TIFF, BMP and PNM".into()),
    }
}

/// The number of samples of a picture, if it is not too large.
fn count(width: usize, height: usize, channels: usize, bytes_each: usize) -> Result<usize, String> {
    let count = width.checked_mul(height).and_then(|n| n.checked_mul(channels));
    let small = count.filter(|n| n.checked_mul(bytes_each).is_some_and(|bytes| bytes <= MAX_BYTES));
    small.ok_or_else(|| format!("{width} times {height} pixels are more than {} MiB", MAX_BYTES >> 20))
}

impl Picture {
    fn of_bytes(width: usize, height: usize, channels: usize, samples: Vec<u8>) -> Picture {
        Picture { width, height, channels, samples: Samples::Bytes(samples) }
    }

    fn of_words(width: usize, height: usize, channels: usize, samples: Vec<u16>) -> Picture {
        Picture { width, height, channels, samples: Samples::Words(samples) }
    }

    fn len(&self) -> usize {
        match &self.samples {
            Samples::Bytes(samples) => samples.len(),
            Samples::Words(samples) => samples.len(),
        }
    }

    /// Has it more than shades of grey?
    pub fn has_colour(&self) -> bool {
        self.channels > 2
    }

    /// All channels in bytes.
    pub fn into_bytes(self) -> Vec<u8> {
        match self.samples {
            Samples::Bytes(samples) => samples,
            Samples::Words(samples) => samples.into_iter().map(to_byte).collect(),
        }
    }

    /// The samples as they are if they have 16 bits.
    pub fn words(&self) -> Option<&[u16]> {
        match &self.samples {
            Samples::Words(samples) => Some(samples),
            Samples::Bytes(_) => None,
        }
    }

    /// Red, green and blue in bytes: grey becomes three channels alike, alpha is dropped.
    pub fn into_rgb(self) -> Vec<u8> {
        let channels = self.channels;
        let samples = self.into_bytes();
        match channels {
            3 => samples,
            4 => samples.chunks_exact(4).flat_map(|p| [p[0], p[1], p[2]]).collect(),
            _ => samples.chunks_exact(channels).flat_map(|p| [p[0]; 3]).collect(),
        }
    }

    /// Shades of grey in bytes: the brightness of colours, without alpha.
    pub fn into_grey(self) -> Vec<u8> {
        let channels = self.channels;
        match self.samples {
            Samples::Bytes(samples) if channels == 1 => samples,
            Samples::Bytes(samples) => samples.chunks_exact(channels).map(|p| brightness(p, 255.0)).collect(),
            Samples::Words(samples) => samples.chunks_exact(channels).map(|p| brightness(p, 65535.0)).collect(),
        }
    }
}

/// 16 bits as 8, rounded.
fn to_byte(word: u16) -> u8 {
    ((word as u32 + 128) / 257) as u8
}

/// How bright red, green and blue are in sRGB, white being 1.
const WEIGHTS: [f32; 3] = [0.212_647_84, 0.715_179_2, 0.072_173_04];

/// The brightness of a pixel where the greatest sample is `max`.
fn brightness<T: Copy + Into<f32>>(pixel: &[T], max: f32) -> u8 {
    let part = |v: T| v.into() * (1.0 / max);
    let y = match *pixel {
        [r, g, b, ..] => WEIGHTS[0] * part(r) + WEIGHTS[1] * part(g) + WEIGHTS[2] * part(b),
        [grey, ..] => part(grey),
        [] => 0.0,
    };
    (y * 255.0).round() as u8
}
