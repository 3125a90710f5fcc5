//! Steps scaled by the size of past gradients: Adagrad, Adadelta, RMSProp.

use super::rule::{Accumulator, Kind, Rule, Step, settings};
use super::{Common, Optimizer, Parameters, object};
use crate::clip::ClipGrad;
use crate::lr::LearningRate;
use crate::regularizer::Regularizer;
use sampan_core::{Result, ensure};
use sampan_kernels::optim::Formula;
use sampan_macros::class;

/// Steps scaled by all past gradients.
#[derive(Clone)]
pub struct Adagrad {
    epsilon: f64,
    initial_accumulator_value: f64,
}

#[class(module = "optimizer", object = object)]
impl Adagrad {
    /// `m += g²`, then `p -= lr * g / (√m + epsilon)`.
    ///
    /// ```
    /// use sampan_core::Tensor;
    /// use sampan_nn::{Adagrad, Parameter};
    /// let p = Parameter::new(Tensor::new([1.0f64]));
    /// p.tensor().set_grad(Some(Tensor::new([2.0f64])));
    /// Adagrad::with(0.5, [p.clone()], |o| o.epsilon(0.0)).step()?;
    /// assert_eq!(p.tensor().to_vec::<f64>(), [0.5]);
    /// # Ok::<(), sampan_core::Error>(())
    /// ```
    fn build(
        learning_rate: LearningRate,
        #[opt(1e-6)] epsilon: f64,
        #[default(None)] parameters: Parameters,
        #[opt(None)] weight_decay: Option<Regularizer>,
        #[opt(None)] grad_clip: Option<ClipGrad>,
        #[opt(0.0)] initial_accumulator_value: f64,
    ) -> Result<Optimizer> {
        let rule = Adagrad { epsilon, initial_accumulator_value };
        Optimizer::new(rule, learning_rate, parameters, Common { weight_decay, grad_clip, multi_precision: false })
    }
}

impl Rule for Adagrad {
    fn name(&self) -> &'static str {
        "Adagrad"
    }
    fn accumulators(&self) -> Vec<Accumulator> {
        vec![Accumulator { name: "moment", fill: self.initial_accumulator_value, kind: Kind::Elements }]
    }
    fn formula(&self, _: &mut Step) -> Result<Formula> {
        Ok(Formula::Adagrad { epsilon: self.epsilon })
    }
    settings! { epsilon: f64, initial_accumulator_value: f64 }
}

/// Steps scaled by past gradients and past steps.
#[derive(Clone)]
pub struct Adadelta {
    epsilon: f64,
    rho: f64,
}

#[class(module = "optimizer", object = object)]
impl Adadelta {
    /// Running means of squared gradients and of squared steps, `rho` the kept share; a step is the gradient times the
    /// root of their quotient.
    ///
    /// ```
    /// use sampan_core::Tensor;
    /// use sampan_nn::{Adadelta, Parameter};
    /// let p = Parameter::new(Tensor::new([1.0f64]));
    /// p.tensor().set_grad(Some(Tensor::new([2.0f64])));
    /// Adadelta::with(1.0, [p.clone()], |o| o.rho(0.75).epsilon(1.0)).step()?;
    /// assert!((p.tensor().to_f64() - (1.0 - 2f64.sqrt())).abs() < 1e-12);
    /// # Ok::<(), sampan_core::Error>(())
    /// ```
    fn build(
        #[default(0.001)] learning_rate: LearningRate,
        #[opt(1e-6)] epsilon: f64,
        #[opt(0.95)] rho: f64,
        #[default(None)] parameters: Parameters,
        #[opt(None)] weight_decay: Option<Regularizer>,
        #[opt(None)] grad_clip: Option<ClipGrad>,
    ) -> Result<Optimizer> {
        let rule = Adadelta { epsilon, rho };
        Optimizer::new(rule, learning_rate, parameters, Common { weight_decay, grad_clip, multi_precision: false })
    }
}

impl Rule for Adadelta {
    fn name(&self) -> &'static str {
        "Adadelta"
    }
    fn accumulators(&self) -> Vec<Accumulator> {
        vec![Accumulator::elements("_avg_squared_grad"), Accumulator::elements("_avg_squared_update")]
    }
    fn formula(&self, _: &mut Step) -> Result<Formula> {
        Ok(Formula::Adadelta { rho: self.rho, epsilon: self.epsilon })
    }
    settings! { epsilon: f64, rho: f64 }
}

/// Steps scaled by a running mean of squared gradients.
#[derive(Clone)]
pub struct RMSProp {
    rho: f64,
    epsilon: f64,
    momentum: f64,
    centered: bool,
}

#[class(module = "optimizer", object = object)]
impl RMSProp {
    /// `s = rho * s + (1 - rho) * g²`, then `v = momentum * v + lr * g / √(s + epsilon)` and `p -= v`; with `centered` the
    /// squared running mean is taken off `s` first.
    ///
    /// ```
    /// use sampan_core::Tensor;
    /// use sampan_nn::{Parameter, RMSProp};
    /// let p = Parameter::new(Tensor::new([1.0f64]));
    /// p.tensor().set_grad(Some(Tensor::new([2.0f64])));
    /// RMSProp::with(0.5, [p.clone()], |o| o.rho(0.75).epsilon(0.0)).step()?;
    /// assert_eq!(p.tensor().to_vec::<f64>(), [0.0]);
    /// # Ok::<(), sampan_core::Error>(())
    /// ```
    fn build(
        learning_rate: LearningRate,
        #[opt(0.95)] rho: f64,
        #[opt(1e-6)] epsilon: f64,
        #[opt(0.0)] momentum: f64,
        #[opt(false)] centered: bool,
        #[default(None)] parameters: Parameters,
        #[opt(None)] weight_decay: Option<Regularizer>,
        #[opt(None)] grad_clip: Option<ClipGrad>,
    ) -> Result<Optimizer> {
        ensure!(rho >= 0.0, "rho must not be negative, got {rho}");
        ensure!(epsilon >= 0.0, "epsilon must not be negative, got {epsilon}");
        ensure!(momentum >= 0.0, "momentum must not be negative, got {momentum}");
        let rule = RMSProp { rho, epsilon, momentum, centered };
        Optimizer::new(rule, learning_rate, parameters, Common { weight_decay, grad_clip, multi_precision: false })
    }
}

impl Rule for RMSProp {
    fn name(&self) -> &'static str {
        "RMSProp"
    }
    fn accumulators(&self) -> Vec<Accumulator> {
        ["momentum", "mean_square", "mean_grad"].map(Accumulator::elements).into()
    }
    fn formula(&self, _: &mut Step) -> Result<Formula> {
        let RMSProp { rho, epsilon, momentum, centered } = *self;
        Ok(Formula::RmsProp { rho, epsilon, momentum, centered })
    }
    settings! { rho: f64, epsilon: f64, momentum: f64, centered: bool }
}
