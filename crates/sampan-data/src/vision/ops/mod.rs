//! Paddle's `vision.ops`: boxes, regions, deformable convolution, detectors, image bytes.

mod boxes;
mod deform;
mod file;
mod layers;
mod matrix_nms;
mod multiclass_nms;
mod priors;
mod proposals;
mod regions;
mod yolo;

pub use boxes::{Variances, box_coder, nms};
pub use deform::deform_conv2d;
pub use file::{decode_jpeg, read_file};
pub use layers::{
    DeformConv2D, DeformConv2DOpts, PSRoIPool, PSRoIPoolOpts, RoIAlign, RoIAlignOpts, RoIPool, RoIPoolOpts,
};
pub use matrix_nms::{Detections, matrix_nms};
pub use multiclass_nms::multiclass_nms3;
pub use priors::prior_box;
pub use proposals::{Levels, Proposals, distribute_fpn_proposals, generate_proposals};
pub use regions::{psroi_pool, roi_align, roi_pool};
pub use yolo::{yolo_box, yolo_loss};

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
