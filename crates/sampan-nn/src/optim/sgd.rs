//! Descent along the gradient: SGD, Momentum, ASGD, Rprop.

use super::rule::{Accumulator, Kind, Rule, Step, settings};
use super::{Common, Optimizer, Parameters, object};
use crate::clip::ClipGrad;
use crate::lr::LearningRate;
use crate::regularizer::Regularizer;
use sampan_core::{Result, ensure};
use sampan_kernels::optim::Formula;
use sampan_macros::class;

/// Plain descent.
#[derive(Clone)]
pub struct SGD;

#[class(module = "optimizer", object = object)]
impl SGD {
    /// `p -= lr * g`.
    ///
    /// ```
    /// use sampan_core::Tensor;
    /// use sampan_nn::{Parameter, SGD};
    /// let p = Parameter::new(Tensor::new([1.0f32]));
    /// (p.tensor() * 2.0).sum(()).backward();
    /// let mut opt = SGD::new(0.25, [p.clone()]);
    /// opt.step()?;
    /// assert_eq!(p.tensor().to_vec::<f32>(), [0.5]);
    /// # Ok::<(), sampan_core::Error>(())
    /// ```
    fn build(
        #[default(0.001)] learning_rate: LearningRate,
        #[default(None)] parameters: Parameters,
        #[opt(None)] weight_decay: Option<Regularizer>,
        #[opt(None)] grad_clip: Option<ClipGrad>,
        #[opt(false)] multi_precision: bool,
    ) -> Result<Optimizer> {
        Optimizer::new(SGD, learning_rate, parameters, Common { weight_decay, grad_clip, multi_precision })
    }
}

impl Rule for SGD {
    fn name(&self) -> &'static str {
        "SGD"
    }
    fn accumulators(&self) -> Vec<Accumulator> {
        Vec::new()
    }
    fn formula(&self, _: &mut Step) -> Result<Formula> {
        Ok(Formula::Sgd)
    }
    settings! {}
}

/// Descent with a velocity.
#[derive(Clone)]
pub struct Momentum {
    momentum: f64,
    use_nesterov: bool,
    rescale_grad: f64,
}

#[class(module = "optimizer", object = object)]
impl Momentum {
    /// `v = momentum * v + g`, then `p -= lr * v`, or `p -= lr * (g + momentum * v)` with `use_nesterov`. Gradients are
    /// multiplied by `rescale_grad` first.
    ///
    /// ```
    /// use sampan_core::Tensor;
    /// use sampan_nn::{Momentum, Parameter};
    /// let p = Parameter::new(Tensor::new([1.0f32]));
    /// let mut opt = Momentum::with(0.5, [p.clone()], |o| o.momentum(0.5));
    /// p.tensor().set_grad(Some(Tensor::new([1.0f32])));
    /// opt.step()?;
    /// opt.step()?;
    /// assert_eq!(p.tensor().to_vec::<f32>(), [-0.25]);
    /// # Ok::<(), sampan_core::Error>(())
    /// ```
    fn build(
        #[default(0.001)] learning_rate: LearningRate,
        #[opt(0.9)] momentum: f64,
        #[default(None)] parameters: Parameters,
        #[opt(false)] use_nesterov: bool,
        #[opt(None)] weight_decay: Option<Regularizer>,
        #[opt(None)] grad_clip: Option<ClipGrad>,
        #[opt(false)] multi_precision: bool,
        #[opt(1.0)] rescale_grad: f64,
        #[opt(false)] use_multi_tensor: bool,
    ) -> Result<Optimizer> {
        // Every step is one pass over all tensors, asked for or not.
        let _ = use_multi_tensor;
        let rule = Momentum { momentum, use_nesterov, rescale_grad };
        Optimizer::new(rule, learning_rate, parameters, Common { weight_decay, grad_clip, multi_precision })
    }
}

impl Rule for Momentum {
    fn name(&self) -> &'static str {
        "Momentum"
    }
    fn accumulators(&self) -> Vec<Accumulator> {
        vec![Accumulator::elements("velocity")]
    }
    fn formula(&self, step: &mut Step) -> Result<Formula> {
        // As Paddle's GPU kernel does: an L1 penalty is rescaled along with the gradient, an L2 penalty is not.
        step.prepare.scale *= self.rescale_grad;
        step.prepare.l1 *= self.rescale_grad;
        Ok(Formula::Momentum { mu: self.momentum, nesterov: self.use_nesterov })
    }
    settings! { momentum: f64, use_nesterov: bool, rescale_grad: f64 }
}

/// Descent along the mean of the last gradients.
#[derive(Clone)]
pub struct ASGD {
    batch_num: usize,
}

#[class(module = "optimizer", object = object)]
impl ASGD {
    /// `p -= lr * mean of the gradients of the last batch_num steps`.
    ///
    /// ```
    /// use sampan_core::Tensor;
    /// use sampan_nn::{ASGD, Parameter};
    /// let p = Parameter::new(Tensor::new([1.0f32]));
    /// let mut opt = ASGD::with(0.5, [p.clone()], |o| o.batch_num(2));
    /// for g in [1.0f32, 2.0] {
    ///     p.tensor().set_grad(Some(Tensor::new([g])));
    ///     opt.step()?;
    /// }
    /// assert_eq!(p.tensor().to_vec::<f32>(), [-0.25]);
    /// # Ok::<(), sampan_core::Error>(())
    /// ```
    fn build(
        #[default(0.001)] learning_rate: LearningRate,
        #[opt(1)] batch_num: i64,
        #[default(None)] parameters: Parameters,
        #[opt(None)] weight_decay: Option<Regularizer>,
        #[opt(None)] grad_clip: Option<ClipGrad>,
        #[opt(false)] multi_precision: bool,
    ) -> Result<Optimizer> {
        ensure!(batch_num > 0, "batch_num must be positive, got {batch_num}");
        let rule = ASGD { batch_num: batch_num as usize };
        Optimizer::new(rule, learning_rate, parameters, Common { weight_decay, grad_clip, multi_precision })
    }
}

impl Rule for ASGD {
    fn name(&self) -> &'static str {
        "ASGD"
    }
    fn accumulators(&self) -> Vec<Accumulator> {
        vec![
            Accumulator::elements("d"),
            Accumulator { name: "y", fill: 0.0, kind: Kind::Rows(self.batch_num) },
            Accumulator { name: "m", fill: 0.0, kind: Kind::Count },
        ]
    }
    fn formula(&self, step: &mut Step) -> Result<Formula> {
        let count = step.numbers[0] as usize;
        step.row = count % self.batch_num;
        step.numbers[0] += 1.0;
        step.lr /= (count + 1).min(self.batch_num) as f64;
        Ok(Formula::Asgd)
    }
    settings! {}
}

/// Steps whose size follows the sign of the gradient only.
#[derive(Clone)]
pub struct Rprop {
    least: f64,
    most: f64,
    shrink: f64,
    grow: f64,
    first: f64,
}

#[class(module = "optimizer", object = object)]
impl Rprop {
    /// Each element has a step size that begins at `learning_rate`, grows by `etas[1]` while the sign of its gradient
    /// stays, shrinks by `etas[0]` when it turns, and stays within `learning_rate_range`. For whole data sets, not for
    /// batches.
    ///
    /// ```
    /// use sampan_core::Tensor;
    /// use sampan_nn::{Parameter, Rprop};
    /// let p = Parameter::new(Tensor::new([1.0f32]));
    /// p.tensor().set_grad(Some(Tensor::new([7.0f32])));
    /// Rprop::new(0.5, [p.clone()]).step()?;
    /// assert_eq!(p.tensor().to_vec::<f32>(), [0.5]);
    /// # Ok::<(), sampan_core::Error>(())
    /// ```
    fn build(
        #[default(0.001)] learning_rate: LearningRate,
        #[opt([1e-5, 50.0])] learning_rate_range: &[f64],
        #[default(None)] parameters: Parameters,
        #[opt([0.5, 1.2])] etas: &[f64],
        #[opt(None)] grad_clip: Option<ClipGrad>,
        #[opt(false)] multi_precision: bool,
    ) -> Result<Optimizer> {
        let (&[least, most], &[shrink, grow]) = (learning_rate_range, etas) else {
            sampan_core::bail!("learning_rate_range and etas are pairs, got {learning_rate_range:?} and {etas:?}");
        };
        let first = learning_rate.get();
        ensure!(
            0.0 < least && least <= first && first <= most,
            "learning_rate {first} must lie in learning_rate_range [{least}, {most}], above 0"
        );
        ensure!(0.0 < shrink && shrink < 1.0 && 1.0 < grow, "etas must lie around 1, got ({shrink}, {grow})");
        let rule = Rprop { least, most, shrink, grow, first };
        Optimizer::new(rule, learning_rate, parameters, Common { weight_decay: None, grad_clip, multi_precision })
    }
}

impl Rule for Rprop {
    fn name(&self) -> &'static str {
        "Rprop"
    }
    fn accumulators(&self) -> Vec<Accumulator> {
        let rates = Accumulator { name: "learning_rates", fill: self.first, kind: Kind::Elements };
        vec![Accumulator::elements("prevs"), rates]
    }
    fn formula(&self, _: &mut Step) -> Result<Formula> {
        Ok(Formula::Rprop { shrink: self.shrink, grow: self.grow, least: self.least, most: self.most })
    }
    settings! {}
}
