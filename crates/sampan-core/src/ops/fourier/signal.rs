//! Frames of signals and the short-time Fourier transform.

use crate::ops::padding::PadOpts;
use crate::ops::prelude::*;

/// Are the frames at the end of the axes (-1) or at their beginning (0)?
fn at_the_end(axis: i64) -> Result<bool> {
    ensure!(axis == 0 || axis == -1, "axis must be 0 or -1, got {axis}");
    Ok(axis == -1)
}

/// The pieces of `frame_length` elements, `hop_length` apart, that an axis is cut into; they may overlap. With the last
/// axis (-1) the result is `[…, frame_length, frames]`, with the first (0) it is `[frames, frame_length, …]`.
///
/// ```
/// # use sampan_core::Tensor;
/// let x = Tensor::new([0i64, 1, 2, 3, 4]);
/// assert_eq!(x.frame(3, 2, 0).to_vec::<i64>(), [0, 1, 2, 2, 3, 4]);
/// ```
#[op(complex, module = "signal", samples = frame_samples)]
fn frame(x: &Tensor, frame_length: i64, hop_length: i64, #[default(-1)] axis: i64) -> Result<Tensor> {
    let last = at_the_end(axis)?;
    ensure!(frame_length > 0, "frame_length must be positive, got {frame_length}");
    ensure!(hop_length > 0, "hop_length must be positive, got {hop_length}");
    let frames = x.try_sliding_window(axis, frame_length, hop_length)?;
    if last { frames.try_swapaxes(-1, -2) } else { frames.try_moveaxis(-1, 1) }
}

/// The inverse of [`frame`](Tensor::frame) where frames do not overlap; where they do, they are added.
///
/// ```
/// # use sampan_core::Tensor;
/// let x = Tensor::new([[0i64, 1, 2], [2, 3, 4]]);
/// assert_eq!(x.overlap_add(2, 0).to_vec::<i64>(), [0, 1, 4, 3, 4]);
/// ```
#[op(complex, module = "signal", samples = overlap_samples)]
fn overlap_add(x: &Tensor, hop_length: i64, #[default(-1)] axis: i64) -> Result<Tensor> {
    let last = at_the_end(axis)?;
    ensure!(hop_length > 0, "hop_length must be positive, got {hop_length}");
    ensure!(x.ndim() >= 2, "x needs an axis of frames and one along them, got {:?}", x.shape());
    let rank = x.ndim();
    // The frames, then the elements of one.
    let x = if last { x.try_swapaxes(-1, -2)? } else { x.clone() };
    let at = if last { rank - 2 } else { 0 };
    let (frames, size) = (x.shape()[at], x.shape()[at + 1]);
    ensure!(hop_length <= size as i64, "hop_length must not exceed the {size} elements of a frame, got {hop_length}");
    ensure!(frames > 0, "there is no frame in x of shape {:?}", x.shape());
    let len = (frames as i64 - 1).saturating_mul(hop_length).saturating_add(size as i64);
    let mut shape: Vec<i64> = x.shape().iter().map(|&n| n as i64).collect();
    shape.splice(at..at + 2, [len]);
    let out = crate::ops::shape::checked_shape(&shape)?;
    let own = Layout::contiguous(&out).strides;
    let mut strides: Vec<i64> = own.iter().map(|&s| s as i64).collect();
    strides.splice(at..at + 1, [own[at] as i64 * hop_length, own[at] as i64]);
    x.try_strided_sum(shape, strides, 0)
}

/// The sizes that both directions of the short-time transform share.
struct Frames {
    hop: i64,
    window: Tensor,
}

impl Frames {
    fn new(
        n_fft: i64,
        hop: Option<i64>,
        win: Option<i64>,
        window: Option<&Tensor>,
        dtype: DType,
        device: Device,
    ) -> Result<Frames> {
        ensure!(n_fft > 0, "n_fft must be positive, got {n_fft}");
        let (hop, win) = (hop.unwrap_or(n_fft / 4), win.unwrap_or(n_fft));
        ensure!(hop > 0, "hop_length must be positive, got {hop}");
        ensure!(0 < win && win <= n_fft, "win_length must lie in [1, n_fft = {n_fft}], got {win}");
        let window = match window {
            Some(w) => {
                ensure!(w.shape() == [win as usize], "window must have shape [{win}], got {:?}", w.shape());
                w.clone()
            }
            None => {
                crate::shape::check_room(win as usize)?;
                Tensor::full_on([win as usize], 1.0, dtype, device)
            }
        };
        let left = (n_fft - win) / 2;
        let window = if win < n_fft { window.try_unslice([n_fft], [left], [1])? } else { window };
        Ok(Frames { hop, window })
    }
}

/// The short-time Fourier transform of signals `[time]` or `[batch, time]`: the transforms of windows of `n_fft` points,
/// `hop_length` apart (`n_fft / 4` by default), as `[…, n_fft / 2 + 1, frames]`, or `[…, n_fft, frames]` if not
/// `onesided` (which complex signals are not). With `center` the signal is padded by half a window at each end.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([1.0f32; 16]).stft(8).shape(), [5, 9]);
/// ```
#[op(complex, module = "signal", samples = stft_samples, also("Tensor.stft"))]
fn stft(
    x: &Tensor,
    n_fft: i64,
    #[opt(None)] hop_length: Option<i64>,
    #[opt(None)] win_length: Option<i64>,
    #[opt(None)] window: Option<&Tensor>,
    #[opt(true)] center: bool,
    #[opt("reflect")] pad_mode: &str,
    #[opt(false)] normalized: bool,
    #[opt(None)] onesided: Option<bool>,
) -> Result<Tensor> {
    ensure!(matches!(x.ndim(), 1 | 2), "x must have one or two axes, [time] or [batch, time], got {:?}", x.shape());
    let time = x.dim(-1) as i64;
    ensure!(n_fft <= time, "n_fft must not exceed the {time} points of the signal, got {n_fft}");
    let how = Frames::new(n_fft, hop_length, win_length, window, to_float(x.dtype()), x.device())?;
    let mut signal = if x.ndim() == 1 { x.try_unsqueeze(0)? } else { x.clone() };
    if center {
        ensure!(
            ["constant", "reflect"].contains(&pad_mode),
            "pad_mode must be \"reflect\" or \"constant\", got {pad_mode:?}"
        );
        let half = n_fft / 2;
        signal = signal.try_unsqueeze(1)?.try_pad_with([half, half], PadOpts::new().mode(pad_mode))?.try_squeeze(1)?;
    }
    let frames = signal.try_sliding_window(-1, n_fft, how.hop)?.try_multiply(&how.window)?;
    let onesided = onesided.unwrap_or(!frames.is_complex());
    if onesided && frames.is_complex() {
        return Err(Error::dtype("the transform of complex numbers has no mirror image: onesided must be False"));
    }
    let norm = if normalized { "ortho" } else { "backward" };
    let out = match onesided {
        true => frames.try_cast(to_float(frames.dtype()))?.try_fft_r2c([-1], norm, true)?,
        false => frames.try_cast(to_float(frames.dtype()).complex())?.try_fft_c2c([-1], norm, true)?,
    };
    let out = out.try_swapaxes(-1, -2)?;
    if x.ndim() == 1 { out.try_squeeze(0) } else { Ok(out) }
}

/// The signal whose short-time Fourier transform `x` is, or comes closest to it: the frames are transformed back,
/// weighted by the window, added, and divided by the sum of the squared windows, which must nowhere be zero.
///
/// ```
/// # use sampan_core::Tensor;
/// let x = Tensor::new([1.0f32; 16]);
/// assert!(x.stft(8).istft(8).allclose(&x).to_f64() == 1.0);
/// ```
#[op(complex, module = "signal", samples = istft_samples, also("Tensor.istft"))]
fn istft(
    x: &Tensor,
    n_fft: i64,
    #[opt(None)] hop_length: Option<i64>,
    #[opt(None)] win_length: Option<i64>,
    #[opt(None)] window: Option<&Tensor>,
    #[opt(true)] center: bool,
    #[opt(false)] normalized: bool,
    #[opt(true)] onesided: bool,
    #[opt(None)] length: Option<i64>,
    #[opt(false)] return_complex: bool,
) -> Result<Tensor> {
    if !x.is_complex() {
        return Err(Error::dtype(format!("x must be complex, got {}", x.dtype())).hint("as_complex(x)"));
    }
    ensure!(matches!(x.ndim(), 2 | 3), "x must have two or three axes, [batch,] frequencies, frames");
    let how = Frames::new(n_fft, hop_length, win_length, window, x.dtype().real_part(), x.device())?;
    let win = win_length.unwrap_or(n_fft);
    ensure!(how.hop <= win, "hop_length must not exceed win_length {win}, or there are gaps; got {}", how.hop);
    let want = if onesided { n_fft / 2 + 1 } else { n_fft };
    ensure!(x.dim(-2) as i64 == want, "x has {} frequencies, n_fft {n_fft} gives {want}", x.dim(-2));
    ensure!(x.numel() > 0, "x is empty");
    if return_complex && onesided {
        bail!("a complex signal has no mirror image in its transform: onesided must be False with return_complex");
    }
    if !return_complex && how.window.is_complex() {
        return Err(Error::dtype("the window of a real signal must be real").hint("set return_complex"));
    }
    let norm = if normalized { "ortho" } else { "backward" };
    let spectra = if x.ndim() == 2 { x.try_unsqueeze(0)? } else { x.clone() }.try_swapaxes(-1, -2)?;
    let frames = match (return_complex, onesided) {
        (true, _) => spectra.try_fft_c2c([-1], norm, false)?,
        (false, true) => spectra.try_fft_c2r([-1], norm, false, n_fft)?,
        (false, false) => spectra.try_narrow(-1, 0, n_fft as usize / 2 + 1)?.try_fft_c2r([-1], norm, false, n_fft)?,
    };
    let joined = frames.try_multiply(&how.window)?.try_swapaxes(-1, -2)?.try_overlap_add(how.hop, -1)?;
    let squares = how.window.try_multiply(&how.window)?.try_unsqueeze(-1)?;
    let envelope = squares.try_expand([n_fft, x.dim(-1) as i64])?.try_overlap_add(how.hop, -1)?;
    let (start, all) = (if center { n_fft / 2 } else { 0 }, joined.dim(-1) as i64);
    let end = match length {
        Some(n) => start.saturating_add(n).min(all),
        None => all - start,
    };
    ensure!(start < end, "nothing is left of the signal between {start} and {end}");
    let kept = |t: &Tensor| t.try_narrow(-1, start, (end - start) as usize);
    let (joined, envelope) = (kept(&joined)?, kept(&envelope)?);
    if envelope.device().has_values() {
        let least = crate::no_grad(|| envelope.try_abs()?.try_min(()))?.to_f64();
        // A NaN is nobody's gap.
        ensure!(
            least >= 1e-11 || least.is_nan(),
            "the squared windows add up to {least:e} somewhere, where the signal is unknown"
        );
    }
    let out = joined.try_divide(&envelope)?;
    if x.ndim() == 2 { out.try_squeeze(0) } else { Ok(out) }
}

fn frame_samples() -> Vec<Sample> {
    vec![
        sample![randn([8]), 4, 2],
        sample![randn([2, 7]), 3, 3],
        sample![randn([7, 2]), 3, 2, 0],
        sample![ints([8], 0, 9), 4, 2, 0],
    ]
}
fn overlap_samples() -> Vec<Sample> {
    vec![
        sample![randn([4, 3]), 2],
        sample![randn([2, 4, 3]), 3],
        sample![randn([3, 4, 2]), 2, 0],
        sample![ints([3, 4], 0, 9), 4, 0],
    ]
}
fn stft_samples() -> Vec<Sample> {
    vec![
        sample![randn([12]), 4],
        sample![randn([2, 9]), 5; hop_length = 2, window = positive([5])],
        sample![randn([10]), 6; hop_length = 3, win_length = 3, window = positive([3]), normalized = true],
        sample![randn([10]), 4; center = false, onesided = false],
        sample![randn([2, 9]), 4; pad_mode = "constant"],
        sample![complexes([2, 9]), 4; center = false, hop_length = 2],
    ]
}
fn istft_samples() -> Vec<Sample> {
    vec![
        sample![complexes([3, 5]), 4],
        sample![complexes([2, 4, 4]), 6; hop_length = 2, window = positive([6])],
        sample![complexes([4, 5]), 6; hop_length = 2, win_length = 5, window = positive([5]), normalized = true],
        sample![complexes([4, 5]), 4; onesided = false, length = 6],
        sample![complexes([4, 5]), 4; onesided = false, return_complex = true, center = false],
        // Paddle takes an odd number of points for the even one below it.
        sample![complexes([3, 5]), 5; hop_length = 2]
            .peer("lambda x, n, hop_length: torch.istft(x, n, hop_length, window=torch.ones(n))"),
    ]
}
