//! The functions of the run-time compiler that are used.

use crate::driver::Handle;
use crate::fault::{Fault, Missing, Result};
use crate::library::{functions, open};
use std::ffi::{CStr, CString, c_char};
use std::ptr::null;
use std::sync::OnceLock;

functions! {
    /// libnvrtc.
    Nvrtc {
        create = "nvrtcCreateProgram":
            fn(*mut Handle, *const c_char, *const c_char, i32, *const *const c_char, *const *const c_char);
        compile = "nvrtcCompileProgram": fn(Handle, i32, *const *const c_char);
        add_name = "nvrtcAddNameExpression": fn(Handle, *const c_char);
        lowered_name = "nvrtcGetLoweredName": fn(Handle, *const c_char, *mut *const c_char);
        cubin_size = "nvrtcGetCUBINSize": fn(Handle, *mut usize);
        cubin = "nvrtcGetCUBIN": fn(Handle, *mut c_char);
        log_size = "nvrtcGetProgramLogSize": fn(Handle, *mut usize);
        log = "nvrtcGetProgramLog": fn(Handle, *mut c_char);
        destroy = "nvrtcDestroyProgram": fn(*mut Handle);
    }
}

const NAMES: [&str; 4] = ["libnvrtc.so", "libnvrtc.so.13", "libnvrtc.so.12", "/usr/local/cuda/lib64/libnvrtc.so"];

/// The compiler, looked for once.
fn nvrtc() -> std::result::Result<&'static Nvrtc, Missing> {
    static NVRTC: OnceLock<std::result::Result<Nvrtc, Missing>> = OnceLock::new();
    NVRTC
        .get_or_init(|| {
            let hint =
                "install CUDA 12 or 13, or `pip install nvidia-cuda-nvrtc` and add its lib folder to LD_LIBRARY_PATH";
            Nvrtc::load(open(&NAMES, "NVIDIA's run-time compiler", hint)?)
        })
        .as_ref()
        .map_err(Clone::clone)
}

/// Machine code for an architecture such as 90 from a text, and the name that the kernel `entry` has there: `entry` itself,
/// or what an instance of a template such as `sum<float>` is called.
pub(crate) fn compile(text: &str, entry: &str, architecture: i32) -> Result<(String, Vec<u8>)> {
    let nvrtc = nvrtc()?;
    let entry = CString::new(entry).expect("the name of a kernel has no zero bytes");
    let source = CString::new(text).expect("the text of a kernel has no zero bytes");
    // Sums are not contracted: the CPU's bits are wanted.
    let options = [format!("--gpu-architecture=sm_{architecture}"), "--fmad=false".into(), "--std=c++17".into()];
    let options: Vec<CString> =
        options.iter().map(|o| CString::new(&o[..]).expect("an option has no zero bytes")).collect();
    let pointers: Vec<*const c_char> = options.iter().map(|o| o.as_ptr()).collect();
    let mut program = std::ptr::null_mut();
    // SAFETY: all texts end with a zero and live until the program is destroyed; buffers are as long as was asked for.
    unsafe {
        let status = (nvrtc.create)(&mut program, source.as_ptr(), null(), 0, null(), null());
        if status != 0 {
            return Err(Fault::Call { function: "nvrtcCreateProgram", said: format!("status {status}") });
        }
        (nvrtc.add_name)(program, entry.as_ptr());
        let status = (nvrtc.compile)(program, pointers.len() as i32, pointers.as_ptr());
        let result = if status == 0 {
            let mut size = 0;
            (nvrtc.cubin_size)(program, &mut size);
            let mut cubin = vec![0u8; size];
            (nvrtc.cubin)(program, cubin.as_mut_ptr().cast());
            let mut lowered = null();
            let name = match (nvrtc.lowered_name)(program, entry.as_ptr(), &mut lowered) {
                0 => CStr::from_ptr(lowered).to_string_lossy().into_owned(),
                _ => entry.to_string_lossy().into_owned(),
            };
            Ok((name, cubin))
        } else {
            let mut size = 0;
            (nvrtc.log_size)(program, &mut size);
            let mut log = vec![0u8; size.max(1)];
            (nvrtc.log)(program, log.as_mut_ptr().cast());
            let said = String::from_utf8_lossy(&log).trim_end_matches('\0').chars().take(2000).collect();
            Err(Fault::Call { function: "nvrtcCompileProgram", said })
        };
        (nvrtc.destroy)(&mut program);
        result
    }
}
