//! What somebody else says of us, asked for each time that it is needed.

use super::super::{AuthError, AuthErrorKind};
use crate::Secret;
use futures_util::future::BoxFuture;
use std::{path::PathBuf, sync::Arc};

/// Most bytes of a file with an assertion.
const LONGEST: u64 = 64 << 10;

type Source = dyn Fn() -> BoxFuture<'static, Result<Secret, AuthError>> + Send + Sync;

/// Where an assertion comes from: a signed text of an identity provider or a platform.
#[derive(Clone)]
pub struct Assertion(Arc<Source>);

impl Assertion {
    /// One that a function gives.
    pub fn from_fn<F, R>(source: F) -> Assertion
    where
        F: Fn() -> R + Send + Sync + 'static,
        R: Future<Output = Result<Secret, AuthError>> + Send + 'static,
    {
        Assertion(Arc::new(move || Box::pin(source())))
    }

    /// One that stands in a file, which is read anew each time: platforms replace it before it ends.
    pub fn file(path: impl Into<PathBuf>) -> Assertion {
        let path: PathBuf = path.into();
        Assertion::from_fn(move || {
            let path = path.clone();
            async move { read(path).await }
        })
    }

    pub(super) async fn get(&self) -> Result<Secret, AuthError> {
        (self.0)().await
    }
}

impl From<Secret> for Assertion {
    fn from(secret: Secret) -> Assertion {
        Assertion::from_fn(move || std::future::ready(Ok(secret.clone())))
    }
}

async fn read(path: PathBuf) -> Result<Secret, AuthError> {
    let failed = |why: String| {
        let detail = format!("the file {} with the assertion {why}", path.display());
        AuthError::new(
            AuthErrorKind::Store,
            "the file with the assertion cannot be used",
        )
        .with_detail(toolgate_core::OperatorDetail::new(detail))
    };
    let about = tokio::fs::metadata(&path).await;
    let size = about
        .map_err(|error| failed(format!("cannot be read: {error}")))?
        .len();
    if size > LONGEST {
        return Err(failed(format!("is over {LONGEST} bytes")));
    }
    let text = tokio::fs::read_to_string(&path).await;
    let text = text.map_err(|error| failed(format!("cannot be read: {error}")))?;
    Ok(Secret::new(text.trim()))
}
