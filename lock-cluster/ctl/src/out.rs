//! Standard output. `println!` panics when it cannot be written to, and that is no bug of ours: the reader of a pipe has
//! seen enough (`lockctl list | head`), or a disk is full.

use std::fmt::Display;
use std::io::{self, Write};

/// Prints, now: whoever reads through a pipe does not wait for more.
pub(crate) fn say(text: impl Display) -> io::Result<()> {
    let mut out = io::stdout().lock();
    write!(out, "{text}")?;
    out.flush()
}

/// Prints a line.
pub(crate) fn say_line(text: impl Display) -> io::Result<()> {
    say(format_args!("{text}\n"))
}

/// Prints JSON for scripts.
pub(crate) fn say_json(value: &impl serde::Serialize) -> anyhow::Result<()> {
    Ok(say_line(serde_json::to_string_pretty(value)?)?)
}
