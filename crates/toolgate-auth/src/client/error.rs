//! Authorization errors.

use crate::fetch::FetchError;
use std::fmt;
use toolgate_core::OperatorDetail;

/// OAuth client error: a category, and a text that can be shown. The text contains no secret and no path, and quotes
/// peers only sanitized.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct AuthError {
    kind: AuthErrorKind,
    message: String,
    detail: Option<OperatorDetail>,
}

/// Category of an [`AuthError`].
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum AuthErrorKind {
    /// A user has to sign in, and no sign-in is possible in this process.
    NeedsSignIn,
    /// The authorization server or the user refused the authorization.
    Refused,
    /// An issuer, a resource or a `state` is not the expected one; a peer may be impersonating another.
    Unsafe,
    /// An OAuth peer cannot be reached, or its response is malformed.
    Unreachable,
    /// The authorization server supports none of the required features.
    Unsupported,
    /// The limit of attempts or requests is reached, here or at the authorization server.
    LimitReached,
    /// The credential store cannot be read or written.
    Store,
}

impl AuthError {
    /// Creates an OAuth error with a text that contains no secret.
    pub fn new(kind: AuthErrorKind, text: impl Into<String>) -> AuthError {
        AuthError {
            kind,
            message: text.into(),
            detail: None,
        }
    }

    /// Adds details to the error that only the operator may read, such as the path of a file.
    pub fn with_detail(mut self, detail: OperatorDetail) -> AuthError {
        self.detail = Some(detail);
        self
    }

    /// Returns the details of the error that only the operator may read.
    pub fn detail(&self) -> Option<&OperatorDetail> {
        self.detail.as_ref()
    }

    /// Returns the error's text followed by the operator's details, if there are any.
    pub fn for_operator(&self) -> String {
        match &self.detail {
            Some(detail) => format!("{}: {}", self.message, detail.for_operator()),
            None => self.message.clone(),
        }
    }

    /// Returns the category of the error.
    pub fn kind(&self) -> AuthErrorKind {
        self.kind
    }
}

impl fmt::Display for AuthError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for AuthError {}

impl From<FetchError> for AuthError {
    fn from(error: FetchError) -> AuthError {
        AuthError::new(AuthErrorKind::Unreachable, error.to_string())
    }
}

/// Sanitizes the text of a peer for display: at most 200 characters, no control or invisible characters.
pub(super) fn sanitize_for_display(words: &str) -> String {
    let visible = |c: &char| {
        !c.is_control()
            && !matches!(*c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{e0000}'..='\u{e0fff}')
    };
    words.chars().filter(visible).take(200).collect()
}
