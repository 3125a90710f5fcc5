//! How much arithmetic the ops with heavy kernels do, from the shapes of a call: what `work` and `flops` of `#[op]` name.

use crate::{Tensor, Value};

fn tensor(args: &[Value], i: usize) -> Option<&Tensor> {
    match args.get(i) {
        Some(Value::Tensor(t)) => Some(t),
        _ => None,
    }
}

/// Elements of the tensor among the arguments at that place.
fn size(args: &[Value], i: usize) -> u64 {
    tensor(args, i).map_or(0, |t| t.numel() as u64)
}

fn out_size(outputs: &[Tensor]) -> u64 {
    outputs.first().map_or(0, |t| t.numel() as u64)
}

/// What one output of a convolution reads: its kernel on the channels of its group.
fn window(weight: Option<&Tensor>) -> u64 {
    weight.map_or(0, |w| w.shape().iter().skip(1).product::<usize>() as u64)
}

/// A matrix product: each element of the result is a sum along the last axis of the first factor.
pub(crate) fn product(args: &[Value], outputs: &[Tensor]) -> u64 {
    out_size(outputs) * tensor(args, 0).and_then(|x| x.shape().last().copied()).unwrap_or(1) as u64
}

/// A convolution of `x` with `weight`.
pub(crate) fn conv(args: &[Value], outputs: &[Tensor]) -> u64 {
    out_size(outputs) * window(tensor(args, 1))
}

/// The way back from a convolution's result, the first argument, to its input; a transposed convolution is one.
pub(crate) fn conv_data(args: &[Value], _: &[Tensor]) -> u64 {
    size(args, 0) * window(tensor(args, 1))
}

/// From a convolution's input and the gradient of its result to the gradient of the weight.
pub(crate) fn conv_weight(args: &[Value], outputs: &[Tensor]) -> u64 {
    size(args, 0) * window(outputs.first())
}

/// The number of keys in `[batch, keys, heads, width]`.
fn keys(args: &[Value]) -> u64 {
    tensor(args, 1).and_then(|k| k.shape().get(k.ndim().saturating_sub(3)).copied()).unwrap_or(1) as u64
}

/// Attention: the scores, and their sum of values.
pub(crate) fn attention(args: &[Value], _: &[Tensor]) -> u64 {
    2 * size(args, 0) * keys(args)
}

/// Backwards: the scores again, and the gradients of both factors of each product.
pub(crate) fn attention_backward(args: &[Value], _: &[Tensor]) -> u64 {
    5 * size(args, 0) * keys(args)
}

/// A recurrent layer along sequences: at every step a product of the state with the weight of all its gates.
pub(crate) fn recurrent(args: &[Value], _: &[Tensor]) -> u64 {
    let units = tensor(args, 1).and_then(|w| w.shape().last().copied()).unwrap_or(0) as u64;
    size(args, 0) * units
}

/// Paddle's count for a convolution: a bias is one more product.
pub(crate) fn conv_flops(args: &[Value], outputs: &[Tensor]) -> u64 {
    conv(args, outputs) + if tensor(args, 2).is_some() { out_size(outputs) } else { 0 }
}

/// Paddle's count for a batch norm: two for each element.
pub(crate) fn norm_flops(args: &[Value], _: &[Tensor]) -> u64 {
    2 * size(args, 0)
}

/// Paddle's count for a pool that averages: one for each result.
pub(crate) fn pool_flops(_: &[Value], outputs: &[Tensor]) -> u64 {
    out_size(outputs)
}

/// Paddle's count for an adaptive pool: for each result its window, and a division.
pub(crate) fn adaptive_pool_flops(args: &[Value], outputs: &[Tensor]) -> u64 {
    let out = out_size(outputs);
    out * (size(args, 0) / out.max(1) + 1)
}

/// Paddle's count for the one activation that it counts: one for each element.
pub(crate) fn input_flops(args: &[Value], _: &[Tensor]) -> u64 {
    size(args, 0)
}
