//! Colours as OpenCV computes them.

/// How bright a byte colour is, in whole numbers of 2^-15; `rgb` in that order.
pub fn grey([r, g, b]: [u8; 3]) -> u8 {
    ((r as u32 * 9798 + g as u32 * 19235 + b as u32 * 3735 + (1 << 14)) >> 15) as u8
}

/// How bright a float colour is.
pub fn grey_float([r, g, b]: [f32; 3]) -> f32 {
    r * 0.299 + g * 0.587 + b * 0.114
}

/// Hue in 256ths of the circle, saturation and value.
pub fn to_hsv([r, g, b]: [u8; 3]) -> [u8; 3] {
    let (most, least) = (r.max(g).max(b), r.min(g).min(b));
    let (r, g, b, span) = (r as i32, g as i32, b as i32, most as i32 - least as i32);
    // Reciprocals are whole numbers of 2^-12.
    let over =
        |numerator: f64, v: i32| if v == 0 { 0 } else { (numerator * 4096.0 / v as f64).round_ties_even() as i32 };
    let saturation = (span * over(255.0, most as i32) + 2048) >> 12;
    let sixth = if most as i32 == r {
        g - b
    } else if most as i32 == g {
        b - r + 2 * span
    } else {
        r - g + 4 * span
    };
    let hue = (sixth * over(256.0 / 6.0, span) + 2048) >> 12;
    [(if hue < 0 { hue + 256 } else { hue }).min(255) as u8, saturation as u8, most]
}

/// Back to red, green and blue.
pub fn to_rgb([h, s, v]: [u8; 3]) -> [u8; 3] {
    let h = h as f32 * (6.0 / 255.0);
    let (s, v) = (s as f32 / 255.0, v as f32 / 255.0);
    let sector = h.floor();
    let f = h - sector;
    let level = |share: f32| (v * (1.0 - share) * 255.0).round_ties_even() as u8;
    let (p, q, t) = (level(s), level(s * f), level(s * (1.0 - f)));
    let v = level(0.0);
    super::super::hue::sector(sector as u32 % 6, v, p, q, t)
}
