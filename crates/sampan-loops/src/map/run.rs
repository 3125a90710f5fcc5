//! Runs a program over tensors.

use super::blocks::{Blocks, Operands};
use super::program::{Kind, Place, Program, Step};
use super::reader::{Cursor, Operand, Reader, untangle};
use super::tables::{Compute, match_compute};
use crate::parallel::{self, CHUNK};
use crate::{AnySlice, AnySliceMut, AnyView, Buffer, DType};
use sampan_formula::{Bound, Constant, Source};
use smallvec::SmallVec;

/// Bytes of a block, a few of which lie in the first-level cache.
const BLOCK: usize = 4096;
/// So few elements are computed on the stack.
const FEW: usize = 64;

/// `dst = f(inputs…)`, computed in the type of `dtype`; what is read and written is converted. Each input has the shape of the
/// result; broadcast axes have stride 0.
pub fn map(f: &Bound, dtype: DType, inputs: &[AnyView<'_>], dst: AnySliceMut<'_>) {
    assert_eq!(f.formula().inputs(), inputs.len(), "one input for each number of the formula");
    match_compute!(dtype, is_narrow(f), T => map_as::<T>(f, inputs, dst))
}

/// [`map`] of tensors that are contiguous and of the dtype that is computed in and written: the quick way for few elements.
pub fn map_slices(f: &Bound, dtype: DType, inputs: &[AnySlice<'_>], dst: AnySliceMut<'_>) {
    assert_eq!(f.formula().inputs(), inputs.len(), "one input for each number of the formula");
    match_compute!(dtype, is_narrow(f), T => slices_as::<T>(f, inputs, dst))
}

fn slices_as<T: Compute>(f: &Bound, inputs: &[AnySlice<'_>], dst: AnySliceMut<'_>) {
    let program = Program::<T>::of(f.formula());
    let constants = program.constants(f);
    let len = dst.len();
    let read = |s: &AnySlice<'_>| s.len() == len && s.dtype() == T::DTYPE;
    assert!(inputs.iter().all(read) && dst.dtype() == T::DTYPE, "slices of one length and dtype");
    let mut dst = dst;
    if len <= CHUNK && program.one_loop() {
        let operands: Operands<T> = inputs.iter().map(|s| Operand::Slice(s.of())).collect();
        let blocks = Blocks { work: &mut [], constants: &constants, operands: &operands, spread: &[] };
        if blocks.run_last(program, dst.again().of()) {
            return;
        }
    }
    let readers: SmallVec<[Reader<T>; 3]> = inputs.iter().map(|s| Reader::Slice(s.of())).collect();
    Job { program, constants: &constants, inputs: &readers }.over(dst)
}

/// Do all constants fit into 32 bits?
fn is_narrow(f: &Bound) -> bool {
    let fits = |v: f64| v.abs() < 2f64.powi(31);
    let literal = |s: &Source| if let Source::Literal(v) = s { fits(*v) } else { true };
    f.formula().values().iter().all(literal)
        && f.constants().iter().all(|c| match *c {
            Constant::Int(i) => i32::try_from(i).is_ok(),
            Constant::Float(v) | Constant::Complex(v, _) => fits(v),
        })
}

fn map_as<T: Compute>(f: &Bound, inputs: &[AnyView<'_>], dst: AnySliceMut<'_>) {
    let program = Program::<T>::of(f.formula());
    let constants = program.constants(f);
    let len = dst.len();
    let rows: Vec<Option<Buffer>> = match inputs.iter().all(|v| v.as_slice().is_some()) {
        true => Vec::new(),
        false => inputs.iter().map(|v| untangle(v, CHUNK / 4)).collect(),
    };
    let read = |k: usize| Reader::new(&inputs[k], len, rows.get(k).and_then(Option::as_ref));
    let run = |inputs: &[Reader<'_, T>]| Job { program, constants: &constants, inputs }.over(dst);
    // The common sizes live on the stack.
    match inputs.len() {
        1 => run(&[read(0)]),
        2 => run(&[read(0), read(1)]),
        3 => run(&[read(0), read(1), read(2)]),
        n => run(&(0..n).map(read).collect::<Vec<_>>()),
    }
}

/// A program with what it computes from.
struct Job<'a, 'i, T> {
    program: &'a Program<T>,
    constants: &'a [T],
    inputs: &'a [Reader<'i, T>],
}

impl<T: Compute> Job<'_, '_, T> {
    /// Cuts the result into pieces that threads share.
    fn over(&self, dst: AnySliceMut<'_>) {
        let Job { program, .. } = *self;
        let (dtype, len, size) = (dst.dtype(), dst.len(), dst.dtype().size());
        let bytes = dst.bytes();
        if len <= CHUNK {
            return self.piece(0, AnySliceMut::new(dtype, bytes));
        }
        let cost = program.steps.len().max(1);
        parallel::for_each_chunk_of_bytes(bytes, size, CHUNK, cost, |i, bytes| {
            self.piece(i * CHUNK, AnySliceMut::new(dtype, bytes));
        });
    }

    /// Computes the elements from `start` on.
    fn piece(&self, start: usize, mut dst: AnySliceMut<'_>) {
        let Job { program, constants, inputs } = *self;
        let (len, own) = (dst.len(), dst.dtype() == T::DTYPE);
        let compares = dst.dtype() == DType::Bool && program.comparison.is_some();
        if (compares || own && program.one_loop()) && !inputs.iter().any(Reader::needs_block) {
            // The tensors themselves are the blocks.
            let operands: Operands<T> =
                inputs.iter().map(|r| r.cursor(start, start + len).next(len, &mut [])).collect();
            let blocks = Blocks { work: &mut [], constants, operands: &operands, spread: &[] };
            let done = match compares {
                true => blocks.compare(program, dst.again().of()),
                false => blocks.run_last(program, dst.again().of()),
            };
            if done {
                return;
            }
        }
        let short = |y: &mut [T]| self.masked(start, y) || self.choose(start, y) || self.by_runs(start, y);
        if own && short(dst.again().of()) {
            return;
        }
        let spread: SmallVec<[Spread<T>; 4]> = program.spread(constants, inputs).collect();
        let count = program.blocks + inputs.len() + spread.len() + 1;
        if len <= FEW && count <= 8 {
            return self.by_blocks(&spread, start, dst, &mut [T::zeroed(); FEW * 8], FEW);
        }
        let block = (BLOCK / size_of::<T>()).min(len.max(1));
        let mut room = Buffer::uninit(count * block * size_of::<T>());
        self.by_blocks(&spread, start, dst, room.as_mut_slice(), block);
    }

    /// Runs a chain over a slice, or one number, and a mask that is read as it lies; false if it is none.
    fn masked(&self, start: usize, y: &mut [T]) -> bool {
        let Job { program, constants, inputs } = *self;
        const LANE: usize = 512;
        let Some(masked) = &program.masked else { return false };
        let [x, mask] = inputs else { return false };
        let Some(mask) = mask.mask() else { return false };
        let (mask, captured) = (&mask[start..start + y.len()], program.captured(constants));
        match x {
            Reader::Slice(x) => (masked.run)(&x[start..start + y.len()], mask, &captured, y),
            Reader::One(v) => {
                let x = [*v; LANE];
                for (y, mask) in y.chunks_mut(LANE).zip(mask.chunks(LANE)) {
                    (masked.run)(&x[..y.len()], mask, &captured, y);
                }
            }
            _ => return false,
        }
        true
    }

    /// Runs a choice by a mask that is read as it lies; false if it is none.
    fn choose(&self, start: usize, y: &mut [T]) -> bool {
        let Job { program, constants, inputs } = *self;
        let [Step { kind: Kind::Select, from: [Place::Input(c), a, b], .. }] = &program.steps[..] else { return false };
        let (Some(choice), Some(mask)) = (T::choice(), inputs[*c].mask()) else { return false };
        let mask = &mask[start..start + y.len()];
        let operand = |place: Place| match place {
            Place::Constant(i) => Some(Operand::One(constants[i])),
            Place::Input(i) => match &inputs[i] {
                Reader::Slice(data) => Some(Operand::Slice(&data[start..start + mask.len()])),
                Reader::One(v) => Some(Operand::One(*v)),
                _ => None,
            },
            Place::Block(_) => None,
        };
        match (operand(*a), operand(*b)) {
            (Some(Operand::Slice(a)), Some(Operand::Slice(b))) => (choice.slices)(mask, a, b, y),
            (Some(Operand::Slice(a)), Some(Operand::One(b))) => (choice.right)(mask, a, b, y),
            (Some(Operand::One(a)), Some(Operand::Slice(b))) => (choice.left)(mask, a, b, y),
            _ => return false,
        }
        true
    }

    /// Computes run by run: along rows that are read in place, or that are one number. False if the loop has no form for a
    /// number; nothing is written then.
    fn by_runs(&self, start: usize, dst: &mut [T]) -> bool {
        let Job { program, constants, inputs } = *self;
        const MOST: usize = 3;
        if inputs.len() > MOST || !program.one_loop() || !inputs.iter().all(Reader::has_runs) {
            return false;
        }
        let mut cursors: SmallVec<[Cursor<T>; MOST]> =
            inputs.iter().map(|r| r.cursor(start, start + dst.len())).collect();
        let mut operands = [Operand::One(T::zeroed()); MOST];
        let mut done = 0;
        while done < dst.len() {
            let mut n = dst.len() - done;
            for cursor in &cursors {
                n = n.min(cursor.run());
            }
            for (operand, cursor) in operands.iter_mut().zip(&mut cursors) {
                *operand = cursor.next_run(n);
            }
            let blocks = Blocks { work: &mut [], constants, operands: &operands[..inputs.len()], spread: &[] };
            if !blocks.run_last(program, &mut dst[done..done + n]) {
                return false;
            }
            done += n;
        }
        true
    }

    /// Computes block by block, with room for all blocks.
    fn by_blocks(&self, spread: &[Spread<T>], start: usize, dst: AnySliceMut<'_>, room: &mut [T], block: usize) {
        let Job { program, constants, inputs } = *self;
        let (dtype, len) = (dst.dtype(), dst.len());
        let mut rooms = room.chunks_exact_mut(block);
        let mut next = || rooms.next().expect("as much room as was counted");
        let mut work: SmallVec<[&mut [T]; 8]> = (0..program.blocks).map(|_| next()).collect();
        let mut read: SmallVec<[&mut [T]; 4]> = inputs.iter().map(|_| next()).collect();
        let filled: SmallVec<[(Place, &[T]); 4]> = spread
            .iter()
            .map(|s| {
                let room = next();
                room.fill(s.value);
                (s.place, &*room)
            })
            .collect();
        let narrow = next();
        let mut cursors: SmallVec<[Cursor<T>; 4]> = inputs.iter().map(|r| r.cursor(start, start + len)).collect();
        let size = dtype.size();
        for bytes in dst.bytes().chunks_mut(block * size) {
            let n = bytes.len() / size;
            let operands: Operands<T> =
                cursors.iter_mut().zip(read.iter_mut()).map(|(cursor, room)| cursor.next(n, room)).collect();
            let mut blocks = Blocks { work: &mut work, constants, operands: &operands, spread: &filled };
            if dtype == T::DTYPE {
                blocks.run(program, n, bytemuck::cast_slice_mut(bytes));
            } else {
                blocks.run(program, n, &mut narrow[..n]);
                T::store(&narrow[..n], AnySliceMut::new(dtype, bytes));
            }
        }
    }
}

/// A number that is laid out as a block.
struct Spread<T> {
    place: Place,
    value: T,
}

impl<T: Compute> Program<T> {
    /// The numbers that loops want as blocks.
    fn spread<'s>(&'s self, constants: &'s [T], inputs: &'s [Reader<'_, T>]) -> impl Iterator<Item = Spread<T>> + 's {
        let constants = constants.iter().enumerate().filter(|&(i, _)| self.spread_constants[i]);
        let inputs = inputs.iter().enumerate().filter(|&(i, _)| self.spread_inputs[i]);
        constants.map(|(i, &value)| Spread { place: Place::Constant(i), value }).chain(inputs.filter_map(
            |(i, reader)| match reader {
                Reader::One(value) => Some(Spread { place: Place::Input(i), value: *value }),
                _ => None,
            },
        ))
    }
}
