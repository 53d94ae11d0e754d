//! What Prometheus reads of a node, beside the HTTP series that every service has.
//!
//! All of it is computed when it is scraped, from the status that `/v1/cluster` shows and from what the log counts
//! anyway: nothing is counted twice, and nothing runs when nobody looks.

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use service_kit::Metrics;

use crate::service::{LockService, NodeStatus, Role};

/// Adds a node's series.
pub(crate) fn register(metrics: &Metrics, service: &LockService) {
    let node = NodeCollector {
        service: service.clone(),
    };
    metrics.register(|registry| registry.register_collector(Box::new(node)));
}

struct NodeCollector {
    service: LockService,
}

impl std::fmt::Debug for NodeCollector {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NodeCollector").finish_non_exhaustive()
    }
}

impl Collector for NodeCollector {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), std::fmt::Error> {
        for (name, help, value) in gauges(&self.service.status()) {
            let gauge = ConstGauge::new(value);
            let metric = encoder.encode_descriptor(name, help, None, gauge.metric_type())?;
            gauge.encode(metric)?;
        }
        let syncs = ConstCounter::new(self.service.log_syncs());
        let help = "Calls of fdatasync that made the log durable";
        let metric = encoder.encode_descriptor("lock_node_log_flushes", help, None, syncs.metric_type())?;
        syncs.encode(metric)?;
        Ok(())
    }
}

fn gauges(status: &NodeStatus) -> [(&'static str, &'static str, i64); 13] {
    let number = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
    let count = |value: usize| i64::try_from(value).unwrap_or(i64::MAX);
    // An index of an empty log is shown as 0: real ones begin at 1.
    let index = |index: Option<u64>| number(index.unwrap_or(0));
    let leads = i64::from(status.role == Role::Leader);
    [
        ("raft_term", "The Raft term this node is in", number(status.term)),
        ("raft_is_leader", "1 if this node leads", leads),
        (
            "raft_has_leader",
            "1 if this node knows a leader",
            i64::from(status.leader.is_some()),
        ),
        (
            "raft_last_log_index",
            "Index of the last entry in the log",
            index(status.last_log),
        ),
        (
            "raft_committed_index",
            "Index up to which entries are committed",
            index(status.committed),
        ),
        (
            "raft_applied_index",
            "Index of the last entry applied",
            index(status.applied),
        ),
        (
            "raft_snapshot_index",
            "Index of the last entry in the snapshot",
            index(status.snapshot),
        ),
        ("lock_sessions", "Open sessions", count(status.counts.sessions)),
        (
            "lock_names",
            "Names held or waited for",
            count(status.counts.locks),
        ),
        (
            "lock_holders",
            "Acquisitions that hold",
            count(status.counts.holders),
        ),
        (
            "lock_waiters",
            "Acquisitions that wait",
            count(status.counts.waiters),
        ),
        (
            "lock_requests_waiting",
            "Requests of this node that wait for a grant",
            count(status.waiting_here),
        ),
        (
            "lock_commands_queued",
            "Commands of this node that wait to be proposed",
            count(status.queued_here),
        ),
    ]
}
