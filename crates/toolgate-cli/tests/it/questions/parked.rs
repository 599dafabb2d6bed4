//! The same for a server with a handshake, which asks in the middle of a call: a question that is refused ends its call at
//! once, and the next call finds its place free.

use super::{able, form, sampling, words};
use crate::help::{Gate, Modern, SOON, Setup, TempDir, until};
use serde_json::{Value, json};
use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

/// More calls than may wait.
const CALLS: usize = 5;

struct Server {
    data: Arc<TempDir>,
    told: PathBuf,
    gate: Gate,
}

impl Server {
    /// One call of it may wait for an answer, and for long.
    fn start(more: &str) -> Server {
        let data = Arc::new(TempDir::new("parking"));
        let told = data.file("told");
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../interop/servers/parking.py");
        let config = format!(
            "[limits]\nrate = \"100000/s\"\nparked_calls = 1\nparked_calls_per_caller = 1\nquestion_seconds = 80000\n\
             [server.s]\ncommand = [\"python3\", {script:?}, {:?}, {told:?}]\n{more}\n\
             [[rule]]\ntools = [\"s.*\"]\naction = \"allow\"\n",
            data.file("question.json"),
        );
        let gate = Setup::config(config).start_in(data.clone());
        Server { data, told, gate }
    }

    fn asks(&self, method: &str, params: &Value) {
        let question = json!({"method": method, "params": params});
        self.data.write("question.json", &question.to_string());
    }

    /// One round of a call in 2026-07-28.
    fn round(&self, more: &Value) -> Value {
        let mut params = json!({"name": "s_look", "arguments": {}});
        let more = more.as_object().unwrap().clone();
        params.as_object_mut().unwrap().extend(more);
        let mut body = Modern::body(&json!(1), "tools/call", params);
        body["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"] = able();
        Modern::ask(self.gate.port, Some("s_look"), &body)
    }

    /// Returns the messages that the server received, once there are so many.
    fn told(&self, often: usize) -> Vec<Value> {
        until("the server is told", SOON, || {
            let text = std::fs::read_to_string(&self.told).unwrap_or_default();
            let lines = text.lines().map(|line| serde_json::from_str(line).unwrap());
            let told: Vec<Value> = lines.collect();
            (told.len() >= often).then_some(told)
        })
    }

    /// Each question is refused in these words; the server hears that nobody answers, and that its call is over.
    fn refuses(&self, says: &str, answer: impl Fn(&Value) -> bool) {
        let before = self.told(0).len();
        for n in 1..=CALLS {
            let said = self.round(&json!({}));
            assert!(words(&said).contains(says), "{said}");
            let told = self.told(before + 2 * n);
            let [.., first, second] = told.as_slice() else {
                panic!("{told:?}")
            };
            assert!(answer(first), "{told:?}");
            assert_eq!(second, "cancelled");
        }
    }

    /// A question that may be put leaves, and its call goes on with the answer.
    fn answers(&self, response: Value, told: &Value) {
        let asked = self.round(&json!({}));
        let (questions, state) = (
            &asked["result"]["inputRequests"],
            &asked["result"]["requestState"],
        );
        let key = questions.as_object().and_then(|all| all.keys().next());
        let key = key.unwrap_or_else(|| panic!("{asked}"));
        let again = json!({"inputResponses": {key: response}, "requestState": state});
        let said = self.round(&again);
        let text = said["result"]["content"][0]["text"].as_str().unwrap();
        let heard: Value = serde_json::from_str(text).unwrap();
        assert_eq!(&heard, told);
    }
}

#[test]
fn t51_a_parked_call_whose_form_fishes_ends_at_once() {
    let server = Server::start("");
    server.asks("elicitation/create", &form("password"));
    server.refuses("\"password\"", |told| told["action"] == "cancel");
    server.asks("elicitation/create", &form("city"));
    let answer = json!({"action": "accept", "content": {"city": "Oslo"}});
    server.answers(answer.clone(), &answer);
}

#[test]
fn t52_a_parked_call_whose_question_is_over_the_quota_ends_at_once() {
    let server = Server::start("sampling = \"1/h\"");
    server.asks("sampling/createMessage", &sampling());
    let answer =
        json!({"role": "assistant", "model": "m", "content": {"type": "text", "text": "4"}});
    server.answers(answer.clone(), &answer);
    server.refuses("1 per hour", |told| told["error"].is_string());
}

#[test]
fn t52_a_parked_call_goes_on_where_sampling_is_off() {
    let server = Server::start("");
    server.asks("sampling/createMessage", &sampling());
    for _ in 0..CALLS {
        let said = server.round(&json!({}));
        let text = said["result"]["content"][0]["text"].as_str().unwrap();
        assert!(text.contains("did not declare the capability"), "{said}");
    }
    assert!(server.told(CALLS).iter().all(|told| told != "cancelled"));
}
