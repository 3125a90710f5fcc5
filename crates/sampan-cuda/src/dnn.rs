//! Convolutions by cuDNN.

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
        create = "cudnnCreate": fn(*mut Handle);
        set_stream = "cudnnSetStream": fn(Handle, Handle);
        create_tensor = "cudnnCreateTensorDescriptor": fn(*mut Handle);
        set_tensor = "cudnnSetTensorNdDescriptor": fn(Handle, i32, i32, *const i32, *const i32);
        create_filter = "cudnnCreateFilterDescriptor": fn(*mut Handle);
        set_filter = "cudnnSetFilterNdDescriptor": fn(Handle, i32, i32, i32, *const i32);
        create_convolution = "cudnnCreateConvolutionDescriptor": fn(*mut Handle);
        set_convolution = "cudnnSetConvolutionNdDescriptor":
            fn(Handle, i32, *const i32, *const i32, *const i32, i32, i32);
        set_groups = "cudnnSetConvolutionGroupCount": fn(Handle, i32);
        set_math = "cudnnSetConvolutionMathType": fn(Handle, i32);
        ways_forward = "cudnnGetConvolutionForwardAlgorithm_v7":
            fn(Handle, Handle, Handle, Handle, Handle, i32, *mut i32, *mut Way);
        ways_to_data = "cudnnGetConvolutionBackwardDataAlgorithm_v7":
            fn(Handle, Handle, Handle, Handle, Handle, i32, *mut i32, *mut Way);
        ways_to_weight = "cudnnGetConvolutionBackwardFilterAlgorithm_v7":
            fn(Handle, Handle, Handle, Handle, Handle, i32, *mut i32, *mut Way);
        forward = "cudnnConvolutionForward": fn(
            Handle, *const c_void, Handle, u64, Handle, u64, Handle, i32, u64, usize, *const c_void, Handle, u64
        );
        to_data = "cudnnConvolutionBackwardData": fn(
            Handle, *const c_void, Handle, u64, Handle, u64, Handle, i32, u64, usize, *const c_void, Handle, u64
        );
        to_weight = "cudnnConvolutionBackwardFilter": fn(
            Handle, *const c_void, Handle, u64, Handle, u64, Handle, i32, u64, usize, *const c_void, Handle, u64
        );
    }
}

/// A way to compute a convolution, as the library describes it.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub(crate) struct Way {
    algorithm: i32,
    status: i32,
    time: f32,
    memory: usize,
    determinism: i32,
    math: i32,
    reserved: [i32; 3],
}

const NAMES: [&str; 3] = ["libcudnn.so.9", "libcudnn.so", "/usr/local/cuda/lib64/libcudnn.so.9"];
/// Workspaces larger than this are not used.
const MOST_WORKSPACE: usize = 1 << 30;

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

/// A convolution over one to three spatial axes; padding is the same at both ends of an axis.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub struct Geometry {
    pub input: Vec<usize>,
    pub weight: Vec<usize>,
    pub output: Vec<usize>,
    pub pad: Vec<usize>,
    pub stride: Vec<usize>,
    pub dilation: Vec<usize>,
    pub groups: usize,
}

#[derive(PartialEq, Eq, Hash)]
struct Key(Direction, DType, Geometry, bool, bool);

/// A device's handle of the library, and what was found out about each convolution; one call at a time.
#[derive(Default)]
pub(crate) struct Convolutions(Mutex<Option<Ready>>);

struct Ready {
    handle: Handle,
    plans: HashMap<Key, Option<Plan>>,
}

// SAFETY: handles and descriptors are used by one thread at a time, under the lock.
unsafe impl Send for Ready {}

#[derive(Clone, Copy)]
struct Plan {
    x: Handle,
    w: Handle,
    y: Handle,
    convolution: Handle,
    algorithm: i32,
    workspace: usize,
}

/// Computes a convolution of contiguous blocks: the two operands in the order input, weight, output, and the result. False,
/// with nothing done, if the library knows no way for it. `repeatable` leaves out ways whose sums depend on chance.
pub fn convolve(
    device: &'static Device,
    direction: Direction,
    dtype: DType,
    geometry: &Geometry,
    repeatable: bool,
    operands: [(&Block, usize); 2],
    result: &Block,
) -> Result<bool> {
    let count = |shape: &[usize]| shape.iter().product::<usize>();
    let [x, w, y] = [&geometry.input, &geometry.weight, &geometry.output].map(|s| count(s));
    let (a, b, r) = match direction {
        Direction::Forward => (x, w, y),
        Direction::ToData => (w, y, x),
        Direction::ToWeight => (x, y, w),
    };
    let size = dtype.size();
    let fits = |(block, offset): (&Block, usize), n: usize| (offset + n) * size <= block.len();
    assert!(fits(operands[0], a) && fits(operands[1], b) && fits((result, 0), r), "operands of the geometry's sizes");
    if !dtype.is_float() {
        return Ok(false);
    }
    if x == 0 || w == 0 || y == 0 {
        device.zero(result)?;
        return Ok(true);
    }
    let dnn = dnn()?;
    device.enter()?;
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
    let round = precision::convolutions_may_round();
    let key = Key(direction, dtype, geometry.clone(), repeatable, round);
    let plan = match plans.get(&key) {
        Some(plan) => *plan,
        None => {
            let plan = plan(dnn, *handle, &key)?;
            plans.insert(key, plan);
            plan
        }
    };
    let Some(plan) = plan else { return Ok(false) };
    let workspace = device.alloc(plan.workspace)?;
    let (narrow, wide) = ([1.0f32, 0.0], [1.0f64, 0.0]);
    let (one, zero): (*const c_void, *const c_void) = match dtype {
        DType::Float64 => (wide[..1].as_ptr().cast(), wide[1..].as_ptr().cast()),
        _ => (narrow[..1].as_ptr().cast(), narrow[1..].as_ptr().cast()),
    };
    let at = |(block, offset): (&Block, usize)| block.address() + (offset * size) as u64;
    let (a, b, r, space) = (at(operands[0]), at(operands[1]), result.address(), workspace.address());
    let Plan { x, w, y, convolution: c, algorithm, workspace: bytes } = plan;
    // SAFETY: the blocks are as long as the descriptors say, by the comparison above, and so is the workspace.
    let status = unsafe {
        match direction {
            Direction::Forward => (dnn.forward)(*handle, one, x, a, w, b, c, algorithm, space, bytes, zero, y, r),
            Direction::ToData => (dnn.to_data)(*handle, one, w, a, y, b, c, algorithm, space, bytes, zero, x, r),
            Direction::ToWeight => (dnn.to_weight)(*handle, one, x, a, y, b, c, algorithm, space, bytes, zero, w, r),
        }
    };
    check("cudnnConvolution", status)?;
    Ok(true)
}

/// Describes a convolution to the library and asks it for the best way; nothing if it has none.
fn plan(dnn: &Dnn, handle: Handle, key: &Key) -> Result<Option<Plan>> {
    let Key(direction, dtype, g, repeatable, round) = key;
    let whole = |numbers: &[usize]| numbers.iter().map(|&n| i32::try_from(n).ok()).collect::<Option<Vec<i32>>>();
    let lists = [&g.input, &g.weight, &g.output, &g.pad, &g.stride, &g.dilation].map(|l| whole(l));
    let [Some(mut input), Some(mut weight), Some(mut output), Some(mut pad), Some(mut stride), Some(mut dilation)] =
        lists
    else {
        return Ok(None);
    };
    // One spatial axis is seen as two.
    if input.len() == 3 {
        [&mut input, &mut weight, &mut output].into_iter().for_each(|s| s.insert(2, 1));
        pad.insert(0, 0);
        [&mut stride, &mut dilation].into_iter().for_each(|s| s.insert(0, 1));
    }
    let kind = match dtype {
        DType::Float16 => 2,
        DType::BFloat16 => 9,
        DType::Float32 => 0,
        _ => 1,
    };
    let computed = if *dtype == DType::Float64 { 1 } else { 0 };
    let math = match dtype {
        DType::Float16 | DType::BFloat16 => 1,
        DType::Float32 if *round => 0,
        _ => 3,
    };
    let row_major = |shape: &[i32]| {
        let mut steps = vec![1i32; shape.len()];
        for axis in (0..shape.len() - 1).rev() {
            steps[axis] = steps[axis + 1].saturating_mul(shape[axis + 1]);
        }
        steps
    };
    let (mut x, mut w, mut y, mut c) = (null(), null(), null(), null());
    let (rank, groups) = (input.len() as i32, g.groups as i32);
    let mut ways = [Way::default(); 8];
    let mut found = 0;
    // SAFETY: the functions write handles, and read arrays of as many numbers as there are axes.
    unsafe {
        check("cudnnCreateTensorDescriptor", (dnn.create_tensor)(&mut x))?;
        check("cudnnCreateTensorDescriptor", (dnn.create_tensor)(&mut y))?;
        check("cudnnCreateFilterDescriptor", (dnn.create_filter)(&mut w))?;
        check("cudnnCreateConvolutionDescriptor", (dnn.create_convolution)(&mut c))?;
        let told = [
            (dnn.set_tensor)(x, kind, rank, input.as_ptr(), row_major(&input).as_ptr()),
            (dnn.set_tensor)(y, kind, rank, output.as_ptr(), row_major(&output).as_ptr()),
            (dnn.set_filter)(w, kind, 0, rank, weight.as_ptr()),
            (dnn.set_convolution)(c, rank - 2, pad.as_ptr(), stride.as_ptr(), dilation.as_ptr(), 1, computed),
            (dnn.set_groups)(c, groups),
            (dnn.set_math)(c, math),
        ];
        if told.iter().any(|&status| status != 0) {
            return Ok(None);
        }
        let asked = ways.len() as i32;
        let status = match direction {
            Direction::Forward => (dnn.ways_forward)(handle, x, w, c, y, asked, &mut found, ways.as_mut_ptr()),
            Direction::ToData => (dnn.ways_to_data)(handle, w, y, c, x, asked, &mut found, ways.as_mut_ptr()),
            Direction::ToWeight => (dnn.ways_to_weight)(handle, x, y, c, w, asked, &mut found, ways.as_mut_ptr()),
        };
        if status != 0 {
            return Ok(None);
        }
    }
    let usable = |way: &&Way| way.status == 0 && way.memory <= MOST_WORKSPACE && (!repeatable || way.determinism == 1);
    let way = ways[..found.clamp(0, 8) as usize].iter().find(usable);
    Ok(way.map(|way| Plan { x, w, y, convolution: c, algorithm: way.algorithm, workspace: way.memory }))
}

fn null() -> Handle {
    std::ptr::null_mut()
}

fn check(function: &'static str, status: i32) -> Result<()> {
    match status {
        0 => Ok(()),
        status => Err(Fault::Call { function, said: format!("cuDNN answered with status {status}") }),
    }
}
