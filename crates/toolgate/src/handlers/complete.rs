//! Completion of arguments.

use super::{Cx, HandlerExit, IntoHandlerExit};
use std::{future::Future, sync::Arc};
use toolgate_core::{BoxFuture, Call, CompleteResult};

pub(super) type CompletionHandler =
    Arc<dyn Fn(String, Cx) -> BoxFuture<'static, Result<Vec<String>, HandlerExit>> + Send + Sync>;

/// Completion functions of one prompt or template, by argument.
#[derive(Clone, Default)]
pub(super) struct CompletionHandlers(Vec<(String, CompletionHandler)>);

impl CompletionHandlers {
    pub(super) fn add<F, Fut, E, C>(&mut self, argument: &str, f: F)
    where
        F: Fn(String, Cx) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Vec<String>, E>> + Send + 'static,
        E: IntoHandlerExit<C>,
    {
        let f: CompletionHandler = Arc::new(move |value, cx| {
            let done = f(value, cx);
            Box::pin(async move { done.await.map_err(E::into_handler_exit) })
        });
        self.0.push((argument.to_owned(), f));
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Answers a completion request. An argument without a function has no values.
    pub(super) async fn complete(
        &self,
        call: &Call,
        cx: Cx,
    ) -> Result<CompleteResult, HandlerExit> {
        let argument = call.arguments().raw().get("argument");
        let member = |key: &str| argument.as_ref()?.get(key)?.string();
        let (name, value) = (member("name"), member("value").unwrap_or_default());
        let found = self.0.iter().find(|(n, _)| Some(n) == name.as_ref());
        let Some((_, f)) = found else {
            return Ok(CompleteResult::default());
        };
        let mut values = f(value, cx).await?;
        let total = values.len() as u64;
        values.truncate(CompleteResult::MAX_VALUES);
        Ok(CompleteResult {
            has_more: Some(total > values.len() as u64),
            total: Some(total),
            values,
            meta: None,
        })
    }
}
