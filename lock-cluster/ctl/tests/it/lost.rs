//! A lock that is lost ends its command, with all that the command has started.

use std::process::Stdio;

use testkit::eventually;

use crate::{SOON, Shell, is_alive};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_command_whose_lock_is_broken_is_killed_with_its_children() {
    let shell = Shell::start().await;
    let dir = tempfile::tempdir().expect("a temporary directory");
    let pid_file = dir.path().join("child");
    // Neither the shell nor its child listens to SIGTERM.
    let script = format!(
        "trap '' TERM; exec 3<&0; cat <&3 & echo $! > {}; echo held; wait",
        pid_file.display()
    );
    let (mut holder, _input) = shell.hold("gate", &script).await;
    let child = std::fs::read_to_string(&pid_file).expect("the child's id");
    assert!(is_alive(&child));
    let token = shell.json(&["show", "gate"]).await["holder"]["fencing_token"]
        .as_u64()
        .expect("a token")
        .to_string();

    let stale = shell.run(&["break", "gate", "--fencing-token", "0"]).await;
    assert_eq!(stale.status.code(), Some(1), "{stale:?}");
    let broken = shell.run(&["break", "gate", "--fencing-token", &token]).await;
    assert!(broken.status.success(), "{broken:?}");
    let status = tokio::time::timeout(SOON, holder.wait())
        .await
        .expect("it ends in time")
        .expect("it ends");
    assert_eq!(status.code(), Some(70));
    eventually(SOON, "the child to be gone", async || {
        (!is_alive(&child)).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_command_whose_cluster_is_gone_is_killed_within_the_ttl_and_the_grace() {
    let shell = Shell::start().await;
    let (mut holder, _input) = shell.hold("gate", "echo held; read line").await;
    let Shell { node, _dir } = shell;
    node.shutdown().await;
    let status = tokio::time::timeout(SOON, holder.wait())
        .await
        .expect("it ends in time")
        .expect("it ends");
    assert_eq!(status.code(), Some(70));
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_command_that_reads_from_a_terminal_is_killed_with_its_children_as_well() {
    use rustix::pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt};
    // What runs at its far end must not have this one: it is hung up when the test ends.
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
    let terminal = match openpt(flags) {
        Ok(terminal) => terminal,
        Err(why) => {
            assert!(std::env::var_os("CI").is_none(), "no terminal: {why}");
            eprintln!("NO TERMINAL WAS TRIED: there are none here: {why}");
            return;
        }
    };
    grantpt(&terminal).expect("ours");
    unlockpt(&terminal).expect("usable");
    let far_end = ioctl_tiocgptpeer(&terminal, flags).expect("its other end");

    let shell = Shell::start().await;
    let dir = tempfile::tempdir().expect("a temporary directory");
    let pid_file = dir.path().join("grandchild");
    let script = format!(
        "exec 3<&0; (sh -c 'trap \"\" TERM; echo $$ > {0}.new; mv {0}.new {0}; exec cat <&3') & wait",
        pid_file.display()
    );
    let mut holder = shell
        .command(&["lock", "gate", "--ttl", "2s", "--", "sh", "-c", &script])
        .stdin(Stdio::from(far_end))
        .spawn()
        .expect("it runs");
    let grandchild = eventually(SOON, "a grandchild", async || {
        std::fs::read_to_string(&pid_file).ok()
    })
    .await;
    assert!(is_alive(&grandchild));
    shell.node.shutdown().await;
    let status = tokio::time::timeout(SOON, holder.wait()).await;
    assert_eq!(status.expect("in time").expect("it ends").code(), Some(70));
    eventually(SOON, "the grandchild to be gone", async || {
        (!is_alive(&grandchild)).then_some(())
    })
    .await;
}
