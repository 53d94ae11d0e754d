//! What tests of several crates need: a condition with a deadline, free ports, both databases, real programs.
//!
//! * [`eventually`] instead of sleeps: a test waits for a condition, and says which one never came.
//! * [`free_ports`] below the range from which outgoing connections take theirs.
//! * [`for_each_engine!`] runs a test on SQLite and on PostgreSQL ([`TestDb`]).
//! * [`check_documented`]: an OpenAPI document promises the errors that are answered, and no others.
//! * [`check_flags`]: every flag has an environment variable and an explanation.
//! * [`break_commits`] lets a server hang up at a commit.
//! * [`cut_after`] drops a future at each of its await points.
//! * [`Program`] starts a built binary, kills it, stops it, lets it go on.
//!
//! For development only; panics are its way to fail a test.

mod commits;
mod cut;
mod database;
mod documented;
mod eventually;
mod flags;
mod ports;
mod program;
mod server;

pub use commits::{break_commits, mend_commits};
pub use cut::cut_after;
pub use database::{TestDb, each_engine, postgres, sqlite};
pub use documented::check_documented;
pub use eventually::{eventually, found_within, wait_ready};
pub use flags::check_flags;
pub use ports::free_ports;
pub use program::{Program, binary};
