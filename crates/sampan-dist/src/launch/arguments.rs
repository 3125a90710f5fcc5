//! What the command line of a launch says.

use crate::job;
use sampan_core::{Error, Result};
use std::path::PathBuf;
use std::time::Duration;

/// A program to be run in several processes.
#[derive(Clone, Debug)]
pub struct Launch {
    /// The program and its arguments.
    pub command: Vec<String>,
    /// Processes on this machine.
    pub processes: usize,
    /// Parameter servers beside them.
    pub servers: usize,
    /// The device of each, by its number; none if nothing was said.
    pub devices: Vec<String>,
    /// The fewest machines that are enough.
    pub min_nodes: usize,
    /// The most machines that take part.
    pub max_nodes: usize,
    /// The address where machines meet.
    pub master: Option<String>,
    /// The number of this machine, if it matters.
    pub node_rank: Option<usize>,
    /// Where logs are written.
    pub log_dir: PathBuf,
    /// A name of the job.
    pub job_id: String,
    /// How often a failed round is started again.
    pub max_restart: usize,
    /// How long the fewest machines wait for more.
    pub grace: Duration,
    /// How long is waited for the fewest machines.
    pub patience: Duration,
}

/// What there is to say, and its explanation.
const HELP: &str = "\
Runs a program in several processes, on one machine or many.

  launch [options] program [arguments]         a program, a .py file, or -m and a Python module

  --nproc_per_node N      processes on this machine (one, or CPU_NUM, or one for each of --devices)
  --server_num N          parameter servers beside --worker_num N workers, on this machine
  --devices 0,1,…         a process for each; also --gpus
  --nnodes N or MIN:MAX   machines; with a range they may come and go
  --master HOST:PORT      an address of one of them, the same on all
  --rank N                the number of this machine, if it matters
  --max_restart N         how often to start again after a failure (3 with a range of machines, else 0)
  --elastic_timeout S     seconds in which MIN machines wait for more (5)
  --timeout S             seconds in which MIN machines must have come (300, or SAMPAN_PATIENCE)
  --log_dir DIR           where workerlog.0, workerlog.1, … are written (log)
  --job_id NAME           a name of the job

A secret in SAMPAN_SECRET or in the file SAMPAN_SECRET_FILE, the same on all machines, keeps strangers out.";

/// Options of Paddle's launch that mean nothing here, and take a value.
const IGNORED: [&str; 8] =
    ["run_mode", "log_level", "ips", "host", "start_port", "elastic_level", "legacy", "with_gloo"];

impl Launch {
    /// A program in some processes of this machine.
    pub fn new(command: Vec<String>, processes: usize) -> Launch {
        Launch {
            command,
            processes,
            servers: 0,
            devices: Vec::new(),
            min_nodes: 1,
            max_nodes: 1,
            master: None,
            node_rank: None,
            log_dir: "log".into(),
            job_id: "default".into(),
            max_restart: 0,
            grace: Duration::from_secs(5),
            patience: Duration::from_secs(300),
        }
    }

    /// Reads a command line. A program that ends in `.py` is run by `python`. An error with the help where it asks for it.
    pub fn parse(arguments: &[String], python: &str) -> Result<Launch> {
        let default = std::env::var("CPU_NUM").ok().and_then(|n| n.parse().ok()).unwrap_or(1);
        let mut launch = Launch::new(Vec::new(), default);
        let (mut devices, mut processes, mut restarts, mut patience) = (None, None, None, None);
        let mut rest = arguments.iter();
        while let Some(word) = rest.next() {
            let Some(option) = word.strip_prefix("--") else {
                if word == "-h" {
                    return Err(Error::invalid(HELP));
                }
                if word.ends_with(".py") || word == "-m" {
                    launch.command.extend([python.to_string(), "-u".into()]);
                }
                launch.command.push(word.clone());
                launch.command.extend(rest.cloned());
                break;
            };
            if option == "help" {
                return Err(Error::invalid(HELP));
            }
            let (name, value) = option.split_once('=').map_or((option, None), |(n, v)| (n, Some(v.to_string())));
            let value = value.or_else(|| rest.next().cloned());
            let value = value.ok_or_else(|| Error::invalid(format!("launch: --{name} needs a value")))?;
            let number = || {
                let wrong = || Error::invalid(format!("launch: --{name} takes a number, got {value:?}"));
                value.parse::<usize>().map_err(|_| wrong())
            };
            let seconds = || {
                let wrong = || Error::invalid(format!("launch: --{name} takes seconds, at most 1e9, got {value:?}"));
                job::seconds(&value).ok_or_else(wrong)
            };
            match name.replace('-', "_").as_str() {
                "nproc_per_node" | "worker_num" | "trainer_num" => processes = Some(number()?),
                "server_num" => launch.servers = number()?,
                "devices" | "gpus" | "selected_gpus" | "xpus" => devices = Some(value),
                "nnodes" => {
                    let wrong = || Error::invalid(format!("launch: --nnodes takes N or MIN:MAX, got {value:?}"));
                    let (low, high) = value.split_once(':').unwrap_or((&value, &value));
                    launch.min_nodes = low.parse().map_err(|_| wrong())?;
                    launch.max_nodes = high.parse().map_err(|_| wrong())?;
                    if launch.min_nodes == 0 || launch.min_nodes > launch.max_nodes {
                        return Err(wrong());
                    }
                }
                "master" => launch.master = Some(value),
                // Paddle's -1 leaves the order to those who come.
                "rank" if value == "-1" => {}
                "rank" | "node_rank" => launch.node_rank = Some(number()?),
                "max_restart" => restarts = Some(number()?),
                "elastic_timeout" => launch.grace = seconds()?,
                "timeout" => patience = Some(seconds()?),
                "log_dir" => launch.log_dir = value.into(),
                "job_id" => launch.job_id = value,
                other if IGNORED.contains(&other) => {}
                _ => {
                    return Err(
                        Error::invalid(format!("launch: there is no option --{name}")).hint("--help lists them")
                    );
                }
            }
        }
        if let Some(listed) = devices.filter(|d| d != "cpu") {
            launch.devices = listed.split(',').map(|d| d.trim().to_string()).collect();
            launch.processes = launch.devices.len();
        }
        launch.processes = processes.unwrap_or(launch.processes);
        // Of the environment only what is needed is read, and not before: it may be about something else.
        if let Some(told) = patience.map_or_else(job::patience, |p| Ok(Some(p)))? {
            launch.patience = told;
        }
        launch.max_restart = restarts.unwrap_or(if launch.max_nodes > launch.min_nodes { 3 } else { 0 });
        let problem = if launch.command.is_empty() {
            "there is no program to run"
        } else if launch.processes == 0 {
            "--nproc_per_node must be at least 1"
        } else if launch.servers > 0 && launch.max_nodes > 1 {
            "--server_num starts servers on one machine; on several, start each process with TRAINING_ROLE and the like"
        } else if launch.max_nodes > 1 && launch.master.is_none() {
            "several machines need --master HOST:PORT, an address of one of them"
        } else {
            return Ok(launch);
        };
        Err(Error::invalid(format!("launch: {problem}")).hint("--help lists the options"))
    }
}
