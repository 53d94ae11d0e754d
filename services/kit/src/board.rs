//! The fault board: what is armed at the [`crate::faults`] of a process, over HTTP.

use axum::{
    Json, Router,
    extract::State,
    http::StatusCode,
    response::IntoResponse,
    routing::{get, put},
};
use serde::{Deserialize, Serialize};
use ticketing_types::Effect;

use crate::{
    extract::{ApiJson, ApiPath},
    faults::Faults,
    problem::Problem,
};

/// What shall happen at a point; the body of `PUT /v1/faults/{point}`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// `delay=500ms`, `pause=6s`, `error=503`, `drop-reply` or `exit`.
    pub effect: Effect,
    /// How often, 1 to 100.
    #[serde(default)]
    #[schema(minimum = 1, maximum = 100)]
    pub percent: Percent,
    /// Makes the chance repeatable.
    #[serde(default)]
    pub seed: u64,
    /// Only hits about this (an event's, a payment's, a purchase's id) count; none: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<String>,
}

/// A whole number from 1 to 100.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(try_from = "u64", into = "u8")]
#[schema(value_type = u8, minimum = 1, maximum = 100)]
pub struct Percent(pub(crate) u8);

impl TryFrom<u64> for Percent {
    type Error = &'static str;
    fn try_from(percent: u64) -> Result<Self, Self::Error> {
        match percent {
            1..=100 => Ok(Self(percent as u8)),
            _ => Err("a percent is a whole number from 1 to 100"),
        }
    }
}

impl From<Percent> for u8 {
    fn from(percent: Percent) -> u8 {
        percent.0
    }
}

impl Default for Percent {
    /// Always.
    fn default() -> Self {
        Self(100)
    }
}

/// The effective state of one point.
#[derive(Debug, Clone, PartialEq, Serialize, utoipa::ToSchema)]
pub struct PointView {
    /// `<service>.<place>`.
    pub point: &'static str,
    /// What is armed, if anything.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rule: Option<Rule>,
    /// How often the point was reached since it was last armed or disarmed.
    pub hits: u64,
    /// How often something happened there.
    pub fired: u64,
}

/// The body of `GET /v1/faults`.
#[derive(Debug, Clone, PartialEq, Serialize, utoipa::ToSchema)]
pub struct FaultsView {
    /// Whether the process was started with faults enabled.
    pub enabled: bool,
    /// All points of the process.
    pub points: Vec<PointView>,
}

impl Faults {
    /// `GET /v1/faults`, `PUT` and `DELETE /v1/faults/{point}`; added by [`crate::finish`].
    pub(crate) fn routes(&self) -> Router {
        Router::new()
            .route("/v1/faults", get(list))
            .route("/v1/faults/{*point}", put(arm).delete(disarm))
            .with_state(self.clone())
    }
}

/// 403: this process was started without faults.
pub(crate) fn faults_disabled() -> Problem {
    Problem::new(StatusCode::FORBIDDEN, "faults-disabled")
        .detail("this process was started without --enable-faults")
}

async fn list(State(faults): State<Faults>) -> Result<Json<FaultsView>, Problem> {
    if !faults.enabled() {
        return Err(faults_disabled());
    }
    Ok(Json(faults.view()))
}

async fn arm(
    State(faults): State<Faults>,
    ApiPath(point): ApiPath<String>,
    rule: Result<ApiJson<Rule>, Problem>,
) -> Result<Json<FaultsView>, Problem> {
    // "Off" is said first, whatever the body.
    if !faults.enabled() {
        return Err(faults_disabled());
    }
    let ApiJson(rule) = rule?;
    faults.arm(&point, rule)?;
    Ok(Json(faults.view()))
}

async fn disarm(
    State(faults): State<Faults>,
    ApiPath(point): ApiPath<String>,
) -> Result<impl IntoResponse, Problem> {
    faults.disarm(&point)?;
    Ok(StatusCode::NO_CONTENT)
}
