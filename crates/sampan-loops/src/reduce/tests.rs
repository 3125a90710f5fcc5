use super::moments::{logsumexp_of, variance_of};
use super::*;
use crate::arg::{argmax_of, position};
use crate::view::contiguous_strides;
use crate::{f16, parallel};

/// Values of each output, in the row-major order of the reduced axes.
fn groups<T: Ordered>(v: View<'_, T>, reduced: &[bool]) -> Vec<Vec<T>> {
    let kept: Vec<usize> = (0..reduced.len()).filter(|&i| !reduced[i]).collect();
    let mut out = vec![Vec::new(); kept.iter().map(|&i| v.shape[i]).product()];
    for i in 0..v.len() {
        let (mut rest, mut index) = (i, vec![0; v.shape.len()]);
        for axis in (0..v.shape.len()).rev() {
            index[axis] = rest % v.shape[axis];
            rest /= v.shape[axis];
        }
        let at = v.offset as isize + index.iter().zip(v.strides).map(|(&i, &s)| i as isize * s).sum::<isize>();
        let slot = kept.iter().fold(0, |acc, &a| acc * v.shape[a] + index[a]);
        out[slot].push(v.data[at as usize]);
    }
    out
}

fn cases() -> Vec<(Vec<usize>, Vec<isize>, Vec<bool>)> {
    let mut cases = Vec::new();
    for shape in [vec![5, 6, 7], vec![3, 2000, 9], vec![40, 3, 500], vec![1, 33_000, 1], vec![20, 17, 100]] {
        let row = contiguous_strides(&shape);
        let mut column = row.clone();
        column.swap(0, 2);
        let mut turned = shape.clone();
        turned.swap(0, 2);
        for mask in 0..8 {
            let reduced: Vec<bool> = (0..3).map(|b| mask >> b & 1 == 1).collect();
            cases.push((shape.clone(), row.clone(), reduced.clone()));
            cases.push((turned.clone(), column.clone(), reduced.clone()));
            cases.push((shape.clone(), vec![0, row[1], row[2]], reduced));
        }
    }
    cases
}

#[test]
fn agree_with_plain_loops() {
    let data: Vec<f32> = (0..70_000u64).map(|i| ((i * 7919) % 1000) as f32 / 500.0 - 1.0).collect();
    for (shape, strides, reduced) in cases() {
        let v = View { data: &data, shape: &shape, strides: &strides, offset: 0 };
        let groups = groups(v, &reduced);
        let mut y = vec![0f32; groups.len()];
        sum_of(v, &reduced, &mut y);
        for (y, g) in y.iter().zip(&groups) {
            let want: f64 = g.iter().map(|&x| x as f64).sum();
            let scale: f64 = g.iter().map(|&x| x.abs() as f64).sum();
            assert!((*y as f64 - want).abs() <= 1e-6 * scale.max(1.0), "{shape:?} {strides:?} {reduced:?}");
        }
        max_of(v, &reduced, &mut y);
        assert_eq!(y, groups.iter().map(|g| g.iter().copied().fold(f32::MIN, f32::max)).collect::<Vec<_>>());
        min_of(v, &reduced, &mut y);
        assert_eq!(y, groups.iter().map(|g| g.iter().copied().fold(f32::MAX, f32::min)).collect::<Vec<_>>());
        logsumexp_of(v, &reduced, &mut y);
        for (y, g) in y.iter().zip(&groups) {
            let want = g.iter().map(|&x| (x as f64).exp()).sum::<f64>().ln();
            assert!((*y as f64 - want).abs() < 2e-6 * want.abs().max(1.0));
        }
        variance_of(v, &reduced, 2.0, false, &mut y);
        for (y, g) in y.iter().zip(&groups) {
            let mean = g.iter().map(|&x| x as f64).sum::<f64>() / g.len() as f64;
            let want = g.iter().map(|&x| (x as f64 - mean).powi(2)).sum::<f64>() / 2.0;
            assert!((*y as f64 - want).abs() < 2e-6 * want.abs().max(1.0));
        }
        let mut n = vec![0i64; groups.len()];
        count_nonzero_of(v, &reduced, &mut n);
        assert_eq!(n, groups.iter().map(|g| g.iter().filter(|&&x| x != 0.0).count() as i64).collect::<Vec<_>>());
        if reduced.iter().filter(|&&r| r).count() == 1 {
            let axis = reduced.iter().position(|&r| r).unwrap();
            argmax_of(v, axis, &mut n);
            let first = |g: &Vec<f32>| position(g, g.iter().copied().fold(f32::MIN, f32::max)) as i64;
            assert_eq!(n, groups.iter().map(first).collect::<Vec<_>>());
        }
    }
}

#[test]
fn other_types() {
    let shape = [3, 400];
    let strides = contiguous_strides(&shape);
    let h: Vec<f16> = (0..1200).map(|i| f16::from_f32((i % 10) as f32)).collect();
    let mut y = [f16::ZERO; 3];
    mean_of(View::contiguous(&h, &shape, &strides), &[false, true], &mut y);
    assert_eq!(y, [f16::from_f32(4.5); 3]);
    let b: Vec<Bool> = (0..1200).map(|i| Bool((i >= 400) as u8 * (i % 7) as u8)).collect();
    let v = View::contiguous(&b, &shape, &strides);
    let (mut n, mut t) = ([0i64; 3], [Bool(0); 3]);
    sum_as(v, &[false, true], &mut n);
    assert_eq!(n[0], 0);
    assert_eq!(n[1], (400..800).filter(|i| i % 7 != 0).count() as i64);
    any(v, &[false, true], &mut t);
    assert_eq!(t.map(Bool::get), [false, true, true]);
    all(v, &[false, true], &mut t);
    assert_eq!(t.map(Bool::get), [false; 3]);
    let i: Vec<u8> = vec![200; 1200];
    let mut w = [0u8; 1];
    sum_of(View::contiguous(&i, &shape, &strides), &[true, true], &mut w);
    assert_eq!(w[0], (200u32 * 1200) as u8);
    let mut e = [0.0f32; 2];
    sum_of(View::contiguous(&[], &[2, 0], &[0, 1]), &[false, true], &mut e);
    assert_eq!(e, [0.0; 2]);
}

#[test]
fn nan_spreads_and_is_found() {
    let mut x = vec![1.0f32; 300];
    x[77] = f32::NAN;
    x[200] = 9.0;
    let v = View::contiguous(&x, &[300], &[1]);
    let mut y = [0.0];
    max_of(v, &[true], &mut y);
    assert!(y[0].is_nan());
    min_of(v, &[true], &mut y);
    assert!(y[0].is_nan());
    let mut at = [0i64];
    argmax_of(v, 0, &mut at);
    assert_eq!(at, [77]);
}

#[test]
fn nan_is_found_wherever_it_lies() {
    // Rows of every kind: shorter than the lanes, with and without a rest, longer than a block.
    for n in [1, 15, 16, 63, 64, 65, 200, 2048, 2050, 5000] {
        for at in (0..n).step_by(1 + n / 70) {
            for axis in 0..2 {
                let (shape, mut x) = (if axis == 1 { [3, n] } else { [n, 20] }, vec![f32::NEG_INFINITY; n * 20]);
                x[if axis == 1 { n + at } else { at * 20 + 1 }] = f32::NAN;
                let strides = contiguous_strides(&shape);
                let v = View::contiguous(&x, &shape, &strides);
                let (mut low, mut high) = (vec![0.0; shape[1 - axis]], vec![0.0; shape[1 - axis]]);
                max_of(v, &[axis == 0, axis == 1], &mut high);
                min_of(v, &[axis == 0, axis == 1], &mut low);
                for (i, (low, high)) in low.into_iter().zip(high).enumerate() {
                    assert_eq!((low.is_nan(), high.is_nan()), (i == 1, i == 1), "{n} {at} {axis}");
                    assert!(i == 1 || (low, high) == (f32::NEG_INFINITY, f32::NEG_INFINITY));
                }
            }
        }
    }
}

#[test]
fn sums_stay_accurate_and_equal_for_any_threads() {
    let n = 1 << 20;
    let data: Vec<f32> = (0..n).map(|i| 0.1 + (i % 3) as f32 * 1e-3).collect();
    let want: f64 = data.iter().map(|&x| x as f64).sum();
    let run = || {
        let (mut all, mut columns) = ([0f32], vec![0f32; 64]);
        sum_of(View::contiguous(&data, &[n], &[1]), &[true], &mut all);
        sum_of(View::contiguous(&data, &[n / 64, 64], &[64, 1]), &[true, false], &mut columns);
        (all[0].to_bits(), columns.iter().map(|x| x.to_bits()).collect::<Vec<_>>())
    };
    let threads = parallel::num_threads();
    parallel::set_num_threads(1);
    let one = run();
    parallel::set_num_threads(4);
    let four = run();
    parallel::set_num_threads(threads);
    assert_eq!(one, four);
    assert!((f32::from_bits(one.0) as f64 / want - 1.0).abs() < 2e-7);
}
