//! Rounds of a call: input requests are answered by the client, an approver or a sign-in, and the call is repeated with
//! the responses.

use super::{ProtocolServer, call::RequestContext, responder::Responder};
use std::time::Duration;
use toolgate_core::{
    ApprovalRequest, BoxFuture, Call, DecisionWaiter, Error, ErrorKind, InputRequest,
    InputRequestKind, InputRequests, Outcome, Output, Progress, ReporterEvent, RequiredCapability,
    Round, visible,
};
use toolgate_protocol::{
    dialect::Dialect,
    json::{Json, ObjectWriter},
    method::elicitation,
};

/// Sends input requests to the caller's own client in the middle of a call (revisions with a handshake).
pub(crate) trait InputRequester: Send + Sync {
    /// Sends one request and returns the client's response. Dropping the future withdraws the request.
    fn send_request<'a>(
        &'a self,
        method: &'a str,
        params: Option<Json>,
    ) -> BoxFuture<'a, Result<Json, Error>>;

    /// Returns whether input requests are returned as the result of the call instead.
    fn returns_requests(&self) -> bool {
        false
    }

    /// Returns whether the input requests of one round are sent at once.
    fn sends_together(&self) -> bool {
        false
    }
}

/// Outcome of the rounds of a call.
pub(crate) enum RoundsOutcome {
    /// The call completed.
    Completed(Output),
    /// The call needs input that the client sends with a later request.
    InputRequired(Box<Call>, InputRequests),
}

/// Interval of the progress notifications to a caller while its call waits for a person.
const WAIT_PROGRESS_INTERVAL: Duration = Duration::from_secs(10);

/// Returns the call of the first round again, for another round.
pub(crate) type RebuildCall<'a> = &'a (dyn Fn() -> Result<Call, Error> + Send + Sync);

/// Runs the rounds of a call until it completes or needs input with a later request. Most calls have one round, so
/// `again` rebuilds the call only for a second one.
pub(crate) async fn run_rounds(
    server: &ProtocolServer,
    context: &RequestContext,
    call: Call,
    again: RebuildCall<'_>,
    responder: &Responder,
    requester: Option<&dyn InputRequester>,
) -> Result<RoundsOutcome, Error> {
    match server.service.call(call).await? {
        Outcome::Done(output) => Ok(RoundsOutcome::Completed(output)),
        // Boxed, so that the future of a call is small.
        Outcome::InputRequired(questions) => {
            let call = again()?;
            Box::pin(continue_rounds(
                (server, context),
                call,
                questions,
                responder,
                requester,
            ))
            .await
        }
    }
}

/// Continues a call that requested input.
async fn continue_rounds(
    (server, context): (&ProtocolServer, &RequestContext),
    mut call: Call,
    mut questions: InputRequests,
    responder: &Responder,
    requester: Option<&dyn InputRequester>,
) -> Result<RoundsOutcome, Error> {
    loop {
        if call.round.number >= server.limits.max_rounds {
            return Err(Error::new(
                ErrorKind::Upstream,
                format!(
                    "the tool requested input in more than {} rounds, which is the limit",
                    server.limits.max_rounds
                ),
            ));
        }
        let answers = match (find_approval(&questions), find_sign_in(&questions)) {
            (Some(approval), _) if !can_approve_in_client(approval, context) => {
                Box::pin(wait_for_approval(server, &call, approval, responder)).await?;
                Vec::new()
            }
            (None, Some(signing)) => {
                Box::pin(wait_for_sign_in(server, &call, signing, responder)).await?;
                Vec::new()
            }
            (approval, _) => {
                check_capabilities(&questions, context)?;
                let Some(requester) = requester.filter(|requester| !requester.returns_requests())
                else {
                    return Ok(RoundsOutcome::InputRequired(Box::new(call), questions));
                };
                Box::pin(request_from_client(
                    (server, context),
                    &call,
                    &questions,
                    approval,
                    responder,
                    requester,
                ))
                .await?
            }
        };
        let mut round = Round::default();
        round.number = call.round.number + 1;
        round.answers = answers;
        round.slots = questions.slots;
        call.round = round;
        let open = questions.guard;
        questions = match server.service.call(call.clone()).await? {
            Outcome::Done(output) => return Ok(RoundsOutcome::Completed(output)),
            Outcome::InputRequired(questions) => questions,
        };
        // Until the rounds end: the handler that requested input may wait below while another layer requests input.
        questions.guard.merge(open);
    }
}

fn find_approval(questions: &InputRequests) -> Option<&ApprovalRequest> {
    questions.requests.iter().find_map(|ask| match &ask.kind {
        InputRequestKind::Approve(approval) => Some(approval),
        _ => None,
    })
}

/// Returns the wait for a sign-in at a page that the client has opened.
fn find_sign_in(questions: &InputRequests) -> Option<&dyn DecisionWaiter> {
    questions.requests.iter().find_map(|ask| match &ask.kind {
        InputRequestKind::SignIn(page) => page.completion.as_deref(),
        _ => None,
    })
}

fn can_approve_in_client(approval: &ApprovalRequest, context: &RequestContext) -> bool {
    approval.via_client && ApprovalRequest::fits_client(&context.capabilities, &approval.arguments)
}

/// Waits for a decision at the console or the terminal, and reports this to the caller as progress. If the caller
/// disconnects, the wait ends; the approval stays valid for a repeated call.
async fn wait_for_approval(
    server: &ProtocolServer,
    call: &Call,
    approval: &ApprovalRequest,
    responder: &Responder,
) -> Result<(), Error> {
    let _attending = approval.waiter.mark_waiting();
    let words = format!(
        "waiting for a person to approve {} ({})",
        approval.item.full_name(),
        approval.id
    );
    wait_with_progress(
        server,
        call,
        &words,
        approval.waiter.wait_for_decision(),
        responder,
    )
    .await
}

/// Waits for a sign-in, at most as long as for any other input.
async fn wait_for_sign_in(
    server: &ProtocolServer,
    call: &Call,
    signing: &dyn DecisionWaiter,
    responder: &Responder,
) -> Result<(), Error> {
    let words = "waiting for a sign-in at the page that was opened";
    let limit = server.limits.input_timeout;
    let waiting = wait_with_progress(server, call, words, signing.wait_for_decision(), responder);
    let late = |_| {
        let text = format!(
            "the sign-in was not completed within {} s; call again to get a new page",
            limit.as_secs()
        );
        Error::new(ErrorKind::TimedOut, text)
    };
    tokio::time::timeout(limit, waiting).await.map_err(late)?
}

/// Waits for a person, and sends the caller progress notifications with `words`.
async fn wait_with_progress(
    server: &ProtocolServer,
    call: &Call,
    words: &str,
    until: BoxFuture<'static, ()>,
    responder: &Responder,
) -> Result<(), Error> {
    let add_event = |name| {
        if let Some(span) = &call.span {
            span.add_event(name, &[]);
        }
    };
    add_event("toolgate.wait.begin");
    let beat = async {
        let mut beats = 0.0;
        loop {
            // Below any progress of the tool itself, so that the tool's progress still increases.
            call.reporter.send(ReporterEvent::Progress(Progress {
                progress: f64::from(beats) * 1e-6,
                total: None,
                message: Some(words.to_owned()),
            }));
            beats += 1.0_f32;
            tokio::time::sleep(WAIT_PROGRESS_INTERVAL).await;
        }
    };
    let waited = tokio::select! {
        () = until => Ok(()),
        () = beat => Ok(()),
        () = server.closed() => Err(Error::new(ErrorKind::Cancelled, "this server is shutting down; call again after its restart")),
        () = responder.closed() => Err(Error::new(ErrorKind::Cancelled, "the caller disconnected before the call was decided")),
    };
    add_event("toolgate.wait.end");
    waited
}

/// Sends the input requests to the client. An approval that is decided elsewhere withdraws its request.
async fn request_from_client(
    (server, context): (&ProtocolServer, &RequestContext),
    call: &Call,
    questions: &InputRequests,
    approval: Option<&ApprovalRequest>,
    responder: &Responder,
    requester: &dyn InputRequester,
) -> Result<Vec<(String, Json)>, Error> {
    let mut answers = Vec::new();
    let _attending = approval.map(|a| a.waiter.mark_waiting());
    if approval.is_none() && requester.sends_together() {
        let asked = questions.requests.iter().map(|ask| async move {
            let request = raw_input_request(ask, call, context);
            let asked = requester.send_request(&request.method, request.params);
            Ok((
                ask.key.clone(),
                wait_for_response(server, responder, asked).await?,
            ))
        });
        return futures_util::future::try_join_all(asked).await;
    }
    for ask in &questions.requests {
        let request = raw_input_request(ask, call, context);
        let asked = requester.send_request(&request.method, request.params);
        let InputRequestKind::Approve(approval) = &ask.kind else {
            answers.push((
                ask.key.clone(),
                wait_for_response(server, responder, asked).await?,
            ));
            continue;
        };
        tokio::select! {
            biased;
            () = approval.waiter.wait_for_decision() => {}
            answer = asked => match answer {
                Ok(answer) => answers.push((ask.key.clone(), answer)),
                // An error of the client decides nothing; an approver at the console still can.
                Err(_) => wait_for_approval(server, call, approval, responder).await?,
            },
        }
    }
    Ok(answers)
}

/// Waits for the client's response: until it disconnects, the server stops, or the time limit is over.
async fn wait_for_response(
    server: &ProtocolServer,
    responder: &Responder,
    asked: BoxFuture<'_, Result<Json, Error>>,
) -> Result<Json, Error> {
    let gone = |text| Err(Error::new(ErrorKind::Cancelled, text));
    tokio::select! {
        answer = asked => answer,
        () = server.closed() => gone("this server is shutting down; call again after its restart"),
        () = responder.closed() => gone("the caller disconnected before it answered the input request"),
        () = tokio::time::sleep(server.limits.input_timeout) => Err(Error::new(
            ErrorKind::TimedOut,
            format!("the input request was not answered within {} s; call again", server.limits.input_timeout.as_secs()),
        )),
    }
}

/// Checks that the client declared the capabilities for the input requests, and that its revision can express them.
fn check_capabilities(questions: &InputRequests, context: &RequestContext) -> Result<(), Error> {
    let RequestContext {
        capabilities: abilities,
        dialect,
        ..
    } = context;
    for ask in &questions.requests {
        let (able, need, what) = match &ask.kind {
            InputRequestKind::Approve(_) => continue,
            InputRequestKind::Elicit(params) if is_url(params) => (
                abilities.elicitation_url,
                RequiredCapability::ElicitationUrl,
                "open a URL for its user (URL elicitation)",
            ),
            InputRequestKind::SignIn(_) => (
                abilities.elicitation_url,
                RequiredCapability::ElicitationUrl,
                "open a URL for its user (URL elicitation)",
            ),
            InputRequestKind::Elicit(_) => (
                abilities.elicitation,
                RequiredCapability::Elicitation,
                "ask its user (elicitation)",
            ),
            InputRequestKind::Sample(params) if uses_tools(params) => (
                abilities.sampling && abilities.sampling_tools,
                RequiredCapability::SamplingTools,
                "use tools in sampling",
            ),
            InputRequestKind::Sample(_) => (
                abilities.sampling,
                RequiredCapability::Sampling,
                "ask its model (sampling)",
            ),
            InputRequestKind::Roots => {
                (abilities.roots, RequiredCapability::Roots, "list its roots")
            }
        };
        if !able {
            let text = format!(
                "this call requires input, and the client did not declare that it can {what}; use a client that can"
            );
            return Err(Error::new(ErrorKind::MissingCapability(need), text));
        }
        if !is_expressible(ask, dialect) {
            let text = format!(
                "this call requires input, and the client's revision {} does not support this request; use a client with a newer revision",
                dialect.revision
            );
            return Err(Error::new(ErrorKind::MissingCapability(need), text));
        }
    }
    Ok(())
}

fn is_expressible(ask: &InputRequest, dialect: &Dialect) -> bool {
    match &ask.kind {
        InputRequestKind::Elicit(params) => {
            let requested = params.get("requestedSchema");
            requested.is_none_or(|requested| dialect.form(&requested).is_some())
        }
        InputRequestKind::Sample(params) => dialect.sampling(params).is_some(),
        InputRequestKind::Approve(_) | InputRequestKind::Roots | InputRequestKind::SignIn(_) => {
            true
        }
    }
}

fn uses_tools(params: &Json) -> bool {
    params.get("tools").is_some() || params.get("toolChoice").is_some()
}

fn is_url(params: &Json) -> bool {
    params.get("mode").and_then(|m| m.string()).as_deref() == Some("url")
}

/// Returns the MCP request for an input request.
pub(crate) fn raw_input_request(
    ask: &InputRequest,
    call: &Call,
    context: &RequestContext,
) -> elicitation::RawInputRequest {
    let dialect = context.dialect;
    let (method, params) = match &ask.kind {
        InputRequestKind::Approve(approval) => (
            elicitation::NAME,
            Some(elicitation_params(&approval_form(approval, call), dialect)),
        ),
        InputRequestKind::Elicit(params) => {
            (elicitation::NAME, Some(elicitation_params(params, dialect)))
        }
        InputRequestKind::SignIn(page) => (
            elicitation::NAME,
            Some(elicitation_params(&page.params(), dialect)),
        ),
        // Omit `includeContext` if the client did not declare it. Before 2025-11-25 clients could not declare it.
        InputRequestKind::Sample(params)
            if dialect.sampling_tools && !context.capabilities.sampling_context =>
        {
            (
                elicitation::SAMPLING,
                Some(params.without("includeContext")),
            )
        }
        InputRequestKind::Sample(params) => (elicitation::SAMPLING, dialect.sampling(params)),
        InputRequestKind::Roots => (elicitation::ROOTS, None),
    };
    elicitation::RawInputRequest {
        key: ask.key.clone(),
        method: method.to_owned(),
        params,
    }
}

/// Returns elicitation parameters for a protocol revision.
fn elicitation_params(params: &Json, dialect: &Dialect) -> Json {
    let requested = params.get("requestedSchema");
    let params = match requested.and_then(|requested| dialect.form(&requested)) {
        Some(form) => &params.with("requestedSchema", &form),
        None => params,
    };
    match (is_url(params), dialect.elicitation_id) {
        (true, true) if params.get("elicitationId").is_none() => {
            let id = Json::from_value(&crate::ids::short_id("e").into());
            params.with("elicitationId", &id)
        }
        (true, false) => params.without("elicitationId"),
        // Revisions that have only forms have no `mode`.
        (false, _) if !dialect.elicitation_url => params.without("mode"),
        _ => params.clone(),
    }
}

/// Returns the elicitation form that approves a call: its exact arguments, and the reasons.
fn approval_form(approval: &ApprovalRequest, call: &Call) -> Json {
    // Escapes the names and reasons too: they may contain invisible characters.
    let message = visible(&format!(
        "Toolgate: may {} call {}?\n\nArguments (exact):\n{}\n\nReason for this request: {}",
        call.caller,
        approval.item.full_name(),
        approval.arguments.as_str(),
        approval.reasons.join("; "),
    ));
    let schema = serde_json::json!({
        "type": "object",
        "properties": {
            "approve": {"type": "boolean", "title": "Allow this call, once", "default": false},
            "reason": {"type": "string", "title": "Reason, if you deny (the model receives it)"},
        },
        "required": ["approve"],
    });
    let mut o = ObjectWriter::new();
    o.str("mode", "form");
    o.str("message", &message);
    o.raw("requestedSchema", &Json::from_value(&schema));
    o.finish()
}
