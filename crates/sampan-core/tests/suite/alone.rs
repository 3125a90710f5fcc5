//! Tests that watch something of the whole process (memory in use, flags, the generator) run in a process of their own.

use std::process::Command;

const INSIDE: &str = "SAMPAN_SUITE_ALONE";

/// Whether this is the process that `alone` started.
pub fn is_alone() -> bool {
    std::env::var_os(INSIDE).is_some()
}

/// Runs `body` as the only test of a new process; `name` is the path of the calling test.
pub fn alone(name: &str, body: impl FnOnce()) {
    if is_alone() {
        return body();
    }
    let exe = std::env::current_exe().expect("a test knows its own file");
    let out = Command::new(exe).args(["--exact", name, "--nocapture"]).env(INSIDE, "1").output().expect("it runs");
    let text = String::from_utf8_lossy(&out.stdout).into_owned() + &String::from_utf8_lossy(&out.stderr);
    assert!(out.status.success() && text.contains("1 passed"), "{text}");
}
