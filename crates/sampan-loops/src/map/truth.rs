//! Loops that write or read truth values as they lie in memory: comparisons, and a choice by a mask.

use crate::simd::simd_fn;
use crate::vmath::select;
use crate::{Bool, Element};
use sampan_formula::Binary;

/// A comparison of two slices, and of a slice with one number.
#[derive(Clone, Copy)]
pub struct Comparison<T> {
    pub slices: for<'a> fn(&'a [T], &'a [T], &'a mut [Bool]),
    pub right: for<'a> fn(&'a [T], T, &'a mut [Bool]),
}

macro_rules! compare {
    (|$x:ident, $y:ident| $e:expr) => {{
        simd_fn! {
            fn slices[T: Comparable](a: &'a [T], b: &'a [T], y: &'a mut [Bool]) {
                for ((y, &$x), &$y) in y.iter_mut().zip(a).zip(b) {
                    *y = Bool(($e) as u8);
                }
            }
        }
        simd_fn! {
            fn right[T: Comparable](a: &'a [T], $y: T, y: &'a mut [Bool]) {
                for (y, &$x) in y.iter_mut().zip(a) {
                    *y = Bool(($e) as u8);
                }
            }
        }
        Some(Comparison { slices: slices::<T>, right: right::<T> })
    }};
}

/// Numbers that have an order.
pub trait Comparable: Element + PartialOrd {}
impl<T: Element + PartialOrd> Comparable for T {}

/// The loops of a comparison; `None` if the operation is another one.
pub fn comparison<T: Comparable>(op: Binary) -> Option<Comparison<T>> {
    match op {
        Binary::Lt => compare!(|x, y| x < y),
        Binary::Le => compare!(|x, y| x <= y),
        Binary::Gt => compare!(|x, y| x > y),
        Binary::Ge => compare!(|x, y| x >= y),
        Binary::Eq => compare!(|x, y| x == y),
        Binary::Ne => compare!(|x, y| x != y),
        _ => None,
    }
}

/// A choice by a mask, between two slices or a slice and one number.
#[derive(Clone, Copy)]
pub struct Choice<T> {
    pub slices: for<'a> fn(&'a [Bool], &'a [T], &'a [T], &'a mut [T]),
    pub right: for<'a> fn(&'a [Bool], &'a [T], T, &'a mut [T]),
    pub left: for<'a> fn(&'a [Bool], T, &'a [T], &'a mut [T]),
}

/// The loops of a choice.
pub fn choice<T: Comparable>() -> Choice<T> {
    Choice { slices: choose::<T>, right: choose_right::<T>, left: choose_left::<T> }
}

simd_fn! {
    fn choose[T: Comparable](c: &'a [Bool], a: &'a [T], b: &'a [T], y: &'a mut [T]) {
        for (((y, &c), &a), &b) in y.iter_mut().zip(c).zip(a).zip(b) {
            *y = select(c.0 != 0, a, b);
        }
    }
}
simd_fn! {
    fn choose_right[T: Comparable](c: &'a [Bool], a: &'a [T], b: T, y: &'a mut [T]) {
        for ((y, &c), &a) in y.iter_mut().zip(c).zip(a) {
            *y = select(c.0 != 0, a, b);
        }
    }
}
simd_fn! {
    fn choose_left[T: Comparable](c: &'a [Bool], a: T, b: &'a [T], y: &'a mut [T]) {
        for ((y, &c), &b) in y.iter_mut().zip(c).zip(b) {
            *y = select(c.0 != 0, a, b);
        }
    }
}
