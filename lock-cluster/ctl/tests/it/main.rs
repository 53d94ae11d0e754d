//! `lockctl` as a shell runs it, against a real node.

use std::process::{Output, Stdio};
use std::time::Duration;

use lock_node::{Member, Node, NodeConfig, Secret};
use serde_json::Value;
use tempfile::TempDir;
use testkit::{eventually, free_ports};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

const SOON: Duration = Duration::from_secs(15);
const ADMIN_TOKEN: &str = "let me in";

/// One node, and the means to run `lockctl` against it.
struct Shell {
    node: Node,
    _dir: TempDir,
}

impl Shell {
    async fn start() -> Self {
        Self::start_with(|_| {}).await
    }

    async fn start_with(change: impl Fn(&mut NodeConfig)) -> Self {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let mut config = config(1, dir.path());
        change(&mut config);
        let node = Node::start(config).await.expect("the node starts");
        testkit::wait_ready(SOON, node.client_url()).await;
        Self { node, _dir: dir }
    }

    fn command(&self, args: &[&str]) -> Command {
        lockctl(self.node.client_url(), args)
    }

    async fn run(&self, args: &[&str]) -> Output {
        self.command(args).output().await.expect("it runs")
    }

    async fn json(&self, args: &[&str]) -> Value {
        let args: Vec<&str> = ["--json"].iter().chain(args).copied().collect();
        let output = self.run(&args).await;
        assert!(output.status.success(), "{output:?}");
        serde_json::from_slice(&output.stdout).expect("JSON")
    }

    /// Runs a command that holds a lock until it is told to end, and waits until it holds.
    async fn hold(&self, name: &str, script: &str) -> Child {
        let mut command = self.command(&["lock", name, "--ttl", "2s", "--", "sh", "-c", script]);
        let mut holder = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("it runs");
        let stdout = holder.stdout.take().expect("a pipe");
        let mut lines = BufReader::new(stdout).lines();
        let line = tokio::time::timeout(SOON, lines.next_line()).await;
        let line = line.expect("it says so in time").expect("it can be read");
        assert_eq!(line.as_deref(), Some("held"));
        holder
    }
}

/// A node on this machine that knows of no other; 1 founds a cluster.
fn config(id: u64, dir: &std::path::Path) -> NodeConfig {
    let ports = free_ports(2);
    let member = Member {
        id,
        peer_addr: format!("127.0.0.1:{}", ports[0]),
        client_addr: format!("127.0.0.1:{}", ports[1]),
    };
    NodeConfig {
        bootstrap: id == 1,
        admin_token: Secret::new(ADMIN_TOKEN),
        ..NodeConfig::member(id, &[member], dir).expect("addresses")
    }
}

fn lockctl(url: &str, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lockctl"));
    command
        .args(args)
        .env("LOCK_URLS", url)
        .env("LOCK_ADMIN_TOKEN", ADMIN_TOKEN)
        .stdin(Stdio::null());
    command.kill_on_drop(true);
    command
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

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
    let mut holder = shell.hold("gate", "echo held; read line").await;
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
    drop(holder.stdin.take());
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
async fn a_command_whose_lock_is_broken_is_killed_with_its_children() {
    let shell = Shell::start().await;
    let dir = tempfile::tempdir().expect("a temporary directory");
    let pid_file = dir.path().join("child");
    // Neither the shell nor its child listens to SIGTERM.
    let script = format!(
        "trap '' TERM; (trap '' TERM; sleep 600) & echo $! > {}; echo held; wait",
        pid_file.display()
    );
    let mut holder = shell.hold("gate", &script).await;
    let child = std::fs::read_to_string(&pid_file)
        .expect("the child's id")
        .trim()
        .to_owned();
    let alive = || std::path::Path::new("/proc").join(&child).exists();
    assert!(alive());
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
    eventually(SOON, "the child to be gone", async || (!alive()).then_some(())).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_command_whose_cluster_is_gone_is_killed_within_the_ttl_and_the_grace() {
    let shell = Shell::start().await;
    let mut holder = shell.hold("gate", "echo held; sleep 600").await;
    let Shell { node, _dir } = shell;
    node.shutdown().await;
    let status = tokio::time::timeout(SOON, holder.wait())
        .await
        .expect("it ends in time")
        .expect("it ends");
    assert_eq!(status.code(), Some(70));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_signal_to_lockctl_reaches_the_command_and_the_lock_is_given_back() {
    let shell = Shell::start().await;
    for signal in ["TERM", "INT", "HUP", "QUIT", "USR1", "USR2"] {
        let script = format!("trap 'exit 3' {signal}; echo held; while :; do sleep 0.1; done");
        let mut holder = shell.hold("gate", &script).await;
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
    let mut holder = shell.hold("gate", "echo held; read line").await;
    let waiters = async || shell.json(&["show", "gate"]).await["waiters_total"].as_u64();
    for (signal, code) in [("HUP", 129), ("INT", 130), ("TERM", 143)] {
        let mut waiter = shell
            .command(&["lock", "gate", "--", "true"])
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
    drop(holder.stdin.take());
    assert!(holder.wait().await.expect("it ends").code().is_some());
}

async fn send(signal: &str, to: &Child) {
    let pid = to.id().expect("it runs").to_string();
    let sent = Command::new("kill")
        .args([&format!("-{signal}"), &pid])
        .status()
        .await;
    assert!(sent.expect("kill runs").success());
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_command_that_reads_from_a_terminal_is_killed_with_its_children_as_well() {
    use rustix::pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt};
    let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal");
    grantpt(&terminal).expect("ours");
    unlockpt(&terminal).expect("usable");
    let far_end =
        ioctl_tiocgptpeer(&terminal, OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("its other end");

    let shell = Shell::start().await;
    let dir = tempfile::tempdir().expect("a temporary directory");
    let pid_file = dir.path().join("grandchild");
    let script = format!(
        "(sh -c 'trap \"\" TERM; echo $$ > {0}.new; mv {0}.new {0}; while :; do sleep 0.1; done') & wait",
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
    let alive = || std::path::Path::new("/proc").join(grandchild.trim()).exists();
    assert!(alive());
    shell.node.shutdown().await;
    let status = tokio::time::timeout(SOON, holder.wait()).await;
    assert_eq!(status.expect("in time").expect("it ends").code(), Some(70));
    eventually(SOON, "the grandchild to be gone", async || {
        (!alive()).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_output_that_nobody_takes_is_no_crash() {
    let shell = Shell::start().await;
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    let output = shell
        .command(&["list"])
        .stdout(Stdio::from(writer))
        .stderr(Stdio::piped())
        .spawn();
    let output = output
        .expect("it runs")
        .wait_with_output()
        .await
        .expect("it ends");
    assert_eq!(
        (output.status.code(), text(&output.stderr).as_str()),
        (Some(128 + 13), "")
    );

    let Ok(full) = std::fs::File::options().write(true).open("/dev/full") else {
        return; // only Linux has one
    };
    let output = shell
        .command(&["status"])
        .stdout(Stdio::from(full))
        .stderr(Stdio::piped())
        .spawn();
    let output = output
        .expect("it runs")
        .wait_with_output()
        .await
        .expect("it ends");
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
async fn status_members_and_events_are_told_to_people_and_to_scripts() {
    let shell = Shell::start().await;
    let status = text(&shell.run(&["status"]).await.stdout);
    assert!(status.contains("ROLE") && status.contains("leader"), "{status}");
    let told = shell.json(&["status"]).await[0]["status"].clone();
    assert_eq!(told["role"], "leader");
    let cluster_id = told["cluster_id"].as_str().expect("it is of a cluster");
    assert!(status.contains(&cluster_id[..8]), "{status}");
    let members = text(&shell.run(&["members"]).await.stdout);
    assert!(
        members.contains("PEERS") && members.contains("leader"),
        "{members}"
    );
    assert_eq!(shell.json(&["members", "list"]).await[0]["id"], 1);

    let mut watch = shell
        .command(&["--json", "watch", "--from", "0"])
        .stdout(Stdio::piped())
        .spawn()
        .expect("it runs");
    assert!(shell.run(&["lock", "gate", "--", "true"]).await.status.success());
    let mut lines = BufReader::new(watch.stdout.take().expect("a pipe")).lines();
    let told = async {
        loop {
            let line = lines
                .next_line()
                .await
                .expect("it can be read")
                .expect("it goes on");
            let event: Value = serde_json::from_str(&line).expect("a line is a JSON object");
            if event["event"] == "granted" {
                return event;
            }
        }
    };
    let granted = tokio::time::timeout(SOON, told)
        .await
        .expect("it is told in time");
    assert_eq!(granted["data"]["names"], serde_json::json!(["gate"]));
    watch.kill().await.expect("it was watching");
}

/// A node that tells the first of two events of one index, and is gone.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_watch_goes_on_behind_the_last_event_it_has_seen() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let node = tokio::net::TcpListener::bind("127.0.0.1:0")
        .await
        .expect("a port");
    let url = format!("http://{}", node.local_addr().expect("it listens"));
    let mut watch = lockctl(&url, &["watch", "--from", "5"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("it runs");
    let mut lines = BufReader::new(watch.stdout.take().expect("a pipe")).lines();
    for (asks, id) in [("/v1/events?from=5", "5.0"), ("last-event-id: 5.0", "5.1")] {
        let served = async {
            let (mut connection, _) = node.accept().await.expect("it comes");
            let mut asked = Vec::new();
            while !asked.ends_with(b"\r\n\r\n") {
                asked.push(connection.read_u8().await.expect("a request"));
            }
            let asked = text(&asked).to_lowercase();
            assert!(asked.contains(asks), "{asked}");
            let told =
                format!("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\nid: {id}\ndata: {{}}\n\n");
            connection.write_all(told.as_bytes()).await.expect("it listens");
            lines.next_line().await.expect("it can be read").expect("a line")
        };
        let line = tokio::time::timeout(SOON, served).await.expect("in time");
        assert!(line.trim_start().starts_with(id), "{line}");
    }
    watch.kill().await.expect("it was watching");
}

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
async fn names_that_are_dots_can_be_shown_and_broken() {
    let shell = Shell::start().await;
    for name in [".", "..", "a/../b", "%2e%2e", "break"] {
        let mut holder = shell.hold(name, "echo held; exec sleep 600").await;
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
