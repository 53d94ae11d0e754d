//! The nodes, and which of them has been proven to lead.
//!
//! Two kinds of knowledge about the leader are kept apart. A node that has *answered* a command leads, and is
//! asked first from then on. The node a 421 points to is only the next one to try: a lagging follower still
//! names the leader of yesterday, and must not pull a thousand waiters off the one of today.

use std::sync::Arc;

use lock_pipe::Problem;
use tokio::sync::watch;

use crate::error::LockError;

/// A node, by its base URL.
pub(crate) type NodeUrl = Arc<str>;

/// Who can be asked, and who should be.
#[derive(Debug)]
pub(crate) struct Leaders {
    nodes: Vec<NodeUrl>,
    proven: watch::Sender<Option<NodeUrl>>,
}

impl Leaders {
    pub(crate) fn new(urls: &[String]) -> Result<Self, LockError> {
        let nodes: Vec<NodeUrl> = urls.iter().map(|url| url.trim_end_matches('/').into()).collect();
        if nodes.is_empty() {
            return Err(LockError::invalid(
                "no-nodes",
                "a lock client needs the URL of at least one node",
            ));
        }
        if let Some(bad) = nodes.iter().find(|url| reqwest::Url::parse(url).is_err()) {
            return Err(LockError::invalid("bad-url", format!("{bad} is no URL")));
        }
        Ok(Self {
            nodes,
            proven: watch::Sender::new(None),
        })
    }

    pub(crate) fn nodes(&self) -> &[NodeUrl] {
        &self.nodes
    }

    /// The proven leader, or any node: a random one, so that a thousand clients do not all begin with the first.
    pub(crate) fn first(&self) -> NodeUrl {
        let proven = self.proven.borrow().clone();
        proven.unwrap_or_else(|| self.nodes[rand::random_range(0..self.nodes.len())].clone())
    }

    /// All nodes, those behind `node` first; in a random place if it is none of them.
    pub(crate) fn all_after(&self, node: &str) -> impl Iterator<Item = NodeUrl> {
        let here = self.nodes.iter().position(|known| **known == *node);
        let first = here.map_or_else(|| rand::random_range(0..self.nodes.len()), |here| here + 1);
        let cycle = self.nodes.iter().cycle().skip(first);
        cycle.take(self.nodes.len()).cloned()
    }

    /// Takes an answer as proof that `node` leads, where it is one.
    pub(crate) fn learn_from<T>(&self, node: &NodeUrl, said: &Result<T, Problem>) {
        // A refused body or a missing token says nothing about who leads: any node answers those.
        let proves = said
            .as_ref()
            .err()
            .is_none_or(|problem| matches!(problem.status, 404 | 409 | 410 | 503));
        if proves {
            self.proven.send_if_modified(|leader| {
                let changed = leader.as_deref() != Some(node);
                if changed {
                    *leader = Some(node.clone());
                }
                changed
            });
        }
    }

    /// Completes when, from now on, somebody else than `node` is proven leader. Who was proven before does not
    /// count: this node is asked because that one did not answer.
    pub(crate) async fn other_than(&self, node: &str) -> NodeUrl {
        let mut leader = self.proven.subscribe();
        loop {
            if leader.changed().await.is_err() {
                // The sender lives as long as `self`.
                return std::future::pending().await;
            }
            match &*leader.borrow_and_update() {
                Some(other) if **other != *node => return other.clone(),
                _ => {}
            }
        }
    }
}
