//! Derivatives of functions as a whole: products with vectors, Jacobians and Hessians.

use super::{GradOptions, enable_grad, grad};
use crate::ops::joining::try_stack;
use crate::{Error, Result, Tensor};

/// New leaves with the same values, so that the caller's tensors keep their flags and history.
fn leaves(xs: &[Tensor]) -> Vec<Tensor> {
    xs.iter().map(|x| x.detach().requires_grad_()).collect()
}

fn zeros_like(x: &Tensor) -> Tensor {
    Tensor::zeros_on(x.shape(), x.dtype(), x.device())
}

fn or_zeros(grads: Vec<Option<Tensor>>, like: &[Tensor]) -> Vec<Tensor> {
    grads.into_iter().zip(like).map(|(g, x)| g.unwrap_or_else(|| zeros_like(x))).collect()
}

fn check_vectors(v: &[Tensor], like: &[Tensor], what: &str) -> Result<()> {
    let fits = v.len() == like.len() && v.iter().zip(like).all(|(v, x)| v.shape() == x.shape());
    if fits {
        return Ok(());
    }
    let shapes = |ts: &[Tensor]| ts.iter().map(|t| format!("{:?}", t.shape())).collect::<Vec<_>>().join(", ");
    Err(Error::invalid(format!("v must have the shapes of {what}, {}, got {}", shapes(like), shapes(v))))
}

/// The outputs of `f` at `xs` and the product of `v` with its Jacobian: one walk back. Without `v` it is ones.
///
/// ```
/// # use sampan_core::{Tensor, autograd::functional::vjp};
/// let x = Tensor::new([1.0f32, 2.0]);
/// let (y, g) = vjp(|x| Ok(vec![&x[0] * &x[0]]), &[x], None).unwrap();
/// assert_eq!(y[0].to_vec::<f32>(), [1.0, 4.0]);
/// assert_eq!(g[0].to_vec::<f32>(), [2.0, 4.0]);
/// ```
#[track_caller]
pub fn vjp(
    f: impl Fn(&[Tensor]) -> Result<Vec<Tensor>>,
    xs: &[Tensor],
    v: Option<&[Tensor]>,
) -> Result<(Vec<Tensor>, Vec<Tensor>)> {
    crate::dispatch::outermost(|| {
        let xs = leaves(xs);
        let ys = enable_grad(|| f(&xs))?;
        if let Some(v) = v {
            check_vectors(v, &ys, "the outputs")?;
        }
        let grads = walk(&ys, &xs, v, GradOptions { allow_unused: true, ..Default::default() })?;
        Ok((ys.iter().map(Tensor::detach).collect(), or_zeros(grads, &xs)))
    })
    .map_err(|e| e.in_op("vjp"))
}

/// `grad` over those outputs that depend on anything.
fn walk(ys: &[Tensor], xs: &[Tensor], v: Option<&[Tensor]>, options: GradOptions) -> Result<Vec<Option<Tensor>>> {
    let live: Vec<usize> = (0..ys.len()).filter(|&i| ys[i].requires_grad()).collect();
    if live.is_empty() {
        return Ok(vec![None; xs.len()]);
    }
    let outputs: Vec<Tensor> = live.iter().map(|&i| ys[i].clone()).collect();
    let v: Vec<Option<Tensor>> = live.iter().map(|&i| v.map(|v| v[i].clone())).collect();
    grad(&outputs, xs, &v, options)
}

/// The outputs of `f` at `xs` and the product of its Jacobian with `v`: the change of the outputs when the inputs change
/// by `v`. Without `v` it is ones.
///
/// ```
/// # use sampan_core::{Tensor, autograd::jvp};
/// let x = Tensor::new([1.0f32, 2.0]);
/// let (_, d) = jvp(|x| Ok(vec![&x[0] * &x[0]]), &[x], None).unwrap();
/// assert_eq!(d[0].to_vec::<f32>(), [2.0, 4.0]);
/// ```
#[track_caller]
pub fn jvp(
    f: impl Fn(&[Tensor]) -> Result<Vec<Tensor>>,
    xs: &[Tensor],
    v: Option<&[Tensor]>,
) -> Result<(Vec<Tensor>, Vec<Tensor>)> {
    crate::dispatch::outermost(|| {
        if let Some(v) = v {
            check_vectors(v, xs, "the inputs")?;
        }
        let xs = leaves(xs);
        let ys = enable_grad(|| f(&xs))?;
        // The product of a vector u with the Jacobian is linear in u; its own gradient along v is what is asked for.
        let u: Vec<Tensor> = ys.iter().map(|y| zeros_like(y).requires_grad_()).collect();
        let options = GradOptions { create_graph: true, allow_unused: true, ..Default::default() };
        let back = walk(&ys, &xs, Some(&u), options)?;
        let (live, along): (Vec<Tensor>, Vec<Tensor>) = back
            .into_iter()
            .enumerate()
            .filter_map(|(i, g)| {
                g.map(|g| (g, v.map_or_else(|| Tensor::full_like_scalar(&xs[i], 1.0), |v| v[i].clone())))
            })
            .unzip();
        let forward = walk(&live, &u, Some(&along), GradOptions { allow_unused: true, ..Default::default() })?;
        Ok((ys.iter().map(Tensor::detach).collect(), or_zeros(forward, &ys)))
    })
    .map_err(|e| e.in_op("jvp"))
}

/// The derivatives of every element of `y` with respect to every element of each of `xs`, from the recorded graph.
/// The result has the axes of `y`, then those of `x`. It is recorded too, so it can be differentiated again.
///
/// With `batch_axis` 0 the first axis counts independent cases, and the result has it once: `[B, M, N]` for `y` of
/// shape `[B, M]` and `x` of `[B, N]`.
///
/// ```
/// # use sampan_core::{Tensor, autograd::jacobian};
/// let x = Tensor::new([1.0f32, 2.0]).requires_grad_();
/// let y = &x * &x;
/// assert_eq!(jacobian(&y, &[x], None).unwrap()[0].to_vec::<f32>(), [2.0, 0.0, 0.0, 4.0]);
/// ```
#[track_caller]
pub fn jacobian(y: &Tensor, xs: &[Tensor], batch_axis: Option<i64>) -> Result<Vec<Tensor>> {
    if !y.requires_grad() {
        return Err(Error::invalid("y has stop_gradient=True, so it depends on nothing").in_op("jacobian"));
    }
    crate::dispatch::outermost(|| jacobian_of(y, xs, batch_axis)).map_err(|e| e.in_op("jacobian"))
}

fn jacobian_of(y: &Tensor, xs: &[Tensor], batch_axis: Option<i64>) -> Result<Vec<Tensor>> {
    let batched = match batch_axis {
        None => false,
        Some(0) => true,
        Some(other) => return Err(Error::invalid(format!("batch_axis must be None or 0, got {other}"))),
    };
    if batched {
        for t in xs.iter().chain([y]) {
            if t.ndim() == 0 || t.shape()[0] != y.shape()[0] {
                return Err(Error::invalid(format!(
                    "with batch_axis=0 all must have the same first axis, got {:?} beside {:?}",
                    t.shape(),
                    y.shape()
                )));
            }
        }
    }
    // One walk for each element of a case; the cases of a batch do not touch each other, so they share it.
    let per_case: usize = y.shape()[batched as usize..].iter().product();
    let options = GradOptions { create_graph: true, allow_unused: true, ..Default::default() };
    let mut rows: Vec<Vec<Tensor>> = xs.iter().map(|_| Vec::with_capacity(per_case)).collect();
    for i in 0..per_case {
        let mut pick = vec![0.0f64; y.numel()];
        pick.iter_mut().skip(i).step_by(per_case).for_each(|v| *v = 1.0);
        let pick = Tensor::try_from_slice(&pick, y.shape())?.try_cast(y.dtype())?;
        // What is a constant has no graph, and all its derivatives are zero.
        let grads = walk(std::slice::from_ref(y), xs, Some(&[pick]), options)?;
        rows.iter_mut().zip(or_zeros(grads, xs)).for_each(|(rows, g)| rows.push(g));
    }
    rows.into_iter()
        .zip(xs)
        .map(|(rows, x)| {
            let mut shape: Vec<i64> = Vec::new();
            if batched {
                shape.push(y.shape()[0] as i64);
                // One number a case counts as a row of one where the input has several.
                if y.ndim() == 1 && x.ndim() > 1 {
                    shape.push(1);
                }
            }
            shape.extend(y.shape()[batched as usize..].iter().map(|&n| n as i64));
            shape.extend(x.shape()[batched as usize..].iter().map(|&n| n as i64));
            if rows.is_empty() {
                return Ok(Tensor::zeros_on(
                    shape.iter().map(|&n| n as usize).collect::<Vec<_>>(),
                    x.dtype(),
                    x.device(),
                ));
            }
            try_stack(&rows, batched as i64)?.try_reshape_to(shape)
        })
        .collect()
}

/// The second derivatives of `y`, one number (or one a case, with `batch_axis` 0), with respect to each pair of `xs`:
/// `hessian(y, xs)[i][j]` has the axes of `xs[i]`, then those of `xs[j]`.
///
/// ```
/// # use sampan_core::{Tensor, autograd::hessian};
/// let x = Tensor::new([1.0f32, 2.0]).requires_grad_();
/// let y = (&x * &x * &x).sum(());
/// assert_eq!(hessian(&y, &[x], None).unwrap()[0][0].to_vec::<f32>(), [6.0, 0.0, 0.0, 12.0]);
/// ```
#[track_caller]
pub fn hessian(y: &Tensor, xs: &[Tensor], batch_axis: Option<i64>) -> Result<Vec<Vec<Tensor>>> {
    let run = || {
        let cases = if batch_axis.is_some() { y.shape().first().copied().unwrap_or(1) } else { 1 };
        if y.numel() != cases {
            return Err(Error::invalid(format!("y must be one number, or one a case, got shape {:?}", y.shape())));
        }
        let options = GradOptions { create_graph: true, allow_unused: true, ..Default::default() };
        let first = or_zeros(grad(std::slice::from_ref(y), xs, &[None], options)?, xs);
        first.iter().map(|g| jacobian_of(g, xs, batch_axis)).collect()
    };
    crate::dispatch::outermost(run).map_err(|e| e.in_op("hessian"))
}
