//! One request.

use sampan_core::Error;

/// Why a request failed, and whether trying again may help.
pub(super) struct Failure {
    pub text: String,
    pub again: bool,
}

impl Failure {
    pub fn again(text: impl Into<String>) -> Failure {
        Failure { text: text.into(), again: true }
    }

    pub fn for_good(text: impl Into<String>) -> Failure {
        Failure { text: text.into(), again: false }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        Failure::for_good(error.to_string())
    }
}

#[cfg(not(feature = "download"))]
pub(super) fn to_part(
    _url: &str,
    _part: &std::path::Path,
    _timeout: std::time::Duration,
    _quiet: bool,
) -> Result<(), Failure> {
    Err(Failure::for_good("sampan-data was built without its feature `download`"))
}

#[cfg(feature = "download")]
pub(super) use http::to_part;

#[cfg(feature = "download")]
mod http {
    use super::super::progress::Progress;
    use super::Failure;
    use crate::files::file_error;
    use std::fs::{File, OpenOptions};
    use std::io::{Read, Write};
    use std::path::Path;
    use std::sync::mpsc::{Receiver, sync_channel};
    use std::sync::{Arc, LazyLock};
    use std::time::Duration;
    use ureq::Agent;
    use ureq::tls::{Certificate, RootCerts, TlsConfig};

    /// The certificates that the system trusts.
    static ROOTS: LazyLock<Arc<Vec<Certificate<'static>>>> = LazyLock::new(|| {
        let found = rustls_native_certs::load_native_certs().certs;
        Arc::new(found.iter().map(|c| Certificate::from_der(c).to_owned()).collect())
    });

    /// Also for plain http, which may lead on to https.
    fn agent(timeout: Duration) -> Agent {
        let config = Agent::config_builder()
            .timeout_connect(Some(timeout))
            .timeout_recv_response(Some(timeout))
            .http_status_as_error(false);
        let crypto = Arc::new(rustls::crypto::ring::default_provider());
        let tls = TlsConfig::builder().unversioned_rustls_crypto_provider(crypto);
        config.tls_config(tls.root_certs(RootCerts::Specific(ROOTS.clone())).build()).build().into()
    }

    /// Fetches what is missing of `part`.
    pub fn to_part(url: &str, part: &Path, timeout: Duration, quiet: bool) -> Result<(), Failure> {
        let have = part.metadata().map_or(0, |m| m.len());
        let mut request = agent(timeout).get(url).header("Accept-Encoding", "identity");
        if have > 0 {
            request = request.header("Range", format!("bytes={have}-"));
        }
        let response = request.call().map_err(|e| Failure::again(e.to_string()))?;
        let header = |name: &str| response.headers().get(name).and_then(|v| v.to_str().ok()).map(str::to_owned);
        let status = response.status().as_u16();
        let start = match status {
            200 => 0,
            206 if header("content-range").is_some_and(|r| r.starts_with(&format!("bytes {have}-"))) => have,
            206 | 416 => {
                // The server holds another file than the one begun.
                let _ = std::fs::remove_file(part);
                return Err(Failure::again("the part that was there does not fit this file"));
            }
            _ => {
                let text = format!("the server answered {}", response.status());
                return Err(if status >= 500 { Failure::again(text) } else { Failure::for_good(text) });
            }
        };
        let total = header("content-length").and_then(|n| n.parse::<u64>().ok()).map(|n| start + n);
        let mut file = OpenOptions::new().create(true).append(true).open(part).map_err(|e| file_error(part, e))?;
        file.set_len(start).map_err(|e| file_error(part, e))?;
        let chunks = chunks(response.into_body().into_reader());
        let got = copy(&chunks, timeout, &mut file, part, start, total, quiet)?;
        match total {
            Some(total) if got != total => Err(Failure::again(format!("it ended after {got} of {total} bytes"))),
            _ => Ok(()),
        }
    }

    /// Reads on a thread of its own, so that a body that stands still can be given up.
    fn chunks(mut body: impl Read + Send + 'static) -> Receiver<std::io::Result<Vec<u8>>> {
        let (send, receive) = sync_channel(4);
        std::thread::spawn(move || {
            loop {
                let mut chunk = vec![0; 1 << 16];
                let read = body.read(&mut chunk).map(|n| {
                    chunk.truncate(n);
                    chunk
                });
                let last = read.as_ref().map_or(true, |chunk| chunk.is_empty());
                if send.send(read).is_err() || last {
                    return;
                }
            }
        });
        receive
    }

    /// Writes what comes and gives the size of the file. What came before an error stays for the next attempt.
    fn copy(
        chunks: &Receiver<std::io::Result<Vec<u8>>>,
        timeout: Duration,
        file: &mut File,
        path: &Path,
        start: u64,
        total: Option<u64>,
        quiet: bool,
    ) -> Result<u64, Failure> {
        let mut progress = Progress::new(start, total, quiet);
        let mut size = start;
        loop {
            let ended = |why: String| {
                let of = total.map_or(String::new(), |t| format!(" of {t}"));
                Failure::again(format!("it ended after {size}{of} bytes: {why}"))
            };
            let chunk = match chunks.recv_timeout(timeout) {
                Ok(read) => read.map_err(|e| ended(e.to_string()))?,
                Err(_) => return Err(ended(format!("nothing came for {} s", timeout.as_secs_f32()))),
            };
            if chunk.is_empty() {
                break;
            }
            file.write_all(&chunk).map_err(|e| file_error(path, e))?;
            size += chunk.len() as u64;
            progress.show(size);
        }
        file.sync_all().map_err(|e| file_error(path, e))?;
        progress.finish(size);
        Ok(size)
    }
}
