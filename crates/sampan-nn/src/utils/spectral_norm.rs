//! Spectral normalisation: a weight divided by its largest singular value.

use super::{find_plain, part_of, rows_of};
use crate::{Base, Buffer, Form, Members, Parameter, Path, Visitor};
use sampan_core::ops::geometry::NormalizeOpts;
use sampan_core::{Result, Tensor, ensure, no_grad, shape};
use std::sync::Arc;

struct SpectralNorm {
    /// Follows the mode of the layer: the singular vectors are improved while it trains.
    mode: Base,
    original: Parameter,
    u: Buffer,
    v: Buffer,
    axis: usize,
    iterations: usize,
    epsilon: f64,
}

fn unit(x: &Tensor, epsilon: f64) -> Result<Tensor> {
    x.try_normalize_with(NormalizeOpts::new().axis(0).epsilon(epsilon))
}

impl SpectralNorm {
    /// The weight over its largest singular value, with the singular vectors after that many more iterations.
    fn after(&self, iterations: usize) -> Result<Tensor> {
        let weight = self.original.value()?;
        let rows = rows_of(&weight, self.axis)?;
        // Copies, so that the next call may change the buffers while a gradient still needs these.
        let (u, v) = no_grad(|| -> Result<_> {
            let (mut u, mut v) = (self.u.tensor().try_assign()?, self.v.tensor().try_assign()?);
            for _ in 0..iterations {
                v = unit(&rows.try_t()?.try_matmul(&u)?, self.epsilon)?;
                u = unit(&rows.try_matmul(&v)?, self.epsilon)?;
            }
            if iterations > 0 {
                self.u.tensor().try_set_value(&u)?;
                self.v.tensor().try_set_value(&v)?;
            }
            Ok((u, v))
        })?;
        weight.try_divide(u.try_matmul(&rows.try_matmul(&v)?)?)
    }
}

impl Form for SpectralNorm {
    fn value(&self) -> Result<Tensor> {
        self.after(if self.mode.training() { self.iterations } else { 0 })
    }
    fn visit(&self, path: &Path, visitor: &mut dyn Visitor) {
        visitor.base(path, &self.mode);
        self.original.visit(&path.with_suffix("_orig"), visitor);
        self.u.visit(&path.with_suffix("_u"), visitor);
        self.v.visit(&path.with_suffix("_v"), visitor);
    }
}

/// The optional arguments of [`spectral_norm`], with their defaults.
#[derive(Clone, Copy, Debug)]
pub struct SpectralNormOptions {
    /// Steps of the power iteration for each call in training.
    pub n_power_iterations: usize,
    /// Too small a length is raised to this.
    pub eps: f64,
    /// The axis of the outputs; by default 1 for `Linear` and transposed convolutions, whose inputs come first, else 0.
    pub dim: Option<i64>,
}

impl Default for SpectralNormOptions {
    fn default() -> SpectralNormOptions {
        SpectralNormOptions { n_power_iterations: 1, eps: 1e-12, dim: None }
    }
}

/// Divides the parameter `name` of a layer by its largest singular value before each use. The parameter is kept as
/// `name_orig`, the singular vectors as the buffers `name_u` and `name_v`.
///
/// ```
/// use sampan_nn::{Linear, Members, utils};
/// let fc = Linear::new(3, 4);
/// utils::spectral_norm(&fc, "weight", Default::default())?;
/// assert_eq!(fc.state_dict().keys().collect::<Vec<_>>(), ["bias", "weight_orig", "weight_u", "weight_v"]);
/// # Ok::<(), sampan_core::Error>(())
/// ```
pub fn spectral_norm(layer: &(impl Members + ?Sized), name: &str, options: SpectralNormOptions) -> Result<()> {
    let SpectralNormOptions { n_power_iterations: iterations, eps: epsilon, dim } = options;
    ensure!(iterations > 0, "n_power_iterations must be positive");
    let p = find_plain(layer, name)?;
    let weight = p.tensor().detach();
    ensure!(weight.ndim() > 0, "a 0-d parameter has no singular values");
    let inputs_first = layer
        .named_sublayers()
        .first()
        .is_some_and(|(_, kind)| matches!(*kind, "Linear" | "Conv1DTranspose" | "Conv2DTranspose" | "Conv3DTranspose"));
    let axis = shape::axis(dim.unwrap_or(inputs_first as i64), weight.ndim())?;
    let random = |n: usize| unit(&Tensor::randn([n]).try_cast(weight.dtype())?, epsilon);
    let (u, v) = no_grad(|| -> Result<_> {
        let rows = rows_of(&weight, axis)?;
        Ok((random(rows.dim(0))?, random(rows.dim(1))?))
    })?;
    let mode = Base::new("spectral_norm");
    mode.set_training(layer.base().is_none_or(Base::training));
    let (u, v) = (Buffer::new(u), Buffer::new(v));
    let original = part_of(&p, p.name(), weight.try_assign()?);
    p.set_form(Some(Arc::new(SpectralNorm { mode, original, u, v, axis, iterations, epsilon })));
    Ok(())
}

/// Undoes [`spectral_norm`]: the weight keeps its present value and is trained as it is.
pub fn remove_spectral_norm(layer: &(impl Members + ?Sized), name: &str) -> Result<()> {
    super::remove(layer, name, |form: &SpectralNorm| form.after(0))
}
