//! What an OpenAPI document says about errors.

use std::collections::BTreeSet;

use serde_json::Value;
use service_kit::Problem;

/// What no service's own errors are, and every service answers: of the extractors, and of a commit whose answer was lost.
const OF_ALL: [(u16, &str); 2] = [(400, "invalid-request"), (503, "outcome-unknown")];

/// Holds what a document promises of errors against what is answered: one of each of the service's own, and what comes
/// from `elsewhere`, as status and slug.
///
/// # Panics
/// When one is answered that is not documented, or the other way round.
pub fn check_documented(
    openapi: &Value,
    answered: impl IntoIterator<Item = Problem>,
    elsewhere: impl IntoIterator<Item = (u16, &'static str)>,
) {
    let own = answered.into_iter();
    let own = own.map(|problem| (problem.status.as_u16(), problem.slug.to_string()));
    let elsewhere = OF_ALL.into_iter().chain(elsewhere);
    let elsewhere = elsewhere.map(|(status, slug)| (status, slug.to_owned()));
    let answered: BTreeSet<_> = own.chain(elsewhere).collect();
    assert_eq!(documented_problems(openapi), answered);
}

/// Every status of an error with each slug that the document names for it.
///
/// A slug stands in backticks, as in "`sold-out` with `lines`": what follows "with" is a member of the problem, and what
/// is not written like a slug (`Retry-After`) is none.
fn documented_problems(openapi: &Value) -> BTreeSet<(u16, String)> {
    let paths = openapi["paths"].as_object().expect("paths");
    let operations = paths
        .values()
        .filter_map(Value::as_object)
        .flat_map(|path| path.values());
    let mut found = BTreeSet::new();
    for (status, response) in operations
        .filter_map(|operation| operation["responses"].as_object())
        .flatten()
    {
        let status: u16 = status.parse().expect("a status");
        let text = response["description"].as_str().unwrap_or_default();
        if status >= 400 {
            found.extend(slugs(text).map(|slug| (status, slug.to_owned())));
        }
    }
    found
}

fn slugs(text: &str) -> impl Iterator<Item = &str> {
    let pieces: Vec<&str> = text.split('`').collect();
    let quoted = (1..pieces.len())
        .step_by(2)
        .map(move |at| (pieces[at - 1], pieces[at]));
    quoted.filter_map(|(before, quoted)| {
        let like_a_slug = |c: char| c.is_ascii_lowercase() || c == '-';
        let is_slug = !before.ends_with("with ") && quoted.chars().all(like_a_slug);
        is_slug.then_some(quoted)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slugs_are_told_from_members_and_headers() {
        let text = "`sold-out` with `lines`; `busy`: come back after `Retry-After`";
        assert_eq!(slugs(text).collect::<Vec<_>>(), ["sold-out", "busy"]);
    }
}
