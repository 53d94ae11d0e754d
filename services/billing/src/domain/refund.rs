//! Giving money back.
//!
//! No lock and no strategy here: Σ refunds ≤ captured fits into one conditional update, and where that is so,
//! nothing else is needed ([`crate::store`], `refunds`). The amount is reserved first, then the processor is
//! asked, then the refund is done. The caller names the refund: the same id again is the same refund, with the
//! same answer, and an unknown outcome is asked about again under that name.

use ticketing_types::PaymentId;
use ticketing_types::billing::{RefundPayment, RefundView};

use super::error::PaymentError;
use super::payment::leading;
use super::payments::Payments;
use super::processor::{OutcomeUnknown, Refunding};
use crate::store::{Refund, RefundStatus, Reserved};
use service_kit::CallContext;

impl Refund {
    fn view(&self) -> RefundView {
        RefundView {
            id: self.refund_id.clone(),
            payment_id: self.payment_id.clone(),
            amount: self.amount,
            refundable_minor: self.refundable_minor,
        }
    }
}

impl Payments {
    /// `POST /v1/payments/{id}/refunds`; `true`: done just now.
    pub(crate) async fn refund(
        &self,
        context: &CallContext,
        id: &PaymentId,
        request: &RefundPayment,
    ) -> Result<(RefundView, bool), PaymentError> {
        let (this, context) = (self.clone(), context.clone());
        let (id, request) = (id.clone(), request.clone());
        self.detached(async move { this.refund_to_the_end(&context, &id, &request).await })
            .await
    }

    async fn refund_to_the_end(
        &self,
        context: &CallContext,
        id: &PaymentId,
        request: &RefundPayment,
    ) -> Result<(RefundView, bool), PaymentError> {
        let rows = self.store.look(id).await?;
        let payment = leading(&rows).ok_or(PaymentError::NotFound)?;
        match &payment.asked {
            None => return Err(PaymentError::OverRefund { refundable_minor: 0 }),
            Some(asked) if asked.amount.currency() != request.amount.currency() => {
                return Err(PaymentError::CurrencyMismatch);
            }
            Some(_) => {}
        }
        match self
            .store
            .reserve_refund(payment, &request.id, request.amount)
            .await?
        {
            Reserved::TooMuch { refundable_minor } => Err(PaymentError::OverRefund { refundable_minor }),
            Reserved::Existing(refund) if refund.amount != request.amount => {
                Err(PaymentError::RefundMismatch)
            }
            Reserved::Existing(refund) => match refund.status {
                RefundStatus::Done => Ok((refund.view(), false)),
                RefundStatus::Refused => Err(PaymentError::OverRefund {
                    refundable_minor: payment.refundable_minor(),
                }),
                RefundStatus::Pending => self.settle_refund(context, &refund).await,
            },
            Reserved::New(refund) => self.settle_refund(context, &refund).await,
        }
    }

    /// Asks the processor for a refund that is reserved.
    pub(crate) async fn settle_refund(
        &self,
        context: &CallContext,
        refund: &Refund,
    ) -> Result<(RefundView, bool), PaymentError> {
        let answer = self
            .processor
            .refund(context, &refund.payment_id, &refund.refund_id, refund.amount)
            .await;
        match answer {
            Ok(Refunding::Done { refund_entry_id }) => {
                self.store.finish_refund(refund, &refund_entry_id).await?;
                Ok((refund.view(), true))
            }
            Ok(Refunding::Refused) => {
                self.store.give_back_refund(refund).await?;
                Err(PaymentError::OverRefund {
                    refundable_minor: refund.refundable_minor,
                })
            }
            Err(OutcomeUnknown) => Err(PaymentError::Unknown),
        }
    }
}
