//! Billing's HTTP (DESIGN §5.3): parses and answers.

#[cfg(test)]
mod documented;
mod error;

use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use service_kit::{ApiJson, ApiPath, CallContext, Problem};
use ticketing_types::billing::{
    AuthorizePayment, BillingRecords, PaymentLookup, PaymentView, RefundPayment, RefundView,
};
use ticketing_types::{PaymentId, SectionTimings, Strategy};
use utoipa::OpenApi;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::domain::error::PaymentError;
use crate::domain::payment::leading;
use crate::domain::payments::{How, Operation, Payments, Settled};

/// Payments in one lookup of the audit.
const PAYMENTS_MAX: usize = 1000;

/// What the handlers share.
#[derive(Debug, Clone)]
pub(crate) struct AppState {
    pub(crate) payments: Payments,
    pub(crate) default_strategy: Strategy,
    pub(crate) lock_wait: Duration,
}

impl AppState {
    fn how(&self, context: CallContext) -> How {
        let strategy = context.strategy_or(self.default_strategy);
        let payment_key = context.payment_key_or(strategy);
        How {
            context,
            strategy,
            payment_key,
            lock_wait: self.lock_wait,
        }
    }

    async fn run(
        &self,
        context: CallContext,
        id: &PaymentId,
        operation: Operation,
    ) -> Result<(StatusCode, Json<PaymentView>), Problem> {
        let how = self.how(context);
        let span = tracing::Span::current();
        span.record("payment.id", id.as_str());
        span.record("strategy", how.strategy.name());
        let Settled {
            payment,
            now,
            timings,
        } = self.payments.run(&how, id, &operation).await?;
        span.record("fencing_token", payment.fencing_token);
        let created = now && matches!(operation, Operation::Authorize(_));
        let status = if created {
            StatusCode::CREATED
        } else {
            StatusCode::OK
        };
        Ok((status, Json(payment.view(timings))))
    }
}

#[derive(OpenApi)]
#[openapi(info(
    title = "billing",
    description = "Authorizes, captures, voids and refunds payments: once each, whatever the network does."
))]
struct ApiDoc;

/// The routes and their description.
pub(crate) fn router(state: AppState) -> (axum::Router, utoipa::openapi::OpenApi) {
    let (router, openapi) = routes().split_for_parts();
    (router.with_state(state), openapi)
}

fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::with_openapi(ApiDoc::openapi())
        .routes(routes!(authorize, get_payment))
        .routes(routes!(capture))
        .routes(routes!(void))
        .routes(routes!(refund))
        .routes(routes!(audit_records))
}

/// Authorize a payment. Safe to repeat: the id names the payment.
#[utoipa::path(
    put, path = "/v1/payments/{id}", tag = "billing", request_body = AuthorizePayment,
    params(("id" = PaymentId, Path, description = "Chosen by the caller")),
    responses(
        (status = 201, body = PaymentView, description = "The money is reserved"),
        (status = 200, body = PaymentView, description = "It was reserved before"),
        (status = 400, description = "`invalid-request`, `unknown-strategy`"),
        (status = 402, description = "`payment-declined`, also when asked again"),
        (status = 409, description = "`payment-voided`, `stale-fencing-token`"),
        (status = 422, description = "`payment-mismatch`: same id, other body"),
        (status = 503, description = "`payment-unknown`, `outcome-unknown`, `payment-in-progress`, `database-busy`, `lock-wait-timeout`, \
                                      `lock-unavailable`, `strategy-unavailable`: ask again with the same id"),
    )
)]
async fn authorize(
    State(state): State<AppState>,
    ApiPath(id): ApiPath<PaymentId>,
    context: CallContext,
    ApiJson(request): ApiJson<AuthorizePayment>,
) -> Result<(StatusCode, Json<PaymentView>), Problem> {
    state.run(context, &id, Operation::Authorize(request)).await
}

/// One payment.
#[utoipa::path(
    get, path = "/v1/payments/{id}", tag = "billing",
    params(("id" = PaymentId, Path)),
    responses((status = 200, body = PaymentView), (status = 404, description = "`payment-not-found`"))
)]
async fn get_payment(
    State(state): State<AppState>,
    ApiPath(id): ApiPath<PaymentId>,
) -> Result<Json<PaymentView>, Problem> {
    let rows = state.payments.store.look(&id).await.map_err(PaymentError::from)?;
    let payment = leading(&rows).ok_or(PaymentError::NotFound)?;
    Ok(Json(payment.view(SectionTimings::default())))
}

/// Take the reserved money. Again: the same answer, still one capture.
#[utoipa::path(
    post, path = "/v1/payments/{id}/capture", tag = "billing",
    params(("id" = PaymentId, Path)),
    responses(
        (status = 200, body = PaymentView, description = "The money is taken"),
        (status = 402, description = "`payment-declined`"),
        (status = 404, description = "`payment-not-found`"),
        (status = 409, description = "`payment-voided`, `payment-not-authorized`, `stale-fencing-token`"),
        (status = 503, description = "As for authorizing: ask again"),
    )
)]
async fn capture(
    State(state): State<AppState>,
    ApiPath(id): ApiPath<PaymentId>,
    context: CallContext,
) -> Result<(StatusCode, Json<PaymentView>), Problem> {
    state.run(context, &id, Operation::Capture).await
}

/// Give the reserved money back. A payment never heard of is closed: it cannot be authorized later.
#[utoipa::path(
    post, path = "/v1/payments/{id}/void", tag = "billing",
    params(("id" = PaymentId, Path)),
    responses(
        (status = 200, body = PaymentView, description = "Nothing is reserved any more"),
        (status = 409, description = "`payment-captured`: refund it instead; `stale-fencing-token`"),
        (status = 503, description = "As for authorizing: ask again"),
    )
)]
async fn void(
    State(state): State<AppState>,
    ApiPath(id): ApiPath<PaymentId>,
    context: CallContext,
) -> Result<(StatusCode, Json<PaymentView>), Problem> {
    state.run(context, &id, Operation::Void).await
}

/// Give taken money back. Safe to repeat: the caller names the refund.
#[utoipa::path(
    post, path = "/v1/payments/{id}/refunds", tag = "billing", request_body = RefundPayment,
    params(("id" = PaymentId, Path)),
    responses(
        (status = 201, body = RefundView, description = "Given back"),
        (status = 200, body = RefundView, description = "It was given back before: the same answer"),
        (status = 400, description = "`invalid-request`"),
        (status = 404, description = "`payment-not-found`"),
        (status = 422, description = "`over-refund` with `refundable`, `refund-mismatch`, `currency-mismatch`"),
        (status = 503, description = "`payment-unknown`, `outcome-unknown`, `database-busy`: ask again with the same refund id"),
    )
)]
async fn refund(
    State(state): State<AppState>,
    ApiPath(id): ApiPath<PaymentId>,
    context: CallContext,
    ApiJson(request): ApiJson<RefundPayment>,
) -> Result<(StatusCode, Json<RefundView>), Problem> {
    if request.amount.amount_minor() == 0 {
        return Err(Problem::invalid(
            "/amount/amount_minor",
            "a refund gives something back: 1 or more",
        ));
    }
    tracing::Span::current().record("payment.id", id.as_str());
    let (view, now) = state.payments.refund(&context, &id, &request).await?;
    let status = if now { StatusCode::CREATED } else { StatusCode::OK };
    Ok((status, Json(view)))
}

/// Billing's own book of these payments, for the audit.
#[utoipa::path(
    post, path = "/v1/audit-records", tag = "audit", request_body = PaymentLookup,
    responses(
        (status = 200, body = BillingRecords),
        (status = 400, description = "`invalid-request`: more than 1,000 payments"),
    )
)]
async fn audit_records(
    State(state): State<AppState>,
    ApiJson(lookup): ApiJson<PaymentLookup>,
) -> Result<Json<BillingRecords>, Problem> {
    if lookup.payment_ids.len() > PAYMENTS_MAX {
        return Err(Problem::invalid(
            "/payment_ids",
            "up to 1000 payments can be looked up at once",
        ));
    }
    let records = state
        .payments
        .store
        .audit(&lookup.payment_ids)
        .await
        .map_err(PaymentError::from)?;
    Ok(Json(records))
}
