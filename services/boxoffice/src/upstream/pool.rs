//! The instances of one service, and the choice among them.
//!
//! *Power of two choices* (Mitzenmacher 2001): of two drawn at random, the one with less in flight. It needs no
//! bookkeeping, and unlike going round it leaves a slow instance alone without ever shunning it. Health comes
//! first: an instance that says it is not ready gets nothing while another is ready, and one that refused a
//! connection is tried last. It *is* tried last, though: knocking costs a refused connection, and finds out
//! that it is back before the prober does.

use std::sync::Arc;
use std::time::Duration;

use axum::response::Response;
use service_kit::Problem;

use super::instance::{HttpClient, Instance, NoAnswer};
use super::parcel::Parcel;
use super::{nobody_there, unknown_outcome};
use crate::domain::topology::ServiceView;

/// One service.
#[derive(Clone)]
pub(crate) struct Pool {
    name: &'static str,
    instances: Arc<[Arc<Instance>]>,
    answer_within: Duration,
}

impl Pool {
    /// A service with instances at these URLs.
    pub(crate) fn new(
        client: &HttpClient,
        name: &'static str,
        urls: &[String],
        answer_within: Duration,
    ) -> anyhow::Result<Self> {
        anyhow::ensure!(!urls.is_empty(), "no URL is configured for {name}");
        let instances: anyhow::Result<Vec<_>> = urls
            .iter()
            .map(|url| Ok(Arc::new(Instance::new(client, url)?)))
            .collect();
        Ok(Self {
            name,
            instances: instances?.into(),
            answer_within,
        })
    }

    /// The service's name.
    pub(crate) fn name(&self) -> &'static str {
        self.name
    }

    /// Its instances.
    pub(crate) fn instances(&self) -> &[Arc<Instance>] {
        &self.instances
    }

    /// For the topology.
    pub(crate) fn view(&self) -> ServiceView {
        ServiceView {
            name: self.name.to_owned(),
            instances: self.instances.iter().map(|instance| instance.view()).collect(),
        }
    }

    /// Sends a parcel to one instance, and to the next ones as long as that is safe. Each is tried once.
    pub(crate) async fn send(&self, parcel: Parcel, repeatable: bool) -> Result<Response, Problem> {
        let mut untried: Vec<&Arc<Instance>> = self.instances.iter().collect();
        let mut doubt = None;
        let mut reason = String::new();
        while let Some(at) = choose(&untried) {
            let instance = untried.swap_remove(at);
            match instance.send(parcel.clone(), self.answer_within).await {
                Ok(response) => return Ok(response),
                Err(NoAnswer::NotSent(why)) => reason = why,
                Err(NoAnswer::Broken(why)) => {
                    tracing::warn!(url = %instance.url, error = %why, repeatable, "an answer was lost");
                    doubt = Some(why);
                    if !repeatable {
                        break;
                    }
                }
                // Another instance would only keep the caller waiting as long again.
                Err(NoAnswer::Late) => {
                    doubt = Some(format!("nothing came within {} s", self.answer_within.as_secs()));
                    break;
                }
            }
        }
        // Once one copy was sent, refused connections elsewhere do not make its fate known.
        match doubt {
            Some(why) => Err(unknown_outcome(self.name, &why)),
            None => Err(nobody_there(self.name, &reason)),
        }
    }
}

/// The position of the instance to try next: among the healthiest, the less loaded of two drawn at random.
fn choose(instances: &[&Arc<Instance>]) -> Option<usize> {
    let healthiest = instances.iter().map(|instance| instance.health()).min()?;
    let candidates: Vec<usize> = (0..instances.len())
        .filter(|&at| instances[at].health() <= healthiest)
        .collect();
    // Health may have changed between the two looks.
    let first = *candidates.get(rand::random_range(0..candidates.len().max(1)))?;
    let second = candidates[rand::random_range(0..candidates.len())];
    let lighter = instances[second].load() < instances[first].load();
    Some(if lighter { second } else { first })
}
