//! What the processor decides, without a clock, a database or a socket.
//!
//! | module | what it holds |
//! |---|---|
//! | [`card`] | how each test card behaves |
//! | [`book`] | the lines of one reference, and what they add up to |
//! | [`rules`] | a call against that book: the line to append, or the refusal |

pub(crate) mod book;
pub(crate) mod card;
pub(crate) mod rules;
