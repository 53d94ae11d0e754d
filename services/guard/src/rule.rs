//! By which rule a guarded section writes.

/// What the write at the end of a section has to add to the plain statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteRule {
    /// Nothing: the write is what the section decided, from what it read.
    Plain,
    /// The write is refused by a row that has seen a newer fencing token than this one.
    Fenced(u64),
    /// The write is refused by a row whose version is no longer the one that was read; read again then.
    CompareVersion,
    /// The write carries its own condition (`… where available >= $quantity`), or claims by inserting first.
    Conditional,
}

impl WriteRule {
    /// The fencing token as databases keep it. One counter would have to run for centuries to pass 63 bits.
    pub fn fencing_token(self) -> Option<i64> {
        match self {
            Self::Fenced(token) => Some(i64::try_from(token).unwrap_or(i64::MAX)),
            Self::Plain | Self::CompareVersion | Self::Conditional => None,
        }
    }
}
