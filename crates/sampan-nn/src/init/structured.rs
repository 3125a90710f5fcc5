//! Matrices and kernels with a structure: orthogonal rows, identity, interpolation.

use super::{Initializer, Normal, object};
use sampan_core::{DType, Error, Result, Tensor, ensure};
use sampan_macros::class;

/// Orthogonal rows or columns.
#[derive(Clone, Copy, Debug)]
pub struct Orthogonal {
    gain: f64,
}

#[class(module = "nn.initializer", object = object)]
impl Orthogonal {
    /// A random matrix with orthonormal rows (or columns, if there are fewer of them), times `gain`. A weight with more
    /// than two axes counts as the matrix `[first, all others]`.
    ///
    /// ```
    /// use sampan_core::DType;
    /// use sampan_nn::init::{Initializer, Orthogonal};
    /// let w = Orthogonal::new().init(&[2, 3], DType::Float64)?;
    /// assert!((w.matmul(&w.transpose([1, 0])).to_vec::<f64>()[0] - 1.0).abs() < 1e-12);
    /// # Ok::<(), sampan_core::Error>(())
    /// ```
    fn build(#[opt(1.0)] gain: f64) -> Result<Orthogonal> {
        Ok(Orthogonal { gain })
    }
}

impl Initializer for Orthogonal {
    fn init(&self, shape: &[usize], dtype: DType) -> Result<Tensor> {
        let &[rows, ref rest @ ..] = shape else {
            return Err(Error::invalid("a 0-d weight cannot be orthogonal").in_op("Orthogonal"));
        };
        ensure!(!rest.is_empty(), "an orthogonal weight needs at least 2 axes, got shape {shape:?}");
        let columns: usize = rest.iter().product();
        // Decomposed in at least float32, whatever the weight is kept in.
        let wide = if dtype == DType::Float64 { dtype } else { DType::Float32 };
        let noise = Normal::try_new(0.0, 1.0)?.init(&[rows.max(columns), rows.min(columns)], wide)?;
        let parts = noise.try_qr("reduced")?.0;
        // The signs make the result uniform over all orthogonal matrices.
        let q = parts[0].try_multiply(parts[1].try_diagonal(0, 0, 1)?.try_sign()?)?;
        let q = if rows < columns { q.try_transpose([1, 0])? } else { q };
        (q.try_reshape(shape)? * self.gain).try_cast(dtype)
    }
}

/// Convolutions that pass their input on.
#[derive(Clone, Copy, Debug)]
pub struct Dirac {
    groups: usize,
}

#[class(module = "nn.initializer", object = object)]
impl Dirac {
    /// A convolution's weight that hands on as many channels as it can, in each group: one in the middle of the kernel
    /// where input and output channel agree, zero elsewhere.
    ///
    /// ```
    /// use sampan_core::DType;
    /// use sampan_nn::init::{Dirac, Initializer};
    /// let w = Dirac::new().init(&[1, 1, 3], DType::Float32)?;
    /// assert_eq!(w.to_vec::<f32>(), [0.0, 1.0, 0.0]);
    /// # Ok::<(), sampan_core::Error>(())
    /// ```
    fn build(#[opt(1)] groups: usize) -> Result<Dirac> {
        ensure!(groups > 0, "groups must be positive");
        Ok(Dirac { groups })
    }
}

impl Initializer for Dirac {
    fn init(&self, shape: &[usize], dtype: DType) -> Result<Tensor> {
        let &[outputs, inputs, ref kernel @ ..] = shape else {
            return Err(Error::invalid(format!("the weight of a convolution is needed, got shape {shape:?}")));
        };
        ensure!((1..=3).contains(&kernel.len()), "a weight of 3 to 5 axes is needed, got shape {shape:?}");
        ensure!(
            outputs.is_multiple_of(self.groups),
            "{outputs} output channels are no multiple of {} groups",
            self.groups
        );
        let per_group = outputs / self.groups;
        let area: usize = kernel.iter().product();
        let middle = kernel.iter().fold(0, |at, &n| at * n + n / 2);
        let mut values = vec![0f32; outputs * inputs * area];
        for output in (0..outputs).filter(|o| o % per_group < inputs && area > 0) {
            values[(output * inputs + output % per_group) * area + middle] = 1.0;
        }
        Tensor::from_vec(values, shape).try_cast(dtype)
    }
}

/// Transposed convolutions that enlarge an image.
#[derive(Clone, Copy, Debug)]
pub struct Bilinear;

#[class(module = "nn.initializer", object = object)]
impl Bilinear {
    /// The kernel of bilinear interpolation, for a transposed convolution that enlarges each channel by `factor`: kernel
    /// size `2 * factor - factor % 2`, stride `factor`, one group for each channel.
    ///
    /// ```
    /// use sampan_core::DType;
    /// use sampan_nn::init::{Bilinear, Initializer};
    /// let w = Bilinear::new().init(&[1, 1, 4, 4], DType::Float32)?;
    /// assert_eq!(w.to_vec::<f32>()[..4], [0.0625, 0.1875, 0.1875, 0.0625]);
    /// # Ok::<(), sampan_core::Error>(())
    /// ```
    fn build() -> Result<Bilinear> {
        Ok(Bilinear)
    }
}

impl Initializer for Bilinear {
    fn init(&self, shape: &[usize], dtype: DType) -> Result<Tensor> {
        let &[a, b, size, width] = shape else {
            return Err(Error::invalid(format!("a weight of 4 axes is needed, got shape {shape:?}")).in_op("Bilinear"));
        };
        ensure!(size == width, "the kernel must be square, got shape {shape:?}");
        let factor = size.div_ceil(2).max(1) as f64;
        let center = (2.0 * factor - 1.0 - factor % 2.0) / (2.0 * factor);
        let line: Vec<f64> = (0..size).map(|i| 1.0 - (i as f64 / factor - center).abs()).collect();
        let kernel: Vec<f64> = line.iter().flat_map(|y| line.iter().map(move |x| x * y)).collect();
        Tensor::from_vec(kernel.repeat(a * b), shape).try_cast(dtype)
    }
}
