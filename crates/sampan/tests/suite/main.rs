//! Tests of the umbrella: the high-level API, the main job, the command and the course in `examples/`.

mod captured;
mod cli;
mod examples;
mod hapi;
mod kill;
mod main_job;
mod profiler;

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A folder of a test's own. The generator belongs to the whole process, so tests that compare bits take turns.
struct Folder(PathBuf, #[allow(dead_code)] MutexGuard<'static, ()>);

impl Folder {
    fn new(name: &str) -> Folder {
        static TURN: Mutex<()> = Mutex::new(());
        let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        let path = std::env::temp_dir().join(format!("sampan-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).expect("the folder for temporary files can be written");
        Folder(path, turn)
    }

    fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
