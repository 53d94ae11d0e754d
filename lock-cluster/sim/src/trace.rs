//! What happened, in order: as one number always, and as text when somebody wants to read it.
//!
//! The number is the proof that a seed repeats: everything that happens to messages, disks, nodes and clients goes
//! into it, with its time. Text costs ten times as much as the rest of the simulation, so a line is only put
//! together when it is kept.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::runtime::true_ns;

/// The record of one run; clones share it.
#[derive(Clone, Debug)]
pub struct Trace(Arc<Mutex<Inner>>);

#[derive(Debug)]
struct Inner {
    hash: u64,
    events: u64,
    lines: Option<Vec<String>>,
}

impl Trace {
    /// An empty one. Lines are kept only if `readable`.
    pub fn new(readable: bool) -> Self {
        Self(Arc::new(Mutex::new(Inner {
            hash: FNV_OFFSET,
            events: 0,
            lines: readable.then(Vec::new),
        })))
    }

    /// Something happened now. `numbers` must tell it apart from anything else that could have happened instead.
    pub fn note(&self, numbers: &[u64], line: impl FnOnce() -> String) {
        let now = true_ns();
        let mut inner = self.inner();
        inner.events += 1;
        inner.hash = [now]
            .iter()
            .chain(numbers)
            .fold(inner.hash, |hash, number| mix(hash, *number));
        if let Some(lines) = &mut inner.lines {
            let (seconds, micros) = (now / 1_000_000_000, now / 1_000 % 1_000_000);
            lines.push(format!("{seconds:>3}.{micros:06} {}", line()));
        }
    }

    /// The same for what only words can tell; for things that happen seldom.
    pub fn tell(&self, line: impl Into<String>) {
        let line = line.into();
        self.note(&[hash_bytes(line.as_bytes())], || line);
    }

    /// The number, and how many events are in it.
    pub fn hash(&self) -> (u64, u64) {
        let inner = self.inner();
        (inner.hash, inner.events)
    }

    /// The lines, if they were kept.
    pub fn take_lines(&self) -> Vec<String> {
        self.inner().lines.take().unwrap_or_default()
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

const FNV_OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
const FNV_PRIME: u64 = 0x0000_0100_0000_01b3;

/// FNV-1a over words. Fast, and the same on every machine; nobody attacks it.
fn mix(hash: u64, word: u64) -> u64 {
    (hash ^ word).wrapping_mul(FNV_PRIME).rotate_left(23)
}

/// The same over bytes.
pub(crate) fn hash_bytes(bytes: &[u8]) -> u64 {
    let mut words = bytes.chunks_exact(8);
    let mut hash = mix(FNV_OFFSET, bytes.len() as u64);
    for word in &mut words {
        hash = mix(hash, u64::from_le_bytes(word.try_into().expect("eight bytes")));
    }
    words
        .remainder()
        .iter()
        .fold(hash, |hash, byte| mix(hash, u64::from(*byte)))
}
