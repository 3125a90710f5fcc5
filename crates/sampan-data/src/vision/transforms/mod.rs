//! Paddle's `vision.transforms`: what is done to a picture between the file and the network.
//!
//! A picture is a [`Tensor`], see [`Image`] for the order of its axes. Every transform is a class, as in Paddle, and most
//! have a function beside them. Bytes in `[H, W, C]` follow Paddle's default backend, Pillow: the same filters, the same
//! rounding; or its other one, OpenCV, which Paddle takes for NumPy arrays, where [`Image::opencv`] says so.
//!
//! ```
//! use sampan_core::{DType, Tensor};
//! use sampan_data::vision::transforms::*;
//! let prepare = Compose::new(transforms![
//!     Resize::new(6),
//!     CenterCrop::new(4),
//!     ToTensor::new(),
//!     Normalize::with(|o| o.mean([0.5, 0.5, 0.5]).std([0.5, 0.5, 0.5])),
//!     |x: &Tensor| x.try_scale(2.0),
//! ]);
//! let x = prepare.apply(&Tensor::from_vec(vec![255u8; 8 * 12 * 3], [8, 12, 3]))?;
//! assert_eq!((x.shape(), x.dtype()), (&[3, 4, 4][..], DType::Float32));
//! assert_eq!(x.to_vec::<f32>(), [2.0; 48]);
//! # Ok::<(), sampan_core::Error>(())
//! ```

mod affine;
mod args;
mod color;
mod compose;
mod crop;
mod draw;
mod erase;
mod flip;
mod hue;
mod image;
mod jitter;
mod opencv;
mod pad;
mod perspective;
mod pixel;
mod resample;
mod resize;
mod to_tensor;
mod warp;

pub use crate::transforms;
pub use affine::{RandomAffine, RandomAffineOpts, RandomRotation, RandomRotationOpts, affine, rotate};
pub use args::{Key, Keys, Numbers};
pub use color::{
    Grayscale, GrayscaleOpts, adjust_brightness, adjust_contrast, adjust_hue, adjust_saturation, to_grayscale,
};
pub use compose::{Compose, Transforms};
pub use crop::{CenterCrop, CenterCropOpts, RandomCrop, RandomCropOpts, center_crop, crop};
pub use erase::{RandomErasing, RandomErasingOpts, erase};
pub use flip::{
    RandomHorizontalFlip, RandomHorizontalFlipOpts, RandomVerticalFlip, RandomVerticalFlipOpts, Transpose,
    TransposeOpts, hflip, vflip,
};
pub use image::{DataFormat, Image};
pub use jitter::{
    BrightnessTransform, BrightnessTransformOpts, ColorJitter, ColorJitterOpts, ContrastTransform,
    ContrastTransformOpts, HueTransform, HueTransformOpts, SaturationTransform, SaturationTransformOpts,
};
pub use pad::{Pad, PadOpts, pad};
pub use perspective::{RandomPerspective, RandomPerspectiveOpts, perspective};
pub use resize::{RandomResizedCrop, RandomResizedCropOpts, Resize, ResizeOpts, resize};
pub use to_tensor::{Normalize, NormalizeOpts, ToTensor, ToTensorOpts, normalize, to_tensor};

use sampan_core::error::Kind;
use sampan_core::{Error, Object, Result, Tensor};
use std::sync::Arc;

/// Something that is done to a picture: Paddle's `BaseTransform`. A closure from a tensor to a tensor is one too.
pub trait Transform: Send + Sync {
    /// The picture after it.
    fn apply_image(&self, image: &Image) -> Result<Tensor>;

    /// The picture in a tensor after it; [`Image`] says how a tensor is read.
    fn apply(&self, image: &Tensor) -> Result<Tensor> {
        self.apply_image(&image.into())
    }

    /// What the fields of a sample are, from the first one on. Those beyond the list are left alone.
    fn keys(&self) -> &[Key] {
        &[Key::Image]
    }

    /// A whole sample after it: pictures are changed, fields without a key stay as they are. Coordinates, boxes and
    /// masks are for transforms that write this function themselves.
    fn apply_sample(&self, mut sample: Vec<Tensor>) -> Result<Vec<Tensor>> {
        for (field, key) in sample.iter_mut().zip(self.keys()) {
            *field = match key {
                Key::Image => self.apply(field)?,
                other => {
                    let message = format!("this transform does not know what to do with {}", other.name());
                    return Err(Error::new(Kind::Unimplemented, message)
                        .hint("write a Transform whose apply_sample changes all fields alike"));
                }
            };
        }
        Ok(sample)
    }

    /// What it is to those who join neighbours; nothing special by default.
    #[doc(hidden)]
    fn role(&self) -> Role<'_> {
        Role::Other
    }
}

/// Transforms that become one pass where they follow each other.
#[doc(hidden)]
#[derive(Clone, Copy)]
pub enum Role<'a> {
    /// Bytes to floats.
    ToTensor(&'a ToTensor),
    /// Mean and deviation.
    Normalize(&'a Normalize),
    /// All others.
    Other,
}

impl<F: Fn(&Tensor) -> Result<Tensor> + Send + Sync> Transform for F {
    fn apply_image(&self, image: &Image) -> Result<Tensor> {
        self(image.tensor())
    }
}

/// A transform for those who build by name.
pub fn object<T: Transform + 'static>(transform: T) -> Object {
    Object::new(Arc::new(transform) as Arc<dyn Transform>)
}
