use std::time::Duration;

use ticketing_types::audit::PurchaseCounts;

use super::*;
use crate::{Answer, Burst, Kept, Plan, RunId, StormPlan};

fn answer(status: u16, slug: Option<&str>) -> Answer {
    Answer {
        status: Some(status),
        slug: slug.map(str::to_owned),
        retry_after_s: (status == 503).then_some(1),
        ..Answer::default()
    }
}

fn audit(plan: &Plan, sold: i64) -> AuditReport {
    let kept = || Invariant {
        verdict: Verdict::Pass,
        detail: "kept".into(),
    };
    AuditReport {
        event_id: plan.event_id(),
        capacity: i64::from(plan.capacity),
        available: i64::from(plan.capacity) - sold,
        held: 0,
        sold,
        oversold: (sold - i64::from(plan.capacity)).max(0),
        undersold: 0,
        purchases: PurchaseCounts {
            completed: sold,
            ..PurchaseCounts::default()
        },
        charged: sold,
        double_charged: 0,
        charged_without_ticket: 0,
        ticket_without_charge: 0,
        stale_tokens_rejected: 0,
        invariants: AUDITED
            .into_iter()
            .map(|name| (name.to_owned(), kept()))
            .collect(),
        verdict: Verdict::Pass,
    }
}

/// 2 seats, 4 buyers: two sales and two refusals, everything as it should be.
fn evidence(strategy: Strategy) -> Evidence {
    let plan = Plan {
        capacity: 2,
        buyers: 4,
        storm: None,
        ..Plan::new(RunId::named("test"), strategy)
    };
    let records = (0..4)
        .map(|i| {
            let answer = if i < 2 {
                answer(201, None)
            } else {
                answer(409, Some("sold-out"))
            };
            let ms = Duration::from_millis(u64::from(i) + 1);
            Record::new(&plan.burst_order(i), 0, Duration::ZERO, ms, answer)
        })
        .collect();
    Evidence {
        burst: Burst {
            records,
            wall: Duration::from_millis(100),
        },
        storm: Vec::new(),
        at_rest: true,
        audit: Some(audit(&plan, 2)),
        storm_audit: None,
        kept: Kept {
            seen: 2,
            ..Kept::default()
        },
        plan,
    }
}

fn break_promise(evidence: &mut Evidence, name: &str) {
    let audit = evidence.audit.as_mut().expect("an audit");
    audit.invariants.insert(name.into(), fail("broken".into()));
}

#[test]
fn a_round_in_which_everything_holds_passes() {
    let report = round(&evidence(Strategy::Raft));
    assert_eq!(report.verdict, StrategyVerdict::Pass, "{}", report.reason);
    assert_eq!((report.sold, report.oversold, report.undersold), (2, 0, 0));
    assert_eq!(report.outcomes["409 sold-out"], 2);
    assert_eq!(report.purchases_per_s, 40.0);
    assert_eq!(report.latency_ms.max, 4.0);
}

#[test]
fn who_promises_nothing_never_passes() {
    for strategy in [Strategy::None, Strategy::Process, Strategy::RaftUnfenced] {
        assert_eq!(
            round(&evidence(strategy)).verdict,
            StrategyVerdict::RaceNotReproduced
        );
    }
}

#[test]
fn a_broken_promise_fails_whoever_made_it_and_nobody_else() {
    for name in AUDITED.into_iter().filter(|&name| name != "I10") {
        let mut guarded = evidence(Strategy::Raft);
        break_promise(&mut guarded, name);
        let report = round(&guarded);
        assert_eq!(report.verdict, StrategyVerdict::Fail, "{name}");
        assert!(report.reason.contains(name), "{}", report.reason);

        let mut open = evidence(Strategy::None);
        break_promise(&mut open, name);
        assert_eq!(round(&open).verdict, StrategyVerdict::RaceReproduced, "{name}");
    }
}

#[test]
fn with_fresh_payment_keys_a_lock_answers_for_the_stock_but_not_for_the_money() {
    let fresh = |name: Option<&str>| {
        let mut evidence = evidence(Strategy::Raft);
        evidence.plan.payment_key = Some(PaymentKey::Fresh);
        if let Some(name) = name {
            break_promise(&mut evidence, name);
        }
        round(&evidence).verdict
    };
    assert_eq!(fresh(None), StrategyVerdict::RaceNotReproduced);
    assert_eq!(fresh(Some("I3")), StrategyVerdict::RaceReproduced);
    assert_eq!(fresh(Some("I2")), StrategyVerdict::Fail);
}

#[test]
fn a_seat_that_is_left_while_buyers_could_pay_is_undersold() {
    let mut evidence = evidence(Strategy::Raft);
    evidence.audit = Some(audit(&evidence.plan, 1));
    let report = round(&evidence);
    assert_eq!(report.undersold, 1);
    assert_eq!(report.checks["I10"].verdict, Verdict::Fail);
    assert_eq!(report.verdict, StrategyVerdict::Fail);

    evidence.plan.buyers = 1;
    assert_eq!(round(&evidence).undersold, 0, "nobody else wanted one");
}

#[test]
fn what_cannot_be_read_is_unknown() {
    let mut no_books = evidence(Strategy::Raft);
    no_books.audit = None;
    assert_eq!(round(&no_books).verdict, StrategyVerdict::Unknown);

    let mut restless = evidence(Strategy::Raft);
    restless.at_rest = false;
    let report = round(&restless);
    assert_eq!(report.verdict, StrategyVerdict::Unknown);
    assert_eq!(report.checks["I6"].verdict, Verdict::Unknown);

    let mut unasked = evidence(Strategy::Raft);
    unasked.kept.unreadable = 1;
    assert_eq!(round(&unasked).verdict, StrategyVerdict::Unknown);
}

#[test]
fn a_sale_that_a_buyer_saw_and_the_books_forgot_fails() {
    let mut evidence = evidence(Strategy::Raft);
    evidence.kept.lost.push("p-1 is unknown".into());
    let report = round(&evidence);
    assert_eq!(report.verdict, StrategyVerdict::Fail);
    assert!(report.reason.contains("p-1"), "{}", report.reason);
}

#[test]
fn contention_may_say_wait_but_not_break() {
    let with = |strategy, answer| {
        let mut evidence = evidence(strategy);
        evidence.burst.records[3].answer = answer;
        round(&evidence)
    };
    let busy = with(Strategy::Raft, answer(503, Some("lock-wait-timeout")));
    assert_eq!(busy.verdict, StrategyVerdict::Pass, "{}", busy.reason);
    assert_eq!(
        with(Strategy::Raft, answer(500, None)).verdict,
        StrategyVerdict::Fail
    );
    assert_eq!(
        with(Strategy::None, answer(500, None)).verdict,
        StrategyVerdict::Unknown
    );
    assert_eq!(
        with(Strategy::Raft, Answer::default()).verdict,
        StrategyVerdict::Unknown
    );
}

#[test]
fn the_storm_is_judged_with_the_burst() {
    let mut evidence = evidence(Strategy::Raft);
    evidence.plan.storm = Some(StormPlan {
        triples: 1,
        lost_replies: 0,
    });
    let order = evidence.plan.triple_order(0);
    let mut second = answer(201, None);
    evidence.storm = vec![Record::new(
        &order,
        0,
        Duration::ZERO,
        Duration::ZERO,
        answer(201, None),
    )];
    let mut storm_audit = audit(&evidence.plan, 1);
    evidence.storm_audit = Some(storm_audit.clone());
    assert_eq!(round(&evidence).verdict, StrategyVerdict::Pass);

    second.purchase_id = ticketing_types::PurchaseId::parse("p-2").ok();
    evidence
        .storm
        .push(Record::new(&order, 1, Duration::ZERO, Duration::ZERO, second));
    storm_audit.double_charged = 1;
    evidence.storm_audit = Some(storm_audit);
    let report = round(&evidence);
    assert_eq!(report.double_charged, 1);
    assert_eq!(report.storm.as_ref().map(|s| s.wrong_duplicates), Some(1));
    assert_eq!(report.checks[ONE_ANSWER_PER_KEY].verdict, Verdict::Fail);
    assert_eq!(report.verdict, StrategyVerdict::Fail);
}

#[test]
fn a_strategy_is_as_good_as_its_worst_round() {
    let good = || round(&evidence(Strategy::Raft));
    let mut lost = evidence(Strategy::Raft);
    lost.audit = None;
    let report = strategy(Strategy::Raft, vec![good(), round(&lost), good()]);
    assert_eq!(report.verdict, StrategyVerdict::Unknown);
    assert_eq!(report.medians.sold, 2.0);
    assert_eq!(
        strategy(Strategy::Raft, vec![good(), good()]).verdict,
        StrategyVerdict::Pass
    );
    assert_eq!(strategy(Strategy::Raft, vec![]).verdict, StrategyVerdict::Skipped);
}

#[test]
fn one_lucky_round_does_not_unmake_a_race() {
    let mut oversold = evidence(Strategy::None);
    break_promise(&mut oversold, "I2");
    let report = strategy(
        Strategy::None,
        vec![round(&oversold), round(&evidence(Strategy::None))],
    );
    assert_eq!(report.verdict, StrategyVerdict::RaceReproduced);
    assert_eq!(
        serde_json::to_value(report.verdict).expect("a string"),
        "race reproduced"
    );
}

#[test]
fn the_exit_status_tells_the_worst_news() {
    let of = |verdict| StrategyReport {
        verdict,
        ..StrategyReport::skipped(Strategy::Raft, "")
    };
    use StrategyVerdict::{Fail, Pass, RaceReproduced, Skipped, Unknown};
    assert_eq!(
        exit_status(&[of(Pass), of(RaceReproduced), of(Skipped)], false),
        0
    );
    assert_eq!(exit_status(&[of(Pass), of(Unknown), of(Fail)], true), 1);
    assert_eq!(exit_status(&[of(Pass), of(Unknown)], true), 2);
    assert_eq!(exit_status(&[of(Skipped)], false), 3);
    assert_eq!(exit_status(&[of(Pass)], true), 4);
}
