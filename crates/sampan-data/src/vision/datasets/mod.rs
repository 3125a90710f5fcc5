//! The data sets of `paddle.vision.datasets`. MNIST is part of this crate; the others are downloaded or opened.

mod cifar;
mod flowers;
mod folder;
mod image_set;
mod mat;
mod mnist;
mod tar;
mod voc2012;

pub use cifar::{Cifar10, Cifar100};
pub use flowers::Flowers;
pub use folder::{DatasetFolder, FolderBuilder, IMG_EXTENSIONS, ImageFolder};
pub use image_set::ImageSet;
pub use mnist::{FashionMnist, Mnist};
pub use voc2012::Voc2012;

pub use crate::source::Split;
use crate::source::{Remote, no_valid_part};
use crate::vision::transforms::Transform;
use std::sync::Arc;

/// Changes an image when it is read.
pub type ImageFn = Arc<dyn Transform>;
