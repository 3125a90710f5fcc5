//! Convolutions by cuDNN, through its graphs: each convolution is described once, the best way to compute it is asked for, and
//! the plan is kept.

use crate::device::Device;
use crate::driver::Handle;
use crate::fault::{Fault, Missing, Result};
use crate::library::{functions, open};
use crate::memory::Block;
use crate::precision;
use parking_lot::Mutex;
use sampan_formula::DType;
use std::collections::HashMap;
use std::ffi::c_void;
use std::sync::OnceLock;

functions! {
    /// libcudnn.
    Dnn {
        version = "cudnnGetVersion": fn();
        create = "cudnnCreate": fn(*mut Handle);
        set_stream = "cudnnSetStream": fn(Handle, Handle);
        describe = "cudnnBackendCreateDescriptor": fn(i32, *mut Handle);
        forget = "cudnnBackendDestroyDescriptor": fn(Handle);
        set = "cudnnBackendSetAttribute": fn(Handle, i32, i32, i64, *const c_void);
        get = "cudnnBackendGetAttribute": fn(Handle, i32, i32, i64, *mut i64, *mut c_void);
        finish = "cudnnBackendFinalize": fn(Handle);
        execute = "cudnnBackendExecute": fn(Handle, Handle, Handle);
    }
}

const NAMES: [&str; 3] = ["libcudnn.so.9", "libcudnn.so", "/usr/local/cuda/lib64/libcudnn.so.9"];
/// Workspaces larger than this are not used.
const MOST_WORKSPACE: i64 = 1 << 30;
/// Ways to compute a convolution that are looked at.
const MOST_WAYS: usize = 32;

/// What the library calls its things, by its header.
mod word {
    // Kinds of descriptors.
    pub const CONVOLUTION: i32 = 1;
    pub const ENGINE: i32 = 2;
    pub const WAY: i32 = 3;
    pub const ADVICE: i32 = 4;
    pub const PLAN: i32 = 5;
    pub const GRAPH: i32 = 15;
    pub const PACK: i32 = 16;
    pub const TENSOR: i32 = 17;
    // Types of attributes.
    pub const HANDLE: i32 = 0;
    pub const DATA_TYPE: i32 = 1;
    pub const INT: i32 = 3;
    pub const FLOAT: i32 = 4;
    pub const DOUBLE: i32 = 5;
    pub const POINTER: i32 = 6;
    pub const MODE: i32 = 7;
    pub const ADVISER: i32 = 8;
    pub const NOTE: i32 = 11;
    pub const DESCRIPTOR: i32 = 15;
    // Notes on a way.
    pub const TENSOR_CORES: i32 = 0;
    pub const BY_CHANCE: i32 = 4;
}

/// The library, looked for once.
fn dnn() -> std::result::Result<&'static Dnn, Missing> {
    static DNN: OnceLock<std::result::Result<Dnn, Missing>> = OnceLock::new();
    DNN.get_or_init(|| {
        let hint = "install cuDNN 9, or `pip install nvidia-cudnn-cu13` (nvidia-cudnn-cu12 for CUDA 12)";
        Dnn::load(open(&NAMES, "NVIDIA's library for convolutions (cuDNN)", hint)?)
    })
    .as_ref()
    .map_err(Clone::clone)
}

/// The version of the library, such as 91400; none if it is not installed.
pub fn version() -> Option<i32> {
    // SAFETY: it takes nothing. It gives a longer number, of which the lower half is all there is.
    dnn().ok().map(|dnn| unsafe { (dnn.version)() })
}

/// Which of the three convolutions over one geometry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    /// Input and weight to output.
    Forward,
    /// Weight and output to input.
    ToData,
    /// Input and output to weight.
    ToWeight,
}

/// A convolution over one to three spatial axes; groups follow from the channels of input and weight.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub struct Geometry {
    pub input: Vec<usize>,
    pub weight: Vec<usize>,
    pub output: Vec<usize>,
    /// The same at both ends of an axis.
    pub pad: Vec<usize>,
    pub stride: Vec<usize>,
    pub dilation: Vec<usize>,
    /// All three lie with their channels side by side, after the spatial axes.
    pub channels_last: bool,
}

impl Geometry {
    /// Is this better computed with the channels side by side? So matrix units read, which float32 uses only where it may be
    /// rounded; small convolutions are not worth laying out anew.
    pub fn likes_channels_last(&self, dtype: DType) -> bool {
        const WORTH: usize = 1 << 28;
        let least = match dtype {
            DType::Float16 | DType::BFloat16 => 8,
            DType::Float32 if precision::convolutions_may_round() => 4,
            _ => return false,
        };
        let [outputs, inputs] = [self.weight[0], self.weight[1]];
        let products = self.output.iter().product::<usize>() * self.weight[1..].iter().product::<usize>();
        self.stride.len() == 2
            && inputs == self.input[1]
            && inputs.is_multiple_of(least)
            && outputs.is_multiple_of(least)
            && inputs.min(outputs) >= 32
            && products >= WORTH
    }
}

#[derive(PartialEq, Eq, Hash)]
struct Key {
    direction: Direction,
    dtype: DType,
    geometry: Geometry,
    /// No sum may depend on chance.
    repeatable: bool,
    /// float32 may be rounded.
    round: bool,
    /// All data begin at a multiple of sixteen bytes, as vectors need it.
    aligned: bool,
}

/// A device's handle of the library, and the plan of each convolution; one call at a time.
#[derive(Default)]
pub(crate) struct Convolutions(Mutex<Option<Ready>>);

struct Ready {
    handle: Handle,
    plans: HashMap<Key, Option<Plan>>,
}

// SAFETY: handles and descriptors are used by one thread at a time, under the lock.
unsafe impl Send for Ready {}

/// A way to compute a convolution, ready to run.
struct Plan {
    plan: Descriptor,
    workspace: usize,
}

/// One of the library's descriptions, given back when dropped.
struct Descriptor {
    dnn: &'static Dnn,
    handle: Handle,
}

impl Drop for Descriptor {
    fn drop(&mut self) {
        // SAFETY: it was made by `new` and is destroyed once.
        unsafe { (self.dnn.forget)(self.handle) };
    }
}

impl Descriptor {
    fn new(dnn: &'static Dnn, kind: i32) -> Result<Descriptor> {
        let mut handle = std::ptr::null_mut();
        // SAFETY: it writes a handle.
        check("cudnnBackendCreateDescriptor", unsafe { (dnn.describe)(kind, &mut handle) })?;
        Ok(Descriptor { dnn, handle })
    }

    /// Sets an attribute to numbers, handles or addresses of the type that `kind` stands for.
    fn set<T>(&self, attribute: i32, kind: i32, values: &[T]) -> Result<()> {
        // SAFETY: as many values of that type as are said.
        let status =
            unsafe { (self.dnn.set)(self.handle, attribute, kind, values.len() as i64, values.as_ptr().cast()) };
        check("cudnnBackendSetAttribute", status)
    }

    /// Reads an attribute into a place for several; how many there were.
    fn get<T>(&self, attribute: i32, kind: i32, values: &mut [T]) -> Result<usize> {
        let mut count = 0;
        let (room, place) = (values.len() as i64, values.as_mut_ptr().cast());
        // SAFETY: there is room for as many values of that type as are said.
        let status = unsafe { (self.dnn.get)(self.handle, attribute, kind, room, &mut count, place) };
        check("cudnnBackendGetAttribute", status)?;
        Ok((count.max(0) as usize).min(values.len()))
    }

    fn finish(self) -> Result<Descriptor> {
        // SAFETY: the descriptor lives.
        check("cudnnBackendFinalize", unsafe { (self.dnn.finish)(self.handle) })?;
        Ok(self)
    }
}

/// Computes a convolution of contiguous blocks: the two operands in the order input, weight, output, and the result. False,
/// with nothing done, if the library knows no way for it. `repeatable` leaves out ways whose sums depend on chance.
pub fn convolve(
    device: &'static Device,
    direction: Direction,
    dtype: DType,
    geometry: Geometry,
    repeatable: bool,
    operands: [(&Block, usize); 2],
    result: &Block,
) -> Result<bool> {
    let count = |shape: &[usize]| shape.iter().product::<usize>();
    let [x, w, y] = [&geometry.input, &geometry.weight, &geometry.output].map(|s| count(s));
    // The numbers by which a plan knows its tensors: input 0, weight 1, output 2.
    let (sizes, names) = match direction {
        Direction::Forward => ([x, w, y], [0i64, 1, 2]),
        Direction::ToData => ([w, y, x], [1, 2, 0]),
        Direction::ToWeight => ([x, y, w], [0, 2, 1]),
    };
    let size = dtype.size();
    let data = [operands[0], operands[1], (result, 0)];
    let fits = data.iter().zip(sizes).all(|((block, offset), n)| (offset + n) * size <= block.len());
    assert!(fits, "operands of the geometry's sizes");
    if !dtype.is_float() {
        return Ok(false);
    }
    if x == 0 || w == 0 || y == 0 {
        device.zero(result)?;
        return Ok(true);
    }
    let addresses = data.map(|(block, offset)| block.address() + (offset * size) as u64);
    if !geometry.channels_last && crate::direct::convolve(device, direction, dtype, &geometry, addresses)? {
        return Ok(true);
    }
    let dnn = dnn()?;
    device.enter()?;
    let aligned = addresses.iter().all(|a| a.is_multiple_of(16));
    let key = Key { direction, dtype, geometry, repeatable, round: precision::convolutions_may_round(), aligned };
    let bytes = {
        let mut ready = device.convolutions.0.lock();
        if ready.is_none() {
            let mut handle = std::ptr::null_mut();
            // SAFETY: it writes a handle, which is never destroyed.
            unsafe {
                check("cudnnCreate", (dnn.create)(&mut handle))?;
                check("cudnnSetStream", (dnn.set_stream)(handle, device.stream))?;
            }
            *ready = Some(Ready { handle, plans: HashMap::new() });
        }
        let Ready { handle, plans } = ready.as_mut().expect("made above");
        if !plans.contains_key(&key) {
            let plan = best(dnn, *handle, &key)?;
            plans.insert(Key { geometry: key.geometry.clone(), ..key }, plan);
        }
        match &plans[&key] {
            Some(plan) => plan.workspace,
            None => return Ok(false),
        }
    };
    // Not under the lock: this waits for whoever records work, who may want a convolution as well.
    let workspace = device.alloc(bytes)?;
    let ready = device.convolutions.0.lock();
    let Ready { handle, plans } = ready.as_ref().expect("made above");
    let plan = plans[&key].as_ref().expect("plans are kept for good");
    let pack = Descriptor::new(dnn, word::PACK)?;
    pack.set(1000, word::INT, &names)?;
    pack.set(1001, word::POINTER, &addresses)?;
    pack.set(1003, word::POINTER, &[workspace.address()])?;
    let pack = pack.finish()?;
    // SAFETY: the blocks are as long as the plan's tensors, by the comparison above, and so is the workspace.
    check("cudnnBackendExecute", unsafe { (dnn.execute)(*handle, plan.plan.handle, pack.handle) })?;
    Ok(true)
}

/// Describes a convolution to the library and asks it for the best way; nothing if it has none.
fn best(dnn: &'static Dnn, handle: Handle, key: &Key) -> Result<Option<Plan>> {
    let Ok(graph) = graph(dnn, handle, key) else { return Ok(None) };
    // First what it thinks best, then what always works.
    for adviser in [3i32, 2] {
        let advice = Descriptor::new(dnn, word::ADVICE)?;
        advice.set(201, word::DESCRIPTOR, &[graph.handle])?;
        advice.set(200, word::ADVISER, &[adviser])?;
        let Ok(advice) = advice.finish() else { continue };
        let ways: Vec<Descriptor> = (0..MOST_WAYS).map(|_| Descriptor::new(dnn, word::WAY)).collect::<Result<_>>()?;
        let mut handles: Vec<Handle> = ways.iter().map(|w| w.handle).collect();
        let found = advice.get(202, word::DESCRIPTOR, &mut handles)?;
        for way in &ways[..found] {
            if allowed(dnn, way, key)?
                && let Some(plan) = plan(dnn, handle, way)?
            {
                return Ok(Some(plan));
            }
        }
    }
    Ok(None)
}

/// May this way be taken?
fn allowed(dnn: &'static Dnn, way: &Descriptor, key: &Key) -> Result<bool> {
    let engine = Descriptor::new(dnn, word::ENGINE)?;
    way.get(300, word::DESCRIPTOR, &mut [engine.handle])?;
    let mut notes = [-1i32; 16];
    let count = engine.get(1303, word::NOTE, &mut notes)?;
    let has = |note: i32| notes[..count].contains(&note);
    let exact = key.dtype == DType::Float32 && !key.round;
    let refused = (key.repeatable && has(word::BY_CHANCE)) || (exact && has(word::TENSOR_CORES));
    Ok(!refused)
}

/// A way made ready to run; nothing if it cannot be on this device, or asks for too much memory.
fn plan(dnn: &'static Dnn, handle: Handle, way: &Descriptor) -> Result<Option<Plan>> {
    let plan = Descriptor::new(dnn, word::PLAN)?;
    plan.set(400, word::HANDLE, &[handle])?;
    plan.set(401, word::DESCRIPTOR, &[way.handle])?;
    let Ok(plan) = plan.finish() else { return Ok(None) };
    let mut bytes = [0i64];
    plan.get(402, word::INT, &mut bytes)?;
    let workspace = bytes[0].max(0);
    Ok((workspace <= MOST_WORKSPACE).then_some(Plan { plan, workspace: workspace as usize }))
}

/// The convolution as a graph of one operation.
fn graph(dnn: &'static Dnn, handle: Handle, key: &Key) -> Result<Descriptor> {
    let g = &key.geometry;
    let long = |numbers: &[usize]| numbers.iter().map(|&n| n as i64).collect::<Vec<i64>>();
    let [mut x, mut w, mut y] = [&g.input, &g.weight, &g.output].map(|l| long(l));
    let [mut pad, mut stride, mut dilation] = [&g.pad, &g.stride, &g.dilation].map(|l| long(l));
    // One spatial axis is seen as two.
    if x.len() == 3 {
        [&mut x, &mut w, &mut y].into_iter().for_each(|s| s.insert(2, 1));
        pad.insert(0, 0);
        [&mut stride, &mut dilation].into_iter().for_each(|s| s.insert(0, 1));
    }
    let kind = match key.dtype {
        DType::Float16 => 2i32,
        DType::BFloat16 => 9,
        DType::Float32 => 0,
        _ => 1,
    };
    let double = key.dtype == DType::Float64;
    let tensor = |name: i64, shape: &[i64]| {
        let mut steps = vec![1i64; shape.len()];
        let mut axes: Vec<usize> = (0..shape.len()).collect();
        if g.channels_last {
            axes[1..].rotate_left(1);
        }
        for pair in axes.windows(2).rev() {
            steps[pair[0]] = steps[pair[1]] * shape[pair[1]];
        }
        let t = Descriptor::new(dnn, word::TENSOR)?;
        t.set(901, word::DATA_TYPE, &[kind])?;
        t.set(902, word::INT, shape)?;
        t.set(903, word::INT, &steps)?;
        t.set(906, word::INT, &[name])?;
        t.set(900, word::INT, &[if key.aligned { 16 } else { key.dtype.size() as i64 }])?;
        t.finish()
    };
    let (x, w, y) = (tensor(0, &x)?, tensor(1, &w)?, tensor(2, &y)?);
    let convolution = Descriptor::new(dnn, word::CONVOLUTION)?;
    convolution.set(106, word::INT, &[stride.len() as i64])?;
    convolution.set(100, word::DATA_TYPE, &[double as i32])?;
    convolution.set(101, word::MODE, &[1i32])?;
    convolution.set(102, word::INT, &dilation)?;
    convolution.set(103, word::INT, &stride)?;
    convolution.set(104, word::INT, &pad)?;
    convolution.set(105, word::INT, &pad)?;
    let convolution = convolution.finish()?;
    // The kind of operation, its first attribute, and its tensors in the order of its attributes.
    let (operation, first, tensors) = match key.direction {
        Direction::Forward => (10, 700, [&w, &x, &y]),
        Direction::ToData => (12, 706, [&w, &x, &y]),
        Direction::ToWeight => (11, 712, [&w, &x, &y]),
    };
    let operation = Descriptor::new(dnn, operation)?;
    match double {
        true => {
            operation.set(first, word::DOUBLE, &[1.0f64])?;
            operation.set(first + 1, word::DOUBLE, &[0.0f64])?;
        }
        false => {
            operation.set(first, word::FLOAT, &[1.0f32])?;
            operation.set(first + 1, word::FLOAT, &[0.0f32])?;
        }
    }
    operation.set(first + 2, word::DESCRIPTOR, &[convolution.handle])?;
    for (at, tensor) in tensors.iter().enumerate() {
        operation.set(first + 3 + at as i32, word::DESCRIPTOR, &[tensor.handle])?;
    }
    let operation = operation.finish()?;
    let graph = Descriptor::new(dnn, word::GRAPH)?;
    graph.set(800, word::HANDLE, &[handle])?;
    graph.set(801, word::DESCRIPTOR, &[operation.handle])?;
    graph.finish()
}

fn check(function: &'static str, status: i32) -> Result<()> {
    match status {
        0 => Ok(()),
        status => Err(Fault::Call { function, said: format!("cuDNN answered with status {status}") }),
    }
}
