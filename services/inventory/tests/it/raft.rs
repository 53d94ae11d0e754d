//! Inventory with the lock cluster: three real nodes in this process.

use std::time::Duration;

use futures::future::{join, join_all};
use lock_node::{Member, Node, NodeConfig};
use reqwest::Method;
use serde_json::{Value, json};
use tempfile::TempDir;
use testkit::{TestDb, eventually, free_ports};
use ticketing_types::Strategy;

use crate::shop::{Shop, cart, cart_for, outcomes};

const SOON: Duration = Duration::from_secs(30);
/// As the suite has it: nothing here takes that long.
const SESSION_TTL: Duration = Duration::from_secs(5);
/// Where a holder is paused: short, so that it is soon taken for dead.
const SESSION_TTL_SHORT: Duration = Duration::from_secs(1);

/// Lock nodes that can be stopped and started again.
struct Cluster {
    members: Vec<Member>,
    dirs: TempDir,
    nodes: Vec<Node>,
}

impl Cluster {
    async fn start(size: u64) -> Self {
        let ports = free_ports(2 * usize::try_from(size).expect("small"));
        let members = (1..=size).zip(ports.chunks(2)).map(|(id, ports)| Member {
            id,
            peer_addr: format!("127.0.0.1:{}", ports[0]),
            client_addr: format!("127.0.0.1:{}", ports[1]),
        });
        let dirs = tempfile::tempdir().expect("a directory");
        let mut cluster = Self {
            members: members.collect(),
            dirs,
            nodes: Vec::new(),
        };
        cluster.start_again().await;
        cluster
    }

    async fn start_again(&mut self) {
        for member in &self.members {
            let data_dir = self.dirs.path().join(member.id.to_string());
            let config = NodeConfig::member(member.id, &self.members, data_dir).expect("addresses");
            self.nodes.push(Node::start(config).await.expect("a node starts"));
        }
        eventually(SOON, "a leader", async || {
            self.nodes.iter().find_map(|node| node.service().status().leader)
        })
        .await;
    }

    async fn stop(&mut self) {
        for node in self.nodes.drain(..) {
            node.shutdown().await;
        }
    }

    /// Two instances that use this cluster.
    async fn shop(&self, db: &TestDb) -> Shop {
        self.shop_with(db, SESSION_TTL).await
    }

    async fn shop_with(&self, db: &TestDb, session_ttl: Duration) -> Shop {
        Shop::open_with(db, 2, |config| {
            config.default_strategy = Strategy::Raft;
            config.lock_urls = self.members.iter().map(Member::client_url).collect();
            config.session_ttl = session_ttl;
        })
        .await
    }
}

fn tokens(records: &Value) -> Vec<i64> {
    let tokens = records["accepted_tokens"].as_array().expect("a list");
    tokens
        .iter()
        .map(|token| token.as_i64().expect("a number"))
        .collect()
}

/// Lets instance 0 stop between its read and its write for longer than its session lives, while instance 1 sells
/// the one ticket there is. Answers what the stopped request is answered when it goes on.
async fn a_holder_is_paused(shop: &Shop, event: &str, strategy: Strategy) -> crate::shop::Reply {
    shop.event(event, 1).await;
    let headers = [
        ("lock-strategy", strategy.name()),
        ("fault", "inventory.critical-section=pause=5s"),
    ];
    let (path, wish) = (format!("/v1/holds/{event}-paused"), cart("ann", &[(event, 1)]));
    let before = shop.fired(0).await;
    let paused = shop.send(0, Method::PUT, &path, &headers, Some(&wish));
    let other = async {
        eventually(SOON, "ann is inside", async || {
            (shop.fired(0).await > before).then_some(())
        })
        .await;
        let id = format!("{event}-other");
        shop.place(1, &id, &cart("bob", &[(event, 1)]), strategy)
            .await
            .is(201);
        shop.confirm(1, &id).await.is(200);
    };
    join(paused, other).await.0
}

testkit::for_each_engine! {
    async fn a_burst_over_two_instances_sells_every_ticket_once(db: TestDb) {
        let mut cluster = Cluster::start(3).await;
        let shop = cluster.shop(&db).await;
        for strategy in [Strategy::Raft, Strategy::RaftUnfenced] {
            let event = format!("e-{strategy}");
            shop.event(&event, 20).await;
            let replies = shop.burst(&event, 120, strategy).await;
            let counts = outcomes(&replies);
            assert_eq!(counts.get("201"), Some(&20), "{strategy}: {counts:?}");
            assert_eq!(counts.get("409 sold-out"), Some(&100), "{strategy}: {counts:?}");
            let stock = shop.stock(&event).await;
            stock.adds_up();
            assert_eq!(stock.sold, 20, "{strategy}");
            let waited = |reply: &&crate::shop::Reply| reply.body["timings"]["lock_wait_ms"].as_f64() > Some(0.0);
            assert!(replies.iter().filter(|reply| reply.status == 201).all(|reply| waited(&reply)), "{strategy}");
        }
        let tokens = tokens(&shop.records("e-raft").await);
        assert_eq!(tokens.len(), 20);
        assert!(tokens.is_sorted(), "I8: {tokens:?}");
        shop.close().await;
        cluster.stop().await;
    }

    async fn a_paused_holder_is_refused_by_the_fence_and_by_nothing_else(db: TestDb) {
        let mut cluster = Cluster::start(3).await;
        let shop = cluster.shop_with(&db, SESSION_TTL_SHORT).await;

        a_holder_is_paused(&shop, "fenced", Strategy::Raft).await.is_problem(409, "stale-fencing-token");
        let stock = shop.stock("fenced").await;
        stock.adds_up();
        assert_eq!((stock.sold, stock.held), (1, 0));
        let records = shop.records("fenced").await;
        assert_eq!(records["stale_tokens_rejected"], 1);
        // Nothing happened, so the same hold may be asked for again.
        let again = shop.place(0, "fenced-paused", &cart("ann", &[("fenced", 1)]), Strategy::Raft).await;
        again.is_problem(409, "sold-out");

        a_holder_is_paused(&shop, "unfenced", Strategy::RaftUnfenced).await.is(201);
        shop.confirm(0, "unfenced-paused").await.is(200);
        assert_eq!(shop.stock("unfenced").await.oversold, 1, "a lock without a fence is not enough");
        shop.close().await;
        cluster.stop().await;
    }

    async fn a_holder_that_wakes_between_the_read_and_the_write_of_the_next_one_is_refused(db: TestDb) {
        let mut cluster = Cluster::start(3).await;
        let shop = cluster.shop_with(&db, SESSION_TTL_SHORT).await;
        shop.event("e", 1).await;
        let hold = async |at: usize, buyer: &str, fault: &str| {
            let headers = [("lock-strategy", "raft"), ("fault", fault)];
            let path = format!("/v1/holds/{buyer}");
            shop.send(at, Method::PUT, &path, &headers, Some(&cart(buyer, &[("e", 1)]))).await
        };
        // Ann reads 1 and is stopped for longer than her session lives.
        let ann = hold(0, "ann", "inventory.critical-section=pause=5s");
        // Bob gets her lock, reads 1, and is only slow: his session lives. Ann writes before he does.
        let bob = async {
            eventually(SOON, "ann is inside", async || (shop.fired(0).await == 1).then_some(())).await;
            hold(1, "bob", "inventory.critical-section=delay=6s").await
        };
        let between = async {
            let ann = ann.await;
            (ann, shop.fired(1).await, shop.records("e").await)
        };
        let ((ann, fired, then), bob) = join(between, bob).await;
        assert_eq!(fired, 1, "bob had read");
        assert!(then["holds"].as_array().is_none_or(|holds| holds.iter().all(|hold| hold["id"] != "bob")), "{then}");
        ann.is_problem(409, "stale-fencing-token");
        bob.is(201);
        let stock = shop.stock("e").await;
        stock.adds_up();
        assert_eq!((stock.available, stock.held), (0, 1));
        assert_eq!(shop.records("e").await["stale_tokens_rejected"], 1);
        shop.close().await;
        cluster.stop().await;
    }

    async fn carts_over_the_same_events_in_another_order_all_get_their_tickets(db: TestDb) {
        let mut cluster = Cluster::start(3).await;
        let shop = cluster.shop(&db).await;
        shop.event_with(json!({ "id": "a", "capacity": 1000, "max_per_buyer": 2 })).await;
        shop.event("b", 1000).await;
        let replies = join_all((0..60).map(|at| {
            let shop = &shop;
            let items = if at % 2 == 0 { [("a", 1), ("b", 1)] } else { [("b", 1), ("a", 1)] };
            async move { shop.place(at, &format!("h{at}"), &cart(&format!("buyer-{at}"), &items), Strategy::Raft).await }
        }))
        .await;
        assert_eq!(outcomes(&replies).get("201"), Some(&60));

        // The limit stands inside the same section.
        let wish = cart("ann", &[("a", 1)]);
        let ids: Vec<_> = (0..30).map(|at| format!("limit-{at}")).collect();
        let replies = join_all(ids.iter().enumerate().map(|(at, id)| shop.place(at, id, &wish, Strategy::Raft))).await;
        let counts = outcomes(&replies);
        assert_eq!(counts.get("201"), Some(&2), "{counts:?}");
        assert_eq!(counts.get("422 limit-reached"), Some(&28), "{counts:?}");
        for event in ["a", "b"] {
            shop.stock(event).await.adds_up();
        }
        shop.close().await;
        cluster.stop().await;
    }

    async fn stock_that_comes_back_during_a_burst_is_not_lost(db: TestDb) {
        let mut cluster = Cluster::start(3).await;
        let shop = cluster.shop(&db).await;
        shop.event("e", 60).await;
        // A third of the holds is released at once, a third left to its time, a third confirmed.
        let confirmed: usize = join_all((0..60).map(|at| {
            let shop = &shop;
            async move {
                let id = format!("h{at}");
                let wish = cart_for(1_000, &format!("buyer-{at}"), &[("e", 1)]);
                shop.place(at, &id, &wish, Strategy::Raft).await.is(201);
                match at % 3 {
                    0 => shop.release(at + 1, &id).await.is(204),
                    1 => return 0,
                    _ => {
                        let confirmed = shop.confirm(at + 1, &id).await;
                        return usize::from(confirmed.status == 200);
                    }
                };
                0
            }
        }))
        .await
        .into_iter()
        .sum();
        let stock = eventually(SOON, "no hold is left", async || {
            let stock = shop.stock("e").await;
            (stock.held == 0).then_some(stock)
        })
        .await;
        stock.adds_up();
        assert_eq!(stock.sold, i64::try_from(confirmed).expect("small"));
        let records = shop.records("e").await;
        assert!(tokens(&records).is_sorted(), "I8");
        shop.close().await;
        cluster.stop().await;
    }

    async fn a_release_without_a_cluster_is_owed_until_the_cluster_is_back(db: TestDb) {
        let mut cluster = Cluster::start(1).await;
        let shop = cluster.shop(&db).await;
        shop.event("e", 5).await;
        shop.place(0, "h", &cart("ann", &[("e", 2)]), Strategy::Raft).await.is(201);
        cluster.stop().await;

        shop.release(0, "h").await.is(204);
        let stock = shop.stock("e").await;
        assert_eq!((stock.available, stock.held), (3, 2), "owed");
        shop.confirm(1, "h").await.is_problem(409, "hold-closed");

        cluster.start_again().await;
        let stock = eventually(SOON, "the debt is paid", async || {
            let stock = shop.stock("e").await;
            (stock.held == 0).then_some(stock)
        })
        .await;
        assert_eq!(stock.available, 5);
        shop.close().await;
        cluster.stop().await;
    }

    async fn debts_that_wait_for_a_cluster_keep_no_other_strategy_from_its_own(db: TestDb) {
        let mut cluster = Cluster::start(1).await;
        let shop = cluster.shop(&db).await;
        // More events than a worker goes after at once.
        let ids: Vec<_> = (0..40).map(|number| format!("raft-{number}")).collect();
        for (at, id) in ids.iter().enumerate() {
            shop.event(id, 1).await;
            shop.place(at, id, &cart("ann", &[(id, 1)]), Strategy::Raft).await.is(201);
        }
        shop.event("atomic", 1).await;
        cluster.stop().await;
        for released in join_all(ids.iter().enumerate().map(|(at, id)| shop.release(at, id))).await {
            released.is(204);
        }
        // Its time is over when the worker has begun to go after the others.
        let wish = cart_for(4_000, "ann", &[("atomic", 1)]);
        shop.place(0, "atomic", &wish, Strategy::Atomic).await.is(201);

        // Within the time for which those wait for their lock.
        eventually(Duration::from_secs(20), "time has given the hold back", async || {
            (shop.stock("atomic").await.held == 0).then_some(())
        })
        .await;
        assert_eq!(shop.stock("raft-0").await.held, 1, "still owed");
        shop.close().await;
    }
}
