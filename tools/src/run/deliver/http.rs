//! A message posted as JSON, signed as Standard Webhooks have it. The answer's status says what became of it: 2xx that it
//! arrived; 408, 425, 429 and 5xx that it may the next time; everything else that it will not. Without an answer it is
//! told apart whether anything of it was sent.

use std::io::Read;
use std::sync::Arc;
use std::time::Duration;

use annals_engine::Result;
use annals_engine::clock::{Clock, SystemClock};
use ureq::http::{StatusCode, Uri};
use ureq::{Agent, SendBody};

use super::line_of;
use super::sink::{Said, Sent};
use crate::ingress::signature::{Secret, id_of, seconds_of};
use crate::run::worker::Parcel;

/// Where a sink posts.
#[derive(Debug)]
pub(super) struct Http {
    target: Arc<Target>,
}

#[derive(Debug)]
struct Target {
    url: Uri,
    secret: Option<Secret>,
    agent: Agent,
}

/// So long it takes at the most to be connected.
const CONNECTING_TAKES_MAX: Duration = Duration::from_secs(10);

/// So much of an answer is read, in bytes.
const ANSWER_BYTES_MAX: u64 = 4 << 10;

impl Http {
    pub(super) fn of(said: &Said<'_>) -> Result<Self> {
        let url = said.needed("url", "where messages are posted")?;
        let url: Uri = url
            .parse()
            .ok()
            .filter(|url: &Uri| {
                url.host().is_some() && matches!(url.scheme_str(), Some("http" | "https"))
            })
            .ok_or_else(|| {
                said.unfit("url", "is no address", "write it like https://example.com/messages")
            })?;
        let secret = said.config.text(&said.path("secret"));
        let secret = secret.map(|text| {
            let hint =
                "it is whsec_ and Base64, such as: echo whsec_$(head -c 24 /dev/urandom | base64)";
            Secret::parse(text)
                .ok_or_else(|| said.unfit("secret", "is no secret for signatures", hint))
        });
        let config = Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .max_redirects_will_error(false)
            // One that was kept may have been closed by now, and then nobody knows what became of what was written to it.
            .max_idle_connections(0)
            .timeout_connect(Some(CONNECTING_TAKES_MAX.min(said.timeout)))
            .timeout_global(Some(said.timeout))
            .user_agent(concat!("annals/", env!("CARGO_PKG_VERSION")));
        let agent = config.build().new_agent();
        Ok(Self { target: Arc::new(Target { url, secret: secret.transpose()?, agent }) })
    }

    pub(super) async fn send(&self, parcel: &Parcel) -> Sent {
        let target = Arc::clone(&self.target);
        let (id, body) = (id_of(&parcel.idempotency_key), line_of(parcel));
        let posted = tokio::task::spawn_blocking(move || target.post(&id, &body)).await;
        posted.unwrap_or_else(|e| Sent::unknown("lost", &e))
    }
}

impl Target {
    fn post(&self, id: &str, body: &[u8]) -> Sent {
        let seconds = seconds_of(SystemClock.now());
        let mut request = self
            .agent
            .post(&self.url)
            .header("content-type", "application/json")
            .header("webhook-id", id)
            .header("webhook-timestamp", seconds.to_string());
        if let Some(secret) = &self.secret {
            let Some(signature) = secret.sign(id, seconds, body) else {
                return Sent::refused("not_signed", &"the secret signs nothing");
            };
            request = request.header("webhook-signature", signature);
        }
        let mut body = Watched { left: body, taken: false };
        let sent = request
            .header("content-length", body.left.len())
            .send(SendBody::from_reader(&mut body));
        match sent {
            Ok(mut answer) => {
                let reader = answer.body_mut().with_config().limit(ANSWER_BYTES_MAX);
                let said = reader.lossy_utf8(true).read_to_string().unwrap_or_default();
                answered(answer.status(), &said)
            }
            Err(error) => unanswered(&error, body.taken),
        }
    }
}

/// A body that knows whether anything of it was asked for.
struct Watched<'a> {
    left: &'a [u8],
    taken: bool,
}

impl Read for Watched<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        self.taken = true;
        self.left.read(buffer)
    }
}

fn answered(status: StatusCode, said: &str) -> Sent {
    let detail = format!("{} {said}", status.as_u16());
    match status.as_u16() {
        200..=299 => Sent::Delivered,
        408 | 425 | 429 | 500..=599 => Sent::retry("http_status", &detail),
        _ => Sent::refused("http_status", &detail),
    }
}

/// What a try without an answer was. Nothing arrived of what was never asked for; of everything else nobody knows.
fn unanswered(error: &ureq::Error, taken: bool) -> Sent {
    use ureq::Error;
    match error {
        Error::BadUri(_) | Error::Http(_) | Error::InvalidProxyUrl | Error::TlsRequired => {
            Sent::refused("not_sent", &error)
        }
        _ if !taken => Sent::retry("not_connected", &error),
        Error::Timeout(_) => Sent::unknown("timeout", &error),
        _ => Sent::unknown("no_answer", &error),
    }
}
