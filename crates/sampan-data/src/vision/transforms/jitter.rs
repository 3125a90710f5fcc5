//! Random changes of colour.

use super::{Image, Key, Keys, Numbers, Transform, adjust_brightness, adjust_contrast, adjust_hue, adjust_saturation, draw};
use sampan_core::{Result, Tensor, bail, ensure};
use sampan_macros::class;

/// The range a factor is drawn from: `center ± value` for one number, the two numbers themselves for a pair. `None` where
/// nothing would change.
fn range(value: &Numbers, name: &str, center: f64, bound: [f64; 2]) -> Result<Option<[f64; 2]>> {
    let range = match value.values() {
        &[v] if matches!(value, Numbers::One(_)) => {
            ensure!(v >= 0.0, "if {name} is a single number it must not be negative, got {v}");
            [(center - v).max(bound[0]), center + v]
        }
        &[low, high] => [low, high],
        other => bail!("{name} must be one number or two, got {other:?}"),
    };
    ensure!(
        bound[0] <= range[0] && range[0] <= range[1] && range[1] <= bound[1],
        "{name} must be (min, max) between {} and {}, got {:?}",
        bound[0],
        bound[1],
        value.values()
    );
    Ok(if range == [center; 2] { None } else { Some(range) })
}

macro_rules! jitter {
    ($($name:ident, $word:literal, $function:ident, $center:literal, $bound:expr, $doc:literal;)*) => {$(
        #[doc = $doc]
        #[derive(Clone, Debug)]
        pub struct $name {
            range: Option<[f64; 2]>,
            keys: Keys,
        }

        #[class(module = "vision.transforms", object = super::object)]
        impl $name {
            #[doc = $doc]
            #[doc = concat!(" The factor of [`", stringify!($function), "`] is drawn from `", $center, " ± value`, cut to \
                what is allowed, or from the range `value` if that is two numbers.")]
            #[doc = ""]
            #[doc = "```"]
            #[doc = "use sampan_core::Tensor;"]
            #[doc = concat!("use sampan_data::vision::transforms::{", stringify!($name), ", Transform};")]
            #[doc = "let x = Tensor::from_vec(vec![9u8; 12], [2, 2, 3]);"]
            #[doc = concat!("assert_eq!(", stringify!($name), "::new(0.4).apply(&x)?.shape(), [2, 2, 3]);")]
            #[doc = "# Ok::<(), sampan_core::Error>(())"]
            #[doc = "```"]
            fn build(value: Numbers, #[opt(None)] keys: Option<Keys>) -> Result<$name> {
                Ok($name { range: range(&value, $word, $center, $bound)?, keys: Keys::or_image(keys) })
            }
        }

        impl Transform for $name {
            fn apply_image(&self, image: &Image) -> Result<Tensor> {
                match self.range {
                    Some(range) => $function(image, draw::uniform(range)),
                    None => Ok(image.tensor().clone()),
                }
            }
            fn keys(&self) -> &[Key] {
                &self.keys
            }
        }
    )*};
}

const POSITIVE: [f64; 2] = [0.0, f64::INFINITY];

jitter! {
    BrightnessTransform, "brightness", adjust_brightness, 1.0, POSITIVE, " A random brightness.";
    ContrastTransform, "contrast", adjust_contrast, 1.0, POSITIVE, " A random contrast.";
    SaturationTransform, "saturation", adjust_saturation, 1.0, POSITIVE, " A random saturation.";
    HueTransform, "hue", adjust_hue, 0.0, [-0.5, 0.5], " A random hue.";
}

/// Random brightness, contrast, saturation and hue.
#[derive(Clone, Debug)]
pub struct ColorJitter {
    brightness: BrightnessTransform,
    contrast: ContrastTransform,
    saturation: SaturationTransform,
    hue: HueTransform,
    keys: Keys,
}

#[class(module = "vision.transforms", object = super::object)]
impl ColorJitter {
    /// Random brightness, contrast, saturation and hue, in a random order. Each argument is that of the transform of its
    /// name, [`BrightnessTransform`] and so on; 0 leaves that one out.
    ///
    /// ```
    /// use sampan_core::Tensor;
    /// use sampan_data::vision::transforms::{ColorJitter, Transform};
    /// let x = Tensor::from_vec(vec![9u8; 12], [2, 2, 3]);
    /// let jitter = ColorJitter::with(|o| o.brightness(0.4).contrast(0.4).saturation(0.4).hue(0.1));
    /// assert_eq!(jitter.apply(&x)?.shape(), [2, 2, 3]);
    /// # Ok::<(), sampan_core::Error>(())
    /// ```
    fn build(
        #[opt(0)] brightness: Numbers,
        #[opt(0)] contrast: Numbers,
        #[opt(0)] saturation: Numbers,
        #[opt(0)] hue: Numbers,
        #[opt(None)] keys: Option<Keys>,
    ) -> Result<ColorJitter> {
        Ok(ColorJitter {
            brightness: BrightnessTransform::build(brightness, None)?,
            contrast: ContrastTransform::build(contrast, None)?,
            saturation: SaturationTransform::build(saturation, None)?,
            hue: HueTransform::build(hue, None)?,
            keys: Keys::or_image(keys),
        })
    }
}

impl Transform for ColorJitter {
    fn apply_image(&self, image: &Image) -> Result<Tensor> {
        let mut steps: [&dyn Transform; 4] = [&self.brightness, &self.contrast, &self.saturation, &self.hue];
        draw::shuffle(&mut steps);
        let all = |image: Image, step: &&dyn Transform| step.apply_image(&image).map(|t| image.with(t));
        Ok(steps.iter().try_fold(image.clone(), all)?.tensor().clone())
    }
    fn keys(&self) -> &[Key] {
        &self.keys
    }
}
