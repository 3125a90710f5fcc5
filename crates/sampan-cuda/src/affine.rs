//! Products with a bias for each column in one kernel, by cuBLASLt.

use crate::blas::{self, Extents, Matrices};
use crate::device::Device;
use crate::driver::Handle;
use crate::fault::{Fault, Missing, Result};
use crate::library::{functions, open};
use crate::memory::Block;
use parking_lot::Mutex;
use sampan_formula::DType;
use std::collections::HashMap;
use std::ffi::c_void;
use std::sync::OnceLock;

functions! {
    /// libcublasLt.
    Light {
        create = "cublasLtCreate": fn(*mut Handle);
        describe = "cublasLtMatmulDescCreate": fn(*mut Handle, i32, i32);
        set = "cublasLtMatmulDescSetAttribute": fn(Handle, i32, *const c_void, usize);
        layout = "cublasLtMatrixLayoutCreate": fn(*mut Handle, i32, u64, u64, i64);
        prefer = "cublasLtMatmulPreferenceCreate": fn(*mut Handle);
        set_preference = "cublasLtMatmulPreferenceSetAttribute": fn(Handle, i32, *const c_void, usize);
        forget_preference = "cublasLtMatmulPreferenceDestroy": fn(Handle);
        advise = "cublasLtMatmulAlgoGetHeuristic": fn(
            Handle, Handle, Handle, Handle, Handle, Handle, Handle, i32, *mut Advice, *mut i32
        );
        multiply = "cublasLtMatmul": fn(
            Handle, Handle, *const c_void, u64, Handle, u64, Handle, *const c_void, u64, Handle, u64, Handle, *const Way, u64,
            usize, Handle
        );
    }
}

const NAMES: [&str; 4] =
    ["libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so", "/usr/local/cuda/lib64/libcublasLt.so"];
/// What the library may use besides.
const WORKSPACE: usize = 32 << 20;

/// What the library calls its things, by its header.
mod word {
    // Attributes of a product.
    pub const TURN_A: i32 = 3;
    pub const TURN_B: i32 = 4;
    pub const EPILOGUE: i32 = 7;
    pub const BIAS: i32 = 8;
    // What is done to a result at last.
    pub const ADD_BIAS: i32 = 4;
    // Attributes of a preference.
    pub const MOST_WORKSPACE: i32 = 1;
    pub const REDUCTIONS: i32 = 3;
    /// Parts of sums that are joined in memory of their own; in place they would be joined in the order they come.
    pub const IN_ORDER: u32 = 6;
}

/// A way to compute a product, as the library keeps it.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub(crate) struct Way([u64; 8]);

/// What the library advises.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub(crate) struct Advice {
    way: Way,
    workspace: usize,
    status: i32,
    waves: f32,
    reserved: [i32; 4],
}

/// The library, looked for once.
fn light() -> std::result::Result<&'static Light, Missing> {
    static LIGHT: OnceLock<std::result::Result<Light, Missing>> = OnceLock::new();
    LIGHT
        .get_or_init(|| Light::load(open(&NAMES, "NVIDIA's library for products with more (cuBLASLt)", "see cuBLAS")?))
        .as_ref()
        .map_err(Clone::clone)
}

#[derive(PartialEq, Eq, Hash)]
struct Key {
    dtype: DType,
    compute: i32,
    extents: [usize; 3],
    /// Turned or not, and the step between columns, of both operands.
    readings: [(i32, i32); 2],
    /// All data begin at a multiple of sixteen bytes.
    aligned: bool,
}

/// A product that was described, and how it is best computed.
struct Plan {
    description: Handle,
    layouts: [Handle; 3],
    way: Way,
    workspace: usize,
}

/// A device's handle of the library and its plans; one call at a time.
#[derive(Default)]
pub(crate) struct Affine(Mutex<Option<Ready>>);

struct Ready {
    handle: Handle,
    plans: HashMap<Key, Option<Plan>>,
}

// SAFETY: handles and descriptions are used by one thread at a time, under the lock.
unsafe impl Send for Ready {}

/// `y = a · b + bias` for one pair of matrices, `y` row-major and the bias a number for each column; false, with nothing done, if
/// the library is not there or knows no way.
pub fn product(
    device: &'static Device,
    dtype: DType,
    e: Extents,
    [a, b]: [Matrices; 2],
    bias: (&Block, usize),
    y: &Block,
) -> Result<bool> {
    let (Extents { count, m, n, k }, size) = (e, dtype.size());
    let plain = count == 1 && m.min(n).min(k) > 1 && [m, n, k].iter().all(|&n| i32::try_from(n).is_ok());
    if !plain || !matches!(dtype, DType::Float32 | DType::Float16 | DType::BFloat16) {
        return Ok(false);
    }
    let (Ok(light), Some((kind, compute)), Some(turn_a), Some(turn_b)) =
        (light(), blas::kind_of(dtype), a.reading(m, k), b.reading(k, n))
    else {
        return Ok(false);
    };
    a.check(1, m, k, size);
    b.check(1, k, n, size);
    assert!(m * n * size <= y.len(), "the result has room for all elements");
    assert!((bias.1 + n) * size <= bias.0.len(), "a number for each column");
    let bias = bias.0.address() + (bias.1 * size) as u64;
    let addresses = [a.address(size), b.address(size), bias];
    let aligned = addresses.iter().all(|a| a.is_multiple_of(16));
    let key = Key { dtype, compute, extents: [m, n, k], readings: [turn_a, turn_b], aligned };
    device.enter()?;
    let mut ready = device.affine.0.lock();
    if ready.is_none() {
        let mut handle = std::ptr::null_mut();
        // SAFETY: it writes a handle, which is never destroyed.
        check("cublasLtCreate", unsafe { (light.create)(&mut handle) })?;
        *ready = Some(Ready { handle, plans: HashMap::new() });
    }
    let Ready { handle, plans } = ready.as_mut().expect("made above");
    if !plans.contains_key(&key) {
        let plan = plan(light, *handle, &key, kind, bias)?;
        plans.insert(Key { ..key }, plan);
    }
    let Some(Some(plan)) = plans.get(&key) else { return Ok(false) };
    let workspace = device.alloc(plan.workspace)?;
    let (one, zero) = (1.0f32, 0.0f32);
    let [by_b, by_a, by_y] = plan.layouts;
    // SAFETY: every element of the operands, the bias and the result was found inside its block above; the numbers live until the
    // call returns, and the workspace is as long as the plan asks.
    unsafe {
        let status = (light.set)(plan.description, word::BIAS, (&raw const bias).cast(), size_of::<u64>());
        check("cublasLtMatmulDescSetAttribute", status)?;
        let status = (light.multiply)(
            *handle,
            plan.description,
            (&raw const one).cast(),
            addresses[1],
            by_b,
            addresses[0],
            by_a,
            (&raw const zero).cast(),
            y.address(),
            by_y,
            y.address(),
            by_y,
            &plan.way,
            workspace.address(),
            plan.workspace,
            device.stream,
        );
        check("cublasLtMatmul", status)?;
    }
    Ok(true)
}

/// Describes a product to the library and asks for the best way; nothing if it has none. Seen by columns, the row-major result is
/// the product of the operands the other way round, and its columns are rows.
fn plan(light: &Light, handle: Handle, key: &Key, kind: i32, bias: u64) -> Result<Option<Plan>> {
    const FLOAT: i32 = 0;
    let ([m, n, k], [(turn_a, step_a), (turn_b, step_b)]) = (key.extents, key.readings);
    let null: Handle = std::ptr::null_mut();
    let (mut description, mut preference, mut layouts) = (null, null, [null; 3]);
    let shape = |turned: i32, rows: usize, columns: usize| if turned == 0 { (rows, columns) } else { (columns, rows) };
    let shapes = [(shape(turn_b, n, k), step_b), (shape(turn_a, k, m), step_a), ((n, m), n as i32)];
    // SAFETY: each call writes a handle or reads a number of the length that is said; descriptions are kept for good.
    unsafe {
        check("cublasLtMatmulDescCreate", (light.describe)(&mut description, key.compute, FLOAT))?;
        let set = |attribute: i32, number: i32| {
            let status = (light.set)(description, attribute, (&raw const number).cast(), size_of::<i32>());
            check("cublasLtMatmulDescSetAttribute", status)
        };
        set(word::TURN_A, turn_b)?;
        set(word::TURN_B, turn_a)?;
        set(word::EPILOGUE, word::ADD_BIAS)?;
        let status = (light.set)(description, word::BIAS, (&raw const bias).cast(), size_of::<u64>());
        check("cublasLtMatmulDescSetAttribute", status)?;
        for (layout, ((rows, columns), step)) in layouts.iter_mut().zip(shapes) {
            let status = (light.layout)(layout, kind, rows as u64, columns as u64, step as i64);
            check("cublasLtMatrixLayoutCreate", status)?;
        }
        check("cublasLtMatmulPreferenceCreate", (light.prefer)(&mut preference))?;
        let (most, reductions) = (WORKSPACE, word::IN_ORDER);
        let status =
            (light.set_preference)(preference, word::MOST_WORKSPACE, (&raw const most).cast(), size_of::<usize>());
        check("cublasLtMatmulPreferenceSetAttribute", status)?;
        let status =
            (light.set_preference)(preference, word::REDUCTIONS, (&raw const reductions).cast(), size_of::<u32>());
        check("cublasLtMatmulPreferenceSetAttribute", status)?;
        let (mut advice, mut found) = (Advice::default(), 0);
        let [b, a, y] = layouts;
        let status = (light.advise)(handle, description, b, a, y, y, preference, 1, &mut advice, &mut found);
        (light.forget_preference)(preference);
        let usable = status == 0 && found == 1 && advice.status == 0 && key.aligned;
        Ok(usable.then_some(Plan { description, layouts, way: advice.way, workspace: advice.workspace }))
    }
}

fn check(function: &'static str, status: i32) -> Result<()> {
    match status {
        0 => Ok(()),
        status => Err(Fault::Call { function, said: format!("cuBLASLt answered with status {status}") }),
    }
}
