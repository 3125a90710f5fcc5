//! Where the time of a training step goes.

use super::table::{self, Text, Unit};
use super::tree::Phase;
use super::{Kind, Profile};
use std::fmt;

/// The parts of the time of the thread that started the recording. Times are nanoseconds.
#[derive(Clone, Debug, Default)]
pub struct Overview {
    /// Layers and ops outside of the walk backwards, the optimizer and the loader; the loss is among them.
    pub forward: u64,
    /// Walks backwards.
    pub backward: u64,
    /// Steps of optimizers.
    pub optimizer: u64,
    /// Waiting for batches.
    pub loader: u64,
    /// The rest: what the program does between ops.
    pub other: u64,
    /// From start to stop.
    pub total: u64,
    /// Steps, where they were told.
    pub steps: u64,
    /// The time of steps.
    pub step_time: u64,
    /// Times that each part began.
    pub calls: [u64; 4],
    /// The most bytes in live tensors, where memory was recorded.
    pub peak_memory: Option<u64>,
    unit: Unit,
    warning: String,
}

impl Overview {
    pub(super) fn of(profile: &Profile) -> Overview {
        let recording = &profile.recording;
        let mut found = Overview { total: recording.duration, warning: profile.warning(), ..Default::default() };
        if recording.options.memory {
            let after = recording.events.iter().filter_map(|e| e.memory.map(|m| m.live));
            found.peak_memory = Some(after.fold(recording.live_at_start, u64::max));
        }
        for (i, e) in recording.events.iter().enumerate() {
            let place = profile.tree.place(i);
            if e.kind == Kind::Step {
                found.steps += 1;
                found.step_time += e.duration;
            }
            // Workers of a loader run beside the step.
            if e.thread != 0 || matches!(e.kind, Kind::Step | Kind::Range) {
                continue;
            }
            // Each moment counts once: for the outermost event, or for the phase inside it.
            if place.parent.is_some_and(|p| profile.tree.place(p).phase == place.phase) {
                continue;
            }
            *found.part(place.phase) += e.duration;
            found.calls[place.phase as usize] += 1;
            if let Some(around) = place.parent {
                let around = found.part(profile.tree.place(around).phase);
                *around = around.saturating_sub(e.duration);
            }
        }
        let known = found.forward + found.backward + found.optimizer + found.loader;
        found.other = found.total.saturating_sub(known);
        found
    }

    fn part(&mut self, phase: Phase) -> &mut u64 {
        match phase {
            Phase::Forward => &mut self.forward,
            Phase::Backward => &mut self.backward,
            Phase::Optimizer => &mut self.optimizer,
            Phase::Loader => &mut self.loader,
        }
    }

    /// Times in another unit.
    pub fn unit(mut self, unit: Unit) -> Self {
        self.unit = unit;
        self
    }
}

impl fmt::Display for Overview {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let per_step = |time: u64| match self.steps {
            0 => String::new(),
            n => self.unit.show(time / n),
        };
        let mut text = Text::new(
            format!("Overview (time in {})", self.unit.symbol()),
            &["Part", "Calls", "Total", "Per step", "Share"],
        );
        let [forward, backward, optimizer, loader] = self.calls.map(|n| n.to_string());
        for (name, calls, time) in [
            ("Loader", loader, self.loader),
            ("Forward", forward, self.forward),
            ("Backward", backward, self.backward),
            ("Optimizer", optimizer, self.optimizer),
            ("Other", String::new(), self.other),
            ("All", String::new(), self.total),
        ] {
            let share = table::percent(table::share(time, self.total));
            text.row(vec![name.into(), calls, self.unit.show(time), per_step(time), share]);
        }
        write!(f, "{text}")?;
        if self.steps > 0 {
            let unit = self.unit.symbol();
            writeln!(f, "{} steps of {} {unit} on average", self.steps, per_step(self.step_time))?;
        }
        if let Some(peak) = self.peak_memory {
            writeln!(f, "At most {} in tensors after a call", table::bytes(peak))?;
        }
        write!(f, "{}", self.warning)
    }
}
