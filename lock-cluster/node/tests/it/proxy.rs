//! A cable between a client and a node that can be cut, or made to carry nothing one way.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::AbortHandle;

/// Passes connections on to one node.
pub(crate) struct Proxy {
    url: String,
    state: Arc<State>,
    task: AbortHandle,
}

#[derive(Default)]
struct State {
    /// What the node says is lost.
    mute: AtomicBool,
    /// Answers an upgrade as a node that knows none would.
    no_pipe: AtomicBool,
    /// Connections that were made so far.
    accepted: AtomicU32,
    /// Counts cuts: each ends the connections of its time.
    cuts: watch::Sender<u32>,
}

impl Proxy {
    pub(crate) async fn to(url: &str) -> Self {
        let node = url.strip_prefix("http://").expect("a plain URL").to_owned();
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let state = Arc::new(State::default());
        let passing = state.clone();
        let task = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let (state, node) = (passing.clone(), node.clone());
                state.accepted.fetch_add(1, Ordering::SeqCst);
                tokio::spawn(async move {
                    let mut cut = state.cuts.subscribe();
                    tokio::select! {
                        () = pass(&state, client, &node) => {}
                        _ = cut.changed() => {}
                    }
                });
            }
        });
        Self {
            url,
            state,
            task: task.abort_handle(),
        }
    }

    pub(crate) fn url(&self) -> String {
        self.url.clone()
    }

    pub(crate) fn mute(&self, mute: bool) {
        self.state.mute.store(mute, Ordering::SeqCst);
    }

    pub(crate) fn speak_no_pipe(&self) {
        self.state.no_pipe.store(true, Ordering::SeqCst);
    }

    pub(crate) fn accepted(&self) -> u32 {
        self.state.accepted.load(Ordering::SeqCst)
    }

    pub(crate) fn cut(&self) {
        self.state.cuts.send_modify(|cuts| *cuts += 1);
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn pass(state: &State, mut client: TcpStream, node: &str) {
    let mut first = [0; 12];
    let Ok(peeked) = client.peek(&mut first).await else {
        return;
    };
    if state.no_pipe.load(Ordering::SeqCst) && first[..peeked].starts_with(b"GET /v1/pipe") {
        let none = b"HTTP/1.1 404 Not Found\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";
        let _ = client.write_all(none).await;
        return;
    }
    let Ok(node) = TcpStream::connect(node).await else {
        return;
    };
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_node, mut to_node) = node.into_split();
    let there = async {
        let _ = tokio::io::copy(&mut from_client, &mut to_node).await;
    };
    let back = async {
        let mut buffer = [0; 4_096];
        while let Ok(read @ 1..) = from_node.read(&mut buffer).await {
            if state.mute.load(Ordering::SeqCst) {
                continue;
            }
            if to_client.write_all(&buffer[..read]).await.is_err() {
                return;
            }
        }
    };
    tokio::select! {
        () = there => {}
        () = back => {}
    }
}
