//! Calling a purchase off.
//!
//! The wish is written into the row first (`cancel_requested`), and whoever drives the purchase obeys it as soon
//! as it may: before the pivot the saga turns around, when completed the money is given back in full. If nobody
//! drives it, this request does. So a cancellation, too, is finished without the client's help.
//!
//! **The tickets of a cancelled purchase are not sold again.** Inventory has no call that takes tickets back, and
//! a ticket may have been shown at the door. The seats stay sold, the money is returned: what is checked is
//! captured − refunded = 0 for a cancelled purchase, and its tickets go on counting as sold.

use service_kit::CallContext;
use ticketing_types::PurchaseId;
use ticketing_types::checkout::{PurchaseStatus, PurchaseView};

use super::checkout::Checkout;
use super::driver::Drive;

/// Why a purchase could not be called off.
#[derive(Debug, thiserror::Error)]
pub enum CancelError {
    /// There is no such purchase.
    #[error("there is no such purchase")]
    NotFound,
    /// The book cannot be read or written.
    #[error(transparent)]
    Store(#[from] sqlx::Error),
}

impl Checkout {
    /// Calls a purchase off. Answers how it stands now: a status of `pending` means that somebody is at it.
    pub async fn cancel(&self, id: &PurchaseId, context: CallContext) -> Result<PurchaseView, CancelError> {
        let (checkout, called_off) = (self.clone(), id.clone());
        let driven = self.see_through(async move {
            let claimed = checkout.store().call_off(&called_off).await?;
            Ok::<_, sqlx::Error>(
                claimed.map(|(claim, purchase)| checkout.begin_drive(claim, purchase, context)),
            )
        });
        if let Some(driven) = driven.await? {
            match driven.within_budget().await {
                Some(Drive::Ended { purchase, .. } | Drive::Unfinished(purchase)) => {
                    return Ok(purchase.view());
                }
                Some(Drive::Overtaken) | None => {}
            }
        }
        let purchase = self.store().get(id).await?.ok_or(CancelError::NotFound)?;
        let mut view = purchase.view();
        // Completed, and about to be refunded by whoever is at it: not the end of it.
        if purchase.cancel_requested && view.status == PurchaseStatus::Completed {
            view.status = PurchaseStatus::Pending;
        }
        Ok(view)
    }
}
