//! A PostgreSQL server for tests.
//!
//! Preferred is one server for a whole run, named by `TEST_DATABASE_URL`. Without it a test process starts its
//! own from `/usr/lib/postgresql/*/bin`, without fsync, in a temporary directory: two or three seconds, shared
//! by the tests of the process that run at the same time, gone with the last of them.
//!
//! Two things need care. PostgreSQL refuses to run as root, so as root we become the user `postgres`. And a
//! server must never outlive its test, not even one that is killed: the server's parent is a shell that waits
//! on a pipe from us, and stops the server when the pipe closes, which the kernel does for the dead too.

use std::{
    os::unix::{fs::MetadataExt as _, process::CommandExt as _},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{Arc, Weak},
    time::Duration,
};

use anyhow::{Context as _, bail, ensure};
use sqlx::{AssertSqlSafe, Connection as _, PgConnection, SqlSafeStr as _};
use tokio::sync::Mutex;

use crate::{eventually, free_ports};

/// Every service instance may open a dozen connections, and a test may run a whole suite.
const CONNECTIONS_MAX: u32 = 400;
const START_WITHIN: Duration = Duration::from_secs(60);

/// A name on a server under which a test makes its databases.
#[derive(Debug)]
pub(crate) struct Database {
    url: String,
    name: String,
    server: Server,
}

#[derive(Debug)]
enum Server {
    /// Somebody else's: we clean up behind us.
    Given { admin_url: String },
    /// Ours: it goes as a whole.
    Own { _server: Arc<OwnServer> },
}

impl Database {
    pub(crate) async fn fresh() -> anyhow::Result<Self> {
        let name = format!("test_{}", uuid::Uuid::new_v4().simple());
        let (server_url, server) = match std::env::var("TEST_DATABASE_URL") {
            Ok(url) => {
                let server_url = server_of(&url).to_owned();
                let admin_url = format!("{server_url}/postgres");
                let connection = PgConnection::connect(&admin_url).await;
                connection
                    .with_context(|| format!("TEST_DATABASE_URL is {url}"))?
                    .close()
                    .await?;
                (server_url, Server::Given { admin_url })
            }
            Err(_) => {
                let server = OwnServer::shared().await?;
                (server.url.clone(), Server::Own { _server: server })
            }
        };
        Ok(Self {
            url: format!("{server_url}/{name}"),
            name,
            server,
        })
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }
}

/// `postgres://user@host:port/whatever?x` → `postgres://user@host:port`.
fn server_of(url: &str) -> &str {
    let authority_at = url.find("://").map_or(0, |at| at + 3);
    let end = url[authority_at..]
        .find(['/', '?'])
        .map_or(url.len(), |at| authority_at + at);
    &url[..end]
}

impl Drop for Database {
    fn drop(&mut self) {
        let Server::Given { admin_url } = &self.server else {
            return;
        };
        let (admin_url, name) = (admin_url.clone(), self.name.clone());
        // A thread with a runtime of its own: drop may run inside a runtime, or after its end.
        let cleaned = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()?;
            runtime.block_on(drop_databases(&admin_url, &name))
        })
        .join();
        if let Ok(Err(error)) = cleaned {
            eprintln!("databases {}* stay behind: {error:#}", self.name);
        }
    }
}

/// Drops the database `name`, and those of the services beside it (`name_…`).
async fn drop_databases(admin_url: &str, name: &str) -> anyhow::Result<()> {
    let mut admin = PgConnection::connect(admin_url).await?;
    let names: Vec<String> =
        sqlx::query_scalar("select datname from pg_database where starts_with(datname, $1)")
            .bind(name)
            .fetch_all(&mut admin)
            .await?;
    for name in names {
        let statement = format!("drop database if exists \"{name}\" with (force)");
        sqlx::query(AssertSqlSafe(statement).into_sql_str())
            .execute(&mut admin)
            .await?;
    }
    Ok(admin.close().await?)
}

/// A server that lives as long as somebody holds it.
#[derive(Debug)]
struct OwnServer {
    url: String,
    watcher: Child,
    _dir: tempfile::TempDir,
}

impl OwnServer {
    /// The server of this process, started by the first test that asks.
    async fn shared() -> anyhow::Result<Arc<Self>> {
        static SHARED: Mutex<Weak<OwnServer>> = Mutex::const_new(Weak::new());
        let mut shared = SHARED.lock().await;
        if let Some(server) = shared.upgrade() {
            return Ok(server);
        }
        let server = Arc::new(Self::start().await?);
        *shared = Arc::downgrade(&server);
        Ok(server)
    }

    async fn start() -> anyhow::Result<Self> {
        let bin = newest_bin()?;
        let user = server_user()?;
        let dir = tempfile::Builder::new().prefix("last-ticket-pg-").tempdir()?;
        if let Some(user) = user {
            std::os::unix::fs::chown(dir.path(), Some(user.uid), Some(user.gid))?;
        }
        let data = dir.path().join("data");
        let mut initdb = Command::new(bin.join("initdb"));
        initdb.args([
            "--auth=trust",
            "--username=postgres",
            "--encoding=UTF8",
            "--no-locale",
            "--no-sync",
        ]);
        initdb.arg("--pgdata").arg(&data);
        let made = as_user(&mut initdb, user)
            .current_dir("/")
            .output()
            .context("cannot run initdb")?;
        ensure!(
            made.status.success(),
            "initdb failed: {}",
            String::from_utf8_lossy(&made.stderr)
        );

        let port = free_ports(1)[0];
        let watcher = spawn_watched(&bin, &data, dir.path(), port, user)?;
        // From here on the server ends with `Self`, also when it does not come up.
        let server = Self {
            url: format!("postgres://postgres@127.0.0.1:{port}"),
            watcher,
            _dir: dir,
        };
        let admin_url = format!("{}/postgres", server.url);
        eventually(START_WITHIN, "PostgreSQL to take connections", async || {
            PgConnection::connect(&admin_url).await.ok()?.close().await.ok()
        })
        .await;
        Ok(server)
    }
}

impl Drop for OwnServer {
    fn drop(&mut self) {
        drop(self.watcher.stdin.take()); // the shell reads end of file, stops the server, and ends
        let _ = self.watcher.wait();
    }
}

/// Starts the server under a shell that stops it when our end of the pipe closes.
fn spawn_watched(
    bin: &Path,
    data: &Path,
    dir: &Path,
    port: u16,
    user: Option<User>,
) -> anyhow::Result<Child> {
    // SIGQUIT is PostgreSQL's immediate shutdown: nothing in there is worth keeping.
    const WATCH: &str = r#"dir="$1"; shift
        "$@" </dev/null & server=$!
        read -r _
        kill -QUIT "$server"; wait "$server"; rm -rf "$dir""#;
    let mut watcher = Command::new("sh");
    watcher
        .args(["-c", WATCH, "sh"])
        .arg(dir)
        .arg(bin.join("postgres"));
    watcher
        .arg("-D")
        .arg(data)
        .arg("-p")
        .arg(port.to_string())
        .arg("-k")
        .arg(dir);
    let settings = [
        "listen_addresses=127.0.0.1".to_owned(),
        format!("max_connections={CONNECTIONS_MAX}"),
        "shared_buffers=64MB".to_owned(),
        "fsync=off".to_owned(),
        "synchronous_commit=off".to_owned(),
        "full_page_writes=off".to_owned(),
    ];
    for setting in settings {
        watcher.arg("-c").arg(setting);
    }
    let log = std::fs::File::create(dir.join("log"))?;
    watcher
        .stdin(Stdio::piped())
        .stdout(log.try_clone()?)
        .stderr(log)
        .current_dir("/");
    as_user(&mut watcher, user)
        .spawn()
        .context("cannot start PostgreSQL")
}

/// Where the newest installed server is.
fn newest_bin() -> anyhow::Result<PathBuf> {
    let installed = std::fs::read_dir("/usr/lib/postgresql").context("/usr/lib/postgresql is not there")?;
    let mut versions: Vec<u32> = installed
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect();
    versions.sort_unstable();
    let bin = |version| PathBuf::from(format!("/usr/lib/postgresql/{version}/bin"));
    let newest = versions
        .into_iter()
        .rev()
        .map(bin)
        .find(|bin| bin.join("initdb").exists());
    newest.context("no server below /usr/lib/postgresql")
}

#[derive(Debug, Clone, Copy)]
struct User {
    uid: u32,
    gid: u32,
}

/// Whom the server runs as: us, or the user `postgres` when we are root.
fn server_user() -> anyhow::Result<Option<User>> {
    if std::fs::metadata("/proc/self")?.uid() != 0 {
        return Ok(None);
    }
    let passwd = std::fs::read_to_string("/etc/passwd")?;
    let Some(line) = passwd.lines().find(|line| line.starts_with("postgres:")) else {
        bail!("PostgreSQL does not run as root, and there is no user postgres");
    };
    let mut fields = line.split(':').skip(2).map(str::parse);
    match (fields.next(), fields.next()) {
        (Some(Ok(uid)), Some(Ok(gid))) => Ok(Some(User { uid, gid })),
        _ => bail!("cannot read the line of postgres in /etc/passwd"),
    }
}

fn as_user(command: &mut Command, user: Option<User>) -> &mut Command {
    match user {
        Some(user) => command.uid(user.uid).gid(user.gid),
        None => command,
    }
}
