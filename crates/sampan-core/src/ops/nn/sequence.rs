//! A recurrent layer along whole sequences: one kernel forward and one backward, instead of a few ops for every step.

use crate::autograd::{grad_enabled, vjp};
use crate::gpu::sequence::Tensors;
use crate::ops::prelude::*;
use crate::recording;
use sampan_cuda::sequence::{Cell as CellOnGpu, Walk as OnGpu};
use sampan_kernels::recurrent::sequence::{self as kernel, Cell, Walk};

/// The cell that a mode means.
pub(super) fn cell_of(mode: &str) -> Result<Cell> {
    Ok(match mode {
        "LSTM" => Cell::Lstm,
        "GRU" => Cell::Gru,
        "RNN_TANH" => Cell::Tanh,
        "RNN_RELU" => Cell::Relu,
        other => bail!("mode must be \"LSTM\", \"GRU\", \"RNN_TANH\" or \"RNN_RELU\", got \"{other}\""),
    })
}

/// What a call of `recurrent_walk` is about.
#[derive(Clone, Copy)]
struct Plan {
    walk: Walk,
    dtype: DType,
    /// What the kernel computes in.
    wide: DType,
}

impl Plan {
    fn new(
        [x_gates, weight, bias, h]: [&Tensor; 4],
        c: Option<&Tensor>,
        mode: &str,
        reverse: bool,
        time_major: bool,
    ) -> Result<Plan> {
        let cell = cell_of(mode)?;
        let &[batch, units] = h.shape() else { bail!("h must be a matrix, got shape {:?}", h.shape()) };
        let &[first, second, width] = x_gates.shape() else {
            bail!("x_gates must have axes for batch, time and gates, got shape {:?}", x_gates.shape())
        };
        let steps = if time_major { first } else { second };
        let gates = cell.gates() * units;
        let expected = if time_major { [steps, batch, gates] } else { [batch, steps, gates] };
        ensure!(
            [first, second, width] == expected,
            "x_gates must have shape {expected:?} for states of shape [{batch}, {units}], got {:?}",
            x_gates.shape()
        );
        ensure!(
            weight.shape() == [gates, units],
            "weight must have shape [{gates}, {units}], got {:?}",
            weight.shape()
        );
        ensure!(bias.shape() == [gates], "bias must have shape [{gates}], got {:?}", bias.shape());
        ensure!(c.is_some() == cell.has_cell_state(), "a cell state belongs to an LSTM, and to it alone");
        if let Some(c) = c {
            ensure!(c.shape() == h.shape(), "c must have the shape {:?} of h, got {:?}", h.shape(), c.shape());
        }
        let mut dtype = DType::Float16;
        for (i, t) in [x_gates, weight, bias, h].into_iter().chain(c).enumerate() {
            if !t.dtype().is_float() {
                return Err(Error::dtype(format!("gates, parameters and states must be floats, got {}", t.dtype())));
            }
            dtype = if i == 0 { t.dtype() } else { crate::promote::promote(dtype, t.dtype()) };
        }
        let wide = if dtype == DType::Float64 { dtype } else { DType::Float32 };
        Ok(Plan { walk: Walk { cell, batch, steps, units, time_major, reverse }, dtype, wide })
    }

    /// The shape of something with `width` numbers for each step.
    fn shape(&self, width: usize) -> [usize; 3] {
        let Walk { batch, steps, time_major, .. } = self.walk;
        if time_major { [steps, batch, width] } else { [batch, steps, width] }
    }

    fn ready(&self, t: &Tensor) -> Result<Tensor> {
        t.in_dtype(self.wide)?.in_rows()
    }

    fn cells(&self) -> usize {
        if self.walk.cell.has_cell_state() { self.walk.units } else { 0 }
    }
}

/// Walks a recurrent layer along sequences: from `x_gates`, the products of all inputs with their weight and bias,
/// `[batch, time, gates * units]` (`[time, batch, gates * units]` if `time_major`), to the outputs of all steps, the last output
/// and, of an LSTM, the last cell state. `weight` and `bias` are those of the state, `h` and `c` the first states; `mode` is
/// `"LSTM"`, `"GRU"`, `"RNN_TANH"` or `"RNN_RELU"`.
///
/// ```
/// # use sampan_core::{DType, Tensor};
/// let (x, zero) = (Tensor::new([[[1.0f32], [2.0]]]), Tensor::zeros([1, 1], DType::Float32));
/// let weight = Tensor::new([[1.0f32]]);
/// let out = x.recurrent_walk(&weight, &Tensor::new([0.0f32]), &zero, None, "RNN_RELU", false, false);
/// assert_eq!((out[0].to_vec::<f32>(), out[1].to_f64()), (vec![1.0, 3.0], 3.0));
/// ```
#[op(
    module = "_C_ops",
    samples = walk_samples,
    reference = walk_composite,
    peer = "none: made of cells, which have peers",
    fused_on_gpu,
    results("out", "h", "c"),
    work = crate::ops::work::recurrent
)]
fn recurrent_walk(
    cx: &Cx,
    x_gates: &Tensor,
    weight: &Tensor,
    bias: &Tensor,
    h: &Tensor,
    c: Option<&Tensor>,
    mode: &str,
    is_reverse: bool,
    time_major: bool,
) -> Result<Vec<Tensor>> {
    let plan = Plan::new([x_gates, weight, bias, h], c, mode, is_reverse, time_major)?;
    let Plan { walk, dtype, wide } = plan;
    let y = cx.out(plan.shape(walk.units), wide)?;
    let on_gpu = matches!(cx.device(), Device::Cuda(_));
    let (mut h_last, mut c_last) = (cx.out(h.shape(), wide)?, cx.out([walk.batch, plan.cells()], wide)?);
    // A GPU keeps the cell states in any case: the next step reads them there.
    let (gates, cells) = if cx.tracks() || on_gpu {
        (cx.out(plan.shape(walk.cell.kept() * walk.units), wide)?, cx.out(plan.shape(plan.cells()), wide)?)
    } else {
        (cx.out([0], wide)?, cx.out([0], wide)?)
    };
    let cpu = || {
        let (x, weight, bias) = (plan.ready(x_gates)?, plan.ready(weight)?, plan.ready(bias)?);
        let none = cx.out([0], wide)?;
        let (h, c) = (plan.ready(h)?, plan.ready(c.unwrap_or(&none))?);
        let (x, weight, bias, h, c) = (x.values(), weight.values(), bias.values(), h.values(), c.values());
        let (mut gates, mut cells) = (gates.values_mut(), cells.values_mut());
        let (gates, cells) = cx.tracks().then(|| (gates.slice(), cells.slice())).unzip();
        let (mut y, mut h_last, mut c_last) = (y.values_mut(), h_last.values_mut(), c_last.values_mut());
        let (y, h_last, c_last) = (y.slice(), h_last.slice(), c_last.slice());
        let (weight, bias, h, c) = (weight.slice(), bias.slice(), h.slice(), c.slice());
        kernel::forward(&walk, x.slice(), weight, bias, h, c, y, h_last, c_last, gates, cells);
        Ok(())
    };
    match cx.gpu()? {
        Some(gpu) if walk.steps > 0 => {
            let given = [x_gates, weight, bias, h].map(|t| plan.ready(t));
            let [x, weight, bias, h] = given;
            let (x, weight, bias, h, c) = (x?, weight?, bias?, h?, c.map(|c| plan.ready(c)).transpose()?);
            plan.tensors([&x, &weight, &bias, &h], c.as_ref(), &y, &cells, Some(&gates)).forward(gpu, plan.on_gpu())?;
            h_last = plan.last_of(&y)?;
            if walk.cell.has_cell_state() {
                c_last = plan.last_of(&cells)?;
            }
        }
        _ => cx.cpu(cpu)?,
    }
    let mut outputs = vec![y.try_cast(dtype)?, h_last.try_cast(dtype)?];
    if walk.cell.has_cell_state() {
        outputs.push(c_last.try_cast(dtype)?);
    }
    let mut saved = vec![&gates, &cells, x_gates, weight, bias, h];
    saved.extend(c);
    let (mode, inputs) = (mode.to_string(), saved.len() - 2);
    cx.grad_from_output(outputs, &saved, move |g| {
        let given: Vec<&Tensor> = (0..inputs).map(|i| g.saved(2 + i)).collect();
        if grad_enabled() {
            let states = 1 + walk.cell.has_cell_state() as usize;
            let grads: Vec<Option<Tensor>> = (0..=states).map(|i| g.has_grad(i).then(|| g.grad_of(i))).collect();
            return vjp(&given, &grads, |t| {
                walk_composite(&t[0], &t[1], &t[2], &t[3], t.get(4), &mode, is_reverse, time_major)
            });
        }
        plan.backward(g, &given).map(|grads| grads.into_iter().take(inputs).map(Some).collect())
    })
}

impl Plan {
    fn backward(&self, g: &Grad, given: &[&Tensor]) -> Result<Vec<Tensor>> {
        let Plan { walk, wide, .. } = *self;
        let (gates, cells, y) = (g.saved(0), g.saved(1), self.ready(g.output(0))?);
        let grad_of = |i: usize| self.ready(&g.grad_of(i))?.try_clone_data();
        let none = || Tensor::uninit([walk.batch, 0], wide, y.device());
        let (weight, bias) = (self.ready(given[1])?, self.ready(given[2])?);
        let (h, c) = (self.ready(given[3])?, given.get(4).map_or(Ok(none()), |c| self.ready(c))?);
        let dy = self.ready(&g.grad_of(0))?;
        let dh = grad_of(1)?;
        let dc = if walk.cell.has_cell_state() { grad_of(2)? } else { none() };
        if let (Device::Cuda(number), true) = (y.device(), walk.steps > 0) {
            let x = self.ready(given[0])?;
            let dx = Tensor::uninit(given[0].shape(), wide, y.device());
            let c = walk.cell.has_cell_state().then_some(&c);
            let tensors = self.tensors([&x, &weight, &bias, &h], c, &y, cells, Some(gates));
            return self.backward_on_gpu(crate::gpu::gpu(number)?, &tensors, &dy, [dh, dc, dx]);
        }
        let given = [&weight, &bias, &h, &c, gates, cells, &y, &dy, &dh, &dc];
        if recording::on_cpu() {
            let plan = *self;
            // What is done in place must be the act's own.
            let again = move |t: &[Tensor], _: &std::sync::atomic::AtomicBool| {
                plan.backward_on_cpu(&[0, 1, 2, 3, 4, 5, 6, 7].map(|i| &t[i]), [8, 9].map(|i| t[i].detach()))
            };
            return recording::act(&given, again);
        }
        self.backward_on_cpu(&given[..8], [dh.clone(), dc.clone()])
    }

    /// From weight, bias, first states, what was kept, outputs and their gradient to all gradients; those of the states are
    /// worked on where they lie.
    fn backward_on_cpu(&self, given: &[&Tensor], [dh, dc]: [Tensor; 2]) -> Result<Vec<Tensor>> {
        let Plan { walk, wide, .. } = *self;
        let &[weight, bias, h, c, gates, cells, y, dy] = given else {
            return Err(Error::invalid("eight tensors are needed").in_op("recurrent_walk"));
        };
        let out = |shape: &[usize]| Tensor::uninit(shape, wide, y.device());
        let (dx, dweight, dbias) =
            (out(&self.shape(walk.cell.gates() * walk.units)), out(weight.shape()), out(bias.shape()));
        if y.device().has_values() {
            let (weight, bias, h, c) = (weight.values(), bias.values(), h.values(), c.values());
            let (gates, cells, y, dy) = (gates.values(), cells.values(), y.values(), dy.values());
            let (mut dx, mut dweight, mut dbias) = (dx.values_mut(), dweight.values_mut(), dbias.values_mut());
            let (mut dh, mut dc) = (dh.values_mut(), dc.values_mut());
            let (weight, bias, h, c) = (weight.slice(), bias.slice(), h.slice(), c.slice());
            let (gates, cells, y, dy) = (gates.slice(), cells.slice(), y.slice(), dy.slice());
            let (dx, dweight, dbias, dh, dc) = (dx.slice(), dweight.slice(), dbias.slice(), dh.slice(), dc.slice());
            kernel::backward(&walk, weight, bias, h, c, y, gates, cells, dy, dx, dweight, dbias, dh, dc);
        }
        let mut grads = vec![dx, dweight, dbias, dh];
        // A cell without such a state has nothing to give there.
        grads.extend(walk.cell.has_cell_state().then_some(dc));
        Ok(grads)
    }
}

impl Plan {
    /// The walk as a GPU knows it.
    fn on_gpu(&self) -> OnGpu {
        let Walk { cell, batch, steps, units, time_major, reverse } = self.walk;
        let cell = match cell {
            Cell::Lstm => CellOnGpu::Lstm,
            Cell::Gru => CellOnGpu::Gru,
            Cell::Tanh => CellOnGpu::Tanh,
            Cell::Relu => CellOnGpu::Relu,
        };
        OnGpu { cell, dtype: self.wide, batch, steps, units, time_major, reverse }
    }

    fn tensors<'a>(
        &self,
        given: [&'a Tensor; 4],
        c: Option<&'a Tensor>,
        y: &'a Tensor,
        cells: &'a Tensor,
        gates: Option<&'a Tensor>,
    ) -> Tensors<'a> {
        let cells = self.walk.cell.has_cell_state().then_some(cells);
        Tensors { given, c, y, cells, gates: gates.filter(|_| self.walk.cell.kept() > 1) }
    }

    /// The axis of the steps.
    fn time(&self) -> i64 {
        if self.walk.time_major { 0 } else { 1 }
    }

    /// What the last step gave.
    fn last_of(&self, all: &Tensor) -> Result<Tensor> {
        let at = if self.walk.reverse { 0 } else { self.walk.steps as i64 - 1 };
        all.detach().try_slice([self.time()], [at], [at + 1])?.try_squeeze(self.time())?.try_clone_data()
    }

    fn backward_on_gpu(
        &self,
        gpu: &'static crate::gpu::Gpu,
        tensors: &Tensors,
        dy: &Tensor,
        [dh, dc, dx]: [Tensor; 3],
    ) -> Result<Vec<Tensor>> {
        let Walk { cell, batch, steps, units, reverse, .. } = self.walk;
        let like = |t: &Tensor| Tensor::uninit(t.shape(), t.dtype(), t.device());
        let gru = cell == Cell::Gru;
        let (past, dz) = (gru.then(|| Tensor::zeros_on(dh.shape(), dh.dtype(), dh.device())), gru.then(|| like(&dx)));
        let carried = if gru { past.as_ref() } else { cell.has_cell_state().then_some(&dc) };
        tensors.backward(gpu, self.on_gpu(), dy, [&dh, &dx], [carried, dz.as_ref()])?;
        let dh = if let Some(past) = &past { dh.try_add(past)? } else { dh };
        // The state that each step began with, and one product for all steps.
        let h = tensors.given[3].try_unsqueeze(self.time())?;
        let (from, to) = if reverse { (1, steps as i64) } else { (0, steps as i64 - 1) };
        let others = tensors.y.detach().try_slice([self.time()], [from], [to])?;
        let states = if reverse { [others, h] } else { [h, others] };
        let before = crate::ops::joining::try_concat(&states, self.time())?;
        let (rows, gates) = ((batch * steps) as i64, (cell.gates() * units) as i64);
        let dz = dz.as_ref().unwrap_or(&dx).try_reshape([rows, gates])?;
        let dweight = dz.try_t()?.try_matmul(&before.try_reshape([rows, units as i64])?)?;
        let dbias = dz.try_sum(0)?;
        Ok(vec![dx, dweight, dbias, dh, dc])
    }
}

/// What `recurrent_walk` computes, step by step.
fn walk_composite(
    x_gates: &Tensor,
    weight: &Tensor,
    bias: &Tensor,
    h: &Tensor,
    c: Option<&Tensor>,
    mode: &str,
    is_reverse: bool,
    time_major: bool,
) -> Result<Vec<Tensor>> {
    Steps { mode, is_reverse, time_major, masks: None, project: None }.walk(x_gates, weight, bias, h, c)
}

/// A recurrent layer step by step: for sequences of different lengths, and for what has no kernel of its own.
pub(super) struct Steps<'a> {
    pub mode: &'a str,
    pub is_reverse: bool,
    pub time_major: bool,
    /// For each step which sequences take it; the others keep their states.
    pub masks: Option<&'a [Tensor]>,
    /// What the output of an LSTM is multiplied with.
    pub project: Option<&'a Tensor>,
}

impl Steps<'_> {
    pub fn walk(
        &self,
        x_gates: &Tensor,
        weight: &Tensor,
        bias: &Tensor,
        h: &Tensor,
        c: Option<&Tensor>,
    ) -> Result<Vec<Tensor>> {
        let time = if self.time_major { 0 } else { 1 };
        let (inputs, weight) = (x_gates.try_unbind(time)?, weight.try_t()?);
        let steps = inputs.len();
        let mut outputs: Vec<Option<Tensor>> = vec![None; steps];
        let (mut h, mut c) = (h.clone(), c.cloned());
        for i in 0..steps {
            let t = if self.is_reverse { steps - 1 - i } else { i };
            let (x, z) = (&inputs[t], h.try_linear(&weight, Some(bias))?);
            let old = (h.clone(), c.clone());
            match (self.mode, &mut c) {
                ("LSTM", Some(c)) => (h, *c) = x.try_lstm_cell(&z, c)?,
                ("GRU", _) => h = x.try_gru_cell(&z, &h)?,
                ("RNN_RELU", _) => h = x.try_simple_rnn_cell(&z, "relu")?,
                _ => h = x.try_simple_rnn_cell(&z, "tanh")?,
            }
            if let Some(project) = self.project {
                h = h.try_matmul(project)?;
            }
            outputs[t] = Some(h.clone());
            if let Some(masks) = self.masks {
                let taken = masks[t].try_unsqueeze(-1)?;
                h = taken.try_where_cond(&h, &old.0)?;
                if let (Some(new), Some(old)) = (&mut c, &old.1) {
                    *new = taken.try_where_cond(&*new, old)?;
                }
            }
        }
        let outputs: Vec<Tensor> = outputs.into_iter().flatten().collect();
        let y = match outputs.is_empty() {
            true => Tensor::zeros([x_gates.dim(0), x_gates.dim(1), h.dim(1)], h.dtype()),
            false => crate::ops::joining::try_stack(&outputs, time)?,
        };
        Ok([y, h].into_iter().chain(c).collect())
    }
}

fn walk_samples() -> Vec<Sample> {
    let make = |mode: &str, gates: usize, [batch, steps, units]: [usize; 3], reverse: bool, time_major: bool| {
        let x = if time_major { [steps, batch, gates * units] } else { [batch, steps, gates * units] };
        let state = |low: f64| Value::from(uniform([batch, units], low, 0.9));
        let c = if mode == "LSTM" { state(-0.7) } else { Value::None };
        let (weight, bias) = (uniform([gates * units, units], -0.8, 0.9), uniform([gates * units], -0.5, 0.6));
        sample![randn(x), weight, bias, state(-0.9), c, mode, reverse, time_major]
    };
    vec![
        make("LSTM", 4, [2, 3, 2], false, false),
        make("LSTM", 4, [2, 2, 1], true, true),
        make("GRU", 3, [2, 3, 2], false, false),
        make("GRU", 3, [1, 2, 2], true, true),
        make("RNN_TANH", 1, [2, 3, 2], false, true),
        make("RNN_RELU", 1, [2, 2, 3], true, false),
        make("LSTM", 4, [0, 3, 2], false, false),
    ]
}
