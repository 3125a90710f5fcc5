//! The loss of a recurrent transducer.

use crate::autograd::vjp;
use crate::ops::loss::Reduction;
use crate::ops::prelude::*;
use sampan_kernels::rnnt::{self, Rnnt};

/// A column without a label.
const NO_LABEL: i64 = i64::MIN;

fn check_shapes(blanks: &Tensor, emits: &Tensor, frames: &Tensor, lengths: &Tensor) -> Result<()> {
    let &[batch, _, _] = blanks.shape() else {
        bail!("blanks must have the axes batch, frame, column; got shape {:?}", blanks.shape())
    };
    ensure!(
        emits.shape() == blanks.shape(),
        "emits have shape {:?}, blanks have shape {:?}",
        emits.shape(),
        blanks.shape()
    );
    if !blanks.dtype().is_float() || emits.dtype() != blanks.dtype() {
        return Err(Error::dtype(format!(
            "blanks and emits must be floats of one type, got {} and {}",
            blanks.dtype(),
            emits.dtype()
        )));
    }
    for (name, t) in [("input_lengths", frames), ("label_lengths", lengths)] {
        ensure!(t.shape() == [batch], "{name} needs one element for each of {batch} sequences, got {:?}", t.shape());
        if !t.dtype().is_int() {
            return Err(Error::dtype(format!("{name} must be integers, got {}", t.dtype())));
        }
    }
    Ok(())
}

/// Both lengths of every sequence, checked against the lattice.
fn check_values(blanks: &Tensor, frames: &Tensor, lengths: &Tensor) -> Result<[Vec<i64>; 2]> {
    let read = |t: &Tensor| t.try_cast(DType::Int64)?.try_to_vec::<i64>();
    let (frames, lengths) = (read(frames)?, read(lengths)?);
    let (most, columns) = (blanks.dim(1), blanks.dim(2));
    for (n, (&t, &u)) in frames.iter().zip(&lengths).enumerate() {
        ensure!((1..=most as i64).contains(&t), "input_lengths[{n}] must lie in [1, {most}], got {t}");
        ensure!((0..columns as i64).contains(&u), "label_lengths[{n}] must lie in [0, {columns}), got {u}");
    }
    Ok([frames, lengths])
}

fn job<'a>(shape: &[usize], lengths: &'a [Vec<i64>; 2]) -> Rnnt<'a> {
    let [input_lengths, label_lengths] = lengths;
    Rnnt { frames: shape[1], columns: shape[2], input_lengths, label_lengths }
}

/// Minus the log-likelihood of each sequence over all ways through its lattice `[batch, frames, columns]`, whose cells
/// hold the log-probability of a blank, which leads to the next frame, and of the next label.
#[op(internal, module = "nn.functional", samples = nll_samples, reference = nll_composite, peer = "torch_rnnt")]
fn rnnt_nll(
    cx: &Cx,
    blanks: &Tensor,
    emits: &Tensor,
    input_lengths: &Tensor,
    label_lengths: &Tensor,
) -> Result<Tensor> {
    check_shapes(blanks, emits, input_lengths, label_lengths)?;
    let out = cx.out([blanks.dim(0)], blanks.dtype())?;
    cx.cpu(|| {
        let lengths = check_values(blanks, input_lengths, label_lengths)?;
        let (blanks, emits) = (blanks.contiguous(), emits.contiguous());
        let job = job(blanks.shape(), &lengths);
        rnnt::loss(&job, blanks.values().slice(), emits.values().slice(), out.values_mut().slice());
        Ok(())
    })?;
    cx.grad(out, &[blanks, emits, input_lengths, label_lengths], |g| {
        let (blanks, emits) = g.saved(0).try_rnnt_nll_grad(g.saved(1), g.saved(2), g.saved(3), &g.grad())?;
        Ok([Some(blanks), Some(emits), None, None])
    })
}

/// The gradients of `rnnt_nll` with respect to blanks and labels: minus the posterior of each step, times `grad`.
#[op(
    internal,
    module = "nn.functional",
    samples = nll_grad_samples,
    reference = nll_grad_composite,
    peer = "lambda b, e, n, k, g: torch_pull(lambda y, z: torch_rnnt(y, z, n, k), (b, e), g)",
    results("dblank", "demit")
)]
fn rnnt_nll_grad(
    cx: &Cx,
    blanks: &Tensor,
    emits: &Tensor,
    input_lengths: &Tensor,
    label_lengths: &Tensor,
    grad: &Tensor,
) -> Result<(Tensor, Tensor)> {
    check_shapes(blanks, emits, input_lengths, label_lengths)?;
    let batch = blanks.dim(0);
    ensure!(grad.shape() == [batch], "grad must have one value for each of {batch} sequences, got {:?}", grad.shape());
    let out = (cx.out(blanks.shape(), blanks.dtype())?, cx.out(blanks.shape(), blanks.dtype())?);
    cx.cpu(|| {
        let lengths = check_values(blanks, input_lengths, label_lengths)?;
        let grad = grad.in_dtype(blanks.dtype())?.in_rows()?;
        let (blanks, emits) = (blanks.contiguous(), emits.contiguous());
        let (b, e, grad) = (blanks.values(), emits.values(), grad.values());
        let (mut db, mut de) = (out.0.values_mut(), out.1.values_mut());
        let job = job(blanks.shape(), &lengths);
        rnnt::backward(&job, b.slice(), e.slice(), grad.slice(), db.slice(), de.slice());
        Ok(())
    })?;
    cx.grad(out, &[blanks, emits, input_lengths, label_lengths, grad], |g| {
        let (frames, lengths) = (g.saved(2), g.saved(3));
        let weights = [0, 1].map(|i| g.has_grad(i).then(|| g.grad_of(i)));
        let found = vjp(&[g.saved(0), g.saved(1), g.saved(4)], &weights, |t| {
            let (blanks, emits) = nll_grad_composite(&t[0], &t[1], frames, lengths, &t[2])?;
            Ok(vec![blanks, emits])
        })?;
        let [blanks, emits, grad] = found.try_into().expect("one gradient for each input");
        Ok([blanks, emits, None, None, grad])
    })
}

fn nll_grad_composite(
    blanks: &Tensor,
    emits: &Tensor,
    input_lengths: &Tensor,
    label_lengths: &Tensor,
    grad: &Tensor,
) -> Result<(Tensor, Tensor)> {
    let found = vjp(&[blanks, emits], &[Some(grad.clone())], |t| {
        Ok(vec![nll_composite(&t[0], &t[1], input_lengths, label_lengths)?])
    })?;
    let or_zeros = |i: usize| found[i].clone().unwrap_or_else(|| blanks * 0.0);
    Ok((or_zeros(0), or_zeros(1)))
}

/// The recursion cell by cell in differentiable ops; every sequence picks the cell where it ends.
fn nll_composite(blanks: &Tensor, emits: &Tensor, input_lengths: &Tensor, label_lengths: &Tensor) -> Result<Tensor> {
    let [frames, lengths] = check_values(blanks, input_lengths, label_lengths)?;
    let &[batch, most, columns] = blanks.shape() else { bail!("blanks must have three axes") };
    if batch == 0 {
        return Ok(Tensor::zeros([0], blanks.dtype()));
    }
    let cell = |x: &Tensor, t: usize, u: usize| x.try_select(1, t)?.try_select(1, u);
    let mut reached: Vec<Tensor> = Vec::new();
    let mut ends = Vec::new();
    for t in 0..most {
        for u in 0..columns {
            let mut ways = Vec::new();
            if t > 0 {
                ways.push(&reached[(t - 1) * columns + u] + cell(blanks, t - 1, u)?);
            }
            if u > 0 {
                ways.push(&reached[t * columns + u - 1] + cell(emits, t, u - 1)?);
            }
            let alpha = match ways.len() {
                0 => Tensor::zeros([batch], blanks.dtype()),
                1 => ways.remove(0),
                _ => crate::ops::joining::stack(&ways, 0).logsumexp(0),
            };
            ends.push(&alpha + cell(blanks, t, u)?);
            reached.push(alpha);
        }
    }
    let at = frames.iter().zip(&lengths).map(|(t, u)| (t - 1) * columns as i64 + u).collect::<Vec<_>>();
    Ok(-crate::ops::joining::stack(&ends, 1).pick(&Tensor::from_vec(at, [batch]), NO_LABEL))
}

/// The loss of a recurrent transducer on log-probabilities `[batch, frames, columns, classes]`: column `u` holds what may
/// follow after `u` labels, so there is one column more than there are labels. `label` has one row for each sequence, of
/// which `label_lengths` count; `input_lengths` are the frames of each. The mean is taken over the batch.
///
/// `fastemit_lambda` scales the gradients of labels by one more than itself, so that the network learns to emit them
/// early; it does not change the value.
///
/// ```
/// # use sampan_core::Tensor;
/// let x = Tensor::new([[[[-1.0f32, -0.5], [-0.25, -1.0]]]]);
/// let one = Tensor::new([1i64]);
/// assert_eq!(x.rnnt_loss(&Tensor::new([[1i64]]), &one, &one).to_f64(), 0.75);
/// ```
#[op(module = "nn.functional", samples = rnnt_samples, amp = "black")]
fn rnnt_loss(
    input: &Tensor,
    label: &Tensor,
    input_lengths: &Tensor,
    label_lengths: &Tensor,
    #[opt(0)] blank: i64,
    #[opt(0.001)] fastemit_lambda: f64,
    #[opt("mean")] reduction: &str,
) -> Result<Tensor> {
    let reduction = Reduction::parse(reduction)?;
    let &[batch, frames, columns, classes] = input.shape() else {
        bail!("input must have the axes batch, frame, column, class; got shape {:?}", input.shape())
    };
    ensure!((0..classes as i64).contains(&blank), "blank must lie in [0, {classes}), got {blank}");
    ensure!(
        label.ndim() == 2 && label.dim(0) == batch && label.dim(1) + 1 >= columns && columns > 0,
        "label must have a row for each of {batch} sequences and one column less than the {columns} of input, got {:?}",
        label.shape()
    );
    ensure!(
        label_lengths.shape() == [batch],
        "label_lengths needs one element for each of {batch} sequences, got {:?}",
        label_lengths.shape()
    );
    let blanks = input.try_select(3, blank as usize)?;
    // What stands behind a row's last label is not read, be it a class or not.
    let step = Tensor::arange(0, columns as i64 - 1, 1);
    let counts = step.less_than(label_lengths.unsqueeze(1));
    let labels = counts.where_cond(label.try_narrow(1, 0, columns - 1)?.try_cast(DType::Int64)?, NO_LABEL);
    let end = Tensor::full_on([batch, 1], NO_LABEL as f64, DType::Int64, input.device());
    let labels = crate::ops::joining::try_concat(&[labels, end], 1)?;
    let labels = labels.unsqueeze(1).expand([batch, frames, columns]).reshape_to([batch * frames * columns]);
    let emits = input.reshape_to([batch * frames * columns, classes]).try_pick(&labels, NO_LABEL)?;
    let mut emits = emits.reshape_to([batch, frames, columns]);
    if fastemit_lambda != 0.0 {
        let extra = &emits * fastemit_lambda;
        emits = &emits + (&extra - extra.detach());
    }
    Ok(reduction.apply(&blanks.try_rnnt_nll(&emits, input_lengths, label_lengths)?))
}

fn nll_samples() -> Vec<Sample> {
    let (x, y) = (|s: [usize; 3]| uniform(s, -2.0, -0.2), |s: [usize; 3]| uniform(s, -1.5, -0.1));
    vec![
        sample![x([2, 3, 3]), y([2, 3, 3]), values([3i64, 2], [2]), values([2i64, 1], [2])],
        sample![x([1, 2, 2]), y([1, 2, 2]), values([2i32], [1]), values([0i32], [1])],
        sample![x([1, 1, 3]), y([1, 1, 3]), values([1i64], [1]), values([2i64], [1])],
    ]
}
fn nll_grad_samples() -> Vec<Sample> {
    vec![sample![
        uniform([2, 3, 3], -2.0, -0.2),
        uniform([2, 3, 3], -1.5, -0.1),
        values([3i64, 2], [2]),
        values([1i64, 2], [2]),
        randn([2])
    ]]
}
fn rnnt_samples() -> Vec<Sample> {
    let input = || uniform([2, 3, 3, 4], -3.0, -0.2);
    let labels = || values([1i32, 2, 3, 1], [2, 2]);
    let lengths = |a: i32, b: i32| values([a, b], [2]);
    let scaled = "the gradient is scaled by design";
    vec![
        sample![input(), labels(), lengths(3, 2), lengths(2, 1)].no_grad(scaled),
        sample![input(), labels(), lengths(3, 3), lengths(2, 2); fastemit_lambda = 0.0, reduction = "sum"],
        sample![input(), labels(), lengths(1, 3), lengths(0, 2); fastemit_lambda = 0.0, reduction = "none"],
        sample![input(), values([1i32, 2, 0, 0], [2, 2]), lengths(2, 3), lengths(2, 1); blank = 3, fastemit_lambda = 0.5]
            .no_grad(scaled),
    ]
}
