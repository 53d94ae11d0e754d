//! Events, and their stock as it is counted.

use chrono::{DateTime, Utc};
use service_db::{with_reader, with_tx};
use ticketing_types::EventId;
use ticketing_types::inventory::{Availability, CreateEvent, EventView};

use super::{Store, stored, stored_money};
use crate::domain::price::Offer;

/// One statement, so that the counter and the two counts are of the same moment: I1 compares them.
macro_rules! select_event {
    ($which:literal) => {
        concat!(
            "select e.event_id, e.name, e.capacity, e.available, e.amount_minor, e.currency, e.max_per_buyer,
                e.created_at,
                cast((select coalesce(sum(i.quantity), 0)
                        from hold_item i join hold h on h.hold_id = i.hold_id
                       where i.event_id = e.event_id and h.status in ('placed', 'releasing')) as bigint) as held,
                cast((select count(*) from ticket t where t.event_id = e.event_id) as bigint) as sold
           from event e ",
            $which
        )
    };
}

#[derive(sqlx::FromRow)]
struct EventRow {
    event_id: String,
    name: String,
    capacity: i64,
    available: i64,
    amount_minor: i64,
    currency: String,
    max_per_buyer: Option<i64>,
    created_at: DateTime<Utc>,
    held: i64,
    sold: i64,
}

impl EventRow {
    fn into_view(self) -> sqlx::Result<EventView> {
        let availability = if self.available > 0 {
            Availability::Available
        } else if self.held > 0 {
            Availability::Reserved
        } else {
            Availability::SoldOut
        };
        Ok(EventView {
            id: stored(&self.event_id)?,
            price: stored_money(self.amount_minor, &self.currency)?,
            name: self.name,
            capacity: self.capacity,
            max_per_buyer: self.max_per_buyer,
            available: self.available,
            held: self.held,
            sold: self.sold,
            oversold: (self.sold - self.capacity).max(0),
            availability,
            created_at: self.created_at,
        })
    }
}

impl Store {
    /// Writes a new event; `false` if the id is taken. The primary key decides, so two that create the same
    /// event at once cannot both hear `true`.
    pub(crate) async fn insert_event(
        &self,
        id: &EventId,
        event: &CreateEvent,
        now: DateTime<Utc>,
    ) -> sqlx::Result<bool> {
        let mut tx = self.db.begin().await?;
        let inserted = with_tx!(tx, c => {
            sqlx::query(
                "insert into event
                    (event_id, name, capacity, available, amount_minor, currency, max_per_buyer, created_at)
                 values ($1, $2, $3, $3, $4, $5, $6, $7)
                 on conflict (event_id) do nothing",
            )
            .bind(id.as_str())
            .bind(event.name.as_str())
            .bind(i64::from(event.capacity.get()))
            .bind(event.price.amount_minor())
            .bind(event.price.currency().code())
            .bind(event.max_per_buyer.map(|limit| i64::from(limit.get())))
            .bind(now)
            .execute(c)
            .await
            .map(|done| done.rows_affected())
        })?;
        tx.commit().await?;
        Ok(inserted == 1)
    }

    /// One event with its stock.
    pub(crate) async fn event(&self, id: &EventId) -> sqlx::Result<Option<EventView>> {
        let row: Option<EventRow> = with_reader!(self.db, c => {
            sqlx::query_as(select_event!("where e.event_id = $1")).bind(id.as_str()).fetch_optional(c).await
        })?;
        row.map(EventRow::into_view).transpose()
    }

    /// The newest events.
    pub(crate) async fn events(&self, limit: u32) -> sqlx::Result<Vec<EventView>> {
        let rows: Vec<EventRow> = with_reader!(self.db, c => {
            sqlx::query_as(select_event!("order by e.created_at desc, e.event_id desc limit $1"))
                .bind(i64::from(limit))
                .fetch_all(c)
                .await
        })?;
        rows.into_iter().map(EventRow::into_view).collect()
    }

    /// What never changes about an event: what it costs, and how many one buyer may have.
    pub(crate) async fn offer(&self, id: &EventId) -> sqlx::Result<Option<Offer>> {
        let row: Option<(i64, String, Option<i64>)> = with_reader!(self.db, c => {
            sqlx::query_as("select amount_minor, currency, max_per_buyer from event where event_id = $1")
                .bind(id.as_str())
                .fetch_optional(c)
                .await
        })?;
        row.map(|(amount_minor, currency, max_per_buyer)| {
            Ok(Offer {
                price: stored_money(amount_minor, &currency)?,
                max_per_buyer,
            })
        })
        .transpose()
    }

    /// Whether a running hold may still give some of the event back.
    pub(crate) async fn is_held(&self, id: &EventId) -> sqlx::Result<bool> {
        let held: Option<(i64,)> = with_reader!(self.db, c => {
            sqlx::query_as(
                "select cast(1 as bigint)
                   from hold_item i join hold h on h.hold_id = i.hold_id
                  where i.event_id = $1 and h.status in ('placed', 'releasing') limit 1",
            )
            .bind(id.as_str())
            .fetch_optional(c)
            .await
        })?;
        Ok(held.is_some())
    }
}
