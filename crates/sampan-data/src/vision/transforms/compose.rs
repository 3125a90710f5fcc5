//! Several transforms in a row.

use super::to_tensor::Scaled;
use super::{DataFormat, Image, Key, Role, Transform};
use sampan_core::value::Arg;
use sampan_core::{Object, Result, Tensor, Value};
use sampan_macros::class;
use std::sync::Arc;

/// A list of transforms of different types: `transforms![Resize::new(224), ToTensor::new()]`.
#[macro_export]
macro_rules! transforms {
    ($($t:expr),* $(,)?) => {
        vec![$(::std::sync::Arc::new($t) as ::std::sync::Arc<dyn $crate::vision::transforms::Transform>),*]
    };
}

/// A list of transforms as an argument.
#[derive(Clone)]
pub struct Transforms(Vec<Arc<dyn Transform>>);

impl From<Vec<Arc<dyn Transform>>> for Transforms {
    fn from(list: Vec<Arc<dyn Transform>>) -> Transforms {
        Transforms(list)
    }
}

impl From<Transforms> for Value {
    fn from(list: Transforms) -> Value {
        Value::List(list.0.into_iter().map(|t| Value::Object(Object::new(t))).collect())
    }
}

impl<'a> Arg<'a> for Transforms {
    const EXPECTED: &'static str = "a list of transforms";
    fn read(v: &'a Value) -> Option<Self> {
        let Value::List(list) = v else { return None };
        let one = |v: &Value| match v {
            Value::Object(o) => o.downcast::<Arc<dyn Transform>>().cloned(),
            _ => None,
        };
        list.iter().map(one).collect::<Option<_>>().map(Transforms)
    }
}

/// Several transforms, one after the other.
#[derive(Clone)]
pub struct Compose {
    /// Each with its place in the list that was given.
    steps: Vec<(usize, Arc<dyn Transform>)>,
}

#[class(module = "vision.transforms", object = super::object)]
impl Compose {
    /// Several transforms, one after the other. [`ToTensor`](super::ToTensor) followed by
    /// [`Normalize`](super::Normalize) becomes one pass with the same result.
    ///
    /// ```
    /// use sampan_core::Tensor;
    /// use sampan_data::vision::transforms::*;
    /// let both = Compose::new(transforms![CenterCrop::new(2), ToTensor::new()]);
    /// assert_eq!(both.apply(&Tensor::from_vec(vec![0u8; 75], [5, 5, 3]))?.shape(), [3, 2, 2]);
    /// # Ok::<(), sampan_core::Error>(())
    /// ```
    fn build(transforms: Transforms) -> Result<Compose> {
        let mut steps: Vec<(usize, Arc<dyn Transform>)> = Vec::new();
        for (i, t) in transforms.0.into_iter().enumerate() {
            let joined = match (steps.last().map(|(_, last)| last.role()), t.role()) {
                (Some(Role::ToTensor(first)), Role::Normalize(then)) => Scaled::join(first, then),
                _ => None,
            };
            match joined {
                Some(joined) => *steps.last_mut().expect("it was looked at") = (i - 1, Arc::new(joined)),
                None => steps.push((i, t)),
            }
        }
        Ok(Compose { steps })
    }

    fn run<T>(&self, start: T, step: impl Fn(&dyn Transform, T) -> Result<T>) -> Result<T> {
        self.steps.iter().try_fold(start, |data, (i, t)| {
            step(t.as_ref(), data).map_err(|e| e.in_layer(format!("Compose.transforms[{i}]")))
        })
    }
}

impl Transform for Compose {
    fn apply_image(&self, image: &Image) -> Result<Tensor> {
        let step = |t: &dyn Transform, image: Image| {
            let next = Image::from(&t.apply_image(&image)?);
            // An array stays one until its channels come first.
            Ok(if image.is_opencv() && next.format() == DataFormat::Hwc { next.opencv() } else { next })
        };
        Ok(self.run(image.clone(), step)?.tensor().clone())
    }

    fn keys(&self) -> &[Key] {
        self.steps.first().map_or(&[Key::Image], |(_, first)| first.keys())
    }

    fn apply_sample(&self, sample: Vec<Tensor>) -> Result<Vec<Tensor>> {
        self.run(sample, |t, sample| t.apply_sample(sample))
    }
}
