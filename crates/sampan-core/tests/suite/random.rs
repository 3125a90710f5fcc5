//! The laws of everything random, which no peer can confirm number by number: mean, variance and no memory from one draw
//! to the next.

use sampan_core::dispatch::dispatch;
use sampan_core::sample::Sample;
use sampan_core::{DType, Tensor, op, sample};
use std::f64::consts::PI;

const N: usize = 20_000;

/// What a call must give: independent numbers of a mean and a variance, after `read` has made them from the results.
struct Law {
    op: &'static str,
    call: Sample,
    read: fn(Vec<f64>) -> Vec<f64>,
    mean: f64,
    variance: f64,
}

fn law(op: &'static str, call: Sample, mean: f64, variance: f64) -> Law {
    Law { op, call, read: |v| v, mean, variance }
}

impl Law {
    fn read(self, read: fn(Vec<f64>) -> Vec<f64>) -> Law {
        Law { read, ..self }
    }
}

fn full(shape: &[usize], value: f32) -> Tensor {
    Tensor::from_vec(vec![value; shape.iter().product()], shape)
}

/// The first of every two, which must be dropped or kept together.
fn channels(values: Vec<f64>) -> Vec<f64> {
    assert!(values.chunks(2).all(|c| (c[0] == 0.0) == (c[1] == 0.0)), "a channel was dropped in part");
    values.chunks(2).map(|c| c[0]).collect()
}

fn laws() -> Vec<Law> {
    let ones = || full(&[N], 1.0);
    let size = [N];
    // Whole numbers from -3 to 4.
    let (mid, spread) = (0.5, 63.0 / 12.0);
    // Numbers whose logarithm has mean 0.2 and deviation 0.5.
    let (log_mean, log_variance) = (0.325f64.exp(), (0.25f64.exp() - 1.0) * 0.65f64.exp());
    let kept_variance = 1.0 / 0.7 - 1.0;
    let rate = -(0.7f64.ln());
    let classes = || Tensor::new([0.2f32, 0.3, 0.5]);
    let normal = |shape: &[usize]| sampan_core::ops::random::randn(shape);
    vec![
        law("rand", sample![size], 0.5, 1.0 / 12.0),
        law("rand_like", sample![ones()], 0.5, 1.0 / 12.0),
        law("uniform", sample![size; min = -1.0, max = 3.0], 1.0, 16.0 / 12.0),
        law("uniform_", sample![ones(), -1.0, 3.0], 1.0, 16.0 / 12.0),
        law("randn", sample![size], 0.0, 1.0),
        law("randn_like", sample![ones()], 0.0, 1.0),
        law("gaussian", sample![size, 2.0, 3.0], 2.0, 9.0),
        law("normal", sample![2.0, 3.0, size], 2.0, 9.0),
        law("normal_", sample![ones(), 2.0, 3.0], 2.0, 9.0),
        law("truncated_normal", sample![size], 0.0, 0.7737413),
        law("log_normal", sample![0.2, 0.5, size], log_mean, log_variance),
        law("log_normal_", sample![ones(), 0.2, 0.5], log_mean, log_variance),
        law("randint", sample![-3, 5, size], mid, spread),
        law("randint_like", sample![ones(), -3, 5], mid, spread),
        law("random_", sample![ones(), -3, 5], mid, spread),
        law("randperm", sample![2 * N], N as f64 - 0.5, (4.0 * (N * N) as f64 - 1.0) / 12.0).read(|v| v[..N].to_vec()),
        law("bernoulli", sample![full(&[N], 0.3)], 0.3, 0.21),
        law("bernoulli_", sample![ones(), 0.3], 0.3, 0.21),
        law("keep_mask", sample![size, 0.7], 0.7, 0.21),
        law("multinomial", sample![classes(), N; replacement = true], 1.3, 0.61),
        // Two different ones: their sum is 1, 2 or 3 with the probabilities of the pair in either order.
        law("multinomial", sample![classes().expand([N, 3]), 2], 2.3535714, 0.5499872)
            .read(|v| v.chunks(2).map(|c| c[0] + c[1]).collect()),
        // The token of 0.2 never, and of that of 0.3 what is needed to reach 0.7, or all.
        law("top_p_sampling", sample![classes().expand([N, 3]), full(&[N], 0.7)], 3.1 / 7.0, 0.04 * 10.0 / 49.0),
        law(
            "top_p_sampling",
            sample![classes().expand([N, 3]), full(&[N], 0.7); mode = "non-truncated"],
            0.425,
            0.009375,
        ),
        law("poisson", sample![full(&[N], 4.0)], 4.0, 4.0),
        law("poisson", sample![full(&[N], 70.0)], 70.0, 70.0),
        law("binomial", sample![full(&[N], 10.0).cast(DType::Int64), full(&[N], 0.3)], 3.0, 2.1),
        law("standard_gamma", sample![full(&[N], 2.5)], 2.5, 2.5),
        law("standard_gamma", sample![full(&[N], 0.5)], 0.5, 0.5),
        law("exponential_", sample![ones(), 2.0], 0.5, 0.25),
        law("geometric_", sample![ones(), 0.3], 1.0 / rate, 1.0 / (rate * rate)),
        // It has no mean; its angles are uniform.
        law("cauchy_", sample![ones(), 1.0, 2.0], 0.0, 1.0 / 3.0)
            .read(|v| v.into_iter().map(|v| ((v - 1.0) / 2.0).atan() * 2.0 / PI).collect()),
        law("gumbel_softmax", sample![classes().log().expand([N, 3]); hard = true], 1.3, 0.61)
            .read(|v| v.chunks(3).map(|c| c[1] + 2.0 * c[2]).collect()),
        law("rrelu", sample![full(&[N], -1.0), 0.1, 0.4], -0.25, 0.09 / 12.0),
        law("dropout", sample![ones(), 0.3], 1.0, kept_variance),
        law("dropout", sample![ones(), 0.3; mode = "downscale_in_infer"], 0.7, 0.21),
        law("dropout1d", sample![full(&[N, 2, 2], 1.0), 0.3], 1.0, kept_variance).read(channels),
        law("dropout2d", sample![full(&[N, 2, 2, 1], 1.0), 0.3], 1.0, kept_variance).read(channels),
        law("dropout3d", sample![full(&[N, 2, 1, 1, 2], 1.0), 0.3], 1.0, kept_variance).read(channels),
        law("alpha_dropout", sample![normal(&[N]), 0.3], 0.0, 1.0),
        law("feature_alpha_dropout", sample![normal(&[N, 2, 2]), 0.3], 0.0, 1.0)
            .read(|v| v.chunks(2).map(|c| c[0]).collect()),
    ]
}

#[test]
fn sampled_centers_are_all_labels_and_any_others() {
    let (label, centers) = Tensor::new([7i64, 3, 7]).class_center_sample(N as i64, N as i64 / 2);
    assert_eq!(label.to_vec::<i64>(), [1, 0, 1]);
    let mut centers = centers.to_vec::<i64>();
    assert_eq!((centers.len(), &centers[..2]), (N / 2, &[3, 7][..]));
    let mean = centers[2..].iter().sum::<i64>() as f64 / (N / 2 - 2) as f64;
    // Half of all are drawn without replacement: the variance of their mean is that of a uniform number by twice as many.
    assert!((mean - N as f64 / 2.0).abs() < 6.0 * N as f64 / (12.0 * N as f64).sqrt(), "{mean}");
    centers.sort_unstable();
    centers.dedup();
    assert!(centers.len() == N / 2 && centers[N / 2 - 1] < N as i64);
}

#[test]
fn draws_follow_their_law() {
    // The generator belongs to the whole process.
    crate::alone::alone("random::draws_follow_their_law", || {
        sampan_core::random::seed(1);
        let laws = laws();
        let random = op::all().into_iter().filter(|o| o.peer == Some("none: random"));
        let missing: Vec<&str> = random.map(|o| o.name).filter(|n| laws.iter().all(|l| l.op != *n)).collect();
        assert!(missing.is_empty(), "no law for {missing:?}");
        laws.into_iter().for_each(check);
    });
}

fn check(Law { op, call, read, mean, variance }: Law) {
    let entry = op::find(op).unwrap_or_else(|| panic!("there is no op {op}"));
    let out = dispatch(entry, call.bind(entry).unwrap()).unwrap();
    let x = read(out[0].to_f64_vec());
    let n = x.len() as f64;
    let average = |f: &dyn Fn(f64) -> f64| x.iter().map(|&v| f(v)).sum::<f64>() / n;
    let got = average(&|v| v);
    assert!((got - mean).abs() < 6.0 * (variance / n).sqrt(), "{op}: the mean is {got}, not {mean}");
    let got = average(&|v| (v - mean).powi(2));
    let noise = (average(&|v| (v - mean).powi(4)) - variance * variance).max(0.0) / n;
    let slack = 6.0 * noise.sqrt() + 1e-4 * variance;
    assert!((got - variance).abs() < slack, "{op}: the variance is {got}, not {variance}");
    let lag = x.windows(2).map(|w| (w[0] - mean) * (w[1] - mean)).sum::<f64>() / n / variance;
    assert!(lag.abs() < 6.0 / n.sqrt(), "{op}: neighbours depend on each other by {lag}");
}
