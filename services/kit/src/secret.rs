//! Secrets: read from a file or from the environment, never from an argument (arguments are readable by every user of
//! the machine), and never shown.

use std::fmt;
use std::path::Path;

use anyhow::{Context as _, bail};

/// A value that must not appear in logs, in answers or in a panic message.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Takes a secret as text. An empty or blank one is no secret: `None`.
    pub fn new(text: impl Into<String>) -> Option<Self> {
        let text = text.into();
        let trimmed = text.trim();
        (!trimmed.is_empty()).then(|| Self(trimmed.to_owned()))
    }

    /// The secret in the file, or else in the environment.
    ///
    /// # Errors
    /// A file that was named must be there and say something.
    pub fn read(file: Option<&Path>, variable: &str) -> anyhow::Result<Option<Self>> {
        let Some(file) = file else {
            return Ok(std::env::var(variable).ok().and_then(Self::new));
        };
        let text = std::fs::read_to_string(file)
            .with_context(|| format!("reading the secret in {}", file.display()))?;
        match Self::new(text) {
            Some(secret) => Ok(Some(secret)),
            None => bail!("the secret file {} is empty", file.display()),
        }
    }

    /// The text, for a header, a key derivation or a constant-time comparison. Never for display.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_never_shows_itself() {
        let secret = Secret::new(" tell nobody ").unwrap();
        assert_eq!(format!("{secret:?}"), "Secret(…)");
        assert_eq!(secret.expose(), "tell nobody");
        assert_eq!(Secret::new("  "), None);
    }

    #[test]
    fn a_secret_is_read_from_a_file_that_must_say_something() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("secret");
        std::fs::write(&file, "  \n").unwrap();
        assert!(Secret::read(Some(&file), "UNUSED").is_err());
        std::fs::write(&file, "tell nobody\n").unwrap();
        assert_eq!(
            Secret::read(Some(&file), "UNUSED").unwrap(),
            Secret::new("tell nobody")
        );
        assert!(Secret::read(Some(&dir.path().join("missing")), "UNUSED").is_err());
    }
}
