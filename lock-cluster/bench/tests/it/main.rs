//! The program as a person runs it, in small: real clusters, tiny rounds.

use std::path::Path;
use std::process::{Output, Stdio};
use std::time::Duration;

use serde_json::Value;
use testkit::{Program, binary, eventually};
use tokio::process::Command;

/// Generous: the machine may be compiling meanwhile.
const WITHIN: Duration = Duration::from_secs(120);

fn lock_bench(dir: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lock-bench"));
    command.arg("--data-dir").arg(dir);
    command.arg("--lock-node").arg(binary("lock-node"));
    command.stdin(Stdio::null()).kill_on_drop(true);
    command
}

/// Whether etcd can be measured. Where the gate runs it must be there: a comparison that is always skipped is none.
fn etcd_is_there() -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let there = std::env::split_paths(&path).any(|dir| dir.join("etcd").is_file());
    if !there {
        let ci = std::env::var("CI").is_ok_and(|ci| ci == "true");
        assert!(!ci, "there is no etcd on the PATH to compare with");
        eprintln!("SKIPPED: the comparison with etcd, because there is none on the PATH");
    }
    there
}

async fn finished(mut command: Command) -> Output {
    let output = tokio::time::timeout(WITHIN, command.output()).await;
    output.expect("it ends in time").expect("it starts")
}

fn texts(output: &Output) -> (String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (text(&output.stdout), text(&output.stderr))
}

#[tokio::test]
async fn a_small_comparison_measures_every_point_on_both_sides() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let files = tempfile::tempdir().expect("a temporary directory");
    let (json, svg) = (files.path().join("bench.json"), files.path().join("bench.svg"));
    let mut command = lock_bench(dir.path());
    command.args(["--rounds", "1", "--clients", "1,3", "--waiters", "3"]);
    command.args(["--measure-ms", "400", "--warm-up-ms", "100", "--failovers", "1"]);
    command.args(["--failover-clients", "2"]);
    command.arg("--json").arg(&json).arg("--svg").arg(&svg);
    let output = finished(command).await;
    let (table, progress) = texts(&output);
    assert!(output.status.success(), "{table}\n{progress}");

    let report: Value =
        serde_json::from_str(&std::fs::read_to_string(&json).expect("a report")).expect("JSON");
    let points = report["points"].as_array().expect("points");
    for point in points {
        for key in ["cycles_per_s", "p50_ms", "p99_ms", "syncs_per_s", "rss_mib"] {
            assert!(point[key].as_f64().expect(key) > 0.0, "{key} of {point}");
        }
        // One client at a time waits for the disk twice in each cycle, on a majority: if the logs were not made
        // durable, there would be fewer fsyncs than cycles.
        if point["clients"] == 1 {
            assert!(
                point["syncs_per_s"].as_f64() > point["cycles_per_s"].as_f64(),
                "{point}"
            );
        }
    }
    assert_eq!(report["failover_ms"].as_array().map(Vec::len), Some(1));
    assert!(
        std::fs::read_to_string(&svg)
            .expect("a plot")
            .contains("lock-node")
    );
    let ratios = report["ratios"].as_array().expect("ratios");
    if etcd_is_there() {
        assert_eq!((points.len(), ratios.len()), (9, 6));
        assert_eq!(report["etcd_failover_ms"].as_array().map(Vec::len), Some(1));
    } else {
        assert_eq!((points.len(), ratios.len()), (3, 0));
        assert!(table.contains("skipped: no etcd found"), "{table}");
    }
    let left = std::fs::read_dir(dir.path()).expect("the folder").count();
    assert_eq!(left, 0, "the clusters' data is removed");
}

#[tokio::test]
async fn a_missing_lock_node_is_named_with_the_command_that_builds_it() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lock-bench"));
    command.args(["--lock-node", "/nowhere/lock-node"]);
    let output = finished(command).await;
    let (_, said) = texts(&output);
    assert!(!output.status.success());
    assert!(
        said.contains("cargo build") && said.contains("-p lock-node"),
        "{said}"
    );
}

#[tokio::test]
async fn ctrl_c_ends_all_children_and_removes_their_data() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let mut command = lock_bench(dir.path());
    command.args(["--targets", "lock-node", "--measure-ms", "600000"]);
    let mut bench = Program::spawn("lock-bench", command).expect("it starts");
    eventually(WITHIN, "three lock nodes", async || {
        (children(dir.path()) >= 3).then_some(())
    })
    .await;
    let status = bench.interrupt(WITHIN).await;
    assert_eq!(status.code(), Some(130), "{status}");
    assert_eq!(children(dir.path()), 0, "nothing outlives it");
    let left = std::fs::read_dir(dir.path()).expect("the folder").count();
    assert_eq!(left, 0, "nor does the data");
}

/// Processes with a data directory below this one, other than the one that was told of it.
fn children(dir: &Path) -> usize {
    let below = format!("{}/", dir.display());
    let Ok(processes) = std::fs::read_dir("/proc") else {
        return 0;
    };
    processes
        .filter_map(|process| std::fs::read(process.ok()?.path().join("cmdline")).ok())
        .filter(|command| String::from_utf8_lossy(command).contains(&below))
        .count()
}
