//! The page and the pages of the API.

use std::collections::BTreeSet;

use boxoffice::Config;

use crate::stub::{Door, Stub, config};

#[tokio::test]
async fn the_page_and_all_its_parts_are_served_under_a_strict_policy() {
    let door = Door::open(config()).await;
    let mut todo = vec!["/".to_owned()];
    let mut seen = BTreeSet::new();
    while let Some(path) = todo.pop() {
        if !seen.insert(path.clone()) {
            continue;
        }
        let response = door.get(&path).await;
        assert_eq!(response.status(), 200, "{path}");
        let policy = response.headers()["content-security-policy"]
            .to_str()
            .expect("text")
            .to_owned();
        assert!(
            policy.starts_with("default-src 'none'; script-src 'self'"),
            "{policy}"
        );
        assert!(!policy.contains("unsafe"), "{policy}");
        assert_eq!(response.headers()["x-content-type-options"], "nosniff");
        let text = response.text().await.expect("text");
        // What the HTML links to, and what the modules import.
        todo.extend(
            quoted_after(&text, "src=")
                .chain(quoted_after(&text, "href="))
                .filter(|p| p.starts_with("/assets")),
        );
        let modules = quoted_after(&text, "from ")
            .filter_map(|module| Some(format!("/assets/{}", module.strip_prefix("./")?)));
        todo.extend(modules);
    }
    assert!(seen.len() >= 10, "{seen:?}");
}

fn quoted_after<'t>(text: &'t str, mark: &'static str) -> impl Iterator<Item = String> + 't {
    let rests = text.split(mark).skip(1);
    rests.filter_map(|rest| Some(rest.strip_prefix('"')?.split('"').next()?.to_owned()))
}

#[tokio::test]
async fn the_api_of_every_service_can_be_read_here() {
    let inventory = Stub::echo("inventory");
    let door = Door::open(Config {
        inventory: vec![inventory.url()],
        ..config()
    })
    .await;
    assert_eq!(door.json("/openapi/inventory.json").await["uri"], "/openapi.json");
    assert_eq!(door.get("/openapi/kitchen.json").await.status(), 404);
    let own = door.json("/openapi.json").await;
    for path in ["/v1/topology", "/v1/audit/{event_id}", "/v1/rounds", "/v1/stream"] {
        assert!(own["paths"].get(path).is_some(), "{path} is not described");
    }
    let docs = door.get("/docs/").await;
    assert_eq!(docs.status(), 200);
    let initializer = door
        .get("/docs/swagger-initializer.js")
        .await
        .text()
        .await
        .expect("text");
    assert!(initializer.contains("/openapi/checkout.json"), "{initializer}");
    assert!(!initializer.contains("https://"), "{initializer}");
}
