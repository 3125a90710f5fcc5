//! From numbers that several runs gave to the expression that gives them all.

use crate::graph::{Id, Size};

/// The extents that differ between the runs, each with the first axis that has it.
#[derive(Default)]
pub(crate) struct Extents {
    /// One number for each run.
    known: Vec<Vec<i64>>,
    places: Vec<(Id, usize)>,
}

/// Divisors that programs use: strides, windows and halves.
const DIVISORS: std::ops::RangeInclusive<i64> = 2..=64;

impl Extents {
    /// Which of the differing extents this is; a new one is remembered.
    pub fn symbol(&mut self, numbers: Vec<i64>, place: (Id, usize)) -> usize {
        if let Some(at) = self.known.iter().position(|k| *k == numbers) {
            return at;
        }
        self.known.push(numbers);
        self.places.push(place);
        self.known.len() - 1
    }

    /// The expression that gives these numbers, the simplest first.
    pub fn find(&self, numbers: &[i64]) -> Option<Size> {
        if numbers.iter().all(|n| *n == numbers[0]) {
            return Some(Size::fixed(numbers[0]));
        }
        let size = |of: &[usize], times, plus, over| Size {
            extents: of.iter().map(|&i| self.places[i]).collect(),
            times,
            plus,
            over,
        };
        let all = 0..self.known.len();
        let linear = |of: &[usize]| {
            let product = self.product(of)?;
            let (times, plus) = line(&product, numbers)?;
            Some(size(of, times, plus, 1))
        };
        let one = || {
            let exact = all.clone().find(|&i| self.known[i] == numbers).map(|i| size(&[i], 1, 0, 1));
            exact.or_else(|| all.clone().find_map(|i| linear(&[i])))
        };
        // Of products only multiples: with a term that is added, two numbers would fit to anything.
        let multiple = |of: &[usize]| linear(of).filter(|s| s.plus == 0);
        let two = || all.clone().find_map(|i| (i..all.end).find_map(|j| multiple(&[i, j])));
        let few = all.end <= 12;
        let three = || {
            let pair = |i| (i..all.end).flat_map(move |j| (j..all.end).map(move |k| [i, j, k]));
            all.clone().filter(|_| few).find_map(|i| pair(i).find_map(|of| multiple(&of)))
        };
        let part = || {
            all.clone().find_map(|i| {
                DIVISORS.into_iter().find_map(|over| {
                    let plus = [0, over - 1].into_iter().chain(1 - over..over);
                    let fits =
                        |plus: &i64| self.known[i].iter().zip(numbers).all(|(e, n)| (e + plus).div_euclid(over) == *n);
                    plus.into_iter().find(fits).map(|plus| size(&[i], 1, plus, over))
                })
            })
        };
        one().or_else(two).or_else(three).or_else(part)
    }

    fn product(&self, of: &[usize]) -> Option<Vec<i64>> {
        let runs = self.known.first()?.len();
        (0..runs).map(|r| of.iter().try_fold(1i64, |p, &i| p.checked_mul(self.known[i][r]))).collect()
    }
}

/// The whole numbers `a` and `b` with `a * x + b = y` everywhere.
fn line(x: &[i64], y: &[i64]) -> Option<(i64, i64)> {
    let other = x.iter().position(|v| *v != x[0])?;
    let (dx, dy) = (x[other] - x[0], y[other] - y[0]);
    let times = (dy % dx == 0).then(|| dy / dx).filter(|t| *t != 0)?;
    let plus = y[0].checked_sub(times.checked_mul(x[0])?)?;
    let fits = x.iter().zip(y).all(|(x, y)| times.checked_mul(*x).and_then(|p| p.checked_add(plus)) == Some(*y));
    fits.then_some((times, plus))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_are_found() {
        let mut e = Extents::default();
        let (a, b) = (vec![5, 7, 11, 5, 5, 7], vec![37, 37, 37, 41, 43, 41]);
        assert_eq!((e.symbol(a.clone(), (0, 0)), e.symbol(b.clone(), (0, 1)), e.symbol(a.clone(), (3, 0))), (0, 1, 0));
        let of = |f: fn(i64, i64) -> i64| a.iter().zip(&b).map(|(a, b)| f(*a, *b)).collect::<Vec<_>>();
        let sizes = |f| e.find(&of(f)).map(|s| (s.extents, s.times, s.plus, s.over));
        assert_eq!(sizes(|_, _| 3), Some((vec![], 0, 3, 1)));
        assert_eq!(sizes(|a, _| a), Some((vec![(0, 0)], 1, 0, 1)));
        assert_eq!(sizes(|_, b| 2 * b - 1), Some((vec![(0, 1)], 2, -1, 1)));
        assert_eq!(sizes(|a, b| 3 * a * b), Some((vec![(0, 0), (0, 1)], 3, 0, 1)));
        assert_eq!(sizes(|_, b| b / 2), Some((vec![(0, 1)], 1, 0, 2)));
        assert_eq!(sizes(|_, b| (b + 1) / 2), Some((vec![(0, 1)], 1, 1, 2)));
        assert_eq!(sizes(|a, b| a * a + b * b * b), None);
    }
}
