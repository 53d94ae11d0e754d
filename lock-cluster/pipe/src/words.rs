//! What is said over a pipe. The words are `lock-core`'s, so a value that could be read is within its bounds.
//!
//! The order of variants and fields *is* the encoding: new ones come with a new version of the protocol.

use lock_core::{AcquireId, FencingToken, Label, LockNames, SessionId, TtlMs, WaitMs};
use serde::{Deserialize, Serialize};

/// From the client.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Request {
    /// Asks for something.
    Call {
        /// The client's number for this call; free again once it is answered.
        id: u64,
        /// What is asked.
        call: Call,
    },
    /// Nobody waits for the answer to this call any more. An acquire is given up and not answered; any other call is
    /// carried out and answered all the same, and one that was answered before is not touched.
    Cancel {
        /// The call's.
        id: u64,
    },
}

/// What can be asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Call {
    /// Opens a session, or keeps it alive if it is open already.
    Open {
        /// Chosen by the client.
        session_id: SessionId,
        /// How long it lives after each keep-alive.
        ttl: TtlMs,
        /// Who this is, for people.
        label: Label,
    },
    /// Keeps a session alive.
    KeepAlive {
        /// Which.
        session_id: SessionId,
        /// The client is done with this acquire id and all lower ones.
        acknowledged: Option<AcquireId>,
    },
    /// Closes a session, and with it all it holds.
    Close {
        /// Which.
        session_id: SessionId,
    },
    /// Acquires all of the names or none; answered when they are granted or will not be.
    Acquire {
        /// For which session.
        session_id: SessionId,
        /// Which of its attempts.
        acquire_id: AcquireId,
        /// What.
        names: LockNames,
        /// How long to wait for them.
        wait: WaitMs,
    },
    /// Releases what an attempt holds, or gives up its place in line.
    Release {
        /// Of which session.
        session_id: SessionId,
        /// Which of its attempts.
        acquire_id: AcquireId,
    },
}

/// From the node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Response {
    /// The request's.
    pub id: u64,
    /// What became of it.
    pub answer: Answer,
}

/// `0` and what was done, or `1` and the problem.
pub type Answer = Result<Done, Problem>;

/// What was done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Done {
    /// The session is open.
    Opened {
        /// The time to live in force: that of the first open.
        ttl: TtlMs,
        /// False if it was open before.
        created: bool,
    },
    /// The session was kept alive.
    KeptAlive {
        /// How long it lives from now.
        ttl: TtlMs,
        /// Acquisitions that an administrator broke and that are not released yet.
        broken: Vec<AcquireId>,
    },
    /// The session is closed, now or before.
    Closed,
    /// The locks are held.
    Granted {
        /// Higher than that of every grant before it in the cluster.
        fencing_token: FencingToken,
        /// What is held, in the order of the first request.
        names: LockNames,
    },
    /// Released, now or before.
    Released,
}

/// Why it was not done: what the HTTP API would have answered, without the decoration.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Problem {
    /// The status of HTTP.
    pub status: u16,
    /// The last segment of the problem's type.
    pub slug: String,
    /// What it is about, for people.
    pub detail: String,
    /// Who to ask instead, where the slug is `not-leader`.
    pub leader: Option<Leader>,
}

/// The node that leads.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Leader {
    /// Its member id.
    pub id: u64,
    /// Its base URL for clients.
    pub client_url: String,
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::REQUEST_BYTES_MAX;

    /// As the page in `lib.rs` says, byte by byte: other programs are written from it.
    #[test]
    fn the_encoding_is_the_documented_one() {
        let session_id = SessionId::new(Uuid::from_u128(7));
        let acquire = Request::Call {
            id: 300,
            call: Call::Acquire {
                session_id,
                acquire_id: AcquireId::new(1),
                names: LockNames::parse(&["a", "bc"]).unwrap(),
                wait: WaitMs::new(128).unwrap(),
            },
        };
        let mut bytes = vec![0, 0xac, 0x02, 3, 16];
        bytes.extend_from_slice(Uuid::from_u128(7).as_bytes());
        bytes.extend_from_slice(&[1, 2, 1, b'a', 2, b'b', b'c', 0x80, 0x01]);
        assert_eq!(postcard::to_stdvec(&acquire).unwrap(), bytes);
        assert_eq!(postcard::from_bytes::<Request>(&bytes).unwrap(), acquire);

        let moved = Response {
            id: 1,
            answer: Err(Problem {
                status: 421,
                slug: "x".to_owned(),
                detail: String::new(),
                leader: Some(Leader {
                    id: 2,
                    client_url: "u".to_owned(),
                }),
            }),
        };
        let bytes = [1, 1, 0xa5, 0x03, 1, b'x', 0, 1, 2, 1, b'u'];
        assert_eq!(postcard::to_stdvec(&moved).unwrap(), bytes);
    }

    #[test]
    fn the_largest_acquire_fits_and_a_name_too_long_is_no_request() {
        let names: Vec<String> = (0..16).map(|n| format!("{n:02}{}", "x".repeat(254))).collect();
        let largest = Request::Call {
            id: u64::MAX,
            call: Call::Acquire {
                session_id: SessionId::new(Uuid::from_u128(u128::MAX)),
                acquire_id: AcquireId::new(u64::MAX),
                names: LockNames::parse(&names).unwrap(),
                wait: WaitMs::new(60_000).unwrap(),
            },
        };
        let bytes = postcard::to_stdvec(&largest).unwrap();
        assert!(bytes.len() < REQUEST_BYTES_MAX);
        // The last name one byte longer.
        let wait = bytes.len() - 3;
        let mut longer = bytes[..wait].to_vec();
        longer.push(b'x');
        longer.extend_from_slice(&bytes[wait..]);
        let length = wait - 256 - 2;
        assert_eq!(longer[length..length + 2], [0x80, 0x02], "256");
        longer[length] = 0x81;
        assert!(postcard::from_bytes::<Request>(&longer).is_err());
    }
}
