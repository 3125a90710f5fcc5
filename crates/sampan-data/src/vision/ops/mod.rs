//! Boxes, regions, deformable convolution and image bytes: part of Paddle's `vision.ops`.

mod boxes;
mod deform;
mod detection;
mod file;
mod regions;

pub use boxes::{box_coder, nms};
pub use deform::deform_conv2d;
pub use detection::{Levels, distribute_fpn_proposals, prior_box, yolo_box};
pub use file::{decode_jpeg, read_file};
pub use regions::{psroi_pool, roi_align, roi_pool};

use sampan_core::{DType, Error, Result, Tensor};

/// The rows of `[N, 4]` boxes.
fn rows(boxes: &Tensor, name: &str) -> Result<Vec<[f64; 4]>> {
    if boxes.ndim() != 2 || boxes.shape()[1] != 4 || !boxes.dtype().is_float() {
        let received = format!("{:?} {}", boxes.shape(), boxes.dtype());
        return Err(Error::invalid(format!("{name} must be a float tensor [N, 4]")).received(received));
    }
    let values = boxes.detach().try_cast(DType::Float64)?.try_to_vec::<f64>()?;
    Ok(values.chunks_exact(4).map(|b| [b[0], b[1], b[2], b[3]]).collect())
}
