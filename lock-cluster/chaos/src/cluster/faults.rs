//! The nodes' own fault points, armed over HTTP; and the end of all faults.

use std::time::Duration;

use anyhow::{Context as _, ensure};
use reqwest::Method;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::{ADMIN_TOKEN, Cluster, LOOK_EVERY};

impl Cluster {
    /// Arms a fault point: whether the node took it.
    pub async fn arm(&self, at: usize, point: &str, effect: &str, percent: u64, seed: u64) -> bool {
        let rule = json!({ "effect": effect, "percent": percent, "seed": seed });
        self.switch(at, Method::PUT, point, Some(rule)).await
    }

    /// Disarms a fault point: whether the node took it.
    pub async fn disarm(&self, at: usize, point: &str) -> bool {
        self.switch(at, Method::DELETE, point, None).await
    }

    /// Cuts or mends the link from a node to another one.
    pub async fn cut(&self, at: usize, other: usize, effect: Option<&str>) -> bool {
        let point = format!("raft.peer/{}", other + 1);
        match effect {
            Some(effect) => self.arm(at, &point, effect, 100, 0).await,
            None => self.disarm(at, &point).await,
        }
    }

    async fn switch(&self, at: usize, method: Method, point: &str, rule: Option<Value>) -> bool {
        if !self.is_up(at) {
            return false;
        }
        let url = format!("{}/v1/faults/{point}", self.url(at));
        let mut request = self.http.request(method, url).bearer_auth(ADMIN_TOKEN);
        if let Some(rule) = rule {
            request = request.json(&rule);
        }
        request
            .send()
            .await
            .is_ok_and(|answer| answer.status().is_success())
    }

    /// Starts what is down, thaws what is frozen, mends links and disks, and waits until one leads.
    ///
    /// # Errors
    /// If a node cannot be started, does not answer, or nobody leads in time.
    pub async fn heal(&self, within: Duration) -> anyhow::Result<usize> {
        let deadline = Instant::now() + within;
        for at in self.all() {
            self.thaw(at);
            self.start_node(at)?;
        }
        for at in self.all() {
            // Twice in a row: a frozen node may have been sent something that it only finds now.
            let mut calm = 0;
            while calm < 2 {
                ensure!(Instant::now() < deadline, "node {} does not become well", at + 1);
                calm = match self.disarm_armed(at).await {
                    Some(0) => calm + 1,
                    _ => 0,
                };
                sleep(LOOK_EVERY).await;
            }
        }
        let left = deadline.saturating_duration_since(Instant::now());
        self.wait_for_leader(left).await.context("nobody leads")
    }

    /// How many points were found armed, and disarmed.
    async fn disarm_armed(&self, at: usize) -> Option<usize> {
        let asked = self.http.get(format!("{}/v1/faults", self.url(at)));
        let view: Value = asked
            .bearer_auth(ADMIN_TOKEN)
            .send()
            .await
            .ok()?
            .json()
            .await
            .ok()?;
        let points = view["points"].as_array()?;
        let armed = points.iter().filter(|point| !point["rule"].is_null());
        let names: Vec<&str> = armed.filter_map(|point| point["point"].as_str()).collect();
        for name in &names {
            self.disarm(at, name).await;
        }
        Some(names.len())
    }
}
