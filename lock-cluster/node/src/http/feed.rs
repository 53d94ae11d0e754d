//! What an event looks like on the wire: a name, and a JSON object.
//!
//! Each event has a position, `<log index>.<number within the index>`: one entry of the log can bring many events,
//! and a stream can break between any two of them. The position is the event's id; a reader that comes back with
//! it (`Last-Event-ID`) gets the next one, and none twice.

use std::str::FromStr;

use lock_core::{Event, ReleaseReason, SessionEnd, WaitEnd};
use serde_json::{Value, json};

use crate::service::FeedEvent;

/// Where an event stands in the feed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Position {
    pub(crate) index: u64,
    pub(crate) number: usize,
}

impl std::fmt::Display for Position {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.index, self.number)
    }
}

impl FromStr for Position {
    type Err = std::num::ParseIntError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (index, number) = text.split_once('.').unwrap_or((text, "0"));
        Ok(Self {
            index: index.parse()?,
            number: number.parse()?,
        })
    }
}

/// An event's name and its data.
pub(crate) fn describe(event: &FeedEvent) -> (&'static str, Value) {
    match event {
        FeedEvent::LeaderChanged { term, leader } => {
            ("leader-changed", json!({ "term": term, "leader": leader }))
        }
        FeedEvent::Lock(event) => describe_lock(event),
    }
}

fn describe_lock(event: &Event) -> (&'static str, Value) {
    match event {
        Event::SessionOpened {
            session_id,
            ttl,
            label,
        } => (
            "session-opened",
            json!({ "session_id": session_id, "ttl_ms": ttl, "label": label }),
        ),
        Event::SessionClosed { session_id, reason } => {
            let reason = match reason {
                SessionEnd::Closed => "closed",
                SessionEnd::Expired => "expired",
            };
            (
                "session-closed",
                json!({ "session_id": session_id, "reason": reason }),
            )
        }
        Event::Queued {
            session_id,
            acquire_id,
            names,
        } => (
            "queued",
            json!({ "session_id": session_id, "acquire_id": acquire_id, "names": names }),
        ),
        Event::Granted {
            session_id,
            acquire_id,
            fencing_token,
            names,
        } => (
            "granted",
            json!({ "session_id": session_id, "acquire_id": acquire_id, "fencing_token": fencing_token, "names": names }),
        ),
        Event::Released {
            session_id,
            acquire_id,
            fencing_token,
            names,
            reason,
        } => {
            let (name, reason) = match reason {
                ReleaseReason::Released => ("released", "released"),
                ReleaseReason::Abandoned => ("released", "abandoned"),
                ReleaseReason::SessionClosed => ("released", "session-closed"),
                ReleaseReason::SessionExpired => ("expired", "session-expired"),
                ReleaseReason::Broken => ("broken", "broken"),
            };
            let data = json!({
                "session_id": session_id, "acquire_id": acquire_id, "fencing_token": fencing_token,
                "names": names, "reason": reason,
            });
            (name, data)
        }
        Event::WaitEnded {
            session_id,
            acquire_id,
            names,
            reason,
        } => {
            let reason = match reason {
                WaitEnd::TimedOut => "timed-out",
                WaitEnd::Released => "released",
                WaitEnd::Abandoned => "abandoned",
                WaitEnd::SessionClosed => "session-closed",
                WaitEnd::SessionExpired => "session-expired",
            };
            let data = json!({ "session_id": session_id, "acquire_id": acquire_id, "names": names, "reason": reason });
            ("wait-ended", data)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_position_reads_back_as_itself() {
        let position = Position { index: 57, number: 3 };
        assert_eq!(position.to_string().parse(), Ok(position));
        assert_eq!("57".parse(), Ok(Position { index: 57, number: 0 }));
        assert!("57.".parse::<Position>().is_err() && "x".parse::<Position>().is_err());
    }
}
