//! An index brought down to one view and at most one gather or scatter.

use crate::Index;
use crate::ops::gather::as_indices;
use crate::ops::prelude::*;
use std::borrow::Cow;

/// An index against a shape: a slice of every axis, the shape of that view with the integers' axes gone and new axes in,
/// then integer tensors on some axes of the view.
pub(crate) struct Lowered {
    starts: Vec<i64>,
    lens: Vec<i64>,
    steps: Vec<i64>,
    view: Shape,
    pub advanced: Vec<Advanced>,
    /// May a position occur twice?
    repeats: bool,
    /// How many of the axes left alone stand before those of the advanced indices.
    pub place: usize,
}

pub(crate) struct Advanced {
    /// The axis of the view.
    axis: usize,
    /// The axis of the tensor, for errors.
    name: usize,
    positions: Tensor,
}

/// How many axes a part of an index takes up.
fn axes_of(part: &Index) -> usize {
    match part {
        Index::Int(_) | Index::Slice { .. } => 1,
        Index::Tensor(t) if t.dtype() == DType::Bool => t.ndim(),
        Index::Tensor(_) => 1,
        Index::Ellipsis | Index::NewAxis | Index::Bool(_) => 0,
    }
}

/// Start, length and step of a Python slice over an extent.
fn slice_of(n: i64, start: Option<i64>, stop: Option<i64>, step: Option<i64>, axis: usize) -> Result<[i64; 3]> {
    let step = step.unwrap_or(1);
    ensure!(step != 0, "the slice of axis {axis} has step 0");
    let (low, high) = if step > 0 { (0, n) } else { (-1, n - 1) };
    let clamp = |i: i64| (if i < 0 { i.saturating_add(n) } else { i }).clamp(low, high);
    let (first, last) = if step > 0 { (low, high) } else { (high, low) };
    let (start, stop) = (start.map_or(first, clamp), stop.map_or(last, clamp));
    let span = if step > 0 { stop - start } else { start - stop };
    let len = if span <= 0 { 0 } else { (span - 1) / step.saturating_abs() + 1 };
    // A step longer than the axis is never taken; it must not overflow a stride.
    Ok([start.max(0), len, if len <= 1 { 1 } else { step }])
}

/// A single position that was given as a tensor is an integer like any other, so that the result is a view. Beside
/// other tensors it is one of them.
fn with_integers(index: &[Index]) -> Result<Cow<'_, [Index]>> {
    let single = |t: &Tensor| t.ndim() == 0 && t.dtype().is_int() && t.device().has_values();
    let among = |other: bool| index.iter().any(|i| matches!(i, Index::Tensor(t) if single(t) != other));
    if !among(false) || among(true) || index.iter().any(|i| matches!(i, Index::Bool(_))) {
        return Ok(index.into());
    }
    let plain = |i: &Index| match i {
        Index::Tensor(t) if single(t) => Ok(Index::Int(t.try_item()?.to_i64())),
        other => Ok(other.clone()),
    };
    index.iter().map(plain).collect()
}

impl Lowered {
    pub fn new(shape: &[usize], index: &[Index]) -> Result<Lowered> {
        let index = &*with_integers(index)?;
        let rank = shape.len();
        let used: usize = index.iter().map(axes_of).sum();
        if used > rank {
            return Err(Error::range(format!("the index names {used} axes of a tensor of rank {rank}")));
        }
        let dots = index.iter().filter(|i| matches!(i, Index::Ellipsis)).count();
        ensure!(dots <= 1, "an index may hold `...` only once, got {dots}");
        let any_advanced = index.iter().any(|i| matches!(i, Index::Tensor(_) | Index::Bool(_)));
        let mut low = Lowered {
            starts: vec![0; rank],
            lens: shape.iter().map(|&n| n as i64).collect(),
            steps: vec![1; rank],
            view: Shape::new(),
            advanced: Vec::new(),
            repeats: false,
            place: 0,
        };
        // The advanced indices must form one run to keep their place; integers among them count.
        let (mut axis, mut alone, mut runs, mut in_run) = (0, 0, 0, false);
        for part in index {
            let joins = any_advanced && matches!(part, Index::Tensor(_) | Index::Bool(_) | Index::Int(_));
            if joins && !in_run {
                runs += 1;
                low.place = alone;
            }
            in_run = joins;
            match part {
                Index::Int(i) => {
                    let n = shape[axis] as i64;
                    if *i < -n || *i >= n {
                        return Err(Error::range(format!("index {i} is out of range for axis {axis} of extent {n}")));
                    }
                    (low.starts[axis], low.lens[axis]) = (i.rem_euclid(n), 1);
                    axis += 1;
                }
                Index::Slice { start, stop, step } => {
                    let [start, len, step] = slice_of(shape[axis] as i64, *start, *stop, *step, axis)?;
                    (low.starts[axis], low.lens[axis], low.steps[axis]) = (start, len, step);
                    low.view.push(len as usize);
                    (axis, alone) = (axis + 1, alone + 1);
                }
                Index::Ellipsis => {
                    for _ in 0..rank - used {
                        low.view.push(shape[axis]);
                        (axis, alone) = (axis + 1, alone + 1);
                    }
                }
                Index::NewAxis => {
                    low.view.push(1);
                    alone += 1;
                }
                Index::Bool(b) => low.add_truth(*b as usize, axis),
                Index::Tensor(t) if t.dtype() == DType::Bool => {
                    low.add_mask(t, shape, axis)?;
                    axis += t.ndim();
                }
                Index::Tensor(t) => {
                    let positions = as_indices(t, "an index")?;
                    low.repeats |= t.numel() > 1;
                    low.advanced.push(Advanced { axis: low.view.len(), name: axis, positions });
                    low.view.push(shape[axis]);
                    axis += 1;
                }
            }
        }
        low.view.extend_from_slice(&shape[axis..]);
        if runs > 1 {
            low.place = 0;
        }
        Ok(low)
    }

    /// A mask without axes: a new axis, taken once or not at all.
    fn add_truth(&mut self, count: usize, name: usize) {
        let positions = Tensor::zeroed([count], DType::Int64, Device::Cpu);
        self.advanced.push(Advanced { axis: self.view.len(), name, positions });
        self.view.push(1);
    }

    /// A mask over axes: the positions where it holds, one tensor for each axis.
    fn add_mask(&mut self, mask: &Tensor, shape: &[usize], first: usize) -> Result<()> {
        for (a, &n) in mask.shape().iter().enumerate() {
            let have = shape[first + a];
            if n != have {
                let axis = first + a;
                return Err(Error::range(format!(
                    "the mask of shape {:?} has extent {n} where axis {axis} has {have}",
                    mask.shape()
                )));
            }
        }
        let places = mask.detach().try_argwhere()?;
        if mask.ndim() == 0 {
            self.add_truth(places.shape()[0], first);
        }
        for a in 0..mask.ndim() {
            let positions = places.try_select(1, a)?.try_contiguous()?;
            self.advanced.push(Advanced { axis: self.view.len(), name: first + a, positions });
            self.view.push(shape[first + a]);
        }
        Ok(())
    }

    /// The view that the slices, integers and new axes make.
    pub fn view_of(&self, x: &Tensor) -> Result<Tensor> {
        let whole = self.steps.iter().all(|&s| s == 1) && self.lens.iter().zip(x.shape()).all(|(&l, &n)| l == n as i64);
        if whole {
            return x.try_reshape_to(&self.view);
        }
        let part = x.try_view_slice(self.starts.as_slice(), self.lens.as_slice(), self.steps.as_slice())?;
        if part.shape() == &self.view[..] { Ok(part) } else { part.try_reshape_to(&self.view) }
    }

    /// The positions, broadcast together, and their axes.
    pub fn positions(&self) -> Result<(Vec<Tensor>, Vec<i64>)> {
        let mut common = Shape::new();
        for a in &self.advanced {
            common = broadcast(&common, a.positions.shape())
                .map_err(|e| e.hint("tensors in one index broadcast together"))?;
        }
        let each = self.advanced.iter().map(|a| a.positions.try_expand(&common)?.try_contiguous());
        Ok((each.collect::<Result<_>>()?, self.advanced.iter().map(|a| a.axis as i64).collect()))
    }

    /// The error of a position outside, said in the axes of the tensor rather than of the view.
    pub fn explain(&self, e: Error) -> Error {
        for a in self.advanced.iter().filter(|a| a.positions.device().has_values()) {
            let found = sampan_kernels::index::check(a.positions.data::<i64>().slice(), self.view[a.axis], true);
            if let Err(bad) = found {
                return crate::ops::gather::outside(a.name, bad);
            }
        }
        e
    }

    /// Where positions repeat: which of the written values were overwritten by a later one. Broadcasts to the result.
    pub fn overwritten(&self) -> Result<Option<Tensor>> {
        if !self.repeats {
            return Ok(None);
        }
        let (positions, axes) = self.positions()?;
        let board: Shape = axes.iter().map(|&a| self.view[a as usize]).collect();
        let shape = positions[0].shape_vec();
        let numbers = Tensor::from_vec((0..positions[0].numel() as i64).collect(), &shape);
        let board = Tensor::zeroed(&board, DType::Int64, Device::Cpu);
        let all: Vec<i64> = (0..axes.len() as i64).collect();
        let stays = board.try_setitem(positions.clone(), &numbers)?.try_index_get(&positions, all, 0)?;
        let lost = stays.try_not_equal(numbers)?;
        let after = self.view.len() - axes.len() - self.place;
        lost.try_reshape_to([&shape, vec![1; after].as_slice()].concat()).map(Some)
    }
}
