//! `list`, `show`, `break` and `status`: ask once, print a table or JSON.

use std::process::ExitCode;
use std::time::Duration;

use lock_client::wire::{ClusterStatus, Lock};
use lock_client::{ClusterClient, LockError};

use crate::out::{say, say_json, say_line};
use crate::table::{Table, known, printable};

pub(crate) async fn list(
    cluster: &ClusterClient,
    prefix: &str,
    limit: usize,
    json: bool,
) -> anyhow::Result<ExitCode> {
    let list = cluster.locks(prefix, limit).await?;
    if json {
        say_json(&list)?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut table = Table::new(&["name", "token", "held", "holder", "session", "waiters"]);
    for lock in &list.locks {
        table.row(row(lock));
    }
    say(table)?;
    Ok(ExitCode::SUCCESS)
}

fn row(lock: &Lock) -> [String; 6] {
    let holder = lock.holder.as_ref();
    let dash = || "-".to_owned();
    [
        lock.name.clone(),
        known(holder.map(|holder| holder.fencing_token)),
        holder.map_or_else(dash, |holder| age(holder.held_ms)),
        holder.map_or_else(dash, |holder| holder.label.clone()),
        holder.map_or_else(dash, |holder| holder.session_id.to_string()),
        lock.waiters_total.to_string(),
    ]
}

pub(crate) async fn show(cluster: &ClusterClient, name: &str, json: bool) -> anyhow::Result<ExitCode> {
    let Some(lock) = cluster.lock(name).await? else {
        eprintln!("nobody holds or wants {}", printable(name));
        return Ok(ExitCode::FAILURE);
    };
    if json {
        say_json(&lock)?;
        return Ok(ExitCode::SUCCESS);
    }
    match &lock.holder {
        Some(holder) => say_line(format_args!(
            "{} is held by {} for {}\n  fencing token {}, session {}, acquisition {}",
            printable(&lock.name),
            printable(&holder.label),
            age(holder.held_ms),
            holder.fencing_token,
            holder.session_id,
            holder.acquire_id
        ))?,
        None => say_line(format_args!("{} is held by nobody yet", printable(&lock.name)))?,
    }
    if !lock.waiters.is_empty() {
        let mut table = Table::new(&["place", "waiter", "session", "acquisition"]);
        for (place, waiter) in lock.waiters.iter().enumerate() {
            let place = (place + 1).to_string();
            table.row([
                place,
                waiter.label.clone(),
                waiter.session_id.to_string(),
                waiter.acquire_id.to_string(),
            ]);
        }
        say(format_args!("\n{table}"))?;
        match lock.waiters_total.saturating_sub(lock.waiters.len()) {
            0 => {}
            more => say_line(format_args!("and {more} more"))?,
        }
    }
    Ok(ExitCode::SUCCESS)
}

pub(crate) async fn break_lock(
    cluster: &ClusterClient,
    name: &str,
    fencing_token: u64,
    json: bool,
) -> anyhow::Result<ExitCode> {
    let broken = cluster.break_lock(name, fencing_token).await?;
    if json {
        say_json(&broken)?;
    } else {
        say_line(format_args!(
            "{} was taken from the holder with token {fencing_token}",
            printable(name)
        ))?;
    }
    Ok(ExitCode::SUCCESS)
}

pub(crate) async fn status(cluster: &ClusterClient, json: bool) -> anyhow::Result<ExitCode> {
    let answers = ask_all(cluster).await;
    let answered = answers.iter().any(|(_, answer)| answer.is_ok());
    let refused = answers
        .iter()
        .find_map(|(_, answer)| answer.as_ref().err().filter(|e| !e.retryable()));
    if json {
        let nodes: Vec<_> = answers
            .iter()
            .map(|(url, answer)| match answer {
                Ok(status) => serde_json::json!({ "url": url, "status": status }),
                Err(error) => serde_json::json!({ "url": url, "error": error.to_string() }),
            })
            .collect();
        say_json(&nodes)?;
    } else {
        say(status_table(&answers))?;
    }
    match (answered, refused) {
        (true, _) => Ok(ExitCode::SUCCESS),
        // They are there, and take us for a stranger.
        (false, Some(refused)) => Err(refused.clone().into()),
        (false, None) => Ok(ExitCode::from(69)),
    }
}

fn status_table(answers: &[(String, Result<ClusterStatus, LockError>)]) -> Table {
    let mut table = Table::new(&[
        "url",
        "id",
        "cluster",
        "role",
        "term",
        "leader",
        "log",
        "committed",
        "applied",
        "snapshot",
        "sessions",
        "locks",
        "waiters",
    ]);
    for (url, answer) in answers {
        match answer {
            Ok(status) => table.row([
                url.clone(),
                status.id.to_string(),
                cluster(status),
                status.role.clone(),
                status.term.to_string(),
                known(status.leader),
                known(status.last_log_index),
                known(status.committed_index),
                known(status.applied_index),
                known(status.snapshot_index),
                status.sessions.to_string(),
                status.locks.to_string(),
                status.waiters.to_string(),
            ]),
            Err(error) => table.row([
                url.clone(),
                "-".to_owned(),
                "-".to_owned(),
                if error.retryable() { "no answer" } else { "refused" }.to_owned(),
            ]),
        }
    }
    table
}

/// So much of the cluster's id as it takes to see whether two nodes are of the same one.
fn cluster(status: &ClusterStatus) -> String {
    let id = status.cluster_id.map(|id| id.to_string());
    id.map_or_else(|| "-".to_owned(), |id| id.chars().take(8).collect())
}

/// Every node's own view, in the order of the URLs.
async fn ask_all(cluster: &ClusterClient) -> Vec<(String, Result<ClusterStatus, LockError>)> {
    let mut answers = Vec::new();
    for url in cluster.urls() {
        answers.push((url.to_owned(), cluster.status_of(url).await));
    }
    answers
}

/// One node's view of the cluster: the leader's if it answers, for it also knows how far the others are.
pub(crate) async fn best_status(cluster: &ClusterClient) -> Result<ClusterStatus, LockError> {
    let mut best = Err(LockError::Unavailable {
        detail: "no node was asked".to_owned(),
    });
    for (_, answer) in ask_all(cluster).await {
        match answer {
            Ok(status) if status.role == "leader" => return Ok(status),
            Ok(status) => best = Ok(status),
            Err(error) if best.is_err() => best = Err(error),
            Err(_) => {}
        }
    }
    best
}

pub(crate) fn age(ms: u64) -> String {
    let age = Duration::from_millis(ms);
    match age.as_secs() {
        0 => format!("{ms} ms"),
        seconds @ 1..=119 => format!("{seconds} s"),
        seconds => format!("{} min", seconds / 60),
    }
}
