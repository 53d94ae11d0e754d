//! A line on which a handshake takes longer than the library waits for a heartbeat.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use openraft::network::{RPCOption, RaftNetworkV2 as _};
use openraft::raft::StreamAppendResult;
use tokio::net::TcpListener;
use tokio::time::{sleep, timeout};

use super::super::settings::HEARTBEAT_MS;
use super::client::PeerNetwork;
use super::frame::{FRAME_BYTES_MAX, FrameReader, send};
use super::handshake::{self, Key, Me};
use super::pump::tests::request;
use super::wire::C;
use super::{Standing, Transport};
use crate::NodeFaults;
use crate::raft::Identity;
use crate::raft::types::PeerNode;

const HEARTBEAT: Duration = Duration::from_millis(HEARTBEAT_MS);
/// What the line makes of a handshake. Less than connecting may take.
const HANDSHAKE: Duration = Duration::from_millis(3 * HEARTBEAT_MS);

fn me(dir: &Path, id: u64) -> Me {
    Me {
        key: Key::new(None),
        identity: Arc::new(Identity::of_directory(dir, id).unwrap()),
    }
}

/// Member 2, which answers all appends, at the end of the slow line.
async fn answer(listener: TcpListener, me: Me) {
    while let Ok((stream, _)) = listener.accept().await {
        let badge = me.badge();
        tokio::spawn(async move {
            let mut accepted = Transport::Plain.accept(stream).await.unwrap();
            sleep(HANDSHAKE).await;
            let mut reader = FrameReader::new(accepted.reader);
            let shaken = handshake::accept(&mut reader, &mut accepted.writer, &badge, |_| true, |_, _| None);
            // Whoever does not wait for the handshake has hung up.
            if shaken.await.is_err() {
                return;
            }
            while let Ok(Some(_)) = reader.next(FRAME_BYTES_MAX).await {
                let answer: StreamAppendResult<C> = Ok(None);
                send(&mut accepted.writer, &answer).await.unwrap();
            }
        });
    }
}

/// As the library sends heartbeats: each is waited for as long as it is until the next one, and then dropped.
#[tokio::test]
async fn a_handshake_outlives_the_heartbeats_that_give_it_up() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let node = PeerNode {
        peer_addr: listener.local_addr().unwrap().to_string(),
        ..PeerNode::default()
    };
    let dirs = [1, 2].map(|_| tempfile::tempdir().unwrap());
    let answering = tokio::spawn(answer(listener, me(dirs[1].path(), 2)));
    let standing = Arc::new(Standing::new());
    let (faults, told) = (NodeFaults::new(false, &[]), BTreeMap::new());
    let network = PeerNetwork::new(me(dirs[0].path(), 1), standing, Transport::Plain, faults, told);
    let mut link = network.link(2, &node);
    let mut given_up = 0;
    let heartbeats = async {
        loop {
            let heartbeat = link.append_entries(request(0), RPCOption::new(HEARTBEAT));
            if let Ok(Ok(_answered)) = timeout(HEARTBEAT, heartbeat).await {
                return;
            }
            given_up += 1;
        }
    };
    let answered = timeout(Duration::from_secs(10), heartbeats).await;
    answered.expect("a heartbeat comes through");
    assert!(given_up > 0, "the line was not slow");
    answering.abort();
}
