//! Authenticated encryption of `requestState` (AES-256-GCM), bound to the server, caller, method, item name and
//! arguments, with an expiry time.

use ring::{
    aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey},
    digest,
    rand::{SecureRandom, SystemRandom},
};
use std::{
    sync::{Arc, PoisonError, RwLock},
    time::{Duration, SystemTime, UNIX_EPOCH},
};
use toolgate_core::{Call, Error, ErrorKind, RoundSlots};
use toolgate_protocol::{
    hex,
    json::{Json, JsonLimits, ObjectWriter},
};

/// Encrypts and authenticates the state of a call that waits for input.
pub(crate) struct Seal {
    /// The first key encrypts; every key decrypts what it encrypted.
    keys: RwLock<Arc<[SealKey]>>,
    random: SystemRandom,
    lifetime: Duration,
    /// Name of the server. Servers that share keys cannot open each other's state.
    server: String,
}

struct SealKey {
    /// Prefix of the sealed text: the first bytes of a SHA-256 of the key.
    id: [u8; KEY_ID_BYTES],
    key: LessSafeKey,
}

/// Length of a key id, in bytes.
const KEY_ID_BYTES: usize = 4;

impl SealKey {
    fn new(key: &[u8; 32]) -> Result<SealKey, Error> {
        let mut named = digest::Context::new(&digest::SHA256);
        named.update(b"toolgate-seal-key-id\n");
        named.update(key);
        let mut id = [0; KEY_ID_BYTES];
        id.copy_from_slice(&named.finish().as_ref()[..KEY_ID_BYTES]);
        let key = UnboundKey::new(&AES_256_GCM, key).map_err(|_| no_random_bytes())?;
        let key = LessSafeKey::new(key);
        Ok(SealKey { id, key })
    }
}

/// State of a call, as the edge restores it when the client retries the call.
#[derive(Debug, PartialEq)]
pub(crate) struct SealedCallState {
    /// Call id, the same in all rounds.
    pub(crate) call: String,
    /// Number of the round.
    pub(crate) round: u32,
    /// State of the layers, by layer.
    pub(crate) slots: RoundSlots,
}

/// Maximum size of a state that is opened, in bytes.
const MAX_STATE_BYTES: usize = 256 * 1024;

impl Seal {
    /// Returns a seal with a random key whose states are valid for `lifetime`. No other process can open them.
    ///
    /// # Errors
    /// [`ErrorKind::Bug`] if the system provides no random bytes.
    pub(crate) fn random(of: &str, life: Duration) -> Result<Seal, Error> {
        let random = SystemRandom::new();
        let mut key = [0; 32];
        random.fill(&mut key).map_err(|_| no_random_bytes())?;
        Seal::with_keys(of, &[key], life)
    }

    /// Returns a seal with the given keys: replicas can share them, and they can outlive the process.
    ///
    /// # Errors
    /// [`ErrorKind::Bug`] if `keys` is empty.
    pub(crate) fn with_keys(of: &str, keys: &[[u8; 32]], life: Duration) -> Result<Seal, Error> {
        Ok(Seal {
            keys: RwLock::new(read_keys(keys)?),
            random: SystemRandom::new(),
            lifetime: life,
            server: of.to_owned(),
        })
    }

    /// Replaces the keys. State that a removed key sealed can no longer be opened.
    ///
    /// # Errors
    /// [`ErrorKind::Bug`] if `keys` is empty; the old keys then remain in use.
    pub(crate) fn set_keys(&self, keys: &[[u8; 32]]) -> Result<(), Error> {
        let keys = read_keys(keys)?;
        *self.keys.write().unwrap_or_else(PoisonError::into_inner) = keys;
        Ok(())
    }

    fn keys(&self) -> Arc<[SealKey]> {
        let keys = self.keys.read().unwrap_or_else(PoisonError::into_inner);
        keys.clone()
    }

    /// Seals the state of this call.
    ///
    /// # Errors
    /// [`ErrorKind::Bug`] if the system provides no random bytes.
    pub(crate) fn seal_call(
        &self,
        call: &Call,
        slots: &RoundSlots,
        now: SystemTime,
    ) -> Result<String, Error> {
        let text = payload(call, slots, seconds(now + self.lifetime));
        self.encrypt(self.call_binding(call), text.as_str().as_bytes().to_vec())
    }

    /// Seals text that this process stores under a name. It does not expire; it can be opened as long as the key is
    /// configured.
    ///
    /// # Errors
    /// [`ErrorKind::Bug`] if the system provides no random bytes.
    pub(crate) fn seal_text(&self, name: &[&str], text: &Json) -> Result<String, Error> {
        self.encrypt(
            self.associated_data(name),
            text.as_str().as_bytes().to_vec(),
        )
    }

    /// Opens text that was sealed under the same name. Returns `None` if it was changed or its key was removed.
    pub(crate) fn open_text(&self, name: &[&str], sealed: &str) -> Option<Vec<u8>> {
        self.decrypt(self.associated_data(name), sealed)
    }

    fn encrypt(&self, bound: Vec<u8>, mut text: Vec<u8>) -> Result<String, Error> {
        let mut nonce = [0; NONCE_LEN];
        self.random
            .fill(&mut nonce)
            .map_err(|_| no_random_bytes())?;
        let bound = Aad::from(bound);
        let keys = self.keys();
        let first = keys.first().ok_or_else(no_random_bytes)?;
        first
            .key
            .seal_in_place_append_tag(Nonce::assume_unique_for_key(nonce), bound, &mut text)
            .map_err(|_| no_random_bytes())?;
        Ok(hex::encode(&first.id) + &hex::encode(&nonce) + &hex::encode(&text))
    }

    /// Returns a digest of server, caller, method, item name and arguments. As associated data it prevents moving a
    /// state from one call to another.
    fn call_binding(&self, call: &Call) -> Vec<u8> {
        let arguments = call.arguments().raw().canonical();
        let parts = [
            call.caller.name(),
            call.op.method(),
            call.name(),
            &arguments,
        ];
        let parts: Vec<&str> = parts.into_iter().chain(call.caller.view()).collect();
        self.associated_data(&parts)
    }

    fn associated_data(&self, parts: &[&str]) -> Vec<u8> {
        let mut context = digest::Context::new(&digest::SHA256);
        for part in std::iter::once(&self.server.as_str()).chain(parts) {
            context.update(&(part.len() as u64).to_be_bytes());
            context.update(part.as_bytes());
        }
        context.finish().as_ref().to_vec()
    }

    /// Opens the state that the client returned with this call.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] if the state was changed, belongs to another caller, item or arguments, or has expired. The
    /// error does not say which.
    pub(crate) fn open_call(
        &self,
        call: &Call,
        sealed: &str,
        now: SystemTime,
    ) -> Result<SealedCallState, Error> {
        let open = self.decrypt(self.call_binding(call), sealed);
        let json = Json::read(
            open.ok_or_else(state_rejected)?,
            &JsonLimits {
                bytes: MAX_STATE_BYTES,
                ..JsonLimits::default()
            },
        )
        .map_err(|_| state_rejected())?;
        let fresh = json
            .get("until")
            .and_then(|u| u.u64())
            .is_some_and(|until| until >= seconds(now));
        if !fresh {
            return Err(state_rejected());
        }
        kept(&json).ok_or_else(state_rejected)
    }

    fn decrypt(&self, bound: Vec<u8>, sealed: &str) -> Option<Vec<u8>> {
        let bytes = decode(sealed)?;
        let (id, bytes) = bytes.split_at_checked(KEY_ID_BYTES)?;
        let (nonce, text) = bytes.split_at_checked(NONCE_LEN)?;
        let keys = self.keys();
        let key = keys.iter().find(|key| key.id == id)?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).ok()?;
        let mut text = text.to_vec();
        let open = key.key.open_in_place(nonce, Aad::from(bound), &mut text);
        open.ok().map(|open| open.to_vec())
    }
}

fn read_keys(keys: &[[u8; 32]]) -> Result<Arc<[SealKey]>, Error> {
    if keys.is_empty() {
        return Err(Error::new(
            ErrorKind::Bug,
            "no key is configured to encrypt requestState; pass at least one",
        ));
    }
    keys.iter().map(SealKey::new).collect()
}

fn payload(call: &Call, slots: &RoundSlots, until: u64) -> Json {
    let mut o = ObjectWriter::new();
    o.str("call", &call.id);
    o.int("round", i64::from(call.round.number));
    o.int("until", until as i64);
    o.object("slots", |map| {
        slots.iter().for_each(|(key, value)| map.str(key, value))
    });
    o.finish()
}

fn kept(json: &Json) -> Option<SealedCallState> {
    let slots = json.get("slots")?;
    Some(SealedCallState {
        call: json.get("call")?.string()?,
        round: json.get("round")?.u64()?.try_into().ok()?,
        slots: slots
            .members()
            .filter_map(|(key, value)| Some((key.into_owned(), value.string()?)))
            .collect(),
    })
}

fn seconds(at: SystemTime) -> u64 {
    at.duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs())
}

fn state_rejected() -> Error {
    Error::new(
        ErrorKind::NotFound,
        "the requestState does not belong to this call, or it has expired; call the tool again without it",
    )
}

fn no_random_bytes() -> Error {
    Error::new(
        ErrorKind::Bug,
        "the operating system provides no random numbers; check its random device, or restart the machine",
    )
}

/// Reads lower-case digits only, so that a state has exactly one spelling.
fn decode(text: &str) -> Option<Vec<u8>> {
    let lower_case = !text.bytes().any(|b| b.is_ascii_uppercase());
    match text.len() <= MAX_STATE_BYTES * 2 && lower_case {
        true => hex::decode(text),
        false => None,
    }
}

#[cfg(test)]
#[allow(clippy::print_stdout, reason = "the figures of the tests")]
mod tests {
    use super::*;
    use toolgate_core::Caller;

    fn call(caller: &str, tool: &str, arguments: serde_json::Value) -> Call {
        Call::tool(
            "c-1",
            Caller::new(caller),
            tool,
            Json::from_value(&arguments),
        )
    }

    fn sealed(seal: &Seal) -> (String, SystemTime) {
        let now = SystemTime::now();
        let slots = RoundSlots::from([("upstream".to_owned(), "x".to_owned())]);
        (
            seal.seal_call(&call("a", "t", serde_json::json!({"n": 1})), &slots, now)
                .unwrap(),
            now,
        )
    }

    /// T38: state sealed for one call does not open for another call or another server, nor after it expires.
    ///
    /// Holds: ELIC-14, MRTR-07, SEC-02
    #[test]
    fn it_opens_for_the_same_call_only() {
        let (key, life) = ([7; 32], Duration::from_secs(60));
        let seal = Seal::with_keys("s", &[key], life).unwrap();
        let (text, now) = sealed(&seal);
        let (n1, n2) = (serde_json::json!({"n": 1}), serde_json::json!({"n": 2}));
        let opened = seal
            .open_call(&call("a", "t", n1.clone()), &text, now)
            .unwrap();
        assert_eq!(opened.slots["upstream"], "x");
        let others = [
            ("another caller", call("b", "t", n1.clone()), now),
            ("another tool", call("a", "u", n1.clone()), now),
            ("other arguments", call("a", "t", n2), now),
            (
                "a number spelled otherwise",
                call("a", "t", serde_json::json!({"n": 1.0})),
                now,
            ),
            (
                "too old",
                call("a", "t", n1.clone()),
                now + Duration::from_secs(62),
            ),
        ];
        for (what, call, at) in &others {
            assert!(seal.open_call(call, &text, *at).is_err(), "{what}");
        }
        let mut read = call("a", "t", n1.clone());
        read.op = toolgate_core::Op::Resource;
        assert!(seal.open_call(&read, &text, now).is_err(), "another method");
        let other = Seal::with_keys("another", &[key], life).unwrap();
        let same = call("a", "t", n1);
        assert!(
            other.open_call(&same, &text, now).is_err(),
            "another server"
        );
        println!("T38: {} swaps, none opened", others.len() + 2);
    }

    /// T38: state with a changed bit, a cut or an addition does not open.
    ///
    /// Holds: MRTR-06
    #[test]
    fn no_changed_bit_and_no_cut_opens() {
        let seal = Seal::random("s", Duration::from_secs(60)).unwrap();
        let (text, now) = sealed(&seal);
        let call = call("a", "t", serde_json::json!({"n": 1}));
        assert!(seal.open_call(&call, &text, now).is_ok());
        let mut tried = 0;
        let mut refused = |bad: &[u8]| {
            let bad = String::from_utf8_lossy(bad);
            assert!(seal.open_call(&call, &bad, now).is_err(), "{bad}");
            tried += 1;
        };
        let bytes = decode(&text).unwrap();
        for (at, bit) in (0..bytes.len()).flat_map(|at| (0..8).map(move |bit| (at, bit))) {
            let mut bad = bytes.clone();
            bad[at] ^= 1 << bit;
            refused(hex::encode(&bad).as_bytes());
        }
        for (at, bit) in (0..text.len()).flat_map(|at| (0..8).map(move |bit| (at, bit))) {
            let mut bad = text.clone().into_bytes();
            bad[at] ^= 1 << bit;
            refused(&bad);
        }
        for at in 0..text.len() {
            refused(&text.as_bytes()[..at]);
        }
        refused(format!("{text}00").as_bytes());
        refused(format!("{text}{text}").as_bytes());
        refused(text.replace(|c: char| c.is_ascii_digit(), "g").as_bytes());
        println!("T38: {tried} changed states, none opened");
    }

    /// T39: state sealed by an older key opens until that key is removed.
    #[test]
    fn keys_change_while_states_are_open() {
        let (life, old, new) = (Duration::from_secs(60), [1; 32], [2; 32]);
        let seal = Seal::with_keys("s", &[old], life).unwrap();
        let call = call("a", "t", serde_json::json!({"n": 1}));
        let now = SystemTime::now();
        let states = |seal: &Seal| -> Vec<String> {
            let close = |_| seal.seal_call(&call, &RoundSlots::new(), now).unwrap();
            (0..5_000).map(close).collect()
        };
        let opened = |states: &[String]| {
            let open = |text: &&String| seal.open_call(&call, text, now).is_ok();
            states.iter().filter(open).count()
        };
        let before = states(&seal);
        seal.set_keys(&[new, old]).unwrap();
        let after = states(&seal);
        assert_eq!((opened(&before), opened(&after)), (5_000, 5_000));
        seal.set_keys(&[new]).unwrap();
        assert_eq!((opened(&before), opened(&after)), (0, 5_000));
        assert!(seal.set_keys(&[]).is_err());
        assert_eq!(opened(&after), 5_000, "as before");
        println!("T39: 10,000 states over a change of keys, 0 lost, 0 opened after the end");
    }
}
