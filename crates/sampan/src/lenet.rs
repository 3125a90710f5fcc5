//! The network of the main job.

use sampan_core::{Result, Tensor};
use sampan_nn::{Conv2D, Flatten, Layer, Linear, MaxPool2D, ReLU, Sequential};

/// LeNet-5 for 28 by 28 images of ten classes.
#[derive(Layer)]
pub struct LeNet {
    features: Sequential,
    fc: Sequential,
}

impl LeNet {
    /// With fresh weights.
    pub fn new() -> Result<LeNet> {
        Ok(LeNet {
            features: Sequential::new()
                .push(Conv2D::new(1, 6, 5)?.padding(2))
                .push(ReLU)
                .push(MaxPool2D::new(2))
                .push(Conv2D::new(6, 16, 5)?)
                .push(ReLU)
                .push(MaxPool2D::new(2)),
            fc: Sequential::new()
                .push(Flatten)
                .push(Linear::new(400, 120))
                .push(ReLU)
                .push(Linear::new(120, 84))
                .push(ReLU)
                .push(Linear::new(84, 10)),
        })
    }
}

impl Layer for LeNet {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let x = self.features.forward(x).map_err(|e| e.in_layer("features"))?;
        self.fc.forward(&x).map_err(|e| e.in_layer("fc"))
    }
}
