//! How late the machine was, so that a promised bound can be asserted as it is worded.
//!
//! A bound of seconds that is missed while the machine compiles says nothing about the cluster, and slack for the busiest
//! machine would hide a second that the cluster wastes on an idle one. So the machine is watched while the bound runs, and
//! what it took is all that is added:
//!
//! * how long threads of the nodes, and our own, were ready to run and waited for a processor: the kernel counts that;
//! * how late a thread woke up that sleeps all the time: what a hypervisor takes is in no count of the kernel's;
//! * how long small writes took to reach the disk, beyond what a disk that is well takes.
//!
//! All three are totals over the time of the bound, because what happens in it is a chain of steps, any of which may have
//! been held up. And there may be an election that nobody asked for, if the machine was late by as much as it takes to
//! miss a leader: the contract allows for one.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::{self, File};
use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use lock_chaos::cluster::Cluster;

use crate::raw::SOON;

/// How long the watching threads sleep.
const TICK: Duration = Duration::from_millis(10);
/// What waking up may take on a machine that is not late.
const WAKE_UP: Duration = Duration::from_millis(1);
/// What a flush may take on a disk that is well.
const FLUSH: Duration = Duration::from_millis(10);
/// A leader is missed after this (`ELECTION_MS_MAX` of the node's settings).
const LEASE: Duration = Duration::from_millis(600);
/// And replaced after this.
const ELECTION: Duration = Duration::from_millis(1_200);

/// Watches the machine for as long as it lives.
pub(crate) struct Gauge {
    watched: Arc<Watched>,
    threads: Vec<JoinHandle<()>>,
    /// What each thread had waited before.
    waited: Waits,
    term: u64,
}

/// How long each thread has waited for a processor, by process and thread: a total of those that are alive would fall
/// when one of them ends.
type Waits = BTreeMap<(u32, u32), Duration>;

/// Nanoseconds, as they come together.
#[derive(Default)]
struct Watched {
    stop: AtomicBool,
    late: AtomicU64,
    flushing: AtomicU64,
}

impl Gauge {
    /// Begins to watch.
    pub(crate) async fn start(cluster: &Cluster) -> Self {
        let watched = Arc::new(Watched::default());
        let file = File::create(cluster.dir().join("flushed")).unwrap();
        let (sleeping, flushing) = (watched.clone(), watched.clone());
        let threads = vec![
            thread::spawn(move || sleeping.sleep()),
            thread::spawn(move || flushing.flush(file)),
        ];
        Self {
            watched,
            threads,
            waited: waited(cluster),
            term: term(cluster).await,
        }
    }

    /// How late the machine was since then.
    pub(crate) async fn late(&self, cluster: &Cluster) -> Lateness {
        let nanos = |total: &AtomicU64| Duration::from_nanos(total.load(Ordering::Relaxed));
        Lateness {
            waited: since(&self.waited, &waited(cluster)),
            woke: nanos(&self.watched.late),
            flushed: nanos(&self.watched.flushing),
            elections: term(cluster).await.saturating_sub(self.term),
        }
    }
}

impl Drop for Gauge {
    fn drop(&mut self) {
        self.watched.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

impl Watched {
    fn sleep(&self) {
        self.add_each(&self.late, TICK + WAKE_UP, || thread::sleep(TICK));
    }

    fn flush(&self, mut file: File) {
        self.add_each(&self.flushing, FLUSH, || {
            let _ = file.write_all(b"late?").and_then(|()| file.sync_data());
        });
    }

    /// Does it again and again, and adds up what it takes beyond what it may take.
    fn add_each(&self, total: &AtomicU64, may_take: Duration, mut once: impl FnMut()) {
        while !self.stop.load(Ordering::Relaxed) {
            let begun = Instant::now();
            once();
            let late = begun.elapsed().saturating_sub(may_take);
            total.fetch_add(u64::try_from(late.as_nanos()).unwrap(), Ordering::Relaxed);
            thread::sleep(TICK);
        }
    }
}

/// What the machine is to blame for.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Lateness {
    waited: Duration,
    woke: Duration,
    flushed: Duration,
    elections: u64,
}

impl Lateness {
    /// The same where the test itself asks for elections.
    pub(crate) fn without_elections(self) -> Self {
        Self { elections: 0, ..self }
    }

    fn total(&self) -> Duration {
        let machine = self.waited + self.woke + self.flushed;
        let election = self.elections > 0 && machine >= LEASE;
        machine + if election { ELECTION } else { Duration::ZERO }
    }

    /// Says how long something took, and asserts that it took no longer than was promised.
    pub(crate) fn assert_within(&self, bound: Duration, took: Duration, what: &str) {
        println!("{what} took {took:?} of the promised {bound:?}; {self}");
        assert!(
            took <= bound + self.total(),
            "{what} took {took:?} instead of {bound:?}; {self}"
        );
    }
}

impl fmt::Display for Lateness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            waited,
            woke,
            flushed,
            elections,
        } = self;
        write!(
            f,
            "the machine was late by {waited:.1?} for a processor, {woke:.1?} in waking up, {flushed:.1?} in writing, \
             with {elections} elections"
        )
    }
}

/// What the threads of the nodes and of this process have waited.
fn waited(cluster: &Cluster) -> Waits {
    let all = cluster.process_ids().into_iter().chain([std::process::id()]);
    all.flat_map(waited_by).collect()
}

/// What the threads of a process have waited; nothing where the kernel does not count it.
fn waited_by(process: u32) -> Waits {
    let threads = fs::read_dir(Path::new("/proc").join(process.to_string()).join("task"));
    let waited = |thread: fs::DirEntry| {
        let id = thread.file_name().to_str()?.parse().ok()?;
        // Time on a processor, time waited for one, and how often (Linux, Documentation/scheduler/sched-stats.rst).
        let counts = fs::read_to_string(thread.path().join("schedstat")).ok()?;
        let waited = counts.split(' ').nth(1)?.parse().ok()?;
        Some(((process, id), Duration::from_nanos(waited)))
    };
    threads
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(waited)
        .collect()
}

/// What they have waited meanwhile. The last waits of a thread that has ended are not in it: no bound gets wider by them.
fn since(before: &Waits, now: &Waits) -> Duration {
    let before = |thread| before.get(thread).copied().unwrap_or_default();
    now.iter()
        .map(|(thread, now)| now.saturating_sub(before(thread)))
        .sum()
}

async fn term(cluster: &Cluster) -> u64 {
    let leader = cluster.wait_for_leader(SOON).await.expect("a leader");
    cluster.status(leader).await.map_or(0, |status| status.term)
}

/// What the gauge says on a machine that has nothing else to do, and on one of whose processors everybody wants two.
#[test]
fn a_thread_that_has_to_wait_for_a_processor_is_noticed() {
    let before = waited_by(std::process::id());
    if before.is_empty() {
        eprintln!("THE WAIT FOR A PROCESSOR IS NOT MEASURED: this kernel keeps no schedstat");
        return;
    }
    let stop = Arc::new(AtomicBool::new(false));
    let many = 4 * thread::available_parallelism().map_or(1, usize::from);
    let spin = |stop: Arc<AtomicBool>| while !stop.load(Ordering::Relaxed) {};
    let spinning: Vec<_> = (0..many)
        .map(|_| {
            let stop = stop.clone();
            thread::spawn(move || spin(stop))
        })
        .collect();
    let deadline = Instant::now() + SOON;
    let mut noticed = Duration::ZERO;
    while noticed < Duration::from_millis(500) && Instant::now() < deadline {
        thread::sleep(TICK);
        noticed = since(&before, &waited_by(std::process::id()));
    }
    stop.store(true, Ordering::Relaxed);
    spinning.into_iter().for_each(|thread| thread.join().unwrap());
    assert!(noticed >= Duration::from_millis(500), "only {noticed:?}");
}

#[test]
fn a_thread_that_ends_takes_nothing_from_what_the_others_have_waited() {
    let waits = |waits: &[(u32, u64)]| -> Waits {
        let wait = |&(thread, ms): &(u32, u64)| ((1, thread), Duration::from_millis(ms));
        waits.iter().map(wait).collect()
    };
    let (before, now) = (waits(&[(10, 900), (11, 5)]), waits(&[(11, 25), (12, 30)]));
    assert_eq!(since(&before, &now), Duration::from_millis(20 + 30));
}
