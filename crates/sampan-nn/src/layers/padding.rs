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

/// One padding layer: its arguments after `padding`, what it decides, its spatial axes, its layout and its names.
macro_rules! pad_layer {
    ($doc:tt ($($given:tt)*) ($($fixed:tt)*) $axes:tt $format:tt $name:ident $also:tt) => {op_layers! {
        #[doc = $doc]
        #[class(also $also)]
        $name = "pad" (padding as pad: &Value, $($given)* #[opt($format)] data_format: &str)
            fixed($($fixed)*) show "padding, mode, value, data_format" {
                let all = around(padding, $axes);
                let padding = &all;
            };
    }};
}

/// One kind of padding for one, two and three spatial axes in a row.
macro_rules! pads {
    ($($doc:tt $given:tt $fixed:tt: $one:ident $also1:tt $two:ident $also2:tt $three:ident $also3:tt;)*) => {$(
        pad_layer!($doc $given $fixed 1 "NCL" $one $also1);
        pad_layer!($doc $given $fixed 2 "NCHW" $two $also2);
        pad_layer!($doc $given $fixed 3 "NCDHW" $three $also3);
    )*};
}

pads! {
    "More elements around the borders of the spatial axes: `padding` holds pairs (before, after) from the last axis
backwards, or is one number for all; `mode` is `constant` (the new elements are `value`), `reflect`, `replicate` or
`circular`.

```
use sampan_core::Tensor;
use sampan_nn::{Layer, Pad1D};
let pad = Pad1D::with([2, 1], |o| o.mode(\"reflect\"));
assert_eq!(pad.call(&Tensor::new([[[1.0f32, 2.0, 3.0]]]))?.to_vec::<f32>(), [3.0, 2.0, 1.0, 2.0, 3.0, 2.0]);
# Ok::<(), sampan_core::Error>(())
```"
        (#[opt("constant")] mode: &str, #[opt(0.0)] value: f64,) (): Pad1D () Pad2D () Pad3D ();
    "Zeros around the borders of the spatial axes; `padding` as in [`Pad2D`]."
        () (mode = "constant", value = 0.0):
        ZeroPad1D ("nn.ZeroPad1d") ZeroPad2D ("nn.ZeroPad2d") ZeroPad3D ("nn.ZeroPad3d");
    "`value` around the borders of the spatial axes; `padding` as in [`Pad2D`]."
        (value: f64,) (mode = "constant"):
        ConstantPad1D ("nn.ConstantPad1d") ConstantPad2D ("nn.ConstantPad2d") ConstantPad3D ("nn.ConstantPad3d");
    "Continues the spatial axes by their mirror image, without the border itself; `padding` as in [`Pad2D`]."
        () (mode = "reflect", value = 0.0):
        ReflectionPad1D ("nn.ReflectionPad1d") ReflectionPad2D ("nn.ReflectionPad2d")
        ReflectionPad3D ("nn.ReflectionPad3d");
    "Continues the spatial axes by their border; `padding` as in [`Pad2D`]."
        () (mode = "replicate", value = 0.0):
        ReplicationPad1D ("nn.ReplicationPad1d") ReplicationPad2D ("nn.ReplicationPad2d")
        ReplicationPad3D ("nn.ReplicationPad3d");
    "Continues the spatial axes from their other side; `padding` as in [`Pad2D`]."
        () (mode = "circular", value = 0.0):
        CircularPad1D ("nn.CircularPad1d") CircularPad2D ("nn.CircularPad2d") CircularPad3D ("nn.CircularPad3d");
}
