//! What the core asks of a GPU: kernels on tensors. Each returns false, with nothing done, where it cannot do what is asked; the
//! CPU then stands in.

mod conv;
pub(crate) mod index;
mod many;
pub(crate) mod pool;
mod product;
pub(crate) mod random;
pub(crate) mod rows;
pub(crate) mod sequence;
mod step;

pub(crate) use conv::{Convolution, convolve, laid};
pub use many::{clip_factors, unscale};
pub(crate) use product::{affine, product};
pub use step::{Step, step, written};

use crate::op::OpDef;
use crate::shape::Layout;
use crate::{DType, Device, Error, Result, Scalar, Tensor};
use parking_lot::Mutex;
use sampan_cuda::reduce::{self, Reduction};
use sampan_cuda::{Block, View};
use sampan_formula::{Bound, formula};
use smallvec::SmallVec;
use std::collections::BTreeMap;
use std::sync::Arc;

pub(crate) use sampan_cuda::Device as Gpu;

/// How often the CPU stood in for a GPU, by op.
pub(crate) static STOOD_IN: Mutex<BTreeMap<&'static str, u64>> = Mutex::new(BTreeMap::new());

/// Notes that an op without a kernel for the GPU ran on the CPU; the first time is said.
#[cold]
pub(crate) fn stood_in(op: &'static OpDef) {
    let mut counts = STOOD_IN.lock();
    let count = counts.entry(op.name).or_insert(0);
    *count += 1;
    if *count == 1 && std::env::var_os("SAMPAN_QUIET").is_none() {
        eprintln!("sampan: {} has no kernel for the GPU yet; the CPU computes it, which is slow", op.name);
    }
}

/// How often the CPU stood in for a GPU since the last time this was asked, by op.
///
/// ```
/// # use sampan_core::gpu;
/// assert!(gpu::take_stood_in().is_empty());
/// ```
pub fn take_stood_in() -> BTreeMap<&'static str, u64> {
    std::mem::take(&mut *STOOD_IN.lock())
}

/// The GPU of a number.
pub(crate) fn gpu(number: u8) -> Result<&'static Gpu> {
    Ok(sampan_cuda::device(number as usize)?)
}

/// The memory of a tensor on a GPU, and what of it is seen.
pub(crate) struct Held {
    block: Arc<Block>,
    layout: Layout,
    dtype: DType,
}

impl Held {
    /// The values of a tensor, wherever it lies.
    pub fn values(t: &Tensor, gpu: &'static Gpu) -> Result<Held> {
        Held::seen(t, gpu, t.layout().clone())
    }

    /// The values that a layout finds in a tensor's memory.
    pub fn seen(t: &Tensor, gpu: &'static Gpu, layout: Layout) -> Result<Held> {
        Ok(Held { block: block_of(t, gpu)?, layout, dtype: t.dtype() })
    }

    /// The memory of a new tensor, all of which will be written.
    pub fn to_fill(t: &Tensor) -> Result<Held> {
        Ok(Held { block: t.storage().for_device()?, layout: t.layout().clone(), dtype: t.dtype() })
    }

    /// Part of a tensor's memory, which will be written; the rest stays.
    pub fn to_change(t: &Tensor, layout: Layout) -> Result<Held> {
        Ok(Held { block: t.storage().to_change_on_device()?, layout, dtype: t.dtype() })
    }

    pub fn block(&self) -> &Block {
        &self.block
    }

    /// Its memory, and where the first element lies there.
    pub fn start(&self) -> (&Block, usize) {
        (&self.block, self.layout.offset)
    }

    pub fn view(&self) -> View<'_> {
        let Layout { shape, strides, offset } = &self.layout;
        View { block: &self.block, dtype: self.dtype, shape, strides, offset: *offset }
    }

    /// The same bits as integers, which every copy leaves as they are.
    fn bits(mut self) -> Held {
        self.dtype = match self.dtype.size() {
            1 => DType::UInt8,
            2 => DType::Int16,
            4 => DType::Int32,
            8 => DType::Int64,
            _ => self.dtype,
        };
        self
    }
}

fn block_of(t: &Tensor, gpu: &'static Gpu) -> Result<Arc<Block>> {
    match t.device() {
        Device::Cuda(number) if number as usize == gpu.ordinal() => t.storage().on_device(),
        Device::Meta => Err(Error::invalid("a meta tensor holds no values")),
        _ => {
            let bytes = t.storage().read();
            let block = gpu.alloc(bytes.len())?;
            gpu.upload(bytes.bytes(), &block)?;
            Ok(Arc::new(block))
        }
    }
}

/// `out = f(tensors…)` under broadcasting, computed in `dtype`.
pub(crate) fn map(gpu: &'static Gpu, f: &Bound, dtype: DType, tensors: &[&Tensor], out: &Tensor) -> Result<()> {
    let seen = |t: &&Tensor| Held::seen(t, gpu, t.layout().broadcast_to(out.shape()));
    let inputs: SmallVec<[Held; 3]> = tensors.iter().map(seen).collect::<Result<_>>()?;
    let views: SmallVec<[View; 3]> = inputs.iter().map(Held::view).collect();
    Ok(sampan_cuda::map::map(gpu, f, dtype, &views, Held::to_fill(out)?.view())?)
}

/// `x = f(x, tensors…)` in place.
pub(crate) fn change(gpu: &'static Gpu, f: &Bound, x: &Tensor, tensors: &[&Tensor]) -> Result<()> {
    let to = Held::to_change(x, x.layout().clone())?;
    let seen = |t: &&Tensor| Held::seen(t, gpu, t.layout().broadcast_to(x.shape()));
    let others: SmallVec<[Held; 3]> = tensors.iter().map(seen).collect::<Result<_>>()?;
    let views: SmallVec<[View; 3]> = std::iter::once(&to).chain(&others).map(Held::view).collect();
    sampan_cuda::map::map(gpu, f, x.dtype(), &views, to.view())?;
    x.storage().bump();
    crate::dispatch::wrote(x, x, crate::dispatch::Write::Update);
    Ok(())
}

/// A copy of a tensor on a GPU.
pub(crate) fn upload(gpu: &'static Gpu, x: &Tensor) -> Result<Tensor> {
    let x = x.detach().in_rows()?;
    let out = Tensor::uninit(x.shape(), x.dtype(), Device::Cuda(gpu.ordinal() as u8));
    let bytes = x.storage().read();
    let start = x.layout().offset * x.dtype().size();
    let to = Held::to_fill(&out)?;
    send(gpu, &bytes.bytes()[start..start + to.block().len()], to.block())?;
    Ok(out)
}

/// Copies bytes on the host, with all threads if they are many.
pub(crate) fn copy_bytes(from: &[u8], to: &mut [u8]) {
    let view = sampan_kernels::View { data: from, shape: &[from.len()], strides: &[1], offset: 0 };
    sampan_kernels::copy::copy_strided(view.into(), to.into());
}

/// Copies bytes to a GPU. Many go piece by piece through memory that the GPU reads by itself: while it reads one piece the next
/// is brought there.
pub(crate) fn send(gpu: &'static Gpu, from: &[u8], to: &Block) -> Result<()> {
    /// Bytes of a piece, and the least that are cut into some.
    const PIECE: usize = 4 << 20;
    static FEEDS: Mutex<BTreeMap<usize, sampan_cuda::Feed>> = Mutex::new(BTreeMap::new());
    if from.len() < PIECE || gpu.records() {
        return Ok(gpu.upload(from, to)?);
    }
    let mut feeds = FEEDS.lock();
    let feed = match feeds.entry(gpu.ordinal()) {
        std::collections::btree_map::Entry::Occupied(known) => known.into_mut(),
        std::collections::btree_map::Entry::Vacant(new) => new.insert(sampan_cuda::Feed::new(gpu, PIECE)?),
    };
    for (i, piece) in from.chunks(PIECE).enumerate() {
        feed.send(&[(to, i * PIECE, piece.len())], |_, place| copy_bytes(piece, place))?;
    }
    Ok(())
}

/// A copy of a tensor on the host.
pub(crate) fn download(x: &Tensor) -> Result<Tensor> {
    let x = x.detach().in_rows()?;
    let out = Tensor::uninit(x.shape(), x.dtype(), Device::Cpu);
    sampan_kernels::copy::copy_strided(x.values().view(), out.values_mut().slice());
    Ok(out)
}

/// Casts a tensor into a new one.
pub(crate) fn cast(gpu: &'static Gpu, x: &Tensor, out: &Tensor) -> Result<()> {
    map(gpu, &formula!(|x| x), x.dtype(), &[x], out)
}

/// Copies a tensor into a new one.
pub(crate) fn copy(gpu: &'static Gpu, x: &Tensor, out: &Tensor) -> Result<()> {
    let (from, to) = (Held::values(x, gpu)?.bits(), Held::to_fill(out)?.bits());
    Ok(sampan_cuda::map::copy(gpu, from.view(), to.view())?)
}

/// Copies the values of `x`, of the same dtype, into the part of a tensor's memory that a layout of the same shape sees.
pub(crate) fn copy_into(gpu: &'static Gpu, x: &Tensor, out: &Tensor, place: Layout) -> Result<()> {
    let (from, to) = (Held::values(x, gpu)?.bits(), Held::to_change(out, place)?.bits());
    Ok(sampan_cuda::map::copy(gpu, from.view(), to.view())?)
}

/// Sets the part of a tensor's memory that a layout sees to one number.
pub(crate) fn fill(gpu: &'static Gpu, value: Scalar, out: &Tensor, place: Layout) -> Result<()> {
    // What nobody else sees need not be brought up to date first.
    let alone = place == *out.layout() && !out.storage().is_shared();
    let to = if alone { Held::to_fill(out)? } else { Held::to_change(out, place)? };
    let dtype = out.dtype();
    let f = formula!(|x| x).with_number(0, crate::ops::elementwise::constant(value, Some(dtype)));
    Ok(sampan_cuda::map::map(gpu, &f, dtype, &[], to.view())?)
}

/// Adds one number for each index of an axis, in place.
pub(crate) fn add_along(gpu: &'static Gpu, out: &Tensor, bias: Option<&Tensor>, axis: i64) -> Result<bool> {
    if let Some(bias) = bias {
        let mut strides = crate::shape::Strides::from_elem(0, out.ndim());
        strides[crate::shape::axis(axis, out.ndim())?] = bias.layout().strides[0];
        let seen = Layout { shape: out.shape_vec(), strides, offset: bias.layout().offset };
        let (bias, to) = (Held::seen(bias, gpu, seen)?, Held::to_change(out, out.layout().clone())?);
        let add = formula!(|x, y| x + y);
        sampan_cuda::map::map(gpu, &add, out.dtype(), &[to.view(), bias.view()], to.view())?;
    }
    Ok(true)
}

/// Reduces the flagged axes of `x` into a new tensor.
pub(crate) fn reduce(gpu: &'static Gpu, kind: Reduction, x: &Tensor, mask: &[bool], out: &Tensor) -> Result<bool> {
    let (from, to) = (Held::values(x, gpu)?, Held::to_fill(out)?);
    Ok(reduce::reduce(gpu, kind, from.view(), mask, to.block(), out.dtype())?)
}

/// The place of the largest (or smallest) element along the flagged axes.
pub(crate) fn arg_extreme(gpu: &'static Gpu, largest: bool, x: &Tensor, mask: &[bool], out: &Tensor) -> Result<bool> {
    let (from, to) = (Held::values(x, gpu)?, Held::to_fill(out)?);
    Ok(reduce::arg_extreme(gpu, largest, from.view(), mask, to.block())?)
}

/// Running sums or products along lines of `n` elements that lie `inner` apart; `x` is contiguous.
pub(crate) fn running(
    gpu: &'static Gpu,
    product: bool,
    x: &Tensor,
    n: usize,
    inner: usize,
    out: &Tensor,
) -> Result<bool> {
    if x.dtype() == DType::Bool {
        return Ok(false);
    }
    let (from, to) = (Held::values(x, gpu)?, Held::to_fill(out)?);
    let lines = [x.numel() / (n * inner).max(1), n, inner];
    reduce::running(gpu, product, x.dtype(), lines, from.start(), to.block())?;
    Ok(true)
}

/// `first + i * step`, each given as a whole number and as a real one.
pub(crate) fn count_up(gpu: &'static Gpu, first: (i64, f64), step: (i64, f64), out: &Tensor) -> Result<bool> {
    let to = Held::to_fill(out)?;
    sampan_cuda::index::count_up(gpu, out.dtype(), out.numel(), first, step, to.block())?;
    Ok(true)
}

/// Numbers from `first` to `last`, evenly spaced, or `base` to the power of them. Integers are the host's to round.
pub(crate) fn spaced(gpu: &'static Gpu, first: f64, last: f64, base: Option<f64>, out: &Tensor) -> Result<bool> {
    if !out.dtype().is_float() {
        return Ok(false);
    }
    let to = Held::to_fill(out)?;
    sampan_cuda::index::spaced(gpu, out.dtype(), out.numel(), (first, last), base, to.block())?;
    Ok(true)
}

/// A moment in the work of a GPU, for waiting and for measuring.
pub struct Event(sampan_cuda::Event);

impl Event {
    /// An event of a GPU; it lies in the past until it is recorded.
    pub fn new(number: u8) -> Result<Event> {
        Ok(Event(sampan_cuda::Event::new(gpu(number)?, true)?))
    }

    /// Now: after all work that was begun before.
    pub fn record(&self) -> Result<()> {
        Ok(self.0.record()?)
    }

    /// Waits for the work before it.
    pub fn wait(&self) -> Result<()> {
        Ok(self.0.wait()?)
    }

    /// Has the work before it been done?
    pub fn is_over(&self) -> Result<bool> {
        Ok(self.0.is_over()?)
    }

    /// Milliseconds from this event to a later one.
    pub fn milliseconds_to(&self, end: &Event) -> Result<f32> {
        Ok(self.0.milliseconds_to(&end.0)?)
    }
}

/// How many GPUs there are, or why none can be used.
pub fn count() -> Result<usize> {
    sampan_cuda::count().map_err(|why| Error::new(crate::error::Kind::Unavailable, why.0))
}

/// Folders in which NVIDIA's libraries are looked for before the system's.
pub fn look_in(folders: Vec<std::path::PathBuf>) {
    sampan_cuda::look_in(folders);
}

/// The version of cuDNN, such as 91400; none if it is not installed.
pub fn cudnn_version() -> Option<i32> {
    sampan_cuda::dnn::version()
}

/// What a GPU is.
pub fn info(number: u8) -> Result<sampan_cuda::Info> {
    Ok(gpu(number)?.info().clone())
}

/// The memory of a GPU as this process uses it.
pub fn memory(number: u8) -> Result<&'static sampan_cuda::Memory> {
    Ok(gpu(number)?.memory())
}

/// Gives memory that is kept for reuse back to a GPU.
pub fn release(number: u8) -> Result<()> {
    let gpu = gpu(number)?;
    Ok(gpu.memory().release(gpu)?)
}

/// Waits for all work of a GPU.
pub fn synchronize(number: u8) -> Result<()> {
    Ok(gpu(number)?.wait()?)
}

/// May products and convolutions of float32 numbers be rounded to TF32? As in PyTorch, convolutions may and products may not,
/// unless [`set_rounding`] says otherwise.
pub fn rounding() -> (bool, bool) {
    (sampan_cuda::precision::products_may_round(), sampan_cuda::precision::convolutions_may_round())
}

/// Says whether products and convolutions of float32 numbers may be rounded to TF32.
pub fn set_rounding(products: bool, convolutions: bool) {
    sampan_cuda::precision::set_rounding(products, convolutions);
}
