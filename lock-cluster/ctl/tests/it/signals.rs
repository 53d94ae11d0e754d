//! Signals to `lockctl`, and those that it does not hear.

use testkit::eventually;
use tokio::process::{Child, Command};

use crate::{SOON, Shell, held};

/// However the tests were started: under `nohup` or in the background, some signals are ignored.
const HEARING: &[&str] = &["env", "--default-signal=HUP,INT,TERM,QUIT,USR1,USR2"];
const NOT_HEARING: &[&str] = &["env", "--ignore-signal=HUP,INT,QUIT"];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_signal_to_lockctl_reaches_the_command_and_the_lock_is_given_back() {
    let shell = Shell::start().await;
    for signal in ["TERM", "INT", "HUP", "QUIT", "USR1", "USR2"] {
        let script = format!("trap 'exit 3' {signal}; exec 3<&0; echo held; cat <&3 & wait");
        let args = ["lock", "gate", "--", "sh", "-c", &script];
        let (mut holder, _input) = held(shell.command_by(HEARING, &args)).await;
        send(signal, &holder).await;
        let status = tokio::time::timeout(SOON, holder.wait()).await;
        let status = status.expect("it ends in time").expect("it ends");
        assert_eq!(status.code(), Some(3), "SIG{signal}");
        assert_eq!(shell.json(&["list"]).await["locks"], serde_json::json!([]));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_signal_to_one_that_waits_ends_it_and_its_place_in_line() {
    let shell = Shell::start().await;
    let (mut holder, input) = shell.hold("gate", "echo held; read line").await;
    let waiters = async || shell.json(&["show", "gate"]).await["waiters_total"].as_u64();
    for (signal, code) in [("HUP", 129), ("INT", 130), ("TERM", 143)] {
        let mut waiter = shell
            .command_by(HEARING, &["lock", "gate", "--", "true"])
            .spawn()
            .expect("it runs");
        eventually(SOON, "a waiter", async || {
            (waiters().await == Some(1)).then_some(())
        })
        .await;
        send(signal, &waiter).await;
        let status = tokio::time::timeout(SOON, waiter.wait()).await;
        assert_eq!(status.expect("in time").expect("it ends").code(), Some(code));
        assert_eq!(waiters().await, Some(0));
    }
    drop(input);
    assert!(holder.wait().await.expect("it ends").code().is_some());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_signal_that_was_ignored_before_is_ignored_by_lockctl_and_by_the_command() {
    let shell = Shell::start().await;
    for signal in ["HUP", "INT", "QUIT"] {
        let script = format!("kill -{signal} $PPID $$; echo held; read line; exit 5");
        let args = ["lock", "gate", "--", "sh", "-c", &script];
        let (mut holder, input) = held(shell.command_by(NOT_HEARING, &args)).await;
        drop(input);
        let status = tokio::time::timeout(SOON, holder.wait()).await;
        let status = status.expect("it ends in time").expect("it ends");
        assert_eq!(status.code(), Some(5), "SIG{signal}");
    }
}

async fn send(signal: &str, to: &Child) {
    let pid = to.id().expect("it runs").to_string();
    let sent = Command::new("kill")
        .args([&format!("-{signal}"), &pid])
        .status()
        .await;
    assert!(sent.expect("kill runs").success());
}
