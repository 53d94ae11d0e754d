//! A copy of the state for the day on which all disks are lost, and what a new cluster takes from it.
//!
//! **What comes back is the counter of fencing tokens, and only that.** Sessions and locks are about clients that were
//! there when the copy was made. By the time it is needed they have lost their sessions, or hold on to a lock that the
//! new cluster could not defend; so all sessions are dropped, and with them all locks. The tokens, however, are out in
//! the world: in rows that refuse whatever is lower. The new cluster goes on above them.
//!
//! Above *all* of them: the lost cluster has granted more after the copy was made, nobody knows how many. So the
//! counter jumps by [`TOKEN_MARGIN`] unless an administrator who knows better says where to. The copy holds the whole
//! state all the same: it is checked as a whole, and it tells who held what on that day.
//!
//! A restore is a command in the log that can only raise the counter. It may be given to a cluster that has granted
//! before, twice, or by mistake: nothing is granted twice because of it.

use bytes::Bytes;
use lock_core::{Command, Counts, FencingToken, LockState, Refusal, Reply, Snapshot};
use serde::{Deserialize, Serialize};

use super::{LockService, ServiceError};
use crate::raft::{ServiceRt, envelope};

/// How far above the backup's counter tokens go on: more grants than a cluster makes in days at full speed.
pub const TOKEN_MARGIN: u64 = 1 << 32;

/// Changes when the layout does.
const MAGIC: &[u8; 8] = b"LTBACK01";

/// What a backup says about itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Backup {
    /// The log index it is of.
    pub index: u64,
    /// The highest token granted by then.
    pub last_token: FencingToken,
    /// Sessions that were open.
    pub sessions: u64,
    /// Names that were held or waited for.
    pub locks: u64,
}

/// A file that is no backup, or not a whole one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this is no backup that can be used: {0}")]
pub struct BadBackup(String);

impl Backup {
    /// Reads a file and checks all of it, the state included.
    ///
    /// # Errors
    /// Says what is wrong with it.
    pub fn check(file: Bytes) -> Result<Self, BadBackup> {
        let bad = |what: &dyn std::fmt::Display| BadBackup(what.to_string());
        let (backup, state): (Self, Bytes) = envelope::open(MAGIC, file).map_err(|what| bad(&what))?;
        let state: Snapshot = postcard::from_bytes(&state)
            .map_err(|error| bad(&format!("its state is unreadable: {error}")))?;
        let state = LockState::restore(state).map_err(|error| bad(&error))?;
        match Self::of(&state, backup.index) == backup {
            true => Ok(backup),
            false => Err(bad(&"it does not say what its state is")),
        }
    }

    fn of(state: &LockState, index: u64) -> Self {
        let Counts { sessions, locks, .. } = state.counts();
        Self {
            index,
            last_token: state.last_token(),
            sessions: sessions as u64,
            locks: locks as u64,
        }
    }
}

impl<R: ServiceRt> LockService<R> {
    /// The state as it is after everything that was answered before this call, as the bytes of a file.
    pub async fn backup(&self) -> Result<Vec<u8>, ServiceError> {
        self.read(|_| ()).await?;
        let (next, (backup, snapshot)) = self.look(|state| (Backup::of(state, 0), state.snapshot()));
        let backup = Backup {
            index: next.saturating_sub(1),
            ..backup
        };
        let state = postcard::to_stdvec(&snapshot).expect("plain values always encode into memory");
        let mut file = envelope::front(MAGIC, &backup, &state);
        file.extend_from_slice(&state);
        Ok(file)
    }

    /// Has all later tokens be higher than `floor`, and says above which they are.
    pub async fn raise_token_floor(
        &self,
        floor: FencingToken,
    ) -> Result<Result<FencingToken, Refusal>, ServiceError> {
        match self.propose(Command::RaiseTokenFloor { floor }).await? {
            Reply::TokenFloor { floor } => Ok(Ok(floor)),
            Reply::Refused(refusal) => Ok(Err(refusal)),
            other => unreachable!("a raise is never answered with {other:?}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(state: &LockState) -> Vec<u8> {
        let body = postcard::to_stdvec(&state.snapshot()).unwrap();
        [envelope::front(MAGIC, &Backup::of(state, 7), &body), body].concat()
    }

    #[test]
    fn a_flipped_bit_or_a_missing_byte_anywhere_is_noticed() {
        let whole = file(&LockState::new());
        assert_eq!(Backup::check(whole.clone().into()).unwrap().index, 7);
        for at in 0..whole.len() {
            let mut damaged = whole.clone();
            damaged[at] ^= 0x10;
            assert!(
                Backup::check(damaged.into()).is_err(),
                "byte {at} was flipped unnoticed"
            );
            let cut = Bytes::copy_from_slice(&whole[..at]);
            assert!(Backup::check(cut).is_err(), "cut at {at} unnoticed");
        }
        assert!(Backup::check([whole, vec![0]].concat().into()).is_err());
    }

    #[test]
    fn a_file_that_is_whole_and_says_something_else_is_refused() {
        let body = postcard::to_stdvec(&LockState::new().snapshot()).unwrap();
        let mut boast = Backup::of(&LockState::new(), 7);
        boast.last_token = FencingToken::new(1_000);
        let lying = [envelope::front(MAGIC, &boast, &body), body.clone()].concat();
        assert!(Backup::check(lying.into()).is_err());
        let foreign = [
            envelope::front(b"LTSNAP01", &Backup::of(&LockState::new(), 7), &body),
            body,
        ]
        .concat();
        let error = Backup::check(foreign.into()).unwrap_err();
        assert!(error.to_string().contains("does not begin like"), "{error}");
    }
}
