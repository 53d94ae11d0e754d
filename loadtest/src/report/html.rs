//! `report.html`: one file that stands alone. No script, no font, no request to anywhere.

use std::fmt::Write as _;

use super::{Comparison, plot, table};

const STYLE: &str = "\
:root{color-scheme:light;--ink:#1c1c1e;--soft:#6b6b70;--line:#e3e3e8}
body{font:16px/1.5 system-ui,sans-serif;color:var(--ink);background:#fff;max-width:60rem;margin:2.5rem auto;padding:0 1rem}
h1{font-size:1.8rem;margin-bottom:.2rem}h2{font-size:1.2rem;margin-top:2.4rem}
table{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums}
th,td{padding:.35rem .6rem;border-bottom:1px solid var(--line);text-align:right}
th:first-child,td:first-child,th:nth-child(2),td:nth-child(2){text-align:left}
.pass{color:#26734d}.fail,.race-reproduced{color:#c0392b;font-weight:600}.unknown{color:#9a6700}
p.note{color:var(--soft)}svg{width:100%;height:auto}figure{margin:1rem 0}";

/// The page.
pub(super) fn page(comparison: &Comparison) -> anyhow::Result<String> {
    let mut html = String::new();
    let _ = write!(
        html,
        "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width\"><title>Last Ticket: strategies side by side</title>\
         <style>{STYLE}</style></head><body><h1>Strategies side by side</h1><p class=\"note\">{}</p>",
        escape(&table::footing(comparison))
    );
    strategies(&mut html, comparison);
    section(
        &mut html,
        "Sold against capacity",
        "One bar per round; the line is the capacity, red is what was sold beyond it.",
    );
    figure(
        &mut html,
        &plot::sold(&comparison.strategies, comparison.settings.capacity)?,
    );
    section(
        &mut html,
        "How long answers took",
        "All buyers ask at once, so most of this is time in line.",
    );
    figure(&mut html, &plot::latency(&comparison.strategies)?);
    for timeline in comparison
        .timelines
        .iter()
        .filter(|t| t.requests.iter().any(|r| r.read_ms.is_some()))
    {
        let overlaps = timeline.overlapping();
        section(
            &mut html,
            &format!("Who read and wrote when: {}", timeline.strategy),
            &format!(
                "Every sale of round 1 (seed {}), from reading the stock (blue) to writing it. {overlaps} of them \
                 (red) read before an earlier one had written.",
                timeline.seed
            ),
        );
        figure(&mut html, &plot::timeline(timeline)?);
    }
    html.push_str("</body></html>\n");
    Ok(html)
}

fn section(html: &mut String, title: &str, note: &str) {
    let _ = write!(
        html,
        "<h2>{}</h2><p class=\"note\">{}</p>",
        escape(title),
        escape(note)
    );
}

fn figure(html: &mut String, svg: &str) {
    let _ = write!(html, "<figure>{svg}</figure>");
}

fn strategies(html: &mut String, comparison: &Comparison) {
    let markdown = table::markdown(comparison);
    let mut rows = markdown.lines().filter(|line| line.starts_with("| "));
    let cells = |line: &str, tag: &str| {
        line.trim_matches('|')
            .split(" | ")
            .fold(String::new(), |mut row, cell| {
                let cell = cell.trim();
                let class = cell.replace(' ', "-");
                let class = if ["pass", "fail", "race-reproduced", "unknown"].contains(&class.as_str()) {
                    format!(" class=\"{class}\"")
                } else {
                    String::new()
                };
                let _ = write!(row, "<{tag}{class}>{}</{tag}>", escape(cell));
                row
            })
    };
    let _ = write!(
        html,
        "<table><thead><tr>{}</tr></thead><tbody>",
        rows.next().map_or_else(String::new, |line| cells(line, "th"))
    );
    for line in rows {
        let _ = write!(html, "<tr>{}</tr>", cells(line, "td"));
    }
    html.push_str("</tbody></table>");
    for strategy in &comparison.strategies {
        let _ = write!(
            html,
            "<p class=\"note\"><strong>{}</strong>: {}</p>",
            strategy.name,
            escape(&strategy.reason)
        );
    }
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}
