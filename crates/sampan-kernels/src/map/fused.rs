//! Chains that networks spend their time in, compiled as one loop. They are found by the formula they are; a chain that is
//! not here runs block by block, to the same bits.

use super::tables::Compute;
use sampan_formula::Formula;

/// A formula as one loop.
pub struct Fused<T> {
    /// `y = f(inputs, constants)`.
    pub run: fn(&[&[T]], &[T], &mut [T]),
    /// Which of the program's constants it takes.
    pub constants: Vec<usize>,
}

/// The loop of a formula, if it is one of the compiled ones.
pub fn find<T: Compute>(_formula: &Formula) -> Option<Fused<T>> {
    None
}
