//! Reductions over axes.

use super::prelude::*;
use sampan_kernels::reduce;

/// The sum over `axis` (all axes by default). bool and int32 add up in int64.
///
/// ```
/// # use sampan_core::Tensor;
/// let x = Tensor::new([[1.0f32, 2.0], [3.0, 4.0]]);
/// assert_eq!(x.sum(()).to_f64(), 10.0);
/// assert_eq!(x.sum(0).to_vec::<f32>(), [4.0, 6.0]);
/// ```
#[op(samples = axis_samples, onnx = "ReduceSum", amp = "black")]
fn sum(
    cx: &Cx,
    x: &Tensor,
    #[default(None)] axis: Axes,
    #[opt(None)] dtype: Option<DType>,
    #[opt(false)] keepdim: bool,
) -> Result<Tensor> {
    let widen = matches!(x.dtype(), DType::Bool | DType::Int32);
    let dtype = dtype.unwrap_or(if widen { DType::Int64 } else { x.dtype() });
    if dtype == DType::Bool {
        return Err(Error::dtype("cannot add up in bool").hint("leave dtype out to add up in int64"));
    }
    let mask = axis.mask(x.ndim())?;
    let kept = Cx::reduced_shape(x.shape(), &mask, true);
    let out = cx.out(Cx::reduced_shape(x.shape(), &mask, keepdim), dtype)?;
    cx.cpu(|| {
        let x = x.try_cast(dtype)?;
        match_dtype!(dtype, T in number => {
            reduce::sum(x.data::<T>().view(), &mask, out.data_mut::<T>().slice())
        }, else => {});
        Ok(())
    })?;
    let shape = x.shape_vec();
    cx.grad(out, &[], move |g| Ok(g.grad().reshape_to(&kept).expand(&shape)))
}

/// Reductions over one axis, several, all; kept and not; with empty and 0-d inputs.
pub(crate) fn axis_samples() -> Vec<Sample> {
    vec![
        sample![randn([2, 3])],
        sample![randn([2, 3, 4]), 1],
        sample![randn([2, 3, 4]), [0, -1]],
        sample![randn([2, 3]), -1; keepdim = true],
        sample![randn([])],
        sample![randn([0, 3]), 0],
    ]
}
