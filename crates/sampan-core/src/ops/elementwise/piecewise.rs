//! Piecewise linear activation functions.

use crate::ops::elementwise::apply;
use crate::ops::prelude::*;

/// `max(x, 0)`.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([-1.0f32, 2.0]).relu().to_vec::<f32>(), [0.0, 2.0]);
/// ```
#[op(inplace, module = "nn.functional", samples = real_line, onnx = "Relu")]
fn relu(cx: &Cx, x: &Tensor) -> Result<Tensor> {
    // From the result, which the next layer keeps anyway.
    cx.by_result(formula!(|x| x.max(0.0)), formula!(|y, g| select(y.le(0.0), 0.0, g)), x, true)
}

/// `max(x + y, 0)` of two tensors of one shape and dtype: the end of a residual block, whose sum is never stored.
#[op(
    internal,
    fused_on_gpu,
    module = "nn.functional",
    samples = add_relu_samples,
    reference = add_relu_composite,
    peer = "none: the reference in ops"
)]
fn add_relu(cx: &Cx, x: &Tensor, y: &Tensor) -> Result<Tensor> {
    ensure!(x.shape() == y.shape() && x.dtype() == y.dtype(), "x and y must have one shape and dtype");
    let out = cx.number_values(formula!(|x, y| (x + y).max(0.0)), (x, y))?;
    cx.grad_from_output(out, &[], |g| {
        let grad = apply(&formula!(|y, g| select(y.le(0.0), 0.0, g)), vec![g.output(0).clone(), g.grad()])?;
        Ok([Some(grad.clone()), Some(grad)])
    })
}

fn add_relu_composite(x: &Tensor, y: &Tensor) -> Result<Tensor> {
    x.try_add(y)?.try_relu()
}

fn add_relu_samples() -> Vec<Sample> {
    vec![sample![randn([2, 3]), randn([2, 3])], sample![randn([0]), randn([0])]]
}

/// `min(max(x, 0), 6)`.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([-1.0f32, 7.0]).relu6().to_vec::<f32>(), [0.0, 6.0]);
/// ```
#[op(module = "nn.functional", samples = relu6_samples)]
fn relu6(x: &Tensor) -> Result<Tensor> {
    x.try_hardtanh(0.0, 6.0)
}

/// `x` held between `min` and `max`.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([-3.0f32, 0.5]).hardtanh(-1.0, 1.0).to_vec::<f32>(), [-1.0, 0.5]);
/// ```
#[op(inplace, module = "nn.functional", samples = hardtanh_samples)]
fn hardtanh(cx: &Cx, x: &Tensor, #[default(-1.0)] min: f64, #[default(1.0)] max: f64) -> Result<Tensor> {
    ensure!(min <= max, "min must not be above max, got {min} and {max}");
    let back = formula!(|y, g; min, max| select(y.le(min), 0.0, select(y.ge(max), 0.0, g)));
    cx.by_result(formula!(|x; min, max| x.max(min).min(max)), back, x, false)
}

/// `x` above zero, `negative_slope * x` below.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([-2.0f32, 2.0]).leaky_relu(0.5).to_vec::<f32>(), [-1.0, 2.0]);
/// ```
#[op(inplace, module = "nn.functional", samples = leaky_samples, flops = crate::ops::work::input_flops)]
fn leaky_relu(cx: &Cx, x: &Tensor, #[default(0.01)] negative_slope: f64) -> Result<Tensor> {
    let f = formula!(|x; negative_slope| select(x.gt(0.0), x, x * negative_slope));
    // At zero the slope is one, as in Paddle.
    let back = formula!(|x, g; negative_slope| select(x.ge(0.0), g, g * negative_slope));
    // With a positive slope the result has the sign of the input, which need not be kept then.
    if negative_slope > 0.0 { cx.by_result(f, back, x, false) } else { cx.by_input(f, back, x) }
}

/// `x` above `threshold`, else `value`.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([0.5f32, 2.0]).thresholded_relu(1.0, 0.0).to_vec::<f32>(), [0.0, 2.0]);
/// ```
#[op(inplace, module = "nn.functional", samples = threshold_samples)]
fn thresholded_relu(cx: &Cx, x: &Tensor, #[default(1.0)] threshold: f64, #[default(0.0)] value: f64) -> Result<Tensor> {
    let f = formula!(|x; threshold, value| select(x.gt(threshold), x, value));
    let back = formula!(|y, g; threshold| select(y.gt(threshold), g, 0.0));
    if value <= threshold { cx.by_result(f, back, x, false) } else { cx.float(f, x) }
}

/// `x` where it is farther from zero than `threshold`, else 0.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([-1.0f32, 0.2]).hardshrink(0.5).to_vec::<f32>(), [-1.0, 0.0]);
/// ```
#[op(module = "nn.functional", samples = shrink_samples, alias(lambd = threshold))]
fn hardshrink(cx: &Cx, x: &Tensor, #[default(0.5)] threshold: f64) -> Result<Tensor> {
    ensure!(threshold >= 0.0, "threshold must not be negative, got {threshold}");
    let back = formula!(|y, g; threshold| select(y.abs().gt(threshold), g, 0.0));
    cx.by_result(formula!(|x; threshold| select(x.abs().le(threshold), 0.0, x)), back, x, false)
}

/// `x` moved towards zero by `threshold`; 0 where it is closer than that.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([-1.0f32, 0.2]).softshrink(0.5).to_vec::<f32>(), [-0.5, 0.0]);
/// ```
#[op(module = "nn.functional", samples = shrink_samples, alias(lambd = threshold))]
fn softshrink(cx: &Cx, x: &Tensor, #[default(0.5)] threshold: f64) -> Result<Tensor> {
    ensure!(threshold >= 0.0, "threshold must not be negative, got {threshold}");
    let f = formula!(|x; threshold| {
        let t = threshold;
        select(x.gt(t), x - t, select(x.lt(-t), x + t, select(x.abs().le(t), 0.0, x)))
    });
    cx.by_result(f, formula!(|y, g| select(y.abs().gt(0.0), g, 0.0)), x, false)
}

/// `slope * x + offset` held between 0 and 1.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([-9.0f32, 0.0]).hardsigmoid(0.1666667, 0.5).to_vec::<f32>(), [0.0, 0.5]);
/// ```
#[op(module = "nn.functional", samples = hardsigmoid_samples)]
fn hardsigmoid(cx: &Cx, x: &Tensor, #[default(0.1666667)] slope: f64, #[default(0.5)] offset: f64) -> Result<Tensor> {
    let back = formula!(|y, g; slope| select(y.le(0.0), 0.0, select(y.ge(1.0), 0.0, g * slope)));
    cx.by_result(formula!(|x; slope, offset| (x * slope + offset).max(0.0).min(1.0)), back, x, false)
}

/// `x` above zero, `weight * x` below, with one learnt weight for all or for each channel.
///
/// ```
/// # use sampan_core::Tensor;
/// let y = Tensor::new([[-2.0f32, 2.0]]).prelu(&Tensor::new([0.5f32]), "NCHW");
/// assert_eq!(y.to_vec::<f32>(), [-1.0, 2.0]);
/// ```
#[op(module = "nn.functional", samples = prelu_samples)]
fn prelu(x: &Tensor, weight: &Tensor, #[default("NCHW")] data_format: &str) -> Result<Tensor> {
    ensure!(weight.ndim() <= 1, "weight must be a number or a vector, got shape {:?}", weight.shape());
    if weight.numel() == 1 {
        return x.try_two_slopes(&weight.reshape_to([0usize; 0]));
    }
    let last = channels_last(data_format)?;
    ensure!(x.ndim() >= 2, "with one weight for each channel x needs at least two axes");
    let at = if last { x.ndim() - 1 } else { 1 };
    let (have, want) = (weight.numel(), x.shape()[at]);
    if have != want {
        return Err(Error::invalid(format!("weight has {have} elements, x has {want} channels on axis {at}"))
            .hint("one weight for all or one for each channel; see data_format"));
    }
    let mut shape = vec![1; x.ndim()];
    shape[at] = want;
    x.try_two_slopes(&weight.reshape_to(shape))
}

/// Is the channel axis the last one in this data format?
pub(crate) fn channels_last(data_format: &str) -> Result<bool> {
    match data_format {
        "NC" | "NCL" | "NCHW" | "NCDHW" => Ok(false),
        "NLC" | "NHWC" | "NDHWC" => Ok(true),
        other => Err(Error::invalid(format!(
            "data_format must be one of NC, NCL, NCHW, NCDHW, NLC, NHWC, NDHWC, got \"{other}\""
        ))),
    }
}

/// `x` above zero, `slope * x` below, with a slope that broadcasts to `x`.
#[op(internal, module = "nn.functional", samples = slopes_samples, peer = "lambda x, w: torch.where(x > 0, x, x * w)")]
fn two_slopes(cx: &Cx, x: &Tensor, slope: &Tensor) -> Result<Tensor> {
    ensure!(broadcast(x.shape(), slope.shape())?.as_slice() == x.shape(), "the slope must broadcast to x");
    cx.float(formula!(|x, slope| select(x.gt(0.0), x, x * slope)), (x, slope))
}

/// `x` above zero, below it `x` times a random slope from [lower, upper), or times their middle outside of training.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([-2.0f32, 2.0]).rrelu(0.25, 0.75, false).to_vec::<f32>(), [-1.0, 2.0]);
/// ```
#[op(random, module = "nn.functional", samples = rrelu_samples)]
fn rrelu(
    x: &Tensor,
    #[default(0.125)] lower: f64,
    #[default(1.0 / 3.0)] upper: f64,
    #[default(true)] training: bool,
) -> Result<Tensor> {
    ensure!(0.0 <= lower && lower <= upper && upper <= 1.0, "needs 0 <= lower <= upper <= 1, got {lower} and {upper}");
    if !training {
        return x.try_leaky_relu((lower + upper) / 2.0);
    }
    // At zero the slope is one, as in `leaky_relu`.
    let noise = crate::ops::dropout::noise_like(x, lower, upper)?;
    x.try_two_slopes(&x.detach().equal(0.0).where_cond(1.0, noise))
}

/// The largest of every `groups` neighbouring channels on `axis`.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([[1.0f32, 5.0, 3.0, 2.0]]).maxout(2, 1).to_vec::<f32>(), [5.0, 3.0]);
/// ```
#[op(module = "nn.functional", samples = maxout_samples)]
fn maxout(x: &Tensor, groups: i64, #[default(1)] axis: i64) -> Result<Tensor> {
    ensure!(x.ndim() > 0, "a 0-d tensor has no channels");
    let axis = resolve_axis(axis, x.ndim())?;
    let channels = x.shape()[axis];
    ensure!(
        groups > 0 && channels.is_multiple_of(groups as usize),
        "axis {axis} of extent {channels} has no {groups} equal groups"
    );
    let mut shape = x.shape_vec();
    shape[axis] = channels / groups as usize;
    shape.insert(axis + 1, groups as usize);
    x.reshape_to(shape).try_max(axis as i64 + 1)
}

fn relu6_samples() -> Vec<Sample> {
    vec![sample![values([-1.0f32, 0.5, 5.5, 7.0], [2, 2])], sample![randn([])], sample![randn([0, 2])]]
}
fn hardtanh_samples() -> Vec<Sample> {
    vec![sample![randn([2, 3])], sample![randn([5]), -0.3, 1.5], sample![randn([])], sample![randn([0, 2])]]
}
fn leaky_samples() -> Vec<Sample> {
    vec![sample![randn([2, 3])], sample![randn([5]), 0.3], sample![randn([4]), -0.5], sample![randn([0, 2])]]
}
fn threshold_samples() -> Vec<Sample> {
    vec![sample![randn([2, 3])], sample![randn([5]), 0.3], sample![randn([4]), -0.5, 0.7], sample![randn([0, 2])]]
}
fn shrink_samples() -> Vec<Sample> {
    vec![sample![randn([2, 3])], sample![randn([5]), 0.9], sample![randn([])], sample![randn([0, 2])]]
}
fn hardsigmoid_samples() -> Vec<Sample> {
    vec![sample![randn([2, 3])], sample![randn([5]), 0.6, 0.4], sample![randn([])], sample![randn([0, 2])]]
}
fn prelu_samples() -> Vec<Sample> {
    vec![
        sample![randn([2, 3]), positive([1])],
        sample![randn([2, 3, 2]), positive([3])],
        sample![randn([2, 2, 3]), positive([3]), "NLC"],
    ]
}
fn slopes_samples() -> Vec<Sample> {
    vec![sample![randn([2, 3]), randn([3])], sample![randn([4]), randn([])]]
}
fn rrelu_samples() -> Vec<Sample> {
    vec![
        sample![randn([2, 3]), 0.1, 0.3, false],
        sample![randn([2, 3])].peer("none: random"),
        sample![randn([0, 2]), 0.2, 0.2, true],
    ]
}
fn maxout_samples() -> Vec<Sample> {
    vec![sample![distinct([2, 4, 1, 2]), 2], sample![distinct([1, 2, 1, 6]), 3, -1]]
}
