//! Paddle's `nn.utils` with its own arguments, for those who call by name.

use super::SpectralNormOptions;
use crate::optim::Parameters;
use crate::{Parameter, SharedLayer};
use sampan_core::{Result, Tensor};
use sampan_macros::function;

/// The parameters of a list, without its groups.
fn list(parameters: Parameters) -> Vec<Parameter> {
    parameters.0.into_iter().flat_map(|group| group.params).collect()
}

/// Trains the parameter `name` of a layer as lengths and directions, see [`weight_norm`](super::weight_norm).
///
/// ```
/// use sampan_core::{Value, function};
/// use sampan_nn::{Linear, Members, SharedLayer};
/// let layer = SharedLayer::from(Linear::new(3, 4));
/// let norm = function::find("nn.utils", "weight_norm").expect("it is registered");
/// norm.call(vec![Value::from(layer.clone())], vec![("dim", 1.into())])?;
/// assert_eq!(layer.0.state_dict().keys().collect::<Vec<_>>(), ["bias", "weight_g", "weight_v"]);
/// # Ok::<(), sampan_core::Error>(())
/// ```
#[function(module = "nn.utils")]
fn weight_norm(
    layer: SharedLayer,
    #[default("weight")] name: &str,
    #[default(0)] dim: Option<i64>,
) -> Result<SharedLayer> {
    super::weight_norm(&*layer.0, name, dim)?;
    Ok(layer)
}

/// Undoes `weight_norm`: the weight keeps its present value and is trained as it is.
#[function(module = "nn.utils")]
fn remove_weight_norm(layer: SharedLayer, #[default("weight")] name: &str) -> Result<SharedLayer> {
    super::remove_weight_norm(&*layer.0, name)?;
    Ok(layer)
}

/// Divides the parameter `name` of a layer by its largest singular value before each use, see
/// [`spectral_norm`](super::spectral_norm).
#[function(module = "nn.utils")]
fn spectral_norm(
    layer: SharedLayer,
    #[default("weight")] name: &str,
    #[default(1)] n_power_iterations: usize,
    #[default(1e-12)] eps: f64,
    #[default(None)] dim: Option<i64>,
) -> Result<SharedLayer> {
    super::spectral_norm(&*layer.0, name, SpectralNormOptions { n_power_iterations, eps, dim })?;
    Ok(layer)
}

/// The values of all parameters one after the other.
#[function(module = "nn.utils")]
fn parameters_to_vector(parameters: Parameters) -> Result<Tensor> {
    super::parameters_to_vector(&list(parameters))
}

/// Takes over values from a vector, as `parameters_to_vector` lays them out.
#[function(module = "nn.utils")]
fn vector_to_parameters(vec: &Tensor, parameters: Parameters) -> Result<()> {
    super::vector_to_parameters(vec, &list(parameters))
}

/// Scales all gradients by one factor so that their norm together is at most `max_norm`; gives the norm before.
#[function(module = "nn.utils")]
fn clip_grad_norm_(
    parameters: Parameters,
    max_norm: f64,
    #[default(2.0)] norm_type: f64,
    #[default(false)] error_if_nonfinite: bool,
) -> Result<Tensor> {
    super::clip_grad_norm_(&list(parameters), max_norm, norm_type, error_if_nonfinite)
}

/// Cuts every element of every gradient to `±clip_value`.
#[function(module = "nn.utils")]
fn clip_grad_value_(parameters: Parameters, clip_value: f64) -> Result<()> {
    super::clip_grad_value_(&list(parameters), clip_value)
}
