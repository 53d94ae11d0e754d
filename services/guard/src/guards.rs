//! [`Guards`]: all strategies of one process, built once.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use lock_client::ClientConfig;
use ticketing_types::Strategy;

use crate::strategy::cluster::Cluster;
use crate::strategy::{
    Guard, atomic::Atomic, none::Unguarded, optimistic::Optimistic, process::Process, raft::Raft,
    raft_unfenced::RaftUnfenced,
};
use crate::{Entry, GuardError};

/// Longest wait that is ever passed on to a lock; the cluster takes no longer one (DESIGN §5.6).
const WAIT_MAX: Duration = Duration::from_secs(60);

/// All strategies of one process. Cheap to clone; clones share the session and the mutexes.
///
/// The mutexes of `process` belong to this value and not to a `static`: two instances of a service are two
/// processes for each other, also when the suite runs them inside one.
#[derive(Clone)]
pub struct Guards {
    cluster: Arc<Cluster>,
    by_strategy: Arc<BTreeMap<Strategy, Box<dyn Guard>>>,
}

impl std::fmt::Debug for Guards {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.by_strategy.keys()).finish()
    }
}

impl Guards {
    /// Builds every strategy of this version, for the lock cluster at `cluster`. Nothing is connected yet, so that a
    /// service can start before its lock cluster does. Without any URL, the strategies that need the cluster are
    /// unavailable, and nothing else changes.
    pub fn new(cluster: ClientConfig) -> Self {
        let cluster = Arc::new(Cluster::new(cluster));
        let by_strategy: [(Strategy, Box<dyn Guard>); 6] = [
            (Strategy::None, Box::new(Unguarded)),
            (Strategy::Process, Box::new(Process::default())),
            (Strategy::Raft, Box::new(Raft::new(cluster.clone()))),
            (
                Strategy::RaftUnfenced,
                Box::new(RaftUnfenced::new(cluster.clone())),
            ),
            (Strategy::Atomic, Box::new(Atomic)),
            (Strategy::Optimistic, Box::new(Optimistic)),
        ];
        Self {
            cluster,
            by_strategy: Arc::new(by_strategy.into()),
        }
    }

    /// Enters the section that `names` guard, all of them together, waiting at most `wait`.
    ///
    /// Hold no database connection while this is awaited. Dropped, it leaves no holder and no waiter behind.
    ///
    /// # Errors
    /// Nothing was entered; see [`GuardError`].
    pub async fn enter(
        &self,
        strategy: Strategy,
        names: &[String],
        wait: Duration,
    ) -> Result<Entry, GuardError> {
        debug_assert!(!names.is_empty(), "a section is guarded by a name");
        let Some(guard) = self.by_strategy.get(&strategy) else {
            return Err(GuardError::StrategyUnavailable {
                strategy,
                reason: "it is not built into this version".to_owned(),
            });
        };
        let asked = Instant::now();
        let (rule, held) = guard.enter(names, wait.min(WAIT_MAX)).await?;
        let waited = asked.elapsed();
        tracing::debug!(%strategy, lock.name = names.join(","), fencing_token = rule.fencing_token(), ?waited, "entered");
        Ok(Entry::new(rule, waited, held))
    }

    /// The strategies that are built in.
    pub fn built_in(&self) -> Vec<Strategy> {
        self.by_strategy.keys().copied().collect()
    }

    /// Ends the session with the lock cluster, so that nobody has to wait for its TTL. For a shutdown.
    pub async fn close(&self) {
        self.cluster.close().await;
    }
}
