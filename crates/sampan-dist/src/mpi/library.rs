//! An MPI library, found at run time: MPICH's (the system's, or pip's `mpich`) or Open MPI's.

use crate::wire::unavailable;
use libloading::Library;
use sampan_core::{Error, Result};
use std::ffi::{c_int, c_void};
use std::path::PathBuf;
use std::sync::OnceLock;

/// A handle of MPI. MPICH's are numbers of 4 bytes, Open MPI's pointers: a register holds either, and where one is written
/// the rest is zero before.
pub type Handle = usize;

/// Where a library lies, if it is none of the system's.
const PATH: &str = "SAMPAN_MPI_LIBRARY";
/// A folder with `lib/libmpi.so…`, such as a virtual environment into which pip installed MPICH.
const PREFIX: &str = "SAMPAN_MPI_PREFIX";
const NAMES: [&str; 3] = ["libmpi.so.12", "libmpi.so.40", "libmpi.so"];
/// Several threads may call at the same time.
const THREAD_MULTIPLE: c_int = 3;

macro_rules! functions {
    ($($field:ident = $symbol:literal: fn($($arg:ty),*);)*) => {
        /// What is used of MPI.
        pub struct Functions {
            $(pub $field: unsafe extern "C" fn($($arg),*) -> c_int,)*
            pub world: Handle,
            pub byte: Handle,
            errors_return: Handle,
        }

        impl Functions {
            fn load(library: Library) -> Result<Functions> {
                let library: &'static Library = Box::leak(Box::new(library));
                // SAFETY: Open MPI has these objects, whose addresses are the handles; MPICH has none of them.
                let object = |name: &str| unsafe { library.get::<*mut c_void>(name).ok().map(|s| s.try_as_raw_ptr()) };
                let address = |name: &str| object(name).flatten().map(|p| p as Handle);
                let open = address("ompi_mpi_comm_world").zip(address("ompi_mpi_byte")).zip(address("ompi_mpi_errors_return"));
                // Else they are the numbers of MPICH's ABI, which Intel's and Cray's share.
                let ((world, byte), errors_return) = open.unwrap_or(((0x4400_0000, 0x4c00_010d), 0x5400_0001));
                Ok(Functions {
                    $($field: {
                        // SAFETY: the signature is the one of MPI's standard.
                        let symbol = unsafe { library.get::<unsafe extern "C" fn($($arg),*) -> c_int>($symbol) };
                        *symbol.map_err(|_| unavailable(format!("the MPI library has no {}", $symbol)))?
                    },)*
                    world,
                    byte,
                    errors_return,
                })
            }
        }
    };
}

functions! {
    init = "MPI_Init_thread": fn(*mut c_int, *mut c_void, c_int, *mut c_int);
    initialized = "MPI_Initialized": fn(*mut c_int);
    finalize = "MPI_Finalize": fn();
    rank = "MPI_Comm_rank": fn(Handle, *mut c_int);
    size = "MPI_Comm_size": fn(Handle, *mut c_int);
    group_of = "MPI_Comm_group": fn(Handle, *mut Handle);
    some_of = "MPI_Group_incl": fn(Handle, c_int, *const c_int, *mut Handle);
    create = "MPI_Comm_create_group": fn(Handle, Handle, c_int, *mut Handle);
    set_handler = "MPI_Comm_set_errhandler": fn(Handle, Handle);
    barrier = "MPI_Barrier": fn(Handle);
    broadcast = "MPI_Bcast": fn(*mut u8, c_int, Handle, c_int, Handle);
    all_gather = "MPI_Allgather": fn(*const u8, c_int, Handle, *mut u8, c_int, Handle, Handle);
    all_to_all = "MPI_Alltoallv": fn(
        *const u8, *const c_int, *const c_int, Handle, *mut u8, *const c_int, *const c_int, Handle, Handle
    );
    send = "MPI_Send": fn(*const u8, c_int, Handle, c_int, c_int, Handle);
    recv = "MPI_Recv": fn(*mut u8, c_int, Handle, c_int, c_int, Handle, *mut c_void);
}

/// An error of MPI, unless all is well.
pub fn check(what: &str, status: c_int) -> Result<()> {
    if status == 0 { Ok(()) } else { Err(unavailable(format!("{what}: MPI's error {status}"))) }
}

fn find() -> Result<Functions> {
    let told = std::env::var(PATH).ok().map(PathBuf::from);
    let near = std::env::var(PREFIX).ok();
    let near = near.iter().flat_map(|p| NAMES.map(|name| PathBuf::from(p).join("lib").join(name)));
    for path in told.into_iter().chain(near).chain(NAMES.map(PathBuf::from)) {
        // SAFETY: an MPI library's initialisers may be run at any time.
        if let Ok(library) = unsafe { Library::new(&path) } {
            return Functions::load(library);
        }
    }
    Err(unavailable(format!("no MPI library was found (looked for {})", NAMES.join(", ")))
        .hint(format!("`pip install mpich`, the system's package, or {PATH}=/path/to/libmpi.so")))
}

extern "C" fn finalize() {
    if let Some(Ok(mpi)) = STARTED.get() {
        // SAFETY: MPI was initialised, and nobody calls it after the end of the program.
        unsafe { (mpi.finalize)() };
    }
}

static STARTED: OnceLock<std::result::Result<Functions, Error>> = OnceLock::new();

fn begin() -> Result<Functions> {
    let mpi = find()?;
    let (mut already, mut provided) = (0, 0);
    // SAFETY: it writes a number.
    check("MPI_Initialized", unsafe { (mpi.initialized)(&mut already) })?;
    if already == 0 {
        // SAFETY: arguments may be absent; it writes a number.
        let status = unsafe { (mpi.init)(std::ptr::null_mut(), std::ptr::null_mut(), THREAD_MULTIPLE, &mut provided) };
        check("MPI_Init_thread", status)?;
        if provided < THREAD_MULTIPLE {
            return Err(unavailable("this MPI library does not let several threads call it"));
        }
        // SAFETY: the function may be called at the end of the program.
        unsafe { libc::atexit(finalize) };
    }
    // SAFETY: both are handles of this library. Errors are returned instead of ending the program.
    check("MPI_Comm_set_errhandler", unsafe { (mpi.set_handler)(mpi.world, mpi.errors_return) })?;
    Ok(mpi)
}

/// The library, which has begun: looked for once.
pub fn mpi() -> Result<&'static Functions> {
    STARTED.get_or_init(begin).as_ref().map_err(Clone::clone)
}
