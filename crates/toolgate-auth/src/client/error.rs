//! Why there is no token.

use crate::fetch::FetchError;
use std::fmt;
use toolgate_core::OperatorDetail;

/// Why there is no token. Its words can be shown: they hold no secret, no path, and of a peer only cleaned ones.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct AuthError {
    kind: AuthErrorKind,
    words: String,
    detail: Option<OperatorDetail>,
}

/// The kinds of [`AuthError`].
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum AuthErrorKind {
    /// A person has to sign in, and nobody is there to do it.
    NeedsSignIn,
    /// The authorization server or the person said no.
    Refused,
    /// Somebody may be deceiving us: an issuer, a resource or a state is not the one that was expected.
    Unsafe,
    /// A peer cannot be reached, or its answer cannot be read.
    Unreachable,
    /// A peer has nothing that we can use.
    Unsupported,
    /// It was tried as often as is allowed.
    Limit,
    /// What was granted cannot be kept or read.
    Store,
}

impl AuthError {
    /// An error with words that hold no secret.
    pub fn new(kind: AuthErrorKind, words: impl Into<String>) -> AuthError {
        AuthError {
            kind,
            words: words.into(),
            detail: None,
        }
    }

    /// The same error with details that only the operator may read, such as the path of a file.
    pub fn with_detail(mut self, detail: OperatorDetail) -> AuthError {
        self.detail = Some(detail);
        self
    }

    /// What only the operator may read of it.
    pub fn detail(&self) -> Option<&OperatorDetail> {
        self.detail.as_ref()
    }

    /// Returns the words, with the details where there are some: for the operator.
    pub fn for_operator(&self) -> String {
        match &self.detail {
            Some(detail) => format!("{}: {}", self.words, detail.for_operator()),
            None => self.words.clone(),
        }
    }

    /// What kind of failure it is.
    pub fn kind(&self) -> AuthErrorKind {
        self.kind
    }
}

impl fmt::Display for AuthError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.words)
    }
}

impl std::error::Error for AuthError {}

impl From<FetchError> for AuthError {
    fn from(error: FetchError) -> AuthError {
        AuthError::new(AuthErrorKind::Unreachable, error.to_string())
    }
}

/// Words of a peer that can be shown: short, and without signs that steer a terminal or hide text.
pub(super) fn shown(words: &str) -> String {
    let visible = |c: &char| {
        !c.is_control()
            && !matches!(*c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{e0000}'..='\u{e0fff}')
    };
    words.chars().filter(visible).take(200).collect()
}
