//! How far a round has come, for those who watch it.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use tokio::sync::watch;
use utoipa::ToSchema;

/// What a round is at.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// The events are being created.
    #[default]
    Preparing,
    /// The buyers are at the door.
    Burst,
    /// Those who ask twice are at the door.
    Storm,
    /// Waiting until no purchase is pending and no hold stands.
    Resting,
    /// Reading the books.
    Checking,
    /// Judged.
    Done,
}

/// How far a round has come.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RoundProgress {
    /// What it is at.
    pub phase: Phase,
    /// Requests answered in this phase.
    pub answered: u64,
    /// Requests this phase will see at least.
    pub expected: u64,
    /// Answers of the burst by outcome, so far.
    pub outcomes: BTreeMap<String, u64>,
}

/// Where progress is told; clones tell the same.
#[derive(Debug, Clone)]
pub struct Progress(Arc<watch::Sender<RoundProgress>>);

impl Default for Progress {
    fn default() -> Self {
        Self(Arc::new(watch::Sender::new(RoundProgress::default())))
    }
}

impl Progress {
    /// A new phase begins.
    pub fn enter(&self, phase: Phase, expected: u64) {
        self.0.send_modify(|now| {
            now.phase = phase;
            now.answered = 0;
            now.expected = expected;
        });
    }

    /// A buyer got an answer.
    pub fn answered(&self, answer: &crate::Answer) {
        self.0.send_modify(|now| {
            now.answered += 1;
            if now.phase == Phase::Burst {
                *now.outcomes.entry(answer.label()).or_default() += 1;
            }
        });
    }

    /// How far it has come, by now.
    pub fn now(&self) -> RoundProgress {
        self.0.borrow().clone()
    }

    /// Tells of every change from here on.
    pub fn subscribe(&self) -> watch::Receiver<RoundProgress> {
        self.0.subscribe()
    }
}
