//! Image files to tensors.

use image::ImageReader;
use sampan_core::error::Kind;
use sampan_core::{Error, Result, Tensor};
use std::io::Cursor;
use std::path::Path;

/// An image file as a uint8 tensor of height, width and the channels red, green and blue. The format is known from the
/// contents: BMP, GIF (first picture), JPEG, PNG, PNM, TIFF or WebP.
pub fn load_image(path: impl AsRef<Path>) -> Result<Tensor> {
    let path = path.as_ref();
    let bytes = read_file(path)?;
    decode_image(&bytes).map_err(|e| e.in_layer(path.display().to_string()))
}

/// The contents of an image file as a uint8 tensor of height, width and the channels red, green and blue.
///
/// ```
/// # use sampan_data::vision::codec::decode_image;
/// let image = decode_image(b"P6 2 1 255 \x01\x02\x03\x04\x05\x06")?;
/// assert_eq!(image.shape(), [1, 2, 3]);
/// assert_eq!(image.to_vec::<u8>(), [1, 2, 3, 4, 5, 6]);
/// # Ok::<(), sampan_core::Error>(())
/// ```
pub fn decode_image(bytes: &[u8]) -> Result<Tensor> {
    let bad = |why: String| Error::invalid(format!("not an image that can be read: {why}")).in_op("decode_image");
    let reader = ImageReader::new(Cursor::new(bytes)).with_guessed_format().map_err(|e| bad(e.to_string()))?;
    let image = reader.decode().map_err(|e| bad(e.to_string()))?.into_rgb8();
    let (width, height) = (image.width() as usize, image.height() as usize);
    Tensor::try_from_slice(image.as_raw(), [height, width, 3])
}

/// The values of a PNG file with one channel as they are stored, as a uint8 tensor of height and width. For a picture
/// with a palette these are the numbers of the colours, which is how segmentation labels are kept.
pub fn decode_labels(bytes: &[u8]) -> Result<Tensor> {
    let bad = |why: String| Error::invalid(format!("not a PNG of labels: {why}")).in_op("decode_labels");
    let mut decoder = png::Decoder::new(Cursor::new(bytes));
    decoder.set_transformations(png::Transformations::IDENTITY);
    let mut reader = decoder.read_info().map_err(|e| bad(e.to_string()))?;
    let (colour, depth) = reader.output_color_type();
    if !matches!(colour, png::ColorType::Indexed | png::ColorType::Grayscale) || depth == png::BitDepth::Sixteen {
        return Err(bad(format!("expected one channel of at most 8 bits, it has {colour:?} of {depth:?}")));
    }
    // A header can promise more than there is memory for.
    let size = reader.output_buffer_size().filter(|&size| size <= 1 << 28);
    let size = size.ok_or_else(|| bad("it is larger than 256 MiB".into()))?;
    let mut packed = vec![0; size];
    let frame = reader.next_frame(&mut packed).map_err(|e| bad(e.to_string()))?;
    let (width, height, bits) = (frame.width as usize, frame.height as usize, depth as usize);
    let mask = ((1u16 << bits) - 1) as u8;
    let mut labels = Vec::with_capacity(width * height);
    for row in packed.chunks(frame.line_size).take(height) {
        // The first pixel lies in the highest bits.
        labels.extend((0..width).map(|x| row[x * bits / 8] >> (8 - bits - x * bits % 8) & mask));
    }
    Tensor::try_from_slice(&labels, [height, width])
}

/// A whole file; errors name it.
pub(crate) fn read_file(path: &Path) -> Result<Vec<u8>> {
    std::fs::read(path).map_err(|e| file_error(path, e))
}

/// What the operating system says about a file.
pub(crate) fn file_error(path: &Path, e: std::io::Error) -> Error {
    let kind = if e.kind() == std::io::ErrorKind::NotFound { Kind::NotFound } else { Kind::External };
    Error::new(kind, format!("{}: {e}", path.display()))
}
