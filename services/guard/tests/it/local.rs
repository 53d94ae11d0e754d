//! Strategies that need nothing but this process.

use std::time::Duration;

use guard::{ClientConfig, GuardError, Guards, WriteRule};
use ticketing_types::Strategy;

const WAIT: Duration = Duration::from_millis(50);

fn names() -> Vec<String> {
    vec!["event/1".to_owned()]
}

#[tokio::test]
async fn strategies_without_a_lock_let_everybody_in_and_differ_in_the_write_only() {
    let guards = Guards::new(ClientConfig::default());
    for (strategy, rule) in [
        (Strategy::None, WriteRule::Plain),
        (Strategy::Atomic, WriteRule::Conditional),
        (Strategy::Optimistic, WriteRule::CompareVersion),
    ] {
        let first = guards.enter(strategy, &names(), WAIT).await.expect("free");
        let second = guards
            .enter(strategy, &names(), WAIT)
            .await
            .expect("free for two");
        assert_eq!((first.rule, second.rule), (rule, rule));
    }
}

#[tokio::test]
async fn a_mutex_of_one_instance_is_unknown_to_the_other() {
    let (one, two) = (
        Guards::new(ClientConfig::default()),
        Guards::new(ClientConfig::default()),
    );
    let held = one.enter(Strategy::Process, &names(), WAIT).await.expect("free");
    assert_eq!(held.rule, WriteRule::Plain);

    let again = one.enter(Strategy::Process, &names(), WAIT).await;
    assert_eq!(again.map(|_| ()), Err(GuardError::WaitTimeout));
    assert!(
        two.enter(Strategy::Process, &names(), WAIT).await.is_ok(),
        "which is why two instances oversell"
    );

    held.leave().await;
    assert!(one.enter(Strategy::Process, &names(), WAIT).await.is_ok());
}

#[tokio::test]
async fn a_strategy_that_cannot_be_used_says_why() {
    let guards = Guards::new(ClientConfig::default());
    for &strategy in Strategy::ALL {
        let entered = guards.enter(strategy, &names(), WAIT).await;
        let needs_more = !matches!(
            strategy,
            Strategy::None | Strategy::Process | Strategy::Atomic | Strategy::Optimistic
        );
        match entered {
            Ok(_) => assert!(!needs_more, "{strategy}"),
            Err(error) => {
                assert!(needs_more, "{strategy}: {error}");
                assert_eq!(error.slug(), "strategy-unavailable");
                assert!(error.to_string().contains(strategy.name()), "{error}");
            }
        }
    }
}

#[tokio::test]
async fn a_cluster_that_is_away_is_an_answer_in_bounded_time() {
    let unused = std::net::TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
    let guards = Guards::new(ClientConfig::new([format!(
        "http://{}",
        unused.expect("a free port")
    )]));
    let names = names();
    let entering = guards.enter(Strategy::Raft, &names, Duration::ZERO);
    let entered = tokio::time::timeout(Duration::from_secs(20), entering)
        .await
        .expect("bounded");
    assert_eq!(
        entered.map(|_| ()).expect_err("nobody is there").slug(),
        "lock-unavailable"
    );
}
