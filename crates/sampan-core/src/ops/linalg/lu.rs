//! LU: the factors, their unpacking, systems solved with them. Batched; float32 and float64.

use crate::ops::decompositions::join;
use crate::ops::linalg::{batch_of, check_matrix, check_square, identity, mask, regular, stack};
use crate::ops::prelude::*;
use sampan_kernels::linalg as kernel;

/// The packed factors of `x = P L U` (unit lower `L` below the diagonal, `U` on and above it), the pivots (from 1, as
/// LAPACK gives them) and, with `get_infos`, where the first zero pivot stands (0 if nowhere).
///
/// ```
/// # use sampan_core::Tensor;
/// let out = Tensor::new([[1.0f32, 2.0], [2.0, 6.0]]).lu(true, false).0;
/// assert_eq!(out[0].to_vec::<f32>(), [2.0, 6.0, 0.5, -1.0]);
/// assert_eq!(out[1].to_vec::<i32>(), [2, 2]);
/// ```
#[op(module = "linalg", samples = lu_samples, amp = "black", results("lu", "pivots", "infos"))]
fn lu(cx: &Cx, x: &Tensor, #[default(true)] pivot: bool, #[default(false)] get_infos: bool) -> Result<Varying> {
    let (m, n) = check_matrix(x, "x")?;
    ensure!(pivot, "pivot=False is not supported: without pivots the factors lose all accuracy");
    let k = m.min(n);
    let out = cx.out(x.shape(), x.dtype())?;
    let pivots = cx.zeros(stack(batch_of(x), &[k]), DType::Int32)?;
    let infos = cx.zeros(batch_of(x), DType::Int32)?;
    cx.cpu(|| {
        let x = x.contiguous();
        let (mut out, mut pivots, mut infos) = (out.values_mut(), pivots.data_mut::<i32>(), infos.data_mut::<i32>());
        kernel::lu(x.values().slice(), m, n, out.slice(), pivots.slice(), infos.slice());
        Ok(())
    })?;
    let mut outputs = vec![out, pivots];
    if get_infos {
        outputs.push(infos);
    }
    cx.grad_from_output(Varying(outputs), &[], move |g| {
        let (lu, dlu) = (g.output(0), g.grad());
        let p = permutation(g.output(1), m, lu.dtype())?;
        // The leading k×k block of both factors, and what stands beside or below it.
        let (l1, u1) = (lu.block(k, k), lu.block(k, k));
        let (dl1, du1) = (dlu.block(k, k).tril(-1), dlu.block(k, k).triu(0));
        let unit = l1.tril(-1) + identity(k, lu.dtype());
        let mut left = unit.transpose_last().matrix_product(&dl1);
        let mut right = du1.matrix_product(&u1.triu(0).transpose_last());
        if n > k {
            let (u2, du2) = (lu.try_narrow(-1, k, n - k)?, dlu.try_narrow(-1, k, n - k)?);
            left = &left - du2.matrix_product(&u2.transpose_last());
        }
        if m > k {
            let (l2, dl2) = (lu.try_narrow(-2, k, m - k)?, dlu.try_narrow(-2, k, m - k)?);
            right = &right - l2.transpose_last().matrix_product(&dl2);
        }
        let inner = left.tril(-1) + right.triu(0);
        // L⁻ᵀ · inner · U⁻ᵀ
        let inner = l1.solve_triangle(&inner, false, true, true);
        let inner = u1.solve_triangle(&inner.transpose_last(), true, false, false).transpose_last();
        let mut dx = inner;
        if n > k {
            let du2 = dlu.try_narrow(-1, k, n - k)?;
            dx = join(&dx, &l1.solve_triangle(&du2, false, true, true), -1);
        }
        if m > k {
            let dl2 = dlu.try_narrow(-2, k, m - k)?;
            let below = u1.solve_triangle(&dl2.transpose_last(), true, false, false).transpose_last();
            dx = join(&dx, &below, -2);
        }
        Ok(p.matrix_product(&dx))
    })
}

/// The permutation matrices that LAPACK's pivots stand for: `x = P L U`.
pub(crate) fn permutation(pivots: &Tensor, m: usize, dtype: DType) -> Result<Tensor> {
    ensure!(pivots.dtype() == DType::Int32, "pivots must be int32, got {}", pivots.dtype());
    let k = pivots.dim(-1);
    let batch = &pivots.shape()[..pivots.ndim() - 1];
    if pivots.device() == Device::Meta {
        return Ok(Tensor::meta(stack(batch, &[m, m]), dtype));
    }
    let mut values = vec![0f32; batch.iter().product::<usize>() * m * m];
    let pivots = pivots.detach().contiguous().to_vec::<i32>();
    for (p, swaps) in values.chunks_mut((m * m).max(1)).zip(pivots.chunks(k.max(1))) {
        let mut order: Vec<usize> = (0..m).collect();
        for (i, &s) in swaps.iter().enumerate() {
            ensure!((1..=m as i32).contains(&s), "pivot {s} is outside 1 to {m}");
            order.swap(i, s as usize - 1);
        }
        order.iter().enumerate().for_each(|(row, &from)| p[from * m + row] = 1.0);
    }
    Ok(Tensor::from_vec(values, stack(batch, &[m, m])).cast(dtype))
}

/// The `P`, `L` and `U` of `x = P L U` from what `lu` gives: the packed factors `x` and the pivots `y`. What is not asked
/// for is empty.
///
/// ```
/// # use sampan_core::Tensor;
/// let out = Tensor::new([[1.0f32, 2.0], [2.0, 6.0]]).lu(true, false).0;
/// let (p, l, u) = out[0].lu_unpack(&out[1]);
/// assert_eq!(p.matmul(&l).matmul(&u).to_vec::<f32>(), [1.0, 2.0, 2.0, 6.0]);
/// ```
#[op(module = "linalg", samples = unpack_samples, amp = "black", results("p", "l", "u"))]
fn lu_unpack(
    x: &Tensor,
    y: &Tensor,
    #[opt(true)] unpack_ludata: bool,
    #[opt(true)] unpack_pivots: bool,
) -> Result<(Tensor, Tensor, Tensor)> {
    let (m, n) = check_matrix(x, "x")?;
    let k = m.min(n);
    ensure!(
        *y.shape() == *stack(batch_of(x), &[k]),
        "y must hold {k} pivots for each matrix of x, its shape is {:?}",
        y.shape()
    );
    let none = || Tensor::zeros([0], x.dtype());
    let p = if unpack_pivots { permutation(y, m, x.dtype())? } else { none() };
    if !unpack_ludata {
        return Ok((p, none(), none()));
    }
    let l = x.block(m, k).tril(-1) + mask(m, k, x.dtype(), |i, j| i == j);
    Ok((p, l, x.block(k, n).triu(0)))
}

/// The `X` of `A X = b` (`trans="N"`) or `Aᵀ X = b` (`"T"`), where `lu` and `pivots` are what `lu` gives for `A`.
///
/// ```
/// # use sampan_core::Tensor;
/// let out = Tensor::new([[1.0f32, 2.0], [2.0, 6.0]]).lu(true, false).0;
/// assert_eq!(Tensor::new([[3.0f32], [8.0]]).lu_solve(&out[0], &out[1]).to_vec::<f32>(), [1.0, 1.0]);
/// ```
#[op(module = "linalg", samples = lu_solve_samples, amp = "black")]
fn lu_solve(b: &Tensor, lu: &Tensor, pivots: &Tensor, #[opt("N")] trans: &str) -> Result<Tensor> {
    let n = check_square(lu, "lu")?;
    let (rows, _) = check_matrix(b, "b")?;
    ensure!(rows == n, "lu has {n} rows, b has {rows}");
    ensure!(pivots.ndim() >= 1 && pivots.dim(-1) == n, "pivots must hold {n} numbers for each matrix");
    let p = permutation(pivots, n, lu.dtype())?;
    match trans {
        "N" => {
            let y = lu.solve_triangle(&p.transpose_last().matrix_product(b), false, false, true);
            Ok(lu.solve_triangle(&y, true, false, false))
        }
        "T" | "C" => {
            let y = lu.solve_triangle(b, true, true, false);
            Ok(p.matrix_product(&lu.solve_triangle(&y, false, true, true)))
        }
        other => bail!("trans must be \"N\", \"T\" or \"C\", got {other:?}"),
    }
}

fn lu_samples() -> Vec<Sample> {
    vec![sample![regular([3, 3])], sample![randn([2, 2, 3])], sample![randn([4, 2]); get_infos = true]]
}

fn unpack_samples() -> Vec<Sample> {
    let pivots = |p: &[i32], shape: &[usize]| values::<i32>(p, shape);
    vec![
        sample![regular([3, 3]), pivots(&[2, 3, 3], &[3])],
        sample![randn([2, 3, 2]), pivots(&[1, 2, 3, 3], &[2, 2])],
        sample![randn([2, 3]), pivots(&[2, 2], &[2])],
        sample![regular([3, 3]), pivots(&[2, 3, 3], &[3]); unpack_ludata = false],
        sample![regular([3, 3]), pivots(&[2, 3, 3], &[3]); unpack_pivots = false],
    ]
}

fn lu_solve_samples() -> Vec<Sample> {
    let pivots = || values::<i32>([2, 3, 3], [3]);
    vec![
        sample![randn([3, 2]), regular([3, 3]), pivots()],
        sample![randn([3, 2]), regular([3, 3]), pivots(); trans = "T"]
            .peer("lambda b, lu, pivots, trans: torch.linalg.lu_solve(lu, pivots, b, adjoint=True)"),
    ]
}
