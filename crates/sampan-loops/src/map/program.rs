//! A formula as a list of loops over blocks.

use super::fused::{Fused, Masked};
use super::tables::{Compute, Loop1, Pair};
use super::truth::Comparison;
use sampan_formula::{Bound, Constant, Formula, Source};
use smallvec::SmallVec;

/// Where an operand of a step lies.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Place {
    /// An input.
    Input(usize),
    /// A block that an earlier step wrote.
    Block(usize),
    /// A number that is the same for every element.
    Constant(usize),
}

/// What a step computes.
pub enum Kind<T> {
    Unary(Loop1<T>),
    Binary(Pair<T>),
    Select,
}

pub struct Step<T> {
    pub kind: Kind<T>,
    pub from: [Place; 3],
    /// The block it writes; the last step writes the result.
    pub to: usize,
}

/// A number that is the same for every element, until the captured constants are known.
enum Uniform<T> {
    Known(T),
    Captured(usize),
    /// Made of captured constants.
    Made(Formula),
}

pub struct Program<T> {
    pub steps: Vec<Step<T>>,
    /// How many blocks the steps write.
    pub blocks: usize,
    /// Where the result lies if no step makes it: an input or a constant.
    pub result: Place,
    /// The whole formula as one loop, if it is one of the compiled ones.
    pub fused: Option<Fused<T>>,
    /// The same over a slice and a mask that is read as it lies in memory.
    pub masked: Option<Masked<T>>,
    /// If it is one comparison: its loops that write truth values.
    pub comparison: Option<Comparison<T>>,
    /// Where its captured constants stand among the constants.
    pub captured: Vec<usize>,
    /// Is it needed as a block, since it meets a loop that takes only blocks?
    pub spread_inputs: Vec<bool>,
    pub spread_constants: Vec<bool>,
    uniforms: Vec<Uniform<T>>,
}

impl<T: Compute> Program<T> {
    pub fn of(formula: &Formula) -> &Program<T> {
        formula.note(T::NOTE, Program::new)
    }

    fn new(formula: &Formula) -> Program<T> {
        let values = formula.values();
        let mut uniform = Vec::with_capacity(values.len());
        for source in values {
            uniform.push(match source {
                Source::Input(_) => false,
                other => other.operands().all(|o| uniform[o]),
            });
        }
        let mut last_use = vec![0; values.len()];
        for (at, source) in values.iter().enumerate() {
            source.operands().for_each(|o| last_use[o] = at);
        }
        let mut program = Program {
            steps: Vec::new(),
            blocks: 0,
            result: Place::Constant(0),
            fused: T::fused(formula),
            masked: T::masked(formula),
            comparison: None,
            captured: Vec::new(),
            spread_inputs: vec![false; formula.inputs()],
            spread_constants: Vec::new(),
            uniforms: Vec::new(),
        };
        let mut places: Vec<Option<Place>> = vec![None; values.len()];
        let mut free: Vec<usize> = Vec::new();
        for (at, &source) in values.iter().enumerate() {
            if let Source::Input(i) = source {
                places[at] = Some(Place::Input(i));
                continue;
            }
            if uniform[at] {
                // Only what a step reads becomes a constant of the program.
                continue;
            }
            let operands: Vec<usize> = source.operands().collect();
            let mut from = [Place::Constant(0); 3];
            for (k, &o) in operands.iter().enumerate() {
                if places[o].is_none() {
                    places[o] = Some(program.constant(formula, o));
                }
                from[k] = places[o].expect("operands come first");
            }
            let kind = match source {
                Source::Unary(op, _) => Kind::Unary(T::unary(op).unwrap_or_else(|| unknown::<T, _>())),
                Source::Binary(op, ..) => Kind::Binary(T::binary(op).unwrap_or_else(|| unknown::<T, _>())),
                Source::Select(..) => Kind::Select,
                leaf => unreachable!("{leaf:?} is no step"),
            };
            program.comparison = match source {
                Source::Binary(op, ..) if program.steps.is_empty() => T::comparison(op),
                _ => None,
            };
            program.mark_spread(&kind, &from);
            let to = free.pop().unwrap_or_else(|| {
                program.blocks += 1;
                program.blocks - 1
            });
            program.steps.push(Step { kind, from, to });
            places[at] = Some(Place::Block(to));
            for o in operands {
                if last_use[o] == at
                    && let Some(Place::Block(b)) = places[o]
                    && !free.contains(&b)
                {
                    free.push(b);
                }
            }
        }
        let result = formula.result();
        program.result = places[result].unwrap_or_else(|| program.constant(formula, result));
        let place = |i| program.uniforms.iter().position(|u| matches!(u, Uniform::Captured(at) if *at == i));
        let captured: Option<Vec<usize>> = (0..formula.captured()).map(place).collect();
        match captured {
            Some(captured) => program.captured = captured,
            None => (program.fused, program.masked) = (None, None),
        }
        if program.fused.is_some() {
            // Its loop reads slices alone.
            program.spread_inputs.fill(true);
        }
        program
    }

    fn constant(&mut self, formula: &Formula, at: usize) -> Place {
        self.uniforms.push(match formula.values()[at] {
            Source::Literal(v) => Uniform::Known(T::constant(Constant::Float(v))),
            Source::Captured(i) => Uniform::Captured(i),
            _ => Uniform::Made(formula.part(at)),
        });
        self.spread_constants.push(false);
        Place::Constant(self.uniforms.len() - 1)
    }

    fn mark_spread(&mut self, kind: &Kind<T>, from: &[Place; 3]) {
        let alone = match kind {
            Kind::Unary(_) => return,
            // Of two operands only one can be a number, else the whole would be one.
            Kind::Binary(pair) => [pair.left.is_none() && !pair.swaps, pair.right.is_none(), false],
            Kind::Select => [true; 3],
        };
        for (place, _) in from.iter().zip(alone).filter(|&(_, alone)| alone) {
            match *place {
                Place::Input(i) => self.spread_inputs[i] = true,
                Place::Constant(i) => self.spread_constants[i] = true,
                Place::Block(_) => {}
            }
        }
    }

    /// Is one loop all there is to do?
    pub fn one_loop(&self) -> bool {
        self.fused.is_some() || self.steps.len() == 1
    }

    /// What the formula captured, among the constants.
    pub fn captured(&self, constants: &[T]) -> SmallVec<[T; 4]> {
        self.captured.iter().map(|&i| constants[i]).collect()
    }

    /// The program's constants, for these captured ones.
    pub fn constants(&self, bound: &Bound) -> SmallVec<[T; 4]> {
        let value = |u: &Uniform<T>| match u {
            Uniform::Known(v) => *v,
            Uniform::Captured(i) => T::constant(bound.constants()[*i]),
            Uniform::Made(part) => {
                let captured: Vec<T::Exact> = bound.constants().iter().map(|&c| T::Exact::constant(c)).collect();
                T::rounded(part.replay(&[], &captured, &mut exact))
            }
        };
        self.uniforms.iter().map(value).collect()
    }
}

/// One operation on numbers.
fn exact<T: Compute>(source: Source, v: &[T]) -> T {
    let v: Vec<Vec<T>> = v.iter().map(|&v| vec![v]).collect();
    one_step(source, &v, 1)[0]
}

/// One operation on `n` numbers.
pub(super) fn one_step<T: Compute>(source: Source, v: &[Vec<T>], n: usize) -> Vec<T> {
    let mut y = vec![T::zeroed(); n];
    match source {
        Source::Literal(v) => y.fill(T::constant(Constant::Float(v))),
        Source::Unary(op, _) => T::unary(op).unwrap_or_else(|| unknown::<T, _>())(&v[0], &mut y),
        Source::Binary(op, ..) => (T::binary(op).unwrap_or_else(|| unknown::<T, _>()).slices)(&v[0], &v[1], &mut y),
        Source::Select(..) => T::select()(&v[0], &v[1], &v[2], &mut y),
        Source::Input(_) | Source::Captured(_) => unreachable!("replay answers these itself"),
    }
    y
}

/// An operation that this type does not know.
fn unknown<T: Compute, R>() -> R {
    crate::any::unsupported(T::DTYPE)
}
