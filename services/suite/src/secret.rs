//! The secret that the lock nodes prove to each other. All of them are in this process, but their peer ports
//! are open to every user of the machine; so the suite draws a secret once and keeps it beside the data, readable
//! by its owner alone.

use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use anyhow::Context as _;
use lock_node::Secret;

/// Reads the secret of this data folder, or draws it at the first start.
pub(crate) fn peer_secret(data_dir: &Path) -> anyhow::Result<Secret> {
    let path = data_dir.join("peer-secret");
    let context = || format!("the lock nodes' secret in {}", path.display());
    match std::fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&path)
    {
        Ok(mut file) => {
            // Two random UUIDs: 244 bits from the system's generator.
            let drawn = format!(
                "{}{}",
                uuid::Uuid::new_v4().simple(),
                uuid::Uuid::new_v4().simple()
            );
            file.write_all(drawn.as_bytes())
                .and_then(|()| file.sync_all())
                .with_context(context)?;
        }
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
        Err(error) => return Err(error).with_context(context),
    }
    let text = std::fs::read_to_string(&path).with_context(context)?;
    Secret::new(text)
        .with_context(|| format!("{} is empty: remove it, and a new one is drawn", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_secret_is_drawn_once_and_kept_from_others() {
        use std::os::unix::fs::PermissionsExt as _;
        let dir = tempfile::tempdir().unwrap();
        let first = peer_secret(dir.path()).unwrap();
        assert_eq!(peer_secret(dir.path()).unwrap(), first);
        let mode = std::fs::metadata(dir.path().join("peer-secret"))
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o077, 0);
    }
}
