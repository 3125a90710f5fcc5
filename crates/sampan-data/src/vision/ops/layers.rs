//! The functions on regions and the deformable convolution as layers.

use super::{deform_conv2d, psroi_pool, roi_align, roi_pool};
use sampan_core::{Error, Ints, Result, Tensor, bail, ensure};
use sampan_macros::class;
use sampan_nn::init::Normal;
use sampan_nn::{Base, Layer, ParamAttr, Parameter, layer};

/// Convolution at places that the input chooses.
#[derive(Layer)]
pub struct DeformConv2D {
    base: Base,
    weight: Parameter,
    bias: Option<Parameter>,
    #[layer(skip)]
    stride: Ints,
    #[layer(skip)]
    padding: Ints,
    #[layer(skip)]
    dilation: Ints,
    #[layer(skip)]
    deformable_groups: usize,
    #[layer(skip)]
    groups: usize,
}

#[class(module = "vision.ops", object = layer::object)]
impl DeformConv2D {
    /// [`deform_conv2d`] with a weight and a bias of its own. Takes `x`, `offset` and, in the second version, `mask`.
    ///
    /// ```
    /// use sampan_core::{DType, Tensor};
    /// use sampan_data::vision::ops::DeformConv2D;
    /// use sampan_nn::Layer;
    /// let conv = DeformConv2D::new(4, 6, 3);
    /// let (x, offset) = (Tensor::ones([2, 4, 8, 8], DType::Float32), Tensor::zeros([2, 18, 6, 6], DType::Float32));
    /// assert_eq!(conv.call_all(&[x, offset])?[0].shape(), [2, 6, 6, 6]);
    /// # Ok::<(), sampan_core::Error>(())
    /// ```
    fn build(
        in_channels: usize,
        out_channels: usize,
        kernel_size: &[i64],
        #[opt(1)] stride: &[i64],
        #[opt(0)] padding: &[i64],
        #[opt(1)] dilation: &[i64],
        #[opt(1)] deformable_groups: usize,
        #[opt(1)] groups: usize,
        #[opt(None)] weight_attr: ParamAttr,
        #[opt(None)] bias_attr: ParamAttr,
    ) -> Result<DeformConv2D> {
        ensure!(weight_attr.is_wanted(), "weight_attr must not be False: a convolution has a weight");
        ensure!(
            groups > 0 && in_channels.is_multiple_of(groups),
            "in_channels must be divisible by groups, got {in_channels} and {groups}"
        );
        let (kh, kw) = match *kernel_size {
            [k] if k > 0 => (k as usize, k as usize),
            [a, b] if a > 0 && b > 0 => (a as usize, b as usize),
            _ => bail!("kernel_size must be one or two positive numbers, got {kernel_size:?}"),
        };
        let base = Base::new("deform_conv2d");
        let std = (2.0 / (kh * kw * in_channels).max(1) as f64).sqrt();
        let shape = [out_channels, in_channels / groups, kh, kw];
        Ok(DeformConv2D {
            weight: base.weight(&shape, &weight_attr, &Normal::new(0.0, std))?,
            bias: base.bias(&[out_channels], &bias_attr)?,
            stride: stride.into(),
            padding: padding.into(),
            dilation: dilation.into(),
            deformable_groups,
            groups,
            base,
        })
    }
}

impl Layer for DeformConv2D {
    fn input_names(&self) -> Vec<&'static str> {
        vec!["x", "offset", "mask"]
    }

    fn forward(&self, _: &Tensor) -> Result<Tensor> {
        Err(Error::invalid("takes x, offset and perhaps mask, got one input").in_op("DeformConv2D"))
    }

    fn forward_all(&self, inputs: &[Tensor]) -> Result<Vec<Tensor>> {
        let (x, offset, mask) = match inputs {
            [x, offset] => (x, offset, None),
            [x, offset, mask] => (x, offset, Some(mask)),
            _ => bail!("takes x, offset and perhaps mask, got {} inputs", inputs.len()),
        };
        let bias = self.bias.as_ref().map(Parameter::value).transpose()?;
        let out = deform_conv2d(
            x,
            offset,
            &self.weight.value()?,
            bias.as_ref(),
            self.stride.clone(),
            self.padding.clone(),
            self.dilation.clone(),
            self.deformable_groups,
            self.groups,
            mask,
        )?;
        Ok(vec![out])
    }
}

macro_rules! region_layer {
    ($(#[$doc:meta])* $name:ident, $prefix:literal, $most:literal inputs, |$layer:ident, $inputs:ident| $run:expr; $(#[$built:meta])*) => {
        $(#[$doc])*
        #[derive(Layer)]
        pub struct $name {
            base: Base,
            #[layer(skip)]
            output_size: Ints,
            #[layer(skip)]
            spatial_scale: f64,
        }

        #[class(module = "vision.ops", object = layer::object)]
        impl $name {
            $(#[$built])*
            fn build(output_size: &[i64], #[opt(1.0)] spatial_scale: f64) -> Result<$name> {
                Ok($name { base: Base::new($prefix), output_size: output_size.into(), spatial_scale })
            }
        }

        impl Layer for $name {
            fn input_names(&self) -> Vec<&'static str> {
                ["x", "boxes", "boxes_num", "aligned"][..$most].to_vec()
            }

            fn forward(&self, _: &Tensor) -> Result<Tensor> {
                Err(Error::invalid("takes x, boxes and boxes_num, got one input").in_op(stringify!($name)))
            }

            fn forward_all(&self, $inputs: &[Tensor]) -> Result<Vec<Tensor>> {
                let $layer = self;
                Ok(vec![$run?])
            }

            fn extra_repr(&self) -> String {
                let size = match &self.output_size.0[..] {
                    [one] => one.to_string(),
                    all => format!("{all:?}"),
                };
                format!("output_size={size}, spatial_scale={:?}", self.spatial_scale)
            }
        }
    };
}

/// `x`, `boxes` and `boxes_num`.
fn three(inputs: &[Tensor]) -> Result<[&Tensor; 3]> {
    let [x, boxes, boxes_num] = inputs else { bail!("takes x, boxes and boxes_num, got {} inputs", inputs.len()) };
    Ok([x, boxes, boxes_num])
}

region_layer! {
    /// The largest values in parts of maps.
    RoIPool, "ro_i_pool", 3 inputs, |layer, inputs| {
        let [x, boxes, boxes_num] = three(inputs)?;
        roi_pool(x, boxes, boxes_num, layer.output_size.clone(), layer.spatial_scale)
    };
    /// [`roi_pool`] as a layer. Takes `x`, `boxes` and `boxes_num`.
    ///
    /// ```
    /// use sampan_core::{DType, Tensor};
    /// use sampan_data::vision::ops::RoIPool;
    /// use sampan_nn::Layer;
    /// let (x, boxes) = (Tensor::ones([1, 3, 8, 8], DType::Float32), Tensor::new([[0.0f32, 0.0, 5.0, 5.0]]));
    /// let y = RoIPool::new([4, 3]).call_all(&[x, boxes, Tensor::new([1i32])])?;
    /// assert_eq!(y[0].shape(), [1, 3, 4, 3]);
    /// # Ok::<(), sampan_core::Error>(())
    /// ```
}

region_layer! {
    /// Means of parts of maps, each part from channels of its own.
    PSRoIPool, "ps_ro_i_pool", 3 inputs, |layer, inputs| {
        let [x, boxes, boxes_num] = three(inputs)?;
        psroi_pool(x, boxes, boxes_num, layer.output_size.clone(), layer.spatial_scale)
    };
    /// [`psroi_pool`] as a layer. Takes `x`, `boxes` and `boxes_num`.
    ///
    /// ```
    /// use sampan_core::{DType, Tensor};
    /// use sampan_data::vision::ops::PSRoIPool;
    /// use sampan_nn::Layer;
    /// let (x, boxes) = (Tensor::ones([1, 8, 8, 8], DType::Float32), Tensor::new([[0.0f32, 0.0, 5.0, 5.0]]));
    /// let y = PSRoIPool::new(2).call_all(&[x, boxes, Tensor::new([1i32])])?;
    /// assert_eq!(y[0].shape(), [1, 2, 2, 2]);
    /// # Ok::<(), sampan_core::Error>(())
    /// ```
}

region_layer! {
    /// Parts of maps at one size, read between pixels.
    RoIAlign, "ro_i_align", 4 inputs, |layer, inputs| {
        let (inputs, aligned) = inputs.split_at(inputs.len().min(3));
        let [x, boxes, boxes_num] = three(inputs)?;
        let aligned = match aligned {
            [] => true,
            [flag] if flag.numel() == 1 => flag.to_f64_vec()[0] != 0.0,
            _ => bail!("takes x, boxes, boxes_num and perhaps aligned, one truth value"),
        };
        roi_align(x, boxes, boxes_num, layer.output_size.clone(), layer.spatial_scale, -1, aligned)
    };
    /// [`roi_align`] as a layer. Takes `x`, `boxes`, `boxes_num` and perhaps `aligned`, one truth value.
    ///
    /// ```
    /// use sampan_core::{DType, Tensor};
    /// use sampan_data::vision::ops::RoIAlign;
    /// use sampan_nn::Layer;
    /// let (x, boxes) = (Tensor::ones([1, 3, 8, 8], DType::Float32), Tensor::new([[0.0f32, 0.0, 5.0, 5.0]]));
    /// let y = RoIAlign::new([4, 3]).call_all(&[x, boxes, Tensor::new([1i32])])?;
    /// assert_eq!(y[0].shape(), [1, 3, 4, 3]);
    /// # Ok::<(), sampan_core::Error>(())
    /// ```
}
