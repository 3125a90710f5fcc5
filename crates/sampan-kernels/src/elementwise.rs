//! Elementwise ops on strided views. The output is row-major; inputs carry the output's shape with any strides (zero
//! where they are broadcast). An op is a functor instantiated for loops over `f32` and `f64` slices only: half types go
//! through `f32` in blocks, and inputs without unit stride are gathered into blocks first, so little code is generated
//! for each op.

use crate::nest::{Nest, check_bounds, gather};
use crate::simd::simd_fn;
use crate::view::contiguous_strides;
use crate::vmath::Real;
use crate::{Buffer, Element, View, parallel};

pub use crate::widen::{BLOCK, RealElement};

/// Elements of one parallel piece. Fixed, so that the cut never depends on the number of threads.
pub const CHUNK: usize = 1 << 14;
/// Rows shorter than this are gathered together into blocks rather than handed to the kernel one by one.
const SHORT: usize = 64;

simd_fn! {
    fn add_loop[T: Real](x: &'a [T], y: &'a mut [T]) {
        for (y, &x) in y.iter_mut().zip(x) {
            *y += x;
        }
    }
}

/// `dst += src`.
pub fn add_assign<T: Real>(src: &[T], dst: &mut [T]) {
    assert_eq!(src.len(), dst.len(), "sums of different lengths");
    parallel::for_each_chunk_mut(dst, CHUNK, 1, |i, y| add_loop(&src[i * CHUNK..][..y.len()], y));
}

/// A closure of one, two or three arguments as a path-named bound, which `simd_fn!` can take.
trait Map1<A, D>: Fn(A) -> D + Copy + Send + Sync {}
impl<A, D, F: Fn(A) -> D + Copy + Send + Sync> Map1<A, D> for F {}
simd_fn! {
    fn map_loop1[F: Map1<A, D>, A: Element, D: Element](f: F, a: &'a [A], y: &'a mut [D]) {
        for (y, &a) in y.iter_mut().zip(a) {
            *y = f(a);
        }
    }
}
/// `dst = f(src)` for any element types.
pub fn map1<A: Element, D: Element>(f: impl Fn(A) -> D + Copy + Send + Sync, src: View<'_, A>, dst: &mut [D]) {
    drive1(src, dst, &|a, y| map_loop1(f, a, y));
}

/// One input of a strided walk: hands out its elements as slices.
struct Operand<'a, T> {
    data: &'a [T],
    stride: isize,
    block: [T; BLOCK],
    /// Where the broadcast value that fills `block` came from.
    filled: isize,
}

impl<'a, T: Element> Operand<'a, T> {
    fn new(data: &'a [T], stride: isize) -> Self {
        Operand { data, stride, block: [T::zeroed(); BLOCK], filled: -1 }
    }

    /// `run ≤ BLOCK` elements from `at` on.
    ///
    /// # Safety
    /// All of them lie inside the data.
    unsafe fn run(&mut self, at: isize, run: usize) -> &[T] {
        // SAFETY: the caller promises that `at + i·stride` is inside the data for every `i < run`.
        unsafe {
            match self.stride {
                1 => return self.data.get_unchecked(at as usize..at as usize + run),
                0 if self.filled == at => {}
                0 => {
                    // The whole block: a longer run of the same value may follow.
                    gather(self.data, at, 0, &mut self.block);
                    self.filled = at;
                }
                stride => gather(self.data, at, stride, &mut self.block[..run]),
            }
        }
        &self.block[..run]
    }
}

/// A large transposed input is brought into row-major order first: read along its long stride it would fetch a cache
/// line for every element.
fn untangle<'v, T: Element>(v: View<'v, T>, room: &'v mut Option<(Buffer, Vec<isize>)>) -> View<'v, T> {
    let inner = v.shape.iter().zip(v.strides).rev().find(|&(&n, _)| n > 1);
    let far = inner.is_some_and(|(_, s)| s.unsigned_abs() >= 16);
    let transposed = far && v.strides.contains(&1) && !v.strides.contains(&0);
    if !transposed || v.len() < CHUNK / 4 {
        return v;
    }
    let mut copy = Buffer::uninit(v.len() * size_of::<T>());
    crate::copy::copy_strided(v, copy.as_mut_slice());
    let (copy, strides) = room.insert((copy, contiguous_strides(v.shape)));
    View { data: copy.as_slice(), shape: v.shape, strides, offset: 0 }
}

/// Defines `drive(inputs…, dst, kernel)`: calls `kernel` on slices that together cover every element in order.
macro_rules! drive {
    ($(#[$m:meta])* $name:ident, $n:literal, $strided:ident, $($v:ident: $T:ident = $k:literal),*) => {
        $(#[$m])*
        pub fn $name<$($T: Element,)* D: Element>(
            $($v: View<'_, $T>,)*
            dst: &mut [D],
            kernel: &(dyn Fn($(&[$T],)* &mut [D]) + Sync),
        ) {
            $(assert_eq!($v.len(), dst.len(), "an input has not as many elements as the output");)*
            if let ($(Some($v),)*) = ($($v.as_slice(),)*) {
                if dst.len() <= CHUNK {
                    return kernel($($v,)* dst);
                }
                return parallel::for_each_chunk_mut(dst, CHUNK, 1, |i, y| {
                    let at = i * CHUNK..i * CHUNK + y.len();
                    kernel($(&$v[at.clone()],)* y);
                });
            }
            $strided($($v,)* dst, kernel);
        }

        fn $strided<$($T: Element,)* D: Element>(
            $($v: View<'_, $T>,)*
            dst: &mut [D],
            kernel: &(dyn Fn($(&[$T],)* &mut [D]) + Sync),
        ) {
            $(check_bounds(&$v);)*
            $(
                let mut room = None;
                let $v = untangle($v, &mut room);
            )*
            let shape = drive!(@first $($v.shape),*);
            $(assert_eq!($v.shape, shape, "inputs of different shapes");)*
            let nest = Nest::<$n>::new(shape, [$($v.strides),*]);
            let base = [$($v.offset),*];
            if dst.len() <= SHORT {
                // So few elements that setting up whole blocks would cost more than the rest.
                $(let mut $v = ($v.data, [$T::zeroed(); SHORT]);)*
                let mut walk = nest.walk(base, 0, dst.len());
                let mut done = 0;
                while let Some((run, at)) = walk.next_run(SHORT) {
                    // SAFETY: `check_bounds` covered every position of the walk.
                    $(unsafe { gather($v.0, at[$k], nest.inner_stride($k), &mut $v.1[done..done + run]) };)*
                    done += run;
                }
                return kernel($(&$v.1[..done],)* dst);
            }
            let short = nest.inner() < SHORT;
            // Where no input needs a block, rows go to the kernel whole.
            let limit = if (0..$n).all(|k| nest.inner_stride(k) == 1) { CHUNK } else { BLOCK };
            parallel::for_each_chunk_mut(dst, CHUNK, 1, |i, y| {
                let start = i * CHUNK;
                let mut walk = nest.walk(base, start, start + y.len());
                $(let mut $v = Operand::new($v.data, nest.inner_stride($k));)*
                if short {
                    for y in y.chunks_mut(BLOCK) {
                        let mut done = 0;
                        while done < y.len() {
                            let Some((run, at)) = walk.next_run(y.len() - done) else { break };
                            // SAFETY: `check_bounds` covered every position of the walk.
                            $(unsafe { gather($v.data, at[$k], $v.stride, &mut $v.block[done..done + run]) };)*
                            done += run;
                        }
                        kernel($(&$v.block[..done],)* y);
                    }
                } else {
                    let mut done = 0;
                    while let Some((run, at)) = walk.next_run(limit) {
                        // SAFETY: `check_bounds` covered every position of the walk.
                        kernel($(unsafe { $v.run(at[$k], run) },)* &mut y[done..done + run]);
                        done += run;
                    }
                }
            });
        }
    };
    (@first $a:expr $(, $rest:expr)*) => { $a };
}
drive!(
    /// Calls `kernel(x, y)` on slices that together cover the input and the output in order.
    drive1, 1, strided1, a: A = 0
);
