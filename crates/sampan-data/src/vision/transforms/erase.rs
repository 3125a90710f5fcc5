//! A part wiped out.

use super::args::probability;
use super::image::DataFormat;
use super::{Image, Key, Keys, Numbers, Transform, draw};
use sampan_core::value::Arg;
use sampan_core::{DType, Element, Error, Index, Operand, Result, Tensor, Value, ensure};
use sampan_macros::{class, function};

/// The picture with the part of `h` by `w` pixels from row `i` and column `j` replaced by `v`: a number, or a tensor that
/// fits the part in the picture's own arrangement. With `inplace` the picture itself is written to.
///
/// ```
/// use sampan_core::Tensor;
/// use sampan_data::vision::transforms::erase;
/// let x = Tensor::new([[1u8, 2], [3, 4]]);
/// assert_eq!(erase(&x, 0, 1, 2, 1, 9, false)?.to_vec::<u8>(), [1, 9, 3, 9]);
/// # Ok::<(), sampan_core::Error>(())
/// ```
#[function(module = "vision.transforms")]
pub fn erase(
    img: impl Into<Image>,
    i: i64,
    j: i64,
    h: i64,
    w: i64,
    v: impl Into<Operand>,
    #[default(false)] inplace: bool,
) -> Result<Tensor> {
    let image = img.into();
    (|| {
        image.extents()?;
        ensure!(i >= 0 && j >= 0 && h >= 0 && w >= 0, "the part must not be negative, got {:?}", [i, j, h, w]);
        let mut out = if inplace { image.tensor().clone() } else { image.tensor().detach().try_assign()? };
        let mut index = vec![Index::Ellipsis, Index::from(i..i.saturating_add(h)), Index::from(j..j.saturating_add(w))];
        if image.axes() == (-3, -2) {
            index.push(Index::ALL);
        }
        let value = match v.into() {
            Operand::Tensor(v) => Operand::Tensor(v.try_cast(out.dtype())?),
            number => number,
        };
        out.try_set(index, value)?;
        Ok(out)
    })()
    .map_err(|e: Error| e.in_op("erase"))
}

/// What the wiped part holds.
#[derive(Clone, Debug)]
enum Content {
    Colour(Numbers),
    Noise,
}

/// A random part wiped out.
#[derive(Clone, Debug)]
pub struct RandomErasing {
    prob: f64,
    scale: [f64; 2],
    ratio: [f64; 2],
    value: Content,
    inplace: bool,
    keys: Keys,
}

#[class(module = "vision.transforms", object = super::object)]
impl RandomErasing {
    /// With the probability `prob`, a random part [`erase`]d: its share of the area from `scale`, its height over its
    /// width from `ratio`. `value` is one number, one for each channel, or `"random"` for noise. After ten parts that do
    /// not fit, the picture stays.
    ///
    /// ```
    /// use sampan_core::Tensor;
    /// use sampan_data::vision::transforms::{RandomErasing, Transform};
    /// let x = Tensor::from_vec(vec![1.0f32; 300], [3, 10, 10]);
    /// let y = RandomErasing::with(|o| o.prob(1.0).scale([0.2, 0.3]).ratio([1.0, 1.0])).apply(&x)?;
    /// assert!(y.to_vec::<f32>().contains(&0.0));
    /// # Ok::<(), sampan_core::Error>(())
    /// ```
    fn build(
        #[opt(0.5)] prob: f64,
        #[opt([0.02, 0.33])] scale: Numbers,
        #[opt([0.3, 3.3])] ratio: Numbers,
        #[opt(0)] value: &Value,
        #[opt(false)] inplace: bool,
        #[opt(None)] keys: Option<Keys>,
    ) -> Result<RandomErasing> {
        let prob = probability(prob)?;
        let (scale, ratio) = (scale.range("scale")?, ratio.range("ratio")?);
        ensure!(scale[0] >= 0.0 && scale[1] <= 1.0, "scale must lie between 0 and 1, got {scale:?}");
        ensure!(ratio[0] > 0.0, "ratio must be positive, got {ratio:?}");
        let value = match value {
            Value::Str(word) => {
                ensure!(&**word == "random", "value must be numbers or the word 'random', got {word:?}");
                Content::Noise
            }
            numbers => Content::Colour(Numbers::get(numbers, "value")?),
        };
        Ok(RandomErasing { prob, scale, ratio, value, inplace, keys: Keys::or_image(keys) })
    }

    /// Top, left, height and width of a part that is smaller than the picture.
    fn part(&self, height: usize, width: usize) -> Option<[usize; 4]> {
        (0..10).find_map(|_| {
            let area = draw::uniform(self.scale) * (height * width) as f64;
            let ratio = draw::uniform(self.ratio.map(f64::ln)).exp();
            let h = (area * ratio).sqrt().round_ties_even() as usize;
            let w = (area / ratio).sqrt().round_ties_even() as usize;
            (h < height && w < width).then(|| [draw::integer(0, height - h), draw::integer(0, width - w), h, w])
        })
    }

    fn run(&self, image: &Image) -> Result<Tensor> {
        let [height, width, c] = image.extents()?;
        if !draw::chance(self.prob) {
            return Ok(image.tensor().clone());
        }
        let Some([top, left, h, w]) = self.part(height, width) else { return Ok(image.tensor().clone()) };
        let dtype = image.tensor().dtype();
        let values = match &self.value {
            Content::Colour(colour) => Tensor::try_from_slice(&colour.per_channel("value", c)?, [1, 1, c])?,
            Content::Noise => {
                let mut noise = draw::stream();
                // Bytes wrap around, which spreads the noise over all of them.
                let one = |n: f64| match dtype {
                    DType::UInt8 => u8::from_i64((n * 255.0) as i64) as f64,
                    // The colours of an array go up to 255.
                    _ if image.is_opencv() => n * 255.0,
                    _ => n,
                };
                let values: Vec<f64> = (0..h * w * c).map(|_| one(noise.normal())).collect();
                Tensor::try_from_slice(&values, [h, w, c])?
            }
        };
        let values = match (image.tensor().ndim(), image.format()) {
            (2, _) => values.try_squeeze(-1)?,
            (_, DataFormat::Chw) => values.try_transpose([2, 0, 1])?,
            _ => values,
        };
        let [top, left, h, w] = [top, left, h, w].map(|n| n as i64);
        erase(image, top, left, h, w, values, self.inplace)
    }
}

impl Transform for RandomErasing {
    fn apply_image(&self, image: &Image) -> Result<Tensor> {
        self.run(image).map_err(|e| e.in_op("RandomErasing"))
    }
    fn keys(&self) -> &[Key] {
        &self.keys
    }
}
