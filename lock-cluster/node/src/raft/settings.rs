//! The library's settings, each with its reason. The defaults are made for an idle machine and a synchronous
//! disk; we have neither.

use openraft::{Config, SnapshotPolicy};

/// Between heartbeats. Also the library's deadline for one heartbeat round trip.
pub(crate) const HEARTBEAT_MS: u64 = 100;
/// How an election's delay adds up in the library: a follower first lets the leader's lease run out, which equals
/// [`ELECTION_MS_MAX`], and *then* waits for a random time between these two before it asks for votes. So a leader
/// that was killed is missed after 0.9 to 1.2 seconds, by the first of two followers after one second on average;
/// and an election needs one follower that heard nothing for 0.9 seconds (nine heartbeats) together with a majority
/// that heard nothing for 0.6, or the pre-vote fails. Three nodes and a whole suite share two loaded cores here: the
/// library's 150–300 ms elect a new leader whenever the scheduler is late.
///
/// The span between the two is what keeps candidates apart: those that begin within one vote's round trip and fsync
/// of each other split the votes, and begin again.
pub(crate) const ELECTION_MS_MIN: u64 = 300;
/// See [`ELECTION_MS_MIN`].
pub(crate) const ELECTION_MS_MAX: u64 = 600;
/// Entries since the last snapshot before the next one is taken.
pub(crate) const SNAPSHOT_EVERY: u64 = 5_000;
/// Entries kept behind a snapshot, so that a follower that blinked is caught up from the log.
const LOG_KEPT: u64 = 1_000;
/// How long one snapshot transfer may take as a whole. Progress is watched much closer in `peer/`.
const SNAPSHOT_TRANSFER_MS: u64 = 60_000;

/// The settings for one node. `snapshot_every` is [`SNAPSHOT_EVERY`] but in tests.
pub(crate) fn settings(snapshot_every: u64) -> Config {
    let config = Config {
        cluster_name: "lock".to_owned(),
        heartbeat_interval: HEARTBEAT_MS,
        election_timeout_min: ELECTION_MS_MIN,
        election_timeout_max: ELECTION_MS_MAX,
        // A node that was cut off must not come back with a higher term and unseat a healthy leader. Only the
        // setting is not enough: the library's default network *grants* every pre-vote. `peer/` implements it.
        enable_pre_vote: Some(true),
        // Off, or it is unsafe with a log that flushes asynchronously: a leader that crashes before its own
        // fsync would come back as leader of the same term and write a different entry under a log id that its
        // followers already hold. Pinned by a test below.
        enable_leader_restore: Some(false),
        snapshot_policy: SnapshotPolicy::LogsSinceLast(snapshot_every),
        max_in_snapshot_log_to_keep: LOG_KEPT.min(snapshot_every),
        install_snapshot_timeout: SNAPSHOT_TRANSFER_MS,
        max_payload_entries: 300,
        // Our own batcher has gathered what there is to gather; waiting again would only add latency.
        api_batch_linger_ms: 0,
        ..Config::default()
    };
    config
        .validate()
        .expect("the settings above satisfy the library's rules")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_restarted_leader_must_be_elected_again() {
        assert_eq!(
            settings(SNAPSHOT_EVERY).enable_leader_restore,
            Some(false),
            "unsafe with an asynchronous log, see settings.rs"
        );
    }

    #[test]
    fn a_node_that_was_away_asks_before_it_raises_the_term() {
        assert_eq!(settings(SNAPSHOT_EVERY).enable_pre_vote, Some(true));
    }

    #[test]
    fn a_follower_tolerates_a_missed_heartbeat() {
        let settings = settings(SNAPSHOT_EVERY);
        assert!(settings.election_timeout_min > 2 * settings.heartbeat_interval);
    }
}
