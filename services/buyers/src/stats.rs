//! Percentiles and medians, by the nearest rank: every number printed was really measured.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// How long answers took, in milliseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct LatencyMs {
    /// Half were faster.
    pub p50: f64,
    /// 95 of 100 were faster.
    pub p95: f64,
    /// 99 of 100 were faster.
    pub p99: f64,
    /// The slowest.
    pub max: f64,
}

/// How long buyers stood in line for locks, in milliseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct LockWaitMs {
    /// Half waited less.
    pub p50: f64,
    /// 99 of 100 waited less.
    pub p99: f64,
}

/// The value at a share (0 to 1) of the sorted values; 0 when there are none.
pub fn percentile(sorted: &[f64], share: f64) -> f64 {
    if sorted.is_empty() {
        return 0.0;
    }
    let rank = (share * sorted.len() as f64).ceil().max(1.0) as usize;
    sorted[rank.min(sorted.len()) - 1]
}

/// The middle value; 0 when there are none.
pub fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    percentile(&sorted(values), 0.5)
}

/// The values in ascending order.
pub fn sorted(values: impl IntoIterator<Item = f64>) -> Vec<f64> {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_by(f64::total_cmp);
    values
}

impl LatencyMs {
    /// Over these.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Self {
        let sorted = sorted(values);
        Self {
            p50: percentile(&sorted, 0.50),
            p95: percentile(&sorted, 0.95),
            p99: percentile(&sorted, 0.99),
            max: percentile(&sorted, 1.0),
        }
    }
}

impl LockWaitMs {
    /// Over these.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Self {
        let sorted = sorted(values);
        Self {
            p50: percentile(&sorted, 0.50),
            p99: percentile(&sorted, 0.99),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_values_that_were_measured() {
        let latency = LatencyMs::of((1..=100).rev().map(f64::from));
        assert_eq!(
            (latency.p50, latency.p95, latency.p99, latency.max),
            (50.0, 95.0, 99.0, 100.0)
        );
        assert_eq!(LatencyMs::of([7.0]).p99, 7.0);
        assert_eq!(LatencyMs::of([]), LatencyMs::default());
        assert_eq!(median([3.0, 1.0, 2.0]), 2.0);
    }
}
