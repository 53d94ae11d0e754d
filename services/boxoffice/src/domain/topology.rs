//! Who is there and how they are: the body of `GET /v1/topology`.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// How an instance is, as far as the front door knows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Health {
    /// It says that it is ready; a new one is given the benefit of the doubt.
    #[default]
    Up,
    /// It answers, and says that it is not ready.
    Unready,
    /// It does not take connections.
    Down,
}

/// One instance of a service.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub(crate) struct InstanceView {
    /// Its base URL.
    pub(crate) url: String,
    /// How it is.
    pub(crate) health: Health,
    /// Why it is not up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) detail: Option<String>,
}

/// A service and its instances.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub(crate) struct ServiceView {
    /// Which.
    pub(crate) name: String,
    /// One by one.
    pub(crate) instances: Vec<InstanceView>,
}

/// What a lock node says of itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub(crate) struct NodeStatus {
    /// Its id.
    pub(crate) id: u64,
    /// `leader`, `follower`, `candidate`, `learner` or `stopped`.
    pub(crate) role: String,
    /// The Raft term it is in.
    pub(crate) term: u64,
    /// Who leads, as far as it knows.
    #[serde(default)]
    pub(crate) leader: Option<u64>,
    /// Last index in its log.
    #[serde(default)]
    pub(crate) last_log_index: Option<u64>,
    /// Last index that its state contains.
    #[serde(default)]
    pub(crate) applied_index: Option<u64>,
    /// Sessions alive.
    #[serde(default)]
    pub(crate) sessions: u64,
    /// Names held or waited for.
    #[serde(default)]
    pub(crate) locks: u64,
    /// Acquisitions that wait.
    #[serde(default)]
    pub(crate) waiters: u64,
}

/// One lock node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub(crate) struct NodeView {
    /// Where it is and how it is.
    #[serde(flatten)]
    pub(crate) instance: InstanceView,
    /// What it says of itself, when it answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) status: Option<NodeStatus>,
}

/// The lock cluster.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub(crate) struct ClusterView {
    /// The leader that a node with the highest term names.
    pub(crate) leader: Option<u64>,
    /// The highest term that a node is in.
    pub(crate) term: u64,
    /// One by one.
    pub(crate) nodes: Vec<NodeView>,
}

impl ClusterView {
    /// Puts the nodes' own views together. They may disagree during an election; the highest term is right.
    pub(crate) fn of(nodes: Vec<NodeView>) -> Self {
        let statuses = || nodes.iter().filter_map(|node| node.status.as_ref());
        let term = statuses().map(|status| status.term).max().unwrap_or(0);
        // Who says of itself that it leads knows best.
        let leads = |status: &NodeStatus| (status.role == "leader").then_some(status.id);
        let newest = || statuses().filter(|status| status.term == term);
        let leader = newest()
            .find_map(leads)
            .or_else(|| newest().find_map(|status| status.leader));
        Self { leader, term, nodes }
    }
}

/// Everybody.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub(crate) struct Topology {
    /// The services.
    pub(crate) services: Vec<ServiceView>,
    /// The lock cluster.
    pub(crate) cluster: ClusterView,
}

impl Topology {
    /// What is missing for a purchase to work; empty when nothing is.
    pub(crate) fn missing(&self) -> Vec<String> {
        let nobody_up = |service: &&ServiceView| !service.instances.iter().any(|i| i.health == Health::Up);
        let mut missing: Vec<_> = self
            .services
            .iter()
            .filter(nobody_up)
            .map(|service| format!("no instance of {} is ready", service.name))
            .collect();
        if self.cluster.leader.is_none() {
            let why = self
                .cluster
                .nodes
                .iter()
                .find_map(|node| node.instance.detail.as_deref());
            missing.push(match why {
                Some(why) => format!("the lock cluster shows no leader ({why})"),
                None => "the lock cluster has no leader".to_owned(),
            });
        }
        missing
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(id: u64, role: &str, term: u64, leader: Option<u64>) -> NodeView {
        let url = format!("http://127.0.0.1:850{id}");
        let status = NodeStatus {
            id,
            role: role.into(),
            term,
            leader,
            last_log_index: None,
            applied_index: None,
            sessions: 0,
            locks: 0,
            waiters: 0,
        };
        NodeView {
            instance: InstanceView {
                url,
                health: Health::Up,
                detail: None,
            },
            status: Some(status),
        }
    }

    #[test]
    fn the_highest_term_says_who_leads() {
        let deposed = node(1, "leader", 3, Some(1));
        let cluster = ClusterView::of(vec![
            deposed,
            node(2, "leader", 4, Some(2)),
            node(3, "follower", 4, Some(2)),
        ]);
        assert_eq!((cluster.leader, cluster.term), (Some(2), 4));
        let electing = ClusterView::of(vec![
            node(1, "follower", 4, Some(2)),
            node(3, "candidate", 5, None),
        ]);
        assert_eq!((electing.leader, electing.term), (None, 5));
    }

    #[test]
    fn a_service_with_one_instance_left_still_sells() {
        let instance = |health| InstanceView {
            url: "u".into(),
            health,
            detail: None,
        };
        let service = |healths: &[Health]| ServiceView {
            name: "inventory".into(),
            instances: healths.iter().copied().map(instance).collect(),
        };
        let mut topology = Topology {
            services: vec![service(&[Health::Down, Health::Up])],
            cluster: ClusterView {
                leader: Some(1),
                ..ClusterView::default()
            },
        };
        assert!(topology.missing().is_empty());
        topology.services = vec![service(&[Health::Down, Health::Unready])];
        topology.cluster.leader = None;
        assert_eq!(topology.missing().len(), 2);
    }
}
