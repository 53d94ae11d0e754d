//! Faults in words: `<point>=<effect>[@percent]`, as the `Fault` header and the fault board write them
//! (DESIGN §7). Parsing only; what an effect does is the service's business.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::Invalid;

/// What happens at a fault point. Written `delay=500ms`, `pause=6s`, `error=503`, `drop-reply`, `exit`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Effect {
    /// Wait, then go on.
    Delay(Duration),
    /// Hold the critical section this long, and let the session's keep-alive stop too.
    Pause(Duration),
    /// Answer with this status (400–599) instead.
    Error(u16),
    /// Do the work, lose the answer.
    DropReply,
    /// Abort the process.
    Exit,
}

/// Longest delay or pause, so that a typo cannot hang a demo.
pub const FAULT_WAIT_MAX: Duration = Duration::from_secs(300);

fn duration(text: &str) -> Option<Duration> {
    let (number, unit_ms) = match text.strip_suffix("ms") {
        Some(number) => (number, 1),
        None => (text.strip_suffix('s')?, 1000),
    };
    let wait = Duration::from_millis(number.parse::<u64>().ok()?.checked_mul(unit_ms)?);
    (wait <= FAULT_WAIT_MAX).then_some(wait)
}

impl FromStr for Effect {
    type Err = Invalid;
    fn from_str(text: &str) -> Result<Self, Invalid> {
        let known = match text.split_once('=') {
            Some(("delay", wait)) => duration(wait).map(Self::Delay),
            Some(("pause", wait)) => duration(wait).map(Self::Pause),
            Some(("error", status)) => status
                .parse()
                .ok()
                .filter(|s| (400..600).contains(s))
                .map(Self::Error),
            None if text == "drop-reply" => Some(Self::DropReply),
            None if text == "exit" => Some(Self::Exit),
            _ => None,
        };
        known.ok_or_else(|| {
            Invalid::expected(
                "an effect is delay=500ms, pause=6s (both up to 300s), error=503 (400 to 599), drop-reply or exit",
            )
        })
    }
}

impl fmt::Display for Effect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Delay(wait) => write!(f, "delay={}ms", wait.as_millis()),
            Self::Pause(wait) => write!(f, "pause={}ms", wait.as_millis()),
            Self::Error(status) => write!(f, "error={status}"),
            Self::DropReply => f.write_str("drop-reply"),
            Self::Exit => f.write_str("exit"),
        }
    }
}

impl TryFrom<String> for Effect {
    type Error = Invalid;
    fn try_from(text: String) -> Result<Self, Invalid> {
        text.parse()
    }
}

impl From<Effect> for String {
    fn from(effect: Effect) -> String {
        effect.to_string()
    }
}

impl utoipa::PartialSchema for Effect {
    fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::schema::Schema> {
        utoipa::openapi::schema::ObjectBuilder::new()
            .schema_type(utoipa::openapi::schema::Type::String)
            .description(Some("delay=500ms, pause=6s, error=503, drop-reply or exit"))
            .into()
    }
}

impl utoipa::ToSchema for Effect {}

/// One fault of one request: `<point>=<effect>[@percent]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FaultSpec {
    /// `<service>.<place>`, such as `inventory.critical-section`.
    pub point: String,
    /// What happens there.
    pub effect: Effect,
    /// How often, 1 to 100.
    pub percent: u8,
}

impl FromStr for FaultSpec {
    type Err = Invalid;
    fn from_str(text: &str) -> Result<Self, Invalid> {
        let form = || {
            Invalid::expected(
                "a fault is <point>=<effect>[@percent], such as billing.after-capture=drop-reply@50",
            )
        };
        let (point, rest) = text.split_once('=').ok_or_else(form)?;
        if point.is_empty()
            || !point
                .bytes()
                .all(|b| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'.' | b'-' | b'/'))
        {
            return Err(form());
        }
        let (effect, percent) = match rest.rsplit_once('@') {
            Some((effect, percent)) => {
                let percent = percent
                    .parse()
                    .ok()
                    .filter(|p| (1..=100).contains(p))
                    .ok_or_else(form)?;
                (effect, percent)
            }
            None => (rest, 100),
        };
        Ok(Self {
            point: point.to_owned(),
            effect: effect.parse()?,
            percent,
        })
    }
}

impl fmt::Display for FaultSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.point, self.effect)?;
        if self.percent < 100 {
            write!(f, "@{}", self.percent)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_fault_reads_back_as_itself() {
        for text in [
            "inventory.critical-section=delay=500ms",
            "billing.after-capture=drop-reply@50",
            "checkout.after-authorize=exit",
            "raft.peer/2=error=503",
        ] {
            assert_eq!(text.parse::<FaultSpec>().expect(text).to_string(), text);
        }
        let pause = "inventory.critical-section=pause=6s"
            .parse::<FaultSpec>()
            .expect("a pause");
        assert_eq!(pause.effect, Effect::Pause(Duration::from_secs(6)));
    }

    #[test]
    fn nonsense_is_refused() {
        for text in [
            "",
            "a",
            "=delay=1s",
            "a.b=delay",
            "a.b=delay=1h",
            "a.b=delay=999s",
            "a.b=error=200",
            "a.b=exit@0",
            "a.b=exit@101",
            "A.b=exit",
        ] {
            assert!(text.parse::<FaultSpec>().is_err(), "{text:?}");
        }
    }
}
