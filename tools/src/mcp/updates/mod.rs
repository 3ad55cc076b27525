//! Who wants to hear of changes, and the follower of the log that tells them. Many changes of one resource within a moment
//! are told once; what is told says that something changed, never what: whoever hears it reads.

mod bell;

pub(super) use bell::Bell;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use annals_engine::id::StreamName;
use annals_engine::store::{Cursor, Item, Read};
use annals_engine::{Error, ErrorKind, Result};
use rmcp::model::ResourceUpdatedNotificationParam;
use rmcp::service::SubscriptionSink;
use rmcp::{Peer, RoleServer};
use tokio::sync::Notify;

use super::Service;
use super::resource::Named;
use crate::host::{Host, Identity};

/// The most resources that one connection hears of.
const RESOURCES_MAX: usize = 256;

/// So long changes are gathered before they are told.
const GATHER: Duration = Duration::from_millis(100);

/// One who wants to hear.
#[derive(Default)]
struct Listener {
    wanted: Mutex<Wanted>,
    ring: Notify,
    closed: AtomicBool,
}

#[derive(Default)]
struct Wanted {
    /// The names under which the client asked, by the stream that tells of the resource.
    resources: BTreeMap<StreamName, BTreeSet<String>>,
    lists: bool,
    news: News,
}

/// What has changed and was not told yet.
#[derive(Debug, Default)]
struct News {
    resources: BTreeSet<(StreamName, String)>,
    sessions: BTreeSet<StreamName>,
}

/// What a connection wants to hear of, until it is dropped.
pub(super) struct Subscriptions {
    listener: Arc<Listener>,
}

/// Where news go.
enum Out {
    Peer(Peer<RoleServer>),
    Stream(SubscriptionSink),
}

impl Service {
    /// Subscriptions of a connection: what changes is told to its client.
    ///
    /// # Errors
    /// Whatever reading meets.
    pub(super) fn subscribe_peer(
        &self,
        who: Identity,
        peer: Peer<RoleServer>,
    ) -> Result<Subscriptions> {
        self.subscribe(who, Out::Peer(peer))
    }

    /// Subscriptions of one request that stays open.
    ///
    /// # Errors
    /// Whatever reading meets.
    pub(super) fn subscribe_stream(
        &self,
        who: Identity,
        sink: SubscriptionSink,
    ) -> Result<Subscriptions> {
        self.subscribe(who, Out::Stream(sink))
    }

    fn subscribe(&self, who: Identity, out: Out) -> Result<Subscriptions> {
        let listener = self.bell.listen()?;
        tokio::spawn(tell(self.host.clone(), who, Arc::clone(&listener), out));
        Ok(Subscriptions { listener })
    }
}

impl Subscriptions {
    /// Tells also of this resource from now on.
    ///
    /// # Errors
    /// `TooLarge` for more than one connection hears of.
    pub(super) fn add(&self, uri: String, stream: StreamName) -> Result<()> {
        let mut wanted = held(&self.listener.wanted);
        let count: usize = wanted.resources.values().map(BTreeSet::len).sum();
        if count >= RESOURCES_MAX {
            let message = format!("a connection hears of {RESOURCES_MAX} resources at the most");
            return Err(Error::new(ErrorKind::TooLarge, message).field("uri"));
        }
        wanted.resources.entry(stream).or_default().insert(uri);
        Ok(())
    }

    /// Tells of this resource no more.
    pub(super) fn remove(&self, uri: &str) {
        let mut wanted = held(&self.listener.wanted);
        wanted.resources.retain(|_, uris| {
            uris.remove(uri);
            !uris.is_empty()
        });
        wanted.news.resources.retain(|(_, name)| name != uri);
    }

    /// Takes note of what has happened after a place of the log, too; where none is known, of everything. What was told
    /// already may be told again.
    pub(super) fn catching_up(
        &self,
        since: Option<Option<Cursor>>,
    ) -> impl FnOnce(&Service, &AtomicBool) -> Result<()> + Send + 'static {
        let listener = Arc::clone(&self.listener);
        move |service, _| {
            let Some(since) = since else {
                listener.lose();
                return Ok(());
            };
            for item in service.host.engine().read(Read::after(since))? {
                match item? {
                    Item::Record(record) => listener.hear(&record.stream, record.kind.as_str()),
                    Item::Gap(_) => listener.lose(),
                }
            }
            Ok(())
        }
    }

    /// Tells also when the list of resources changes.
    pub(super) fn add_lists(&self) {
        held(&self.listener.wanted).lists = true;
    }
}

impl Drop for Subscriptions {
    fn drop(&mut self) {
        self.listener.closed.store(true, Ordering::SeqCst);
        self.listener.ring.notify_one();
    }
}

impl Listener {
    /// Takes note of an event; whether anything that is wanted has changed.
    fn hear(&self, stream: &StreamName, kind: &str) {
        let mut wanted = held(&self.wanted);
        let Wanted { resources, lists, news } = &mut *wanted;
        let mut heard = false;
        for uri in resources.get(stream).into_iter().flatten() {
            heard |= news.resources.insert((stream.clone(), uri.clone()));
        }
        if *lists && kind.starts_with("session.") && kind != "session.trimmed" {
            heard |= news.sessions.insert(stream.clone());
        }
        if heard {
            self.ring.notify_one();
        }
    }

    /// Takes everything for changed.
    fn lose(&self) {
        let mut wanted = held(&self.wanted);
        let Wanted { resources, news, .. } = &mut *wanted;
        for (stream, uris) in resources {
            news.resources.extend(uris.iter().map(|uri| (stream.clone(), uri.clone())));
        }
        self.ring.notify_one();
    }
}

impl fmt::Debug for Subscriptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subscriptions").finish_non_exhaustive()
    }
}

/// Tells a listener's news as they come, until it is closed or nobody takes them.
async fn tell(host: Host, who: Identity, listener: Arc<Listener>, out: Out) {
    loop {
        listener.ring.notified().await;
        if listener.closed.load(Ordering::SeqCst) {
            return;
        }
        tokio::time::sleep(GATHER).await;
        let news = std::mem::take(&mut held(&listener.wanted).news);
        let (host, who) = (host.clone(), who.clone());
        let seen = tokio::task::spawn_blocking(move || seen(&host, &who, news)).await;
        // Who sees nothing any more, such as a run that has ended, hears nothing.
        let Ok(Ok((uris, lists))) = seen else { continue };
        for uri in uris {
            if out.updated(uri).await.is_none() {
                return;
            }
        }
        if lists && out.lists().await.is_none() {
            return;
        }
    }
}

/// What of the news the listener may know: the resources, and whether the list has changed.
fn seen(host: &Host, who: &Identity, news: News) -> Result<(BTreeSet<String>, bool)> {
    let caller = host.caller(who)?;
    host.look(None, |view| {
        let sessions = view.sessions.state();
        let sees =
            |key: &StreamName| sessions.row(key).is_some_and(|row| caller.sees(sessions, row));
        let lists = caller.tools.has("sessions_list") && news.sessions.iter().any(sees);
        let still = |(stream, uri): (StreamName, String)| {
            let named = Named::read(&uri).ok()?;
            (named.stream(&caller, view).ok()? == stream).then_some(uri)
        };
        Ok((news.resources.into_iter().filter_map(still).collect(), lists))
    })
}

impl Out {
    /// Tells that a resource has changed; `None` when nobody takes it.
    async fn updated(&self, uri: String) -> Option<()> {
        match self {
            Self::Peer(peer) => {
                peer.notify_resource_updated(ResourceUpdatedNotificationParam::new(uri)).await.ok()
            }
            Self::Stream(sink) => sink.notify_resource_updated(uri).await.ok(),
        }
    }

    /// Tells that the list has changed; `None` when nobody takes it.
    async fn lists(&self) -> Option<()> {
        match self {
            Self::Peer(peer) => peer.notify_resource_list_changed().await.ok(),
            Self::Stream(sink) => sink.notify_resource_list_changed().await.ok(),
        }
    }
}

fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
