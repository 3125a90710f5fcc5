//! Numbers that look random and are the same in every language: `scripts/formula.py` repeats them.

use sampan_core::{DType, Result, Tensor};
use sampan_nn::init::{Initializer, set_global_initializer};
use sampan_nn::{Members, unique_name};
use std::sync::{Arc, Mutex, PoisonError};

pub fn fnv(text: &str) -> u64 {
    text.bytes().fold(0xCBF2_9CE4_8422_2325, |h, byte| (h ^ u64::from(byte)).wrapping_mul(0x100_0000_01B3))
}

/// splitmix64 from the name's hash.
fn bits(name: &str, n: usize) -> impl Iterator<Item = u64> {
    let start = fnv(name);
    (1..=n as u64).map(move |i| {
        let z = start.wrapping_add(i.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        let z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    })
}

/// Numbers in `[-1, 1)`.
fn fractions(name: &str, shape: &[usize]) -> impl Iterator<Item = f64> {
    bits(name, shape.iter().product()).map(|b| (b >> 40) as f64 / (1 << 23) as f64 - 1.0)
}

pub fn uniform(name: &str, shape: &[usize]) -> Tensor {
    Tensor::from_vec(fractions(name, shape).map(|u| u as f32).collect::<Vec<_>>(), shape)
}

pub fn integers(name: &str, shape: &[usize], below: u64) -> Tensor {
    let n = shape.iter().product();
    Tensor::from_vec(bits(name, n).map(|b| (b % below) as i64).collect::<Vec<_>>(), shape)
}

/// A parameter or buffer: a gain of 6 keeps the size of activations; variances are positive.
fn state(name: &str, shape: &[usize], gain: f64) -> Tensor {
    let last = name.rsplit('.').next().unwrap_or(name);
    let (start, scale) = match shape {
        _ if last == "_variance" => (1.0, 0.5),
        [fan_in, _] => (0.0, (gain / *fan_in as f64).sqrt()),
        [_, fan_in @ ..] if !fan_in.is_empty() => (0.0, (gain / fan_in.iter().product::<usize>() as f64).sqrt()),
        _ if last.starts_with("weight") => (1.0, 0.2),
        _ => (0.0, 0.1),
    };
    let values = fractions(name, shape).map(|u| (start + scale * u) as f32);
    Tensor::from_vec(values.collect::<Vec<_>>(), shape)
}

/// Fills the whole state of a layer; a tensor with two names takes the values of the first in the alphabet.
pub fn fill(layer: &(impl Members + ?Sized), gain: f64) {
    for (name, t) in layer.state_dict().iter().rev() {
        t.set_value(&state(name, t.shape(), gain));
    }
}

/// First values that cost little, where most networks are built only to be filled or looked at.
pub enum Cheap {
    /// No values, only shapes.
    Meta,
    /// The same numbers for every output.
    Noise,
}

impl Initializer for Cheap {
    fn init(&self, shape: &[usize], dtype: DType) -> Result<Tensor> {
        if let Cheap::Meta = self {
            return Ok(Tensor::meta(shape, dtype));
        }
        let row: Vec<f32> = state("weight", &[shape.iter().skip(1).product(), 1], 6.0).to_vec();
        let values = row.repeat(shape.first().copied().unwrap_or(1));
        Tensor::from_vec(values, shape).try_cast(dtype)
    }
}

/// Builds a network with fresh names and cheap first values. Names and initializers belong to the whole process, so that
/// one network is built at a time.
pub fn build<R>(cheap: Cheap, make: impl FnOnce() -> R) -> R {
    static TURN: Mutex<()> = Mutex::new(());
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    set_global_initializer(Some(Arc::new(cheap)), None);
    let network = unique_name::guard(make);
    set_global_initializer(None, None);
    network
}
