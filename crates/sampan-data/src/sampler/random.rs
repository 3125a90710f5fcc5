//! Random orders.

use super::{Indices, Sampler, expect_state};
use parking_lot::Mutex;
use sampan_core::{DType, Error, Result, Tensor, random};
use sampan_kernels::rng::{self, Generator};

/// Settings of a [`RandomSampler`].
#[derive(Clone, Debug, Default)]
pub struct RandomOptions {
    /// May an index come more than once?
    pub replacement: bool,
    /// Indices in a pass; as many as there are samples unless given.
    pub num_samples: Option<usize>,
    /// A generator of its own with this seed, instead of the process's.
    pub generator: Option<u64>,
}

/// A shuffled order, or random draws.
///
/// ```
/// # use sampan_data::{RandomSampler, Sampler};
/// let mut order: Vec<usize> = RandomSampler::new(5)?.iter()?.collect();
/// order.sort();
/// assert_eq!(order, [0, 1, 2, 3, 4]);
/// # Ok::<(), sampan_core::Error>(())
/// ```
pub struct RandomSampler {
    /// Samples to draw from.
    total: usize,
    num_samples: usize,
    replacement: bool,
    generator: Option<Mutex<Generator>>,
}

impl RandomSampler {
    /// A new order of `len` samples in every pass.
    pub fn new(len: usize) -> Result<RandomSampler> {
        RandomSampler::with(len, RandomOptions::default())
    }

    /// With settings.
    pub fn with(len: usize, options: RandomOptions) -> Result<RandomSampler> {
        let num_samples = options.num_samples.unwrap_or(len);
        let fail = |why: String| Err(Error::invalid(why).in_op("RandomSampler"));
        if !options.replacement && num_samples > len {
            return fail(format!("num_samples {num_samples} must be at most the {len} samples without replacement"));
        }
        if num_samples == 0 || len == 0 {
            return fail(format!("expected at least one sample to draw, got {num_samples} of {len}"));
        }
        let generator = options.generator.map(|seed| Mutex::new(Generator::new(seed)));
        Ok(RandomSampler { total: len, num_samples, replacement: options.replacement, generator })
    }

    fn reserve(&self, n: usize) -> (u64, u64) {
        match &self.generator {
            None => random::reserve(n),
            Some(own) => {
                let mut own = own.lock();
                let start = own.reserve(n);
                (own.seed(), start)
            }
        }
    }
}

impl Sampler for RandomSampler {
    fn len(&self) -> usize {
        self.num_samples
    }

    fn iter(&self) -> Result<Indices> {
        if !self.replacement {
            return Ok(Box::new(permutation(self.total, self.reserve(self.total)).take(self.num_samples)));
        }
        let mut draws = vec![0i64; self.num_samples];
        let (seed, start) = self.reserve(draws.len());
        rng::randint(seed, start, draws.as_mut_slice().into(), 0, self.total as i64);
        Ok(as_indices(draws))
    }

    fn state(&self) -> Vec<u64> {
        self.generator.as_ref().map_or(Vec::new(), |own| {
            let (seed, offset) = own.lock().state();
            vec![seed, offset]
        })
    }

    fn set_state(&self, state: &[u64]) -> Result<()> {
        expect_state("RandomSampler", state, if self.generator.is_some() { 2 } else { 0 })?;
        if let Some(own) = &self.generator {
            *own.lock() = Generator::from_state((state[0], state[1]));
        }
        Ok(())
    }
}

/// The numbers below `n` in the random order that a range of counters gives.
pub(crate) fn permutation(n: usize, (seed, start): (u64, u64)) -> impl Iterator<Item = usize> + Send {
    let mut order = vec![0; n];
    rng::randperm(seed, start, &mut order);
    order.into_iter().map(|i| i as usize)
}

fn as_indices(order: Vec<i64>) -> Indices {
    Box::new(order.into_iter().map(|i| i as usize))
}

/// Given indices in a random order, each once.
///
/// ```
/// # use sampan_data::{Sampler, SubsetRandomSampler};
/// let mut order: Vec<usize> = SubsetRandomSampler::new(vec![7, 3])?.iter()?.collect();
/// order.sort();
/// assert_eq!(order, [3, 7]);
/// # Ok::<(), sampan_core::Error>(())
/// ```
pub struct SubsetRandomSampler {
    indices: Vec<usize>,
}

impl SubsetRandomSampler {
    /// At least one index.
    pub fn new(indices: Vec<usize>) -> Result<SubsetRandomSampler> {
        if indices.is_empty() {
            return Err(Error::invalid("expected at least one index").in_op("SubsetRandomSampler"));
        }
        Ok(SubsetRandomSampler { indices })
    }
}

impl Sampler for SubsetRandomSampler {
    fn len(&self) -> usize {
        self.indices.len()
    }
    fn iter(&self) -> Result<Indices> {
        let indices = self.indices.clone();
        let n = indices.len();
        Ok(Box::new(permutation(n, random::reserve(n)).map(move |i| indices[i])))
    }
}

/// Indices drawn with given weights.
///
/// ```
/// # use sampan_data::{Sampler, WeightedRandomSampler};
/// let order: Vec<usize> = WeightedRandomSampler::new(&[0.0, 2.0, 0.0], 4, true)?.iter()?.collect();
/// assert_eq!(order, [1, 1, 1, 1]);
/// # Ok::<(), sampan_core::Error>(())
/// ```
pub struct WeightedRandomSampler {
    weights: Vec<f64>,
    classes: usize,
    num_samples: usize,
    replacement: bool,
}

impl WeightedRandomSampler {
    /// `num_samples` draws from the indices of `weights`.
    pub fn new(weights: &[f64], num_samples: usize, replacement: bool) -> Result<WeightedRandomSampler> {
        WeightedRandomSampler::rows(weights.to_vec(), weights.len(), num_samples, replacement)
    }

    /// Weights in a tensor of one axis, or of two: then `num_samples` draws for each row, one row after the other.
    pub fn from_tensor(weights: &Tensor, num_samples: usize, replacement: bool) -> Result<WeightedRandomSampler> {
        if !(1..=2).contains(&weights.ndim()) {
            let error = Error::invalid("weights must have one axis or two").in_op("WeightedRandomSampler");
            return Err(error.received(format!("shape {:?}", weights.shape())));
        }
        let values = weights.try_cast(DType::Float64)?.try_to_vec::<f64>()?;
        WeightedRandomSampler::rows(values, weights.dim(-1), num_samples, replacement)
    }

    fn rows(weights: Vec<f64>, classes: usize, num_samples: usize, replacement: bool) -> Result<WeightedRandomSampler> {
        let fail = |why: String| Err(Error::invalid(why).in_op("WeightedRandomSampler"));
        if num_samples == 0 {
            return fail("num_samples must be positive, got 0".into());
        }
        if weights.is_empty() {
            return fail("expected at least one weight".into());
        }
        if let Some((i, w)) = weights.iter().enumerate().find(|(_, w)| !(0.0..f64::INFINITY).contains(*w)) {
            return fail(format!("weights must be finite and not negative, weight {i} is {w}"));
        }
        for (row, weights) in weights.chunks(classes).enumerate() {
            let positive = weights.iter().filter(|w| **w > 0.0).count();
            if positive == 0 {
                return fail(format!("row {row} has no positive weight"));
            }
            if !replacement && positive < num_samples {
                return fail(format!(
                    "{num_samples} draws without replacement need as many positive weights, row {row} has {positive}"
                ));
            }
        }
        Ok(WeightedRandomSampler { weights, classes, num_samples, replacement })
    }
}

impl Sampler for WeightedRandomSampler {
    fn len(&self) -> usize {
        self.weights.len() / self.classes * self.num_samples
    }
    fn iter(&self) -> Result<Indices> {
        let (classes, k) = (self.classes, self.num_samples);
        let mut order = vec![0; self.len()];
        let (seed, start) = random::reserve(self.weights.len() / classes * k.max(classes));
        rng::multinomial(seed, start, self.weights.as_slice().into(), classes, k, self.replacement, &mut order)
            .map_err(|e| Error::invalid(format!("weights: {e:?}")).in_op("WeightedRandomSampler"))?;
        Ok(as_indices(order))
    }
}
