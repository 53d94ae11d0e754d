//! The suite inside the test's process.

use std::path::Path;

use last_ticket::{Suite, SuiteConfig};
use service_kit::Secret;
use testkit::TestDb;
use ticketing_types::Strategy;

use super::{Door, free_ports};

/// A suite with fresh books. End it with [`AllInOne::stop`], so that the test also sees it stop well.
pub(crate) struct AllInOne {
    suite: Suite,
    pub(crate) door: Door,
    dir: tempfile::TempDir,
    _db: Option<TestDb>,
}

impl AllInOne {
    pub(crate) async fn on_sqlite() -> Self {
        Self::start(None, None).await
    }

    /// `None`, said loudly, where no PostgreSQL can be had; under `CI` that fails the test.
    pub(crate) async fn on_postgres() -> Option<Self> {
        let db = testkit::postgres().await?;
        Some(Self::start(Some(db), None).await)
    }

    /// One whose lock cluster wants this token of its clients.
    pub(crate) async fn guarded_by(lock_token: Secret) -> Self {
        Self::start(None, Some(lock_token)).await
    }

    async fn start(db: Option<TestDb>, lock_token: Option<Secret>) -> Self {
        // Silent unless asked: a burst logs more than anybody reads.
        if std::env::var_os("RUST_LOG").is_some() {
            service_kit::telemetry::init(service_kit::LogFormat::Human);
        }
        service_kit::limits::raise_nofile();
        let dir = tempfile::tempdir().unwrap();
        let config = SuiteConfig {
            data_dir: dir.path().to_owned(),
            ports: free_ports(),
            database_url: db.as_ref().map(|db| db.url().to_owned()),
            strategy: Strategy::Raft,
            faults: true,
            lock_token,
        };
        let door = Door::at(&config.ports);
        let suite = Suite::start(config).await.expect("the suite starts");
        Self {
            suite,
            door,
            dir,
            _db: db,
        }
    }

    /// Where its books are.
    pub(crate) fn data_dir(&self) -> &Path {
        self.dir.path()
    }

    pub(crate) async fn stop(self) {
        self.suite.stop().await.expect("the suite stops well");
    }
}
