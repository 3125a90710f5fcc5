//! Elementwise formulas on device memory, each compiled when it is first used.

use crate::device::Device;
use crate::fault::Result;
use crate::launch::{Argument, Grid};
use crate::view::View;
use sampan_formula::text::{PRELUDE, Walk, walking_kernel};
use sampan_formula::{Bound, Constant, DType};
use std::fmt::Write;

/// Where a formula keeps the number that names its kernels.
const NOTE: usize = 6;

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
    let (shape, strides) = merged(y.shape, views().map(|v| v.strides));
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

/// The same walk over as few axes as will do.
fn merged<'a>(shape: &[usize], strides: impl Iterator<Item = &'a [isize]> + Clone) -> (Vec<usize>, Vec<Vec<isize>>) {
    let mut axes: Vec<usize> = Vec::new();
    let mut steps: Vec<Vec<isize>> = vec![Vec::new(); strides.clone().count()];
    for (axis, &n) in shape.iter().enumerate() {
        if n == 1 {
            continue;
        }
        let joins =
            !axes.is_empty() && strides.clone().zip(&steps).all(|(i, s)| s[axes.len() - 1] == i[axis] * n as isize);
        if joins {
            let last = axes.len() - 1;
            axes[last] *= n;
            steps.iter_mut().zip(strides.clone()).for_each(|(s, i)| s[last] = i[axis]);
        } else {
            axes.push(n);
            steps.iter_mut().zip(strides.clone()).for_each(|(s, i)| s.push(i[axis]));
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
