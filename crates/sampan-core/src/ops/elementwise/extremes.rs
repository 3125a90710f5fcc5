//! The larger and the smaller of two.

use crate::ops::elementwise::pair_grads;
use crate::ops::prelude::*;

/// The larger of `x` and `y`, element by element; NaN where either is. Where they are equal each gets half the gradient.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([1.0f32, 5.0]).maximum(2.0).to_vec::<f32>(), [2.0, 5.0]);
/// ```
#[op(inplace, samples = extreme_pairs, onnx = "Max")]
fn maximum(cx: &Cx, x: &Tensor, y: Operand) -> Result<Tensor> {
    let out = cx.number_values(formula!(|x, y| x.max(y)), (x, &y))?;
    pick_grad(
        cx,
        out,
        x,
        y,
        |x, y| half_if_equal(x.greater_than(y), x.greater_equal(y)),
        |x, y| half_if_equal(x.less_than(y), x.less_equal(y)),
    )
}

/// The smaller of `x` and `y`, element by element; NaN where either is. Where they are equal each gets half the gradient.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([1.0f32, 5.0]).minimum(2.0).to_vec::<f32>(), [1.0, 2.0]);
/// ```
#[op(inplace, samples = extreme_pairs, onnx = "Min")]
fn minimum(cx: &Cx, x: &Tensor, y: Operand) -> Result<Tensor> {
    let out = cx.number_values(formula!(|x, y| x.min(y)), (x, &y))?;
    pick_grad(
        cx,
        out,
        x,
        y,
        |x, y| half_if_equal(x.less_than(y), x.less_equal(y)),
        |x, y| half_if_equal(x.greater_than(y), x.greater_equal(y)),
    )
}

/// The larger of `x` and `y`, element by element; the other one where one is NaN.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([1.0f32, f32::NAN]).fmax(0.5).to_vec::<f32>(), [1.0, 0.5]);
/// ```
#[op(inplace, samples = extreme_pairs)]
fn fmax(cx: &Cx, x: &Tensor, y: Operand) -> Result<Tensor> {
    let out = cx.number_values(formula!(|x, y| x.fmax(y)), (x, &y))?;
    let wins = |x: &Tensor, y: &Operand| x.greater_equal(y).logical_or(is_nan(y));
    pick_grad(cx, out, x, y, wins, move |x, y| wins(x, y).logical_not())
}

/// The smaller of `x` and `y`, element by element; the other one where one is NaN.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([1.0f32, f32::NAN]).fmin(0.5).to_vec::<f32>(), [0.5, 0.5]);
/// ```
#[op(inplace, samples = extreme_pairs)]
fn fmin(cx: &Cx, x: &Tensor, y: Operand) -> Result<Tensor> {
    let out = cx.number_values(formula!(|x, y| x.fmin(y)), (x, &y))?;
    let wins = |x: &Tensor, y: &Operand| x.less_equal(y).logical_or(is_nan(y));
    pick_grad(cx, out, x, y, wins, move |x, y| wins(x, y).logical_not())
}

fn is_nan(y: &Operand) -> Operand {
    match y {
        Operand::Tensor(y) => y.isnan().into(),
        Operand::Scalar(s) => s.to_f64().is_nan().into(),
    }
}

/// 1 where it wins, ½ where it only does not lose, else 0.
fn half_if_equal(wins: Tensor, wins_or_equal: Tensor) -> Tensor {
    (wins.cast(default_dtype()) + wins_or_equal) * 0.5
}

/// The gradient of a choice between two, from the share of it that goes to each.
fn pick_grad(
    cx: &Cx,
    out: Tensor,
    x: &Tensor,
    y: Operand,
    x_share: impl Fn(&Tensor, &Operand) -> Tensor + Send + Sync + 'static,
    y_share: impl Fn(&Tensor, &Operand) -> Tensor + Send + Sync + 'static,
) -> Result<Tensor> {
    let times = |g: &Grad, share: Tensor| g.grad() * share.cast(g.grad().dtype());
    match y {
        Operand::Tensor(y) => cx.grad(out, &[x, &y], move |g| {
            let (x, y) = (g.saved(0), g.saved(1));
            let (dx, dy) = (|| times(g, x_share(x, &y.into())), || times(g, y_share(x, &y.into())));
            Ok(pair_grads(g, x.shape(), Some(y.shape()), dx, dy))
        }),
        Operand::Scalar(s) => cx.grad(out, &[x], move |g| Ok(times(g, x_share(g.saved(0), &s.into())))),
    }
}

fn extreme_pairs() -> Vec<Sample> {
    let nan = f32::NAN;
    vec![
        sample![randn([2, 3]), uniform([2, 3], -2.0, 2.1)],
        sample![randn([2, 1, 3]), uniform([4, 1], 0.3, 1.5)],
        sample![randn([3]), 0.07],
        sample![values([1.0f32, 2.0, 3.0], [3]), values([1.0f32, 3.0, 2.0], [3])]
            .no_grad("a kink where they are equal"),
        sample![values([nan, 1.0, nan], [3]), values([1.0f32, nan, nan], [3])].no_grad("NaN has no slope"),
        sample![ints([4], -3, 4), ints([4], -2, 4)],
        sample![randn([]), uniform([], -0.05, 0.05)],
        sample![randn([0, 3]), randn([3])],
    ]
}
