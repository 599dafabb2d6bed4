//! Assertions of an identity provider or a platform, obtained for each use.

use super::super::{AuthError, AuthErrorKind};
use crate::Secret;
use futures_util::future::BoxFuture;
use std::{path::PathBuf, sync::Arc};

/// Maximum size of an assertion file in bytes.
const MAX_ASSERTION_BYTES: u64 = 64 << 10;

type AssertionFn = dyn Fn() -> BoxFuture<'static, Result<Secret, AuthError>> + Send + Sync;

/// Source of JWT assertions that an identity provider or a platform signs ([RFC 7523]).
///
/// [RFC 7523]: https://www.rfc-editor.org/rfc/rfc7523
#[derive(Clone)]
pub struct AssertionSource(Arc<AssertionFn>);

impl AssertionSource {
    /// Creates a source that calls a function for each assertion.
    pub fn from_fn<F, R>(source: F) -> AssertionSource
    where
        F: Fn() -> R + Send + Sync + 'static,
        R: Future<Output = Result<Secret, AuthError>> + Send + 'static,
    {
        AssertionSource(Arc::new(move || Box::pin(source())))
    }

    /// Creates a source that reads the assertion from a file for each use. Platforms replace the file before the
    /// assertion expires.
    pub fn file(path: impl Into<PathBuf>) -> AssertionSource {
        let path: PathBuf = path.into();
        AssertionSource::from_fn(move || {
            let path = path.clone();
            async move { read(path).await }
        })
    }

    pub(super) async fn get(&self) -> Result<Secret, AuthError> {
        (self.0)().await
    }
}

impl From<Secret> for AssertionSource {
    fn from(secret: Secret) -> AssertionSource {
        AssertionSource::from_fn(move || std::future::ready(Ok(secret.clone())))
    }
}

async fn read(path: PathBuf) -> Result<Secret, AuthError> {
    let failed = |why: String| {
        let detail = format!(
            "the file {} with the client assertion {why}; correct the path or the file",
            path.display()
        );
        AuthError::new(
            AuthErrorKind::Store,
            "the file with the client assertion cannot be used; the operator has to correct the path or the file",
        )
        .with_detail(toolgate_core::OperatorDetail::new(detail))
    };
    let about = tokio::fs::metadata(&path).await;
    let size = about
        .map_err(|error| failed(format!("cannot be read: {error}")))?
        .len();
    if size > MAX_ASSERTION_BYTES {
        return Err(failed(format!(
            "is longer than {MAX_ASSERTION_BYTES} bytes"
        )));
    }
    let text = tokio::fs::read_to_string(&path).await;
    let text = text.map_err(|error| failed(format!("cannot be read: {error}")))?;
    Ok(Secret::new(text.trim()))
}
