//! The plot: cycles per second of all targets, side by side for each case and number of clients. Text sizes are
//! chosen for a slide, not for a page.

use plotters::prelude::*;

use super::{PointReport, Ratio};
use crate::locker::{Case, Target};

const SIZE: (u32, u32) = (1280, 720);
const INK: RGBColor = RGBColor(40, 40, 46);
const OURS: RGBColor = RGBColor(38, 115, 77);
const ETCD_LOCK: RGBColor = RGBColor(120, 144, 176);
const ETCD_TXN: RGBColor = RGBColor(176, 190, 208);
/// Of a group's width, one bar. Three bars leave room between groups.
const BAR: f64 = 0.27;

/// Draws it as SVG text.
pub(super) fn draw(points: &[PointReport], ratios: &[Ratio]) -> anyhow::Result<String> {
    let groups = groups(points);
    let most = points.iter().map(|point| point.cycles_per_s).fold(1.0, f64::max);
    let mut text = String::new();
    {
        let area = SVGBackend::with_string(&mut text, SIZE).into_drawing_area();
        area.fill(&WHITE)?;
        let mut chart = ChartBuilder::on(&area)
            .caption("Acquire and release, cycles per second", font(34))
            .margin(24)
            .x_label_area_size(64)
            .y_label_area_size(110)
            .build_cartesian_2d(0.0..groups.len().max(1) as f64, 0.0..most * 1.25)?;
        chart
            .configure_mesh()
            .disable_x_mesh()
            .disable_x_axis()
            .light_line_style(WHITE)
            .label_style(font(22))
            .y_label_formatter(&|cycles| format!("{cycles:.0}"))
            .draw()?;
        for (target, color) in [
            (Target::LockNode, OURS),
            (Target::EtcdLock, ETCD_LOCK),
            (Target::EtcdTxn, ETCD_TXN),
        ] {
            let bars = points
                .iter()
                .filter(|point| point.target == target)
                .filter_map(|point| {
                    let (left, right) = place(&groups, point)?;
                    Some(Rectangle::new(
                        [(left, 0.0), (right, point.cycles_per_s)],
                        color.filled(),
                    ))
                });
            chart
                .draw_series(bars)?
                .label(target.name())
                .legend(move |(x, y)| Rectangle::new([(x, y - 9), (x + 22, y + 9)], color.filled()));
            for point in points.iter().filter(|point| point.target == target) {
                let Some((left, _)) = place(&groups, point) else {
                    continue;
                };
                let (x, y) = chart.backend_coord(&(left, point.cycles_per_s));
                let label = above(point, ratios);
                area.draw(&Text::new(label, (x + 2, y - 24), font(18)))?;
            }
        }
        for (at, (case, clients)) in groups.iter().enumerate() {
            let (x, y) = chart.backend_coord(&(at as f64 + 0.1, 0.0));
            let label = match case {
                Case::Own => format!("{clients} on own names"),
                Case::One => format!("{clients} on one name"),
            };
            area.draw(&Text::new(label, (x, y + 16), font(20)))?;
        }
        chart
            .configure_series_labels()
            .position(SeriesLabelPosition::UpperLeft)
            .label_font(font(24))
            .background_style(WHITE)
            .border_style(INK)
            .draw()?;
        area.present()?;
    }
    Ok(text)
}

/// The cases and numbers of clients in the order in which they were measured.
fn groups(points: &[PointReport]) -> Vec<(Case, u32)> {
    let mut groups = Vec::new();
    for point in points {
        let group = (point.case, point.clients);
        if !groups.contains(&group) {
            groups.push(group);
        }
    }
    groups
}

/// From where to where a point's bar stands.
fn place(groups: &[(Case, u32)], point: &PointReport) -> Option<(f64, f64)> {
    let group = groups
        .iter()
        .position(|group| *group == (point.case, point.clients))?;
    let bar = match point.target {
        Target::LockNode => 0.0,
        Target::EtcdLock => 1.0,
        Target::EtcdTxn => 2.0,
    };
    let left = group as f64 + 0.08 + bar * BAR;
    Some((left, left + BAR - 0.02))
}

/// What stands above a bar: on etcd's, how many times as much lock-node made.
fn above(point: &PointReport, ratios: &[Ratio]) -> String {
    ratios
        .iter()
        .find(|ratio| (ratio.case, ratio.clients, ratio.to) == (point.case, point.clients, point.target))
        .map_or_else(
            || format!("{:.0}", point.cycles_per_s),
            |ratio| format!("1 / {:.1}", ratio.spread.median),
        )
}

fn font(size: u32) -> TextStyle<'static> {
    ("sans-serif", size).into_font().color(&INK)
}
