//! ResNet, wide ResNet and ResNeXt.

use super::blocks::{classes, finish, maybe, mean_pool};
use super::known::{IMAGENET, hapi, variants};
use sampan_core::value::Arg;
use sampan_core::{Object, Result, Tensor, Value, bail, ensure};
use sampan_macros::class;
use sampan_nn::callable::Callable;
use sampan_nn::{
    AdaptiveAvgPool2D, AnyLayer, Apply, Base, BatchNorm2D, Conv2D, Layer, Linear, MaxPool2D, ReLU, Sequential,
    SharedLayer, layer, sequential,
};

/// What a [`ResNet`] is made of.
#[derive(Clone)]
pub enum Block {
    /// [`BasicBlock`]: two 3 by 3 convolutions.
    Basic,
    /// [`BottleneckBlock`]: a 3 by 3 convolution between two of 1 by 1.
    Bottleneck,
    /// A block of your own.
    Own {
        /// Channels that come out for each that the block is asked for.
        expansion: usize,
        /// Makes one from a list: inplanes, planes, stride, downsample, groups, base_width, dilation.
        make: Callable,
    },
}

impl Block {
    /// Channels that come out for each that the block is asked for.
    pub fn expansion(&self) -> usize {
        match self {
            Block::Basic => 1,
            Block::Bottleneck => 4,
            Block::Own { expansion, .. } => *expansion,
        }
    }
}

impl From<Block> for Value {
    fn from(block: Block) -> Value {
        match block {
            Block::Basic => "BasicBlock".into(),
            Block::Bottleneck => "BottleneckBlock".into(),
            Block::Own { expansion, make } => {
                Value::List(vec![Value::Int(expansion as i64), Value::Object(Object::new(make))])
            }
        }
    }
}

impl<'a> Arg<'a> for Block {
    const EXPECTED: &'static str = "BasicBlock, BottleneckBlock, or the expansion and the maker of a block of your own";
    fn read(v: &'a Value) -> Option<Self> {
        match v {
            Value::Str(name) if &**name == "BasicBlock" => Some(Block::Basic),
            Value::Str(name) if &**name == "BottleneckBlock" => Some(Block::Bottleneck),
            Value::List(own) => match &own[..] {
                [expansion, Value::Object(make)] => {
                    let make = make.downcast::<Callable>()?.clone();
                    Some(Block::Own { expansion: usize::read(expansion)?, make })
                }
                _ => None,
            },
            _ => None,
        }
    }
}

/// Two 3 by 3 convolutions and a way around them.
#[derive(Layer)]
pub struct BasicBlock {
    base: Base,
    conv1: Conv2D,
    bn1: BatchNorm2D,
    relu: ReLU,
    conv2: Conv2D,
    bn2: BatchNorm2D,
    downsample: Option<AnyLayer>,
}

#[class(module = "vision.models.resnet", object = layer::object)]
impl BasicBlock {
    /// Two 3 by 3 convolutions and a way around them, on which `downsample` fits the input to the output where they
    /// differ.
    ///
    /// ```
    /// use sampan_core::{DType, Tensor};
    /// use sampan_data::vision::models::BasicBlock;
    /// use sampan_nn::Layer;
    /// let y = BasicBlock::new(8, 8).call(&Tensor::ones([1, 8, 5, 5], DType::Float32))?;
    /// assert_eq!(y.shape(), [1, 8, 5, 5]);
    /// # Ok::<(), sampan_core::Error>(())
    /// ```
    fn build(
        inplanes: usize,
        planes: usize,
        #[opt(1)] stride: i64,
        #[opt(None)] downsample: Option<SharedLayer>,
        #[opt(1)] groups: usize,
        #[opt(64)] base_width: usize,
        #[opt(1)] dilation: i64,
    ) -> Result<BasicBlock> {
        ensure!(dilation == 1, "dilation must be 1, got {dilation}: only BottleneckBlock has more");
        // Paddle takes both and uses them in BottleneckBlock only.
        let _ = (groups, base_width);
        let conv = |input, stride| Conv2D::try_with(input, planes, 3, |o| o.padding(1).stride(stride).bias_attr(false));
        Ok(BasicBlock {
            base: Base::of("BasicBlock"),
            conv1: conv(inplanes, stride)?,
            bn1: BatchNorm2D::try_new(planes)?,
            relu: ReLU::new(),
            conv2: conv(planes, 1)?,
            bn2: BatchNorm2D::try_new(planes)?,
            downsample: downsample.map(|layer| layer.0),
        })
    }
}

impl Layer for BasicBlock {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let y = self.bn1.call_then(&x.apply(&self.conv1)?, &self.relu)?;
        let y = y.apply(&self.conv2)?.apply(&self.bn2)?;
        self.relu.call_on_sum(&y, &maybe(x.clone(), &self.downsample)?)
    }
}

/// A 3 by 3 convolution between two of 1 by 1, and a way around them.
#[derive(Layer)]
pub struct BottleneckBlock {
    base: Base,
    conv1: Conv2D,
    bn1: BatchNorm2D,
    conv2: Conv2D,
    bn2: BatchNorm2D,
    conv3: Conv2D,
    bn3: BatchNorm2D,
    relu: ReLU,
    downsample: Option<AnyLayer>,
}

#[class(module = "vision.models.resnet", object = layer::object)]
impl BottleneckBlock {
    /// A 3 by 3 convolution in `groups` groups between two of 1 by 1, and a way around them; `planes * 4` channels come
    /// out, and `planes * base_width / 64` for each group lie in the middle.
    ///
    /// ```
    /// use sampan_core::{DType, Tensor};
    /// use sampan_data::vision::models::BottleneckBlock;
    /// use sampan_nn::Layer;
    /// let block = BottleneckBlock::with(32, 8, |o| o.groups(2).base_width(128));
    /// assert_eq!(block.call(&Tensor::ones([1, 32, 5, 5], DType::Float32))?.shape(), [1, 32, 5, 5]);
    /// # Ok::<(), sampan_core::Error>(())
    /// ```
    fn build(
        inplanes: usize,
        planes: usize,
        #[opt(1)] stride: i64,
        #[opt(None)] downsample: Option<SharedLayer>,
        #[opt(1)] groups: usize,
        #[opt(64)] base_width: usize,
        #[opt(1)] dilation: i64,
    ) -> Result<BottleneckBlock> {
        let width = planes * base_width / 64 * groups;
        let out = planes * Block::Bottleneck.expansion();
        let narrow = |input, output| Conv2D::try_with(input, output, 1, |o| o.bias_attr(false));
        Ok(BottleneckBlock {
            base: Base::of("BottleneckBlock"),
            conv1: narrow(inplanes, width)?,
            bn1: BatchNorm2D::try_new(width)?,
            conv2: Conv2D::try_with(width, width, 3, |o| {
                o.padding(dilation).stride(stride).groups(groups).dilation(dilation).bias_attr(false)
            })?,
            bn2: BatchNorm2D::try_new(width)?,
            conv3: narrow(width, out)?,
            bn3: BatchNorm2D::try_new(out)?,
            relu: ReLU::new(),
            downsample: downsample.map(|layer| layer.0),
        })
    }
}

impl Layer for BottleneckBlock {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let y = self.bn1.call_then(&x.apply(&self.conv1)?, &self.relu)?;
        let y = self.bn2.call_then(&y.apply(&self.conv2)?, &self.relu)?;
        let y = y.apply(&self.conv3)?.apply(&self.bn3)?;
        self.relu.call_on_sum(&y, &maybe(x.clone(), &self.downsample)?)
    }
}

/// Residual blocks in four stages.
#[derive(Layer)]
pub struct ResNet {
    base: Base,
    conv1: Conv2D,
    bn1: BatchNorm2D,
    relu: ReLU,
    maxpool: MaxPool2D,
    layer1: Sequential,
    layer2: Sequential,
    layer3: Sequential,
    layer4: Sequential,
    avgpool: Option<AdaptiveAvgPool2D>,
    fc: Option<Linear>,
}

#[class(module = "vision.models", object = layer::object)]
impl ResNet {
    /// Residual blocks in four stages: `depth` is 18, 34, 50, 101 or 152; `width` and `groups` widen the middle of a
    /// bottleneck. Without classes (`num_classes <= 0`) or pooling (`with_pool`) it ends earlier.
    ///
    /// ```
    /// use sampan_core::{DType, Tensor};
    /// use sampan_data::vision::models::{Block, ResNet};
    /// use sampan_nn::Layer;
    /// let net = ResNet::with(Block::Basic, |o| o.depth(18).num_classes(10));
    /// assert_eq!(net.call(&Tensor::ones([1, 3, 32, 32], DType::Float32))?.shape(), [1, 10]);
    /// # Ok::<(), sampan_core::Error>(())
    /// ```
    fn build(
        block: Block,
        #[opt(50)] depth: i64,
        #[opt(64)] width: usize,
        #[opt(1000)] num_classes: i64,
        #[opt(true)] with_pool: bool,
        #[opt(1)] groups: usize,
    ) -> Result<ResNet> {
        let blocks = match depth {
            18 => [2, 2, 2, 2],
            34 | 50 => [3, 4, 6, 3],
            101 => [3, 4, 23, 3],
            152 => [3, 8, 36, 3],
            other => bail!("depth must be 18, 34, 50, 101 or 152, got {other}"),
        };
        let features = 512 * block.expansion();
        let mut stages = Stages { block, input: 64, width, groups };
        Ok(ResNet {
            base: Base::of("ResNet"),
            conv1: Conv2D::try_with(3, 64, 7, |o| o.stride(2).padding(3).bias_attr(false))?,
            bn1: BatchNorm2D::try_new(64)?,
            relu: ReLU::new(),
            maxpool: MaxPool2D::try_with(3, |o| o.stride(2).padding(1))?,
            layer1: stages.next(64, blocks[0], 1)?,
            layer2: stages.next(128, blocks[1], 2)?,
            layer3: stages.next(256, blocks[2], 2)?,
            layer4: stages.next(512, blocks[3], 2)?,
            avgpool: mean_pool(with_pool),
            fc: classes(num_classes).map(|n| Linear::try_new(features, n)).transpose()?,
        })
    }
}

/// Makes one stage after the other.
struct Stages {
    block: Block,
    input: usize,
    width: usize,
    groups: usize,
}

impl Stages {
    fn next(&mut self, planes: usize, blocks: usize, stride: i64) -> Result<Sequential> {
        let out = planes * self.block.expansion();
        let mut stage = Vec::new();
        for i in 0..blocks {
            let stride = if i == 0 { stride } else { 1 };
            let around = (stride != 1 || self.input != out).then(|| {
                let conv = Conv2D::with(self.input, out, 1, |o| o.stride(stride).bias_attr(false));
                sequential![conv, BatchNorm2D::new(out)]
            });
            stage.push(self.block(planes, stride, around)?);
            self.input = out;
        }
        Ok(stage.into_iter().collect())
    }

    fn block(&self, planes: usize, stride: i64, around: Option<Sequential>) -> Result<AnyLayer> {
        macro_rules! build {
            ($class:ident) => {
                AnyLayer::from(Box::new($class::build(
                    self.input,
                    planes,
                    stride,
                    around.map(SharedLayer::from),
                    self.groups,
                    self.width,
                    1,
                )?) as Box<dyn Layer>)
            };
        }
        Ok(match &self.block {
            Block::Basic => build!(BasicBlock),
            Block::Bottleneck => build!(BottleneckBlock),
            Block::Own { make, .. } => {
                let number = |n: usize| Value::Int(n as i64);
                let around = around.map_or(Value::None, |layer| SharedLayer::from(layer).into());
                let (input, groups, width) = (number(self.input), number(self.groups), number(self.width));
                let made =
                    (make.0)(Value::List(vec![input, number(planes), stride.into(), around, groups, width, 1.into()]))?;
                SharedLayer::get(&made, "the block")?.0
            }
        })
    }
}

impl Layer for ResNet {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let x = self.bn1.call_then(&x.apply(&self.conv1)?, &self.relu)?.apply(&self.maxpool)?;
        let x = x.apply(&self.layer1)?.apply(&self.layer2)?.apply(&self.layer3)?.apply(&self.layer4)?;
        finish(x, &self.avgpool, &self.fc)
    }
}

variants! {
    KNOWN: ResNet ResNetOpts -> ResNet, IMAGENET;
    /// ResNet with 18 layers.
    resnet18 resnet18_with = (Block::Basic; depth = 18) hapi!("resnet18" "cf548f46534aa3560945be4b95cd11c4");
    /// ResNet with 34 layers.
    resnet34 resnet34_with = (Block::Basic; depth = 34) hapi!("resnet34" "8d2275cf8706028345f78ac0e1d31969");
    /// ResNet with 50 layers.
    resnet50 resnet50_with = (Block::Bottleneck; depth = 50) hapi!("resnet50" "ca6f485ee1ab0492d38f323885b0ad80");
    /// ResNet with 101 layers.
    resnet101 resnet101_with = (Block::Bottleneck; depth = 101) hapi!("resnet101" "02f35f034ca3858e1e54d4036443c92d");
    /// ResNet with 152 layers.
    resnet152 resnet152_with = (Block::Bottleneck; depth = 152) hapi!("resnet152" "7ad16a2f1e7333859ff986138630fd7a");
    /// ResNeXt with 50 layers, 32 groups of width 4.
    resnext50_32x4d resnext50_32x4d_with = (Block::Bottleneck; depth = 50, width = 4, groups = 32)
        hapi!("resnext50_32x4d" "dc47483169be7d6f018fcbb7baf8775d");
    /// ResNeXt with 50 layers, 64 groups of width 4.
    resnext50_64x4d resnext50_64x4d_with = (Block::Bottleneck; depth = 50, width = 4, groups = 64)
        hapi!("resnext50_64x4d" "063d4b483e12b06388529450ad7576db");
    /// ResNeXt with 101 layers, 32 groups of width 4.
    resnext101_32x4d resnext101_32x4d_with = (Block::Bottleneck; depth = 101, width = 4, groups = 32)
        hapi!("resnext101_32x4d" "967b090039f9de2c8d06fe994fb9095f");
    /// ResNeXt with 101 layers, 64 groups of width 4.
    resnext101_64x4d resnext101_64x4d_with = (Block::Bottleneck; depth = 101, width = 4, groups = 64)
        hapi!("resnext101_64x4d" "98e04e7ca616a066699230d769d03008");
    /// ResNeXt with 152 layers, 32 groups of width 4.
    resnext152_32x4d resnext152_32x4d_with = (Block::Bottleneck; depth = 152, width = 4, groups = 32)
        hapi!("resnext152_32x4d" "18ff0beee21f2efc99c4b31786107121");
    /// ResNeXt with 152 layers, 64 groups of width 4.
    resnext152_64x4d resnext152_64x4d_with = (Block::Bottleneck; depth = 152, width = 4, groups = 64)
        hapi!("resnext152_64x4d" "77c4af00ca42c405fa7f841841959379");
    /// ResNet with 50 layers of double width.
    wide_resnet50_2 wide_resnet50_2_with = (Block::Bottleneck; depth = 50, width = 128)
        hapi!("wide_resnet50_2" "0282f804d73debdab289bd9fea3fa6dc");
    /// ResNet with 101 layers of double width.
    wide_resnet101_2 wide_resnet101_2_with = (Block::Bottleneck; depth = 101, width = 128)
        hapi!("wide_resnet101_2" "d4360a2d23657f059216f5d5a1a9ac93");
}
