//! Weight normalisation: length and direction of a weight as two parameters.

use super::{find_plain, part_of, rows_of};
use crate::{Form, Members, Parameter, Path, Visitor};
use sampan_core::ops::geometry::NormalizeOpts;
use sampan_core::ops::norms::VectorNormOpts;
use sampan_core::{Result, Tensor, no_grad, shape};
use std::sync::Arc;

/// Too small a length is raised to this.
const EPSILON: f64 = 1e-12;

struct WeightNorm {
    g: Parameter,
    v: Parameter,
    /// The axis whose positions have a length of their own; none: the whole weight has one.
    axis: Option<usize>,
}

/// The lengths `g` belongs to: one for each position of `axis`, or one for all.
fn lengths(weight: &Tensor, axis: Option<usize>) -> Result<Tensor> {
    match axis {
        None => weight.try_vector_norm(2.0, ()),
        Some(axis) => rows_of(weight, axis)?.try_vector_norm_with(2.0, 1, VectorNormOpts::new()),
    }
}

impl Form for WeightNorm {
    fn value(&self) -> Result<Tensor> {
        let (v, g) = (self.v.value()?, self.g.value()?);
        let Some(axis) = self.axis else {
            return v.try_multiply(g.try_divide(lengths(&v, None)? + EPSILON)?);
        };
        let rows = rows_of(&v, axis)?;
        let units = rows.try_normalize_with(NormalizeOpts::new().axis(1).epsilon(EPSILON))?;
        let mut moved = v.shape().to_vec();
        let n = moved.remove(axis);
        moved.insert(0, n);
        units.try_multiply(g.try_unsqueeze(1)?)?.try_reshape(moved)?.try_moveaxis([0], [axis])
    }
    fn visit(&self, path: &Path, visitor: &mut dyn Visitor) {
        self.v.visit(&path.with_suffix("_v"), visitor);
        self.g.visit(&path.with_suffix("_g"), visitor);
    }
}

/// Trains the parameter `name` of a layer as lengths `name_g` and directions `name_v`: `weight = g * v / |v|`. There is one
/// length for each position of the axis `dim`, or (`None`, or -1 as in Paddle) one for the whole weight.
///
/// ```
/// use sampan_nn::{Linear, Members, utils};
/// let fc = Linear::new(3, 4);
/// utils::weight_norm(&fc, "weight", Some(1))?;
/// assert_eq!(fc.state_dict().keys().collect::<Vec<_>>(), ["bias", "weight_g", "weight_v"]);
/// # Ok::<(), sampan_core::Error>(())
/// ```
pub fn weight_norm(layer: &(impl Members + ?Sized), name: &str, dim: Option<i64>) -> Result<()> {
    let p = find_plain(layer, name)?;
    let weight = p.tensor().detach();
    let axis = match dim {
        None | Some(-1) => None,
        Some(dim) => Some(shape::axis(dim, weight.ndim())?),
    };
    let (v, g) = no_grad(|| -> Result<_> { Ok((weight.try_assign()?, lengths(&weight, axis)?)) })?;
    let part = |suffix: &str, values| {
        let number = || layer.base().map(|base| base.member_name(false));
        part_of(&p, number().unwrap_or_else(|| format!("{}{suffix}", p.name())), values)
    };
    let (v, g) = (part("_v", v), part("_g", g));
    p.set_form(Some(Arc::new(WeightNorm { g, v, axis })));
    Ok(())
}

/// Undoes [`weight_norm`]: the weight keeps its present value and is trained as it is.
pub fn remove_weight_norm(layer: &(impl Members + ?Sized), name: &str) -> Result<()> {
    super::remove(layer, name, WeightNorm::value)
}
