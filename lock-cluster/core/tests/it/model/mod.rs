//! The same lock service, written so that it is obviously right and not at all fast.
//!
//! One list of attempts in the order in which they came, one list of sessions, and every question answered
//! by looking through them. There are no lines and no deadlines here: an attempt is blocked if an earlier
//! one that still lives wants one of its names, and somebody is late if what they said last is too long
//! ago. All rules are in this one long file, so that it can be checked by reading it from top to bottom once.
//! Nothing but the vocabulary is shared with the real one.

mod look;

use std::collections::BTreeSet;

use lock_core::*;

#[derive(Clone, Debug)]
pub(crate) struct Model {
    pub(crate) now: u64,
    pub(crate) last_token: u64,
    limits: Limits,
    sessions: Vec<Member>,
    attempts: Vec<Attempt>,
}

#[derive(Clone, Debug)]
struct Member {
    id: SessionId,
    ttl: TtlMs,
    label: Label,
    last_seen: u64,
    acknowledged: Option<AcquireId>,
}

#[derive(Clone, Debug)]
struct Attempt {
    session_id: SessionId,
    acquire_id: AcquireId,
    names: Vec<LockName>,
    asked_at: u64,
    wait: u64,
    come_by: BTreeSet<Delivery>,
    fate: Fate,
}

#[derive(Clone, Debug, PartialEq)]
enum Fate {
    Waits,
    Holds { token: u64, since: u64 },
    Over(AcquireAnswer),
    NeverCame,
}

impl Member {
    fn late(&self, now: u64) -> bool {
        now > self.last_seen + self.ttl.get()
    }

    fn done_with(&self, id: AcquireId) -> bool {
        self.acknowledged >= Some(id)
    }
}

impl Attempt {
    fn lives(&self) -> bool {
        matches!(self.fate, Fate::Waits | Fate::Holds { .. })
    }

    fn late(&self, now: u64) -> bool {
        self.fate == Fate::Waits && now > self.asked_at + self.wait
    }

    fn lock_names(&self) -> LockNames {
        LockNames::new(self.names.clone()).unwrap()
    }

    fn answer(&self) -> AcquireAnswer {
        match &self.fate {
            Fate::Waits => AcquireAnswer::Queued,
            Fate::Holds { token, .. } => AcquireAnswer::Granted {
                fencing_token: FencingToken::new(*token),
                names: self.lock_names(),
            },
            Fate::Over(answer) => answer.clone(),
            Fate::NeverCame => AcquireAnswer::Released,
        }
    }
}

impl Model {
    pub(crate) fn new(limits: Limits) -> Self {
        Self {
            now: 0,
            last_token: 0,
            limits,
            sessions: vec![],
            attempts: vec![],
        }
    }

    pub(crate) fn apply(&mut self, at: u64, command: &Command) -> (Reply, Vec<Event>) {
        self.now = self.now.max(at);
        let mut events = vec![];
        let reply = match self.carry_out(command, &mut events) {
            Ok(reply) => reply,
            Err(refusal) => Reply::Refused(refusal),
        };
        self.grant(&mut events);
        // `Acquire` is answered with how it stands when everything is done.
        let reply = match (command, reply) {
            (
                Command::Acquire {
                    session_id,
                    acquire_id,
                    ..
                },
                Reply::Acquire(_),
            ) => Reply::Acquire(self.acquisition(*session_id, *acquire_id).unwrap()),
            (_, reply) => reply,
        };
        if matches!(reply, Reply::Acquire(AcquireAnswer::Granted { .. })) {
            // An acquire that is granted at once never stood in line, as far as anybody was told.
            events.retain(|event| !matches!(event, Event::Queued { .. }));
        }
        (reply, events)
    }

    fn carry_out(&mut self, command: &Command, events: &mut Vec<Event>) -> Result<Reply, Refusal> {
        match command.clone() {
            Command::OpenSession {
                session_id,
                ttl,
                label,
            } => {
                let now = self.now;
                if let Some(old) = self.sessions.iter_mut().find(|s| s.id == session_id) {
                    old.last_seen = now;
                    return Ok(Reply::SessionOpened {
                        ttl: old.ttl,
                        created: false,
                    });
                }
                if self.sessions.len() == self.limits.sessions {
                    return Err(Refusal::TooManySessions);
                }
                let (last_seen, acknowledged) = (now, None);
                self.sessions.push(Member {
                    id: session_id,
                    ttl,
                    label: label.clone(),
                    last_seen,
                    acknowledged,
                });
                events.push(Event::SessionOpened {
                    session_id,
                    ttl,
                    label,
                });
                Ok(Reply::SessionOpened { ttl, created: true })
            }
            Command::KeepAlive {
                session_id,
                acknowledged,
            } => {
                let now = self.now;
                let member = self.member(session_id)?;
                member.last_seen = now;
                member.acknowledged = member.acknowledged.max(acknowledged);
                let ttl = member.ttl;
                self.forget();
                let broken = self.attempts.iter().filter(|a| a.session_id == session_id);
                let broken = broken.filter(|a| a.answer() == AcquireAnswer::Broken);
                let mut broken: Vec<_> = broken.map(|a| a.acquire_id).collect();
                broken.sort();
                Ok(Reply::KeptAlive { ttl, broken })
            }
            Command::CloseSession { session_id } => {
                self.end_session(session_id, SessionEnd::Closed, events);
                Ok(Reply::SessionClosed)
            }
            Command::Acquire {
                session_id,
                acquire_id,
                names,
                wait,
                delivery,
            } => {
                self.member(session_id)?;
                let names: Vec<LockName> = names.iter().cloned().collect();
                if let Some(old) = self.attempt(session_id, acquire_id) {
                    let never_came = old.fate == Fate::NeverCame;
                    if !never_came && sorted(&old.names) != sorted(&names) {
                        return Err(Refusal::NamesDiffer);
                    }
                    old.come_by.insert(delivery);
                    return Ok(Reply::Acquire(old.answer()));
                }
                self.check_room_to_remember(session_id, acquire_id)?;
                let (asked_at, wait) = (self.now, wait.get());
                let fate = Fate::Waits;
                let mut attempt = Attempt {
                    session_id,
                    acquire_id,
                    names,
                    asked_at,
                    wait,
                    come_by: BTreeSet::from([delivery]),
                    fate,
                };
                let wanted = |name: &LockName| self.line(name).next().is_some();
                if wait == 0 && attempt.names.iter().any(wanted) {
                    attempt.fate = Fate::Over(AcquireAnswer::Held);
                } else {
                    if attempt
                        .names
                        .iter()
                        .any(|n| self.line(n).count() > self.limits.waiters_per_name)
                    {
                        return Err(Refusal::TooManyWaiters);
                    }
                    let mut all = self.names();
                    all.extend(attempt.names.iter().cloned());
                    all.sort();
                    all.dedup();
                    if all.len() > self.limits.names {
                        return Err(Refusal::TooManyNames);
                    }
                    let names = attempt.lock_names();
                    events.push(Event::Queued {
                        session_id,
                        acquire_id,
                        names,
                    });
                }
                self.attempts.push(attempt);
                Ok(Reply::Acquire(AcquireAnswer::Queued))
            }
            Command::Abandon {
                session_id,
                acquire_id,
                delivery,
            } => {
                let done = self.member(session_id)?.done_with(acquire_id);
                if let Some(it) = self.attempt(session_id, acquire_id) {
                    it.come_by.remove(&delivery);
                }
                match self.attempt(session_id, acquire_id).cloned() {
                    Some(it) if it.lives() && it.come_by.is_empty() => {
                        let why = (ReleaseReason::Abandoned, WaitEnd::Abandoned);
                        self.stop(&it, AcquireAnswer::Abandoned, why, events);
                        Ok(Reply::Acquire(AcquireAnswer::Abandoned))
                    }
                    Some(it) => Ok(Reply::Acquire(it.answer())),
                    None if done => Err(Refusal::Acknowledged),
                    None => self.use_up(session_id, acquire_id),
                }
            }
            Command::Release {
                session_id,
                acquire_id,
            } => {
                let done = self.member(session_id)?.done_with(acquire_id);
                let Some(it) = self.attempt(session_id, acquire_id).cloned() else {
                    return if done {
                        Ok(Reply::Released)
                    } else {
                        self.use_up(session_id, acquire_id)
                    };
                };
                match &it.fate {
                    Fate::NeverCame | Fate::Over(AcquireAnswer::Held | AcquireAnswer::TimedOut) => {
                        return Err(Refusal::NotHeld);
                    }
                    Fate::Waits | Fate::Holds { .. } => {
                        let why = (ReleaseReason::Released, WaitEnd::Released);
                        self.stop(&it, AcquireAnswer::Released, why, events);
                    }
                    Fate::Over(AcquireAnswer::Broken) => {
                        self.attempt(session_id, acquire_id).unwrap().fate =
                            Fate::Over(AcquireAnswer::Released);
                        self.forget();
                    }
                    Fate::Over(_) => {}
                }
                Ok(Reply::Released)
            }
            Command::Break { name, fencing_token } => {
                let holds = |a: &&Attempt| matches!(a.fate, Fate::Holds { token, .. } if token == fencing_token.get());
                let it = self.line(&name).find(holds).cloned().ok_or(Refusal::StaleToken)?;
                // No waiter is ever broken, so the second word is never said.
                self.stop(
                    &it,
                    AcquireAnswer::Broken,
                    (ReleaseReason::Broken, WaitEnd::Released),
                    events,
                );
                let (session_id, acquire_id, names) = (it.session_id, it.acquire_id, it.lock_names());
                Ok(Reply::Broken {
                    session_id,
                    acquire_id,
                    names,
                })
            }
            Command::RaiseTokenFloor { floor } if floor.get() > 1 << 62 => Err(Refusal::TokenFloorTooHigh),
            Command::RaiseTokenFloor { floor } => {
                if self.last_token < floor.get() {
                    self.last_token = floor.get();
                }
                let floor = FencingToken::new(self.last_token);
                Ok(Reply::TokenFloor { floor })
            }
            Command::Expire => {
                let mut dead: Vec<_> = self.sessions.iter().filter(|s| s.late(self.now)).collect();
                dead.sort_by_key(|s| (s.last_seen + s.ttl.get(), s.id));
                let dead: Vec<_> = dead.iter().map(|s| s.id).collect();
                for id in &dead {
                    self.end_session(*id, SessionEnd::Expired, events);
                }
                let mut late: Vec<_> = self
                    .attempts
                    .iter()
                    .filter(|a| a.late(self.now))
                    .cloned()
                    .collect();
                late.sort_by_key(|a| a.asked_at + a.wait); // stable: the order of arrival decides a tie
                for it in &late {
                    let why = (ReleaseReason::Released, WaitEnd::TimedOut);
                    self.stop(it, AcquireAnswer::TimedOut, why, events);
                }
                Ok(Reply::Expired {
                    sessions: dead.len() as u64,
                    waits: late.len() as u64,
                })
            }
        }
    }

    /// Whoever waits and has nobody living before them who wants one of their names, holds.
    fn grant(&mut self, events: &mut Vec<Event>) {
        for i in 0..self.attempts.len() {
            let blocks =
                |a: &Attempt| a.lives() && a.names.iter().any(|n| self.attempts[i].names.contains(n));
            if self.attempts[i].fate == Fate::Waits && !self.attempts[..i].iter().any(blocks) {
                self.last_token += 1;
                let it = &mut self.attempts[i];
                it.fate = Fate::Holds {
                    token: self.last_token,
                    since: self.now,
                };
                events.push(Event::Granted {
                    session_id: it.session_id,
                    acquire_id: it.acquire_id,
                    fencing_token: FencingToken::new(self.last_token),
                    names: it.lock_names(),
                });
            }
        }
    }

    fn stop(
        &mut self,
        it: &Attempt,
        answer: AcquireAnswer,
        (held, waited): (ReleaseReason, WaitEnd),
        events: &mut Vec<Event>,
    ) {
        let (session_id, acquire_id, names) = (it.session_id, it.acquire_id, it.lock_names());
        self.attempt(session_id, acquire_id).unwrap().fate = Fate::Over(answer);
        events.push(match it.fate {
            Fate::Holds { token, .. } => {
                let fencing_token = FencingToken::new(token);
                Event::Released {
                    session_id,
                    acquire_id,
                    fencing_token,
                    names,
                    reason: held,
                }
            }
            _ => Event::WaitEnded {
                session_id,
                acquire_id,
                names,
                reason: waited,
            },
        });
        self.forget();
    }

    fn end_session(&mut self, id: SessionId, reason: SessionEnd, events: &mut Vec<Event>) {
        if !self.sessions.iter().any(|s| s.id == id) {
            return;
        }
        let why = match reason {
            SessionEnd::Closed => (ReleaseReason::SessionClosed, WaitEnd::SessionClosed),
            SessionEnd::Expired => (ReleaseReason::SessionExpired, WaitEnd::SessionExpired),
        };
        let mut its: Vec<_> = self
            .attempts
            .iter()
            .filter(|a| a.session_id == id && a.lives())
            .cloned()
            .collect();
        its.sort_by_key(|a| a.acquire_id);
        for it in &its {
            self.stop(it, AcquireAnswer::Released, why, events);
        }
        self.attempts.retain(|a| a.session_id != id);
        self.sessions.retain(|s| s.id != id);
        events.push(Event::SessionClosed {
            session_id: id,
            reason,
        });
    }

    /// Drops every answer that its client is done with, except that of a broken lock.
    fn forget(&mut self) {
        let sessions = &self.sessions;
        self.attempts.retain(|a| {
            let member = sessions.iter().find(|s| s.id == a.session_id).unwrap();
            a.lives() || a.answer() == AcquireAnswer::Broken || !member.done_with(a.acquire_id)
        });
    }

    fn use_up(&mut self, session_id: SessionId, acquire_id: AcquireId) -> Result<Reply, Refusal> {
        self.check_room_to_remember(session_id, acquire_id)?;
        let (names, asked_at, wait) = (vec![], 0, 0);
        let (come_by, fate) = (BTreeSet::new(), Fate::NeverCame);
        self.attempts.push(Attempt {
            session_id,
            acquire_id,
            names,
            asked_at,
            wait,
            come_by,
            fate,
        });
        Err(Refusal::NotHeld)
    }

    fn check_room_to_remember(
        &mut self,
        session_id: SessionId,
        acquire_id: AcquireId,
    ) -> Result<(), Refusal> {
        if self.member(session_id)?.done_with(acquire_id) {
            return Err(Refusal::Acknowledged);
        }
        let mine = self
            .attempts
            .iter()
            .filter(|a| a.session_id == session_id)
            .count();
        if mine == self.limits.acquisitions_per_session {
            return Err(Refusal::TooManyUnacknowledged);
        }
        if self.attempts.len() == self.limits.acquisitions {
            return Err(Refusal::TooManyAcquisitions);
        }
        Ok(())
    }

    fn member(&mut self, id: SessionId) -> Result<&mut Member, Refusal> {
        self.sessions
            .iter_mut()
            .find(|s| s.id == id)
            .ok_or(Refusal::SessionExpired)
    }

    fn attempt(&mut self, session_id: SessionId, acquire_id: AcquireId) -> Option<&mut Attempt> {
        self.attempts
            .iter_mut()
            .find(|a| a.session_id == session_id && a.acquire_id == acquire_id)
    }

    /// Who holds or waits for this name, in the order in which they came.
    fn line(&self, name: &LockName) -> impl Iterator<Item = &Attempt> {
        self.attempts
            .iter()
            .filter(move |a| a.lives() && a.names.contains(name))
    }

    fn names(&self) -> Vec<LockName> {
        let mut names: Vec<LockName> = self
            .attempts
            .iter()
            .filter(|a| a.lives())
            .flat_map(|a| a.names.clone())
            .collect();
        names.sort();
        names.dedup();
        names
    }
}

fn sorted(names: &[LockName]) -> Vec<LockName> {
    let mut names = names.to_vec();
    names.sort();
    names
}
