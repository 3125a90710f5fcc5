//! The network of the main job.

use sampan_core::{Result, Tensor};
use sampan_nn::{Apply, Conv2D, Flatten, Layer, Linear, MaxPool2D, ReLU, Sequential};

/// LeNet-5 for 28 by 28 images of ten classes: kernels of 5 by 5 and a ReLU after every layer but the last. Paddle's own
/// `vision.models.LeNet`, in the model zoo, begins with a 3 by 3 kernel and has no ReLU between its linear layers.
#[derive(Layer)]
pub struct LeNet5 {
    features: Sequential,
    fc: Sequential,
}

impl LeNet5 {
    /// With fresh weights.
    #[allow(clippy::new_without_default)]
    pub fn new() -> LeNet5 {
        LeNet5 {
            features: Sequential::new()
                .push(Conv2D::with(1, 6, 5, |o| o.padding(2)))
                .push(ReLU::new())
                .push(MaxPool2D::new(2))
                .push(Conv2D::new(6, 16, 5))
                .push(ReLU::new())
                .push(MaxPool2D::new(2)),
            fc: Sequential::new()
                .push(Flatten::new())
                .push(Linear::new(400, 120))
                .push(ReLU::new())
                .push(Linear::new(120, 84))
                .push(ReLU::new())
                .push(Linear::new(84, 10)),
        }
    }
}

impl Layer for LeNet5 {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        x.apply(&self.features)?.apply(&self.fc)
    }
}
