//! Schedules against the peer's numbers, and their states.

use crate::peer::{cases, close, dict, floats, schedule};
use sampan_core::{Dict, Tensor, Value};
use sampan_nn::lr::{Clock, CosineAnnealingWarmRestarts, LinearWarmup, OneCycleLR, ReduceOnPlateau, StepDecay};
use sampan_nn::{Linear, Members, Parameter, SGD, Schedule};
use serde_json::{Value as Json, json};

/// The measured value of step `i`, as the script has it.
fn measured(i: usize) -> f64 {
    (i as f64 * 0.3).sin().abs() + 1.0 / (i as f64 + 1.0)
}

/// The values from now on, up to step 30.
fn walk(s: &Schedule, from: usize) -> Vec<f64> {
    (from..30)
        .map(|i| {
            let lr = s.last_lr();
            if i + 1 < 30 {
                if s.needs_metric() { s.step_with(measured(i)).unwrap() } else { s.step() }
            }
            lr
        })
        .collect()
}

fn recipe(case: &Json) -> Json {
    json!([case["class"], case["args"]])
}

#[test]
fn values_agree_with_the_peer() {
    for case in cases("rates") {
        let what = recipe(case).to_string();
        let s = schedule(&recipe(case));
        close(&what, &walk(&s, 0), &floats(&case["values"]), 1e-10);
        if let Some(jumped) = case["at_11"].as_f64() {
            let s = schedule(&recipe(case));
            s.step_to(11);
            close(&format!("{what} at 11"), &[s.last_lr()], &[jumped], 1e-10);
        }
    }
}

#[test]
fn a_state_of_ours_and_of_the_peers_goes_on() {
    for case in cases("rates") {
        let what = recipe(case).to_string();
        let peer = floats(&case["values"]);
        // The peer's state after step 12.
        let s = schedule(&recipe(case));
        s.set_state_dict(&dict(&case["state"])).unwrap();
        close(&what, &walk(&s, 12), &peer[12..], 1e-10);
        // Our own, taken at the same place: the same bits as without a break.
        let (first, second) = (schedule(&recipe(case)), schedule(&recipe(case)));
        for i in 0..12 {
            if first.needs_metric() { first.step_with(measured(i)).unwrap() } else { first.step() }
        }
        let keys = |s: &sampan_core::Dict| {
            let mut keys: Vec<String> = s.iter().map(|(k, _)| k.to_string()).collect();
            keys.sort();
            keys
        };
        let state = first.state_dict();
        assert_eq!(keys(&state), keys(&dict(&case["state"])), "{what}");
        second.set_state_dict(&state).unwrap();
        assert_eq!(walk(&first, 12), walk(&second, 12), "{what}");
    }
}

#[test]
fn optimizer_and_user_share_a_schedule() {
    let net = Linear::new(2, 1);
    let schedule = StepDecay::with(0.5, 1, |o| o.gamma(0.5));
    let mut opt = SGD::new(&schedule, net.parameters());
    schedule.step();
    assert_eq!(opt.get_lr(), 0.25);
    assert!(opt.set_lr(0.1).unwrap_err().to_string().contains("schedule"));
    opt.set_lr_scheduler(&StepDecay::new(0.125, 1));
    assert_eq!(opt.get_lr(), 0.125);
    let mut fixed = SGD::new(0.5, net.parameters());
    fixed.set_lr(0.25).unwrap();
    assert_eq!(fixed.get_lr(), 0.25);
    assert!(fixed.set_lr(-1.0).is_err());
}

#[test]
fn wrong_use_is_an_error() {
    assert!(StepDecay::try_new(-0.5, 3).unwrap_err().to_string().contains("negative"));
    assert!(StepDecay::try_new(0.5, 0).unwrap_err().to_string().contains("step_size"));
    assert!(LinearWarmup::try_new(0.5, 10, 0.5, 0.1).is_err());
    assert!(CosineAnnealingWarmRestarts::try_new(0.5, 0).is_err());
    assert!(ReduceOnPlateau::try_with(0.5, |o| o.mode("least")).unwrap_err().to_string().contains("least"));
    let plateau = ReduceOnPlateau::new(0.5);
    assert!(plateau.try_step(None).unwrap_err().to_string().contains("step_with"));
    // A step that fails leaves the schedule where it was.
    let once = OneCycleLR::new(1.0, 2);
    (0..2).for_each(|_| once.step());
    let before = once.clock();
    assert!(once.try_step(None).is_err());
    assert_eq!(once.clock(), before);
    let empty = sampan_core::Dict::new();
    assert!(once.set_state_dict(&empty).unwrap_err().to_string().contains("last_epoch"));
    let wrong = [("last_epoch", Value::from("two")), ("last_lr", Value::Float(0.1))].into_iter().collect();
    assert!(once.set_state_dict(&wrong).is_err());
}

#[test]
fn a_fraction_of_an_epoch_counts_where_the_schedule_is_continuous() {
    let s = CosineAnnealingWarmRestarts::new(1.0, 2);
    s.step_to(2.5);
    assert!((s.last_lr() - (1.0 + (std::f64::consts::PI / 4.0).cos()) / 2.0).abs() < 1e-12);
    assert_eq!(s.last_epoch(), 2);
}

/// A schedule that keeps its own clock.
struct Elsewhere(std::sync::Mutex<(i64, f64)>);

impl sampan_nn::lr::ForeignSchedule for Elsewhere {
    fn step(&self, epoch: Option<f64>) -> sampan_core::Result<()> {
        let mut state = self.0.lock().unwrap();
        state.0 = epoch.map_or(state.0 + 1, |e| e as i64);
        state.1 = 1.0 / (1 + state.0) as f64;
        Ok(())
    }
    fn clock(&self) -> Clock {
        let (last_epoch, last_lr) = *self.0.lock().unwrap();
        Clock { base_lr: 1.0, last_lr, last_epoch, fraction: 0.0, verbose: false }
    }
    fn state_dict(&self) -> sampan_core::Result<Dict> {
        Ok([("last_epoch", self.0.lock().unwrap().0)].into_iter().collect())
    }
    fn set_state_dict(&self, state: &Dict) -> sampan_core::Result<()> {
        use sampan_core::value::Arg;
        self.step(Some(i64::get(state.get("last_epoch").unwrap(), "last_epoch")? as f64))
    }
}

#[test]
fn a_schedule_that_keeps_its_own_clock_is_followed_and_saved() {
    let elsewhere = || Schedule::foreign(Elsewhere(std::sync::Mutex::new((0, 1.0))));
    let warm = LinearWarmup::new(elsewhere(), 2, 0.0, 1.0);
    let rates: Vec<f64> = (0..5).map(|_| (warm.last_lr(), warm.step()).0).collect();
    assert_eq!(rates, [0.0, 0.5, 1.0, 0.5, 1.0 / 3.0]);
    let again = LinearWarmup::new(elsewhere(), 2, 0.0, 1.0);
    again.set_state_dict(&warm.state_dict()).unwrap();
    again.step();
    warm.step();
    assert_eq!((again.last_lr(), again.last_epoch()), (warm.last_lr(), 6));
    let opt = SGD::new(elsewhere(), vec![Parameter::new(Tensor::new([1.0f32]))]);
    assert_eq!(opt.get_lr(), 1.0);
}

#[test]
fn a_clock_can_be_moved_and_asked() {
    let s = StepDecay::new(0.5, 2);
    s.set_clock(Clock { last_epoch: 4, ..s.clock() });
    assert!((s.compute_lr(false).unwrap() - 0.005).abs() < 1e-12);
    assert_eq!(s.last_lr(), 0.5);
}
