//! Base64 of media content (RFC 4648 section 4), as the protocol carries bytes.

use crate::json::Json;
use base64::{
    Engine,
    alphabet::STANDARD,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig},
};

/// Reads with and without padding; writes with padding.
const ENGINE: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// Returns the bytes as Base64 text with padding.
pub(super) fn encode(bytes: &[u8]) -> String {
    ENGINE.encode(bytes)
}

/// Returns the bytes of a JSON string of Base64; `None` if it is invalid.
pub(super) fn decode(data: &Json) -> Option<Vec<u8>> {
    ENGINE.decode(data.str_cow()?.as_ref()).ok()
}
