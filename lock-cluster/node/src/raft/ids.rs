//! Names that are drawn once and never given twice: of disks, and of clusters (`identity.rs`).

use std::fmt;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// The name of one data directory, never given twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiskId(pub(super) Uuid);

/// The name of one cluster, never given twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClusterId(pub(super) Uuid);

impl DiskId {
    pub(crate) fn as_bytes(&self) -> &[u8; 16] {
        self.0.as_bytes()
    }

    pub(crate) fn drawn() -> Self {
        Self(Uuid::new_v4())
    }
}

impl ClusterId {
    /// A new one.
    pub(crate) fn drawn() -> Self {
        Self(Uuid::new_v4())
    }

    /// This one: for simulations, in which nothing is drawn that the seed does not say.
    pub fn from_u128(number: u128) -> Self {
        Self(Uuid::from_u128(number))
    }

    pub(crate) fn as_bytes(&self) -> &[u8; 16] {
        self.0.as_bytes()
    }
}

impl fmt::Display for DiskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for ClusterId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
