//! Sample inputs that travel with each op: the tests, the gradient checks and the comparison with a peer read them.

use crate::op::OpDef;
use crate::value::Args;
use crate::{Complex64, Complex128, DType, Result, Tensor, Value};
use sampan_kernels::Element;

/// One call of an op.
#[derive(Clone, Debug)]
pub struct Sample {
    /// Positional arguments.
    pub positional: Vec<Value>,
    /// Named arguments.
    pub named: Vec<(&'static str, Value)>,
    /// Leave the numeric gradient checks out, with the reason (a kink at the sample, a gradient scaled on purpose …).
    pub no_grad: Option<&'static str>,
    /// Who answers this call in the comparison, in place of the op's peer (see `OpDef::peer`).
    pub peer: Option<&'static str>,
    /// Who gives the gradients, where the peer lacks them or has others.
    pub grad_peer: Option<&'static str>,
    /// The signs of the results are free: the comparison is of absolute values.
    pub up_to_sign: bool,
    /// The first argument is a symmetric matrix and stays so in the gradient checks.
    pub symmetric: bool,
    /// Parameters that the op takes for constants, at least in part: the numeric gradient checks do so too.
    pub constants: &'static [&'static str],
}

impl Sample {
    /// Skips numeric gradient checks for this sample only.
    pub fn no_grad(mut self, reason: &'static str) -> Sample {
        self.no_grad = Some(reason);
        self
    }

    /// Names another peer for this sample only, as `peer` of `#[op]` does for all: an expression, or `none: reason`.
    pub fn peer(mut self, peer: &'static str) -> Sample {
        self.peer = Some(peer);
        self
    }

    /// Names another peer for the gradients of this sample only, while the peer answers for the values.
    pub fn grad_peer(mut self, peer: &'static str) -> Sample {
        self.grad_peer = Some(peer);
        self
    }

    /// Who answers this call in the comparison: an expression, empty for Paddle's function of the op's name. `None` where
    /// nobody does.
    pub fn peer_of(&self, op: &OpDef) -> Option<&'static str> {
        let peer = self.peer.or(op.peer).unwrap_or("");
        (!peer.starts_with("none:")).then_some(peer)
    }

    /// Who gives the gradients of this call.
    pub fn grad_peer_of(&self, op: &OpDef) -> Option<&'static str> {
        let peer = self.grad_peer.or(self.peer).or(op.peer).unwrap_or("");
        (!op.non_diff && !peer.starts_with("none:")).then_some(peer)
    }

    /// Says that the signs of the results are free, as those of eigenvectors are.
    pub fn up_to_sign(mut self) -> Sample {
        self.up_to_sign = true;
        self
    }

    /// Says that the first argument is a symmetric matrix, of which the op may read one triangle only.
    pub fn symmetric(mut self) -> Sample {
        self.symmetric = true;
        self
    }

    /// Says that the op takes these parameters for constants and gives them no gradient, or not the whole one.
    pub fn constant(mut self, names: &'static [&'static str]) -> Sample {
        self.constants = names;
        self
    }

    /// The arguments in the order of the op's signature.
    pub fn bind(&self, op: &OpDef) -> Result<Args> {
        op.bind(self.positional.clone(), self.named.clone())
    }
}

/// A sample call: `sample![randn([2, 3]), 1; keepdim = true]`.
#[macro_export]
macro_rules! sample {
    ($($arg:expr),* $(,)? $(; $($name:ident = $value:expr),* $(,)?)?) => {
        $crate::sample::Sample {
            positional: vec![$($crate::Value::from($arg)),*],
            named: vec![$($((stringify!($name), $crate::Value::from($value))),*)?],
            no_grad: None,
            peer: None,
            grad_peer: None,
            up_to_sign: false,
            symmetric: false,
            constants: &[],
        }
    };
}

/// Values in [lo, hi), the same at every call for the same shape and bounds; float32.
pub fn uniform(shape: impl AsRef<[usize]>, lo: f64, hi: f64) -> Tensor {
    let shape = shape.as_ref();
    let n: usize = shape.iter().product();
    // A weak generator is enough for samples, and keeps them independent of the real one.
    let mut state = shape.iter().fold(0x9E37_79B9_7F4A_7C15_u64, |s, &d| mix(s ^ d as u64)) ^ lo.to_bits();
    let values: Vec<f32> = (0..n)
        .map(|_| {
            state = mix(state);
            (lo + (hi - lo) * (state >> 40) as f64 / (1u64 << 24) as f64) as f32
        })
        .collect();
    Tensor::from_vec(values, shape)
}

fn mix(mut z: u64) -> u64 {
    z = z.wrapping_add(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// Values around zero, in (-2, 2), none closer to zero than 0.1 (where many functions have a kink); float32.
pub fn randn(shape: impl AsRef<[usize]>) -> Tensor {
    let t = uniform(shape, -2.0, 2.0);
    let values: Vec<f32> =
        t.to_vec::<f32>().into_iter().map(|v| if v.abs() < 0.1 { v + v.signum() * 0.1 } else { v }).collect();
    Tensor::from_vec(values, t.shape())
}

/// Complex numbers of length 0.5 to 2, none near the negative real axis, where many functions jump; complex64.
pub fn complexes(shape: impl AsRef<[usize]>) -> Tensor {
    let shape = shape.as_ref();
    let (sizes, angles) = (uniform(shape, 0.5, 2.0).to_vec::<f32>(), uniform(shape, -2.7, 2.7).to_vec::<f32>());
    Tensor::from_vec(sizes.iter().zip(angles).map(|(&r, a)| Complex64::from_polar(r, a)).collect(), shape)
}

/// Values in [0.2, 2); float32.
pub fn positive(shape: impl AsRef<[usize]>) -> Tensor {
    uniform(shape, 0.2, 2.0)
}

/// Distinct values in shuffled order, spread over about (-2, 2) with even gaps: safe for max, sort and the like.
pub fn distinct(shape: impl AsRef<[usize]>) -> Tensor {
    let shape = shape.as_ref();
    let n: usize = shape.iter().product();
    let keys = uniform([n], 0.0, 1.0).to_vec::<f32>();
    let mut order: Vec<usize> = (0..n).collect();
    order.sort_by(|&a, &b| keys[a].total_cmp(&keys[b]));
    let values: Vec<f32> = order.iter().map(|&i| (i as f32 + 0.5) / n.max(1) as f32 * 4.0 - 2.0).collect();
    Tensor::from_vec(values, shape)
}

/// Integers in [lo, hi) as int64.
pub fn ints(shape: impl AsRef<[usize]>, lo: i64, hi: i64) -> Tensor {
    let t = uniform(shape, lo as f64, hi as f64);
    Tensor::from_vec(t.to_vec::<f32>().into_iter().map(|v| (v.floor() as i64).clamp(lo, hi - 1)).collect(), t.shape())
}

/// Truth values.
pub fn bools(shape: impl AsRef<[usize]>) -> Tensor {
    let t = uniform(shape, 0.0, 1.0);
    Tensor::from_vec(t.to_vec::<f32>().into_iter().map(|v| sampan_kernels::Bool::from(v < 0.5)).collect(), t.shape())
}

/// Given values of a shape.
pub fn values<T: Element>(values: impl Into<Vec<T>>, shape: impl AsRef<[usize]>) -> Tensor {
    Tensor::from_vec(values.into(), shape)
}

/// Shapes of an elementwise function of one argument on the whole real line: matrix, vector, 0-d, empty.
pub fn real_line() -> Vec<Sample> {
    vec![sample![randn([2, 3])], sample![randn([5])], sample![randn([])], sample![randn([0, 2])]]
}

/// The same on positive numbers.
pub fn positive_line() -> Vec<Sample> {
    vec![sample![positive([2, 3])], sample![positive([])], sample![positive([0, 2])]]
}

/// The same strictly inside (-1, 1).
pub fn unit_interval() -> Vec<Sample> {
    vec![sample![uniform([2, 3], -0.9, 0.9)], sample![uniform([], -0.9, 0.9)], sample![uniform([0, 2], -0.9, 0.9)]]
}

/// Real samples, then complex ones of the same kinds of shapes.
fn with_complex(mut samples: Vec<Sample>) -> Vec<Sample> {
    samples.extend([sample![complexes([2, 3])], sample![complexes([])], sample![complexes([0, 2])]]);
    samples
}

/// The whole real line and the complex plane.
pub fn any_line() -> Vec<Sample> {
    with_complex(real_line())
}

/// Positive numbers and the complex plane, for functions that have a branch cut along the negative numbers.
pub fn any_right_half() -> Vec<Sample> {
    with_complex(positive_line())
}

/// Numbers strictly inside (-1, 1) and complex ones.
pub fn any_unit() -> Vec<Sample> {
    with_complex(unit_interval())
}

/// Pairs for an elementwise function of two arguments: equal shapes, broadcasting, a number, 0-d, empty.
pub fn real_pairs() -> Vec<Sample> {
    vec![
        sample![randn([2, 3]), randn([2, 3])],
        sample![randn([2, 1, 3]), uniform([4, 1], 0.3, 1.5)],
        sample![randn([3]), 1.5],
        sample![randn([2, 3]), randn([])],
        sample![randn([0, 3]), randn([3])],
    ]
}

/// The same, and complex numbers with each other, with real tensors and with numbers.
pub fn number_pairs() -> Vec<Sample> {
    let mut samples = real_pairs();
    samples.extend([
        sample![complexes([2, 3]), complexes([3])],
        sample![complexes([2, 1]), randn([3])],
        sample![randn([2, 3]), complexes([3])],
        sample![complexes([3]), 1.5],
        sample![complexes([3]), Complex128::new(0.5, -2.0)],
        sample![complexes([]), complexes([])],
    ]);
    samples
}

/// A copy in another float dtype, or the complex dtype of its width; integers and booleans stay.
pub fn cast_floats(args: &mut Args, dtype: DType) -> Result<()> {
    args.iter_mut().try_for_each(|v| {
        v.map_tensors(&mut |t| match t.dtype() {
            d if d.is_float() => t.detach().try_cast(dtype),
            // Half floats have no complex numbers of their width.
            d if d.is_complex() && !dtype.is_half() => t.detach().try_cast(dtype.complex()),
            _ => Ok(t.clone()),
        })
    })
}
