//! The suite inside the test's process.

use last_ticket::{Suite, SuiteConfig};
use testkit::TestDb;
use ticketing_types::Strategy;

use super::{Door, free_ports};

/// A suite with fresh books. End it with [`AllInOne::stop`], so that the test also sees it stop well.
pub(crate) struct AllInOne {
    suite: Suite,
    pub(crate) door: Door,
    _dir: tempfile::TempDir,
    _db: Option<TestDb>,
}

impl AllInOne {
    pub(crate) async fn on_sqlite() -> Self {
        Self::start(None).await
    }

    /// `None`, said loudly, where no PostgreSQL can be had; under `CI` that fails the test.
    pub(crate) async fn on_postgres() -> Option<Self> {
        let db = testkit::postgres().await?;
        Some(Self::start(Some(db)).await)
    }

    async fn start(db: Option<TestDb>) -> Self {
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
        };
        let door = Door::at(&config.ports);
        let suite = Suite::start(config).await.expect("the suite starts");
        Self {
            suite,
            door,
            _dir: dir,
            _db: db,
        }
    }

    pub(crate) async fn stop(self) {
        self.suite.stop().await.expect("the suite stops well");
    }
}
