//! The secret that lets a process join, and proofs of knowing it that do not show it.

use hmac::{Hmac, Mac};
use sampan_core::{Error, Result};
use sha2::Sha256;
use std::io::{self, Read};

/// The variable that holds the secret.
pub const VARIABLE: &str = "SAMPAN_SECRET";
/// The variable that names a file that holds it.
pub const FILE_VARIABLE: &str = "SAMPAN_SECRET_FILE";

/// Random bytes of the system.
pub fn random<const N: usize>() -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    std::fs::File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes)
}

/// A random word that nobody guesses.
pub fn token() -> io::Result<String> {
    Ok(random::<16>()?.iter().map(|b| format!("{b:02x}")).collect())
}

/// What all processes of a job know and nobody else.
#[derive(Clone)]
pub struct Secret(Vec<u8>);

impl Secret {
    /// A secret that is given; an empty one proves nothing.
    pub fn new(secret: impl Into<Vec<u8>>) -> Secret {
        Secret(secret.into())
    }

    /// The secret of the environment: `SAMPAN_SECRET`, or the file that `SAMPAN_SECRET_FILE` names; empty without either.
    pub fn from_env() -> Result<Secret> {
        if let Ok(secret) = std::env::var(VARIABLE) {
            return Ok(Secret::new(secret));
        }
        let Ok(path) = std::env::var(FILE_VARIABLE) else { return Ok(Secret::new("")) };
        match std::fs::read_to_string(&path) {
            Ok(text) if !text.trim().is_empty() => Ok(Secret::new(text.trim())),
            Ok(_) => Err(Error::invalid(format!("{FILE_VARIABLE} names {path:?}, which is empty"))),
            Err(e) => Err(Error::invalid(format!("{FILE_VARIABLE} names {path:?}, which cannot be read: {e}"))),
        }
    }

    /// Is there none?
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn mac(&self, parts: &[&[u8]]) -> Hmac<Sha256> {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.0).expect("a key of any length will do");
        parts.iter().for_each(|part| mac.update(part));
        mac
    }

    /// A proof of knowing the secret, for these bytes alone.
    pub fn proof(&self, parts: &[&[u8]]) -> [u8; 32] {
        self.mac(parts).finalize().into_bytes().into()
    }

    /// Is it such a proof? The answer takes as long for a wrong one.
    pub fn proves(&self, proof: &[u8; 32], parts: &[&[u8]]) -> bool {
        self.mac(parts).verify_slice(proof).is_ok()
    }
}
