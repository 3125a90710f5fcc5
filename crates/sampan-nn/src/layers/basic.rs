//! Layers with one job.

use crate::{Layer, Members, Parameter, Path, Visitor, init};
use sampan_core::ops::conv::Conv2dOpts;
use sampan_core::{Result, Tensor};

/// `x @ weight + bias` with a weight of shape `[in, out]`.
#[derive(Layer)]
pub struct Linear {
    /// `[in_features, out_features]`.
    pub weight: Parameter,
    /// `[out_features]`.
    pub bias: Parameter,
}

impl Linear {
    /// With Paddle's default values: Xavier uniform weights, a zero bias.
    pub fn new(in_features: usize, out_features: usize) -> Linear {
        let weight = init::xavier_uniform(&[in_features, out_features]).expect("a shape of two extents is valid");
        Linear { weight: Parameter::new(weight), bias: Parameter::new(init::zeros(&[out_features])) }
    }
}

impl Layer for Linear {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        x.try_linear(&self.weight, Some(&self.bias)).map_err(|e| e.in_layer("Linear"))
    }
}

/// A convolution over images `[n, channels, height, width]`.
#[derive(Layer)]
pub struct Conv2D {
    /// `[out_channels, in_channels, kernel, kernel]`.
    pub weight: Parameter,
    /// `[out_channels]`.
    pub bias: Parameter,
    stride: i64,
    padding: i64,
}

impl Conv2D {
    /// A square kernel with Paddle's default values: He normal weights, a zero bias.
    pub fn new(in_channels: usize, out_channels: usize, kernel: usize) -> Result<Conv2D> {
        let weight = init::kaiming_normal(&[out_channels, in_channels, kernel, kernel])?;
        let bias = Parameter::new(init::zeros(&[out_channels]));
        Ok(Conv2D { weight: Parameter::new(weight), bias, stride: 1, padding: 0 })
    }

    /// Steps of the kernel.
    pub fn stride(mut self, stride: usize) -> Conv2D {
        self.stride = stride as i64;
        self
    }

    /// Zeros around the image.
    pub fn padding(mut self, padding: usize) -> Conv2D {
        self.padding = padding as i64;
        self
    }
}

impl Layer for Conv2D {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let opts = Conv2dOpts::new().stride(self.stride).padding(self.padding);
        x.try_conv2d_with(&self.weight, Some(&self.bias), opts).map_err(|e| e.in_layer("Conv2D"))
    }
}

/// The largest value of each window.
#[derive(Layer)]
pub struct MaxPool2D {
    kernel: i64,
}

impl MaxPool2D {
    /// Square windows side by side.
    pub fn new(kernel: usize) -> MaxPool2D {
        MaxPool2D { kernel: kernel as i64 }
    }
}

impl Layer for MaxPool2D {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        x.try_max_pool2d(self.kernel).map_err(|e| e.in_layer("MaxPool2D"))
    }
}

/// A layer without members.
macro_rules! plain {
    ($(#[$doc:meta])* $name:ident, |$x:ident| $body:expr) => {
        $(#[$doc])*
        pub struct $name;
        impl Members for $name {
            fn visit(&self, path: &Path, visitor: &mut dyn Visitor) {
                visitor.layer(path, stringify!($name));
            }
        }
        impl Layer for $name {
            fn forward(&self, $x: &Tensor) -> Result<Tensor> {
                $body.map_err(|e| e.in_layer(stringify!($name)))
            }
        }
    };
}

plain! {
    /// `max(x, 0)`.
    ReLU, |x| x.try_relu()
}
plain! {
    /// All axes but the first in one.
    Flatten, |x| x.try_reshape([0, -1])
}
