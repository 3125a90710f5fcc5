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
        forget = "cublasLtMatmulDescDestroy": fn(Handle);
        layout = "cublasLtMatrixLayoutCreate": fn(*mut Handle, i32, u64, u64, i64);
        forget_layout = "cublasLtMatrixLayoutDestroy": fn(Handle);
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
/// Every operand and the result begin at a multiple of so many bytes.
const ALIGNED: u32 = 16;
/// The most plans that are kept; sequences of many lengths would fill the memory with them.
const KEPT: usize = 1024;

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
    pub const ALIGNMENTS: [i32; 4] = [5, 6, 7, 8];
    /// Parts of sums that are joined in memory of their own; in place they would be joined in the order they come.
    pub const IN_ORDER: u32 = 6;
    // Statuses by which the library says that it cannot do what it is asked.
    pub const WRONG_DEVICE: i32 = 8;
    pub const NOT_SUPPORTED: i32 = 15;
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

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Key {
    dtype: DType,
    compute: i32,
    extents: [usize; 3],
    /// Turned or not, and the step between columns, of both operands.
    readings: [(i32, i32); 2],
}

/// A product that was described, and how it is best computed.
struct Plan {
    light: &'static Light,
    description: Handle,
    layouts: [Handle; 3],
    way: Way,
    workspace: usize,
}

impl Drop for Plan {
    fn drop(&mut self) {
        // SAFETY: what was made is destroyed once; calls that were made with it have read it.
        unsafe {
            if !self.description.is_null() {
                (self.light.forget)(self.description);
            }
            for layout in self.layouts.into_iter().filter(|l| !l.is_null()) {
                (self.light.forget_layout)(layout);
            }
        }
    }
}

/// A device's handle of the library and its plans; one call at a time.
#[derive(Default)]
pub(crate) struct Affine(Mutex<Option<Ready>>);

struct Ready {
    /// None if the library gave none.
    handle: Option<Handle>,
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
    let addresses = [a.address(size), b.address(size), bias, y.address()];
    if !addresses.iter().all(|a| a.is_multiple_of(ALIGNED as u64)) {
        return Ok(false);
    }
    let key = Key { dtype, compute, extents: [m, n, k], readings: [turn_a, turn_b] };
    device.enter()?;
    let mut workspace = device.alloc(0)?;
    let (mut ready, handle) = loop {
        let mut ready = device.affine.0.lock();
        let Ready { handle, plans } =
            ready.get_or_insert_with(|| Ready { handle: created(light), plans: HashMap::new() });
        let &mut Some(handle) = handle else { return Ok(false) };
        if !plans.contains_key(&key) {
            if plans.len() == KEPT {
                plans.clear();
            }
            plans.insert(key, plan(light, handle, &key, kind, bias));
        }
        match &plans[&key] {
            None => return Ok(false),
            Some(plan) if plan.workspace <= workspace.len() => break (ready, handle),
            Some(plan) => {
                // Not under the lock: this waits for whoever records work, who may want a product as well.
                let bytes = plan.workspace;
                drop(ready);
                workspace = device.alloc(bytes)?;
            }
        }
    };
    let plans = &mut ready.as_mut().expect("made above").plans;
    let plan = plans[&key].as_ref().expect("found above");
    let (one, zero) = (1.0f32, 0.0f32);
    let [by_b, by_a, by_y] = plan.layouts;
    // SAFETY: every element of the operands, the bias and the result was found inside its block above; the numbers live until the
    // call returns, and the workspace is as long as the plan asks.
    let status = unsafe {
        let status = (light.set)(plan.description, word::BIAS, (&raw const bias).cast(), size_of::<u64>());
        check("cublasLtMatmulDescSetAttribute", status)?;
        (light.multiply)(
            handle,
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
        )
    };
    if matches!(status, word::NOT_SUPPORTED | word::WRONG_DEVICE) {
        // Nor will it be the next time.
        plans.insert(key, None);
        return Ok(false);
    }
    check("cublasLtMatmul", status)?;
    Ok(true)
}

/// A handle of the library; none if it gives none, as for a device that it does not know.
fn created(light: &Light) -> Option<Handle> {
    let mut handle = std::ptr::null_mut();
    // SAFETY: it writes a handle, which is never destroyed.
    let status = unsafe { (light.create)(&mut handle) };
    (status == 0).then_some(handle)
}

/// Describes a product to the library and asks for the best way; nothing if it has none. Seen by columns, the row-major result is
/// the product of the operands the other way round, and its columns are rows.
fn plan(light: &'static Light, handle: Handle, key: &Key, kind: i32, bias: u64) -> Option<Plan> {
    const FLOAT: i32 = 0;
    let ([m, n, k], [(turn_a, step_a), (turn_b, step_b)]) = (key.extents, key.readings);
    let null: Handle = std::ptr::null_mut();
    let mut plan = Plan { light, description: null, layouts: [null; 3], way: Way::default(), workspace: 0 };
    let shape = |turned: i32, rows: usize, columns: usize| if turned == 0 { (rows, columns) } else { (columns, rows) };
    let shapes = [(shape(turn_b, n, k), step_b), (shape(turn_a, k, m), step_a), ((n, m), n as i32)];
    let well = |status: i32| (status == 0).then_some(());
    // SAFETY: each call writes a handle or reads a number of the length that is said; the plan gives its descriptions back.
    unsafe {
        well((light.describe)(&mut plan.description, key.compute, FLOAT))?;
        let set = |attribute: i32, number: i32| {
            well((light.set)(plan.description, attribute, (&raw const number).cast(), size_of::<i32>()))
        };
        set(word::TURN_A, turn_b)?;
        set(word::TURN_B, turn_a)?;
        set(word::EPILOGUE, word::ADD_BIAS)?;
        well((light.set)(plan.description, word::BIAS, (&raw const bias).cast(), size_of::<u64>()))?;
        for (layout, ((rows, columns), step)) in plan.layouts.iter_mut().zip(shapes) {
            well((light.layout)(layout, kind, rows as u64, columns as u64, step as i64))?;
        }
        let advice = advised(light, handle, &plan)?;
        (plan.way, plan.workspace) = (advice.way, advice.workspace);
    }
    Some(plan)
}

/// What the library thinks best for a product; nothing if it knows no way.
fn advised(light: &Light, handle: Handle, plan: &Plan) -> Option<Advice> {
    let mut preference = std::ptr::null_mut();
    let (mut advice, mut found) = (Advice::default(), 0);
    let [b, a, y] = plan.layouts;
    // SAFETY: each call writes a handle or reads a number of the length that is said, and the last ones what the plan describes.
    unsafe {
        if (light.prefer)(&mut preference) != 0 {
            return None;
        }
        let most = WORKSPACE;
        let mut status =
            (light.set_preference)(preference, word::MOST_WORKSPACE, (&raw const most).cast(), size_of::<usize>());
        let alignments = word::ALIGNMENTS.map(|attribute| (attribute, ALIGNED));
        for (attribute, number) in [(word::REDUCTIONS, word::IN_ORDER)].into_iter().chain(alignments) {
            status |= (light.set_preference)(preference, attribute, (&raw const number).cast(), size_of::<u32>());
        }
        if status == 0 {
            status = (light.advise)(handle, plan.description, b, a, y, y, preference, 1, &mut advice, &mut found);
        }
        (light.forget_preference)(preference);
        (status == 0 && found == 1 && advice.status == 0).then_some(advice)
    }
}

fn check(function: &'static str, status: i32) -> Result<()> {
    match status {
        0 => Ok(()),
        status => Err(Fault::Call { function, said: format!("cuBLASLt answered with status {status}") }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::{Cell, RefCell};

    thread_local! {
        /// Descriptions that are there, what was preferred, and how many ways the library knows.
        static THERE: Cell<i32> = const { Cell::new(0) };
        static PREFERRED: RefCell<Vec<(i32, usize)>> = const { RefCell::new(Vec::new()) };
        static WAYS: Cell<i32> = const { Cell::new(0) };
    }

    fn made(to: *mut Handle) -> i32 {
        THERE.set(THERE.get() + 1);
        // SAFETY: the caller gives a place for a handle.
        unsafe { *to = std::ptr::without_provenance_mut(64) };
        0
    }

    unsafe extern "C" fn describe(to: *mut Handle, _: i32, _: i32) -> i32 {
        made(to)
    }

    unsafe extern "C" fn layout(to: *mut Handle, _: i32, _: u64, _: u64, _: i64) -> i32 {
        made(to)
    }

    unsafe extern "C" fn prefer(to: *mut Handle) -> i32 {
        made(to)
    }

    unsafe extern "C" fn forget(_: Handle) -> i32 {
        THERE.set(THERE.get() - 1);
        0
    }

    unsafe extern "C" fn set_preference(_: Handle, attribute: i32, number: *const c_void, bytes: usize) -> i32 {
        // SAFETY: the caller gives a number of four or eight bytes.
        let number = unsafe { if bytes == 4 { *number.cast::<u32>() as usize } else { *number.cast::<usize>() } };
        PREFERRED.with_borrow_mut(|p| p.push((attribute, number)));
        0
    }

    unsafe extern "C" fn advise(
        _: Handle,
        _: Handle,
        _: Handle,
        _: Handle,
        _: Handle,
        _: Handle,
        _: Handle,
        _: i32,
        advice: *mut Advice,
        found: *mut i32,
    ) -> i32 {
        // SAFETY: the caller gives two places.
        unsafe { ((*advice).workspace, *found) = (100, WAYS.get()) };
        0
    }

    #[test]
    fn descriptions_are_given_back_and_alignments_are_what_data_have() {
        let known = Light { describe, forget, layout, forget_layout: forget, ..Light::stand_in() };
        let known = Light { prefer, set_preference, forget_preference: forget, advise, ..known };
        let table: &'static Light = Box::leak(Box::new(known));
        let key = Key { dtype: DType::Float32, compute: 68, extents: [4, 8, 16], readings: [(0, 16), (0, 8)] };
        let null = std::ptr::null_mut();
        assert!(plan(table, null, &key, 0, 0).is_none());
        assert_eq!(THERE.get(), 0);
        WAYS.set(1);
        let made = plan(table, null, &key, 0, 0).expect("the library knows a way");
        assert_eq!((THERE.get(), made.workspace), (4, 100));
        drop(made);
        assert_eq!(THERE.get(), 0);
        let preferred = PREFERRED.take();
        assert!(word::ALIGNMENTS.iter().all(|a| preferred.contains(&(*a, 16))), "{preferred:?}");
        // A description that cannot be made is no error, and what was made before it is given back.
        unsafe extern "C" fn refuse(_: *mut Handle, _: i32, _: u64, _: u64, _: i64) -> i32 {
            15
        }
        let table: &'static Light =
            Box::leak(Box::new(Light { describe, forget, layout: refuse, ..Light::stand_in() }));
        assert!(plan(table, null, &key, 0, 0).is_none());
        assert_eq!(THERE.get(), 0);
    }
}
