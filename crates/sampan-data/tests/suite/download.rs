use crate::archives::Folder;
use crate::server::{Answer, Server};
use sampan_data::download::{Download, md5_of};
use std::time::Duration;

fn data() -> Vec<u8> {
    (0..200_000u32).map(|i| (i * 7) as u8).collect()
}

fn md5(folder: &Folder, bytes: &[u8]) -> String {
    md5_of(&folder.write("sum", bytes)).unwrap()
}

fn from(urls: &[&str], folder: &Folder) -> Download {
    Download::new(urls.iter().copied()).folder(folder.path()).quiet(true).timeout(Duration::from_secs(10))
}

#[test]
fn a_file_is_downloaded_once() {
    let (folder, server) = (Folder::new(), Server::new(vec![Answer::File(data())]));
    assert_eq!(md5(&folder, b"hello"), "5d41402abc4b2a76b9719d911017c592");
    let download = from(&[&server.url], &folder).md5(md5(&folder, &data()));
    for _ in 0..2 {
        let path = download.fetch().unwrap();
        assert_eq!(path, folder.path().join("data.bin"));
        assert_eq!(std::fs::read(path).unwrap(), data());
    }
    assert_eq!(*server.log.lock().unwrap(), ["/data.bin "]);
    assert!(!folder.path().join("data.bin.part").exists());
}

#[test]
fn a_cut_download_goes_on_where_it_ended() {
    let (folder, server) = (Folder::new(), Server::new(vec![Answer::Cut(data(), 70_000), Answer::File(data())]));
    let path = from(&[&server.url], &folder).md5(md5(&folder, &data())).fetch().unwrap();
    assert_eq!(std::fs::read(path).unwrap(), data());
    assert_eq!(*server.log.lock().unwrap(), ["/data.bin ", "/data.bin bytes=70000-"]);
}

#[test]
fn a_server_without_ranges_starts_over() {
    let (folder, server) = (Folder::new(), Server::new(vec![Answer::Cut(data(), 70_000), Answer::Whole(data())]));
    let path = from(&[&server.url], &folder).fetch().unwrap();
    assert_eq!(std::fs::read(path).unwrap(), data());
}

#[test]
fn a_wrong_part_is_thrown_away() {
    let (folder, server) = (Folder::new(), Server::new(vec![Answer::File(data())]));
    let sum = md5(&folder, &data());
    for part in [vec![1; 500], vec![1; 300_000]] {
        folder.write("data.bin.part", &part);
        folder.write("data.bin", b"an old file with another sum");
        let path = from(&[&server.url], &folder).md5(sum.clone()).fetch().unwrap();
        assert_eq!(std::fs::read(path).unwrap(), data());
    }
}

#[test]
fn an_address_may_lead_to_another() {
    let folder = Folder::new();
    let good = Server::new(vec![Answer::File(data())]);
    let first = Server::new(vec![Answer::Elsewhere(good.url.clone())]);
    assert_eq!(std::fs::read(from(&[&first.url], &folder).fetch().unwrap()).unwrap(), data());
    // Nobody speaks TLS there: an error, as for any other server that cannot be reached.
    let secure = Server::new(vec![Answer::Elsewhere(good.url.replace("http:", "https:"))]);
    let nowhere = Server::new(vec![Answer::Elsewhere("gopher://".into())]);
    let circle = Server::new(vec![Answer::Elsewhere("/data.bin".into())]);
    for (i, url) in [&secure.url, &nowhere.url, &circle.url].into_iter().enumerate() {
        let failed = from(&[url], &folder).file_name(format!("other{i}")).attempts(1).fetch().unwrap_err();
        assert!(failed.to_string().contains("no address gives it"), "{failed}");
    }
}

#[test]
fn mirrors_are_tried_in_turn() {
    let folder = Folder::new();
    let (gone, good) = (Server::new(vec![Answer::Status(404)]), Server::new(vec![Answer::File(data())]));
    let wrong = Server::new(vec![Answer::File(vec![1; 10])]);
    let dead = "http://127.0.0.1:1/data.bin";
    let urls = [dead, &gone.url, &wrong.url, &good.url];
    let path = from(&urls, &folder).md5(md5(&folder, &data())).attempts(2).fetch().unwrap();
    assert_eq!(std::fs::read(path).unwrap(), data());
    assert_eq!(gone.log.lock().unwrap().len(), 1, "what is not there is asked for once");
    assert_eq!(wrong.log.lock().unwrap().len(), 2);
}

#[test]
fn failures_say_what_to_do() {
    let (folder, server) = (Folder::new(), Server::new(vec![Answer::File(vec![1; 10])]));
    let urls = ["http://127.0.0.1:1/data.bin", &server.url];
    let said = from(&urls, &folder).md5("00ff").attempts(1).fetch().err().unwrap().to_string();
    let path = folder.path().join("data.bin");
    for words in
        ["(Unavailable) download", urls[0], urls[1], "expected 00ff", "MNIST", "SAMPAN_HOME", path.to_str().unwrap()]
    {
        assert!(said.contains(words), "{words} in {said}");
    }
    assert!(!path.exists());
    assert!(Download::new(["http://127.0.0.1:1/"]).folder(folder.path()).fetch().is_err());
    assert!(Download::new([""; 0]).fetch().is_err());
}

#[test]
fn a_silent_server_is_given_up() {
    let (folder, server) = (Folder::new(), Server::new(vec![Answer::Silence(data(), 100)]));
    let download = from(&[&server.url], &folder).attempts(1).timeout(Duration::from_millis(300));
    let said = download.fetch().err().unwrap().to_string();
    assert!(said.contains("after 100 of 200000 bytes") && said.contains("nothing came"), "{said}");
}

#[test]
fn two_at_a_time_download_once() {
    let (folder, server) = (Folder::new(), Server::new(vec![Answer::File(data())]));
    let download = from(&[&server.url], &folder);
    std::thread::scope(|s| {
        for _ in 0..4 {
            s.spawn(|| download.fetch().unwrap());
        }
    });
    assert_eq!(server.log.lock().unwrap().len(), 1);
}
