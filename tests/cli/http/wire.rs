//! A server in a home, and a client of HTTP that is nothing but bytes: a test says every header itself.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, ExitStatus};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::support::{Home, Ran};

/// The owner's token.
pub(crate) const OWNER: &str = "owner-token-0123456789";

/// A server at work.
pub(crate) struct Server {
    child: Option<Child>,
    pub(crate) address: SocketAddr,
}

/// What was answered.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Server {
    /// Starts the server of a home, which knows the owner's token.
    pub(crate) fn of(home: &Home, args: &[&str]) -> Self {
        Self::start(home.command(&[&["serve", "--listen", "127.0.0.1:0", "--json"], args].concat()))
    }

    pub(crate) fn start(mut command: Command) -> Self {
        command.env("ANNALS_HTTP_TOKEN", OWNER);
        let mut child = command.spawn().expect("the server starts");
        let mut line = String::new();
        let stdout = child.stdout.as_mut().expect("its output");
        BufReader::new(stdout).read_line(&mut line).expect("a line");
        let Ok(said) = serde_json::from_str::<Value>(&line) else {
            drop(child.kill());
            panic!("{line:?}: {:#?}", Ran::end(child));
        };
        let url = said["url"].as_str().expect("a url");
        assert_eq!(said["mcp"], format!("{url}/mcp"));
        let address = url.strip_prefix("http://").and_then(|at| at.parse().ok());
        Self { child: Some(child), address: address.expect("an address") }
    }

    /// Asks as the owner.
    pub(crate) fn get(&self, path: &str) -> Answer {
        self.ask("GET", path, OWNER, "")
    }

    /// Asks as the owner, and expects success and an object.
    #[track_caller]
    pub(crate) fn json(&self, path: &str) -> Value {
        self.get(path).ok()
    }

    /// Calls a tool with a token.
    pub(crate) fn call(&self, tool: &str, token: &str, args: &Value) -> Answer {
        self.ask("POST", &format!("/v1/tools/{tool}"), token, &args.to_string())
    }

    pub(crate) fn ask(&self, method: &str, path: &str, token: &str, body: &str) -> Answer {
        let head = [format!("Host: {}", self.address), format!("Authorization: Bearer {token}")];
        self.say(&format!("{method} {path}"), &head, body.as_bytes())
    }

    /// Asks with these headers and no others but those of the body and of the end.
    pub(crate) fn say(&self, what: &str, headers: &[String], body: &[u8]) -> Answer {
        let mut stream = self.begin(what, headers, body);
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).expect("an answer");
        Answer::read(&bytes)
    }

    /// The same, and does not wait for the answer.
    pub(crate) fn begin(&self, what: &str, headers: &[String], body: &[u8]) -> TcpStream {
        let mut stream = TcpStream::connect(self.address).expect("a connection");
        let mut head = format!("{what} HTTP/1.1\r\nConnection: close\r\n");
        for header in headers {
            head.push_str(header);
            head.push_str("\r\n");
        }
        head.push_str(&format!("Content-Length: {}\r\n\r\n", body.len()));
        stream.write_all(head.as_bytes()).expect("it reads");
        // A server that refuses a body has closed by now.
        drop(stream.write_all(body));
        stream
    }

    /// Ends it with a signal, and gives how it ended.
    pub(crate) fn end(mut self) -> Ran {
        self.signal();
        Ran::end(self.child.take().expect("a child"))
    }

    /// Kills it, with no chance to say good-bye.
    pub(crate) fn kill(mut self) -> ExitStatus {
        let mut child = self.child.take().expect("a child");
        child.kill().and_then(|()| child.wait()).expect("its end")
    }

    pub(crate) fn signal(&self) {
        let child = self.child.as_ref().expect("a child");
        kill_process(Pid::from_child(child), Signal::TERM).expect("a signal");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            drop(child.kill());
            drop(child.wait());
        }
    }
}

impl Answer {
    pub(crate) fn read(bytes: &[u8]) -> Self {
        let text = String::from_utf8(bytes.to_vec()).expect("UTF-8");
        let (head, body) = text.split_once("\r\n\r\n").expect("a head");
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
        let chunked = head.to_ascii_lowercase().contains("transfer-encoding: chunked");
        let body = if chunked { whole(body) } else { body.to_owned() };
        Self { status: status.expect("a status"), head: head.to_owned(), body }
    }

    /// The value of a header.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| {
            let (said, value) = line.split_once(": ")?;
            said.eq_ignore_ascii_case(name).then_some(value)
        })
    }

    /// The object of a success.
    #[track_caller]
    pub(crate) fn ok(&self) -> Value {
        assert_eq!(self.status, 200, "{self:?}");
        serde_json::from_str(&self.body).expect("JSON")
    }

    /// The error of a refusal with this status and code.
    #[track_caller]
    pub(crate) fn refused(&self, status: u16, code: &str) -> Value {
        let body: Value = serde_json::from_str(&self.body).unwrap_or_default();
        assert_eq!((self.status, &body["error"]["code"]), (status, &Value::from(code)), "{self:?}");
        assert_eq!(body["ok"], false);
        body["error"].clone()
    }

    /// The messages of server-sent events.
    pub(crate) fn events(&self) -> Vec<Value> {
        let data = self.body.lines().filter_map(|line| line.strip_prefix("data: "));
        data.filter_map(|data| serde_json::from_str(data).ok()).collect()
    }
}

/// A body that came in chunks; the last one may be missing.
fn whole(mut body: &str) -> String {
    let mut text = String::new();
    while let Some((size, rest)) = body.split_once("\r\n") {
        let size = usize::from_str_radix(size, 16).expect("a size");
        if size == 0 {
            break;
        }
        text.push_str(&rest[..size]);
        body = rest[size..].trim_start_matches("\r\n");
    }
    text
}
