//! Lines of `toolgate inbox --watch` if the output is no terminal, in the wording of the gateway's event log.

use super::{
    GatewayPoll, POLL_INTERVAL,
    descriptor::is_gone_within,
    gateway_poll::{EndedRequest, GatewaySnapshot},
    pending_request::PendingRequest,
};
use crate::{
    cli::commands::{Result, print},
    event_log::{GatewayEvent, LocalClock, plain_line},
    timestamp::millis,
};
use std::{
    collections::HashMap,
    io,
    process::ExitCode,
    time::{Duration, SystemTime},
};

/// Prints a line for each change, until the output closes or the process is stopped.
pub(super) fn run(mut poll: GatewayPoll, flags: &str) -> Result<ExitCode> {
    let mut changes = RequestChanges::default();
    let mut clock = LocalClock::default();
    let mut is_lost = false;
    loop {
        let snapshot = poll.poll();
        if is_lost != (snapshot.gateways == 0) {
            is_lost = !is_lost;
            match is_lost {
                true => eprintln!("toolgate: no gateway is running; waiting for one"),
                false => eprintln!("toolgate: a gateway is running again"),
            }
        }
        for event in changes.update(snapshot, flags) {
            print(&plain_line(&event, &mut clock))?;
        }
        // A closed pipe is noticed before there is something to print.
        if is_gone_within(&io::stdout(), Duration::ZERO) {
            return Ok(ExitCode::SUCCESS);
        }
        std::thread::sleep(POLL_INTERVAL);
    }
}

/// Requests whose arrival was printed, each with whether its caller waits.
#[derive(Default)]
pub(super) struct RequestChanges(HashMap<String, bool>);

impl RequestChanges {
    /// Returns the events since the last snapshot.
    pub(super) fn update(&mut self, snapshot: GatewaySnapshot, flags: &str) -> Vec<GatewayEvent> {
        let mut events = Vec::new();
        for end in &snapshot.ended {
            self.0.remove(&end.request.id);
            events.push(ended(end));
        }
        for request in &snapshot.requests {
            let was_awaited = self.0.insert(request.id.clone(), request.is_awaited);
            if was_awaited.is_none() {
                events.push(arrived(request, flags));
            }
            if was_awaited == Some(true) && !request.is_awaited {
                events.push(left(request));
            }
        }
        events
    }
}

fn arrived(request: &PendingRequest, flags: &str) -> GatewayEvent {
    let left = request.expires.saturating_sub(millis(SystemTime::now()));
    GatewayEvent::ApprovalRequested {
        id: request.id.clone(),
        tool: request.full_name(),
        caller: request.caller.clone(),
        expires_in: Duration::from_millis(left),
        needs_passkey: request.needs_passkey,
        flags: flags.to_owned(),
    }
}

fn ended(end: &EndedRequest) -> GatewayEvent {
    GatewayEvent::ApprovalDecided {
        id: end.request.id.clone(),
        tool: end.request.full_name(),
        caller: end.request.caller.clone(),
        decision: end.decision.clone().into(),
        by: end.by.clone(),
        reason: end.reason.clone(),
    }
}

/// The request stays pending: an approval is valid for the identical call until it expires.
fn left(request: &PendingRequest) -> GatewayEvent {
    GatewayEvent::ApprovalDecided {
        id: request.id.clone(),
        tool: request.full_name(),
        caller: request.caller.clone(),
        decision: "the caller no longer waits".into(),
        by: None,
        reason: None,
    }
}
