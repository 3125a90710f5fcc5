//! Optimizers: one fused pass over each parameter a step.

use crate::Parameter;
use sampan_core::{Error, Result, Tensor};
use sampan_kernels::optim as kernels;

/// Changes parameters by their gradients.
pub trait Optimizer {
    /// The parameters it trains.
    fn parameters(&self) -> &[Parameter];
    /// Changes every parameter that has a gradient.
    fn step(&mut self) -> Result<()>;
    /// The learning rate of the next step.
    fn lr(&self) -> f64;
    /// Sets the learning rate.
    fn set_lr(&mut self, lr: f64);
    /// Forgets the gradients; they add up until then.
    fn clear_grad(&mut self) {
        self.parameters().iter().for_each(|p| p.clear_grad());
    }
    /// What must be kept to go on later, in the order of the parameters: moments, then the count of steps.
    fn state(&self) -> Vec<(String, Tensor)>;
    /// Goes on from a kept state.
    fn set_state(&mut self, state: &[(String, Tensor)]) -> Result<()>;
}

/// The gradient of a parameter, ready for a kernel.
fn gradient(p: &Parameter) -> Option<Tensor> {
    p.grad().filter(|_| p.trainable()).map(|g| g.contiguous())
}

fn zeros_like(ps: &[Parameter]) -> Vec<Tensor> {
    ps.iter().map(|p| Tensor::zeros(p.shape(), p.dtype())).collect()
}

fn named(label: &str, tensors: &[Tensor]) -> Vec<(String, Tensor)> {
    tensors.iter().enumerate().map(|(i, t)| (format!("{i}.{label}"), t.clone())).collect()
}

fn restore(label: &str, tensors: &[Tensor], state: &[(String, Tensor)]) -> Result<()> {
    tensors.iter().enumerate().try_for_each(|(i, t)| {
        let key = format!("{i}.{label}");
        let (_, value) = state
            .iter()
            .find(|(k, _)| *k == key)
            .ok_or_else(|| Error::invalid(format!("the optimizer's state has no `{key}`")).in_op("set_state"))?;
        t.try_set_value(value)
    })
}

/// Stochastic gradient descent: `p -= lr * g`.
pub struct Sgd {
    lr: f64,
    parameters: Vec<Parameter>,
}

impl Sgd {
    /// Descends with a learning rate.
    pub fn new(lr: f64, parameters: Vec<Parameter>) -> Sgd {
        Sgd { lr, parameters }
    }
}

impl Optimizer for Sgd {
    fn parameters(&self) -> &[Parameter] {
        &self.parameters
    }
    fn lr(&self) -> f64 {
        self.lr
    }
    fn set_lr(&mut self, lr: f64) {
        self.lr = lr;
    }
    fn step(&mut self) -> Result<()> {
        for p in &self.parameters {
            let Some(g) = gradient(p) else { continue };
            let lr = self.lr as f32;
            Tensor::update::<f32>(&[&p.tensor()], &[&g], |t, s| kernels::sgd(t[0], s[0], lr))?;
        }
        Ok(())
    }
    fn state(&self) -> Vec<(String, Tensor)> {
        Vec::new()
    }
    fn set_state(&mut self, _: &[(String, Tensor)]) -> Result<()> {
        Ok(())
    }
}

/// Descent with a velocity that keeps a share of its past.
pub struct Momentum {
    lr: f64,
    momentum: f64,
    nesterov: bool,
    parameters: Vec<Parameter>,
    velocity: Vec<Tensor>,
}

impl Momentum {
    /// Descends with a learning rate and the kept share of the velocity.
    pub fn new(lr: f64, momentum: f64, parameters: Vec<Parameter>) -> Momentum {
        let velocity = zeros_like(&parameters);
        Momentum { lr, momentum, nesterov: false, parameters, velocity }
    }

    /// Looks ahead along the velocity.
    pub fn nesterov(mut self, on: bool) -> Momentum {
        self.nesterov = on;
        self
    }
}

impl Optimizer for Momentum {
    fn parameters(&self) -> &[Parameter] {
        &self.parameters
    }
    fn lr(&self) -> f64 {
        self.lr
    }
    fn set_lr(&mut self, lr: f64) {
        self.lr = lr;
    }
    fn step(&mut self) -> Result<()> {
        let (lr, mu) = (self.lr as f32, self.momentum as f32);
        for (p, v) in self.parameters.iter().zip(&self.velocity) {
            let Some(g) = gradient(p) else { continue };
            Tensor::update::<f32>(&[&p.tensor(), v], &[&g], |t, s| {
                if let [p, v] = t {
                    kernels::momentum(p, s[0], v, lr, mu, self.nesterov);
                }
            })?;
        }
        Ok(())
    }
    fn state(&self) -> Vec<(String, Tensor)> {
        named("velocity", &self.velocity)
    }
    fn set_state(&mut self, state: &[(String, Tensor)]) -> Result<()> {
        restore("velocity", &self.velocity, state)
    }
}

/// Adam: steps scaled by running moments of the gradient.
pub struct Adam {
    lr: f64,
    beta1: f64,
    beta2: f64,
    epsilon: f64,
    decay: f64,
    steps: u64,
    parameters: Vec<Parameter>,
    moment1: Vec<Tensor>,
    moment2: Vec<Tensor>,
}

impl Adam {
    /// Adam with the usual decay rates 0.9 and 0.999.
    pub fn new(lr: f64, parameters: Vec<Parameter>) -> Adam {
        let (moment1, moment2) = (zeros_like(&parameters), zeros_like(&parameters));
        Adam { lr, beta1: 0.9, beta2: 0.999, epsilon: 1e-8, decay: 0.0, steps: 0, parameters, moment1, moment2 }
    }

    /// AdamW: shrinks parameters by `decay * lr` each step, apart from the gradient.
    pub fn decoupled_decay(mut self, decay: f64) -> Adam {
        self.decay = decay;
        self
    }
}

impl Optimizer for Adam {
    fn parameters(&self) -> &[Parameter] {
        &self.parameters
    }
    fn lr(&self) -> f64 {
        self.lr
    }
    fn set_lr(&mut self, lr: f64) {
        self.lr = lr;
    }
    fn step(&mut self) -> Result<()> {
        self.steps += 1;
        let correction1 = 1.0 - self.beta1.powi(self.steps as i32);
        let correction2 = (1.0 - self.beta2.powi(self.steps as i32)).sqrt();
        let numbers = kernels::Adam {
            beta1: self.beta1,
            beta2: self.beta2,
            // Paddle corrects the root of the second moment, so epsilon is scaled along with it.
            epsilon: self.epsilon * correction2,
            step_size: self.lr * correction2 / correction1,
            shrink: self.lr * self.decay,
        };
        for ((p, m), v) in self.parameters.iter().zip(&self.moment1).zip(&self.moment2) {
            let Some(g) = gradient(p) else { continue };
            Tensor::update::<f32>(&[&p.tensor(), m, v], &[&g], |t, s| {
                if let [p, m, v] = t {
                    kernels::adam(p, s[0], m, v, numbers);
                }
            })?;
        }
        Ok(())
    }
    fn state(&self) -> Vec<(String, Tensor)> {
        let mut state = named("moment1", &self.moment1);
        state.extend(named("moment2", &self.moment2));
        state.push(("steps".into(), Tensor::new(self.steps as i64)));
        state
    }
    fn set_state(&mut self, state: &[(String, Tensor)]) -> Result<()> {
        restore("moment1", &self.moment1, state)?;
        restore("moment2", &self.moment2, state)?;
        let steps = state.iter().find(|(k, _)| k == "steps").map(|(_, t)| t.try_item()).transpose()?;
        self.steps = steps
            .ok_or_else(|| Error::invalid("the optimizer's state has no `steps`").in_op("set_state"))?
            .to_i64() as u64;
        Ok(())
    }
}
