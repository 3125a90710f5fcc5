//! A borrowed strided array: what a kernel sees of a tensor.

/// Elements of `data` addressed by shape, strides (in elements, zero or negative allowed) and an offset. Whoever makes
/// one has checked that every index stays inside `data`.
#[derive(Clone, Copy, Debug)]
pub struct View<'a, T> {
    /// The whole storage.
    pub data: &'a [T],
    /// Extent of each axis.
    pub shape: &'a [usize],
    /// Step of each axis in elements.
    pub strides: &'a [isize],
    /// Where index `[0, 0, …]` lies.
    pub offset: usize,
}

impl<'a, T> View<'a, T> {
    /// A view on a whole row-major slice; `strides` must be those of `shape`.
    pub fn contiguous(data: &'a [T], shape: &'a [usize], strides: &'a [isize]) -> Self {
        View { data, shape, strides, offset: 0 }
    }

    /// Number of elements.
    pub fn len(&self) -> usize {
        self.shape.iter().product()
    }

    /// Has it no elements?
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Row-major without gaps?
    pub fn is_contiguous(&self) -> bool {
        is_contiguous(self.shape, self.strides)
    }

    /// The elements as one slice, where the view is contiguous.
    pub fn as_slice(&self) -> Option<&'a [T]> {
        let len = self.len();
        if len == 0 {
            return Some(&[]);
        }
        self.is_contiguous().then(|| &self.data[self.offset..self.offset + len])
    }
}

/// Row-major strides of a shape.
pub fn contiguous_strides(shape: &[usize]) -> Vec<isize> {
    let mut strides = vec![0; shape.len()];
    let mut step = 1;
    for (s, &n) in strides.iter_mut().zip(shape).rev() {
        *s = step;
        step *= n.max(1) as isize;
    }
    strides
}

/// Are these the row-major strides of that shape? Axes of length 1 may have any stride; an empty array always is.
pub fn is_contiguous(shape: &[usize], strides: &[isize]) -> bool {
    if shape.contains(&0) {
        return true;
    }
    let mut step = 1;
    for (&n, &s) in shape.iter().zip(strides).rev() {
        if n != 1 {
            if s != step {
                return false;
            }
            step *= n as isize;
        }
    }
    true
}
