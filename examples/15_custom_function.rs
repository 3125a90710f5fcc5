//! 15 · A function with a gradient of your own.
//!
//! Most new functions need no gradient: written in tensor operations, they have one, of any order. Where you know a better
//! one, or where there is none (a step is flat everywhere), you say it yourself. First a function whose gradient is checked
//! against differences, then a network that decides with hard signs and still learns.

use sampan::autograd::{Function, FunctionContext, GradCheck, gradcheck};
use sampan::prelude::*;

/// `x * sigmoid(x)`, with its gradient from what forward already knew.
struct Swish;

impl Function for Swish {
    fn forward(&self, cx: &mut FunctionContext, inputs: &[Tensor]) -> Result<Vec<Tensor>> {
        let gate = inputs[0].sigmoid();
        let y = &inputs[0] * &gate;
        cx.save_for_backward(&[gate, y.clone()]);
        Ok(vec![y])
    }

    fn backward(&self, cx: &FunctionContext, grads: &[Option<Tensor>]) -> Result<Vec<Option<Tensor>>> {
        let [gate, y] = cx.saved_tensor() else { unreachable!("forward saved two") };
        let slope = gate + y * (1.0 - gate);
        Ok(vec![grads[0].as_ref().map(|g| g * &slope)])
    }
}

/// The sign, whose true gradient is zero: the gradient passes as if nothing had happened, but for inputs far away.
struct StraightThroughSign;

impl Function for StraightThroughSign {
    fn forward(&self, cx: &mut FunctionContext, inputs: &[Tensor]) -> Result<Vec<Tensor>> {
        cx.save_for_backward(inputs);
        Ok(vec![inputs[0].sign()])
    }

    fn backward(&self, cx: &FunctionContext, grads: &[Option<Tensor>]) -> Result<Vec<Option<Tensor>>> {
        let near = cx.saved_tensor()[0].abs().less_than(1.0).cast(DType::Float32);
        Ok(vec![grads[0].as_ref().map(|g| g * &near)])
    }
}

/// A function of one input and one output.
fn call(function: impl Function, x: &Tensor) -> Result<Tensor> {
    let [y] = fields(autograd::apply(function, std::slice::from_ref(x))?)?;
    Ok(y)
}

#[derive(Layer)]
struct HardNet {
    hidden: Linear,
    out: Linear,
}

impl Layer for HardNet {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        call(StraightThroughSign, &x.apply(&self.hidden)?)?.apply(&self.out)
    }
}

fn main() -> Result<()> {
    let points = [Tensor::new([-2.0f64, -0.5, 0.1, 3.0])];
    gradcheck(|x| Ok(vec![call(Swish, &x[0])?]), &points, GradCheck::default())?;
    println!("swish {:.4?}: its gradient agrees with differences", call(Swish, &points[0])?.to_vec::<f64>());

    // One or the other, but not both: no straight line divides these.
    random::seed(2);
    let x = Tensor::new([[-1.0f32, -1.0], [-1.0, 1.0], [1.0, -1.0], [1.0, 1.0]]);
    let labels = Tensor::new([0i64, 1, 1, 0]);
    let net = HardNet { hidden: Linear::new(2, 16), out: Linear::new(16, 2) };
    let mut opt = Adam::new(0.05, net.parameters());
    for step in 0..=200 {
        let loss = net.call(&x)?.cross_entropy(&labels);
        loss.backward();
        opt.step()?;
        opt.clear_grad();
        if step % 50 == 0 {
            println!("step {step}: loss {:.4}", loss.to_f64());
        }
    }
    let answers = net.call(&x)?.argmax(-1).to_vec::<i64>();
    println!("answers {answers:?}, right are {:?}", labels.to_vec::<i64>());
    Ok(())
}
