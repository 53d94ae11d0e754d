//! The parts' own configurations, drawn from the suite's. One function a part, so that what differs between
//! the all-in-one and a program of its own can be read in one place.

use std::net::SocketAddr;

use lock_node::{NodeConfig, Secret};

use crate::config::{SuiteConfig, urls};

fn on(port: u16) -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], port))
}

/// The member of the lock cluster that the first instance of a service hosts.
fn lock_member(config: &SuiteConfig, id: u64, secret: &Secret) -> NodeConfig {
    let at = id as usize - 1;
    NodeConfig {
        id,
        client_addr: on(config.ports.lock_clients[at]),
        peer_addr: on(config.ports.lock_peers[at]),
        members: config.members(),
        peer_secret: Some(secret.clone()),
        client_token: config.lock_token.clone(),
        enable_faults: config.faults,
        ..NodeConfig::alone(config.data_dir.join(format!("lock-node-{id}")))
    }
}

pub(crate) fn gateway(config: &SuiteConfig) -> card_gateway::Config {
    card_gateway::Config {
        listen: on(config.ports.gateway),
        enable_faults: config.faults,
        ..card_gateway::Config::new(config.database("gateway"))
    }
}

pub(crate) fn inventory(config: &SuiteConfig, instance: usize, secret: &Secret) -> inventory::Config {
    inventory::Config {
        listen: on(config.ports.inventory[instance]),
        default_strategy: config.strategy,
        lock_urls: urls(&config.ports.lock_clients),
        lock_token: config.lock_token.clone(),
        enable_faults: config.faults,
        embedded_node: (instance == 0).then(|| lock_member(config, 1, secret)),
        ..inventory::Config::new(
            format!("inventory-{}", instance + 1),
            config.database("inventory"),
        )
    }
}

pub(crate) fn billing(config: &SuiteConfig, instance: usize, secret: &Secret) -> billing::Config {
    let gateway = format!("http://{}", on(config.ports.gateway));
    billing::Config {
        listen: on(config.ports.billing[instance]),
        instance: format!("billing-{}", instance + 1),
        default_strategy: config.strategy,
        lock_urls: urls(&config.ports.lock_clients),
        lock_token: config.lock_token.clone(),
        enable_faults: config.faults,
        embedded_node: (instance == 0).then(|| lock_member(config, 2, secret)),
        ..billing::Config::new(config.database("billing"), gateway)
    }
}

pub(crate) fn checkout(config: &SuiteConfig, instance: usize, secret: &Secret) -> checkout::Config {
    let ports = &config.ports;
    let (inventory, billing) = (urls(&ports.inventory), urls(&ports.billing));
    checkout::Config {
        listen: on(ports.checkout[instance]),
        instance: format!("checkout-{}", instance + 1),
        default_strategy: config.strategy,
        lock_token: config.lock_token.clone(),
        enable_faults: config.faults,
        embedded_node: (instance == 0).then(|| lock_member(config, 3, secret)),
        ..checkout::Config::new(
            config.database("checkout"),
            inventory,
            billing,
            urls(&ports.lock_clients),
        )
    }
}

pub(crate) fn boxoffice(config: &SuiteConfig) -> boxoffice::Config {
    let ports = &config.ports;
    boxoffice::Config {
        listen: on(ports.front_door),
        checkout: urls(&ports.checkout),
        inventory: urls(&ports.inventory),
        billing: urls(&ports.billing),
        gateway: format!("http://{}", on(ports.gateway)),
        lock_nodes: urls(&ports.lock_clients),
        lock_token: config.lock_token.clone(),
        ..boxoffice::Config::default()
    }
}
