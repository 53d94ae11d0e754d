//! Both ports under abuse: garbage, halves, silence, crowds, trickles. Each is refused or timed out, there is a bound on
//! how many there can be, and meanwhile the cluster goes on.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;

use super::{Fleet, SOON};

/// How a connection between members begins, without TLS.
const OPENING: &[u8] = b"LTP ";
const CROWD: usize = 10_000;
/// Files that a node may have open where its seats shall run out: a quarter of them are connections of a port.
const FEW_FILES: u64 = 1_024;

impl Fleet {
    fn peer_addr(&self, at: usize) -> String {
        self.members[at].peer_addr.clone()
    }

    fn client_addr(&self, at: usize) -> String {
        self.members[at].client_addr.clone()
    }

    fn open_files(&self, at: usize) -> usize {
        let files = std::fs::read_dir(format!("/proc/{}/fd", self.pid(at)));
        files.expect("it runs").count()
    }
}

/// Whether the other end hangs up, whatever it says before.
async fn is_hung_up_on(mut stream: TcpStream) -> bool {
    let mut said = Vec::new();
    timeout(SOON, stream.read_to_end(&mut said)).await.is_ok()
}

/// Connections that say nothing: as many as `count`, or as this process may open.
async fn crowd(addr: &str, count: usize) -> Vec<TcpStream> {
    service_kit::limits::raise_nofile();
    let mut crowd = Vec::new();
    for _ in 0..count {
        match timeout(SOON, TcpStream::connect(addr)).await {
            Ok(Ok(stream)) => crowd.push(stream),
            stopped => {
                println!("{} of {count} connections to {addr}: {stopped:?}", crowd.len());
                break;
            }
        }
    }
    assert!(crowd.len() > 900, "{} are no crowd", crowd.len());
    crowd
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_is_no_member_is_hung_up_on_at_the_peer_port() {
    let mut fleet = Fleet::new();
    fleet.start_all().await;
    let leader = fleet.leader().await;
    let half_a_frame = [OPENING, &[100, 0, 0, 0, 1, 2, 3][..]].concat();
    let too_large_a_frame = [OPENING, &[0xff, 0xff, 0xff, 0x7f]].concat();
    let no_hello = [OPENING, &[64, 0, 0, 0], &[0xa5; 64]].concat();
    for words in [
        &b""[..],
        b"GET / HTTP/1.1\r\n\r\n",
        &half_a_frame,
        &too_large_a_frame,
        &no_hello,
    ] {
        let mut stream = TcpStream::connect(fleet.peer_addr(leader))
            .await
            .expect("it listens");
        stream.write_all(words).await.expect("it is sent");
        assert!(is_hung_up_on(stream).await, "{words:?} was waited for");
    }
    fleet.says(&[leader], "it does not begin like a member").await;
    fleet.grants().await;

    // A member that does not know the secret, and keeps asking.
    let follower = (leader + 1) % 3;
    fleet.kill(follower).await;
    fleet.set("LOCK_NODE_PEER_SECRET", "a guess");
    fleet.start(follower, &[]);
    fleet.says(&[leader], "does not know the cluster's secret").await;
    fleet.grants().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_thousand_who_say_nothing_keep_no_member_out() {
    let mut fleet = Fleet::new();
    fleet.start_all().await;
    let leader = fleet.leader().await;
    let crowd = crowd(&fleet.peer_addr(leader), CROWD).await;
    fleet.grants().await;
    assert!(
        fleet.open_files(leader) < 512 + 200,
        "{}",
        fleet.open_files(leader)
    );
    // A follower that comes back finds a seat among them.
    let follower = (leader + 1) % 3;
    fleet.kill(follower).await;
    fleet.start(follower, &[]);
    fleet.ready(follower).await;
    fleet.kill((leader + 2) % 3).await;
    fleet.grants().await;
    drop(crowd);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_thousand_idle_clients_lose_their_seats_to_those_with_a_question() {
    let mut fleet = Fleet::new();
    fleet.open_files_max = Some(FEW_FILES);
    fleet.start_all().await;
    let leader = fleet.leader().await;
    let crowd = crowd(&fleet.client_addr(leader), CROWD).await;
    for _ in 0..3 {
        fleet.grants().await;
    }
    assert!(
        fleet.open_files(leader) < 256 + 200,
        "{}",
        fleet.open_files(leader)
    );
    drop(crowd);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pipes_that_say_nothing_lose_their_seats_to_those_with_a_question() {
    let mut fleet = Fleet::new();
    fleet.open_files_max = Some(FEW_FILES);
    fleet.start_all().await;
    let leader = fleet.leader().await;
    let (path, protocol) = (lock_pipe::PATH, lock_pipe::PROTOCOL);
    let upgrade =
        format!("GET {path} HTTP/1.1\r\nhost: lock\r\nconnection: upgrade\r\nupgrade: {protocol}\r\n\r\n");
    let mut pipes = Vec::new();
    for _ in 0..400 {
        let mut stream = TcpStream::connect(fleet.client_addr(leader))
            .await
            .expect("it listens");
        stream.write_all(upgrade.as_bytes()).await.expect("it is sent");
        let mut status = [0; "HTTP/1.1 101".len()];
        let answered = timeout(SOON, stream.read_exact(&mut status)).await;
        answered.expect("it answers").expect("it answers whole");
        assert_eq!(&status, b"HTTP/1.1 101", "{}", String::from_utf8_lossy(&status));
        pipes.push(stream);
    }
    fleet.grants().await;
    // 256 seats: whoever came first has lost theirs.
    for mut pipe in pipes.into_iter().take(400 - 256) {
        let rest = timeout(SOON, pipe.read_to_end(&mut Vec::new())).await;
        assert!(rest.is_ok(), "it is hung up on");
    }
}

/// Sends the same byte again and again, until the other end has had enough.
async fn trickle(addr: String, start: String, byte: &'static [u8]) {
    let Ok(mut stream) = TcpStream::connect(addr).await else {
        return;
    };
    if stream.write_all(start.as_bytes()).await.is_err() {
        return;
    }
    let (mut answers, mut words) = stream.split();
    let mut answer = [0; 256];
    let mut pause = tokio::time::interval(Duration::from_millis(200));
    loop {
        tokio::select! {
            _ = pause.tick() => if words.write_all(byte).await.is_err() { return },
            _ = answers.read(&mut answer) => return,
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn heads_and_bodies_that_trickle_in_are_cut_short() {
    let mut fleet = Fleet::new();
    fleet.open_files_max = Some(FEW_FILES);
    fleet.start_all().await;
    let leader = fleet.leader().await;
    let addr = fleet.client_addr(leader);
    let head = format!("GET /v1/locks HTTP/1.1\r\nhost: {addr}\r\nx-slow: ");
    let body = format!(
        "PUT /v1/sessions/{} HTTP/1.1\r\nhost: {addr}\r\ncontent-type: application/json\r\ncontent-length: 60000\r\n\r\n",
        uuid::Uuid::new_v4()
    );
    let mut heads: Vec<_> = (0..400)
        .map(|_| tokio::spawn(trickle(addr.clone(), head.clone(), b"x")))
        .collect();
    let bodies: Vec<_> = (0..100)
        .map(|_| tokio::spawn(trickle(addr.clone(), body.clone(), b" ")))
        .collect();
    for _ in 0..3 {
        fleet.grants().await;
    }
    // More heads than there are seats: the first of them are gone. A body has ten seconds.
    let ended = async {
        for body in bodies {
            body.await.expect("no panic");
        }
    };
    timeout(SOON, ended).await.expect("bodies are not waited for");
    let mut cut = 0;
    for head in &mut heads {
        cut += usize::from(timeout(Duration::ZERO, head).await.is_ok());
    }
    assert!(
        cut >= 100,
        "{cut} heads were cut short, with 256 seats for 400 and others"
    );
    heads.iter().for_each(tokio::task::JoinHandle::abort);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_that_takes_connections_and_never_answers_holds_nobody_up() {
    let mut fleet = Fleet::new();
    fleet.start_all().await;
    // In the third's place.
    fleet.kill(2).await;
    let addr: SocketAddr = fleet.peer_addr(2).parse().expect("an address");
    let mute = TcpListener::bind((Ipv4Addr::LOCALHOST, addr.port()))
        .await
        .expect("a port");
    let listening = tokio::spawn(async move {
        let mut kept = Vec::new();
        while let Ok((stream, _)) = mute.accept().await {
            kept.push(stream);
        }
    });
    fleet.grants().await;
    // An election with it, too: both others must vote.
    let leader = fleet.leader().await;
    fleet.kill(leader).await;
    fleet.start(leader, &[]);
    fleet.grants().await;
    listening.abort();
}
