//! Attention under the names of its fused kernels: packed, of sequences of several lengths, under sparse masks.

use crate::dispatch::outermost;
use crate::ops::attention::{Form, ScaledDotProductAttentionOpts};
use crate::ops::joining::{concat, stack};
use crate::ops::prelude::*;
use sampan_macros::function;

/// An attention, and its weights where they were asked for.
pub struct Attended {
    /// The attention, in the arrangement of the queries.
    pub out: Tensor,
    /// `[batch, heads, query length, key length]`.
    pub softmax: Option<Tensor>,
}

impl From<Attended> for Value {
    fn from(a: Attended) -> Value {
        (a.out, Value::optional(a.softmax)).into()
    }
}

/// What all of them are told beside the tensors.
#[derive(Clone, Copy)]
struct Plan {
    dropout: f64,
    causal: bool,
    scale: Option<f64>,
    training: bool,
    /// Are the weights wanted as well?
    weights: bool,
}

impl Plan {
    /// The attention of `[batch, length, heads, width]` under a mask that is added to the scores, and the weights
    /// `[batch, heads, query length, key length]`.
    fn run(self, q: &Tensor, k: &Tensor, v: &Tensor, mask: Option<&Tensor>) -> Result<Attended> {
        ensure!((0.0..=1.0).contains(&self.dropout), "dropout must lie in [0, 1], got {}", self.dropout);
        if !self.weights {
            let mut opts = ScaledDotProductAttentionOpts::new().dropout_p(self.dropout).is_causal(self.causal);
            opts = opts.training(self.training);
            let opts = if let Some(scale) = self.scale { opts.scale(scale) } else { opts };
            let out = q.try_scaled_dot_product_attention_with(k, v, mask, opts)?;
            return Ok(Attended { out, softmax: None });
        }
        let form = Form::new(q, k, v, self.scale, self.causal)?;
        let weights = form.scores(q, k, form.mask_of(mask)?.as_ref()).softmax(-1);
        let dropped = self.training && self.dropout > 0.0;
        let weights = if dropped { weights.dropout(self.dropout) } else { weights };
        let out = form.unfold(&weights.matrix_product(&form.keys(v)));
        Ok(Attended { out, softmax: Some(weights.flatten(1, 2)) })
    }
}

/// Refuses what belongs to the generators of a graphics card.
pub(super) fn no_other_generator(fixed_seed_offset: Option<&Tensor>, rng_name: &str) -> Result<()> {
    ensure!(fixed_seed_offset.is_none(), "fixed_seed_offset is not known here; call seed() before instead");
    ensure!(rng_name.is_empty(), "there is no generator of the name {rng_name:?}; leave rng_name out");
    Ok(())
}

/// The attention of `query`, `key` and `value` `[batch, length, heads, width]`, and its weights with `return_softmax`:
/// [`scaled_dot_product_attention`](Tensor::scaled_dot_product_attention) under its older name.
///
/// ```
/// use sampan_core::{Tensor, ops::flash_attention::flash_attention};
/// let x = Tensor::new([[[[1.0f32, 0.0]], [[0.0, 1.0]]]]);
/// let found = flash_attention(&x, &x, &x, 0.0, true, true, None, "", true, None)?;
/// assert_eq!(found.out.to_vec::<f32>()[..2], [1.0, 0.0]);
/// assert_eq!(found.softmax.unwrap().shape(), [1, 1, 2, 2]);
/// # Ok::<(), sampan_core::Error>(())
/// ```
#[function(module = "nn.functional.flash_attention")]
pub fn flash_attention(
    query: &Tensor,
    key: &Tensor,
    value: &Tensor,
    #[default(0.0)] dropout: f64,
    #[default(false)] causal: bool,
    #[default(false)] return_softmax: bool,
    #[default(None)] fixed_seed_offset: Option<&Tensor>,
    #[default("")] rng_name: &str,
    #[default(true)] training: bool,
    #[default(None)] softmax_scale: Option<f64>,
) -> Result<Attended> {
    outermost(|| {
        no_other_generator(fixed_seed_offset, rng_name)?;
        let plan = Plan { dropout, causal, scale: softmax_scale, training, weights: return_softmax };
        plan.run(query, key, value, None)
    })
    .map_err(|e| e.in_op("flash_attention"))
}

/// `[…, groups + 2, heads, width]` as queries `[…, groups * heads, width]`, keys and values `[…, heads, width]`.
fn unpack(qkv: &Tensor, rank: usize) -> Result<[Tensor; 3]> {
    ensure!(qkv.ndim() == rank, "qkv must have {rank} axes, got {:?}", qkv.shape());
    let axis = rank as i64 - 3;
    let parts = qkv.dim(axis);
    ensure!(parts > 2, "qkv must hold queries, keys and values along axis {axis}, got {:?}", qkv.shape());
    let queries = qkv.narrow(axis, 0, parts as i64 - 2).flatten(axis, axis + 1);
    Ok([queries, qkv.try_select(axis, parts - 2)?, qkv.try_select(axis, parts - 1)?])
}

/// The attention of `qkv` `[batch, length, groups + 2, heads, width]`: queries of `groups * heads` heads, then keys and values.
/// Gives the attention `[batch, length, groups * heads, width]`, and its weights with `return_softmax`.
///
/// ```
/// use sampan_core::{DType, Tensor, ops::flash_attention::flash_attn_qkvpacked};
/// let qkv = Tensor::ones([2, 5, 4, 3, 8], DType::Float32);
/// assert_eq!(flash_attn_qkvpacked(&qkv, 0.0, false, false, None, "", true)?.out.shape(), [2, 5, 6, 8]);
/// # Ok::<(), sampan_core::Error>(())
/// ```
#[function(module = "nn.functional", also("nn.functional.flash_attention.flash_attn_qkvpacked"))]
pub fn flash_attn_qkvpacked(
    qkv: &Tensor,
    #[default(0.0)] dropout: f64,
    #[default(false)] causal: bool,
    #[default(false)] return_softmax: bool,
    #[default(None)] fixed_seed_offset: Option<&Tensor>,
    #[default("")] rng_name: &str,
    #[default(true)] training: bool,
) -> Result<Attended> {
    outermost(|| {
        no_other_generator(fixed_seed_offset, rng_name)?;
        let [q, k, v] = unpack(qkv, 5)?;
        Plan { dropout, causal, scale: None, training, weights: return_softmax }.run(&q, &k, &v, None)
    })
    .map_err(|e| e.in_op("flash_attn_qkvpacked"))
}

/// Where each sequence begins and ends in a tensor of many.
fn bounds(ends: &Tensor, rows: usize, padded: Option<usize>, name: &str) -> Result<Vec<(i64, i64)>> {
    let ends = ends.try_to_ints()?;
    ensure!(ends.first() == Some(&0), "{name} must begin with 0, got {ends:?}");
    let mut bounds = Vec::new();
    for (i, pair) in ends.windows(2).enumerate() {
        let start = padded.map_or(pair[0], |n| i.saturating_mul(n) as i64);
        let length = pair[1].saturating_sub(pair[0]);
        let room = padded.map_or(i64::MAX, |n| n as i64);
        ensure!((0..=room).contains(&length), "{name} gives sequence {i} the length {length}");
        let end = start.saturating_add(length);
        ensure!(start >= 0 && end <= rows as i64, "{name} ends at {end}, there are {rows} rows");
        bounds.push((start, length));
    }
    Ok(bounds)
}

/// `x` with zeros after its end along an axis.
fn fill_up(x: &Tensor, axis: usize, length: usize) -> Tensor {
    let mut shape = x.shape().to_vec();
    shape[axis] = length.saturating_sub(shape[axis]);
    if shape[axis] == 0 { x.clone() } else { concat(&[x.clone(), Tensor::zeros(shape, x.dtype())], axis as i64) }
}

/// The attention of each sequence to itself. `most` are the lengths of the longest queries and keys.
fn each_sequence(
    [q, k, v]: [&Tensor; 3],
    [ends_q, ends_k]: [&Tensor; 2],
    most: [usize; 2],
    padded: bool,
    plan: Plan,
) -> Result<Attended> {
    for (name, t) in [("query", q), ("key", k), ("value", v)] {
        ensure!(t.ndim() == 3, "{name} must be [length of all, heads, width], got {:?}", t.shape());
    }
    let queries = bounds(ends_q, q.dim(0), padded.then_some(most[0]), "cu_seqlens_q")?;
    let keys = bounds(ends_k, k.dim(0), padded.then_some(most[1]), "cu_seqlens_k")?;
    ensure!(queries.len() == keys.len(), "{} sequences of queries, {} of keys", queries.len(), keys.len());
    let (mut outs, mut weights, mut reached) = (Vec::new(), Vec::new(), 0);
    for (&(at, n), &(from, m)) in queries.iter().zip(&keys) {
        let part = |t: &Tensor, start: i64, length: i64| t.narrow(0, start, length).unsqueeze(0);
        let (k, v) = (part(k, from, m), part(v, from, m));
        // The last query sees the last key: with as many of both, that is the usual causal mask.
        let ahead = plan.causal && n != m;
        let mask = ahead.then(|| {
            let hidden = |i: i64| if i % m > i / m + m - n { f32::NEG_INFINITY } else { 0.0 };
            Tensor::from_vec((0..n * m).map(hidden).collect(), [n as usize, m as usize]).cast(q.dtype())
        });
        let plan = Plan { causal: plan.causal && !ahead, ..plan };
        let Attended { out, softmax: seen } = plan.run(&part(q, at, n), &k, &v, mask.as_ref())?;
        let room = if padded { most[0] } else { n as usize };
        outs.push(fill_up(&out.squeeze(0), 0, room));
        reached += room;
        weights.extend(seen.map(|w| fill_up(&fill_up(&w.squeeze(0), 1, most[0]), 2, most[1])));
    }
    let heads = [q.dim(1), v.dim(2)];
    if reached < q.dim(0) || outs.is_empty() {
        outs.push(Tensor::zeros([q.dim(0) - reached, heads[0], heads[1]], q.dtype()));
    }
    let softmax = (plan.weights && !weights.is_empty()).then(|| stack(&weights, 0));
    Ok(Attended { out: concat(&outs, 0).narrow(0, 0, q.dim(0) as i64), softmax })
}

/// The attention of sequences of several lengths that lie one after another in `query` `[length of all, heads, width]`, `key`
/// and `value`; sequence `i` is rows `cu_seqlens[i]` to `cu_seqlens[i + 1]`. With `causal` the last query of a sequence sees
/// its last key. With `return_softmax` also the weights `[sequences, heads, max_seqlen_q, max_seqlen_k]`, zero beyond the ends.
///
/// ```
/// use sampan_core::{DType, Tensor, ops::flash_attention::flash_attn_unpadded};
/// let (x, ends) = (Tensor::ones([5, 2, 8], DType::Float32), Tensor::new([0i32, 2, 5]));
/// let found = flash_attn_unpadded(&x, &x, &x, &ends, &ends, 3, 3, 0.35, 0.0, false, false, None, "", true)?;
/// assert_eq!(found.out.shape(), [5, 2, 8]);
/// # Ok::<(), sampan_core::Error>(())
/// ```
#[function(module = "nn.functional.flash_attention")]
pub fn flash_attn_unpadded(
    query: &Tensor,
    key: &Tensor,
    value: &Tensor,
    cu_seqlens_q: &Tensor,
    cu_seqlens_k: &Tensor,
    max_seqlen_q: usize,
    max_seqlen_k: usize,
    scale: f64,
    #[default(0.0)] dropout: f64,
    #[default(false)] causal: bool,
    #[default(false)] return_softmax: bool,
    #[default(None)] fixed_seed_offset: Option<&Tensor>,
    #[default("")] rng_name: &str,
    #[default(true)] training: bool,
) -> Result<Attended> {
    outermost(|| {
        no_other_generator(fixed_seed_offset, rng_name)?;
        let plan = Plan { dropout, causal, scale: Some(scale), training, weights: return_softmax };
        let ends = [cu_seqlens_q, cu_seqlens_k];
        each_sequence([query, key, value], ends, [max_seqlen_q, max_seqlen_k], false, plan)
    })
    .map_err(|e| e.in_op("flash_attn_unpadded"))
}

/// [`flash_attn_unpadded`] of `qkv` `[length of all, groups + 2, heads, width]`, packed as in [`flash_attn_qkvpacked`]. With
/// `varlen_padded` each sequence has room for `max_seqlen_q` rows, of which the first are its own; the others give zeros.
///
/// ```
/// use sampan_core::{DType, Tensor, ops::flash_attention::flash_attn_varlen_qkvpacked};
/// let (qkv, ends) = (Tensor::ones([6, 3, 2, 8], DType::Float32), Tensor::new([0i32, 2, 5]));
/// let out = flash_attn_varlen_qkvpacked(&qkv, &ends, &ends, 3, 3, 0.35, 0.0, false, false, None, "", true, true)?.out;
/// assert_eq!(out.shape(), [6, 2, 8]);
/// assert_eq!(out.get((.., 0, 0)).to_vec::<f32>(), [1.0, 1.0, 0.0, 1.0, 1.0, 1.0]);
/// # Ok::<(), sampan_core::Error>(())
/// ```
#[function(module = "nn.functional", also("nn.functional.flash_attention.flash_attn_varlen_qkvpacked"))]
pub fn flash_attn_varlen_qkvpacked(
    qkv: &Tensor,
    cu_seqlens_q: &Tensor,
    cu_seqlens_k: &Tensor,
    max_seqlen_q: usize,
    max_seqlen_k: usize,
    scale: f64,
    #[default(0.0)] dropout: f64,
    #[default(false)] causal: bool,
    #[default(false)] return_softmax: bool,
    #[default(None)] fixed_seed_offset: Option<&Tensor>,
    #[default("")] rng_name: &str,
    #[default(true)] varlen_padded: bool,
    #[default(true)] training: bool,
) -> Result<Attended> {
    outermost(|| {
        no_other_generator(fixed_seed_offset, rng_name)?;
        let [q, k, v] = unpack(qkv, 4)?;
        let plan = Plan { dropout, causal, scale: Some(scale), training, weights: return_softmax };
        let ends = [cu_seqlens_q, cu_seqlens_k];
        each_sequence([&q, &k, &v], ends, [max_seqlen_q, max_seqlen_k], varlen_padded, plan)
    })
    .map_err(|e| e.in_op("flash_attn_varlen_qkvpacked"))
}
