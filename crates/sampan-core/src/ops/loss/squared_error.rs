//! Squared differences of two tensors, which `mse_loss` comes down to: one kernel forward and one backward.

use crate::ops::prelude::*;
use sampan_kernels::squared_error as kernel;

fn check(x: &Tensor, y: &Tensor) -> Result<DType> {
    crate::ops::loss::same_shape(("x", x), ("y", y))?;
    let dtype = x.dtype();
    if !matches!(dtype, DType::Float32 | DType::Float64) || y.dtype() != dtype {
        return Err(Error::dtype(format!("x and y must both be float32 or float64, got {dtype} and {}", y.dtype())));
    }
    Ok(dtype)
}

/// `scale * (x - y)^2`, with `sum` added up over all elements.
#[op(
    internal,
    module = "nn.functional",
    samples = error_samples,
    reference = error_composite,
    peer = "none: mse_loss, of which it is a part, has one"
)]
fn squared_error(cx: &Cx, x: &Tensor, y: &Tensor, scale: f64, sum: bool) -> Result<Tensor> {
    let dtype = check(x, y)?;
    let out = cx.out(if sum { &[] } else { x.shape() }, dtype)?;
    cx.kernel(&[x, y], &out, move |t, out| {
        let (x, y) = (t[0].as_rows()?, t[1].as_rows()?);
        let (x, y, mut out) = (x.values(), y.values(), out.values_mut());
        if sum {
            kernel::sum(x.slice(), y.slice(), scale, out.slice());
        } else {
            kernel::each(x.slice(), y.slice(), scale, out.slice());
        }
        Ok(())
    })?;
    cx.grad(out, &[x, y], move |g| {
        let dx = g.grad().squared_error_grad(g.saved(0), g.saved(1), 2.0 * scale);
        Ok([g.if_needed(0, || dx.clone()), g.if_needed(1, || -&dx)])
    })
}

fn error_composite(x: &Tensor, y: &Tensor, scale: f64, sum: bool) -> Result<Tensor> {
    let each = x.try_subtract(y)?.square() * scale;
    Ok(if sum { each.sum(()) } else { each })
}

/// `scale * grad * (x - y)`, where `grad` has one element for each of `x` or is a single number: the gradient of
/// `squared_error`.
#[op(
    internal,
    module = "nn.functional",
    samples = grad_samples,
    reference = grad_composite,
    peer = "none: mse_loss, of whose gradient it is a part, has one"
)]
fn squared_error_grad(cx: &Cx, grad: &Tensor, x: &Tensor, y: &Tensor, scale: f64) -> Result<Tensor> {
    let dtype = check(x, y)?;
    let single = grad.ndim() == 0;
    ensure!(grad.dtype() == dtype, "grad has dtype {}, x has {dtype}", grad.dtype());
    ensure!(single || grad.shape() == x.shape(), "grad has shape {:?}, x has {:?}", grad.shape(), x.shape());
    let out = cx.out(x.shape(), dtype)?;
    cx.kernel(&[grad, x, y], &out, move |t, out| {
        let (grad, x, y) = (t[0].as_rows()?, t[1].as_rows()?, t[2].as_rows()?);
        let (x, y, grad, mut out) = (x.values(), y.values(), grad.values(), out.values_mut());
        kernel::gradient(x.slice(), y.slice(), grad.slice(), scale, out.slice());
        Ok(())
    })?;
    cx.grad(out, &[grad, x, y], move |g| {
        let (grad, x, y) = (g.saved(0), g.saved(1), g.saved(2));
        let gg = g.grad() * scale;
        let by_grad = || {
            let each = &gg * (x - y);
            if single { each.sum(()) } else { each }
        };
        Ok([g.if_needed(0, by_grad), g.if_needed(1, || &gg * grad), g.if_needed(2, || -(&gg * grad))])
    })
}

fn grad_composite(grad: &Tensor, x: &Tensor, y: &Tensor, scale: f64) -> Result<Tensor> {
    Ok(x.try_subtract(y)? * grad * scale)
}

fn error_samples() -> Vec<Sample> {
    vec![
        sample![randn([2, 3]), uniform([2, 3], -1.0, 1.0), 0.5, true],
        sample![randn([2, 3]), uniform([2, 3], -1.0, 1.0), 2.0, false],
        sample![randn([]), uniform([], -1.0, 1.0), 1.0, true],
        sample![randn([0, 3]), randn([0, 3]), 1.0, true],
    ]
}
fn grad_samples() -> Vec<Sample> {
    vec![
        sample![randn([]), randn([2, 3]), uniform([2, 3], -1.0, 1.0), 0.5],
        sample![randn([2, 3]), randn([2, 3]), uniform([2, 3], -1.0, 1.0), 2.0],
        sample![randn([]), randn([]), randn([]), 2.0],
    ]
}
