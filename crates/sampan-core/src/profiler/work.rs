//! How much arithmetic an op does, where its shapes tell.

use crate::{Tensor, Value};

/// Multiply-adds of the kernel that an op runs itself; zero where they are not known or lie in the ops it calls.
///
/// ```
/// # use sampan_core::{Tensor, Value, profiler::multiply_adds};
/// let (x, y) = (Tensor::new([[1.0f32, 2.0]]), Tensor::new([[3.0f32], [4.0]]));
/// let args = [x.clone(), y.clone()].map(Value::Tensor);
/// assert_eq!(multiply_adds("matrix_product", &args, &[x.matmul(&y)]), 2);
/// ```
pub fn multiply_adds(op: &str, args: &[Value], outputs: &[Tensor]) -> u64 {
    let tensor = |i: usize| match args.get(i) {
        Some(Value::Tensor(t)) => Some(t),
        _ => None,
    };
    let (Some(first), Some(second), Some(out)) = (tensor(0), tensor(1), outputs.first()) else { return 0 };
    // What one output of a convolution reads: its kernel on the channels of its group.
    let window = |weight: &Tensor| weight.shape()[1..].iter().product::<usize>();
    let last = |t: &Tensor| t.shape().last().copied().unwrap_or(1);
    let keys = |t: &Tensor| t.shape().get(t.ndim().saturating_sub(3)).copied().unwrap_or(1);
    let count = match op {
        "matrix_product" | "linear" => out.numel() * last(first),
        "conv_forward" => out.numel() * window(second),
        "conv_backward_data" => first.numel() * window(second),
        "conv_backward_weight" => first.numel() * window(out),
        // Scores and their sum of values; backwards also the gradients of both factors of each.
        "attention" => 2 * first.numel() * keys(second),
        "attention_backward" => 5 * first.numel() * keys(second),
        _ => 0,
    };
    count as u64
}
