//! Masking of error texts.

use toolgate_core::{
    BoxFuture, Call, Error, ErrorKind, Layer, Next, Op, Outcome, Output, ToolResult,
};

/// Layer that replaces the texts of errors by one text, so that callers do not see internal details.
///
/// It replaces the text of failed tool results, and of errors of a handler or upstream server. A `tracing` event of level
/// `warn` has the id of the call, never the text: a handler logs the cause itself, with the same id from
/// `Cx::call_id`. Errors that the caller has to understand stay as they are: invalid arguments, unknown items, refusals
/// and limits.
///
/// ```
/// use toolgate_policy::layers::ErrorMask;
///
/// let mask = ErrorMask::new("the tool failed; the operator finds the cause in the log");
/// # let _ = mask;
/// ```
#[derive(Clone, Debug)]
pub struct ErrorMask(String);

impl ErrorMask {
    /// Creates the layer with the text that callers get.
    pub fn new(text: impl Into<String>) -> ErrorMask {
        ErrorMask(text.into())
    }

    fn mask(&self, id: &str, outcome: Result<Outcome, Error>) -> Result<Outcome, Error> {
        match outcome {
            Ok(Outcome::Done(Output::Tool(result))) if result.is_error => {
                tracing::warn!(call_id = id, "a tool failed; its error text is masked");
                Ok(Outcome::Done(ToolResult::error(&self.0).into()))
            }
            Err(mut error) if has_foreign_text(error.kind()) => {
                tracing::warn!(call_id = id, "a call failed; its error text is masked");
                error.set_public_message(self.0.clone());
                Err(error)
            }
            other => other,
        }
    }
}

/// Returns true if a handler or server wrote the text of an error of this kind.
fn has_foreign_text(kind: &ErrorKind) -> bool {
    matches!(
        kind,
        ErrorKind::JsonRpc(_) | ErrorKind::Bug | ErrorKind::Upstream | ErrorKind::BadResponse
    )
}

impl Layer for ErrorMask {
    fn name(&self) -> &'static str {
        "error_mask"
    }

    fn call<'a>(&'a self, call: Call, next: Next<'a>) -> BoxFuture<'a, Result<Outcome, Error>> {
        Box::pin(async move {
            if matches!(call.op, Op::Complete(_)) {
                return next.call(call).await;
            }
            let id = call.id.clone();
            self.mask(&id, next.call(call).await)
        })
    }
}
