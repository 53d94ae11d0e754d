//! All disks are lost; another cluster goes on from a backup.

use std::time::Duration;

use lock_client::LockError;
use reqwest::Method;

use crate::cluster::Cluster;

const TTL: Duration = Duration::from_secs(10);
const MARGIN: u64 = 1 << 32;

fn slug(answer: Result<lock_client::wire::Restored, LockError>) -> String {
    match answer {
        Err(LockError::Invalid { slug, .. }) => slug,
        other => panic!("it should be refused: {other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restored_cluster_goes_on_above_all_tokens_of_the_lost_one() {
    let lost = Cluster::start(3).await;
    let client = lost.client("of the lost one", TTL).await;
    let held = client.acquire(&["held".to_owned()], TTL).await.expect("granted");
    let file = lost.admin().backup().await.expect("a backup");
    // What the backup cannot know of.
    let later = client.acquire(&["gate".to_owned()], TTL).await.expect("granted");

    let new = Cluster::start(1).await;
    let client = new.client("of the new one", TTL).await;
    let early = client.acquire(&["own".to_owned()], TTL).await.expect("granted");
    let restored = new.admin().restore(&file, None).await.expect("restored");
    assert_eq!(restored.backup_last_token, held.fencing_token());
    assert_eq!(restored.token_floor, held.fencing_token() + MARGIN);
    assert_eq!((restored.sessions_dropped, restored.locks_dropped), (1, 1));

    let next = client.acquire(&["held".to_owned()], TTL).await;
    let next = next.expect("the locks of the lost cluster are not brought back");
    assert!(next.fencing_token() > later.fencing_token());
    assert!(next.fencing_token() > early.fencing_token());
    assert!(!early.is_lost(), "who was here already stays");

    // Again, by somebody who knows where tokens ended, or believes to: they only ever go up.
    let again = new
        .admin()
        .restore(&file, Some(held.fencing_token()))
        .await
        .expect("restored");
    assert_eq!(again.token_floor, next.fencing_token());
    let higher = next.fencing_token() + 5;
    let again = new.admin().restore(&file, Some(higher)).await.expect("restored");
    assert_eq!(again.token_floor, higher);
    let last = client.acquire(&["gate".to_owned()], TTL).await.expect("granted");
    assert_eq!(last.fencing_token(), higher + 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_no_backup_is_refused_and_changes_nothing() {
    let cluster = Cluster::start(1).await;
    let client = cluster.client("somebody", TTL).await;
    let token = |grant: lock_client::Grant| grant.fencing_token();
    let before = token(client.acquire(&["gate".to_owned()], TTL).await.expect("granted"));
    let admin = cluster.admin();
    let file = admin.backup().await.expect("a backup");

    let mut flipped = file.clone();
    let middle = file.len() / 2;
    flipped[middle] ^= 1;
    for bad in [
        b"".as_slice(),
        b"garbage, and a lot of it, more than any header",
        &file[..file.len() - 1],
        &flipped,
    ] {
        assert_eq!(slug(admin.restore(bad, None).await), "invalid-backup");
    }
    assert_eq!(
        slug(admin.restore(&file, Some(before - 1)).await),
        "invalid-request"
    );
    assert_eq!(
        slug(admin.restore(&file, Some(u64::MAX)).await),
        "token-floor-too-high"
    );
    let url = format!("{}/v1/cluster/backup", cluster.url(0));
    let stranger = cluster
        .api
        .once(Method::GET, &url, None)
        .await
        .expect("it answers");
    stranger.expect_problem(401, "unauthorized");

    let after = token(client.acquire(&["yard".to_owned()], TTL).await.expect("granted"));
    assert_eq!(after, before + 1, "none of it has touched the counter");
}
