//! Many tensors in few kernels.

use super::{Gpu, Held, gpu};
use crate::recording;
use crate::{DType, Device, Result, Tensor};
use sampan_cuda::many::{self, Array};

/// The GPU that all tensors lie on, contiguous and of one float dtype.
fn common(tensors: &[&Tensor]) -> Result<Option<(&'static Gpu, DType)>> {
    let Some(first) = tensors.first() else { return Ok(None) };
    let Device::Cuda(number) = first.device() else { return Ok(None) };
    let alike = |t: &&Tensor| t.device() == first.device() && t.dtype() == first.dtype() && t.is_contiguous();
    let fits = first.dtype().is_float() && tensors.iter().all(alike);
    Ok(if fits { Some((gpu(number)?, first.dtype())) } else { None })
}

fn arrays<'a>(held: &'a [Held], tensors: &[&Tensor]) -> Vec<Array<'a>> {
    let one = |(held, t): (&'a Held, &&Tensor)| Array { block: held.block(), offset: held.start().1, len: t.numel() };
    held.iter().zip(tensors).map(one).collect()
}

/// By what each tensor, or all `together`, must be multiplied so that their norm is at most `limit`: float64 numbers on the
/// GPU, one or as many as tensors. Nothing if they do not all lie on one GPU, contiguous and of one float dtype.
pub fn clip_factors(tensors: &[&Tensor], limit: f64, together: bool) -> Result<Option<Tensor>> {
    let Some((gpu, dtype)) = common(tensors)? else { return Ok(None) };
    let held = tensors.iter().map(|t| Held::values(t, gpu)).collect::<Result<Vec<_>>>()?;
    let results = if together { 1 } else { tensors.len() };
    let out = Tensor::uninit([results], DType::Float64, tensors[0].device());
    many::clip_factors(gpu, dtype, &arrays(&held, tensors), limit, together, Held::to_fill(&out)?.block())?;
    Ok(Some(out))
}

/// Divides tensors by a float32 number on the GPU, in place, and notes in `found`, an int64 number there, whether one is then
/// not finite; false, with nothing done, if they do not all lie there, contiguous and of one float dtype. While work is
/// recorded, the gate is what notes it.
pub fn unscale(tensors: &[&Tensor], scale: &Tensor, found: &Tensor) -> Result<bool> {
    let Some((gpu, dtype)) = common(tensors)? else { return Ok(false) };
    let held: Vec<Held> = tensors.iter().map(|t| Held::to_change(t, t.layout().clone())).collect::<Result<_>>()?;
    let (by, noted) = (Held::values(scale, gpu)?, Held::to_change(found, found.layout().clone())?);
    let noted = recording::gate().unwrap_or_else(|| noted.block().address());
    many::unscale(gpu, dtype, &arrays(&held, tensors), by.block(), noted)?;
    tensors.iter().for_each(|t| {
        t.storage().bump();
    });
    Ok(true)
}
