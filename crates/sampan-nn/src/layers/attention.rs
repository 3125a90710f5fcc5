//! Attention with several heads.

use crate::layer::{Of, call_with, watched};
use crate::{Apply, Base, Layer, Linear, ParamAttr, invoke, layer};
use sampan_core::ops::attention::ScaledDotProductAttentionOpts;
use sampan_core::ops::dropout::DropoutOpts;
use sampan_core::ops::joining::try_concat;
use sampan_core::ops::matmul::MatmulOpts;
use sampan_core::{DType, Error, Object, Result, Tensor, Value, device, ensure};
use sampan_macros::class;

/// Keys and values of earlier calls, `[batch, heads, length, width]` each.
#[derive(Clone, Debug)]
pub enum AttentionCache {
    /// Each call adds its own: what a decoder has put out so far.
    Growing(Tensor, Tensor),
    /// Never changes: what a decoder knows of the memory.
    Static(Tensor, Tensor),
}

impl AttentionCache {
    /// Keys and values.
    pub fn parts(&self) -> (&Tensor, &Tensor) {
        let (AttentionCache::Growing(k, v) | AttentionCache::Static(k, v)) = self;
        (k, v)
    }

    /// The cache that an argument holds: its own kind of object, or keys and values of a growing one.
    pub(crate) fn read(value: &Value) -> Result<Option<AttentionCache>> {
        match value {
            Value::None => Ok(None),
            Value::Object(o) if o.downcast::<AttentionCache>().is_some() => Ok(o.downcast::<AttentionCache>().cloned()),
            Value::Tensors(ts) if ts.len() == 2 => Ok(Some(AttentionCache::Growing(ts[0].clone(), ts[1].clone()))),
            other => Err(Error::dtype(format!("`cache` must be a Cache or a StaticCache, got {}", other.type_name()))
                .hint("gen_cache makes one")),
        }
    }
}
impl From<AttentionCache> for Value {
    fn from(cache: AttentionCache) -> Value {
        Value::Object(Object::new(cache))
    }
}

/// The parts of a result that should have some: the output first.
pub(crate) fn parts(result: Value) -> Vec<Value> {
    match result {
        Value::List(list) => list,
        Value::Tensors(list) => list.into_iter().map(Value::Tensor).collect(),
        one => vec![one],
    }
}

/// The output of a layer that may have been computed in another language.
pub(crate) fn output(value: Option<Value>) -> Result<Tensor> {
    match value {
        Some(Value::Tensor(t)) => Ok(t),
        other => Err(Error::dtype(format!(
            "the layer must give a Tensor, got {}",
            other.as_ref().map_or("nothing", Value::type_name)
        ))),
    }
}

/// What attention gives.
#[derive(Clone, Debug)]
pub struct Attended {
    /// `[batch, query length, embed_dim]`.
    pub output: Tensor,
    /// `[batch, heads, query length, key length]`, if `need_weights`.
    pub weights: Option<Tensor>,
    /// The cache for the next call, if there was one in this.
    pub cache: Option<AttentionCache>,
}

/// A mask as it is added to the scores: of a bool or integer mask, where zero forbids, a large negative number.
pub(crate) fn additive_mask(mask: Option<&Tensor>, dtype: DType) -> Result<Option<Tensor>> {
    let Some(mask) = mask else { return Ok(None) };
    Ok(Some(if mask.dtype() == dtype {
        mask.clone()
    } else if mask.dtype().is_float() {
        mask.try_cast(dtype)?
    } else {
        (mask.try_cast(dtype)? - 1.0) * 1e9
    }))
}

/// `[batch, length, heads, width]` as `[batch, heads, length, width]`, and back.
fn heads_first(x: &Tensor) -> Result<Tensor> {
    x.try_transpose([0, 2, 1, 3])
}

/// Attention with several heads.
#[derive(Layer)]
pub struct MultiHeadAttention {
    base: Base,
    /// Makes queries.
    pub q_proj: Linear,
    /// Makes keys.
    pub k_proj: Linear,
    /// Makes values.
    pub v_proj: Linear,
    /// Joins the heads.
    pub out_proj: Linear,
    num_heads: usize,
    head_dim: usize,
    dropout: f64,
    need_weights: bool,
}

#[class(module = "nn", object = layer::object)]
impl MultiHeadAttention {
    /// Attention with `num_heads` heads over sequences `[batch, length, embed_dim]`; keys and values may have `kdim` and
    /// `vdim` features. `need_weights` gives the weights as well, which costs the memory of all of them.
    ///
    /// ```
    /// use sampan_core::Tensor;
    /// use sampan_nn::{Layer, MultiHeadAttention};
    /// let attention = MultiHeadAttention::with(8, 2, |o| o.need_weights(true));
    /// let x = Tensor::randn([1, 3, 8]);
    /// let seen = attention.run(&x, None, None, Some(&Tensor::new([[true, true, false]])), None)?;
    /// assert_eq!(seen.output.shape(), [1, 3, 8]);
    /// assert_eq!(seen.weights.unwrap().to_vec::<f32>()[2], 0.0);
    /// # Ok::<(), sampan_core::Error>(())
    /// ```
    fn build(
        embed_dim: usize,
        num_heads: usize,
        #[opt(0.0)] dropout: f64,
        #[opt(None)] kdim: Option<usize>,
        #[opt(None)] vdim: Option<usize>,
        #[opt(false)] need_weights: bool,
        #[opt(None)] weight_attr: ParamAttr,
        #[opt(None)] bias_attr: ParamAttr,
    ) -> Result<MultiHeadAttention> {
        ensure!(embed_dim > 0 && num_heads > 0, "embed_dim {embed_dim} and num_heads {num_heads} must be positive");
        ensure!(
            embed_dim.is_multiple_of(num_heads),
            "embed_dim {embed_dim} must be a multiple of num_heads {num_heads}"
        );
        ensure!((0.0..=1.0).contains(&dropout), "dropout must lie in [0, 1], got {dropout}");
        let base = Base::new("multi_head_attention");
        let linear = |inputs: usize| {
            let (weight, bias) = (weight_attr.clone(), bias_attr.clone());
            Linear::try_with(inputs, embed_dim, |o| o.weight_attr(weight).bias_attr(bias))
        };
        Ok(MultiHeadAttention {
            base,
            q_proj: linear(embed_dim)?,
            k_proj: linear(kdim.unwrap_or(embed_dim))?,
            v_proj: linear(vdim.unwrap_or(embed_dim))?,
            out_proj: linear(embed_dim)?,
            num_heads,
            head_dim: embed_dim / num_heads,
            dropout,
            need_weights,
        })
    }
}

impl MultiHeadAttention {
    /// The attention of `query` to `key` and `value`, which are `query` itself unless they are given. `attn_mask` broadcasts to
    /// `[batch, heads, query length, key length]`: a float one is added to the scores, in any other zero forbids.
    pub fn run(
        &self,
        query: &Tensor,
        key: Option<&Tensor>,
        value: Option<&Tensor>,
        attn_mask: Option<&Tensor>,
        cache: Option<&AttentionCache>,
    ) -> Result<Attended> {
        let [key, value] = [key, value].map(|t| t.unwrap_or(query));
        let values = || {
            let cache = Value::optional(cache.cloned());
            vec![query.into(), key.into(), value.into(), Value::optional(attn_mask), cache]
        };
        if let Some(out) = self.base.stood_in(&values)? {
            let mut parts = parts(out).into_iter();
            let output = output(parts.next())?;
            let weights = if self.need_weights { Some(self::output(parts.next())?) } else { None };
            let cache = cache.and(parts.next()).map(|c| AttentionCache::read(&c)).transpose()?.flatten();
            return Ok(Attended { output, weights, cache });
        }
        let inputs = [query, key, value].map(Clone::clone);
        let out = call_with(&Of(self), &inputs, &mut |inputs| self.attend(inputs, attn_mask, cache))?;
        self.named(out, cache)
    }

    /// The outputs of `attend` under their names.
    fn named(&self, out: Vec<Tensor>, cache: Option<&AttentionCache>) -> Result<Attended> {
        let mut out = out.into_iter();
        let mut next = || out.next().ok_or_else(|| Error::invalid("a hook took away an output"));
        let output = next()?;
        let weights = self.need_weights.then(&mut next).transpose()?;
        let cache = match cache {
            None => None,
            Some(AttentionCache::Growing(..)) => Some(AttentionCache::Growing(next()?, next()?)),
            Some(AttentionCache::Static(..)) => Some(AttentionCache::Static(next()?, next()?)),
        };
        Ok(Attended { output, weights, cache })
    }

    /// Keys and values of the heads, `[batch, heads, length, width]`.
    pub fn compute_kv(&self, key: &Tensor, value: &Tensor) -> Result<(Tensor, Tensor)> {
        let (k, v) = self.heads_of(key, value)?;
        Ok((heads_first(&k)?, heads_first(&v)?))
    }

    /// An empty growing cache for a batch as large as that of `like`.
    pub fn gen_cache(&self, like: &Tensor) -> Result<AttentionCache> {
        let batch = like.shape().first().copied().unwrap_or(1);
        let shape = [batch, self.num_heads, 0, self.head_dim];
        let empty = || device::with(like.device(), || Tensor::zeros(shape, like.dtype()));
        Ok(AttentionCache::Growing(empty(), empty()))
    }

    /// A static cache of keys and values made once.
    pub fn gen_static_cache(&self, key: &Tensor, value: &Tensor) -> Result<AttentionCache> {
        self.compute_kv(key, value).map(|(k, v)| AttentionCache::Static(k, v))
    }

    /// `[batch, length, embed_dim]` as `[batch, length, heads, width]`.
    fn split(&self, x: &Tensor) -> Result<Tensor> {
        ensure!(x.ndim() == 3, "a sequence must have shape [batch, length, features], got {:?}", x.shape());
        x.try_reshape([0, 0, self.num_heads as i64, self.head_dim as i64])
    }

    fn heads_of(&self, key: &Tensor, value: &Tensor) -> Result<(Tensor, Tensor)> {
        Ok((self.split(&key.apply(&self.k_proj)?)?, self.split(&value.apply(&self.v_proj)?)?))
    }

    /// The output, then the weights if they are needed, then keys and values if there is a cache.
    fn attend(&self, inputs: &[Tensor], mask: Option<&Tensor>, cache: Option<&AttentionCache>) -> Result<Vec<Tensor>> {
        let [query, key, value] = inputs else {
            return Err(Error::invalid(format!("takes query, key and value, got {} tensors", inputs.len())));
        };
        let q = self.split(&query.apply(&self.q_proj)?)?;
        let (k, v) = match cache {
            None => self.heads_of(key, value)?,
            Some(AttentionCache::Static(k, v)) => (heads_first(k)?, heads_first(v)?),
            Some(AttentionCache::Growing(k, v)) => {
                let (new_k, new_v) = self.heads_of(key, value)?;
                (try_concat(&[heads_first(k)?, new_k], 1)?, try_concat(&[heads_first(v)?, new_v], 1)?)
            }
        };
        let mask = additive_mask(mask, q.dtype())?;
        let (out, weights) = if self.need_weights {
            let (out, weights) = self.weighed(&q, &k, &v, mask.as_ref())?;
            (out, Some(weights))
        } else {
            let opts = ScaledDotProductAttentionOpts::new().dropout_p(self.dropout).training(self.base.training());
            (q.try_scaled_dot_product_attention_with(&k, &v, mask.as_ref(), opts)?, None)
        };
        let out = out.try_reshape([0, 0, (self.num_heads * self.head_dim) as i64])?.apply(&self.out_proj)?;
        let kept = if cache.is_some() { vec![heads_first(&k)?, heads_first(&v)?] } else { Vec::new() };
        Ok([out].into_iter().chain(weights).chain(kept).collect())
    }

    /// Attention by way of all its weights.
    fn weighed(&self, q: &Tensor, k: &Tensor, v: &Tensor, mask: Option<&Tensor>) -> Result<(Tensor, Tensor)> {
        let scale = (self.head_dim as f64).powf(-0.5);
        let q = heads_first(&(q * scale))?;
        let scores = q.try_matmul_with(&heads_first(k)?, MatmulOpts::new().transpose_y(true))?;
        let scores = mask.map_or(Ok(scores.clone()), |mask| scores.try_add(mask))?;
        let mut weights = scores.try_softmax(-1)?;
        if self.dropout > 0.0 {
            weights = weights.try_dropout_with(self.dropout, DropoutOpts::new().training(self.base.training()))?;
        }
        Ok((heads_first(&weights.try_matmul(&heads_first(v)?)?)?, weights))
    }
}

impl Layer for MultiHeadAttention {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        Ok(self.forward_all(std::slice::from_ref(x))?.swap_remove(0))
    }
    /// The inputs are `query`, then `key`, `value` and `attn_mask` as far as they are given.
    fn forward_all(&self, inputs: &[Tensor]) -> Result<Vec<Tensor>> {
        ensure!((1..=4).contains(&inputs.len()), "takes query, key, value and attn_mask, got {} tensors", inputs.len());
        let at = |i: usize| inputs.get(i).unwrap_or(&inputs[0]).clone();
        self.attend(&[at(0), at(1), at(2)], inputs.get(3), None)
    }
    fn invoke(&self, positional: Vec<Value>, named: Vec<(&str, Value)>) -> Result<Value> {
        const NAMES: [&str; 5] = ["query", "key", "value", "attn_mask", "cache"];
        const LAYER: &str = "MultiHeadAttention";
        let values = invoke::bind(LAYER, &NAMES, 1, positional, named)?;
        let at = |i: usize| invoke::tensor(LAYER, NAMES[i], &values[i]);
        let query = at(0)?.ok_or_else(|| Error::dtype("`query` must be a Tensor, got None").in_op(LAYER))?;
        let inputs = [query, at(1)?.unwrap_or(query), at(2)?.unwrap_or(query)].map(Clone::clone);
        let (mask, cache) = (at(3)?, AttentionCache::read(&values[4])?);
        let out = watched(&Of(self), &inputs, &mut || self.attend(&inputs, mask, cache.as_ref()))?;
        let seen = self.named(out, cache.as_ref())?;
        let mut results = vec![Value::Tensor(seen.output)];
        results.extend(seen.weights.map(Value::Tensor));
        results.extend(seen.cache.map(Value::from));
        Ok(if results.len() == 1 { results.swap_remove(0) } else { Value::List(results) })
    }
    fn settings(&self) -> Vec<(&'static str, Value)> {
        let inputs = |l: &Linear| Value::from(l.weight.shape()[0]);
        vec![
            ("embed_dim", (self.num_heads * self.head_dim).into()),
            ("num_heads", self.num_heads.into()),
            ("dropout", self.dropout.into()),
            ("kdim", inputs(&self.k_proj)),
            ("vdim", inputs(&self.v_proj)),
            ("need_weights", self.need_weights.into()),
        ]
    }
}
