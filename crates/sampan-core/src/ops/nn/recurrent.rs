//! One step of a recurrent layer after its matrix products: the gates, fused forward and backward. `x_gates` and `h_gates`
//! are the products of input and state with their weights, biases included; a layer makes the former for all steps at once.

use crate::autograd::vjp;
use crate::gpu;
use crate::ops::elementwise::apply;
use crate::ops::prelude::*;
use sampan_cuda::recurrent::Cell;
use sampan_kernels::recurrent as kernel;

/// Checks `[rows, gates * units]` preactivations against a `[rows, units]` state; gives the common dtype and the units.
fn check_step(x_gates: &Tensor, h_gates: &Tensor, state: &Tensor, gates: usize) -> Result<(DType, usize)> {
    let &[rows, units] = state.shape() else { bail!("the state must be a matrix, got shape {:?}", state.shape()) };
    for (name, t) in [("x_gates", x_gates), ("h_gates", h_gates)] {
        if t.shape() != [rows, gates * units] {
            return Err(Error::invalid(format!(
                "{name} must have shape [{rows}, {}] for a state of {units} units, got {:?}",
                gates * units,
                t.shape()
            )));
        }
    }
    let dtype = crate::promote::promote(crate::promote::promote(x_gates.dtype(), h_gates.dtype()), state.dtype());
    if !dtype.is_float() {
        return Err(Error::dtype(format!("gates and state must be floats, got {dtype}")));
    }
    Ok((dtype, units))
}

/// The tensors in one dtype and row-major.
fn ready<const N: usize>(ts: [&Tensor; N], dtype: DType) -> Result<[Tensor; N]> {
    let list: Vec<Tensor> = ts.iter().map(|t| t.in_dtype(dtype)?.in_rows()).collect::<Result<_>>()?;
    Ok(list.try_into().expect("as many"))
}

/// The `i`-th of equal parts of the columns.
fn part(t: &Tensor, i: usize, units: usize) -> Tensor {
    crate::error::unwrap(t.try_narrow(1, i * units, units))
}

/// A step of an LSTM: with input, forget, candidate and output gates from `x_gates + h_gates`, the new cell state is
/// `f * c + i * g` and the new output `o * tanh` of it. Gives the output and the cell state.
///
/// ```
/// # use sampan_core::{DType, Tensor};
/// let (gates, c) = (Tensor::zeros([1, 4], DType::Float32), Tensor::new([[2.0f32]]));
/// assert_eq!(gates.lstm_cell(&gates, &c).1.to_vec::<f32>(), [1.0]);
/// ```
#[op(
    fused_on_gpu,
    module = "_C_ops",
    samples = lstm_samples,
    reference = lstm_composite,
    peer = "lambda a, b, c: torch_lstm(a + b, c)",
    results("h", "c")
)]
fn lstm_cell(cx: &Cx, x_gates: &Tensor, h_gates: &Tensor, c: &Tensor) -> Result<(Tensor, Tensor)> {
    let (dtype, units) = check_step(x_gates, h_gates, c, 4)?;
    let (h_out, c_out) = (cx.out(c.shape(), dtype)?, cx.out(c.shape(), dtype)?);
    let cpu = || {
        let [a, b, c] = ready([x_gates, h_gates, c], dtype)?;
        let (a, b, c) = (a.values(), b.values(), c.values());
        let (mut h_out, mut c_out) = (h_out.values_mut(), c_out.values_mut());
        kernel::lstm(a.slice(), b.slice(), c.slice(), units, h_out.slice(), c_out.slice());
        Ok(())
    };
    cx.run(cpu, |gpu| {
        let [a, b, c] = &ready([x_gates, h_gates, c], dtype)?;
        gpu::rows::recurrent(gpu, Cell::Lstm, &[a, b, c], &[&h_out, &c_out])
    })?;
    cx.grad((h_out, c_out), &[x_gates, h_gates, c], |g| {
        let (gates, c) = g.saved(0).lstm_cell_grad(g.saved(1), g.saved(2), &g.grad_of(0), &g.grad_of(1));
        Ok([Some(gates.clone()), Some(gates), Some(c)])
    })
}

fn lstm_composite(x_gates: &Tensor, h_gates: &Tensor, c: &Tensor) -> Result<(Tensor, Tensor)> {
    let gates = x_gates + h_gates;
    let n = c.dim(1);
    let [i, f, o] = [0, 1, 3].map(|k| part(&gates, k, n).sigmoid());
    let c = f * c + i * part(&gates, 2, n).tanh();
    Ok((o * c.tanh(), c))
}

/// The gradients of `lstm_cell` with respect to the preactivations (the same for both) and the old cell state, from those
/// of its outputs.
#[op(
    internal,
    fused_on_gpu,
    module = "nn.functional",
    samples = lstm_grad_samples,
    reference = lstm_grad_composite,
    peer = "lambda a, b, c, dh, dc: torch_pull(torch_lstm, (a + b, c), (dh, dc))",
    results("dgates", "dc")
)]
fn lstm_cell_grad(
    cx: &Cx,
    x_gates: &Tensor,
    h_gates: &Tensor,
    c: &Tensor,
    dh: &Tensor,
    dc: &Tensor,
) -> Result<(Tensor, Tensor)> {
    let (dtype, units) = check_step(x_gates, h_gates, c, 4)?;
    ensure!(dh.shape() == c.shape() && dc.shape() == c.shape(), "the gradients must have the shape of the state");
    let (gates, prev) = (cx.out(x_gates.shape(), dtype)?, cx.out(c.shape(), dtype)?);
    let cpu = || {
        let [a, b, c, dh, dc] = ready([x_gates, h_gates, c, dh, dc], dtype)?;
        let (a, b, c, dh, dc) = (a.values(), b.values(), c.values(), dh.values(), dc.values());
        let (mut gates, mut prev) = (gates.values_mut(), prev.values_mut());
        kernel::lstm_backward(
            a.slice(),
            b.slice(),
            c.slice(),
            dh.slice(),
            dc.slice(),
            units,
            gates.slice(),
            prev.slice(),
        );
        Ok(())
    };
    cx.run(cpu, |gpu| {
        let [a, b, c, dh, dc] = &ready([x_gates, h_gates, c, dh, dc], dtype)?;
        gpu::rows::recurrent(gpu, Cell::LstmBack, &[a, b, c, dh, dc], &[&gates, &prev])
    })?;
    cx.grad((gates, prev), &[x_gates, h_gates, c, dh, dc], |g| {
        let inputs: Vec<&Tensor> = (0..5).map(|i| g.saved(i)).collect();
        vjp(&inputs, &[Some(g.grad_of(0)), Some(g.grad_of(1))], |t| {
            let (gates, c) = lstm_grad_composite(&t[0], &t[1], &t[2], &t[3], &t[4])?;
            Ok(vec![gates, c])
        })
    })
}

fn lstm_grad_composite(
    x_gates: &Tensor,
    h_gates: &Tensor,
    c: &Tensor,
    dh: &Tensor,
    dc: &Tensor,
) -> Result<(Tensor, Tensor)> {
    let gates = x_gates + h_gates;
    let n = c.dim(1);
    let [i, f, o] = [0, 1, 3].map(|k| part(&gates, k, n).sigmoid());
    let g = part(&gates, 2, n).tanh();
    let t = (&f * c + &i * &g).tanh();
    let bump = |s: &Tensor| s * (1.0 - s);
    let d = dc + dh * &o * (1.0 - t.square());
    let parts = [&d * &g * bump(&i), &d * c * bump(&f), &d * &i * (1.0 - g.square()), dh * &t * bump(&o)];
    Ok((crate::ops::joining::concat(&parts, 1), d * f))
}

/// A step of a GRU: with reset, update and candidate parts of both preactivations, `c = tanh(x_c + r * h_c)` and the new
/// state is `z * h + (1 - z) * c`.
///
/// ```
/// # use sampan_core::{DType, Tensor};
/// let (gates, h) = (Tensor::zeros([1, 3], DType::Float32), Tensor::new([[2.0f32]]));
/// assert_eq!(gates.gru_cell(&gates, &h).to_vec::<f32>(), [1.0]);
/// ```
#[op(fused_on_gpu, module = "_C_ops", samples = gru_samples, reference = gru_composite, peer = "torch_gru")]
fn gru_cell(cx: &Cx, x_gates: &Tensor, h_gates: &Tensor, h: &Tensor) -> Result<Tensor> {
    let (dtype, units) = check_step(x_gates, h_gates, h, 3)?;
    let out = cx.out(h.shape(), dtype)?;
    let cpu = || {
        let [a, b, h] = ready([x_gates, h_gates, h], dtype)?;
        let (a, b, h, mut out) = (a.values(), b.values(), h.values(), out.values_mut());
        kernel::gru(a.slice(), b.slice(), h.slice(), units, out.slice());
        Ok(())
    };
    cx.run(cpu, |gpu| {
        let [a, b, h] = &ready([x_gates, h_gates, h], dtype)?;
        gpu::rows::recurrent(gpu, Cell::Gru, &[a, b, h], &[&out])
    })?;
    cx.grad(out, &[x_gates, h_gates, h], |g| {
        let (da, db, dh) = g.saved(0).gru_cell_grad(g.saved(1), g.saved(2), &g.grad());
        Ok([Some(da), Some(db), Some(dh)])
    })
}

fn gru_composite(x_gates: &Tensor, h_gates: &Tensor, h: &Tensor) -> Result<Tensor> {
    let n = h.dim(1);
    let [r, z] = [0, 1].map(|k| (part(x_gates, k, n) + part(h_gates, k, n)).sigmoid());
    let c = (part(x_gates, 2, n) + r * part(h_gates, 2, n)).tanh();
    Ok((h - &c) * z + c)
}

/// The gradients of `gru_cell` with respect to both preactivations and the state.
#[op(
    internal,
    fused_on_gpu,
    module = "nn.functional",
    samples = gru_grad_samples,
    reference = gru_grad_composite,
    peer = "lambda a, b, h, g: torch_pull(torch_gru, (a, b, h), g)",
    results("dx_gates", "dh_gates", "dh")
)]
fn gru_cell_grad(
    cx: &Cx,
    x_gates: &Tensor,
    h_gates: &Tensor,
    h: &Tensor,
    grad: &Tensor,
) -> Result<(Tensor, Tensor, Tensor)> {
    let (dtype, units) = check_step(x_gates, h_gates, h, 3)?;
    ensure!(grad.shape() == h.shape(), "the gradient must have the shape of the state");
    let out = (cx.out(x_gates.shape(), dtype)?, cx.out(x_gates.shape(), dtype)?, cx.out(h.shape(), dtype)?);
    let cpu = || {
        let [a, b, h, grad] = ready([x_gates, h_gates, h, grad], dtype)?;
        let (a, b, h, grad) = (a.values(), b.values(), h.values(), grad.values());
        let (mut da, mut db, mut dh) = (out.0.values_mut(), out.1.values_mut(), out.2.values_mut());
        kernel::gru_backward(a.slice(), b.slice(), h.slice(), grad.slice(), units, da.slice(), db.slice(), dh.slice());
        Ok(())
    };
    cx.run(cpu, |gpu| {
        let [a, b, h, grad] = &ready([x_gates, h_gates, h, grad], dtype)?;
        gpu::rows::recurrent(gpu, Cell::GruBack, &[a, b, h, grad], &[&out.0, &out.1, &out.2])
    })?;
    cx.grad(out, &[x_gates, h_gates, h, grad], |g| {
        let inputs: Vec<&Tensor> = (0..4).map(|i| g.saved(i)).collect();
        let grads: Vec<Option<Tensor>> = (0..3).map(|i| Some(g.grad_of(i))).collect();
        vjp(&inputs, &grads, |t| {
            let (da, db, dh) = gru_grad_composite(&t[0], &t[1], &t[2], &t[3])?;
            Ok(vec![da, db, dh])
        })
    })
}

fn gru_grad_composite(
    x_gates: &Tensor,
    h_gates: &Tensor,
    h: &Tensor,
    grad: &Tensor,
) -> Result<(Tensor, Tensor, Tensor)> {
    let n = h.dim(1);
    let [r, z] = [0, 1].map(|k| (part(x_gates, k, n) + part(h_gates, k, n)).sigmoid());
    let inner = part(h_gates, 2, n);
    let c = (part(x_gates, 2, n) + &r * &inner).tanh();
    let bump = |s: &Tensor| s * (1.0 - s);
    let dz = grad * (h - &c) * bump(&z);
    let dc = grad * (1.0 - &z) * (1.0 - c.square());
    let dr = &dc * inner * bump(&r);
    let da = crate::ops::joining::concat(&[dr.clone(), dz.clone(), dc.clone()], 1);
    let db = crate::ops::joining::concat(&[dr, dz, dc * r], 1);
    Ok((da, db, grad * z))
}

/// A step of a simple recurrent layer: `tanh` (or `relu`) of the sum of both preactivations.
///
/// ```
/// # use sampan_core::Tensor;
/// let y = Tensor::new([[1.0f32, -3.0]]).simple_rnn_cell(&Tensor::new([[1.0f32, 1.0]]), "relu");
/// assert_eq!(y.to_vec::<f32>(), [2.0, 0.0]);
/// ```
#[op(
    module = "_C_ops",
    samples = simple_samples,
    reference = simple_composite,
    peer = "lambda a, b, activation='tanh': getattr(torch, activation)(a + b)"
)]
fn simple_rnn_cell(cx: &Cx, x_gates: &Tensor, h_gates: &Tensor, #[default("tanh")] activation: &str) -> Result<Tensor> {
    ensure!(x_gates.shape() == h_gates.shape(), "x_gates and h_gates must have one shape");
    match activation {
        "tanh" => cx.float(formula!(|a, b| (a + b).tanh()), (x_gates, h_gates)),
        "relu" => {
            let out = cx.float_values(formula!(|a, b| (a + b).max(0.0)), (x_gates, h_gates))?;
            cx.grad_from_output(out, &[], |g| {
                let back = formula!(|y, g| select(y.le(0.0), 0.0, g));
                let d = apply(&back, vec![g.output(0).clone(), g.grad()])?;
                Ok([Some(d.clone()), Some(d)])
            })
        }
        other => bail!("activation must be \"tanh\" or \"relu\", got \"{other}\""),
    }
}

fn simple_composite(x_gates: &Tensor, h_gates: &Tensor, activation: &str) -> Result<Tensor> {
    let sum = x_gates + h_gates;
    Ok(if activation == "relu" { sum.relu() } else { sum.tanh() })
}

fn lstm_samples() -> Vec<Sample> {
    vec![
        sample![randn([2, 8]), uniform([2, 8], -1.0, 1.0), randn([2, 2])],
        sample![randn([0, 8]), uniform([0, 8], -1.0, 1.0), randn([0, 2])],
    ]
}
fn lstm_grad_samples() -> Vec<Sample> {
    vec![sample![
        randn([1, 8]),
        uniform([1, 8], -1.0, 1.0),
        randn([1, 2]),
        uniform([1, 2], -1.0, 1.0),
        positive([1, 2])
    ]]
}
fn gru_samples() -> Vec<Sample> {
    vec![
        sample![randn([2, 6]), uniform([2, 6], -1.0, 1.0), randn([2, 2])],
        sample![randn([0, 6]), uniform([0, 6], -1.0, 1.0), randn([0, 2])],
    ]
}
fn gru_grad_samples() -> Vec<Sample> {
    vec![sample![randn([1, 6]), uniform([1, 6], -1.0, 1.0), randn([1, 2]), positive([1, 2])]]
}
fn simple_samples() -> Vec<Sample> {
    vec![sample![randn([2, 3]), uniform([2, 3], -1.0, 1.0)], sample![randn([2, 3]), positive([2, 3]), "relu"]]
}
