//! The whole book of one event, for the audit.

use chrono::{DateTime, Utc};
use service_db::with_reader;
use ticketing_types::EventId;
use ticketing_types::inventory::{HoldRecord, InventoryRecords};

use super::{Store, hold, stored};

#[derive(sqlx::FromRow)]
struct RecordRow {
    hold_id: String,
    status: String,
    quantity: i64,
    tickets: i64,
    expires_at: DateTime<Utc>,
    strategy: String,
    fencing_token: Option<i64>,
}

impl Store {
    /// Everything that inventory knows of an event. Of one moment only at rest; the audit reads at rest.
    pub(crate) async fn records(&self, id: &EventId) -> sqlx::Result<Option<InventoryRecords>> {
        let Some(event) = self.event(id).await? else {
            return Ok(None);
        };
        let rows: Vec<RecordRow> = with_reader!(self.db, c => {
            sqlx::query_as(
                "select h.hold_id, h.status, h.expires_at, h.strategy, h.fencing_token,
                        cast(sum(i.quantity) as bigint) as quantity,
                        cast((select count(*) from ticket t
                               where t.hold_id = h.hold_id and t.event_id = $1) as bigint) as tickets
                   from hold_item i join hold h on h.hold_id = i.hold_id
                  where i.event_id = $1
                  group by h.hold_id, h.status, h.expires_at, h.strategy, h.fencing_token, h.created_at
                  order by h.created_at, h.hold_id",
            )
            .bind(id.as_str())
            .fetch_all(c)
            .await
        })?;
        let accepted_tokens: Vec<(i64,)> = with_reader!(self.db, c => {
            sqlx::query_as("select fencing_token from accepted_token where event_id = $1 order by version")
                .bind(id.as_str())
                .fetch_all(c)
                .await
        })?;
        let refused: Option<(i64,)> = with_reader!(self.db, c => {
            sqlx::query_as("select refused from refused_token where event_id = $1")
                .bind(id.as_str())
                .fetch_optional(c)
                .await
        })?;
        let holds: sqlx::Result<Vec<HoldRecord>> = rows
            .into_iter()
            .map(|row| {
                Ok(HoldRecord {
                    id: stored(&row.hold_id)?,
                    status: hold::status(&row.status)?,
                    quantity: row.quantity,
                    tickets: row.tickets,
                    expires_at: row.expires_at,
                    strategy: stored(&row.strategy)?,
                    fencing_token: row.fencing_token,
                })
            })
            .collect();
        Ok(Some(InventoryRecords {
            event,
            holds: holds?,
            stale_tokens_rejected: refused.map_or(0, |(refused,)| refused),
            accepted_tokens: accepted_tokens.into_iter().map(|(token,)| token).collect(),
        }))
    }
}
