//! A recurrent layer along whole sequences: of each step one product and one kernel.

use crate::blas::{self, Extents, Matrices};
use crate::device::Device;
use crate::fault::Result;
use crate::launch::{Argument, Grid};
use crate::memory::Block;
use crate::recurrent::TEXT;
use crate::spelling::spelt;
use sampan_formula::DType;

/// The formula of a step.
#[derive(Clone, Copy, Debug, PartialEq)]
#[allow(missing_docs)]
pub enum Cell {
    Lstm,
    Gru,
    Tanh,
    Relu,
}

impl Cell {
    fn gates(self) -> usize {
        match self {
            Cell::Lstm => 4,
            Cell::Gru => 3,
            _ => 1,
        }
    }
}

/// The way along the sequences.
#[derive(Clone, Copy, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct Walk {
    pub cell: Cell,
    pub dtype: DType,
    pub batch: usize,
    pub steps: usize,
    pub units: usize,
    pub time_major: bool,
    pub reverse: bool,
}

/// A contiguous array: its block and its first element.
pub type At<'a> = (&'a Block, usize);

/// What a walk is given: the products of the inputs, weight and bias of the states, and the first states.
#[derive(Clone, Copy)]
#[allow(missing_docs)]
pub struct Given<'a> {
    pub x: At<'a>,
    pub weight: At<'a>,
    pub bias: At<'a>,
    pub h: At<'a>,
    pub c: Option<At<'a>>,
}

/// What the way forward gives: outputs, and of an LSTM the cell states of all steps; `gates` where the way back needs them.
#[derive(Clone, Copy)]
#[allow(missing_docs)]
pub struct Made<'a> {
    pub y: At<'a>,
    pub cells: Option<At<'a>>,
    pub gates: Option<At<'a>>,
}

/// What the way back changes: gradients of the states (contiguous, those of the last ones before and of the first ones
/// afterwards), of the products of the inputs and, for GRU, of those of the states.
#[derive(Clone, Copy)]
#[allow(missing_docs)]
pub struct Back<'a> {
    pub dh: &'a Block,
    /// The cell state's; for GRU what goes past the product, zeros at first.
    pub dc: Option<&'a Block>,
    pub dx: &'a Block,
    pub dz: Option<&'a Block>,
}

impl Walk {
    /// Which step comes `i`-th.
    fn time(&self, i: usize) -> usize {
        if self.reverse { self.steps - 1 - i } else { i }
    }

    /// Where step `t` of an array with `width` numbers a step begins, and the distance between sequences.
    fn row(&self, t: usize, width: usize) -> (usize, usize) {
        if self.time_major { (t * self.batch * width, width) } else { (t * width, self.steps * width) }
    }

    /// The arguments for step `t` of an array.
    fn at(&self, (block, offset): At<'_>, t: usize, width: usize) -> [Argument; 2] {
        let size = self.dtype.size();
        assert!((offset + self.batch * self.steps * width) * size <= block.len(), "{block:?} holds all steps");
        let (first, row) = self.row(t, width);
        [Argument::Address(block.address() + ((offset + first) * size) as u64), Argument::Int(row as i64)]
    }

    /// The arguments for a state.
    fn state(&self, (block, offset): At<'_>) -> [Argument; 2] {
        let size = self.dtype.size();
        assert!((offset + self.batch * self.units) * size <= block.len(), "{block:?} holds a state");
        [Argument::Address(block.address() + (offset * size) as u64), Argument::Int(self.units as i64)]
    }

    fn launch(&self, device: &Device, name: &str, arguments: &[&[Argument]]) -> Result<()> {
        let total = self.batch * self.units;
        let kernel = device.template(TEXT, &format!("{name}<{}>", spelt(self.dtype)))?;
        let mut all = vec![Argument::Int(total as i64), Argument::Int(self.units as i64)];
        all.extend(arguments.iter().copied().flatten().cloned());
        // SAFETY: these are the arguments of the kernel, and every array was found long enough when its place was asked for.
        unsafe { device.launch(kernel, Grid::of(total, device), &mut all) }
    }

    /// The product of states, `[batch, units]` at a place, with the transposed weight.
    fn product(&self, device: &'static Device, given: &Given, h: (At<'_>, usize), z: &Block) -> Result<()> {
        let ((block, offset), row) = h;
        let gates = self.cell.gates() * self.units;
        let a = Matrices { block, offset, row, column: 1, matrix: 0 };
        let b = Matrices { block: given.weight.0, offset: given.weight.1, row: 1, column: self.units, matrix: 0 };
        let extents = Extents { count: 1, m: self.batch, n: gates, k: self.units };
        let done = blas::product(device, self.dtype, extents, a, b, z)?;
        assert!(done, "the library multiplies rows and columns that lie side by side");
        Ok(())
    }

    /// From the first step to the last. The dtype is float32 or float64.
    pub fn forward(&self, device: &'static Device, given: &Given, made: &Made) -> Result<()> {
        let Walk { batch, units, .. } = *self;
        let (gates, size) = (self.cell.gates() * units, self.dtype.size());
        assert!(gates * units * size <= given.weight.0.len() && gates * size <= given.bias.0.len(), "whole parameters");
        if batch * units == 0 {
            return Ok(());
        }
        let z = device.alloc(batch * gates * size)?;
        let bias = [Argument::Address(given.bias.0.address() + (given.bias.1 * size) as u64)];
        let kept = |t: usize| match made.gates {
            Some(gates) => self.at(gates, t, 4 * units),
            None => [Argument::Address(0), Argument::Int(0)],
        };
        for i in 0..self.steps {
            let (t, before) = (self.time(i), (i > 0).then(|| self.time(i.saturating_sub(1))));
            let h = match before {
                Some(before) => {
                    let (first, row) = self.row(before, units);
                    ((made.y.0, made.y.1 + first), row)
                }
                None => (given.h, units),
            };
            self.product(device, given, h, &z)?;
            let z = [Argument::from(&z)];
            let (x, y) = (self.at(given.x, t, gates), self.at(made.y, t, units));
            match self.cell {
                Cell::Lstm => {
                    let cells = made.cells.expect("an LSTM has cell states");
                    let c = match before {
                        Some(before) => self.at(cells, before, units),
                        None => self.state(given.c.expect("an LSTM has a cell state")),
                    };
                    let to = self.at(cells, t, units);
                    self.launch(device, "lstm_walk", &[&x, &z, &bias, &c, &to, &y, &kept(t)])?;
                }
                Cell::Gru => {
                    let h = match before {
                        Some(before) => self.at(made.y, before, units),
                        None => self.state(given.h),
                    };
                    self.launch(device, "gru_walk", &[&x, &z, &bias, &h, &y, &kept(t)])?;
                }
                simple => {
                    let relu = [Argument::Int((simple == Cell::Relu) as i64)];
                    self.launch(device, "simple_walk", &[&relu, &x, &z, &bias, &y])?;
                }
            }
        }
        Ok(())
    }

    /// From the last step to the first: `dy` are the gradients of the outputs.
    pub fn backward(&self, device: &'static Device, given: &Given, made: &Made, dy: At<'_>, back: &Back) -> Result<()> {
        let Walk { batch, units, .. } = *self;
        let (gates, size) = (self.cell.gates() * units, self.dtype.size());
        let states = batch * units * size;
        assert!(gates * units * size <= given.weight.0.len(), "a whole weight");
        assert!(back.dh.len() >= states && back.dc.is_none_or(|dc| dc.len() >= states), "whole states");
        if batch * units == 0 {
            return Ok(());
        }
        let (dh, dx) = ([Argument::from(back.dh)], (back.dx, 0));
        for i in (0..self.steps).rev() {
            let (t, before) = (self.time(i), (i > 0).then(|| self.time(i.saturating_sub(1))));
            let (up, to) = (self.at(dy, t, units), self.at(dx, t, gates));
            let of_products = back.dz.unwrap_or(back.dx);
            match self.cell {
                Cell::Lstm => {
                    let (cells, kept) = (made.cells.expect("kept"), made.gates.expect("kept"));
                    let c = match before {
                        Some(before) => self.at(cells, before, units),
                        None => self.state(given.c.expect("an LSTM has a cell state")),
                    };
                    let dc = [Argument::from(back.dc.expect("an LSTM has a cell state"))];
                    let (kept, now) = (self.at(kept, t, 4 * units), self.at(cells, t, units));
                    self.launch(device, "lstm_walk_back", &[&kept, &c, &now, &up, &dh, &dc, &to])?;
                }
                Cell::Gru => {
                    let h = match before {
                        Some(before) => self.at(made.y, before, units),
                        None => self.state(given.h),
                    };
                    let (kept, past) = (self.at(made.gates.expect("kept"), t, 4 * units), back.dc.expect("given"));
                    let (past, of_states) = ([Argument::from(past)], self.at((of_products, 0), t, gates));
                    // Both gradients have the same distance between rows.
                    self.launch(device, "gru_walk_back", &[&kept, &h, &up, &dh, &past, &to[..1], &of_states])?;
                }
                simple => {
                    let relu = [Argument::Int((simple == Cell::Relu) as i64)];
                    let y = self.at(made.y, t, units);
                    self.launch(device, "simple_walk_back", &[&relu, &y, &up, &dh, &to])?;
                }
            }
            let (first, row) = self.row(t, gates);
            let a = Matrices { block: of_products, offset: first, row, column: 1, matrix: 0 };
            let b = Matrices { block: given.weight.0, offset: given.weight.1, row: units, column: 1, matrix: 0 };
            let extents = Extents { count: 1, m: batch, n: units, k: gates };
            let done = blas::product(device, self.dtype, extents, a, b, back.dh)?;
            assert!(done, "the library multiplies rows that lie side by side");
        }
        Ok(())
    }
}
