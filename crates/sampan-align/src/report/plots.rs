//! Pictures of the page, drawn as SVG without any script.

/// A line of a plot.
pub(super) struct Line<'l> {
    pub name: &'l str,
    pub class: &'l str,
    pub values: Vec<Option<f64>>,
}

const WIDTH: f64 = 960.0;
const HEIGHT: f64 = 240.0;
const LEFT: f64 = 64.0;
const BOTTOM: f64 = 34.0;
const TOP: f64 = 26.0;

pub(super) fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// Lines over steps or calls; `marks` are places to point at, `names` what each place is called.
pub(super) fn plot(
    title: &str,
    lines: &[Line<'_>],
    log: bool,
    marks: &[usize],
    names: &[String],
    across: &str,
) -> String {
    let scale = |v: f64| if log { v.max(1e-12).log10() } else { v };
    let all: Vec<f64> =
        lines.iter().flat_map(|l| l.values.iter().flatten()).filter(|v| v.is_finite()).map(|v| scale(*v)).collect();
    let count = lines.iter().map(|l| l.values.len()).max().unwrap_or(0);
    if all.is_empty() || count == 0 {
        return String::new();
    }
    let (mut low, mut high) = all.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), v| (a.min(*v), b.max(*v)));
    if log {
        (low, high) = (low.floor().min(-8.0), high.ceil().max(0.0));
    } else if high - low < 1e-12 {
        (low, high) = (low - 0.5 * low.abs().max(1e-6), high + 0.5 * high.abs().max(1e-6));
    }
    let x =
        |i: usize| LEFT + 10.0 + (WIDTH - LEFT - 30.0) * if count > 1 { i as f64 / (count - 1) as f64 } else { 0.5 };
    let y = |v: f64| TOP + (HEIGHT - TOP - BOTTOM) * (1.0 - (scale(v).clamp(low, high) - low) / (high - low));
    let mut svg = format!("<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{}\">", escape(title));
    svg += &format!("<text class=\"title\" x=\"{LEFT}\" y=\"15\">{}</text>", escape(title));
    let ticks = if log { (high - low) as usize / (if high - low > 8.0 { 2 } else { 1 }) } else { 4 };
    for t in 0..=ticks.max(1) {
        let v = low + (high - low) * t as f64 / ticks.max(1) as f64;
        let at = TOP + (HEIGHT - TOP - BOTTOM) * (1.0 - (v - low) / (high - low));
        let label = if log { format!("1e{}", v.round()) } else { format!("{v:.4}") };
        svg +=
            &format!("<line class=\"grid\" x1=\"{LEFT}\" x2=\"{:.1}\" y1=\"{at:.1}\" y2=\"{at:.1}\"/>", WIDTH - 12.0);
        svg += &format!(
            "<text class=\"tick\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{label}</text>",
            LEFT - 8.0,
            at + 4.0
        );
    }
    for &m in marks.iter().filter(|m| **m < count) {
        svg += &format!(
            "<line class=\"mark\" x1=\"{0:.1}\" x2=\"{0:.1}\" y1=\"{TOP}\" y2=\"{1:.1}\"/>",
            x(m),
            HEIGHT - BOTTOM
        );
    }
    for line in lines {
        let mut path = String::new();
        let mut pen = false;
        for (i, v) in line.values.iter().enumerate() {
            match v {
                Some(v) if !v.is_nan() => {
                    path += &format!(
                        "{}{:.1} {:.1} ",
                        if pen { "L" } else { "M" },
                        x(i),
                        y(if v.is_infinite() { 1e12 } else { *v })
                    );
                    pen = true;
                }
                _ => pen = false,
            }
        }
        svg += &format!("<path class=\"{}\" d=\"{path}\"/>", line.class);
        for (i, v) in line.values.iter().enumerate() {
            if let Some(v) = v {
                let name = names.get(i).map_or(format!("{across} {i}"), |n| escape(n));
                let at = y(if v.is_infinite() { 1e12 } else { *v });
                svg += &format!(
                    "<circle class=\"{}\" cx=\"{:.1}\" cy=\"{at:.1}\" r=\"2.6\"><title>{name}: {} {v:.3e}</title></circle>",
                    line.class,
                    x(i),
                    escape(line.name)
                );
            }
        }
    }
    let mut at = WIDTH - 14.0;
    for line in lines.iter().rev() {
        svg += &format!(
            "<text class=\"legend {}\" x=\"{at:.1}\" y=\"15\" text-anchor=\"end\">● {}</text>",
            line.class,
            escape(line.name)
        );
        at -= 9.0 * line.name.chars().count() as f64 + 34.0;
    }
    svg += &format!(
        "<text class=\"tick\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
        WIDTH - 12.0,
        HEIGHT - 10.0,
        escape(across)
    );
    if let (Some(first), Some(last)) = (names.first(), names.last()) {
        svg += &format!(
            "<text class=\"tick\" x=\"{LEFT}\" y=\"{:.1}\">{} … {}</text>",
            HEIGHT - 10.0,
            escape(first),
            escape(last)
        );
    }
    svg + "</svg>"
}
