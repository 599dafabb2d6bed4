//! One `tools/call`: from parameters to a [`Call`], through its rounds, to an answer.

use super::{
    Refused, Server, answer,
    ask::{self, Asker, Left},
    outlet::{CallReport, Outlet},
};
use std::{sync::Arc, time::SystemTime};
use toolgate_core::{Abilities, Call, Caller, Kind, Reporter, Round, Seen};
use toolgate_wire::{
    dialect::Dialect,
    json::Json,
    message::{Id, RpcError},
    method::{elicitation::InputRequired, meta, tools_call},
};

/// What an edge knows about whoever calls, apart from the request itself.
#[derive(Clone, Debug)]
pub(crate) struct Context {
    pub(crate) caller: Caller,
    pub(crate) transport: &'static str,
    pub(crate) dialect: &'static Dialect,
    pub(crate) abilities: Abilities,
    pub(crate) client: Option<String>,
    pub(crate) log_level: Option<u8>,
}

/// Works on a `tools/call` until there is an answer.
pub(crate) async fn run(
    server: &Server,
    context: &Context,
    id: &Id,
    params: Option<&Json>,
    outlet: &Outlet,
    asker: Option<&dyn Asker>,
) -> Result<Json, RpcError> {
    let params_read = match tools_call::Params::read(params) {
        Ok(read) => read,
        Err(reason) => {
            server.refused(context.refused(None, reason)).await;
            return Err(answer::bad_params(reason));
        }
    };
    let token = meta::get(params, meta::PROGRESS);
    let report = Arc::new(CallReport::new(
        outlet.clone(),
        context.dialect,
        token,
        context.log_level,
    ));
    let _closer = report.closer();
    let mut call = context.call(&params_read, id);
    if report.is_wanted() {
        call.reporter = Reporter::new(report);
    }
    if let Err(error) = resume(server, context, &mut call, params_read) {
        server
            .refused(context.refused(Some(call.name()), error.public()))
            .await;
        return Err(answer::bad_params(error.public()));
    }
    match ask::rounds(server, context, call, outlet, asker).await {
        Ok(Left::Done(output)) => Ok(context.dialect.output(&output, &server.info)),
        Ok(Left::Questions(call, questions)) => leave(server, context, &call, questions),
        Err(error) => answer::failed(&error, context.dialect, &server.info),
    }
}

/// Takes up the answers and the state of the round before.
fn resume(
    server: &Server,
    context: &Context,
    call: &mut Call,
    params: tools_call::Params,
) -> Result<(), toolgate_core::Error> {
    let Some(sealed) = params.state.filter(|_| context.dialect.stateless) else {
        return Ok(());
    };
    let kept = server.seal.open(call, &sealed, SystemTime::now())?;
    if kept.round >= server.limits.rounds {
        let text = format!(
            "a call may ask {} times at most; call the tool again without requestState",
            server.limits.rounds
        );
        return Err(toolgate_core::Error::new(Kind::NotFound, text));
    }
    call.id = kept.call.into();
    call.round = Round {
        number: kept.round + 1,
        answers: params.answers,
        slots: kept.slots,
    };
    Ok(())
}

/// A question leaves as a result, with all that we must find again sealed in it.
fn leave(
    server: &Server,
    context: &Context,
    call: &Call,
    questions: toolgate_core::Questions,
) -> Result<Json, RpcError> {
    let state = server.seal.close(call, &questions.slots, SystemTime::now());
    let requests = questions
        .asks
        .iter()
        .map(|a| ask::request(a, call))
        .collect();
    match state {
        Ok(state) => Ok(InputRequired {
            requests,
            state: Some(state),
        }
        .json()),
        Err(error) => answer::failed(&error, context.dialect, &server.info),
    }
}

impl Context {
    fn call(&self, params: &tools_call::Params, id: &Id) -> Call {
        let mut call = Call::tool(
            crate::ids::short("c"),
            self.caller.clone(),
            params.name.as_str(),
            params.arguments.clone(),
        );
        call.abilities = self.abilities;
        call.seen = Arc::new(Seen {
            revision: self.dialect.revision.to_owned(),
            transport: self.transport,
            client: self.client.clone(),
            request: Some(id.json().as_str().to_owned()),
        });
        call
    }

    pub(crate) fn refused(&self, tool: Option<&str>, reason: &str) -> Refused {
        Refused {
            caller: self.caller.clone(),
            transport: self.transport,
            method: Some(tools_call::NAME.to_owned()),
            tool: tool.map(str::to_owned),
            reason: reason.to_owned(),
        }
    }
}

/// What the other end declared, from `capabilities` of a handshake or of a request.
pub(crate) fn abilities(capabilities: &Json, dialect: &Dialect) -> Abilities {
    let elicitation = capabilities
        .get("elicitation")
        .filter(|_| dialect.elicitation);
    let mode = |name: &str| elicitation.as_ref().is_some_and(|e| e.get(name).is_some());
    Abilities {
        // An empty object means forms.
        elicitation: elicitation.is_some() && (mode("form") || !mode("url")),
        elicitation_url: mode("url"),
        sampling: capabilities.get("sampling").is_some(),
        roots: capabilities.get("roots").is_some(),
    }
}
