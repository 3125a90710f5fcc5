use super::*;
use crate::recurrent as step;

fn data(n: usize, k: usize) -> Vec<f64> {
    (0..n).map(|i| ((i * 7919 + k * 31) % 997) as f64 / 700.0 - 0.7).collect()
}

struct Case {
    walk: Walk,
    x: Vec<f64>,
    weight: Vec<f64>,
    bias: Vec<f64>,
    h: Vec<f64>,
    c: Vec<f64>,
}

impl Case {
    fn new(walk: Walk) -> Case {
        let (gates, states) = (walk.cell.gates() * walk.units, walk.batch * walk.units);
        let cells = if walk.cell.has_cell_state() { states } else { 0 };
        let (x, weight) = (data(walk.len() * walk.cell.gates(), 1), data(gates * walk.units, 2));
        Case { walk, x, weight, bias: data(gates, 3), h: data(states, 4), c: data(cells, 5) }
    }

    fn given(&self) -> Given<'_, f64> {
        Given { weight: &self.weight, bias: &self.bias, h: &self.h, c: &self.c }
    }

    /// Outputs, last states, what is kept.
    fn run(&self) -> [Vec<f64>; 5] {
        let Walk { cell, .. } = self.walk;
        let len = self.walk.len();
        let cells = if cell.has_cell_state() { len } else { 0 };
        let mut out = [len, self.h.len(), self.c.len(), len * cell.kept(), cells].map(|n| vec![0.0; n]);
        let [y, h, c, gates, cells] = &mut out;
        self.walk.forward(&self.x, self.given(), y, h, c, Some(Kept { gates, cells }));
        out
    }

    /// Step by step with the kernels of a step.
    fn plain(&self) -> [Vec<f64>; 3] {
        let Walk { cell, batch, steps, units: n, .. } = self.walk;
        let gates = cell.gates() * n;
        let (mut y, mut h, mut c) = (vec![0.0; self.walk.len()], self.h.clone(), self.c.clone());
        for i in 0..steps {
            for b in 0..batch {
                let row = self.walk.row(b, self.walk.time(i));
                let (x, state) = (&self.x[row * gates..][..gates], h[b * n..][..n].to_vec());
                let dot = |g: usize| (0..n).map(|k| self.weight[g * n + k] * state[k]).sum::<f64>() + self.bias[g];
                let z: Vec<f64> = (0..gates).map(dot).collect();
                let out = &mut h[b * n..][..n];
                match cell {
                    Cell::Lstm => {
                        let old = c[b * n..][..n].to_vec();
                        step::lstm_of(x, &z, &old, n, out, &mut c[b * n..][..n]);
                    }
                    Cell::Gru => step::gru_of(x, &z, &state, n, out),
                    Cell::Tanh => (0..n).for_each(|j| out[j] = (x[j] + z[j]).tanh()),
                    Cell::Relu => (0..n).for_each(|j| out[j] = (x[j] + z[j]).max(0.0)),
                }
                y[row * n..][..n].copy_from_slice(out);
            }
        }
        [y, h, c]
    }

    fn parts(&mut self) -> [&mut Vec<f64>; 5] {
        [&mut self.x, &mut self.weight, &mut self.bias, &mut self.h, &mut self.c]
    }
}

fn close(a: &[f64], b: &[f64], tolerance: f64) {
    assert_eq!(a.len(), b.len());
    for (i, (a, b)) in a.iter().zip(b).enumerate() {
        assert!((a - b).abs() <= tolerance * (1.0 + b.abs()), "element {i}: {a} {b}");
    }
}

#[test]
fn values_and_gradients() {
    let cells = [Cell::Lstm, Cell::Gru, Cell::Tanh, Cell::Relu];
    for (cell, (time_major, reverse)) in
        cells.into_iter().flat_map(|c| [(false, false), (true, true)].map(move |order| (c, order)))
    {
        let mut case = Case::new(Walk { cell, batch: 3, steps: 4, units: 5, time_major, reverse });
        let [y, h, c, gates, cells] = case.run();
        for (got, wanted) in [&y, &h, &c].into_iter().zip(&case.plain()) {
            close(got, wanted, 1e-12);
        }
        let weights = [data(y.len(), 6), data(h.len(), 7), data(c.len(), 8)];
        let [mut dx, mut dweight, mut dbias] = [&case.x, &case.weight, &case.bias].map(|v| vec![9.0; v.len()]);
        let (mut dh, mut dc) = (weights[1].clone(), weights[2].clone());
        let grads = Gradients { x: &mut dx, weight: &mut dweight, bias: &mut dbias, h: &mut dh, c: &mut dc };
        case.walk.backward(case.given(), &y, Kept { gates: &gates, cells: &cells }, &weights[0], grads);
        let total = |case: &Case| {
            let [y, h, c, ..] = case.run();
            [&y, &h, &c].into_iter().zip(&weights).flat_map(|(v, w)| v.iter().zip(w)).map(|(v, w)| v * w).sum::<f64>()
        };
        for (k, got) in [dx, dweight, dbias, dh, dc].into_iter().enumerate() {
            let numeric: Vec<f64> = (0..got.len())
                .map(|i| {
                    let old = case.parts()[k][i];
                    let mut at = |by: f64| {
                        case.parts()[k][i] = old + by;
                        total(&case)
                    };
                    let slope = (at(1e-5) - at(-1e-5)) / 2e-5;
                    case.parts()[k][i] = old;
                    slope
                })
                .collect();
            close(&got, &numeric, 1e-6);
        }
    }
}

#[test]
fn nothing_to_walk() {
    for (batch, steps) in [(0, 3), (2, 0)] {
        let case = Case::new(Walk { cell: Cell::Lstm, batch, steps, units: 2, time_major: false, reverse: false });
        let [_, h, c, ..] = case.run();
        assert_eq!((h, c), (case.h.clone(), case.c.clone()));
    }
}

#[test]
fn the_same_bits_for_any_number_of_threads() {
    let case = Case::new(Walk { cell: Cell::Lstm, batch: 21, steps: 3, units: 24, time_major: false, reverse: false });
    parallel::set_num_threads(1);
    let one = case.run();
    parallel::set_num_threads(3);
    assert!(one == case.run());
}
