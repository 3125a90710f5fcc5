//! Steps of recurrent layers.

use crate::device::Device;
use crate::fault::Result;
use crate::launch::{Argument, Grid};
use crate::memory::Block;
use crate::spelling::spelt;
use sampan_formula::DType;

pub(crate) const TEXT: &str = include_str!("kernels/recurrent.cu");

/// A kernel of `recurrent.cu`.
#[derive(Clone, Copy, Debug, PartialEq)]
#[allow(missing_docs)]
pub enum Cell {
    Lstm,
    LstmBack,
    Gru,
    GruBack,
}

impl Cell {
    /// Its name, and for each array it takes in order how many times a state's elements it has.
    fn facts(self) -> (&'static str, &'static [usize]) {
        match self {
            Cell::Lstm => ("lstm_cell", &[4, 4, 1, 1, 1]),
            Cell::LstmBack => ("lstm_cell_back", &[4, 4, 1, 1, 1, 4, 1]),
            Cell::Gru => ("gru_cell", &[3, 3, 1, 1]),
            Cell::GruBack => ("gru_cell_back", &[3, 3, 1, 1, 3, 3, 1]),
        }
    }
}

/// One step for `rows` rows of `units` units: arrays and the number of the first element of each, results last.
pub fn step(
    device: &Device,
    cell: Cell,
    dtype: DType,
    rows: usize,
    units: usize,
    data: &[(&Block, usize)],
) -> Result<()> {
    let total = rows * units;
    if total == 0 {
        return Ok(());
    }
    let (name, sizes) = cell.facts();
    assert_eq!(sizes.len(), data.len(), "{name}: as many arrays as it takes");
    let kernel = device.template(TEXT, &format!("{name}<{}>", spelt(dtype)))?;
    let mut arguments = vec![Argument::Int(total as i64), Argument::Int(units as i64)];
    for ((block, offset), times) in data.iter().zip(sizes) {
        assert!((offset + times * total) * dtype.size() <= block.len(), "{name}: {block:?} is too short");
        arguments.push(Argument::Address(block.address() + (offset * dtype.size()) as u64));
    }
    // SAFETY: these are the kernel's arguments, and every array was found long enough.
    unsafe { device.launch(kernel, Grid::of(total, device), &mut arguments) }
}
