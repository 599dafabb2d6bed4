//! Entry points for fuzz targets. Not public API: it changes without notice.

pub use crate::{
    client::fuzz::{authorization_server, resource_metadata, token_response},
    resource::fuzz::{access_token, dpop_proof, key_set},
};
