//! Reading the cluster's event stream (server-sent events), one event at a time.

use reqwest::Response;
use serde::Serialize;
use serde_json::Value;

use crate::error::LockError;

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
    /// [`LockError::Unavailable`] if the connection breaks.
    pub async fn next(&mut self) -> Result<Option<FeedEvent>, LockError> {
        loop {
            if let Some(event) = self.parser.next() {
                return Ok(Some(event));
            }
            match self.response.chunk().await {
                Ok(Some(chunk)) => self.parser.push(&chunk),
                Ok(None) => return Ok(None),
                Err(error) => return Err(LockError::unavailable(format!("the event stream broke: {error}"))),
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
}
