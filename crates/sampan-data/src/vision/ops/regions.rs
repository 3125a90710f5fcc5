//! Parts of feature maps at one size, with gradients to the maps.

use super::rows;
use sampan_core::shape::checked_numel;
use sampan_core::{DType, Error, Ints, Result, Tensor, bail, ensure};
use sampan_kernels::Buffer;
use sampan_macros::function;

/// Maps, boxes and the map that each box lies on.
struct Regions {
    shape: [usize; 4],
    boxes: Vec<([f64; 4], usize)>,
    out: (usize, usize),
}

impl Regions {
    fn new(x: &Tensor, boxes: &Tensor, boxes_num: &Tensor, output_size: &[i64], scale: f64) -> Result<Regions> {
        let &[n, c, h, w] = x.shape() else { bail!("x must have shape [N, C, H, W], got {:?}", x.shape()) };
        let out = match *output_size {
            [s] if s > 0 => (s as usize, s as usize),
            [a, b] if a > 0 && b > 0 => (a as usize, b as usize),
            _ => bail!("output_size must be one or two positive numbers, got {output_size:?}"),
        };
        let counts = boxes_num.detach().try_cast(DType::Int64)?.try_to_vec::<i64>()?;
        ensure!(counts.len() == n, "boxes_num must hold one number for each of the {n} maps, got {}", counts.len());
        ensure!(counts.iter().all(|&k| k >= 0), "boxes_num must not be negative, got {counts:?}");
        let maps = counts.iter().enumerate().flat_map(|(i, &k)| std::iter::repeat_n(i, k as usize));
        let boxes = rows(boxes, "boxes")?;
        let total = counts.iter().fold(0i64, |a, &b| a.saturating_add(b));
        ensure!(total == boxes.len() as i64, "boxes_num adds up to {total}, but there are {} boxes", boxes.len());
        // Before anything is computed: the result must fit into memory.
        let numel = checked_numel(&[boxes.len(), c, out.0, out.1])?;
        drop(Buffer::try_uninit(numel.saturating_mul(x.dtype().size()))?);
        let boxes = boxes.into_iter().map(|b| b.map(|v| v * scale)).zip(maps).collect();
        Ok(Regions { shape: [n, c, h, w], boxes, out })
    }

    /// One row of channels for each pixel of all maps.
    fn pixels(&self, x: &Tensor) -> Result<Tensor> {
        let [n, c, h, w] = self.shape.map(|d| d as i64);
        x.try_transpose([0, 2, 3, 1])?.try_reshape([n * h * w, c])
    }
}

/// The two pixels around a place along `n` pixels and the share of the second, or `None` outside.
fn between(at: f64, n: usize) -> Option<(usize, usize, f64)> {
    if !(-1.0..=n as f64).contains(&at) {
        return None;
    }
    let at = at.max(0.0);
    let low = at as usize;
    Some(if low + 1 >= n { (n - 1, n - 1, 0.0) } else { (low, low + 1, at - low as f64) })
}

/// Parts of the maps `x` `[N, C, H, W]` at one size: `[boxes, C, height, width]`. `boxes` `[R, 4]` hold left, top, right
/// and bottom, times `spatial_scale` in pixels of the map; `boxes_num` `[N]` says how many lie on each map, in order. Each
/// value is the mean of `sampling_ratio` by `sampling_ratio` places between pixels, as many as fit if that is not
/// positive. With `aligned` the middle of the first pixel lies at 0.5. The gradient goes to `x`.
///
/// ```
/// use sampan_core::Tensor;
/// use sampan_data::vision::ops::roi_align;
/// let x = Tensor::from_vec((0..16).map(|v| v as f32).collect(), [1, 1, 4, 4]);
/// let (boxes, count) = (Tensor::new([[0.0f32, 0.0, 4.0, 4.0]]), Tensor::new([1i32]));
/// assert_eq!(roi_align(&x, &boxes, &count, 2, 1.0, 2, true)?.to_vec::<f32>(), [2.5, 4.5, 10.5, 12.5]);
/// # Ok::<(), sampan_core::Error>(())
/// ```
#[function(module = "vision.ops")]
pub fn roi_align(
    x: &Tensor,
    boxes: &Tensor,
    boxes_num: &Tensor,
    output_size: impl Into<Ints>,
    #[default(1.0)] spatial_scale: f64,
    #[default(-1)] sampling_ratio: i64,
    #[default(true)] aligned: bool,
) -> Result<Tensor> {
    (|| {
        let regions = Regions::new(x, boxes, boxes_num, &output_size.into().0, spatial_scale)?;
        let ([_, c, h, w], (rows, columns)) = (regions.shape, regions.out);
        let offset = if aligned { 0.5 } else { 0.0 };
        let (mut pixels, mut shares, mut places) = (Vec::<i64>::new(), Vec::<f64>::new(), Vec::<i64>::new());
        for (r, (b, map)) in regions.boxes.iter().enumerate() {
            let least = if aligned { f64::MIN } else { 1.0 };
            let (high, wide) = ((b[3] - b[1]).max(least), (b[2] - b[0]).max(least));
            let (step_y, step_x) = (high / rows as f64, wide / columns as f64);
            let count = |step: f64| if sampling_ratio > 0 { sampling_ratio as usize } else { step.ceil() as usize };
            let (along_y, along_x) = (count(step_y), count(step_x));
            ensure!(along_y.saturating_mul(along_x) <= 1 << 20, "box {r} is too large: {b:?}");
            let mean = 1.0 / (along_y * along_x).max(1) as f64;
            for (i, j) in (0..rows).flat_map(|i| (0..columns).map(move |j| (i, j))) {
                for (k, l) in (0..along_y).flat_map(|k| (0..along_x).map(move |l| (k, l))) {
                    let y = b[1] - offset + (i as f64 + (k as f64 + 0.5) / along_y as f64) * step_y;
                    let x = b[0] - offset + (j as f64 + (l as f64 + 0.5) / along_x as f64) * step_x;
                    let (Some((y0, y1, dy)), Some((x0, x1, dx))) = (between(y, h), between(x, w)) else { continue };
                    for (y, share_y) in [(y0, 1.0 - dy), (y1, dy)] {
                        for (x, share_x) in [(x0, 1.0 - dx), (x1, dx)] {
                            pixels.push(((map * h + y) * w + x) as i64);
                            shares.push(share_y * share_x * mean);
                            places.push(((r * rows + i) * columns + j) as i64);
                        }
                    }
                }
            }
        }
        let n = pixels.len();
        let shares = Tensor::try_from_slice(&shares, [n, 1])?.try_cast(x.dtype())?;
        let read = regions.pixels(x)?.try_index_select(&Tensor::try_from_slice(&pixels, [n])?, 0)?;
        let bins = regions.boxes.len() * rows * columns;
        let empty = Tensor::full([bins, c], 0.0, x.dtype());
        let sums = empty.try_index_add(&Tensor::try_from_slice(&places, [n])?, 0, &read.try_multiply(shares)?)?;
        let shape = [regions.boxes.len() as i64, rows as i64, columns as i64, c as i64];
        sums.try_reshape(shape)?.try_transpose([0, 3, 1, 2])
    })()
    .map_err(|e: Error| e.in_op("roi_align"))
}

/// The largest values in parts of the maps `x` `[N, C, H, W]`, at one size: `[boxes, C, height, width]`. Boxes as in
/// [`roi_align`], rounded to whole pixels; a part without pixels is 0. The gradient goes to `x`.
///
/// ```
/// use sampan_core::Tensor;
/// use sampan_data::vision::ops::roi_pool;
/// let x = Tensor::from_vec((0..16).map(|v| v as f32).collect(), [1, 1, 4, 4]);
/// let (boxes, count) = (Tensor::new([[0.0f32, 0.0, 3.0, 3.0]]), Tensor::new([1i32]));
/// assert_eq!(roi_pool(&x, &boxes, &count, 2, 1.0)?.to_vec::<f32>(), [5.0, 7.0, 13.0, 15.0]);
/// # Ok::<(), sampan_core::Error>(())
/// ```
#[function(module = "vision.ops")]
pub fn roi_pool(
    x: &Tensor,
    boxes: &Tensor,
    boxes_num: &Tensor,
    output_size: impl Into<Ints>,
    #[default(1.0)] spatial_scale: f64,
) -> Result<Tensor> {
    (|| {
        let regions = Regions::new(x, boxes, boxes_num, &output_size.into().0, spatial_scale)?;
        let ([_, c, h, w], (rows, columns)) = (regions.shape, regions.out);
        let values = x.to_f64_vec();
        let (mut chosen, mut present) = (Vec::<i64>::new(), Vec::<f64>::new());
        for (b, map) in &regions.boxes {
            let b = b.map(f64::round);
            let (high, wide) = ((b[3] - b[1] + 1.0).max(1.0), (b[2] - b[0] + 1.0).max(1.0));
            let part = |i: usize, parts: usize, start: f64, length: f64, n: usize| {
                let step = length / parts as f64;
                let place = |v: f64| (v + start).clamp(0.0, n as f64) as usize;
                place((i as f64 * step).floor())..place(((i + 1) as f64 * step).ceil())
            };
            for k in 0..c {
                for (i, j) in (0..rows).flat_map(|i| (0..columns).map(move |j| (i, j))) {
                    let (ys, xs) = (part(i, rows, b[1], high, h), part(j, columns, b[0], wide, w));
                    let all = ys.flat_map(|y| xs.clone().map(move |x| ((map * c + k) * h + y) * w + x));
                    // The first of the largest.
                    let best = all.reduce(|best, at| if values[at] > values[best] { at } else { best });
                    chosen.push(best.unwrap_or(0) as i64);
                    present.push(best.is_some() as u8 as f64);
                }
            }
        }
        let n = chosen.len();
        let read = x.try_reshape([-1])?.try_index_select(&Tensor::try_from_slice(&chosen, [n])?, 0)?;
        let mask = Tensor::try_from_slice(&present, [n])?.try_cast(x.dtype())?;
        let shape = [regions.boxes.len() as i64, c as i64, rows as i64, columns as i64];
        read.try_multiply(mask)?.try_reshape(shape)
    })()
    .map_err(|e: Error| e.in_op("roi_pool"))
}

/// Means of parts of the maps `x` `[N, C, H, W]`, each part of a box from channels of its own: `[boxes, C / (height *
/// width), height, width]`. Boxes as in [`roi_align`], rounded to whole pixels before they are scaled; a part without
/// pixels is 0. The gradient goes to `x`.
///
/// ```
/// use sampan_core::Tensor;
/// use sampan_data::vision::ops::psroi_pool;
/// let x = Tensor::from_vec((0..64).map(|v| v as f32).collect(), [1, 4, 4, 4]);
/// let (boxes, count) = (Tensor::new([[0.0f32, 0.0, 3.0, 3.0]]), Tensor::new([1i32]));
/// assert_eq!(psroi_pool(&x, &boxes, &count, 2, 1.0)?.to_vec::<f32>(), [2.5, 20.5, 42.5, 60.5]);
/// # Ok::<(), sampan_core::Error>(())
/// ```
#[function(module = "vision.ops")]
pub fn psroi_pool(
    x: &Tensor,
    boxes: &Tensor,
    boxes_num: &Tensor,
    output_size: impl Into<Ints>,
    #[default(1.0)] spatial_scale: f64,
) -> Result<Tensor> {
    (|| {
        let regions = Regions::new(x, boxes, boxes_num, &output_size.into().0, 1.0)?;
        let ([_, c, h, w], (rows, columns)) = (regions.shape, regions.out);
        ensure!(
            c.checked_rem(rows.saturating_mul(columns)) == Some(0),
            "{c} channels do not divide into {rows} by {columns} parts"
        );
        let channels = c / (rows * columns);
        let (mut pixels, mut shares, mut places) = (Vec::<i64>::new(), Vec::<f64>::new(), Vec::<i64>::new());
        let mut bins = 0;
        for (b, map) in &regions.boxes {
            let start = [b[0].round() * spatial_scale, b[1].round() * spatial_scale];
            let end = [(b[2].round() + 1.0) * spatial_scale, (b[3].round() + 1.0) * spatial_scale];
            let part = |axis: usize, i: usize, parts: usize, n: usize| {
                let step = (end[axis] - start[axis]).max(0.1) / parts as f64;
                let place = |v: f64| v.clamp(0.0, n as f64) as usize;
                place((i as f64 * step + start[axis]).floor())..place(((i + 1) as f64 * step + start[axis]).ceil())
            };
            for (k, i, j) in (0..channels)
                .flat_map(|k| (0..rows).map(move |i| (k, i)))
                .flat_map(|(k, i)| (0..columns).map(move |j| (k, i, j)))
            {
                let (ys, xs) = (part(1, i, rows, h), part(0, j, columns, w));
                let mean = 1.0 / (ys.len() * xs.len()).max(1) as f64;
                let channel = map * c + (k * rows + i) * columns + j;
                for (y, x) in ys.flat_map(|y| xs.clone().map(move |x| (y, x))) {
                    pixels.push(((channel * h + y) * w + x) as i64);
                    shares.push(mean);
                    places.push(bins);
                }
                bins += 1;
            }
        }
        let n = pixels.len();
        let shares = Tensor::try_from_slice(&shares, [n])?.try_cast(x.dtype())?;
        let read = x.try_reshape([-1])?.try_index_select(&Tensor::try_from_slice(&pixels, [n])?, 0)?;
        let empty = Tensor::full([bins as usize], 0.0, x.dtype());
        let sums = empty.try_index_add(&Tensor::try_from_slice(&places, [n])?, 0, &read.try_multiply(shares)?)?;
        sums.try_reshape([regions.boxes.len() as i64, channels as i64, rows as i64, columns as i64])
    })()
    .map_err(|e: Error| e.in_op("psroi_pool"))
}
