//! The store, with friends and strangers.

use sampan_dist::{Secret, Store, StoreServer};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

const SHORT: Duration = Duration::from_millis(200);

fn server() -> (StoreServer, String) {
    let server = StoreServer::start("127.0.0.1:0", Secret::new("word")).unwrap();
    let address = format!("127.0.0.1:{}", server.port());
    (server, address)
}

fn connect(address: &str) -> Store {
    Store::connect(address, Secret::new("word"), Duration::from_secs(5)).unwrap()
}

#[test]
fn values_are_set_waited_for_added_and_forgotten() {
    let (_server, address) = server();
    let (a, b) = (connect(&address), connect(&address).within("part", SHORT).unwrap());
    assert_eq!(a.try_get("x", SHORT).unwrap(), None);
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| b.get("x", Duration::from_secs(5)).unwrap());
        std::thread::sleep(Duration::from_millis(50));
        a.set("part/x", b"value").unwrap();
        assert_eq!(waiting.join().unwrap(), b"value");
    });
    assert_eq!((a.add("n", 2).unwrap(), a.add("n", -5).unwrap()), (2, -3));
    assert_eq!((a.propose("who", b"a").unwrap(), a.propose("who", b"b").unwrap()), (b"a".to_vec(), b"a".to_vec()));
    assert_eq!(a.changed("who", b"a", SHORT).unwrap(), None);
    assert_eq!(a.changed("who", b"b", SHORT).unwrap().unwrap(), b"a");
    b.set("y", b"").unwrap();
    assert_eq!(b.list("").unwrap(), ["x", "y"]);
    b.forget("").unwrap();
    assert_eq!(a.list("part").unwrap(), [""; 0]);
    let long = a.set(&"k".repeat(2000), b"").unwrap_err().to_string();
    assert!(long.contains("at most 1024"), "{long}");
}

#[test]
fn a_lost_connection_leaves_its_will() {
    let (_server, address) = server();
    let (watcher, dying, leaving) = (connect(&address), connect(&address), connect(&address));
    dying.will("lost", b"dying").unwrap();
    leaving.will("lost", b"leaving").unwrap();
    leaving.no_will().unwrap();
    drop(leaving);
    assert_eq!(watcher.try_get("lost", SHORT).unwrap(), None);
    drop(dying);
    assert_eq!(watcher.get("lost", Duration::from_secs(2)).unwrap(), b"dying");
}

#[test]
fn strangers_are_refused_and_harm_nobody() {
    let (_server, address) = server();
    let wrong = Store::connect(&address, Secret::new("another"), SHORT).err().unwrap().to_string();
    assert!(wrong.contains("different secrets") && wrong.contains("SAMPAN_SECRET"), "{wrong}");
    for bytes in [&[0xff; 4096][..], b"GET / HTTP/1.1\r\n\r\n", &[b's'; 92], b""] {
        let mut stranger = TcpStream::connect(&address).unwrap();
        let _ = stranger.write_all(bytes);
        stranger.set_read_timeout(Some(Duration::from_secs(8))).unwrap();
        let mut heard = Vec::new();
        if bytes.len() >= 92 {
            let _ = stranger.read_to_end(&mut heard);
            assert!(heard.len() <= 24, "a stranger was told {} bytes", heard.len());
        }
    }
    // A thousand silent ones keep nobody out.
    let _silent: Vec<_> = (0..200).map(|_| TcpStream::connect(&address).unwrap()).collect();
    let since = Instant::now();
    connect(&address).set("x", b"y").unwrap();
    assert!(since.elapsed() < Duration::from_secs(2));
}
