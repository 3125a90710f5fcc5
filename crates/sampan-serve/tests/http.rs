//! The server as programs use it: over a socket.

use sampan_core::ops::creation::eye;
use sampan_core::{DType, random};
use sampan_graph::{Spec, onnx, paddle, trace};
use sampan_nn::{Layer, Linear, ReLU, sequential};
use sampan_serve::{Options, Server};
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// A folder of its own that goes away.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Folder {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let name = format!("sampan-serve-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Saves `x · factor + 1` of four numbers.
fn save(prefix: &Path, factor: f32) {
    let w = eye(4, None).scale(factor);
    let spec = Spec::new([None, Some(4)], DType::Float32).named("x");
    let graph = trace(|x| Ok(vec![x[0].matmul(&w) + 1.0]), &[spec]).unwrap();
    paddle::save(&graph, prefix, &[]).unwrap();
}

struct Running {
    address: SocketAddr,
    stop: Option<tokio::sync::oneshot::Sender<()>>,
    thread: Option<std::thread::JoinHandle<std::io::Result<()>>>,
}

impl Running {
    fn new(options: Options) -> Running {
        let options = Options { address: ([127, 0, 0, 1], 0).into(), reload: Duration::from_millis(50), ..options };
        let server = Server::new(options, |_| {}).unwrap();
        let address = server.address().unwrap();
        let (stop, asked) = tokio::sync::oneshot::channel::<()>();
        let wait = async {
            let _ = asked.await;
        };
        let thread = std::thread::spawn(move || server.run(wait, |_| {}));
        Running { address, stop: Some(stop), thread: Some(thread) }
    }

    /// Sends bytes as they are; the answer, or nothing if the connection was closed.
    fn raw(&self, request: &[u8], more_may_come: bool) -> Vec<u8> {
        let mut stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        // A server that has heard enough may close before all is said.
        let _ = stream.write_all(request);
        if !more_may_come {
            let _ = stream.shutdown(std::net::Shutdown::Write);
        }
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        answer
    }

    /// Status, headers and body.
    fn ask(&self, method: &str, path: &str, headers: &str, body: &[u8]) -> (u16, String, Vec<u8>) {
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: {}\r\n{headers}\r\n",
            body.len()
        );
        let answer = self.raw(&[head.as_bytes(), body].concat(), true);
        let end = answer.windows(4).position(|w| w == b"\r\n\r\n").expect("an answer has a head");
        let head = String::from_utf8_lossy(&answer[..end]).to_lowercase();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        (status, head, answer[end + 4..].to_vec())
    }

    fn get(&self, path: &str) -> (u16, Value) {
        let (status, _, body) = self.ask("GET", path, "", b"");
        (status, serde_json::from_slice(&body).unwrap_or(Value::Null))
    }

    fn post(&self, path: &str, body: &Value) -> (u16, Value) {
        let (status, _, body) = self.ask("POST", path, "", body.to_string().as_bytes());
        (status, serde_json::from_slice(&body).unwrap_or(Value::Null))
    }

    fn infer(&self, model: &str, rows: usize, value: f32) -> (u16, Value) {
        let data = vec![value; 4 * rows];
        let input = json!({ "name": "x", "datatype": "FP32", "shape": [rows, 4], "data": data });
        self.post(&format!("/v2/models/{model}/infer"), &json!({ "id": "7", "inputs": [input] }))
    }

    fn wait_for(&self, path: &str, status: u16) {
        for _ in 0..200 {
            if self.get(path).0 == status {
                return;
            }
            std::thread::sleep(Duration::from_millis(25));
        }
        panic!("{path} is not {status}");
    }

    fn stop(mut self) -> std::io::Result<()> {
        let _ = self.stop.take().unwrap().send(());
        self.thread.take().unwrap().join().unwrap()
    }
}

#[test]
fn requests_and_answers() {
    let folder = Folder::new();
    save(&folder.0.join("double"), 2.0);
    save(&folder.0.join("many/1/net"), 3.0);
    save(&folder.0.join("many/20/net"), 5.0);
    let server = Running::new(Options::new(&folder.0));
    for path in ["/v2/health/live", "/v2/health/ready", "/v2/models/double/ready", "/v2/models/many/versions/1/ready"] {
        assert_eq!(server.get(path).0, 200, "{path}");
    }
    assert_eq!(server.get("/v2").1["name"], "sampan");
    let about = server.get("/v2/models/many").1;
    assert_eq!(about["versions"], json!(["1", "20"]));
    assert_eq!(about["inputs"], json!([{ "name": "x", "datatype": "FP32", "shape": [-1, 4] }]));
    let (status, answer) = server.infer("double", 2, 1.5);
    assert_eq!((status, &answer["id"], &answer["model_version"]), (200, &json!("7"), &json!("1")));
    let output = &answer["outputs"][0];
    assert_eq!((&output["shape"], &output["data"]), (&json!([2, 4]), &json!(vec![4.0; 8])));
    // The newest version, and one that is named.
    assert_eq!(server.infer("many", 1, 1.0).1["outputs"][0]["data"], json!(vec![6.0; 4]));
    assert_eq!(server.infer("many/versions/1", 1, 1.0).1["outputs"][0]["data"], json!(vec![4.0; 4]));
    assert_eq!(server.infer("none", 1, 1.0).0, 404);
    assert_eq!(server.get("/nowhere").0, 404);
    let index = server.post("/v2/repository/index", &json!({})).1;
    assert_eq!(index.as_array().unwrap().len(), 3);
    let (_, _, metrics) = server.ask("GET", "/metrics", "", b"");
    let metrics = String::from_utf8(metrics).unwrap();
    assert!(metrics.contains("sampan_requests_total{model=\"double\",version=\"1\"} 1"), "{metrics}");
    server.stop().unwrap();
}

#[test]
fn a_model_of_onnx() {
    let folder = Folder::new();
    save(&folder.0.join("net"), 2.0);
    let graph = paddle::load(folder.0.join("net")).unwrap();
    for end in ["pdmodel", "json", "pdiparams", "pdiparams.info"] {
        let _ = std::fs::remove_file(folder.0.join(format!("net.{end}")));
    }
    onnx::save(&graph, folder.0.join("net.onnx"), onnx::Options::default()).unwrap();
    let server = Running::new(Options::new(&folder.0));
    assert_eq!(server.get("/v2/models/net").1["platform"], "sampan_onnx");
    assert_eq!(server.infer("net", 1, 1.5).1["outputs"][0]["data"], json!(vec![4.0; 4]));
    server.stop().unwrap();
}

#[test]
fn binary_tensors() {
    let folder = Folder::new();
    save(&folder.0.join("net"), 2.0);
    let server = Running::new(Options::new(&folder.0));
    let input = json!({ "name": "x", "datatype": "FP32", "shape": [1, 4], "parameters": { "binary_data_size": 16 } });
    let output = json!({ "name": "output_0", "parameters": { "binary_data": true } });
    let text = json!({ "inputs": [input], "outputs": [output] }).to_string();
    let numbers: Vec<u8> = [1f32, 2.0, 3.0, 4.0].iter().flat_map(|v| v.to_le_bytes()).collect();
    let body = [text.as_bytes(), &numbers].concat();
    let headers = format!("Inference-Header-Content-Length: {}\r\n", text.len());
    let (status, head, answer) = server.ask("POST", "/v2/models/net/infer", &headers, &body);
    assert_eq!(status, 200, "{}", String::from_utf8_lossy(&answer));
    let at = head.find("inference-header-content-length: ").unwrap() + 33;
    let length: usize = head[at..].split("\r\n").next().unwrap().parse().unwrap();
    let described: Value = serde_json::from_slice(&answer[..length]).unwrap();
    assert_eq!(described["outputs"][0]["parameters"]["binary_data_size"], 16);
    let values: Vec<f32> = answer[length..].chunks(4).map(|b| f32::from_le_bytes(b.try_into().unwrap())).collect();
    assert_eq!(values, [3.0, 5.0, 7.0, 9.0]);
    server.stop().unwrap();
}

#[test]
fn what_is_wrong_is_said() {
    let folder = Folder::new();
    save(&folder.0.join("net"), 2.0);
    let server = Running::new(Options { max_body: 10_000, ..Options::new(&folder.0) });
    let input = |change: fn(&mut Value)| {
        let mut input = json!({ "name": "x", "datatype": "FP32", "shape": [1, 4], "data": [1, 2, 3, 4] });
        change(&mut input);
        json!({ "inputs": [input] })
    };
    let cases: Vec<(Value, &str)> = vec![
        (json!([]), "inputs"),
        (json!({ "inputs": [] }), "no value for the input `x`"),
        (input(|i| i["name"] = json!("y")), "`y` is no input"),
        (input(|i| i["datatype"] = json!("FP31")), "FP31"),
        (input(|i| i["datatype"] = json!("INT64")), "float32"),
        (input(|i| i["shape"] = json!([2, 4])), "needs 8 numbers"),
        (input(|i| i["shape"] = json!([1, 5])), "needs 5 numbers"),
        (input(|i| i["shape"] = json!([4])), "has shape [-1, 4], got [4]"),
        (input(|i| i["shape"] = json!([u64::MAX, u64::MAX])), "too large"),
        (input(|i| i["shape"] = json!([-1, 4])), "whole numbers"),
        (input(|i| i["data"] = json!(["a", 2, 3, 4])), "numbers"),
        (input(|i| i["data"] = json!({})), "numbers"),
        (input(|i| i["parameters"] = json!({ "binary_data_size": 16 })), "16 bytes are needed"),
        (json!({ "inputs": [], "outputs": [{ "name": 3 }] }), "an output has no name"),
    ];
    for (body, words) in cases {
        let (status, answer) = server.post("/v2/models/net/infer", &body);
        let message = answer["error"].as_str().unwrap_or_default();
        assert!(status == 400 && message.contains(words), "{body}: {status} {message}");
    }
    assert_eq!(server.ask("POST", "/v2/models/net/infer", "", &[b' '; 20_000]).0, 413);
    assert_eq!(server.ask("POST", "/v2/models/net/infer", "Inference-Header-Content-Length: 99\r\n", b"{}").0, 400);
    assert_eq!(server.ask("POST", "/v2/models/net/infer", "Inference-Header-Content-Length: x\r\n", b"{}").0, 400);
    assert_eq!(server.infer("net", 1, 1.0).0, 200);
    server.stop().unwrap();
}

/// Requests with changed, missing and added bytes: whatever they become, the server answers the next one.
#[test]
fn damaged_requests_do_no_harm() {
    let folder = Folder::new();
    save(&folder.0.join("net"), 2.0);
    let server = Running::new(Options { max_body: 100_000, ..Options::new(&folder.0) });
    let input = json!({ "name": "x", "datatype": "FP32", "shape": [1, 4], "data": [1.0, 2.0, 3.0, 4.0] });
    let body = json!({ "inputs": [input], "outputs": [{ "name": "output_0" }] }).to_string();
    let whole = format!(
        "POST /v2/models/net/infer HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    let mut state = 0x9E37_79B9_7F4A_7C15u64;
    let mut next = |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % below as u64) as usize
    };
    for _ in 0..1500 {
        let mut request = whole.clone().into_bytes();
        for _ in 0..1 + next(4) {
            let at = next(request.len());
            match next(4) {
                0 => request[at] = next(256) as u8,
                1 => drop(request.drain(at..(at + next(20)).min(request.len()))),
                2 => request.insert(at, b"0123456789[]{},:\"-eE"[next(20)]),
                _ => request.extend_from_within(at..),
            }
            if request.is_empty() {
                break;
            }
        }
        server.raw(&request, false);
    }
    assert_eq!(server.infer("net", 1, 1.5).1["outputs"][0]["data"], json!(vec![4.0; 4]));
    server.stop().unwrap();
}

#[test]
fn many_at_once_share_runs() {
    let folder = Folder::new();
    save(&folder.0.join("net"), 2.0);
    let server = Running::new(Options { max_delay: Duration::from_millis(20), ..Options::new(&folder.0) });
    std::thread::scope(|scope| {
        for client in 0..8 {
            let server = &server;
            scope.spawn(move || {
                for i in 0..20 {
                    let (rows, value) = (1 + (client + i) % 3, (client * 100 + i) as f32);
                    let (status, answer) = server.infer("net", rows, value);
                    assert_eq!(
                        (status, &answer["outputs"][0]["data"]),
                        (200, &json!(vec![2.0 * value + 1.0; 4 * rows]))
                    );
                }
            });
        }
    });
    let (_, _, metrics) = server.ask("GET", "/metrics", "", b"");
    let metrics = String::from_utf8(metrics).unwrap();
    let count = |name: &str| -> f64 {
        let line = metrics.lines().find(|l| l.starts_with(&format!("sampan_{name}{{"))).unwrap();
        line.split(' ').next_back().unwrap().parse().unwrap()
    };
    assert_eq!((count("requests_total"), count("waiting")), (160.0, 0.0));
    assert!(count("runs_total") < 150.0, "{} runs", count("runs_total"));
    server.stop().unwrap();
}

#[test]
fn what_is_too_much_is_refused_at_once() {
    random::seed(0);
    let folder = Folder::new();
    let net =
        sequential![Linear::new(512, 4096), ReLU::new(), Linear::new(4096, 4096), ReLU::new(), Linear::new(4096, 8)];
    let spec = Spec::new([None, Some(512)], DType::Float32).named("x");
    let graph = trace(|x| net.call_all(x), &[spec]).unwrap();
    paddle::save(&graph, folder.0.join("slow"), &[]).unwrap();
    let server = Running::new(Options { queue: 2, max_batch: 1, ..Options::new(&folder.0) });
    let rows = 1024;
    let numbers = vec![0u8; rows * 512 * 4];
    let input = json!({ "name": "x", "datatype": "FP32", "shape": [rows, 512], "parameters": { "binary_data_size": numbers.len() } });
    let text = json!({ "inputs": [input] }).to_string();
    let (body, headers) =
        ([text.as_bytes(), &numbers].concat(), format!("Inference-Header-Content-Length: {}\r\n", text.len()));
    let statuses: Vec<u16> = std::thread::scope(|scope| {
        let asked: Vec<_> =
            (0..24).map(|_| scope.spawn(|| server.ask("POST", "/v2/models/slow/infer", &headers, &body).0)).collect();
        asked.into_iter().map(|t| t.join().unwrap()).collect()
    });
    assert!(statuses.contains(&429) && statuses.contains(&200), "{statuses:?}");
    assert!(statuses.iter().all(|s| [200, 429].contains(s)), "{statuses:?}");
    server.stop().unwrap();
}

/// A refusal comes before the body was read, and reaches a caller who is still writing it.
#[test]
fn refusals_are_heard_by_who_still_writes() {
    let folder = Folder::new();
    save(&folder.0.join("net"), 2.0);
    let server = Running::new(Options { max_body: 3 << 20, ..Options::new(&folder.0) });
    for (model, bytes, status) in [("nobody", 3 << 20, 404), ("net", 6 << 20, 413)] {
        let (said, _, text) = server.ask("POST", &format!("/v2/models/{model}/infer"), "", &vec![b'x'; bytes]);
        assert_eq!(said, status, "{}", String::from_utf8_lossy(&text));
    }
    server.stop().unwrap();
}

/// A body may come in pieces of any length, cut anywhere.
#[test]
fn bodies_in_pieces() {
    let folder = Folder::new();
    save(&folder.0.join("net"), 2.0);
    let server = Running::new(Options::new(&folder.0));
    let rows = 700;
    let numbers = (0..rows * 4).flat_map(|i| (i as f32).to_le_bytes()).collect::<Vec<u8>>();
    let input = json!({ "name": "x", "datatype": "FP32", "shape": [rows, 4], "parameters": { "binary_data_size": numbers.len() } });
    let text = json!({ "inputs": [input], "parameters": { "binary_data_output": true } }).to_string();
    let body = [text.as_bytes(), &numbers].concat();
    let whole = server.ask(
        "POST",
        "/v2/models/net/infer",
        &format!("Inference-Header-Content-Length: {}\r\n", text.len()),
        &body,
    );
    assert_eq!(whole.0, 200);
    for size in [1000, 4096, 5001, 64] {
        let mut request = format!(
            "POST /v2/models/net/infer HTTP/1.1\r\nHost: x\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\
             Inference-Header-Content-Length: {}\r\n\r\n",
            text.len()
        )
        .into_bytes();
        for piece in body.chunks(size) {
            request.extend(format!("{:x}\r\n", piece.len()).into_bytes());
            request.extend(piece);
            request.extend(b"\r\n");
        }
        request.extend(b"0\r\n\r\n");
        let answer = server.raw(&request, true);
        assert!(answer.starts_with(b"HTTP/1.1 200") && answer.ends_with(&whole.2), "{size}");
    }
    server.stop().unwrap();
}

#[test]
fn folders_that_change() {
    let folder = Folder::new();
    save(&folder.0.join("net/1/net"), 2.0);
    let server = Running::new(Options::new(&folder.0));
    assert_eq!(server.infer("net", 1, 1.0).1["outputs"][0]["data"], json!(vec![3.0; 4]));
    // Beside it first, so that nobody sees half of it.
    save(&folder.0.join("new/net"), 9.0);
    std::fs::rename(folder.0.join("new"), folder.0.join("net/2")).unwrap();
    server.wait_for("/v2/models/net/versions/2/ready", 200);
    assert_eq!(server.infer("net", 1, 1.0).1["outputs"][0]["data"], json!(vec![10.0; 4]));
    // One that cannot be read does not take the others away.
    std::fs::create_dir_all(folder.0.join("net/3")).unwrap();
    std::fs::write(folder.0.join("net/3/net.pdmodel"), b"nothing").unwrap();
    std::fs::write(folder.0.join("net/3/net.pdiparams"), b"nothing").unwrap();
    std::thread::sleep(Duration::from_millis(200));
    assert_eq!(server.infer("net", 1, 1.0).1["model_version"], "2");
    let index = server.post("/v2/repository/index", &json!({})).1;
    assert!(index.as_array().unwrap().iter().any(|m| m["state"] == "UNAVAILABLE" && m["reason"] != ""), "{index}");
    std::fs::remove_dir_all(folder.0.join("net/2")).unwrap();
    server.wait_for("/v2/models/net/versions/2/ready", 404);
    assert_eq!(server.infer("net", 1, 1.0).1["outputs"][0]["data"], json!(vec![3.0; 4]));
    server.stop().unwrap();
}

#[test]
fn pages() {
    let folder = Folder::new();
    std::fs::create_dir_all(folder.0.join("models")).unwrap();
    std::fs::create_dir_all(folder.0.join("pages")).unwrap();
    std::fs::write(folder.0.join("pages/index.html"), "hello").unwrap();
    std::fs::write(folder.0.join("secret"), "no").unwrap();
    let server = Running::new(Options { pages: Some(folder.0.join("pages")), ..Options::new(folder.0.join("models")) });
    assert_eq!(server.ask("GET", "/", "", b"").2, b"hello");
    for path in ["/../secret", "/..%2fsecret", "/./../secret", "//etc/passwd", "/none.html"] {
        assert_eq!(server.ask("GET", path, "", b"").0, 404, "{path}");
    }
    server.stop().unwrap();
}
