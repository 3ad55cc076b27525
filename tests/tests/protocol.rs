//! The Model Context Protocol without a process: a test says how fast what is sent is taken.
#![expect(clippy::unwrap_used, reason = "what is not as it should be fails the test")]

use std::time::Duration;

use annals_tests::protocol::{CHAT, Served};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};

/// Nothing waits so long where all is well.
const AT_MOST: Duration = Duration::from_secs(60);

/// Goal: who is told that it listens hears of everything from then on, whatever the server has still to do for it. Method:
/// the acknowledgement goes through a pipe of a few bytes and is taken in part, so that the server stands where it sends it;
/// then something is said, and then the rest is taken.
#[test]
fn from_the_acknowledgement_on() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let heard = runtime.block_on(async {
        let served = Served::default();
        let (mut client, read) = duplex(1 << 16);
        let (write, mut answers) = duplex(8);
        let serve = served.serve(read, write);
        let listen = async {
            let uri = format!("session://{CHAT}");
            let request = json!({ "jsonrpc": "2.0", "id": 1, "method": "subscriptions/listen", "params": {
                "notifications": { "resourceSubscriptions": [uri], "resourcesListChanged": true },
                "_meta": {
                    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                    "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
                    "io.modelcontextprotocol/clientCapabilities": {},
                } } });
            client.write_all(format!("{request}\n").as_bytes()).await.unwrap();
            let begun = until(&mut answers, "acknowledged").await;
            served.push("telegram", "42", "now");
            let rest = until(&mut answers, "\n").await;
            let told: Value = serde_json::from_str(&(begun + &rest)).unwrap();
            assert_eq!(told["method"], "notifications/subscriptions/acknowledged", "{told}");
            let heard = until(&mut answers, "\n").await;
            drop(client);
            drop(answers);
            serde_json::from_str::<Value>(&heard).unwrap()
        };
        let both = async { tokio::join!(serve, listen).1 };
        tokio::time::timeout(AT_MOST, both).await.unwrap()
    });
    assert_eq!(heard["method"], "notifications/resources/updated", "{heard}");
    assert_eq!(heard["params"]["uri"], format!("session://{CHAT}"), "{heard}");
}

/// Reads until this has been read.
async fn until(answers: &mut DuplexStream, end: &str) -> String {
    let mut text = Vec::new();
    while !text.ends_with(end.as_bytes()) {
        text.push(answers.read_u8().await.unwrap());
    }
    String::from_utf8(text).unwrap()
}
