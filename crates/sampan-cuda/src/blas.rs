//! Products of matrices by cuBLAS.

use crate::device::Device;
use crate::driver::Handle;
use crate::fault::{Fault, Missing, Result};
use crate::library::{functions, open};
use crate::memory::Block;
use crate::precision;
use parking_lot::Mutex;
use sampan_formula::DType;
use std::ffi::c_void;
use std::sync::OnceLock;

functions! {
    /// libcublas.
    Blas {
        create = "cublasCreate_v2": fn(*mut Handle);
        set_stream = "cublasSetStream_v2": fn(Handle, Handle);
        set_workspace = "cublasSetWorkspace_v2": fn(Handle, *mut c_void, usize);
        product_at = "cublasGemmBatchedEx": fn(
            Handle, i32, i32, i32, i32, i32, *const c_void, u64, i32, i32, u64, i32, i32, *const c_void, u64, i32, i32, i32,
            i32, i32
        );
        product = "cublasGemmStridedBatchedEx": fn(
            Handle, i32, i32, i32, i32, i32, *const c_void, u64, i32, i32, i64, u64, i32, i32, i64, *const c_void, u64, i32,
            i32, i64, i32, i32, i32
        );
    }
}

const NAMES: [&str; 4] = ["libcublas.so.13", "libcublas.so.12", "libcublas.so", "/usr/local/cuda/lib64/libcublas.so"];
/// What cuBLAS may use besides: a fixed amount, so that the same call always takes the same way.
const WORKSPACE: usize = 32 << 20;

/// The library, looked for once.
fn blas() -> std::result::Result<&'static Blas, Missing> {
    static BLAS: OnceLock<std::result::Result<Blas, Missing>> = OnceLock::new();
    BLAS.get_or_init(|| {
        let hint = "install CUDA 12 or 13, or `pip install nvidia-cublas`";
        Blas::load(open(&NAMES, "NVIDIA's library for matrix products", hint)?)
    })
    .as_ref()
    .map_err(Clone::clone)
}

/// A device's handle of the library, made at the first product; one call at a time.
#[derive(Default)]
pub(crate) struct Products(Mutex<Option<Ready>>);

struct Ready {
    handle: Handle,
    _workspace: Block,
}

// SAFETY: the handle is used by one thread at a time, under the lock.
unsafe impl Send for Ready {}

/// A stack of matrices: where it begins, and its steps in elements.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Matrices<'a> {
    /// The memory.
    pub block: &'a Block,
    /// The first element.
    pub offset: usize,
    /// From row to row.
    pub row: usize,
    /// From column to column.
    pub column: usize,
    /// From matrix to matrix.
    pub matrix: usize,
}

impl PartialEq for Block {
    fn eq(&self, other: &Block) -> bool {
        self.address() == other.address()
    }
}

impl std::fmt::Debug for Block {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} bytes at {:#x}", self.len(), self.address())
    }
}

impl Matrices<'_> {
    /// How the library is told to read it, which thinks in columns: transposed or not, and the step between its columns.
    /// Nothing if neither rows nor columns lie side by side.
    pub(crate) fn reading(&self, rows: usize, columns: usize) -> Option<(i32, i32)> {
        let step = |step: usize, least: usize, count: usize| if count <= 1 { least.max(step).max(1) } else { step };
        let (row, column) = (step(self.row, columns, rows), step(self.column, rows, columns));
        match () {
            () if (self.column == 1 || columns <= 1) && row >= columns => Some((0, i32::try_from(row).ok()?)),
            () if (self.row == 1 || rows <= 1) && column >= rows => Some((1, i32::try_from(column).ok()?)),
            () => None,
        }
    }

    /// Panics if an element lies outside the block.
    pub(crate) fn check(&self, count: usize, rows: usize, columns: usize, size: usize) {
        let far = self.offset
            + count.saturating_sub(1) * self.matrix
            + rows.saturating_sub(1) * self.row
            + columns.saturating_sub(1) * self.column;
        assert!((far + 1) * size <= self.block.len(), "element {far} of {:?}", self.block);
    }

    pub(crate) fn address(&self, size: usize) -> u64 {
        self.block.address() + (self.offset * size) as u64
    }
}

/// How many matrices of which sizes: `m` rows, `n` columns, `k` terms each.
#[derive(Clone, Copy, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct Extents {
    pub count: usize,
    pub m: usize,
    pub n: usize,
    pub k: usize,
}

/// Can the library multiply these?
pub fn takes(dtype: DType) -> bool {
    dtype.is_inexact()
}

/// `y = a · b` for a stack of matrices of one dtype; `y` is row-major. False, with nothing done, if the library cannot read
/// an operand as it lies.
pub fn product(device: &'static Device, dtype: DType, e: Extents, a: Matrices, b: Matrices, y: &Block) -> Result<bool> {
    let Extents { count, m, n, k } = e;
    let size = dtype.size();
    assert!(count * m * n * size <= y.len(), "the result has room for all elements");
    if count * m * n == 0 {
        return Ok(true);
    }
    if k == 0 {
        device.zero(y)?;
        return Ok(true);
    }
    if crate::small::product(device, dtype, e, [a, b], None, y)? {
        return Ok(true);
    }
    a.check(count, m, k, size);
    b.check(count, k, n, size);
    let fits = [count, m, n, k].iter().all(|&n| i32::try_from(n).is_ok());
    let (Some((turn_a, step_a)), Some((turn_b, step_b)), true) = (a.reading(m, k), b.reading(k, n), fits) else {
        return Ok(false);
    };
    let Some((kind, compute)) = kind_of(dtype) else { return Ok(false) };
    let blas = blas()?;
    let ready = prepared(device, blas)?;
    let handle = ready.as_ref().expect("made ready").handle;
    let (one, zero) = factors(dtype);
    // Seen by columns, the row-major result is the product of the operands the other way round.
    // SAFETY: every element of the operands and of the result was found inside its block above.
    let status = unsafe {
        (blas.product)(
            handle,
            turn_b,
            turn_a,
            n as i32,
            m as i32,
            k as i32,
            one,
            b.address(size),
            kind,
            step_b,
            b.matrix as i64,
            a.address(size),
            kind,
            step_a,
            a.matrix as i64,
            zero,
            y.address(),
            kind,
            n as i32,
            (m * n) as i64,
            count as i32,
            compute,
            -1,
        )
    };
    check("cublasGemmStridedBatchedEx", status)?;
    Ok(true)
}

/// `y = a · b` for matrices that begin at places of their own, given in elements from where `a` and `b` begin; `y` is row-major.
/// False, with nothing done, if the library cannot read an operand as it lies.
pub fn product_at(
    device: &'static Device,
    dtype: DType,
    e: Extents,
    [a, b]: [Matrices; 2],
    places: [&[usize]; 2],
    y: &Block,
) -> Result<bool> {
    let Extents { count, m, n, k } = e;
    let size = dtype.size();
    assert!(count * m * n * size <= y.len(), "the result has room for all elements");
    assert!(places.iter().all(|p| p.len() == count), "a place for each matrix");
    let fits = [count, m, n, k].iter().all(|&n| i32::try_from(n).is_ok() && n > 0);
    let (Some((turn_a, step_a)), Some((turn_b, step_b)), true) = (a.reading(m, k), b.reading(k, n), fits) else {
        return Ok(false);
    };
    let Some((kind, compute)) = kind_of(dtype) else { return Ok(false) };
    let mut addresses: Vec<u64> = Vec::with_capacity(2 * count);
    for (at_a, at_b) in places[0].iter().zip(places[1]) {
        let (a, b) = (Matrices { offset: a.offset + at_a, ..a }, Matrices { offset: b.offset + at_b, ..b });
        a.check(1, m, k, size);
        b.check(1, k, n, size);
        addresses.push(a.address(size));
        addresses.push(b.address(size));
    }
    let of = |which: usize| addresses.iter().skip(which).step_by(2).copied();
    let results = (0..count).map(|i| y.address() + (i * m * n * size) as u64);
    let bytes: Vec<u8> = of(0).chain(of(1)).chain(results).flat_map(u64::to_ne_bytes).collect();
    let list = device.alloc(bytes.len())?;
    device.upload(&bytes, &list)?;
    let part = |which: usize| list.address() + (which * count * 8) as u64;
    let blas = blas()?;
    let ready = prepared(device, blas)?;
    let handle = ready.as_ref().expect("made ready").handle;
    let (one, zero) = factors(dtype);
    // SAFETY: every element of the operands and of the result was found inside its block above; the lists lie on the device.
    let status = unsafe {
        (blas.product_at)(
            handle,
            turn_b,
            turn_a,
            n as i32,
            m as i32,
            k as i32,
            one,
            part(1),
            kind,
            step_b,
            part(0),
            kind,
            step_a,
            zero,
            part(2),
            kind,
            n as i32,
            count as i32,
            compute,
            -1,
        )
    };
    check("cublasGemmBatchedEx", status)?;
    Ok(true)
}

/// CUDA's number for a type, and for how products of it are computed.
pub(crate) fn kind_of(dtype: DType) -> Option<(i32, i32)> {
    Some(match dtype {
        DType::Float16 => (2, 68),
        DType::BFloat16 => (14, 68),
        DType::Float32 => (0, if precision::products_may_round() { 77 } else { 68 }),
        DType::Float64 => (1, 70),
        DType::Complex64 => (4, 68),
        DType::Complex128 => (5, 70),
        _ => return None,
    })
}

/// One and zero in the type that is computed in; a complex number is a pair.
fn factors(dtype: DType) -> (*const c_void, *const c_void) {
    static NARROW: [f32; 4] = [1.0, 0.0, 0.0, 0.0];
    static WIDE: [f64; 4] = [1.0, 0.0, 0.0, 0.0];
    match dtype {
        DType::Float64 | DType::Complex128 => (WIDE[..2].as_ptr().cast(), WIDE[2..].as_ptr().cast()),
        _ => (NARROW[..2].as_ptr().cast(), NARROW[2..].as_ptr().cast()),
    }
}

/// The device's handle of the library, made at the first product.
fn prepared(device: &'static Device, blas: &Blas) -> Result<parking_lot::MutexGuard<'static, Option<Ready>>> {
    device.enter()?;
    let ready = device.products.0.lock();
    if ready.is_some() {
        return Ok(ready);
    }
    drop(ready);
    // Not under the lock: this waits for whoever records work, who may want a product as well.
    let workspace = device.alloc(WORKSPACE)?;
    let mut ready = device.products.0.lock();
    if ready.is_none() {
        let mut handle = std::ptr::null_mut();
        // SAFETY: it writes a handle, which is never destroyed; the workspace lives as long.
        unsafe {
            check("cublasCreate", (blas.create)(&mut handle))?;
            check("cublasSetStream", (blas.set_stream)(handle, device.stream))?;
            let at = workspace.address() as usize as *mut c_void;
            check("cublasSetWorkspace", (blas.set_workspace)(handle, at, WORKSPACE))?;
        }
        *ready = Some(Ready { handle, _workspace: workspace });
    }
    Ok(ready)
}

fn check(function: &'static str, status: i32) -> Result<()> {
    match status {
        0 => Ok(()),
        3 => Err(Fault::Call { function, said: "cuBLAS found no memory for itself".into() }),
        status => Err(Fault::Call { function, said: format!("cuBLAS answered with status {status}") }),
    }
}
