//! Data sets made of data sets.

use super::{Batch, Dataset, IterableDataset, Sample, Samples, check_index};
use crate::sampler::permutation;
use sampan_core::{Error, Result, random};
use std::sync::Arc;

fn none_given(what: &str) -> Error {
    Error::invalid("expected at least one data set, the list is empty").in_op(what)
}

/// The fields of several data sets of one length, side by side.
///
/// ```
/// # use sampan_core::Tensor;
/// # use sampan_data::{ComposeDataset, Dataset, FnDataset};
/// let (a, b) = (FnDataset::new(2, |i| Ok(vec![Tensor::new(i as i64)])), FnDataset::new(2, |_| Ok(vec![Tensor::new(0.5f32)])));
/// let both = ComposeDataset::new(vec![Box::new(a), Box::new(b)])?;
/// assert_eq!(both.get(1)?.len(), 2);
/// # Ok::<(), sampan_core::Error>(())
/// ```
pub struct ComposeDataset {
    datasets: Vec<Box<dyn Dataset>>,
}

impl ComposeDataset {
    /// Data sets of the same length.
    pub fn new(datasets: Vec<Box<dyn Dataset>>) -> Result<ComposeDataset> {
        let first = datasets.first().ok_or_else(|| none_given("ComposeDataset"))?;
        if let Some(other) = datasets.iter().find(|d| d.len() != first.len()) {
            let error = Error::invalid("all data sets must have the same length").in_op("ComposeDataset");
            return Err(error.received(format!(
                "{} with {} samples and {} with {}",
                first.name(),
                first.len(),
                other.name(),
                other.len()
            )));
        }
        Ok(ComposeDataset { datasets })
    }
}

impl Dataset for ComposeDataset {
    fn len(&self) -> usize {
        self.datasets[0].len()
    }
    fn get(&self, index: usize) -> Result<Sample> {
        let mut fields = Vec::new();
        for dataset in &self.datasets {
            fields.extend(dataset.get(index)?);
        }
        Ok(fields)
    }
    fn batch(&self, indices: &[usize]) -> Option<Result<Batch>> {
        let parts: Option<Result<Vec<Batch>>> = self.datasets.iter().map(|d| d.batch(indices)).collect();
        parts.map(|parts| Ok(parts?.into_iter().flatten().collect()))
    }
}

/// Data sets one behind the other.
///
/// ```
/// # use sampan_core::Tensor;
/// # use sampan_data::{ConcatDataset, Dataset, TensorDataset};
/// let part = |values: [i64; 2]| TensorDataset::new(vec![Tensor::new(values)]).unwrap();
/// let all = ConcatDataset::new(vec![Box::new(part([1, 2])), Box::new(part([3, 4]))])?;
/// assert_eq!((all.len(), all.get(2)?[0].to_f64()), (4, 3.0));
/// # Ok::<(), sampan_core::Error>(())
/// ```
pub struct ConcatDataset {
    datasets: Vec<Box<dyn Dataset>>,
    /// Where each ends.
    ends: Vec<usize>,
}

impl ConcatDataset {
    /// At least one data set.
    pub fn new(datasets: Vec<Box<dyn Dataset>>) -> Result<ConcatDataset> {
        if datasets.is_empty() {
            return Err(none_given("ConcatDataset"));
        }
        let ends = datasets.iter().scan(0, |end, d| (*end += d.len(), Some(*end)).1).collect();
        Ok(ConcatDataset { datasets, ends })
    }

    /// Which data set holds `index`, and where that one begins.
    fn part(&self, index: usize) -> (usize, usize) {
        let part = self.ends.partition_point(|&end| end <= index);
        (part, if part == 0 { 0 } else { self.ends[part - 1] })
    }
}

impl Dataset for ConcatDataset {
    fn len(&self) -> usize {
        *self.ends.last().expect("there is at least one")
    }
    fn get(&self, index: usize) -> Result<Sample> {
        check_index(self.name(), index, self.len())?;
        let (part, start) = self.part(index);
        self.datasets[part].get(index - start)
    }
    fn batch(&self, indices: &[usize]) -> Option<Result<Batch>> {
        // Whole batches only where they lie within one part.
        let (part, start) = self.part(*indices.first()?);
        let inside = |&i: &usize| i >= start && i < self.ends[part];
        if part == self.ends.len() || !indices.iter().all(inside) {
            return None;
        }
        let indices: Vec<usize> = indices.iter().map(|i| i - start).collect();
        self.datasets[part].batch(&indices)
    }
}

/// Iterable data sets one behind the other.
///
/// ```
/// # use sampan_core::Tensor;
/// # use sampan_data::{ChainDataset, FnIterable, IterableDataset};
/// let numbers = |from: i64| FnIterable::new(move || (from..from + 2).map(|i| Ok(vec![Tensor::new(i)])));
/// let chain = ChainDataset::new(vec![Box::new(numbers(0)), Box::new(numbers(10))])?;
/// let all: Vec<f64> = chain.iter()?.map(|s| s.unwrap()[0].to_f64()).collect();
/// assert_eq!(all, [0.0, 1.0, 10.0, 11.0]);
/// # Ok::<(), sampan_core::Error>(())
/// ```
pub struct ChainDataset {
    datasets: Vec<Arc<dyn IterableDataset>>,
}

impl ChainDataset {
    /// At least one data set.
    pub fn new(datasets: Vec<Box<dyn IterableDataset>>) -> Result<ChainDataset> {
        if datasets.is_empty() {
            return Err(none_given("ChainDataset"));
        }
        Ok(ChainDataset { datasets: datasets.into_iter().map(Arc::from).collect() })
    }
}

impl IterableDataset for ChainDataset {
    fn iter(&self) -> Result<Samples> {
        let passes = self.datasets.clone().into_iter().map(|d| d.iter());
        Ok(Box::new(passes.flat_map(|pass| match pass {
            Ok(samples) => samples,
            Err(error) => Box::new(std::iter::once(Err(error))),
        })))
    }
}

/// Some samples of a data set, in an order of their own.
///
/// ```
/// # use sampan_core::Tensor;
/// # use sampan_data::{Dataset, Subset, TensorDataset};
/// let data = TensorDataset::new(vec![Tensor::new([10i64, 11, 12])])?;
/// let last = Subset::new(data, vec![2, 1])?;
/// assert_eq!(last.get(0)?[0].to_f64(), 12.0);
/// # Ok::<(), sampan_core::Error>(())
/// ```
pub struct Subset<D> {
    dataset: D,
    indices: Vec<usize>,
}

impl<D: Dataset> Subset<D> {
    /// The samples at `indices`, which may repeat.
    pub fn new(dataset: D, indices: Vec<usize>) -> Result<Subset<D>> {
        for &i in &indices {
            check_index(dataset.name(), i, dataset.len()).map_err(|e| e.in_op("Subset"))?;
        }
        Ok(Subset { dataset, indices })
    }

    /// Where its samples lie in the whole set.
    pub fn indices(&self) -> &[usize] {
        &self.indices
    }
}

impl<D: Dataset> Dataset for Subset<D> {
    fn name(&self) -> &str {
        self.dataset.name()
    }
    fn len(&self) -> usize {
        self.indices.len()
    }
    fn get(&self, index: usize) -> Result<Sample> {
        check_index(self.name(), index, self.len())?;
        self.dataset.get(self.indices[index])
    }
    fn batch(&self, indices: &[usize]) -> Option<Result<Batch>> {
        let inner: Option<Vec<usize>> = indices.iter().map(|&i| self.indices.get(i).copied()).collect();
        self.dataset.batch(&inner?)
    }
}

/// How a data set is divided: numbers of samples, or fractions of the whole.
pub enum Lengths {
    /// Samples in each part; together all of them.
    Counts(Vec<usize>),
    /// Share of each part; together 1.
    Fractions(Vec<f64>),
}

impl<const N: usize> From<[usize; N]> for Lengths {
    fn from(counts: [usize; N]) -> Lengths {
        Lengths::Counts(counts.to_vec())
    }
}
impl<const N: usize> From<[f64; N]> for Lengths {
    fn from(fractions: [f64; N]) -> Lengths {
        Lengths::Fractions(fractions.to_vec())
    }
}
impl From<Vec<usize>> for Lengths {
    fn from(counts: Vec<usize>) -> Lengths {
        Lengths::Counts(counts)
    }
}
impl From<Vec<f64>> for Lengths {
    fn from(fractions: Vec<f64>) -> Lengths {
        Lengths::Fractions(fractions)
    }
}

impl Lengths {
    /// Fractions become counts rounded down; what is left over goes one by one to the first parts.
    fn counts(self, total: usize) -> Result<Vec<usize>> {
        let counts = match self {
            Lengths::Counts(counts) => counts,
            Lengths::Fractions(fractions) => {
                if let Some((i, f)) = fractions.iter().enumerate().find(|(_, f)| !(0.0..=1.0).contains(*f)) {
                    return Err(Error::invalid(format!("fraction {i} is not between 0 and 1, got {f}")));
                }
                let sum: f64 = fractions.iter().sum();
                if (sum - 1.0).abs() > 1e-9 {
                    return Err(Error::invalid(format!("fractions {fractions:?} must add up to 1, they give {sum}")));
                }
                let mut counts: Vec<usize> = fractions.iter().map(|f| (total as f64 * f).floor() as usize).collect();
                let left = total.saturating_sub(counts.iter().sum());
                let parts = counts.len();
                (0..left).for_each(|i| counts[i % parts] += 1);
                counts
            }
        };
        let sum = counts.iter().try_fold(0usize, |sum, &n| sum.checked_add(n));
        if sum != Some(total) {
            return Err(Error::invalid(format!(
                "lengths {counts:?} must add up to the {total} samples of the data set"
            )));
        }
        Ok(counts)
    }
}

/// Divides a data set at random into parts that have no sample in common.
///
/// ```
/// # use sampan_core::{random, Tensor};
/// # use sampan_data::{Dataset, TensorDataset, random_split};
/// random::seed(1);
/// let data = TensorDataset::new(vec![Tensor::new([1i64, 2, 3, 4, 5])])?;
/// let parts = random_split(data, [0.8, 0.2])?;
/// assert_eq!((parts[0].len(), parts[1].len()), (4, 1));
/// # Ok::<(), sampan_core::Error>(())
/// ```
pub fn random_split<D: Dataset>(dataset: D, lengths: impl Into<Lengths>) -> Result<Vec<Subset<Arc<D>>>> {
    let counts = lengths.into().counts(dataset.len()).map_err(|e| e.in_op("random_split"))?;
    let mut rest = permutation(dataset.len(), random::reserve(dataset.len()));
    let dataset = Arc::new(dataset);
    counts.iter().map(|&n| Subset::new(dataset.clone(), rest.by_ref().take(n).collect())).collect()
}
