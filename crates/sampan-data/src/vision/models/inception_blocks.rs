//! The blocks of Inception, version 3: branches side by side, joined along the channels.

use super::blocks::{Chain, ConvNorm, ConvNormActivation, join};
use sampan_core::{Result, Tensor};
use sampan_nn::{AvgPool2D, Base, Layer, LayerRef, MaxPool2D, Members, Path, Visitor};

/// Layers one after the other, whose result goes into several more side by side, where there are any.
#[derive(Default)]
struct Branch {
    trunk: Chain,
    tips: Chain,
}

impl Branch {
    fn run(&self, x: &Tensor, outputs: &mut Vec<Tensor>) -> Result<()> {
        let x = self.trunk.run(x)?;
        for tip in self.tips.layers() {
            outputs.push(tip.call(&x)?);
        }
        if self.tips.layers().next().is_none() {
            outputs.push(x);
        }
        Ok(())
    }
}

/// Branches; their members stand side by side under their own names.
#[derive(Default)]
struct Branches(Vec<Branch>);

impl Members for Branches {
    fn visit(&self, path: &Path, visitor: &mut dyn Visitor) {
        for branch in &self.0 {
            branch.trunk.visit(path, visitor);
            branch.tips.visit(path, visitor);
        }
    }
}

/// One block.
pub(super) struct InceptionBlock {
    base: Base,
    /// Paddle's class: five differ in their branches alone.
    class: &'static str,
    branches: Branches,
}

impl Members for InceptionBlock {
    fn visit(&self, path: &Path, visitor: &mut dyn Visitor) {
        visitor.layer(path, LayerRef { type_name: self.class, layer: self });
        self.branches.visit(path, visitor);
    }
    fn base(&self) -> Option<&Base> {
        Some(&self.base)
    }
}

impl Layer for InceptionBlock {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let mut outputs = Vec::new();
        self.branches.0.iter().try_for_each(|branch| branch.run(x, &mut outputs))?;
        join(&outputs)
    }
}

/// Builds a block branch by branch; a convolution's input is the one before it.
struct Builder {
    base: Base,
    class: &'static str,
    input: usize,
    channels: usize,
    branches: Branches,
}

impl Builder {
    fn new(class: &'static str, input: usize) -> Builder {
        Builder { base: Base::of(class), class, input, channels: input, branches: Branches::default() }
    }

    fn branch(mut self) -> Builder {
        self.branches.0.push(Branch::default());
        self.channels = self.input;
        self
    }

    fn last(&mut self) -> &mut Branch {
        self.branches.0.last_mut().expect("branch() comes first")
    }

    /// A convolution that keeps the image's size.
    fn conv(mut self, name: &str, output: usize, kernel: [i64; 2]) -> Result<Builder> {
        let layer = ConvNorm::new(self.channels, output, kernel).build()?;
        self.last().trunk.push(name, layer);
        self.channels = output;
        Ok(self)
    }

    /// A 3 by 3 convolution that halves it.
    fn halving(mut self, name: &str, output: usize) -> Result<Builder> {
        let layer = halving(self.channels, output)?;
        self.last().trunk.push(name, layer);
        Ok(self)
    }

    /// One of several convolutions at the end of a branch.
    fn tip(mut self, name: &str, output: usize, kernel: [i64; 2]) -> Result<Builder> {
        let layer = ConvNorm::new(self.channels, output, kernel).build()?;
        self.last().tips.push(name, layer);
        Ok(self)
    }

    /// The branch of means that most blocks have.
    fn means(mut self, output: usize) -> Result<InceptionBlock> {
        self = self.branch();
        let pool = AvgPool2D::try_with(3, |o| o.stride(1).padding(1).exclusive(false))?;
        self.last().trunk.push("branch_pool", pool);
        Ok(self.conv("branch_pool_conv", output, [1, 1])?.build())
    }

    /// The branch of maxima that halving blocks have.
    fn maxima(mut self) -> Result<InceptionBlock> {
        self = self.branch();
        let pool = MaxPool2D::try_with(3, |o| o.stride(2))?;
        self.last().trunk.push("branch_pool", pool);
        Ok(self.build())
    }

    fn build(self) -> InceptionBlock {
        InceptionBlock { base: self.base, class: self.class, branches: self.branches }
    }
}

/// A 3 by 3 convolution with stride 2 and no padding.
pub(super) fn halving(input: usize, output: usize) -> Result<ConvNormActivation> {
    ConvNorm::new(input, output, [3, 3]).stride(2).unpadded().build()
}

impl InceptionBlock {
    /// 1, 5 and twice 3 by 3 side by side.
    pub fn a(input: usize, pooled: usize) -> Result<InceptionBlock> {
        Builder::new("InceptionA", input)
            .branch()
            .conv("branch1x1", 64, [1, 1])?
            .branch()
            .conv("branch5x5_1", 48, [1, 1])?
            .conv("branch5x5_2", 64, [5, 5])?
            .branch()
            .conv("branch3x3dbl_1", 64, [1, 1])?
            .conv("branch3x3dbl_2", 96, [3, 3])?
            .conv("branch3x3dbl_3", 96, [3, 3])?
            .means(pooled)
    }

    /// Halves the image.
    pub fn b(input: usize) -> Result<InceptionBlock> {
        Builder::new("InceptionB", input)
            .branch()
            .halving("branch3x3", 384)?
            .branch()
            .conv("branch3x3dbl_1", 64, [1, 1])?
            .conv("branch3x3dbl_2", 96, [3, 3])?
            .halving("branch3x3dbl_3", 96)?
            .maxima()
    }

    /// 7 by 7 taken apart into 1 by 7 and 7 by 1.
    pub fn c(input: usize, width: usize) -> Result<InceptionBlock> {
        Builder::new("InceptionC", input)
            .branch()
            .conv("branch1x1", 192, [1, 1])?
            .branch()
            .conv("branch7x7_1", width, [1, 1])?
            .conv("branch7x7_2", width, [1, 7])?
            .conv("branch7x7_3", 192, [7, 1])?
            .branch()
            .conv("branch7x7dbl_1", width, [1, 1])?
            .conv("branch7x7dbl_2", width, [7, 1])?
            .conv("branch7x7dbl_3", width, [1, 7])?
            .conv("branch7x7dbl_4", width, [7, 1])?
            .conv("branch7x7dbl_5", 192, [1, 7])?
            .means(192)
    }

    /// Halves the image again.
    pub fn d(input: usize) -> Result<InceptionBlock> {
        Builder::new("InceptionD", input)
            .branch()
            .conv("branch3x3_1", 192, [1, 1])?
            .halving("branch3x3_2", 320)?
            .branch()
            .conv("branch7x7x3_1", 192, [1, 1])?
            .conv("branch7x7x3_2", 192, [1, 7])?
            .conv("branch7x7x3_3", 192, [7, 1])?
            .halving("branch7x7x3_4", 192)?
            .maxima()
    }

    /// 3 by 3 taken apart into 1 by 3 beside 3 by 1.
    pub fn e(input: usize) -> Result<InceptionBlock> {
        Builder::new("InceptionE", input)
            .branch()
            .conv("branch1x1", 320, [1, 1])?
            .branch()
            .conv("branch3x3_1", 384, [1, 1])?
            .tip("branch3x3_2a", 384, [1, 3])?
            .tip("branch3x3_2b", 384, [3, 1])?
            .branch()
            .conv("branch3x3dbl_1", 448, [1, 1])?
            .conv("branch3x3dbl_2", 384, [3, 3])?
            .tip("branch3x3dbl_3a", 384, [1, 3])?
            .tip("branch3x3dbl_3b", 384, [3, 1])?
            .means(192)
    }
}
