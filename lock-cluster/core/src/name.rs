//! Names: of a lock, of the set of locks that one acquisition wants, and of a session for human eyes.
//!
//! Parsed once at the edge, cheap to clone from then on (`Arc` inside), and checked again when they are
//! read back from a log or a snapshot: a value of these types is always within its limits.

use std::borrow::Borrow;
use std::fmt;
use std::sync::Arc;

use serde::de::{Error as _, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::limits::{LABEL_BYTES_MAX, NAME_BYTES_MAX, NAMES_PER_ACQUISITION_MAX};

/// Why a text or a list is no name, label or set of names.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NameError {
    /// A lock name of zero bytes.
    #[error("a lock name must not be empty")]
    EmptyName,
    /// A lock name above [`NAME_BYTES_MAX`].
    #[error("a lock name has at most {NAME_BYTES_MAX} bytes, this one has {bytes}")]
    LongName {
        /// How many it has.
        bytes: usize,
    },
    /// An acquisition of nothing.
    #[error("an acquisition needs at least one name")]
    NoNames,
    /// More names (the same one counted once) than [`NAMES_PER_ACQUISITION_MAX`].
    #[error("an acquisition has at most {NAMES_PER_ACQUISITION_MAX} names, this one has {names}")]
    ManyNames {
        /// How many it has.
        names: usize,
    },
    /// A label above [`LABEL_BYTES_MAX`].
    #[error("a label has at most {LABEL_BYTES_MAX} bytes, this one has {bytes}")]
    LongLabel {
        /// How many it has.
        bytes: usize,
    },
}

/// What is locked: 1 to 256 bytes of UTF-8, taken literally (`a/../b` is not `b`).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LockName(Arc<str>);

impl LockName {
    /// Checks the length; any character is allowed.
    pub fn parse(text: &str) -> Result<Self, NameError> {
        match text.len() {
            0 => Err(NameError::EmptyName),
            1..=NAME_BYTES_MAX => Ok(Self(text.into())),
            bytes => Err(NameError::LongName { bytes }),
        }
    }

    /// The text inside.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

// Lets a map keyed by names be searched by a plain `&str`: `Ord` of an `Arc<str>` is that of its text.
impl Borrow<str> for LockName {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for LockName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Serialize for LockName {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for LockName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        /// Looks at the text where it lies: names are read once on every node, and a copy of each would be the most
        /// frequent allocation of all.
        struct Text;
        impl Visitor<'_> for Text {
            type Value = LockName;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "a lock name of 1 to {NAME_BYTES_MAX} bytes")
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<LockName, E> {
                LockName::parse(text).map_err(E::custom)
            }
        }
        deserializer.deserialize_str(Text)
    }
}

/// The names of one acquisition: 1 to 16, in the client's order, none twice. They are granted together
/// under one fencing token, or not at all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockNames(Arc<[LockName]>);

impl LockNames {
    /// Drops repeated names (the first one stays) and checks how many are left.
    pub fn new(names: impl IntoIterator<Item = LockName>) -> Result<Self, NameError> {
        let mut distinct: Vec<LockName> = Vec::new();
        for name in names {
            if !distinct.contains(&name) {
                distinct.push(name);
            }
            // Here and not after the loop, so that a list of a million names costs seventeen looks.
            if distinct.len() > NAMES_PER_ACQUISITION_MAX {
                return Err(NameError::ManyNames {
                    names: distinct.len(),
                });
            }
        }
        if distinct.is_empty() {
            return Err(NameError::NoNames);
        }
        Ok(Self(distinct.into()))
    }

    /// Parses every text, then as [`LockNames::new`].
    pub fn parse<T: AsRef<str>>(texts: &[T]) -> Result<Self, NameError> {
        let names: Result<Vec<_>, _> = texts.iter().map(|text| LockName::parse(text.as_ref())).collect();
        Self::new(names?)
    }

    /// The names in the client's order.
    pub fn iter(&self) -> std::slice::Iter<'_, LockName> {
        self.0.iter()
    }

    /// The names in the client's order.
    pub fn as_slice(&self) -> &[LockName] {
        &self.0
    }

    /// Whether both mean the same locks, in whatever order.
    pub fn same_set(&self, other: &Self) -> bool {
        // Neither holds a name twice, so equal length and inclusion is equality.
        self.0.len() == other.0.len() && self.iter().all(|name| other.0.contains(name))
    }
}

impl<'a> IntoIterator for &'a LockNames {
    type Item = &'a LockName;
    type IntoIter = std::slice::Iter<'a, LockName>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl fmt::Display for LockNames {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, name) in self.iter().enumerate() {
            let comma = if i == 0 { "" } else { ", " };
            write!(f, "{comma}{name}")?;
        }
        Ok(())
    }
}

impl Serialize for LockNames {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for LockNames {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::new(Vec::<LockName>::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}

/// What a session is called when a human asks who holds a lock; at most 128 bytes, may be empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Label(Arc<str>);

impl Label {
    /// Checks the length; any character is allowed.
    pub fn parse(text: &str) -> Result<Self, NameError> {
        match text.len() {
            0..=LABEL_BYTES_MAX => Ok(Self(text.into())),
            bytes => Err(NameError::LongLabel { bytes }),
        }
    }

    /// The text inside.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Serialize for Label {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for Label {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::parse(&String::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}
