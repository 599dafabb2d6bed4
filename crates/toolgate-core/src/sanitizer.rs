//! Sanitizers, and the layer that passes all returned content through them. [`from_fn`] makes a sanitizer of a
//! function.

use crate::{
    BoxFuture, Call, CallReporter, Catalog, DecisionLog, Error, EventSink, InputRequests, Item,
    Layer, ListRequest, Next, Origin, Outcome, ReporterEvent,
};
use std::sync::{Arc, Mutex, PoisonError};
use toolgate_protocol::method::definition::ItemKind;
use toolgate_protocol::method::output::Output;

/// Untrusted content of a server on its way to the caller. Exhaustive on purpose: a new variant breaks the build of
/// every sanitizer.
#[derive(Debug)]
pub enum UntrustedContent<'a> {
    /// Instructions of a server for the model.
    Instructions(&'a mut String),
    /// Error of the upstream server.
    Error(&'a mut Error),
    /// Progress or log message of a call.
    Event(&'a mut ReporterEvent),
    /// Definition of an item. To replace it, assign another item.
    Item(&'a mut Arc<Item>),
    /// Result of a call.
    Output(&'a mut Output),
    /// Input requests of a server.
    InputRequests(&'a mut InputRequests),
}

/// Sanitizer: changes or blocks untrusted content from a server.
///
/// ```
/// use std::sync::Arc;
/// use toolgate_core::{
///     Error, Item, LogMessage, Origin, ReporterEvent, SanitizeContext, Sanitizer, UntrustedContent,
/// };
///
/// /// Lowers alarms in the log messages of servers, and counts them in the decision log of the call.
/// struct LowerAlarms;
///
/// impl Sanitizer for LowerAlarms {
///     fn name(&self) -> &'static str {
///         "lower_alarms"
///     }
///
///     fn sanitize(
///         &self,
///         _from: Option<&Origin>,
///         _item: Option<&Arc<Item>>,
///         content: UntrustedContent<'_>,
///     ) -> Result<(), Error> {
///         if let UntrustedContent::Event(ReporterEvent::Log(log)) = content {
///             log.level = "warning".to_owned();
///         }
///         Ok(())
///     }
///
///     fn sanitize_for_call(
///         &self,
///         context: &SanitizeContext,
///         from: Option<&Origin>,
///         item: Option<&Arc<Item>>,
///         content: UntrustedContent<'_>,
///     ) -> Result<(), Error> {
///         context.decision_log.count("log_messages", 1);
///         self.sanitize(from, item, content)
///     }
/// }
///
/// # let data = toolgate_core::Json::from_value(&serde_json::json!("fire"));
/// let mut event = ReporterEvent::Log(LogMessage::new("emergency", data));
/// let context = SanitizeContext::new("c-1");
/// LowerAlarms.sanitize_for_call(&context, None, None, UntrustedContent::Event(&mut event))?;
/// assert!(matches!(event, ReporterEvent::Log(log) if log.level == "warning"));
/// # Ok::<(), Error>(())
/// ```
pub trait Sanitizer: Send + Sync + 'static {
    /// Returns the name of the sanitizer's policy, one word.
    fn name(&self) -> &'static str;

    /// Changes or blocks untrusted content in place.
    ///
    /// # Errors
    /// Returns an error if the value must not reach the caller: a call fails with it, and an item is withheld with it.
    /// The operator sees the withheld item as the sanitizer left it.
    fn sanitize(
        &self,
        from: Option<&Origin>,
        item: Option<&Arc<Item>>,
        value: UntrustedContent<'_>,
    ) -> Result<(), Error>;

    /// Changes or blocks untrusted content that belongs to a call, in place. Override it to record changes in the
    /// decision log.
    ///
    /// # Errors
    /// As [`Sanitizer::sanitize`].
    fn sanitize_for_call(
        &self,
        _asked: &SanitizeContext,
        from: Option<&Origin>,
        item: Option<&Arc<Item>>,
        value: UntrustedContent<'_>,
    ) -> Result<(), Error> {
        self.sanitize(from, item, value)
    }
}

impl Sanitizer for Arc<dyn Sanitizer> {
    fn name(&self) -> &'static str {
        self.as_ref().name()
    }

    fn sanitize(
        &self,
        from: Option<&Origin>,
        item: Option<&Arc<Item>>,
        value: UntrustedContent<'_>,
    ) -> Result<(), Error> {
        self.as_ref().sanitize(from, item, value)
    }

    fn sanitize_for_call(
        &self,
        asked: &SanitizeContext,
        from: Option<&Origin>,
        item: Option<&Arc<Item>>,
        value: UntrustedContent<'_>,
    ) -> Result<(), Error> {
        self.as_ref().sanitize_for_call(asked, from, item, value)
    }
}

/// Creates a sanitizer from a function over all content that a server returns: results, errors, definitions and
/// messages.
///
/// The name is one word, for the list of policies. An error withholds the content.
///
/// ```
/// use toolgate_core::{Error, ErrorKind, RefusalReason, UntrustedContent, sanitizer};
///
/// let no_images = sanitizer::from_fn("no_images", |content| match content {
///     UntrustedContent::Output(output) if output.size() > 1_000_000 => Err(Error::new(
///         ErrorKind::Refused(RefusalReason::BlockedResult),
///         "the result is longer than a megabyte",
///     )),
///     _ => Ok(()),
/// });
/// # let _ = toolgate_core::Pipeline::new().resolve().sanitizer(no_images);
/// ```
pub fn from_fn<F>(name: &'static str, sanitize: F) -> FnSanitizer<F>
where
    F: Fn(UntrustedContent<'_>) -> Result<(), Error> + Send + Sync + 'static,
{
    FnSanitizer { name, sanitize }
}

/// Sanitizer that [`from_fn`] creates from a function.
#[derive(Clone, Copy, Debug)]
pub struct FnSanitizer<F> {
    name: &'static str,
    sanitize: F,
}

impl<F> Sanitizer for FnSanitizer<F>
where
    F: Fn(UntrustedContent<'_>) -> Result<(), Error> + Send + Sync + 'static,
{
    fn name(&self) -> &'static str {
        self.name
    }

    fn sanitize(
        &self,
        _: Option<&Origin>,
        _: Option<&Arc<Item>>,
        value: UntrustedContent<'_>,
    ) -> Result<(), Error> {
        (self.sanitize)(value)
    }
}

/// Creates a layer that passes what a call returns through a sanitizer: the outcome, and messages during the call.
///
/// Add a sanitizer of a whole pipeline with [`ResolvedPipeline::sanitizer`](crate::ResolvedPipeline::sanitizer); this
/// layer is for a part of it, for example for one tool.
///
/// ```
/// use toolgate_core::{Output, Pipeline, UntrustedContent, sanitizer};
///
/// // Replaces long results before the layers that come earlier see them.
/// let short_results = sanitizer::into_layer(sanitizer::from_fn("short-results", |content| {
///     if let UntrustedContent::Output(output) = content
///         && output.size() > 100_000
///     {
///         *output = Output::error("the result is too long");
///     }
///     Ok(())
/// }));
/// let pipeline = Pipeline::new().resolve().layer(short_results);
/// ```
pub fn into_layer(sanitizer: impl Sanitizer) -> impl Layer {
    SanitizerLayer::new(vec![Arc::new(sanitizer)])
}

/// Call that untrusted content belongs to: its id and its decision log.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SanitizeContext {
    /// Id of the call that the content belongs to.
    pub call_id: Arc<str>,
    /// Decision log of the call, which records changes of the content.
    pub decision_log: DecisionLog,
}

impl SanitizeContext {
    /// Creates the context of content of this call, with an empty decision log.
    pub fn new(call_id: impl Into<Arc<str>>) -> SanitizeContext {
        SanitizeContext {
            call_id: call_id.into(),
            decision_log: DecisionLog::default(),
        }
    }
}

/// Layer of adjacent sanitizers.
pub(crate) struct SanitizerLayer {
    /// Sanitizers in the order in which they see content.
    sanitizers: Arc<[Arc<dyn Sanitizer>]>,
    /// Last list of each kind and its sanitized form: a list is sanitized once, not once a call.
    last_lists: [Mutex<Option<(Catalog, Catalog)>>; ItemKind::ALL.len()],
}

impl SanitizerLayer {
    /// Creates the layer from sanitizers in pipeline order, from the caller to the service.
    pub(crate) fn new(mut scrubs: Vec<Arc<dyn Sanitizer>>) -> SanitizerLayer {
        scrubs.reverse();
        SanitizerLayer {
            sanitizers: scrubs.into(),
            last_lists: Default::default(),
        }
    }

    fn sanitize_list(&self, kind: ItemKind, dirty: Catalog) -> Catalog {
        let last = &self.last_lists[kind as usize];
        let mut last = last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, clean)) = last
            .as_ref()
            .filter(|(seen, _)| seen.is_same_snapshot(&dirty))
        {
            return clean.clone();
        }
        let scrubs = self.sanitizers.iter();
        let clean = scrubs.fold(dirty.clone(), |list, scrub| sanitize_items(scrub, &list));
        *last = Some((dirty, clean.clone()));
        clean
    }

    fn sanitize_outcome(
        &self,
        asked: &SanitizeContext,
        item: Option<&Arc<Item>>,
        outcome: &mut Result<Outcome, Error>,
    ) {
        let origin = item.map(|i| &i.origin);
        for scrub in self.sanitizers.iter() {
            let returned = match outcome {
                Ok(Outcome::InputRequired(questions)) => UntrustedContent::InputRequests(questions),
                Ok(Outcome::Done(output)) => UntrustedContent::Output(output),
                Err(error) => UntrustedContent::Error(error),
            };
            if let Err(error) = scrub.sanitize_for_call(asked, origin, item, returned) {
                *outcome = Err(error);
            }
        }
    }
}

fn sanitize_items(scrub: &Arc<dyn Sanitizer>, dirty: &Catalog) -> Catalog {
    let clean = dirty.items().iter().map(|item| {
        let mut cleaned = item.clone();
        match scrub.sanitize(
            Some(&item.origin),
            Some(item),
            UntrustedContent::Item(&mut cleaned),
        ) {
            Ok(()) => cleaned,
            // The operator sees the item as the sanitizer left it.
            Err(error) => Arc::new(cleaned.withhold(error.public_message().to_owned())),
        }
    });
    let clean = dirty.with_items(clean.collect());
    let about = dirty
        .server_instructions()
        .iter()
        .cloned()
        .filter_map(|mut about| {
            let text = UntrustedContent::Instructions(&mut about.text);
            scrub.sanitize(None, None, text).ok().map(|()| about)
        });
    clean.with_server_instructions(about.collect())
}

impl Layer for SanitizerLayer {
    fn name(&self) -> &'static str {
        "clean"
    }

    fn policy_names(&self) -> Vec<&'static str> {
        self.sanitizers
            .iter()
            .rev()
            .map(|scrub| scrub.name())
            .collect()
    }

    fn list<'a>(
        &'a self,
        ask: ListRequest,
        next: Next<'a>,
    ) -> BoxFuture<'a, Result<Catalog, Error>> {
        let kind = ask.kind;
        Box::pin(async move {
            let mut error = match next.list(ask).await {
                Ok(dirty) => return Ok(self.sanitize_list(kind, dirty)),
                Err(error) => error,
            };
            for scrub in self.sanitizers.iter() {
                let failed = UntrustedContent::Error(&mut error);
                if let Err(other) = scrub.sanitize(None, None, failed) {
                    error = other;
                }
            }
            Err(error)
        })
    }

    fn call<'a>(&'a self, mut call: Call, next: Next<'a>) -> BoxFuture<'a, Result<Outcome, Error>> {
        Box::pin(async move {
            let item = call.item().cloned();
            let asked = SanitizeContext {
                call_id: call.id.clone(),
                decision_log: call.decision_log.clone(),
            };
            if call.reporter.reads_content() {
                let report = SanitizingSink {
                    sanitizers: self.sanitizers.clone(),
                    context: asked.clone(),
                    item: item.clone(),
                    sink: call.reporter.clone(),
                };
                call.reporter = call.reporter.with_sink(Arc::new(report));
            }
            let mut outcome = next.call(call).await;
            self.sanitize_outcome(&asked, item.as_ref(), &mut outcome);
            outcome
        })
    }
}

struct SanitizingSink {
    sanitizers: Arc<[Arc<dyn Sanitizer>]>,
    context: SanitizeContext,
    item: Option<Arc<Item>>,
    sink: CallReporter,
}

impl EventSink for SanitizingSink {
    fn report(&self, mut event: ReporterEvent) {
        let origin = self.item.as_ref().map(|i| &i.origin);
        let mut scrubs = self.sanitizers.iter();
        let cleaned = scrubs.try_for_each(|scrub| {
            let value = UntrustedContent::Event(&mut event);
            scrub.sanitize_for_call(&self.context, origin, self.item.as_ref(), value)
        });
        if cleaned.is_ok() {
            self.sink.send(event);
        }
    }
}
