//! The picture as seen from elsewhere.

use super::affine::through;
use super::args::probability;
use super::resample::Interpolation;
use super::warp::Mapping;
use super::{Image, Key, Keys, Numbers, Transform, draw};
use sampan_core::{Result, Tensor, bail, ensure};
use sampan_macros::{class, function};

/// Four corners as `[x, y]`: top left, top right, bottom right, bottom left.
type Corners = [[f64; 2]; 4];

/// The mapping that takes each end point back to its start point.
fn mapping(start: &Corners, end: &Corners) -> Result<[f64; 8]> {
    let mut rows = [[0.0; 9]; 8];
    for (i, ([x, y], [u, v])) in end.iter().zip(start).enumerate() {
        rows[2 * i] = [*x, *y, 1.0, 0.0, 0.0, 0.0, -u * x, -u * y, *u];
        rows[2 * i + 1] = [0.0, 0.0, 0.0, *x, *y, 1.0, -v * x, -v * y, *v];
    }
    // Gauss and Jordan with the largest pivot.
    for k in 0..8 {
        let pivot = (k..8).max_by(|&a, &b| rows[a][k].abs().total_cmp(&rows[b][k].abs())).expect("not empty");
        rows.swap(k, pivot);
        let row = rows[k];
        if row[k].abs() < 1e-9 {
            bail!("no perspective takes {end:?} to {start:?}: three of the points lie on a line");
        }
        for (i, other) in rows.iter_mut().enumerate() {
            let factor = if i == k { 0.0 } else { other[k] / row[k] };
            (k..9).for_each(|j| other[j] -= factor * row[j]);
        }
    }
    Ok(std::array::from_fn(|k| rows[k][8] / rows[k][k]))
}

/// The picture seen so that its points `startpoints` come to lie at `endpoints`: four points `[x, y]` each, from the top
/// left clockwise. `interpolation` and `fill` as in [`affine`](super::affine).
///
/// ```
/// use sampan_core::Tensor;
/// use sampan_data::vision::transforms::perspective;
/// let x = Tensor::new([[1u8, 2], [3, 4]]);
/// let (square, turned) = ([[0., 0.], [2., 0.], [2., 2.], [0., 2.]], [[2., 0.], [2., 2.], [0., 2.], [0., 0.]]);
/// assert_eq!(perspective(&x, square, turned, "nearest", 0)?.to_vec::<u8>(), [3, 1, 4, 2]);
/// # Ok::<(), sampan_core::Error>(())
/// ```
#[function(module = "vision.transforms")]
pub fn perspective(
    img: impl Into<Image>,
    startpoints: [[f64; 2]; 4],
    endpoints: [[f64; 2]; 4],
    #[default("nearest")] interpolation: &str,
    #[default(0)] fill: impl Into<Numbers>,
) -> Result<Tensor> {
    let (image, fill) = (img.into(), fill.into());
    (|| {
        let how = Interpolation::parse_warp(interpolation)?;
        let [h, w, _] = image.extents()?;
        let narrow = |points: Corners| points.map(|p| p.map(|v| if image.is_opencv() { v as f32 as f64 } else { v }));
        let (startpoints, endpoints) = (narrow(startpoints), narrow(endpoints));
        through(&image, (h, w), &Mapping::Perspective(mapping(&startpoints, &endpoints)?), how, &fill)
    })()
    .map_err(|e| e.in_op("perspective"))
}

/// A random perspective.
#[derive(Clone, Debug)]
pub struct RandomPerspective {
    prob: f64,
    distortion_scale: f64,
    interpolation: String,
    fill: Numbers,
    keys: Keys,
}

#[class(module = "vision.transforms", object = super::object)]
impl RandomPerspective {
    /// [`perspective`] with the probability `prob`: each corner moves inwards by up to the share `distortion_scale` of
    /// half the width and height.
    ///
    /// ```
    /// use sampan_core::Tensor;
    /// use sampan_data::vision::transforms::{RandomPerspective, Transform};
    /// let x = Tensor::from_vec(vec![0u8; 300], [10, 10, 3]);
    /// assert_eq!(RandomPerspective::with(|o| o.prob(1.0).interpolation("bilinear")).apply(&x)?.shape(), [10, 10, 3]);
    /// # Ok::<(), sampan_core::Error>(())
    /// ```
    fn build(
        #[opt(0.5)] prob: f64,
        #[opt(0.5)] distortion_scale: f64,
        #[opt("nearest")] interpolation: &str,
        #[opt(0)] fill: Numbers,
        #[opt(None)] keys: Option<Keys>,
    ) -> Result<RandomPerspective> {
        let prob = probability(prob)?;
        let range = 0.0..=1.0;
        ensure!(range.contains(&distortion_scale), "distortion_scale must lie between 0 and 1, got {distortion_scale}");
        Interpolation::parse_warp(interpolation)?;
        let keys = Keys::or_image(keys);
        Ok(RandomPerspective { prob, distortion_scale, interpolation: interpolation.into(), fill, keys })
    }

    /// Where the corners were and where they go.
    fn corners(&self, height: usize, width: usize) -> (Corners, Corners) {
        let (w, h) = (width as f64, height as f64);
        let most_x = (self.distortion_scale * (width / 2) as f64).trunc() + 1.0;
        let most_y = (self.distortion_scale * (height / 2) as f64).trunc() + 1.0;
        let near = |most: f64| draw::uniform([0.0, most]).trunc();
        let far = |most: f64, end: f64| draw::uniform([end - most, end]).trunc();
        let start = [[0.0, 0.0], [w - 1.0, 0.0], [w - 1.0, h - 1.0], [0.0, h - 1.0]];
        let end = [
            [near(most_x), near(most_y)],
            [far(most_x, w), near(most_y)],
            [far(most_x, w), far(most_y, h)],
            [near(most_x), far(most_y, h)],
        ];
        (start, end)
    }
}

impl Transform for RandomPerspective {
    fn apply_image(&self, image: &Image) -> Result<Tensor> {
        let [h, w, _] = image.extents().map_err(|e| e.in_op("RandomPerspective"))?;
        if !draw::chance(self.prob) {
            return Ok(image.tensor().clone());
        }
        // Strong distortion can bring three corners onto a line; then others are drawn.
        for _ in 0..10 {
            let (start, end) = self.corners(h, w);
            if mapping(&start, &end).is_ok() {
                return perspective(image, start, end, &self.interpolation, &self.fill);
            }
        }
        Ok(image.tensor().clone())
    }
    fn keys(&self) -> &[Key] {
        &self.keys
    }
}
