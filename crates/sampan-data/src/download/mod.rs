//! Files from the network, kept in a cache.

#[cfg(feature = "download")]
mod progress;
mod transfer;

use crate::files::file_error;
use md5::{Digest, Md5};
use sampan_core::error::Kind;
use sampan_core::{Error, Result};
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Where sampan keeps what it downloads: `SAMPAN_HOME`, or `~/.cache/sampan`.
pub fn home() -> PathBuf {
    let variable = |name| std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
    variable("SAMPAN_HOME").unwrap_or_else(|| {
        let user = variable("HOME").or_else(|| variable("USERPROFILE")).unwrap_or_else(std::env::temp_dir);
        user.join(".cache").join("sampan")
    })
}

/// Where data sets lie: the folder `dataset` of [`home`].
pub fn data_home() -> PathBuf {
    home().join("dataset")
}

/// The path of the file behind `url` in `root_dir`, downloaded if it is not there or its md5 sum differs.
pub fn get_path_from_url(url: &str, root_dir: impl Into<PathBuf>, md5sum: Option<&str>) -> Result<PathBuf> {
    let mut download = Download::new([url]).folder(root_dir);
    if let Some(md5) = md5sum {
        download = download.md5(md5);
    }
    download.fetch()
}

/// The path of a file of weights in `weights` of [`home`], downloaded if need be.
pub fn get_weights_path_from_url(url: &str, md5sum: Option<&str>) -> Result<PathBuf> {
    get_path_from_url(url, home().join("weights"), md5sum)
}

/// The md5 sum of a file in hexadecimal digits.
///
/// ```
/// # use sampan_data::download::md5_of;
/// # let path = std::env::temp_dir().join(format!("sampan-md5-{}", std::process::id()));
/// std::fs::write(&path, b"hello")?;
/// assert_eq!(md5_of(&path)?, "5d41402abc4b2a76b9719d911017c592");
/// # std::fs::remove_file(&path)?;
/// # Ok::<(), sampan_core::Error>(())
/// ```
pub fn md5_of(path: &Path) -> Result<String> {
    let sum = || -> std::io::Result<String> {
        let mut file = File::open(path)?;
        let (mut sum, mut buffer) = (Md5::new(), vec![0; 1 << 16]);
        loop {
            match file.read(&mut buffer)? {
                0 => return Ok(sum.finalize().iter().map(|b| format!("{b:02x}")).collect()),
                n => sum.update(&buffer[..n]),
            }
        }
    };
    sum().map_err(|e| file_error(path, e))
}

/// A file to be downloaded, from one of several places.
///
/// It is written beside and renamed when it is whole and its md5 sum is right; a download that was cut off goes on where
/// it ended; a second process waits for the first.
///
/// ```no_run
/// # use sampan_data::download::Download;
/// let path = Download::new(["https://example.org/data.bin", "https://mirror.example.org/data.bin"])
///     .md5("0123456789abcdef0123456789abcdef")
///     .folder("downloads")
///     .fetch()?;
/// # Ok::<(), sampan_core::Error>(())
/// ```
#[derive(Clone, Debug)]
#[must_use = "call fetch()"]
pub struct Download {
    urls: Vec<String>,
    md5: Option<String>,
    folder: Option<PathBuf>,
    file_name: Option<String>,
    attempts: usize,
    timeout: Duration,
    quiet: bool,
}

impl Download {
    /// The same file from any of `urls`, which are tried in turn.
    pub fn new<S: Into<String>>(urls: impl IntoIterator<Item = S>) -> Download {
        Download {
            urls: urls.into_iter().map(Into::into).collect(),
            md5: None,
            folder: None,
            file_name: None,
            attempts: 3,
            timeout: Duration::from_secs(30),
            quiet: false,
        }
    }

    /// The md5 sum that the file must have.
    pub fn md5(mut self, md5: impl Into<String>) -> Self {
        self.md5 = Some(md5.into().to_lowercase());
        self
    }

    /// Where the file goes ([`data_home`]).
    pub fn folder(mut self, folder: impl Into<PathBuf>) -> Self {
        self.folder = Some(folder.into());
        self
    }

    /// What it is called there (the last part of the address).
    pub fn file_name(mut self, name: impl Into<String>) -> Self {
        self.file_name = Some(name.into());
        self
    }

    /// How often each address is tried (3).
    pub fn attempts(mut self, attempts: usize) -> Self {
        self.attempts = attempts.max(1);
        self
    }

    /// How long to wait for a connection or for the next bytes (30 s).
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Print nothing.
    pub fn quiet(mut self, quiet: bool) -> Self {
        self.quiet = quiet;
        self
    }

    fn say(&self, text: std::fmt::Arguments) {
        if !self.quiet {
            eprintln!("{text}");
        }
    }

    /// The path of the file: it is there already, or it is downloaded.
    pub fn fetch(&self) -> Result<PathBuf> {
        let path = self.path().map_err(|e| e.in_op("download"))?;
        if self.is_right(&path)? {
            self.say(format_args!("using {}", path.display()));
            return Ok(path);
        }
        let folder = path.parent().expect("a file lies in a folder");
        fs::create_dir_all(folder).map_err(|e| file_error(folder, e))?;
        let lock_path = beside(&path, ".lock");
        let lock = File::create(&lock_path).map_err(|e| file_error(&lock_path, e))?;
        if lock.try_lock().is_err() {
            self.say(format_args!("waiting for another process to download {}", path.display()));
            lock.lock().map_err(|e| file_error(&lock_path, e))?;
        }
        // Another process may have been at work until now.
        if !self.is_right(&path)? {
            self.download(&path)?;
        }
        Ok(path)
    }

    /// Where the file belongs.
    fn path(&self) -> Result<PathBuf> {
        let first = self.urls.first().ok_or_else(|| Error::invalid("expected at least one address"))?;
        let name = match &self.file_name {
            Some(name) => name.as_str(),
            None => first.split(['?', '#']).next().unwrap_or(first).rsplit('/').next().unwrap_or_default(),
        };
        if name.is_empty() || name.contains(['/', '\\']) || name == "." || name == ".." {
            return Err(Error::invalid("the file needs a plain name").received(format!("{name:?} from {first}")));
        }
        Ok(self.folder.clone().unwrap_or_else(data_home).join(name))
    }

    fn is_right(&self, path: &Path) -> Result<bool> {
        match &self.md5 {
            _ if !path.is_file() => Ok(false),
            None => Ok(true),
            Some(md5) => {
                let found = md5_of(path)?;
                if found != *md5 {
                    self.say(format_args!("{} has md5 sum {found}, expected {md5}", path.display()));
                }
                Ok(found == *md5)
            }
        }
    }

    fn download(&self, path: &Path) -> Result<()> {
        let part = beside(path, ".part");
        let mut failures = Vec::new();
        for url in &self.urls {
            for attempt in 1..=self.attempts {
                self.say(format_args!("downloading {url} to {}", path.display()));
                match self.attempt(url, &part, path) {
                    Ok(()) => return Ok(()),
                    Err(why) => {
                        self.say(format_args!("attempt {attempt} of {}: {}", self.attempts, why.text));
                        if !why.again || attempt == self.attempts {
                            failures.push(format!("{url}: {}", why.text));
                            break;
                        }
                    }
                }
            }
        }
        Err(self.not_found(path, &failures))
    }

    /// One try: the rest of the part that is there, the check, the new name.
    fn attempt(&self, url: &str, part: &Path, path: &Path) -> Result<(), transfer::Failure> {
        transfer::to_part(url, part, self.timeout, self.quiet)?;
        if let Some(md5) = &self.md5 {
            let found = md5_of(part)?;
            if found != *md5 {
                // What was there before may have been the wrong half: the next attempt starts over.
                let _ = fs::remove_file(part);
                return Err(transfer::Failure::again(format!("md5 sum {found}, expected {md5}")));
            }
        }
        fs::rename(part, path).map_err(|e| file_error(path, e))?;
        Ok(())
    }

    fn not_found(&self, path: &Path, failures: &[String]) -> Error {
        let md5 = self.md5.as_ref().map_or(String::new(), |md5| format!(" (md5 sum {md5})"));
        let state = if path.is_file() { "its md5 sum is wrong" } else { "it is not there" };
        Error::new(Kind::Unavailable, format!("looked for {}: {state}, and no address gives it", path.display()))
            .received(failures.join("; "))
            .hint(format!(
                "without a network, put the file by hand at {}{md5}, or set SAMPAN_HOME to a folder with a cache; MNIST \
                 needs no download, it is bundled",
                path.display()
            ))
            .in_op("download")
    }
}

/// A path with something behind its name.
fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    name.into()
}
