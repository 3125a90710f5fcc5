//! A program in several processes, on one machine or many.

mod arguments;
mod children;
mod meeting;

pub use arguments::Launch;

use crate::secret::{self, Secret};
use crate::store::StoreServer;
use crate::wire;
use children::{Children, Ended};
use meeting::{Meeting, Roster, Stop};
use sampan_core::{Error, Result};
use std::net::{TcpListener, ToSocketAddrs};
use std::time::{Duration, Instant};

/// How often children and messages are looked at.
const LOOK: Duration = Duration::from_millis(20);
/// The exit code after Ctrl-C, as shells have it.
const INTERRUPTED: i32 = 130;

/// Where launchers meet: the address, and the store, if this one keeps it.
struct Place {
    address: String,
    _server: Option<StoreServer>,
    secret: Secret,
    /// To be handed on to the children, where it is not in the environment.
    word: Option<String>,
    keeper: bool,
}

impl Place {
    fn find(options: &Launch) -> Result<Place> {
        let mut secret = Secret::from_env()?;
        let mut word = None;
        let Some(master) = &options.master else {
            // One machine: nobody else needs to find it.
            if secret.is_empty() {
                let new = secret::token()?;
                (secret, word) = (Secret::new(new.clone()), Some(new));
            }
            let server = StoreServer::start("127.0.0.1:0", secret.clone())?;
            let address = wire::join("127.0.0.1", server.port());
            return Ok(Place { address, _server: Some(server), secret, word, keeper: true });
        };
        let bound = master.to_socket_addrs().map_err(|e| {
            Error::invalid(format!("--master {master}: {e}")).hint("--master takes host:port, the same on all machines")
        })?;
        // Whoever is at that address keeps the store; of several launchers of that machine, the first.
        let mine = options.node_rank.is_none_or(|r| r == 0) && bound.clone().any(|a| TcpListener::bind(a).is_ok());
        let server = if mine { StoreServer::start(master, secret.clone()).ok() } else { None };
        let keeper = server.is_some();
        Ok(Place { address: master.clone(), _server: server, secret, word, keeper })
    }
}

/// Runs the program to its end and gives its exit code. `interrupted` is asked often; when it says so, all ends.
pub fn launch(options: &Launch, interrupted: &dyn Fn() -> bool) -> Result<i32> {
    let place = Place::find(options)?;
    let mut meeting = Meeting::new(&place.address, place.secret.clone(), place.keeper, options)?;
    let mut failures = 0;
    loop {
        let Some(roster) = meeting.gather(interrupted)? else { return Ok(INTERRUPTED) };
        if options.max_nodes > 1 {
            eprintln!(
                "launch: {} machines with {} processes, round {}",
                roster.nodes.len(),
                roster.size(),
                roster.generation
            );
        }
        let outcome = run(options, &place, &meeting, &roster, interrupted)?;
        let code = match outcome {
            Outcome::Done => return Ok(0),
            Outcome::Interrupted => return Ok(INTERRUPTED),
            Outcome::Changed(why) => {
                eprintln!("launch: {why}; starting again");
                continue;
            }
            Outcome::Failed(code) => code,
        };
        failures += 1;
        if failures > options.max_restart {
            meeting.leave();
            return Ok(code);
        }
        eprintln!("launch: starting again, {failures} of {} times", options.max_restart);
    }
}

enum Outcome {
    Done,
    Interrupted,
    /// Machines came.
    Changed(String),
    Failed(i32),
}

/// One round: from the start of the children to their end.
fn run(
    options: &Launch,
    place: &Place,
    meeting: &Meeting<'_>,
    roster: &Roster,
    interrupted: &dyn Fn() -> bool,
) -> Result<Outcome> {
    let mut children = Children::start(options, roster, &place.address, place.word.as_deref())?;
    let watch = meeting.watch()?;
    let mut told_done = false;
    loop {
        if interrupted() {
            children.end();
            meeting.leave();
            return Ok(Outcome::Interrupted);
        }
        match watch.heard() {
            Some(Stop::Changed(why)) => {
                children.end();
                return Ok(Outcome::Changed(why));
            }
            Some(Stop::Failed(why)) => {
                children.end();
                eprintln!("launch: {why}");
                return Ok(Outcome::Failed(1));
            }
            Some(Stop::AllDone) => {
                meeting.part(roster);
                return Ok(Outcome::Done);
            }
            None => {}
        }
        match children.look() {
            Ended::No => {}
            Ended::Well if roster.nodes.len() == 1 => return Ok(Outcome::Done),
            Ended::Well if !told_done => {
                meeting.done(roster)?;
                told_done = true;
            }
            Ended::Well => {}
            Ended::Badly { code, report, summary } => {
                children.end();
                eprintln!("{report}");
                // Where the others cannot be reached they find out for themselves.
                if roster.nodes.len() > 1 {
                    let _ = meeting.stop(&format!("failed {summary}"));
                }
                return Ok(Outcome::Failed(code));
            }
        }
        std::thread::sleep(LOOK);
    }
}

/// Waits, but not longer than until `deadline`, and not after an interruption.
fn pause(deadline: Instant, interrupted: &dyn Fn() -> bool) -> bool {
    std::thread::sleep(LOOK.min(deadline.saturating_duration_since(Instant::now())));
    !interrupted()
}
