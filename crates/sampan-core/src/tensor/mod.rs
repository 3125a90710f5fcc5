//! The tensor: a counted handle on a layout over shared memory, with its place in the recorded graph.

mod aliases;
mod convert;
mod data;
mod display;
mod grad;
pub(crate) use grad::Slot;
pub mod indexing;
mod inplace;
mod memory;
mod operators;
mod update;

pub use convert::Rows;
pub use data::{Data, DataMut, FromNested};
pub use display::{PrintOptions, print_options, set_printoptions};
pub use grad::HookHandle;

use crate::autograd::History;
use crate::shape::{Layout, Shape};
use crate::storage::Storage;
use crate::{DType, Device, Result, recording};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

/// An n-dimensional array that remembers how it was made.
///
/// A clone is another handle on the same tensor. Views (`transpose`, slices, `reshape` where possible) are other tensors
/// on the same memory.
#[derive(Clone)]
pub struct Tensor(Arc<Inner>);

/// What a handle points to. Never changes but for the atomics and the extras.
pub(crate) struct Inner {
    storage: Storage,
    layout: Layout,
    dtype: DType,
    stop_gradient: AtomicBool,
    history: Option<History>,
    /// The storage's version when this handle was made; a recorded write by an alias makes its history stale.
    made_at: u64,
    /// Those who look at the same memory and hear of each other's recorded writes.
    aliases: OnceLock<Arc<aliases::Aliases>>,
    extra: OnceLock<Box<grad::Extra>>,
    /// Zero until somebody asks.
    id: AtomicU64,
}

/// The next tensor that is asked for its id gets this one.
static NEXT_ID: AtomicU64 = AtomicU64::new(1);

impl Tensor {
    /// A tensor over given memory.
    pub(crate) fn from_parts(storage: Storage, layout: Layout, dtype: DType) -> Tensor {
        let made_at = storage.version();
        Tensor(Arc::new(Inner {
            storage,
            layout,
            dtype,
            stop_gradient: AtomicBool::new(true),
            history: None,
            made_at,
            aliases: OnceLock::new(),
            extra: OnceLock::new(),
            id: AtomicU64::new(0),
        }))
    }

    pub(crate) fn from_inner(inner: Arc<Inner>) -> Tensor {
        Tensor(inner)
    }

    pub(crate) fn as_ptr(&self) -> *const Inner {
        Arc::as_ptr(&self.0)
    }

    /// A number that tells this tensor from every other one there was or will be; clones of the handle have the same. A write
    /// in place that autograd records makes it another tensor.
    ///
    /// ```
    /// # use sampan_core::Tensor;
    /// let x = Tensor::new([1.0f32]);
    /// assert!(x.id() == x.clone().id() && x.id() != x.detach().id());
    /// ```
    pub fn id(&self) -> u64 {
        let id = &self.0.id;
        match id.load(Ordering::Relaxed) {
            0 => {
                let new = NEXT_ID.fetch_add(1, Ordering::Relaxed);
                id.compare_exchange(0, new, Ordering::Relaxed, Ordering::Relaxed).map_or_else(|given| given, |_| new)
            }
            given => given,
        }
    }

    /// Are both handles on the very same tensor: memory, history and gradient?
    ///
    /// ```
    /// # use sampan_core::Tensor;
    /// let x = Tensor::new([1.0f32]);
    /// assert!(x.is_same(&x.clone()) && !x.is_same(&x.detach()));
    /// ```
    pub fn is_same(&self, other: &Tensor) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// A new tensor whose values are unspecified.
    pub(crate) fn uninit(shape: impl AsRef<[usize]>, dtype: DType, device: Device) -> Tensor {
        let layout = Layout::contiguous(shape);
        Tensor::from_parts(Storage::uninit(device, dtype, layout.numel()), layout, dtype)
    }

    /// The same in a layout without gaps.
    pub(crate) fn uninit_as(layout: Layout, dtype: DType, device: Device) -> Tensor {
        Tensor::from_parts(Storage::uninit(device, dtype, layout.numel()), layout, dtype)
    }

    /// A new tensor of zeros.
    pub(crate) fn zeroed(shape: impl AsRef<[usize]>, dtype: DType, device: Device) -> Tensor {
        let layout = Layout::contiguous(shape);
        Tensor::from_parts(Storage::zeros(device, dtype, layout.numel()), layout, dtype)
    }

    /// Could it be taken for a tensor that was made just now? Nobody else holds it or its memory, and nobody left anything
    /// with it.
    pub(crate) fn is_as_new(&mut self) -> bool {
        let Some(inner) = Arc::get_mut(&mut self.0) else { return false };
        let bare = inner.history.is_none() && inner.aliases.get().is_none() && inner.extra.get().is_none();
        bare && *inner.id.get_mut() == 0 && *inner.stop_gradient.get_mut() && inner.storage.is_as_new(inner.made_at)
    }

    /// A view on the same memory with another layout. The caller has checked that it stays inside.
    pub(crate) fn view(&self, layout: Layout) -> Tensor {
        self.view_as_dtype(layout, self.0.dtype)
    }

    /// A view that reads the memory as another dtype. The caller has checked that it stays inside.
    pub(crate) fn view_as_dtype(&self, layout: Layout, dtype: DType) -> Tensor {
        Tensor::from_parts(self.0.storage.clone(), layout, dtype).alias_of(self)
    }

    /// A tensor of its own with the values that a layout finds in this one's memory; they are copied when either is
    /// written. The caller has checked that it stays inside.
    pub(crate) fn lazy_copy(&self, layout: Layout) -> Result<Tensor> {
        if recording::on_cpu() && layout == *self.layout() {
            let copy = recording::aside(|| self.lazy_copy(layout))?;
            recording::copied(self, &copy, true);
            return Ok(copy);
        }
        match self.0.storage.lazy_copy() {
            Some(storage) => Ok(Tensor::from_parts(storage, layout, self.0.dtype)),
            None => Tensor::from_parts(self.0.storage.clone(), layout, self.0.dtype).try_clone_data(),
        }
    }

    /// This tensor (not yet shared) as the output of a recorded call.
    pub(crate) fn with_history(mut self, history: History) -> Tensor {
        match Arc::get_mut(&mut self.0) {
            Some(inner) => {
                inner.history = Some(history);
                inner.stop_gradient = AtomicBool::new(false);
                self
            }
            // An op that returns its input itself: a new handle carries the new history.
            None => {
                let t = Tensor::from_parts(self.0.storage.clone(), self.0.layout.clone(), self.0.dtype).alias_of(&self);
                t.with_history(history)
            }
        }
    }

    /// Extents of the axes.
    ///
    /// ```
    /// # use sampan_core::{Tensor, DType};
    /// assert_eq!(Tensor::zeros([2, 3], DType::Float32).shape(), [2, 3]);
    /// ```
    pub fn shape(&self) -> &[usize] {
        &self.0.layout.shape
    }

    /// Steps of the axes in elements.
    pub fn strides(&self) -> &[isize] {
        &self.0.layout.strides
    }

    /// Number of axes.
    pub fn ndim(&self) -> usize {
        self.0.layout.shape.len()
    }

    /// Number of elements.
    pub fn numel(&self) -> usize {
        self.0.layout.numel()
    }

    /// Extent of one axis, counted from either end.
    pub fn dim(&self, axis: i64) -> usize {
        let axis = crate::error::unwrap(crate::shape::axis(axis, self.ndim()));
        self.shape()[axis]
    }

    /// Type of the elements.
    pub fn dtype(&self) -> DType {
        self.0.dtype
    }

    /// Where it lives.
    pub fn device(&self) -> Device {
        self.0.storage.device()
    }

    /// Row-major without gaps?
    pub fn is_contiguous(&self) -> bool {
        self.0.layout.is_contiguous()
    }

    /// Do both share memory?
    pub fn shares_memory(&self, other: &Tensor) -> bool {
        self.0.storage.same(&other.0.storage)
    }

    /// How often the memory was written in place.
    pub fn inplace_version(&self) -> u64 {
        self.0.storage.version()
    }

    /// Shape, strides and offset.
    pub fn layout(&self) -> &Layout {
        &self.0.layout
    }

    pub(crate) fn storage(&self) -> &Storage {
        &self.0.storage
    }

    pub(crate) fn history(&self) -> Option<&History> {
        self.0.history.as_ref()
    }

    /// The shape as an owned list.
    pub(crate) fn shape_vec(&self) -> Shape {
        self.0.layout.shape.clone()
    }

    /// Is it excluded from gradients? True for data, false for parameters and for what is computed from them.
    pub fn stop_gradient(&self) -> bool {
        self.0.stop_gradient.load(Ordering::Relaxed)
            && !(self.is_stale() && self.current().is_ok_and(|t| t.is_tracked()))
    }

    /// Is a gradient wanted for it, as far as its own history knows?
    pub(crate) fn is_tracked(&self) -> bool {
        !self.0.stop_gradient.load(Ordering::Relaxed)
    }

    /// Includes it in gradients or excludes it.
    pub fn set_stop_gradient(&self, stop: bool) -> &Tensor {
        self.0.stop_gradient.store(stop, Ordering::Relaxed);
        self
    }

    /// This tensor as a variable whose gradient is wanted.
    pub fn requires_grad_(self) -> Tensor {
        self.set_stop_gradient(false);
        self
    }

    /// Is a gradient wanted for it?
    pub fn requires_grad(&self) -> bool {
        !self.stop_gradient()
    }

    /// Was it made by the user rather than by a recorded op?
    pub fn is_leaf(&self) -> bool {
        self.0.history.is_none()
    }

    /// The same memory without a history. What it is written does not concern the history of others.
    pub fn detach(&self) -> Tensor {
        Tensor::from_parts(self.0.storage.clone(), self.0.layout.clone(), self.0.dtype)
    }

    /// The name of the op that made it, if it was recorded.
    pub fn grad_fn(&self) -> Option<&'static str> {
        self.history().map(|h| h.node.get().name())
    }

    /// The place a user's error should name it by.
    pub(crate) fn describe(&self) -> String {
        format!("{:?} {}", self.shape(), self.dtype())
    }
}
