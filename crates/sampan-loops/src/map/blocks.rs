//! One program over one block, or over whole tensors where they are as good as blocks.

use super::program::{Kind, Place, Program, Step};
use super::reader::Operand;
use super::tables::Compute;
use crate::Bool;
use smallvec::SmallVec;

pub type Operands<'a, T> = SmallVec<[Operand<'a, T>; 4]>;

/// What the steps of a program read and write.
pub struct Blocks<'b, 'w, T> {
    pub work: &'b mut [&'w mut [T]],
    pub constants: &'b [T],
    pub operands: &'b [Operand<'b, T>],
    pub spread: &'b [(Place, &'b [T])],
}

impl<T: Compute> Blocks<'_, '_, T> {
    /// Computes `n` elements.
    pub fn run(&mut self, program: &Program<T>, n: usize, dst: &mut [T]) {
        if self.run_fused(program, dst) {
            return;
        }
        let Some((last, first)) = program.steps.split_last() else {
            match program.result {
                Place::Constant(i) => dst.fill(self.constants[i]),
                Place::Input(i) => match self.operands[i] {
                    Operand::Slice(data) => dst.copy_from_slice(data),
                    Operand::One(v) => dst.fill(v),
                },
                Place::Block(_) => unreachable!("no step wrote one"),
            }
            return;
        };
        for step in first {
            let to = std::mem::take(&mut self.work[step.to]);
            self.step(step, &mut to[..n]);
            self.work[step.to] = to;
        }
        self.step(last, dst);
    }

    /// Computes all elements with the one loop there is; false if it needs blocks after all.
    pub fn run_last(&self, program: &Program<T>, dst: &mut [T]) -> bool {
        self.run_fused(program, dst) || matches!(&program.steps[..], [step] if self.step(step, dst))
    }

    /// Writes a comparison as truth values; false if its operands do not lie as its loops want them.
    pub fn compare(&self, program: &Program<T>, y: &mut [Bool]) -> bool {
        let (Some(comparison), [step]) = (&program.comparison, &program.steps[..]) else { return false };
        match (self.operand(step.from[0], y.len()), self.operand(step.from[1], y.len())) {
            (Operand::Slice(a), Operand::Slice(b)) => (comparison.slices)(a, b, y),
            (Operand::Slice(a), Operand::One(b)) => (comparison.right)(a, b, y),
            _ => return false,
        }
        true
    }

    fn run_fused(&self, program: &Program<T>, dst: &mut [T]) -> bool {
        let Some(fused) = &program.fused else { return false };
        let mut slices: SmallVec<[&[T]; 4]> = SmallVec::new();
        for i in 0..self.operands.len() {
            let Some(data) = self.block(Place::Input(i), dst.len()) else { return false };
            slices.push(data);
        }
        (fused.run)(&slices, &program.captured(self.constants), dst);
        true
    }

    fn operand(&self, place: Place, n: usize) -> Operand<'_, T> {
        match place {
            Place::Input(i) => self.operands[i],
            Place::Block(i) => Operand::Slice(&self.work[i][..n]),
            Place::Constant(i) => Operand::One(self.constants[i]),
        }
    }

    /// The operand as a block; `None` if it was not laid out as one.
    fn block(&self, place: Place, n: usize) -> Option<&[T]> {
        match self.operand(place, n) {
            Operand::Slice(data) => Some(data),
            Operand::One(_) => self.spread.iter().find(|(p, _)| *p == place).map(|(_, block)| &block[..n]),
        }
    }

    /// Runs one loop; false if an operand is missing as a block.
    fn step(&self, step: &Step<T>, y: &mut [T]) -> bool {
        let n = y.len();
        match &step.kind {
            Kind::Unary(run) => match self.operand(step.from[0], n) {
                Operand::Slice(x) => run(x, y),
                Operand::One(x) => {
                    let mut one = [x];
                    run(&[x], &mut one);
                    y.fill(one[0]);
                }
            },
            Kind::Binary(pair) => {
                let [a, b, _] = step.from;
                match (self.operand(a, n), self.operand(b, n)) {
                    (Operand::Slice(a), Operand::Slice(b)) => (pair.slices)(a, b, y),
                    (Operand::One(a), Operand::One(b)) => {
                        let mut one = [a];
                        (pair.slices)(&[a], &[b], &mut one);
                        y.fill(one[0]);
                    }
                    (Operand::Slice(a), Operand::One(v)) => match (pair.right, self.block(b, n)) {
                        (Some(run), _) => run(a, v, y),
                        (None, Some(b)) => (pair.slices)(a, b, y),
                        (None, None) => return false,
                    },
                    (Operand::One(v), Operand::Slice(b)) => match (pair.left, self.block(a, n)) {
                        (Some(run), _) => run(v, b, y),
                        _ if pair.swaps => pair.right.expect("it has a form for a number")(b, v, y),
                        (None, Some(a)) => (pair.slices)(a, b, y),
                        (None, None) => return false,
                    },
                }
            }
            Kind::Select => {
                let [c, a, b] = step.from.map(|place| self.block(place, n));
                let (Some(c), Some(a), Some(b)) = (c, a, b) else { return false };
                T::select()(c, a, b, y);
            }
        }
        true
    }
}
