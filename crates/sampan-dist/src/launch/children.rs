//! The processes of this machine: their environment, their logs, and their end.

use super::arguments::Launch;
use super::meeting::Roster;
use crate::secret;
use crate::sys;
use crate::wire;
use crate::world::{GENERATION, STORE};
use sampan_core::{Error, Result};
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Children that were asked to end get this long before they are killed.
const PATIENCE: Duration = Duration::from_secs(3);
/// When one fails, others may fail of it in the next moment; the one to blame is looked for after this.
const AFTERMATH: Duration = Duration::from_millis(150);
/// Lines of a failed process's log that are shown.
const LAST_LINES: usize = 20;
/// Ports that Paddle gives processes begin here; they are told, not used.
const FIRST_PORT: u16 = 6070;

/// The processes of this machine.
pub struct Children {
    all: Vec<Worker>,
    copies: Vec<JoinHandle<()>>,
}

struct Worker {
    rank: usize,
    child: Child,
    log: PathBuf,
    ended: Option<ExitStatus>,
}

/// Have they ended, and how?
pub enum Ended {
    No,
    Well,
    Badly { code: i32, report: String, summary: String },
}

impl Children {
    /// Starts them.
    pub fn start(options: &Launch, roster: &Roster, store: &str, word: Option<&str>) -> Result<Children> {
        std::fs::create_dir_all(&options.log_dir)
            .map_err(|e| Error::invalid(format!("launch: --log_dir {}: {e}", options.log_dir.display())))?;
        let mut children = Children { all: Vec::new(), copies: Vec::new() };
        let endpoints: Vec<String> = roster
            .nodes
            .iter()
            .flat_map(|n| (0..n.processes).map(|i| wire::join(&n.host, FIRST_PORT.saturating_add(i as u16))))
            .collect();
        let first = roster.first_rank();
        for local in 0..options.processes {
            let rank = first + local;
            let log = options.log_dir.join(format!("workerlog.{local}"));
            let file = OpenOptions::new().create(true).write(true).append(roster.generation > 0).open(&log)?;
            if roster.generation == 0 {
                file.set_len(0)?;
            }
            let mut command = Command::new(&options.command[0]);
            command.args(&options.command[1..]).stdin(Stdio::null());
            command.envs([
                ("PADDLE_TRAINER_ID", rank.to_string()),
                ("PADDLE_GLOBAL_RANK", rank.to_string()),
                ("PADDLE_TRAINERS_NUM", roster.size().to_string()),
                ("PADDLE_GLOBAL_SIZE", roster.size().to_string()),
                ("PADDLE_LOCAL_RANK", local.to_string()),
                ("PADDLE_RANK_IN_NODE", local.to_string()),
                ("PADDLE_LOCAL_SIZE", options.processes.to_string()),
                ("PADDLE_NNODES", roster.nodes.len().to_string()),
                ("PADDLE_MASTER", store.to_string()),
                ("PADDLE_JOB_ID", options.job_id.clone()),
                ("PADDLE_CURRENT_ENDPOINT", endpoints[rank].clone()),
                ("PADDLE_TRAINER_ENDPOINTS", endpoints.join(",")),
                (STORE, store.to_string()),
                (GENERATION, roster.generation.to_string()),
            ]);
            if !options.devices.is_empty() {
                command.env("FLAGS_selected_gpus", &options.devices[local % options.devices.len()]);
            }
            if let Some(word) = word {
                command.env(secret::VARIABLE, word);
            }
            sys::die_with_parent(&mut command);
            // The first one is also seen on the screen.
            match local {
                0 => command.stdout(Stdio::piped()).stderr(Stdio::piped()),
                _ => command.stdout(file.try_clone()?).stderr(file.try_clone()?),
            };
            let mut child = command.spawn().map_err(|e| {
                Error::invalid(format!("launch: {} cannot be started: {e}", options.command[0]))
                    .hint("is the name right?")
            })?;
            if let Some(output) = child.stdout.take() {
                children.copies.push(copy(output, file.try_clone()?, std::io::stdout()));
            }
            if let Some(output) = child.stderr.take() {
                children.copies.push(copy(output, file, std::io::stderr()));
            }
            children.all.push(Worker { rank, child, log, ended: None });
        }
        Ok(children)
    }

    fn poll(&mut self) {
        for worker in &mut self.all {
            if worker.ended.is_none() {
                worker.ended = worker.child.try_wait().ok().flatten();
            }
        }
    }

    /// Have they ended?
    pub fn look(&mut self) -> Ended {
        self.poll();
        if self.all.iter().all(|w| w.ended.is_some_and(|s| s.success())) {
            self.copies.drain(..).for_each(|copy| drop(copy.join()));
            return Ended::Well;
        }
        if !self.all.iter().any(Worker::failed) {
            return Ended::No;
        }
        std::thread::sleep(AFTERMATH);
        self.poll();
        self.blame()
    }

    /// The one that failed first: one that was killed, or one that did not fail because it lost another.
    fn blame(&self) -> Ended {
        let failed: Vec<(&Worker, String)> =
            self.all.iter().filter(|w| w.failed()).map(|w| (w, w.last_lines())).collect();
        let by_signal = failed.iter().find(|(w, _)| w.ended.is_some_and(|s| s.signal().is_some()));
        let own_fault = failed.iter().find(|(_, lines)| !lines.contains("(Unavailable)"));
        let Some((worker, lines)) = by_signal.or(own_fault).or(failed.first()) else { return Ended::No };
        let status = worker.ended.unwrap_or_default();
        let how = match status.signal() {
            Some(signal) => format!("was ended by signal {signal}"),
            None => format!("ended with code {}", status.code().unwrap_or(1)),
        };
        let summary = format!("rank {} (process {}) {how}", worker.rank, worker.child.id());
        let tail: String = lines.lines().map(|l| format!("  {l}\n")).collect();
        let report = format!("launch: {summary}; the end of {}:\n{tail}", worker.log.display());
        // Ended by a signal: as a shell tells it.
        let code = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0));
        Ended::Badly { code, report, summary }
    }

    /// Ends all that still run, with what they have started.
    pub fn end(&mut self) {
        self.poll();
        let running =
            |all: &mut Vec<Worker>| all.iter().filter(|w| w.ended.is_none()).map(|w| w.child.id()).collect::<Vec<_>>();
        for pid in running(&mut self.all) {
            sys::signal(pid, libc::SIGTERM, true);
            // Whoever is stopped hears nothing before it goes on.
            sys::signal(pid, libc::SIGCONT, true);
        }
        let deadline = Instant::now() + PATIENCE;
        while !running(&mut self.all).is_empty() && Instant::now() < deadline {
            std::thread::sleep(super::LOOK);
            self.poll();
        }
        // What a child has started may outlive it; nothing of its group stays.
        for worker in &mut self.all {
            sys::signal(worker.child.id(), libc::SIGKILL, true);
            let _ = worker.child.wait();
        }
        self.copies.drain(..).for_each(|copy| drop(copy.join()));
    }
}

impl Drop for Children {
    fn drop(&mut self) {
        self.end();
    }
}

impl Worker {
    fn failed(&self) -> bool {
        self.ended.is_some_and(|s| !s.success())
    }

    fn last_lines(&self) -> String {
        let read = || -> std::io::Result<String> {
            let mut file = File::open(&self.log)?;
            let len = file.metadata()?.len();
            file.seek(SeekFrom::Start(len.saturating_sub(8192)))?;
            let mut bytes = Vec::new();
            file.read_to_end(&mut bytes)?;
            Ok(String::from_utf8_lossy(&bytes).into_owned())
        };
        let text = read().unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(LAST_LINES)..].join("\n")
    }
}

/// Copies what a process says into its log and onto the screen.
fn copy(from: impl Read + Send + 'static, mut log: File, mut screen: impl Write + Send + 'static) -> JoinHandle<()> {
    std::thread::spawn(move || {
        let mut reader = BufReader::new(from);
        loop {
            let count = match reader.fill_buf() {
                Ok([]) | Err(_) => return,
                Ok(bytes) => {
                    let _ = log.write_all(bytes);
                    let _ = screen.write_all(bytes).and_then(|()| screen.flush());
                    bytes.len()
                }
            };
            reader.consume(count);
        }
    })
}
