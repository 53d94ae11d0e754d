//! Programs are started, frozen, killed.

use std::time::Duration;

use tokio::process::Command;

const WITHIN: Duration = Duration::from_secs(20);

fn shell(script: &str) -> testkit::Program {
    let mut command = Command::new("sh");
    command.args(["-c", script]);
    testkit::Program::spawn("shell", command).unwrap()
}

#[tokio::test]
async fn a_program_says_when_it_is_ready() {
    let mut program = shell("echo starting; echo ready http://127.0.0.1:1; exec sleep 600");
    assert_eq!(program.ready(WITHIN).await, "http://127.0.0.1:1");
    program.kill().await;
}

#[tokio::test]
#[should_panic(expected = "ended before it was ready")]
async fn a_program_that_ends_early_fails_the_test_at_once() {
    shell("echo no").ready(WITHIN).await;
}

#[tokio::test]
async fn a_stopped_program_goes_on_when_resumed() {
    let mut program = shell("trap 'exit 7' TERM; echo ready go; while :; do sleep 0.05; done");
    program.ready(WITHIN).await;
    program.stop().await;
    let state = format!("/proc/{}/stat", program.pid().unwrap());
    testkit::eventually(WITHIN, "the process to be stopped", async || {
        std::fs::read_to_string(&state)
            .ok()?
            .contains(") T ")
            .then_some(())
    })
    .await;
    program.resume().await;
    assert_eq!(program.terminate(WITHIN).await.code(), Some(7));
}

#[tokio::test]
async fn a_dropped_program_is_gone() {
    let program = shell("exec sleep 600");
    let proc = format!("/proc/{}/stat", program.pid().unwrap());
    drop(program);
    testkit::eventually(WITHIN, "the process to be gone", async || {
        // Killed; perhaps not collected yet.
        let stat = std::fs::read_to_string(&proc).unwrap_or_default();
        (stat.is_empty() || stat.contains(") Z ")).then_some(())
    })
    .await;
}
