//! The Model Context Protocol over HTTP. Each caller has a service of its own: a connection that one has begun is unknown
//! to every other, whatever id a request brings.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use annals_engine::Result;
use axum::extract::Request;
use axum::http::{Method, StatusCode};
use axum::response::{IntoResponse, Response};
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::calls::{Calls, stopped};
use crate::host::{Host, Identity};
use crate::mcp::{Handler, Service};

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
    pub(super) fn new(
        host: Host,
        body_max: usize,
        calls: Calls,
        mut stop: watch::Receiver<bool>,
    ) -> Self {
        let ends = CancellationToken::new();
        // Which hosts and pages may call is the door's to say, for all routes alike.
        let config = StreamableHttpServerConfig::default()
            .disable_allowed_hosts()
            .disable_allowed_origins()
            .with_max_request_body_bytes(body_max)
            .with_cancellation_token(ends.clone());
        let service = Service::new(host.clone(), stop.clone());
        tokio::spawn(async move {
            stopped(&mut stop).await;
            ends.cancel();
        });
        let by_caller = Mutex::default();
        Self(Arc::new(Shared { host, service, calls, config, by_caller }))
    }

    /// Answers a request of somebody.
    pub(super) async fn answer(&self, who: Identity, request: Request) -> Response {
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
        let has_ended = move |who: &Identity| host.caller(who).is_err();
        self.0.calls.look(move || Ok(runs.into_iter().filter(has_ended).collect())).await
    }

    fn held(&self) -> std::sync::MutexGuard<'_, HashMap<Identity, OfCaller>> {
        self.0.by_caller.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
