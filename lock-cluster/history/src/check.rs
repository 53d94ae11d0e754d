//! The check of what clients saw: one pass, in the order of time.

use std::collections::{BTreeMap, BTreeSet};

use lock_core::{LockName, LockNames, SessionId};

use super::{Attempt, Moment, Verdict, What};

/// Everything in the history that no lock service may show its clients.
pub fn check(history: &[Moment]) -> Vec<String> {
    let mut check = Check::default();
    let mut before = 0;
    for Moment { at, what } in history {
        assert!(before <= *at, "a history is in order of time");
        before = *at;
        if let Err(violation) = check.take(what) {
            let (seconds, micros) = (at / 1_000_000_000, at / 1_000 % 1_000_000);
            check
                .violations
                .push(format!("{seconds}.{micros:06}: {violation}"));
        }
    }
    check.violations
}

#[derive(Default)]
struct Check {
    attempts: BTreeMap<Attempt, State>,
    /// Who was told which token.
    tokens: BTreeMap<u64, Attempt>,
    /// Who believes to hold what, under which token.
    believed: BTreeMap<LockName, u64>,
    distrusted: BTreeSet<SessionId>,
    /// Tokens that an administrator wanted broken: their holders may learn of it late.
    broken: BTreeSet<u64>,
    /// Tokens whose release was confirmed, and at which step.
    released: BTreeMap<u64, usize>,
    steps: usize,
    looks: BTreeMap<u64, Look>,
    violations: Vec<String>,
}

struct State {
    names: LockNames,
    /// The highest token that anybody was told before this one asked.
    floor: Option<u64>,
    told: Option<Verdict>,
    let_go: bool,
    released: bool,
}

struct Look {
    name: LockName,
    /// Who believed to hold it when the look began.
    believed: Option<u64>,
    /// What was released before this step was over by then.
    begun: usize,
}

impl Check {
    fn take(&mut self, what: &What) -> Result<(), String> {
        self.steps += 1;
        match what {
            What::Asked(attempt, names) => self.asked(*attempt, names),
            What::Told(attempt, verdict) => self.told(*attempt, *verdict),
            What::LetGo(attempt) => {
                let state = self.state(*attempt)?;
                state.let_go = true;
                if let Some(Verdict::Granted(token)) = state.told {
                    self.disbelieve(token);
                }
                Ok(())
            }
            What::Released(attempt) => {
                let state = self.state(*attempt)?;
                state.released = true;
                if let Some(Verdict::Granted(token)) = state.told {
                    self.released.entry(token).or_insert(self.steps);
                }
                Ok(())
            }
            What::NotHeld(attempt) => match self.state(*attempt)?.told {
                Some(Verdict::Granted(token)) => Err(format!(
                    "{attempt} was granted under {token}, and then had never held"
                )),
                _ => Ok(()),
            },
            What::Distrusted(session) => {
                self.distrusted.insert(*session);
                let tokens = &self.tokens;
                self.believed.retain(|_, token| tokens[token].session != *session);
                Ok(())
            }
            What::Expired(session) if self.distrusted.contains(session) => Ok(()),
            What::Expired(session) => Err(format!("session {session} was ended before its time")),
            What::Breaks(token) => {
                self.broken.insert(*token);
                self.disbelieve(*token);
                Ok(())
            }
            What::Looks(look, name) => {
                let begun = Look {
                    name: name.clone(),
                    believed: self.believed.get(name).copied(),
                    begun: self.steps,
                };
                self.looks.insert(*look, begun);
                Ok(())
            }
            What::Saw(look, seen) => self.saw(*look, *seen),
        }
    }

    fn asked(&mut self, attempt: Attempt, names: &LockNames) -> Result<(), String> {
        let floor = self.tokens.last_key_value().map(|(token, _)| *token);
        let state = State {
            names: names.clone(),
            floor,
            told: None,
            let_go: false,
            released: false,
        };
        match self.attempts.insert(attempt, state) {
            None => Ok(()),
            Some(_) => Err(format!("{attempt} was asked for twice: the client is wrong")),
        }
    }

    fn told(&mut self, attempt: Attempt, verdict: Verdict) -> Result<(), String> {
        let state = self.state(attempt)?;
        let told = state.told.replace(verdict);
        let (released, let_go, floor, names) =
            (state.released, state.let_go, state.floor, state.names.clone());
        match (told, verdict) {
            (_, Verdict::Granted(token)) if released => {
                return Err(format!("{attempt} was released, and granted again under {token}"));
            }
            (None, _) => {}
            (Some(before), now) if before == now => {}
            // Somebody else broke it, and it was told; or it gave it up, and was told.
            (Some(Verdict::Granted(token)), Verdict::Broken) if self.broken.contains(&token) => {}
            (Some(Verdict::Granted(_) | Verdict::Broken | Verdict::Abandoned), Verdict::Released)
                if let_go => {}
            (Some(_), Verdict::Acknowledged) => {}
            (Some(before), now) => return Err(format!("{attempt} was told {before:?}, and then {now:?}")),
        }
        let Verdict::Granted(token) = verdict else {
            return Ok(());
        };
        if let Some(other) = self
            .tokens
            .insert(token, attempt)
            .filter(|other| *other != attempt)
        {
            return Err(format!("token {token} was given to {other} and to {attempt}"));
        }
        if floor.is_some_and(|floor| token <= floor) {
            return Err(format!(
                "{attempt} asked after token {floor:?} was told, and got {token}"
            ));
        }
        if let_go || self.distrusted.contains(&attempt.session) || self.broken.contains(&token) {
            return Ok(());
        }
        for name in &names {
            if let Some(other) = self
                .believed
                .insert(name.clone(), token)
                .filter(|other| *other != token)
            {
                return Err(format!(
                    "{attempt} holds {name} under token {token} while another does under {other}"
                ));
            }
        }
        Ok(())
    }

    fn saw(&mut self, look: u64, seen: Option<u64>) -> Result<(), String> {
        let Some(Look {
            name,
            believed,
            begun,
        }) = self.looks.remove(&look)
        else {
            return Err("a look ended that was never begun".to_owned());
        };
        if let Some(token) = seen.filter(|token| self.released.get(token).is_some_and(|step| *step < begun)) {
            return Err(format!(
                "{name} was seen held under {token}, which had been released before"
            ));
        }
        // Held from before the look until after it: then it must have been seen so.
        let throughout = believed.filter(|token| self.believed.get(&name) == Some(token));
        match throughout {
            Some(token) if seen != Some(token) => Err(format!(
                "{name} was held under {token} all the time, and seen as {seen:?}"
            )),
            _ => Ok(()),
        }
    }

    fn disbelieve(&mut self, token: u64) {
        self.believed.retain(|_, held| *held != token);
    }

    fn state(&mut self, attempt: Attempt) -> Result<&mut State, String> {
        let state = self.attempts.get_mut(&attempt);
        state.ok_or_else(|| format!("{attempt} was never asked for: the client is wrong"))
    }
}
