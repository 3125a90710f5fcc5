//! Image files as tensors of bytes.

use sampan_core::error::Kind;
use sampan_core::{DType, Error, Result, Tensor, bail, ensure};
use std::path::Path;

/// The bytes of a file, `[N]`.
pub fn read_file(filename: impl AsRef<Path>) -> Result<Tensor> {
    let path = filename.as_ref();
    let at = |e| Error::new(Kind::External, format!("{}: {e}", path.display())).in_op("read_file");
    let bytes = std::fs::read(path).map_err(at)?;
    Tensor::try_from_slice(&bytes, [bytes.len()])
}

/// The picture in the bytes of a file, `[C, H, W]`: `mode` is unchanged (1 channel if the file is grey, else 3), gray or
/// rgb. JPEG is what Paddle takes; all formats of [`image`](crate::vision::image) are understood.
pub fn decode_jpeg(x: &Tensor, mode: &str) -> Result<Tensor> {
    (|| {
        ensure!(x.dtype() == DType::UInt8 && x.ndim() == 1, "x must hold the bytes of a file, uint8 [N]");
        let picture =
            ::image::load_from_memory(&x.try_to_vec::<u8>()?).map_err(|e| Error::new(Kind::External, e.to_string()))?;
        let (h, w) = (picture.height() as usize, picture.width() as usize);
        let grey = match mode {
            "unchanged" => !picture.color().has_color(),
            "gray" => true,
            "rgb" => false,
            _ => bail!("mode must be 'unchanged', 'gray' or 'rgb', got {mode:?}"),
        };
        if grey {
            return Tensor::try_from_slice(&picture.into_luma8().into_raw(), [1, h, w]);
        }
        let rgb = Tensor::try_from_slice(&picture.into_rgb8().into_raw(), [h, w, 3])?;
        Ok(rgb.try_transpose([2, 0, 1])?.contiguous())
    })()
    .map_err(|e: Error| e.in_op("decode_jpeg"))
}
