//! What data can be loaded from: by index ([`Dataset`]) or one after the other ([`IterableDataset`]).

mod combine;

pub use combine::{ChainDataset, ComposeDataset, ConcatDataset, Lengths, Subset, random_split};
use sampan_core::{Error, Result, Tensor};
use std::sync::Arc;

/// The fields of one sample, such as an image and its label.
pub type Sample = Vec<Tensor>;
/// The same fields for many samples, stacked along a new first axis.
pub type Batch = Vec<Tensor>;
/// Samples one after the other.
pub type Samples = Box<dyn Iterator<Item = Result<Sample>> + Send>;

/// The fields of a sample or a batch by name, as many as the pattern has.
///
/// ```
/// # use sampan_core::Tensor;
/// # use sampan_data::{DataLoader, TensorDataset, fields};
/// let data = TensorDataset::new(vec![Tensor::new([[1.0f32], [2.0]]), Tensor::new([0i64, 1])])?;
/// for batch in &DataLoader::new(data, 2, false)? {
///     let [points, labels] = fields(batch?)?;
///     assert_eq!((points.shape(), labels.shape()), (&[2, 1][..], &[2][..]));
/// }
/// # Ok::<(), sampan_core::Error>(())
/// ```
pub fn fields<const N: usize>(batch: Vec<Tensor>) -> Result<[Tensor; N]> {
    batch.try_into().map_err(|batch: Vec<Tensor>| {
        let shapes: Vec<&[usize]> = batch.iter().map(Tensor::shape).collect();
        Error::invalid(format!("{N} fields are wanted, there are {}", batch.len()))
            .received(format!("shapes {shapes:?}"))
            .in_op("fields")
    })
}

/// Samples that can be asked for by index, from many threads at once.
///
/// ```
/// use sampan_core::{Result, Tensor};
/// use sampan_data::{Dataset, Sample};
/// struct Doubles;
/// impl Dataset for Doubles {
///     fn len(&self) -> usize {
///         100
///     }
///     fn get(&self, index: usize) -> Result<Sample> {
///         Ok(vec![Tensor::new(2 * index as i64)])
///     }
/// }
/// assert_eq!(Doubles.name(), "Doubles");
/// assert_eq!(Doubles.get(4)?[0].to_vec::<i64>(), [8]);
/// # Ok::<(), sampan_core::Error>(())
/// ```
pub trait Dataset: Send + Sync {
    /// What errors call it; the type's name unless said otherwise.
    fn name(&self) -> &str {
        type_name::<Self>()
    }

    /// Number of samples.
    fn len(&self) -> usize;

    /// Has it no samples?
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The sample at `index`, which is less than [`len`](Dataset::len).
    fn get(&self, index: usize) -> Result<Sample>;

    /// A whole batch at once, where that is cheaper than one by one and gives the same values.
    fn batch(&self, _indices: &[usize]) -> Option<Result<Batch>> {
        None
    }

    /// The same samples, changed by `f` when they are read.
    ///
    /// ```
    /// # use sampan_core::Tensor;
    /// # use sampan_data::{Dataset, TensorDataset};
    /// let data = TensorDataset::new(vec![Tensor::new([1.0f32, 2.0])])?.map(|sample| Ok(vec![&sample[0] * 10.0]));
    /// assert_eq!(data.get(1)?[0].to_f64(), 20.0);
    /// # Ok::<(), sampan_core::Error>(())
    /// ```
    fn map<F>(self, f: F) -> Map<Self, F>
    where
        Self: Sized,
        F: Fn(Sample) -> Result<Sample> + Send + Sync,
    {
        Map { dataset: self, f }
    }
}

/// Samples that come one after the other, such as the lines of a stream.
///
/// With several workers every worker runs the whole iteration; split it by [`get_worker_info`](crate::get_worker_info),
/// or each sample comes once per worker.
pub trait IterableDataset: Send + Sync {
    /// What errors call it; the type's name unless said otherwise.
    fn name(&self) -> &str {
        type_name::<Self>()
    }

    /// One pass over the samples.
    fn iter(&self) -> Result<Samples>;
}

/// The name of a type without its path and parameters.
fn type_name<T: ?Sized>() -> &'static str {
    let full = std::any::type_name::<T>();
    let path = full.split('<').next().unwrap_or(full);
    path.rsplit("::").next().unwrap_or(path)
}

/// Refuses an index that lies outside.
pub(crate) fn check_index(name: &str, index: usize, len: usize) -> Result<()> {
    if index < len {
        return Ok(());
    }
    Err(Error::range(format!("{name} has {len} samples, there is none at index {index}")))
}

macro_rules! forward {
    ($($pointer:ident),*) => {$(
        impl<D: Dataset + ?Sized> Dataset for $pointer<D> {
            fn name(&self) -> &str {
                (**self).name()
            }
            fn len(&self) -> usize {
                (**self).len()
            }
            fn get(&self, index: usize) -> Result<Sample> {
                (**self).get(index)
            }
            fn batch(&self, indices: &[usize]) -> Option<Result<Batch>> {
                (**self).batch(indices)
            }
        }
        impl<D: IterableDataset + ?Sized> IterableDataset for $pointer<D> {
            fn name(&self) -> &str {
                (**self).name()
            }
            fn iter(&self) -> Result<Samples> {
                (**self).iter()
            }
        }
    )*};
}
forward!(Arc, Box);

/// A data set changed by a function: see [`Dataset::map`].
pub struct Map<D, F> {
    dataset: D,
    f: F,
}

impl<D: Dataset, F: Fn(Sample) -> Result<Sample> + Send + Sync> Dataset for Map<D, F> {
    fn name(&self) -> &str {
        self.dataset.name()
    }
    fn len(&self) -> usize {
        self.dataset.len()
    }
    fn get(&self, index: usize) -> Result<Sample> {
        (self.f)(self.dataset.get(index)?)
    }
}

/// A function of the index as a data set.
///
/// ```
/// # use sampan_core::Tensor;
/// # use sampan_data::{Dataset, FnDataset};
/// let data = FnDataset::new(3, |i| Ok(vec![Tensor::new(i as i64)])).named("numbers");
/// assert_eq!((data.name(), data.len()), ("numbers", 3));
/// assert!(data.get(3).is_err());
/// ```
pub struct FnDataset<F> {
    name: String,
    len: usize,
    f: F,
}

impl<F: Fn(usize) -> Result<Sample> + Send + Sync> FnDataset<F> {
    /// `len` samples, made by `f`.
    pub fn new(len: usize, f: F) -> Self {
        FnDataset { name: "FnDataset".into(), len, f }
    }

    /// Gives it a name for errors.
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }
}

impl<F: Fn(usize) -> Result<Sample> + Send + Sync> Dataset for FnDataset<F> {
    fn name(&self) -> &str {
        &self.name
    }
    fn len(&self) -> usize {
        self.len
    }
    fn get(&self, index: usize) -> Result<Sample> {
        check_index(&self.name, index, self.len)?;
        (self.f)(index)
    }
}

/// A function that starts an iteration as an iterable data set.
///
/// ```
/// # use sampan_core::Tensor;
/// # use sampan_data::{FnIterable, IterableDataset};
/// let data = FnIterable::new(|| (0..3i64).map(|i| Ok(vec![Tensor::new(i)])));
/// assert_eq!(data.iter()?.count(), 3);
/// # Ok::<(), sampan_core::Error>(())
/// ```
pub struct FnIterable<F> {
    f: F,
}

impl<F, I> FnIterable<F>
where
    F: Fn() -> I + Send + Sync,
    I: Iterator<Item = Result<Sample>> + Send + 'static,
{
    /// `f` starts a pass over the samples.
    pub fn new(f: F) -> Self {
        FnIterable { f }
    }
}

impl<F, I> IterableDataset for FnIterable<F>
where
    F: Fn() -> I + Send + Sync,
    I: Iterator<Item = Result<Sample>> + Send + 'static,
{
    fn iter(&self) -> Result<Samples> {
        Ok(Box::new((self.f)()))
    }
}

/// Tensors with one row for each sample; each tensor is a field.
///
/// ```
/// # use sampan_core::Tensor;
/// # use sampan_data::{Dataset, TensorDataset};
/// let data = TensorDataset::new(vec![Tensor::new([[1.0f32, 2.0], [3.0, 4.0]]), Tensor::new([7i64, 8])])?;
/// assert_eq!(data.get(1)?[0].to_vec::<f32>(), [3.0, 4.0]);
/// assert_eq!(data.batch(&[1, 0]).unwrap()?[1].to_vec::<i64>(), [8, 7]);
/// # Ok::<(), sampan_core::Error>(())
/// ```
pub struct TensorDataset {
    tensors: Vec<Tensor>,
    len: usize,
}

impl TensorDataset {
    /// The fields, all with the same first extent.
    pub fn new(tensors: Vec<Tensor>) -> Result<TensorDataset> {
        let Some(&len) = tensors.first().and_then(|t| t.shape().first()) else {
            return Err(Error::invalid("expected at least one tensor with at least one axis").in_op("TensorDataset"));
        };
        for (i, t) in tensors.iter().enumerate() {
            if t.shape().first() != Some(&len) {
                let error = Error::invalid(format!("all tensors must have the same first extent, {len} as tensors[0]"));
                return Err(error.received(format!("tensors[{i}] of shape {:?}", t.shape())).in_op("TensorDataset"));
            }
        }
        Ok(TensorDataset { tensors, len })
    }
}

impl Dataset for TensorDataset {
    fn len(&self) -> usize {
        self.len
    }
    fn get(&self, index: usize) -> Result<Sample> {
        check_index(self.name(), index, self.len)?;
        self.tensors.iter().map(|t| t.try_get(index as i64)).collect()
    }
    fn batch(&self, indices: &[usize]) -> Option<Result<Batch>> {
        let rows: Vec<i64> = indices.iter().map(|&i| i as i64).collect();
        let select = || {
            let rows = Tensor::try_from_slice(&rows, [rows.len()])?;
            self.tensors.iter().map(|t| t.try_index_select(&rows, 0)).collect()
        };
        Some(select())
    }
}
