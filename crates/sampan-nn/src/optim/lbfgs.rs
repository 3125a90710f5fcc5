//! L-BFGS: a quasi-Newton method that evaluates the loss several times in a step.

use super::rule::{Accumulator, Rule, Step, settings};
use super::{Common, Optimizer, Parameters, object};
use crate::Parameter;
use crate::clip::ClipGrad;
use crate::regularizer::Regularizer;
use sampan_core::ops::joining::try_concat;
use sampan_core::value::Arg;
use sampan_core::{Dict, Error, Result, Tensor, Value, enable_grad, ensure, no_grad};
use sampan_kernels::optim::Formula;
use sampan_macros::class;

/// L-BFGS.
#[derive(Clone)]
pub struct LBFGS;

#[class(module = "optimizer", object = object)]
impl LBFGS {
    /// Steps along the direction that the last `history_size` gradients give as an approximation of Newton's, up to
    /// `max_iter` of them in one `step_with(closure)`; with `line_search_fn="strong_wolfe"` their lengths are searched.
    /// The closure clears the gradients, computes the loss and calls `backward`. `weight_decay` and `grad_clip` are
    /// accepted and, as in Paddle, not used.
    ///
    /// ```
    /// use sampan_core::Tensor;
    /// use sampan_nn::{LBFGS, Parameter};
    /// let p = Parameter::new(Tensor::new([3.0f64, -2.0]));
    /// let mut opt = LBFGS::with(1.0, [p.clone()], |o| o.line_search_fn("strong_wolfe"));
    /// opt.step_with(|| {
    ///     p.clear_grad();
    ///     let loss = (p.tensor() - 1.0).square().sum(());
    ///     loss.backward();
    ///     Ok(loss)
    /// })?;
    /// assert!((p.tensor().to_vec::<f64>()[0] - 1.0).abs() < 1e-6);
    /// # Ok::<(), sampan_core::Error>(())
    /// ```
    fn build(
        #[default(1.0)] learning_rate: f64,
        #[opt(20)] max_iter: usize,
        #[opt(None)] max_eval: Option<usize>,
        #[opt(1e-7)] tolerance_grad: f64,
        #[opt(1e-9)] tolerance_change: f64,
        #[opt(100)] history_size: usize,
        #[opt(None)] line_search_fn: Option<&str>,
        #[default(None)] parameters: Parameters,
        #[opt(None)] weight_decay: Option<Regularizer>,
        #[opt(None)] grad_clip: Option<ClipGrad>,
    ) -> Result<Optimizer> {
        ensure!(
            line_search_fn.is_none_or(|f| f == "strong_wolfe"),
            "line_search_fn must be \"strong_wolfe\" or None, got {line_search_fn:?}"
        );
        let common = Common { weight_decay, grad_clip, multi_precision: false };
        let mut optimizer = Optimizer::new(LBFGS, learning_rate.into(), parameters, common)?;
        let search = line_search_fn.is_some();
        let max_eval = max_eval.unwrap_or(max_iter * 5 / 4);
        optimizer.lbfgs = Some(Search {
            limits: Limits { max_iter, max_eval, tolerance_grad, tolerance_change, history_size, search },
            ..Search::default()
        });
        Ok(optimizer)
    }
}

/// Only the groups' settings are taken from it.
impl Rule for LBFGS {
    fn name(&self) -> &'static str {
        "LBFGS"
    }
    fn accumulators(&self) -> Vec<Accumulator> {
        Vec::new()
    }
    fn formula(&self, _: &mut Step) -> Result<Formula> {
        Ok(Formula::Sgd)
    }
    settings! {}
}

#[derive(Clone, Copy, Default)]
struct Limits {
    max_iter: usize,
    max_eval: usize,
    tolerance_grad: f64,
    tolerance_change: f64,
    history_size: usize,
    search: bool,
}

/// What is remembered between steps.
#[derive(Default)]
pub(super) struct Search {
    limits: Limits,
    evaluations: i64,
    iterations: i64,
    direction: Option<Tensor>,
    /// The length of the last step along the direction.
    length: f64,
    /// Changes of the gradient and of the parameters, oldest first, with one over their product.
    history: Vec<(Tensor, Tensor, f64)>,
    scale: f64,
    last_grad: Option<Tensor>,
    last_loss: f64,
}

fn dot(a: &Tensor, b: &Tensor) -> Result<f64> {
    Ok(a.try_multiply(b)?.try_sum(())?.to_f64())
}

fn largest(x: &Tensor) -> f64 {
    x.abs().max(()).to_f64()
}

/// A point on the line of search.
#[derive(Clone)]
struct Point {
    at: f64,
    loss: f64,
    grad: Tensor,
    slope: f64,
}

/// The parameters as one long vector.
struct Flat<'a>(&'a [Parameter]);

impl Flat<'_> {
    fn grad(&self) -> Result<Tensor> {
        let one = |p: &Parameter| {
            let g = p.grad().unwrap_or_else(|| Tensor::zeros(p.shape(), p.dtype()));
            g.detach().try_reshape([-1i64])
        };
        try_concat(&self.0.iter().map(one).collect::<Result<Vec<_>>>()?, 0)
    }

    fn values(&self) -> Result<Vec<Tensor>> {
        self.0.iter().map(|p| p.tensor().detach().try_clone_data()).collect()
    }

    /// Parameters = `origin + length * direction`.
    fn go(&self, origin: &[Tensor], direction: &Tensor, length: f64) -> Result<()> {
        let mut start = 0;
        for (p, from) in self.0.iter().zip(origin) {
            let n = p.numel();
            let part = direction.try_narrow(0, start, n)?.try_reshape(from.shape())?;
            p.set_value(&(from + &(part * length)))?;
            start += n;
        }
        Ok(())
    }
}

impl Search {
    /// One step: several iterations.
    pub fn step(
        &mut self,
        parameters: &[Parameter],
        lr: f64,
        closure: &mut dyn FnMut() -> Result<Tensor>,
    ) -> Result<Tensor> {
        let limits = self.limits;
        let flat = Flat(parameters);
        let mut evaluate = || -> Result<(Tensor, Tensor)> {
            let loss = enable_grad(&mut *closure)?;
            Ok((loss, flat.grad()?))
        };
        let (first_loss, grad) = evaluate()?;
        no_grad(|| -> Result<()> {
            let (mut loss, mut grad) = (first_loss.to_f64(), grad);
            let mut evaluations = 1;
            self.evaluations += 1;
            if largest(&grad) <= limits.tolerance_grad {
                return Ok(());
            }
            for iteration in 1..=limits.max_iter {
                self.iterations += 1;
                let direction = self.next_direction(&grad)?;
                self.last_grad = Some(grad.clone());
                self.last_loss = loss;
                let begin = if self.iterations == 1 { lr * (1.0 / grad.abs().sum(()).to_f64()).min(1.0) } else { lr };
                self.length = begin;
                self.direction = Some(direction.clone());
                let slope = dot(&grad, &direction)?;
                if slope > -limits.tolerance_change {
                    break;
                }
                let origin = flat.values()?;
                let mut used = 0;
                if limits.search {
                    let start = Point { at: 0.0, loss, grad: grad.clone(), slope };
                    let mut probe = |at: f64| -> Result<Point> {
                        used += 1;
                        flat.go(&origin, &direction, at)?;
                        let (loss, grad) = evaluate()?;
                        let slope = dot(&grad, &direction)?;
                        Ok(Point { at, loss: loss.to_f64(), grad, slope })
                    };
                    let end = strong_wolfe(&mut probe, start, begin, largest(&direction))?;
                    (self.length, loss, grad) = (end.at, end.loss, end.grad);
                    flat.go(&origin, &direction, self.length)?;
                } else {
                    flat.go(&origin, &direction, begin)?;
                    if iteration < limits.max_iter {
                        let (new_loss, new_grad) = evaluate()?;
                        (loss, grad, used) = (new_loss.to_f64(), new_grad, 1);
                    }
                }
                evaluations += used;
                self.evaluations += used as i64;
                let done = largest(&grad) <= limits.tolerance_grad
                    || largest(&direction) * self.length.abs() <= limits.tolerance_change
                    || (loss - self.last_loss).abs() < limits.tolerance_change
                    || evaluations >= limits.max_eval;
                if done {
                    break;
                }
            }
            Ok(())
        })?;
        Ok(first_loss)
    }

    /// Minus the gradient, multiplied by the approximation of the inverse second derivatives.
    fn next_direction(&mut self, grad: &Tensor) -> Result<Tensor> {
        let (Some(last), Some(direction)) = (&self.last_grad, &self.direction) else {
            self.scale = 1.0;
            return Ok(-grad);
        };
        let (y, s) = (grad - last, direction * self.length);
        let product = dot(&y, &s)?;
        if product > 1e-10 {
            if self.history.len() == self.limits.history_size {
                self.history.remove(0);
            }
            self.scale = product / dot(&y, &y)?;
            self.history.push((y, s, 1.0 / product));
        }
        let mut q = -grad;
        let mut shares = Vec::with_capacity(self.history.len());
        for (y, s, inverse) in self.history.iter().rev() {
            let share = dot(s, &q)? * inverse;
            q = q - y * share;
            shares.push(share);
        }
        let mut d = q * self.scale;
        for ((y, s, inverse), share) in self.history.iter().zip(shares.into_iter().rev()) {
            let back = dot(y, &d)? * inverse;
            d = d + s * (share - back);
        }
        Ok(d)
    }

    pub fn state_dict(&self) -> Dict {
        let mut state = Dict::new();
        state.insert("func_evals", self.evaluations);
        state.insert("n_iter", self.iterations);
        if let (Some(d), Some(g)) = (&self.direction, &self.last_grad) {
            state.insert("d", d);
            state.insert("alpha", self.length);
            state.insert("old_yk", self.history.iter().map(|(y, _, _)| y.clone()).collect::<Vec<_>>());
            state.insert("old_sk", self.history.iter().map(|(_, s, _)| s.clone()).collect::<Vec<_>>());
            state.insert("ro", self.history.iter().map(|(_, _, r)| *r).collect::<Vec<_>>());
            state.insert("H_diag", self.scale);
            state.insert("prev_flat_grad", g);
            state.insert("prev_loss", self.last_loss);
        }
        state
    }

    pub fn set_state_dict(&mut self, state: &Dict) -> Result<()> {
        let value = |key: &str| state.get(key).ok_or_else(|| Error::invalid(format!("the state has no `{key}`")));
        // Paddle keeps numbers as tensors here and there.
        let number = |v: &Value, key: &str| match v {
            Value::Tensor(t) => Ok(t.try_item()?.to_f64()),
            other => f64::get(other, key),
        };
        let tensors = |key: &str| match value(key)? {
            Value::List(list) if list.is_empty() => Ok(Vec::new()),
            list => <&[Tensor]>::get(list, key).map(<[Tensor]>::to_vec),
        };
        let mut next = Search { limits: self.limits, ..Search::default() };
        next.evaluations = number(value("func_evals")?, "func_evals")? as i64;
        next.iterations = number(value("n_iter")?, "n_iter")? as i64;
        if state.get("d").is_some() {
            next.direction = Some(<&Tensor>::get(value("d")?, "d")?.clone());
            next.last_grad = Some(<&Tensor>::get(value("prev_flat_grad")?, "prev_flat_grad")?.clone());
            next.length = number(value("alpha")?, "alpha")?;
            next.scale = number(value("H_diag")?, "H_diag")?;
            next.last_loss = number(value("prev_loss")?, "prev_loss")?;
            let inverses: Vec<f64> = match value("ro")? {
                Value::Floats(v) => v.clone(),
                Value::Tensors(v) => v.iter().map(|t| Ok(t.try_item()?.to_f64())).collect::<Result<_>>()?,
                Value::List(v) => v.iter().map(|v| number(v, "ro")).collect::<Result<_>>()?,
                other => return Err(Error::dtype(format!("`ro` is a list of numbers, got {}", other.type_name()))),
            };
            let (y, s) = (tensors("old_yk")?, tensors("old_sk")?);
            ensure!(y.len() == s.len() && s.len() == inverses.len(), "old_yk, old_sk and ro differ in length");
            next.history = y.into_iter().zip(s).zip(inverses).map(|((y, s), r)| (y, s, r)).collect();
        }
        *self = next;
        Ok(())
    }
}

/// The lowest point of the cubic through two points with their slopes, within bounds.
fn cubic(a: &Point, b: &Point, (low, high): (f64, f64)) -> f64 {
    let (a, b) = if a.at <= b.at { (a, b) } else { (b, a) };
    let d1 = a.slope + b.slope - 3.0 * (a.loss - b.loss) / (a.at - b.at);
    let square = d1 * d1 - a.slope * b.slope;
    if square < 0.0 || square.is_nan() {
        return (low + high) / 2.0;
    }
    let d2 = square.sqrt();
    let lowest = b.at - (b.at - a.at) * ((b.slope + d2 - d1) / (b.slope - a.slope + 2.0 * d2));
    lowest.max(low).min(high)
}

/// Searches a point that lies low enough (`C1`) and flat enough (`C2`): Nocedal and Wright, algorithms 3.5 and 3.6.
fn strong_wolfe(
    probe: &mut dyn FnMut(f64) -> Result<Point>,
    start: Point,
    first: f64,
    largest_direction: f64,
) -> Result<Point> {
    const C1: f64 = 1e-4;
    const C2: f64 = 0.9;
    const TOLERANCE: f64 = 1e-9;
    const MOST: usize = 25;
    let too_high = |p: &Point| p.loss > start.loss + C1 * p.at * start.slope;
    let flat = |p: &Point| p.slope.abs() <= -C2 * start.slope;

    let (mut last, mut new) = (start.clone(), probe(first)?);
    let mut tries = 0;
    // A bracket around a good point.
    let (mut low, mut high) = loop {
        if tries == MOST {
            break (start.clone(), new);
        }
        if too_high(&new) || (tries > 1 && new.loss >= last.loss) {
            break (last, new);
        }
        if flat(&new) {
            return Ok(new);
        }
        if new.slope >= 0.0 {
            break (last, new);
        }
        let bounds = (new.at + 0.01 * (new.at - last.at), new.at * 10.0);
        let next = probe(cubic(&last, &new, bounds))?;
        last = std::mem::replace(&mut new, next);
        tries += 1;
    };
    if high.loss < low.loss {
        std::mem::swap(&mut low, &mut high);
    }
    // The bracket shrinks.
    let mut stuck = false;
    while tries < MOST && (high.at - low.at).abs() * largest_direction >= TOLERANCE {
        let (left, right) = (low.at.min(high.at), low.at.max(high.at));
        let mut at = cubic(&low, &high, (left, right));
        let margin = 0.1 * (right - left);
        if (right - at).min(at - left) < margin {
            // Close to an end: allowed once, then it is moved inside.
            let move_in = stuck || at >= right || at <= left;
            if move_in {
                at = if (at - right).abs() < (at - left).abs() { right - margin } else { left + margin };
            }
            stuck = !move_in;
        } else {
            stuck = false;
        }
        let new = probe(at)?;
        tries += 1;
        if too_high(&new) || new.loss >= low.loss {
            high = new;
            if high.loss < low.loss {
                std::mem::swap(&mut low, &mut high);
            }
            continue;
        }
        if flat(&new) {
            return Ok(new);
        }
        if new.slope * (high.at - low.at) >= 0.0 {
            high = low;
        }
        low = new;
    }
    Ok(low)
}
