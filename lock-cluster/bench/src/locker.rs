//! One client of one target, behind one face.

use std::sync::Arc;
use std::time::Duration;

use clap::ValueEnum;
use lock_client::{ClientConfig, LockClient};
use serde::Serialize;

use crate::cluster::Kind;
use crate::etcd::calls::Etcd;
use crate::etcd::lock_service;
use crate::etcd::recipe::{self, Watcher};
use crate::etcd::session::Session;

/// How long an acquire waits for its turn: longer than any line here takes.
const WAIT: Duration = Duration::from_secs(25);

/// Which locks the clients want.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Case {
    /// Each client one of its own: nobody ever waits
    Own,
    /// All of them the same: all but one wait
    One,
}

/// What gives the locks, and how it is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Target {
    /// This project's lock node, through its Rust client
    LockNode,
    /// etcd, through its lock service
    EtcdLock,
    /// etcd, by the transaction recipe of its Go package
    EtcdTxn,
}

impl Case {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Own => "own",
            Self::One => "one",
        }
    }
}

impl Target {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::LockNode => "lock-node",
            Self::EtcdLock => "etcd-lock",
            Self::EtcdTxn => "etcd-txn",
        }
    }

    /// The cluster that it runs on.
    pub(crate) fn kind(self) -> Kind {
        match self {
            Self::LockNode => Kind::LockNode,
            Self::EtcdLock | Self::EtcdTxn => Kind::Etcd,
        }
    }
}

/// Where clients find their cluster.
#[derive(Clone, Debug)]
pub(crate) struct Address {
    /// All members.
    pub(crate) urls: Vec<String>,
    /// The one that leads.
    pub(crate) leader: String,
    /// Time to live of sessions and leases.
    pub(crate) ttl: Duration,
}

/// A client with a session. Clones of a session are what `--shared` shares.
#[derive(Debug)]
pub(crate) enum Locker {
    LockNode(LockClient),
    EtcdLock(Arc<Session>),
    EtcdTxn(Arc<Session>, Box<Watcher>),
}

impl Locker {
    /// Connects, and opens a session.
    pub(crate) async fn open(target: Target, address: &Address) -> anyhow::Result<Self> {
        match target {
            Target::LockNode => {
                let mut config = ClientConfig::new(&address.urls);
                config.ttl = address.ttl;
                config.label = "lock-bench".to_owned();
                Ok(Self::LockNode(LockClient::connect(config).await?))
            }
            Target::EtcdLock => Ok(Self::EtcdLock(session(address).await?)),
            Target::EtcdTxn => Ok(Self::EtcdTxn(session(address).await?, Box::default())),
        }
    }

    /// Another client on the same session and the same connection.
    pub(crate) fn share(&self) -> Self {
        match self {
            Self::LockNode(client) => Self::LockNode(client.clone()),
            Self::EtcdLock(session) => Self::EtcdLock(session.clone()),
            Self::EtcdTxn(session, _) => Self::EtcdTxn(session.clone(), Box::default()),
        }
    }

    /// Acquires the lock, and releases it. `name` is one name, as the clients take it.
    pub(crate) async fn cycle(&mut self, name: &[String; 1]) -> anyhow::Result<()> {
        match self {
            Self::LockNode(client) => Ok(client.acquire(name, WAIT).await?.release().await?),
            Self::EtcdLock(session) => {
                let key = lock_service::acquire(session, &name[0]).await?;
                lock_service::release(session, key).await
            }
            Self::EtcdTxn(session, watcher) => {
                let key = recipe::acquire(session, watcher, &name[0]).await?;
                recipe::release(session, key).await
            }
        }
    }

    /// Closes the session, unless another client shares it.
    pub(crate) async fn close(self) -> anyhow::Result<()> {
        match self {
            Self::LockNode(client) => client.close().await,
            Self::EtcdLock(session) | Self::EtcdTxn(session, _) => {
                if let Some(session) = Arc::into_inner(session) {
                    session.close().await?;
                }
            }
        }
        Ok(())
    }
}

async fn session(address: &Address) -> anyhow::Result<Arc<Session>> {
    let etcd = Etcd::connect(&address.leader).await?;
    Ok(Arc::new(Session::open(etcd, address.ttl).await?))
}
