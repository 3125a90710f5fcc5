//! Broadcasting and reshaping against a naive reading of NumPy's rules, on random shapes.

use sampan_core::{Tensor, shape};

/// A small deterministic generator: failures can be repeated.
struct Dice(u64);
impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) as usize % sides
    }
}

/// NumPy's rule, axis by axis from the end.
fn expected(a: &[usize], b: &[usize]) -> Option<Vec<usize>> {
    let rank = a.len().max(b.len());
    let at = |s: &[usize], i: usize| (i + s.len()).checked_sub(rank).map_or(1, |j| s[j]);
    (0..rank)
        .map(|i| match (at(a, i), at(b, i)) {
            (x, y) if x == y => Some(x),
            (1, y) => Some(y),
            (x, 1) => Some(x),
            _ => None,
        })
        .collect()
}

/// The position that coordinate `at` of the result reads in an operand of that shape.
fn source(shape: &[usize], at: &[usize]) -> usize {
    let lead = at.len() - shape.len();
    shape.iter().zip(&at[lead..]).fold(0, |p, (&n, &i)| p * n + if n == 1 { 0 } else { i })
}

fn coordinates(shape: &[usize]) -> Vec<Vec<usize>> {
    shape.iter().fold(vec![vec![]], |all, &n| {
        all.into_iter().flat_map(|c| (0..n).map(move |i| [&c[..], &[i]].concat())).collect()
    })
}

#[test]
fn sums_of_random_shapes() {
    let mut dice = Dice(11);
    for _ in 0..3000 {
        let mut shape_of =
            |max: usize| -> Vec<usize> { (0..dice.roll(max)).map(|_| [1, 1, 2, 3, 0][dice.roll(5)]).collect() };
        let (a, b) = (shape_of(5), shape_of(5));
        let fill = |s: &[usize], k: i64| {
            Tensor::from_vec((0..s.iter().product::<usize>() as i64).map(|i| i * k + 1).collect::<Vec<i64>>(), s)
        };
        let (x, y) = (fill(&a, 10), fill(&b, 1000));
        match expected(&a, &b) {
            None => {
                let error = x.try_add(&y).unwrap_err().to_string();
                assert!(error.contains("cannot be broadcast"), "{error}");
            }
            Some(shape) => {
                let out = x.add(&y);
                assert_eq!(out.shape(), shape, "{a:?} + {b:?}");
                let (xv, yv) = (x.to_vec::<i64>(), y.to_vec::<i64>());
                let naive: Vec<i64> =
                    coordinates(&shape).iter().map(|c| xv[source(&a, c)] + yv[source(&b, c)]).collect();
                assert_eq!(out.to_vec::<i64>(), naive, "{a:?} + {b:?}");
            }
        }
    }
}

#[test]
fn reshapes_of_permuted_tensors_keep_the_order() {
    let mut dice = Dice(5);
    for _ in 0..2000 {
        let shape: Vec<usize> = (0..1 + dice.roll(4)).map(|_| 1 + dice.roll(4)).collect();
        let mut perm: Vec<i64> = (0..shape.len() as i64).collect();
        for i in (1..perm.len()).rev() {
            perm.swap(i, dice.roll(i + 1));
        }
        let n = shape.iter().product::<usize>();
        let x = Tensor::from_vec((0..n as i64).collect::<Vec<i64>>(), &shape).transpose(perm);
        // Any factorisation of the number of elements.
        let mut target = Vec::new();
        let mut rest = n;
        while rest > 1 && target.len() < 4 {
            let factors: Vec<usize> = (1..=rest).filter(|f| rest % f == 0).collect();
            let f = factors[dice.roll(factors.len())];
            target.push(f);
            rest /= f;
        }
        target.push(rest);
        let y = x.reshape(target.clone());
        assert_eq!(y.shape(), target);
        assert_eq!(y.to_vec::<i64>(), x.to_vec::<i64>());
        if let Some(layout) = x.layout().reshape(&target) {
            assert!(y.shares_memory(&x) && layout.numel() == n);
        }
    }
    assert_eq!(shape::broadcast(&[2, 1], &[3]).unwrap().as_slice(), [2, 3]);
}
