//! Image files as tensors of bytes.

use crate::vision::picture;
use sampan_core::error::Kind;
use sampan_core::{DType, Error, Result, Tensor, bail, ensure};
use sampan_macros::function;

/// The bytes of a file, `[N]`.
///
/// ```
/// use sampan_data::vision::ops::read_file;
/// let path = std::env::temp_dir().join("read_file.bin");
/// std::fs::write(&path, [1u8, 2]).unwrap();
/// assert_eq!(read_file(path.to_str().unwrap())?.to_vec::<u8>(), [1, 2]);
/// # Ok::<(), sampan_core::Error>(())
/// ```
#[function(module = "vision.ops")]
pub fn read_file(filename: &str) -> Result<Tensor> {
    let at = |e| Error::new(Kind::External, format!("{filename}: {e}")).in_op("read_file");
    let bytes = std::fs::read(filename).map_err(at)?;
    Tensor::try_from_slice(&bytes, [bytes.len()])
}

/// The picture in the bytes of a file, `[C, H, W]`: `mode` is unchanged (1 channel if the file is grey, else 3), gray or
/// rgb. JPEG is what Paddle takes; all formats of [`image`](crate::vision::image) are understood.
///
/// ```
/// use sampan_core::Tensor;
/// use sampan_data::vision::ops::decode_jpeg;
/// // A picture of two grey pixels in the PGM format.
/// let bytes = Tensor::from_vec(b"P5 2 1 255\n\x07\x09".to_vec(), [13]);
/// assert_eq!(decode_jpeg(&bytes, "rgb")?.to_vec::<u8>(), [7, 9, 7, 9, 7, 9]);
/// # Ok::<(), sampan_core::Error>(())
/// ```
#[function(module = "vision.ops")]
pub fn decode_jpeg(x: &Tensor, #[default("unchanged")] mode: &str) -> Result<Tensor> {
    (|| {
        ensure!(x.dtype() == DType::UInt8 && x.ndim() == 1, "x must hold the bytes of a file, uint8 [N]");
        let picture = picture::decode(&x.try_to_vec::<u8>()?).map_err(|e| Error::new(Kind::External, e))?;
        let (h, w) = (picture.height, picture.width);
        let grey = match mode {
            "unchanged" => !picture.has_colour(),
            "gray" => true,
            "rgb" => false,
            _ => bail!("mode must be 'unchanged', 'gray' or 'rgb', got {mode:?}"),
        };
        if grey {
            return Tensor::try_from_slice(&picture.into_grey(), [1, h, w]);
        }
        let rgb = Tensor::try_from_slice(&picture.into_rgb(), [h, w, 3])?;
        Ok(rgb.try_transpose([2, 0, 1])?.contiguous())
    })()
    .map_err(|e: Error| e.in_op("decode_jpeg"))
}
