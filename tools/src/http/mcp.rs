//! The Model Context Protocol over HTTP. Each caller has a service of its own: a connection that one has begun is unknown
//! to every other, whatever id a request brings.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use annals_engine::{Error, ErrorKind, Result};
use axum::body::Body;
use axum::http::{Method, Request, StatusCode};
use axum::response::{IntoResponse, Response};
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use tokio_util::sync::CancellationToken;

use crate::calls::Calls;
use crate::host::{Host, Identity};
use crate::mcp::{Handler, Service};

/// Calls that wait are answered within so long when all is to end, and their answers are sent within so long.
const ANSWERED_WITHIN: Duration = Duration::from_secs(3);
const THROUGH_WITHIN: Duration = Duration::from_millis(250);

type OfCaller = StreamableHttpService<Handler, LocalSessionManager>;

/// The services of all callers.
#[derive(Clone)]
pub(super) struct Services(Arc<Shared>);

struct Shared {
    host: Host,
    service: Service,
    calls: Calls,
    config: StreamableHttpServerConfig,
    by_caller: Mutex<HashMap<Identity, OfCaller>>,
}

impl Services {
    pub(super) fn new(host: Host, body_max: usize, calls: Calls) -> Self {
        let ends = CancellationToken::new();
        // Which hosts and pages may call is the door's to say, for all routes alike.
        let config = StreamableHttpServerConfig::default()
            .disable_allowed_hosts()
            .disable_allowed_origins()
            .with_max_request_body_bytes(body_max)
            .with_cancellation_token(ends.clone());
        let service = Service::new(host.clone(), calls.clone());
        let leaving = calls.clone();
        tokio::spawn(async move {
            leaving.stopped().await;
            // Who waits is answered first; the answer has to come through.
            drop(tokio::time::timeout(ANSWERED_WITHIN, leaving.at_rest()).await);
            tokio::time::sleep(THROUGH_WITHIN).await;
            ends.cancel();
        });
        let by_caller = Mutex::default();
        Self(Arc::new(Shared { host, service, calls, config, by_caller }))
    }

    /// Answers a request of somebody.
    pub(super) async fn answer(&self, who: Identity, request: Request<Body>) -> Response {
        match self.of(who).await {
            Ok(service) => {
                let ends = request.method() == Method::DELETE;
                let mut answer = service.handle(request).await.into_response();
                // The session is gone by now; clients take "accepted" for a failure.
                if ends && answer.status() == StatusCode::ACCEPTED {
                    *answer.status_mut() = StatusCode::NO_CONTENT;
                }
                answer
            }
            Err(error) => super::answer::Refusal::from(error).into_response(),
        }
    }

    async fn of(&self, who: Identity) -> Result<OfCaller> {
        if let Some(service) = self.held().get(&who) {
            return Ok(service.clone());
        }
        // A new caller comes seldom: that is the time to let go of those that cannot come back.
        let gone = self.ended().await?;
        let mut held = self.held();
        gone.iter().for_each(|who| drop(held.remove(who)));
        let begin = || {
            let (service, bound) = (self.0.service.clone(), who.clone());
            let begun = move || Ok(service.bound_to(bound.clone()));
            StreamableHttpService::new(begun, Arc::default(), self.0.config.clone())
        };
        Ok(held.entry(who.clone()).or_insert_with(begin).clone())
    }

    /// The callers whose runs have ended.
    async fn ended(&self) -> Result<Vec<Identity>> {
        let runs: Vec<Identity> =
            self.held().keys().filter(|who| matches!(who, Identity::Run(_))).cloned().collect();
        if runs.is_empty() {
            return Ok(runs);
        }
        let host = self.0.host.clone();
        // What cannot be told now is told the next time.
        let is_refusal = |error: &Error| *error.kind() == ErrorKind::Refused;
        let has_ended =
            move |who: &Identity| host.caller(who).err().as_ref().is_some_and(is_refusal);
        self.0.calls.look(move || Ok(runs.into_iter().filter(has_ended).collect())).await
    }

    fn held(&self) -> std::sync::MutexGuard<'_, HashMap<Identity, OfCaller>> {
        self.0.by_caller.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
