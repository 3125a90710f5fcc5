//! What kernels see of tensors: elements, slices and views with and without a type, recycled buffers; moving and
//! converting them.

pub mod any;
pub mod arrange;
pub mod buffer;
pub mod cast;
pub mod copy;
pub mod element;
pub mod nest;
pub mod scalar;
#[doc(hidden)]
pub mod shared;
pub mod view;
pub mod widen;
