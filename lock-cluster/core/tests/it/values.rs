//! The vocabulary at its edges, and on its way through an encoding.

use lock_core::*;
use serde::Serialize;
use serde::de::DeserializeOwned;

#[test]
fn names_are_1_to_256_bytes_of_anything() {
    for good in [
        "a",
        "/",
        "..",
        "a/../b",
        " ",
        "two words",
        "🎟",
        &"x".repeat(256),
        &"é".repeat(128),
    ] {
        assert_eq!(LockName::parse(good).unwrap().as_str(), good);
    }
    assert_eq!(LockName::parse(""), Err(NameError::EmptyName));
    assert_eq!(
        LockName::parse(&"x".repeat(257)),
        Err(NameError::LongName { bytes: 257 })
    );
    assert_eq!(
        LockName::parse(&"é".repeat(129)),
        Err(NameError::LongName { bytes: 258 }),
        "bytes, not letters"
    );
}

#[test]
fn an_acquisition_has_1_to_16_names_each_counted_once() {
    let texts: Vec<String> = (0..17).map(|n| n.to_string()).collect();
    assert_eq!(LockNames::parse::<&str>(&[]), Err(NameError::NoNames));
    assert_eq!(LockNames::parse(&texts[..16]).unwrap().as_slice().len(), 16);
    assert_eq!(LockNames::parse(&texts), Err(NameError::ManyNames { names: 17 }));
    let doubled: Vec<&String> = texts[..16].iter().chain(&texts[..16]).collect();
    assert_eq!(LockNames::parse(&doubled).unwrap().as_slice().len(), 16);
    assert_eq!(
        LockNames::parse(&["b", "a", "b"]).unwrap().to_string(),
        "b, a",
        "in the order asked for"
    );
}

#[test]
fn labels_and_times_have_bounds() {
    assert!(Label::parse(&"x".repeat(128)).is_ok());
    assert_eq!(
        Label::parse(&"x".repeat(129)),
        Err(NameError::LongLabel { bytes: 129 })
    );
    for (ms, good) in [
        (0, false),
        (499, false),
        (500, true),
        (300_000, true),
        (300_001, false),
        (1 << 63, false),
    ] {
        assert_eq!(TtlMs::new(ms).is_ok(), good, "ttl {ms}");
    }
    for (ms, good) in [(0, true), (60_000, true), (60_001, false), (u64::MAX, false)] {
        assert_eq!(WaitMs::new(ms).is_ok(), good, "wait {ms}");
    }
}

#[test]
fn what_is_out_of_bounds_cannot_be_read_back_from_an_encoding_either() {
    fn through<A: Serialize, B: DeserializeOwned>(value: A) -> Result<B, postcard::Error> {
        postcard::from_bytes(&postcard::to_stdvec(&value).unwrap())
    }
    assert!(through::<_, LockName>("x".repeat(257)).is_err());
    assert!(through::<_, LockName>("").is_err());
    assert!(through::<_, LockNames>(Vec::<String>::new()).is_err());
    assert!(through::<_, Label>("x".repeat(129)).is_err());
    assert!(through::<_, TtlMs>(499u64).is_err());
    assert!(through::<_, WaitMs>(60_001u64).is_err());
    assert_eq!(through::<_, TtlMs>(500u64), Ok(TtlMs::new(500).unwrap()));
}

#[test]
fn a_snapshot_in_which_two_hold_one_lock_is_not_restored() {
    let mut state = LockState::new();
    let ana = SessionId::new(uuid::Uuid::from_u128(1));
    let (ttl, label) = (TtlMs::new(500).unwrap(), Label::default());
    state.apply(
        ClusterTime::ZERO,
        Command::OpenSession {
            session_id: ana,
            ttl,
            label,
        },
    );
    for (id, name) in [(1, "one-name"), (2, "two-name")] {
        let (acquire_id, names) = (AcquireId::new(id), LockNames::parse(&[name]).unwrap());
        let (wait, delivery) = (WaitMs::ZERO, Delivery::new(0));
        state.apply(
            ClusterTime::ZERO,
            Command::Acquire {
                session_id: ana,
                acquire_id,
                names,
                wait,
                delivery,
            },
        );
    }
    let mut bytes = postcard::to_stdvec(&state.snapshot()).unwrap();
    assert!(LockState::restore(postcard::from_bytes(&bytes).unwrap()).is_ok());

    let at = bytes.windows(8).position(|part| part == b"two-name").unwrap();
    bytes[at..at + 8].copy_from_slice(b"one-name");
    let error = LockState::restore(postcard::from_bytes(&bytes).unwrap()).unwrap_err();
    assert!(
        error.to_string().contains("without being first in line"),
        "{error}"
    );

    // Both in one line with one number: that is not even a line.
    bytes[at + 8] -= 1;
    let error = LockState::restore(postcard::from_bytes(&bytes).unwrap()).unwrap_err();
    assert!(error.to_string().contains("arrived twice"), "{error}");
}
