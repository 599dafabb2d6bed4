//! Validation of structured results against the tool's `outputSchema`.

use crate::{
    PerServer,
    sanitize::secrets,
    validation::schema::{
        self, CheckResult, CompiledSchema, RequiredDefaults, SchemaBounds, SchemaProblems,
    },
};
use std::sync::Arc;
use toolgate_core::{
    BoxFuture, Call, Error, ErrorKind, Item, Layer, Next, Outcome, Output, RefusalReason,
};

/// Policy for a tool result that does not match its `outputSchema`.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub enum OnInvalidOutput {
    /// Returns an error to the caller instead of the invalid result.
    #[default]
    Block,
    /// Passes the invalid result on, and logs it in the audit log.
    Warn,
    /// Does not validate results.
    Pass,
}

/// Layer that validates the structured results of tools against their output schema (`outputSchema`). Errors of the
/// tool (`isError`) have no structured content and pass.
///
/// Specification: [output schema](https://modelcontextprotocol.io/specification/2026-07-28/server/tools#output-schema).
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct OutputValidation {
    /// Policy for results that do not match their `outputSchema`, by server.
    pub on_invalid: PerServer<OnInvalidOutput>,
}

/// The compiled `outputSchema` of an item, if it has one.
pub(crate) struct DeclaredOutputSchema(pub(crate) Option<Arc<CompiledSchema>>);

impl DeclaredOutputSchema {
    pub(crate) fn of(item: &Item, bounds: &SchemaBounds) -> DeclaredOutputSchema {
        let schema = item.def.output_schema();
        DeclaredOutputSchema(schema.map(|schema| schema::compiled(&schema, bounds)))
    }
}

/// Returns the compiled schema of an item from its memo.
fn declared_schema(item: &Item) -> Arc<DeclaredOutputSchema> {
    item.cached(|item| DeclaredOutputSchema::of(item, &SchemaBounds::default()))
}

impl OutputValidation {
    /// Returns whether results of the item are validated: it has an `outputSchema`, and the policy is not
    /// [`OnInvalidOutput::Pass`].
    fn validates(&self, item: &Item) -> bool {
        self.on_invalid.of(&item.origin.server) != OnInvalidOutput::Pass
            && declared_schema(item).0.is_some()
    }

    /// Validates a result.
    ///
    /// # Errors
    /// The reason why the result must not be passed on, and what to do.
    async fn judge(&self, item: &Item, output: &Output) -> Result<(), OutputFlaw> {
        let Some(output) = output.tool().filter(|output| !output.is_error) else {
            return Ok(());
        };
        let promised = declared_schema(item);
        let Some(compiled) = &promised.0 else {
            return Ok(());
        };
        let name = item.full_name();
        if let Err(why) = compiled.as_ref() {
            return Err(OutputFlaw::of_server(
                format!("the outputSchema of {name} cannot be used"),
                why.clone(),
            ));
        }
        let violates = || format!("it violates the outputSchema of {name}");
        let Some(structured) = &output.structured else {
            let why = "it has no structuredContent".to_owned();
            return Err(OutputFlaw::of_server(violates(), why));
        };
        let found =
            match schema::check(compiled, &structured.to_value(), RequiredDefaults::Required) {
                CheckResult::Ready(found) => found,
                CheckResult::Pending(found) => found.await.map_err(|why| OutputFlaw {
                    what: format!("it cannot be checked against the outputSchema of {name}"),
                    why: why.to_string(),
                    remedy: "report it to the operator",
                })?,
            };
        if found.is_empty() {
            return Ok(());
        }
        let sentence = SchemaProblems { problems: found }.sentence();
        Err(match secrets::is_marked(structured.as_str()) {
            true => OutputFlaw {
                what: violates(),
                why: sentence,
                remedy: "the cause may be a secret that Toolgate redacted from the result: in that case ask the operator to set `secrets = \"off\"` for this server",
            },
            false => OutputFlaw::of_server(violates(), sentence),
        })
    }
}

/// Reason why a result must not be passed on.
struct OutputFlaw {
    /// Clause about the result.
    what: String,
    why: String,
    remedy: &'static str,
}

impl OutputFlaw {
    /// Returns a flaw that only the author of the server can correct.
    fn of_server(what: String, why: String) -> OutputFlaw {
        OutputFlaw {
            what,
            why,
            remedy: "report this to the author of the server",
        }
    }
}

impl Layer for OutputValidation {
    fn name(&self) -> &'static str {
        "output"
    }

    fn call<'a>(&'a self, call: Call, next: Next<'a>) -> BoxFuture<'a, Result<Outcome, Error>> {
        let Some(item) = call.item().filter(|item| self.validates(item)).cloned() else {
            return next.call(call);
        };
        Box::pin(async move {
            let trail = call.decision_log.clone();
            let outcome = next.call(call).await?;
            let Outcome::Done(output) = &outcome else {
                return Ok(outcome);
            };
            let Err(flaw) = self.judge(&item, output).await else {
                return Ok(outcome);
            };
            let OutputFlaw { what, why, remedy } = flaw;
            if self.on_invalid.of(&item.origin.server) == OnInvalidOutput::Warn {
                trail.add("output", "warn", why);
                return Ok(outcome);
            }
            trail.add("output", "refuse", why.as_str());
            let text =
                format!("the tool ran, but its result was held back: {what}: {why}; {remedy}");
            Err(Error::new(
                ErrorKind::Refused(RefusalReason::BlockedResult),
                text,
            ))
        })
    }
}
