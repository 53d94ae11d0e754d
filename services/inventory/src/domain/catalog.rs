//! Creating events and showing them.

use ticketing_types::EventId;
use ticketing_types::inventory::{CreateEvent, EventView};
use uuid::Uuid;

use super::error::CreateEventError;
use super::{Inventory, again_while_busy};
use crate::store;

impl Inventory {
    /// Creates an event, or finds it created by the same request; the flag says which.
    pub(crate) async fn create_event(
        &self,
        request: &CreateEvent,
    ) -> Result<(EventView, bool), CreateEventError> {
        let id = request
            .id
            .clone()
            .unwrap_or_else(|| EventId::from_uuid(Uuid::now_v7()));
        let now = store::now();
        let created = again_while_busy(|| self.store.insert_event(&id, request, now)).await?;
        let event = self.store.event(&id).await?.ok_or(sqlx::Error::RowNotFound)?;
        if created || same_event(&event, request) {
            Ok((event, created))
        } else {
            Err(CreateEventError::Exists)
        }
    }
}

/// Whether the event is what the request asks for. Its stock has moved on since, and is no part of that.
fn same_event(event: &EventView, request: &CreateEvent) -> bool {
    event.name == request.name.as_str()
        && event.capacity == i64::from(request.capacity.get())
        && event.price == request.price
        && event.max_per_buyer == request.max_per_buyer.map(|limit| i64::from(limit.get()))
}
