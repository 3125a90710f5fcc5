//! Shapes, strides and broadcasting.

use crate::value::Arg;
use crate::{Error, Ints, Result, Value};
use sampan_kernels::buffer;
use sampan_macros::function;
use smallvec::SmallVec;

/// Extents of the axes of a tensor.
pub type Shape = SmallVec<[usize; 5]>;
/// Steps of the axes of a tensor, in elements.
pub type Strides = SmallVec<[isize; 5]>;

/// Where the elements of a tensor lie in its storage.
#[derive(Clone, Debug, PartialEq)]
pub struct Layout {
    /// Extent of each axis.
    pub shape: Shape,
    /// Step of each axis in elements; zero for a broadcast axis, negative for a reversed one.
    pub strides: Strides,
    /// Position of the first element.
    pub offset: usize,
}

impl Layout {
    /// Row-major without gaps.
    pub fn contiguous(shape: impl AsRef<[usize]>) -> Layout {
        let shape = Shape::from_slice(shape.as_ref());
        let mut strides = Strides::from_elem(0, shape.len());
        let mut step = 1isize;
        for (s, &n) in strides.iter_mut().zip(&shape).rev() {
            *s = step;
            step *= n.max(1) as isize;
        }
        Layout { shape, strides, offset: 0 }
    }

    /// Without gaps, the channels (axis 1) of each place side by side: how GPUs like images to lie.
    pub fn channels_last(shape: impl AsRef<[usize]>) -> Layout {
        let shape = Shape::from_slice(shape.as_ref());
        let mut strides = Strides::from_elem(0, shape.len());
        let mut step = 1isize;
        for axis in std::iter::once(1).chain((2..shape.len()).rev()).chain([0]) {
            strides[axis] = step;
            step *= shape[axis].max(1) as isize;
        }
        Layout { shape, strides, offset: 0 }
    }

    /// Do the elements lie as in [`channels_last`](Self::channels_last) (from any offset)? So may those of a contiguous
    /// layout, if it has one channel or one place.
    pub fn is_channels_last(&self) -> bool {
        self.shape.len() > 2 && {
            let wanted = Layout::channels_last(&self.shape);
            let same = |((&n, a), b)| n == 1 || a == b;
            self.shape.iter().zip(&self.strides).zip(&wanted.strides).all(same)
        }
    }

    /// Number of elements.
    pub fn numel(&self) -> usize {
        self.shape.iter().product()
    }

    /// The lowest and the highest position of an element; of no meaning where there is none.
    pub fn reach(&self) -> (isize, isize) {
        let start = self.offset as isize;
        self.shape.iter().zip(&self.strides).fold((start, start), |(low, high), (&n, &step)| {
            let end = (n.saturating_sub(1) as isize).saturating_mul(step);
            (low.saturating_add(end.min(0)), high.saturating_add(end.max(0)))
        })
    }

    /// Row-major without gaps (from any offset)?
    pub fn is_contiguous(&self) -> bool {
        sampan_kernels::view::is_contiguous(&self.shape, &self.strides)
    }

    /// The same elements under another shape, if no copy is needed for that.
    pub fn reshape(&self, shape: &[usize]) -> Option<Layout> {
        if self.is_contiguous() {
            return Some(Layout { offset: self.offset, ..Layout::contiguous(shape) });
        }
        // Match groups of old axes with groups of new axes of equal product; a group must be evenly strided.
        let old: Vec<(usize, isize)> =
            self.shape.iter().copied().zip(self.strides.iter().copied()).filter(|&(n, _)| n != 1).collect();
        let mut strides = Strides::from_elem(0, shape.len());
        let (mut i, mut j) = (0, 0);
        while i < old.len() {
            let mut size = old[i].0;
            let mut end = i + 1;
            let start = j;
            let mut wanted = 1;
            while wanted != size {
                if wanted < size {
                    wanted *= *shape.get(j)?;
                    j += 1;
                } else {
                    size *= old.get(end)?.0;
                    end += 1;
                }
            }
            for k in i..end - 1 {
                if old[k].1 != old[k + 1].1 * old[k + 1].0 as isize {
                    return None;
                }
            }
            let mut step = old[end - 1].1;
            for k in (start..j).rev() {
                strides[k] = step;
                step *= shape[k] as isize;
            }
            i = end;
        }
        Some(Layout { shape: Shape::from_slice(shape), strides, offset: self.offset })
    }

    /// The layout seen under a broadcast shape. The shape must be a valid broadcast of this one.
    pub fn broadcast_to(&self, shape: &[usize]) -> Layout {
        let lead = shape.len() - self.shape.len();
        let mut strides = Strides::from_elem(0, shape.len());
        for (i, (&n, &s)) in self.shape.iter().zip(&self.strides).enumerate() {
            if n == shape[lead + i] {
                strides[lead + i] = s;
            }
        }
        Layout { shape: Shape::from_slice(shape), strides, offset: self.offset }
    }
}

/// The shape two operands broadcast to.
pub fn broadcast(a: &[usize], b: &[usize]) -> Result<Shape> {
    if a == b {
        return Ok(Shape::from_slice(a));
    }
    let rank = a.len().max(b.len());
    let mut out = Shape::from_elem(1, rank);
    for i in 0..rank {
        let x = if i + a.len() >= rank { a[i + a.len() - rank] } else { 1 };
        let y = if i + b.len() >= rank { b[i + b.len() - rank] } else { 1 };
        out[i] = match (x, y) {
            (x, y) if x == y => x,
            (1, y) => y,
            (x, 1) => x,
            _ => {
                return Err(Error::invalid(format!(
                    "shapes {a:?} and {b:?} cannot be broadcast: axis {i} of the result would be {x} and {y}"
                ))
                .hint("axes are matched from the last; each pair must be equal or contain a 1"));
            }
        };
    }
    Ok(out)
}

/// The shape that tensors of two shapes broadcast to. -1 is an extent that is not known yet.
///
/// ```
/// use sampan_core::shape::broadcast_shape;
/// assert_eq!(broadcast_shape(&[2, 1, 3], &[3, 1])?, [2, 3, 3].into());
/// assert_eq!(broadcast_shape(&[-1, 3], &[1, 3])?, [-1, 3].into());
/// # Ok::<(), sampan_core::Error>(())
/// ```
#[function]
pub fn broadcast_shape(x_shape: &[i64], y_shape: &[i64]) -> Result<Ints> {
    if let Some(bad) = x_shape.iter().chain(y_shape).find(|&&n| n < -1) {
        return Err(Error::invalid(format!("an extent must be at least 0, or -1 where it is not known, got {bad}")));
    }
    // An unknown extent meets another as 1 does, but stays unknown beside a 1.
    let known = |shape: &[i64]| -> Shape { shape.iter().map(|&n| if n < 0 { 1 } else { n as usize }).collect() };
    let shape = broadcast(&known(x_shape), &known(y_shape))?;
    let unknown = |shape: &[i64], from_end: usize| shape.iter().rev().nth(from_end) == Some(&-1);
    let rank = shape.len();
    let extents = shape.iter().enumerate().map(|(i, &n)| {
        let from_end = rank - 1 - i;
        if n == 1 && (unknown(x_shape, from_end) || unknown(y_shape, from_end)) { -1 } else { n as i64 }
    });
    Ok(Ints(extents.collect()))
}

/// The shape that tensors of all these shapes broadcast to, see [`broadcast_shape`].
///
/// ```
/// use sampan_core::{Value, shape::broadcast_shapes};
/// let shapes = vec![Value::from([2, 1]), Value::from([3]), Value::from([1, 1, 1])];
/// assert_eq!(broadcast_shapes(&Value::List(shapes))?, [1, 2, 3].into());
/// # Ok::<(), sampan_core::Error>(())
/// ```
#[function]
pub fn broadcast_shapes(shapes: &Value) -> Result<Ints> {
    let all = match shapes {
        Value::List(all) => all.as_slice(),
        one => std::slice::from_ref(one),
    };
    all.iter().try_fold(Ints::from(Vec::<i64>::new()), |so_far, shape| {
        broadcast_shape(&so_far.0, <&[i64]>::get(shape, "shapes").or_else(|e| empty_list(shape).ok_or(e))?)
    })
}

/// A list without elements has no kind.
fn empty_list(v: &Value) -> Option<&'static [i64]> {
    matches!(v, Value::List(v) if v.is_empty()).then_some(&[])
}

/// An axis counted from either end, checked against a rank. A 0-d tensor accepts 0 and -1.
pub fn axis(axis: i64, rank: usize) -> Result<usize> {
    let n = rank.max(1) as i64;
    if axis < -n || axis >= n {
        return Err(Error::range(format!("axis must lie in [{}, {}) for a tensor of rank {rank}, got {axis}", -n, n)));
    }
    Ok(if axis < 0 { axis + n } else { axis } as usize)
}

/// The product of extents, or an error where it overflows.
pub fn checked_numel(shape: &[usize]) -> Result<usize> {
    // Strides are products of extents, where an extent of zero counts as one: these must not overflow either.
    shape
        .iter()
        .try_fold(1usize, |n, &d| n.checked_mul(d.max(1)))
        .filter(|&n| n <= 1 << 48)
        .ok_or_else(|| Error::invalid(format!("a tensor of shape {shape:?} is too large for this machine")))?;
    Ok(shape.iter().product())
}

/// Is there memory for a list of so many int64? An op that builds one asks before it begins.
pub(crate) fn check_room(count: usize) -> Result<()> {
    let bytes = count.saturating_mul(8);
    if bytes > buffer::bytes_left() { Err(buffer::OutOfMemory { bytes }.into()) } else { Ok(()) }
}
