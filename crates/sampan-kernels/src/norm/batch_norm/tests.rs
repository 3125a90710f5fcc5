use super::*;
use crate::bf16;

fn data(n: usize, k: u64) -> Vec<f64> {
    (0..n as u64).map(|i| ((i * 7919 + k * 31) % 997) as f64 / 100.0 - 4.0).collect()
}

fn close(a: &[f64], b: &[f64], tolerance: f64) {
    assert_eq!(a.len(), b.len());
    for (i, (a, b)) in a.iter().zip(b).enumerate() {
        assert!((a - b).abs() <= tolerance * (1.0 + b.abs()), "{i}: {a} {b}");
    }
}

const EPS: f64 = 1e-3;

/// Output, mean and variance.
fn run<T: RealElement>(x: &[T], d: Channels, w: &[T::Wide], b: &[T::Wide], f: Activation) -> [Vec<f64>; 3] {
    let (mut y, mut m, mut v) = (x.to_vec(), w.to_vec(), w.to_vec());
    train_of(x, d, Some(w), Some(b), EPS, f, &mut y, &mut m, &mut v);
    let stats = |s: Vec<T::Wide>| s.iter().map(|v| v.to_f64()).collect();
    [y.iter().map(|v| v.to_f64()).collect(), stats(m), stats(v)]
}

#[test]
fn forward_and_both_gradients() {
    let all = [Activation::Identity, Activation::Relu, Activation::Relu6, Activation::Hardswish];
    for (inner, f) in [1, 3, 20, 53].into_iter().flat_map(|n| all.map(|f| (n, f))) {
        let d = Channels { batch: 4, channels: 3, inner };
        let len = 12 * inner;
        let (x, g, w, b) = (data(len, 1), data(len, 2), vec![1.5, 0.7, 2.0], vec![0.1, -0.2, 0.6]);
        let [y, m, v] = run(&x, d, &w, &b, f);
        let channel = |c: usize| (0..len).filter(move |i| i / inner % 3 == c);
        let mut plain = vec![0.0; len];
        for c in 0..3 {
            let count = (4 * inner) as f64;
            let mean = channel(c).map(|i| x[i]).sum::<f64>() / count;
            let var = channel(c).map(|i| (x[i] - mean).powi(2)).sum::<f64>() / count;
            close(&[m[c], v[c]], &[mean, var], 1e-12);
            channel(c).for_each(|i| plain[i] = (x[i] - mean) / (var + EPS).sqrt() * w[c] + b[c]);
        }
        let after: Vec<f64> = with_function!(f, f => plain.iter().map(|&y| f.value(y)).collect());
        close(&y, &after, 1e-12);
        let mut given = vec![0.0; len];
        infer_of(&x, d, &m, &v, Some(&w), Some(&b), EPS, f, &mut given);
        close(&given, &y, 1e-12);

        let (mut dx, mut dw, mut db) = (x.clone(), w.clone(), b.clone());
        backward_of(&x, &g, d, &m, &v, Some(&w), Some(&b), EPS, f, &mut dx, &mut dw, &mut db);
        let loss =
            |x: &[f64], w: &[f64], b: &[f64]| -> f64 { run(x, d, w, b, f)[0].iter().zip(&g).map(|(y, g)| y * g).sum() };
        let numeric = |values: &[f64], loss: &dyn Fn(&[f64]) -> f64| -> Vec<f64> {
            let near = |i: usize, h: f64| {
                let mut moved = values.to_vec();
                moved[i] += h;
                loss(&moved)
            };
            (0..values.len()).map(|i| (near(i, 1e-6) - near(i, -1e-6)) / 2e-6).collect()
        };
        close(&dx, &numeric(&x, &|x| loss(x, &w, &b)), 1e-5);
        close(&dw, &numeric(&w, &|w| loss(&x, w, &b)), 1e-5);
        close(&db, &numeric(&b, &|b| loss(&x, &w, b)), 1e-5);
    }
}

#[test]
fn half_types_go_through_f32() {
    let d = Channels { batch: 3, channels: 5, inner: 18 };
    let x: Vec<bf16> = data(270, 1).iter().map(|&v| bf16::from_f64(v)).collect();
    let wide: Vec<f64> = x.iter().map(|v| v.to_f64()).collect();
    let [y, m, _] = run(&x, d, &[1.0; 5], &[0.5; 5], Activation::Hardswish);
    let [want, mean, _] = run(&wide, d, &[1.0; 5], &[0.5; 5], Activation::Hardswish);
    close(&y, &want, 0.01);
    close(&m, &mean, 1e-6);
}

#[test]
fn same_bits_for_any_threads_and_nothing_of_nothing() {
    let threads = parallel::num_threads();
    for (batch, channels, inner) in [(400, 300, 1), (3, 50, 1000), (0, 3, 20), (2, 0, 20)] {
        let d = Channels { batch, channels, inner };
        let x: Vec<f32> = data(batch * channels * inner, 1).iter().map(|&v| v as f32).collect();
        let run = |threads| {
            parallel::set_num_threads(threads);
            let (mut y, mut m, mut v) = (x.clone(), vec![0f32; channels], vec![0f32; channels]);
            train_of(&x, d, None, None, EPS, Activation::Relu, &mut y, &mut m, &mut v);
            let (mut dx, mut dw, mut db) = (x.clone(), m.clone(), m.clone());
            backward_of(&x, &y, d, &m, &v, None, None, EPS, Activation::Relu, &mut dx, &mut dw, &mut db);
            [y, m, v, dx, dw, db].concat().iter().map(|v| v.to_bits()).collect::<Vec<_>>()
        };
        assert!(run(1) == run(4));
    }
    parallel::set_num_threads(threads);
}

#[test]
fn halves_of_a_batch_have_the_statistics_of_the_whole() {
    for (batch, inner) in [(32, 1), (64, 5), (64, 49), (32, 196), (32, 5000)] {
        let d = Channels { batch, channels: 2, inner };
        let wave = |i: usize, by: f64| ((i as f64 * by).sin() * 3.0 + 5.0) as f32;
        let x: Vec<f32> = (0..batch * 2 * inner).map(|i| wave(i, 0.7)).collect();
        let g: Vec<f32> = (0..batch * 2 * inner).map(|i| wave(i, 1.3) - 5.0).collect();
        let of = |x: &[f32], g: &[f32], batch: usize| {
            let d = Channels { batch, ..d };
            let [mut mean, mut var, mut sum, mut product] = [[0.0; 2]; 4];
            moments_of(x, d, &mut mean, &mut var);
            let about: &[f32] = &[5.0, 4.5];
            backward_sums_of(x, g, d, about, &mut sum, &mut product);
            [mean, var, sum, product]
        };
        let (a, b) = (x.split_at(x.len() / 2), g.split_at(g.len() / 2));
        let (whole, one, two) = (of(&x, &g, batch), of(a.0, b.0, batch / 2), of(a.1, b.1, batch / 2));
        for c in 0..2 {
            let mean = (one[0][c] + two[0][c]) / 2.0;
            let far = |half: &[[f64; 2]; 4]| half[1][c] + (half[0][c] - mean).powi(2);
            assert_eq!(mean as f32, whole[0][c] as f32, "mean of {batch} x {inner}");
            assert_eq!(((far(&one) + far(&two)) / 2.0) as f32, whole[1][c] as f32, "variance of {batch} x {inner}");
            assert_eq!((one[2][c] + two[2][c]) as f32, whole[2][c] as f32, "sum of {batch} x {inner}");
            assert_eq!((one[3][c] + two[3][c]) as f32, whole[3][c] as f32, "products of {batch} x {inner}");
        }
    }
}
