//! From many numbers to few: percentiles within a round, medians and ratios over rounds. Pure.

use serde::Serialize;

/// The value at or below which a share of the others lies (nearest rank); 0 if there are none.
///
/// `sorted` must be in ascending order, `share` between 0 and 1.
pub(crate) fn percentile(sorted: &[f64], share: f64) -> f64 {
    debug_assert!(sorted.is_sorted(), "a percentile needs sorted values");
    debug_assert!((0.0..=1.0).contains(&share), "a share is between 0 and 1");
    // The rank counts from 1, and the smallest value is the 0th percentile as well.
    let rank = (share * sorted.len() as f64).ceil() as usize;
    sorted.get(rank.saturating_sub(1)).copied().unwrap_or_default()
}

/// The middle one, or the mean of the two in the middle; 0 if there are none.
pub(crate) fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let half = sorted.len() / 2;
    match sorted.len() {
        0 => 0.0,
        n if n % 2 == 1 => sorted[half],
        _ => f64::midpoint(sorted[half - 1], sorted[half]),
    }
}

/// How a figure lay over the rounds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct Spread {
    pub(crate) median: f64,
    pub(crate) min: f64,
    pub(crate) max: f64,
}

impl Spread {
    /// Over some values; `None` if there are none.
    pub(crate) fn of(values: &[f64]) -> Option<Self> {
        let min = values.iter().copied().reduce(f64::min)?;
        let max = values.iter().copied().reduce(f64::max)?;
        Some(Self {
            median: median(values),
            min,
            max,
        })
    }

    /// Of the ratios of two figures that were measured in the same rounds. A round in which the other got nothing
    /// done has no ratio.
    pub(crate) fn of_ratios(ours: &[f64], others: &[f64]) -> Option<Self> {
        let ratios: Vec<f64> = ours
            .iter()
            .zip(others)
            .filter(|(_, other)| **other > 0.0)
            .map(|(own, other)| own / other)
            .collect();
        Self::of(&ratios)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_is_one_of_the_values() {
        let values: Vec<f64> = (1..=200).map(f64::from).collect();
        assert_eq!(percentile(&values, 0.5), 100.0);
        assert_eq!(percentile(&values, 0.99), 198.0);
        assert_eq!(percentile(&values, 1.0), 200.0);
        assert_eq!(percentile(&values, 0.0), 1.0);
        assert_eq!(percentile(&[4.0], 0.99), 4.0);
        assert_eq!(percentile(&[], 0.99), 0.0);
    }

    #[test]
    fn a_median_does_not_depend_on_the_order() {
        assert_eq!(median(&[9.0, 1.0, 5.0]), 5.0);
        assert_eq!(median(&[9.0, 1.0, 5.0, 6.0]), 5.5);
        assert_eq!(median(&[]), 0.0);
    }

    #[test]
    fn ratios_are_taken_round_by_round() {
        // The quotient of the medians would be 2: a noisy round hits both sides and must cancel out.
        let spread = Spread::of_ratios(&[40.0, 8.0, 12.0], &[10.0, 4.0, 6.0]).unwrap();
        assert_eq!(
            spread,
            Spread {
                median: 2.0,
                min: 2.0,
                max: 4.0
            }
        );
        assert_eq!(Spread::of_ratios(&[1.0], &[0.0]), None);
    }
}
