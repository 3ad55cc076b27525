//! A client of the protocol that is nothing but lines: what it sends is what a test says, and of what it gets every line is
//! held against JSON-RPC.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command};

use serde_json::{Value, json};

/// The revision that begins with a handshake, and the one that does without.
pub(crate) const ERAS: [&str; 2] = ["2025-11-25", "2026-07-28"];

/// A server, and what speaks to it.
pub(crate) struct Client {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    /// What every request says of itself, in revisions that want it.
    meta: Option<Value>,
    next: u64,
    /// What was told without being asked for, in order.
    pub(crate) told: Vec<Value>,
}

/// How a server ended, and what else it said.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    pub(crate) rest: Vec<Value>,
    pub(crate) stderr: String,
}

impl Client {
    /// Starts a server and says nothing.
    pub(crate) fn start(mut command: Command) -> Self {
        let mut child = command.stdin(std::process::Stdio::piped()).spawn().expect("the server");
        let input = child.stdin.take();
        let output = BufReader::new(child.stdout.take().expect("its output"));
        Self { child, input, output, meta: None, next: 1, told: Vec::new() }
    }

    /// Starts a server and speaks this revision with it.
    pub(crate) fn speaking(command: Command, era: &str) -> Self {
        let mut client = Self::start(command);
        client.speak(era);
        client
    }

    /// Speaks this revision from now on; gives what the server says of itself.
    pub(crate) fn speak(&mut self, era: &str) -> Value {
        let who = json!({ "name": "test", "version": "1" });
        if era >= "2026-07-28" {
            self.meta = Some(json!({
                "io.modelcontextprotocol/protocolVersion": era,
                "io.modelcontextprotocol/clientInfo": who,
                "io.modelcontextprotocol/clientCapabilities": {},
            }));
            return self.ok("server/discover", json!({}));
        }
        let hello = json!({ "protocolVersion": era, "capabilities": {}, "clientInfo": who });
        let answer = self.ok("initialize", hello);
        self.notify("notifications/initialized", &json!({}));
        answer
    }

    /// Numbers requests from here on: what other lines have used as an id is none of ours.
    pub(crate) fn next_id(&mut self, next: u64) {
        self.next = next;
    }

    /// Sends a line as it is.
    pub(crate) fn line(&mut self, line: &[u8]) {
        let input = self.input.as_mut().expect("an open input");
        input.write_all(line).and_then(|()| input.write_all(b"\n")).expect("the server reads");
    }

    /// Sends a request, and gives its id.
    pub(crate) fn request(&mut self, method: &str, mut params: Value) -> u64 {
        let id = self.next;
        self.next += 1;
        if let Some(Value::Object(meta)) = self.meta.clone() {
            let all = params.as_object_mut().expect("an object");
            let own = all.entry("_meta").or_insert_with(|| json!({}));
            own.as_object_mut().expect("an object").extend(meta);
        }
        let request = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        self.line(request.to_string().as_bytes());
        id
    }

    /// Sends a notification.
    pub(crate) fn notify(&mut self, method: &str, params: &Value) {
        let told = json!({ "jsonrpc": "2.0", "method": method, "params": params });
        self.line(told.to_string().as_bytes());
    }

    /// The next message; `None` at the end.
    pub(crate) fn message(&mut self) -> Option<Value> {
        let mut line = String::new();
        let read = self.output.read_line(&mut line).expect("a line of text");
        (read > 0).then(|| message(&line))
    }

    /// Waits for the answer to a request.
    #[track_caller]
    pub(crate) fn answer(&mut self, id: u64) -> Value {
        loop {
            let message = self.message().expect("an answer before the end");
            if message["id"] == id {
                return message;
            }
            self.told.push(message);
        }
    }

    /// Asks and waits for the answer.
    #[track_caller]
    pub(crate) fn ask(&mut self, method: &str, params: Value) -> Value {
        let id = self.request(method, params);
        self.answer(id)
    }

    /// Asks, and gives the result.
    #[track_caller]
    pub(crate) fn ok(&mut self, method: &str, params: Value) -> Value {
        let mut answer = self.ask(method, params);
        assert!(answer["error"].is_null(), "{method}: {answer}");
        answer["result"].take()
    }

    /// Asks, and gives the error.
    #[track_caller]
    pub(crate) fn refused(&mut self, method: &str, params: Value) -> Value {
        let mut answer = self.ask(method, params);
        assert!(answer["error"]["code"].is_i64(), "{method}: {answer}");
        answer["error"].take()
    }

    /// Calls a tool; gives whether it failed, and its answer, which is the same as text and as a value.
    #[track_caller]
    pub(crate) fn call(&mut self, tool: &str, arguments: &Value) -> (bool, Value) {
        let mut result = self.ok("tools/call", json!({ "name": tool, "arguments": arguments }));
        let text = result["content"][0]["text"].as_str().expect("text");
        let text: Value = serde_json::from_str(text).expect("JSON");
        assert_eq!(result["content"].as_array().map(Vec::len), Some(1), "{result}");
        assert_eq!(result["structuredContent"], text);
        (result["isError"] == true, result["structuredContent"].take())
    }

    /// The next thing told without being asked for.
    #[track_caller]
    pub(crate) fn hear(&mut self) -> Value {
        if self.told.is_empty() { self.message().expect("news") } else { self.told.remove(0) }
    }

    /// Closes the input, and waits for the end.
    pub(crate) fn end(mut self) -> Ended {
        drop(self.input.take());
        let mut rest = String::new();
        self.output.read_to_string(&mut rest).expect("text");
        let output = self.child.wait_with_output().expect("its end");
        Ended {
            code: output.status.code(),
            rest: rest.lines().map(message).collect(),
            stderr: String::from_utf8(output.stderr).expect("UTF-8"),
        }
    }
}

/// A line as a message of JSON-RPC.
#[track_caller]
fn message(line: &str) -> Value {
    let message: Value = serde_json::from_str(line).expect("a line of JSON");
    assert_eq!(message["jsonrpc"], "2.0", "{line}");
    let told = ["method", "result", "error"].iter().filter(|name| !message[**name].is_null());
    assert_eq!(told.count(), 1, "{line}");
    message
}
