//! Losses between predictions and targets of one shape.

use super::prelude::*;

/// What becomes of the losses of single elements.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Reduction {
    None,
    Mean,
    Sum,
}

impl Reduction {
    pub fn parse(name: &str) -> Result<Reduction> {
        match name {
            "none" => Ok(Reduction::None),
            "mean" => Ok(Reduction::Mean),
            "sum" => Ok(Reduction::Sum),
            other => Err(Error::invalid(format!("reduction must be \"none\", \"mean\" or \"sum\", got \"{other}\""))),
        }
    }

    pub fn apply(self, loss: &Tensor) -> Tensor {
        match self {
            Reduction::None => loss.clone(),
            Reduction::Sum => loss.sum(()),
            Reduction::Mean => loss.sum(()) / loss.numel() as f64,
        }
    }
}

/// `(input - label)^2`, reduced.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([1.0f32, 3.0]).mse_loss(&Tensor::new([0.0f32, 0.0])).to_f64(), 5.0);
/// ```
#[op(module = "nn.functional", samples = pair_samples)]
fn mse_loss(input: &Tensor, label: &Tensor, #[opt("mean")] reduction: &str) -> Result<Tensor> {
    let reduction = Reduction::parse(reduction)?;
    let d = input.try_subtract(label)?;
    Ok(reduction.apply(&(&d * &d)))
}

fn pair_samples() -> Vec<Sample> {
    vec![
        sample![randn([2, 3]), uniform([2, 3], -1.0, 1.0)],
        sample![randn([2, 3]), uniform([2, 3], -1.0, 1.0); reduction = "none"],
        sample![randn([5]), uniform([5], -1.0, 1.0); reduction = "sum"],
        sample![randn([]), uniform([], -1.0, 1.0)],
    ]
}
