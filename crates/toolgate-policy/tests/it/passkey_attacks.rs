//! Forged assertions: what an attacker may send instead of the signature of an approver.

use crate::authenticator::{Signing, hex, unhex};
use crate::passkeys::{ORIGIN, Scene, signing};
use ring::signature::{Ed25519KeyPair, KeyPair};
use serde_json::{Value, json};
use toolgate_policy::passkeys::challenge_of;

/// Attacks on one pending approval: assertions, each with the session that sends it.
pub(crate) fn forged_assertions(
    scene: &Scene,
    id: &str,
    text: &str,
    replay: &Value,
) -> Vec<(String, &'static str, Value)> {
    let ann = &scene.ann;
    let good = signing(text);
    let mut all = Vec::new();
    let mut add =
        |name: &str, who: &'static str, value: Value| all.push((name.to_owned(), who, value));
    let valid = ann.sign(&good);
    let part = |value: &Value, name: &str| unhex(value[name].as_str().unwrap());
    let with = |name: &str, bytes: Vec<u8>| {
        let mut value = valid.clone();
        value[name] = hex(&bytes).into();
        value
    };
    let flipped = |name: &str, at: usize| {
        let mut bytes = part(&valid, name);
        bytes[at] ^= 1;
        with(name, bytes)
    };
    add("no object", "ann", Value::Null);
    add("an empty object", "ann", json!({}));
    for name in [
        "credential",
        "authenticator_data",
        "client_data",
        "signature",
    ] {
        let mut value = valid.clone();
        value.as_object_mut().unwrap().remove(name);
        add(&format!("no {name}"), "ann", value);
        add(&format!("an empty {name}"), "ann", with(name, Vec::new()));
        let mut value = valid.clone();
        value[name] = format!("{}0", value[name].as_str().unwrap()).into();
        add(&format!("an odd {name}"), "ann", value);
        let cut = part(&valid, name);
        add(
            &format!("a truncated {name}"),
            "ann",
            with(name, cut[..cut.len() - 1].to_vec()),
        );
        add(&format!("an altered {name}"), "ann", flipped(name, 2));
        add(&format!("a long {name}"), "ann", with(name, vec![0; 5000]));
    }
    add(
        "a signature of zeros",
        "ann",
        with("signature", vec![0; 64]),
    );
    add(
        "a signature with a byte more",
        "ann",
        with("signature", [part(&valid, "signature"), vec![0]].concat()),
    );
    add(
        "an altered counter",
        "ann",
        flipped("authenticator_data", 36),
    );
    add(
        "another call",
        "ann",
        ann.sign(&signing(&text.replace("demo.wipe", "demo.look"))),
    );
    add(
        "another approval",
        "ann",
        ann.sign(&signing(&text.replace(id, "a-222222"))),
    );
    add("other arguments", "ann", {
        let mut other: Value = serde_json::from_str(text).unwrap();
        other["args_mac"] = "0".repeat(64).into();
        ann.sign(&signing(&other.to_string()))
    });
    add(
        "another decision",
        "ann",
        ann.sign(&signing(&text.replace("\"approve\"", "\"deny\""))),
    );
    add(
        "a later expiry",
        "ann",
        ann.sign(&signing(&text.replace("\"expires\":\"", "\"expires\":\"9"))),
    );
    add(
        "a replay of an earlier approval of the same call",
        "ann",
        replay.clone(),
    );
    add(
        "a random challenge",
        "ann",
        ann.sign(&Signing::new("localhost", ORIGIN, &[7; 32])),
    );
    add(
        "no challenge",
        "ann",
        ann.sign(&Signing::new("localhost", ORIGIN, &[])),
    );
    add(
        "the text instead of its digest",
        "ann",
        ann.sign(&Signing::new("localhost", ORIGIN, text.as_bytes())),
    );
    for origin in [
        "http://127.0.0.1:8665",
        "http://localhost:8666",
        "http://localhost",
        "https://localhost:8665",
        "https://evil.test",
        "http://localhost:8665/",
        "http://localhost.evil.test:8665",
        "null",
        "",
    ] {
        add(
            &format!("the origin {origin:?}"),
            "ann",
            ann.sign(&Signing::new("localhost", origin, &challenge_of(text))),
        );
    }
    for rp in ["127.0.0.1", "evil.test", "Localhost", "localhost.", ""] {
        add(
            &format!("the site {rp:?}"),
            "ann",
            ann.sign(&Signing::new(rp, ORIGIN, &challenge_of(text))),
        );
    }
    for flags in [0x00, 0x01, 0x04, 0x40, 0xfa] {
        add(
            &format!("the flags {flags:#x}"),
            "ann",
            ann.sign(&Signing {
                flags,
                ..good.clone()
            }),
        );
    }
    let client = |from: &str, to: &str| {
        assert!(good.client_data.contains(from), "{from}");
        let client_data = good.client_data.replace(from, to);
        ann.sign(&Signing {
            client_data,
            ..good.clone()
        })
    };
    add(
        "the type of a creation",
        "ann",
        client("webauthn.get", "webauthn.create"),
    );
    add(
        "the type of a payment",
        "ann",
        client("webauthn.get", "payment.get"),
    );
    add("no type", "ann", client("\"type\":\"webauthn.get\",", ""));
    add("a frame of another page", "ann", client("false", "true"));
    add(
        "a frame whose flag is a text",
        "ann",
        client("false", "\"false\""),
    );
    add(
        "a page within another",
        "ann",
        client(
            "\"crossOrigin\":false",
            "\"topOrigin\":\"https://evil.test\"",
        ),
    );
    add(
        "two origins",
        "ann",
        client(
            "\"crossOrigin\"",
            "\"origin\":\"https://evil.test\",\"crossOrigin\"",
        ),
    );
    add(
        "two challenges",
        "ann",
        client("\"origin\"", "\"challenge\":\"AAAA\",\"origin\""),
    );
    add(
        "a member in other spelling",
        "ann",
        client("\"origin\"", "\"Origin\""),
    );
    add(
        "client data in a list",
        "ann",
        ann.sign(&Signing {
            client_data: format!("[{}]", good.client_data),
            ..good.clone()
        }),
    );
    add(
        "client data after a byte order mark",
        "ann",
        ann.sign(&Signing {
            client_data: format!("\u{feff}{}", good.client_data),
            ..good.clone()
        }),
    );
    add(
        "client data with a rest",
        "ann",
        ann.sign(&Signing {
            client_data: format!("{}x", good.client_data),
            ..good.clone()
        }),
    );
    add(
        "client data in CBOR",
        "ann",
        ann.sign_parts(
            &part(&valid, "authenticator_data"),
            &[0xa1, 0x64, b't', b'y', b'p', b'e'],
        ),
    );
    add(
        "a key that is not enrolled",
        "ann",
        scene.mallory.sign(&good),
    );
    add("a key that is removed", "ann", scene.removed.sign(&good));
    add(
        "a key whose request nobody signed",
        "ann",
        scene.requested.sign(&good),
    );
    let mut posing = scene.mallory.sign(&good);
    posing["credential"] = valid["credential"].clone();
    add("a key that poses as another", "ann", posing);
    add("the key of another person", "ann", scene.ben.sign(&good));
    add("the session of another person", "ben", valid.clone());
    add(
        "the session of a person without a key",
        "mallory",
        valid.clone(),
    );
    add(
        "the session of nobody in other spelling",
        "Ann",
        valid.clone(),
    );
    let pkcs8 = Ed25519KeyPair::generate_pkcs8(&ring::rand::SystemRandom::new()).unwrap();
    let pair = Ed25519KeyPair::from_pkcs8(pkcs8.as_ref()).unwrap();
    add(
        "a signature of another algorithm",
        "ann",
        with("signature", pair.sign(b"x").as_ref().to_vec()),
    );
    add(
        "the public key as the signature",
        "ann",
        with("signature", pair.public_key().as_ref().to_vec()),
    );
    let key = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, &ann.spki());
    let tag = ring::hmac::sign(
        &key,
        &[
            part(&valid, "authenticator_data"),
            part(&valid, "client_data"),
        ]
        .concat(),
    );
    add(
        "a MAC with the public key",
        "ann",
        with("signature", tag.as_ref().to_vec()),
    );
    all
}
