//! Reading the cluster's event stream (server-sent events), one event at a time.

use std::time::Duration;

use reqwest::Response;
use serde::Serialize;
use serde_json::Value;
use tokio::time::timeout;

use crate::error::LockError;

/// A stream on which nothing happens shows every ten seconds that it lives. After three of those without, its node is
/// gone or stopped, and the connection may stay open for ever.
const SILENCE_MAX: Duration = Duration::from_secs(30);

/// Where to begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventsFrom<'a> {
    /// With what happens from now on.
    Now,
    /// With the first event of this log index.
    Index(u64),
    /// Behind the event with this id. An index may bring several events, and a stream can end between two of them.
    Behind(&'a str),
}

/// One event of the cluster.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FeedEvent {
    /// Where it stands in the log; what to resume from.
    pub id: Option<String>,
    /// `granted`, `released`, `expired`, …
    pub event: String,
    /// What happened.
    pub data: Value,
}

/// Events as they happen. It ends when the node ends it or goes away.
#[derive(Debug)]
pub struct EventFeed {
    response: Response,
    parser: Parser,
}

impl EventFeed {
    pub(crate) fn new(response: Response) -> Self {
        Self {
            response,
            parser: Parser::default(),
        }
    }

    /// The next event; `None` at the end of the stream.
    ///
    /// # Errors
    /// [`LockError::Unavailable`] if the connection breaks or shows no sign of life.
    pub async fn next(&mut self) -> Result<Option<FeedEvent>, LockError> {
        loop {
            if let Some(event) = self.parser.next() {
                return Ok(Some(event));
            }
            match timeout(SILENCE_MAX, self.response.chunk()).await {
                Ok(Ok(Some(chunk))) => self.parser.push(&chunk),
                Ok(Ok(None)) => return Ok(None),
                Ok(Err(error)) => {
                    return Err(LockError::unavailable(format!("the event stream broke: {error}")));
                }
                Err(_) => return Err(LockError::unavailable("the event stream shows no sign of life")),
            }
        }
    }
}

/// The `text/event-stream` format, as far as this cluster uses it.
#[derive(Debug, Default)]
struct Parser {
    buffer: Vec<u8>,
}

impl Parser {
    fn push(&mut self, chunk: &[u8]) {
        self.buffer.extend_from_slice(chunk);
    }

    /// The next complete event in the buffer; comments (a node's signs of life) are passed over.
    fn next(&mut self) -> Option<FeedEvent> {
        loop {
            let end = self.buffer.windows(2).position(|pair| pair == b"\n\n")?;
            let block: Vec<u8> = self.buffer.drain(..end + 2).collect();
            if let Some(event) = parse(&String::from_utf8_lossy(&block)) {
                return Some(event);
            }
        }
    }
}

fn parse(block: &str) -> Option<FeedEvent> {
    let mut event = FeedEvent {
        id: None,
        event: "message".to_owned(),
        data: Value::Null,
    };
    let mut data = Vec::new();
    for line in block.lines() {
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "id" => event.id = Some(value.to_owned()),
            "event" => event.event = value.to_owned(),
            "data" => data.push(value),
            _ => {}
        }
    }
    if data.is_empty() {
        return None;
    }
    let data = data.join("\n");
    event.data = serde_json::from_str(&data).unwrap_or(Value::String(data));
    Some(event)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_read_across_chunks_and_comments_are_passed_over() {
        let mut parser = Parser::default();
        parser.push(b": still here\n\nid: 7\nevent: gran");
        assert_eq!(parser.next(), None);
        parser.push(b"ted\ndata: {\"name\":\"a\"}\n\nid: 8\ndata: 1\n\n");
        let first = parser.next().unwrap();
        assert_eq!(
            (first.id.as_deref(), first.event.as_str()),
            (Some("7"), "granted")
        );
        assert_eq!(first.data["name"], "a");
        assert_eq!(parser.next().unwrap().event, "message");
        assert_eq!(parser.next(), None);
    }

    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::{TcpListener, TcpStream};

    use crate::{ClientConfig, ClusterClient};

    async fn node() -> (TcpListener, String) {
        let node = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", node.local_addr().unwrap());
        (node, url)
    }

    /// Answers the next request with a stream that has begun, and shows what was asked.
    async fn begin_stream(node: &TcpListener) -> (TcpStream, String) {
        let (mut connection, _) = node.accept().await.unwrap();
        let mut asked = Vec::new();
        while !asked.ends_with(b"\r\n\r\n") {
            asked.push(connection.read_u8().await.unwrap());
        }
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\nid: 7.1\ndata: 1\n\n";
        connection.write_all(head.as_bytes()).await.unwrap();
        (connection, String::from_utf8(asked).unwrap())
    }

    #[tokio::test]
    async fn a_stopped_node_is_passed_over_and_a_stream_that_shows_no_life_is_given_up() {
        // It takes connections, as the kernel does for a process that is stopped, and never says a word.
        let ((_stopped, stopped), (living, url)) = (node().await, node().await);
        let client = ClusterClient::new(ClientConfig::new([stopped, url])).unwrap();
        let (feed, (_open, asked)) =
            tokio::join!(client.events(EventsFrom::Behind("7.0")), begin_stream(&living));
        assert!(asked.to_lowercase().contains("last-event-id: 7.0\r\n"), "{asked}");
        let mut feed = feed.unwrap();
        assert_eq!(feed.next().await.unwrap().unwrap().id.as_deref(), Some("7.1"));
        // From here on nothing moves but the clock.
        tokio::time::pause();
        let began = tokio::time::Instant::now();
        let error = feed.next().await.unwrap_err();
        assert!(matches!(error, LockError::Unavailable { .. }), "{error}");
        assert!(began.elapsed() >= SILENCE_MAX);
    }
}
