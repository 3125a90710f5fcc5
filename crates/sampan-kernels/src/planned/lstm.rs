//! A layer of an LSTM: inputs and states meet their weights in one pass, from zero states on.

use crate::recurrent::lstm::{Gates, Layer};
use crate::recurrent::sequence::{Cell, Walk};

/// The parameters of a direction: the weight of the input `[4 * units, depth]`, that of the state `[4 * units, units]`, and
/// their biases.
pub type Parameters<'a> = [&'a [f32]; 4];

/// A layer with packed weights, in one direction or both.
pub struct Lstm {
    units: usize,
    directions: Vec<Layer<f32>>,
}

impl Lstm {
    /// A layer of so many units on inputs of `depth` numbers. The second direction walks from the end.
    pub fn new(units: usize, depth: usize, directions: &[Parameters]) -> Lstm {
        let direction = |[input, state, b, c]: &Parameters| Layer {
            input: Gates::new(input, units, depth),
            state: Gates::new(state, units, units),
            bias: b.iter().zip(*c).map(|(b, c)| b + c).collect(),
        };
        Lstm { units, directions: directions.iter().map(direction).collect() }
    }

    /// The outputs `[batch, steps, directions * units]` for inputs `[batch, steps, depth]`, or with time first in both.
    pub fn run(&self, batch: usize, steps: usize, time_major: bool, x: &[f32], y: &mut [f32]) {
        let pitch = self.units * self.directions.len();
        for (k, d) in self.directions.iter().enumerate() {
            let walk = Walk { cell: Cell::Lstm, batch, steps, units: self.units, time_major, reverse: k == 1 };
            walk.lstm(d, x, y, pitch, k * self.units);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn data(n: usize, k: usize) -> Vec<f32> {
        (0..n).map(|i| ((i * 7919 + k * 31) % 997) as f32 / 1400.0 - 0.35).collect()
    }

    /// In float64, one number after the other.
    fn plain(units: usize, p: &Parameters, x: &[Vec<f64>], reverse: bool) -> Vec<Vec<f64>> {
        let (mut h, mut c, mut y) = (vec![0.0; units], vec![0.0; units], vec![vec![]; x.len()]);
        let order: Vec<usize> = if reverse { (0..x.len()).rev().collect() } else { (0..x.len()).collect() };
        for t in order {
            let gate = |g: usize, j: usize| {
                let row = g * units + j;
                let dot = |w: &[f32], v: &[f64]| -> f64 {
                    v.iter().zip(&w[row * v.len()..]).map(|(v, w)| v * f64::from(*w)).sum()
                };
                dot(p[0], &x[t]) + dot(p[1], &h) + f64::from(p[2][row]) + f64::from(p[3][row])
            };
            let sigmoid = |v: f64| 1.0 / (1.0 + (-v).exp());
            for j in 0..units {
                c[j] = sigmoid(gate(1, j)) * c[j] + sigmoid(gate(0, j)) * gate(2, j).tanh();
            }
            h = (0..units).map(|j| sigmoid(gate(3, j)) * c[j].tanh()).collect();
            y[t] = h.clone();
        }
        y
    }

    #[test]
    fn as_the_definition() {
        for (batch, steps, units, depth, time_major) in
            [(1, 3, 1, 2, false), (7, 4, 21, 5, false), (5, 3, 40, 17, true), (0, 2, 3, 2, false), (3, 2, 16, 1, true)]
        {
            let parts = |k: usize| {
                [
                    data(4 * units * depth, k),
                    data(4 * units * units, k + 1),
                    data(4 * units, k + 2),
                    data(4 * units, k + 3),
                ]
            };
            let (one, two) = (parts(1), parts(5));
            let directions = [one.each_ref().map(|v| &v[..]), two.each_ref().map(|v| &v[..])];
            let x = data(batch * steps * depth, 9);
            let lstm = Lstm::new(units, depth, &directions);
            let mut y = vec![9.0; batch * steps * 2 * units];
            lstm.run(batch, steps, time_major, &x, &mut y);
            let row = |b: usize, t: usize| if time_major { t * batch + b } else { b * steps + t };
            for b in 0..batch {
                let rows: Vec<Vec<f64>> = (0..steps)
                    .map(|t| x[row(b, t) * depth..][..depth].iter().map(|&v| f64::from(v)).collect())
                    .collect();
                for (k, p) in directions.iter().enumerate() {
                    for (t, wanted) in plain(units, p, &rows, k == 1).iter().enumerate() {
                        let got = &y[row(b, t) * 2 * units + k * units..][..units];
                        for (got, wanted) in got.iter().zip(wanted) {
                            assert!((f64::from(*got) - wanted).abs() < 1e-5, "{got} {wanted}");
                        }
                    }
                }
            }
        }
    }
}
