//! What a run is made of, and the bugs that tests plant to see them found.

use bytes::Bytes;
use lock_node::service::Frozen;
use serde_json::Value;

/// What to simulate. The same plan gives the same run, bit for bit.
#[derive(Clone, Debug)]
pub struct Plan {
    /// From which everything follows.
    pub seed: u64,
    /// Members of the cluster, 1 to 7.
    pub nodes: u64,
    /// Clients of it.
    pub clients: u64,
    /// How long faults are injected, in virtual seconds. Healing and the final checks come on top.
    pub virtual_seconds: u64,
    /// Whether to keep a line of text for everything that happens.
    pub readable: bool,
    /// A bug to find.
    pub plant: Option<Plant>,
}

impl Plan {
    /// Three nodes, four clients, thirty seconds.
    pub fn new(seed: u64) -> Self {
        Self {
            seed,
            nodes: 3,
            clients: 4,
            virtual_seconds: 30,
            readable: false,
            plant: None,
        }
    }

    /// What to type to see this run again.
    pub fn replay_command(&self) -> String {
        let Self {
            seed,
            nodes,
            clients,
            virtual_seconds,
            readable: _,
            plant,
        } = self;
        let plant = plant.map(|plant| format!(" --plant {plant}")).unwrap_or_default();
        format!(
            "cargo run -p lock-sim -- replay --trace --seed {seed} --nodes {nodes} --clients {clients} \
             --virtual-seconds {virtual_seconds}{plant}"
        )
    }
}

/// A bug on purpose. A checker that has never found anything has proved nothing; tests plant each of these and see it
/// found. All of them live in the simulation's own parts (disk, front door), none in the code under test.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Plant {
    /// Grants without a durable majority: the disk says "flushed" when it has only taken note.
    AcknowledgeBeforeFlush,
    /// Snapshots without the remembered answers of finished acquisitions.
    ForgetAnswersInSnapshots,
    /// A leader that ends each session one time to live after it was opened, keep-alive or not.
    ExpireRegardless,
}

impl std::fmt::Display for Plant {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let value = clap::ValueEnum::to_possible_value(self);
        f.write_str(value.as_ref().map_or("", |value| value.get_name()))
    }
}

/// The snapshot as it would be if nobody had thought of retries.
pub(crate) fn without_answers(snapshot: &Bytes) -> Bytes {
    let frozen: Frozen = postcard::from_bytes(snapshot).expect("a stored snapshot can be read");
    let mut value = serde_json::to_value(frozen).expect("the state is plain data");
    let sessions = value
        .pointer_mut("/state/V1/sessions")
        .and_then(Value::as_object_mut);
    for session in sessions.expect("a snapshot has sessions").values_mut() {
        let acquisitions = session["acquisitions"]
            .as_object_mut()
            .expect("a session has acquisitions");
        acquisitions.retain(|_, acquisition| acquisition.get("Live").is_some());
    }
    let frozen: Frozen = serde_json::from_value(value).expect("what was taken out leaves a state");
    postcard::to_stdvec(&frozen)
        .expect("plain values always encode into memory")
        .into()
}
