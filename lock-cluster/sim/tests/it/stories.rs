//! Promises put to the test by one thing that happens over and over.

use std::time::Duration;

use lock_sim::stories::{elections, hand_overs, keep_alives};

#[test]
fn an_election_every_half_time_to_live_kills_nobody_and_saves_nobody() {
    for (seed, nodes) in (1..=20)
        .map(|seed| (seed, 3))
        .chain((21..=30).map(|seed| (seed, 5)))
    {
        let told = elections(seed, nodes);
        assert_eq!(told.panics, [] as [String; 0], "seed {seed}");
        assert!(
            told.elections >= 18,
            "seed {seed}: hardly any elections: {told:?}"
        );
        assert_eq!(
            (told.live_that_expired, told.live_unheard),
            (0, 0),
            "seed {seed}: {told:?}"
        );
        let gone = told.dead_gone_after;
        assert!(
            gone.is_some_and(|gone| gone <= told.dead_gone_within),
            "seed {seed}: the dead session lives too long: {told:?}"
        );
        // Not before its time either.
        assert!(gone >= Some(Duration::from_secs(6)), "seed {seed}: {told:?}");
    }
}

#[test]
fn keep_alives_share_entries_and_hold_up_nobody() {
    let told = keep_alives(1);
    assert!(told.entries <= 6, "each is an entry of its own: {told:?}");
    // The disk of this world takes its time now and then.
    let most = told.hurried[told.hurried.len() / 2];
    assert!(
        most < Duration::from_millis(30),
        "it waited for company: {told:?}"
    );
}

#[test]
fn whoever_gets_in_line_shares_the_entry_of_the_release_in_front() {
    let told = hand_overs(1, 50);
    assert!(
        told.entries <= told.hand_overs + told.hand_overs / 5,
        "getting in line is an entry of its own: {told:?}"
    );
}
