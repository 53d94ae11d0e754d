//! Wall clocks that jump an hour forward and back, on nodes and on clients.
//!
//! `libfaketime` is put in front of the C library's clock in the real programs, and told by a file what time to tell;
//! the monotonic clock stays true, as it does when an administrator sets a machine's clock. Each test also proves that
//! the clock was wrong: by the time of the node's log lines, and by what `date` says under the client.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime};

use lock_chaos::cluster::{Cluster, Setup};
use lock_chaos::process::{Process, program};
use testkit::eventually;
use tokio::time::{Instant, sleep};

use crate::lateness::Gauge;
use crate::raw::{EXPIRY, RawSession, SOON, client, until_free};

const TTL: Duration = Duration::from_secs(3);
const CLIENT_TTL: Duration = Duration::from_secs(5);
const HOUR_S: i64 = 3_600;

/// The library, or a loud word that the test shows nothing here. In the gate it has to be there.
fn libfaketime() -> Option<PathBuf> {
    let places = fs::read_dir("/usr/lib").into_iter().flatten().flatten();
    let mut found = places.map(|place| place.path().join("faketime/libfaketimeMT.so.1"));
    let found = found.find(|library| library.exists());
    if found.is_none() {
        assert!(
            std::env::var_os("CI").is_none(),
            "the gate needs libfaketime (Debian: faketime)"
        );
        eprintln!(
            "SKIPPED, NOTHING WAS SHOWN: there is no libfaketime here (Debian: apt-get install faketime)"
        );
    }
    found
}

/// What makes a program believe the file. `clock` may contain `{id}`.
fn environment(library: &Path, clock: &Path) -> BTreeMap<String, String> {
    let value = |path: &Path| path.to_str().unwrap().to_owned();
    BTreeMap::from([
        ("LD_PRELOAD".to_owned(), value(library)),
        ("FAKETIME_TIMESTAMP_FILE".to_owned(), value(clock)),
        ("FAKETIME_CACHE_DURATION".to_owned(), "1".to_owned()),
        ("FAKETIME_DONT_FAKE_MONOTONIC".to_owned(), "1".to_owned()),
        ("DONT_FAKE_MONOTONIC".to_owned(), "1".to_owned()),
    ])
}

fn set_clock(file: &Path, offset_s: i64) {
    // At once: a file that is half written is a clock of its own.
    let new = file.with_extension("new");
    fs::write(&new, format!("{offset_s:+}\n")).unwrap();
    fs::rename(new, file).unwrap();
}

/// How far a moment that a program told is from now, in seconds.
#[expect(
    clippy::disallowed_methods,
    reason = "what the wall clock says is the point here"
)]
fn offset_s(told_unix_s: i64) -> i64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
    told_unix_s - i64::try_from(now.as_secs()).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_whose_wall_clock_jumps_ends_nobody_early_and_keeps_nobody_alive() {
    let Some(library) = libfaketime() else { return };
    let clocks = tempfile::tempdir().unwrap();
    let clock = |id: usize| clocks.path().join(format!("clock-{id}"));
    (1..=3).for_each(|id| set_clock(&clock(id), 0));
    let mut environment = environment(&library, &clocks.path().join("clock-{id}"));
    environment.insert("RUST_LOG".to_owned(), "info,service_kit=debug".to_owned());
    let cluster = Cluster::start(
        3,
        Setup {
            environment,
            ..Setup::default()
        },
    );
    let cluster = cluster.await.unwrap();
    let living = client(&cluster, "living", SOON).await;
    let grant = living.acquire(&["own".to_owned()], SOON).await.unwrap();

    for hours in [1, -1, 0] {
        let leader = cluster.wait_for_leader(SOON).await.unwrap();
        let dead = RawSession::open(&cluster, TTL).await;
        let (status, _) = dead.acquire("dead", Duration::ZERO).await;
        assert!(status.is_success(), "{status}");
        set_clock(&clock(leader + 1), hours * HOUR_S);
        // An hour too long, if the jump counted; how long exactly is for other tests.
        let free = until_free(&cluster, "dead", SOON).await;
        let lived = free - dead.opened;
        println!("{hours:+} h: the dead session lived {lived:?}");
        assert!(lived >= TTL, "{hours:+} h: it ended early, after {lived:?}");
        assert!(!grant.is_lost(), "{hours:+} h: a live session was lost");
        let told = last_logged_s(&cluster.log(leader)).expect("it logs what it answers");
        let jumped = offset_s(told) - hours * HOUR_S;
        assert!(jumped.abs() < 60, "the leader's clock is {jumped} s off");
    }
    grant.release().await.unwrap();
}

/// The time that a node's last log line bears, in seconds.
fn last_logged_s(log: &Path) -> Option<i64> {
    let text = String::from_utf8_lossy(&fs::read(log).ok()?).into_owned();
    let stamp = |line: &str| {
        let (_, time) = line.split_once(r#""timestamp":""#)?;
        let time = time.get(.."2026-01-01T00:00:00".len())?;
        let time = chrono::NaiveDateTime::parse_from_str(time, "%Y-%m-%dT%H:%M:%S").ok()?;
        Some(time.and_utc().timestamp())
    };
    text.lines().rev().find_map(stamp)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_whose_wall_clock_jumps_loses_nothing_and_outlives_nothing() {
    let Some(library) = libfaketime() else { return };
    let cluster = Cluster::start(3, Setup::default()).await.unwrap();
    let clock = cluster.dir().join("clock");
    set_clock(&clock, 0);
    let told = cluster.dir().join("date");
    let script = format!(
        "while kill -0 $PPID 2>/dev/null; do date +%s > {}; sleep 0.2; done",
        told.display()
    );
    let mut command = Command::new(program("lockctl").unwrap());
    command
        .args(["lock", "gate", "--ttl", "5s", "--", "sh", "-c", &script])
        .env("LOCK_URLS", cluster.urls().join(","))
        .envs(environment(&library, &clock));
    let mut client = Process::start(&mut command, &cluster.dir().join("lockctl.log")).unwrap();
    let shows = async |hours: i64| {
        eventually(
            SOON,
            &format!("the client's clock to jump by {hours} h"),
            async || {
                let told = fs::read_to_string(&told).unwrap_or_default();
                let told: i64 = told.trim().parse().ok()?;
                ((offset_s(told) - hours * HOUR_S).abs() < 60).then_some(())
            },
        )
        .await;
    };
    shows(0).await;
    let questions = cluster.questions().unwrap();
    let holder = async || questions.lock("gate").await.unwrap().unwrap().holder.unwrap();
    let token = holder().await.fencing_token;

    for hours in [1, -1] {
        set_clock(&clock, hours * HOUR_S);
        shows(hours).await;
        // Long enough to be ended, if the jump counted for anything.
        sleep(CLIENT_TTL + TTL / 3).await;
        assert_eq!(
            holder().await.fencing_token,
            token,
            "{hours:+} h: it lost its lock"
        );
        assert!(client.ended().is_none(), "{hours:+} h: it gave up");
    }

    let gauge = Gauge::start(&cluster).await;
    client.kill();
    let killed = Instant::now();
    let lasted = until_free(&cluster, "gate", SOON).await - killed;
    let late = gauge.late(&cluster).await;
    late.assert_within(CLIENT_TTL + EXPIRY, lasted, "to be gone after its death");
}
