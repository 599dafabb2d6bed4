//! Tracing spans of calls.

use toolgate_core::{BoxFuture, Call, Error, Layer, Next, Outcome};
use tracing::{Instrument, field::Empty, info_span};

/// Tracing span `mcp.call` around each call, with the fields `item`, `call_id`, `caller` and, at its end, `outcome`.
///
/// Spans contain neither arguments nor results. The subscriber of the program decides where they go.
///
/// ```
/// use toolgate_policy::layers::CallSpans;
///
/// let spans = CallSpans::new();
/// # let _ = spans;
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct CallSpans(());

impl CallSpans {
    /// Creates the layer.
    pub fn new() -> CallSpans {
        CallSpans(())
    }
}

impl Layer for CallSpans {
    fn name(&self) -> &'static str {
        "spans"
    }

    fn call<'a>(&'a self, call: Call, next: Next<'a>) -> BoxFuture<'a, Result<Outcome, Error>> {
        let span = info_span!(
            "mcp.call",
            item = call.name(),
            call_id = &*call.id,
            caller = call.caller.name(),
            outcome = Empty
        );
        let recorded = span.clone();
        let answered = async move {
            let outcome = next.call(call).await;
            recorded.record(
                "outcome",
                match &outcome {
                    Ok(Outcome::Done(output)) if output.is_error() => "tool_error",
                    Ok(Outcome::Done(_)) => "ok",
                    Ok(Outcome::InputRequired(_)) => "input_required",
                    Err(_) => "error",
                },
            );
            outcome
        };
        Box::pin(answered.instrument(span))
    }
}
