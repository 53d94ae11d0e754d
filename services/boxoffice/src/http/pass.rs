//! The doors to everybody else.

use axum::extract::{Request, State};
use axum::response::Response;
use service_kit::Problem;

use super::AppState;
use crate::domain::route::{Owner, repeatable};
use crate::upstream::parcel::Parcel;

/// Passes a request on to whoever owns its path, and the answer back.
pub(super) async fn pass(
    owner: Owner,
    State(state): State<AppState>,
    request: Request,
) -> Result<Response, Problem> {
    let parcel = Parcel::take(request).await?;
    let repeatable = repeatable(owner, &parcel.method, parcel.path(), &parcel.headers);
    let upstreams = &state.upstreams;
    match owner {
        Owner::Checkout => upstreams.checkout.send(parcel, repeatable).await,
        Owner::Inventory => upstreams.inventory.send(parcel, repeatable).await,
        Owner::Billing => upstreams.billing.send(parcel, repeatable).await,
        Owner::Lock => upstreams.nodes.send(parcel, repeatable).await,
    }
}
