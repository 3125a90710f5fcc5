//! Quantiles and medians along an axis.

use super::order::{Axis, per_line};
use super::{Packed, key_bits, pack_all, sort_packed, with_packed};
use crate::Ordered;

/// What to give between two neighbours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interpolation {
    /// A weighted mean.
    Linear,
    /// The lower one.
    Lower,
    /// The higher one.
    Higher,
    /// Their mean.
    Midpoint,
    /// The closer one.
    Nearest,
}

/// Quantiles `qs` (each in [0, 1]) of every line, laid along the axis: `outer × qs × inner`. A NaN makes a line's
/// result NaN unless `ignore_nan`; a line without numbers gives NaN. The median is quantile 0.5.
pub fn quantile<T: Ordered>(x: &[T], axis: Axis, qs: &[f64], how: Interpolation, ignore_nan: bool, dst: &mut [f64]) {
    per_line(axis, qs.len(), dst, |line, out| {
        with_packed!(T, axis.n, P => {
            let values: Vec<T> = axis.line(x, line).collect();
            let mut pairs: Vec<P> = pack_all(values.iter().copied(), false);
            sort_packed(&mut pairs, key_bits::<T>());
            let numbers = pairs.partition_point(|p| !values[p.position()].is_nan());
            if numbers == 0 || (numbers < pairs.len() && !ignore_nan) {
                return out.fill(f64::NAN);
            }
            let at = |i: usize| values[pairs[i.min(numbers - 1)].position()].to_f64();
            for (o, q) in out.iter_mut().zip(qs) {
                let position = q * (numbers - 1) as f64;
                let low = position.floor();
                let (a, b, part) = (at(low as usize), at(position.ceil() as usize), position - low);
                *o = match how {
                    // Equal ends are kept as they are: ∞ − ∞ is no number.
                    _ if a == b => a,
                    Interpolation::Linear => a + (b - a) * part,
                    Interpolation::Lower => a,
                    Interpolation::Higher => b,
                    Interpolation::Midpoint => a + (b - a) * 0.5,
                    Interpolation::Nearest => at(position.round() as usize),
                };
            }
        })
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_and_medians() {
        let x = [4f32, 1.0, 3.0, 2.0];
        let axis = Axis { outer: 1, n: 4, inner: 1 };
        let get = |x: &[f32], q, how, skip| {
            let mut d = [0.0];
            quantile(x, axis, &[q], how, skip, &mut d);
            d[0]
        };
        assert_eq!(get(&x, 0.5, Interpolation::Linear, false), 2.5);
        assert_eq!(get(&x, 0.25, Interpolation::Linear, false), 1.75);
        assert_eq!(get(&x, 0.25, Interpolation::Lower, false), 1.0);
        assert_eq!(get(&x, 0.25, Interpolation::Higher, false), 2.0);
        assert_eq!(get(&x, 0.25, Interpolation::Midpoint, false), 1.5);
        assert_eq!(get(&x, 0.25, Interpolation::Nearest, false), 2.0);
        let n = [4f32, f32::NAN, 3.0, 2.0];
        assert!(get(&n, 0.5, Interpolation::Linear, false).is_nan());
        assert_eq!(get(&n, 0.5, Interpolation::Linear, true), 3.0);
        assert!(get(&[f32::NAN; 4], 0.5, Interpolation::Linear, true).is_nan());
    }
}
