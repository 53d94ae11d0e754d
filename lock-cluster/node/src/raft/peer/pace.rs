//! How far a link between two members goes ahead of the answers, and how long it waits. The simulation's links keep to
//! the same.

use std::time::Duration;

/// Requests on their way to one follower. Together with their size it bounds what a slow one costs the leader.
pub const WINDOW: usize = 64;
/// Connecting and the handshake together, where the library gives no shorter time.
pub const CONNECT_DEADLINE: Duration = Duration::from_millis(1_000);
/// From a failed connection for entries to the next try. Short: a member that comes back must hear of its leader
/// before it stands for election.
pub const RECONNECT_PAUSE: Duration = Duration::from_millis(100);
/// How long a connection may make no progress while something is owed: a byte to be written, an answer to come.
pub const STALL_DEADLINE: Duration = Duration::from_secs(2);
