//! Samples to a batch.

use crate::dataset::{Batch, Sample};
use sampan_core::ops::joining::try_stack;
use sampan_core::{Error, Result, Tensor};

/// Stacks each field of the samples along a new first axis. Nothing is converted: all samples must have the same fields
/// with the same shapes and dtypes.
///
/// ```
/// # use sampan_core::Tensor;
/// # use sampan_data::default_collate;
/// let sample = |x: f32, y: i64| vec![Tensor::new([x, x]), Tensor::new(y)];
/// let batch = default_collate(vec![sample(1.0, 0), sample(2.0, 1)])?;
/// assert_eq!((batch[0].shape(), batch[1].shape()), (&[2, 2][..], &[2][..]));
/// # Ok::<(), sampan_core::Error>(())
/// ```
pub fn default_collate(samples: Vec<Sample>) -> Result<Batch> {
    let fields = samples.first().ok_or_else(|| Error::invalid("a batch needs at least one sample").in_op("collate"))?;
    let fields = fields.len();
    if let Some((i, s)) = samples.iter().enumerate().find(|(_, s)| s.len() != fields) {
        let error = Error::invalid(format!("all samples must have the same number of fields, {fields} as sample 0"));
        return Err(error.received(format!("{} fields in sample {i} of the batch", s.len())).in_op("collate"));
    }
    let mut columns: Vec<Vec<Tensor>> = (0..fields).map(|_| Vec::with_capacity(samples.len())).collect();
    for sample in samples {
        sample.into_iter().zip(&mut columns).for_each(|(field, column)| column.push(field));
    }
    columns.into_iter().enumerate().map(|(field, column)| stack(field, &column)).collect()
}

fn stack(field: usize, column: &[Tensor]) -> Result<Tensor> {
    let form = |t: &Tensor| format!("{:?} {}", t.shape(), t.dtype());
    let same = |t: &&Tensor| t.shape() == column[0].shape() && t.dtype() == column[0].dtype();
    if let Some(i) = column.iter().position(|t| !same(&t)) {
        let error = Error::invalid(format!(
            "field {field} must have the same shape and dtype in all samples, expected {} as in sample 0",
            form(&column[0])
        ));
        return Err(error
            .received(format!("{} in sample {i} of the batch", form(&column[i])))
            .hint("bring samples to one size in a transform, or set collate_fn")
            .in_op("collate"));
    }
    try_stack(column, 0)
}
