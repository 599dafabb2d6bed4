//! A conversation of which one side is ours: what ours says must fit the schema of its method and revision.

pub(crate) use super::table::Side;
use super::{schema, table};
use serde_json::Value;
use std::collections::{HashMap, HashSet};
use toolgate_protocol::json::{Json, JsonLimits};

const VERSION: &str = "io.modelcontextprotocol/protocolVersion";

/// State of a conversation that determines the schema of the next message.
pub(crate) struct Talk {
    ours: Side,
    /// Once there was a handshake.
    session: Option<&'static str>,
    /// The requests of either side: method and revision by id.
    asked: HashMap<(Side, String), (String, &'static str)>,
    /// The methods of the questions of the last result that had some.
    questions: HashMap<String, String>,
    /// The ids of our requests that no other may have: in a session all of them, else those that wait for a reply.
    taken: HashSet<String>,
}

impl Talk {
    /// A conversation of which that side is ours.
    pub(crate) fn of(ours: Side) -> Talk {
        Talk {
            ours,
            session: None,
            asked: HashMap::new(),
            questions: HashMap::new(),
            taken: HashSet::new(),
        }
    }

    /// A header says the revision.
    pub(crate) fn speaks(&mut self, revision: &str) {
        self.session = known(&Value::from(revision)).or(self.session);
    }

    /// The transport took no request with this id.
    pub(crate) fn refused(&mut self, id: &Value) {
        self.taken.remove(&id.to_string());
    }

    /// The other side sent this, good or bad.
    pub(crate) fn heard(&mut self, line: &str) {
        let Some(message) = read(line) else {
            return;
        };
        for message in each(&message) {
            self.remember(self.ours.other(), message);
            let is_reply = message.get("method").is_none();
            if is_reply && self.session.is_none_or(|spoken| spoken == table::NEWEST) {
                self.taken.remove(&message["id"].to_string());
            }
        }
    }

    /// We sent this. Panics where it is not what the schema wants.
    pub(crate) fn said(&mut self, line: &str) {
        if let Err(why) = self.check(line) {
            panic!("{why}\nin {line}");
        }
    }

    /// The same, with what is wrong as a value.
    pub(crate) fn check(&mut self, line: &str) -> Result<(), String> {
        if line.trim().is_empty() {
            return Ok(());
        }
        let whole = read(line).ok_or("no JSON")?;
        if whole.is_array() && self.session != Some(table::BATCHES) {
            return Err(format!("an array of messages in {:?}", self.session));
        }
        for message in each(&whole) {
            self.take(message)?;
            self.remember(self.ours, message);
            self.message(message)?;
        }
        Ok(())
    }

    /// Takes the id of a request of ours.
    fn take(&mut self, message: &Value) -> Result<(), String> {
        let (Some(method), Some(id)) = (message["method"].as_str(), message.get("id")) else {
            return Ok(());
        };
        if method == "initialize" {
            self.taken.clear();
        }
        match self.taken.insert(id.to_string()) {
            true => Ok(()),
            false => Err(format!("a second request with the id {id}")),
        }
    }

    fn remember(&mut self, from: Side, message: &Value) {
        let method = message["method"].as_str();
        if let (Some(method), Some(id)) = (method, message.get("id")) {
            if method == "initialize" {
                // The newest has no handshake: the answer names another.
                let offer = known(&message["params"]["protocolVersion"]);
                self.session = offer.filter(|r| *r != table::NEWEST).or(self.session);
            }
            let revision = self.revision(from, message);
            self.asked
                .insert((from, id.to_string()), (method.to_owned(), revision));
        }
        if let Some(opened) = known(&message["result"]["protocolVersion"]) {
            self.session = Some(opened);
        }
        for (key, ask) in members(&message["result"]["inputRequests"]) {
            let method = ask["method"].as_str().unwrap_or_default();
            self.questions.insert(key.clone(), method.to_owned());
        }
    }

    /// The revision of a request or notification: its own, else that of the session.
    fn revision(&self, from: Side, message: &Value) -> &'static str {
        let own = known(&message["params"]["_meta"][VERSION]);
        let session = match self.ours {
            // A server with a session takes all as its messages.
            Side::Server => self.session.or(own),
            Side::Client => own.or(self.session),
        };
        let method = message["method"].as_str().unwrap_or_default();
        session.unwrap_or_else(|| table::newest_with(method, from))
    }

    fn message(&self, message: &Value) -> Result<(), String> {
        match message["method"].as_str() {
            Some(method) => self.request(method, message),
            None if message.get("error").is_some() => self.error(message),
            None => self.reply(message),
        }
    }

    fn request(&self, method: &str, message: &Value) -> Result<(), String> {
        let revision = self.revision(self.ours, message);
        if revision == table::NEWEST && of_extension(method, &Value::Null) {
            return fits(revision, "JSONRPCRequest", message);
        }
        if revision == table::NEWEST && method == "notifications/tasks" {
            return fits(revision, "JSONRPCNotification", message);
        }
        let row = table::row(revision, method, self.ours)
            .ok_or_else(|| format!("{revision} has no {method} from {:?}", self.ours))?;
        let envelope = match row.result {
            Some(_) => "JSONRPCRequest",
            None => "JSONRPCNotification",
        };
        if row.result.is_none() && message.get("id").is_some() {
            return Err("a notification with an id".to_owned());
        }
        if revision == table::NEWEST && method == "notifications/cancelled" {
            self.cancels_what_it_may(message)?;
        }
        fits(revision, envelope, message)?;
        fits(revision, row.message, message)?;
        for (key, answer) in members(&message["params"]["inputResponses"]) {
            let asked = self.questions.get(key).and_then(|m| table::question(m));
            let (_, answers) = asked.ok_or_else(|| format!("nobody asked for {key:?}"))?;
            fits(revision, answers, answer)?;
        }
        Ok(())
    }

    /// Since 2026-07-28 a server cancels streams of notifications and nothing else.
    fn cancels_what_it_may(&self, message: &Value) -> Result<(), String> {
        let asked = self.asked_by_them(&message["params"]["requestId"]);
        match asked.map(|(method, _)| method.as_str()) {
            Some("subscriptions/listen") => Ok(()),
            _ if self.ours == Side::Client => Ok(()),
            other => Err(format!("a server cancels {other:?}")),
        }
    }

    fn error(&self, message: &Value) -> Result<(), String> {
        let revision = match message.get("id") {
            Some(id) => self.asked_by_them(id).map(|(_, revision)| *revision),
            None => None,
        };
        let revision = revision.or(self.session).unwrap_or(table::NEWEST);
        let mut message = message.clone();
        if message.get("id").is_none() && table::errors_have_ids(revision) {
            message["id"] = 0.into();
        }
        fits(revision, table::error_reply(revision), &message)?;
        let code = message["error"]["code"].as_i64().unwrap_or_default();
        let text = message["error"]["message"].as_str().unwrap_or_default();
        let is_relayed = text.starts_with("the server ") && text.contains("answered");
        if !table::may_have_code(revision, code, is_relayed) {
            return Err(format!("{revision} allows no error with the code {code}"));
        }
        match table::error_of(revision, code) {
            Some(definition) => fits(revision, definition, &message),
            None => Ok(()),
        }
    }

    fn reply(&self, message: &Value) -> Result<(), String> {
        let id = message.get("id").ok_or("a reply without an id")?;
        let (method, revision) = self
            .asked_by_them(id)
            .ok_or_else(|| format!("a reply to {id}, which nobody asked"))?;
        fits(revision, table::good_reply(revision), message)?;
        if *revision == table::NEWEST && of_extension(method, &message["result"]) {
            return Ok(());
        }
        let row = table::row(revision, method, self.ours.other())
            .ok_or_else(|| format!("a result of {method}, which {revision} has not"))?;
        let result = &message["result"];
        if result["resultType"] == "input_required" {
            return questions(revision, result);
        }
        if method == "tools/call" && result.get("task").is_some() {
            return fits(revision, "CreateTaskResult", result);
        }
        fits(revision, row.result.ok_or("no request")?, result)
    }

    fn asked_by_them(&self, id: &Value) -> Option<&(String, &'static str)> {
        self.asked.get(&(self.ours.other(), id.to_string()))
    }
}

/// The extension has a schema of its own, which is not here.
fn of_extension(method: &str, result: &Value) -> bool {
    method.starts_with("tasks/")
        || method.starts_with("skills/")
        || method == "resources/directory/read"
        || (method == "tools/call" && result["resultType"] == "task")
}

fn questions(revision: &str, result: &Value) -> Result<(), String> {
    fits(revision, "InputRequiredResult", result)?;
    for (_, ask) in members(&result["inputRequests"]) {
        let method = ask["method"].as_str().unwrap_or_default();
        let (asks, _) =
            table::question(method).ok_or_else(|| format!("{method} is no question"))?;
        fits(revision, asks, ask)?;
    }
    Ok(())
}

fn fits(revision: &str, definition: &str, value: &Value) -> Result<(), String> {
    match schema::wrong(revision, definition, value) {
        Some(why) => Err(why),
        None => Ok(()),
    }
}

/// Our reader takes numbers that serde_json does not.
fn read(line: &str) -> Option<Value> {
    let read = serde_json::from_str(line).ok();
    let ours = || Json::read(line.as_bytes().to_vec(), &JsonLimits::default()).ok();
    read.or_else(|| Some(ours()?.to_value()))
}

fn each(message: &Value) -> &[Value] {
    match message {
        Value::Array(messages) => messages,
        one => std::slice::from_ref(one),
    }
}

fn members(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().into_iter().flatten()
}

fn known(revision: &Value) -> Option<&'static str> {
    table::REVISIONS
        .into_iter()
        .find(|r| Some(*r) == revision.as_str())
}
