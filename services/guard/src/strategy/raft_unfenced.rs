//! `raft-unfenced`: the same lock, and a row that believes whoever writes. Right until a holder is stopped
//! between its read and its write for longer than its session lives; the lab of the paused holder shows it.

use std::sync::Arc;
use std::time::Duration;

use ticketing_types::Strategy;

use super::cluster::Cluster;
use super::{Entering, Guard};
use crate::WriteRule;
use crate::entry::Held;

pub(crate) struct RaftUnfenced {
    cluster: Arc<Cluster>,
}

impl RaftUnfenced {
    pub(crate) fn new(cluster: Arc<Cluster>) -> Self {
        Self { cluster }
    }
}

impl Guard for RaftUnfenced {
    fn enter<'a>(&'a self, names: &'a [String], wait: Duration) -> Entering<'a> {
        Box::pin(async move {
            let grant = self.cluster.acquire(Strategy::RaftUnfenced, names, wait).await?;
            Ok((WriteRule::Plain, Held::Grant(grant)))
        })
    }
}
