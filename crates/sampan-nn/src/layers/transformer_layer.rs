//! One layer of a transformer's encoder or decoder.

use super::attention::{AttentionCache, MultiHeadAttention, additive_mask, output, parts};
use super::bound::Bound;
use crate::layer::{Of, call_with, watched};
use crate::{Apply, Base, Dropout, Layer, LayerNorm, Linear, ParamAttr, ParamAttrs, invoke, layer};
use sampan_core::{Error, Result, Tensor, Value, ensure};
use sampan_macros::class;

/// What a layer was made from, to make another like it.
#[derive(Clone)]
struct Config {
    d_model: usize,
    nhead: usize,
    dim_feedforward: usize,
    dropout: f64,
    activation: String,
    attn_dropout: Option<f64>,
    act_dropout: Option<f64>,
    normalize_before: bool,
    weight_attr: ParamAttrs,
    bias_attr: ParamAttrs,
    layer_norm_eps: f64,
}

impl Config {
    fn attention(&self, weight: &ParamAttr, bias: &ParamAttr) -> Result<MultiHeadAttention> {
        let dropout = self.attn_dropout.unwrap_or(self.dropout);
        let (weight, bias) = (weight.clone(), bias.clone());
        MultiHeadAttention::try_with(self.d_model, self.nhead, |o| {
            o.dropout(dropout).weight_attr(weight).bias_attr(bias)
        })
    }
    fn linear(&self, inputs: usize, outputs: usize, weight: &ParamAttr, bias: &ParamAttr) -> Result<Linear> {
        let (weight, bias) = (weight.clone(), bias.clone());
        Linear::try_with(inputs, outputs, |o| o.weight_attr(weight).bias_attr(bias))
    }
    fn norm(&self) -> Result<LayerNorm> {
        LayerNorm::try_with(self.d_model, |o| o.epsilon(self.layer_norm_eps))
    }
    fn drop(&self) -> Result<Dropout> {
        Dropout::try_new(self.dropout)
    }
    fn act_drop(&self) -> Result<Dropout> {
        Dropout::try_new(self.act_dropout.unwrap_or(self.dropout))
    }
    fn activation(&self) -> Result<Bound> {
        Bound::new(&self.activation, [])
    }
    fn settings(&self) -> Vec<(&'static str, Value)> {
        vec![
            ("d_model", self.d_model.into()),
            ("nhead", self.nhead.into()),
            ("dim_feedforward", self.dim_feedforward.into()),
            ("dropout", self.dropout.into()),
            ("activation", self.activation.as_str().into()),
            ("attn_dropout", Value::optional(self.attn_dropout)),
            ("act_dropout", Value::optional(self.act_dropout)),
            ("normalize_before", self.normalize_before.into()),
            ("layer_norm_eps", self.layer_norm_eps.into()),
        ]
    }
    fn check(&self) -> Result<()> {
        ensure!(self.dim_feedforward > 0, "dim_feedforward must be positive");
        ensure!(
            self.d_model > 0 && self.nhead > 0,
            "d_model {} and nhead {} must be positive",
            self.d_model,
            self.nhead
        );
        Ok(())
    }
}

/// A part of a layer with what is around it: `x + dropout(f(x))` and a norm, of the input if `before` or of the result.
fn residual(
    x: &Tensor,
    before: bool,
    norm: &LayerNorm,
    dropout: &Dropout,
    f: impl FnOnce(&Tensor) -> Result<Tensor>,
) -> Result<Tensor> {
    let y = if before { f(&x.apply(norm)?)? } else { f(x)? };
    let sum = x.try_add(y.apply(dropout)?)?;
    if before { Ok(sum) } else { sum.apply(norm) }
}

/// `linear2(dropout(activation(linear1(x))))`.
macro_rules! feedforward {
    ($layer:expr) => {
        |x: &Tensor| {
            let y = $layer.activation.one(&$layer.base, &x.apply(&$layer.linear1)?)?;
            y.apply(&$layer.dropout)?.apply(&$layer.linear2)
        }
    };
}

/// One layer of a transformer's encoder.
#[derive(Layer)]
pub struct TransformerEncoderLayer {
    base: Base,
    /// Attention of the sequence to itself.
    pub self_attn: MultiHeadAttention,
    /// Widens.
    pub linear1: Linear,
    dropout: Dropout,
    /// Narrows.
    pub linear2: Linear,
    /// The norm of the attention.
    pub norm1: LayerNorm,
    /// The norm of the feed-forward part.
    pub norm2: LayerNorm,
    dropout1: Dropout,
    dropout2: Dropout,
    activation: Bound,
    #[layer(skip)]
    config: Config,
}

#[class(module = "nn", object = layer::object)]
impl TransformerEncoderLayer {
    /// Attention of a sequence `[batch, length, d_model]` to itself and two linear layers with `activation` between them, each
    /// with dropout, a residual and a norm; the norm comes first if `normalize_before`. `attn_dropout` and `act_dropout` are
    /// `dropout` unless they are given. Attributes may be lists of two: for the attention and for the linear layers.
    ///
    /// ```
    /// use sampan_core::Tensor;
    /// use sampan_nn::{Layer, TransformerEncoderLayer};
    /// let layer = TransformerEncoderLayer::with(8, 2, 16, |o| o.activation("gelu").normalize_before(true));
    /// assert_eq!(layer.call(&Tensor::randn([1, 3, 8]))?.shape(), [1, 3, 8]);
    /// # Ok::<(), sampan_core::Error>(())
    /// ```
    fn build(
        d_model: usize,
        nhead: usize,
        dim_feedforward: usize,
        #[opt(0.1)] dropout: f64,
        #[opt("relu")] activation: &str,
        #[opt(None)] attn_dropout: Option<f64>,
        #[opt(None)] act_dropout: Option<f64>,
        #[opt(false)] normalize_before: bool,
        #[opt(None)] weight_attr: ParamAttrs,
        #[opt(None)] bias_attr: ParamAttrs,
        #[opt(1e-5)] layer_norm_eps: f64,
    ) -> Result<TransformerEncoderLayer> {
        let activation = activation.into();
        TransformerEncoderLayer::from_config(Config {
            d_model,
            nhead,
            dim_feedforward,
            dropout,
            activation,
            attn_dropout,
            act_dropout,
            normalize_before,
            weight_attr,
            bias_attr,
            layer_norm_eps,
        })
    }
}

impl TransformerEncoderLayer {
    fn from_config(config: Config) -> Result<TransformerEncoderLayer> {
        config.check()?;
        let base = Base::new("transformer_encoder_layer");
        let (weight, bias) = (config.weight_attr.split(2)?, config.bias_attr.split(2)?);
        Ok(TransformerEncoderLayer {
            base,
            self_attn: config.attention(&weight[0], &bias[0])?,
            linear1: config.linear(config.d_model, config.dim_feedforward, &weight[1], &bias[1])?,
            dropout: config.act_drop()?,
            linear2: config.linear(config.dim_feedforward, config.d_model, &weight[1], &bias[1])?,
            norm1: config.norm()?,
            norm2: config.norm()?,
            dropout1: config.drop()?,
            dropout2: config.drop()?,
            activation: config.activation()?,
            config,
        })
    }

    /// Another layer made from the same arguments, with parameters of its own.
    pub fn another(&self) -> Result<TransformerEncoderLayer> {
        TransformerEncoderLayer::from_config(self.config.clone())
    }

    /// The output, and the cache for the next call if there was one in this.
    pub fn run(
        &self,
        src: &Tensor,
        src_mask: Option<&Tensor>,
        cache: Option<&AttentionCache>,
    ) -> Result<(Tensor, Option<AttentionCache>)> {
        let values = || vec![src.into(), Value::optional(src_mask), Value::optional(cache.cloned())];
        if let Some(out) = self.base.stood_in(&values)? {
            return read_encoded(out);
        }
        let mut grown = None;
        let mut out = call_with(&Of(self), std::slice::from_ref(src), &mut |inputs| {
            let (output, cache) = self.compute(&inputs[0], src_mask, cache)?;
            grown = cache;
            Ok(vec![output])
        })?;
        Ok((out.swap_remove(0), grown))
    }

    fn compute(
        &self,
        src: &Tensor,
        mask: Option<&Tensor>,
        cache: Option<&AttentionCache>,
    ) -> Result<(Tensor, Option<AttentionCache>)> {
        let mask = additive_mask(mask, src.dtype())?;
        let before = self.config.normalize_before;
        let mut grown = None;
        let x = residual(src, before, &self.norm1, &self.dropout1, |x| {
            let seen = self.self_attn.run(x, None, None, mask.as_ref(), cache)?;
            grown = seen.cache;
            Ok(seen.output)
        })?;
        Ok((residual(&x, before, &self.norm2, &self.dropout2, feedforward!(self))?, grown))
    }

    /// An empty cache for a batch as large as that of `src`.
    pub fn gen_cache(&self, src: &Tensor) -> Result<AttentionCache> {
        self.self_attn.gen_cache(src)
    }
}

impl Layer for TransformerEncoderLayer {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        Ok(self.compute(x, None, None)?.0)
    }
    fn settings(&self) -> Vec<(&'static str, Value)> {
        self.config.settings()
    }
    fn invoke(&self, positional: Vec<Value>, named: Vec<(&str, Value)>) -> Result<Value> {
        let args = EncoderArgs::read("TransformerEncoderLayer", positional, named)?;
        let cache = AttentionCache::read(&args.cache)?;
        let mut grown = None;
        let out = watched(&Of(self), std::slice::from_ref(&args.src), &mut || {
            let (output, new) = self.compute(&args.src, args.mask.as_ref(), cache.as_ref())?;
            grown = new;
            Ok(vec![output])
        })?;
        Ok(with_cache(out, grown.map(Value::from)))
    }
    /// The inputs are `src` and, if it is given, `src_mask`.
    fn forward_all(&self, inputs: &[Tensor]) -> Result<Vec<Tensor>> {
        match inputs {
            [src] => Ok(vec![self.compute(src, None, None)?.0]),
            [src, mask] => Ok(vec![self.compute(src, Some(mask), None)?.0]),
            _ => Err(Error::invalid(format!("takes src and src_mask, got {} tensors", inputs.len()))),
        }
    }
}

/// The arguments of an encoder or one of its layers.
pub(super) struct EncoderArgs {
    pub src: Tensor,
    pub mask: Option<Tensor>,
    pub cache: Value,
}

impl EncoderArgs {
    pub fn read(layer: &'static str, positional: Vec<Value>, named: Vec<(&str, Value)>) -> Result<EncoderArgs> {
        const NAMES: [&str; 3] = ["src", "src_mask", "cache"];
        let mut values = invoke::bind(layer, &NAMES, 1, positional, named)?;
        let cache = values.remove(2);
        let mut tensors = values.iter().zip(NAMES).map(|(v, n)| invoke::tensor(layer, n, v).map(|t| t.cloned()));
        let mut next = || tensors.next().transpose().map(Option::flatten);
        let src = next()?.ok_or_else(|| Error::dtype("`src` must be a Tensor, got None").in_op(layer))?;
        Ok(EncoderArgs { src, mask: next()?, cache })
    }
}

/// The arguments of a decoder or one of its layers.
pub(super) struct DecoderArgs {
    pub tgt: Tensor,
    pub memory: Tensor,
    /// `tgt_mask` and `memory_mask`.
    pub masks: [Option<Tensor>; 2],
    pub cache: Value,
}

impl DecoderArgs {
    pub fn read(layer: &'static str, positional: Vec<Value>, named: Vec<(&str, Value)>) -> Result<DecoderArgs> {
        const NAMES: [&str; 5] = ["tgt", "memory", "tgt_mask", "memory_mask", "cache"];
        let mut values = invoke::bind(layer, &NAMES, 2, positional, named)?;
        let cache = values.remove(4);
        let mut tensors = values.iter().zip(NAMES).map(|(v, n)| invoke::tensor(layer, n, v).map(|t| t.cloned()));
        let mut next = || tensors.next().transpose().map(Option::flatten);
        let missing = |name: &str| Error::dtype(format!("`{name}` must be a Tensor, got None")).in_op(layer);
        let tgt = next()?.ok_or_else(|| missing("tgt"))?;
        let memory = next()?.ok_or_else(|| missing("memory"))?;
        Ok(DecoderArgs { tgt, memory, masks: [next()?, next()?], cache })
    }
}

/// The output, and the cache where there is one.
pub(super) fn with_cache(output: Vec<Tensor>, cache: Option<Value>) -> Value {
    let output = invoke::outputs(output);
    match cache {
        None => output,
        Some(cache) => Value::List(vec![output, cache]),
    }
}

/// What an encoder layer of any kind gives.
pub(super) fn read_encoded(result: Value) -> Result<(Tensor, Option<AttentionCache>)> {
    let mut parts = parts(result).into_iter();
    let y = output(parts.next())?;
    Ok((y, parts.next().map(|c| AttentionCache::read(&c)).transpose()?.flatten()))
}

/// What a decoder layer of any kind gives.
pub(super) fn read_decoded(result: Value) -> Result<(Tensor, Option<DecoderCache>)> {
    let mut parts = parts(result).into_iter();
    let y = output(parts.next())?;
    Ok((y, parts.next().map(|c| read_decoder_cache(&c)).transpose()?.flatten()))
}

/// The two caches that an argument holds.
pub(super) fn read_decoder_cache(value: &Value) -> Result<Option<DecoderCache>> {
    match value {
        Value::None => Ok(None),
        Value::List(pair) if pair.len() == 2 => {
            Ok(AttentionCache::read(&pair[0])?.zip(AttentionCache::read(&pair[1])?))
        }
        other => Err(Error::dtype(format!("`cache` must be a pair of caches, got {}", other.type_name()))
            .hint("gen_cache makes it")),
    }
}

/// Two caches as a value.
pub(super) fn pair(cache: DecoderCache) -> Value {
    Value::List(vec![cache.0.into(), cache.1.into()])
}

/// Caches of a decoder layer: of its own sequence, which grows, and of the memory.
pub type DecoderCache = (AttentionCache, AttentionCache);

/// One layer of a transformer's decoder.
#[derive(Layer)]
pub struct TransformerDecoderLayer {
    base: Base,
    /// Attention of the sequence to itself.
    pub self_attn: MultiHeadAttention,
    /// Attention of the sequence to the memory.
    pub cross_attn: MultiHeadAttention,
    /// Widens.
    pub linear1: Linear,
    dropout: Dropout,
    /// Narrows.
    pub linear2: Linear,
    /// The norm of the attention to itself.
    pub norm1: LayerNorm,
    /// The norm of the attention to the memory.
    pub norm2: LayerNorm,
    /// The norm of the feed-forward part.
    pub norm3: LayerNorm,
    dropout1: Dropout,
    dropout2: Dropout,
    dropout3: Dropout,
    activation: Bound,
    #[layer(skip)]
    config: Config,
}

#[class(module = "nn", object = layer::object)]
impl TransformerDecoderLayer {
    /// Like [`TransformerEncoderLayer`] with attention to a memory in between. Attributes may be lists of three: for both
    /// attentions and for the linear layers.
    ///
    /// ```
    /// use sampan_core::Tensor;
    /// use sampan_nn::{Layer, TransformerDecoderLayer};
    /// let layer = TransformerDecoderLayer::new(8, 2, 16);
    /// let (y, _) = layer.run(&Tensor::randn([1, 3, 8]), &Tensor::randn([1, 5, 8]), None, None, None)?;
    /// assert_eq!(y.shape(), [1, 3, 8]);
    /// # Ok::<(), sampan_core::Error>(())
    /// ```
    fn build(
        d_model: usize,
        nhead: usize,
        dim_feedforward: usize,
        #[opt(0.1)] dropout: f64,
        #[opt("relu")] activation: &str,
        #[opt(None)] attn_dropout: Option<f64>,
        #[opt(None)] act_dropout: Option<f64>,
        #[opt(false)] normalize_before: bool,
        #[opt(None)] weight_attr: ParamAttrs,
        #[opt(None)] bias_attr: ParamAttrs,
        #[opt(1e-5)] layer_norm_eps: f64,
    ) -> Result<TransformerDecoderLayer> {
        let activation = activation.into();
        TransformerDecoderLayer::from_config(Config {
            d_model,
            nhead,
            dim_feedforward,
            dropout,
            activation,
            attn_dropout,
            act_dropout,
            normalize_before,
            weight_attr,
            bias_attr,
            layer_norm_eps,
        })
    }
}

impl TransformerDecoderLayer {
    fn from_config(config: Config) -> Result<TransformerDecoderLayer> {
        config.check()?;
        let base = Base::new("transformer_decoder_layer");
        let (weight, bias) = (config.weight_attr.split(3)?, config.bias_attr.split(3)?);
        Ok(TransformerDecoderLayer {
            base,
            self_attn: config.attention(&weight[0], &bias[0])?,
            cross_attn: config.attention(&weight[1], &bias[1])?,
            linear1: config.linear(config.d_model, config.dim_feedforward, &weight[2], &bias[2])?,
            dropout: config.act_drop()?,
            linear2: config.linear(config.dim_feedforward, config.d_model, &weight[2], &bias[2])?,
            norm1: config.norm()?,
            norm2: config.norm()?,
            norm3: config.norm()?,
            dropout1: config.drop()?,
            dropout2: config.drop()?,
            dropout3: config.drop()?,
            activation: config.activation()?,
            config,
        })
    }

    /// Another layer made from the same arguments, with parameters of its own.
    pub fn another(&self) -> Result<TransformerDecoderLayer> {
        TransformerDecoderLayer::from_config(self.config.clone())
    }

    /// The output, and the caches for the next call if there were any in this.
    pub fn run(
        &self,
        tgt: &Tensor,
        memory: &Tensor,
        tgt_mask: Option<&Tensor>,
        memory_mask: Option<&Tensor>,
        cache: Option<&DecoderCache>,
    ) -> Result<(Tensor, Option<DecoderCache>)> {
        let values = || {
            let masks = [tgt_mask, memory_mask].map(Value::optional);
            let [tgt_mask, memory_mask] = masks;
            vec![tgt.into(), memory.into(), tgt_mask, memory_mask, Value::optional(cache.cloned().map(pair))]
        };
        if let Some(out) = self.base.stood_in(&values)? {
            return read_decoded(out);
        }
        let mut grown = None;
        let mut out = call_with(&Of(self), &[tgt.clone(), memory.clone()], &mut |inputs| {
            let (output, cache) = self.compute(&inputs[0], &inputs[1], tgt_mask, memory_mask, cache)?;
            grown = cache;
            Ok(vec![output])
        })?;
        Ok((out.swap_remove(0), grown))
    }

    fn compute(
        &self,
        tgt: &Tensor,
        memory: &Tensor,
        tgt_mask: Option<&Tensor>,
        memory_mask: Option<&Tensor>,
        cache: Option<&DecoderCache>,
    ) -> Result<(Tensor, Option<DecoderCache>)> {
        let tgt_mask = additive_mask(tgt_mask, tgt.dtype())?;
        let memory_mask = additive_mask(memory_mask, memory.dtype())?;
        let before = self.config.normalize_before;
        let (mut own, mut of_memory) = (None, None);
        let x = residual(tgt, before, &self.norm1, &self.dropout1, |x| {
            let seen = self.self_attn.run(x, None, None, tgt_mask.as_ref(), cache.map(|c| &c.0))?;
            own = seen.cache;
            Ok(seen.output)
        })?;
        let x = residual(&x, before, &self.norm2, &self.dropout2, |x| {
            let mask = memory_mask.as_ref();
            let seen = self.cross_attn.run(x, Some(memory), Some(memory), mask, cache.map(|c| &c.1))?;
            of_memory = seen.cache;
            Ok(seen.output)
        })?;
        Ok((residual(&x, before, &self.norm3, &self.dropout3, feedforward!(self))?, own.zip(of_memory)))
    }

    /// An empty cache of the own sequence and a cache of the memory.
    pub fn gen_cache(&self, memory: &Tensor) -> Result<DecoderCache> {
        Ok((self.self_attn.gen_cache(memory)?, self.cross_attn.gen_static_cache(memory, memory)?))
    }
}

impl Layer for TransformerDecoderLayer {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        Ok(self.forward_all(std::slice::from_ref(x))?.swap_remove(0))
    }
    fn settings(&self) -> Vec<(&'static str, Value)> {
        self.config.settings()
    }
    fn invoke(&self, positional: Vec<Value>, named: Vec<(&str, Value)>) -> Result<Value> {
        let args = DecoderArgs::read("TransformerDecoderLayer", positional, named)?;
        let cache = read_decoder_cache(&args.cache)?;
        let mut grown = None;
        let out = watched(&Of(self), &[args.tgt.clone(), args.memory.clone()], &mut || {
            let [tgt_mask, memory_mask] = args.masks.each_ref().map(Option::as_ref);
            let (output, new) = self.compute(&args.tgt, &args.memory, tgt_mask, memory_mask, cache.as_ref())?;
            grown = new;
            Ok(vec![output])
        })?;
        Ok(with_cache(out, grown.map(pair)))
    }
    /// The inputs are `tgt`, `memory`, then `tgt_mask` and `memory_mask` as far as they are given.
    fn forward_all(&self, inputs: &[Tensor]) -> Result<Vec<Tensor>> {
        let [tgt, memory, masks @ ..] = inputs else {
            return Err(Error::invalid(format!("takes tgt and memory, got {} tensors", inputs.len())));
        };
        ensure!(masks.len() <= 2, "takes tgt, memory and two masks, got {} tensors", inputs.len());
        Ok(vec![self.compute(tgt, memory, masks.first(), masks.get(1), None)?.0])
    }
}
