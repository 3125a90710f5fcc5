//! What the real libraries wrote, round trips, hostile and damaged files.

mod damage;
mod distcp;
mod files;
mod fixtures;
mod hostile;
mod ramp;
mod round_trips;

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

/// A file that Paddle, PyTorch, NumPy, safetensors or TensorBoard wrote.
fn fixture(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name)
}

/// A folder that is gone after the test.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Folder {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let name = format!("sampan-io-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
