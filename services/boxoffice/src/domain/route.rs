//! Which path belongs to whom, and what may be sent twice.

use http::{HeaderMap, Method};
use ticketing_types::header::IDEMPOTENCY_KEY;

/// Who answers a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Owner {
    Checkout,
    Inventory,
    Billing,
    Lock,
}

/// The paths of the API that others answer, by their first words. What a service keeps for the suite
/// (`/v1/audit-records`) has no door here.
pub(crate) const OWNERS: [(&str, Owner); 7] = [
    ("/v1/purchases", Owner::Checkout),
    ("/v1/events", Owner::Inventory),
    ("/v1/holds", Owner::Inventory),
    ("/v1/payments", Owner::Billing),
    ("/v1/locks", Owner::Lock),
    ("/v1/cluster", Owner::Lock),
    ("/v1/sessions", Owner::Lock),
];

/// Whether a request whose fate is unknown may be sent again: it then finds what its first copy did.
///
/// Methods that are idempotent by HTTP are so here, too, because every id is the caller's (RFC 9110 §9.2.2).
/// A POST is if it carries a key, or if it goes to the lock cluster, where every command names its session and
/// its attempt. What administrators ask of the cluster (members, a restore) is left to them to repeat.
pub(crate) fn repeatable(owner: Owner, method: &Method, path: &str, headers: &HeaderMap) -> bool {
    if matches!(
        *method,
        Method::GET | Method::HEAD | Method::PUT | Method::DELETE | Method::OPTIONS
    ) {
        return true;
    }
    match owner {
        Owner::Lock => !path.starts_with("/v1/cluster"),
        Owner::Checkout | Owner::Inventory | Owner::Billing => headers.contains_key(IDEMPOTENCY_KEY),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    #[test]
    fn only_what_recognises_its_copy_is_sent_again() {
        let bare = HeaderMap::new();
        let keyed = HeaderMap::from_iter([(
            http::HeaderName::from_static(IDEMPOTENCY_KEY),
            HeaderValue::from_static("k"),
        )]);
        for (owner, method, path, headers, may) in [
            (Owner::Inventory, Method::PUT, "/v1/holds/h", &bare, true),
            (Owner::Inventory, Method::POST, "/v1/events", &bare, false),
            (Owner::Checkout, Method::POST, "/v1/purchases", &bare, false),
            (Owner::Checkout, Method::POST, "/v1/purchases", &keyed, true),
            (Owner::Checkout, Method::GET, "/v1/purchases/p", &bare, true),
            (
                Owner::Lock,
                Method::POST,
                "/v1/sessions/s/acquisitions",
                &bare,
                true,
            ),
            (Owner::Lock, Method::POST, "/v1/cluster/members", &bare, false),
        ] {
            assert_eq!(repeatable(owner, &method, path, headers), may, "{method} {path}");
        }
    }
}
