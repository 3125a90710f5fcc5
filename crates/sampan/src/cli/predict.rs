//! `sampan predict`.

use super::{say, weights};
use clap::Args;
use sampan_core::{Error, Result, Tensor};
use sampan_data::vision::image;
use sampan_data::vision::transforms::{resize, to_grayscale};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

#[derive(Args)]
pub struct Predict {
    /// Pictures of one digit each: PNG, JPEG, BMP, GIF or WebP of any size, dark on light or light on dark
    #[arg(required = true, value_name = "IMAGE")]
    images: Vec<PathBuf>,
    /// A run folder, a checkpoint or a file of weights
    #[arg(long, default_value = "runs/lenet", value_name = "PATH")]
    model: PathBuf,
}

/// A picture without its alpha: what is drawn on nothing gets a ground that it stands out from.
fn without_alpha(path: &Path) -> Result<Tensor> {
    let stored = image::image_load(path, Some("pil"))?;
    let &[height, width, channels @ (2 | 4)] = stored.shape() else { return image::load(path) };
    let bytes = stored.try_to_vec::<u8>()?;
    let pixels = || bytes.chunks(channels).map(|p| (&p[..channels - 1], p[channels - 1] as f64 / 255.0));
    let brightness = |colour: &[u8]| colour.iter().map(|&c| c as f64).sum::<f64>() / colour.len() as f64;
    let drawn: f64 = pixels().map(|(_, alpha)| alpha).sum();
    let ink: f64 = pixels().map(|(colour, alpha)| brightness(colour) * alpha).sum::<f64>() / drawn;
    let ground = if ink > 127.5 { 0.0 } else { 255.0 };
    let blend = |(colour, alpha): (&[u8], f64)| (brightness(colour) * alpha + ground * (1.0 - alpha)).round() as u8;
    Tensor::try_from_slice(&pixels().map(blend).collect::<Vec<u8>>(), [height, width, 1])
}

/// A picture as the network knows them: 28 by 28, light strokes on a dark ground, from -1 to 1.
fn digit(path: &Path) -> Result<Tensor> {
    let gray = to_grayscale(&without_alpha(path)?, 1)?;
    let small = resize(&gray, [28, 28], "bicubic")?.try_cast(sampan_core::DType::Float32)?.try_reshape([28, 28])?;
    let x = (small - 127.5) / 127.5;
    // The border is ground: MNIST's is dark.
    let border = x.get(0).try_mean(())?.to_f64() + x.get(27).try_mean(())?.to_f64();
    let x = if border > 0.0 { -x } else { x };
    x.try_reshape([1, 1, 28, 28])
}

impl Predict {
    pub fn run(self) -> Result<ExitCode> {
        let mut model = weights::load(&self.model)?;
        let mut failed = false;
        for path in &self.images {
            let answer = digit(path).and_then(|x| model.predict_batch(&[x])).and_then(|scores| {
                let shares = scores[0].try_softmax(-1)?.to_vec::<f32>();
                let mut order: Vec<usize> = (0..shares.len()).collect();
                order.sort_by(|&a, &b| shares[b].total_cmp(&shares[a]));
                let [first, second, ..] = order[..] else { return Err(Error::invalid("the network gives no scores")) };
                let percent = |i: usize| shares[i] * 100.0;
                Ok(format!("{first} ({:.1} %), else {second} ({:.1} %)", percent(first), percent(second)))
            });
            match answer {
                Ok(text) => say(format!("{}: {text}", path.display()))?,
                Err(e) => {
                    failed = true;
                    eprintln!("error: {e}");
                }
            }
        }
        Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
    }
}
