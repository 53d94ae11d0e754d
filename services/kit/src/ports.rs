//! Free ports, for what must be told its own before it starts: a suite for a load test, a cluster to be measured.

use std::collections::BTreeSet;
use std::net::TcpListener;

/// Below those that the kernel takes for outgoing connections, of which a burst or a measurement makes hundreds: whoever is
/// started again would now and then find its own taken. And below those that the tests of this workspace share out among
/// themselves (from 14,000), for the same reason.
const RANGE: std::ops::Range<u16> = 10_000..14_000;

/// So many different ports of 127.0.0.1 that nobody listens on now.
///
/// # Errors
/// There are not so many.
pub fn free_ports(count: usize) -> anyhow::Result<Vec<u16>> {
    let mut found = BTreeSet::new();
    for _ in 0..1_000 {
        if found.len() == count {
            return Ok(found.into_iter().collect());
        }
        let port = rand::random_range(RANGE);
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            found.insert(port);
        }
    }
    anyhow::bail!("no {count} free ports on 127.0.0.1 in {RANGE:?}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_different_and_below_those_of_outgoing_connections() {
        let ports: BTreeSet<u16> = free_ports(9).unwrap().into_iter().collect();
        assert_eq!(ports.len(), 9);
        assert!(ports.iter().all(|port| RANGE.contains(port)));
    }
}
