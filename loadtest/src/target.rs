//! What is tested: a suite that runs already, or one started for the run.

use anyhow::Context as _;
use last_ticket::{Suite, SuiteConfig};

use crate::cli::CompareArgs;

/// A front door to send buyers to.
pub struct Target {
    /// Its base URL.
    pub base: String,
    /// In words, for the report.
    pub description: String,
    own: Option<(Suite, tempfile::TempDir)>,
}

impl Target {
    /// Takes the suite at `--target`, or starts one on free ports with its files in a temporary folder.
    #[allow(clippy::print_stderr)]
    pub async fn open(args: &CompareArgs) -> anyhow::Result<Self> {
        if let Some(target) = &args.target {
            let base = target.trim_end_matches('/').to_owned();
            return Ok(Self {
                description: format!("the suite at {base}"),
                base,
                own: None,
            });
        }
        let files = tempfile::tempdir().context("cannot make a folder for the suite's files")?;
        let database = if args.database_url.is_some() {
            "PostgreSQL"
        } else {
            "SQLite"
        };
        eprintln!(
            "no --target: starting a suite for this run ({database}, three lock nodes, two of each service)"
        );
        let mut config = SuiteConfig::on_free_ports(files.path())?;
        config.database_url.clone_from(&args.database_url);
        let suite = Suite::start(config).await.context("cannot start the suite")?;
        let base = suite.front_door();
        eprintln!("ready {base}");
        Ok(Self {
            description: format!("a suite of its own in this process, {database}"),
            base,
            own: Some((suite, files)),
        })
    }

    /// Stops the suite if it was started here.
    #[allow(clippy::print_stderr)]
    pub async fn close(self) -> anyhow::Result<()> {
        if let Some((suite, _files)) = self.own {
            suite.stop().await?;
            eprintln!("suite stopped");
        }
        Ok(())
    }
}
