//! Products of matrices.

use crate::given::Given;
use crate::graph::Id;
use crate::onnx::eval::Item;
use crate::onnx::export::Writer;
use crate::onnx::node::{Call, one, op};
use sampan_core::{DType, Result, Tensor};
use sampan_io::onnx::model::Attr;

fn gemm(c: &Call) -> Result<Tensor> {
    let (a, b) = (c.x(0)?, c.x(1)?);
    let (alpha, beta) = (c.float("alpha", 1.0), c.float("beta", 1.0));
    let (turn_a, turn_b) = (c.flag("transA"), c.flag("transB"));
    let scaled = |t: &Tensor, n: f64| if n == 1.0 { Ok(t.clone()) } else { op!("multiply", t, n) };
    if let (false, true, Some(bias)) = (turn_a, alpha == 1.0 && a.dtype().is_float(), c.maybe(2))
        && bias.ndim() == 1
    {
        // A layer, as most of them are.
        let weight = if turn_b { op!("transpose", b, [1i64, 0])? } else { b.clone() };
        let width = weight.shape()[1];
        if bias.numel() == width {
            return op!("linear", a, weight, scaled(bias, beta)?);
        }
    }
    let y = scaled(&op!("matmul", a, b, turn_a, turn_b)?, alpha)?;
    match c.maybe(2) {
        Some(bias) => op!("add", y, scaled(bias, beta)?),
        None => Ok(y),
    }
}

/// Whole numbers in eight bits, less their zero point, as what a product is computed in: exact up to 2²⁴ terms of 2²⁹.
pub(super) fn centred(x: &Tensor, zero: Option<&Tensor>, along: Option<usize>) -> Result<Tensor> {
    let wide = op!("cast", x, DType::Float64)?;
    let Some(zero) = zero else { return Ok(wide) };
    let mut zero = op!("cast", zero, DType::Float64)?;
    if let (Some(axis), 1) = (along, zero.ndim()) {
        let mut shape = vec![1; x.ndim()];
        shape[axis] = zero.numel() as i64;
        zero = op!("reshape", zero, shape)?;
    }
    op!("subtract", wide, zero)
}

fn matmul_integer(c: &Call) -> Result<Tensor> {
    let a = centred(c.x(0)?, c.maybe(2), Some(c.x(0)?.ndim().saturating_sub(2)))?;
    let b = centred(c.x(1)?, c.maybe(3), Some(c.x(1)?.ndim() - 1))?;
    op!("cast", op!("matmul", a, b)?, DType::Int32)
}

pub fn read(c: &Call) -> Result<Option<Vec<Item>>> {
    one(match c.node.op.as_str() {
        "Gemm" => gemm(c)?,
        "MatMul" => {
            let (a, b) = (c.x(0)?, c.x(1)?);
            if a.dtype().is_inexact() {
                op!("matmul", a, b)?
            } else {
                let wide = |t: &Tensor| op!("cast", t, DType::Float64);
                op!("cast", op!("matmul", wide(a)?, wide(b)?)?, a.dtype())?
            }
        }
        "MatMulInteger" => matmul_integer(c)?,
        "Einsum" => op!("einsum", c.text("equation", ""), c.tensors()?)?,
        _ => return Ok(None),
    })
}

/// A value with its last two axes in the other order.
fn turned(w: &mut Writer, id: Id, name: String, turn: bool) -> String {
    let rank = w.known(id).dims.len() as i64;
    if !turn || rank < 2 {
        return name;
    }
    let mut perm = (0..rank).collect::<Vec<_>>();
    perm.swap(rank as usize - 1, rank as usize - 2);
    w.node("Transpose", vec![name], vec![("perm", Attr::Ints(perm))])
}

pub fn write(w: &mut Writer, call: &Given) -> Result<bool> {
    let dtype = w.known(call.out()).dtype;
    let y = match call.name() {
        "linear" => {
            let (Some(x), Some(weight)) = (call.id("x"), call.id("weight")) else { return Ok(false) };
            let flat = w.known(x).dims.len() == 2;
            let (x, weight) = (w.cast_id(x, dtype)?, w.cast_id(weight, dtype)?);
            match call.id("bias") {
                Some(bias) if flat => {
                    let bias = w.cast_id(bias, dtype)?;
                    w.op("Gemm", &[&x, &weight, &bias])
                }
                Some(bias) => {
                    let (y, bias) = (w.op("MatMul", &[&x, &weight]), w.cast_id(bias, dtype)?);
                    w.op("Add", &[&y, &bias])
                }
                None => w.op("MatMul", &[&x, &weight]),
            }
        }
        "matmul" | "mm" | "bmm" | "mv" | "matrix_product" => {
            let (x, y) = match call.name() {
                "mm" => ("input", "mat2"),
                "mv" => ("x", "vec"),
                _ => ("x", "y"),
            };
            let (Some(x), Some(y)) = (call.id(x), call.id(y)) else { return Ok(false) };
            if dtype.is_complex() {
                return Ok(false);
            }
            let (a, b) = (w.cast_id(x, dtype)?, w.cast_id(y, dtype)?);
            let a = turned(w, x, a, call.bool("transpose_x"));
            let b = turned(w, y, b, call.bool("transpose_y"));
            w.op("MatMul", &[&a, &b])
        }
        "einsum" => {
            let (Some(equation), ids) = (call.text("equation"), call.ids("operands")) else { return Ok(false) };
            let equation = Attr::Text(equation.into());
            let inputs = ids.into_iter().map(|id| w.cast_id(id, dtype)).collect::<Result<Vec<_>>>()?;
            w.node("Einsum", inputs, vec![("equation", equation)])
        }
        _ => return Ok(false),
    };
    w.bind(call.out(), y);
    Ok(true)
}
