//! Encryption of push messages: RFC 8291, with the content coding `aes128gcm` of RFC 8188.

use ring::{
    aead::{AES_128_GCM, Aad, LessSafeKey, Nonce, UnboundKey},
    agreement::{ECDH_P256, EphemeralPrivateKey, UnparsedPublicKey, agree_ephemeral},
    hkdf::{HKDF_SHA256, KeyType, Salt},
    rand::{SecureRandom, SystemRandom},
};

/// Length of an uncompressed P-256 public key.
pub(super) const PUBLIC_KEY_BYTES: usize = 65;
/// Length of the authentication secret of a subscription.
pub(super) const AUTH_SECRET_BYTES: usize = 16;
/// Record size in the header. Push services accept bodies of 4096 bytes.
const RECORD_BYTES: u32 = 4096;
/// Maximum length of a message: a body of 4096 bytes without header, delimiter and tag.
pub(super) const MAX_PLAINTEXT_BYTES: usize = 4096 - 16 - 4 - 1 - PUBLIC_KEY_BYTES - 1 - 16;

/// Keys of a subscription: the public key of the browser, and the secret that it shares with the gateway.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct SubscriptionKeys {
    pub(super) public: [u8; PUBLIC_KEY_BYTES],
    pub(super) auth: [u8; AUTH_SECRET_BYTES],
}

/// Encrypts a message for a subscription, with a fresh key.
///
/// # Errors
/// The public key is not on the curve, the message is too long, or the system provides no random numbers.
pub(super) fn encrypt(keys: &SubscriptionKeys, text: &[u8]) -> Result<Vec<u8>, &'static str> {
    const NO_RANDOM: &str = "the operating system provides no random numbers";
    let random = SystemRandom::new();
    let mut salt = [0; 16];
    random.fill(&mut salt).map_err(|_| NO_RANDOM)?;
    let own = EphemeralPrivateKey::generate(&ECDH_P256, &random).map_err(|_| NO_RANDOM)?;
    let own_public = own.compute_public_key().map_err(|_| NO_RANDOM)?;
    let own_public = own_public.as_ref().to_vec();
    let peer = UnparsedPublicKey::new(&ECDH_P256, &keys.public);
    let shared = agree_ephemeral(own, &peer, <[u8]>::to_vec);
    let shared = shared.map_err(|_| "the public key of the subscription is invalid")?;
    seal(keys, &own_public, &shared, salt, text)
}

fn seal(
    keys: &SubscriptionKeys,
    own_public: &[u8],
    shared: &[u8],
    salt: [u8; 16],
    text: &[u8],
) -> Result<Vec<u8>, &'static str> {
    if text.len() > MAX_PLAINTEXT_BYTES {
        return Err("the message is too long for a push service");
    }
    let info = [b"WebPush: info\0", &keys.public[..], own_public].concat();
    let ikm: [u8; 32] = expand(&keys.auth, shared, &info);
    let key: [u8; 16] = expand(&salt, &ikm, b"Content-Encoding: aes128gcm\0");
    let nonce: [u8; 12] = expand(&salt, &ikm, b"Content-Encoding: nonce\0");
    let key = UnboundKey::new(&AES_128_GCM, &key).map_err(|_| "internal error: the key length")?;
    // The delimiter of the last record.
    let mut record = [text, &[2]].concat();
    LessSafeKey::new(key)
        .seal_in_place_append_tag(
            Nonce::assume_unique_for_key(nonce),
            Aad::empty(),
            &mut record,
        )
        .map_err(|_| "internal error: the message cannot be encrypted")?;
    let mut body = salt.to_vec();
    body.extend(RECORD_BYTES.to_be_bytes());
    body.push(u8::try_from(own_public.len()).map_err(|_| "internal error: the key length")?);
    body.extend(own_public);
    body.extend(record);
    Ok(body)
}

/// Output length of HKDF.
struct OutputBytes(usize);

impl KeyType for OutputBytes {
    fn len(&self) -> usize {
        self.0
    }
}

/// HKDF-SHA-256 (RFC 5869) with one block of output, which never fails for these lengths.
fn expand<const N: usize>(salt: &[u8], secret: &[u8], info: &[u8]) -> [u8; N] {
    let mut out = [0; N];
    let key = Salt::new(HKDF_SHA256, salt).extract(secret);
    let info = [info];
    let expanded = key.expand(&info, OutputBytes(N));
    if let Ok(expanded) = expanded {
        let _ = expanded.fill(&mut out);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};

    fn bytes(text: &str) -> Vec<u8> {
        URL_SAFE_NO_PAD.decode(text).unwrap()
    }

    /// RFC 8291, section 5 and appendix A.
    #[test]
    fn encrypts_the_example_of_the_rfc() {
        let keys = SubscriptionKeys {
            public: bytes("BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4")
                .try_into()
                .unwrap(),
            auth: bytes("BTBZMqHH6r4Tts7J_aSIgg").try_into().unwrap(),
        };
        let own = bytes(
            "BP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS6TlzAC8wEqKK6PBru3jl7A8",
        );
        let shared = bytes("kyrL1jIIOHEzg3sM2ZWRHDRB62YACZhhSlknJ672kSs");
        let salt = bytes("DGv6ra1nlYgDCS1FRnbzlw").try_into().unwrap();
        let text = b"When I grow up, I want to be a watermelon";
        let body = seal(&keys, &own, &shared, salt, text).unwrap();
        assert_eq!(
            URL_SAFE_NO_PAD.encode(body),
            "DGv6ra1nlYgDCS1FRnbzlwAAEABBBP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS6TlzAC8wEqKK6PBru3jl7A_yl95bQpu6cVPTpK4Mqgkf1CXztLVBSt2Ks3oZwbuwXPXLWyouBWLVWGNWQexSgSxsj_Qulcy4a-fN"
        );
    }

    #[test]
    fn a_message_has_a_maximum_length() {
        let keys = SubscriptionKeys {
            public: bytes("BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4")
                .try_into()
                .unwrap(),
            auth: [7; AUTH_SECRET_BYTES],
        };
        let body = encrypt(&keys, &[b'x'; MAX_PLAINTEXT_BYTES]).unwrap();
        assert_eq!(body.len(), 4096);
        assert!(encrypt(&keys, &[b'x'; MAX_PLAINTEXT_BYTES + 1]).is_err());
        let mut off_curve = keys;
        off_curve.public[9] ^= 1;
        assert!(encrypt(&off_curve, b"x").is_err());
    }
}
