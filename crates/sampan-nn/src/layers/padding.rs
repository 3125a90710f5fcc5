//! More elements around the borders.

use super::bound::op_layers;
use sampan_core::Value;

/// One number for both sides of every axis, as a list.
fn around(padding: &Value, axes: usize) -> Value {
    match padding {
        Value::Int(n) => vec![*n; 2 * axes].into(),
        other => other.clone(),
    }
}

/// The padding layers of one rank: how many axes, the channels-first layout, what they pad, and their names.
macro_rules! pads {
    ($($n:literal $format:tt $what:tt $example:tt:
        $pad:ident $zero:ident $zero_alias:tt $constant:ident $constant_alias:tt
        $reflect:ident $reflect_alias:tt $replicate:ident $replicate_alias:tt
        $circular:ident $circular_alias:tt;)*) => {op_layers! {$(
        #[doc = $what]
        ///
        /// `padding` holds pairs (before, after) from the last spatial axis backwards, or one number for all; `mode` is
        /// `constant` (the new elements are `value`), `reflect`, `replicate` or `circular`.
        ///
        /// ```
        /// use sampan_core::{DType, Tensor};
        /// use sampan_nn::*;
        #[doc = $example]
        /// # Ok::<(), sampan_core::Error>(())
        /// ```
        $pad = "pad" (
            padding as pad: &Value, #[opt("constant")] mode: &str, #[opt(0.0)] value: f64, #[opt($format)] data_format: &str,
        ) show "padding, mode, value, data_format" { let all = around(padding, $n); let padding = &all; };
        #[doc = $what]
        /// The new elements are zeros.
        #[class(also($zero_alias))]
        $zero = "pad" (padding as pad: &Value, #[opt($format)] data_format: &str) fixed(mode = "constant", value = 0.0) show "padding, mode, value, data_format"
            { let all = around(padding, $n); let padding = &all; };
        #[doc = $what]
        /// The new elements are all `value`.
        #[class(also($constant_alias))]
        $constant = "pad" (padding as pad: &Value, value: f64, #[opt($format)] data_format: &str) fixed(mode = "constant") show "padding, mode, value, data_format"
            { let all = around(padding, $n); let padding = &all; };
        #[doc = $what]
        /// The new elements mirror those inside, without the border itself.
        #[class(also($reflect_alias))]
        $reflect = "pad" (padding as pad: &Value, #[opt($format)] data_format: &str) fixed(mode = "reflect", value = 0.0) show "padding, mode, value, data_format"
            { let all = around(padding, $n); let padding = &all; };
        #[doc = $what]
        /// The new elements repeat the border.
        #[class(also($replicate_alias))]
        $replicate = "pad" (padding as pad: &Value, #[opt($format)] data_format: &str) fixed(mode = "replicate", value = 0.0) show "padding, mode, value, data_format"
            { let all = around(padding, $n); let padding = &all; };
        #[doc = $what]
        /// The new elements come from the other side.
        #[class(also($circular_alias))]
        $circular = "pad" (padding as pad: &Value, #[opt($format)] data_format: &str) fixed(mode = "circular", value = 0.0) show "padding, mode, value, data_format"
            { let all = around(padding, $n); let padding = &all; };
    )*}};
}

pads! {
    1 "NCL" "More elements around the borders of `[n, channels, length]`."
        "assert_eq!(Pad1D::new(1).call(&Tensor::ones([1, 2, 3], DType::Float32))?.shape(), [1, 2, 5]);":
        Pad1D ZeroPad1D "nn.ZeroPad1d" ConstantPad1D "nn.ConstantPad1d" ReflectionPad1D "nn.ReflectionPad1d"
        ReplicationPad1D "nn.ReplicationPad1d" CircularPad1D "nn.CircularPad1d";
    2 "NCHW" "More elements around the borders of `[n, channels, height, width]`."
        "assert_eq!(Pad2D::new(1).call(&Tensor::ones([1, 2, 3, 4], DType::Float32))?.shape(), [1, 2, 5, 6]);":
        Pad2D ZeroPad2D "nn.ZeroPad2d" ConstantPad2D "nn.ConstantPad2d" ReflectionPad2D "nn.ReflectionPad2d"
        ReplicationPad2D "nn.ReplicationPad2d" CircularPad2D "nn.CircularPad2d";
    3 "NCDHW" "More elements around the borders of `[n, channels, depth, height, width]`."
        "assert_eq!(Pad3D::new(1).call(&Tensor::ones([1, 2, 3, 4, 5], DType::Float32))?.shape(), [1, 2, 5, 6, 7]);":
        Pad3D ZeroPad3D "nn.ZeroPad3d" ConstantPad3D "nn.ConstantPad3d" ReflectionPad3D "nn.ReflectionPad3d"
        ReplicationPad3D "nn.ReplicationPad3d" CircularPad3D "nn.CircularPad3d";
}
