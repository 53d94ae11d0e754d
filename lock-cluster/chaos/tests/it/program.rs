//! `lock-chaos` as a shell runs it.

use std::process::{Command, Output};

fn lock_chaos(args: &[&str]) -> Output {
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_lock-chaos"));
    command.args(args).current_dir(folder.path()).output().unwrap()
}

#[test]
fn a_run_that_shows_too_little_is_void_and_names_its_seed() {
    let output = lock_chaos(&["run", "--seed", "7", "--seconds", "1", "--min-ops", "1000000"]);
    let said = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(said.contains("seed 7: VOID"), "{said}");
    assert!(
        said.contains("again: lock-chaos run --runs 1 --seed 7 --nodes 3"),
        "{said}"
    );
}

#[test]
fn a_dead_session_that_holds_on_is_found_and_what_was_seen_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().to_str().unwrap();
    let output = lock_chaos(&[
        "run",
        "--seconds",
        "1",
        "--plant",
        "eternal-session",
        "--out",
        out,
    ]);
    let said = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(
        said.contains("seed 1: FOUND") && said.contains("liveness: "),
        "{said}"
    );
    let kept = folder.path().join("seed-1");
    for file in ["found.txt", "node-1.log", "node-3.log"] {
        assert!(kept.join(file).exists(), "{file} is missing");
    }
    // What its clients saw was right all the time; only the end never came.
    let history = kept.join("history.jsonl");
    let checked = lock_chaos(&["check", history.to_str().unwrap()]);
    assert_eq!(checked.status.code(), Some(0), "{checked:?}");
}

#[test]
fn what_cannot_be_run_is_neither_good_nor_bad() {
    let output = lock_chaos(&["run", "--node-program", "there-is-no-such-node"]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
}

#[test]
fn a_written_history_is_checked_again() {
    let folder = tempfile::tempdir().unwrap();
    let [ana, ben] =
        ["a", "b"].map(|end| format!(r#"{{"session":"00000000-0000-0000-0000-00000000000{end}","id":1}}"#));
    let asks = |who: &str| format!(r#"{{"at":1,"what":{{"Asked":[{who},["gate"]]}}}}"#);
    let gets =
        |who: &str, token: u64| format!(r#"{{"at":1,"what":{{"Told":[{who},{{"Granted":{token}}}]}}}}"#);
    let check = |lines: &[String]| {
        let file = folder.path().join("history.jsonl");
        std::fs::write(&file, lines.join("\n")).unwrap();
        lock_chaos(&["check", file.to_str().unwrap()])
    };
    let well = check(&[asks(&ana), asks(&ben), gets(&ana, 1)]);
    assert_eq!(well.status.code(), Some(0), "{well:?}");
    let both = check(&[asks(&ana), asks(&ben), gets(&ana, 1), gets(&ben, 2)]);
    let said = String::from_utf8_lossy(&both.stdout);
    assert_eq!(both.status.code(), Some(1), "{both:?}");
    assert!(said.contains("history: ") && said.contains("linear: "), "{said}");
}
