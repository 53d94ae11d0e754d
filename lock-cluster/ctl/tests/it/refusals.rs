//! What cannot be done, and the exit code that says which way.

use std::process::Stdio;

use lock_node::Secret;
use testkit::free_ports;

use crate::{Shell, lockctl, text};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_output_that_nobody_takes_is_no_crash() {
    let shell = Shell::start().await;
    let run = async |args: &[&str], stdout: Stdio| {
        let mut command = shell.command(args);
        let child = command.stdout(stdout).stderr(Stdio::piped()).spawn();
        child.expect("it runs").wait_with_output().await.expect("it ends")
    };
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    let output = run(&["list"], writer.into()).await;
    assert_eq!(
        (output.status.code(), text(&output.stderr).as_str()),
        (Some(128 + 13), "")
    );

    let Ok(full) = std::fs::File::options().write(true).open("/dev/full") else {
        return; // only Linux has one
    };
    let output = run(&["status"], full.into()).await;
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("No space left"), "{output:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_value_out_of_range_is_wrong_usage_and_said_once() {
    let shell = Shell::start().await;
    for wrong in [
        &["lock", "gate", "--ttl", "100ms", "--", "true"][..],
        &["lock", "gate", "--wait", "61s", "--", "true"],
        &["lock", "", "--", "true"],
        &["list", "--limit", "0"],
        &["members", "add", "2", "--peer-addr", "x", "--client-addr", "y"],
        &["--url", "nonsense", "list"],
    ] {
        let output = shell.run(wrong).await;
        assert_eq!(output.status.code(), Some(2), "{wrong:?}: {output:?}");
    }
    let said = text(&shell.run(&["list", "--limit", "0"]).await.stderr);
    assert_eq!(said.matches("must be 1 to 1000").count(), 1, "{said}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_that_does_not_answer_is_told_from_a_refusal() {
    let nowhere = format!("http://127.0.0.1:{}", free_ports(1)[0]);
    let output = lockctl(&nowhere, &["lock", "gate", "--wait", "0", "--", "true"])
        .output()
        .await
        .expect("it runs");
    assert_eq!(output.status.code(), Some(69), "{output:?}");
    let output = lockctl(&nowhere, &["status"]).output().await.expect("it runs");
    assert_eq!(output.status.code(), Some(69));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_wants_a_token_refuses_and_is_not_called_silent() {
    let shell = Shell::start_with(|config| config.client_token = Secret::new("what clients say")).await;
    let run = async |token: Option<&str>, args: &[&str]| {
        let mut command = shell.command(args);
        command.env_remove("LOCK_ADMIN_TOKEN");
        if let Some(token) = token {
            command.env("LOCK_CLIENT_TOKEN", token);
        }
        command.output().await.expect("it runs")
    };
    for args in [&["status"][..], &["list"]] {
        for token in [None, Some("a guess")] {
            let refused = run(token, args).await;
            assert_eq!(refused.status.code(), Some(1), "{refused:?}");
            assert!(text(&refused.stderr).contains("unauthorized"), "{refused:?}");
        }
        let known = run(Some("what clients say"), args).await;
        assert!(known.status.success(), "{known:?}");
    }
}
