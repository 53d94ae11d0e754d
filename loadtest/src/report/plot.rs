//! The plots, as SVG text. No fonts are measured and no network is needed: the browser that shows the page
//! draws them.

use buyers::StrategyReport;
use plotters::coord::Shift;
use plotters::prelude::*;

use super::Timeline;

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

const KEPT: RGBColor = RGBColor(38, 115, 77);
const BROKEN: RGBColor = RGBColor(192, 57, 43);
const READ: RGBColor = RGBColor(41, 98, 180);
const INK: RGBColor = RGBColor(60, 60, 67);

fn svg(size: (u32, u32), draw: impl FnOnce(&Area<'_>) -> anyhow::Result<()>) -> anyhow::Result<String> {
    let mut text = String::new();
    {
        let area = SVGBackend::with_string(&mut text, size).into_drawing_area();
        draw(&area)?;
        area.present()
            .map_err(|error| anyhow::anyhow!("cannot draw: {error}"))?;
    }
    Ok(text)
}

/// Sold against capacity, one bar per round, what was sold too often in red.
pub(super) fn sold(strategies: &[StrategyReport], capacity: u32) -> anyhow::Result<String> {
    let bars: Vec<(usize, &buyers::RoundReport)> = strategies
        .iter()
        .enumerate()
        .flat_map(|(n, strategy)| strategy.rounds.iter().map(move |round| (n, round)))
        .collect();
    let most = bars
        .iter()
        .map(|(_, r)| r.sold)
        .max()
        .unwrap_or(0)
        .max(i64::from(capacity));
    // One unit of width per bar, one between strategies.
    let place = |bar: usize, strategy: usize| (bar + strategy) as f64;
    let width = place(bars.len(), strategies.len());
    svg((900, 360), |area| {
        let mut chart = ChartBuilder::on(area)
            .margin(12)
            .x_label_area_size(30)
            .y_label_area_size(56)
            .build_cartesian_2d(0.0..width.max(1.0), 0.0..(most as f64 * 1.1).max(1.0))?;
        chart
            .configure_mesh()
            .disable_x_mesh()
            .disable_x_axis()
            .y_desc("tickets sold")
            .y_label_formatter(&|y| format!("{y:.0}"))
            .draw()?;
        for (n, (strategy, round)) in bars.iter().enumerate() {
            let x = place(n, *strategy) + 0.55;
            let (sold, seats) = (round.sold as f64, f64::from(capacity));
            chart.draw_series([Rectangle::new(
                [(x, 0.0), (x + 0.85, sold.min(seats))],
                KEPT.filled(),
            )])?;
            if sold > seats {
                chart.draw_series([Rectangle::new([(x, seats), (x + 0.85, sold)], BROKEN.filled())])?;
            }
        }
        let seats = f64::from(capacity);
        chart.draw_series([PathElement::new(
            [(0.0, seats), (width, seats)],
            INK.stroke_width(2),
        )])?;
        let mut first = 0;
        for (n, strategy) in strategies.iter().enumerate() {
            let at = chart.backend_coord(&(place(first, n) + 0.6, 0.0));
            area.draw(&Text::new(
                strategy.name.name(),
                (at.0, at.1 + 10),
                ("sans-serif", 15).into_font().color(&INK),
            ))?;
            first += strategy.rounds.len();
        }
        Ok(())
    })
}

/// How long answers took, per strategy: which share of the buyers had their answer by then. The points are
/// the medians over the rounds of p50, p95, p99 and the slowest.
pub(super) fn latency(strategies: &[StrategyReport]) -> anyhow::Result<String> {
    let slowest = strategies
        .iter()
        .map(|s| s.medians.latency_ms.max)
        .fold(1.0, f64::max);
    svg((900, 320), |area| {
        let mut chart = ChartBuilder::on(area)
            .margin(12)
            .x_label_area_size(44)
            .y_label_area_size(56)
            .build_cartesian_2d(0.0..slowest * 1.05, 0.0..100.0)?;
        chart
            .configure_mesh()
            .x_desc("milliseconds after asking")
            .y_desc("% answered")
            .draw()?;
        for (n, strategy) in strategies.iter().filter(|s| !s.rounds.is_empty()).enumerate() {
            let color = Palette99::pick(n).to_rgba();
            let ms = strategy.medians.latency_ms;
            let points = [
                (0.0, 0.0),
                (ms.p50, 50.0),
                (ms.p95, 95.0),
                (ms.p99, 99.0),
                (ms.max, 100.0),
            ];
            chart
                .draw_series(LineSeries::new(points, color.stroke_width(2)))?
                .label(strategy.name.name())
                .legend(move |(x, y)| PathElement::new([(x, y), (x + 18, y)], color.stroke_width(3)));
        }
        chart
            .configure_series_labels()
            .position(SeriesLabelPosition::LowerRight)
            .background_style(WHITE.mix(0.85))
            .border_style(INK)
            .draw()?;
        Ok(())
    })
}

/// Who read the stock and who wrote it, when: one line per sale from its read to its write. Under a lock the
/// lines stand one behind the other; without, they lie on top of each other, and each that began before the
/// last one ended sold from a number that was no longer true.
pub(super) fn timeline(timeline: &Timeline) -> anyhow::Result<String> {
    let mut sales: Vec<(f64, f64)> = timeline
        .requests
        .iter()
        .filter_map(|r| r.read_ms.zip(r.written_ms))
        .collect();
    sales.sort_by(|a, b| a.0.total_cmp(&b.0));
    let end = sales.iter().map(|s| s.1).fold(1.0, f64::max);
    svg((900, 260), |area| {
        let mut chart = ChartBuilder::on(area)
            .margin(12)
            .x_label_area_size(44)
            .y_label_area_size(56)
            .build_cartesian_2d(0.0..end * 1.02, 0.0..(sales.len() as f64 + 1.0))?;
        chart
            .configure_mesh()
            .x_desc("milliseconds after the first read")
            .y_desc("sale")
            .y_label_formatter(&|y| format!("{y:.0}"))
            .draw()?;
        let mut busy_until = f64::NEG_INFINITY;
        for (n, &(read, written)) in sales.iter().enumerate() {
            let y = n as f64 + 1.0;
            let color = if read < busy_until { BROKEN } else { KEPT };
            chart.draw_series([PathElement::new([(read, y), (written, y)], color.stroke_width(2))])?;
            chart.draw_series([Circle::new((read, y), 2, READ.filled())])?;
            busy_until = busy_until.max(written);
        }
        Ok(())
    })
}
