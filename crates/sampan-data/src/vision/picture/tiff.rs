//! TIFF: what the samples of its many kinds mean.

use super::{Decoded, MAX_BYTES, Picture, count};
use std::io::Cursor;
use tiff::ColorType;
use tiff::decoder::{Decoder, DecodingResult, Limits};

pub(super) fn decode(bytes: &[u8]) -> Decoded {
    let failed = |e: tiff::TiffError| e.to_string();
    let mut limits = Limits::default();
    (limits.decoding_buffer_size, limits.intermediate_buffer_size) = (MAX_BYTES, MAX_BYTES);
    let mut decoder = Decoder::new(Cursor::new(bytes)).map_err(failed)?.with_limits(limits);
    let (width, height) = decoder.dimensions().map_err(failed)?;
    let (width, height) = (width as usize, height as usize);
    let colour = decoder.colortype().map_err(failed)?;
    let (stored, bits) = match colour {
        ColorType::Gray(bits @ (1 | 8 | 16)) => (1, bits),
        ColorType::GrayA(bits @ (8 | 16)) => (2, bits),
        ColorType::RGB(bits @ (8 | 16 | 32)) => (3, bits),
        ColorType::RGBA(bits @ (8 | 16 | 32)) => (4, bits),
        ColorType::CMYK(bits @ (8 | 16)) => (4, bits),
        other => return Err(format!("samples of the kind {other:?} are not known")),
    };
    count(width, height, stored, (bits as usize).div_ceil(8))?;
    let mut samples = DecodingResult::U8(Vec::new());
    let layout = decoder.read_image_to_buffer(&mut samples).map_err(failed)?;
    if samples.as_buffer(0).as_bytes().len() < layout.complete_len {
        return Err("it is too large".into());
    }
    let inks = matches!(colour, ColorType::CMYK(_));
    if layout.planes > 1 && (inks || bits == 1) {
        return Err(format!("samples of the kind {colour:?} in planes are not known"));
    }
    let pixels = width * height;
    let planes = layout.planes > 1;
    let picture = match (samples, bits) {
        (DecodingResult::U8(v), 1) => Picture::of_bytes(width, height, 1, unpacked(&v, width)),
        (DecodingResult::U8(v), 8) if inks => {
            let rgb = |p: &[u8]| mixed([p[0], p[1], p[2], p[3]].map(f32::from), 255.0).map(|v| v as u8);
            Picture::of_bytes(width, height, 3, v.chunks_exact(4).flat_map(rgb).collect())
        }
        (DecodingResult::U16(v), 16) if inks => {
            let rgb = |p: &[u16]| mixed([p[0], p[1], p[2], p[3]].map(f32::from), 65535.0).map(|v| v as u16);
            Picture::of_words(width, height, 3, v.chunks_exact(4).flat_map(rgb).collect())
        }
        (DecodingResult::U8(v), 8) => Picture::of_bytes(width, height, stored, joined(v, planes, pixels, stored)),
        (DecodingResult::U16(v), 16) => Picture::of_words(width, height, stored, joined(v, planes, pixels, stored)),
        (DecodingResult::F32(v), 32) => {
            // From 0 to 1; what is no number is white.
            let byte = |v: &f32| ((if *v < 1.0 { v.max(0.0) } else { 1.0 }) * 255.0).round() as u8;
            let v = joined(v, planes, pixels, stored);
            Picture::of_bytes(width, height, 3, v.chunks_exact(stored).flat_map(|p| p[..3].iter().map(byte)).collect())
        }
        _ => return Err(format!("samples of the kind {colour:?} in this form of numbers are not known")),
    };
    // A damaged file may give fewer.
    if picture.len() == pixels * picture.channels { Ok(picture) } else { Err("samples are missing".into()) }
}

/// Rows of bits, the first in the highest bit, as black and white.
fn unpacked(rows: &[u8], width: usize) -> Vec<u8> {
    let row = |row: &[u8]| (0..width).map(|x| (row[x / 8] >> (7 - x % 8) & 1) * 255).collect::<Vec<u8>>();
    rows.chunks_exact(width.div_ceil(8).max(1)).flat_map(row).collect()
}

/// Samples pixel by pixel, where they are plane by plane.
fn joined<T: Copy>(samples: Vec<T>, planes: bool, pixels: usize, channels: usize) -> Vec<T> {
    if !planes || samples.len() < pixels * channels {
        return samples;
    }
    (0..pixels).flat_map(|i| (0..channels).map(move |c| c * pixels + i)).map(|at| samples[at]).collect()
}

/// Cyan, magenta, yellow and black as red, green and blue.
fn mixed([c, m, y, k]: [f32; 4], max: f32) -> [f32; 3] {
    let light = 1.0 - k / max;
    [c, m, y].map(|ink| (max - ink) * light)
}
