//! Attention, which ONNX says in parts.

use crate::given::Given;
use crate::graph::Id;
use crate::onnx::export::Writer;
use sampan_core::{DType, Result};
use sampan_io::onnx::model::Attr;

/// Attention as products and a softmax.
pub fn write(w: &mut Writer, call: &Given) -> Result<bool> {
    if call.name() != "scaled_dot_product_attention" {
        return Ok(false);
    }
    let ids = (call.id("query"), call.id("key"), call.id("value"));
    let (Some(q), Some(k), Some(v)) = ids else { return Ok(false) };
    let dropped = call.bool("training") && call.float("dropout_p").unwrap_or(0.0) > 0.0;
    let heads = |w: &Writer, id: Id| w.known(id).dims.get(2).copied();
    let width = w.known(q).dims.get(3).and_then(|d| d.fixed());
    let same = w.known(q).dims.len() == 4 && heads(w, q) == heads(w, k);
    let (Some(width), true, false, false) = (width, same, dropped, call.bool("is_causal")) else { return Ok(false) };
    let dtype = w.known(call.out()).dtype;
    let turn = |w: &mut Writer, id: Id, perm: [i64; 4]| {
        let name = w.name(id)?;
        Ok::<_, sampan_core::Error>(w.node("Transpose", vec![name], vec![("perm", Attr::Ints(perm.to_vec()))]))
    };
    let (q, k, v) = (turn(w, q, [0, 2, 1, 3])?, turn(w, k, [0, 2, 3, 1])?, turn(w, v, [0, 2, 1, 3])?);
    let scale = w.number(call.float("scale").unwrap_or(1.0 / (width as f64).sqrt()), dtype)?;
    let q = w.op("Mul", &[&q, &scale]);
    let mut s = w.op("MatMul", &[&q, &k]);
    if let Some(mask) = call.id("attn_mask") {
        let name = w.name(mask)?;
        s = match w.known(mask).dtype {
            DType::Bool => {
                let low = w.number(f64::NEG_INFINITY, dtype)?;
                w.op("Where", &[&name, &s, &low])
            }
            from => {
                let name = w.cast(name, from, dtype);
                w.op("Add", &[&s, &name])
            }
        };
    }
    let p = w.node("Softmax", vec![s], vec![("axis", Attr::Int(-1))]);
    let y = w.op("MatMul", &[&p, &v]);
    let y = w.node("Transpose", vec![y], vec![("perm", Attr::Ints(vec![0, 2, 1, 3]))]);
    w.bind(call.out(), y);
    Ok(true)
}
