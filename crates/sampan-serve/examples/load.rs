//! Many requests for a server that runs: `load ADDRESS COMMAND …`; `scripts/serve_load.py` starts one and calls this.
//!
//! * `rate MODEL INPUT SHAPE CLIENTS SECONDS`: as many requests as are answered, one after the other from each client
//! * `shapes MODEL INPUT REQUESTS`: requests of random shapes, of three axes behind the rows, from four clients
//! * `flood MODEL INPUT SHAPE CLIENTS`: all clients at once, some of which must be refused
//! * `damaged MODEL INPUT SHAPE REQUESTS SEED`: requests with bytes changed; a server that still answers is all that counts

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// Numbers that follow from a seed.
struct Chance(u64);

impl Chance {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) as usize % n.max(1)
    }
}

/// A request with its values as bytes.
fn request(model: &str, input: &str, shape: &[usize]) -> Vec<u8> {
    let bytes = shape.iter().product::<usize>() * 4;
    let dims = shape.iter().map(usize::to_string).collect::<Vec<_>>().join(",");
    let head = format!(
        r#"{{"inputs":[{{"name":"{input}","datatype":"FP32","shape":[{dims}],"parameters":{{"binary_data_size":{bytes}}}}}],"parameters":{{"binary_data_output":true}}}}"#
    );
    let mut all = format!(
        "POST /v2/models/{model}/infer HTTP/1.1\r\nHost: x\r\nInference-Header-Content-Length: {}\r\nContent-Length: {}\r\n\r\n{head}",
        head.len(),
        head.len() + bytes
    )
    .into_bytes();
    let values = (0..bytes / 4).flat_map(|i| ((i % 97) as f32 / 97.0).to_le_bytes());
    all.extend(values);
    all
}

/// One client, which keeps its connection.
struct Client(TcpStream, Vec<u8>);

impl Client {
    fn new(address: &str) -> Client {
        let stream = TcpStream::connect(address).expect("the server listens");
        stream.set_nodelay(true).expect("a socket");
        stream.set_read_timeout(Some(Duration::from_secs(60))).expect("a socket");
        Client(stream, vec![0; 1 << 16])
    }

    /// The status of the answer.
    fn ask(&mut self, request: &[u8]) -> std::io::Result<u16> {
        self.0.write_all(request)?;
        let mut got = 0;
        loop {
            if got == self.1.len() {
                self.1.resize(got * 2, 0);
            }
            let n = self.0.read(&mut self.1[got..])?;
            if n == 0 {
                return Err(std::io::ErrorKind::UnexpectedEof.into());
            }
            got += n;
            let Some(end) = self.1[..got].windows(4).position(|w| w == b"\r\n\r\n") else { continue };
            let head = String::from_utf8_lossy(&self.1[..end]).to_lowercase();
            let length = head.split("content-length:").nth(1).and_then(|rest| rest.split('\r').next());
            let length: usize = length.and_then(|n| n.trim().parse().ok()).unwrap_or(0);
            if got >= end + 4 + length {
                return Ok(head.split(' ').nth(1).and_then(|s| s.parse().ok()).unwrap_or(0));
            }
        }
    }
}

fn milliseconds(mut times: Vec<Duration>) -> String {
    times.sort();
    let at = |share: f64| times.get(((times.len() as f64 * share) as usize).min(times.len().saturating_sub(1)));
    let ms = |d: Option<&Duration>| d.map_or(0.0, |d| d.as_secs_f64() * 1e3);
    format!("p50 {:.2} ms, p99 {:.2} ms, the longest {:.2} ms", ms(at(0.5)), ms(at(0.99)), ms(times.last()))
}

fn rate(address: &str, request: &[u8], clients: usize, seconds: f64) {
    let times = Mutex::new(Vec::new());
    let begin = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..clients {
            scope.spawn(|| {
                let (mut client, mut own) = (Client::new(address), Vec::new());
                while begin.elapsed().as_secs_f64() < seconds {
                    let since = Instant::now();
                    assert_eq!(client.ask(request).expect("an answer"), 200);
                    own.push(since.elapsed());
                }
                times.lock().unwrap().extend(own);
            });
        }
    });
    let took = begin.elapsed().as_secs_f64();
    let times = times.into_inner().unwrap();
    println!("{:.0} requests a second; {}", times.len() as f64 / took, milliseconds(times));
}

fn shapes(address: &str, model: &str, input: &str, requests: usize) {
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for k in 0..4 {
            let next = &next;
            scope.spawn(move || {
                let (mut client, mut chance) = (Client::new(address), Chance(k));
                while next.fetch_add(1, Relaxed) < requests {
                    let mut side = || 1 + chance.below(24);
                    let shape = [1 + side() % 4, 3, side(), side()];
                    assert_eq!(client.ask(&request(model, input, &shape)).expect("an answer"), 200, "{shape:?}");
                }
            });
        }
    });
    println!("{requests} requests of random shapes were answered");
}

fn flood(address: &str, request: &[u8], clients: usize) {
    let (answers, refusals) = (Mutex::new(Vec::new()), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..clients {
            scope.spawn(|| {
                let mut client = Client::new(address);
                for _ in 0..4 {
                    let since = Instant::now();
                    match client.ask(request).expect("an answer") {
                        200 => answers.lock().unwrap().push(since.elapsed()),
                        429 | 503 => refusals.lock().unwrap().push(since.elapsed()),
                        other => panic!("status {other}"),
                    }
                }
            });
        }
    });
    let (answers, refusals) = (answers.into_inner().unwrap(), refusals.into_inner().unwrap());
    println!("{} answers: {}", answers.len(), milliseconds(answers));
    println!("{} refusals: {}", refusals.len(), milliseconds(refusals));
}

/// A few bytes changed, removed, doubled or cut off.
fn damaged(good: &[u8], chance: &mut Chance) -> Vec<u8> {
    let mut out = good.to_vec();
    for _ in 0..1 + chance.below(5) {
        if out.is_empty() {
            break;
        }
        // Most of it where the words are, not the values.
        let reach = if chance.below(4) == 0 { out.len() } else { out.len().min(400) };
        let at = chance.below(reach);
        let end = (at + 1 + chance.below(12)).min(out.len());
        match chance.below(7) {
            0 => out[at] = chance.below(256) as u8,
            1 => out[at] ^= 1 << chance.below(8),
            2 => drop(out.drain(at..end)),
            3 => {
                let part = out[at..end].to_vec();
                out.splice(at..at, part);
            }
            4 => out.truncate(at + 1),
            5 => out[at] = b"0123456789-[]{}\",:\r\n"[chance.below(20)],
            _ => {
                let word: &[u8] =
                    [&b"18446744073709551615"[..], b"-1", b"1e308", b"null", b"\r\n\r\n", b"[[["][chance.below(6)];
                out.splice(at..end, word.iter().copied());
            }
        }
    }
    out
}

fn mutated(address: &str, good: &[u8], requests: usize, seed: u64) {
    let (next, statuses) = (AtomicUsize::new(0), Mutex::new(std::collections::BTreeMap::<u16, usize>::new()));
    std::thread::scope(|scope| {
        for k in 0..4 {
            let (next, statuses) = (&next, &statuses);
            scope.spawn(move || {
                let mut chance = Chance(seed * 4 + k);
                let mut answer = Vec::new();
                loop {
                    let count = next.fetch_add(1, Relaxed);
                    if count >= requests {
                        break;
                    }
                    let mut stream = TcpStream::connect(address).expect("the server listens");
                    stream.set_read_timeout(Some(Duration::from_secs(30))).expect("a socket");
                    // A server that has heard enough may close before all is said.
                    let _ = stream.write_all(&damaged(good, &mut chance));
                    let _ = stream.shutdown(Shutdown::Write);
                    answer.clear();
                    let since = Instant::now();
                    let _ = stream.read_to_end(&mut answer);
                    assert!(since.elapsed() < Duration::from_secs(20), "request {count} of seed {seed} waits");
                    let words = String::from_utf8_lossy(&answer);
                    let status = words.split(' ').nth(1).and_then(|s| s.parse().ok()).unwrap_or(0);
                    *statuses.lock().unwrap().entry(status).or_default() += 1;
                    if count % 10_000 == 0 {
                        assert_eq!(Client::new(address).ask(good).expect("an answer"), 200);
                    }
                }
            });
        }
    });
    assert_eq!(Client::new(address).ask(good).expect("an answer"), 200);
    println!("{requests} damaged requests, by status (0: closed): {:?}", statuses.into_inner().unwrap());
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let number = |word: &str| word.parse::<f64>().unwrap_or_else(|_| panic!("{word} is no number"));
    let shape = |word: &str| word.split(',').map(|n| number(n) as usize).collect::<Vec<_>>();
    match words[..] {
        [address, "rate", model, input, dims, clients, seconds] => {
            rate(address, &request(model, input, &shape(dims)), number(clients) as usize, number(seconds));
        }
        [address, "shapes", model, input, requests] => shapes(address, model, input, number(requests) as usize),
        [address, "flood", model, input, dims, clients] => {
            flood(address, &request(model, input, &shape(dims)), number(clients) as usize);
        }
        [address, "damaged", model, input, dims, requests, seed] => {
            mutated(address, &request(model, input, &shape(dims)), number(requests) as usize, number(seed) as u64);
        }
        _ => {
            eprintln!("load ADDRESS rate|shapes|flood|damaged …; the beginning of examples/load.rs says what follows");
            std::process::exit(2);
        }
    }
}
