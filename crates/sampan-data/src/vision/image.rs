//! Picture files: PNG, JPEG, BMP, GIF, WebP, TIFF and PNM.

use super::picture::{self, Picture};
use crate::files::read_file;
use parking_lot::RwLock;
use sampan_core::error::Kind;
use sampan_core::{Element, Error, Result, Tensor, ensure};
use std::io::Cursor;
use std::path::Path;

fn broken(what: impl std::fmt::Display) -> Error {
    Error::new(Kind::External, what.to_string())
}

fn open(path: &Path) -> Result<Picture> {
    let unreadable = |e| broken(format!("{} is not a picture that can be read: {e}", path.display()));
    picture::decode(&read_file(path)?).map_err(unreadable)
}

/// The picture in a file as bytes `[H, W, 3]`: red, green, blue. The format is told from the contents. Grey becomes
/// three channels alike, alpha is dropped, 16 bits become 8.
pub fn load(path: impl AsRef<Path>) -> Result<Tensor> {
    rgb(open(path.as_ref())?).map_err(|e| e.in_op("load"))
}

/// The picture in the bytes of a file, as in [`load`].
pub fn decode(bytes: &[u8]) -> Result<Tensor> {
    let picture = picture::decode(bytes).map_err(|e| broken(format!("not a picture that can be read: {e}")));
    picture.and_then(rgb).map_err(|e| e.in_op("decode"))
}

fn rgb(picture: Picture) -> Result<Tensor> {
    let (h, w) = (picture.height, picture.width);
    Tensor::try_from_slice(&picture.into_rgb(), [h, w, 3])
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

/// As stored: `[H, W]` for grey, else `[H, W, C]`.
fn as_stored(picture: Picture) -> Result<Tensor> {
    let (h, w, c) = (picture.height, picture.width, picture.channels);
    match (c, picture.words()) {
        (1, Some(words)) => {
            let values: Vec<i32> = words.iter().copied().map(i32::from).collect();
            Tensor::try_from_slice(&values, [h, w])
        }
        (1, None) => Tensor::try_from_slice(&picture.into_bytes(), [h, w]),
        _ => Tensor::try_from_slice(&picture.into_bytes(), [h, w, c]),
    }
}

/// Writes a picture as PNG, whole or not at all: bytes, or floats from 0 to 1, with 1 to 4 channels in any order of axes
/// that [`Image`](super::transforms::Image) knows.
///
/// ```
/// use sampan_core::Tensor;
/// use sampan_data::vision::image::{load, save};
/// let path = std::env::temp_dir().join(format!("sampan-doc-{}.png", std::process::id()));
/// let x = Tensor::from_vec((0..24).collect::<Vec<u8>>(), [2, 4, 3]);
/// save(&x, &path)?;
/// assert_eq!(load(&path)?.to_vec::<u8>(), x.to_vec::<u8>());
/// # std::fs::remove_file(&path)?;
/// # Ok::<(), sampan_core::Error>(())
/// ```
pub fn save(image: impl Into<super::transforms::Image>, path: impl AsRef<Path>) -> Result<()> {
    let (image, path) = (image.into(), path.as_ref());
    let bytes = encode_png(&image).map_err(|e| e.in_op("save"))?;
    sampan_io::atomic::write(path, &bytes)
}

fn encode_png(image: &super::transforms::Image) -> Result<Vec<u8>> {
    use super::transforms::DataFormat;
    let [h, w, c] = image.extents()?;
    ensure!(image.tensor().ndim() < 4, "one picture is wanted, this tensor holds several");
    let t = image.tensor().detach();
    let t = if image.format() == DataFormat::Chw { t.try_transpose([1, 2, 0])? } else { t };
    let data: Vec<u8> = if t.dtype().is_float() {
        t.to_f64_vec().into_iter().map(|v| u8::from_f64((v.clamp(0.0, 1.0) * 255.0).round())).collect()
    } else {
        t.try_to_vec()?
    };
    ensure!((1..=4).contains(&c), "a picture has 1 to 4 channels, this one has {c}");
    let kinds = [png::ColorType::Grayscale, png::ColorType::GrayscaleAlpha, png::ColorType::Rgb, png::ColorType::Rgba];
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, w as u32, h as u32);
    encoder.set_color(kinds[c - 1]);
    encoder.set_depth(png::BitDepth::Eight);
    encoder.set_compression(png::Compression::Fast);
    encoder.set_filter(png::Filter::Adaptive);
    encoder.write_header().and_then(|mut writer| writer.write_image_data(&data)).map_err(broken)?;
    Ok(bytes)
}

/// How [`image_load`] gives pictures.
static BACKEND: RwLock<&'static str> = RwLock::new("pil");

fn backend(name: &str) -> Result<&'static str> {
    let known = ["pil", "cv2", "tensor"].into_iter().find(|b| *b == name);
    known.ok_or_else(|| Error::invalid(format!("backend must be 'pil', 'cv2' or 'tensor', got {name:?}")))
}

/// Says how [`image_load`] gives pictures from now on.
pub fn set_image_backend(name: &str) -> Result<()> {
    *BACKEND.write() = backend(name).map_err(|e| e.in_op("set_image_backend"))?;
    Ok(())
}

/// How [`image_load`] gives pictures; `"pil"` at first.
pub fn get_image_backend() -> &'static str {
    *BACKEND.read()
}

/// The picture in a file as Paddle's backends give it: `"pil"` as stored (`[H, W]` if grey, alpha kept), `"cv2"` as
/// `[H, W, 3]` in the order blue, green, red, and `"tensor"` as `[3, H, W]`, all in bytes.
pub fn image_load(path: impl AsRef<Path>, backend_name: Option<&str>) -> Result<Tensor> {
    (|| {
        let picture = open(path.as_ref())?;
        match backend_name.map_or(Ok(get_image_backend()), backend)? {
            "pil" => as_stored(picture),
            "cv2" => rgb(picture)?.try_flip(-1),
            _ => Ok(rgb(picture)?.try_transpose([2, 0, 1])?.contiguous()),
        }
    })()
    .map_err(|e: Error| e.in_op("image_load"))
}
