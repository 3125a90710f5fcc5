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
use std::net::TcpListener;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Children that were asked to end get this long before they are killed.
const PATIENCE: Duration = Duration::from_secs(3);
/// When one fails, others may fail of it in the next moment; the one to blame is looked for after this.
const AFTERMATH: Duration = Duration::from_millis(150);
/// The last words of ended processes are waited for this long.
const LAST_WORDS: Duration = Duration::from_secs(1);
/// Lines of a failed process's log that are shown.
const LAST_LINES: usize = 20;
/// Ports that Paddle gives processes begin here; they are told, not used.
const FIRST_PORT: u16 = 6070;

/// The processes of this machine.
pub struct Children {
    all: Vec<Worker>,
}

struct Worker {
    name: String,
    child: Child,
    log: PathBuf,
    ended: Option<ExitStatus>,
    /// Who writes its log.
    copies: Vec<JoinHandle<()>>,
}

/// Have they ended, and how?
pub enum Ended {
    No,
    Well,
    Badly { code: i32, report: String, summary: String },
}

/// Addresses of this machine that are free now, one for each parameter server.
fn server_addresses(count: usize) -> Result<Vec<String>> {
    let held: Vec<TcpListener> =
        (0..count).map(|_| TcpListener::bind("127.0.0.1:0")).collect::<std::io::Result<_>>()?;
    held.iter().map(|l| Ok(l.local_addr()?.to_string())).collect()
}

impl Children {
    /// Starts them.
    pub fn start(options: &Launch, roster: &Roster, store: &str, word: Option<&str>) -> Result<Children> {
        std::fs::create_dir_all(&options.log_dir)
            .map_err(|e| Error::invalid(format!("launch: --log_dir {}: {e}", options.log_dir.display())))?;
        let mut children = Children { all: Vec::new() };
        let endpoints: Vec<String> = roster
            .nodes
            .iter()
            .flat_map(|n| (0..n.processes).map(|i| wire::join(&n.host, FIRST_PORT.saturating_add(i as u16))))
            .collect();
        let first = roster.first_rank();
        let servers = server_addresses(options.servers)?;
        for number in 0..options.processes + options.servers {
            // Workers first; servers are no ranks of the job.
            let server = number.checked_sub(options.processes);
            let (local, rank) = (number, first + number);
            let log = options.log_dir.join(match server {
                Some(n) => format!("serverlog.{n}"),
                None => format!("workerlog.{local}"),
            });
            let file = OpenOptions::new().create(true).write(true).append(roster.generation > 0).open(&log)?;
            if roster.generation == 0 {
                file.set_len(0)?;
            }
            let mut command = Command::new(&options.command[0]);
            command.args(&options.command[1..]).stdin(Stdio::null());
            command.envs([
                ("PADDLE_TRAINERS_NUM", roster.size().to_string()),
                ("PADDLE_GLOBAL_SIZE", roster.size().to_string()),
                ("PADDLE_LOCAL_SIZE", options.processes.to_string()),
                ("PADDLE_NNODES", roster.nodes.len().to_string()),
                ("PADDLE_MASTER", store.to_string()),
                ("PADDLE_JOB_ID", options.job_id.clone()),
                ("PADDLE_TRAINER_ENDPOINTS", endpoints.join(",")),
                (STORE, store.to_string()),
                (GENERATION, roster.generation.to_string()),
            ]);
            if let Some(n) = server {
                let (host, port) = servers[n].rsplit_once(':').unwrap_or((&servers[n], ""));
                command.envs([("TRAINING_ROLE", "PSERVER"), ("POD_IP", host), ("PADDLE_PORT", port)]);
                command.env_remove("PADDLE_TRAINER_ID");
            } else {
                command.envs([
                    ("PADDLE_TRAINER_ID", rank.to_string()),
                    ("PADDLE_GLOBAL_RANK", rank.to_string()),
                    ("PADDLE_LOCAL_RANK", local.to_string()),
                    ("PADDLE_RANK_IN_NODE", local.to_string()),
                    ("PADDLE_CURRENT_ENDPOINT", endpoints[rank].clone()),
                ]);
            }
            if !servers.is_empty() {
                command.env("PADDLE_PSERVERS_IP_PORT_LIST", servers.join(","));
                if server.is_none() {
                    command.env("TRAINING_ROLE", "TRAINER");
                }
            }
            if !options.devices.is_empty() {
                command.env("FLAGS_selected_gpus", &options.devices[local % options.devices.len()]);
            }
            if let Some(word) = word {
                command.env(secret::VARIABLE, word);
            }
            sys::die_with_parent(&mut command);
            // Through us, so that a full disk stops a log and not the program. The first one is also seen on the screen.
            command.stdout(Stdio::piped()).stderr(Stdio::piped());
            let mut child = command.spawn().map_err(|e| {
                Error::invalid(format!("launch: {} cannot be started: {e}", options.command[0]))
                    .hint("is the name right?")
            })?;
            let file = Log { file, path: log.clone(), said: Arc::default() };
            let (out, err): (Box<dyn Write + Send>, Box<dyn Write + Send>) = match local {
                0 => (Box::new(std::io::stdout()), Box::new(std::io::stderr())),
                _ => (Box::new(std::io::sink()), Box::new(std::io::sink())),
            };
            let out = child.stdout.take().map(|from| Ok(copy(from, file.another()?, out)));
            let err = child.stderr.take().map(|from| Ok(copy(from, file.another()?, err)));
            let copies = out.into_iter().chain(err).collect::<Result<Vec<_>>>()?;
            let name = server.map_or_else(|| format!("rank {rank}"), |n| format!("server {n}"));
            children.all.push(Worker { name, child, log, ended: None, copies });
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
            self.all.iter_mut().for_each(Worker::hear_out);
            return Ended::Well;
        }
        if !self.all.iter().any(Worker::failed) {
            return Ended::No;
        }
        std::thread::sleep(AFTERMATH);
        self.poll();
        self.all.iter_mut().filter(|w| w.failed()).for_each(Worker::hear_out);
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
        let summary = format!("{} (process {}) {how}", worker.name, worker.child.id());
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
        self.all.iter_mut().for_each(Worker::hear_out);
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

    /// Waits for its last words; not for long, since somebody whom it has started may keep its output open.
    fn hear_out(&mut self) {
        let deadline = Instant::now() + LAST_WORDS;
        while self.copies.iter().any(|copy| !copy.is_finished()) && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(2));
        }
        self.copies.clear();
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

/// A process's log.
struct Log {
    file: File,
    path: PathBuf,
    /// Was it said that it cannot be written?
    said: Arc<AtomicBool>,
}

impl Log {
    fn another(&self) -> Result<Log> {
        Ok(Log { file: self.file.try_clone()?, path: self.path.clone(), said: self.said.clone() })
    }

    fn write(&mut self, bytes: &[u8]) {
        if let Err(e) = self.file.write_all(bytes)
            && !self.said.swap(true, Ordering::Relaxed)
        {
            eprintln!("launch: {} cannot be written: {e}; the program goes on", self.path.display());
        }
    }
}

/// Copies what a process says into its log and onto the screen.
fn copy(from: impl Read + Send + 'static, mut log: Log, mut screen: Box<dyn Write + Send>) -> JoinHandle<()> {
    std::thread::spawn(move || {
        let mut reader = BufReader::new(from);
        loop {
            let count = match reader.fill_buf() {
                Ok([]) | Err(_) => return,
                Ok(bytes) => {
                    log.write(bytes);
                    let _ = screen.write_all(bytes).and_then(|()| screen.flush());
                    bytes.len()
                }
            };
            reader.consume(count);
        }
    })
}
