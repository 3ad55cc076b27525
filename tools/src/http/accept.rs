//! Connections: accepted while there is room, each with a time limit for the head of a request, and brought to an end when
//! the server stops.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;

use crate::calls::Calls;

/// So many connections are open at a time; further ones wait in the system's queue.
const CONNECTIONS_MAX: usize = 512;

/// A connection has so long for the head of each request.
const HEAD_WITHIN: Duration = Duration::from_secs(15);

/// Connections have so long to end when the server stops.
const ENDS_WITHIN: Duration = Duration::from_secs(5);

/// So long it is waited when the system gives no more connections.
const AFTER_AN_ERROR: Duration = Duration::from_millis(100);

/// Serves connections until all is to end.
pub(super) async fn serve(listener: TcpListener, routes: Router, calls: &Calls) {
    let room = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let graceful = GracefulShutdown::new();
    let mut connections = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            accepted = next(&listener, &room) => accepted,
            () = calls.stopped() => break,
        };
        while connections.try_join_next().is_some() {}
        let Some((stream, permit)) = accepted else { continue };
        let service = TowerToHyperService::new(routes.clone());
        let mut http = http1::Builder::new();
        http.timer(TokioTimer::new()).header_read_timeout(HEAD_WITHIN);
        let connection = graceful.watch(http.serve_connection(TokioIo::new(stream), service));
        connections.spawn(async move {
            // How a connection ended is its client's to know.
            drop(connection.await);
            drop(permit);
        });
    }
    drop(listener);
    drop(tokio::time::timeout(ENDS_WITHIN, graceful.shutdown()).await);
    connections.shutdown().await;
}

/// The next connection, when there is room for it; `None` when the system has none to give now.
async fn next(
    listener: &TcpListener,
    room: &Arc<Semaphore>,
) -> Option<(TcpStream, OwnedSemaphorePermit)> {
    let permit = Arc::clone(room).acquire_owned().await.ok()?;
    match listener.accept().await {
        Ok((stream, _)) => {
            // Answers are small and awaited; a system that cannot do it is only slower.
            drop(stream.set_nodelay(true));
            Some((stream, permit))
        }
        // No descriptor is left, or the client went before it was accepted.
        Err(_) => {
            tokio::time::sleep(AFTER_AN_ERROR).await;
            None
        }
    }
}
