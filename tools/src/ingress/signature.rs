//! Signatures of Standard Webhooks 1.0 (<https://www.standardwebhooks.com>): HMAC-SHA256 over id, time and body.

use annals_engine::clock::Timestamp;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};

/// What is signed with. It is never shown.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Secret(Vec<u8>);

/// A message and what is said to be its signature.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Signed<'a> {
    /// The header `webhook-id`.
    pub(crate) id: &'a str,
    /// The header `webhook-timestamp`.
    pub(crate) timestamp: &'a str,
    /// The header `webhook-signature`: one or more, with spaces between them.
    pub(crate) signatures: &'a str,
    /// The body, byte for byte.
    pub(crate) body: &'a [u8],
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret")
    }
}

impl Secret {
    /// A secret as it is handed out: `whsec_` and Base64. `None` when it is not of that form.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let key = STANDARD.decode(text.strip_prefix("whsec_")?).ok()?;
        Some(Self(key)).filter(|secret| !secret.0.is_empty())
    }

    /// How many bytes it has.
    pub(crate) const fn len(&self) -> usize {
        self.0.len()
    }

    /// The header `webhook-signature`.
    pub(crate) fn sign(&self, id: &str, seconds: i64, body: &[u8]) -> Option<String> {
        let mut mac = <Hmac<Sha256> as KeyInit>::new_from_slice(&self.0).ok()?;
        mac.update(format!("{id}.{seconds}.").as_bytes());
        mac.update(body);
        Some(format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes())))
    }

    /// Whether one of the signatures of a header is that of a message, and the message is of now. The comparison takes as
    /// long for a wrong signature as for a right one.
    pub(crate) fn has_signed(&self, signed: &Signed<'_>, now: Timestamp) -> bool {
        let Ok(seconds) = signed.timestamp.parse::<i64>() else { return false };
        if seconds_of(now).abs_diff(seconds) > WINDOW_SECONDS {
            return false;
        }
        let Ok(mut mac) = <Hmac<Sha256> as KeyInit>::new_from_slice(&self.0) else { return false };
        mac.update(format!("{}.{seconds}.", signed.id).as_bytes());
        mac.update(signed.body);
        let each = signed.signatures.split(' ').filter_map(|one| one.strip_prefix("v1,"));
        let mut read = each.filter_map(|one| STANDARD.decode(one).ok());
        read.any(|one| mac.clone().verify_slice(&one).is_ok())
    }
}

/// So far a signed time may lie from ours, in seconds: what was recorded on the way is no use later.
const WINDOW_SECONDS: u64 = 300;

/// The header `webhook-id`: the idempotency key where it can stand in a header and between the dots of what is signed;
/// else a hash of it, which is the same for each try too.
pub(crate) fn id_of(key: &str) -> String {
    /// The longest header that every receiver takes.
    const BYTES_MAX: usize = 200;
    let fits = |byte: u8| byte.is_ascii_graphic() && byte != b'.';
    if !key.is_empty() && key.len() <= BYTES_MAX && key.bytes().all(fits) {
        return key.to_owned();
    }
    let hash = Sha256::digest(key.as_bytes());
    format!("msg_{}", hash.iter().map(|byte| format!("{byte:02x}")).collect::<String>())
}

/// The header `webhook-timestamp`: whole seconds since 1970.
pub(crate) fn seconds_of(now: Timestamp) -> i64 {
    now.as_micros().div_euclid(1_000_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: a receiver that follows the specification takes our signatures. Method: its own example.
    #[test]
    fn the_example_of_the_specification() {
        let secret = Secret::parse("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap();
        let body = br#"{"test": 2432232314}"#;
        let signature = secret.sign("msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, body);
        assert_eq!(signature.as_deref(), Some("v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="));
        assert_eq!(format!("{secret:?}"), "Secret");
        for text in ["", "whsec_", "whsec_*", "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"] {
            assert_eq!(Secret::parse(text), None, "{text:?}");
        }
    }

    /// Goal: a message is taken when it was signed with the secret within five minutes, and no other. Method: one signed by
    /// the sink, with each part changed.
    #[test]
    fn signed_by_whom_and_when() {
        let secret = Secret::parse("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap();
        let signature = secret.sign("m1", 1_000_000, b"{}").unwrap();
        let others = format!("v1,AAAA v2,x {signature}");
        let right = Signed { id: "m1", timestamp: "1000000", signatures: &others, body: b"{}" };
        let at = |seconds: i64| Timestamp::from_millis(seconds * 1_000);
        for seconds in [999_700, 1_000_000, 1_000_300] {
            assert!(secret.has_signed(&right, at(seconds)), "{seconds}");
        }
        for seconds in [999_699, 1_000_301] {
            assert!(!secret.has_signed(&right, at(seconds)), "{seconds}");
        }
        for wrong in [
            Signed { id: "m2", ..right },
            Signed { timestamp: "1000001", ..right },
            Signed { timestamp: "x", ..right },
            Signed { body: b"{ }", ..right },
            Signed { signatures: "v1,AAAA", ..right },
            Signed { signatures: "", ..right },
        ] {
            assert!(!secret.has_signed(&wrong, at(1_000_000)), "{wrong:?}");
        }
    }

    /// Goal: an id can stand in a header and is the same for each try. Method: keys of all sorts.
    #[test]
    fn ids() {
        assert_eq!(id_of("delivery:v1:telegram:42:run:7"), "delivery:v1:telegram:42:run:7");
        for key in ["", "a.b", "a b", "é", "a\r\nb", &"x".repeat(201)] {
            let id = id_of(key);
            assert!(id.starts_with("msg_") && id.len() == 68, "{id}");
            assert_eq!(id, id_of(key));
        }
        assert_ne!(id_of("a.b"), id_of("a.c"));
        assert_eq!(seconds_of(Timestamp::from_millis(1_614_265_330_999)), 1_614_265_330);
    }
}
