//! Who takes part in a job, as whoever started the processes wrote it into the environment.

use sampan_core::error::Kind;
use sampan_core::{Error, Result};

/// Where a store waits that somebody else keeps: `host:port`.
pub const STORE: &str = "SAMPAN_STORE";
/// How often the job was started anew; each time meets in a part of the store of its own.
pub const GENERATION: &str = "SAMPAN_GENERATION";

/// The place of this process in a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct World {
    /// The number of this process.
    pub rank: usize,
    /// How many processes there are.
    pub size: usize,
    /// The number of this process on its machine.
    pub local_rank: usize,
    /// How many there are on this machine.
    pub local_size: usize,
    /// Who started it.
    pub launcher: &'static str,
}

/// Variables of those who start processes: rank, size, rank on the machine, processes on the machine.
const LAUNCHERS: [(&str, [&[&str]; 4]); 5] = [
    (
        "sampan",
        [
            &["PADDLE_TRAINER_ID"],
            &["PADDLE_TRAINERS_NUM"],
            &["PADDLE_LOCAL_RANK", "PADDLE_RANK_IN_NODE"],
            &["PADDLE_LOCAL_SIZE"],
        ],
    ),
    ("torchrun", [&["RANK"], &["WORLD_SIZE"], &["LOCAL_RANK"], &["LOCAL_WORLD_SIZE"]]),
    (
        "Open MPI",
        [
            &["OMPI_COMM_WORLD_RANK"],
            &["OMPI_COMM_WORLD_SIZE"],
            &["OMPI_COMM_WORLD_LOCAL_RANK"],
            &["OMPI_COMM_WORLD_LOCAL_SIZE"],
        ],
    ),
    ("MPI", [&["PMI_RANK"], &["PMI_SIZE"], &["MPI_LOCALRANKID"], &["MPI_LOCALNRANKS"]]),
    ("Slurm", [&["SLURM_PROCID"], &["SLURM_STEP_NUM_TASKS"], &["SLURM_LOCALID"], &["SLURM_STEP_TASKS_PER_NODE"]]),
];

/// What can be asked for a variable; the environment, but for tests.
pub type Variables<'a> = &'a dyn Fn(&str) -> Option<String>;

fn env(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|v| !v.is_empty())
}

/// A number of the environment. Slurm writes `2(x3)` for three machines with two processes each.
fn number(variables: Variables<'_>, names: &[&str]) -> Result<Option<usize>> {
    let Some((name, text)) = names.iter().find_map(|n| Some((n, variables(n)?))) else { return Ok(None) };
    let digits = text.split(['(', ',']).next().unwrap_or_default();
    let wrong = || Error::invalid(format!("the variable {name} should be a number, got {text:?}"));
    digits.trim().parse().map(Some).map_err(|_| wrong())
}

impl World {
    /// A process of its own.
    pub fn alone() -> World {
        World { rank: 0, size: 1, local_rank: 0, local_size: 1, launcher: "nobody" }
    }

    /// The place of this process: as `launch` and `spawn` say, or torchrun, MPI or Slurm.
    pub fn from_env() -> Result<World> {
        World::from(&env)
    }

    /// The same with other variables.
    pub fn from(variables: Variables<'_>) -> Result<World> {
        for (launcher, [rank, size, local_rank, local_size]) in LAUNCHERS {
            let (Some(rank), Some(size)) = (number(variables, rank)?, number(variables, size)?) else { continue };
            if rank >= size {
                return Err(Error::invalid(format!("{launcher} says that this is process {rank} of {size}"))
                    .hint("processes are counted from 0"));
            }
            let local_size = number(variables, local_size)?;
            // Without a word about machines, all are on one.
            let local_rank = number(variables, local_rank)?.unwrap_or(rank);
            let local_size = local_size.unwrap_or(size).clamp(local_rank + 1, size.max(local_rank + 1));
            return Ok(World { rank, size, local_rank, local_size, launcher });
        }
        Ok(World::alone())
    }

    /// Where the processes meet, and whether somebody else keeps the store there; otherwise rank 0 does.
    pub fn meeting_place(&self) -> Result<(String, bool)> {
        self.meeting_place_from(&env)
    }

    /// The same with other variables.
    pub fn meeting_place_from(&self, variables: Variables<'_>) -> Result<(String, bool)> {
        if let Some(kept) = variables(STORE) {
            return Ok((kept, true));
        }
        let endpoints = variables("PADDLE_TRAINER_ENDPOINTS").and_then(|all| all.split(',').next().map(String::from));
        if let Some(address) = variables("PADDLE_MASTER").or(endpoints).filter(|a| a.contains(':')) {
            return Ok((address, false));
        }
        let host = variables("MASTER_ADDR").or_else(|| first_host(&variables("SLURM_STEP_NODELIST")?));
        let port = match variables("MASTER_PORT").map(|p| p.parse::<u16>()) {
            // The agent of torchrun keeps a store of its own at that port.
            Some(Ok(port)) if variables("TORCHELASTIC_USE_AGENT_STORE").is_some_and(|v| v == "True") => {
                port.checked_add(1)
            }
            Some(Ok(port)) => Some(port),
            Some(Err(_)) => None,
            None if self.launcher == "sampan" || self.launcher == "torchrun" => None,
            None => Some(derived_port(variables)),
        };
        let one_machine = (self.local_size == self.size).then(|| "127.0.0.1".to_string());
        match (host.or(one_machine), port) {
            (Some(host), Some(port)) => Ok((crate::wire::join(&host, port), false)),
            _ => Err(Error::new(
                Kind::PreconditionNotMet,
                format!("{} says that there are {} processes, but not where they meet", self.launcher, self.size),
            )
            .hint(
                "start the processes with python -m sampan.distributed.launch or with spawn, or set MASTER_ADDR and \
                 MASTER_PORT to an address of rank 0",
            )),
        }
    }
}

/// The first machine of a list as Slurm writes it: `gpu[03-07,12],login`.
fn first_host(list: &str) -> Option<String> {
    let end = list.find([',', '[']).unwrap_or(list.len());
    let (name, rest) = list.split_at(end);
    let number = rest.strip_prefix('[').map_or("", |r| &r[..r.find(['-', ',', ']']).unwrap_or(r.len())]);
    Some(format!("{name}{number}")).filter(|n| !n.is_empty())
}

/// A port that all processes of a job find, and other jobs of the machine most likely do not.
fn derived_port(variables: Variables<'_>) -> u16 {
    let names = ["PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid", "SLURM_JOB_ID", "PMI_JOBID"];
    let job =
        names.iter().find_map(|n| variables(n)).unwrap_or_else(|| std::os::unix::process::parent_id().to_string());
    let step = variables("SLURM_STEP_ID").unwrap_or_default();
    let hash = format!("{job} {step}")
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325u64, |h, b| (h ^ b as u64).wrapping_mul(0x100_0000_01b3));
    20_000 + (hash % 20_000) as u16
}
