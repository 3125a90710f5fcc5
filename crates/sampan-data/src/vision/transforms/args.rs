//! Arguments that several transforms take: one number or several, the kinds of a sample's fields.

use sampan_core::value::Arg;
use sampan_core::{Result, Value, bail, ensure};

/// One number or a list of numbers: a fill colour, a range, an angle.
#[derive(Clone, Debug, PartialEq)]
pub enum Numbers {
    /// A number alone.
    One(f64),
    /// A list.
    Many(Vec<f64>),
}

impl Numbers {
    /// The numbers; a number alone is a list of one.
    pub fn values(&self) -> &[f64] {
        match self {
            Numbers::One(v) => std::slice::from_ref(v),
            Numbers::Many(v) => v,
        }
    }

    /// Exactly two numbers.
    pub(super) fn pair(&self, name: &str) -> Result<[f64; 2]> {
        match self {
            Numbers::Many(v) if v.len() == 2 => Ok([v[0], v[1]]),
            other => bail!("{name} must be two numbers, got {:?}", other.values()),
        }
    }

    /// Two numbers, the first not above the second.
    pub(super) fn range(&self, name: &str) -> Result<[f64; 2]> {
        let [low, high] = self.pair(name)?;
        ensure!(low <= high, "{name} must be (min, max), got ({low}, {high})");
        Ok([low, high])
    }

    /// A range around zero from one number, or a list of one of the given lengths.
    pub(super) fn angles(&self, name: &str, lengths: &[usize]) -> Result<Vec<f64>> {
        match self {
            Numbers::One(v) => {
                ensure!(*v >= 0.0, "if {name} is a single number it must not be negative, got {v}");
                Ok(vec![-v, *v])
            }
            Numbers::Many(v) => {
                let words: Vec<String> = lengths.iter().map(usize::to_string).collect();
                ensure!(
                    lengths.contains(&v.len()),
                    "{name} must be a number or {} of them, got {v:?}",
                    words.join(" or ")
                );
                Ok(v.clone())
            }
        }
    }

    /// One value for each channel; a number alone is for all of them.
    pub(super) fn per_channel(&self, name: &str, channels: usize) -> Result<Vec<f64>> {
        let v = self.values();
        match v.len() {
            1 => Ok(vec![v[0]; channels]),
            n if n == channels => Ok(v.to_vec()),
            n => bail!("{name} must be one number or one for each channel, got {n} for {channels} channels"),
        }
    }
}

impl<'a> Arg<'a> for Numbers {
    const EXPECTED: &'static str = "a number or a list of numbers";
    fn read(v: &'a Value) -> Option<Self> {
        Some(match v {
            Value::Int(i) => Numbers::One(*i as f64),
            Value::Float(f) => Numbers::One(*f),
            list => Numbers::Many(Vec::read(list)?),
        })
    }
}

impl From<Numbers> for Value {
    fn from(v: Numbers) -> Value {
        match v {
            Numbers::One(v) => Value::Float(v),
            Numbers::Many(v) => Value::Floats(v),
        }
    }
}

macro_rules! from_number {
    ($($t:ty),*) => {$(
        impl From<$t> for Numbers {
            fn from(v: $t) -> Numbers { Numbers::One(v as f64) }
        }
        impl From<Vec<$t>> for Numbers {
            fn from(v: Vec<$t>) -> Numbers { Numbers::Many(v.into_iter().map(|x| x as f64).collect()) }
        }
        impl From<&[$t]> for Numbers {
            fn from(v: &[$t]) -> Numbers { Numbers::Many(v.iter().map(|&x| x as f64).collect()) }
        }
        impl<const N: usize> From<[$t; N]> for Numbers {
            fn from(v: [$t; N]) -> Numbers { Numbers::Many(v.iter().map(|&x| x as f64).collect()) }
        }
    )*};
}
from_number!(u8, i32, i64, f32, f64);

impl From<&Numbers> for Numbers {
    fn from(v: &Numbers) -> Numbers {
        v.clone()
    }
}

/// What a field of a sample is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Key {
    /// A picture.
    Image,
    /// Points, `[N, 2]`.
    Coords,
    /// Boxes, `[N, 4]`: left, top, right, bottom.
    Boxes,
    /// A map of classes, one for each pixel.
    Mask,
}

impl Key {
    /// Paddle's word.
    pub fn name(self) -> &'static str {
        match self {
            Key::Image => "image",
            Key::Coords => "coords",
            Key::Boxes => "boxes",
            Key::Mask => "mask",
        }
    }

    fn parse(word: &str) -> Option<Key> {
        [Key::Image, Key::Coords, Key::Boxes, Key::Mask].into_iter().find(|k| k.name() == word)
    }
}

/// What the fields of a sample are, in order: Paddle's `keys`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Keys(Vec<Key>);

impl Keys {
    /// The given kinds, or a picture first and nothing said about the rest.
    pub(super) fn or_image(keys: Option<Keys>) -> Keys {
        keys.unwrap_or_else(|| Keys(vec![Key::Image]))
    }
}

impl std::ops::Deref for Keys {
    type Target = [Key];
    fn deref(&self) -> &[Key] {
        &self.0
    }
}

impl From<&[Key]> for Keys {
    fn from(keys: &[Key]) -> Keys {
        Keys(keys.to_vec())
    }
}

impl<const N: usize> From<[Key; N]> for Keys {
    fn from(keys: [Key; N]) -> Keys {
        Keys(keys.to_vec())
    }
}

impl From<Keys> for Value {
    fn from(keys: Keys) -> Value {
        Value::List(keys.0.into_iter().map(|k| k.name().into()).collect())
    }
}

impl<'a> Arg<'a> for Keys {
    const EXPECTED: &'static str = "a list of the words image, coords, boxes and mask";
    fn read(v: &'a Value) -> Option<Self> {
        let Value::List(words) = v else { return None };
        words.iter().map(|w| <&str>::read(w).and_then(Key::parse)).collect::<Option<_>>().map(Keys)
    }
}

/// Height and width from one number (both) or two.
pub(super) fn square_or_pair(size: &[i64], name: &str) -> Result<(usize, usize)> {
    let (h, w) = match *size {
        [s] => (s, s),
        [h, w] => (h, w),
        _ => bail!("{name} must be a number or (height, width), got {size:?}"),
    };
    ensure!(h > 0 && w > 0, "{name} must be positive, got {size:?}");
    Ok((h as usize, w as usize))
}

/// The size of a picture to be made, if it is a size that pictures have.
pub(super) fn reasonable(height: f64, width: f64) -> Result<(usize, usize)> {
    let fits = (1.0..=1e6).contains(&height) && (1.0..=1e6).contains(&width) && height * width <= 1e9;
    ensure!(fits, "a picture of {height} by {width} pixels cannot be made");
    Ok((height as usize, width as usize))
}

/// A probability.
pub(super) fn probability(prob: f64) -> Result<f64> {
    ensure!((0.0..=1.0).contains(&prob), "prob must lie between 0 and 1, got {prob}");
    Ok(prob)
}
