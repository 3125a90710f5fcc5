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
    /// Pictures of one digit each: PNG, JPEG, BMP, GIF, TIFF or WebP of any size, dark on light or light on dark
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

/// The side of MNIST's pictures, and of the box that its digits fill.
const SIDE: usize = 28;
const BOX: usize = 20;

/// A picture as the network knows them: 28 by 28, light strokes on a dark ground, from -1 to 1. As in MNIST, the digit is
/// cut out, made to fill a box of 20 by 20, and centred by the weight of its ink.
fn digit(path: &Path) -> Result<Tensor> {
    let gray = to_grayscale(&without_alpha(path)?, 1)?;
    let &[height, width, ..] = gray.shape() else { return Err(Error::invalid("a picture has rows and columns")) };
    let mut bytes = gray.try_to_vec::<u8>()?;
    // The border is ground: MNIST's is dark.
    let border =
        (0..width).flat_map(|x| [(0, x), (height - 1, x)]).chain((0..height).flat_map(|y| [(y, 0), (y, width - 1)]));
    let (sum, count) = border.fold((0usize, 0usize), |(sum, n), (y, x)| (sum + bytes[y * width + x] as usize, n + 1));
    if sum > 127 * count {
        bytes.iter_mut().for_each(|b| *b = 255 - *b);
    }
    let inked = |y: usize, x: usize| bytes[y * width + x] > 63;
    let rows: Vec<usize> = (0..height).filter(|&y| (0..width).any(|x| inked(y, x))).collect();
    let columns: Vec<usize> = (0..width).filter(|&x| (0..height).any(|y| inked(y, x))).collect();
    let corners = (rows.first(), rows.last(), columns.first(), columns.last());
    let (Some(&top), Some(&bottom), Some(&left), Some(&right)) = corners else {
        return Err(Error::invalid(format!("nothing is drawn in {}", path.display()))
            .hint("one digit, dark on light or light on dark"));
    };
    let (h, w) = (bottom - top + 1, right - left + 1);
    let cut: Vec<u8> = (top..=bottom).flat_map(|y| bytes[y * width + left..][..w].iter().copied()).collect();
    let scaled = |side: usize| (side * BOX).div_ceil(h.max(w)).clamp(1, BOX);
    let (new_h, new_w) = (scaled(h), scaled(w));
    let small = resize(&Tensor::try_from_slice(&cut, [h, w, 1])?, [new_h, new_w], "bilinear")?.try_to_vec::<u8>()?;
    // The centre of the ink goes to the middle of the picture.
    let mass: f64 = small.iter().map(|&b| b as f64).sum();
    let centre = |at: fn(usize, usize) -> usize| {
        small.iter().enumerate().map(|(i, &b)| at(i, new_w) as f64 * b as f64).sum::<f64>() / mass.max(1.0)
    };
    let start = |centre: f64, size: usize| (((SIDE - 1) as f64 / 2.0 - centre).round() as usize).min(SIDE - size);
    let (y0, x0) = (start(centre(|i, w| i / w), new_h), start(centre(|i, w| i % w), new_w));
    let mut pixels = vec![-1.0f32; SIDE * SIDE];
    for (i, &byte) in small.iter().enumerate() {
        pixels[(y0 + i / new_w) * SIDE + x0 + i % new_w] = (byte as f32 - 127.5) / 127.5;
    }
    Tensor::try_from_slice(&pixels, [1, 1, SIDE, SIDE])
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
