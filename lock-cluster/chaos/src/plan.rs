//! What goes wrong in a run, and when: drawn from the seed alone, before anything starts.
//!
//! Real processes do not repeat: the same seed meets other messages in flight every time. What repeats is the plan, so
//! that a run that found something can be tried again under the same blows until it finds it again.

use std::fmt;
use std::time::Duration;

use rand::rngs::SmallRng;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};

/// A run.
#[derive(Clone, Debug)]
pub struct Plan {
    /// From which the faults and what clients want follow.
    pub seed: u64,
    /// Members of the cluster.
    pub nodes: usize,
    /// Clients of it.
    pub clients: usize,
    /// How long things go wrong. Healing and the last checks come on top.
    pub seconds: u64,
    /// A bug to find.
    pub plant: Option<Plant>,
}

/// A bug on purpose. Tests plant each of these and see it found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Plant {
    /// Once, all nodes lose their disks: what was acknowledged had not been written anywhere.
    ForgetfulDisks,
    /// Now and then a session of a client that lives is ended.
    EndedSessions,
    /// A session that nobody keeps alive holds a lock for minutes.
    EternalSession,
}

/// Which node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// Whoever leads at that moment.
    Leader,
    /// This one.
    Node(usize),
}

/// What goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// `kill -9`, and a start at the end.
    Kill(Target),
    /// SIGSTOP, and SIGCONT at the end; mostly for longer than any session lives.
    Freeze(Target),
    /// The node's process ends between a commit and its answers; it is started at the end.
    DieAfterCommit(Target),
    /// No frame to it or from it arrives.
    Isolate(Target),
    /// Everybody hears it, and it hears nobody.
    Deafen(Target),
    /// Two do not reach each other.
    CutLink(usize, usize),
    /// Every flush of its log takes so long.
    SlowDisk(Target, u64),
    /// So many of a hundred batches are not answered, by any node.
    LoseAnswers(u64),
    /// Answers of the leader are so late, in milliseconds.
    LateAnswers(u64),
    /// A client's process is killed; another one takes its place.
    KillClient(usize),
    /// A client's process is stopped for the time that this lasts.
    FreezeClient(usize),
}

/// One fault of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// How long after the one before.
    pub after: Duration,
    /// How long.
    pub lasts: Duration,
    /// What.
    pub fault: Fault,
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { after, lasts, fault } = self;
        write!(f, "after {after:?}, for {lasts:?}: {fault:?}")
    }
}

/// Faults that come one after the other; those of different lanes overlap.
pub type Lane = Vec<Step>;

impl Plan {
    /// Three nodes, eight clients, six seconds.
    pub fn new(seed: u64) -> Self {
        Self {
            seed,
            nodes: 3,
            clients: 8,
            seconds: 6,
            plant: None,
        }
    }

    /// The faults: to machines, to links and disks, to clients.
    pub fn lanes(&self) -> [Lane; 3] {
        let mut rng = SmallRng::seed_from_u64(self.seed);
        [
            self.lane(&mut rng, 500..1_500, Self::machine),
            self.lane(&mut rng, 300..1_200, Self::connection),
            self.lane(&mut rng, 300..1_500, Self::client),
        ]
    }

    /// What to type to try it again.
    pub fn command(&self) -> String {
        let Self {
            seed,
            nodes,
            clients,
            seconds,
            ..
        } = self;
        let planted = self
            .plant
            .and_then(|plant| clap::ValueEnum::to_possible_value(&plant));
        let planted = planted.map_or(String::new(), |plant| format!(" --plant {}", plant.get_name()));
        format!(
            "lock-chaos run --runs 1 --seed {seed} --nodes {nodes} --clients {clients} --seconds {seconds}{planted}"
        )
    }

    fn lane(
        &self,
        rng: &mut SmallRng,
        pauses_ms: std::ops::Range<u64>,
        some: impl Fn(&Self, &mut SmallRng) -> (Fault, u64),
    ) -> Lane {
        let mut lane = Lane::new();
        let mut left = Duration::from_secs(self.seconds);
        loop {
            let after = Duration::from_millis(rng.random_range(pauses_ms.clone()));
            let (fault, lasts_ms) = some(self, rng);
            let lasts = Duration::from_millis(lasts_ms);
            let Some(rest) = left.checked_sub(after + lasts) else {
                return lane;
            };
            left = rest;
            lane.push(Step { after, lasts, fault });
        }
    }

    fn machine(&self, rng: &mut SmallRng) -> (Fault, u64) {
        let target = self.target(rng);
        match rng.random_range(0..10) {
            0..=3 => (Fault::Kill(target), rng.random_range(0..1_500)),
            4..=7 => (Fault::Freeze(target), rng.random_range(500..3_500)),
            _ => (Fault::DieAfterCommit(target), rng.random_range(300..1_200)),
        }
    }

    fn connection(&self, rng: &mut SmallRng) -> (Fault, u64) {
        let target = self.target(rng);
        let others: Vec<usize> = (0..self.nodes).collect();
        let pair: Vec<usize> = others.sample(rng, 2).copied().collect();
        let fault = match rng.random_range(0..12) {
            0..=2 => Fault::Isolate(target),
            3..=4 => Fault::Deafen(target),
            5 if pair.len() == 2 => Fault::CutLink(pair[0], pair[1]),
            5..=7 => Fault::SlowDisk(target, rng.random_range(20..400)),
            8..=9 => Fault::LoseAnswers(rng.random_range(10..60)),
            _ => Fault::LateAnswers(rng.random_range(50..800)),
        };
        (fault, rng.random_range(300..2_000))
    }

    fn client(&self, rng: &mut SmallRng) -> (Fault, u64) {
        let which = rng.random_range(0..self.clients);
        match rng.random_bool(0.5) {
            true => (Fault::KillClient(which), 0),
            false => (Fault::FreezeClient(which), rng.random_range(200..3_000)),
        }
    }

    /// Mostly the leader: there is more to break.
    fn target(&self, rng: &mut SmallRng) -> Target {
        match rng.random_bool(0.6) {
            true => Target::Leader,
            false => Target::Node(rng.random_range(0..self.nodes)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_is_a_plan_and_another_seed_another_one() {
        let plan = |seed| Plan::new(seed).lanes();
        assert_eq!(plan(7), plan(7));
        assert_ne!(plan(7), plan(8));
    }

    #[test]
    fn what_to_type_names_everything_but_chance() {
        let plan = Plan {
            nodes: 5,
            plant: Some(Plant::ForgetfulDisks),
            ..Plan::new(7)
        };
        let command =
            "lock-chaos run --runs 1 --seed 7 --nodes 5 --clients 8 --seconds 6 --plant forgetful-disks";
        assert_eq!(plan.command(), command);
    }

    #[test]
    fn fifty_seeds_have_everything_in_them_and_end_in_time() {
        let lanes: Vec<Lane> = (1..=50).flat_map(|seed| Plan::new(seed).lanes()).collect();
        for lane in &lanes {
            let sum: Duration = lane.iter().map(|step| step.after + step.lasts).sum();
            assert!(sum <= Duration::from_secs(6));
        }
        let faults: Vec<Fault> = lanes.iter().flatten().map(|step| step.fault).collect();
        let has = |is: fn(&Fault) -> bool| faults.iter().any(is);
        assert!(has(|fault| matches!(fault, Fault::Kill(Target::Leader))));
        assert!(has(|fault| matches!(fault, Fault::Freeze(Target::Leader))));
        assert!(has(|fault| matches!(fault, Fault::DieAfterCommit(_))));
        assert!(has(|fault| matches!(fault, Fault::Isolate(_))));
        assert!(has(|fault| matches!(fault, Fault::Deafen(_))));
        assert!(has(|fault| matches!(fault, Fault::CutLink(..))));
        assert!(has(|fault| matches!(fault, Fault::SlowDisk(..))));
        assert!(has(|fault| matches!(fault, Fault::LoseAnswers(_))));
        assert!(has(|fault| matches!(fault, Fault::LateAnswers(_))));
        assert!(has(|fault| matches!(fault, Fault::KillClient(_))));
        assert!(has(|fault| matches!(fault, Fault::FreezeClient(_))));
    }
}
