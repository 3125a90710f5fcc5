//! The bytes of tensors.

use sampan_core::{Device, Error, Result, Tensor};

/// Tensors of a call must hold values. Those on a GPU go through the memory of the host.
pub fn check(t: &Tensor) -> Result<()> {
    match t.device().has_values() {
        true => Ok(()),
        false => Err(Error::invalid("a meta tensor holds no values to send")),
    }
}

/// A tensor on the host, in row-major memory; itself if it is so already.
fn on_host(t: &Tensor) -> Result<Tensor> {
    let t = t.detach();
    if t.device() == Device::Cpu { t.try_contiguous() } else { t.try_to_device("cpu")?.try_contiguous() }
}

/// Several tensors of one shape and dtype.
pub fn check_alike(tensors: &[Tensor], like: &Tensor, count: usize, name: &str) -> Result<()> {
    if tensors.len() != count {
        return Err(Error::invalid(format!("{name} has {} tensors for {count} processes", tensors.len())));
    }
    for (i, t) in tensors.iter().enumerate() {
        check(t)?;
        if t.numel() != like.numel() || t.dtype() != like.dtype() {
            let (shape, dtype) = (t.shape(), t.dtype());
            return Err(Error::invalid(format!(
                "{name}[{i}] is {dtype} of shape {shape:?}, but {} of shape {:?} is needed",
                like.dtype(),
                like.shape()
            )));
        }
    }
    Ok(())
}

/// Calls `f` with the bytes of a tensor.
pub fn with_bytes<R>(t: &Tensor, f: impl FnOnce(&[u8]) -> Result<R>) -> Result<R> {
    let t = on_host(t)?;
    let values = t.values();
    f(values.slice().bytes())
}

/// Calls `f` with the bytes of a tensor, to be changed. It counts as a write in place that autograd does not record.
pub fn change_bytes<R>(t: &Tensor, f: impl FnOnce(&mut [u8]) -> Result<R>) -> Result<R> {
    if t.device() != Device::Cpu {
        let host = on_host(t)?;
        let result = Tensor::update(&[&host], &[], |targets, _| f(targets[0]))??;
        t.try_set_value(&host.try_to_device(&t.device().to_string())?)?;
        return Ok(result);
    }
    if t.is_contiguous() {
        return Tensor::update(&[t], &[], |targets, _| f(targets[0]))?;
    }
    let rows = t.try_clone_data()?;
    let result = Tensor::update(&[&rows], &[], |targets, _| f(targets[0]))??;
    t.try_set_value(&rows)?;
    Ok(result)
}

/// Writes parts of bytes into tensors, one after the other.
pub fn spread(bytes: &[u8], tensors: &[Tensor]) -> Result<()> {
    let mut rest = bytes;
    for t in tensors {
        let (now, later) = rest.split_at(t.numel() * t.dtype().size());
        change_bytes(t, |to| {
            to.copy_from_slice(now);
            Ok(())
        })?;
        rest = later;
    }
    Ok(())
}

/// The bytes of tensors, one after the other.
pub fn join(tensors: &[Tensor]) -> Result<sampan_kernels::Buffer> {
    let total = tensors.iter().map(|t| t.numel() * t.dtype().size()).sum();
    let mut all = sampan_kernels::Buffer::try_uninit(total)?;
    let mut rest = all.bytes_mut();
    for t in tensors {
        let (now, later) = rest.split_at_mut(t.numel() * t.dtype().size());
        with_bytes(t, |bytes| {
            now.copy_from_slice(bytes);
            Ok(())
        })?;
        rest = later;
    }
    Ok(all)
}
