//! `raft`: a lock of our cluster, and its fencing token checked by the row that is written.

use std::sync::Arc;
use std::time::Duration;

use ticketing_types::Strategy;

use super::cluster::Cluster;
use super::{Entering, Guard};
use crate::WriteRule;
use crate::entry::Held;

pub(crate) struct Raft {
    cluster: Arc<Cluster>,
}

impl Raft {
    pub(crate) fn new(cluster: Arc<Cluster>) -> Self {
        Self { cluster }
    }
}

impl Guard for Raft {
    fn enter<'a>(&'a self, names: &'a [String], wait: Duration) -> Entering<'a> {
        Box::pin(async move {
            let grant = self.cluster.acquire(Strategy::Raft, names, wait).await?;
            Ok((WriteRule::Fenced(grant.fencing_token()), Held::Grant(grant)))
        })
    }
}
