//! How a critical section is guarded, and how the keys of payments are made: the two axes of the laboratory.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::Invalid;

macro_rules! names {
    ($(#[doc = $doc:expr])* $name:ident { $($(#[$vdoc:meta])* $variant:ident = $text:literal),+ $(,)? }) => {
        $(#[doc = $doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub enum $name { $($(#[$vdoc])* #[serde(rename = $text)] $variant),+ }

        impl $name {
            /// All of them, in the order in which they are taught.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The name on the wire.
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $text),+ }
            }
        }

        // By hand: the derive cannot read a `rename` that went through this macro, and would show the names of
        // the variants.
        impl utoipa::PartialSchema for $name {
            fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::schema::Schema> {
                utoipa::openapi::schema::ObjectBuilder::new()
                    .schema_type(utoipa::openapi::schema::Type::String)
                    .enum_values(Some(Self::ALL.iter().map(|value| value.name())))
                    .description(Some(concat!($($doc),*).trim()))
                    .into()
            }
        }

        impl utoipa::ToSchema for $name {}

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.name())
            }
        }

        impl FromStr for $name {
            type Err = Invalid;
            fn from_str(text: &str) -> Result<Self, Invalid> {
                Self::ALL.iter().copied().find(|s| s.name() == text).ok_or_else(|| {
                    let known: Vec<_> = Self::ALL.iter().map(|s| s.name()).collect();
                    Invalid::expected(format!("known names are {}", known.join(", ")))
                })
            }
        }
    };
}

names!(
    /// How a critical section is guarded (DESIGN §6). Travels in the `Lock-Strategy` header.
    Strategy {
        /// No guard at all: the race as it is.
        None = "none",
        /// One mutex per process: right with one instance, wrong with two.
        Process = "process",
        /// Our lock cluster, every write checked against the fencing token.
        Raft = "raft",
        /// Our lock cluster without the check: for the lab of the paused holder.
        RaftUnfenced = "raft-unfenced",
        /// `select … for update` (PostgreSQL).
        Row = "row",
        /// `pg_advisory_xact_lock` (PostgreSQL).
        Advisory = "advisory",
        /// Version compare-and-set with bounded retry.
        Optimistic = "optimistic",
        /// One conditional update.
        Atomic = "atomic",
        /// Redis: `SET NX PX` and a Lua script for the release.
        Redis = "redis",
        /// etcd's lock recipe.
        Etcd = "etcd",
        /// Consul's session locks.
        Consul = "consul",
    }
);

impl Strategy {
    /// Whether this strategy promises that nothing is oversold or charged twice. `none` and `process`
    /// promise nothing: when they break nothing, the race was "not reproduced", not "passed".
    /// `raft-unfenced` promises nothing either once a holder may be paused.
    pub fn promises(self) -> bool {
        !matches!(self, Self::None | Self::Process | Self::RaftUnfenced)
    }

    /// Whether rows written under this strategy stand under the partial unique indexes that are the last
    /// line of defence. `none` must stay honest: no constraint may hide its race.
    pub fn guarded(self) -> bool {
        self.promises()
    }

    /// How payment keys are made when the request does not say.
    pub fn default_payment_key(self) -> PaymentKey {
        match self {
            Self::None => PaymentKey::Fresh,
            _ => PaymentKey::Stable,
        }
    }
}

names!(
    /// How the gateway's idempotency keys are made (DESIGN §6). Travels in the `Payment-Key` header.
    PaymentKey {
        /// Derived from the payment's id: an unknown outcome is asked about again.
        Stable = "stable",
        /// A new key per attempt: the bug of real life.
        Fresh = "fresh",
    }
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_reads_back_as_itself() {
        for strategy in Strategy::ALL {
            assert_eq!(strategy.name().parse::<Strategy>().as_ref(), Ok(strategy));
        }
        let error = "mutex".parse::<Strategy>().expect_err("unknown").to_string();
        assert!(error.contains("raft-unfenced"), "{error}");
    }

    #[test]
    fn the_schema_shows_the_names_on_the_wire() {
        let schema = serde_json::to_value(<Strategy as utoipa::PartialSchema>::schema()).expect("plain data");
        assert_eq!(schema["enum"][0], "none");
        assert_eq!(schema["enum"][3], "raft-unfenced");
    }

    #[test]
    fn only_none_makes_fresh_payment_keys_unasked() {
        for &strategy in Strategy::ALL {
            let fresh = strategy.default_payment_key() == PaymentKey::Fresh;
            assert_eq!(fresh, strategy == Strategy::None);
        }
    }
}
