//! Browser sessions of the console: a link that this program printed is exchanged for a session.
//!
//! A session is two secrets. Browsers send the cookie to every port of this machine, so another web server on it can
//! learn the cookie. The key is in the storage of our own origin, port included, and only our page sends it.
//!
//! The state of the data directory has the digests of both, so a session outlives a restart. It is valid at the
//! address whose cookie it has. Another gateway of the data directory has another port, and so another cookie.

use crate::console_roles::AttestedPerson;
use crate::{
    authentication::equal_secrets, operator::control::person, runtime::base_url::BaseUrl,
    timestamp::millis,
};
use ring::digest::{SHA256, digest};
use serde_json::{Value, json};
use std::{
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant, SystemTime},
};
use toolgate::ids;
use toolgate_policy::{ApprovalChannel, Approver, StateRow, StateStore, WritePrecondition};
use toolgate_protocol::hex;

/// Lifetime of an unused link.
const CONSOLE_LINK_LIFETIME: Duration = Duration::from_secs(24 * 3600);
/// Lifetime of a session.
const SESSION_LIFETIME: Duration = Duration::from_secs(7 * 24 * 3600);
/// Maximum number of unused links. The oldest is removed.
const MAX_LINKS: usize = 32;
/// Maximum number of sessions of one console. The oldest is removed.
const MAX_SESSIONS: usize = 256;
/// Name of the table of sessions in the state of the data directory.
const SESSIONS_TABLE: &str = "console_logins";
/// Characters of a session's id in lists.
const LISTED_ID_CHARS: usize = 12;
/// Maximum time between two checks whether a session has expired.
const MAX_CHECK_INTERVAL: Duration = Duration::from_secs(3600);

/// Printed links and browser sessions of the console.
pub(crate) struct ConsoleSessions {
    /// URL of the console.
    url: String,
    cookie: String,
    links: Mutex<Vec<(ConsoleLink, Instant)>>,
    store: Arc<dyn StateStore>,
}

/// Printed link: its token, and the person for whom it is.
struct ConsoleLink {
    token: String,
    label: Option<Arc<str>>,
}

/// New session, which a browser gets for a link.
pub(crate) struct NewConsoleSession {
    /// The value of `Set-Cookie`.
    pub(crate) cookie: String,
    /// Key that the page has to send with the cookie.
    pub(crate) key: String,
}

/// Browser session of the console.
#[derive(Debug)]
pub(crate) struct ConsoleSession {
    /// Row key in the table: the digest of the cookie.
    id: String,
    /// Person who is logged in.
    pub(crate) who: Approver,
    /// Person as an issuer attests them; `None` for the session of a link, which has all rights.
    pub(crate) person: Option<AttestedPerson>,
}

impl ConsoleSessions {
    /// Creates the sessions of the console at that URL. The cookie's name has the port of the listener, because
    /// browsers share cookies between ports.
    pub(crate) fn new(base: &BaseUrl, port: u16, store: Arc<dyn StateStore>) -> ConsoleSessions {
        ConsoleSessions {
            url: base.console(),
            cookie: format!("toolgate_{port}"),
            links: Mutex::default(),
            store,
        }
    }

    /// Returns the URL of the console at the listener.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// Creates a link that is valid once, for the person of that label. An empty label is the owner of this process.
    /// It leads to this address of the console, or to the listener.
    ///
    /// # Errors
    /// The label is not a valid name.
    pub(crate) fn create_link(&self, label: &str, console: Option<&str>) -> Result<String, String> {
        if !is_label(label) {
            return Err(format!(
                "{label:?} is not a valid name for a person; use at most 64 letters, digits, '.', '-' and '_', but not the names \"console\" and \"terminal\""
            ));
        }
        let token = ids::secret_id();
        let link = ConsoleLink {
            token: token.clone(),
            label: (!label.is_empty()).then(|| label.into()),
        };
        add_link(&self.links, link);
        let address = console.unwrap_or(&self.url);
        Ok(format!("{address}#token={token}"))
    }

    /// Exchanges the token of a link for a session; `None` if there is no such link. Over TLS, browsers may send its
    /// cookie over TLS only.
    ///
    /// # Errors
    /// The session cannot be written to the state.
    pub(crate) async fn create_session(
        &self,
        token: &str,
        is_https: bool,
    ) -> Result<Option<NewConsoleSession>, String> {
        let Some(label) = self.take_link(token) else {
            return Ok(None);
        };
        let session = json!({"label": label.as_deref()});
        let created = self.store_session(session, SESSION_LIFETIME, is_https);
        created.await.map(Some)
    }

    /// Creates a session for a person whom an issuer signed in.
    ///
    /// # Errors
    /// The session cannot be written to the state.
    pub(crate) async fn create_person_session(
        &self,
        person: &AttestedPerson,
        lifetime: Duration,
        is_https: bool,
    ) -> Result<NewConsoleSession, String> {
        let session = json!({"person": person.to_value()});
        self.store_session(session, lifetime, is_https).await
    }

    async fn store_session(
        &self,
        mut session: Value,
        lifetime: Duration,
        is_https: bool,
    ) -> Result<NewConsoleSession, String> {
        let (secret, key) = (ids::secret_id(), ids::secret_id());
        let now = self.store.clock().now();
        session["console"] = json!(self.cookie);
        let field = key_field(&session);
        session[field] = json!(digest_of("key", &key));
        session["since"] = json!(millis(now));
        session["expires"] = json!(millis(now + lifetime));
        self.evict_sessions(now).await;
        let id = self.session_id(&secret);
        let written = self.store.write(
            SESSIONS_TABLE,
            &id,
            Some(session),
            WritePrecondition::Absent,
        );
        written.await.map_err(|e| e.public_message().to_owned())?;
        Ok(NewConsoleSession {
            cookie: self.set_cookie(&secret, lifetime, is_https),
            key,
        })
    }

    /// Returns the valid sessions of the data directory, oldest first, without secrets.
    pub(crate) fn list_sessions(&self) -> Value {
        let now = millis(self.store.clock().now());
        let mut rows = self.store.entries(SESSIONS_TABLE);
        rows.retain(|row| number(row, "expires").is_some_and(|end| end > now));
        rows.sort_by_key(|row| number(row, "since"));
        let rows = rows.iter().filter_map(|row| {
            let person = &row.value["person"];
            json!({
                "id": short_id(&row.key), "who": person_of(&row.value)?.name.as_deref(), "issuer": person["issuer"],
                "groups": person["attributes"]["groups"], "since": row.value["since"], "expires": row.value["expires"],
            })
            .into()
        });
        rows.collect::<Value>()
    }

    /// Ends the session with this id of the list; returns the name of its person.
    ///
    /// # Errors
    /// No session has the id, or the state cannot be written.
    pub(crate) async fn end_listed_session(&self, id: &str) -> Result<String, String> {
        let rows = self.store.entries(SESSIONS_TABLE);
        let row = rows.iter().find(|row| short_id(&row.key) == id);
        let row = row.ok_or_else(|| {
            format!("there is no session {id}; `toolgate console --sessions` lists the sessions")
        })?;
        let removed = self
            .store
            .write(SESSIONS_TABLE, &row.key, None, WritePrecondition::Any);
        removed.await.map_err(|e| e.public_message().to_owned())?;
        let who = person_of(&row.value).and_then(|who| who.name);
        Ok(who.as_deref().unwrap_or("a person").to_owned())
    }

    /// Returns the session of a `Cookie` header and a key, if both belong to the same session.
    pub(crate) fn find_session(&self, header: &str, key: &str) -> Option<ConsoleSession> {
        let cookies = header.split(';').filter_map(|c| c.trim().split_once('='));
        let mut ours = cookies.filter(|(name, _)| *name == self.cookie);
        let key = digest_of("key", key);
        ours.find_map(|(_, secret)| {
            let id = self.session_id(secret);
            let row = self.store.row(SESSIONS_TABLE, &id)?;
            self.remaining_lifetime(&row)?;
            let known = row.value.get(key_field(&row.value))?.as_str()?;
            if !equal_secrets(&key, known) {
                return None;
            }
            let person = row.value.get("person").map(AttestedPerson::from_value);
            Some(ConsoleSession {
                id,
                who: person_of(&row.value)?,
                // A malformed person is no session, and never the session of a link.
                person: match person {
                    Some(person) => Some(person?),
                    None => None,
                },
            })
        })
    }

    /// Ends a session. Returns the value of `Set-Cookie` that removes the cookie.
    ///
    /// # Errors
    /// The state cannot be written.
    pub(crate) async fn end_session(
        &self,
        session: &ConsoleSession,
        is_https: bool,
    ) -> Result<String, String> {
        let removed = self
            .store
            .write(SESSIONS_TABLE, &session.id, None, WritePrecondition::Any);
        removed.await.map_err(|e| e.public_message().to_owned())?;
        Ok(self.set_cookie("", Duration::ZERO, is_https))
    }

    /// Ends all sessions of the data directory and removes the links of this gateway; returns how many sessions ended.
    ///
    /// # Errors
    /// The state cannot be written.
    pub(crate) async fn revoke_sessions(&self) -> Result<usize, String> {
        let links = || self.links.lock().unwrap_or_else(PoisonError::into_inner);
        links().clear();
        revoke_all_sessions(self.store.as_ref()).await
    }

    /// Resolves once a session was revoked or has expired.
    pub(crate) async fn wait_until_ended(&self, session: &ConsoleSession) {
        let mut changed = self.store.changed();
        loop {
            let row = self.store.row(SESSIONS_TABLE, &session.id);
            let Some(left) = row.and_then(|row| self.remaining_lifetime(&row)) else {
                return;
            };
            tokio::select! {
                () = tokio::time::sleep(left.min(MAX_CHECK_INTERVAL)) => {}
                changed = changed.changed() => if changed.is_err() { return },
            }
        }
    }

    /// Removes the link of that token, and returns its label.
    fn take_link(&self, token: &str) -> Option<Option<Arc<str>>> {
        let mut links = self.links.lock().unwrap_or_else(PoisonError::into_inner);
        let at = links
            .iter()
            .position(|(known, end)| equal_secrets(token, &known.token) && *end > Instant::now())?;
        Some(links.remove(at).0.label)
    }

    /// Returns the remaining lifetime of a session; `None` if it is not valid at this console.
    fn remaining_lifetime(&self, row: &StateRow) -> Option<Duration> {
        let console = row.value.get("console").and_then(Value::as_str);
        let now = millis(self.store.clock().now());
        let left = number(row, "expires")?
            .checked_sub(now)
            .filter(|left| *left > 0)?;
        (console == Some(&self.cookie)).then(|| Duration::from_millis(left))
    }

    /// Removes expired sessions, and the oldest session of this console if there are too many.
    async fn evict_sessions(&self, now: SystemTime) {
        let mut rows = self.store.entries(SESSIONS_TABLE);
        rows.sort_by_key(|row| number(row, "since"));
        let over = |row: &StateRow| number(row, "expires").is_none_or(|end| end <= millis(now));
        let mut gone: Vec<String> = rows
            .extract_if(.., |row| over(row))
            .map(|row| row.key)
            .collect();
        rows.retain(|row| row.value.get("console").and_then(Value::as_str) == Some(&self.cookie));
        let surplus = (rows.len() + 1).saturating_sub(MAX_SESSIONS);
        gone.extend(rows.into_iter().take(surplus).map(|row| row.key));
        for id in gone {
            // A session that stays is invalid, or is removed at the next login.
            let _ = self
                .store
                .write(SESSIONS_TABLE, &id, None, WritePrecondition::Any)
                .await;
        }
    }

    fn session_id(&self, secret: &str) -> String {
        digest_of("cookie", &format!("{}={secret}", self.cookie))
    }

    fn set_cookie(&self, secret: &str, life: Duration, is_https: bool) -> String {
        let secure = if is_https { "; Secure" } else { "" };
        format!(
            "{}={secret}; Path=/; HttpOnly; SameSite=Strict; Max-Age={}{secure}",
            self.cookie,
            life.as_secs()
        )
    }
}

/// Revokes all sessions of a data directory, and returns their number.
///
/// # Errors
/// The state cannot be written.
pub(crate) async fn revoke_all_sessions(store: &dyn StateStore) -> Result<usize, String> {
    let rows = store.entries(SESSIONS_TABLE);
    for row in &rows {
        let removed = store
            .write(SESSIONS_TABLE, &row.key, None, WritePrecondition::Any)
            .await;
        removed.map_err(|e| e.public_message().to_owned())?;
    }
    Ok(rows.len())
}

/// Returns the SHA-256 digest of a secret, so that the state does not contain the secret.
fn digest_of(what: &str, secret: &str) -> String {
    let text = format!("toolgate-console-{what}-v1\n{secret}");
    let digest = digest(&SHA256, text.as_bytes());
    hex::encode(digest.as_ref())
}

fn number(row: &StateRow, name: &str) -> Option<u64> {
    row.value.get(name)?.as_u64()
}

/// Returns the id of a session in lists. It identifies the session, and gives no access to it.
fn short_id(row: &str) -> &str {
    row.get(..LISTED_ID_CHARS).unwrap_or(row)
}

/// Returns the member of a session with the digest of its key. The sessions of people have another one than those of links:
/// an older version of this program does not know people, and would take the session of a person for that of the owner.
fn key_field(session: &Value) -> &'static str {
    match session.get("person") {
        Some(_) => "person_key",
        None => "key",
    }
}

/// Returns the approver of a session; `None` if its person is malformed.
fn person_of(session: &Value) -> Option<Approver> {
    if let Some(person) = session.get("person") {
        return Some(AttestedPerson::from_value(person)?.approver());
    }
    Some(match session.get("label").and_then(Value::as_str) {
        Some(label) => Approver::named(ApprovalChannel::Console, label),
        None => person::owner(ApprovalChannel::Console),
    })
}

/// Returns whether a label is a valid name of a person. `console` and `terminal` are reserved for the calls of the
/// owner.
fn is_label(label: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
    label.len() <= 64 && label.chars().all(plain) && !matches!(label, "console" | "terminal")
}

fn add_link(list: &Mutex<Vec<(ConsoleLink, Instant)>>, link: ConsoleLink) {
    let mut list = list.lock().unwrap_or_else(PoisonError::into_inner);
    let now = Instant::now();
    list.retain(|(_, end)| *end > now);
    if list.len() >= MAX_LINKS {
        list.remove(0);
    }
    list.push((link, now + CONSOLE_LINK_LIFETIME));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use toolgate_policy::MemoryStateStore;

    fn logins(port: u16, store: &Arc<MemoryStateStore>) -> ConsoleSessions {
        let config = Config::demo().unwrap();
        let base = BaseUrl::new(&config, ([127, 0, 0, 1], port).into());
        ConsoleSessions::new(&base, port, store.clone())
    }

    async fn enter(logins: &ConsoleSessions, label: &str) -> (String, String) {
        let link = logins.create_link(label, None).unwrap();
        let token = link.split_once("#token=").unwrap().1;
        let NewConsoleSession { cookie, key } =
            logins.create_session(token, false).await.unwrap().unwrap();
        (cookie.split(';').next().unwrap().to_owned(), key)
    }

    #[tokio::test]
    async fn a_link_is_valid_once_and_its_session_stays_valid() {
        let logins = logins(8665, &Arc::default());
        let link = logins.create_link("", None).unwrap();
        let token = link.strip_prefix("http://127.0.0.1:8665/#token=").unwrap();
        assert!(logins.create_session("", false).await.unwrap().is_none());
        assert!(
            logins
                .create_session("wrong", false)
                .await
                .unwrap()
                .is_none()
        );
        let NewConsoleSession { cookie, key } =
            logins.create_session(token, false).await.unwrap().unwrap();
        assert!(
            logins.create_session(token, false).await.unwrap().is_none(),
            "once"
        );
        let pair = cookie.split(';').next().unwrap();
        assert!(
            logins
                .find_session(&format!("other=1; {pair}"), &key)
                .is_some()
        );
        assert!(logins.find_session("toolgate_8665=wrong", &key).is_none());
        assert!(
            logins
                .find_session(&pair.replace("8665", "8666"), &key)
                .is_none()
        );
    }

    #[tokio::test]
    async fn a_label_names_the_person() {
        let logins = logins(8665, &Arc::default());
        for (label, expected) in [
            ("ann", Approver::named(ApprovalChannel::Console, "ann")),
            ("", person::owner(ApprovalChannel::Console)),
        ] {
            let (pair, key) = enter(&logins, label).await;
            assert_eq!(logins.find_session(&pair, &key).unwrap().who, expected);
        }
        for wrong in ["terminal", "console", "a b", "\u{e4}", &"x".repeat(65)] {
            assert!(logins.create_link(wrong, None).is_err(), "{wrong}");
        }
    }

    #[tokio::test]
    async fn rejects_the_key_of_another_session() {
        let logins = logins(8665, &Arc::default());
        let (one, other) = (enter(&logins, "").await, enter(&logins, "").await);
        assert!(logins.find_session(&one.0, &one.1).is_some());
        for wrong in ["", "1", other.1.as_str(), one.0.as_str()] {
            assert!(logins.find_session(&one.0, wrong).is_none(), "{wrong}");
        }
    }

    #[tokio::test]
    async fn a_session_outlives_a_restart_at_its_own_address_and_the_state_has_no_secret() {
        let store = Arc::new(MemoryStateStore::new());
        let (pair, key) = enter(&logins(8665, &store), "ann").await;
        assert!(logins(8665, &store).find_session(&pair, &key).is_some());
        let other = logins(8666, &store);
        assert!(other.find_session(&pair, &key).is_none());
        assert!(
            other
                .find_session(&pair.replace("8665", "8666"), &key)
                .is_none()
        );
        let kept = format!("{:?}", store.entries(SESSIONS_TABLE));
        assert!(!kept.contains(&key) && !kept.contains(pair.split_once('=').unwrap().1));
    }

    #[tokio::test]
    async fn a_session_ends_when_it_is_left_revoked_or_expired() {
        let store = Arc::new(MemoryStateStore::new());
        let logins = logins(8665, &store);
        let (one, two) = (enter(&logins, "").await, enter(&logins, "").await);
        let session = logins.find_session(&one.0, &one.1).unwrap();
        let gone = logins.end_session(&session, false).await.unwrap();
        assert!(gone.contains("Max-Age=0"), "{gone}");
        logins.wait_until_ended(&session).await;
        assert!(logins.find_session(&one.0, &one.1).is_none());
        assert!(logins.find_session(&two.0, &two.1).is_some());
        let row = store.entries(SESSIONS_TABLE).remove(0);
        let mut over = row.value.clone();
        over["since"] = json!(1);
        over["expires"] = json!(2);
        let written = store.write(SESSIONS_TABLE, &row.key, Some(over), WritePrecondition::Any);
        written.await.unwrap();
        assert!(logins.find_session(&two.0, &two.1).is_none());
        let (three, link) = (
            enter(&logins, "").await,
            logins.create_link("", None).unwrap(),
        );
        assert_eq!(
            logins.revoke_sessions().await.unwrap(),
            1,
            "what expired is gone"
        );
        assert!(logins.find_session(&three.0, &three.1).is_none());
        let token = link.split_once("#token=").unwrap().1;
        assert!(logins.create_session(token, false).await.unwrap().is_none());
    }

    #[tokio::test]
    async fn the_session_of_a_person_is_never_that_of_a_link() {
        let store = Arc::new(MemoryStateStore::new());
        let logins = logins(8665, &store);
        let person = AttestedPerson {
            caller: toolgate_core::Caller::new("corp:ann"),
            issuer: "corp".to_owned(),
            issuer_url: "https://login.example.com".to_owned(),
        };
        let made = logins.create_person_session(&person, Duration::from_secs(60), true);
        let NewConsoleSession { cookie, key } = made.await.unwrap();
        assert!(cookie.ends_with("; Secure"), "{cookie}");
        let pair = cookie.split(';').next().unwrap();
        let session = logins.find_session(pair, &key).unwrap();
        assert_eq!(session.person.unwrap().caller.name(), "corp:ann");
        assert!(!session.who.is_owner);
        let row = store.entries(SESSIONS_TABLE).remove(0);
        // Versions without people look for the digest here.
        assert!(row.value.get("key").is_none());
        // A person who cannot be read has no session, whichever member is missing or wrong.
        for member in ["name", "issuer", "issuer_url", "attributes"] {
            let mut wrong = row.value.clone();
            wrong["person"].as_object_mut().unwrap().remove(member);
            let put = |value| {
                store.write(
                    SESSIONS_TABLE,
                    &row.key,
                    Some(value),
                    WritePrecondition::Any,
                )
            };
            put(wrong).await.unwrap();
            assert!(logins.find_session(pair, &key).is_none(), "{member}");
            let mut wrong = row.value.clone();
            wrong["person"] = Value::Null;
            put(wrong).await.unwrap();
            assert!(logins.find_session(pair, &key).is_none());
        }
    }

    #[tokio::test]
    async fn the_oldest_session_is_removed_when_there_are_too_many() {
        let store = Arc::new(MemoryStateStore::new());
        let logins = logins(8665, &store);
        for _ in 0..MAX_SESSIONS + 3 {
            enter(&logins, "").await;
        }
        assert_eq!(store.entries(SESSIONS_TABLE).len(), MAX_SESSIONS);
    }
}

#[cfg(test)]
mod unprinted {
    use super::{ConsoleLink, NewConsoleSession};

    #[test]
    fn t62_links_and_logins_cannot_be_printed() {
        is_unprinted!(ConsoleLink, NewConsoleSession);
    }
}
