//! Inputs read block by block, in the type that is computed in.

use super::tables::Compute;
use crate::nest::{Nest, Walk, gather, within};
use crate::{AnySlice, AnySliceMut, AnyView, Bool, Buffer, Complex128, DType, Element};

/// How an input is read.
pub enum Reader<'a, T> {
    /// In place.
    Slice(&'a [T]),
    /// One number.
    One(T),
    /// Side by side, in another dtype.
    Other(AnySlice<'a>),
    /// A row that repeats, and its length.
    Row(Tile<'a, T>, usize),
    /// Along strides.
    Strided(AnySlice<'a>, Box<Nest<1>>, usize),
}

/// A large transposed input is brought into row-major order first: read along its long stride it would fetch a cache
/// line for every element.
pub fn untangle(v: &AnyView<'_>, least: usize) -> Option<Buffer> {
    let inner = v.shape.iter().zip(v.strides).rev().find(|&(&n, _)| n > 1);
    let far = inner.is_some_and(|(_, s)| s.unsigned_abs() >= 16);
    let transposed = far && v.strides.contains(&1) && !v.strides.contains(&0);
    if !transposed || v.len() < least {
        return None;
    }
    let mut copy = Buffer::uninit(v.len() * v.dtype().size());
    crate::copy::copy_strided(*v, AnySliceMut::new(v.dtype(), copy.bytes_mut()));
    Some(copy)
}

/// Rows from this length on are read where they are, shorter ones are written out to so many elements.
const LONG: usize = 256;
const TILE: usize = 1024;

/// A row, or several copies of it side by side.
pub enum Tile<'a, T> {
    Row(&'a [T]),
    Rows(Buffer),
}

impl<'a, T: Compute> Tile<'a, T> {
    fn new(row: AnySlice<'a>) -> Tile<'a, T> {
        let n = row.len();
        if n >= LONG && row.dtype() == T::DTYPE {
            return Tile::Row(row.of());
        }
        let mut rows = Buffer::uninit((TILE / n + 1) * n * size_of::<T>());
        let (first, rest) = rows.as_mut_slice::<T>().split_at_mut(n);
        T::load(row, first);
        rest.chunks_exact_mut(n).for_each(|next| next.copy_from_slice(first));
        Tile::Rows(rows)
    }

    fn get(&self) -> &[T] {
        match self {
            Tile::Row(row) => row,
            Tile::Rows(rows) => rows.as_slice(),
        }
    }
}

impl<'a, T: Compute> Reader<'a, T> {
    pub fn new(v: &AnyView<'a>, len: usize, rows: Option<&'a Buffer>) -> Reader<'a, T> {
        assert_eq!(v.len(), len, "an input has not as many elements as the output");
        let slice = rows.map(|b| AnySlice::new(v.dtype(), b.bytes())).or_else(|| v.as_slice());
        if let Some(data) = slice {
            return if v.dtype() == T::DTYPE { Reader::Slice(data.of()) } else { Reader::Other(data) };
        }
        if let Err(why) = within(v.data.len(), v.shape, v.strides, v.offset) {
            panic!("{why}");
        }
        if v.strides.iter().zip(v.shape).all(|(&s, &n)| s == 0 || n == 1) {
            let mut one = [T::zeroed()];
            T::load(v.data.part(v.offset..v.offset + 1), &mut one);
            return Reader::One(one[0]);
        }
        let nest = Nest::new(v.shape, [v.strides]);
        if nest.repeats_row(0) && nest.inner() <= 4 * TILE && len >= 2 * TILE {
            return Reader::Row(Tile::new(v.data.part(v.offset..v.offset + nest.inner())), nest.inner());
        }
        Reader::Strided(v.data, Box::new(nest), v.offset)
    }

    /// Truth values side by side.
    pub fn mask(&self) -> Option<&[Bool]> {
        match self {
            Reader::Other(data) if data.dtype() == DType::Bool => Some(data.of()),
            _ => None,
        }
    }

    /// Does it need room for a block?
    pub fn needs_block(&self) -> bool {
        matches!(self, Reader::Other(_) | Reader::Row(..) | Reader::Strided(..))
    }

    /// Can it be read row by row, each in place or one number?
    pub fn has_runs(&self) -> bool {
        match self {
            Reader::Slice(_) | Reader::One(_) | Reader::Row(..) => true,
            Reader::Other(_) => false,
            Reader::Strided(data, nest, _) => {
                data.dtype() == T::DTYPE && matches!(nest.inner_stride(0), 0 | 1) && nest.inner() >= 256
            }
        }
    }

    /// Reads elements from `start` to `end` on.
    pub fn cursor(&self, start: usize, end: usize) -> Cursor<'_, T> {
        match self {
            Reader::Slice(data) => Cursor::Slice(&data[start..end]),
            Reader::One(v) => Cursor::One(*v),
            Reader::Other(data) => Cursor::Other(data.part(start..end)),
            Reader::Row(tile, n) => Cursor::Row(tile.get(), *n, start % n),
            Reader::Strided(data, nest, offset) => {
                Cursor::Strided(*data, nest, Box::new(nest.walk([*offset], start, end)), None)
            }
        }
    }
}

/// A reader at work.
pub enum Cursor<'a, T> {
    Slice(&'a [T]),
    One(T),
    Other(AnySlice<'a>),
    /// A row over and over, its length, and where in it to go on.
    Row(&'a [T], usize, usize),
    /// With a value that fills the block, and where it came from.
    Strided(AnySlice<'a>, &'a Nest<1>, Box<Walk<'a, 1>>, Option<isize>),
}

/// An operand of a loop.
#[derive(Clone, Copy)]
pub enum Operand<'a, T> {
    Slice(&'a [T]),
    One(T),
}

impl<'a, T: Compute> Cursor<'a, T> {
    /// How many elements lie in a row from here on.
    pub fn run(&self) -> usize {
        match self {
            Cursor::Strided(_, _, walk, _) => walk.run(),
            Cursor::Row(tile, _, at) => tile.len() - at,
            _ => usize::MAX,
        }
    }

    /// The next `n` elements, which lie in a row.
    pub fn next_run(&mut self, n: usize) -> Operand<'a, T> {
        match self {
            Cursor::One(v) => Operand::One(*v),
            Cursor::Slice(data) => {
                let (now, rest) = data.split_at(n);
                *data = rest;
                Operand::Slice(now)
            }
            Cursor::Strided(data, nest, walk, _) => {
                let (_, [at]) = walk.next_run(n).expect("as many elements as were counted");
                let data = data.of::<T>();
                match nest.inner_stride(0) {
                    1 => Operand::Slice(&data[at as usize..at as usize + n]),
                    _ => Operand::One(data[at as usize]),
                }
            }
            Cursor::Row(tile, row, at) => {
                let now = &tile[*at..*at + n];
                *at = (*at + n) % *row;
                Operand::Slice(now)
            }
            Cursor::Other(_) => unreachable!("its elements are of another type"),
        }
    }

    /// The next `n` elements; `block` is room for them, which only this cursor writes.
    pub fn next<'b>(&mut self, n: usize, block: &'b mut [T]) -> Operand<'b, T>
    where
        'a: 'b,
    {
        match self {
            Cursor::One(v) => Operand::One(*v),
            Cursor::Slice(data) => {
                let (now, rest) = data.split_at(n);
                *data = rest;
                Operand::Slice(now)
            }
            Cursor::Other(data) => {
                T::load(data.part(0..n), &mut block[..n]);
                *data = data.part(n..data.len());
                Operand::Slice(&block[..n])
            }
            Cursor::Row(tile, _, at) if n <= tile.len() - *at => self.next_run(n),
            Cursor::Row(tile, row, at) => {
                let mut done = 0;
                while done < n {
                    let run = (tile.len() - *at).min(n - done);
                    block[done..done + run].copy_from_slice(&tile[*at..*at + run]);
                    *at = (*at + run) % *row;
                    done += run;
                }
                Operand::Slice(&block[..n])
            }
            Cursor::Strided(data, nest, walk, filled) => {
                let stride = nest.inner_stride(0);
                let same = data.dtype() == T::DTYPE;
                let mut done = 0;
                while done < n {
                    let Some((run, [at])) = walk.next_run(n - done) else { break };
                    if run == n && same && stride == 1 {
                        return Operand::Slice(&data.of::<T>()[at as usize..at as usize + n]);
                    }
                    if run == n && stride == 0 {
                        // The whole block, since a longer run of the same value may follow.
                        if *filled != Some(at) {
                            fetch(*data, at, 0, block);
                            *filled = Some(at);
                        }
                        return Operand::Slice(&block[..n]);
                    }
                    *filled = None;
                    fetch(*data, at, stride, &mut block[done..done + run]);
                    done += run;
                }
                Operand::Slice(&block[..n])
            }
        }
    }
}

/// Reads elements along a stride. The view they belong to has been checked.
fn fetch<T: Compute>(data: AnySlice<'_>, at: isize, stride: isize, dst: &mut [T]) {
    if data.dtype() == T::DTYPE {
        // SAFETY: `Reader::new` checked every position of the view.
        return unsafe { gather(data.of::<T>(), at, stride, dst) };
    }
    if stride == 0 {
        let mut one = [T::zeroed()];
        T::load(data.part(at as usize..at as usize + 1), &mut one);
        return dst.fill(one[0]);
    }
    if stride == 1 {
        return T::load(data.part(at as usize..at as usize + dst.len()), dst);
    }
    match data.dtype().size() {
        1 => convert::<u8, T>(data, at, stride, dst),
        2 => convert::<i16, T>(data, at, stride, dst),
        4 => convert::<i32, T>(data, at, stride, dst),
        8 => convert::<i64, T>(data, at, stride, dst),
        _ => convert::<Complex128, T>(data, at, stride, dst),
    }
}

/// Gathers elements by their size and converts them.
fn convert<S: Element, T: Compute>(data: AnySlice<'_>, mut at: isize, stride: isize, dst: &mut [T]) {
    const PIECE: usize = 64;
    let mut raw = [S::zeroed(); PIECE];
    for dst in dst.chunks_mut(PIECE) {
        let raw = &mut raw[..dst.len()];
        // SAFETY: `Reader::new` checked every position of the view.
        unsafe { gather(data.sized::<S>(), at, stride, raw) };
        T::load(AnySlice::new(data.dtype(), bytemuck::cast_slice(raw)), dst);
        at += stride * dst.len() as isize;
    }
}
