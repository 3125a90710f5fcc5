//! Limits on gradients: Paddle's `nn.ClipGradBy…`.

use crate::Parameter;
use sampan_core::value::Arg;
use sampan_core::{Object, Result, Tensor, Value, ensure};
use sampan_kernels::optim::{Prepare, square_sums};
use sampan_macros::class;

/// A limit on gradients, for an optimizer's `grad_clip`. Parameters whose `need_clip` is off are left alone.
#[derive(Clone, Debug, PartialEq)]
pub enum ClipGrad {
    /// Each element.
    Value {
        /// Largest value.
        max: f64,
        /// Smallest value.
        min: f64,
    },
    /// The norm of each gradient.
    Norm {
        /// Largest norm.
        clip_norm: f64,
    },
    /// The norm of all gradients together.
    GlobalNorm {
        /// Largest norm.
        clip_norm: f64,
        /// Kept for Paddle's signature; an optimizer's parameters are one group.
        group_name: String,
        /// Kept for Paddle's signature: gradients within the limit are never touched.
        auto_skip_clip: bool,
    },
}

/// Limits each element of the gradients.
pub struct ClipGradByValue;

#[class(module = "nn", object = object)]
impl ClipGradByValue {
    /// Moves each element of a gradient into `min..=max`; `min` is `-max` if left out.
    ///
    /// ```
    /// use sampan_core::Tensor;
    /// use sampan_nn::{ClipGradByValue, Parameter};
    /// let p = Parameter::new(Tensor::new([0.0f32, 0.0]));
    /// let clipped = ClipGradByValue::new(1.0).apply(&[(p, Tensor::new([3.0f32, -0.5]))])?;
    /// assert_eq!(clipped[0].1.to_vec::<f32>(), [1.0, -0.5]);
    /// # Ok::<(), sampan_core::Error>(())
    /// ```
    fn build(max: f64, #[opt(None)] min: Option<f64>) -> Result<ClipGrad> {
        ensure!(min.is_some() || max > 0.0, "without min, max must be positive, got {max}");
        let min = min.unwrap_or(-max);
        ensure!(min <= max, "min {min} lies above max {max}");
        Ok(ClipGrad::Value { max, min })
    }
}

/// Limits the norm of each gradient.
pub struct ClipGradByNorm;

#[class(module = "nn", object = object)]
impl ClipGradByNorm {
    /// Shrinks each gradient whose norm is above `clip_norm` to that norm.
    ///
    /// ```
    /// use sampan_core::Tensor;
    /// use sampan_nn::{ClipGradByNorm, Parameter};
    /// let p = Parameter::new(Tensor::new([0.0f32, 0.0]));
    /// let clipped = ClipGradByNorm::new(1.0).apply(&[(p, Tensor::new([3.0f32, 4.0]))])?;
    /// assert_eq!(clipped[0].1.to_vec::<f32>(), [0.6, 0.8]);
    /// # Ok::<(), sampan_core::Error>(())
    /// ```
    fn build(clip_norm: f64) -> Result<ClipGrad> {
        ensure!(clip_norm > 0.0, "clip_norm must be positive, got {clip_norm}");
        Ok(ClipGrad::Norm { clip_norm })
    }
}

/// Limits the norm of all gradients together.
pub struct ClipGradByGlobalNorm;

#[class(module = "nn", object = object)]
impl ClipGradByGlobalNorm {
    /// Shrinks all gradients by one factor if their common norm is above `clip_norm`.
    ///
    /// ```
    /// use sampan_core::Tensor;
    /// use sampan_nn::{ClipGradByGlobalNorm, Parameter};
    /// let p = || Parameter::new(Tensor::new([0.0f32]));
    /// let grads = [(p(), Tensor::new([3.0f32])), (p(), Tensor::new([4.0f32]))];
    /// let clipped = ClipGradByGlobalNorm::new(1.0).apply(&grads)?;
    /// assert_eq!(clipped[1].1.to_vec::<f32>(), [0.8]);
    /// # Ok::<(), sampan_core::Error>(())
    /// ```
    fn build(
        clip_norm: f64,
        #[opt("default_group")] group_name: &str,
        #[opt(false)] auto_skip_clip: bool,
    ) -> Result<ClipGrad> {
        ensure!(clip_norm > 0.0, "clip_norm must be positive, got {clip_norm}");
        Ok(ClipGrad::GlobalNorm { clip_norm, group_name: group_name.into(), auto_skip_clip })
    }
}

/// What clipping does to a gradient.
#[derive(Clone, Default)]
pub(crate) struct Plan {
    pub prepare: Prepare,
    /// On a GPU: a tensor of float64 numbers there, and which of them the gradient is multiplied by.
    pub factor: Option<(Tensor, usize)>,
}

impl ClipGrad {
    /// What to do with each gradient; `None` for one that is not to be clipped. Gradients are contiguous.
    pub(crate) fn plan(&self, grads: &[Option<&Tensor>]) -> Result<Vec<Plan>> {
        let mut plans = vec![Plan::default(); grads.len()];
        let clipped: Vec<(&mut Plan, &Tensor)> =
            plans.iter_mut().zip(grads).filter_map(|(plan, g)| g.map(|g| (plan, g))).collect();
        if let ClipGrad::Value { max, min } = *self {
            clipped.into_iter().for_each(|(plan, _)| plan.prepare.limits = Some((min, max)));
            return Ok(plans);
        }
        let tensors: Vec<&Tensor> = clipped.iter().map(|(_, g)| *g).collect();
        let (ClipGrad::GlobalNorm { clip_norm: limit, .. } | ClipGrad::Norm { clip_norm: limit }) = *self else {
            return Ok(plans);
        };
        let together = matches!(self, ClipGrad::GlobalNorm { .. });
        // On a GPU nothing is brought to the host: the factor is applied there.
        if let Some(factors) = sampan_core::gpu::clip_factors(&tensors, limit, together)? {
            for (i, (plan, _)) in clipped.into_iter().enumerate() {
                plan.factor = Some((factors.clone(), if together { 0 } else { i }));
            }
            return Ok(plans);
        }
        let squares = Tensor::update(&[], &tensors, |_, bytes| {
            let arrays: Vec<_> = tensors.iter().zip(bytes).map(|(t, b)| (t.dtype(), *b)).collect();
            square_sums(&arrays)
        })?;
        match *self {
            ClipGrad::GlobalNorm { clip_norm, .. } => {
                let norm = squares.iter().sum::<f64>().sqrt();
                // Written so that a NaN norm goes on to the parameters, where it is seen, rather than hiding.
                let scale = if norm <= clip_norm { 1.0 } else { clip_norm / norm };
                clipped.into_iter().for_each(|(plan, _)| plan.prepare.scale = scale);
            }
            ClipGrad::Norm { clip_norm } => clipped.into_iter().zip(squares).for_each(|((plan, _), square)| {
                let norm = square.sqrt();
                plan.prepare.scale = if norm <= clip_norm { 1.0 } else { clip_norm / norm };
            }),
            ClipGrad::Value { .. } => {}
        }
        Ok(plans)
    }

    /// The clipped gradients of these parameters, as new tensors; those within the limits are given back as they are.
    pub fn apply(&self, gradients: &[(Parameter, Tensor)]) -> Result<Vec<(Parameter, Tensor)>> {
        let contiguous: Vec<(bool, Tensor)> =
            gradients.iter().map(|(p, g)| (p.settings().need_clip, g.detach().contiguous())).collect();
        let plans = self.plan(&contiguous.iter().map(|(clip, g)| clip.then_some(g)).collect::<Vec<_>>())?;
        let one = |((p, g), plan): (&(Parameter, Tensor), &Plan)| {
            let g = match (&plan.factor, plan.prepare) {
                (Some((factors, at)), _) => {
                    let factor = factors.try_slice([0i64], [*at as i64], [*at as i64 + 1])?.try_cast(g.dtype())?;
                    g.detach().try_multiply(factor.try_reshape(Vec::<i64>::new())?)?
                }
                (_, Prepare { limits: Some((low, high)), .. }) => g.detach().try_clip(low, high)?,
                (_, Prepare { scale, .. }) if scale != 1.0 => g.detach() * scale,
                _ => g.clone(),
            };
            Ok((p.clone(), g))
        };
        gradients.iter().zip(&plans).map(one).collect()
    }
}

/// A limit for those who build by name.
pub fn object(clip: ClipGrad) -> Object {
    Object::new(clip)
}

impl From<ClipGrad> for Value {
    fn from(clip: ClipGrad) -> Value {
        Value::Object(object(clip))
    }
}

impl<'a> Arg<'a> for ClipGrad {
    const EXPECTED: &'static str = "a ClipGradByValue, ClipGradByNorm or ClipGradByGlobalNorm";
    fn read(v: &'a Value) -> Option<Self> {
        if let Value::Object(o) = v { o.downcast::<ClipGrad>().cloned() } else { None }
    }
}
