//! When a purchase would work: the front door reports every instance ready and the lock cluster has a leader.

use std::time::{Duration, Instant};

use anyhow::bail;

/// How often to ask.
const EVERY: Duration = Duration::from_millis(50);

/// Waits until the front door is ready. The error says what it was still waiting for.
pub(crate) async fn wait(front_door: &str, within: Duration) -> anyhow::Result<()> {
    let http = reqwest::Client::new();
    let until = Instant::now() + within;
    loop {
        let missing = match http
            .get(format!("{front_door}/readyz"))
            .timeout(within)
            .send()
            .await
        {
            Ok(answer) if answer.status().is_success() => return Ok(()),
            Ok(answer) => answer.text().await.unwrap_or_default(),
            Err(error) => error.to_string(),
        };
        if Instant::now() >= until {
            bail!("not ready within {} s: {missing}", within.as_secs());
        }
        tokio::time::sleep(EVERY).await;
    }
}
