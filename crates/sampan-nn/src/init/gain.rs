//! How much a nonlinearity shrinks a signal.

use sampan_core::{Error, Result};
use sampan_macros::function;

/// The factor that makes up for what a nonlinearity takes from the size of a signal; `param` is the negative slope of a
/// leaky ReLU, 0.01 if it is not given.
///
/// ```
/// use sampan_nn::init::calculate_gain;
/// assert_eq!(calculate_gain("tanh", None)?, 5.0 / 3.0);
/// assert_eq!(calculate_gain("leaky_relu", Some(1.0))?, 1.0);
/// # Ok::<(), sampan_core::Error>(())
/// ```
#[function(module = "nn.initializer")]
pub fn calculate_gain(nonlinearity: &str, #[default(None)] param: Option<f64>) -> Result<f64> {
    const LINEAR: [&str; 11] = [
        "sigmoid",
        "linear",
        "conv1d",
        "conv2d",
        "conv3d",
        "conv1d_transpose",
        "conv_transpose1d",
        "conv2d_transpose",
        "conv_transpose2d",
        "conv3d_transpose",
        "conv_transpose3d",
    ];
    match nonlinearity {
        name if LINEAR.contains(&name) => Ok(1.0),
        "tanh" => Ok(5.0 / 3.0),
        "relu" => Ok(2f64.sqrt()),
        "leaky_relu" => Ok((2.0 / (1.0 + param.unwrap_or(0.01).powi(2))).sqrt()),
        "selu" => Ok(0.75),
        other => Err(Error::invalid(format!("the gain of the nonlinearity {other:?} is not known"))
            .hint(format!("one of tanh, relu, leaky_relu, selu, {}", LINEAR.join(", ")))),
    }
}
