//! A border.

use super::args::reasonable;
use super::{Image, Key, Keys, Numbers, Transform};
use sampan_core::{Element, Ints, Result, Tensor, bail, ensure};
use sampan_kernels::match_dtype;
use sampan_macros::{class, function};

/// What stands in the border.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Mode {
    Constant,
    Edge,
    Reflect,
    Symmetric,
}

impl Mode {
    pub fn parse(word: &str) -> Result<Mode> {
        Ok(match word {
            "constant" => Mode::Constant,
            "edge" => Mode::Edge,
            "reflect" => Mode::Reflect,
            "symmetric" => Mode::Symmetric,
            _ => bail!("padding_mode must be 'constant', 'edge', 'reflect' or 'symmetric', got {word:?}"),
        })
    }

    /// The pixel that stands at `i` along `n` pixels, `None` for the fill colour.
    fn source(self, i: i64, n: i64) -> Option<usize> {
        let place = match self {
            _ if (0..n).contains(&i) => i,
            Mode::Constant => return None,
            Mode::Edge => i.clamp(0, n - 1),
            // There and back again, the ends once each.
            Mode::Reflect => {
                let period = (2 * (n - 1)).max(1);
                let at = i.rem_euclid(period);
                at.min(period - at).min(n - 1)
            }
            // There and back again, the ends twice each.
            Mode::Symmetric => {
                let at = i.rem_euclid(2 * n);
                at.min(2 * n - 1 - at)
            }
        };
        Some(place as usize)
    }
}

/// Left, top, right, bottom from one number, (left and right, top and bottom), or all four.
pub(super) fn sides(padding: &[i64]) -> Result<[i64; 4]> {
    let sides = match *padding {
        [all] => [all; 4],
        [x, y] => [x, y, x, y],
        [left, top, right, bottom] => [left, top, right, bottom],
        _ => bail!("padding must be one, two or four numbers, got {padding:?}"),
    };
    ensure!(sides.iter().all(|&s| s >= 0), "padding must not be negative, got {padding:?}");
    Ok(sides)
}

/// The picture with a border. `padding` is one number for all sides, two for left and right, top and bottom, or four for
/// left, top, right, bottom. `padding_mode` is constant (the colour `fill`: one number, or one for each channel), edge
/// (the outermost pixels again), reflect (mirrored at them) or symmetric (mirrored after them).
///
/// ```
/// use sampan_core::Tensor;
/// use sampan_data::vision::transforms::pad;
/// let x = Tensor::new([[1u8, 2, 3, 4]]);
/// assert_eq!(pad(&x, [2, 0], 0, "reflect")?.to_vec::<u8>(), [3, 2, 1, 2, 3, 4, 3, 2]);
/// assert_eq!(pad(&x, [1, 0, 0, 1], 9, "constant")?.to_vec::<u8>(), [9, 1, 2, 3, 4, 9, 9, 9, 9, 9]);
/// # Ok::<(), sampan_core::Error>(())
/// ```
#[function(module = "vision.transforms")]
pub fn pad(
    img: impl Into<Image>,
    padding: impl Into<Ints>,
    #[default(0)] fill: impl Into<Numbers>,
    #[default("constant")] padding_mode: &str,
) -> Result<Tensor> {
    let (image, fill) = (img.into(), fill.into());
    (|| {
        let [left, top, right, bottom] = sides(&padding.into().0)?;
        let mode = Mode::parse(padding_mode)?;
        let [h, w, c] = image.extents()?;
        reasonable(h as f64 + top as f64 + bottom as f64, w as f64 + left as f64 + right as f64)?;
        let places = |before: i64, n: usize, after: i64| -> Vec<Option<usize>> {
            (-before..n as i64 + after).map(|i| mode.source(i, n as i64)).collect()
        };
        let (rows, columns) = (&places(top, h, bottom), &places(left, w, right));
        let fill = if mode == Mode::Constant { fill.per_channel("fill", c)? } else { vec![0.0; c] };
        let fill = &fill;
        image.map(|t| {
            match_dtype!(t.dtype(), T => {
                let data = t.data::<T>();
                let fill: Vec<T> = fill.iter().map(|&v| T::from_f64(v)).collect();
                let mut out: Vec<T> = Vec::with_capacity(rows.len() * columns.len() * c);
                for row in rows {
                    let line = row.map(|y| &data.slice()[y * w * c..(y + 1) * w * c]);
                    let pixel = |x: Option<usize>| match (line, x) {
                        (Some(line), Some(x)) => &line[x * c..(x + 1) * c],
                        _ => &fill,
                    };
                    let (before, after) = (left as usize, left as usize + w);
                    columns[..before].iter().for_each(|&x| out.extend_from_slice(pixel(x)));
                    match line {
                        Some(line) => out.extend_from_slice(line),
                        None => (0..w).for_each(|_| out.extend_from_slice(&fill)),
                    }
                    columns[after..].iter().for_each(|&x| out.extend_from_slice(pixel(x)));
                }
                Tensor::try_from_slice(&out, [rows.len(), columns.len(), c])
            })
        })
    })()
    .map_err(|e| e.in_op("pad"))
}

/// A border.
#[derive(Clone, Debug)]
pub struct Pad {
    padding: Vec<i64>,
    fill: Numbers,
    padding_mode: String,
    keys: Keys,
}

#[class(module = "vision.transforms", object = super::object)]
impl Pad {
    /// A border, see [`pad`].
    ///
    /// ```
    /// use sampan_core::Tensor;
    /// use sampan_data::vision::transforms::{Pad, Transform};
    /// let x = Tensor::from_vec(vec![0u8; 12], [2, 2, 3]);
    /// assert_eq!(Pad::with([1, 2], |o| o.fill([255, 0, 0])).apply(&x)?.shape(), [6, 4, 3]);
    /// # Ok::<(), sampan_core::Error>(())
    /// ```
    fn build(
        padding: &[i64],
        #[opt(0)] fill: Numbers,
        #[opt("constant")] padding_mode: &str,
        #[opt(None)] keys: Option<Keys>,
    ) -> Result<Pad> {
        sides(padding)?;
        Mode::parse(padding_mode)?;
        let keys = Keys::or_image(keys);
        Ok(Pad { padding: padding.to_vec(), fill, padding_mode: padding_mode.into(), keys })
    }
}

impl Transform for Pad {
    fn apply_image(&self, image: &Image) -> Result<Tensor> {
        pad(image, &self.padding, &self.fill, &self.padding_mode)
    }
    fn keys(&self) -> &[Key] {
        &self.keys
    }
}
