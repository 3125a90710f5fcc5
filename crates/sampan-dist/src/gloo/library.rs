//! The shim in front of Gloo: a small C++ file, compiled against the Gloo of this machine when it is first asked for, and kept.

use crate::wire::unavailable;
use libloading::Library;
use sampan_core::{Error, Result};
use std::ffi::{c_char, c_int, c_void};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

const SOURCE: &str = include_str!("shim.cc");
/// A shim that was compiled elsewhere.
const PATH: &str = "SAMPAN_GLOO_LIBRARY";

/// A communicator of the shim.
pub type Handle = *mut c_void;

/// Where the shim finds names and values.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Table {
    pub table: *mut c_void,
    pub set: unsafe extern "C" fn(*mut c_void, *const c_char, *const u8, usize) -> c_int,
    pub get: unsafe extern "C" fn(*mut c_void, *const c_char, u64, *mut c_void, Take) -> c_int,
}

/// Adds the others' shares of a piece to this process's own.
pub type Sum = unsafe extern "C" fn(*mut c_void, *const u8, *mut u8, usize);

/// What a found value is given to.
pub type Take = unsafe extern "C" fn(*mut c_void, *const u8, usize);

macro_rules! functions {
    ($($field:ident = $symbol:literal: fn($($arg:ty),*);)*) => {
        /// What the shim does. The last two arguments of each are a place for the reason of a failure.
        pub struct Functions {
            $(pub $field: unsafe extern "C" fn($($arg,)* *mut c_char, usize) -> c_int,)*
            pub free: unsafe extern "C" fn(Handle),
        }

        impl Functions {
            fn load(path: &Path) -> Result<Functions> {
                // SAFETY: the initialisers of Gloo may be run at any time.
                let library = unsafe { Library::new(path) }.map_err(|e| unavailable(e.to_string()))?;
                let library: &'static Library = Box::leak(Box::new(library));
                let missing = |name: &str| unavailable(format!("{} has no {name}", path.display()));
                Ok(Functions {
                    $($field: {
                        // SAFETY: the signature is the one in shim.cc.
                        let symbol = unsafe {
                            library.get::<unsafe extern "C" fn($($arg,)* *mut c_char, usize) -> c_int>($symbol)
                        };
                        *symbol.map_err(|_| missing($symbol))?
                    },)*
                    free: {
                        // SAFETY: as above.
                        let symbol = unsafe { library.get::<unsafe extern "C" fn(Handle)>("sampan_gloo_free") };
                        *symbol.map_err(|_| missing("sampan_gloo_free"))?
                    },
                })
            }
        }
    };
}

functions! {
    connect = "sampan_gloo_connect": fn(*mut Handle, *const c_char, c_int, c_int, u64, u64, Table);
    close = "sampan_gloo_close": fn(Handle);
    barrier = "sampan_gloo_barrier": fn(Handle, u32);
    broadcast = "sampan_gloo_broadcast": fn(Handle, u32, c_int, *mut u8, usize);
    gather = "sampan_gloo_gather": fn(Handle, u32, *const u8, *mut u8, *const usize);
    exchange = "sampan_gloo_exchange": fn(Handle, u32, *const u8, *const i64, *mut u8, *const i64);
    reduce = "sampan_gloo_reduce": fn(Handle, u32, *mut u8, usize, usize, *mut u8, *mut c_void, Sum);
    send = "sampan_gloo_send": fn(Handle, c_int, *const u8, usize);
    recv = "sampan_gloo_recv": fn(Handle, c_int, *mut u8, usize);
}

/// Calls a function of the shim with a place for the reason of a failure.
pub fn check(what: &str, call: impl FnOnce(*mut c_char, usize) -> c_int) -> Result<()> {
    let mut why = [0u8; 512];
    if call(why.as_mut_ptr().cast(), why.len()) == 0 {
        return Ok(());
    }
    let text = String::from_utf8_lossy(why.split(|b| *b == 0).next().unwrap_or_default()).into_owned();
    // Gloo begins with the place in its sources.
    let text = text.split_once("] ").filter(|(place, _)| place.starts_with('[')).map_or(text.as_str(), |(_, t)| t);
    Err(unavailable(format!("Gloo's {what}: {text}")))
}

/// The user's cache, which nobody else may write.
fn folder() -> Option<PathBuf> {
    let set = |name: &str| std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
    let cache = set("XDG_CACHE_HOME").or_else(|| Some(set("HOME")?.join(".cache")))?;
    Some(cache.join("sampan").join("gloo"))
}

/// Compiles the shim, beside its place first: several processes may be at it.
fn compile(file: &Path) -> Result<()> {
    let folder = file.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(folder)?;
    let beside = |ending: &str| file.with_extension(format!("{}.{ending}", std::process::id()));
    let (source, made) = (beside("cc"), beside("so"));
    std::fs::write(&source, SOURCE)?;
    let compiler = std::env::var("CXX").unwrap_or_else(|_| "c++".into());
    let flags = std::env::var("CXXFLAGS").unwrap_or_default();
    let ran = Command::new(&compiler)
        .args(["-std=c++17", "-O2", "-shared", "-fPIC"])
        .args(flags.split_whitespace())
        .arg("-o")
        .args([&made, &source])
        .arg("-lgloo")
        .output();
    let _ = std::fs::remove_file(&source);
    let hint = format!(
        "on Debian: apt-get install libgloo-dev g++; elsewhere CXX and CXXFLAGS say how to compile against Gloo, or \
         {PATH} names a shim that was compiled on another machine"
    );
    let out = ran.map_err(|e| unavailable(format!("the compiler {compiler:?} cannot be run: {e}")).hint(&hint))?;
    if !out.status.success() {
        let text = String::from_utf8_lossy(&out.stderr).into_owned();
        let line = text.lines().find(|l| l.contains("error") || l.contains("cannot find")).unwrap_or("it failed");
        return Err(unavailable(format!("{compiler} could not compile the shim for Gloo: {}", line.trim())).hint(hint));
    }
    Ok(std::fs::rename(made, file)?)
}

fn find() -> Result<Functions> {
    if let Some(path) = std::env::var_os(PATH).filter(|p| !p.is_empty()) {
        return Functions::load(Path::new(&path)).map_err(|e| e.in_op(PATH));
    }
    let folder = folder().ok_or_else(|| unavailable("there is no folder for the shim: HOME is not set"))?;
    let mut hash = DefaultHasher::new();
    (SOURCE, std::env::var("CXX").ok(), std::env::var("CXXFLAGS").ok()).hash(&mut hash);
    let file = folder.join(format!("{:016x}.so", hash.finish()));
    if file.exists()
        && let Ok(found) = Functions::load(&file)
    {
        return Ok(found);
    }
    compile(&file)?;
    Functions::load(&file)
}

static FOUND: OnceLock<std::result::Result<Functions, Error>> = OnceLock::new();

/// The shim: looked for, and compiled, once.
pub fn gloo() -> Result<&'static Functions> {
    FOUND.get_or_init(find).as_ref().map_err(Clone::clone)
}
