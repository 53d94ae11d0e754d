//! What a check finds on its way through the books.

use ticketing_types::audit::{Invariant, Verdict};

/// How many examples a sentence names.
const EXAMPLES: usize = 3;

/// Collects what is wrong and what cannot be said yet; the worse decides.
#[derive(Default)]
pub(super) struct Findings {
    broken: Vec<String>,
    open: Vec<String>,
}

impl Findings {
    /// Something is wrong.
    pub(super) fn broken(&mut self, what: String) {
        self.broken.push(what);
    }

    /// Something cannot be said yet.
    pub(super) fn open(&mut self, what: String) {
        self.open.push(what);
    }

    /// A book cannot be read.
    pub(super) fn missing(&mut self, book: &str) {
        self.open(format!("{book} could not be read"));
    }

    /// The verdict; when nothing was found, the promise is kept, and this is how.
    pub(super) fn or_pass(self, kept: String) -> Invariant {
        let (verdict, found) = match (self.broken.is_empty(), self.open.is_empty()) {
            (true, true) => {
                return Invariant {
                    verdict: Verdict::Pass,
                    detail: kept,
                };
            }
            (false, _) => (Verdict::Fail, self.broken),
            (true, false) => (Verdict::Unknown, self.open),
        };
        let mut detail = found
            .iter()
            .take(EXAMPLES)
            .map(String::as_str)
            .collect::<Vec<_>>()
            .join("; ");
        if let Some(more) = found.len().checked_sub(EXAMPLES).filter(|&more| more > 0) {
            detail.push_str(&format!("; and {more} more"));
        }
        Invariant { verdict, detail }
    }
}
