use super::map;
use crate::view::contiguous_strides;
use crate::{AnyView, Bool, Element, View, bf16, f16};
use sampan_formula::{Bound, formula};

/// Every element of a view in row-major order.
fn list<T: Element>(v: View<'_, T>) -> Vec<T> {
    (0..v.len())
        .map(|mut i| {
            let mut at = v.offset as isize;
            for (&n, &s) in v.shape.iter().zip(v.strides).rev() {
                at += (i % n) as isize * s;
                i /= n;
            }
            v.data[at as usize]
        })
        .collect()
}

fn run<D: Element>(f: &Bound, inputs: &[AnyView<'_>], dst: &mut [D]) {
    map(f, inputs[0].dtype(), inputs, dst.into());
}

#[test]
fn any_strides() {
    let data: Vec<f32> = (0..60_010).map(|i| (i as f32 * 0.37).sin()).collect();
    let cases: &[(&[usize], &[isize], &[isize], usize)] = &[
        (&[4, 5, 6], &[30, 6, 1], &[0, 0, 1], 0),
        (&[4, 5, 6], &[1, 4, 20], &[30, 6, 1], 0),
        (&[300, 200], &[200, 1], &[1, 0], 0),
        (&[300, 200], &[1, 300], &[0, 1], 0),
        (&[200, 300], &[-300, -1], &[300, 1], 59_999),
        (&[2, 3, 100, 7], &[2100, 700, 7, 1], &[0, 1, 0, 0], 0),
        (&[30, 20], &[20, 1], &[0, 0], 0),
        (&[], &[], &[], 7),
        (&[0, 3], &[3, 1], &[0, 0], 0),
        (&[1, 5], &[9, 0], &[1, 1], 3),
    ];
    for &(shape, sa, sb, offset) in cases {
        let a = View { data: &data, shape, strides: sa, offset };
        let b = View { data: &data, shape, strides: sb, offset: 3 };
        let mut y = vec![0.0; a.len()];
        run(&formula!(|x, y| x * 2.0 + y), &[a.into(), b.into()], &mut y);
        let want: Vec<f32> = list(a).iter().zip(list(b)).map(|(a, b)| a * 2.0 + b).collect();
        assert_eq!(y, want, "{shape:?} {sa:?} {sb:?}");
        run(&formula!(|x| x.abs()), &[a.into()], &mut y);
        assert_eq!(y, list(a).iter().map(|a| a.abs()).collect::<Vec<_>>());
        let mut z = vec![Bool(0); a.len()];
        run(&formula!(|x, y, z| x.gt(y).or(y.gt(z * 3.0))), &[a.into(), b.into(), a.into()], &mut z);
        let want: Vec<bool> = list(a).iter().zip(list(b)).map(|(&a, b)| a > b || b > a * 3.0).collect();
        assert_eq!(z.iter().map(|z| z.get()).collect::<Vec<_>>(), want);
    }
}

#[test]
fn halves_and_small_integers_are_widened() {
    let shape = [1000];
    let strides = contiguous_strides(&shape);
    let slope = 0.1;
    let f = formula!(|x; slope| select(x.gt(0.0), x.exp(), x * slope));
    let x: Vec<f16> = (0..1000).map(|i| f16::from_f32(i as f32 / 200.0 - 2.0)).collect();
    let mut y = vec![f16::ZERO; 1000];
    run(&f, &[View::contiguous(&x, &shape, &strides).into()], &mut y);
    for (x, y) in x.iter().zip(&y) {
        let x = x.to_f32();
        assert_eq!(*y, f16::from_f32(if x > 0.0 { crate::Real::exp(x) } else { x * 0.1 }));
    }
    let x: Vec<bf16> = x.iter().map(|x| bf16::from_f32(x.to_f32())).collect();
    let mut y = vec![bf16::ZERO; 1000];
    let v: AnyView = View::contiguous(&x, &shape, &strides).into();
    run(&formula!(|a, b| a * b), &[v, v], &mut y);
    for (x, y) in x.iter().zip(&y) {
        assert_eq!(*y, bf16::from_f32(x.to_f32() * x.to_f32()));
    }
    let x: Vec<i8> = (0..1000).map(|i| (i * 7) as i8).collect();
    let mut y = vec![0i8; 1000];
    let v: AnyView = View { data: &x, shape: &[500], strides: &[2], offset: 0 }.into();
    run(&formula!(|a, b| a * b + 1.0), &[v, v], &mut y[..500]);
    for (x, y) in x.iter().step_by(2).zip(&y) {
        assert_eq!(*y, x.wrapping_mul(*x).wrapping_add(1));
    }
}

#[test]
fn captured_constants_are_combined_exactly() {
    let (a, b) = (0.1, 3.0);
    let f = formula!(|x; a, b| x * (a * b));
    let mut y = [0f32];
    run(&f, &[View::contiguous(&[1f32], &[1], &[1]).into()], &mut y);
    assert_eq!(y, [(0.1f64 * 3.0) as f32]);
}

#[test]
#[should_panic(expected = "a view reaches")]
fn a_view_outside_its_data_is_refused() {
    let data = [0.0f32; 10];
    run(&formula!(|x| -x), &[View { data: &data, shape: &[4], strides: &[3], offset: 2 }.into()], &mut [0f32; 4]);
}

#[test]
fn compiled_chains_give_the_bits_of_their_steps() {
    let shape = [1000];
    let strides = contiguous_strides(&shape);
    let odd = [0.0, -0.0, f32::INFINITY, f32::NEG_INFINITY, f32::NAN, 1e30, -1e30, 3.0, -3.0, 6.0];
    let data = |k: usize| -> Vec<f32> {
        (0..1000)
            .map(|i| if i < 100 { odd[(i / (1 + 9 * k)) % 10] } else { (i as f32 * 0.37 + k as f32).sin() * 5.0 })
            .collect()
    };
    let (x, y) = (data(0), data(1));
    let views: [AnyView; 2] = [&x, &y].map(|d| View::contiguous(d, &shape, &strides).into());
    for (f, run) in super::fused::CHAINS.iter() {
        let bound = Bound::new(f.clone(), (0..f.captured()).map(|i| (0.25 + i as f64).into()).collect());
        let captured: Vec<f32> = (0..f.captured()).map(|i| 0.25 + i as f32).collect();
        let slices: Vec<&[f32]> = [&x[..], &y[..]][..f.inputs()].to_vec();
        let mut fused = vec![0f32; 1000];
        run(&slices, &captured, &mut fused);
        let steps = bound.formula().replay(
            &slices.iter().map(|s| s.to_vec()).collect::<Vec<_>>(),
            &captured.iter().map(|&c| vec![c; 1000]).collect::<Vec<_>>(),
            &mut |source, v| super::program::one_step(source, v, 1000),
        );
        let bits = |v: &[f32]| v.iter().map(|v| if v.is_nan() { u32::MAX } else { v.to_bits() }).collect::<Vec<_>>();
        assert_eq!(bits(&fused), bits(&steps), "{f}");
        let mut found = vec![0f32; 1000];
        self::run(&bound, &views[..f.inputs()], &mut found);
        assert_eq!(bits(&fused), bits(&found), "{f}");
    }
}

#[test]
fn truth_values_are_read_and_written_as_they_lie() {
    let n = 5000;
    let x: Vec<f32> = (0..n).map(|i| if i % 97 == 0 { f32::NAN } else { (i as f32 * 0.7).sin() }).collect();
    let y: Vec<f32> = (0..n).map(|i| (i as f32 * 0.3).cos()).collect();
    let shape = [n];
    let view = |v| AnyView::from(View { data: v, shape: &shape, strides: &[1], offset: 0 });
    let mut z = vec![Bool(7); n];
    run(&formula!(|x, y| x.lt(y)), &[view(&x), view(&y)], &mut z);
    assert!(z.iter().zip(x.iter().zip(&y)).all(|(z, (x, y))| z.0 == (x < y) as u8));
    let limit = 0.25;
    run(&formula!(|x; limit| x.ge(limit)), &[view(&x)], &mut z);
    assert!(z.iter().zip(&x).all(|(z, x)| z.0 == (*x >= 0.25) as u8));
    run(&formula!(|x; limit| x.differs(limit)), &[view(&x)], &mut z);
    assert!(z.iter().all(|z| z.0 == 1), "NaN is unlike every number");

    let mask: Vec<Bool> = (0..n).map(|i| Bool((i % 3 != 0) as u8)).collect();
    let mask_view = AnyView::from(View { data: &mask, shape: &shape, strides: &[1], offset: 0 });
    let one = AnyView::from(View { data: &y, shape: &shape, strides: &[0], offset: 4 });
    let want = |f: &dyn Fn(usize) -> f32| (0..n).map(|i| f(i).to_bits()).collect::<Vec<_>>();
    let bits = |v: &[f32]| v.iter().map(|v| v.to_bits()).collect::<Vec<_>>();
    let mut out = vec![0.0f32; n];
    let choose = formula!(|c, x, y| select(c, x, y));
    for (a, b) in [(view(&x), view(&y)), (view(&x), one), (one, view(&y)), (one, one)] {
        map(&choose, f32::DTYPE, &[mask_view, a, b], (&mut out[..]).into());
        let (a, b) = (list::<f32>(a.of()), list::<f32>(b.of()));
        assert_eq!(bits(&out), want(&|i| if mask[i].get() { a[i] } else { b[i] }));
    }
    let (scale, other) = (1.25, -0.5);
    let dropout = formula!(|x, m; scale, other| select(m, x * scale, other));
    for x in [view(&x), one] {
        map(&dropout, f32::DTYPE, &[x, mask_view], (&mut out[..]).into());
        let x = list::<f32>(x.of());
        assert_eq!(bits(&out), want(&|i| if mask[i].get() { x[i] * 1.25 } else { -0.5 }));
    }
}

#[test]
fn a_compiled_chain_takes_one_number_for_all() {
    let (n, shape) = (3000, [3000]);
    let x: Vec<f32> = (0..n).map(|i| (i as f32 * 0.7).sin() * 3.0).collect();
    let g = [0.5f32];
    let x_view = AnyView::from(View { data: &x, shape: &shape, strides: &[1], offset: 0 });
    let one = AnyView::from(View { data: &g, shape: &shape, strides: &[0], offset: 0 });
    let spread = vec![0.5f32; n];
    let all = AnyView::from(View { data: &spread, shape: &shape, strides: &[1], offset: 0 });
    let (mut a, mut b) = (vec![0.0f32; n], vec![1.0f32; n]);
    let f = formula!(|y, g| g * (1.0 - y * y));
    run(&f, &[x_view, one], &mut a);
    run(&f, &[x_view, all], &mut b);
    assert_eq!(a, b);
}
