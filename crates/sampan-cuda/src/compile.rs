//! Kernels from text: compiled when first asked for, kept in memory and on disk.

use crate::device::Device;
use crate::driver::Handle;
use crate::fault::Result;
use crate::nvrtc;
use parking_lot::Mutex;
use sampan_formula::text::PRELUDE;
use std::collections::HashMap;
use std::ffi::CString;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::PathBuf;

/// What the texts of this crate have in common.
pub(crate) const TYPES: &str = include_str!("kernels/types.cu");

/// The compiled kernels of a device, by name.
#[derive(Default)]
pub(crate) struct Kernels(Mutex<HashMap<String, Kernel>>);

/// A kernel that is loaded on a device.
#[derive(Clone, Copy)]
pub struct Kernel(Handle);

// SAFETY: a function of a module that is never unloaded; the driver may be given it from any thread.
unsafe impl Send for Kernel {}
// SAFETY: as above.
unsafe impl Sync for Kernel {}

impl Kernel {
    pub(crate) fn function(self) -> Handle {
        self.0
    }
}

impl Device {
    /// The kernel that `key` names; `text` gives its source and the name it has there, or the instance of a template, when it
    /// is first asked for.
    pub(crate) fn kernel(&self, key: &str, text: impl FnOnce() -> (String, String)) -> Result<Kernel> {
        if let Some(kernel) = self.kernels.0.lock().get(key) {
            return Ok(*kernel);
        }
        let (source, entry) = text();
        let (name, code) = self.machine_code(&source, &entry)?;
        self.enter()?;
        let entry = CString::new(name).expect("the name of a kernel has no zero bytes");
        let (mut module, mut function) = (std::ptr::null_mut(), std::ptr::null_mut());
        // SAFETY: the code is a whole cubin, of which the driver makes a copy; the module is never unloaded.
        unsafe {
            self.driver.check("cuModuleLoadData", (self.driver.module_load)(&mut module, code.as_ptr().cast()))?;
            let status = (self.driver.module_function)(&mut function, module, entry.as_ptr());
            self.driver.check("cuModuleGetFunction", status)?;
        }
        let kernel = Kernel(function);
        self.kernels.0.lock().insert(key.to_string(), kernel);
        Ok(kernel)
    }

    /// An instance of a template in a text of this crate, such as `sum<float>`.
    pub(crate) fn template(&self, text: &'static str, instance: &str) -> Result<Kernel> {
        self.kernel(instance, || ([PRELUDE, TYPES, text].join("\n"), instance.to_string()))
    }

    /// Machine code of a text and the name of the kernel in it, from the disk if it was compiled before.
    fn machine_code(&self, source: &str, entry: &str) -> Result<(String, Vec<u8>)> {
        let (major, minor) = self.info().capability;
        let file = cache_folder().map(|folder| {
            let mut hash = DefaultHasher::new();
            (source, entry, major, minor, env!("CARGO_PKG_VERSION")).hash(&mut hash);
            folder.join(format!("{:016x}-{}.cubin", hash.finish(), source.len()))
        });
        if let Some(file) = &file
            && let Some(found) = std::fs::read(file).ok().and_then(read_cached)
        {
            return Ok(found);
        }
        let (name, code) = nvrtc::compile(source, entry, major * 10 + minor)?;
        if let Some(file) = file {
            // A cache may fail: the kernel is compiled again next time.
            let _ = write_whole(&file, &[name.as_bytes(), b"\n", &code].concat());
        }
        Ok((name, code))
    }
}

/// A file of the cache: the kernel's name on a line of its own, then its machine code.
fn read_cached(bytes: Vec<u8>) -> Option<(String, Vec<u8>)> {
    let end = bytes.iter().position(|&b| b == b'\n')?;
    let name = String::from_utf8(bytes[..end].to_vec()).ok()?;
    let code = bytes[end + 1..].to_vec();
    code.starts_with(b"\x7fELF").then_some((name, code))
}

/// Writes beside the place and renames, so that nobody reads a half.
fn write_whole(file: &std::path::Path, bytes: &[u8]) -> std::io::Result<()> {
    let folder = file.parent().expect("a file of the cache lies in its folder");
    std::fs::create_dir_all(folder)?;
    let beside = file.with_extension(format!("{}.tmp", std::process::id()));
    std::fs::write(&beside, bytes)?;
    std::fs::rename(beside, file)
}

/// Where compiled kernels are kept: `SAMPAN_KERNEL_CACHE`, or the user's cache; nowhere if that is `off`.
fn cache_folder() -> Option<PathBuf> {
    let set = |name: &str| std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
    match set("SAMPAN_KERNEL_CACHE") {
        Some(folder) if folder.as_os_str() == "off" => None,
        Some(folder) => Some(folder),
        None => {
            let cache = set("XDG_CACHE_HOME").or_else(|| Some(set("HOME")?.join(".cache")))?;
            Some(cache.join("sampan").join("kernels"))
        }
    }
}
