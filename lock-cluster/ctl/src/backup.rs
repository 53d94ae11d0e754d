//! `backup` and `restore`: the state in a file.
//!
//! The file appears whole or not at all: it is written beside, made durable, and renamed. That a file is a backup and a
//! whole one is checked by the node that is to restore it, before anything is changed.

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use anyhow::Context;
use lock_client::ClusterClient;

use crate::out::{say_json, say_line};

pub(crate) async fn backup(cluster: &ClusterClient, file: &Path, json: bool) -> anyhow::Result<ExitCode> {
    let copy = cluster.backup().await?;
    write(file, &copy).with_context(|| format!("writing {}", file.display()))?;
    if json {
        say_json(&serde_json::json!({ "file": file, "bytes": copy.len() }))?;
    } else {
        say_line(format_args!(
            "{} bytes were written to {}",
            copy.len(),
            file.display()
        ))?;
    }
    Ok(ExitCode::SUCCESS)
}

pub(crate) async fn restore(
    cluster: &ClusterClient,
    file: &Path,
    token_floor: Option<u64>,
    json: bool,
) -> anyhow::Result<ExitCode> {
    let copy = fs::read(file).with_context(|| format!("reading {}", file.display()))?;
    let restored = cluster
        .restore(&copy, token_floor)
        .await
        .with_context(|| format!("restoring {}", file.display()))?;
    if json {
        say_json(&restored)?;
    } else {
        say_line(format_args!(
            "fencing tokens go on above {} (the backup ends at {})\nnot brought back: {} sessions, {} locks",
            restored.token_floor,
            restored.backup_last_token,
            restored.sessions_dropped,
            restored.locks_dropped
        ))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn write(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let mut beside = path.as_os_str().to_owned();
    beside.push(format!(".{}.new", std::process::id()));
    let written = File::create(&beside).and_then(|mut file| {
        file.write_all(bytes)?;
        file.sync_all()?;
        fs::rename(&beside, path)
    });
    if written.is_err() {
        // Whatever went wrong, half a backup is not left lying around.
        let _ = fs::remove_file(&beside);
    }
    written
}
