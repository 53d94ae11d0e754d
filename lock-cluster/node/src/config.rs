//! What a node needs to be told, as plain values.
//!
//! `cli.rs` turns flags and environment variables into a [`NodeConfig`]; programs that embed a node fill it
//! in themselves. [`NodeConfig::validate`] runs before anything is bound or written, so that a mistake is one
//! clear sentence at start-up and not a cluster that never finds a leader.
//!
//! The rule that matters most here: **without a shared secret, peers may only be on this machine.** Whoever
//! can speak on the peer port can vote, truncate a log or install a snapshot; an open peer port on a network
//! is therefore refused instead of warned about.

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

pub use service_kit::Secret;

/// One member of the cluster, as every node is told about it: `1=127.0.0.1:8601,127.0.0.1:8501`.
///
/// Addresses are text, because in compose they are host names that resolve differently over time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// The member's id, unique in the cluster; another disk has it only after the member was removed.
    pub id: u64,
    /// `host:port` where the other members reach it.
    pub peer_addr: String,
    /// `host:port` where clients reach it.
    pub client_addr: String,
}

impl Member {
    /// The base URL that a client is sent to when this member leads.
    pub fn client_url(&self) -> String {
        format!("http://{}", self.client_addr)
    }
}

impl std::str::FromStr for Member {
    type Err = ConfigError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let malformed = || ConfigError::MalformedMember(text.to_owned());
        let (id, addresses) = text.split_once('=').ok_or_else(malformed)?;
        let (peer_addr, client_addr) = addresses.split_once(',').ok_or_else(malformed)?;
        let has_port = |addr: &str| {
            addr.rsplit_once(':')
                .is_some_and(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok())
        };
        if !has_port(peer_addr) || !has_port(client_addr) {
            return Err(malformed());
        }
        Ok(Self {
            id: id.trim().parse().map_err(|_| malformed())?,
            peer_addr: peer_addr.to_owned(),
            client_addr: client_addr.to_owned(),
        })
    }
}

/// The files of TLS between members, all PEM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerTlsFiles {
    /// This member's certificate, and those between it and the authority. It names the member, as the DNS name
    /// `lock-node-<id>`, and is good for both ends of a connection.
    pub cert: PathBuf,
    /// Its private key.
    pub key: PathBuf,
    /// The authority that signs the members' certificates, and nobody else's.
    pub ca: PathBuf,
}

/// Everything a node is started with.
#[derive(Clone, Debug)]
pub struct NodeConfig {
    /// Which of `members` this node is.
    pub id: u64,
    /// Where the HTTP API listens. Port 0 asks the system for one.
    pub client_addr: SocketAddr,
    /// Where the other members' connections are accepted.
    pub peer_addr: SocketAddr,
    /// The members that this node is told of: all founders, on each of them; the others and itself, on a node that is
    /// taken in later. What the log says of members comes on top.
    pub members: Vec<Member>,
    /// The log, the vote and the snapshot live here. One process at a time.
    pub data_dir: PathBuf,
    /// Found the cluster if there is none yet. May be given to every founder at every start: only the lowest member id
    /// acts on it, while its disk is empty, and when all others have answered that theirs are, too; five seconds later
    /// a majority of such answers is enough.
    pub bootstrap: bool,
    /// With `bootstrap`: a majority is never enough, however long the last one is silent.
    pub bootstrap_all: bool,
    /// What the peers prove to each other that they know.
    pub peer_secret: Option<Secret>,
    /// TLS between the members; the same on all of them, or they refuse each other.
    pub peer_tls: Option<PeerTlsFiles>,
    /// Bearer token of the calls that break locks or change the membership; without one they are refused.
    pub admin_token: Option<Secret>,
    /// Bearer token without which clients are not answered; without one, everybody is who reaches the port.
    pub client_token: Option<Secret>,
    /// Whether the fault points may be switched on.
    pub enable_faults: bool,
}

impl NodeConfig {
    /// This node's own entry in `members`.
    pub fn me(&self) -> Option<&Member> {
        self.members.iter().find(|member| member.id == self.id)
    }

    /// Refuses what could not work or would be open to strangers.
    pub fn validate(&self) -> Result<(), ConfigError> {
        let mut seen = BTreeSet::new();
        if let Some(twice) = self.members.iter().find(|member| !seen.insert(member.id)) {
            return Err(ConfigError::MemberTwice(twice.id));
        }
        if self.me().is_none() {
            return Err(ConfigError::NotAMember {
                id: self.id,
                members: seen.into_iter().collect(),
            });
        }
        if self.peer_secret.is_none() {
            if !self.peer_addr.ip().is_loopback() {
                return Err(ConfigError::OpenPeerPort(self.peer_addr.to_string()));
            }
            if let Some(far) = self.members.iter().find(|member| !is_loopback(&member.peer_addr)) {
                return Err(ConfigError::OpenPeerPort(far.peer_addr.clone()));
            }
        }
        Ok(())
    }
}

/// Whether `host:port` stays on this machine. A name other than `localhost` may resolve to anything.
fn is_loopback(addr: &str) -> bool {
    let host = addr.rsplit_once(':').map_or(addr, |(host, _)| host);
    let host = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

/// Why a node refuses to start with this configuration.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum ConfigError {
    /// The text is not `ID=PEER_HOST:PORT,CLIENT_HOST:PORT`.
    #[error("a member is written ID=PEER_HOST:PORT,CLIENT_HOST:PORT, not {0:?}")]
    MalformedMember(String),
    /// The same id was given twice.
    #[error("member {0} is listed twice")]
    MemberTwice(u64),
    /// The node's own id is missing from the list.
    #[error("this node's id is {id}, which is not among the members {members:?}")]
    NotAMember {
        /// The id given.
        id: u64,
        /// The ids listed.
        members: Vec<u64>,
    },
    /// A peer address beyond this machine without a secret.
    #[error(
        "peer address {0} is reachable from other machines, but no peer secret is configured: set one on every node, or use loopback addresses"
    )]
    OpenPeerPort(String),
    /// Where a node shall listen is no IP address with a port.
    #[error("a node cannot listen at {0:?}: it takes an IP address and a port")]
    NoAddress(String),
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config() -> NodeConfig {
        NodeConfig {
            members: vec![
                "1=127.0.0.1:8601,127.0.0.1:8501".parse().unwrap(),
                "2=localhost:8602,127.0.0.1:8502".parse().unwrap(),
            ],
            ..NodeConfig::alone("unused")
        }
    }

    #[test]
    fn loopback_peers_need_no_secret() {
        assert_eq!(config().validate(), Ok(()));
    }

    #[test]
    fn a_peer_beyond_this_machine_needs_a_secret() {
        let mut open = config();
        open.members[1].peer_addr = "lock-2:8602".to_owned();
        assert_eq!(
            open.validate(),
            Err(ConfigError::OpenPeerPort("lock-2:8602".to_owned()))
        );
        open.peer_secret = Secret::new("tell nobody");
        assert_eq!(open.validate(), Ok(()));

        let mut listening_everywhere = config();
        listening_everywhere.peer_addr = "0.0.0.0:8601".parse().unwrap();
        assert!(matches!(
            listening_everywhere.validate(),
            Err(ConfigError::OpenPeerPort(_))
        ));
    }

    #[test]
    fn a_node_must_be_one_of_its_members_and_each_member_once() {
        let mut stranger = config();
        stranger.id = 9;
        assert!(matches!(
            stranger.validate(),
            Err(ConfigError::NotAMember { id: 9, .. })
        ));
        let mut twice = config();
        twice.members.push(twice.members[0].clone());
        assert_eq!(twice.validate(), Err(ConfigError::MemberTwice(1)));
    }

    #[test]
    fn a_member_is_an_id_and_two_addresses() {
        let member: Member = "3=lock-3:8603,lock-3:8503".parse().unwrap();
        assert_eq!(member.client_url(), "http://lock-3:8503");
        for text in [
            "",
            "3",
            "3=a:1",
            "x=a:1,b:2",
            "3=a,b:2",
            "3=a:1,b:notaport",
            "3=:1,b:2",
        ] {
            assert!(text.parse::<Member>().is_err(), "{text:?} was accepted");
        }
    }
}
