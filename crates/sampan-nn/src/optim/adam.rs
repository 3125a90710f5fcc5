//! Steps scaled by running moments of the gradient: Adam, AdamW, Adamax, Lamb.

use super::rule::{Accumulator, Rule, Step, check_betas, settings};
use super::{Common, Optimizer, Parameters, object};
use crate::callable::{NameFilter, ParameterFactor, ParameterFilter};
use crate::clip::ClipGrad;
use crate::lr::LearningRate;
use crate::regularizer::Regularizer;
use sampan_core::value::Arg;
use sampan_core::{Result, Value, ensure};
use sampan_kernels::optim::Formula;
use sampan_macros::class;

/// What the family shares.
#[derive(Clone, Copy)]
struct Moments {
    beta1: f64,
    beta2: f64,
    epsilon: f64,
}

impl Moments {
    fn new(beta1: f64, beta2: f64, epsilon: f64) -> Result<Moments> {
        check_betas(&[("beta1", beta1), ("beta2", beta2)])?;
        ensure!(epsilon >= 0.0, "epsilon must not be negative, got {epsilon}");
        Ok(Moments { beta1, beta2, epsilon })
    }

    fn set(&mut self, name: &str, value: &Value) -> Result<bool> {
        let field = match name {
            "beta1" => &mut self.beta1,
            "beta2" => &mut self.beta2,
            "epsilon" => &mut self.epsilon,
            _ => return Ok(false),
        };
        *field = f64::get(value, name)?;
        Moments::new(self.beta1, self.beta2, self.epsilon).map(|_| true)
    }

    fn accumulators(&self, amsgrad: bool) -> Vec<Accumulator> {
        let mut list = vec![Accumulator::elements("moment1"), Accumulator::elements("moment2")];
        if amsgrad {
            list.push(Accumulator::elements("moment2_max"));
        }
        list.push(Accumulator::number("beta1_pow_acc", self.beta1));
        list.push(Accumulator::number("beta2_pow_acc", self.beta2));
        list
    }

    /// The bias corrections of both moments; the powers move on.
    fn corrections(&self, step: &mut Step) -> (f64, f64) {
        let Step { numbers, round, .. } = step;
        let corrections = (1.0 - numbers[0], 1.0 - numbers[1]);
        numbers[0] = round(numbers[0] * round(self.beta1));
        numbers[1] = round(numbers[1] * round(self.beta2));
        corrections
    }

    /// Adam's step, after the share `decay * lr` of the parameter was taken off.
    fn adam(&self, step: &mut Step, decay: f64, amsgrad: bool) -> Formula {
        let (correction1, correction2) = self.corrections(step);
        let shrink = step.lr * decay;
        let root = correction2.sqrt();
        // The root of the second moment is corrected as a whole, so epsilon is scaled along with it.
        step.lr *= root / correction1;
        Formula::Adam { beta1: self.beta1, beta2: self.beta2, epsilon: self.epsilon * root, shrink, amsgrad }
    }
}

/// Adam.
#[derive(Clone)]
pub struct Adam {
    moments: Moments,
    amsgrad: bool,
    lazy: bool,
}

#[class(module = "optimizer", object = object)]
impl Adam {
    /// Steps along the running mean of the gradient (`beta1` the kept share), divided by the root of the running mean of
    /// its square (`beta2`); with `amsgrad` by the largest such root so far. With `lazy_mode` a row of a sparse table
    /// (an `Embedding` with `sparse`) is left alone, with its moments, in a step in which its gradient is zero everywhere,
    /// which is how it is told that no index named the row. `use_multi_tensor` is always so.
    ///
    /// ```
    /// use sampan_core::Tensor;
    /// use sampan_nn::{Adam, Parameter};
    /// let p = Parameter::new(Tensor::new([1.0f64]));
    /// p.tensor().set_grad(Some(Tensor::new([3.0f64])));
    /// Adam::with(0.5, [p.clone()], |o| o.weight_decay(0.01)).step()?;
    /// assert!((p.tensor().to_f64() - 0.5).abs() < 1e-8);
    /// # Ok::<(), sampan_core::Error>(())
    /// ```
    fn build(
        #[default(0.001)] learning_rate: LearningRate,
        #[opt(0.9)] beta1: f64,
        #[opt(0.999)] beta2: f64,
        #[opt(1e-8)] epsilon: f64,
        #[default(None)] parameters: Parameters,
        #[opt(None)] weight_decay: Option<Regularizer>,
        #[opt(None)] grad_clip: Option<ClipGrad>,
        #[opt(false)] lazy_mode: bool,
        #[opt(false)] multi_precision: bool,
        #[opt(false)] use_multi_tensor: bool,
        #[opt(false)] amsgrad: bool,
    ) -> Result<Optimizer> {
        let _ = use_multi_tensor;
        let rule = Adam { moments: Moments::new(beta1, beta2, epsilon)?, amsgrad, lazy: lazy_mode };
        Optimizer::new(rule, learning_rate, parameters, Common { weight_decay, grad_clip, multi_precision })
    }
}

impl Rule for Adam {
    fn name(&self) -> &'static str {
        "Adam"
    }
    fn accumulators(&self) -> Vec<Accumulator> {
        self.moments.accumulators(self.amsgrad)
    }
    fn formula(&self, step: &mut Step) -> Result<Formula> {
        Ok(self.moments.adam(step, 0.0, self.amsgrad))
    }
    fn set(&mut self, name: &str, value: &Value) -> Result<bool> {
        if name == "lazy_mode" {
            self.lazy = bool::get(value, name)?;
            return Ok(true);
        }
        self.moments.set(name, value)
    }
    fn lazy(&self) -> bool {
        self.lazy
    }
    fn boxed(&self) -> Box<dyn Rule> {
        Box::new(self.clone())
    }
}

/// Adam with weight decay apart from the gradient.
#[derive(Clone)]
pub struct AdamW {
    moments: Moments,
    amsgrad: bool,
    decay: f64,
    lr_ratio: Option<ParameterFactor>,
    apply_decay_param_fun: Option<NameFilter>,
}

#[class(module = "optimizer", object = object)]
impl AdamW {
    /// Adam that first takes the share `lr * weight_decay` off each parameter whose name `apply_decay_param_fun` accepts.
    /// `lr_ratio` gives a factor of the learning rate for each parameter. Moments are always at least float32.
    ///
    /// ```
    /// use sampan_core::Tensor;
    /// use sampan_nn::{AdamW, Parameter};
    /// let p = Parameter::new(Tensor::new([1.0f64]));
    /// p.tensor().set_grad(Some(Tensor::new([3.0f64])));
    /// AdamW::with(0.5, [p.clone()], |o| o.weight_decay(0.5)).step()?;
    /// assert!((p.tensor().to_f64() - 0.25).abs() < 1e-8);
    /// # Ok::<(), sampan_core::Error>(())
    /// ```
    fn build(
        #[default(0.001)] learning_rate: LearningRate,
        #[opt(0.9)] beta1: f64,
        #[opt(0.999)] beta2: f64,
        #[opt(1e-8)] epsilon: f64,
        #[default(None)] parameters: Parameters,
        #[opt(0.01)] weight_decay: f64,
        #[opt(false)] use_lowprecision_moment: bool,
        #[opt(None)] lr_ratio: Option<ParameterFactor>,
        #[opt(None)] apply_decay_param_fun: Option<NameFilter>,
        #[opt(None)] grad_clip: Option<ClipGrad>,
        #[opt(false)] lazy_mode: bool,
        #[opt(false)] multi_precision: bool,
        #[opt(false)] amsgrad: bool,
    ) -> Result<Optimizer> {
        let _ = (use_lowprecision_moment, lazy_mode);
        let moments = Moments::new(beta1, beta2, epsilon)?;
        let rule = AdamW { moments, amsgrad, decay: weight_decay, lr_ratio, apply_decay_param_fun };
        Optimizer::new(rule, learning_rate, parameters, Common { weight_decay: None, grad_clip, multi_precision })
    }
}

impl Rule for AdamW {
    fn name(&self) -> &'static str {
        "AdamW"
    }
    fn accumulators(&self) -> Vec<Accumulator> {
        self.moments.accumulators(self.amsgrad)
    }
    fn formula(&self, step: &mut Step) -> Result<Formula> {
        if let Some(ratio) = &self.lr_ratio {
            step.lr *= ratio.call(step.parameter)?;
        }
        let decays = match &self.apply_decay_param_fun {
            Some(accepts) => accepts.call(&step.parameter.name())?,
            None => true,
        };
        Ok(self.moments.adam(step, if decays { self.decay } else { 0.0 }, self.amsgrad))
    }
    fn set(&mut self, name: &str, value: &Value) -> Result<bool> {
        if name == "weight_decay" {
            let Regularizer::L2(decay) = Regularizer::get(value, name)? else {
                sampan_core::bail!("the weight_decay of AdamW is a number")
            };
            self.decay = decay;
            return Ok(true);
        }
        Ok(name == "lazy_mode" || self.moments.set(name, value)?)
    }
    fn boxed(&self) -> Box<dyn Rule> {
        Box::new(self.clone())
    }
}

/// Adam with the infinity norm.
#[derive(Clone)]
pub struct Adamax {
    moments: Moments,
}

#[class(module = "optimizer", object = object)]
impl Adamax {
    /// Adam that divides by a decaying largest gradient instead of the root of a second moment.
    ///
    /// ```
    /// use sampan_core::Tensor;
    /// use sampan_nn::{Adamax, Parameter};
    /// let p = Parameter::new(Tensor::new([1.0f64]));
    /// p.tensor().set_grad(Some(Tensor::new([3.0f64])));
    /// Adamax::new(0.5, [p.clone()]).step()?;
    /// assert!((p.tensor().to_f64() - 0.5).abs() < 1e-8);
    /// # Ok::<(), sampan_core::Error>(())
    /// ```
    fn build(
        #[default(0.001)] learning_rate: LearningRate,
        #[opt(0.9)] beta1: f64,
        #[opt(0.999)] beta2: f64,
        #[opt(1e-8)] epsilon: f64,
        #[default(None)] parameters: Parameters,
        #[opt(None)] weight_decay: Option<Regularizer>,
        #[opt(None)] grad_clip: Option<ClipGrad>,
    ) -> Result<Optimizer> {
        let rule = Adamax { moments: Moments::new(beta1, beta2, epsilon)? };
        Optimizer::new(rule, learning_rate, parameters, Common { weight_decay, grad_clip, multi_precision: false })
    }
}

impl Rule for Adamax {
    fn name(&self) -> &'static str {
        "Adamax"
    }
    fn accumulators(&self) -> Vec<Accumulator> {
        vec![
            Accumulator::elements("moment"),
            Accumulator::elements("inf_norm"),
            Accumulator::number("beta1_pow_acc", self.moments.beta1),
        ]
    }
    fn formula(&self, step: &mut Step) -> Result<Formula> {
        let Moments { beta1, beta2, epsilon } = self.moments;
        step.lr /= 1.0 - step.numbers[0];
        step.numbers[0] = (step.round)(step.numbers[0] * (step.round)(beta1));
        Ok(Formula::Adamax { beta1, beta2, epsilon })
    }
    fn set(&mut self, name: &str, value: &Value) -> Result<bool> {
        self.moments.set(name, value)
    }
    fn boxed(&self) -> Box<dyn Rule> {
        Box::new(self.clone())
    }
}

/// Adam scaled layer by layer, for large batches.
#[derive(Clone)]
pub struct Lamb {
    beta1: f64,
    beta2: f64,
    epsilon: f64,
    lamb_weight_decay: f64,
    exclude_from_weight_decay_fn: Option<ParameterFilter>,
    always_adapt: bool,
}

#[class(module = "optimizer", object = object)]
impl Lamb {
    /// Adam's direction plus `lamb_weight_decay * p`, scaled to the norm of the parameter. Parameters that
    /// `exclude_from_weight_decay_fn` accepts have no decay, and no scaling either unless `always_adapt`.
    ///
    /// ```
    /// use sampan_core::Tensor;
    /// use sampan_nn::{Lamb, Parameter};
    /// let p = Parameter::new(Tensor::new([3.0f64, 4.0]));
    /// p.tensor().set_grad(Some(Tensor::new([1.0f64, 1.0])));
    /// Lamb::with(0.1, [p.clone()], |o| o.lamb_weight_decay(1e-9)).step()?;
    /// assert!((p.tensor().to_vec::<f64>()[0] - (3.0 - 0.5 * 0.5f64.sqrt())).abs() < 1e-5);
    /// # Ok::<(), sampan_core::Error>(())
    /// ```
    fn build(
        #[default(0.001)] learning_rate: LearningRate,
        #[opt(0.01)] lamb_weight_decay: f64,
        #[opt(0.9)] beta1: f64,
        #[opt(0.999)] beta2: f64,
        #[opt(1e-6)] epsilon: f64,
        #[default(None)] parameters: Parameters,
        #[opt(None)] grad_clip: Option<ClipGrad>,
        #[opt(None)] exclude_from_weight_decay_fn: Option<ParameterFilter>,
        #[opt(false)] multi_precision: bool,
        #[opt(false)] always_adapt: bool,
    ) -> Result<Optimizer> {
        Moments::new(beta1, beta2, epsilon)?;
        let rule = Lamb { beta1, beta2, epsilon, lamb_weight_decay, exclude_from_weight_decay_fn, always_adapt };
        Optimizer::new(rule, learning_rate, parameters, Common { weight_decay: None, grad_clip, multi_precision })
    }
}

impl Rule for Lamb {
    fn name(&self) -> &'static str {
        "Lamb"
    }
    fn accumulators(&self) -> Vec<Accumulator> {
        Moments { beta1: self.beta1, beta2: self.beta2, epsilon: self.epsilon }.accumulators(false)
    }
    fn formula(&self, step: &mut Step) -> Result<Formula> {
        let Lamb { beta1, beta2, epsilon, .. } = *self;
        let (correction1, correction2) = Moments { beta1, beta2, epsilon }.corrections(step);
        let excluded = match &self.exclude_from_weight_decay_fn {
            Some(excludes) => excludes.call(step.parameter)?,
            None => false,
        };
        let decay = if excluded { 0.0 } else { self.lamb_weight_decay };
        step.adapt = self.always_adapt || decay > 0.0;
        Ok(Formula::Lamb { beta1, beta2, epsilon, correction1, correction2, decay })
    }
    fn scaled_by_norms(&self) -> bool {
        true
    }
    settings! {
        beta1: f64, beta2: f64, epsilon: f64, lamb_weight_decay: f64,
        exclude_from_weight_decay_fn: Option<ParameterFilter>,
    }
}
