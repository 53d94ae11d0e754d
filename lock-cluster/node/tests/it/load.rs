//! Clients at work while the cluster under them is changed: what they saw must be what locks are for.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use lock_client::{Grant, LockClient};
use tokio::task::JoinHandle;

use crate::cluster::Cluster;

/// Long enough for an election on a machine that does much else.
const TTL: Duration = Duration::from_secs(10);
const NAMES: usize = 4;
const WORKERS: usize = 8;

/// Sessions that do nothing but live and hold, and workers that hand a few locks around.
pub(crate) struct Load {
    holders: Vec<(LockClient, Grant)>,
    workers: Vec<JoinHandle<()>>,
    stop: Arc<AtomicBool>,
    seen: Arc<Seen>,
}

/// What the workers saw inside of their sections.
#[derive(Default)]
struct Seen {
    /// For each name: whether somebody is inside, and the highest token.
    names: Mutex<BTreeMap<String, (bool, u64)>>,
    grants: AtomicU64,
    violations: Mutex<Vec<String>>,
}

impl Seen {
    fn enter(&self, name: &str, token: u64) {
        let mut names = self.names.lock().expect("no panic in here");
        let (inside, highest) = names.entry(name.to_owned()).or_default();
        if *inside || token <= *highest {
            let what = format!("{name} was granted with token {token}: inside {inside}, highest {highest}");
            self.violations.lock().expect("no panic in here").push(what);
        }
        (*inside, *highest) = (true, token);
        self.grants.fetch_add(1, Ordering::Relaxed);
    }

    fn leave(&self, name: &str) {
        if let Some((inside, _)) = self.names.lock().expect("no panic in here").get_mut(name) {
            *inside = false;
        }
    }
}

impl Load {
    /// Starts it: so many sessions that each hold a lock of their own until the end.
    pub(crate) async fn start(cluster: &Cluster, sessions: usize) -> Self {
        let mut holders = Vec::new();
        for number in 0..sessions {
            let client = cluster.client(&format!("holder {number}"), TTL).await;
            let grant = client
                .acquire(&[format!("own/{number}")], TTL)
                .await
                .expect("granted");
            holders.push((client, grant));
        }
        let (stop, seen) = (Arc::new(AtomicBool::new(false)), Arc::new(Seen::default()));
        let mut workers = Vec::new();
        for number in 0..WORKERS {
            let client = cluster.client(&format!("worker {number}"), TTL).await;
            let (stop, seen) = (stop.clone(), seen.clone());
            workers.push(tokio::spawn(
                async move { work(&client, number, &stop, &seen).await },
            ));
        }
        Self {
            holders,
            workers,
            stop,
            seen,
        }
    }

    /// Waits until so many more grants were seen: the cluster works in the state it is in now.
    pub(crate) async fn goes_on(&self, grants: u64) {
        let target = self.seen.grants.load(Ordering::Relaxed) + grants;
        testkit::eventually(Duration::from_secs(30), "work to go on", async || {
            (self.seen.grants.load(Ordering::Relaxed) >= target).then_some(())
        })
        .await;
    }

    /// Ends it: no session was lost, nobody was inside with another, tokens only grew.
    pub(crate) async fn ends_well(self) -> u64 {
        self.stop.store(true, Ordering::Relaxed);
        for worker in self.workers {
            worker.await.expect("no worker panics");
        }
        let mut highest = 0;
        for (client, grant) in self.holders {
            assert!(
                !grant.is_lost(),
                "the session that holds {:?} was lost",
                grant.names()
            );
            highest = highest.max(grant.fencing_token());
            grant.release().await.expect("still held, and now released");
            client.close().await;
        }
        let violations = self.seen.violations.lock().expect("no panic in here").clone();
        assert_eq!(violations, Vec::<String>::new());
        self.seen.grants.load(Ordering::Relaxed)
    }
}

async fn work(client: &LockClient, number: usize, stop: &AtomicBool, seen: &Seen) {
    let mut turn = number;
    while !stop.load(Ordering::Relaxed) {
        turn += 1;
        let name = format!("shared/{}", turn % NAMES);
        // Without an answer in time it asks again; that is no violation.
        let Ok(grant) = client.acquire(std::slice::from_ref(&name), TTL).await else {
            continue;
        };
        seen.enter(&name, grant.fencing_token());
        tokio::task::yield_now().await;
        assert!(!grant.is_lost(), "a worker's session was lost");
        seen.leave(&name);
        drop(grant);
    }
    client.close().await;
}
