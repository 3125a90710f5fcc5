//! A process that is killed, stopped, or never comes: an error everywhere, in time.

use crate::collectives::has_gloo;
use crate::processes::{start, start_some};
use sampan_core::{DType, Tensor};
use sampan_dist::{Job, ReduceOp, Secret, Store};
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::process::Command;
use std::time::{Duration, Instant};

/// Reduces until something goes wrong, and says what.
pub fn reduce_until_told(job: &Job) -> String {
    let group = job.everybody();
    let t = Tensor::zeros([100_000], DType::Float32);
    println!("READY");
    loop {
        if let Err(e) = group.all_reduce(&t, ReduceOp::Sum) {
            return e.to_string();
        }
    }
}

/// Starts three processes, does something to rank 1 while they work, and hears what the others say, and when.
fn disturb(engine: &str, signal: &str, timeout: &str) -> (Vec<String>, Duration) {
    let mut team = start("reduce_until_told", 3, engine, &[("SAMPAN_TIMEOUT", timeout)]);
    let mut lines = Vec::new();
    for child in &mut team.children {
        let mut reader = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        while !line.contains("READY") {
            line.clear();
            assert!(reader.read_line(&mut line).unwrap() > 0, "a process ended early");
        }
        lines.push(reader.lines());
    }
    std::thread::sleep(Duration::from_millis(100));
    let victim = team.children[1].id().to_string();
    let since = Instant::now();
    assert!(Command::new("kill").args([signal, &victim]).status().unwrap().success());
    let mut said = Vec::new();
    for rank in [0, 2] {
        let told = lines[rank].find_map(|line| line.unwrap().strip_prefix("SAID ").map(String::from));
        said.push(told.expect("a survivor says why it stopped"));
    }
    let after = since.elapsed();
    assert!(Command::new("kill").args(["-KILL", &victim]).status().is_ok());
    team.children.iter_mut().for_each(|c| drop(c.wait()));
    (said, after)
}

#[test]
fn a_killed_process_is_noticed_at_once() {
    for engine in ["shared_memory", "tcp"] {
        let (said, after) = disturb(engine, "-KILL", "60");
        assert!(said.iter().all(|s| s.contains("rank 1")), "{said:?}");
        assert!(after < Duration::from_secs(2), "{engine}: {after:?}");
    }
}

#[test]
fn a_stopped_process_is_noticed_at_the_timeout() {
    for engine in ["shared_memory", "tcp"] {
        let (said, after) = disturb(engine, "-STOP", "1");
        assert!(said.iter().all(|s| s.contains("has not come within 1.0 s") || s.contains("rank")), "{said:?}");
        assert!(after > Duration::from_millis(900) && after < Duration::from_secs(4), "{engine}: {after:?}");
    }
}

/// Gloo knows addresses, not ranks.
#[test]
fn a_lost_process_is_noticed_by_gloo() {
    if !has_gloo() {
        return;
    }
    let (said, after) = disturb("gloo", "-KILL", "60");
    assert!(said.iter().all(|s| s.contains("Gloo's")) && after < Duration::from_secs(2), "{said:?} after {after:?}");
    let (said, after) = disturb("gloo", "-STOP", "1");
    assert!(said.iter().all(|s| s.contains("Gloo's")), "{said:?}");
    assert!(after > Duration::from_millis(900) && after < Duration::from_secs(5), "{after:?}");
}

#[test]
fn a_process_that_never_comes_is_named() {
    let team = start_some("reduce_until_told", 3, [0, 2].into_iter(), "auto", &[("SAMPAN_PATIENCE", "1")]);
    for said in team.join() {
        assert!(said.contains("rank 1 of 3 has not come in time"), "{said}");
    }
}

#[test]
fn strangers_at_the_door_of_a_process_harm_nobody() {
    let mut team = start_some("which", 3, [0, 1].into_iter(), "tcp", &[]);
    let limit = Duration::from_secs(20);
    let store = Store::connect(&team.address, Secret::new(team.word.clone()), limit).unwrap();
    let group = store.within("job-0/group0", limit).unwrap();
    // As if the third had come already: the two open their doors and wait for its address.
    group.set("machines/2", &group.get("machines/0", limit).unwrap()).unwrap();
    let mut kept = Vec::new();
    for rank in 0..2 {
        let address = String::from_utf8(group.get(&format!("addresses/{rank}"), limit).unwrap()).unwrap();
        let huge = [&b"sampan1\n"[..], &[0xff; 84]].concat();
        for bytes in [&[0xff; 4096][..], b"GET / HTTP/1.1\r\n\r\n", &huge, b""] {
            for _ in 0..10 {
                let mut stranger = TcpStream::connect(&address).unwrap();
                let _ = stranger.write_all(bytes);
                kept.push(stranger);
            }
        }
    }
    team.start_one(2);
    assert_eq!(team.join(), ["tcp: it was asked for"; 3]);
}

#[test]
fn nobody_keeps_the_store() {
    let team = start_some(
        "reduce_until_told",
        2,
        [1].into_iter(),
        "auto",
        &[("SAMPAN_PATIENCE", "0.5"), ("SAMPAN_STORE", "127.0.0.1:1")],
    );
    let said = team.join();
    assert!(said[0].contains("127.0.0.1:1 cannot be reached"), "{said:?}");
}
