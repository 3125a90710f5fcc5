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

/// A function of one real number, for every real type.
pub trait RealFn1: Copy + Send + Sync {
    /// Arguments of a larger magnitude are computed in `f64`.
    const BEYOND: f64 = f64::INFINITY;
    /// Its value at `x`.
    fn call<T: Real>(self, x: T) -> T;
}

/// A function of two real numbers, for every real type.
pub trait RealFn2: Copy + Send + Sync {
    /// Its value at (`x`, `y`).
    fn call<T: Real>(self, x: T, y: T) -> T;
}

/// A functor for [`unary_real`] or [`binary_real`]: `real_fn!(|x| x * x.sigmoid())`, `real_fn!(|x, y| x.atan2(y))`,
/// with captured values `real_fn!([slope: f64] |x| select(x > T::ZERO, x, x * T::of(slope)))`. The body knows the
/// type as `T` and the function [`crate::vmath::select`]. `real_fn!(|x| x.sin(), beyond 1e9)` computes larger arguments
/// in `f64`.
#[macro_export]
macro_rules! real_fn {
    ($([$($cap:ident: $ct:ty),* $(,)?])? |$x:ident| $body:expr $(, beyond $far:expr)?) => {{
        $crate::real_fn!(@make [$($($cap: $ct),*)?] RealFn1 ($x) $body; $($far)?)
    }};
    ($([$($cap:ident: $ct:ty),* $(,)?])? |$x:ident, $y:ident| $body:expr) => {{
        $crate::real_fn!(@make [$($($cap: $ct),*)?] RealFn2 ($x, $y) $body;)
    }};
    (@make [$($cap:ident: $ct:ty),*] $tr:ident ($($x:ident),*) $body:expr; $($far:expr)?) => {{
        #[allow(unused_imports)]
        use $crate::vmath::select;
        #[derive(Clone, Copy)]
        struct Functor { $($cap: $ct),* }
        impl $crate::elementwise::$tr for Functor {
            $(const BEYOND: f64 = $far;)?
            #[inline(always)]
            fn call<T: $crate::vmath::Real>(self, $($x: T),*) -> T {
                let Functor { $($cap),* } = self;
                $body
            }
        }
        Functor { $($cap),* }
    }};
}

simd_fn! {
    fn loop1[F: RealFn1, T: Real](f: F, x: &'a [T], y: &'a mut [T]) {
        for (y, &x) in y.iter_mut().zip(x) {
            *y = f.call(x);
        }
        if F::BEYOND < f64::INFINITY && T::EPSILON.to_f64() > f64::EPSILON {
            let limit = T::of(F::BEYOND);
            let mut far = false;
            for &x in x {
                far |= x.abs() > limit;
            }
            if far {
                in_f64(f, x, y, limit);
            }
        }
    }
}

/// Computes in `f64` what lies beyond the limit.
#[cold]
#[inline(never)]
fn in_f64<T: Real>(f: impl RealFn1, x: &[T], y: &mut [T], limit: T) {
    for (y, &x) in y.iter_mut().zip(x) {
        if x.abs() > limit {
            *y = T::of(f.call(x.to_f64()));
        }
    }
}

simd_fn! {
    fn loop2[F: RealFn2, T: Real](f: F, a: &'a [T], b: &'a [T], y: &'a mut [T]) {
        for ((y, &a), &b) in y.iter_mut().zip(a).zip(b) {
            *y = f.call(a, b);
        }
    }
}

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

/// `dst = f(src)`.
pub fn unary_real<T: RealElement>(f: impl RealFn1, src: View<'_, T>, dst: &mut [T]) {
    if T::HALF {
        drive1(src, dst, &|x, y| {
            let mut out = [T::Wide::ZERO; BLOCK];
            crate::widen::blocks(x, |at, x| {
                let out = &mut out[..x.len()];
                loop1(f, x, out);
                T::narrow_slice(out, &mut y[at..at + x.len()]);
            });
        });
    } else {
        drive1(src, dst, &|x, y| loop1(f, bytemuck::cast_slice::<T, T::Wide>(x), bytemuck::cast_slice_mut(y)));
    }
}

/// `dst = f(a, b)`.
pub fn binary_real<T: RealElement>(f: impl RealFn2, a: View<'_, T>, b: View<'_, T>, dst: &mut [T]) {
    if T::HALF {
        drive2(a, b, dst, &|a, b, y| {
            let (mut wide, mut out) = ([T::Wide::ZERO; BLOCK], [T::Wide::ZERO; BLOCK]);
            crate::widen::blocks(a, |at, a| {
                let (wide, out) = (&mut wide[..a.len()], &mut out[..a.len()]);
                T::widen_slice(&b[at..at + a.len()], wide);
                loop2(f, a, wide, out);
                T::narrow_slice(out, &mut y[at..at + a.len()]);
            });
        });
    } else {
        drive2(a, b, dst, &|a, b, y| {
            loop2(f, bytemuck::cast_slice::<T, T::Wide>(a), bytemuck::cast_slice(b), bytemuck::cast_slice_mut(y));
        });
    }
}

/// A closure of one, two or three arguments as a path-named bound, which `simd_fn!` can take.
trait Map1<A, D>: Fn(A) -> D + Copy + Send + Sync {}
impl<A, D, F: Fn(A) -> D + Copy + Send + Sync> Map1<A, D> for F {}
trait Map2<A, B, D>: Fn(A, B) -> D + Copy + Send + Sync {}
impl<A, B, D, F: Fn(A, B) -> D + Copy + Send + Sync> Map2<A, B, D> for F {}
trait Map3<A, B, C, D>: Fn(A, B, C) -> D + Copy + Send + Sync {}
impl<A, B, C, D, F: Fn(A, B, C) -> D + Copy + Send + Sync> Map3<A, B, C, D> for F {}

simd_fn! {
    fn map_loop1[F: Map1<A, D>, A: Element, D: Element](f: F, a: &'a [A], y: &'a mut [D]) {
        for (y, &a) in y.iter_mut().zip(a) {
            *y = f(a);
        }
    }
}
simd_fn! {
    fn map_loop2[F: Map2<A, B, D>, A: Element, B: Element, D: Element](f: F, a: &'a [A], b: &'a [B], y: &'a mut [D]) {
        for ((y, &a), &b) in y.iter_mut().zip(a).zip(b) {
            *y = f(a, b);
        }
    }
}
simd_fn! {
    fn map_loop3[F: Map3<A, B, C, D>, A: Element, B: Element, C: Element, D: Element](
        f: F, a: &'a [A], b: &'a [B], c: &'a [C], y: &'a mut [D]
    ) {
        for (((y, &a), &b), &c) in y.iter_mut().zip(a).zip(b).zip(c) {
            *y = f(a, b, c);
        }
    }
}

/// `dst = f(src)` for any element types.
pub fn map1<A: Element, D: Element>(f: impl Fn(A) -> D + Copy + Send + Sync, src: View<'_, A>, dst: &mut [D]) {
    drive1(src, dst, &|a, y| map_loop1(f, a, y));
}

/// `dst = f(a, b)` for any element types.
pub fn map2<A: Element, B: Element, D: Element>(
    f: impl Fn(A, B) -> D + Copy + Send + Sync,
    a: View<'_, A>,
    b: View<'_, B>,
    dst: &mut [D],
) {
    drive2(a, b, dst, &|a, b, y| map_loop2(f, a, b, y));
}

/// `dst = f(a, b, c)` for any element types.
pub fn map3<A: Element, B: Element, C: Element, D: Element>(
    f: impl Fn(A, B, C) -> D + Copy + Send + Sync,
    a: View<'_, A>,
    b: View<'_, B>,
    c: View<'_, C>,
    dst: &mut [D],
) {
    drive3(a, b, c, dst, &|a, b, c, y| map_loop3(f, a, b, c, y));
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
    crate::copy::copy_strided_of(v, copy.as_mut_slice());
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
drive!(
    /// Calls `kernel(a, b, y)` on slices that together cover the inputs and the output in order.
    drive2, 2, strided2, a: A = 0, b: B = 1
);
drive!(
    /// Calls `kernel(a, b, c, y)` on slices that together cover the inputs and the output in order.
    drive3, 3, strided3, a: A = 0, b: B = 1, c: C = 2
);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{bf16, f16};

    /// Every element of a view in row-major order.
    fn list<T: Element>(v: View<'_, T>) -> Vec<T> {
        (0..v.len())
            .map(|mut i| {
                let mut at = v.offset as isize;
                for (&n, &s) in v.shape.iter().zip(v.strides).rev() {
                    at += (i % n) as isize * s;
                    i /= n;
                }
                v.data[at as usize]
            })
            .collect()
    }

    #[test]
    fn any_strides() {
        let data: Vec<f32> = (0..60_010).map(|i| (i as f32 * 0.37).sin()).collect();
        let cases: &[(&[usize], &[isize], &[isize], usize)] = &[
            (&[4, 5, 6], &[30, 6, 1], &[0, 0, 1], 0),
            (&[4, 5, 6], &[1, 4, 20], &[30, 6, 1], 0),
            (&[300, 200], &[200, 1], &[1, 0], 0),
            (&[300, 200], &[1, 300], &[0, 1], 0),
            (&[200, 300], &[-300, -1], &[300, 1], 59_999),
            (&[2, 3, 100, 7], &[2100, 700, 7, 1], &[0, 1, 0, 0], 0),
            (&[], &[], &[], 7),
            (&[0, 3], &[3, 1], &[0, 0], 0),
            (&[1, 5], &[9, 0], &[1, 1], 3),
        ];
        for &(shape, sa, sb, offset) in cases {
            let a = View { data: &data, shape, strides: sa, offset };
            let b = View { data: &data, shape, strides: sb, offset: 3 };
            let mut y = vec![0.0; a.len()];
            binary_real(real_fn!(|x, y| x * T::of(2.0) + y), a, b, &mut y);
            let want: Vec<f32> = list(a).iter().zip(list(b)).map(|(a, b)| a * 2.0 + b).collect();
            assert_eq!(y, want, "{shape:?} {sa:?} {sb:?}");
            unary_real(real_fn!(|x| x.abs()), a, &mut y);
            assert_eq!(y, list(a).iter().map(|a| a.abs()).collect::<Vec<_>>());
            let mut z = vec![0i32; a.len()];
            map3(|a: f32, b: f32, c: f32| (a > b) as i32 + (b > c) as i32, a, b, a, &mut z);
            assert_eq!(
                z,
                list(a).iter().zip(list(b)).map(|(&a, b)| (a > b) as i32 + (b > a) as i32).collect::<Vec<_>>()
            );
        }
    }

    #[test]
    fn half_goes_through_f32() {
        let shape = [1000];
        let strides = contiguous_strides(&shape);
        let slope = 0.1;
        let f = real_fn!([slope: f64] |x| select(x > T::ZERO, x.exp(), x * T::of(slope)));
        let x: Vec<f16> = (0..1000).map(|i| f16::from_f32(i as f32 / 200.0 - 2.0)).collect();
        let mut y = vec![f16::ZERO; 1000];
        unary_real(f, View::contiguous(&x, &shape, &strides), &mut y);
        for (x, y) in x.iter().zip(&y) {
            assert_eq!(*y, f16::from_f32(f.call(x.to_f32())));
        }
        let x: Vec<bf16> = x.iter().map(|x| bf16::from_f32(x.to_f32())).collect();
        let mut y = vec![bf16::ZERO; 1000];
        let v = View::contiguous(&x, &shape, &strides);
        binary_real(real_fn!(|a, b| a * b), v, v, &mut y);
        for (x, y) in x.iter().zip(&y) {
            assert_eq!(*y, bf16::from_f32(x.to_f32() * x.to_f32()));
        }
    }

    #[test]
    #[should_panic(expected = "a view reaches")]
    fn a_view_outside_its_data_is_refused() {
        let data = [0.0f32; 10];
        unary_real(real_fn!(|x| x), View { data: &data, shape: &[4], strides: &[3], offset: 2 }, &mut [0.0; 4]);
    }
}
