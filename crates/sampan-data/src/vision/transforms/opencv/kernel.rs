//! The shares that neighbouring pixels have in a value between them.

use super::super::resample::Interpolation;

/// How many neighbours along a line have a share.
pub fn count(how: Interpolation) -> usize {
    match how {
        Interpolation::Bicubic => 4,
        Interpolation::Lanczos => 8,
        _ => 2,
    }
}

/// Their shares at `t` of the way from the last pixel before a place to the first one behind it, in float32 as OpenCV
/// computes them, so that they round alike. Those beyond [`count`] are 0.
pub fn shares(how: Interpolation, t: f32) -> [f32; 8] {
    let mut out = [0.0; 8];
    match how {
        Interpolation::Bicubic => {
            // Keys' cubic with a slope of -0.75.
            const A: f32 = -0.75;
            let outer = |d: f32| ((A * d - 5.0 * A) * d + 8.0 * A) * d - 4.0 * A;
            let inner = |d: f32| ((A + 2.0) * d - (A + 3.0)) * d * d + 1.0;
            (out[0], out[1], out[2]) = (outer(t + 1.0), inner(t), inner(1.0 - t));
            out[3] = 1.0 - out[0] - out[1] - out[2];
        }
        Interpolation::Lanczos if t < f32::EPSILON => out[3] = 1.0,
        Interpolation::Lanczos => {
            // sinc(d) sinc(d / 4): the first sine only changes its sign from one pixel to the next.
            let quarter = std::f64::consts::FRAC_PI_4;
            let (sin, cos) = (-(t as f64 + 3.0) * quarter).sin_cos();
            for (i, share) in out.iter_mut().enumerate() {
                let y = -(t as f64 + 3.0 - i as f64) * quarter;
                let (turn_sin, turn_cos) = (i as f64 * quarter).sin_cos();
                let second = sin * turn_cos + cos * turn_sin;
                *share = (if i % 2 == 0 { second } else { -second } / (y * y)) as f32;
            }
            let all = 1.0 / out.iter().sum::<f32>();
            out.iter_mut().for_each(|share| *share *= all);
        }
        _ => (out[0], out[1]) = (1.0 - t, t),
    }
    out
}
