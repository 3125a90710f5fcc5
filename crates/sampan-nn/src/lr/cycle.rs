//! Learning rates that rise and fall.

use super::{Schedule, object};
use crate::callable::Scale;
use sampan_core::{Result, ensure};
use sampan_macros::class;
use std::f64::consts::PI;

/// Up to a peak and down to almost nothing, once.
pub struct OneCycleLR;

#[class(module = "optimizer.lr", object = object)]
impl OneCycleLR {
    /// From `max_learning_rate / divide_factor` up to `max_learning_rate` during the share `phase_pct` of the steps, then
    /// down to `end_learning_rate`; with `three_phase` first down to where it began, in as many steps as up.
    ///
    /// ```
    /// let lr = sampan_nn::lr::OneCycleLR::new(1.0, 100);
    /// assert!((lr.last_lr() - 0.04).abs() < 1e-12);
    /// lr.step_to(29);
    /// assert!((lr.last_lr() - 1.0).abs() < 1e-12);
    /// ```
    fn build(
        max_learning_rate: f64,
        total_steps: i64,
        #[opt(25.0)] divide_factor: f64,
        #[opt(0.0001)] end_learning_rate: f64,
        #[opt(0.3)] phase_pct: f64,
        #[opt("cos")] anneal_strategy: &str,
        #[opt(false)] three_phase: bool,
        #[opt(-1)] last_epoch: i64,
        #[opt(false)] verbose: bool,
    ) -> Result<Schedule> {
        ensure!(max_learning_rate >= 0.0, "max_learning_rate must not be negative, got {max_learning_rate}");
        ensure!(end_learning_rate >= 0.0, "end_learning_rate must not be negative, got {end_learning_rate}");
        ensure!(total_steps > 0, "total_steps must be positive, got {total_steps}");
        ensure!((0.0..=1.0).contains(&phase_pct), "phase_pct must lie between 0 and 1, got {phase_pct}");
        ensure!(!three_phase || phase_pct < 0.5, "with three_phase phase_pct must be below 0.5, got {phase_pct}");
        let anneal: fn(f64, f64, f64) -> f64 = match anneal_strategy {
            "cos" => |from, to, share| to + (from - to) / 2.0 * ((PI * share).cos() + 1.0),
            "linear" => |from, to, share| (to - from) * share + from,
            other => sampan_core::bail!("anneal_strategy must be \"cos\" or \"linear\", got {other:?}"),
        };
        let (first, steps) = (max_learning_rate / divide_factor, total_steps as f64);
        let up = phase_pct * steps - 1.0;
        // Where each phase ends, and the rates between phases.
        let (ends, rates) = match three_phase {
            true => {
                let ends = vec![0.0, up, 2.0 * phase_pct * steps - 2.0, steps - 1.0];
                (ends, vec![first, max_learning_rate, first, end_learning_rate])
            }
            false => (vec![0.0, up, steps - 1.0], vec![first, max_learning_rate, end_learning_rate]),
        };
        Schedule::of("OneCycleLR", first, last_epoch, verbose, move |c| {
            ensure!(c.last_epoch <= total_steps, "step {} is past total_steps {total_steps}", c.last_epoch);
            let at = c.last_epoch as f64;
            let phase = ends[1..].iter().position(|&end| at <= end).unwrap_or(ends.len() - 2);
            let share = (at - ends[phase]) / (ends[phase + 1] - ends[phase]);
            Ok(anneal(rates[phase], rates[phase + 1], share))
        })
    }
}

/// Up and down between two rates, again and again.
pub struct CyclicLR;

#[class(module = "optimizer.lr", object = object)]
impl CyclicLR {
    /// Linearly from `base_learning_rate` to `max_learning_rate` in `step_size_up` steps and back in `step_size_down`;
    /// the height stays (`"triangular"`), halves each cycle (`"triangular2"`), falls with each step by `exp_gamma`
    /// (`"exp_range"`), or is scaled by `scale_fn` of the cycle or the step (`scale_mode`).
    ///
    /// ```
    /// let lr = sampan_nn::lr::CyclicLR::new(0.5, 1.0, 15);
    /// lr.step_to(15);
    /// assert_eq!(lr.last_lr(), 1.0);
    /// ```
    fn build(
        base_learning_rate: f64,
        max_learning_rate: f64,
        step_size_up: i64,
        #[opt(None)] step_size_down: Option<i64>,
        #[opt("triangular")] mode: &str,
        #[opt(1.0)] exp_gamma: f64,
        #[opt(None)] scale_fn: Option<Scale>,
        #[opt("cycle")] scale_mode: &str,
        #[opt(-1)] last_epoch: i64,
        #[opt(false)] verbose: bool,
    ) -> Result<Schedule> {
        ensure!(max_learning_rate >= 0.0, "max_learning_rate must not be negative, got {max_learning_rate}");
        let down = step_size_down.unwrap_or(step_size_up);
        ensure!(step_size_up > 0 && down > 0, "step sizes must be positive, got {step_size_up} up and {down} down");
        ensure!(
            ["cycle", "iterations"].contains(&scale_mode),
            "scale_mode {scale_mode:?} is neither cycle nor iterations"
        );
        let (scale, by_cycle) = match (scale_fn, mode) {
            (Some(f), _) => (f, scale_mode == "cycle"),
            (None, "triangular") => (Scale::from(|_: f64| 1.0), true),
            (None, "triangular2") => (Scale::from(|cycle: f64| 1.0 / 2f64.powf(cycle - 1.0)), true),
            (None, "exp_range") => (Scale::from(move |step: f64| exp_gamma.powf(step)), false),
            (None, mode) => sampan_core::bail!("mode {mode:?} is none of triangular, triangular2, exp_range"),
        };
        let cycle_size = step_size_up as f64 + down as f64;
        let up_share = step_size_up as f64 / cycle_size;
        Schedule::of("CyclicLR", base_learning_rate, last_epoch, verbose, move |c| {
            let step = c.last_epoch as f64;
            let cycle = 1.0 + (step / cycle_size).floor();
            let at = 1.0 + step / cycle_size - cycle;
            let height = if at <= up_share { at / up_share } else { (1.0 - at) / (1.0 - up_share) };
            let scale = scale.call(if by_cycle { cycle } else { step })?;
            Ok(c.base_lr + (max_learning_rate - c.base_lr) * height * scale)
        })
    }
}
