//! Transformers: caches, masks, parts of one's own, names and errors.

use sampan_core::ops::joining::concat;
use sampan_core::{DType, Result, Tensor};
use sampan_nn::{
    Identity, Layer, Members, MultiHeadAttention, ParamAttr, Transformer, TransformerDecoder, TransformerDecoderLayer,
    TransformerEncoder, TransformerEncoderLayer, TransformerMasks,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

fn close(a: &Tensor, b: &Tensor) -> bool {
    a.shape() == b.shape() && (a - b).abs().max(()).to_f64() < 1e-5
}

fn causal(n: usize) -> Tensor {
    Tensor::full([n, n], f64::NEG_INFINITY, DType::Float32).triu(1)
}

#[test]
fn a_decoder_with_caches_gives_step_by_step_what_it_gives_at_once() {
    let decoder = TransformerDecoder::new(TransformerDecoderLayer::new(8, 2, 16), 2);
    decoder.eval();
    let (tgt, memory) = (Tensor::randn([2, 4, 8]), Tensor::randn([2, 3, 8]));
    let (whole, none) = decoder.run(&tgt, &memory, Some(&causal(4)), None, None).unwrap();
    assert!(none.is_none());
    let (mut caches, mut parts) = (decoder.gen_cache(&memory).unwrap(), Vec::new());
    for t in 0..4 {
        let (y, next) = decoder.run(&tgt.narrow(1, t, 1), &memory, None, None, Some(&caches)).unwrap();
        caches = next.unwrap();
        parts.push(y);
    }
    assert!(close(&whole, &concat(&parts, 1)));
    let e = decoder.run(&tgt, &memory, None, None, Some(&caches[..1])).map(|_| ()).unwrap_err().to_string();
    assert!(e.contains("2 layers"), "{e}");
}

#[test]
fn an_encoder_with_caches_gives_step_by_step_what_it_gives_at_once() {
    let encoder = TransformerEncoder::new(TransformerEncoderLayer::new(8, 2, 16), 2);
    encoder.eval();
    let src = Tensor::randn([1, 3, 8]);
    let (whole, _) = encoder.run(&src, Some(&causal(3)), None).unwrap();
    let (first, caches) = encoder.run(&src.narrow(1, 0, 1), None, Some(&encoder.gen_cache(&src).unwrap())).unwrap();
    let mask = causal(3).narrow(0, 1, 2);
    let (rest, _) = encoder.run(&src.narrow(1, 1, 2), Some(&mask), Some(&caches.unwrap())).unwrap();
    assert!(close(&whole, &concat(&[first, rest], 1)));
}

#[test]
fn the_fused_attention_is_that_of_the_weights() {
    let fused = MultiHeadAttention::with(8, 2, |o| o.kdim(5).vdim(6));
    let plain = MultiHeadAttention::with(8, 2, |o| o.kdim(5).vdim(6).need_weights(true));
    plain.set_state_dict(&fused.state_dict()).unwrap();
    let (q, k, v) = (Tensor::randn([2, 3, 8]), Tensor::randn([2, 4, 5]), Tensor::randn([2, 4, 6]));
    let allowed = Tensor::new([[true, false, true, true], [true, true, true, false], [false, true, true, true]]);
    let forbidden = (allowed.cast(DType::Float32) - 1.0) * 1e9;
    let run = |layer: &MultiHeadAttention, mask: &Tensor| layer.run(&q, Some(&k), Some(&v), Some(mask), None).unwrap();
    let expected = run(&plain, &allowed);
    let weights = expected.weights.unwrap();
    assert_eq!(weights.shape(), [2, 2, 3, 4]);
    assert!(close(&weights.sum(-1), &Tensor::ones([2, 2, 3], DType::Float32)));
    for mask in [allowed.clone(), allowed.cast(DType::Int32), forbidden.cast(DType::Float64), forbidden] {
        let seen = run(&fused, &mask);
        assert!(seen.weights.is_none() && close(&seen.output, &expected.output), "{}", mask.dtype());
    }
}

#[test]
fn a_transformer_takes_parts_of_one_s_own_and_any_of_its_masks() {
    let small = |o: sampan_nn::TransformerOpts| {
        o.d_model(8).nhead(2).num_encoder_layers(1).num_decoder_layers(1).dim_feedforward(16).dropout(0.0)
    };
    let net = Transformer::with(small);
    let (src, tgt) = (Tensor::randn([1, 2, 8]), Tensor::randn([1, 3, 8]));
    let free = net.run(&src, &tgt, TransformerMasks::default()).unwrap();
    let nothing = Tensor::zeros([3, 2], DType::Float32);
    let memory_only = TransformerMasks { memory: Some(&nothing), ..Default::default() };
    assert!(close(&free, &net.run(&src, &tgt, memory_only).unwrap()));
    let blind = Tensor::new([[0.0f32, -1e9]; 3]);
    let half = net.run(&src, &tgt, TransformerMasks { memory: Some(&blind), ..Default::default() }).unwrap();
    assert!(!close(&free, &half));

    let custom: Arc<dyn Layer> = Arc::new(Identity::new());
    let headless = Transformer::with(|o| small(o).custom_encoder(custom.clone()));
    assert!(Arc::ptr_eq(&headless.encoder, &custom));
    assert!(headless.named_parameters().iter().all(|(name, _)| name.starts_with("decoder")));
    headless.decoder.set_state_dict(&net.decoder.state_dict()).unwrap();
    let memory = net.encoder.call(&src).unwrap();
    assert!(close(&headless.run(&memory, &tgt, TransformerMasks::default()).unwrap(), &free));
    let mask = net.generate_square_subsequent_mask(2).to_vec::<f32>();
    assert_eq!(mask, [0.0, f32::NEG_INFINITY, 0.0, 0.0]);
}

#[test]
fn layers_of_a_stack_have_weights_of_their_own_and_attributes_by_part() {
    let layer = TransformerEncoderLayer::with(8, 2, 16, |o| {
        o.bias_attr(vec![ParamAttr::from(false), ParamAttr::new()]).weight_attr("shared")
    });
    assert!(layer.self_attn.q_proj.bias.is_none() && layer.linear1.bias.is_some());
    assert_eq!(
        (layer.self_attn.q_proj.weight.name(), layer.linear1.weight.name()),
        ("shared_0".into(), "shared_1".into())
    );
    let layer = Arc::new(layer);
    let encoder = TransformerEncoder::new(layer.clone(), 2);
    assert!(encoder.layer(0).unwrap().linear1.weight.is_same(&layer.linear1.weight));
    let [a, b] = [0, 1].map(|i| encoder.layer(i).unwrap().linear1.weight.clone());
    assert!(!a.is_same(&b) && !close(&a.tensor(), &b.tensor()));
    assert!(encoder.layer(1).unwrap().self_attn.q_proj.bias.is_none());
    let wrong = TransformerEncoderLayer::try_with(8, 2, 16, |o| o.bias_attr(vec![ParamAttr::new(); 3]));
    assert!(wrong.map(|_| ()).unwrap_err().to_string().contains("2 entries, got 3"));
}

#[test]
fn hooks_run_deep_inside_and_errors_say_where() {
    let encoder = TransformerEncoder::new(TransformerEncoderLayer::new(8, 2, 16), 2);
    let calls = Arc::new(AtomicUsize::new(0));
    let count = calls.clone();
    let attention = encoder.layer(1).unwrap().self_attn.base().unwrap();
    let hook = attention.register_forward_post_hook(move |_, outputs| {
        count.fetch_add(outputs.len(), Ordering::Relaxed);
        Ok(None)
    });
    encoder.call(&Tensor::randn([1, 3, 8])).unwrap();
    assert_eq!(calls.load(Ordering::Relaxed), 1);
    assert!(hook.remove());

    let e = encoder.call(&Tensor::randn([1, 3, 6])).unwrap_err().to_string();
    assert!(e.contains("TransformerEncoder.layers.0.self_attn.q_proj (Linear)"), "{e}");
    let text = |r: Result<()>| r.unwrap_err().to_string();
    assert!(text(MultiHeadAttention::try_new(8, 3).map(|_| ())).contains("embed_dim 8"));
    let activation = TransformerEncoderLayer::try_with(8, 2, 16, |o| o.activation("rely"));
    assert!(text(activation.map(|_| ())).contains("rely"));
}
