//! The profiler: where the time and the memory of a program go.
//!
//! ```
//! use sampan::prelude::*;
//! use sampan::profiler::{Options, Profiler, SortBy};
//!
//! let net = sequential![Linear::new(8, 16), ReLU::new(), Linear::new(16, 2)];
//! let mut opt = SGD::new(0.1, net.parameters());
//! let mut profiler = Profiler::start(Options { shapes: true, memory: true, ..Default::default() })?;
//! for _ in 0..3 {
//!     net.call(&randn([4, 8]))?.square().mean(()).backward();
//!     opt.step()?;
//!     opt.clear_grad();
//!     profiler.step();
//! }
//! let profile = profiler.stop();
//! println!("{}", profile.overview());
//! println!("{}", profile.ops().sort(SortBy::Own).limit(10));
//! println!("{}", profile.layers());
//! assert!(profile.ops().rows().iter().any(|row| row.name == "linear_grad" && row.calls == 6));
//! # let folder = std::env::temp_dir().join("sampan-profiler-doc");
//! # let path = folder.join("trace.json");
//! profile.save_trace(path)?; // for Perfetto or chrome://tracing
//! # Ok::<(), sampan::Error>(())
//! ```

mod layers;
mod ops;
mod overview;
mod table;
mod trace;
mod tree;

pub use layers::{LayerRow, Layers};
pub use ops::{Ops, Row, SortBy};
pub use overview::Overview;
pub use sampan_core::profiler::*;
pub use table::Unit;

use sampan_core::Result;
use std::fmt;
use std::path::Path;
use tree::Tree;

/// A recording that runs, with its steps.
#[must_use = "the recording ends when this is dropped"]
pub struct Profiler {
    step: Option<Range>,
    steps: u64,
}

impl Profiler {
    /// Begins to record every thread of the process. There is one recording at a time.
    pub fn start(options: Options) -> Result<Profiler> {
        sampan_core::profiler::start(options)?;
        Ok(Profiler { step: Some(step_range(0)), steps: 0 })
    }

    /// One step of the training loop is done, the next begins.
    pub fn step(&mut self) {
        self.step = None;
        self.steps += 1;
        self.step = Some(step_range(self.steps));
    }

    /// Ends the recording.
    pub fn stop(mut self) -> Profile {
        if self.steps == 0 {
            self.step = None;
        }
        // Otherwise what came after the last step is not a step.
        Profile::new(sampan_core::profiler::stop().expect("nobody else stops what this one started"))
    }
}

fn step_range(number: u64) -> Range {
    range_of(Kind::Step, format!("ProfileStep#{number}"))
}

impl Drop for Profiler {
    fn drop(&mut self) {
        // A second stop finds nothing.
        sampan_core::profiler::stop();
    }
}

/// Runs `f` and records it.
///
/// ```
/// use sampan::profiler::{Options, profile};
/// let (sum, profile) = profile(Options::default(), || sampan::Tensor::new([1.0f32, 2.0]).sum(()))?;
/// assert_eq!((sum.to_f64(), profile.ops().rows()[0].name.as_str()), (3.0, "sum"));
/// # Ok::<(), sampan::Error>(())
/// ```
pub fn profile<R>(options: Options, f: impl FnOnce() -> R) -> Result<(R, Profile)> {
    let profiler = Profiler::start(options)?;
    let result = f();
    Ok((result, profiler.stop()))
}

/// What was recorded, to be looked at. It prints as its overview and its ops.
pub struct Profile {
    recording: Recording,
    tree: Tree,
}

impl Profile {
    /// From what the core recorded.
    pub fn new(recording: Recording) -> Profile {
        let tree = Tree::new(&recording.events);
        Profile { recording, tree }
    }

    /// The events themselves.
    pub fn recording(&self) -> &Recording {
        &self.recording
    }

    /// The shares of forward, backward, optimizer and loader.
    pub fn overview(&self) -> Overview {
        Overview::of(self)
    }

    /// A table of ops.
    pub fn ops(&self) -> Ops<'_> {
        Ops::new(self)
    }

    /// A table of layers.
    pub fn layers(&self) -> Layers<'_> {
        Layers::new(self)
    }

    /// A table of the user's ranges.
    pub fn ranges(&self) -> Ops<'_> {
        Ops::ranges(self)
    }

    /// The events as JSON in Chrome's trace format.
    pub fn trace(&self) -> String {
        trace::write(&self.recording)
    }

    /// Writes the [`trace`](Profile::trace) to a file that Perfetto and `chrome://tracing` open; whole or not at all.
    pub fn save_trace(&self, path: impl AsRef<Path>) -> Result<()> {
        sampan_io::atomic::write(path, self.trace().as_bytes()).map_err(|e| e.in_op("profiler"))
    }

    /// Reads what [`save_trace`](Profile::save_trace) wrote.
    pub fn load_trace(path: impl AsRef<Path>) -> Result<Profile> {
        trace::read(path.as_ref()).map(Profile::new)
    }

    /// A line that says so if events found no room.
    fn warning(&self) -> String {
        match self.recording.dropped {
            0 => String::new(),
            n => format!(
                "{n} events found no room and are missing: the limit is {}. Record fewer steps, or raise the capacity.\n",
                self.recording.options.capacity
            ),
        }
    }
}

impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}\n{}", self.overview(), self.ops())
    }
}
