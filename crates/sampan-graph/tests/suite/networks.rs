//! Whole networks: traced at free sizes, replayed at others, to the same bits.

use sampan_core::{DType, Tensor, random};
use sampan_data::vision::models;
use sampan_graph::{Spec, trace};
use sampan_nn::{GRU, LSTM, Layer, TransformerEncoder, TransformerEncoderLayer};

fn replays(net: &dyn Layer, spec: Spec, shape: &[usize]) {
    random::own(0);
    net.eval();
    let graph = trace(|x| net.call_all(x), &[spec]).unwrap();
    let x = Tensor::randn(shape);
    let (expected, found) = (net.call_all(&[x.clone()]).unwrap(), graph.run(&[x]).unwrap());
    assert!(graph.calls.iter().all(|c| c.op.name != "full"), "a constant follows the size");
    for (a, b) in expected.iter().zip(&found) {
        assert_eq!(a.to_bytes(), b.to_bytes());
    }
    let grads = |out: &[Tensor]| {
        out[0].square().mean(()).backward();
        let all = net.parameters().iter().map(|p| p.tensor().grad().map(|g| g.to_bytes())).collect::<Vec<_>>();
        net.clear_gradients();
        all
    };
    assert_eq!(grads(&expected), grads(&found));
}

#[test]
fn images() {
    random::own(0);
    let image = || Spec::new([None, Some(3), None, None], DType::Float32);
    replays(&models::resnet18(), image(), &[2, 3, 40, 48]);
    replays(&models::mobilenet_v3_small(), image(), &[2, 3, 40, 48]);
    replays(&models::LeNet::new(), Spec::new([None, Some(1), Some(28), Some(28)], DType::Float32), &[3, 1, 28, 28]);
}

#[test]
fn sequences() {
    random::own(0);
    let steps = || Spec::new([None, None, Some(8)], DType::Float32);
    replays(&LSTM::new(8, 6), steps(), &[3, 5, 8]);
    replays(&GRU::new(8, 6), steps(), &[3, 5, 8]);
    let layer = TransformerEncoderLayer::new(8, 2, 16);
    replays(&TransformerEncoder::new(layer, 2), steps(), &[3, 5, 8]);
}
