//! Layers on images: resampling, shuffles of pixels and channels, patches.

use super::bound::op_layers;
use sampan_core::{Value, ensure};

fn check_image_format(data_format: &str) -> sampan_core::Result<()> {
    ensure!(["NCHW", "NHWC"].contains(&data_format), "data_format must be NCHW or NHWC, got {data_format:?}");
    Ok(())
}

op_layers! {
    /// Resamples the spatial axes to `size`, or by `scale_factor`: `mode` is `nearest`, `linear`, `bilinear`,
    /// `bicubic`, `trilinear` or `area`.
    ///
    /// ```
    /// use sampan_core::{DType, Tensor};
    /// use sampan_nn::{Layer, Upsample};
    /// let x = Tensor::ones([1, 1, 2, 3], DType::Float32);
    /// let up = Upsample::with(|o| o.scale_factor(2).mode("bilinear"));
    /// assert_eq!(up.call(&x)?.shape(), [1, 1, 4, 6]);
    /// # Ok::<(), sampan_core::Error>(())
    /// ```
    Upsample = "interpolate" (
        #[opt(None)] size: &Value, #[opt(None)] scale_factor: &Value, #[opt("nearest")] mode: &str,
        #[opt(false)] align_corners: bool, #[opt(0)] align_mode: i64, #[opt(None)] data_format: Option<&str>,
        #[opt(None)] recompute_scale_factor: Option<bool>,
    ) show "scale_factor|size, mode, align_corners, align_mode, data_format" {
        let lower = mode.to_lowercase();
        let mode = lower.as_str();
    };
    /// Resamples images by repeating the nearest pixel.
    #[class(also("nn.UpsamplingNearest2d"))]
    UpsamplingNearest2D = "interpolate" (
        #[opt(None)] size: &Value, #[opt(None)] scale_factor: &Value, #[opt("NCHW")] data_format: &str,
    ) fixed(mode = "nearest") show "scale_factor|size, data_format" {
        let square = both(size);
        let size = &square;
    };
    /// Resamples images by mixing neighbouring pixels; the corners keep their values.
    ///
    /// ```
    /// use sampan_core::Tensor;
    /// use sampan_nn::{Layer, UpsamplingBilinear2D};
    /// let x = Tensor::new([[[[0.0f32, 2.0]]]]);
    /// let up = UpsamplingBilinear2D::with(|o| o.size([1, 3]));
    /// assert_eq!(up.call(&x)?.to_vec::<f32>(), [0.0, 1.0, 2.0]);
    /// # Ok::<(), sampan_core::Error>(())
    /// ```
    #[class(also("nn.UpsamplingBilinear2d"))]
    UpsamplingBilinear2D = "interpolate" (
        #[opt(None)] size: &Value, #[opt(None)] scale_factor: &Value, #[opt("NCHW")] data_format: &str,
    ) fixed(mode = "bilinear", align_corners = true) show "scale_factor|size, data_format" {
        let square = both(size);
        let size = &square;
    };
    /// Moves channels into space: `[n, c * r * r, h, w]` becomes `[n, c, h * r, w * r]`.
    ///
    /// ```
    /// use sampan_core::{DType, Tensor};
    /// use sampan_nn::{Layer, PixelShuffle};
    /// let x = Tensor::ones([1, 8, 2, 3], DType::Float32);
    /// assert_eq!(PixelShuffle::new(2).call(&x)?.shape(), [1, 2, 4, 6]);
    /// # Ok::<(), sampan_core::Error>(())
    /// ```
    PixelShuffle = "pixel_shuffle" (upscale_factor: i64, #[opt("NCHW")] data_format: &str)
        show "upscale_factor, data_format?" {
        ensure!(upscale_factor > 0, "upscale_factor must be positive, got {upscale_factor}");
        check_image_format(data_format)?;
    };
    /// Moves space into channels, the way back from [`PixelShuffle`].
    PixelUnshuffle = "pixel_unshuffle" (downscale_factor: i64, #[opt("NCHW")] data_format: &str)
        show "downscale_factor, data_format?" {
        ensure!(downscale_factor > 0, "downscale_factor must be positive, got {downscale_factor}");
        check_image_format(data_format)?;
    };
    /// Mixes the channels of `groups` groups: the first of each, then the second of each, and so on.
    ///
    /// ```
    /// use sampan_core::Tensor;
    /// use sampan_nn::{ChannelShuffle, Layer};
    /// let x = Tensor::new([[[[0.0f32]], [[1.0]], [[2.0]], [[3.0]]]]);
    /// assert_eq!(ChannelShuffle::new(2).call(&x)?.to_vec::<f32>(), [0.0, 2.0, 1.0, 3.0]);
    /// # Ok::<(), sampan_core::Error>(())
    /// ```
    ChannelShuffle = "channel_shuffle" (groups: i64, #[opt("NCHW")] data_format: &str) show "groups, data_format?" {
        ensure!(groups > 0, "groups must be positive, got {groups}");
        check_image_format(data_format)?;
    };
    /// The patches that a convolution would see, as columns: `[n, c * kernel, patches]`.
    ///
    /// ```
    /// use sampan_core::{DType, Tensor};
    /// use sampan_nn::{Layer, Unfold};
    /// let x = Tensor::ones([1, 3, 4, 5], DType::Float32);
    /// assert_eq!(Unfold::new(2).call(&x)?.shape(), [1, 12, 12]);
    /// # Ok::<(), sampan_core::Error>(())
    /// ```
    Unfold = "unfold" (
        kernel_sizes: &[i64], #[opt(1)] dilations: &[i64], #[opt(0)] paddings: &[i64], #[opt(1)] strides: &[i64],
    ) show "kernel_size:kernel_sizes, dilation:dilations, padding:paddings, stride:strides";
    /// Adds patches up to an image, the way back from [`Unfold`].
    ///
    /// ```
    /// use sampan_core::{DType, Tensor};
    /// use sampan_nn::{Fold, Layer};
    /// let patches = Tensor::ones([1, 12, 12], DType::Float32);
    /// assert_eq!(Fold::new([4, 5], 2).call(&patches)?.shape(), [1, 3, 4, 5]);
    /// # Ok::<(), sampan_core::Error>(())
    /// ```
    #[class(alias(output_size = output_sizes, kernel_size = kernel_sizes, stride = strides, padding = paddings,
        dilation = dilations))]
    Fold = "fold" (
        output_sizes: &[i64], kernel_sizes: &[i64], #[opt(1)] dilations: &[i64], #[opt(0)] paddings: &[i64],
        #[opt(1)] strides: &[i64],
    ) show "kernel_size:kernel_sizes, dilation:dilations, padding:paddings, stride:strides";
}

/// One number for height and width.
fn both(size: &Value) -> Value {
    match size {
        Value::Int(n) => Value::from([*n, *n]),
        other => other.clone(),
    }
}
