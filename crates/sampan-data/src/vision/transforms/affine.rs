//! Turning, moving, scaling, shearing.

use super::args::reasonable;
use super::image::DataFormat;
use super::opencv::{self, on_samples};
use super::pixel::{Pixels, on_pixels};
use super::resample::Interpolation;
use super::warp::{self, Mapping};
use super::{Image, Key, Keys, Numbers, Transform, draw};
use sampan_core::{Element, Result, Tensor, bail, ensure};
use sampan_kernels::match_dtype;
use sampan_macros::{class, function};

/// Is it one of those that Paddle calls tensors, and treats by rules of their own?
fn as_tensor(image: &Image) -> bool {
    image.format() == DataFormat::Chw && image.tensor().dtype().is_float()
}

/// The picture through a mapping, at a size of `(height, width)`.
pub(super) fn through(
    image: &Image,
    size: (usize, usize),
    map: &Mapping,
    how: Interpolation,
    fill: &Numbers,
) -> Result<Tensor> {
    let fill = &fill.per_channel("fill", image.extents()?[2])?;
    ensure!(map.is_finite(), "angles, shifts, scales and points must be finite numbers");
    let size = reasonable(size.0 as f64, size.1 as f64)?;
    let opencv = image.is_opencv();
    ensure!(
        opencv || !matches!(how, Interpolation::Lanczos | Interpolation::Area),
        "interpolation must be 'nearest', 'bilinear' or 'bicubic'; '{how:?}' is for arrays"
    );
    image.map(|t| {
        let shape = [size.0, size.1, t.shape()[2]];
        if how == Interpolation::Nearest {
            return match_dtype!(t.dtype(), T => {
                let (data, fill) = (t.data::<T>(), fill.iter().map(|&v| T::from_f64(v)).collect::<Vec<T>>());
                let warp = if opencv { opencv::warp::nearest } else { warp::nearest };
                Tensor::try_from_slice(&warp(Pixels::new(data.slice(), t.shape()), size, map, &fill), shape)
            });
        }
        if opencv {
            return on_samples!(t, T => {
                let (data, fill) = (t.data::<T>(), fill.iter().map(|&v| T::from_f64(v)).collect::<Vec<T>>());
                let source = Pixels::new(data.slice(), t.shape());
                Tensor::try_from_slice(&opencv::warp::mixed(source, size, map, how, &fill), shape)
            });
        }
        on_pixels!(t, P => {
            let (data, fill) = (t.data::<P>(), fill.iter().map(|&v| P::from_f64(v)).collect::<Vec<P>>());
            let source = Pixels::new(data.slice(), t.shape());
            let out = if how == Interpolation::Bilinear && as_tensor(image) {
                warp::faded(source, size, map, &fill)
            } else {
                warp::smooth(source, size, map, how, &fill)
            };
            Tensor::try_from_slice(&out, shape)
        })
    })
}

/// The mapping back from a picture that was turned by `angle` degrees, scaled, sheared by degrees, and moved.
fn back(center: [f64; 2], angle: f64, translate: [f64; 2], scale: f64, shear: [f64; 2]) -> [f64; 6] {
    let (turn, shear_x, shear_y) = (angle.to_radians(), shear[0].to_radians(), shear[1].to_radians());
    let a = (turn - shear_y).cos() / shear_y.cos();
    let b = -(turn - shear_y).cos() * shear_x.tan() / shear_y.cos() - turn.sin();
    let c = (turn - shear_y).sin() / shear_y.cos();
    let d = -(turn - shear_y).sin() * shear_x.tan() / shear_y.cos() + turn.cos();
    let [a, b, c, d] = [d, -b, -c, a].map(|v| v / scale);
    let (x, y) = (-center[0] - translate[0], -center[1] - translate[1]);
    [a, b, a * x + b * y + center[0], c, d, c * x + d * y + center[1]]
}

/// The picture turned by `angle` degrees (clockwise, about `center` or the middle), moved by `translate` pixels
/// `(x, y)`, scaled, and sheared by degrees: one number for x alone, or `(x, y)`. `fill` is the colour of what comes
/// into view, one number or one for each channel; `interpolation` is nearest, bilinear or bicubic. As in Paddle, float
/// `[C, H, W]` tensors fade into `fill` at their edges where it is bilinear, and NumPy arrays (see [`Image::opencv`]) turn
/// about their first pixel, counter-clockwise, whatever `center` is.
///
/// ```
/// use sampan_core::Tensor;
/// use sampan_data::vision::transforms::affine;
/// let x = Tensor::new([[1u8, 2, 3]]);
/// assert_eq!(affine(&x, 0.0, [1, 0], 1.0, 0.0, "nearest", 9, None)?.to_vec::<u8>(), [9, 1, 2]);
/// # Ok::<(), sampan_core::Error>(())
/// ```
#[function(module = "vision.transforms")]
pub fn affine(
    img: impl Into<Image>,
    angle: f64,
    translate: impl Into<Numbers>,
    scale: f64,
    shear: impl Into<Numbers>,
    #[default("nearest")] interpolation: &str,
    #[default(0)] fill: impl Into<Numbers>,
    #[default(None)] center: Option<[f64; 2]>,
) -> Result<Tensor> {
    let (image, translate, shear, fill) = (img.into(), translate.into(), shear.into(), fill.into());
    (|| {
        let how = Interpolation::parse_warp(interpolation)?;
        let translate = translate.pair("translate")?;
        ensure!(scale > 0.0, "scale must be positive, got {scale}");
        let shear = match (&shear, shear.values()) {
            (Numbers::One(x), _) => [*x, 0.0],
            (_, &[both]) => [both, both],
            (_, &[x, y]) => [x, y],
            (_, other) => bail!("shear must be one or two numbers, got {other:?}"),
        };
        let [h, w, _] = image.extents()?;
        if image.is_opencv() {
            // Paddle writes the shift over what would bring the centre back, and shears along the turned axes.
            let (sin, cos) = angle.to_radians().sin_cos();
            let (alpha, beta) = (cos * scale, sin * scale);
            let [shear_x, shear_y] = shear.map(|s| s.to_radians().tan());
            let (a, b) = (alpha + shear_y * -beta, beta + shear_y * alpha);
            let (d, e) = (-beta + shear_x * alpha, alpha + shear_x * beta);
            let forth = [a, b, translate[0], d, e, translate[1]];
            return through(&image, (h, w), &Mapping::Affine(opencv::warp::back(forth)), how, &fill);
        }
        let center = center.unwrap_or([w as f64 * 0.5, h as f64 * 0.5]);
        through(&image, (h, w), &Mapping::Affine(back(center, angle, translate, scale, shear)), how, &fill)
    })()
    .map_err(|e| e.in_op("affine"))
}

/// The picture turned by `angle` degrees, counter-clockwise, about `center` (the middle if not given). With `expand` the
/// result is as large as the turned picture; without, it keeps its size. `fill` and `interpolation` as in [`affine`].
///
/// ```
/// use sampan_core::Tensor;
/// use sampan_data::vision::transforms::rotate;
/// let x = Tensor::new([[1u8, 2, 3]]);
/// assert_eq!(rotate(&x, 90.0, "nearest", true, None, 0)?.to_vec::<u8>(), [3, 2, 1]);
/// # Ok::<(), sampan_core::Error>(())
/// ```
#[function(module = "vision.transforms")]
pub fn rotate(
    img: impl Into<Image>,
    angle: f64,
    #[default("nearest")] interpolation: &str,
    #[default(false)] expand: bool,
    #[default(None)] center: Option<[f64; 2]>,
    #[default(0)] fill: impl Into<Numbers>,
) -> Result<Tensor> {
    let (image, fill) = (img.into(), fill.into());
    (|| {
        let how = Interpolation::parse_warp(interpolation)?;
        let [h, w, _] = image.extents()?;
        // OpenCV knows only the angle it is given.
        let degrees = angle;
        let angle = angle.rem_euclid(360.0);
        let (high, wide) = image.axes();
        // Quarter turns are copies, whatever the interpolation.
        if center.is_none() && !image.is_opencv() {
            let quarter = (angle == 90.0 || angle == 270.0) && (expand || h == w);
            let turned = || -> Result<Tensor> {
                let t = image.tensor();
                let mut order: Vec<i64> = (0..t.ndim() as i64).collect();
                let n = order.len() as i64;
                order.swap((n + high) as usize, (n + wide) as usize);
                t.try_transpose(order)
            };
            if angle == 0.0 {
                return Ok(image.tensor().clone());
            } else if angle == 180.0 {
                return image.tensor().try_flip([high, wide]);
            } else if quarter {
                return turned()?.try_flip([if angle == 90.0 { high } else { wide }]);
            }
        }
        let (wf, hf) = (w as f64, h as f64);
        let [cx, cy] = center.unwrap_or([wf / 2.0, hf / 2.0]);
        // Sine and cosine to 15 digits, so that right angles are exact.
        let turn = if image.is_opencv() { -degrees.to_radians() } else { -angle.to_radians() };
        let digits = |v: f64| format!("{v:.15}").parse().unwrap_or(v);
        let mut m = [digits(turn.cos()), digits(turn.sin()), 0.0, digits(-turn.sin()), digits(turn.cos()), 0.0];
        let place = |m: &[f64; 6], x: f64, y: f64| (m[0] * x + m[1] * y + m[2], m[3] * x + m[4] * y + m[5]);
        let (x, y) = place(&m, -cx, -cy);
        (m[2], m[5]) = (x + cx, y + cy);
        let (mut size, mut grown) = ((h, w), [0.0; 2]);
        if expand {
            let corners = [(0.0, 0.0), (wf, 0.0), (wf, hf), (0.0, hf)].map(|(x, y)| place(&m, x, y));
            // Whole pixels are counted from the corner of a picture, from the middle of a tensor.
            let from = if as_tensor(&image) { (wf * 0.5, hf * 0.5) } else { (0.0, 0.0) };
            let span = |places: [f64; 4]| {
                let (low, high) = places.iter().fold((f64::MAX, f64::MIN), |(lo, hi), &v| (lo.min(v), hi.max(v)));
                high.ceil() - low.floor()
            };
            let (new_w, new_h) = (span(corners.map(|c| c.0 - from.0)), span(corners.map(|c| c.1 - from.1)));
            grown = [(new_w - wf) * 0.5, (new_h - hf) * 0.5];
            (m[2], m[5]) = place(&m, -(new_w - wf) / 2.0, -(new_h - hf) / 2.0);
            size = (new_h as usize, new_w as usize);
        }
        if image.is_opencv() {
            let (sin, cos) = degrees.to_radians().sin_cos();
            let [cx, cy] = [cx, cy].map(|v| v as f32 as f64);
            let x = (1.0 - cos) * cx - sin * cy + grown[0];
            let y = sin * cx + (1.0 - cos) * cy + grown[1];
            m = opencv::warp::back([cos, sin, x, -sin, cos, y]);
        }
        through(&image, size, &Mapping::Affine(m), how, &fill)
    })()
    .map_err(|e| e.in_op("rotate"))
}

fn optional_pair(v: &Option<Numbers>, name: &str) -> Result<Option<[f64; 2]>> {
    v.as_ref().map(|v| v.pair(name)).transpose()
}

/// A random affine mapping.
#[derive(Clone, Debug)]
pub struct RandomAffine {
    degrees: [f64; 2],
    translate: Option<[f64; 2]>,
    scale: Option<[f64; 2]>,
    shear: Option<Vec<f64>>,
    interpolation: String,
    fill: Numbers,
    center: Option<[f64; 2]>,
    keys: Keys,
}

#[class(module = "vision.transforms", object = super::object)]
impl RandomAffine {
    /// [`affine`] with random arguments: the angle from `degrees` (a range, or one number for `±`), the shift up to the
    /// shares `translate` of width and height, the scale from the range `scale`, the shear from `shear` (one number for
    /// `±` along x, two for a range along x, four for ranges along x and y).
    ///
    /// ```
    /// use sampan_core::Tensor;
    /// use sampan_data::vision::transforms::{RandomAffine, Transform};
    /// let move_a_little = RandomAffine::with(10, |o| o.translate([0.1, 0.1]).scale([0.9, 1.1]).fill(128));
    /// assert_eq!(move_a_little.apply(&Tensor::from_vec(vec![0u8; 300], [10, 10, 3]))?.shape(), [10, 10, 3]);
    /// # Ok::<(), sampan_core::Error>(())
    /// ```
    fn build(
        degrees: Numbers,
        #[opt(None)] translate: Option<Numbers>,
        #[opt(None)] scale: Option<Numbers>,
        #[opt(None)] shear: Option<Numbers>,
        #[opt("nearest")] interpolation: &str,
        #[opt(0)] fill: Option<Numbers>,
        #[opt(None)] center: Option<Numbers>,
        #[opt(None)] keys: Option<Keys>,
    ) -> Result<RandomAffine> {
        let degrees = degrees.angles("degrees", &[2])?;
        Interpolation::parse_warp(interpolation)?;
        let translate = optional_pair(&translate, "translate")?;
        if let Some(t) = translate {
            ensure!(t.iter().all(|t| (0.0..=1.0).contains(t)), "translate must lie between 0 and 1, got {t:?}");
        }
        let scale = optional_pair(&scale, "scale")?;
        if let Some(s) = scale {
            ensure!(s.iter().all(|&s| s > 0.0), "scale must be positive, got {s:?}");
        }
        Ok(RandomAffine {
            degrees: [degrees[0], degrees[1]],
            translate,
            scale,
            shear: shear.map(|s| s.angles("shear", &[2, 4])).transpose()?,
            interpolation: interpolation.into(),
            fill: fill.unwrap_or(Numbers::One(0.0)),
            center: optional_pair(&center, "center")?,
            keys: Keys::or_image(keys),
        })
    }
}

impl Transform for RandomAffine {
    fn apply_image(&self, image: &Image) -> Result<Tensor> {
        let [h, w, _] = image.extents().map_err(|e| e.in_op("RandomAffine"))?;
        let angle = draw::uniform(self.degrees);
        let translate = self
            .translate
            .map_or([0.0; 2], |[x, y]| [x * w as f64, y * h as f64].map(|most| draw::uniform([-most, most]).trunc()));
        let scale = self.scale.map_or(1.0, draw::uniform);
        let shear = match self.shear.as_deref() {
            Some(&[a, b]) => [draw::uniform([a, b]), 0.0],
            Some(&[a, b, c, d]) => [draw::uniform([a, b]), draw::uniform([c, d])],
            _ => [0.0; 2],
        };
        affine(image, angle, translate, scale, shear, &self.interpolation, &self.fill, self.center)
    }
    fn keys(&self) -> &[Key] {
        &self.keys
    }
}

/// A random turn.
#[derive(Clone, Debug)]
pub struct RandomRotation {
    degrees: [f64; 2],
    interpolation: String,
    expand: bool,
    center: Option<[f64; 2]>,
    fill: Numbers,
    keys: Keys,
}

#[class(module = "vision.transforms", object = super::object)]
impl RandomRotation {
    /// [`rotate`] by an angle from `degrees`: a range, or one number for `±`.
    ///
    /// ```
    /// use sampan_core::Tensor;
    /// use sampan_data::vision::transforms::{RandomRotation, Transform};
    /// let turn = RandomRotation::with([90, 90], |o| o.expand(true));
    /// assert_eq!(turn.apply(&Tensor::from_vec(vec![0u8; 24], [2, 4, 3]))?.shape(), [4, 2, 3]);
    /// # Ok::<(), sampan_core::Error>(())
    /// ```
    fn build(
        degrees: Numbers,
        #[opt("nearest")] interpolation: &str,
        #[opt(false)] expand: bool,
        #[opt(None)] center: Option<Numbers>,
        #[opt(0)] fill: Numbers,
        #[opt(None)] keys: Option<Keys>,
    ) -> Result<RandomRotation> {
        let degrees = degrees.angles("degrees", &[2])?;
        Interpolation::parse_warp(interpolation)?;
        Ok(RandomRotation {
            degrees: [degrees[0], degrees[1]],
            interpolation: interpolation.into(),
            expand,
            center: optional_pair(&center, "center")?,
            fill,
            keys: Keys::or_image(keys),
        })
    }
}

impl Transform for RandomRotation {
    fn apply_image(&self, image: &Image) -> Result<Tensor> {
        rotate(image, draw::uniform(self.degrees), &self.interpolation, self.expand, self.center, &self.fill)
    }
    fn keys(&self) -> &[Key] {
        &self.keys
    }
}
