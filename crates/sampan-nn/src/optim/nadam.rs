//! Adam with another first moment or a cautious beginning: NAdam, RAdam.

use super::rule::{Accumulator, Rule, Step, check_betas, settings};
use super::{Common, Optimizer, Parameters, object};
use crate::clip::ClipGrad;
use crate::lr::LearningRate;
use crate::regularizer::Regularizer;
use sampan_core::{Result, ensure};
use sampan_kernels::optim::Formula;
use sampan_macros::class;

/// The base of the momentum's decay.
const DECAY_BASE: f64 = 0.96;

/// Adam with Nesterov momentum.
#[derive(Clone)]
pub struct NAdam {
    beta1: f64,
    beta2: f64,
    epsilon: f64,
    momentum_decay: f64,
}

#[class(module = "optimizer", object = object)]
impl NAdam {
    /// Adam that looks ahead: its first moment is mixed with the gradient, by shares that follow `momentum_decay`.
    ///
    /// ```
    /// use sampan_core::Tensor;
    /// use sampan_nn::{NAdam, Parameter};
    /// let p = Parameter::new(Tensor::new([1.0f64]));
    /// p.tensor().set_grad(Some(Tensor::new([3.0f64])));
    /// NAdam::new(0.1, [p.clone()]).step()?;
    /// assert!(p.tensor().to_f64() < 1.0);
    /// # Ok::<(), sampan_core::Error>(())
    /// ```
    fn build(
        #[default(0.002)] learning_rate: LearningRate,
        #[opt(0.9)] beta1: f64,
        #[opt(0.999)] beta2: f64,
        #[opt(1e-8)] epsilon: f64,
        #[opt(0.004)] momentum_decay: f64,
        #[default(None)] parameters: Parameters,
        #[opt(None)] weight_decay: Option<Regularizer>,
        #[opt(None)] grad_clip: Option<ClipGrad>,
    ) -> Result<Optimizer> {
        check_betas(&[("beta1", beta1), ("beta2", beta2)])?;
        ensure!(epsilon >= 0.0, "epsilon must not be negative, got {epsilon}");
        ensure!(momentum_decay >= 0.0, "momentum_decay must not be negative, got {momentum_decay}");
        let rule = NAdam { beta1, beta2, epsilon, momentum_decay };
        Optimizer::new(rule, learning_rate, parameters, Common { weight_decay, grad_clip, multi_precision: false })
    }
}

impl Rule for NAdam {
    fn name(&self) -> &'static str {
        "NAdam"
    }
    fn accumulators(&self) -> Vec<Accumulator> {
        vec![
            Accumulator::spread("momentum_decay_pow", 1.0),
            Accumulator::spread("beta2_pow", 1.0),
            Accumulator::spread("mu_product", 1.0),
            Accumulator::elements("moment1"),
            Accumulator::elements("moment2"),
        ]
    }
    fn formula(&self, step: &mut Step) -> Result<Formula> {
        let NAdam { beta1, beta2, epsilon, momentum_decay } = *self;
        let round = step.round;
        let [decay_pow, beta2_pow, mu_product] = step.numbers;
        *decay_pow = round(*decay_pow * round(DECAY_BASE));
        *beta2_pow = round(*beta2_pow * round(beta2));
        let decayed = decay_pow.powf(momentum_decay);
        let mu = beta1 * (1.0 - 0.5 * decayed);
        let next_mu = beta1 * (1.0 - 0.5 * decayed * DECAY_BASE.powf(momentum_decay));
        *mu_product = round(*mu_product * mu);
        Ok(Formula::NAdam {
            beta1,
            beta2,
            epsilon,
            of_moment: next_mu / (1.0 - *mu_product * next_mu),
            of_grad: (1.0 - mu) / (1.0 - *mu_product),
            correction2: 1.0 - *beta2_pow,
        })
    }
    settings! { beta1: f64, beta2: f64, epsilon: f64, momentum_decay: f64 }
}

/// Adam that waits for its second moment.
#[derive(Clone)]
pub struct RAdam {
    beta1: f64,
    beta2: f64,
    epsilon: f64,
}

#[class(module = "optimizer", object = object)]
impl RAdam {
    /// Adam that steps along the first moment alone until the second one is reliable, and scales its steps by how
    /// reliable it is.
    ///
    /// ```
    /// use sampan_core::Tensor;
    /// use sampan_nn::{Parameter, RAdam};
    /// let p = Parameter::new(Tensor::new([1.0f64]));
    /// p.tensor().set_grad(Some(Tensor::new([3.0f64])));
    /// RAdam::new(0.1, [p.clone()]).step()?;
    /// assert!((p.tensor().to_f64() - 0.7).abs() < 1e-9);
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
        check_betas(&[("beta1", beta1), ("beta2", beta2)])?;
        ensure!(epsilon >= 0.0, "epsilon must not be negative, got {epsilon}");
        let rule = RAdam { beta1, beta2, epsilon };
        Optimizer::new(rule, learning_rate, parameters, Common { weight_decay, grad_clip, multi_precision: false })
    }
}

impl Rule for RAdam {
    fn name(&self) -> &'static str {
        "RAdam"
    }
    fn accumulators(&self) -> Vec<Accumulator> {
        vec![
            Accumulator::spread("beta1_pow", 1.0),
            Accumulator::spread("beta2_pow", 1.0),
            Accumulator::spread("rho", 1.0),
            Accumulator::elements("moment1"),
            Accumulator::elements("moment2"),
        ]
    }
    fn formula(&self, step: &mut Step) -> Result<Formula> {
        let RAdam { beta1, beta2, epsilon } = *self;
        let round = step.round;
        let (b1, b2) = (round(beta1), round(beta2));
        let [beta1_pow, beta2_pow, rho] = step.numbers;
        *beta1_pow = round(*beta1_pow * b1);
        *beta2_pow = round(*beta2_pow * b2);
        // `rho` is t * beta2ᵗ / (1 - beta2ᵗ), carried from step to step as Paddle saves it.
        *rho = round((*rho * (b2 - *beta2_pow) + *beta2_pow) / (1.0 - *beta2_pow));
        let most = 2.0 / (1.0 - b2) - 1.0;
        let now = most - 2.0 * *rho;
        let reliable = now > 5.0;
        step.lr /= 1.0 - *beta1_pow;
        if reliable {
            let rectified = (now - 4.0) * (now - 2.0) * most / ((most - 4.0) * (most - 2.0) * now);
            step.lr *= rectified.sqrt() * (1.0 - *beta2_pow).sqrt();
        }
        Ok(Formula::RAdam { beta1, beta2, epsilon, reliable })
    }
    settings! { beta1: f64, beta2: f64, epsilon: f64 }
}
