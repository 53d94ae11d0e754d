//! The page: three kinds of files inside this program, and a policy that lets nothing else in.

use axum::Router;
use axum::http::{HeaderName, header};
use axum::response::IntoResponse;
use axum::routing::get;

/// No inline script, no inline style, nothing from another origin: what the page shows was typed by strangers
/// (names of events, of buyers), and this is the second line of defence behind `textContent`.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; \
    connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/// Path, media type, content.
const FILES: [(&str, &str, &str); 10] = [
    (
        "/",
        "text/html; charset=utf-8",
        include_str!("../page/index.html"),
    ),
    (
        "/assets/style.css",
        "text/css; charset=utf-8",
        include_str!("../page/style.css"),
    ),
    (
        "/assets/icon.svg",
        "image/svg+xml",
        include_str!("../page/icon.svg"),
    ),
    ("/assets/app.js", SCRIPT, include_str!("../page/app.js")),
    ("/assets/api.js", SCRIPT, include_str!("../page/api.js")),
    ("/assets/dom.js", SCRIPT, include_str!("../page/dom.js")),
    ("/assets/sale.js", SCRIPT, include_str!("../page/sale.js")),
    ("/assets/cluster.js", SCRIPT, include_str!("../page/cluster.js")),
    ("/assets/rounds.js", SCRIPT, include_str!("../page/rounds.js")),
    ("/assets/audit.js", SCRIPT, include_str!("../page/audit.js")),
];
const SCRIPT: &str = "text/javascript; charset=utf-8";

/// The page's routes.
pub(super) fn routes<S: Clone + Send + Sync + 'static>() -> Router<S> {
    FILES
        .into_iter()
        .fold(Router::new(), |router, (path, media_type, content)| {
            router.route(path, get(move || async move { file(media_type, content) }))
        })
}

fn file(media_type: &'static str, content: &'static str) -> impl IntoResponse {
    let headers = [
        (header::CONTENT_TYPE, media_type),
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        // A restarted suite may bring another page; asking costs one round trip on the loopback.
        (header::CACHE_CONTROL, "no-cache"),
        (
            HeaderName::from_static("cross-origin-opener-policy"),
            "same-origin",
        ),
    ];
    (headers, content)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_on_the_page_comes_from_elsewhere() {
        for (path, _, content) in FILES {
            for outside in ["http://", "https://", "//cdn", "@import", "url("] {
                let allowed = content.replace("http://www.w3.org/2000/svg", "");
                assert!(!allowed.contains(outside), "{path} contains {outside}");
            }
        }
    }

    #[test]
    fn the_page_asks_for_nothing_that_its_policy_forbids() {
        let (_, _, html) = FILES[0];
        assert!(
            !html.contains("<style") && !html.contains(" style="),
            "inline style"
        );
        assert!(
            !html.contains("onclick") && !html.contains("<script>"),
            "inline script"
        );
        let served = |path: &str| FILES.iter().any(|(p, ..)| *p == path);
        for attribute in ["src=\"", "href=\"/assets"] {
            for rest in html.split(attribute).skip(1) {
                let start = attribute.strip_prefix("href=\"").unwrap_or_default();
                let path = format!("{start}{}", rest.split('"').next().unwrap_or_default());
                assert!(served(&path), "{path} is not served");
            }
        }
    }
}
