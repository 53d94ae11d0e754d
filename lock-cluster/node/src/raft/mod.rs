//! (essay follows)

mod runtime;

pub use runtime::{ServiceRt, Tokio};
