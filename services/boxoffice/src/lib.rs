//! The box office: the front door of the suite, on one port.
//!
//! It sells nothing itself. It shows a page, passes requests on to whoever owns them, and audits:
//!
//! | path | what happens |
//! |---|---|
//! | `/`, `/assets/…` | the page: HTML, CSS and JavaScript from this program, nothing from elsewhere |
//! | `/v1/purchases`, `/v1/events`, `/v1/holds`, `/v1/payments` | one of the owner's instances (`upstream/`) |
//! | `/v1/locks`, `/v1/cluster`, `/v1/sessions` | the lock cluster's leader |
//! | `/v1/faults` | every instance that has the point |
//! | `/v1/topology` | who is there and how they are |
//! | `/v1/audit/{event_id}` | reads all books and judges (`domain/audit/`) |
//! | `/v1/rounds` | a burst of buyers and a retry storm, judged (the crate `buyers`) |
//! | `/v1/stream` | server-sent events for the page |
//! | `/docs`, `/openapi/{service}.json` | the API of all services |
//!
//! | folder | what happens there |
//! |---|---|
//! | `http/` | parses and answers |
//! | `domain/` | decides: whose path, may it be repeated, what the audit says |
//! | `upstream/` | passes on: choice of instance, when another one, the lock leader |
//! | `workers/` | the prober, the rounds |
//!
//! It has no database. What it knows (health, the last rounds) it can lose.

mod config;
mod domain;
mod http;
mod upstream;
mod workers;

pub use config::{Args, Config};

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use anyhow::Context as _;
use service_kit::{Faults, Metrics, Readiness, Running, ServiceInfo, Starting};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::domain::topology::Topology;
use crate::http::AppState;
use crate::upstream::leader::Nodes;
use crate::upstream::pool::Pool;
use crate::workers::prober::Prober;
use crate::workers::rounds::Rounds;

/// Starts a front door: listens, looks after the instances, serves until `shutdown` falls.
pub fn start(config: Config, shutdown: CancellationToken) -> Starting {
    Box::pin(start_parts(config, shutdown))
}

async fn start_parts(config: Config, shutdown: CancellationToken) -> anyhow::Result<Running> {
    let listener = service_kit::bind(config.listen)?;
    let addr = listener
        .local_addr()
        .context("a listening socket has an address")?;

    let client = upstream::instance::http_client();
    let pool = |name, urls: &[String]| Pool::new(&client, name, urls, config.answer_within);
    let checkout = pool("checkout", &config.checkout)?;
    let inventory = pool("inventory", &config.inventory)?;
    let billing = pool("billing", &config.billing)?;
    let gateway = pool("gateway", std::slice::from_ref(&config.gateway))?;
    let nodes = Nodes::new(
        &client,
        &config.lock_nodes,
        config.lock_token.as_ref(),
        config.answer_within,
    )?;

    let (topology, topology_seen) = watch::channel(Topology::default());
    let locks = watch::Sender::new(Vec::new());
    let prober = Prober {
        pools: vec![
            checkout.clone(),
            inventory.clone(),
            billing.clone(),
            gateway.clone(),
        ],
        nodes: nodes.clone(),
        topology,
        locks: locks.clone(),
        every: config.probe_every,
    };
    let shop = buyers::Shop::new(&format!("http://{}", reachable(addr)))?;
    let rounds = Rounds::new(shop, shutdown.clone());
    let state = AppState::new(
        http::Upstreams {
            checkout,
            inventory,
            billing,
            gateway,
            nodes,
        },
        &config,
        topology_seen.clone(),
        locks,
        rounds.clone(),
        shutdown.clone(),
    )?;

    let (router, openapi) = http::router(state);
    let readiness = Readiness::new().check("suite", move || {
        let missing = topology_seen.borrow().missing();
        async move {
            if missing.is_empty() {
                Ok(())
            } else {
                Err(missing.join(", "))
            }
        }
    });
    let info = ServiceInfo::new("boxoffice", &config.instance, openapi).without_fault_board();
    let metrics = Metrics::new("boxoffice", &config.instance);
    let router = service_kit::finish(router, info, readiness, metrics, Faults::disabled());
    let prober = tokio::spawn(prober.run(shutdown.clone()));
    Ok(service_kit::serve(listener, router, shutdown)
        .also(prober)
        .finally(async move { rounds.ended().await }))
}

/// Where we reach ourselves: "everywhere" is no address to connect to.
fn reachable(addr: SocketAddr) -> SocketAddr {
    match addr.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => SocketAddr::new(Ipv4Addr::LOCALHOST.into(), addr.port()),
        IpAddr::V6(ip) if ip.is_unspecified() => {
            SocketAddr::new(std::net::Ipv6Addr::LOCALHOST.into(), addr.port())
        }
        _ => addr,
    }
}
