//! Runs a program over tensors.

use super::program::{Kind, Place, Program, Step};
use super::reader::{Cursor, Operand, Reader, untangle};
use super::tables::{Compute, match_compute};
use crate::parallel::{self, CHUNK};
use crate::{AnySlice, AnySliceMut, AnyView, Bool, Buffer, DType};
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
    over(program, &constants, &readers, dst)
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
    // The common sizes live on the stack.
    match inputs.len() {
        1 => over(program, &constants, &[read(0)], dst),
        2 => over(program, &constants, &[read(0), read(1)], dst),
        3 => over(program, &constants, &[read(0), read(1), read(2)], dst),
        n => over(program, &constants, &(0..n).map(read).collect::<Vec<_>>(), dst),
    }
}

/// Cuts the result into pieces that threads share.
fn over<T: Compute>(program: &Program<T>, constants: &[T], inputs: &[Reader<'_, T>], dst: AnySliceMut<'_>) {
    let (dtype, len, size) = (dst.dtype(), dst.len(), dst.dtype().size());
    let bytes = dst.bytes();
    if len <= CHUNK {
        return piece(program, constants, inputs, 0, AnySliceMut::new(dtype, bytes));
    }
    let cost = program.steps.len().max(1);
    parallel::for_each_chunk_of_bytes(bytes, size, CHUNK, cost, |i, bytes| {
        piece(program, constants, inputs, i * CHUNK, AnySliceMut::new(dtype, bytes));
    });
}

/// Computes the elements from `start` on.
fn piece<T: Compute>(
    program: &Program<T>,
    constants: &[T],
    inputs: &[Reader<'_, T>],
    start: usize,
    mut dst: AnySliceMut<'_>,
) {
    let len = dst.len();
    if dst.dtype() == DType::Bool && program.comparison.is_some() && !inputs.iter().any(Reader::needs_block) {
        let operands: Operands<T> = inputs.iter().map(|r| r.cursor(start, start + len).next(len, &mut [])).collect();
        let blocks = Blocks { work: &mut [], constants, operands: &operands, spread: &[] };
        if blocks.compare(program, dst.again().of()) {
            return;
        }
    }
    if dst.dtype() == T::DTYPE && masked(program, constants, inputs, start, dst.again().of()) {
        return;
    }
    if dst.dtype() == T::DTYPE && choose(program, constants, inputs, start, dst.again().of()) {
        return;
    }
    if dst.dtype() == T::DTYPE && !inputs.iter().any(Reader::needs_block) && program.one_loop() {
        // The tensors themselves are the blocks.
        let operands: Operands<T> = inputs.iter().map(|r| r.cursor(start, start + len).next(len, &mut [])).collect();
        let blocks = Blocks { work: &mut [], constants, operands: &operands, spread: &[] };
        if blocks.run_last(program, dst.again().of()) {
            return;
        }
    }
    let runs = dst.dtype() == T::DTYPE && program.one_loop() && inputs.iter().all(Reader::has_runs);
    if runs && by_runs(program, constants, inputs, start, dst.again().of()) {
        return;
    }
    let spread: SmallVec<[Spread<T>; 4]> = program.spread(constants, inputs).collect();
    let count = program.blocks + inputs.len() + spread.len() + 1;
    if len <= FEW && count <= 8 {
        return by_blocks(program, constants, inputs, &spread, start, dst, &mut [T::zeroed(); FEW * 8], FEW);
    }
    let block = (BLOCK / size_of::<T>()).min(len.max(1));
    let mut room = Buffer::uninit(count * block * size_of::<T>());
    by_blocks(program, constants, inputs, &spread, start, dst, room.as_mut_slice(), block);
}

/// Runs a chain over a slice, or one number, and a mask that is read as it lies; false if it is none.
fn masked<T: Compute>(
    program: &Program<T>,
    constants: &[T],
    inputs: &[Reader<'_, T>],
    start: usize,
    y: &mut [T],
) -> bool {
    const FEW: usize = 512;
    let Some(masked) = &program.masked else { return false };
    let [x, mask] = inputs else { return false };
    let Some(mask) = mask.mask() else { return false };
    let (mask, captured) = (&mask[start..start + y.len()], program.captured(constants));
    match x {
        Reader::Slice(x) => (masked.run)(&x[start..start + y.len()], mask, &captured, y),
        Reader::One(v) => {
            let x = [*v; FEW];
            for (y, mask) in y.chunks_mut(FEW).zip(mask.chunks(FEW)) {
                (masked.run)(&x[..y.len()], mask, &captured, y);
            }
        }
        _ => return false,
    }
    true
}

/// Runs a choice by a mask that is read as it lies; false if it is none.
fn choose<T: Compute>(
    program: &Program<T>,
    constants: &[T],
    inputs: &[Reader<'_, T>],
    start: usize,
    y: &mut [T],
) -> bool {
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
fn by_runs<T: Compute>(
    program: &Program<T>,
    constants: &[T],
    inputs: &[Reader<'_, T>],
    start: usize,
    dst: &mut [T],
) -> bool {
    const MOST: usize = 3;
    if inputs.len() > MOST {
        return false;
    }
    let mut cursors: SmallVec<[Cursor<T>; MOST]> = inputs.iter().map(|r| r.cursor(start, start + dst.len())).collect();
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
fn by_blocks<T: Compute>(
    program: &Program<T>,
    constants: &[T],
    inputs: &[Reader<'_, T>],
    spread: &[Spread<T>],
    start: usize,
    dst: AnySliceMut<'_>,
    room: &mut [T],
    block: usize,
) {
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

type Operands<'a, T> = SmallVec<[Operand<'a, T>; 4]>;

/// What the steps of a program read and write.
struct Blocks<'b, 'w, T> {
    work: &'b mut [&'w mut [T]],
    constants: &'b [T],
    operands: &'b [Operand<'b, T>],
    spread: &'b [(Place, &'b [T])],
}

impl<T: Compute> Blocks<'_, '_, T> {
    /// Computes `n` elements.
    fn run(&mut self, program: &Program<T>, n: usize, dst: &mut [T]) {
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
    fn run_last(&self, program: &Program<T>, dst: &mut [T]) -> bool {
        self.run_fused(program, dst) || matches!(&program.steps[..], [step] if self.step(step, dst))
    }

    /// Writes a comparison as truth values; false if its operands do not lie as its loops want them.
    fn compare(&self, program: &Program<T>, y: &mut [Bool]) -> bool {
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

/// A number that is laid out as a block.
struct Spread<T> {
    place: Place,
    value: T,
}

impl<T: Compute> Program<T> {
    /// Is one loop all there is to do?
    fn one_loop(&self) -> bool {
        self.fused.is_some() || self.steps.len() == 1
    }

    /// What the formula captured, among the constants.
    fn captured(&self, constants: &[T]) -> SmallVec<[T; 4]> {
        self.captured.iter().map(|&i| constants[i]).collect()
    }

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
