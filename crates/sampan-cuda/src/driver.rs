//! The functions of the driver that are used.

use crate::fault::{Fault, Missing, Result};
use crate::library::{functions, open};
use std::ffi::{CStr, c_char, c_void};
use std::sync::OnceLock;

/// A handle of the driver: context, stream, module, function, graph.
pub(crate) type Handle = *mut c_void;
/// An address on the device.
pub(crate) type Address = u64;

functions! {
    /// libcuda.
    Driver {
        init = "cuInit": fn(u32);
        version = "cuDriverGetVersion": fn(*mut i32);
        device_count = "cuDeviceGetCount": fn(*mut i32);
        device_get = "cuDeviceGet": fn(*mut i32, i32);
        device_name = "cuDeviceGetName": fn(*mut c_char, i32, i32);
        device_attribute = "cuDeviceGetAttribute": fn(*mut i32, i32, i32);
        retain_context = "cuDevicePrimaryCtxRetain": fn(*mut Handle, i32);
        set_context = "cuCtxSetCurrent": fn(Handle);
        context_wait = "cuCtxSynchronize": fn();
        alloc = "cuMemAlloc_v2": fn(*mut Address, usize);
        free = "cuMemFree_v2": fn(Address);
        host_alloc = "cuMemHostAlloc": fn(*mut *mut c_void, usize, u32);
        host_address = "cuMemHostGetDevicePointer_v2": fn(*mut Address, *mut c_void, u32);
        memory_info = "cuMemGetInfo_v2": fn(*mut usize, *mut usize);
        upload = "cuMemcpyHtoDAsync_v2": fn(Address, *const c_void, usize, Handle);
        download = "cuMemcpyDtoHAsync_v2": fn(*mut c_void, Address, usize, Handle);
        copy = "cuMemcpyDtoDAsync_v2": fn(Address, Address, usize, Handle);
        fill = "cuMemsetD8Async": fn(Address, u8, usize, Handle);
        stream_create = "cuStreamCreate": fn(*mut Handle, u32);
        stream_wait = "cuStreamSynchronize": fn(Handle);
        host_free = "cuMemFreeHost": fn(*mut c_void);
        event_create = "cuEventCreate": fn(*mut Handle, u32);
        event_record = "cuEventRecord": fn(Handle, Handle);
        event_wait = "cuEventSynchronize": fn(Handle);
        event_ready = "cuEventQuery": fn(Handle);
        event_elapsed = "cuEventElapsedTime": fn(*mut f32, Handle, Handle);
        event_destroy = "cuEventDestroy_v2": fn(Handle);
        record_begin = "cuStreamBeginCapture_v2": fn(Handle, u32);
        record_end = "cuStreamEndCapture": fn(Handle, *mut Handle);
        graph_make = "cuGraphInstantiateWithFlags": fn(*mut Handle, Handle, u64);
        graph_launch = "cuGraphLaunch": fn(Handle, Handle);
        graph_nodes = "cuGraphGetNodes": fn(Handle, *mut Handle, *mut usize);
        graph_destroy = "cuGraphDestroy": fn(Handle);
        graph_drop = "cuGraphExecDestroy": fn(Handle);
        module_load = "cuModuleLoadData": fn(*mut Handle, *const c_void);
        module_function = "cuModuleGetFunction": fn(*mut Handle, Handle, *const c_char);
        launch = "cuLaunchKernelEx": fn(*const Launch, Handle, *mut *mut c_void, *mut *mut c_void);
        error_name = "cuGetErrorName": fn(i32, *mut *const c_char);
        error_text = "cuGetErrorString": fn(i32, *mut *const c_char);
    }
}

/// How a kernel is started: `CUlaunchConfig`.
#[repr(C)]
pub(crate) struct Launch {
    /// Blocks, then threads of each, along three axes.
    pub grid: [u32; 3],
    pub block: [u32; 3],
    pub shared: u32,
    pub stream: Handle,
    pub attributes: *const Attribute,
    pub count: u32,
}

/// Something that is said of a launch: `CUlaunchAttribute`.
#[repr(C, align(8))]
pub(crate) struct Attribute {
    pub name: u32,
    pub _gap: u32,
    pub value: [u32; 16],
}

impl Attribute {
    /// The kernel waits by itself for what came before it, and may be brought to its places until then.
    pub const WAITS_BY_ITSELF: Attribute =
        Attribute { name: 6, _gap: 0, value: [1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0] };
}

/// `CUDA_ERROR_NOT_READY`.
pub(crate) const NOT_READY: i32 = 600;
/// `CUDA_ERROR_OUT_OF_MEMORY`.
pub(crate) const OUT_OF_MEMORY: i32 = 2;
/// The oldest driver that is used: that of CUDA 12.
const OLDEST: i32 = 12_000;

/// The driver, looked for once.
pub(crate) fn driver() -> std::result::Result<&'static Driver, Missing> {
    static DRIVER: OnceLock<std::result::Result<Driver, Missing>> = OnceLock::new();
    DRIVER.get_or_init(find).as_ref().map_err(Clone::clone)
}

fn find() -> std::result::Result<Driver, Missing> {
    let hint = "install the NVIDIA driver, or stay on the CPU with set_device('cpu')";
    let library = open(&["libcuda.so.1", "libcuda.so"], "the NVIDIA driver", hint)?;
    let driver = Driver::load(library)?;
    let mut version = 0;
    // SAFETY: the arguments are what these functions take; nothing else of the driver was called before.
    let (started, _) = unsafe { ((driver.init)(0), (driver.version)(&mut version)) };
    if started != 0 {
        return Err(Missing(format!("the NVIDIA driver did not start: {}", driver.said(started))));
    }
    if version < OLDEST {
        let (major, minor) = (version / 1000, version % 1000 / 10);
        return Err(Missing(format!("the NVIDIA driver is of CUDA {major}.{minor}; 12.0 or later is needed")));
    }
    Ok(driver)
}

impl Driver {
    /// The driver's words for a status.
    pub(crate) fn said(&self, status: i32) -> String {
        let text = |f: unsafe extern "C" fn(i32, *mut *const c_char) -> i32| {
            let mut text = std::ptr::null();
            // SAFETY: the driver writes the address of a text that it keeps, or leaves the null there.
            unsafe {
                f(status, &mut text);
                if text.is_null() { String::new() } else { CStr::from_ptr(text).to_string_lossy().into_owned() }
            }
        };
        format!("{} ({})", text(self.error_text), text(self.error_name))
    }

    /// Turns a status into a result.
    pub(crate) fn check(&self, function: &'static str, status: i32) -> Result<()> {
        match status {
            0 => Ok(()),
            status => Err(Fault::Call { function, said: self.said(status) }),
        }
    }
}
