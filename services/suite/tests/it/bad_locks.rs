//! The lock cluster's own API through the front door: what is refused, what is taken literally, and that
//! nothing stays behind.

use reqwest::Method;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use uuid::Uuid;

use crate::support::door::{Door, send};
use crate::support::{AllInOne, Reply};

/// A session that no test lets die.
const TTL_MS: u64 = 300_000;

async fn open(door: &Door, session: &Uuid, ttl_ms: &str) -> Reply {
    let body = format!(r#"{{"ttl_ms": {ttl_ms}, "label": "a test"}}"#);
    let request = door.request(Method::PUT, &format!("/v1/sessions/{session}"));
    send(request.header("content-type", "application/json").body(body)).await
}

async fn new_session(door: &Door) -> Uuid {
    let session = Uuid::new_v4();
    open(door, &session, &TTL_MS.to_string()).await.is(201);
    session
}

async fn acquire(door: &Door, session: &Uuid, acquire_id: u64, names: &[&str], wait_ms: &str) -> Reply {
    let names = json!(names);
    let body = format!(r#"{{"acquire_id": {acquire_id}, "names": {names}, "wait_ms": {wait_ms}}}"#);
    let request = door.request(Method::POST, &format!("/v1/sessions/{session}/acquisitions"));
    send(request.header("content-type", "application/json").body(body)).await
}

async fn release(door: &Door, session: &Uuid, acquire_id: u64) -> Reply {
    send(door.request(
        Method::DELETE,
        &format!("/v1/sessions/{session}/acquisitions/{acquire_id}"),
    ))
    .await
}

async fn close(door: &Door, session: &Uuid) -> Reply {
    send(door.request(Method::DELETE, &format!("/v1/sessions/{session}"))).await
}

/// A GET whose path nobody tidies up: an HTTP client would make `b` of `a/../b` before it asks.
async fn get_literally(door: &Door, path: &str) -> (String, Value) {
    let mut stream = tokio::net::TcpStream::connect(("127.0.0.1", door.ports().front_door))
        .await
        .unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.unwrap();
    let answer = String::from_utf8(answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head and a body");
    // Sized or in chunks: the JSON is between the first brace and the last.
    let json = body
        .find('{')
        .zip(body.rfind('}'))
        .map(|(from, to)| &body[from..=to]);
    let status = head.split(' ').nth(1).unwrap().to_owned();
    (status, serde_json::from_str(json.unwrap_or("null")).unwrap())
}

async fn locks(door: &Door) -> Vec<Value> {
    let locks = door.get("/v1/locks?limit=1000").await.is(200);
    locks.body["locks"].as_array().expect("a list").clone()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn numbers_out_of_range_are_refused() {
    let suite = AllInOne::on_sqlite().await;
    let door = &suite.door;
    let two_to_the_63 = (1_u64 << 63).to_string();
    for ttl_ms in [
        "0",
        "-1",
        "499",
        "300001",
        &two_to_the_63,
        "1.5",
        "\"5000\"",
        "null",
    ] {
        let session = Uuid::new_v4();
        let reply = open(door, &session, ttl_ms).await.problem(400, "invalid-request");
        assert_eq!(
            reply.body["errors"][0]["pointer"], "/ttl_ms",
            "{ttl_ms}: {}",
            reply.body
        );
        acquire(door, &session, 1, &["a"], "0")
            .await
            .problem(410, "session-expired");
    }
    for ttl_ms in ["500", "300000"] {
        open(door, &Uuid::new_v4(), ttl_ms).await.is(201);
    }
    let session = new_session(door).await;
    for wait_ms in ["-1", "60001", &two_to_the_63, "1.5", "\"0\""] {
        let reply = acquire(door, &session, 1, &["a"], wait_ms)
            .await
            .problem(400, "invalid-request");
        assert_eq!(
            reply.body["errors"][0]["pointer"], "/wait_ms",
            "{wait_ms}: {}",
            reply.body
        );
    }
    let seventeen: Vec<String> = (1..=17).map(|n| format!("seat-{n}")).collect();
    let seventeen: Vec<&str> = seventeen.iter().map(String::as_str).collect();
    for names in [&[], &seventeen[..]] {
        acquire(door, &session, 1, names, "0")
            .await
            .problem(400, "invalid-request");
    }
    let no_uuid = door
        .request(Method::PUT, "/v1/sessions/me")
        .json(&json!({ "ttl_ms": TTL_MS }));
    send(no_uuid).await.problem(400, "invalid-request");
    assert_eq!(locks(door).await, Vec::<Value>::new());
    suite.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_name_is_1_to_256_bytes_and_is_taken_literally() {
    let suite = AllInOne::on_sqlite().await;
    let door = &suite.door;
    let session = new_session(door).await;
    let too_long = "n".repeat(257);
    let too_long_in_bytes = "ü".repeat(129);
    for (acquire_id, name) in (1..).zip(["", &too_long, &too_long_in_bytes]) {
        let reply = acquire(door, &session, acquire_id, &[name], "0")
            .await
            .problem(400, "invalid-request");
        assert_eq!(reply.body["errors"][0]["pointer"], "/names/0", "{}", reply.body);
    }
    assert_eq!(locks(door).await, Vec::<Value>::new());

    let longest = "n".repeat(256);
    let names = [
        "a/b",
        "a/../b",
        "..",
        ".",
        "/",
        "b",
        " two  spaces ",
        "🎟️",
        "%2F",
        longest.as_str(),
    ];
    for (acquire_id, name) in (10..).zip(names) {
        let granted = acquire(door, &session, acquire_id, &[name], "0").await.is(201);
        assert_eq!(granted.body["names"], json!([name]));
    }
    let listed: Vec<_> = locks(door)
        .await
        .iter()
        .map(|lock| lock["name"].as_str().unwrap().to_owned())
        .collect();
    let mut sorted: Vec<_> = names.iter().map(|name| name.to_string()).collect();
    sorted.sort();
    assert_eq!(
        listed, sorted,
        "as many locks as names: none was taken for another"
    );
    for (path, name) in [
        ("a/b", "a/b"),
        ("a%2Fb", "a/b"),
        ("a/../b", "a/../b"),
        ("..", ".."),
        ("%2E%2E", ".."),
        ("%20two%20%20spaces%20", " two  spaces "),
        ("%F0%9F%8E%9F%EF%B8%8F", "🎟️"),
        ("%252F", "%2F"),
    ] {
        let (status, lock) = get_literally(door, &format!("/v1/locks/{path}")).await;
        assert_eq!(
            (status.as_str(), &lock["name"]),
            ("200", &json!(name)),
            "{path}: {lock}"
        );
        assert_eq!(lock["holder"]["session_id"], json!(session), "{path}: {lock}");
    }
    close(door, &session).await.is(204);
    assert_eq!(locks(door).await, Vec::<Value>::new());
    suite.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_holds_without_a_session_or_releases_what_is_not_theirs() {
    let suite = AllInOne::on_sqlite().await;
    let door = &suite.door;
    let keep_alive = async |session: &Uuid| {
        send(
            door.request(Method::POST, &format!("/v1/sessions/{session}/keep-alive"))
                .json(&json!({})),
        )
        .await
    };

    let over = new_session(door).await;
    close(door, &over).await.is(204);
    for session in [Uuid::new_v4(), over] {
        acquire(door, &session, 1, &["seat"], "1000")
            .await
            .problem(410, "session-expired");
        keep_alive(&session).await.problem(410, "session-expired");
        release(door, &session, 1).await.problem(410, "session-expired");
        close(door, &session).await.is(204);
    }

    let (holder, other) = (new_session(door).await, new_session(door).await);
    acquire(door, &holder, 1, &["seat"], "0").await.is(201);
    release(door, &other, 1).await.problem(404, "not-held");
    release(door, &holder, 2).await.problem(404, "not-held");
    acquire(door, &other, 2, &["seat"], "0")
        .await
        .problem(409, "lock-held");
    let waited = acquire(door, &other, 3, &["seat"], "200")
        .await
        .problem(503, "lock-wait-timeout");
    assert!(waited.header("retry-after").is_some());
    let seat = door.get("/v1/locks/seat").await.is(200);
    assert_eq!(seat.body["holder"]["session_id"], json!(holder), "{}", seat.body);
    assert_eq!(
        seat.body["waiters"],
        json!([]),
        "who was refused does not wait: {}",
        seat.body
    );

    release(door, &holder, 1).await.is(204);
    release(door, &holder, 1).await.is(204);
    assert_eq!(locks(door).await, Vec::<Value>::new());
    suite.stop().await;
}
