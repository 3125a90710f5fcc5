//! Pooling: the largest value, the mean or a norm of each window.

use super::bound::{first, op_layers, sizes};
use crate::Layer;
use sampan_core::{Ints, Result, Tensor, Value};

op_layers! {
    /// The largest value of each window of `[n, channels, length]`. With `return_mask` its position comes second, from
    /// [`call_all`](crate::Layer::call_all).
    MaxPool1D = "max_pool1d" (
        kernel_size: &[i64], #[opt(None)] stride: Option<&[i64]>, #[opt(0)] padding: &Value,
        #[opt(false)] return_mask: bool, #[opt(false)] ceil_mode: bool,
    ) show "kernel_size, stride, padding";
    /// The largest value of each window of `[n, channels, height, width]`; `stride` is `kernel_size` unless given.
    ///
    /// ```
    /// use sampan_core::Tensor;
    /// use sampan_nn::{Layer, MaxPool2D};
    /// let x = Tensor::new([[[[1.0f32, 2.0], [4.0, 3.0]]]]);
    /// let pool = MaxPool2D::with(2, |o| o.return_mask(true));
    /// let [y, at] = &pool.call_all(&[x])?[..] else { unreachable!() };
    /// assert_eq!((y.to_f64(), at.to_f64()), (4.0, 2.0));
    /// # Ok::<(), sampan_core::Error>(())
    /// ```
    MaxPool2D = "max_pool2d" (
        kernel_size: &[i64], #[opt(None)] stride: Option<&[i64]>, #[opt(0)] padding: &Value,
        #[opt(false)] return_mask: bool, #[opt(false)] ceil_mode: bool, #[opt("NCHW")] data_format: &str,
    ) show "kernel_size, stride, padding";
    /// The largest value of each window of `[n, channels, depth, height, width]`.
    MaxPool3D = "max_pool3d" (
        kernel_size: &[i64], #[opt(None)] stride: Option<&[i64]>, #[opt(0)] padding: &Value,
        #[opt(false)] return_mask: bool, #[opt(false)] ceil_mode: bool, #[opt("NCDHW")] data_format: &str,
    ) show "kernel_size, stride, padding";

    /// The mean of each window of `[n, channels, length]`; padding does not count unless `exclusive` is false.
    AvgPool1D = "avg_pool1d" (
        kernel_size: &[i64], #[opt(None)] stride: Option<&[i64]>, #[opt(0)] padding: &Value,
        #[opt(true)] exclusive: bool, #[opt(false)] ceil_mode: bool,
    ) show "kernel_size, stride, padding";
    /// The mean of each window of `[n, channels, height, width]`; padding does not count unless `exclusive` is false.
    ///
    /// ```
    /// use sampan_core::Tensor;
    /// use sampan_nn::{AvgPool2D, Layer};
    /// let y = AvgPool2D::new(2).call(&Tensor::new([[[[1.0f32, 2.0], [4.0, 3.0]]]]))?;
    /// assert_eq!(y.to_f64(), 2.5);
    /// # Ok::<(), sampan_core::Error>(())
    /// ```
    AvgPool2D = "avg_pool2d" (
        kernel_size: &[i64], #[opt(None)] stride: Option<&[i64]>, #[opt(0)] padding: &Value,
        #[opt(false)] ceil_mode: bool, #[opt(true)] exclusive: bool, #[opt(None)] divisor_override: Option<f64>,
        #[opt("NCHW")] data_format: &str,
    ) show "kernel_size, stride, padding";
    /// The mean of each window of `[n, channels, depth, height, width]`.
    AvgPool3D = "avg_pool3d" (
        kernel_size: &[i64], #[opt(None)] stride: Option<&[i64]>, #[opt(0)] padding: &Value,
        #[opt(false)] ceil_mode: bool, #[opt(true)] exclusive: bool, #[opt(None)] divisor_override: Option<f64>,
        #[opt("NCDHW")] data_format: &str,
    ) show "kernel_size, stride, padding";

    /// The norm of order `norm_type` of each window of `[n, channels, length]`.
    #[class(also("nn.LPPool1d"))]
    LPPool1D = "lp_pool1d" (
        norm_type: f64, kernel_size: &[i64], #[opt(None)] stride: Option<&[i64]>, #[opt(0)] padding: &Value,
        #[opt(false)] ceil_mode: bool, #[opt("NCL")] data_format: &str,
    ) show "norm_type, kernel_size, stride, padding";
    /// The norm of order `norm_type` of each window of `[n, channels, height, width]`.
    ///
    /// ```
    /// use sampan_core::Tensor;
    /// use sampan_nn::{LPPool2D, Layer};
    /// let y = LPPool2D::new(2.0, [1, 2]).call(&Tensor::new([[[[3.0f32, 4.0]]]]))?;
    /// assert_eq!(y.to_f64(), 5.0);
    /// # Ok::<(), sampan_core::Error>(())
    /// ```
    #[class(also("nn.LPPool2d"))]
    LPPool2D = "lp_pool2d" (
        norm_type: f64, kernel_size: &[i64], #[opt(None)] stride: Option<&[i64]>, #[opt(0)] padding: &Value,
        #[opt(false)] ceil_mode: bool, #[opt("NCHW")] data_format: &str,
    ) show "norm_type, kernel_size, stride, padding" {
        let stride = stride.unwrap_or(kernel_size);
    };

    /// Means over as many windows as `output_size` asks for, along `[n, channels, length]`.
    #[class(also("nn.AdaptiveAvgPool1d"))]
    AdaptiveAvgPool1D = "adaptive_avg_pool1d" (output_size: &Value)
        show "output_size";
    /// Means over as many windows as `output_size` asks for, along `[n, channels, height, width]`; `None` keeps an
    /// extent.
    ///
    /// ```
    /// use sampan_core::{DType, Tensor};
    /// use sampan_nn::{AdaptiveAvgPool2D, Layer};
    /// let x = Tensor::ones([1, 3, 7, 5], DType::Float32);
    /// assert_eq!(AdaptiveAvgPool2D::new(1).call(&x)?.shape(), [1, 3, 1, 1]);
    /// # Ok::<(), sampan_core::Error>(())
    /// ```
    #[class(also("nn.AdaptiveAvgPool2d"))]
    AdaptiveAvgPool2D = "adaptive_avg_pool2d" (output_size: &Value, #[opt("NCHW")] data_format: &str)
        show "output_size";
    /// Means over as many windows as `output_size` asks for, along `[n, channels, depth, height, width]`.
    #[class(also("nn.AdaptiveAvgPool3d"))]
    AdaptiveAvgPool3D = "adaptive_avg_pool3d" (output_size: &Value, #[opt("NCDHW")] data_format: &str)
        show "output_size";

    /// The largest values of as many windows as `output_size` asks for, along `[n, channels, length]`.
    #[class(also("nn.AdaptiveMaxPool1d"), alias(return_indices = return_mask))]
    AdaptiveMaxPool1D = "adaptive_max_pool1d" (output_size: &Value, #[opt(false)] return_mask: bool)
        show "output_size, return_mask";
    /// The largest values of as many windows as `output_size` asks for, along `[n, channels, height, width]`.
    ///
    /// ```
    /// use sampan_core::Tensor;
    /// use sampan_nn::{AdaptiveMaxPool2D, Layer};
    /// let x = Tensor::new([[[[1.0f32, 2.0], [4.0, 3.0]]]]);
    /// assert_eq!(AdaptiveMaxPool2D::new([2, 1]).call(&x)?.to_vec::<f32>(), [2.0, 4.0]);
    /// # Ok::<(), sampan_core::Error>(())
    /// ```
    #[class(also("nn.AdaptiveMaxPool2d"), alias(return_indices = return_mask))]
    AdaptiveMaxPool2D = "adaptive_max_pool2d" (output_size: &Value, #[opt(false)] return_mask: bool)
        show "output_size, return_mask";
    /// The largest values of as many windows as `output_size` asks for, along `[n, channels, depth, height, width]`.
    #[class(also("nn.AdaptiveMaxPool3d"), alias(return_indices = return_mask))]
    AdaptiveMaxPool3D = "adaptive_max_pool3d" (output_size: &Value, #[opt(false)] return_mask: bool)
        show "output_size, return_mask";

    /// The largest values of windows of random sizes, drawn anew at each call unless `random_u` in (0, 1) fixes them.
    ///
    /// ```
    /// use sampan_core::{DType, Tensor};
    /// use sampan_nn::{FractionalMaxPool2D, Layer};
    /// let x = Tensor::ones([1, 1, 7, 7], DType::Float32);
    /// let pool = FractionalMaxPool2D::with([5, 4], |o| o.random_u(0.5));
    /// assert_eq!(pool.call(&x)?.shape(), [1, 1, 5, 4]);
    /// # Ok::<(), sampan_core::Error>(())
    /// ```
    FractionalMaxPool2D = "fractional_max_pool2d" (
        output_size: &Value, #[opt(None)] kernel_size: Option<&[i64]>, #[opt(None)] random_u: Option<f64>,
        #[opt(false)] return_mask: bool,
    ) show "output_size, return_mask";
    /// [`FractionalMaxPool2D`] on `[n, channels, depth, height, width]`.
    FractionalMaxPool3D = "fractional_max_pool3d" (
        output_size: &Value, #[opt(None)] kernel_size: Option<&[i64]>, #[opt(None)] random_u: Option<f64>,
        #[opt(false)] return_mask: bool,
    ) show "output_size, return_mask";

    /// Puts the values that [`MaxPool1D`] kept back where its mask says they were, among zeros.
    #[class(also("nn.MaxUnpool1d"))]
    MaxUnPool1D = "max_unpool1d" (
        kernel_size: &[i64], #[opt(None)] stride: Option<&[i64]>, #[opt(0)] padding: &Value,
        #[opt("NCL")] data_format: &str, #[opt(None)] output_size: Option<&[i64]>,
    ) show "output_size";
    /// Puts the values that [`MaxPool2D`] kept back where its mask says they were, among zeros.
    ///
    /// ```
    /// use sampan_core::Tensor;
    /// use sampan_nn::{Layer, MaxPool2D, MaxUnPool2D};
    /// let x = Tensor::new([[[[1.0f32, 2.0], [4.0, 3.0]]]]);
    /// let kept = MaxPool2D::with(2, |o| o.return_mask(true)).call_all(&[x])?;
    /// assert_eq!(MaxUnPool2D::new(2).call_all(&kept)?[0].to_vec::<f32>(), [0.0, 0.0, 4.0, 0.0]);
    /// # Ok::<(), sampan_core::Error>(())
    /// ```
    #[class(also("nn.MaxUnpool2d"))]
    MaxUnPool2D = "max_unpool2d" (
        kernel_size: &[i64], #[opt(None)] stride: Option<&[i64]>, #[opt(0)] padding: &Value,
        #[opt("NCHW")] data_format: &str, #[opt(None)] output_size: Option<&[i64]>,
    ) show "output_size";
    /// Puts the values that [`MaxPool3D`] kept back where its mask says they were, among zeros.
    #[class(also("nn.MaxUnpool3d"))]
    MaxUnPool3D = "max_unpool3d" (
        kernel_size: &[i64], #[opt(None)] stride: Option<&[i64]>, #[opt(0)] padding: &Value,
        #[opt("NCDHW")] data_format: &str, #[opt(None)] output_size: Option<&[i64]>,
    ) show "output_size";
}

macro_rules! sized {
    ($($name:ident)*) => {$(
        impl $name {
            /// The output of this size, which several sizes could have led to the input of.
            pub fn call_sized(&self, x: &Tensor, indices: &Tensor, output_size: impl Into<Ints>) -> Result<Tensor> {
                first(self.call_all(&[x.clone(), indices.clone(), sizes(output_size.into())])?)
            }
        }
    )*};
}
sized!(MaxUnPool1D MaxUnPool2D MaxUnPool3D);
