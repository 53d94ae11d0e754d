//! Why a section was not entered. In every case nothing has happened, and the same request may come again.

use std::time::Duration;

use ticketing_types::Strategy;

/// Why a section was not entered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GuardError {
    /// Somebody else was inside for the whole wait; the place in the queue is given up.
    #[error("the lock was not free within the wait")]
    WaitTimeout,
    /// The lock cluster cannot be reached or has no leader.
    #[error("the lock cluster is not available: {detail}")]
    LockUnavailable {
        /// What went wrong, for the log. Not for an answer's body.
        detail: String,
    },
    /// The lock cluster wants a token of its clients, and this service has none or a wrong one.
    #[error("the lock cluster refuses this service: LOCK_CLIENT_TOKEN is missing or is not the cluster's")]
    LockRefused,
    /// The strategy cannot be used here: not built in, or what it needs is not configured.
    #[error("the strategy {strategy} is not available: {reason}")]
    StrategyUnavailable {
        /// The one that was asked for.
        strategy: Strategy,
        /// Why, in words meant for the person who asked for it.
        reason: String,
    },
}

impl GuardError {
    /// Every slug, for whoever has to promise them (an API's description).
    pub const SLUGS: [&'static str; 3] = ["lock-wait-timeout", "lock-unavailable", "strategy-unavailable"];

    /// The last segment of the problem's type. The status is 503 for all of them.
    pub fn slug(&self) -> &'static str {
        match self {
            Self::WaitTimeout => "lock-wait-timeout",
            Self::LockUnavailable { .. } | Self::LockRefused => "lock-unavailable",
            Self::StrategyUnavailable { .. } => "strategy-unavailable",
        }
    }

    /// What to tell the client, without the causes that belong into the log.
    pub fn detail(&self) -> String {
        match self {
            Self::WaitTimeout => {
                "somebody else held the lock for the whole wait; nothing was done".to_owned()
            }
            Self::LockUnavailable { .. } => "the lock cluster did not answer; nothing was done".to_owned(),
            Self::LockRefused => {
                "the lock cluster does not take this service for one of its clients; nothing was done"
                    .to_owned()
            }
            Self::StrategyUnavailable { .. } => self.to_string(),
        }
    }

    /// Tells the people who run the service: contention is everyday, a cluster that is away is not, and a refused
    /// token does not pass by itself.
    pub fn log(&self) {
        match self {
            Self::WaitTimeout | Self::StrategyUnavailable { .. } => {
                tracing::debug!(error = %self, "a section was not entered");
            }
            Self::LockUnavailable { .. } => tracing::warn!(error = %self, "a section could not be entered"),
            Self::LockRefused => tracing::error!(error = %self, "no section can be entered"),
        }
    }

    /// When it is worth coming back (`Retry-After`).
    pub fn retry_after(&self) -> Duration {
        match self {
            Self::WaitTimeout | Self::LockUnavailable { .. } => Duration::from_secs(1),
            // Configuration does not change by itself within seconds.
            Self::LockRefused | Self::StrategyUnavailable { .. } => Duration::from_secs(60),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_slug_is_listed() {
        let unavailable = |strategy| GuardError::StrategyUnavailable {
            strategy,
            reason: String::new(),
        };
        let away = GuardError::LockUnavailable {
            detail: String::new(),
        };
        for error in [
            GuardError::WaitTimeout,
            away,
            GuardError::LockRefused,
            unavailable(Strategy::Row),
        ] {
            assert!(GuardError::SLUGS.contains(&error.slug()), "{error}");
        }
    }
}
