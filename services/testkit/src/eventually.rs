//! Waiting for something that will be true soon, and failing with its name when it is not.

use std::time::{Duration, Instant};

/// The first pause between two looks; short, because most conditions are nearly true already.
const PAUSE_MIN: Duration = Duration::from_millis(5);
/// The longest pause between two looks.
const PAUSE_MAX: Duration = Duration::from_millis(100);

/// Looks again and again until `look` finds something, and returns it.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// # use std::time::Duration;
/// let n = testkit::eventually(Duration::from_secs(5), "a number", async || Some(7)).await;
/// assert_eq!(n, 7);
/// # }
/// ```
///
/// # Panics
/// When `within` has passed and nothing was found; the message names `what`.
pub async fn eventually<T>(within: Duration, what: &str, look: impl AsyncFnMut() -> Option<T>) -> T {
    match found_within(within, look).await {
        Some(found) => found,
        None => panic!("waited {within:?} in vain for: {what}"),
    }
}

/// The same where nothing may be found: `None` when the time is up.
pub async fn found_within<T>(within: Duration, mut look: impl AsyncFnMut() -> Option<T>) -> Option<T> {
    let started = Instant::now();
    let mut pause = PAUSE_MIN;
    loop {
        // A look that hangs is a condition that does not hold.
        let left = within.saturating_sub(started.elapsed());
        match tokio::time::timeout(left, look()).await {
            Ok(Some(found)) => return Some(found),
            Ok(None) if started.elapsed() < within => {}
            Ok(None) | Err(_) => return None,
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(PAUSE_MAX);
    }
}

/// Waits until `GET <base_url>/readyz` answers 200.
///
/// # Panics
/// When it does not within the given time.
pub async fn wait_ready(within: Duration, base_url: &str) {
    let http = reqwest::Client::builder()
        .no_proxy()
        .build()
        .expect("a client without TLS");
    let url = format!("{base_url}/readyz");
    eventually(within, &format!("{url} to answer 200"), async || {
        let response = http.get(&url).timeout(Duration::from_secs(2)).send().await.ok()?;
        response.status().is_success().then_some(())
    })
    .await
}
