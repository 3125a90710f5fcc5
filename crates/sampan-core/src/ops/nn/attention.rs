//! Attention without the matrix of all scores.

use crate::autograd::{grad_enabled, vjp};
use crate::ops::elementwise::sum_to;
use crate::ops::prelude::*;
use crate::ops::reduction::{LogsumexpOpts, SumOpts};
use sampan_cuda::random::Draw;
use sampan_kernels::attention::{self as kernel, Attention, Dropout};
use sampan_kernels::{AnySlice, AnyView};

/// `softmax(query keyᵀ · scale + mask) value` for every sequence and head: `query` is `[batch, length, heads, width]`, `key` and
/// `value` may have another length and, if `heads` is a multiple of theirs, fewer heads; without the batch axis one
/// sequence is meant. A bool `attn_mask` says what takes part, a float one is added to the scores; it broadcasts to
/// `[batch, heads, query length, key length]`. `is_causal` lets query `i` see keys `0..=i` (on top of a mask). Scores are made
/// tile by tile and never kept. A query that sees nothing gives zeros.
///
/// ```
/// # use sampan_core::{DType, Tensor};
/// let x = Tensor::new([[[[1.0f32, 0.0]], [[0.0, 1.0]]]]);
/// let out = x.scaled_dot_product_attention_with(&x, &x, None, sampan_core::ops::attention::ScaledDotProductAttentionOpts::new().is_causal(true));
/// assert_eq!(out.to_vec::<f32>()[..2], [1.0, 0.0]);
/// ```
#[op(random, module = "nn.functional", samples = attention_samples, amp = "white", tol = 2e-5)]
fn scaled_dot_product_attention(
    query: &Tensor,
    key: &Tensor,
    value: &Tensor,
    #[default(None)] attn_mask: Option<&Tensor>,
    #[opt(0.0)] dropout_p: f64,
    #[opt(false)] is_causal: bool,
    #[opt(true)] training: bool,
    #[opt(None)] backend: Option<&str>,
    #[opt(None)] scale: Option<f64>,
    #[opt(true)] enable_gqa: bool,
) -> Result<Tensor> {
    ensure!(backend.is_none(), "backend {backend:?} is not known; leave it out");
    ensure!((0.0..=1.0).contains(&dropout_p), "dropout_p must lie in [0, 1], got {dropout_p}");
    let single = query.ndim() == 3;
    if single {
        ensure!(key.ndim() == 3 && value.ndim() == 3, "query has no batch axis, so key and value must have none");
    }
    let batched = |t: &Tensor| if single { t.unsqueeze(0) } else { t.clone() };
    let (q, k, v) = (batched(query), batched(key), batched(value));
    let form = Form::new(&q, &k, &v, scale, is_causal)?;
    ensure!(enable_gqa || form.group == 1, "query has {} heads, key has {}", form.heads(), form.kv_heads);
    let mask = match attn_mask {
        Some(m) if m.dtype() == DType::Bool => Some(m.where_cond(0.0, f64::NEG_INFINITY).cast(q.dtype())),
        Some(m) => Some(m.clone()),
        None => None,
    };
    let p = if training { dropout_p } else { 0.0 };
    if let (Device::Cuda(number), false) = (q.device(), crate::dispatch::listening()) {
        let scores = form.scores(&q, &k, form.mask_of(mask.as_ref())?.as_ref());
        let mut weights = scores.softmax(-1);
        if p > 0.0 {
            let keep = form.kept_on_gpu(crate::gpu::gpu(number)?, 1.0 - p, weights.shape())?;
            weights = weights.try_masked_scale(&keep, if p < 1.0 { 1.0 / (1.0 - p) } else { 0.0 }, 0.0)?;
        }
        let out = form.unfold(&weights.matrix_product(&form.keys(&v))).in_dtype(q.dtype())?;
        return Ok(if single { out.squeeze(0) } else { out });
    }
    let mut opts = AttentionOpts::new();
    if training && dropout_p > 0.0 {
        let rows = form.batch * form.heads() * form.q_len;
        let count = Dropout::counters(rows, form.kv_len) as i64;
        let drawn = match q.device() {
            Device::Meta => Tensor::meta([2], DType::Int64),
            _ => crate::device::with(Device::Cpu, || try_random_place(count))?,
        };
        opts = opts.dropout_p(dropout_p).drawn(&drawn);
    }
    let out = q.try_attention_with(&k, &v, mask.as_ref(), form.scale, is_causal, opts)?.0;
    Ok(if single { out.squeeze(0) } else { out })
}

/// The extents of an attention.
#[derive(Clone, Copy)]
pub(super) struct Form {
    batch: usize,
    q_len: usize,
    kv_len: usize,
    kv_heads: usize,
    /// Query heads to a key head.
    group: usize,
    dim: usize,
    v_dim: usize,
    scale: f64,
    causal: bool,
}

impl Form {
    pub(super) fn new(q: &Tensor, k: &Tensor, v: &Tensor, scale: Option<f64>, causal: bool) -> Result<Form> {
        for (name, t) in [("query", q), ("key", k), ("value", v)] {
            ensure!(t.ndim() == 4, "{name} must be [batch, length, heads, width], it has {} axes", t.ndim());
            if !t.dtype().is_float() {
                return Err(Error::dtype(format!("{name} must be a float tensor, got {}", t.dtype())));
            }
        }
        let (batch, q_len, heads, dim) = (q.dim(0), q.dim(1), q.dim(2), q.dim(3));
        let (kv_len, kv_heads) = (k.dim(1), k.dim(2));
        ensure!(k.dim(0) == batch && v.dim(0) == batch, "the batches differ: {batch}, {} and {}", k.dim(0), v.dim(0));
        ensure!(k.dim(3) == dim, "query has width {dim}, key has {}", k.dim(3));
        ensure!(v.dim(1) == kv_len, "key has length {kv_len}, value has {}", v.dim(1));
        ensure!(v.dim(2) == kv_heads, "key has {kv_heads} heads, value has {}", v.dim(2));
        let fits = if kv_heads == 0 { heads == 0 } else { heads % kv_heads == 0 };
        ensure!(fits, "query has {heads} heads, no multiple of the {kv_heads} heads of key");
        let scale = scale.unwrap_or(1.0 / (dim.max(1) as f64).sqrt());
        let group = heads.checked_div(kv_heads).unwrap_or(1);
        Ok(Form { batch, q_len, kv_len, kv_heads, group, dim, v_dim: v.dim(3), scale, causal })
    }

    fn heads(&self) -> usize {
        self.kv_heads * self.group
    }

    /// `[batch, length, heads, width]` as `[batch, key heads, group, length, width]`.
    fn queries(&self, x: &Tensor) -> Tensor {
        let (n, w) = (x.dim(1), x.dim(3));
        x.transpose([0, 2, 1, 3]).reshape_to([self.batch, self.kv_heads, self.group, n, w])
    }

    pub(super) fn keys(&self, x: &Tensor) -> Tensor {
        x.transpose([0, 2, 1, 3]).unsqueeze(2)
    }

    /// `[batch, heads, length]` as a column for each query.
    fn rows(&self, x: &Tensor) -> Tensor {
        x.reshape_to([self.batch, self.kv_heads, self.group, self.q_len, 1])
    }

    /// Back from `queries`.
    pub(super) fn unfold(&self, x: &Tensor) -> Tensor {
        let (n, w) = (x.dim(3), x.dim(4));
        x.reshape_to([self.batch, self.heads(), n, w]).transpose([0, 2, 1, 3])
    }

    /// Back from `keys`, adding up what the heads of a group gave.
    fn unfold_keys(&self, x: &Tensor) -> Tensor {
        let shape = [x.dim(0), x.dim(1), 1, x.dim(3), x.dim(4)];
        sum_to(x, &shape).squeeze(2).transpose([0, 2, 1, 3])
    }

    /// A mask with the axes of the scores, causality included.
    pub(super) fn mask_of(&self, mask: Option<&Tensor>) -> Result<Option<Tensor>> {
        let mask = mask.map(|m| self.spread_mask(m)).transpose()?;
        if !self.causal {
            return Ok(mask);
        }
        let hidden = |i: usize| if i % self.kv_len > i / self.kv_len { f32::NEG_INFINITY } else { 0.0 };
        let causal = Tensor::from_vec((0..self.q_len * self.kv_len).map(hidden).collect(), [self.q_len, self.kv_len]);
        Ok(Some(match mask {
            Some(m) => m + causal,
            None => causal,
        }))
    }

    fn spread_mask(&self, m: &Tensor) -> Result<Tensor> {
        let m = self.four_axes(m)?;
        let (h, g) = if m.dim(1) == 1 { (1, 1) } else { (self.kv_heads, self.group) };
        Ok(m.reshape_to([m.dim(0), h, g, m.dim(2), m.dim(3)]))
    }

    /// The mask as `[batch, heads, query length, key length]`, where an axis may be 1.
    fn four_axes(&self, m: &Tensor) -> Result<Tensor> {
        let full = [self.batch, self.heads(), self.q_len, self.kv_len];
        if !m.dtype().is_float() {
            return Err(Error::dtype(format!("the mask must be bool or a float, got {}", m.dtype())));
        }
        let fits = m.ndim() <= 4 && broadcast(m.shape(), &full).is_ok_and(|s| s[..] == full);
        ensure!(fits, "the mask of shape {:?} does not broadcast to {full:?}", m.shape());
        Ok(m.reshape_to([vec![1; 4 - m.ndim()], m.shape().to_vec()].concat()))
    }

    /// All scores.
    pub(super) fn scores(&self, q: &Tensor, k: &Tensor, mask: Option<&Tensor>) -> Tensor {
        let s = self.queries(q).matrix_product(&self.keys(k).transpose_last()) * self.scale;
        mask.map_or(s.clone(), |m| s + m)
    }

    /// Weights from scores and the logarithms of their sums, and the gradients of the weights.
    fn weights(
        &self,
        q: &Tensor,
        k: &Tensor,
        v: &Tensor,
        mask: Option<&Tensor>,
        lse: &Tensor,
        g: &Tensor,
    ) -> Result<[Tensor; 2]> {
        let scores = self.scores(q, k, self.mask_of(mask)?.as_ref());
        let p = (&scores - self.rows(lse)).exp().cast(scores.dtype());
        Ok([p, self.queries(g).matrix_product(&self.keys(v).transpose_last())])
    }
}

/// Takes `count` counters from the stream of random numbers: the seed and the first of them, which a call and its gradient
/// make the same numbers from.
#[op(random, internal, non_diff, module = "nn.functional", samples = place_samples, peer = "none: a place in the stream")]
fn random_place(cx: &Cx, count: i64) -> Result<Tensor> {
    ensure!((0..=1 << 48).contains(&count), "count must lie between 0 and 2^48, got {count}");
    let out = cx.out([2], DType::Int64)?;
    cx.cpu(|| {
        let (seed, start) = crate::random::reserve(count as usize);
        out.data_mut::<i64>().slice().copy_from_slice(&[seed as i64, start as i64]);
        Ok(())
    })?;
    Ok(out)
}

/// The dropout of a call, by where its random numbers are.
fn dropout_of(p: f64, drawn: Option<&Tensor>) -> Result<Option<Dropout>> {
    let Some(place) = drawn.filter(|t| p > 0.0 && t.device().has_values()) else { return Ok(None) };
    let is_place = place.dtype() == DType::Int64 && *place.shape() == [2];
    ensure!(is_place, "drawn must be the seed and the counter, int64 of shape [2], got {}", place.describe());
    let place = place.contiguous();
    let values = place.data::<i64>();
    let [seed, start] = [values.slice()[0], values.slice()[1]].map(|v| v as u64);
    Ok(Some(Dropout { p, seed, start }))
}

/// The tiled kernel of `scaled_dot_product_attention`, and the logarithm of the sum of the exponentials of each query's
/// scores, `[batch, heads, length]` in float64: a large score would leave it no room in less. The random numbers of dropout begin where `drawn` says, a seed and a counter.
#[op(
    internal,
    module = "nn.functional",
    samples = kernel_samples,
    peer = "lambda q, k, v, mask, scale, causal: ( \
            y := F.scaled_dot_product_attention(*[t.transpose(1, 2) for t in (q, k, v)], mask, 0, causal, scale=scale, \
                enable_gqa=True), \
            (y.transpose(1, 2), torch.logsumexp(torch_scores(q, k, mask, scale, causal), -1)))[-1]",
    reference = attention_composite,
    results("out", "lse"),
    work = crate::ops::work::attention
)]
fn attention(
    cx: &Cx,
    query: &Tensor,
    key: &Tensor,
    value: &Tensor,
    mask: Option<&Tensor>,
    scale: f64,
    causal: bool,
    #[opt(0.0)] dropout_p: f64,
    #[opt(None)] drawn: Option<&Tensor>,
) -> Result<(Tensor, Tensor)> {
    let form = Form::new(query, key, value, Some(scale), causal)?;
    let dropout = dropout_of(dropout_p, drawn)?;
    let dtype = promote_all(&[query.clone(), key.clone(), value.clone()])?;
    let mask4 = mask.map(|m| form.four_axes(m)).transpose()?;
    let wide = if dtype == DType::Float64 { dtype } else { DType::Float32 };
    let out = cx.out([form.batch, form.q_len, form.heads(), form.v_dim], wide)?;
    let lse = cx.out([form.batch, form.heads(), form.q_len], DType::Float64)?;
    cx.cpu(|| {
        let call = Call::new(form, [query, key, value], mask4.as_ref(), dropout, wide)?;
        call.with(|s, [q, k, v], mask| {
            kernel::forward(s, q, k, v, mask, out.values_mut().slice(), lse.data_mut::<f64>().slice());
        });
        Ok(())
    })?;
    let out = out.try_cast(dtype)?;
    let saved: Vec<&Tensor> = [Some(query), Some(key), Some(value), mask, drawn].into_iter().flatten().collect();
    let (masked, drops) = (mask.is_some(), drawn.is_some());
    cx.grad_from_output((out, lse), &saved, move |g| {
        let (q, k, v, mask) = (g.saved(0), g.saved(1), g.saved(2), masked.then(|| g.saved(3)));
        let drawn = drops.then(|| g.saved(3 + masked as usize));
        // Where random numbers come from has no gradient.
        let complete = |mut grads: Vec<Option<Tensor>>| {
            grads.extend(drawn.map(|_| None));
            grads
        };
        if dropout.is_some() && (grad_enabled() || mask.is_some() && g.needs(3)) {
            // Gradients of gradients, and that of a mask, which is as large as the scores: no use in tiles.
            let inputs: Vec<&Tensor> = [Some(q), Some(k), Some(v), mask].into_iter().flatten().collect();
            let grads = vjp(&inputs, &[Some(g.grad_of(0)), Some(g.grad_of(1))], |t| {
                let out = attention_composite(&t[0], &t[1], &t[2], t.get(3), scale, causal, dropout_p, drawn)?;
                Ok(vec![out.0, out.1])
            });
            return grads.map(complete);
        }
        let (out, lse, d) = (g.output(0), g.output(1), g.grad_of(0));
        let delta = (out * &d).sum(-1).transpose([0, 2, 1]) - g.grad_of(1).cast(d.dtype());
        if mask.is_some() && g.needs(3) {
            // The gradient of the mask is as large as the scores: no use in tiles.
            let [p, dp] = form.weights(q, k, v, mask, lse, &d)?;
            let ds = &p * (dp - form.rows(&delta));
            let dq = form.unfold(&(ds.matrix_product(&form.keys(k)) * scale));
            let dk = form.unfold_keys(&(ds.transpose_last().matrix_product(&form.queries(q)) * scale));
            let dv = form.unfold_keys(&p.transpose_last().matrix_product(&form.queries(&d)));
            return Ok(complete(vec![Some(dq), Some(dk), Some(dv), mask.map(|m| form.mask_gradient(&ds, m))]));
        }
        let opts = AttentionBackwardOpts::new().dropout_p(dropout_p);
        let opts = drawn.into_iter().fold(opts, |opts, t| opts.drawn(t));
        let (dq, dk, dv) = q.try_attention_backward_with(k, v, mask, lse, &d, &delta, scale, causal, opts)?;
        let mut grads = vec![Some(dq), Some(dk), Some(dv)];
        grads.extend(mask.map(|_| None));
        Ok(complete(grads))
    })
}

impl Form {
    /// What dropout multiplies all weights by.
    fn factors(&self, dropout: Dropout, shape: &[usize]) -> Tensor {
        let out = Tensor::zeroed(shape, DType::Float64, Device::Cpu);
        dropout.all_factors(self.kv_len, out.data_mut::<f64>().slice());
        out
    }

    /// Which weights dropout keeps, the same ones as on the CPU: each row begins a group of random numbers.
    fn kept_on_gpu(&self, gpu: &'static crate::gpu::Gpu, keep: f64, shape: &[usize]) -> Result<Tensor> {
        let rows = shape.iter().product::<usize>() / self.kv_len.max(1);
        // Four numbers from each counter.
        let padded = 4 * Dropout::counters(1, self.kv_len);
        let mask = Tensor::uninit([rows, padded], DType::Bool, Device::Cuda(gpu.ordinal() as u8));
        let draw = Draw::Bernoulli { last: sampan_kernels::rng::threshold(keep) as i64 - 1 };
        let start = crate::random::Start::Next(Dropout::counters(rows, self.kv_len));
        crate::gpu::random::draw(gpu, draw, start, &mask)?;
        mask.try_slice([1i64], [0i64], [self.kv_len as i64])?.try_reshape_to(shape)
    }

    /// The gradient of the scores as that of the mask.
    fn mask_gradient(&self, ds: &Tensor, mask: &Tensor) -> Tensor {
        sum_to(&ds.reshape_to([self.batch, self.heads(), self.q_len, self.kv_len]), mask.shape())
    }
}

/// What `attention` computes, score by score.
fn attention_composite(
    query: &Tensor,
    key: &Tensor,
    value: &Tensor,
    mask: Option<&Tensor>,
    scale: f64,
    causal: bool,
    dropout_p: f64,
    drawn: Option<&Tensor>,
) -> Result<(Tensor, Tensor)> {
    let form = Form::new(query, key, value, Some(scale), causal)?;
    let scores = form.scores(query, key, form.mask_of(mask)?.as_ref());
    let lse = scores.logsumexp_with(-1, LogsumexpOpts::new());
    let mut weights = scores.softmax(-1);
    if let Some(dropout) = dropout_of(dropout_p, drawn)? {
        weights = &weights * form.factors(dropout, weights.shape()).cast(weights.dtype());
    }
    let out = form.unfold(&weights.matrix_product(&form.keys(value))).in_dtype(query.dtype())?;
    Ok((out, lse.reshape_to([form.batch, form.heads(), form.q_len]).cast(DType::Float64)))
}

/// The gradients of `attention` for `query`, `key` and `value`, in tiles made again from `lse`. `delta` is, for each query, the sum
/// of the products of its result and the gradient `g` of that, less the gradient of `lse`.
#[op(
    internal,
    module = "nn.functional",
    samples = backward_samples,
    peer = "lambda q, k, v, mask, lse, g, delta, scale, causal: ( \
            n := k.shape[2], \
            p := torch.exp(torch_scores(q, k, mask, scale, causal) - lse[..., None]), \
            dp := torch_scores(g, v, None, 1, False), \
            ds := p * (dp - delta[..., None]) * scale, \
            to_keys := lambda a, b: torch.einsum('bhqk,bqhd->bkhd', a, b).unflatten(2, (n, -1)).sum(3), \
            keys := k.repeat_interleave(q.shape[2] // n, 2), \
            (torch.einsum('bhqk,bkhd->bqhd', ds, keys), to_keys(ds, q), to_keys(p, g)))[-1]",
    results("dq", "dk", "dv"),
    work = crate::ops::work::attention_backward
)]
fn attention_backward(
    cx: &Cx,
    query: &Tensor,
    key: &Tensor,
    value: &Tensor,
    mask: Option<&Tensor>,
    lse: &Tensor,
    g: &Tensor,
    delta: &Tensor,
    scale: f64,
    causal: bool,
    #[opt(0.0)] dropout_p: f64,
    #[opt(None)] drawn: Option<&Tensor>,
) -> Result<(Tensor, Tensor, Tensor)> {
    let form = Form::new(query, key, value, Some(scale), causal)?;
    let dropout = dropout_of(dropout_p, drawn)?;
    let dtype = promote_all(&[query.clone(), key.clone(), value.clone()])?;
    let wide = if dtype == DType::Float64 { dtype } else { DType::Float32 };
    let mask4 = mask.map(|m| form.four_axes(m)).transpose()?;
    ensure!(*g.shape() == [form.batch, form.q_len, form.heads(), form.v_dim], "g has the wrong shape {:?}", g.shape());
    for t in [lse, delta] {
        ensure!(*t.shape() == [form.batch, form.heads(), form.q_len], "a row sum has the wrong shape {:?}", t.shape());
    }
    let dq = cx.out(query.shape(), wide)?;
    let dk = cx.out(key.shape(), wide)?;
    let dv = cx.out(value.shape(), wide)?;
    cx.cpu(|| {
        let call = Call::new(form, [query, key, value], mask4.as_ref(), dropout, wide)?;
        let ready = |t: &Tensor| t.cast(wide).contiguous();
        let (lse, g, delta) = (lse.cast(DType::Float64).contiguous(), ready(g), ready(delta));
        let (lse, g, delta) = (lse.data::<f64>(), g.values(), delta.values());
        let (mut dq, mut dk, mut dv) = (dq.values_mut(), dk.values_mut(), dv.values_mut());
        call.with(|s, [q, k, v], mask| {
            let (lse, g, delta) = (lse.slice(), g.slice(), delta.slice());
            kernel::backward(s, q, k, v, mask, lse, g, delta, dq.slice(), dk.slice(), dv.slice());
        });
        Ok(())
    })?;
    let outputs = (dq.try_cast(dtype)?, dk.try_cast(dtype)?, dv.try_cast(dtype)?);
    let mut saved = vec![query, key, value, lse, g, delta];
    saved.extend(mask);
    let (masked, drops) = (mask.is_some(), drawn.is_some());
    cx.grad(outputs, &saved, move |up| {
        ensure!(dropout.is_none(), "under dropout the forward pass states its higher gradients");
        let [q, k, v, lse, g, delta] = [0, 1, 2, 3, 4, 5].map(|i| up.saved(i));
        let mask = masked.then(|| up.saved(6));
        let [p, dp] = form.weights(q, k, v, mask, lse, g)?;
        let (qh, kh, vh, gh) = (form.queries(q), form.keys(k), form.keys(v), form.queries(g));
        // Upstream gradients of dq, dk and dv, then of what these are made of, backwards.
        let (a, b, c) = (form.queries(&up.grad_of(0)), form.keys(&up.grad_of(1)), form.keys(&up.grad_of(2)));
        let centred = &dp - form.rows(delta);
        let ds = &p * &centred;
        let e = (a.matrix_product(&kh.transpose_last()) + qh.matrix_product(&b.transpose_last())) * scale;
        let to_p = gh.matrix_product(&c.transpose_last()) + &e * centred;
        let to_dp = &p * e;
        let to_s = to_p * &p;
        let row_sum = |t: &Tensor| (-t.sum_with(-1, SumOpts::new())).reshape_to([form.batch, form.heads(), form.q_len]);
        let to_q = (to_s.matrix_product(&kh) + ds.matrix_product(&b)) * scale;
        let to_k = (to_s.transpose_last().matrix_product(&qh) + ds.transpose_last().matrix_product(&a)) * scale;
        let to_v = to_dp.transpose_last().matrix_product(&gh);
        let to_g = p.matrix_product(&c) + to_dp.matrix_product(&vh);
        let mut grads = vec![Some(form.unfold(&to_q)), Some(form.unfold_keys(&to_k)), Some(form.unfold_keys(&to_v))];
        grads.extend(mask.map(|m| Some(form.mask_gradient(&to_s, m))));
        grads.extend([Some(row_sum(&to_s).cast(lse.dtype())), Some(form.unfold(&to_g)), Some(row_sum(&to_dp))]);
        grads.extend(drops.then_some(None));
        Ok(grads)
    })
}

/// The tensors of a call, ready for the kernel.
struct Call {
    form: Form,
    tensors: [Tensor; 3],
    mask: Option<(Tensor, Layout)>,
    dropout: Option<Dropout>,
}

impl Call {
    fn new(
        form: Form,
        tensors: [&Tensor; 3],
        mask: Option<&Tensor>,
        dropout: Option<Dropout>,
        dtype: DType,
    ) -> Result<Call> {
        let full = [form.batch, form.heads(), form.q_len, form.kv_len];
        let mask = mask.map(|m| -> Result<_> {
            let m = m.try_cast(dtype)?;
            let layout = m.layout().broadcast_to(&full);
            Ok((m, layout))
        });
        Ok(Call { form, tensors: tensors.map(|t| t.cast(dtype).contiguous()), mask: mask.transpose()?, dropout })
    }

    /// Calls `f` with the kernel's description, queries, keys and values, and the mask.
    fn with(&self, f: impl FnOnce(&Attention, [AnySlice; 3], Option<AnyView>)) {
        let form = self.form;
        let sizes = Attention {
            batch: form.batch,
            heads: form.heads(),
            kv_heads: form.kv_heads,
            q_len: form.q_len,
            kv_len: form.kv_len,
            dim: form.dim,
            v_dim: form.v_dim,
            scale: form.scale,
            causal: form.causal,
            dropout: self.dropout,
        };
        let tensors = self.tensors.each_ref().map(|t| t.values());
        let mask = self.mask.as_ref().map(|(m, layout)| (m.values(), layout));
        f(&sizes, tensors.each_ref().map(|t| t.slice()), mask.as_ref().map(|(m, layout)| m.view_as(layout)))
    }
}

fn attention_samples() -> Vec<Sample> {
    let wide = |shape: &[usize]| uniform(shape, -1.0, 1.5);
    let mask = || values::<Bool>([1u8, 0, 1, 1, 1, 0, 1, 1, 1].map(|b| Bool::from(b == 1)), [3, 3]);
    vec![
        sample![randn([1, 3, 2, 2]), wide(&[1, 3, 2, 2]), positive([1, 3, 2, 2])],
        sample![randn([2, 3, 1, 2]), wide(&[2, 3, 1, 2]), positive([2, 3, 1, 2]); is_causal = true],
        sample![randn([1, 2, 2, 2]), wide(&[1, 4, 2, 2]), positive([1, 4, 2, 2]), randn([2, 2, 4])],
        sample![randn([1, 3, 1, 2]), wide(&[1, 3, 1, 2]), positive([1, 3, 1, 2]), mask()],
        sample![randn([3, 1, 2]), wide(&[3, 1, 2]), positive([3, 1, 2]); scale = 0.3],
        sample![randn([1, 2, 2, 2]), wide(&[1, 3, 1, 2]), positive([1, 3, 1, 2])],
    ]
}

fn place_samples() -> Vec<Sample> {
    vec![sample![12]]
}

fn kernel_samples() -> Vec<Sample> {
    let wide = |shape: &[usize]| uniform(shape, -1.0, 1.5);
    vec![
        sample![randn([1, 3, 2, 2]), wide(&[1, 3, 2, 2]), positive([1, 3, 2, 1]), Value::None, 0.7, true],
        sample![randn([1, 2, 2, 2]), wide(&[1, 3, 1, 2]), positive([1, 3, 1, 2]), randn([1, 2, 1, 3]), 0.7, false],
        sample![randn([1, 2, 2, 2]), wide(&[1, 3, 1, 2]), positive([1, 3, 1, 2]), Value::None, 0.7, false;
            dropout_p = 0.4, drawn = values::<i64>([3, 16], [2])]
        .peer("none: random numbers of its own"),
    ]
}

fn backward_samples() -> Vec<Sample> {
    let wide = |shape: &[usize]| uniform(shape, -1.0, 1.5);
    vec![
        sample![
            randn([1, 2, 2, 2]),
            wide(&[1, 3, 1, 2]),
            positive([1, 3, 1, 2]),
            randn([1, 1, 1, 3]),
            positive([1, 2, 2]),
            randn([1, 2, 2, 2]),
            randn([1, 2, 2]),
            0.7,
            false
        ],
        sample![
            randn([1, 2, 1, 2]),
            wide(&[1, 2, 1, 2]),
            positive([1, 2, 1, 1]),
            Value::None,
            positive([1, 1, 2]),
            randn([1, 2, 1, 1]),
            randn([1, 1, 2]),
            0.7,
            true
        ],
    ]
}
