//! The members under test: real consensus, real service, on a model disk and a model network.

mod agreement;
mod door;
mod link;
mod member;
mod stream;

pub use agreement::Agreement;
pub use door::{Answer, Answered, Request};
pub use member::{Machine, Member};
