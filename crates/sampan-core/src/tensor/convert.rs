//! Tensors from Rust values and back, and the way over the first axis.
//!
//! There is no `PartialEq` on purpose: `a == b` would have to be one truth value, while people who write it on tensors
//! mean one for each element, and on floats they mean "close". `equal`, `equal_all` and `allclose` say which.

use super::{FromNested, Tensor};
use crate::dispatch::reading;
use crate::{Complex128, Element, Error, Result, Scalar};

/// The same as [`Tensor::new`]: numbers, arrays, vectors, slices, and these nested.
///
/// ```
/// # use sampan_core::Tensor;
/// let x: Tensor = vec![[1i64, 2], [3, 4]].into();
/// assert_eq!(x.shape(), [2, 2]);
/// ```
impl<N: FromNested> From<N> for Tensor {
    #[track_caller]
    fn from(nested: N) -> Tensor {
        Tensor::new(nested)
    }
}

/// The values in row-major order, if they are of type `T`.
///
/// ```
/// # use sampan_core::Tensor;
/// let v: Vec<f32> = (&Tensor::new([1.0f32, 2.0])).try_into().unwrap();
/// assert_eq!(v, [1.0, 2.0]);
/// ```
impl<T: Element> TryFrom<&Tensor> for Vec<T> {
    type Error = Error;
    fn try_from(t: &Tensor) -> Result<Vec<T>> {
        t.try_to_vec()
    }
}

fn refuse(t: &Tensor, to: &str) -> Error {
    Error::dtype(format!("a {} tensor is no {to}", t.dtype())).hint("cast it first").in_op("item")
}

macro_rules! number {
    ($($t:ty, $name:literal, $s:ident => $e:expr;)*) => {$(
        /// The one value of a tensor with one element.
        impl TryFrom<&Tensor> for $t {
            type Error = Error;
            fn try_from(t: &Tensor) -> Result<$t> {
                let $s = reading(t, $name, || t.try_item())?;
                let value: Option<$t> = $e;
                value.ok_or_else(|| refuse(t, $name))
            }
        }
    )*};
}
number! {
    f64, "float", s => real(s);
    f32, "float", s => real(s).map(|v| v as f32);
    i64, "int", s => whole(s);
    i32, "int32", s => whole(s).and_then(|v| i32::try_from(v).ok());
    usize, "index", s => whole(s).and_then(|v| usize::try_from(v).ok());
    bool, "bool", s => if let Scalar::Bool(b) = s { Some(b) } else { None };
    Complex128, "complex", s => Some(s.to());
    Scalar, "number", s => Some(s);
}

fn real(s: Scalar) -> Option<f64> {
    (!matches!(s, Scalar::Complex(_))).then(|| s.to_f64())
}

fn whole(s: Scalar) -> Option<i64> {
    matches!(s, Scalar::Bool(_) | Scalar::Int(_)).then(|| s.to_i64())
}

/// The parts of a tensor along its first axis, each a view.
#[derive(Clone)]
pub struct Rows<'a> {
    tensor: &'a Tensor,
    range: std::ops::Range<usize>,
}

impl Rows<'_> {
    fn at(&self, i: usize) -> Tensor {
        crate::error::unwrap(self.tensor.try_select(0, i))
    }
}

impl Iterator for Rows<'_> {
    type Item = Tensor;
    fn next(&mut self) -> Option<Tensor> {
        self.range.next().map(|i| self.at(i))
    }
    fn size_hint(&self) -> (usize, Option<usize>) {
        self.range.size_hint()
    }
    fn nth(&mut self, n: usize) -> Option<Tensor> {
        self.range.nth(n).map(|i| self.at(i))
    }
}
impl DoubleEndedIterator for Rows<'_> {
    fn next_back(&mut self) -> Option<Tensor> {
        self.range.next_back().map(|i| self.at(i))
    }
}
impl ExactSizeIterator for Rows<'_> {}

impl<'a> IntoIterator for &'a Tensor {
    type Item = Tensor;
    type IntoIter = Rows<'a>;
    #[track_caller]
    fn into_iter(self) -> Rows<'a> {
        self.iter()
    }
}

impl Tensor {
    /// The parts along the first axis, each a view. Panics on a 0-d tensor, which has none.
    ///
    /// ```
    /// # use sampan_core::Tensor;
    /// let x = Tensor::new([[1i64, 2], [3, 4]]);
    /// let sums: Vec<i64> = x.iter().map(|row| i64::try_from(&row.sum(())).unwrap()).collect();
    /// assert_eq!(sums, [3, 7]);
    /// ```
    #[track_caller]
    pub fn iter(&self) -> Rows<'_> {
        crate::error::unwrap(self.try_iter())
    }

    /// The parts along the first axis, or an error for a 0-d tensor.
    pub fn try_iter(&self) -> Result<Rows<'_>> {
        match self.shape().first() {
            Some(&n) => Ok(Rows { tensor: self, range: 0..n }),
            None => Err(Error::dtype("a 0-d tensor has no axis to go along").hint("item() is its value").in_op("iter")),
        }
    }

    /// The number at an index, one position for each axis; negative positions count from the end.
    ///
    /// ```
    /// # use sampan_core::{Scalar, Tensor};
    /// assert_eq!(Tensor::new([[1i64, 2], [3, 4]]).item_at([1, -1]).unwrap(), Scalar::Int(4));
    /// ```
    pub fn item_at(&self, index: impl AsRef<[i64]>) -> Result<Scalar> {
        let index = index.as_ref();
        if index.len() != self.ndim() {
            return Err(Error::range(format!("{} positions for {} axes", index.len(), self.ndim())).in_op("item"));
        }
        let mut layout = self.layout().clone();
        for (axis, (&i, &n)) in index.iter().zip(self.shape()).enumerate() {
            let at = if i < 0 { i + n as i64 } else { i };
            if at < 0 || at >= n as i64 {
                return Err(Error::range(format!("position {i} lies outside axis {axis} of extent {n}")).in_op("item"));
            }
            layout.offset = (layout.offset as isize + at as isize * layout.strides[axis]) as usize;
        }
        layout.shape.clear();
        layout.strides.clear();
        self.view(layout).try_item()
    }
}

#[cfg(feature = "ndarray")]
mod with_ndarray {
    use super::*;
    use ndarray::{Array, ArrayD, Dimension};

    /// Any memory order; the tensor is row-major.
    impl<T: Element, D: Dimension> From<Array<T, D>> for Tensor {
        fn from(a: Array<T, D>) -> Tensor {
            let shape = a.shape().to_vec();
            match a.as_slice() {
                Some(values) => Tensor::try_from_slice(values, shape),
                None => Tensor::try_from_slice(&a.iter().copied().collect::<Vec<T>>(), shape),
            }
            .expect("an array has as many elements as its shape says")
        }
    }

    impl<T: Element> TryFrom<&Tensor> for ArrayD<T> {
        type Error = Error;
        fn try_from(t: &Tensor) -> Result<ArrayD<T>> {
            let values: Vec<T> = t.try_to_vec()?;
            Ok(ArrayD::from_shape_vec(t.shape().to_vec(), values).expect("a tensor fills its shape"))
        }
    }
}
