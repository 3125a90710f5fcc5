//! Encoders, decoders and the whole transformer.

use super::MAX_LAYERS;
use super::attention::{AttentionCache, additive_mask};
use super::sequential::{AnyLayer, as_type};
use super::transformer_layer::{
    DecoderArgs, DecoderCache, EncoderArgs, TransformerDecoderLayer, TransformerEncoderLayer, pair, read_decoded,
    read_decoder_cache, read_encoded, with_cache,
};
use crate::layer::{Of, call_with, watched};
use crate::{Base, Layer, LayerNorm, ParamAttr, ParamAttrs, SharedLayer, call_values, invoke, layer};
use sampan_core::promote::default_dtype;
use sampan_core::value::Arg;
use sampan_core::{Error, Result, Tensor, Value, bail, device, ensure};
use sampan_macros::class;
use std::sync::Arc;

/// Encoder layers one after the other.
#[derive(Layer)]
pub struct TransformerEncoder {
    base: Base,
    /// The layers; of the type that [`layer`](Self::layer) knows, or others that take the same arguments.
    pub layers: Vec<AnyLayer>,
    /// What comes after the last.
    pub norm: Option<Arc<dyn Layer>>,
}

#[class(module = "nn", object = layer::object)]
impl TransformerEncoder {
    /// `num_layers` encoder layers: the given one and others made from the same arguments, then `norm` if there is one.
    ///
    /// ```
    /// use sampan_core::Tensor;
    /// use sampan_nn::{Layer, TransformerEncoder, TransformerEncoderLayer};
    /// let encoder = TransformerEncoder::new(TransformerEncoderLayer::new(8, 2, 16), 2);
    /// assert_eq!(encoder.call(&Tensor::randn([1, 3, 8]))?.shape(), [1, 3, 8]);
    /// # Ok::<(), sampan_core::Error>(())
    /// ```
    fn build(
        encoder_layer: Repeated,
        num_layers: usize,
        #[opt(None)] norm: Option<SharedLayer>,
    ) -> Result<TransformerEncoder> {
        let base = Base::new("transformer_encoder");
        let layers = encoder_layer.times(num_layers, TransformerEncoderLayer::another)?;
        Ok(TransformerEncoder { base, layers, norm: norm.map(|n| n.0) })
    }
}

impl TransformerEncoder {
    /// The layer at `index`, if it is one of this crate's.
    pub fn layer(&self, index: usize) -> Option<&TransformerEncoderLayer> {
        self.layers.get(index).and_then(as_type)
    }

    /// The output, and the caches for the next call if there were any in this.
    pub fn run(
        &self,
        src: &Tensor,
        src_mask: Option<&Tensor>,
        cache: Option<&[AttentionCache]>,
    ) -> Result<(Tensor, Option<Vec<AttentionCache>>)> {
        let mut grown = None;
        let mut out = call_with(&Of(self), std::slice::from_ref(src), &mut |inputs| {
            let (output, caches) = self.compute(&inputs[0], src_mask, cache)?;
            grown = caches;
            Ok(vec![output])
        })?;
        Ok((out.swap_remove(0), grown))
    }

    fn compute(
        &self,
        src: &Tensor,
        mask: Option<&Tensor>,
        cache: Option<&[AttentionCache]>,
    ) -> Result<(Tensor, Option<Vec<AttentionCache>>)> {
        check_caches(cache.map(<[_]>::len), self.layers.len())?;
        let mask = additive_mask(mask, src.dtype())?;
        let mut x = src.clone();
        let mut grown = cache.map(|_| Vec::new());
        for (i, layer) in self.layers.iter().enumerate() {
            let (mask, cache) = (mask.as_ref(), cache.map(|c| &c[i]));
            let (y, new) = match as_type::<TransformerEncoderLayer>(layer) {
                Some(layer) => layer.run(&x, mask, cache)?,
                None => {
                    let args = vec![(&x).into(), Value::optional(mask), Value::optional(cache.cloned())];
                    read_encoded(call_values(&**layer, args)?)?
                }
            };
            x = y;
            grown.iter_mut().for_each(|list| list.extend(new.clone()));
        }
        Ok((finish(x, &self.norm)?, grown))
    }

    /// An empty cache for each layer.
    pub fn gen_cache(&self, src: &Tensor) -> Result<Vec<AttentionCache>> {
        (0..self.layers.len()).map(|i| self.layer(i).ok_or_else(no_cache)?.gen_cache(src)).collect()
    }
}

/// One cache for each layer, from a list.
fn each_cache<C>(value: &Value, read: impl Fn(&Value) -> Result<Option<C>>) -> Result<Option<Vec<C>>> {
    match value {
        Value::None => Ok(None),
        Value::List(list) => list.iter().map(read).collect::<Result<Option<Vec<C>>>>(),
        other => Err(Error::dtype(format!("`cache` must be a list of caches, got {}", other.type_name()))
            .hint("gen_cache makes it")),
    }
}

fn no_cache() -> Error {
    Error::invalid("a layer of another type makes its cache itself")
}

/// A layer that is to be repeated, or the layers themselves.
#[derive(Clone)]
pub struct Repeated(Vec<AnyLayer>);

impl Repeated {
    /// `n` layers: those given, or the one given and others like it.
    fn times<L: Layer>(self, n: usize, another: impl Fn(&L) -> Result<L>) -> Result<Vec<AnyLayer>> {
        let mut layers = self.0;
        ensure!(n <= MAX_LAYERS, "num_layers must be at most {MAX_LAYERS}, got {n}");
        if layers.len() == 1 {
            layers.truncate(n);
            let missing = n.saturating_sub(layers.len());
            for _ in 0..missing {
                let Some(first) = as_type::<L>(&layers[0]) else {
                    bail!("a layer of another type cannot be repeated, a list of {n} layers is needed");
                };
                layers.push(Arc::new(another(first)?));
            }
        }
        ensure!(layers.len() == n, "num_layers is {n}, got {} layers", layers.len());
        Ok(layers)
    }
}
impl<L: Layer> From<L> for Repeated {
    fn from(layer: L) -> Repeated {
        Repeated(vec![SharedLayer::from(layer).0])
    }
}
impl From<Repeated> for Value {
    fn from(layers: Repeated) -> Value {
        Value::List(layers.0.into_iter().map(|l| SharedLayer(l).into()).collect())
    }
}
impl<'a> Arg<'a> for Repeated {
    const EXPECTED: &'static str = "a layer, or a list of layers";
    fn read(v: &'a Value) -> Option<Self> {
        match v {
            Value::List(list) => {
                list.iter().map(|v| SharedLayer::read(v).map(|l| l.0)).collect::<Option<_>>().map(Repeated)
            }
            one => SharedLayer::read(one).map(|l| Repeated(vec![l.0])),
        }
    }
}

fn check_caches(given: Option<usize>, layers: usize) -> Result<()> {
    ensure!(given.is_none_or(|n| n == layers), "{layers} layers need as many caches, got {}", given.unwrap_or(0));
    Ok(())
}

fn finish(x: Tensor, norm: &Option<Arc<dyn Layer>>) -> Result<Tensor> {
    norm.as_ref().map_or(Ok(x.clone()), |norm| norm.call(&x))
}

impl Layer for TransformerEncoder {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        Ok(self.compute(x, None, None)?.0)
    }
    fn invoke(&self, positional: Vec<Value>, named: Vec<(&str, Value)>) -> Result<Value> {
        let args = EncoderArgs::read("TransformerEncoder", positional, named)?;
        let caches = each_cache(&args.cache, AttentionCache::read)?;
        let mut grown = None;
        let out = watched(&Of(self), std::slice::from_ref(&args.src), &mut || {
            let (output, new) = self.compute(&args.src, args.mask.as_ref(), caches.as_deref())?;
            grown = new;
            Ok(vec![output])
        })?;
        let grown = grown.map(|list| Value::List(list.into_iter().map(Value::from).collect()));
        Ok(with_cache(out, grown))
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

/// Decoder layers one after the other.
#[derive(Layer)]
pub struct TransformerDecoder {
    base: Base,
    /// The layers; of the type that [`layer`](Self::layer) knows, or others that take the same arguments.
    pub layers: Vec<AnyLayer>,
    /// What comes after the last.
    pub norm: Option<Arc<dyn Layer>>,
}

#[class(module = "nn", object = layer::object)]
impl TransformerDecoder {
    /// `num_layers` decoder layers: the given one and others made from the same arguments, then `norm` if there is one.
    ///
    /// ```
    /// use sampan_core::Tensor;
    /// use sampan_nn::{TransformerDecoder, TransformerDecoderLayer};
    /// let decoder = TransformerDecoder::new(TransformerDecoderLayer::new(8, 2, 16), 2);
    /// let memory = Tensor::randn([1, 5, 8]);
    /// let caches = decoder.gen_cache(&memory)?;
    /// let (y, caches) = decoder.run(&Tensor::randn([1, 1, 8]), &memory, None, None, Some(&caches))?;
    /// assert_eq!((y.shape(), caches.unwrap().len()), (&[1, 1, 8][..], 2));
    /// # Ok::<(), sampan_core::Error>(())
    /// ```
    fn build(
        decoder_layer: Repeated,
        num_layers: usize,
        #[opt(None)] norm: Option<SharedLayer>,
    ) -> Result<TransformerDecoder> {
        let base = Base::new("transformer_decoder");
        let layers = decoder_layer.times(num_layers, TransformerDecoderLayer::another)?;
        Ok(TransformerDecoder { base, layers, norm: norm.map(|n| n.0) })
    }
}

impl TransformerDecoder {
    /// The layer at `index`, if it is one of this crate's.
    pub fn layer(&self, index: usize) -> Option<&TransformerDecoderLayer> {
        self.layers.get(index).and_then(as_type)
    }

    /// The output, and the caches for the next call if there were any in this.
    pub fn run(
        &self,
        tgt: &Tensor,
        memory: &Tensor,
        tgt_mask: Option<&Tensor>,
        memory_mask: Option<&Tensor>,
        cache: Option<&[DecoderCache]>,
    ) -> Result<(Tensor, Option<Vec<DecoderCache>>)> {
        let mut grown = None;
        let mut out = call_with(&Of(self), &[tgt.clone(), memory.clone()], &mut |inputs| {
            let (output, caches) = self.compute(&inputs[0], &inputs[1], tgt_mask, memory_mask, cache)?;
            grown = caches;
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
        cache: Option<&[DecoderCache]>,
    ) -> Result<(Tensor, Option<Vec<DecoderCache>>)> {
        check_caches(cache.map(<[_]>::len), self.layers.len())?;
        let tgt_mask = additive_mask(tgt_mask, tgt.dtype())?;
        let memory_mask = additive_mask(memory_mask, memory.dtype())?;
        let mut x = tgt.clone();
        let mut grown = cache.map(|_| Vec::new());
        for (i, layer) in self.layers.iter().enumerate() {
            let (tgt_mask, memory_mask, cache) = (tgt_mask.as_ref(), memory_mask.as_ref(), cache.map(|c| &c[i]));
            let (y, new) = match as_type::<TransformerDecoderLayer>(layer) {
                Some(layer) => layer.run(&x, memory, tgt_mask, memory_mask, cache)?,
                None => {
                    let [tgt_mask, memory_mask] = [tgt_mask, memory_mask].map(Value::optional);
                    let cache = Value::optional(cache.cloned().map(pair));
                    let args = vec![(&x).into(), memory.into(), tgt_mask, memory_mask, cache];
                    read_decoded(call_values(&**layer, args)?)?
                }
            };
            x = y;
            grown.iter_mut().for_each(|list| list.extend(new.clone()));
        }
        Ok((finish(x, &self.norm)?, grown))
    }

    /// The caches of each layer: an empty one of the own sequence and one of the memory.
    pub fn gen_cache(&self, memory: &Tensor) -> Result<Vec<DecoderCache>> {
        (0..self.layers.len()).map(|i| self.layer(i).ok_or_else(no_cache)?.gen_cache(memory)).collect()
    }
}

impl Layer for TransformerDecoder {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        Ok(self.forward_all(std::slice::from_ref(x))?.swap_remove(0))
    }
    fn invoke(&self, positional: Vec<Value>, named: Vec<(&str, Value)>) -> Result<Value> {
        let args = DecoderArgs::read("TransformerDecoder", positional, named)?;
        let caches = each_cache(&args.cache, read_decoder_cache)?;
        let mut grown = None;
        let out = watched(&Of(self), &[args.tgt.clone(), args.memory.clone()], &mut || {
            let [tgt_mask, memory_mask] = args.masks.each_ref().map(Option::as_ref);
            let (output, new) = self.compute(&args.tgt, &args.memory, tgt_mask, memory_mask, caches.as_deref())?;
            grown = new;
            Ok(vec![output])
        })?;
        let grown = grown.map(|list| Value::List(list.into_iter().map(pair).collect()));
        Ok(with_cache(out, grown))
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

/// The masks of a transformer; those left out forbid nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct TransformerMasks<'a> {
    /// What of the source the source sees.
    pub src: Option<&'a Tensor>,
    /// What of the target the target sees.
    pub tgt: Option<&'a Tensor>,
    /// What of the source the target sees.
    pub memory: Option<&'a Tensor>,
}

/// An encoder and a decoder.
#[derive(Layer)]
pub struct Transformer {
    base: Base,
    /// Takes `src` and `src_mask`.
    pub encoder: Arc<dyn Layer>,
    /// Takes `tgt`, the encoder's output, `tgt_mask` and `memory_mask`.
    pub decoder: Arc<dyn Layer>,
}

/// The attributes of encoder layers (attention, linear) and decoder layers (two attentions, linear) from one list.
fn shares(attrs: &ParamAttrs) -> Result<(ParamAttrs, ParamAttrs)> {
    let ParamAttrs::Each(list) = attrs else { return Ok((attrs.clone(), attrs.clone())) };
    let pick = |at: &[usize]| ParamAttrs::Each(at.iter().map(|&i| list[i].clone()).collect::<Vec<ParamAttr>>());
    Ok(match list.len() {
        1 => (pick(&[0, 0]), pick(&[0, 0, 0])),
        2 => (pick(&[0, 1]), pick(&[0, 0, 1])),
        3 => (pick(&[0, 2]), pick(&[0, 1, 2])),
        n => bail!("a list of attributes must have 1, 2 or 3 entries, got {n}"),
    })
}

#[class(module = "nn", object = layer::object)]
impl Transformer {
    /// An encoder and a decoder with a norm at the end of each; `custom_encoder` and `custom_decoder` take the place of
    /// either. The arguments are those of [`TransformerEncoderLayer`].
    ///
    /// ```
    /// use sampan_core::Tensor;
    /// use sampan_nn::{Transformer, TransformerMasks};
    /// let net = Transformer::with(|o| o.d_model(8).nhead(2).num_encoder_layers(1).num_decoder_layers(1).dim_feedforward(16));
    /// let (src, tgt) = (Tensor::randn([1, 4, 8]), Tensor::randn([1, 3, 8]));
    /// let causal = net.generate_square_subsequent_mask(3);
    /// let y = net.run(&src, &tgt, TransformerMasks { tgt: Some(&causal), ..Default::default() })?;
    /// assert_eq!(y.shape(), [1, 3, 8]);
    /// # Ok::<(), sampan_core::Error>(())
    /// ```
    fn build(
        #[opt(512)] d_model: usize,
        #[opt(8)] nhead: usize,
        #[opt(6)] num_encoder_layers: usize,
        #[opt(6)] num_decoder_layers: usize,
        #[opt(2048)] dim_feedforward: usize,
        #[opt(0.1)] dropout: f64,
        #[opt("relu")] activation: &str,
        #[opt(None)] attn_dropout: Option<f64>,
        #[opt(None)] act_dropout: Option<f64>,
        #[opt(false)] normalize_before: bool,
        #[opt(None)] weight_attr: ParamAttrs,
        #[opt(None)] bias_attr: ParamAttrs,
        #[opt(None)] custom_encoder: Option<SharedLayer>,
        #[opt(None)] custom_decoder: Option<SharedLayer>,
    ) -> Result<Transformer> {
        let base = Base::new("transformer");
        let (encoder_weight, decoder_weight) = shares(&weight_attr)?;
        let (encoder_bias, decoder_bias) = shares(&bias_attr)?;
        let encoder = match custom_encoder {
            Some(custom) => custom.0,
            None => {
                let layer = TransformerEncoderLayer::try_with(d_model, nhead, dim_feedforward, |o| {
                    o.dropout(dropout)
                        .activation(activation)
                        .attn_dropout(attn_dropout)
                        .act_dropout(act_dropout)
                        .normalize_before(normalize_before)
                        .weight_attr(encoder_weight)
                        .bias_attr(encoder_bias)
                })?;
                let norm = LayerNorm::try_new(d_model)?;
                Arc::new(TransformerEncoder::try_with(layer, num_encoder_layers, |o| o.norm(norm))?)
            }
        };
        let decoder = match custom_decoder {
            Some(custom) => custom.0,
            None => {
                let layer = TransformerDecoderLayer::try_with(d_model, nhead, dim_feedforward, |o| {
                    o.dropout(dropout)
                        .activation(activation)
                        .attn_dropout(attn_dropout)
                        .act_dropout(act_dropout)
                        .normalize_before(normalize_before)
                        .weight_attr(decoder_weight)
                        .bias_attr(decoder_bias)
                })?;
                let norm = LayerNorm::try_new(d_model)?;
                Arc::new(TransformerDecoder::try_with(layer, num_decoder_layers, |o| o.norm(norm))?)
            }
        };
        Ok(Transformer { base, encoder, decoder })
    }
}

impl Transformer {
    /// The decoder's output for `tgt`, with the encoder's for `src` as memory.
    pub fn run(&self, src: &Tensor, tgt: &Tensor, masks: TransformerMasks) -> Result<Tensor> {
        let inputs = [src.clone(), tgt.clone()];
        let out = call_with(&Of(self), &inputs, &mut |inputs| Ok(vec![self.compute(&inputs[0], &inputs[1], masks)?]));
        Ok(out?.swap_remove(0))
    }

    fn compute(&self, src: &Tensor, tgt: &Tensor, masks: TransformerMasks) -> Result<Tensor> {
        let of_src: Vec<Tensor> = [Some(src), masks.src].into_iter().flatten().cloned().collect();
        let memory = self.encoder.call_all(&of_src)?.swap_remove(0);
        let mut of_tgt = vec![tgt.clone(), memory];
        // Masks go by position: one that is missing before another is a zero, which forbids nothing.
        let missing = masks.memory.map(|_| device::with(tgt.device(), || Tensor::zeros([], tgt.dtype())));
        of_tgt.extend(masks.tgt.cloned().or(missing));
        of_tgt.extend(masks.memory.cloned());
        Ok(self.decoder.call_all(&of_tgt)?.swap_remove(0))
    }

    /// A mask that lets position `i` see positions `0..=i`: zeros, and minus infinity above the diagonal.
    pub fn generate_square_subsequent_mask(&self, length: usize) -> Tensor {
        Tensor::full([length, length], f64::NEG_INFINITY, default_dtype()).triu(1)
    }
}

impl Layer for Transformer {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        Ok(self.forward_all(std::slice::from_ref(x))?.swap_remove(0))
    }
    fn invoke(&self, positional: Vec<Value>, named: Vec<(&str, Value)>) -> Result<Value> {
        const NAMES: [&str; 5] = ["src", "tgt", "src_mask", "tgt_mask", "memory_mask"];
        let values = invoke::bind("Transformer", &NAMES, 2, positional, named)?;
        let at = |i: usize| invoke::tensor("Transformer", NAMES[i], &values[i]);
        let missing = || Error::dtype("`src` and `tgt` must be Tensors, got None").in_op("Transformer");
        let (src, tgt) = at(0)?.zip(at(1)?).ok_or_else(missing)?;
        let masks = TransformerMasks { src: at(2)?, tgt: at(3)?, memory: at(4)? };
        let inputs = [src.clone(), tgt.clone()];
        watched(&Of(self), &inputs, &mut || Ok(vec![self.compute(src, tgt, masks)?])).map(invoke::outputs)
    }
    /// The inputs are `src`, `tgt`, then `src_mask`, `tgt_mask` and `memory_mask` as far as they are given.
    fn forward_all(&self, inputs: &[Tensor]) -> Result<Vec<Tensor>> {
        let [src, tgt, masks @ ..] = inputs else {
            return Err(Error::invalid(format!("takes src and tgt, got {} tensors", inputs.len())));
        };
        ensure!(masks.len() <= 3, "takes src, tgt and three masks, got {} tensors", inputs.len());
        let masks = TransformerMasks { src: masks.first(), tgt: masks.get(1), memory: masks.get(2) };
        Ok(vec![self.compute(src, tgt, masks)?])
    }
}
