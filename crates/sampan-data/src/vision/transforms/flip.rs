//! Mirror images, and other orders of the axes.

use super::args::probability;
use super::{Image, Key, Keys, Transform, draw};
use sampan_core::{Result, Tensor};
use sampan_macros::{class, function};

/// Left and right exchanged.
///
/// ```
/// use sampan_core::Tensor;
/// use sampan_data::vision::transforms::hflip;
/// assert_eq!(hflip(&Tensor::new([[1u8, 2], [3, 4]]))?.to_vec::<u8>(), [2, 1, 4, 3]);
/// # Ok::<(), sampan_core::Error>(())
/// ```
#[function(module = "vision.transforms")]
pub fn hflip(img: impl Into<Image>) -> Result<Tensor> {
    let image = img.into();
    image.extents().and_then(|_| image.tensor().try_flip([image.axes().1])).map_err(|e| e.in_op("hflip"))
}

/// Top and bottom exchanged.
///
/// ```
/// use sampan_core::Tensor;
/// use sampan_data::vision::transforms::vflip;
/// assert_eq!(vflip(&Tensor::new([[1u8, 2], [3, 4]]))?.to_vec::<u8>(), [3, 4, 1, 2]);
/// # Ok::<(), sampan_core::Error>(())
/// ```
#[function(module = "vision.transforms")]
pub fn vflip(img: impl Into<Image>) -> Result<Tensor> {
    let image = img.into();
    image.extents().and_then(|_| image.tensor().try_flip([image.axes().0])).map_err(|e| e.in_op("vflip"))
}

/// Left and right exchanged, now and then.
#[derive(Clone, Debug)]
pub struct RandomHorizontalFlip {
    prob: f64,
    keys: Keys,
}

#[class(module = "vision.transforms", object = super::object)]
impl RandomHorizontalFlip {
    /// [`hflip`] with the probability `prob`.
    ///
    /// ```
    /// use sampan_core::Tensor;
    /// use sampan_data::vision::transforms::{RandomHorizontalFlip, Transform};
    /// let always = RandomHorizontalFlip::with(|o| o.prob(1.0));
    /// assert_eq!(always.apply(&Tensor::new([[1u8, 2]]))?.to_vec::<u8>(), [2, 1]);
    /// # Ok::<(), sampan_core::Error>(())
    /// ```
    fn build(#[opt(0.5)] prob: f64, #[opt(None)] keys: Option<Keys>) -> Result<RandomHorizontalFlip> {
        Ok(RandomHorizontalFlip { prob: probability(prob)?, keys: Keys::or_image(keys) })
    }
}

impl Transform for RandomHorizontalFlip {
    fn apply_image(&self, image: &Image) -> Result<Tensor> {
        if draw::chance(self.prob) { hflip(image) } else { Ok(image.tensor().clone()) }
    }
    fn keys(&self) -> &[Key] {
        &self.keys
    }
}

/// Top and bottom exchanged, now and then.
#[derive(Clone, Debug)]
pub struct RandomVerticalFlip {
    prob: f64,
    keys: Keys,
}

#[class(module = "vision.transforms", object = super::object)]
impl RandomVerticalFlip {
    /// [`vflip`] with the probability `prob`.
    ///
    /// ```
    /// use sampan_core::Tensor;
    /// use sampan_data::vision::transforms::{RandomVerticalFlip, Transform};
    /// let never = RandomVerticalFlip::with(|o| o.prob(0.0));
    /// assert_eq!(never.apply(&Tensor::new([[1u8], [2]]))?.to_vec::<u8>(), [1, 2]);
    /// # Ok::<(), sampan_core::Error>(())
    /// ```
    fn build(#[opt(0.5)] prob: f64, #[opt(None)] keys: Option<Keys>) -> Result<RandomVerticalFlip> {
        Ok(RandomVerticalFlip { prob: probability(prob)?, keys: Keys::or_image(keys) })
    }
}

impl Transform for RandomVerticalFlip {
    fn apply_image(&self, image: &Image) -> Result<Tensor> {
        if draw::chance(self.prob) { vflip(image) } else { Ok(image.tensor().clone()) }
    }
    fn keys(&self) -> &[Key] {
        &self.keys
    }
}

/// Another order of the axes.
#[derive(Clone, Debug)]
pub struct Transpose {
    order: Vec<i64>,
    keys: Keys,
}

#[class(module = "vision.transforms", object = super::object)]
impl Transpose {
    /// The axes in another order; `[H, W]` is taken as `[H, W, 1]`.
    ///
    /// ```
    /// use sampan_core::Tensor;
    /// use sampan_data::vision::transforms::{Transform, Transpose};
    /// assert_eq!(Transpose::new().apply(&Tensor::from_vec(vec![0u8; 24], [2, 4, 3]))?.shape(), [3, 2, 4]);
    /// # Ok::<(), sampan_core::Error>(())
    /// ```
    fn build(#[opt([2, 0, 1])] order: &[i64], #[opt(None)] keys: Option<Keys>) -> Result<Transpose> {
        Ok(Transpose { order: order.to_vec(), keys: Keys::or_image(keys) })
    }
}

impl Transform for Transpose {
    fn apply_image(&self, image: &Image) -> Result<Tensor> {
        let image = image.tensor();
        let image = if image.ndim() == 2 { image.try_unsqueeze(-1)? } else { image.clone() };
        image.try_transpose(self.order.as_slice()).map_err(|e| e.in_op("Transpose"))
    }
    fn keys(&self) -> &[Key] {
        &self.keys
    }
}
