//! What an operator does to a cluster: backup and restore, and who is a member.

use lock_node::Node;

use crate::{Shell, config, text};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backup_is_written_whole_and_restored_and_a_damaged_one_is_refused() {
    let shell = Shell::start().await;
    assert!(shell.run(&["lock", "gate", "--", "true"]).await.status.success());
    let dir = tempfile::tempdir().expect("a temporary directory");
    let file = dir.path().join("locks.backup").display().to_string();
    let written = shell.json(&["backup", &file]).await;
    let bytes = std::fs::read(&file).expect("it was written");
    assert_eq!(written["bytes"], bytes.len());
    assert_eq!(
        dir.path().read_dir().expect("a directory").count(),
        1,
        "and nothing beside it"
    );
    let nowhere = shell.run(&["backup", "/nowhere/locks.backup"]).await;
    assert_eq!(nowhere.status.code(), Some(1), "{nowhere:?}");

    let damaged = dir.path().join("damaged").display().to_string();
    std::fs::write(&damaged, &bytes[..bytes.len() - 1]).expect("it can be written");
    let refused = shell.run(&["restore", &damaged]).await;
    assert_eq!(refused.status.code(), Some(1), "{refused:?}");
    assert!(
        text(&refused.stderr).contains("no backup that can be used"),
        "{refused:?}"
    );

    let told = text(
        &shell
            .run(&["restore", &file, "--token-floor", "5000"])
            .await
            .stdout,
    );
    assert!(told.starts_with("fencing tokens go on above 5000"), "{told}");
    let output = shell
        .run(&["lock", "gate", "--", "sh", "-c", "echo $LOCK_FENCING_TOKEN"])
        .await;
    assert_eq!(text(&output.stdout), "5001\n");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn members_are_added_promoted_and_removed() {
    let shell = Shell::start().await;
    let dir = tempfile::tempdir().expect("a temporary directory");
    let config = config(2, dir.path());
    let (client_addr, peer_addr) = (config.client_addr.to_string(), config.peer_addr.to_string());
    let guest = Node::start(config).await.expect("it starts");
    let add = [
        "members",
        "add",
        "2",
        "--peer-addr",
        &peer_addr,
        "--client-addr",
        &client_addr,
    ];
    let members = shell.json(&[add.as_slice(), &["--learner"]].concat()).await;
    assert_eq!(members[1]["voter"], false);
    assert_eq!(shell.json(&["members", "promote", "2"]).await[1]["voter"], true);
    let both = text(&shell.run(&["members"]).await.stdout);
    assert!(both.contains("voter") && both.contains("leader"), "{both}");
    assert_eq!(
        shell
            .json(&["members", "remove", "2"])
            .await
            .as_array()
            .map(Vec::len),
        Some(1)
    );
    assert_eq!(
        shell.run(&["members", "promote", "2"]).await.status.code(),
        Some(1)
    );
    assert_eq!(
        shell.run(&["members", "remove", "1"]).await.status.code(),
        Some(1)
    );
    guest.shutdown().await;
}
