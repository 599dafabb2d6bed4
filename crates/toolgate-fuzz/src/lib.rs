//! Fuzz targets: one function for each reader of untrusted bytes.
//!
//! A target panics if the reader panics, or if a property of it does not hold. `fuzz/` runs the same functions with
//! libFuzzer. [`FuzzRun`] runs them on the stable compiler, with mutations of the inputs in `fuzz/seeds`.
//!
//! ```
//! let target = toolgate_fuzz::TARGETS.iter().find(|target| target.name == "glob").unwrap();
//! (target.run)(b"files.*\nfiles.read");
//! ```

mod audit;
mod auth;
mod harness;
mod mutator;
mod policy;
mod protocol;
mod requests;
mod responses;

pub use harness::{FuzzFailure, FuzzRun, read_seeds};

/// Reader of untrusted bytes with its properties.
#[derive(Clone, Copy, Debug)]
pub struct FuzzTarget {
    /// Name, which is also the name of the directory of its seeds.
    pub name: &'static str,
    /// Feeds one input to the reader.
    pub run: fn(&[u8]),
}

/// Builds the table of targets, with one public function for each, which `fuzz/` calls.
macro_rules! targets {
    ($($module:ident :: $name:ident,)*) => {
        $(pub use $module::$name;)*

        /// All targets.
        pub const TARGETS: &[FuzzTarget] = &[$(FuzzTarget { name: stringify!($name), run: $name },)*];
    };
}

targets! {
    protocol::json,
    protocol::server_json,
    protocol::message,
    protocol::unreadable_text,
    protocol::uri,
    protocol::frontmatter,
    requests::request,
    responses::definition,
    responses::result,
    responses::server_reply,
    responses::sse,
    auth::url,
    auth::challenge,
    auth::token_response,
    auth::access_token,
    auth::key_set,
    auth::dpop_proof,
    auth::server_metadata,
    auth::stored_credential,
    auth::request_credentials,
    policy::cel,
    policy::glob,
    policy::secret_rules,
    policy::schema,
    policy::media,
    policy::text,
    audit::audit_line,
    audit::audit_segment,
    audit::state_line,
    audit::state_file,
}
