//! The pipe as any program could speak it: what it answers, what ends it, what it cannot do to a node.
//!
//! A long file, because all of it is said with the raw client at its top, which no other file should need.

use bytes::BytesMut;
use lock_core::{AcquireId, Label, LockNames, SessionId, TtlMs, WaitMs};
use lock_pipe::frame::{FrameReader, decode, put};
use lock_pipe::{Answer, Call, Done, Request, Response};
use reqwest::Method;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::timeout;
use uuid::Uuid;

use crate::api::{Session, until_waiters};
use crate::cluster::{Cluster, SOON};

/// A client that knows frames and nothing else.
pub(crate) struct RawPipe {
    reader: FrameReader<OwnedReadHalf>,
    writer: OwnedWriteHalf,
}

impl RawPipe {
    pub(crate) async fn open(url: &str) -> Self {
        let addr = url.strip_prefix("http://").expect("a plain URL");
        Self::on(TcpStream::connect(addr).await.expect("the node listens"), addr).await
    }

    async fn on(mut stream: TcpStream, addr: &str) -> Self {
        let upgrade = format!(
            "GET /v1/pipe HTTP/1.1\r\nhost: {addr}\r\nconnection: Upgrade\r\nupgrade: lock-pipe/1\r\n\r\n"
        );
        stream.write_all(upgrade.as_bytes()).await.expect("it is sent");
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(stream.read_u8().await.expect("it is answered"));
        }
        assert!(
            head.starts_with(b"HTTP/1.1 101 "),
            "{}",
            String::from_utf8_lossy(&head)
        );
        let (reader, writer) = stream.into_split();
        let reader = FrameReader::new(reader);
        Self { reader, writer }
    }

    pub(crate) async fn send(&mut self, request: &Request) {
        let mut out = BytesMut::new();
        put(&mut out, request, usize::MAX).expect("a request is a frame");
        self.raw(&out).await.expect("it is sent");
    }

    async fn raw(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.writer.write_all(bytes).await
    }

    pub(crate) async fn call(&mut self, id: u64, call: Call) {
        self.send(&Request::Call { id, call }).await;
    }

    /// The next answer; `None` at the end of the pipe.
    pub(crate) async fn next(&mut self) -> Option<Response> {
        let frame = timeout(SOON, self.reader.next(usize::MAX))
            .await
            .expect("it says something");
        frame
            .ok()
            .flatten()
            .map(|frame| decode(&frame).expect("a response"))
    }

    async fn ask(&mut self, call: Call) -> Answer {
        self.call(1, call).await;
        let Response { id, answer } = self.next().await.expect("an answer");
        assert_eq!(id, 1);
        answer
    }
}

fn id(session: &Session) -> SessionId {
    SessionId::new(session.id)
}

fn acquire(session_id: SessionId, acquire_id: u64, names: &[&str], wait_ms: u64) -> Call {
    Call::Acquire {
        session_id,
        acquire_id: AcquireId::new(acquire_id),
        names: LockNames::parse(names).expect("names"),
        wait: WaitMs::new(wait_ms).expect("a wait"),
    }
}

/// An answer without what differs from one session to another.
#[derive(Debug, PartialEq, Eq)]
struct Heard {
    status: u16,
    slug: String,
    detail: String,
    leader: Value,
    names: Value,
    ttl_ms: Value,
}

/// The same call in JSON.
async fn over_http(cluster: &Cluster, url: &str, call: &Call) -> Heard {
    let (method, path, body) = match call {
        Call::Open { session_id, ttl, .. } => (
            Method::PUT,
            format!("/v1/sessions/{session_id}"),
            json!({ "ttl_ms": ttl.get(), "label": "" }),
        ),
        Call::KeepAlive {
            session_id,
            acknowledged,
        } => (
            Method::POST,
            format!("/v1/sessions/{session_id}/keep-alive"),
            json!({ "acknowledged": acknowledged }),
        ),
        Call::Close { session_id } => (Method::DELETE, format!("/v1/sessions/{session_id}"), Value::Null),
        Call::Acquire {
            session_id,
            acquire_id,
            names,
            wait,
        } => (
            Method::POST,
            format!("/v1/sessions/{session_id}/acquisitions"),
            json!({ "acquire_id": acquire_id, "names": names, "wait_ms": wait }),
        ),
        Call::Release {
            session_id,
            acquire_id,
        } => (
            Method::DELETE,
            format!("/v1/sessions/{session_id}/acquisitions/{acquire_id}"),
            Value::Null,
        ),
    };
    let body = (!body.is_null()).then_some(&body);
    let reply = cluster.api.once(method, &format!("{url}{path}"), body).await;
    let reply = reply.expect("it answers");
    Heard {
        status: reply.status.as_u16(),
        slug: reply.slug().to_owned(),
        detail: reply.body["detail"].as_str().unwrap_or_default().to_owned(),
        leader: reply.body["leader"].clone(),
        names: reply.body["names"].clone(),
        ttl_ms: reply.body["ttl_ms"].clone(),
    }
}

async fn over_pipe(pipe: &mut RawPipe, call: Call) -> Heard {
    let (mut names, mut ttl_ms) = (Value::Null, Value::Null);
    let (status, problem) = match pipe.ask(call).await {
        Ok(Done::Opened { ttl, created }) => {
            ttl_ms = json!(ttl);
            (if created { 201 } else { 200 }, None)
        }
        Ok(Done::KeptAlive { ttl, .. }) => {
            ttl_ms = json!(ttl);
            (200, None)
        }
        Ok(Done::Granted { names: granted, .. }) => {
            names = json!(granted);
            (201, None)
        }
        Ok(Done::Closed | Done::Released) => (204, None),
        Err(problem) => (problem.status, Some(problem)),
    };
    let problem = problem.unwrap_or_default();
    Heard {
        status,
        slug: problem.slug,
        detail: problem.detail,
        leader: json!(problem.leader),
        names,
        ttl_ms,
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pipe_and_http_answer_the_same_calls_alike() {
    let cluster = Cluster::start(3).await;
    let holder = cluster.session().await;
    holder.granted(1, &["taken"], 0).await;
    let (leader, follower) = (cluster.leader().await, cluster.follower().await);
    let mut pipe = RawPipe::open(&cluster.url(leader)).await;
    let script = |session_id: SessionId| {
        let open = Call::Open {
            session_id,
            ttl: TtlMs::new(60_000).expect("a TTL"),
            label: Label::default(),
        };
        let release = |acquire_id| Call::Release {
            session_id,
            acquire_id: AcquireId::new(acquire_id),
        };
        let keep_alive = |acknowledged: Option<u64>| Call::KeepAlive {
            session_id,
            acknowledged: acknowledged.map(AcquireId::new),
        };
        vec![
            (keep_alive(None), 410),
            (open.clone(), 201),
            (open, 200),
            (acquire(session_id, 1, &["own", "both"], 0), 201),
            (acquire(session_id, 1, &["own", "both"], 0), 201),
            (acquire(session_id, 1, &["another"], 0), 409),
            (acquire(session_id, 2, &["taken"], 0), 409),
            (acquire(session_id, 3, &["taken"], 50), 503),
            (release(4), 404),
            (acquire(session_id, 4, &["own"], 0), 409),
            (release(1), 204),
            (release(1), 204),
            (acquire(session_id, 1, &["own", "both"], 0), 409),
            (keep_alive(Some(4)), 200),
            (release(2), 204),
            (acquire(session_id, 2, &["taken"], 0), 409),
            (Call::Close { session_id }, 204),
            (Call::Close { session_id }, 204),
            (acquire(session_id, 9, &["own"], 0), 410),
            (release(9), 410),
        ]
    };
    // One after the other, each in a session of its own: each finds the names as the other did.
    let mut expected = Vec::new();
    for (call, status) in script(SessionId::new(Uuid::new_v4())) {
        let heard = over_http(&cluster, &cluster.url(leader), &call).await;
        assert_eq!(heard.status, status, "{call:?}: {heard:?}");
        expected.push(heard);
    }
    for ((call, _), expected) in script(SessionId::new(Uuid::new_v4())).into_iter().zip(expected) {
        let asked = format!("{call:?}");
        assert_eq!(over_pipe(&mut pipe, call).await, expected, "{asked}");
    }
    // A node that does not lead.
    let keep_alive = Call::KeepAlive {
        session_id: id(&holder),
        acknowledged: None,
    };
    let expected = over_http(&cluster, &cluster.url(follower), &keep_alive).await;
    assert_eq!(
        (expected.status, &expected.leader["id"]),
        (421, &json!(leader + 1))
    );
    let mut pipe = RawPipe::open(&cluster.url(follower)).await;
    assert_eq!(over_pipe(&mut pipe, keep_alive).await, expected);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_come_as_they_are_decided_and_a_cancelled_acquire_is_given_up() {
    let cluster = Cluster::start(1).await;
    let session = cluster.session().await;
    session.granted(1, &["gate"], 0).await;
    let mut pipe = RawPipe::open(&cluster.url(0)).await;
    for waiting in 2..=3 {
        pipe.call(waiting, acquire(id(&session), waiting, &["gate"], 60_000))
            .await;
    }
    until_waiters(&cluster.api, "gate", 2).await;
    pipe.call(4, acquire(id(&session), 4, &["free"], 0)).await;
    let overtakes = pipe.next().await.expect("an answer");
    assert!(overtakes.id == 4 && overtakes.answer.is_ok(), "{overtakes:?}");
    pipe.send(&Request::Cancel { id: 2 }).await;
    // Cancelling what is not there, or has been answered, is nothing.
    pipe.send(&Request::Cancel { id: 4 }).await;
    pipe.send(&Request::Cancel { id: 99 }).await;
    until_waiters(&cluster.api, "gate", 1).await;
    session.release(1).await.expect(204);
    let next = pipe.next().await.expect("an answer");
    assert!(next.id == 3 && next.answer.is_ok(), "{next:?}");
    // Its client goes away with a grant it heard of, and a wait nobody answered.
    pipe.call(5, acquire(id(&session), 5, &["gate"], 60_000)).await;
    until_waiters(&cluster.api, "gate", 1).await;
    drop(pipe);
    until_waiters(&cluster.api, "gate", 0).await;
    let lock = cluster.api.get("/v1/locks/gate").await.expect(200);
    assert_eq!(lock["holder"]["acquire_id"], 3, "what was answered stays");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_no_frame_ends_the_pipe_and_nothing_else() {
    let cluster = Cluster::start(1).await;
    let session = cluster.session().await;
    let mut good = RawPipe::open(&cluster.url(0)).await;
    let in_use = {
        let mut out = BytesMut::new();
        session.granted(1, &["gate"], 0).await;
        for acquire_id in 2..=3 {
            let call = acquire(id(&session), acquire_id, &["gate"], 60_000);
            put(&mut out, &Request::Call { id: 7, call }, usize::MAX).expect("a frame");
        }
        out.to_vec()
    };
    let half = vec![4, 0, 0, 0, 1, 5];
    let broken: [(&str, Vec<u8>); 6] = [
        ("a length beyond the limit", (8_193_u32).to_le_bytes().to_vec()),
        ("the longest length", vec![0xff; 4]),
        ("HTTP", b"GET / HTTP/1.1\r\n\r\n".to_vec()),
        ("a frame that is no request", vec![3, 0, 0, 0, 9, 9, 9]),
        ("an id that is in use", in_use),
        ("half a frame and the end", half.clone()),
    ];
    for (what, bytes) in broken {
        let mut pipe = RawPipe::open(&cluster.url(0)).await;
        pipe.raw(&bytes).await.expect("it is sent");
        if bytes == half {
            pipe.writer.shutdown().await.expect("it is said");
        }
        assert!(pipe.next().await.is_none(), "{what} is not answered");
    }
    until_waiters(&cluster.api, "gate", 0).await;
    let still = good.ask(acquire(id(&session), 9, &["another"], 0)).await;
    assert!(still.is_ok(), "{still:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_the_right_upgrade_there_is_no_pipe() {
    let cluster = Cluster::start(1).await;
    let (status, answer) = cluster.api.raw(&cluster.url(0), "GET", "/v1/pipe").await;
    assert!(status == 426 && answer.contains("upgrade-required"), "{answer}");
    assert!(answer.contains("upgrade: lock-pipe/1"), "{answer}");
    let upgrade = "/v1/pipe HTTP/1.1\r\nconnection: upgrade\r\nupgrade: lock-pipe/2\r\nx: y\r\nx:";
    let (status, answer) = cluster.api.raw(&cluster.url(0), "GET", upgrade).await;
    assert_eq!(status, 426, "{answer}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_acquire_too_many_is_told_to_come_back_and_sessions_are_kept_alive() {
    const CALLS_MAX: u64 = 4_096;
    let cluster = Cluster::start(1).await;
    let holder = cluster.session().await;
    holder.granted(1, &["gate"], 0).await;
    let mut pipe = RawPipe::open(&cluster.url(0)).await;
    for session in 0..CALLS_MAX / 1_024 {
        let session_id = id(&cluster.session().await);
        for acquire_id in 0..1_024 {
            let call = acquire(session_id, acquire_id, &["gate"], 60_000);
            pipe.call(1 + session * 1_024 + acquire_id, call).await;
        }
    }
    let too_many = acquire(id(&holder), 2, &["another"], 0);
    pipe.call(0, too_many.clone()).await;
    let refused = pipe.next().await.expect("an answer");
    let problem = refused.answer.expect_err("a refusal");
    assert_eq!(
        (refused.id, problem.status, problem.slug.as_str()),
        (0, 503, "overloaded")
    );
    // What does not wait has room of its own, or a client with many waiting would lose its sessions.
    let keep_alive = Call::KeepAlive {
        session_id: id(&holder),
        acknowledged: None,
    };
    pipe.call(0, keep_alive).await;
    let answered = pipe.next().await.expect("an answer");
    assert!(answered.answer.is_ok(), "{answered:?}");
    let counts = || async { (cluster.counts().await.2 == 4_096).then_some(()) };
    testkit::eventually(SOON, "all of them wait", counts).await;
    pipe.send(&Request::Cancel { id: 1 }).await;
    let ended = || async { (cluster.counts().await.2 == 4_095).then_some(()) };
    testkit::eventually(SOON, "one of them gave up", ended).await;
    pipe.call(0, too_many).await;
    let answered = pipe.next().await.expect("an answer");
    assert!(answered.answer.is_ok(), "{answered:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_does_not_read_is_not_read_from_and_then_hung_up_on() {
    let cluster = Cluster::start(1).await;
    let url = cluster.url(0);
    let addr = url.strip_prefix("http://").expect("a plain URL");
    let socket = TcpSocket::new_v4().expect("a socket");
    socket.set_recv_buffer_size(8 << 10).expect("a small window");
    let stream = socket.connect(addr.parse().expect("an address")).await;
    let mut pipe = RawPipe::on(stream.expect("the node listens"), addr).await;
    let pings = vec![0; 64 << 10];
    let shouting = async {
        let mut bytes = 0_usize;
        while pipe.raw(&pings).await.is_ok() {
            bytes += pings.len();
            assert!(
                bytes < 256 << 20,
                "a node takes in without end what it cannot answer"
            );
        }
    };
    timeout(2 * SOON, shouting).await.expect("it hangs up in the end");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_stops_tells_its_pipes_and_does_not_wait_for_them() {
    let mut cluster = Cluster::start(1).await;
    let session = cluster.session().await;
    session.granted(1, &["gate"], 0).await;
    let mut waiting = RawPipe::open(&cluster.url(0)).await;
    let mut idle = RawPipe::open(&cluster.url(0)).await;
    waiting.call(1, acquire(id(&session), 2, &["gate"], 60_000)).await;
    until_waiters(&cluster.api, "gate", 1).await;
    let (code, metrics) = cluster.api.raw(&cluster.url(0), "GET", "/metrics").await;
    assert!(code == 200 && metrics.contains("lock_pipes{"), "{metrics}");
    timeout(SOON, cluster.stop(0)).await.expect("it stops");
    let told = waiting.next().await.expect("an answer");
    assert_eq!(told.answer.expect_err("no grant").slug, "shutting-down");
    assert!(waiting.next().await.is_none());
    assert!(idle.next().await.is_none());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_over_pipes_are_counted() {
    let cluster = Cluster::start(1).await;
    let session = cluster.session().await;
    let mut pipe = RawPipe::open(&cluster.url(0)).await;
    assert!(pipe.ask(acquire(id(&session), 1, &["gate"], 0)).await.is_ok());
    assert!(pipe.ask(acquire(id(&session), 2, &["gate"], 0)).await.is_err());
    let (_, metrics) = cluster.api.raw(&cluster.url(0), "GET", "/metrics").await;
    let counted = |call: &str, problem: &str| {
        metrics.lines().any(|line| {
            line.starts_with("lock_pipe_calls_total{")
                && line.contains(&format!("call=\"{call}\""))
                && line.contains(&format!("problem=\"{problem}\""))
                && line.ends_with(" 1")
        })
    };
    assert!(
        counted("acquire", "none") && counted("acquire", "lock-held"),
        "{metrics}"
    );
}
