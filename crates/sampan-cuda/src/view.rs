//! Elements of a block that a kernel walks over.

use crate::launch::Argument;
use crate::memory::Block;
use sampan_formula::DType;

/// The most axes a kernel walks over, after those that can be were joined.
pub const AXES: usize = 8;

/// Elements of a block: extents, steps in elements and the first one.
#[derive(Clone, Copy)]
pub struct View<'a> {
    /// The memory.
    pub block: &'a Block,
    /// What lies there.
    pub dtype: DType,
    /// Extents of the axes.
    pub shape: &'a [usize],
    /// Steps along the axes, in elements; 0 for an axis that was stretched.
    pub strides: &'a [isize],
    /// The first element.
    pub offset: usize,
}

impl View<'_> {
    /// How many elements are seen.
    pub fn numel(&self) -> usize {
        self.shape.iter().product()
    }

    /// The address of the first element.
    pub fn address(&self) -> u64 {
        self.block.address() + (self.offset * self.dtype.size()) as u64
    }

    /// Panics if an element lies outside the block.
    pub fn check(&self) {
        if self.shape.contains(&0) {
            return;
        }
        let (mut low, mut high) = (self.offset as isize, self.offset as isize);
        for (&n, &s) in self.shape.iter().zip(self.strides) {
            let far = (n as isize - 1) * s;
            if far < 0 { low += far } else { high += far }
        }
        let held = (self.block.len() / self.dtype.size()) as isize;
        assert!(low >= 0 && high < held, "elements {low} to {high} of a block of {held}");
    }

    /// Some of its axes as a kernel takes them (`struct axes`), joined where that is possible; nothing if they are too many.
    pub(crate) fn axes(&self, which: impl Fn(usize) -> bool) -> Option<Axes> {
        let mut joined: Vec<(usize, isize)> = Vec::new();
        for axis in (0..self.shape.len()).rev().filter(|&a| which(a)) {
            let (n, s) = (self.shape[axis], self.strides[axis]);
            match joined.last_mut() {
                _ if n == 1 => {}
                Some((extent, step)) if s == *step * *extent as isize => *extent *= n,
                _ => joined.push((n, s)),
            }
        }
        (joined.len() <= AXES).then_some(Axes(joined))
    }
}

/// Axes from the last to the first: extents and steps.
pub(crate) struct Axes(pub Vec<(usize, isize)>);

impl Axes {
    /// Do neighbours lie side by side?
    pub fn are_dense(&self) -> bool {
        self.0.first().is_none_or(|&(_, step)| step.unsigned_abs() <= 1)
    }
}

impl From<Axes> for Argument {
    fn from(axes: Axes) -> Argument {
        let mut words = vec![0i64; 1 + 2 * AXES];
        words[0] = axes.0.len() as i64;
        for (k, (extent, step)) in axes.0.into_iter().enumerate() {
            (words[1 + k], words[1 + AXES + k]) = (extent as i64, step as i64);
        }
        Argument::Words(words)
    }
}
