//! Prices of houses.

use crate::dataset::{Batch, Dataset, Sample, TensorDataset};
use crate::files::read_file;
use crate::source::{Remote, Split, no_valid_part};
use sampan_core::{Error, Result, Tensor};
use std::path::Path;

/// Columns of the table; the last is the price.
const COLUMNS: usize = 14;

/// Houses in Boston: 13 features, each less its mean and divided by its range, and the price, as float32. The first 80 %
/// of the rows are the training part.
///
/// ```no_run
/// # use sampan_data::{Dataset, Split, UciHousing};
/// let houses = UciHousing::new(Split::Train)?;
/// assert_eq!(houses.get(0)?[0].shape(), [13]);
/// # Ok::<(), sampan_core::Error>(())
/// ```
pub struct UciHousing(TensorDataset);

impl UciHousing {
    /// Downloads the set, unless it lies in the cache.
    pub fn new(split: Split) -> Result<UciHousing> {
        UciHousing::new_in(None, split)
    }

    /// The same with another folder for the file.
    pub fn new_in(root: Option<&Path>, split: Split) -> Result<UciHousing> {
        let remote = Remote {
            folder: "uci_housing",
            url: "http://paddlemodels.bj.bcebos.com/uci_housing/housing.data",
            md5: "d4accdce7a25600298819f8e28e8d593",
        };
        UciHousing::open(remote.fetch(root)?, split)
    }

    /// A file of numbers between blanks, 14 to a row.
    pub fn open(data_file: impl AsRef<Path>, split: Split) -> Result<UciHousing> {
        let path = data_file.as_ref();
        UciHousing::parse(&String::from_utf8_lossy(&read_file(path)?), split)
            .map_err(|e| e.in_op("UciHousing").in_layer(path.display().to_string()))
    }

    fn parse(text: &str, split: Split) -> Result<UciHousing> {
        let number = |word: &str| word.parse::<f64>().ok().filter(|n| n.is_finite());
        let mut table = text
            .split_whitespace()
            .map(|word| number(word).ok_or_else(|| Error::invalid("expected numbers").received(format!("{word:?}"))))
            .collect::<Result<Vec<f64>>>()?;
        let rows = table.len() / COLUMNS;
        if rows == 0 || !table.len().is_multiple_of(COLUMNS) {
            let error = Error::invalid(format!("expected rows of {COLUMNS} numbers"));
            return Err(error.received(format!("{} numbers", table.len())));
        }
        for column in 0..COLUMNS - 1 {
            let values = || table.iter().skip(column).step_by(COLUMNS);
            let range = values().fold(f64::MIN, |a, b| a.max(*b)) - values().fold(f64::MAX, |a, b| a.min(*b));
            let mean = values().sum::<f64>() / rows as f64;
            // A column of one value says nothing.
            let scale = if range > 0.0 { 1.0 / range } else { 0.0 };
            table.iter_mut().skip(column).step_by(COLUMNS).for_each(|v| *v = (*v - mean) * scale);
        }
        let cut = rows * 4 / 5;
        let part = match split {
            Split::Train => &table[..cut * COLUMNS],
            Split::Test => &table[cut * COLUMNS..],
            Split::Valid => return Err(no_valid_part("UciHousing")),
        };
        let (mut features, mut prices) = (Vec::new(), Vec::new());
        for row in part.chunks_exact(COLUMNS) {
            features.extend(row[..COLUMNS - 1].iter().map(|&v| v as f32));
            prices.push(row[COLUMNS - 1] as f32);
        }
        let n = prices.len();
        let features = Tensor::try_from_slice(&features, [n, COLUMNS - 1])?;
        Ok(UciHousing(TensorDataset::new(vec![features, Tensor::try_from_slice(&prices, [n, 1])?])?))
    }
}

impl Dataset for UciHousing {
    fn len(&self) -> usize {
        self.0.len()
    }
    fn get(&self, index: usize) -> Result<Sample> {
        self.0.get(index)
    }
    fn batch(&self, indices: &[usize]) -> Option<Result<Batch>> {
        self.0.batch(indices)
    }
}
