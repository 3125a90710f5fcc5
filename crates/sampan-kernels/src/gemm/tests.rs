use super::*;
use crate::Ordered;

fn values<T: Ordered>(len: usize, seed: usize) -> Vec<T> {
    (0..len).map(|i| T::from_i64(((i * 7919 + seed * 104_729) % 17) as i64 - 8)).collect()
}

fn naive<T: Ordered>(m: usize, n: usize, k: usize, a: &Mat<T>, b: &Mat<T>) -> Vec<f64> {
    let get = |x: &Mat<T>, i: usize, j: usize| {
        x.data[(x.offset as isize + i as isize * x.row_stride + j as isize * x.col_stride) as usize].to_f64()
    };
    (0..m * n).map(|i| (0..k).map(|l| get(a, i / n, l) * get(b, l, i % n)).sum()).collect()
}

fn check<T: Gemm + Ordered>(m: usize, n: usize, k: usize) {
    let (a, b) = (values::<T>(m * k, 1), values::<T>(k * n, 2));
    let reversed = Mat { data: &b, offset: (k * n).saturating_sub(1), row_stride: -(n as isize), col_stride: -1 };
    for a in [Mat::rows(&a, k), Mat::rows(&a, m).t()] {
        for b in [Mat::rows(&b, n), Mat::rows(&b, k).t(), reversed] {
            let expected = naive(m, n, k, &a, &b);
            let mut c = values::<T>(m * n, 3);
            let start = c.clone();
            matmul(m, n, k, a, b, MatMut::rows(&mut c, n), false);
            let fit = |v: f64| match T::DTYPE.is_float() {
                true => T::from_f64(v),
                false => T::from_i64(v as i64),
            };
            assert!(c.iter().zip(&expected).all(|(&x, &y)| x == fit(y)), "{} {m} {n} {k}", T::DTYPE);
            let mut c = vec![T::default(); m * n];
            (0..m * n).for_each(|i| c[(i % n) * m + i / n] = start[i]);
            let out = MatMut { data: &mut c, offset: 0, row_stride: 1, col_stride: m as isize };
            matmul(m, n, k, a, b, out, true);
            for i in 0..m * n {
                assert_eq!(c[(i % n) * m + i / n], fit(expected[i] + start[i].to_f64()), "{} {m} {n} {k}", T::DTYPE);
            }
        }
    }
}

#[test]
fn products_match_the_definition() {
    let both = |shapes: &[(usize, usize, usize)]| {
        for &(m, n, k) in shapes {
            check::<f32>(m, n, k);
            check::<f64>(m, n, k);
        }
    };
    for (m, n, k) in [(1, 1, 1), (3, 5, 2), (16, 16, 16), (7, 1, 9), (1, 7, 30), (1, 1, 100), (33, 65, 17)] {
        both(&[(m, n, k)]);
        check::<i32>(m, n, k);
        check::<i64>(m, n, k);
    }
    check::<f16>(5, 6, 7);
    check::<bf16>(2, 3, 3);
    check::<i8>(5, 6, 40);
    check::<u8>(5, 6, 40);
    check::<i16>(5, 6, 40);
    both(&[(200, 100, 90)]);
    // Panels that end early, depths that are cut, factors read in place, results that are transposed.
    both(&[(12, 32, 3), (13, 33, 700), (25, 100, 1300), (50, 17, 40), (300, 10, 60), (24, 70, 5), (2, 300, 9)]);
    // A left factor that tasks pack for themselves: whole panels together, and what is left over.
    both(&[(1030, 20, 700)]);
    // Few columns.
    both(&[
        (8, 2, 64),
        (100, 10, 784),
        (19, 16, 70),
        (37, 13, 65),
        (5, 3, 130),
        (50, 12, 300),
        (9, 7, 257),
        (33, 5, 200),
    ]);
    // Many rows and a small right factor.
    both(&[(17, 10, 10), (100, 10, 10), (128, 16, 16), (129, 3, 5), (50, 16, 3), (18, 5, 16)]);
    // One row or one column.
    both(&[
        (1, 120, 400),
        (1, 84, 120),
        (1, 10, 84),
        (1, 600, 5),
        (130, 1, 33),
        (21, 1, 50),
        (1, 16, 17),
        (3000, 1, 90),
        (100, 1, 10),
        (1, 90, 3),
    ]);
    // What memory decides: a depth of one or two, vectors with matrices that no cache holds.
    both(&[(300, 500, 2), (40, 700, 1), (1, 600, 700), (600, 1, 700)]);
}

#[test]
fn empty_extents() {
    let mut c = [1f32; 6];
    matmul(2, 3, 0, Mat::rows(&[], 0), Mat::rows(&[], 3), MatMut::rows(&mut c, 3), true);
    assert_eq!(c, [1.0; 6]);
    matmul(2, 3, 0, Mat::rows(&[], 0), Mat::rows(&[], 3), MatMut::rows(&mut c, 3), false);
    assert_eq!(c, [0.0; 6]);
    matmul(0, 3, 2, Mat::rows(&[], 2), Mat::rows(&[0f32; 6], 3), MatMut::rows(&mut [], 3), false);
}

#[test]
#[should_panic(expected = "leaves its storage")]
fn bounds_are_checked() {
    matmul(2, 2, 3, Mat::rows(&[0f32; 5], 3), Mat::rows(&[0.; 6], 2), MatMut::rows(&mut [0.; 4], 2), false);
}

#[test]
fn batches_broadcast() {
    for (m, n, k) in [(3, 4, 5), (40, 50, 60), (100, 100, 20)] {
        let (a, b) = (values::<f32>(2 * m * k, 1), values::<f32>(3 * k * n, 2));
        let mut c = vec![0.0; 6 * m * n];
        let batch = Batch {
            shape: &[2, 3],
            a_strides: &[(m * k) as isize, 0],
            b_strides: &[0, (k * n) as isize],
            c_stride: m * n,
        };
        batched_matmul(batch, m, n, k, Mat::rows(&a, k), Mat::rows(&b, n), MatMut::rows(&mut c, n), false);
        for i in 0..6 {
            let a = Mat { offset: i / 3 * m * k, ..Mat::rows(&a, k) };
            let b = Mat { offset: i % 3 * k * n, ..Mat::rows(&b, n) };
            let expected = naive(m, n, k, &a, &b);
            assert!(c[i * m * n..].iter().zip(&expected).all(|(&x, &y)| x as f64 == y));
        }
    }
    let (a, b) = (values::<f64>(4 * 3 * 5, 1), values::<f64>(5 * 2, 2));
    let mut c = vec![0.0; 4 * 3 * 2];
    let batch = Batch { shape: &[4], a_strides: &[15], b_strides: &[0], c_stride: 6 };
    batched_matmul(batch, 3, 2, 5, Mat::rows(&a, 5), Mat::rows(&b, 2), MatMut::rows(&mut c, 2), false);
    assert_eq!(c, naive(12, 2, 5, &Mat::rows(&a, 5), &Mat::rows(&b, 2)));
}

#[test]
fn threads_do_not_change_bits() {
    for (m, n, k) in [
        (1000, 10, 784),
        (203, 301, 1500),
        (96, 1000, 700),
        (1001, 1, 1100),
        (1, 1507, 1000),
        (901, 777, 2),
        (64, 64, 64),
        (9, 7, 30_000),
    ] {
        same_bits::<f32>(m, n, k, f32::sin);
        same_bits::<f64>(m, n, k, f64::sin);
        same_bits::<Complex64>(m.min(300), n.min(300), k.min(300), |x| Complex64::new(x.re.sin(), x.re.cos()));
    }
}

/// Whatever the number of threads.
fn same_bits<T: Gemm>(m: usize, n: usize, k: usize, value: impl Fn(T) -> T) {
    let noise = |len: usize| (0..len).map(|i| value(T::from_i64((i * 7919 % 1013) as i64))).collect::<Vec<_>>();
    let (a, b) = (noise(m * k), noise(k * n));
    let public = |threads| {
        parallel::set_num_threads(threads);
        let mut c = vec![T::default(); m * n];
        matmul(m, n, k, Mat::rows(&a, k), Mat::rows(&b, n), MatMut::rows(&mut c, n), false);
        let (mut d, t) = (vec![T::default(); 5 * m * n], Mat::rows(&b, k).t());
        let batch = Batch { shape: &[5], a_strides: &[0], b_strides: &[0], c_stride: m * n };
        batched_matmul(batch, m, n, k, Mat::rows(&a, k), t, MatMut::rows(&mut d, n), false);
        (c, d)
    };
    let one = public(1);
    assert!([2, 3].into_iter().all(|threads| public(threads) == one), "{m} {n} {k}");
}

#[test]
fn complex_products_of_every_size_and_stride() {
    for (m, n, k) in [(3, 4, 5), (1, 40, 30), (30, 1, 2), (70, 45, 130), (200, 90, 70), (20, 300, 600), (129, 2, 1)] {
        let number = |i: usize| Complex128::new((i as f64 * 0.7).sin(), (i as f64 * 1.1).cos());
        let (a, b): (Vec<_>, Vec<_>) = ((0..m * k).map(number).collect(), (0..k * n).map(|i| number(i + 3)).collect());
        let mut c = vec![Complex128::default(); m * n];
        // The first factor is stored transposed.
        let left = Mat::rows(&a, m).t();
        matmul(m, n, k, left, Mat::rows(&b, n), MatMut::rows(&mut c, n), false);
        // So is the result, with gaps, on top of what is there.
        let mut d = vec![Complex128::new(0.25, -1.0); 2 * m * n];
        let gaps = MatMut { data: &mut d, offset: 0, row_stride: 2, col_stride: 2 * m as isize };
        matmul(m, n, k, left, Mat::rows(&b, n), gaps, true);
        d.iter_mut().for_each(|v| *v -= Complex128::new(0.25, -1.0));
        for i in 0..m {
            for j in 0..n {
                let want: Complex128 = (0..k).map(|l| a[l * m + i] * b[l * n + j]).sum();
                assert!((c[i * n + j] - want).norm() < 1e-10 * k as f64, "{m} {n} {k}");
                assert!(
                    (d[j * 2 * m + 2 * i] - want).norm() < 1e-10 * k as f64 + 1e-15,
                    "{m} {n} {k}, columns in a row"
                );
            }
        }
    }
}
