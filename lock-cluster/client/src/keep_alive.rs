//! The task that owns a session's life: keep alive, hear of its loss, close it at the end.
//!
//! It ends in one of three ways: the session is lost, the client closes, or the session has been retired and has
//! run dry. In the last two it is closed in the cluster, which frees whatever is still held or waited for.

use std::sync::Arc;
use std::time::Duration;

use lock_core::AcquireId;
use lock_pipe::{Call, Done};
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use crate::session::Session;
use crate::transport::{Transport, Try};

/// A node that has not answered a keep-alive by then is taken for stuck, and another one is asked.
const TRY_MAX: Duration = Duration::from_millis(1_500);
const TRY_MIN: Duration = Duration::from_millis(250);
/// Closing is a courtesy: without it the session ends by itself after its TTL.
const CLOSE_WITHIN: Duration = Duration::from_millis(1_500);
/// Acknowledging early saves memory in the cluster, but a busy client must not do it all the time.
const PAUSE_MIN: Duration = Duration::from_millis(50);

pub(crate) async fn run(session: Arc<Session>, transport: Arc<Transport>, closing: CancellationToken) {
    tokio::select! {
        () = keep_alive(&session, &transport) => {}
        () = session.lost() => {
            tracing::warn!(session.id = %session.id, "the lock session was lost");
            return;
        }
        () = closing.cancelled() => {}
    }
    // Lost here before the cluster hears of it: whatever is still held may be granted to somebody else from the moment
    // at which the close is ordered, which is earlier than the moment at which its answer is back.
    session.lose();
    close(&session, &transport).await;
}

/// Returns when the session has run dry.
async fn keep_alive(session: &Session, transport: &Transport) {
    // A moment early: the deadline has its margin.
    let mut last_sent = session.deadline() - session.ttl;
    loop {
        tokio::select! {
            () = sleep_until(last_sent + session.ttl / 3) => {}
            () = async { session.woken().await; sleep_until(last_sent + PAUSE_MIN).await } => {}
            // Whoever waits for an answer there cannot ask anybody else without giving up the place in line. Asking for
            // the session's life finds the leader, and if it is another one, they hear of it.
            () = transport.silence() => {}
        }
        if session.is_dry() {
            return;
        }
        session.not_paused().await;
        last_sent = Instant::now();
        ask(session, transport).await;
    }
}

/// Asks until the session is extended or gone; a session that cannot be extended runs into its deadline.
async fn ask(session: &Session, transport: &Transport) {
    let acknowledged = session.to_acknowledge();
    let timeout = (session.ttl / 4).clamp(TRY_MIN, TRY_MAX);
    // Each try moves this on: the deadline counts from the try that was answered, not from the first.
    let mut sent = Instant::now();
    let make = || {
        sent = Instant::now();
        let call = Call::KeepAlive {
            session_id: session.id,
            acknowledged: acknowledged.map(AcquireId::new),
        };
        Try { call, timeout }
    };
    match transport
        .call(session.deadline(), make)
        .await
        .map(|answer| answer.said)
    {
        Ok(Ok(done)) => {
            session.extend(sent);
            if let Done::KeptAlive { broken, .. } = done {
                session.set_broken(broken.into_iter().map(AcquireId::get).collect());
            }
            if let Some(acknowledged) = acknowledged {
                session.acknowledged(acknowledged);
            }
        }
        Ok(Err(problem)) if problem.status == 410 => session.lose(),
        Ok(Err(problem)) => {
            tracing::warn!(session.id = %session.id, problem = problem.slug, "a keep-alive was refused");
        }
        Err(error) => tracing::warn!(session.id = %session.id, %error, "the session could not be kept alive"),
    }
}

async fn close(session: &Session, transport: &Transport) {
    let deadline = session.deadline().min(Instant::now() + CLOSE_WITHIN);
    let make = || Try {
        call: Call::Close {
            session_id: session.id,
        },
        timeout: CLOSE_WITHIN / 3,
    };
    if let Err(error) = transport.call(deadline, make).await {
        tracing::debug!(session.id = %session.id, %error, "the session was left to expire");
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt as _;
    use tokio::net::TcpListener;

    use lock_core::SessionId;

    use super::*;
    use crate::config::{ClientConfig, Protocol};

    #[tokio::test]
    async fn a_closed_session_is_lost_here_before_the_cluster_is_told() {
        let node = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", node.local_addr().unwrap());
        let config = ClientConfig {
            protocol: Protocol::Http,
            ..ClientConfig::new([url])
        };
        let transport = Arc::new(Transport::new(&config).unwrap());
        let ttl = Duration::from_secs(60);
        let session = Arc::new(Session::new(
            SessionId::new(uuid::Uuid::nil()),
            ttl,
            Instant::now(),
        ));
        let closing = CancellationToken::new();
        closing.cancel();
        let closed = tokio::spawn(run(session.clone(), transport, closing));
        let (mut asked, _) = node.accept().await.unwrap();
        let mut request = [0; 6];
        asked.read_exact(&mut request).await.unwrap();
        assert_eq!(&request, b"DELETE");
        assert!(session.is_lost(), "the close may be applied any moment now");
        closed.abort();
    }
}
