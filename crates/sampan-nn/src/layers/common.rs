//! Layers without parameters that do one thing: dropout, shapes, distances.

use super::bound::op_layers;
use crate::{Base, Layer, layer};
use sampan_core::{Axes, Result, Tensor};
use sampan_macros::class;

/// Gives back what it gets.
#[derive(Layer)]
pub struct Identity {
    base: Base,
}

#[class(module = "nn", object = layer::object)]
impl Identity {
    /// Gives back what it gets: a place holder in a network.
    ///
    /// ```
    /// use sampan_core::Tensor;
    /// use sampan_nn::{Identity, Layer};
    /// assert_eq!(Identity::new().call(&Tensor::new(3.0f32))?.to_f64(), 3.0);
    /// # Ok::<(), sampan_core::Error>(())
    /// ```
    fn build() -> Result<Identity> {
        Ok(Identity { base: Base::of("Identity") })
    }
}

impl Layer for Identity {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        Ok(x.clone())
    }
}

op_layers! {
    /// In training sets each element to zero with probability `p` and scales the others up by `1 / (1 - p)`; with the
    /// mode `downscale_in_infer` nothing is scaled then, and evaluation multiplies by `1 - p` instead. With `axis` the
    /// elements along all other axes fall together. `inplace` is accepted: the input is never overwritten.
    ///
    /// ```
    /// use sampan_core::{DType, Tensor};
    /// use sampan_nn::{Dropout, Layer, Members};
    /// let (drop, x) = (Dropout::new(0.5), Tensor::ones([100], DType::Float32));
    /// assert!(drop.call(&x)?.to_vec::<f32>().iter().all(|&v| v == 0.0 || v == 2.0));
    /// drop.eval();
    /// assert_eq!(drop.call(&x)?.to_vec::<f32>(), [1.0; 100]);
    /// # Ok::<(), sampan_core::Error>(())
    /// ```
    Dropout = "dropout" (
        #[default(0.5)] p: f64, #[opt(false)] inplace as _: bool, #[opt(None)] axis: Axes,
        #[opt("upscale_in_train")] mode: &str,
    ) show "p, axis, mode, inplace";
    /// In training sets whole channels of `[n, channels, height, width]` to zero with probability `p`.
    Dropout2D = "dropout2d" (#[default(0.5)] p: f64, #[opt("NCHW")] data_format: &str) show "p, data_format";
    /// In training sets whole channels of `[n, channels, depth, height, width]` to zero with probability `p`.
    Dropout3D = "dropout3d" (#[default(0.5)] p: f64, #[opt("NCDHW")] data_format: &str) show "p, data_format";
    /// Dropout that keeps mean and variance, for networks of [`SELU`](sampan_core::Tensor::selu).
    AlphaDropout = "alpha_dropout" (#[default(0.5)] p: f64) show "p";
    /// [`AlphaDropout`] of whole channels.
    FeatureAlphaDropout = "feature_alpha_dropout" (#[default(0.5)] p: f64) show "p";

    /// The axes from `start_axis` to `stop_axis` in one.
    ///
    /// ```
    /// use sampan_core::{DType, Tensor};
    /// use sampan_nn::{Flatten, Layer};
    /// let x = Tensor::ones([2, 3, 4], DType::Float32);
    /// assert_eq!(Flatten::new().call(&x)?.shape(), [2, 12]);
    /// # Ok::<(), sampan_core::Error>(())
    /// ```
    Flatten = "flatten" (#[opt(1)] start_axis: i64, #[opt(-1)] stop_axis: i64);
    /// One axis in several of the extents `shape`, one of which may be -1.
    ///
    /// ```
    /// use sampan_core::{DType, Tensor};
    /// use sampan_nn::{Layer, Unflatten};
    /// let x = Tensor::ones([2, 12], DType::Float32);
    /// assert_eq!(Unflatten::new(1, [3, -1]).call(&x)?.shape(), [2, 3, 4]);
    /// # Ok::<(), sampan_core::Error>(())
    /// ```
    Unflatten = "unflatten" (axis: i64, shape: &[i64]) show "axis, shape";

    /// The cosine of the angle between two inputs along `axis`.
    ///
    /// ```
    /// use sampan_core::Tensor;
    /// use sampan_nn::{CosineSimilarity, Layer};
    /// let (a, b) = (Tensor::new([[1.0f32, 0.0]]), Tensor::new([[2.0f32, 0.0]]));
    /// assert_eq!(CosineSimilarity::new().call_all(&[a, b])?[0].to_vec::<f32>(), [1.0]);
    /// # Ok::<(), sampan_core::Error>(())
    /// ```
    CosineSimilarity = "cosine_similarity" (#[opt(1)] axis: i64, #[opt(1e-8)] eps: f64) show "axis, eps";
    /// The distance of two inputs along the last axis: the `p`-norm of `x - y + epsilon`.
    ///
    /// ```
    /// use sampan_core::Tensor;
    /// use sampan_nn::{Layer, PairwiseDistance};
    /// let (a, b) = (Tensor::new([[3.0f32, 0.0]]), Tensor::new([[0.0f32, 4.0]]));
    /// let far = PairwiseDistance::new().call_all(&[a, b])?[0].to_f64();
    /// assert!((far - 5.0).abs() < 1e-5);
    /// # Ok::<(), sampan_core::Error>(())
    /// ```
    #[class(alias(eps = epsilon))]
    PairwiseDistance = "pairwise_distance" (#[opt(2.0)] p: f64, #[opt(1e-6)] epsilon: f64, #[opt(false)] keepdim: bool)
        show "p, epsilon?, keepdim?";

    /// Divides by `(k + alpha * mean)^beta`, the mean being that of the squares of `size` neighbouring channels.
    ///
    /// ```
    /// use sampan_core::Tensor;
    /// use sampan_nn::{Layer, LocalResponseNorm};
    /// let norm = LocalResponseNorm::with(1, |o| o.alpha(1.0).beta(1.0).k(0.0));
    /// assert_eq!(norm.call(&Tensor::new([[[2.0f32], [2.0]]]))?.to_vec::<f32>(), [0.5, 0.5]);
    /// # Ok::<(), sampan_core::Error>(())
    /// ```
    LocalResponseNorm = "local_response_norm" (
        size: i64, #[opt(1e-4)] alpha: f64, #[opt(0.75)] beta: f64, #[opt(1.0)] k: f64,
        #[opt("NCHW")] data_format: &str,
    ) show "size, alpha, beta, k, data_format?";
}
