//! Where a process is called by others of its job.

use crate::secret::Secret;
use crate::store::STRANGERS;
use crate::wire::{self, Introduction};
use sampan_core::Result;
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, mpsc};

/// Answers callers until it is dropped; strangers are refused, each on a thread of its own.
pub struct Door {
    /// Where it is.
    pub port: u16,
    host: String,
    open: Arc<()>,
}

/// Those who have proved to know the secret.
pub type Guests = mpsc::Receiver<(Introduction, TcpStream)>;

impl Door {
    /// Opens a door at any free port of an address.
    pub fn open(host: &str, secret: &Secret) -> Result<(Door, Guests)> {
        let listener = TcpListener::bind(wire::join(host, 0))?;
        let port = listener.local_addr()?.port();
        let (send, guests) = mpsc::channel();
        let open = Arc::new(());
        let (still, secret, strangers) = (Arc::downgrade(&open), secret.clone(), Arc::new(()));
        let accept = move || {
            for stream in listener.incoming() {
                if still.strong_count() == 0 {
                    return;
                }
                let Ok(stream) = stream else { continue };
                if Arc::strong_count(&strangers) > STRANGERS {
                    continue;
                }
                let (secret, send, stranger) = (secret.clone(), send.clone(), strangers.clone());
                let answer = move || {
                    let known = wire::answer(&stream, &secret);
                    drop(stranger);
                    if let Ok(who) = known {
                        let _ = send.send((who, stream));
                    }
                };
                let _ = std::thread::Builder::new().name("sampan-door".into()).spawn(answer);
            }
        };
        std::thread::Builder::new().name("sampan-door".into()).spawn(accept)?;
        Ok((Door { port, host: host.into(), open }, guests))
    }
}

impl Drop for Door {
    fn drop(&mut self) {
        self.open = Arc::new(());
        // A call wakes the one who waits for calls, and who then sees that nobody wants any.
        let _ = TcpStream::connect(wire::join(&self.host, self.port));
    }
}
