//! Signatures of webhooks and of chats: HMAC-SHA256, with a time that bounds replays.

use base64::{Engine, engine::general_purpose::STANDARD};
use ring::hmac;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use toolgate_auth::Secret;
use toolgate_protocol::hex;

/// Maximum difference between the time of a signed request and the clock of the gateway.
const MAX_SIGNATURE_AGE: Duration = Duration::from_secs(300);
/// Prefix of secrets in the format of Standard Webhooks, whose rest is Base64.
const STANDARD_SECRET_PREFIX: &str = "whsec_";

/// Secret that signs webhooks in the format of [Standard Webhooks](https://www.standardwebhooks.com).
#[derive(Clone)]
pub(super) struct WebhookSecret(hmac::Key);

impl WebhookSecret {
    /// Creates the key from a secret: Base64 after `whsec_`, else the bytes of the text.
    pub(super) fn new(secret: &Secret) -> WebhookSecret {
        let text = secret.reveal();
        let decoded = text
            .strip_prefix(STANDARD_SECRET_PREFIX)
            .and_then(|rest| STANDARD.decode(rest).ok());
        let bytes = decoded.unwrap_or_else(|| text.as_bytes().to_vec());
        WebhookSecret(hmac::Key::new(hmac::HMAC_SHA256, &bytes))
    }

    /// Returns the value of `webhook-signature`.
    pub(super) fn sign(&self, id: &str, seconds: u64, body: &[u8]) -> String {
        let tag = hmac::sign(&self.0, &signed_bytes(&[id, &seconds.to_string()], body));
        format!("v1,{}", STANDARD.encode(tag.as_ref()))
    }

    /// Verifies the headers `webhook-id`, `webhook-timestamp` and `webhook-signature`, which may have several
    /// signatures.
    pub(super) fn verify(
        &self,
        (id, time, signatures): (&str, &str, &str),
        body: &[u8],
        now: SystemTime,
    ) -> bool {
        let signed = signed_bytes(&[id, time], body);
        let is_valid = |signature: &str| {
            let tag = signature
                .strip_prefix("v1,")
                .and_then(|tag| STANDARD.decode(tag).ok());
            tag.is_some_and(|tag| hmac::verify(&self.0, &signed, &tag).is_ok())
        };
        is_recent(time, now) && signatures.split(' ').any(is_valid)
    }
}

/// Verifies `X-Slack-Request-Timestamp` and `X-Slack-Signature` of a request from Slack.
pub(super) fn is_from_slack(
    secret: &Secret,
    (time, signature): (&str, &str),
    body: &[u8],
    now: SystemTime,
) -> bool {
    let key = hmac::Key::new(hmac::HMAC_SHA256, secret.reveal().as_bytes());
    let signed = [format!("v0:{time}:").as_bytes(), body].concat();
    let tag = signature.strip_prefix("v0=").and_then(hex::decode);
    is_recent(time, now) && tag.is_some_and(|tag| hmac::verify(&key, &signed, &tag).is_ok())
}

fn signed_bytes(parts: &[&str], body: &[u8]) -> Vec<u8> {
    [format!("{}.", parts.join(".")).as_bytes(), body].concat()
}

fn is_recent(time: &str, now: SystemTime) -> bool {
    let plain = time.bytes().all(|b| b.is_ascii_digit());
    let Some(at) = time.parse().ok().filter(|_| plain) else {
        return false;
    };
    let now = now.duration_since(UNIX_EPOCH).unwrap_or_default();
    now.abs_diff(Duration::from_secs(at)) <= MAX_SIGNATURE_AGE
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signs_as_the_example_of_standard_webhooks() {
        let secret = Secret::new("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw");
        let secret = WebhookSecret::new(&secret);
        let (id, body) = ("msg_p5jXN8AQM9LWM0D4loKWxJek", br#"{"test": 2432232314}"#);
        let signature = secret.sign(id, 1_614_265_330, body);
        assert_eq!(signature, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
        let now = UNIX_EPOCH + Duration::from_secs(1_614_265_330);
        let verify = |time, signature: &str, body: &[u8], now| {
            secret.verify((id, time, signature), body, now)
        };
        let other = format!("v1,AAAA {signature}");
        assert!(verify("1614265330", &signature, body, now));
        assert!(verify("1614265330", &other, body, now));
        assert!(!verify("1614265331", &signature, body, now));
        assert!(!verify("1614265330", &signature, b"{}", now));
        assert!(!verify("1614265330", "v1,", body, now));
        let late = now + MAX_SIGNATURE_AGE + Duration::from_secs(1);
        assert!(!verify("1614265330", &signature, body, late));
        assert!(!verify("-1614265330", &signature, body, now));
    }

    #[test]
    fn verifies_the_example_of_slack() {
        let secret = Secret::new("8f742231b10e8888abcd99yyyzzz85a5");
        let body = b"token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id=G8PSS9T3V&channel_name=foobar&user_id=U2CERLKJA&user_name=roadrunner&command=%2Fwebhook-collect&text=&response_url=https%3A%2F%2Fhooks.slack.com%2Fcommands%2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN&trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c";
        let signature = "v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503";
        let now = UNIX_EPOCH + Duration::from_secs(1_531_420_618);
        let time = "1531420618";
        assert!(is_from_slack(&secret, (time, signature), body, now));
        assert!(!is_from_slack(&secret, (time, signature), b"x", now));
        assert!(!is_from_slack(
            &Secret::new("other"),
            (time, signature),
            body,
            now
        ));
        let late = now + MAX_SIGNATURE_AGE + Duration::from_secs(1);
        assert!(!is_from_slack(&secret, (time, signature), body, late));
    }
}
