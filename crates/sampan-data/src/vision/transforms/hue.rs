//! Colours as hue, saturation and value.

/// Bytes, truncated as Pillow does.
pub(super) fn to_hsv([r, g, b]: [u8; 3]) -> [u8; 3] {
    let (most, least) = (r.max(g).max(b), r.min(g).min(b));
    if most == least {
        return [0, 0, most];
    }
    let span = (most - least) as f32;
    let below = |v: u8| (most - v) as f32 / span;
    let [rc, gc, bc] = [below(r), below(g), below(b)];
    let sixth = if r == most {
        bc - gc
    } else if g == most {
        (2.0 + rc as f64 - bc as f64) as f32
    } else {
        (4.0 + gc as f64 - rc as f64) as f32
    };
    let hue = ((sixth as f64 / 6.0 + 1.0) % 1.0) as f32;
    let saturation = span / most as f32;
    [(hue as f64 * 255.0) as u8, (saturation as f64 * 255.0) as u8, most]
}

/// Back to red, green and blue.
pub(super) fn to_rgb([h, s, v]: [u8; 3]) -> [u8; 3] {
    if s == 0 {
        return [v; 3];
    }
    let sixth = (h as f32 as f64 * 6.0 / 255.0) as f32;
    let part = sixth.floor();
    let (f, s, value) = ((sixth - part) as f64, (s as f64 / 255.0) as f32 as f64, v as f64);
    let level = |share: f64| (value * (1.0 - share)).round() as u8;
    let (p, q, t) = (level(s), level(s * f), level(s * (1.0 - f)));
    sector(part as u32 % 6, v, p, q, t)
}

/// Floats from 0 to 1.
pub(super) fn to_hsv_float([r, g, b]: [f32; 3]) -> [f32; 3] {
    let (most, least) = (r.max(g).max(b), r.min(g).min(b));
    if most == least {
        return [0.0, 0.0, most];
    }
    let span = most - least;
    let [rc, gc, bc] = [r, g, b].map(|v| (most - v) / span);
    let sixth = if r == most {
        bc - gc
    } else if g == most {
        rc - bc + 2.0
    } else {
        gc - rc + 4.0
    };
    let hue = sixth / 6.0 + 1.0;
    [hue - hue.trunc(), span / most, most]
}

/// Back to red, green and blue.
pub(super) fn to_rgb_float([h, s, v]: [f32; 3]) -> [f32; 3] {
    let sixth = h * 6.0;
    let part = sixth.floor();
    let f = sixth - part;
    let level = |share: f32| (v * (1.0 - share)).clamp(0.0, 1.0);
    let (p, q, t) = (level(s), level(s * f), level(s * (1.0 - f)));
    sector(part as u32 % 6, v, p, q, t)
}

/// The colour in one sixth of the circle.
pub(super) fn sector<T>(sixth: u32, v: T, p: T, q: T, t: T) -> [T; 3] {
    match sixth {
        0 => [v, t, p],
        1 => [q, v, p],
        2 => [p, v, t],
        3 => [p, q, v],
        4 => [t, p, v],
        _ => [v, p, q],
    }
}
