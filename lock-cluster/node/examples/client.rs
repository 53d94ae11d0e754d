//! A program that does something only while it holds a lock.
//!
//! ```text
//! cargo run -p lock-node --example client -- http://127.0.0.1:8501 http://127.0.0.1:8502 http://127.0.0.1:8503
//! ```

use std::time::Duration;

use lock_client::{ClientConfig, LockClient, LockError};

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    println!("{}", run(std::env::args().skip(1)).await?);
    Ok(())
}

/// Returns how it went.
pub(crate) async fn run(urls: impl Iterator<Item = String>) -> anyhow::Result<&'static str> {
    let mut config = ClientConfig::new(urls);
    // How long the lock outlives this process. Short: others wait less after a crash. Long: it survives longer hiccups.
    config.ttl = Duration::from_secs(10);
    config.label = "the nightly report".to_owned();
    // One for the whole program; clones share its session.
    let client = LockClient::connect(config).await?;

    let grant = match client
        .acquire(&["report".to_owned()], Duration::from_secs(5))
        .await
    {
        Ok(grant) => grant,
        Err(LockError::WaitTimeout) => return Ok("somebody else is at it"),
        Err(error) => return Err(error.into()),
    };
    let outcome = tokio::select! {
        () = work(grant.fencing_token()) => "done",
        // Said before anybody else can be granted it. Stop, and touch nothing any more.
        () = grant.lost() => "the lock was lost on the way",
    };
    // Dropping it would release it as well, but not wait until that is done.
    if !grant.is_lost() {
        grant.release().await?;
    }
    client.close().await;
    Ok(outcome)
}

/// A lock alone does not keep a process that was stopped for a minute from writing when it goes on. So every write
/// carries the token, and the storage refuses one that is lower than what it has seen:
/// `update report set …, fencing_token = $1 where id = $2 and fencing_token <= $1`.
async fn work(fencing_token: u64) {
    println!("working, with fencing token {fencing_token}");
}
