//! An HTTP server on this machine that behaves as a test asks.
#![cfg(feature = "download")]

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// What to answer.
#[derive(Clone)]
pub enum Answer {
    /// The file; ranges are served.
    File(Vec<u8>),
    /// The file; ranges are ignored.
    Whole(Vec<u8>),
    /// The promise of the file and its first bytes only.
    Cut(Vec<u8>, usize),
    /// The promise of the file, its first bytes, and silence.
    Silence(Vec<u8>, usize),
    /// A status without a body.
    Status(u16),
    /// The way to another address.
    Elsewhere(String),
}

/// Serves until the process ends; requests are noted as `path range`.
pub struct Server {
    pub url: String,
    pub log: Arc<Mutex<Vec<String>>>,
}

impl Server {
    /// Gives one answer after the other; the last again and again.
    pub fn new(answers: Vec<Answer>) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/data.bin", listener.local_addr().unwrap());
        let log = Arc::new(Mutex::new(Vec::new()));
        let notes = log.clone();
        std::thread::spawn(move || {
            for (i, stream) in listener.incoming().enumerate() {
                let answer = answers[i.min(answers.len() - 1)].clone();
                let notes = notes.clone();
                std::thread::spawn(move || drop(serve(stream.unwrap(), answer, &notes)));
            }
        });
        Server { url, log }
    }
}

fn serve(mut stream: TcpStream, answer: Answer, log: &Mutex<Vec<String>>) -> std::io::Result<()> {
    let mut lines = BufReader::new(stream.try_clone()?).lines();
    let path = lines.next().unwrap()?.split(' ').nth(1).unwrap_or_default().to_string();
    let mut range = String::new();
    for line in lines {
        let line = line?;
        if line.is_empty() {
            break;
        }
        if let Some(value) = line.to_lowercase().strip_prefix("range: ") {
            range = value.to_string();
        }
    }
    log.lock().unwrap().push(format!("{path} {range}"));
    let start: usize = range.strip_prefix("bytes=").and_then(|r| r.trim_end_matches('-').parse().ok()).unwrap_or(0);
    let close = "Connection: close\r\n\r\n";
    match answer {
        Answer::File(data) if start > 0 && start < data.len() => {
            let (rest, last, all) = (data.len() - start, data.len() - 1, data.len());
            let head = format!("Content-Length: {rest}\r\nContent-Range: bytes {start}-{last}/{all}\r\n{close}");
            stream.write_all(format!("HTTP/1.1 206 Partial Content\r\n{head}").as_bytes())?;
            stream.write_all(&data[start..])
        }
        Answer::File(data) if start >= data.len() && start > 0 => {
            stream.write_all(format!("HTTP/1.1 416 No\r\nContent-Length: 0\r\n{close}").as_bytes())
        }
        Answer::Status(code) => {
            stream.write_all(format!("HTTP/1.1 {code} Text\r\nContent-Length: 0\r\n{close}").as_bytes())
        }
        Answer::Elsewhere(url) => {
            let head = format!("HTTP/1.1 302 Found\r\nLocation: {url}\r\nContent-Length: 0\r\n{close}");
            stream.write_all(head.as_bytes())
        }
        Answer::File(data) | Answer::Whole(data) => send(&mut stream, &data, data.len()),
        Answer::Cut(data, n) => send(&mut stream, &data, n),
        Answer::Silence(data, n) => {
            send(&mut stream, &data, n)?;
            std::thread::sleep(std::time::Duration::from_secs(60));
            Ok(())
        }
    }
}

fn send(stream: &mut TcpStream, data: &[u8], n: usize) -> std::io::Result<()> {
    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", data.len());
    stream.write_all(head.as_bytes())?;
    stream.write_all(&data[..n])?;
    stream.flush()
}
