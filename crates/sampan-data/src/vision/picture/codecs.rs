//! Formats that a crate decodes whole.

use super::{Decoded, MAX_BYTES, Picture, count};
use std::io::Cursor;
use zune_core::bytestream::ZCursor;
use zune_core::colorspace::ColorSpace;
use zune_core::options::DecoderOptions;

pub(super) fn png(bytes: &[u8]) -> Decoded {
    let failed = |e: png::DecodingError| e.to_string();
    let mut decoder = png::Decoder::new_with_limits(Cursor::new(bytes), png::Limits { bytes: MAX_BYTES });
    // Palettes become colours and few bits become 8, but 16 bits stay.
    decoder.set_transformations(png::Transformations::EXPAND);
    decoder.set_ignore_text_chunk(true);
    let mut reader = decoder.read_info().map_err(failed)?;
    let (colour, depth) = reader.output_color_type();
    let (width, height) = reader.info().size();
    let (width, height, channels) = (width as usize, height as usize, colour.samples());
    let deep = depth == png::BitDepth::Sixteen;
    let size = count(width, height, channels, 1 + deep as usize)? * (1 + deep as usize);
    let mut samples = vec![0; size];
    reader.next_frame(&mut samples).map_err(failed)?;
    Ok(if deep {
        let words = samples.chunks_exact(2).map(|pair| u16::from_be_bytes([pair[0], pair[1]])).collect();
        Picture::of_words(width, height, channels, words)
    } else {
        Picture::of_bytes(width, height, channels, samples)
    })
}

pub(super) fn jpeg(bytes: &[u8]) -> Decoded {
    let options = DecoderOptions::default().set_strict_mode(false).set_max_width(usize::MAX).set_max_height(usize::MAX);
    let mut decoder = zune_jpeg::JpegDecoder::new_with_options(ZCursor::new(bytes), options);
    decoder.decode_headers().map_err(|e| e.to_string())?;
    let (Some((width, height)), Some(stored)) = (decoder.dimensions(), decoder.input_colorspace()) else {
        return Err("the header is incomplete".into());
    };
    let (channels, wanted) = match stored {
        ColorSpace::Luma => (1, stored),
        ColorSpace::LumaA => (2, stored),
        ColorSpace::RGBA => (4, stored),
        _ => (3, ColorSpace::RGB),
    };
    let mut samples = vec![0; count(width, height, channels, 1)?];
    decoder.set_options(options.jpeg_set_out_colorspace(wanted));
    decoder.decode_into(&mut samples).map_err(|e| e.to_string())?;
    Ok(Picture::of_bytes(width, height, channels, samples))
}

pub(super) fn webp(bytes: &[u8]) -> Decoded {
    let mut decoder = image_webp::WebPDecoder::new(Cursor::new(bytes)).map_err(|e| e.to_string())?;
    let (width, height) = decoder.dimensions();
    let (width, height, channels) = (width as usize, height as usize, if decoder.has_alpha() { 4 } else { 3 });
    let mut samples = vec![0; count(width, height, channels, 1)?];
    decoder.read_image(&mut samples).map_err(|e| e.to_string())?;
    Ok(Picture::of_bytes(width, height, channels, samples))
}

/// The first frame in its place; what it leaves open is transparent.
pub(super) fn gif(bytes: &[u8]) -> Decoded {
    let failed = |e: gif::DecodingError| e.to_string();
    let mut options = gif::DecodeOptions::new();
    options.set_color_output(gif::ColorOutput::RGBA);
    let mut decoder = options.read_info(bytes).map_err(failed)?;
    let (width, height) = (decoder.width() as usize, decoder.height() as usize);
    let frame = decoder.next_frame_info().map_err(failed)?.ok_or("it has no frame")?;
    let [left, top, frame_width, frame_height] = [frame.left, frame.top, frame.width, frame.height].map(usize::from);
    let mut pixels = vec![0; count(frame_width, frame_height, 4, 1)?];
    decoder.read_into_buffer(&mut pixels).map_err(failed)?;
    let mut samples = vec![0; count(width, height, 4, 1)?];
    let shown = frame_width.min(width.saturating_sub(left)) * 4;
    if shown > 0 {
        let rows = samples.chunks_exact_mut(width * 4).skip(top);
        for (row, from) in rows.zip(pixels.chunks_exact(frame_width * 4)) {
            row[left * 4..][..shown].copy_from_slice(&from[..shown]);
        }
    }
    Ok(Picture::of_bytes(width, height, 4, samples))
}
