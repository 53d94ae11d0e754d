//! Configurations in one line, for programs that embed nodes. The examples show them at work.

use std::net::SocketAddr;
use std::path::PathBuf;

use crate::config::{ConfigError, Member, NodeConfig};

impl NodeConfig {
    /// A node on its own, on loopback and whatever ports are free: for one program's locks, and for tests.
    pub fn alone(data_dir: impl Into<PathBuf>) -> Self {
        let any_port = SocketAddr::from(([127, 0, 0, 1], 0));
        let me = Member {
            id: 1,
            peer_addr: any_port.to_string(),
            client_addr: any_port.to_string(),
        };
        Self {
            id: me.id,
            client_addr: any_port,
            peer_addr: any_port,
            members: vec![me],
            data_dir: data_dir.into(),
            bootstrap: true,
            bootstrap_all: false,
            peer_secret: None,
            peer_tls: None,
            admin_token: None,
            client_token: None,
            enable_faults: false,
        }
    }

    /// The member `id` of `members`, listening where its entry says. Secrets are added afterwards.
    ///
    /// # Errors
    /// `id` is none of them, or an address is no `IP:port` to listen at.
    pub fn member(id: u64, members: &[Member], data_dir: impl Into<PathBuf>) -> Result<Self, ConfigError> {
        let me = members.iter().find(|member| member.id == id);
        let me = me.ok_or_else(|| ConfigError::NotAMember {
            id,
            members: members.iter().map(|member| member.id).collect(),
        })?;
        let listen = |addr: &str| addr.parse().map_err(|_| ConfigError::NoAddress(addr.to_owned()));
        Ok(Self {
            id,
            client_addr: listen(&me.client_addr)?,
            peer_addr: listen(&me.peer_addr)?,
            members: members.to_vec(),
            ..Self::alone(data_dir)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_listens_where_its_entry_says() {
        let members = ["1=127.0.0.1:8601,127.0.0.1:8501", "2=10.0.0.2:8602,0.0.0.0:8502"]
            .map(|text| text.parse().unwrap());
        let config = NodeConfig::member(2, &members, "unused").unwrap();
        assert_eq!(config.peer_addr, SocketAddr::from(([10, 0, 0, 2], 8602)));
        assert_eq!(config.client_addr, SocketAddr::from(([0, 0, 0, 0], 8502)));
        assert!(config.validate().is_err(), "an open peer port needs its secret");
    }

    #[test]
    fn an_id_that_is_no_member_and_a_host_name_are_refused() {
        let members = ["1=localhost:8601,127.0.0.1:8501".parse().unwrap()];
        assert!(NodeConfig::member(2, &members, "unused").is_err());
        let error = NodeConfig::member(1, &members, "unused").unwrap_err();
        assert_eq!(error, ConfigError::NoAddress("localhost:8601".to_owned()));
    }

    #[test]
    fn a_node_alone_is_valid() {
        assert_eq!(NodeConfig::alone("unused").validate(), Ok(()));
    }
}
