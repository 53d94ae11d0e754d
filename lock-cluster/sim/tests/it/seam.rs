//! Behind the seam nobody asks the machine. `tokio::time` and `tokio::spawn` would panic in a simulation; a clock that
//! is read on the side, or a map in random order, would only make seeds that do not repeat.

use std::fs;
use std::path::{Path, PathBuf};

const FORBIDDEN: [&str; 8] = [
    "tokio::time",
    "tokio::spawn",
    "tokio::select!",
    "sync::watch",
    "std::time::Instant",
    "SystemTime",
    "HashMap",
    "HashSet",
];

/// Sockets and real files, which the simulation has models of; and tests, which run on tokio.
const IN_FRONT: [&str; 7] = [
    "peer",
    "disk.rs",
    "snapshot.rs",
    "suite.rs",
    "flush_tests.rs",
    "joining_tests.rs",
    "runtime.rs",
];

#[test]
fn the_code_behind_the_seam_asks_only_its_runtime() {
    let node = Path::new(env!("CARGO_MANIFEST_DIR")).join("../node/src");
    let mut files = Vec::new();
    for part in ["service", "raft"] {
        collect(&node.join(part), &mut files);
    }
    assert!(files.len() > 15, "the sources have moved: {files:?}");
    for file in files {
        let source = fs::read_to_string(&file).unwrap();
        let lines = source.lines().enumerate();
        let code = lines.filter(|(_, line)| !line.trim_start().starts_with("//"));
        for (number, line) in code {
            for word in FORBIDDEN {
                assert!(!line.contains(word), "{}:{}: {word}", file.display(), number + 1);
            }
        }
    }
}

/// Setting a wall clock forward or back by an hour cannot end a session early, nor keep it for ever, where none is read.
#[test]
fn nobody_reads_a_wall_clock() {
    let cluster = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut files = Vec::new();
    for part in ["core", "node", "pipe", "client"] {
        collect_all(&cluster.join(part).join("src"), &mut files);
    }
    assert!(files.len() > 60, "the sources have moved: {files:?}");
    for file in files {
        let source = fs::read_to_string(&file).unwrap();
        let mut code = source.lines().filter(|line| !line.trim_start().starts_with("//"));
        let clock = code.find(|line| {
            ["SystemTime", "Utc::now", "Local::now"]
                .iter()
                .any(|word| line.contains(word))
        });
        assert_eq!(clock, None, "{}", file.display());
    }
}

fn collect_all(dir: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(dir).unwrap() {
        match entry.unwrap().path() {
            path if path.is_dir() => collect_all(&path, files),
            path => files.push(path),
        }
    }
}

fn collect(dir: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(dir).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name();
        if IN_FRONT.iter().any(|front| name == *front) {
            continue;
        }
        match entry.path() {
            path if path.is_dir() => collect(&path, files),
            path => files.push(path),
        }
    }
}
