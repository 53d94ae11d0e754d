//! A node's flags: for the `lock-node` program, and for programs that host a member beside their own work.
//!
//! Both take the same flags; only how the id is given differs. A member's addresses default to those of its own
//! `--member` entry, so that one list, the same on every node, says everything. Secrets come from a file or from
//! the environment, never from an argument: arguments are readable by every user of the machine.

use std::net::{SocketAddr, ToSocketAddrs};
use std::path::PathBuf;

use anyhow::{Context, ensure};
use clap::Args;

use crate::config::{Member, NodeConfig, PeerTlsFiles, Secret};

/// Environment variable with the peers' shared secret, where no file is given.
const PEER_SECRET: &str = "LOCK_NODE_PEER_SECRET";
/// Environment variable with the administrators' token, where no file is given.
const ADMIN_TOKEN: &str = "LOCK_NODE_ADMIN_TOKEN";
/// Environment variable with the clients' token, where no file is given.
const CLIENT_TOKEN: &str = "LOCK_NODE_CLIENT_TOKEN";

/// The flags of the `lock-node` program.
#[derive(Clone, Debug, Args)]
pub struct NodeArgs {
    /// Which of the members this node is
    #[arg(long, env = "LOCK_NODE_ID")]
    pub id: u64,

    #[command(flatten)]
    member: MemberArgs,

    /// Let faults be injected (/v1/faults); never in production
    #[arg(long, env = "ENABLE_FAULTS", value_parser = clap::builder::FalseyValueParser::new())]
    pub enable_faults: bool,
}

/// The flags of a program that can host a member in its own process.
#[derive(Clone, Debug, Args)]
pub struct EmbeddedNodeArgs {
    /// Host this member of the lock cluster in this process [default: none]
    #[arg(long, env = "EMBED_LOCK_NODE", value_name = "ID", requires = "members")]
    pub embed_lock_node: Option<u64>,

    #[command(flatten)]
    member: MemberArgs,
}

/// What both need to know about the member.
#[derive(Clone, Debug, Args)]
struct MemberArgs {
    /// Address where clients are answered (host:port) [default: that of this node's --member, or 127.0.0.1:8501]
    #[arg(long, env = "LOCK_NODE_CLIENT_ADDR")]
    client_addr: Option<String>,

    /// Address where the other members are answered (host:port) [default: that of this node's --member, or 127.0.0.1:8601]
    #[arg(long, env = "LOCK_NODE_PEER_ADDR")]
    peer_addr: Option<String>,

    /// A member of the cluster, as ID=PEER_HOST:PORT,CLIENT_HOST:PORT; once for each, the same list on every founder,
    /// and on a node that joins later the others and itself (in the environment, separated by spaces) [default: this
    /// node alone]
    #[arg(
        id = "members",
        long = "member",
        env = "LOCK_NODE_MEMBERS",
        value_name = "MEMBER",
        value_delimiter = ' '
    )]
    members: Vec<Member>,

    /// Directory of the log, the vote and the snapshots; it belongs to this id, and a member that comes back without it
    /// is turned away [default: data/lock-node-ID]
    #[arg(
        id = "lock_data_dir",
        long = "data-dir",
        env = "LOCK_NODE_DATA_DIR",
        value_name = "DIR"
    )]
    data_dir: Option<PathBuf>,

    /// Found the cluster if there is none yet; may be given to every founder at every start (the lowest id acts on it,
    /// when all others have answered that they are of none, or a majority has and 5 s are over), and not to a node that
    /// joins later
    #[arg(long, env = "LOCK_NODE_BOOTSTRAP", value_parser = clap::builder::FalseyValueParser::new())]
    bootstrap: bool,

    /// With --bootstrap: found it only when all others have answered, however long that takes
    #[arg(long, env = "LOCK_NODE_BOOTSTRAP_ALL", value_parser = clap::builder::FalseyValueParser::new())]
    bootstrap_all: bool,

    /// File with the secret that members prove to each other (or the secret itself in LOCK_NODE_PEER_SECRET);
    /// needed unless all of them are on this machine
    #[arg(long, env = "LOCK_NODE_PEER_SECRET_FILE", value_name = "FILE")]
    peer_secret_file: Option<PathBuf>,

    /// File with the bearer token of administrators' calls (or the token itself in LOCK_NODE_ADMIN_TOKEN);
    /// without one these calls are refused
    #[arg(long, env = "LOCK_NODE_ADMIN_TOKEN_FILE", value_name = "FILE")]
    admin_token_file: Option<PathBuf>,

    /// File with the bearer token that clients must show (or the token itself in LOCK_NODE_CLIENT_TOKEN);
    /// without one, whoever reaches the client port is answered
    #[arg(long, env = "LOCK_NODE_CLIENT_TOKEN_FILE", value_name = "FILE")]
    client_token_file: Option<PathBuf>,

    #[command(flatten)]
    peer_tls: PeerTlsArgs,
}

/// TLS between members: all three files, on all members, or none.
#[derive(Clone, Debug, Args)]
struct PeerTlsArgs {
    /// PEM file with this member's certificate, which names it: DNS name lock-node-ID [default: no TLS between members]
    #[arg(long, env = "LOCK_NODE_PEER_TLS_CERT", value_name = "FILE")]
    peer_tls_cert: Option<PathBuf>,

    /// PEM file with the certificate's private key
    #[arg(long, env = "LOCK_NODE_PEER_TLS_KEY", value_name = "FILE")]
    peer_tls_key: Option<PathBuf>,

    /// PEM file with the authority that signs the members' certificates
    #[arg(long, env = "LOCK_NODE_PEER_TLS_CA", value_name = "FILE")]
    peer_tls_ca: Option<PathBuf>,
}

impl PeerTlsArgs {
    fn into_files(self) -> anyhow::Result<Option<PeerTlsFiles>> {
        match (self.peer_tls_cert, self.peer_tls_key, self.peer_tls_ca) {
            (Some(cert), Some(key), Some(ca)) => Ok(Some(PeerTlsFiles { cert, key, ca })),
            (cert, key, ca) => {
                ensure!(
                    cert.is_none() && key.is_none() && ca.is_none(),
                    "TLS between members takes all of --peer-tls-cert, --peer-tls-key and --peer-tls-ca, or none"
                );
                Ok(None)
            }
        }
    }
}

impl NodeArgs {
    /// Reads the secrets, resolves the addresses, checks that all of it fits together.
    ///
    /// # Errors
    /// A sentence that says what does not fit.
    pub fn into_config(self) -> anyhow::Result<NodeConfig> {
        self.member.into_config(self.id, self.enable_faults)
    }
}

impl EmbeddedNodeArgs {
    /// As [`NodeArgs::into_config`]; `None` if no member is to be hosted.
    ///
    /// # Errors
    /// A sentence that says what does not fit.
    pub fn into_config(self, enable_faults: bool) -> anyhow::Result<Option<NodeConfig>> {
        self.embed_lock_node
            .map(|id| self.member.into_config(id, enable_faults))
            .transpose()
    }
}

impl MemberArgs {
    fn into_config(self, id: u64, enable_faults: bool) -> anyhow::Result<NodeConfig> {
        let own = self.members.iter().find(|member| member.id == id);
        let client_addr = self
            .client_addr
            .clone()
            .or_else(|| own.map(|own| own.client_addr.clone()));
        let peer_addr = self
            .peer_addr
            .clone()
            .or_else(|| own.map(|own| own.peer_addr.clone()));
        let client_addr = client_addr.unwrap_or_else(|| "127.0.0.1:8501".to_owned());
        let peer_addr = peer_addr.unwrap_or_else(|| "127.0.0.1:8601".to_owned());
        let alone = || {
            vec![Member {
                id,
                peer_addr: peer_addr.clone(),
                client_addr: client_addr.clone(),
            }]
        };
        let config = NodeConfig {
            id,
            client_addr: resolve(&client_addr)?,
            peer_addr: resolve(&peer_addr)?,
            members: if self.members.is_empty() {
                alone()
            } else {
                self.members
            },
            data_dir: self
                .data_dir
                .unwrap_or_else(|| PathBuf::from(format!("data/lock-node-{id}"))),
            bootstrap: self.bootstrap,
            bootstrap_all: self.bootstrap_all,
            peer_secret: Secret::read(self.peer_secret_file.as_deref(), PEER_SECRET)?,
            peer_tls: self.peer_tls.into_files()?,
            admin_token: Secret::read(self.admin_token_file.as_deref(), ADMIN_TOKEN)?,
            client_token: Secret::read(self.client_token_file.as_deref(), CLIENT_TOKEN)?,
            enable_faults,
        };
        config.validate()?;
        Ok(config)
    }
}

/// An address to listen on. A host name is allowed: in compose a node listens under its own.
fn resolve(addr: &str) -> anyhow::Result<SocketAddr> {
    let mut found = addr
        .to_socket_addrs()
        .with_context(|| format!("{addr:?} is no host:port to listen on"))?;
    found.next().with_context(|| format!("{addr:?} has no address"))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Program {
        #[command(flatten)]
        node: NodeArgs,
    }

    #[derive(Debug, Parser)]
    struct Host {
        #[command(flatten)]
        embedded: EmbeddedNodeArgs,
    }

    const MEMBERS: [&str; 4] = [
        "--member",
        "1=127.0.0.1:8601,127.0.0.1:8501",
        "--member",
        "2=127.0.0.1:8602,127.0.0.1:8502",
    ];

    #[test]
    fn a_member_listens_where_the_list_says_unless_told_otherwise() {
        let args = ["lock-node", "--id", "2"].into_iter().chain(MEMBERS);
        let config = Program::parse_from(args).node.into_config().unwrap();
        assert_eq!(config.client_addr.to_string(), "127.0.0.1:8502");
        assert_eq!(config.peer_addr.to_string(), "127.0.0.1:8602");
        assert_eq!(config.data_dir, PathBuf::from("data/lock-node-2"));

        let args = ["lock-node", "--id", "2", "--client-addr", "127.0.0.1:9"]
            .into_iter()
            .chain(MEMBERS);
        let config = Program::parse_from(args).node.into_config().unwrap();
        assert_eq!(config.client_addr.to_string(), "127.0.0.1:9");
        assert_eq!(config.members.len(), 2);
    }

    #[test]
    fn a_lone_node_needs_only_its_id() {
        let config = Program::parse_from(["lock-node", "--id", "7"])
            .node
            .into_config()
            .unwrap();
        assert_eq!(config.members.len(), 1);
        assert_eq!(
            config.me().map(|me| me.client_url()),
            Some("http://127.0.0.1:8501".to_owned())
        );
    }

    #[test]
    fn a_host_without_the_flag_hosts_nothing() {
        let host = Host::parse_from(["inventory"]);
        assert!(host.embedded.into_config(false).unwrap().is_none());
        let args = ["inventory", "--embed-lock-node", "1"].into_iter().chain(MEMBERS);
        assert_eq!(
            Host::parse_from(args)
                .embedded
                .into_config(true)
                .unwrap()
                .map(|config| config.id),
            Some(1)
        );
        assert!(Host::try_parse_from(["inventory", "--embed-lock-node", "1"]).is_err());
    }

    #[test]
    fn tls_between_members_takes_three_files_or_none() {
        let with = |flags: &[&str]| {
            let args = ["lock-node", "--id", "7"].iter().chain(flags);
            Program::parse_from(args)
                .node
                .into_config()
                .map(|config| config.peer_tls)
        };
        assert_eq!(with(&[]).unwrap(), None);
        let two = with(&["--peer-tls-cert", "a", "--peer-tls-key", "b"]);
        assert!(two.unwrap_err().to_string().contains("--peer-tls-ca"));
        let three = with(&[
            "--peer-tls-cert",
            "a",
            "--peer-tls-key",
            "b",
            "--peer-tls-ca",
            "c",
        ]);
        assert_eq!(three.unwrap().map(|files| files.ca), Some(PathBuf::from("c")));
    }
}
