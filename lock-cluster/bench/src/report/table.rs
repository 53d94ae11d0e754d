//! The report as text: a line for each point, a line for each ratio.

use std::fmt;

use super::{PointReport, Ratio, Report};
use crate::failover::Failovers;
use crate::figures::Spread;

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.setting)?;
        writeln!(f, "\nmedians over the rounds")?;
        writeln!(
            f,
            "case  clients  target      cycles/s   p50 ms   p99 ms  CPU µs/cycle  fsyncs/s  memory MiB"
        )?;
        for point in &self.points {
            write_point(f, point)?;
        }
        match &self.setting.skipped {
            Some(why) => writeln!(f, "\nno ratios; skipped: {why}"),
            None => {
                writeln!(
                    f,
                    "\nlock-node's cycles per second, times those of etcd in the same round"
                )?;
                writeln!(
                    f,
                    "case  clients  to          median      min      max   p99 of etcd's"
                )?;
                self.ratios.iter().try_for_each(|ratio| write_ratio(f, ratio))
            }
        }?;
        write_failover(f, "lock-node", &self.failover_ms)?;
        if !self.failover_ms.is_empty() {
            let Failovers {
                busy_clients,
                sessions_lost,
                failed,
                ..
            } = &self.failover;
            writeln!(
                f,
                "  {busy_clients} clients were busy meanwhile: {sessions_lost} sessions lost, {failed} cycles failed"
            )?;
        }
        write_failover(f, "etcd", &self.etcd_failover_ms)
    }
}

/// From the kill of a leader until the next grant.
fn write_failover(f: &mut fmt::Formatter<'_>, of: &str, took_ms: &[f64]) -> fmt::Result {
    match Spread::of(took_ms) {
        None => Ok(()),
        Some(Spread { median, max, .. }) => writeln!(
            f,
            "\nfailover of {of}, {} kills: median {median:.0} ms, worst {max:.0} ms",
            took_ms.len()
        ),
    }
}

fn write_point(f: &mut fmt::Formatter<'_>, point: &PointReport) -> fmt::Result {
    write!(
        f,
        "{:<4}  {:>7}  {:<10} {:>9.0} {:>8.2} {:>8.2} {:>13.0} {:>9.0} {:>11.0}",
        point.case.name(),
        point.clients,
        point.target.name(),
        point.cycles_per_s,
        point.p50_ms,
        point.p99_ms,
        point.cpu_us_per_cycle,
        point.syncs_per_s,
        point.rss_mib,
    )?;
    if point.failed > 0 {
        write!(f, "  ({} cycles failed)", point.failed)?;
    }
    writeln!(f)
}

fn write_ratio(f: &mut fmt::Formatter<'_>, ratio: &Ratio) -> fmt::Result {
    writeln!(
        f,
        "{:<4}  {:>7}  {:<10} {:>7.2}x {:>7.2}x {:>7.2}x {:>14.2}x",
        ratio.case.name(),
        ratio.clients,
        ratio.to.name(),
        ratio.spread.median,
        ratio.spread.min,
        ratio.spread.max,
        ratio.p99.median,
    )
}
