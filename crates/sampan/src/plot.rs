//! Curves as a PNG picture.

use plotters::coord::ranged1d::{Ranged, ValueFormatter};
use plotters::coord::types::RangedCoordf64;
use plotters::drawing::DrawingAreaErrorKind;
use plotters::prelude::*;
use plotters::style::{FontStyle, register_font};
use sampan_core::error::Kind;
use sampan_core::{Error, Result, Tensor};
use sampan_data::vision::image;
use std::ops::Range;
use std::path::Path;
use std::sync::Once;

const FONT: &[u8] = include_bytes!("../../../data/font/DejaVuSans-subset.ttf");
const SIZE: (u32, u32) = (960, 600);
const COLORS: [RGBColor; 6] = [
    RGBColor(31, 119, 180),
    RGBColor(214, 83, 25),
    RGBColor(44, 140, 70),
    RGBColor(148, 80, 170),
    RGBColor(140, 100, 60),
    RGBColor(90, 90, 90),
];

/// A line through points, with a name for the legend.
#[derive(Clone, Debug)]
pub struct Curve {
    /// What it shows.
    pub name: String,
    /// Points from left to right; those that are not finite are left out.
    pub points: Vec<(f64, f64)>,
    /// Drawn thin and pale, behind the others: single steps behind their running mean.
    pub faint: bool,
}

impl Curve {
    /// A curve with a name.
    pub fn new(name: impl Into<String>, points: Vec<(f64, f64)>) -> Curve {
        Curve { name: name.into(), points, faint: false }
    }

    /// A pale copy behind, this curve smoothed by a running mean over `window` points in front.
    pub fn smoothed(self, window: usize) -> [Curve; 2] {
        let window = window.max(1);
        // Each mean by itself: in a running sum one infinite value would never go away.
        let mean = |i: usize| {
            let finite = || self.points[(i + 1).saturating_sub(window)..=i].iter().filter(|p| p.1.is_finite());
            finite().map(|p| p.1).sum::<f64>() / finite().count() as f64
        };
        let points = self.points.iter().enumerate().map(|(i, (x, _))| (*x, mean(i))).collect();
        let front = Curve { name: format!("{} (mean of {window})", self.name), points, faint: false };
        [Curve { faint: true, ..self }, front]
    }
}

/// Draws curves with axes and a legend into a PNG file.
pub fn curves(path: &Path, title: &str, x_label: &str, y_label: &str, curves: &[Curve]) -> Result<()> {
    let failed = |e: &dyn std::fmt::Display| {
        Error::new(Kind::External, format!("the picture cannot be drawn: {e}")).in_op("plot")
    };
    let pixels = draw(title, x_label, y_label, curves).map_err(|e| failed(&e))?;
    image::save(&Tensor::from_vec(pixels, [SIZE.1 as usize, SIZE.0 as usize, 3]), path)
}

/// The least and the greatest value with a little room, whatever is there.
fn span(values: impl Iterator<Item = f64>, room: f64) -> Range<f64> {
    let (lo, hi) =
        values.filter(|v| v.is_finite()).fold((f64::INFINITY, f64::NEG_INFINITY), |(lo, hi), v| (lo.min(v), hi.max(v)));
    if lo > hi {
        return 0.0..1.0;
    }
    let room = if lo == hi { lo.abs().max(1.0) * 0.5 } else { (hi - lo) * room };
    lo - room..hi + room
}

/// Values that fall a hundredfold would lie on the axis of an even scale.
fn needs_log_scale(curves: &[Curve]) -> Option<Range<f64>> {
    let values = || curves.iter().filter(|c| !c.faint).flat_map(|c| &c.points).map(|p| p.1).filter(|v| v.is_finite());
    let (lo, hi) = values().fold((f64::INFINITY, 0.0f64), |(lo, hi), v| (lo.min(v), hi.max(v)));
    (lo > 0.0 && hi / lo > 100.0).then_some(lo * 0.7..hi * 1.3)
}

fn draw(title: &str, x_label: &str, y_label: &str, curves: &[Curve]) -> Result<Vec<u8>, Box<dyn std::error::Error>> {
    static FONTS: Once = Once::new();
    FONTS.call_once(|| {
        // The font is part of the program; were it broken, the chart would fail below with a message.
        let _ = register_font("sans-serif", FontStyle::Normal, FONT);
    });
    let mut pixels = vec![0u8; (SIZE.0 * SIZE.1 * 3) as usize];
    {
        let area = BitMapBackend::with_buffer(&mut pixels, SIZE).into_drawing_area();
        area.fill(&WHITE)?;
        let all = || curves.iter().flat_map(|c| &c.points);
        let x = span(all().map(|p| p.0), 0.0);
        let mut chart = ChartBuilder::on(&area);
        chart.caption(title, ("sans-serif", 24)).margin(16).x_label_area_size(48).y_label_area_size(72);
        match needs_log_scale(curves) {
            Some(y) => {
                let floor = y.start;
                fill(chart.build_cartesian_2d(x, y.log_scale())?, x_label, y_label, curves, floor)?;
            }
            None => {
                let y = span(all().map(|p| p.1), 0.04);
                fill(chart.build_cartesian_2d(x, y)?, x_label, y_label, curves, f64::NEG_INFINITY)?;
            }
        }
        area.present()?;
    }
    Ok(pixels)
}

/// Axes, curves (no lower than `floor`) and legend.
fn fill<'a, DB, Y>(
    mut chart: ChartContext<'a, DB, Cartesian2d<RangedCoordf64, Y>>,
    x_label: &str,
    y_label: &str,
    curves: &[Curve],
    floor: f64,
) -> Result<(), DrawingAreaErrorKind<DB::ErrorType>>
where
    DB: DrawingBackend + 'a,
    Y: Ranged<ValueType = f64> + ValueFormatter<f64>,
{
    chart
        .configure_mesh()
        .x_desc(x_label)
        .y_desc(y_label)
        .label_style(("sans-serif", 16))
        .axis_desc_style(("sans-serif", 18))
        .x_label_formatter(&|v| format!("{v}"))
        .y_label_formatter(&|v| format!("{v}"))
        .max_light_lines(4)
        .light_line_style(RGBColor(240, 240, 240))
        .bold_line_style(RGBColor(220, 220, 220))
        .draw()?;
    // A pale curve has the colour of the one in front of it, which comes next.
    let mut color = 0;
    for curve in curves {
        let style = if curve.faint {
            ShapeStyle::from(COLORS[color % COLORS.len()].mix(0.3))
        } else {
            ShapeStyle::from(COLORS[color % COLORS.len()]).stroke_width(2)
        };
        let finite = curve.points.iter().copied().filter(|(x, y)| x.is_finite() && y.is_finite());
        let series = chart.draw_series(LineSeries::new(finite.map(|(x, y)| (x, y.max(floor))), style))?;
        if !curve.faint {
            series.label(&curve.name).legend(move |(x, y)| PathElement::new([(x, y), (x + 24, y)], style));
            color += 1;
        }
    }
    if curves.iter().any(|c| !c.faint) {
        chart
            .configure_series_labels()
            .position(SeriesLabelPosition::UpperRight)
            .background_style(WHITE.mix(0.85))
            .border_style(RGBColor(200, 200, 200))
            .label_font(("sans-serif", 16))
            .margin(12)
            .draw()?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn odd_data_still_makes_a_picture() {
        for points in
            [vec![], vec![(1.0, 2.0)], vec![(1.0, f64::NAN), (2.0, f64::INFINITY)], vec![(0.0, 0.0), (1.0, 0.0)]]
        {
            let pixels = draw("t", "x", "y", &Curve::new("c", points).smoothed(3)).unwrap();
            assert!(pixels.iter().any(|&p| p < 100), "the axes are dark");
        }
    }
}
