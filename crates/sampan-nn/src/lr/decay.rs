//! Learning rates that fall with the epoch.

use super::{Schedule, object};
use crate::callable::EpochFactor;
use sampan_core::{Result, ensure};
use sampan_macros::class;

/// Rises linearly and then falls with the root of the step.
pub struct NoamDecay;

#[class(module = "optimizer.lr", object = object)]
impl NoamDecay {
    /// `learning_rate * d_model^-0.5 * min(epoch^-0.5, epoch * warmup_steps^-1.5)`, the schedule of the first
    /// transformers.
    ///
    /// ```
    /// use sampan_nn::lr::NoamDecay;
    /// let lr = NoamDecay::new(64.0, 100);
    /// lr.step();
    /// assert!((lr.last_lr() - 0.000125).abs() < 1e-12);
    /// ```
    fn build(
        d_model: f64,
        warmup_steps: i64,
        #[opt(1.0)] learning_rate: f64,
        #[opt(-1)] last_epoch: i64,
        #[opt(false)] verbose: bool,
    ) -> Result<Schedule> {
        ensure!(d_model > 0.0, "d_model must be positive, got {d_model}");
        let (d, w) = (d_model.powf(-0.5), (warmup_steps as f64).powf(-1.5));
        Schedule::of("NoamDecay", learning_rate, last_epoch, verbose, move |c| {
            let epoch = c.last_epoch as f64;
            let fall = if c.last_epoch == 0 { 1.0 } else { epoch.powf(-0.5) };
            Ok(c.base_lr * d * fall.min(w * epoch))
        })
    }
}

/// Given values between given epochs.
pub struct PiecewiseDecay;

#[class(module = "optimizer.lr", object = object)]
impl PiecewiseDecay {
    /// `values[i]` before epoch `boundaries[i]`, and the last value from then on.
    ///
    /// ```
    /// use sampan_nn::lr::PiecewiseDecay;
    /// let lr = PiecewiseDecay::new([1, 3], [0.1, 0.05, 0.01]);
    /// lr.step();
    /// assert_eq!(lr.last_lr(), 0.05);
    /// ```
    fn build(
        boundaries: &[i64],
        values: &[f64],
        #[opt(-1)] last_epoch: i64,
        #[opt(false)] verbose: bool,
    ) -> Result<Schedule> {
        ensure!(!boundaries.is_empty(), "the boundaries must not be empty");
        let (b, v) = (boundaries.to_vec(), values.to_vec());
        ensure!(v.len() > b.len(), "{} boundaries need {} values, got {}", b.len(), b.len() + 1, v.len());
        Schedule::of("PiecewiseDecay", 0.1, last_epoch, verbose, move |c| {
            let i = b.iter().position(|&b| c.last_epoch < b).unwrap_or(v.len() - 1);
            Ok(v[i])
        })
    }
}

/// Falls by a factor of e over `1 / gamma` epochs.
pub struct NaturalExpDecay;

#[class(module = "optimizer.lr", object = object)]
impl NaturalExpDecay {
    /// `learning_rate * exp(-gamma * epoch)`.
    ///
    /// ```
    /// let lr = sampan_nn::lr::NaturalExpDecay::new(0.5, 0.1);
    /// lr.step();
    /// assert_eq!(lr.last_lr(), 0.5 * (-0.1f64).exp());
    /// ```
    fn build(
        learning_rate: f64,
        gamma: f64,
        #[opt(-1)] last_epoch: i64,
        #[opt(false)] verbose: bool,
    ) -> Result<Schedule> {
        ensure!(gamma > 0.0, "gamma must be positive, so that the learning rate falls; got {gamma}");
        Schedule::of("NaturalExpDecay", learning_rate, last_epoch, verbose, move |c| {
            Ok(c.base_lr * (-gamma * c.last_epoch as f64).exp())
        })
    }
}

/// Falls with one over the epoch.
pub struct InverseTimeDecay;

#[class(module = "optimizer.lr", object = object)]
impl InverseTimeDecay {
    /// `learning_rate / (1 + gamma * epoch)`.
    ///
    /// ```
    /// let lr = sampan_nn::lr::InverseTimeDecay::new(0.5, 1.0);
    /// lr.step();
    /// assert_eq!(lr.last_lr(), 0.25);
    /// ```
    fn build(
        learning_rate: f64,
        gamma: f64,
        #[opt(-1)] last_epoch: i64,
        #[opt(false)] verbose: bool,
    ) -> Result<Schedule> {
        Schedule::of("InverseTimeDecay", learning_rate, last_epoch, verbose, move |c| {
            Ok(c.base_lr / (1.0 + gamma * c.last_epoch as f64))
        })
    }
}

/// Falls to an end along a power of the rest of the way.
pub struct PolynomialDecay;

#[class(module = "optimizer.lr", object = object)]
impl PolynomialDecay {
    /// From `learning_rate` to `end_lr` in `decay_steps`, then constant, or starting over on ever longer ways (`cycle`).
    ///
    /// ```
    /// let lr = sampan_nn::lr::PolynomialDecay::with(0.5, 20, |o| o.end_lr(0.25));
    /// lr.step_to(10);
    /// assert_eq!(lr.last_lr(), 0.375);
    /// ```
    fn build(
        learning_rate: f64,
        decay_steps: i64,
        #[opt(0.0001)] end_lr: f64,
        #[opt(1.0)] power: f64,
        #[opt(false)] cycle: bool,
        #[opt(-1)] last_epoch: i64,
        #[opt(false)] verbose: bool,
    ) -> Result<Schedule> {
        ensure!(decay_steps > 0, "decay_steps must be positive, got {decay_steps}");
        ensure!(power > 0.0, "power must be positive, so that the learning rate falls; got {power}");
        let decay_steps = decay_steps as f64;
        Schedule::of("PolynomialDecay", learning_rate, last_epoch, verbose, move |c| {
            let epoch = c.last_epoch as f64;
            let (epoch, steps) = match cycle {
                true => (epoch, decay_steps * (epoch / decay_steps).ceil().max(if epoch == 0.0 { 1.0 } else { 0.0 })),
                false => (epoch.min(decay_steps), decay_steps),
            };
            Ok((c.base_lr - end_lr) * (1.0 - epoch / steps).powf(power) + end_lr)
        })
    }
}

/// Falls by a factor each epoch.
pub struct ExponentialDecay;

#[class(module = "optimizer.lr", object = object)]
impl ExponentialDecay {
    /// `learning_rate * gamma^epoch`.
    ///
    /// ```
    /// let lr = sampan_nn::lr::ExponentialDecay::new(0.5, 0.5);
    /// lr.step();
    /// assert_eq!(lr.last_lr(), 0.25);
    /// ```
    fn build(
        learning_rate: f64,
        gamma: f64,
        #[opt(-1)] last_epoch: i64,
        #[opt(false)] verbose: bool,
    ) -> Result<Schedule> {
        ensure!(gamma > 0.0 && gamma < 1.0, "gamma must lie between 0 and 1, got {gamma}");
        Schedule::of("ExponentialDecay", learning_rate, last_epoch, verbose, move |c| {
            Ok(c.base_lr * gamma.powf(c.last_epoch as f64))
        })
    }
}

/// Falls by a factor at given epochs.
pub struct MultiStepDecay;

#[class(module = "optimizer.lr", object = object)]
impl MultiStepDecay {
    /// Falls to its share `gamma` at each of the `milestones`.
    ///
    /// ```
    /// let lr = sampan_nn::lr::MultiStepDecay::new(0.5, [2, 4]);
    /// lr.step_to(3);
    /// assert_eq!(lr.last_lr(), 0.05);
    /// ```
    fn build(
        learning_rate: f64,
        milestones: &[i64],
        #[opt(0.1)] gamma: f64,
        #[opt(-1)] last_epoch: i64,
        #[opt(false)] verbose: bool,
    ) -> Result<Schedule> {
        ensure!(milestones.is_sorted_by(|a, b| a < b), "the milestones must rise, got {milestones:?}");
        ensure!(gamma < 1.0, "gamma must be below 1, got {gamma}");
        let milestones = milestones.to_vec();
        Schedule::of("MultiStepDecay", learning_rate, last_epoch, verbose, move |c| {
            Ok(c.base_lr * gamma.powf(milestones.partition_point(|&m| m <= c.last_epoch) as f64))
        })
    }
}

/// Falls by a factor every few epochs.
pub struct StepDecay;

#[class(module = "optimizer.lr", object = object)]
impl StepDecay {
    /// Falls to its share `gamma` every `step_size` epochs.
    ///
    /// ```
    /// let lr = sampan_nn::lr::StepDecay::with(0.5, 3, |o| o.gamma(0.5));
    /// (0..3).for_each(|_| lr.step());
    /// assert_eq!(lr.last_lr(), 0.25);
    /// ```
    fn build(
        learning_rate: f64,
        step_size: i64,
        #[opt(0.1)] gamma: f64,
        #[opt(-1)] last_epoch: i64,
        #[opt(false)] verbose: bool,
    ) -> Result<Schedule> {
        ensure!(step_size > 0, "step_size must be positive, got {step_size}");
        ensure!(gamma < 1.0, "gamma must be below 1, got {gamma}");
        Schedule::of("StepDecay", learning_rate, last_epoch, verbose, move |c| {
            Ok(c.base_lr * gamma.powf(c.last_epoch.div_euclid(step_size) as f64))
        })
    }
}

/// A function of the epoch.
pub struct LambdaDecay;

#[class(module = "optimizer.lr", object = object)]
impl LambdaDecay {
    /// `learning_rate * lr_lambda(epoch)`.
    ///
    /// ```
    /// let lr = sampan_nn::lr::LambdaDecay::new(0.5, |epoch: i64| 0.5f64.powi(epoch as i32));
    /// lr.step();
    /// assert_eq!(lr.last_lr(), 0.25);
    /// ```
    fn build(
        learning_rate: f64,
        lr_lambda: EpochFactor,
        #[opt(-1)] last_epoch: i64,
        #[opt(false)] verbose: bool,
    ) -> Result<Schedule> {
        Schedule::of("LambdaDecay", learning_rate, last_epoch, verbose, move |c| {
            Ok(c.base_lr * lr_lambda.call(c.last_epoch)?)
        })
    }
}

/// A product of factors, one for each epoch.
pub struct MultiplicativeDecay;

#[class(module = "optimizer.lr", object = object)]
impl MultiplicativeDecay {
    /// `learning_rate * lr_lambda(1) * … * lr_lambda(epoch)`.
    ///
    /// ```
    /// let lr = sampan_nn::lr::MultiplicativeDecay::new(0.5, |_: i64| 0.5);
    /// lr.step_to(2);
    /// assert_eq!(lr.last_lr(), 0.125);
    /// ```
    fn build(
        learning_rate: f64,
        lr_lambda: EpochFactor,
        #[opt(-1)] last_epoch: i64,
        #[opt(false)] verbose: bool,
    ) -> Result<Schedule> {
        Schedule::of("MultiplicativeDecay", learning_rate, last_epoch, verbose, move |c| {
            (1..=c.last_epoch).try_fold(c.base_lr, |lr, epoch| Ok(lr * lr_lambda.call(epoch)?))
        })
    }
}
