//! Parameters as one vector.

use crate::Parameter;
use sampan_core::ops::joining::try_concat;
use sampan_core::{Error, Result, Tensor, ensure, no_grad};

/// The values of all parameters one after the other: a new tensor, which is trained on its own.
///
/// ```
/// use sampan_nn::{Linear, Members, utils};
/// let vector = utils::parameters_to_vector(&Linear::new(3, 4).parameters())?;
/// assert_eq!(vector.shape(), [16]);
/// # Ok::<(), sampan_core::Error>(())
/// ```
pub fn parameters_to_vector(parameters: &[Parameter]) -> Result<Tensor> {
    if parameters.is_empty() {
        return Err(Error::invalid("there are no parameters").in_op("parameters_to_vector"));
    }
    let vector = no_grad(|| {
        let parts = parameters.iter().map(|p| p.tensor().try_reshape(-1)).collect::<Result<Vec<_>>>()?;
        try_concat(&parts, 0)
    })?;
    vector.set_stop_gradient(false);
    Ok(vector)
}

/// Takes over values from a vector, as [`parameters_to_vector`] lays them out; what is left over at its end is not used.
pub fn vector_to_parameters(vector: &Tensor, parameters: &[Parameter]) -> Result<()> {
    let total: usize = parameters.iter().map(Parameter::numel).sum();
    ensure!(vector.ndim() == 1, "a vector is needed, got shape {:?}", vector.shape());
    ensure!(total <= vector.numel(), "the parameters have {total} elements, the vector has {}", vector.numel());
    no_grad(|| {
        let mut start = 0;
        for p in parameters {
            p.set_value(&vector.try_narrow(0, start, p.numel())?.try_reshape(p.shape())?)?;
            start += p.numel();
        }
        Ok(())
    })
}
