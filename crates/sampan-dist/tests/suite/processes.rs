//! Starting processes and hearing what they say.

use sampan_dist::{Engine, Job, Options, Secret, StoreServer, World, secret};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

const ROLE: &str = "SAMPAN_TEST_ROLE";

/// What the processes do, by name; each gives a line to compare.
pub type Role = fn(&Job) -> String;

const ROLES: &[(&str, Role)] = &[
    ("everything", crate::collectives::everything),
    ("which", crate::collectives::which),
    ("groups", crate::collectives::groups),
    ("disagree", crate::collectives::disagree),
    ("mismatched_message", crate::collectives::mismatched_message),
    ("reduce_until_told", crate::faults::reduce_until_told),
    ("speed", crate::speed::speed),
];

/// Processes of a job, and the store where they meet.
pub struct Team {
    pub children: Vec<Child>,
    /// Where they meet.
    pub address: String,
    /// The secret.
    pub word: String,
    settings: Vec<(String, String)>,
    _store: StoreServer,
}

/// Starts `size` processes in a role.
pub fn start(role: &str, size: usize, engine: &str, more: &[(&str, &str)]) -> Team {
    start_some(role, size, 0..size, engine, more)
}

/// Starts some of `size` processes.
pub fn start_some(
    role: &str,
    size: usize,
    ranks: impl Iterator<Item = usize>,
    engine: &str,
    more: &[(&str, &str)],
) -> Team {
    let word = secret::token().unwrap();
    let store = StoreServer::start("127.0.0.1:0", Secret::new(word.clone())).unwrap();
    let (address, number) = (format!("127.0.0.1:{}", store.port()), size.to_string());
    let common = [
        (ROLE, role),
        ("PADDLE_TRAINERS_NUM", &number),
        ("SAMPAN_STORE", &address),
        ("SAMPAN_SECRET", &word),
        ("SAMPAN_BACKEND", engine),
    ];
    let settings = common.iter().chain(more).map(|(name, value)| (name.to_string(), value.to_string())).collect();
    let mut team = Team { children: Vec::new(), address, word, settings, _store: store };
    ranks.for_each(|rank| team.start_one(rank));
    team
}

impl Team {
    /// Starts one more.
    pub fn start_one(&mut self, rank: usize) {
        let child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "processes::worker", "--nocapture", "--test-threads=1"])
            .env("PADDLE_TRAINER_ID", rank.to_string())
            .envs(self.settings.iter().cloned())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn();
        self.children.push(child.unwrap());
    }

    /// What each says at its end.
    pub fn join(self) -> Vec<String> {
        let hear = |child: Child| {
            let output = child.wait_with_output().unwrap();
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            let errors = String::from_utf8_lossy(&output.stderr).into_owned();
            let said = text.lines().find_map(|l| l.split_once("SAID ")).map(|(_, said)| said.to_string());
            said.unwrap_or_else(|| format!("ended with {}: {text}{errors}", output.status))
        };
        self.children.into_iter().map(hear).collect()
    }
}

/// Runs a role in `size` processes; all must say the same.
pub fn run(role: &str, size: usize, engine: &str) -> String {
    let said = start(role, size, engine, &[]).join();
    assert!(said.iter().all(|s| *s == said[0] && !s.starts_with("ended with")), "{said:#?}");
    said[0].clone()
}

/// One of the processes; without a role, nothing.
#[test]
fn worker() {
    let Ok(role) = std::env::var(ROLE) else { return };
    let (_, role) = ROLES.iter().find(|(name, _)| *name == role).expect("a known role");
    let options = Options { engine: Engine::named(&std::env::var("SAMPAN_BACKEND").unwrap()).unwrap(), ..options() };
    match Job::join(World::from_env().unwrap(), options) {
        Ok(job) => println!("SAID {}", role(&job)),
        Err(e) => println!("SAID not met: {e}"),
    }
}

fn options() -> Options {
    let mut options = Options::from_env().unwrap();
    options.patience = options.patience.min(Duration::from_secs(60));
    options
}
