//! The `sampan` command.

fn main() -> std::process::ExitCode {
    sampan::cli::run(std::env::args_os())
}
