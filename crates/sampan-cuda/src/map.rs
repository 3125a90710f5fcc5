//! Elementwise formulas on device memory, each compiled when it is first used.

use crate::device::Device;
use crate::fault::Result;
use crate::launch::{Argument, Grid};
use crate::spelling::spelt;
use crate::view::View;
use sampan_formula::text::{PRELUDE, Walk, walking_kernel};
use sampan_formula::{Bound, Constant, DType, formula};
use std::fmt::Write;

/// Where a formula keeps the number that names its kernels.
const NOTE: usize = 6;

const TURN: &str = include_str!("kernels/turn.cu");
/// Fewer rows or columns than this are not worth a tile.
const TILE: usize = 8;

/// `y = x`, element by element, of one dtype.
pub fn copy(device: &Device, x: View<'_>, y: View<'_>) -> Result<()> {
    let (shape, strides) = merged(y.shape, &[x.strides, y.strides]);
    let rank = shape.len();
    if (2..=3).contains(&rank) {
        let at = |axis: usize| (shape[axis], strides[0][axis], strides[1][axis]);
        let (batch, (rows, x_row, y_row), (columns, x_column, y_column)) =
            (if rank == 3 { at(0) } else { (1, 0, 0) }, at(rank - 2), at(rank - 1));
        if (x_row, y_column) == (1, 1) && rows.min(columns) >= TILE {
            assert_eq!((x.shape, x.dtype), (y.shape, y.dtype), "copies have one shape and dtype");
            x.check();
            y.check();
            let tiles = batch.0 * rows.div_ceil(32) * columns.div_ceil(32);
            let kernel = device.template(TURN, &format!("turn<{}>", spelt(x.dtype)))?;
            let int = |n: isize| Argument::Int(n as i64);
            let mut arguments = [
                int(tiles as isize),
                int(rows as isize),
                int(columns as isize),
                int(batch.1),
                int(x_column),
                int(batch.2),
                int(y_row),
                Argument::Address(x.address()),
                Argument::Address(y.address()),
            ];
            // SAFETY: these are the kernel's arguments; every element of both views was found inside its block.
            return unsafe { device.launch(kernel, Grid::blocks(tiles, device, 256), &mut arguments) };
        }
    }
    map(device, &formula!(|x| x), x.dtype, &[x], y)
}

/// `y = f(inputs…)`, computed in the type of `compute`; all are seen with the shape of `y`.
pub fn map(device: &Device, f: &Bound, compute: DType, inputs: &[View<'_>], y: View<'_>) -> Result<()> {
    let n = y.numel();
    if n == 0 {
        return Ok(());
    }
    let views = || inputs.iter().chain([&y]);
    for view in views() {
        assert_eq!(view.shape, y.shape, "inputs are seen with the shape of the result");
        view.check();
    }
    let all: Vec<&[isize]> = views().map(|v| v.strides).collect();
    let (shape, strides) = merged(y.shape, &all);
    let walks: Vec<Walk> = strides.iter().map(|s| walk_of(&shape, s)).collect();
    let strided: Vec<usize> = (0..walks.len()).filter(|&i| walks[i] == Walk::Strided).collect();
    let rank = if strided.is_empty() { 0 } else { shape.len() };
    let mut typed: Vec<(DType, Walk)> = views().map(|v| v.dtype).zip(walks).collect();
    let output = typed.pop().expect("the result has a type");
    let mut key = format!("map {} {compute:?} {rank} {output:?}", number_of(f));
    for (dtype, walk) in &typed {
        write!(key, " {dtype:?} {walk:?}").expect("a string takes all");
    }
    let kernel = device.kernel(&key, || {
        let text = walking_kernel(f.formula(), "map", compute, &typed, rank, output);
        (format!("{PRELUDE}\n{text}"), "map".into())
    })?;
    let mut arguments = vec![Argument::Int(n as i64)];
    if rank > 0 {
        let words = shape.iter().map(|&n| n as i64);
        let steps = strided.iter().flat_map(|&i| strides[i].iter().map(|&s| s as i64));
        arguments.push(Argument::Words(words.chain(steps).collect()));
    }
    arguments.extend(views().map(|v| Argument::Address(v.address())));
    arguments.extend(f.constants().iter().map(|c| constant(*c, compute)));
    // SAFETY: the kernel takes just these, by its text; every element it reads and writes was found inside its block above.
    unsafe { device.launch(kernel, Grid::of(n, device), &mut arguments) }
}

/// A number for each formula, the same while the process runs.
fn number_of(f: &Bound) -> usize {
    use std::sync::atomic::{AtomicUsize, Ordering};
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    *f.formula().note(NOTE, |_| NEXT.fetch_add(1, Ordering::Relaxed))
}

/// A constant as the kernel takes it: in the type that constants are combined in.
fn constant(c: Constant, compute: DType) -> Argument {
    let (re, im) = match c {
        Constant::Int(i) if !compute.is_inexact() => return Argument::Int(i),
        Constant::Int(i) => (i as f64, 0.0),
        Constant::Float(v) => (v, 0.0),
        Constant::Complex(re, im) => (re, im),
    };
    match compute {
        _ if compute.is_complex() => Argument::Complex([re, im]),
        _ if compute.is_inexact() => Argument::Float(re),
        _ => Argument::Int(re as i64),
    }
}

/// The same walk over as few axes as will do, in the order in which the last of the views lies.
fn merged(shape: &[usize], strides: &[&[isize]]) -> (Vec<usize>, Vec<Vec<isize>>) {
    let mut order: Vec<usize> = (0..shape.len()).filter(|&a| shape[a] != 1).collect();
    let result = strides.last().expect("at least the result");
    order.sort_by_key(|&a| std::cmp::Reverse(result[a].unsigned_abs()));
    let mut axes: Vec<usize> = Vec::new();
    let mut steps: Vec<Vec<isize>> = vec![Vec::new(); strides.len()];
    for axis in order {
        let n = shape[axis];
        let joins =
            !axes.is_empty() && strides.iter().zip(&steps).all(|(i, s)| s[axes.len() - 1] == i[axis] * n as isize);
        if joins {
            let last = axes.len() - 1;
            axes[last] *= n;
            steps.iter_mut().zip(strides).for_each(|(s, i)| s[last] = i[axis]);
        } else {
            axes.push(n);
            steps.iter_mut().zip(strides).for_each(|(s, i)| s.push(i[axis]));
        }
    }
    (axes, steps)
}

fn walk_of(shape: &[usize], strides: &[isize]) -> Walk {
    if strides.iter().all(|&s| s == 0) {
        // Nothing but axes of one element is left out above: a single element is flat.
        return if shape.is_empty() { Walk::Flat } else { Walk::One };
    }
    let mut step = 1;
    for (&n, &s) in shape.iter().zip(strides).rev() {
        if s != step {
            return Walk::Strided;
        }
        step *= n as isize;
    }
    Walk::Flat
}
