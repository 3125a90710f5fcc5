//! Attention under masks that are written in few numbers.

use crate::dispatch::outermost;
use crate::ops::attention::ScaledDotProductAttentionOpts;
use crate::ops::prelude::*;
use sampan_macros::function;

/// The rows of a block that `block_mask` keeps or drops.
const BLOCK: i64 = 128;

/// Zero where a key is seen, minus infinity where it is not.
fn additive(hidden: &Tensor, dtype: DType) -> Tensor {
    hidden.where_cond(f64::NEG_INFINITY, 0.0).cast(dtype)
}

/// One column of row numbers for each key: those of `startend_row_indices`, or those that a window stands for.
fn hidden_rows(indices: &Tensor, queries: i64, causal: bool) -> Result<Tensor> {
    let rows = Tensor::arange(0, queries, 1).reshape([1, 1, queries, 1]);
    let columns = indices.cast(DType::Int64).unbind(-1);
    let column = |i: usize| columns[i].unsqueeze(2);
    let between = |from: usize, to: usize| rows.greater_equal(column(from)).logical_and(rows.less_than(column(to)));
    Ok(match (causal, indices.shape()[3]) {
        (true, 1) => rows.greater_equal(column(0)),
        (true, 2) => between(0, 1),
        (false, 2) => rows.greater_equal(column(0)).logical_or(rows.less_than(column(1))),
        (false, 4) => between(0, 1).logical_or(between(2, 3)),
        (_, n) => {
            let wanted = if causal { "1 or 2" } else { "2 or 4" };
            bail!("the last axis of startend_row_indices must be {wanted} with causal={causal}, got {n}")
        }
    })
}

/// Attention of `query`, `key` and `value` `[batch, length, heads, width]` where each key is hidden from a range of queries.
///
/// `startend_row_indices` `[batch, heads, key length, n]` (int32; heads: 1, or those of the keys or queries) holds rows for
/// each key. With `causal`, n is 1 (hidden from that row on) or 2 (from the first row to before the second); without, n is 2
/// (hidden from the first row on and before the second) or 4 (in two ranges, each from a row to before another). Instead of
/// it, `window_size` lets query `i` see keys `i - window` to `i + window`, one number or two. `block_mask` `[batch, heads,
/// query blocks, key blocks]` hides whole blocks of 128 by 128 where it is 0. With `return_softmax_lse` also the logarithm of
/// the sum of the exponentials of each query's scores, `[batch, heads, length]`.
///
/// ```
/// use sampan_core::{Tensor, Value, function};
/// let x = Tensor::new([[[[1.0f32]], [[2.0]], [[3.0]]]]);
/// let zero = Value::from(&x * 0.0);
/// // The first key is hidden from the last query.
/// let rows = Tensor::from_vec(vec![2i32, 3, 3], [1, 1, 3, 1]);
/// let attention = function::find("nn.functional", "flashmask_attention").expect("it is registered");
/// let out = attention.call(vec![zero.clone(), zero, x.into(), rows.into()], vec![("causal", true.into())])?;
/// assert!(matches!(out, Value::Tensor(out) if out.to_vec::<f32>() == [1.0, 1.5, 2.5]));
/// # Ok::<(), sampan_core::Error>(())
/// ```
#[function(module = "nn.functional", also("nn.functional.flash_attention.flashmask_attention"))]
pub fn flashmask_attention(
    query: &Tensor,
    key: &Tensor,
    value: &Tensor,
    #[default(None)] startend_row_indices: Option<&Tensor>,
    #[default(0.0)] dropout: f64,
    #[default(false)] causal: bool,
    #[default(None)] window_size: Option<&[i64]>,
    #[default(false)] return_softmax_lse: bool,
    #[default(false)] return_seed_offset: bool,
    #[default(None)] fixed_seed_offset: Option<&Tensor>,
    #[default("")] rng_name: &str,
    #[default(true)] training: bool,
    #[default(None)] softmax_scale: Option<f64>,
    #[default(None)] block_mask: Option<&Tensor>,
) -> Result<Value> {
    outermost(|| {
        crate::ops::flash_attention::no_other_generator(fixed_seed_offset, rng_name)?;
        ensure!(!return_seed_offset, "return_seed_offset is not known here: there is one generator, see get_rng_state");
        let (&[batch, queries, heads, width], &[_, keys, key_heads, _]) = (query.shape(), key.shape()) else {
            bail!("query and key must be [batch, length, heads, width], got {:?} and {:?}", query.shape(), key.shape());
        };
        let mut hidden: Option<Tensor> = None;
        let hide = |so_far: Option<Tensor>, more: Tensor| Some(so_far.map_or(more.clone(), |m| m.logical_or(&more)));
        if let Some(window) = window_size {
            ensure!(startend_row_indices.is_none(), "give startend_row_indices or window_size, not both");
            let (before, after) = match *window {
                [n] => (n, n),
                [a, b] => (a, b),
                _ => bail!("window_size must be one number or two, got {window:?}"),
            };
            let (rows, columns) = (Tensor::arange(0, queries as i64, 1), Tensor::arange(0, keys as i64, 1));
            let ahead = rows.unsqueeze(1) - columns.unsqueeze(0);
            let far = ahead.greater_than(before);
            hidden = Some(if causal { far } else { far.logical_or(ahead.less_than(-after)) });
        }
        let spread = |mask: &Tensor, name: &str| -> Result<Tensor> {
            match mask.dim(1) {
                1 => Ok(mask.clone()),
                n if n == heads => Ok(mask.clone()),
                n if n == key_heads && key_heads > 0 => mask.try_repeat_interleave((heads / n) as i64, Some(1)),
                n => bail!("{name} must have 1, {key_heads} or {heads} heads, got {n}"),
            }
        };
        if let Some(indices) = startend_row_indices {
            let fits = indices.ndim() == 4 && indices.dim(0) == batch && indices.dim(2) == keys;
            ensure!(fits, "startend_row_indices must be [{batch}, heads, {keys}, n], got {:?}", indices.shape());
            ensure!(indices.dtype().is_int(), "startend_row_indices must be int32, got {}", indices.dtype());
            let indices = spread(indices, "startend_row_indices")?;
            hidden = hide(hidden, hidden_rows(&indices, queries as i64, causal)?);
        }
        if let Some(blocks) = block_mask {
            ensure!(startend_row_indices.is_some(), "block_mask needs startend_row_indices");
            let count = |n: usize| n.div_ceil(BLOCK as usize);
            let fits = blocks.ndim() == 4
                && (blocks.dim(0), blocks.dim(2), blocks.dim(3)) == (batch, count(queries), count(keys));
            ensure!(
                fits,
                "block_mask must be [{batch}, heads, {}, {}], got {:?}",
                count(queries),
                count(keys),
                blocks.shape()
            );
            let grow =
                |t: Tensor, axis: i64, n: usize| t.repeat_interleave(BLOCK, Some(axis)).narrow(axis, 0, n as i64);
            let dropped = spread(blocks, "block_mask")?.equal(0);
            hidden = hide(hidden, grow(grow(dropped, 2, queries), 3, keys));
        }
        let mask = hidden.map(|hidden| additive(&hidden, query.dtype()));
        let mut opts = ScaledDotProductAttentionOpts::new().dropout_p(dropout).is_causal(causal).training(training);
        if let Some(scale) = softmax_scale {
            opts = opts.scale(scale);
        }
        let out = query.try_scaled_dot_product_attention_with(key, value, mask.as_ref(), opts)?;
        if !return_softmax_lse {
            return Ok(out.into());
        }
        let scale = softmax_scale.unwrap_or(1.0 / (width.max(1) as f64).sqrt());
        let (_, lse) = query.try_attention(key, value, mask.as_ref(), scale, causal)?;
        let dtype = if query.dtype() == DType::Float64 { DType::Float64 } else { DType::Float32 };
        Ok(vec![out, lse.try_cast(dtype)?].into())
    })
    .map_err(|e| e.in_op("flashmask_attention"))
}

/// Attention of `query`, `key` and `value` `[batch, heads, length, width]` where each query sees a few keys: those of query
/// `i` are `sparse_csr_columns` `[batch, heads, n]` from `sparse_csr_offset` `[batch, heads, length + 1]` at `i` to at `i + 1`.
/// A 0 in `key_padding_mask` `[batch, length]` hides a key from all, one in `attn_mask` `[length, length]` a key from a
/// query. A query that sees nothing gives zeros.
///
/// ```
/// use sampan_core::{Tensor, ops::sparse_attention::sparse_attention};
/// let x = Tensor::new([[[[0.0f32, 1.0], [2.0, 3.0]]]]);
/// let (offset, columns) = (Tensor::new([[[0i32, 1, 3]]]), Tensor::new([[[1i32, 0, 1]]]));
/// let out = sparse_attention(&x, &x, &x, &offset, &columns, None, None)?;
/// assert_eq!(out.to_vec::<f32>()[..2], [2.0, 3.0]);
/// # Ok::<(), sampan_core::Error>(())
/// ```
#[function(module = "nn.functional")]
pub fn sparse_attention(
    query: &Tensor,
    key: &Tensor,
    value: &Tensor,
    sparse_csr_offset: &Tensor,
    sparse_csr_columns: &Tensor,
    #[default(None)] key_padding_mask: Option<&Tensor>,
    #[default(None)] attn_mask: Option<&Tensor>,
) -> Result<Tensor> {
    outermost(|| {
        let &[batch, heads, length, _] = query.shape() else {
            bail!("query must be [batch, heads, length, width], got {:?}", query.shape());
        };
        let (ends, columns) = (sparse_csr_offset.try_to_ints()?, sparse_csr_columns.try_to_ints()?);
        let wanted = [batch, heads, length + 1];
        ensure!(
            sparse_csr_offset.shape() == wanted,
            "sparse_csr_offset must have shape {wanted:?}, got {:?}",
            sparse_csr_offset.shape()
        );
        let &[b, h, stored] = sparse_csr_columns.shape() else { bail!("sparse_csr_columns must have three axes") };
        ensure!((b, h) == (batch, heads), "sparse_csr_columns must have shape [{batch}, {heads}, n]");
        let mut hidden = vec![Bool::from(true); batch * heads * length * length];
        for (matrix, ends) in ends.chunks_exact(length + 1).enumerate() {
            for (row, pair) in ends.windows(2).enumerate() {
                ensure!(
                    0 <= pair[0] && pair[0] <= pair[1] && pair[1] <= stored as i64,
                    "sparse_csr_offset must rise from 0 to at most {stored}, got {ends:?}"
                );
                for &column in &columns[matrix * stored..][pair[0] as usize..pair[1] as usize] {
                    ensure!((0..length as i64).contains(&column), "there is no key {column} of {length}");
                    hidden[(matrix * length + row) * length + column as usize] = Bool::from(false);
                }
            }
        }
        let mut hidden = Tensor::from_vec(hidden, [batch, heads, length, length]);
        if let Some(mask) = key_padding_mask {
            let wanted = [batch, length];
            ensure!(mask.shape() == wanted, "key_padding_mask must have shape {wanted:?}, got {:?}", mask.shape());
            hidden = hidden.logical_or(mask.equal(0).reshape_to([batch, 1, 1, length]));
        }
        if let Some(mask) = attn_mask {
            let wanted = [length, length];
            ensure!(mask.shape() == wanted, "attn_mask must have shape {wanted:?}, got {:?}", mask.shape());
            hidden = hidden.logical_or(mask.equal(0));
        }
        let [q, k, v] = [query, key, value].map(|t| t.try_transpose([0, 2, 1, 3]));
        let out = q?.try_scaled_dot_product_attention(&k?, &v?, Some(&additive(&hidden, query.dtype())))?;
        out.try_transpose([0, 2, 1, 3])
    })
    .map_err(|e| e.in_op("sparse_attention"))
}
