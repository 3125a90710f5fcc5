//! The index language: NumPy's, in Rust.
//!
//! | Python | Rust |
//! |---|---|
//! | `x[1]` | `x.get(1)` |
//! | `x[1:3, -1]` | `x.get((1..3, -1))` |
//! | `x[::2, ..., None]` | `x.get(i![..; 2, ..., None])` |
//! | `x[::-1]` | `x.get(i![..; -1])` |
//! | `x[mask]`, `x[[0, 2], :, rows]` | `x.get(&mask)`, `x.get(([0, 2], .., &rows))` |
//! | `x[1:] = v`, `x[mask] = 0` | `x.set(1.., &v)`, `x.set(&mask, 0)` |
//! | `np.add.at(x, i, v)` | `x.add_at(&i, &v)` |
//!
//! Integers, slices, `...` and `None` give views on the same memory. Integer tensors and boolean masks (advanced
//! indices) give copies; they are broadcast together, an integer beside them counts as one of them, and their axes
//! stand where they stood if they are side by side, else first.

use super::Tensor;
use crate::autograd::{grad_enabled, no_grad};
use crate::ops::indexing::{SetitemOpts, Skeleton, set_grads, write_at};
use crate::{Error, Operand, Result, Value};
use std::ops::{Range, RangeFrom, RangeFull, RangeInclusive, RangeTo, RangeToInclusive};

/// One part of an index, for one axis or several.
#[derive(Clone, Debug)]
pub enum Index {
    /// One position, counted from either end. The axis goes away.
    Int(i64),
    /// Positions from `start` to before `stop` in steps, as in Python: counted from either end, cut to the extent.
    Slice {
        /// The first position; the near end by default.
        start: Option<i64>,
        /// The position before which it ends; the far end by default.
        stop: Option<i64>,
        /// The step, negative to go backwards; 1 by default.
        step: Option<i64>,
    },
    /// As many whole axes as the rest of the index leaves.
    Ellipsis,
    /// A new axis of extent 1.
    NewAxis,
    /// Positions along one axis (integers), or a mask over as many axes as it has (bool).
    Tensor(Tensor),
    /// A mask without axes: a new axis of extent 1 or 0.
    Bool(bool),
}

impl Index {
    /// The whole axis.
    pub const ALL: Index = Index::Slice { start: None, stop: None, step: None };

    /// The slice in steps of `step`. Panics on what is no slice.
    ///
    /// ```
    /// # use sampan_core::{Index, Tensor};
    /// let x = Tensor::new([1i64, 2, 3, 4]);
    /// assert_eq!(x.get(Index::from(..).step(-2)).to_vec::<i64>(), [4, 2]);
    /// ```
    pub fn step(self, step: i64) -> Index {
        match self {
            Index::Slice { start, stop, .. } => Index::Slice { start, stop, step: Some(step) },
            other => panic!("a step belongs to a slice, not to {other:?}"),
        }
    }
}

macro_rules! from_int {
    ($($t:ty),*) => {$(
        impl From<$t> for Index {
            fn from(i: $t) -> Index { Index::Int(i as i64) }
        }
        impl From<Range<$t>> for Index {
            fn from(r: Range<$t>) -> Index { slice(Some(r.start as i64), Some(r.end as i64)) }
        }
        impl From<RangeFrom<$t>> for Index {
            fn from(r: RangeFrom<$t>) -> Index { slice(Some(r.start as i64), None) }
        }
        impl From<RangeTo<$t>> for Index {
            fn from(r: RangeTo<$t>) -> Index { slice(None, Some(r.end as i64)) }
        }
        impl From<RangeInclusive<$t>> for Index {
            fn from(r: RangeInclusive<$t>) -> Index { slice(Some(*r.start() as i64), after(*r.end() as i64)) }
        }
        impl From<RangeToInclusive<$t>> for Index {
            fn from(r: RangeToInclusive<$t>) -> Index { slice(None, after(r.end as i64)) }
        }
        impl<const N: usize> From<[$t; N]> for Index {
            fn from(a: [$t; N]) -> Index { Index::from(a.map(|i| i as i64).as_slice()) }
        }
        impl From<Vec<$t>> for Index {
            fn from(a: Vec<$t>) -> Index { Index::from(a.iter().map(|&i| i as i64).collect::<Vec<_>>().as_slice()) }
        }
    )*};
}
from_int!(i32, i64, usize);

fn slice(start: Option<i64>, stop: Option<i64>) -> Index {
    Index::Slice { start, stop, step: None }
}

/// The stop of a range that includes its last position: behind the last one of all there is no position.
fn after(last: i64) -> Option<i64> {
    (last != -1).then_some(last + 1)
}

impl From<RangeFull> for Index {
    fn from(_: RangeFull) -> Index {
        Index::ALL
    }
}
impl From<()> for Index {
    fn from(_: ()) -> Index {
        Index::ALL
    }
}
impl From<bool> for Index {
    fn from(b: bool) -> Index {
        Index::Bool(b)
    }
}
impl From<Tensor> for Index {
    fn from(t: Tensor) -> Index {
        Index::Tensor(t)
    }
}
impl From<&Tensor> for Index {
    fn from(t: &Tensor) -> Index {
        Index::Tensor(t.clone())
    }
}
impl From<&[i64]> for Index {
    fn from(a: &[i64]) -> Index {
        Index::Tensor(Tensor::new(a))
    }
}
impl<const N: usize> From<[bool; N]> for Index {
    fn from(a: [bool; N]) -> Index {
        Index::Tensor(Tensor::new(a))
    }
}

/// A whole index: one part, a tuple of parts, or what [`i!`](crate::i) makes.
pub trait IntoIndices {
    /// The parts in order.
    fn into_indices(self) -> Vec<Index>;
}
impl<T: Into<Index>> IntoIndices for T {
    fn into_indices(self) -> Vec<Index> {
        vec![self.into()]
    }
}
impl<const N: usize> IntoIndices for [Index; N] {
    fn into_indices(self) -> Vec<Index> {
        self.into()
    }
}
impl IntoIndices for Vec<Index> {
    fn into_indices(self) -> Vec<Index> {
        self
    }
}
impl IntoIndices for &[Index] {
    fn into_indices(self) -> Vec<Index> {
        self.to_vec()
    }
}
macro_rules! tuple {
    ($($t:ident $v:ident),*) => {
        impl<$($t: Into<Index>),*> IntoIndices for ($($t,)*) {
            fn into_indices(self) -> Vec<Index> {
                let ($($v,)*) = self;
                vec![$($v.into()),*]
            }
        }
    };
}
tuple!(A a);
tuple!(A a, B b);
tuple!(A a, B b, C c);
tuple!(A a, B b, C c, D d);
tuple!(A a, B b, C c, D d, E e);
tuple!(A a, B b, C c, D d, E e, F f);

/// An index with everything Python's brackets have: `..` for `:`, `...`, `None` for a new axis, `1..;2` for `1::2`.
///
/// ```
/// # use sampan_core::{i, Tensor};
/// let x = Tensor::new([[1i64, 2, 3], [4, 5, 6]]);
/// assert_eq!(x.get(i![.., ..; -2]).to_vec::<i64>(), [3, 1, 6, 4]);
/// assert_eq!(x.get(i![..., None, 0]).shape(), [2, 1]);
/// assert_eq!(x.get(i![1, [0, -1]]).to_vec::<i64>(), [4, 6]);
/// ```
#[macro_export]
macro_rules! i {
    (@ []) => {{ let whole: [$crate::Index; 0] = []; whole }};
    (@ [$($done:tt)+]) => { [$($done)+] };
    (@ [$($done:tt)*] ... $(, $($rest:tt)*)?) => {
        $crate::i!(@ [$($done)* $crate::Index::Ellipsis,] $($($rest)*)?)
    };
    (@ [$($done:tt)*] None $(, $($rest:tt)*)?) => {
        $crate::i!(@ [$($done)* $crate::Index::NewAxis,] $($($rest)*)?)
    };
    (@ [$($done:tt)*] $part:expr; $step:expr $(, $($rest:tt)*)?) => {
        $crate::i!(@ [$($done)* $crate::Index::from($part).step($step),] $($($rest)*)?)
    };
    (@ [$($done:tt)*] $part:expr $(, $($rest:tt)*)?) => {
        $crate::i!(@ [$($done)* $crate::Index::from($part),] $($($rest)*)?)
    };
    ($($parts:tt)*) => { $crate::i!(@ [] $($parts)*) };
}

/// The encoding of an index as a [`Value`], which `getitem` and `setitem` take: a `List` with one value for each part,
/// `Int`, `Bool`, `Tensor`, `None` for a new axis, `Str("...")` for an ellipsis, and a `List` of three, each `Int` or
/// `None`, for the start, stop and step of a slice.
impl From<Index> for Value {
    fn from(index: Index) -> Value {
        match index {
            Index::Int(i) => Value::Int(i),
            Index::Slice { start, stop, step } => Value::List([start, stop, step].map(Value::optional).into()),
            Index::Ellipsis => "...".into(),
            Index::NewAxis => Value::None,
            Index::Tensor(t) => Value::Tensor(t),
            Index::Bool(b) => Value::Bool(b),
        }
    }
}
impl From<Vec<Index>> for Value {
    fn from(index: Vec<Index>) -> Value {
        Value::List(index.into_iter().map(Value::from).collect())
    }
}
impl<const N: usize> From<[Index; N]> for Value {
    fn from(index: [Index; N]) -> Value {
        Vec::from(index).into()
    }
}

/// Reads one part of an index back from its encoding.
impl TryFrom<&Value> for Index {
    type Error = Error;
    fn try_from(value: &Value) -> Result<Index> {
        let bound = |v: &Value| match v {
            Value::None => Ok(None),
            Value::Int(i) => Ok(Some(*i)),
            Value::Bool(b) => Ok(Some(*b as i64)),
            Value::Tensor(t) if t.numel() == 1 && t.dtype().is_int() => Ok(Some(t.try_item()?.to_i64())),
            other => Err(Error::dtype(format!("a slice goes from int to int, got {}", other.type_name()))),
        };
        Ok(match value {
            Value::Int(i) => Index::Int(*i),
            Value::Bool(b) => Index::Bool(*b),
            Value::None => Index::NewAxis,
            Value::Tensor(t) => Index::Tensor(t.clone()),
            Value::Ints(list) => Index::from(list.as_slice()),
            Value::Str(s) if &**s == "..." => Index::Ellipsis,
            Value::List(parts) if parts.len() == 3 => {
                Index::Slice { start: bound(&parts[0])?, stop: bound(&parts[1])?, step: bound(&parts[2])? }
            }
            other => {
                return Err(Error::dtype(format!("{} is no index", other.type_name()))
                    .hint("an index is an int, a slice, ..., None, a bool, or a tensor of integers or bools"));
            }
        })
    }
}

/// Reads a whole index back from its encoding; a single part need not stand in a list, and a list of ints or tensors
/// may be the plain kind.
pub(crate) fn decode(value: &Value) -> Result<Vec<Index>> {
    match value {
        Value::List(parts) => parts.iter().map(Index::try_from).collect(),
        Value::Ints(list) => Ok(list.iter().map(|&i| Index::Int(i)).collect()),
        Value::Tensors(list) => Ok(list.iter().map(Index::from).collect()),
        single => Ok(vec![Index::try_from(single)?]),
    }
}

/// The op that an index assignment is.
pub(super) const SETITEM: &str = "setitem";

impl Tensor {
    /// The part of the tensor that an index names, as NumPy has it; see the [module](self).
    ///
    /// ```
    /// # use sampan_core::Tensor;
    /// let x = Tensor::new([[1i64, 2, 3], [4, 5, 6]]);
    /// assert_eq!(x.get((1, ..2)).to_vec::<i64>(), [4, 5]);
    /// assert_eq!(x.get((.., [2, 0])).to_vec::<i64>(), [3, 1, 6, 4]);
    /// assert_eq!(x.get(&Tensor::new([[true, false, false], [false, true, true]])).to_vec::<i64>(), [1, 5, 6]);
    /// ```
    #[track_caller]
    pub fn get(&self, index: impl IntoIndices) -> Tensor {
        crate::error::unwrap(self.try_get(index))
    }

    /// Like [`get`](Self::get), returning the error instead of panicking.
    #[track_caller]
    pub fn try_get(&self, index: impl IntoIndices) -> Result<Tensor> {
        self.try_getitem(index.into_indices())
    }

    /// Writes `value`, a number or a tensor that broadcasts, to the part of the tensor that an index names. Only that
    /// part of the memory is touched. Gradients flow to the value and no longer to what was overwritten.
    ///
    /// ```
    /// # use sampan_core::{i, Tensor};
    /// let mut x = Tensor::new([[1i64, 2, 3], [4, 5, 6]]);
    /// x.set((.., 0), 9).set(i![1, 1..], &Tensor::new([7i64, 8]));
    /// assert_eq!(x.to_vec::<i64>(), [9, 2, 3, 9, 7, 8]);
    /// ```
    #[track_caller]
    pub fn set(&mut self, index: impl IntoIndices, value: impl Into<Operand>) -> &mut Tensor {
        crate::error::unwrap(self.try_set(index, value));
        self
    }

    /// Like [`set`](Self::set), returning the error instead of panicking.
    #[track_caller]
    pub fn try_set(&mut self, index: impl IntoIndices, value: impl Into<Operand>) -> Result<()> {
        self.write_index(index.into_indices(), value.into(), false)
    }

    /// Adds `value` to the part of the tensor that an index names; where positions repeat, each counts.
    ///
    /// ```
    /// # use sampan_core::Tensor;
    /// let mut x = Tensor::new([0i64, 0, 0]);
    /// x.add_at([1, 1, 2], 5);
    /// assert_eq!(x.to_vec::<i64>(), [0, 10, 5]);
    /// ```
    #[track_caller]
    pub fn add_at(&mut self, index: impl IntoIndices, value: impl Into<Operand>) -> &mut Tensor {
        crate::error::unwrap(self.try_add_at(index, value));
        self
    }

    /// Like [`add_at`](Self::add_at), returning the error instead of panicking.
    #[track_caller]
    pub fn try_add_at(&mut self, index: impl IntoIndices, value: impl Into<Operand>) -> Result<()> {
        self.write_index(index.into_indices(), value.into(), true)
    }

    /// [`set`](Self::set) or [`add_at`](Self::add_at) with an encoded index: what `x[index] = value` in Python calls.
    #[track_caller]
    pub fn try_setitem_(&mut self, index: &Value, value: impl Into<Operand>, accumulate: bool) -> Result<()> {
        self.write_index(decode(index).map_err(|e| e.in_op(SETITEM))?, value.into(), accumulate)
    }

    #[track_caller]
    fn write_index(&mut self, index: Vec<Index>, value: Operand, accumulate: bool) -> Result<()> {
        if crate::dispatch::listening() {
            // Whoever watches the calls must see one that says all: the op, and a copy of its result.
            let options = SetitemOpts::new().accumulate(accumulate);
            return self.replaced_by(SETITEM, |x| x.try_setitem_with(index, value, options));
        }
        let wanted = self.requires_grad() || value.tensor().is_some_and(Tensor::requires_grad);
        let tracked = grad_enabled() && wanted && self.dtype().is_inexact();
        self.check_inplace(SETITEM)?;
        self.own_places();
        let mut value = value;
        if tracked {
            *self = self.current()?;
            if let Operand::Tensor(t) = &mut value {
                *t = t.current()?;
            }
        }
        crate::dispatch::outermost(|| no_grad(|| write_at(self, &index, &value, accumulate)))
            .map_err(|e| e.in_op(SETITEM).received(format!("x={}", self.describe())))?;
        self.storage().bump();
        if tracked {
            self.record_write(&index, &value, accumulate);
        }
        Ok(())
    }

    /// Hangs the node of a write on this handle.
    fn record_write(&mut self, index: &[Index], value: &Operand, accumulate: bool) {
        let (skeleton, kept) = Skeleton::new(index);
        let shape = value.tensor().map(Tensor::shape_vec);
        let mut inputs = vec![&*self];
        inputs.extend(&kept);
        inputs.extend(value.tensor());
        let fresh = self.detach();
        let saved: Vec<&Tensor> = kept.iter().collect();
        let formula =
            move |g: &crate::autograd::Grad| set_grads(g, &skeleton, shape.as_deref(), accumulate).map(Into::into);
        let out = super::grad::attach_custom(SETITEM, &inputs, vec![fresh], &saved, formula);
        self.adopt(out[0].history().cloned().expect("a recorded call leaves a history"));
    }
}
