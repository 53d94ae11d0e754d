//! Who lets whom in, and what each is told.

use super::super::refusal::has_lost_its_disk;
use super::*;

type Met = (io::Result<DiskId>, Result<Caller, Refusal>);

fn badge(secret: Option<&str>, id: u64) -> Badge {
    Badge {
        key: Key::new(secret.and_then(Secret::new).as_ref()),
        id,
        disk: DiskId::drawn(),
        cluster: None,
    }
}

/// Both ends over a pipe: what the opener sees, and what the acceptor. 1 calls `to`, and 2 accepts.
async fn shake(opener: Option<&str>, acceptor: Option<&str>, to: u64) -> Met {
    meet(badge(opener, 1), badge(acceptor, 2), to, [None, None]).await
}

/// The same, of two members with what each has recorded of the other's disk.
async fn shake_with_disks(recorded: [Option<DiskId>; 2]) -> Met {
    meet(badge(Some("ours"), 1), badge(Some("ours"), 2), 2, recorded).await
}

/// The same, of members of these clusters.
async fn shake_across(clusters: [Option<ClusterId>; 2], recorded: [Option<DiskId>; 2]) -> Met {
    let of = |at: usize, id| Badge {
        cluster: clusters[at],
        ..badge(Some("ours"), id)
    };
    meet(of(0, 1), of(1, 2), 2, recorded).await
}

async fn meet(
    opener: Badge,
    acceptor: Badge,
    to: u64,
    [recorded_of_2, recorded_of_1]: [Option<DiskId>; 2],
) -> Met {
    let (near, far) = tokio::io::duplex(1024);
    let ((near_read, mut near_write), (far_read, mut far_write)) =
        (tokio::io::split(near), tokio::io::split(far));
    let (mut near_read, mut far_read) = (FrameReader::new(near_read), FrameReader::new(far_read));
    let (opened, accepted) = tokio::join!(
        open(
            &mut near_read,
            &mut near_write,
            &opener,
            to,
            Recorded {
                disk: recorded_of_2,
                as_of: None,
            },
            Purpose::Append
        ),
        accept(
            &mut far_read,
            &mut far_write,
            &acceptor,
            |from| from == 1,
            |from, _| recorded_of_1.filter(|_| from == 1)
        )
    );
    if let Ok(disk) = &opened {
        assert_eq!(*disk, acceptor.disk, "it is told whose disk it is");
    }
    (opened, accepted.unwrap())
}

#[tokio::test]
async fn two_who_know_the_secret_let_each_other_in() {
    let (opened, accepted) = shake(Some("ours"), Some("ours"), 2).await;
    opened.unwrap();
    let caller = Caller {
        id: 1,
        cluster: None,
        purpose: Purpose::Append,
    };
    assert_eq!(accepted, Ok(caller));
    shake(None, None, 2).await.0.unwrap();
}

#[tokio::test]
async fn one_who_does_not_know_it_is_refused_by_either_end() {
    for (opener, acceptor) in [
        (Some("guess"), Some("ours")),
        (None, Some("ours")),
        (Some("ours"), None),
    ] {
        let (opened, accepted) = shake(opener, acceptor, 2).await;
        assert_eq!(opened.unwrap_err().kind(), io::ErrorKind::PermissionDenied);
        assert_eq!(accepted, Err(Refusal::Secret));
    }
}

#[tokio::test]
async fn a_member_that_was_looked_for_elsewhere_says_so() {
    let (opened, accepted) = shake(Some("ours"), Some("ours"), 3).await;
    assert!(opened.unwrap_err().to_string().contains("another member"));
    assert_eq!(accepted, Err(Refusal::OtherMember));
}

#[tokio::test]
async fn a_disk_that_is_not_the_recorded_one_is_turned_away_by_either_end() {
    let other = Some(DiskId::drawn());
    let (opened, accepted) = shake_with_disks([None, other]).await;
    let error = opened.unwrap_err();
    assert!(has_lost_its_disk(&error), "{error}");
    assert_eq!(accepted, Err(Refusal::OtherDisk));

    let (opened, _) = shake_with_disks([other, None]).await;
    let error = opened.unwrap_err();
    assert!(error.to_string().contains("add it under a new id"), "{error}");
    assert!(!has_lost_its_disk(&error), "it is the other one that has");
}

#[tokio::test]
async fn an_impostor_at_a_members_address_cannot_make_a_node_believe_that_its_disk_is_lost() {
    let (recorded, other) = (Some(DiskId::drawn()), Some(DiskId::drawn()));
    let (opened, accepted) = shake_with_disks([recorded, other]).await;
    let error = opened.unwrap_err();
    assert!(!has_lost_its_disk(&error), "{error}");
    assert_eq!(accepted, Err(Refusal::OtherDisk));
}

#[tokio::test]
async fn a_stranger_cannot_make_a_node_believe_that_its_disk_is_lost() {
    let (near, far) = tokio::io::duplex(1024);
    let ((near_read, mut near_write), (far_read, mut far_write)) =
        (tokio::io::split(near), tokio::io::split(far));
    let (mut near_read, mut far_read) = (FrameReader::new(near_read), FrameReader::new(far_read));
    let me = badge(Some("ours"), 1);
    let stranger = async {
        let challenge = Challenge {
            magic: MAGIC,
            nonce: nonce(),
        };
        send(&mut far_write, &challenge).await.unwrap();
        far_read.expect(HANDSHAKE_BYTES_MAX).await.unwrap();
        let refusal = Verdict::Refused {
            why: Refusal::OtherDisk,
            disk: DiskId::drawn(),
            proof: Proof::default(),
        };
        send(&mut far_write, &refusal).await.unwrap();
    };
    let (opened, ()) = tokio::join!(
        open(
            &mut near_read,
            &mut near_write,
            &me,
            2,
            Recorded::default(),
            Purpose::Call
        ),
        stranger
    );
    let error = opened.unwrap_err();
    assert!(!has_lost_its_disk(&error), "{error}");
}

#[tokio::test]
async fn members_of_different_clusters_refuse_each_other_and_one_of_none_is_let_in() {
    let (caller, called) = (ClusterId::drawn(), ClusterId::drawn());
    // That the disks are others, too, is no wonder, and nobody stops for it.
    let disks = [Some(DiskId::drawn()), Some(DiskId::drawn())];
    let (opened, accepted) = shake_across([Some(caller), Some(called)], disks).await;
    assert_eq!(accepted, Err(Refusal::OtherCluster { caller, called }));
    let error = opened.unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::PermissionDenied);
    assert!(error.to_string().contains(&called.to_string()), "{error}");
    assert!(!has_lost_its_disk(&error), "{error}");

    for clusters in [
        [Some(caller), Some(caller)],
        [Some(caller), None],
        [None, Some(called)],
    ] {
        let (opened, accepted) = shake_across(clusters, [None, None]).await;
        opened.unwrap();
        assert_eq!(
            accepted.unwrap().cluster,
            clusters[0],
            "it is told of which cluster"
        );
    }
}
