//! The critical section of a payment (DESIGN §6), the heart of billing:
//!
//! > look for an authorization/capture of this payment → none? → [fault point] → call the gateway → record
//!
//! **This is read-then-write on purpose.** It is the same plain code under `none` and under every lock; what
//! keeps two of them apart is the [`Entry`] around it and the [`WriteRule`] of its writes, nothing else.
//! Under `none` two requests look at the same moment, both see nothing, and both charge.
//!
//! How the strategies differ, in one place:
//!
//! | rule | first row | later writes | another one's in-between row |
//! |---|---|---|---|
//! | `Plain` | inserted | as decided | gone on with |
//! | `Fenced` | inserted, one per payment | `… and fencing_token <= $token and status = $read` | gone on with: its owner has lost the lock |
//! | `CompareVersion` | inserted, one per payment | `… and version = $read` | left alone while it is claimed |
//! | `Conditional` | inserted, one per payment: the insert is the claim | `… and status = $read` | left alone while it is claimed |
//!
//! A fence needs both of its conditions. The token refuses an older holder once a newer one has *written*; until
//! then an older one, which does not know yet that its lock is lost, can still write between the newer one's look
//! and its write. The newer one decided on a row that is no more: it looks again, under a new token.
//!
//! The in-between row is written before the gateway is called and completed after. No connection and no
//! transaction is held over the call.
//!
//! Who enters, how often, and what happens when the caller hangs up is [`super::payments`]' business.

use std::time::Duration;

use chrono::Utc;
use guard::{Entry, WriteRule};
use ticketing_types::PaymentId;
use ticketing_types::billing::AuthorizePayment;
use uuid::Uuid;

use super::decide::{self, Claims, Next};
use super::error::PaymentError;
use super::payment::{Payment, Status};
use super::payments::{How, Operation, Payments};
use super::processor::{Authorization, Capturing, OutcomeUnknown, Voiding};
use crate::store::{Change, Condition};

/// Where things can be made to go wrong.
pub(crate) const FAULT_POINTS: [&str; 3] = [CRITICAL_SECTION, AFTER_AUTHORIZE, AFTER_CAPTURE];
/// Between the look and the first write.
const CRITICAL_SECTION: &str = "billing.critical-section";
/// The gateway has answered, nothing is recorded yet: the worst place to die.
const AFTER_AUTHORIZE: &str = "billing.after-authorize";
/// Likewise.
const AFTER_CAPTURE: &str = "billing.after-capture";

/// For how long a call to the processor belongs to the one who makes it, where the row is the lock: longer
/// than all its tries together.
const CLAIM: Duration = Duration::from_secs(6);

/// One request inside the critical section of one payment.
pub(super) struct Section {
    pub(super) payments: Payments,
    pub(super) entry: Entry,
    pub(super) how: How,
    pub(super) id: PaymentId,
}

/// The payment as it is afterwards, and whether it was done just now (not found done).
pub(super) type Done = Result<(Payment, bool), PaymentError>;

impl Section {
    pub(super) async fn run(&self, operation: &Operation) -> Done {
        match operation {
            Operation::Authorize(request) => self.authorize(request).await,
            Operation::Capture => self.capture().await,
            Operation::Void => self.void().await,
            Operation::Settle { attempt_id } => self.settle(attempt_id).await,
        }
    }

    /// The naive section: what is read here is what the decision stands on, however old it is by then.
    async fn authorize(&self, request: &AuthorizePayment) -> Done {
        let rows = self.payments.store.look(&self.id).await?;
        let found = match decide::authorize(&rows, request, self.claims())? {
            Next::Answer(row) | Next::SettleCapture(row) => return Ok((row, false)),
            Next::Begin => None,
            Next::Go(row) => Some(row),
        };
        self.reach(CRITICAL_SECTION).await?;
        let row = match found {
            None => self.begin(Some(request), Status::Authorizing).await?,
            Some(row) => self.claim(&row, Status::Authorizing).await?,
        };
        self.ask_to_authorize(&row).await
    }

    /// The naive section again, for taking the money.
    async fn capture(&self) -> Done {
        let rows = self.payments.store.look(&self.id).await?;
        let row = match decide::capture(&rows, self.claims())? {
            Next::Answer(row) => return Ok((row, false)),
            Next::Begin => return Err(PaymentError::NotFound),
            Next::Go(row) | Next::SettleCapture(row) => row,
        };
        self.reach(CRITICAL_SECTION).await?;
        let row = self.claim(&row, Status::Capturing).await?;
        self.ask_to_capture(&row).await
    }

    async fn void(&self) -> Done {
        let rows = self.payments.store.look(&self.id).await?;
        let next = decide::void(&rows, self.claims())?;
        if let Next::Answer(row) = next {
            return Ok((row, false));
        }
        self.reach(CRITICAL_SECTION).await?;
        let row = match next {
            Next::Answer(row) | Next::Go(row) => self.claim(&row, Status::Voiding).await?,
            // Never seen: the row is the memory that this id is used up.
            Next::Begin => self.begin(None, Status::Voiding).await?,
            Next::SettleCapture(row) => {
                let row = self.claim(&row, Status::Capturing).await?;
                return match self.ask_to_capture(&row).await {
                    Ok(_) => Err(PaymentError::Captured),
                    Err(PaymentError::Voided) => Ok((
                        Payment {
                            status: Status::Voided,
                            ..row
                        },
                        true,
                    )),
                    Err(error) => Err(error),
                };
            }
        };
        self.ask_to_void(&row).await
    }

    async fn settle(&self, attempt_id: &str) -> Done {
        let rows = self.payments.store.look(&self.id).await?;
        let row = rows
            .into_iter()
            .find(|row| row.attempt_id == attempt_id)
            .ok_or(PaymentError::NotFound)?;
        let claims = self.claims();
        if claims.respected && row.is_claimed(claims.now) {
            return Err(PaymentError::InProgress);
        }
        match row.status {
            Status::Authorizing => self.ask_to_authorize(&self.claim(&row, row.status).await?).await,
            Status::Capturing => self.ask_to_capture(&self.claim(&row, row.status).await?).await,
            Status::Voiding => self.ask_to_void(&self.claim(&row, row.status).await?).await,
            Status::Authorized | Status::Captured | Status::Voided | Status::Declined => Ok((row, false)),
        }
    }

    async fn ask_to_authorize(&self, row: &Payment) -> Done {
        let Some(asked) = &row.asked else {
            return Err(PaymentError::Voided);
        };
        let answer = self
            .payments
            .processor
            .authorize(&self.how.asking(), &self.id, asked)
            .await;
        let answer = self.known(row, answer).await?;
        self.reach(AFTER_AUTHORIZE).await?;
        let change = match &answer {
            Authorization::Done { authorization_id } => Change {
                authorization_id: Some(authorization_id.clone()),
                ..Change::to(Status::Authorized)
            },
            // A row that lost to one with another body will never be authorized either.
            Authorization::Declined | Authorization::Mismatch => Change::to(Status::Declined),
            Authorization::Closed => Change::to(Status::Voided),
        };
        let row = self.write(row, &change, Self::record).await?;
        match answer {
            Authorization::Done { .. } => Ok((row, true)),
            Authorization::Declined => Err(PaymentError::Declined),
            Authorization::Closed => Err(PaymentError::Voided),
            Authorization::Mismatch => Err(PaymentError::Mismatch),
        }
    }

    async fn ask_to_capture(&self, row: &Payment) -> Done {
        let (Some(asked), Some(authorization_id)) = (&row.asked, &row.authorization_id) else {
            return Err(PaymentError::NotAuthorized);
        };
        let asking = self.how.asking();
        let answer = self
            .payments
            .processor
            .capture(&asking, &self.id, authorization_id, asked.amount)
            .await;
        let answer = self.known(row, answer).await?;
        self.reach(AFTER_CAPTURE).await?;
        match answer {
            Capturing::Done { capture_id } => {
                let change = Change {
                    capture_id: Some(capture_id),
                    captured_minor: Some(asked.amount.amount_minor()),
                    ..Change::to(Status::Captured)
                };
                Ok((self.write(row, &change, Self::record).await?, true))
            }
            Capturing::Voided => {
                self.write(row, &Change::to(Status::Voided), Self::record).await?;
                Err(PaymentError::Voided)
            }
        }
    }

    async fn ask_to_void(&self, row: &Payment) -> Done {
        let answer = self.payments.processor.void(&self.how.asking(), &self.id).await;
        match self.known(row, answer).await? {
            Voiding::Done => Ok((
                self.write(row, &Change::to(Status::Voided), Self::record).await?,
                true,
            )),
            Voiding::Captured => {
                self.doubt_the_void(row).await?;
                Err(PaymentError::Captured)
            }
        }
    }

    /// Our row says "voiding" and the money is taken. Only a race without a guard gets here: somebody captured after
    /// our look. Their record stands; but if it is not there yet it may never come, and a row that rests would hide
    /// the money for good. So the row becomes a capture in doubt, about which the settling worker asks again.
    async fn doubt_the_void(&self, row: &Payment) -> Result<(), PaymentError> {
        let rows = self.payments.store.look(&self.id).await?;
        let now = rows.into_iter().find(|now| now.attempt_id == row.attempt_id);
        let doubtful = now.is_some_and(|now| now.asked.is_some() && now.authorization_id.is_some());
        // What was never authorized was not captured: that was another row of this payment.
        let status = if doubtful {
            Status::Capturing
        } else {
            Status::Voided
        };
        let condition = Condition {
            status: Some(Status::Voiding),
            ..self.record(row)
        };
        self.payments
            .store
            .advance(&row.attempt_id, &Change::to(status), condition)
            .await?;
        Ok(())
    }

    /// The processor's answer; or, when there is none, the claim given back, so that whoever asks again
    /// (the caller, or the settling worker) need not wait for it. The in-between status stays.
    async fn known<T>(&self, row: &Payment, answer: Result<T, OutcomeUnknown>) -> Result<T, PaymentError> {
        match answer {
            Ok(answer) => Ok(answer),
            Err(OutcomeUnknown) => {
                self.write(row, &Change::to(row.status), Self::record).await?;
                Err(PaymentError::Unknown)
            }
        }
    }

    /// Writes the first row of the payment.
    async fn begin(
        &self,
        request: Option<&AuthorizePayment>,
        status: Status,
    ) -> Result<Payment, PaymentError> {
        let now = Utc::now();
        let row = Payment {
            attempt_id: Uuid::now_v7().to_string(),
            payment_id: self.id.clone(),
            strategy: self.how.strategy,
            asked: request.cloned(),
            status,
            authorization_id: None,
            capture_id: None,
            captured_minor: 0,
            refunded_minor: 0,
            fencing_token: self.entry.rule.fencing_token(),
            version: 0,
            claimed_until: Some(now + CLAIM),
            created_at: now,
        };
        if self
            .payments
            .store
            .begin(&row, self.how.strategy.guarded())
            .await?
        {
            return Ok(row);
        }
        Err(self.beaten().await?)
    }

    /// Takes a row over for a call to the processor.
    async fn claim(&self, row: &Payment, status: Status) -> Result<Payment, PaymentError> {
        let change = Change::claim(status, Utc::now() + CLAIM);
        self.write(row, &change, Self::claim_condition).await
    }

    /// Writes, if what the rule asks for still holds.
    async fn write(
        &self,
        row: &Payment,
        change: &Change,
        condition: fn(&Self, &Payment) -> Condition,
    ) -> Result<Payment, PaymentError> {
        if self
            .payments
            .store
            .advance(&row.attempt_id, change, condition(self, row))
            .await?
        {
            return Ok(change.applied_to(row, self.entry.rule.fencing_token()));
        }
        Err(self.beaten().await?)
    }

    fn record(&self, row: &Payment) -> Condition {
        Condition::of(self.entry.rule, row)
    }

    /// A claim of `atomic` looks for other claims in the same statement; `optimistic` has looked when it read,
    /// and the version says that nothing has changed since.
    fn claim_condition(&self, row: &Payment) -> Condition {
        let condition = Condition::of(self.entry.rule, row);
        match self.entry.rule {
            WriteRule::Conditional if row.status != Status::Authorized => Condition {
                unclaimed_at: Some(Utc::now()),
                ..condition
            },
            _ => condition,
        }
    }

    /// Somebody else has written since we looked. Under a lock that means that one of us two has lost it: if their
    /// token is the newer one, it was us, and the evidence is kept. Else the row is not the one that we decided on.
    async fn beaten(&self) -> sqlx::Result<PaymentError> {
        let Some(token) = self.entry.rule.fencing_token() else {
            return Ok(PaymentError::InProgress);
        };
        let rows = self.payments.store.look(&self.id).await?;
        if rows.iter().filter_map(|row| row.fencing_token).max() <= Some(token) {
            tracing::info!(payment.id = %self.id, fencing_token = token, "somebody wrote since we looked");
            return Ok(PaymentError::InProgress);
        }
        tracing::info!(payment.id = %self.id, fencing_token = token, "a stale fencing token was refused");
        self.payments.store.note_stale_write(&self.id, token).await?;
        Ok(PaymentError::StaleFencingToken)
    }

    fn claims(&self) -> Claims {
        let respected = matches!(
            self.entry.rule,
            WriteRule::CompareVersion | WriteRule::Conditional
        );
        Claims {
            respected,
            now: Utc::now(),
        }
    }

    /// A fault point. A pause there stops the session's keep-alive too, as a stopped process would.
    async fn reach(&self, point: &'static str) -> Result<(), PaymentError> {
        let mut paused = None;
        self.payments
            .faults
            .at(point, &self.how.context)
            .scope(self.id.as_str())
            .on_pause(|| paused = Some(self.entry.pause_keep_alive()))
            .hit()
            .await?;
        drop(paused);
        Ok(())
    }
}
