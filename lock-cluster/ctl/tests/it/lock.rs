//! A command under a lock: what it is told, what is told of it, and who waits.

use std::process::Stdio;

use testkit::eventually;

use crate::{SOON, Shell, text};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_command_knows_what_it_holds_and_its_exit_code_is_passed_through() {
    let shell = Shell::start().await;
    let script = "echo \"$LOCK_NAME $LOCK_FENCING_TOKEN $LOCK_SESSION\"; exit 7";
    let output = shell.run(&["lock", "a/b", "c d", "--", "sh", "-c", script]).await;
    assert_eq!(output.status.code(), Some(7), "{output:?}");
    let said = text(&output.stdout);
    let words: Vec<&str> = said.split_whitespace().collect();
    assert_eq!(words[..2], ["a/b,c", "d"]);
    assert!(words[2].parse::<u64>().is_ok() && words[3].len() == 36, "{said}");
    assert_eq!(
        shell.json(&["list"]).await["locks"],
        serde_json::json!([]),
        "nothing stays behind"
    );

    let killed = shell.run(&["lock", "x", "--", "sh", "-c", "kill -9 $$"]).await;
    assert_eq!(killed.status.code(), Some(128 + 9));
    let missing = shell.run(&["lock", "x", "--", "./no-such-program"]).await;
    assert_eq!(missing.status.code(), Some(127));
    let forbidden = shell.run(&["lock", "x", "--", "/etc/passwd"]).await;
    assert_eq!(forbidden.status.code(), Some(126));
    assert_eq!(
        shell.run(&["lock", "x"]).await.status.code(),
        Some(2),
        "a command is needed"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_held_lock_is_shown_and_a_second_command_waits_or_gives_up() {
    let shell = Shell::start().await;
    let (mut holder, input) = shell.hold("gate", "echo held; read line").await;
    let in_vain = shell.run(&["lock", "gate", "--wait", "0", "--", "true"]).await;
    assert_eq!(in_vain.status.code(), Some(75), "{in_vain:?}");
    assert!(text(&in_vain.stderr).contains("held"), "{in_vain:?}");
    let in_vain = shell
        .run(&["lock", "gate", "--wait", "200ms", "--", "true"])
        .await;
    assert_eq!(in_vain.status.code(), Some(75));

    let patient = shell
        .command(&["lock", "gate", "--", "echo", "mine"])
        .stdout(Stdio::piped())
        .spawn()
        .expect("it runs");
    let shown = eventually(SOON, "a waiter", async || {
        let shown = text(&shell.run(&["show", "gate"]).await.stdout);
        shown.contains("PLACE").then_some(shown)
    })
    .await;
    assert!(shown.starts_with("gate is held by "), "{shown}");
    let list = text(&shell.run(&["list"]).await.stdout);
    assert!(list.starts_with("NAME  ") && list.contains("gate"), "{list}");
    let lock = shell.json(&["show", "gate"]).await;
    assert_eq!(lock["waiters"].as_array().map(Vec::len), Some(1));

    // The holder's `read` ends with its input.
    drop(input);
    assert!(holder.wait().await.expect("it ends").code().is_some());
    let output = patient.wait_with_output().await.expect("it ends");
    assert_eq!(
        (output.status.code(), text(&output.stdout)),
        (Some(0), "mine\n".to_owned())
    );
    assert_eq!(
        shell.run(&["show", "gate"]).await.status.code(),
        Some(1),
        "nobody holds or wants it"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn names_that_are_dots_can_be_shown_and_broken() {
    let shell = Shell::start().await;
    for name in [".", "..", "a/../b", "%2e%2e", "break"] {
        let (mut holder, _input) = shell.hold(name, "echo held; read line").await;
        let lock = shell.json(&["show", name]).await;
        assert_eq!(lock["name"], name);
        let token = lock["holder"]["fencing_token"]
            .as_u64()
            .expect("it is held")
            .to_string();
        let broken = shell.run(&["break", name, "--fencing-token", &token]).await;
        assert!(broken.status.success(), "{name}: {broken:?}");
        let status = tokio::time::timeout(SOON, holder.wait()).await;
        let status = status.expect("it hears of it in time").expect("it ends");
        assert_eq!(status.code(), Some(70));
    }
}
