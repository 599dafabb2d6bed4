//! Loop of the full-screen view.

use super::{
    GatewayPoll, POLL_INTERVAL,
    decision::OperatorDecision,
    descriptor::is_gone_within,
    editor::{ArgumentsFile, arguments_diff},
    gateway_poll::GatewaySnapshot,
    keys::{ViewEffect, handle_key, handle_paste},
    prompt::{EditReview, ViewPrompt},
    state::InboxState,
    stop_signal::StopSignal,
    terminal::ViewTerminal,
    view,
};
use crate::args::object;
use crossterm::event::{self, Event, KeyEventKind};
use serde_json::Value;
use std::{
    io,
    path::Path,
    sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TryRecvError, sync_channel},
    thread,
    time::{Duration, Instant},
};
use toolgate_core::visible_line;

/// Time to wait for a key before the view is drawn again.
const KEY_TIMEOUT: Duration = Duration::from_millis(100);
/// Reports and decisions that can wait in a channel.
const MAX_QUEUED: usize = 64;

/// Report of the thread that talks to the gateways.
enum GatewayReport {
    Snapshot(Box<GatewaySnapshot>),
    Done(OperatorDecision, Result<Value, String>),
}

/// Running view.
struct ViewScreen<'a> {
    state: InboxState,
    terminal: ViewTerminal,
    stop: StopSignal,
    decisions: SyncSender<OperatorDecision>,
    reports: Receiver<GatewayReport>,
    data: &'a Path,
}

/// Runs the view until the person quits or a signal arrives.
///
/// # Errors
/// The terminal failed.
pub(super) fn run(poll: GatewayPoll, data: &Path) -> Result<(), String> {
    let failure = |error| format!("cannot use the terminal: {error}; run without --watch");
    let stop = StopSignal::listen().map_err(failure)?;
    let (decisions, orders) = sync_channel(MAX_QUEUED);
    let (send, reports) = sync_channel(MAX_QUEUED);
    let worker = thread::Builder::new().name("gateways".to_owned());
    let worker = worker.spawn(move || talk_to_gateways(poll, &orders, &send));
    worker.map_err(failure)?;
    let terminal = ViewTerminal::open().map_err(failure)?;
    let mut screen = ViewScreen {
        state: InboxState::default(),
        terminal,
        stop,
        decisions,
        reports,
        data,
    };
    screen.run().map_err(failure)
}

/// Polls the gateways, and sends decisions to them. A gateway that does not respond blocks only this thread.
fn talk_to_gateways(
    mut poll: GatewayPoll,
    orders: &Receiver<OperatorDecision>,
    reports: &SyncSender<GatewayReport>,
) {
    loop {
        let snapshot = Box::new(poll.poll());
        if reports.send(GatewayReport::Snapshot(snapshot)).is_err() {
            return;
        }
        match orders.recv_timeout(POLL_INTERVAL) {
            Ok(decision) => {
                let (action, with) = decision.action();
                let result = poll.send(action, &with);
                if reports.send(GatewayReport::Done(decision, result)).is_err() {
                    return;
                }
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}

impl ViewScreen<'_> {
    fn run(&mut self) -> io::Result<()> {
        let mut wait = Duration::ZERO;
        loop {
            self.receive_reports()?;
            // A decision that was sent keeps the view open until the gateway responded, so that its result is seen.
            let is_done = self.state.is_quitting && self.state.in_flight == 0;
            if is_done || self.stop.is_set() {
                return Ok(());
            }
            self.draw()?;
            // crossterm 0.29 spins without end in a poll of a terminal that is gone, so the view looks first:
            // https://github.com/crossterm-rs/crossterm/issues/793
            if is_gone_within(&io::stdin(), wait) {
                return Ok(());
            }
            // It may hold keys that it has read, and then there is nothing to wait for.
            let has_event = event::poll(Duration::ZERO)?;
            wait = if has_event {
                Duration::ZERO
            } else {
                KEY_TIMEOUT
            };
            if has_event {
                self.handle_event(event::read()?)?;
            }
        }
    }

    fn draw(&mut self) -> io::Result<()> {
        let size = self.terminal.terminal.size()?;
        self.state.resize((size.width, size.height));
        let state = &self.state;
        self.terminal.terminal.draw(|frame| {
            let area = frame.area();
            view::draw(state, area, frame.buffer_mut());
        })?;
        Ok(())
    }

    fn receive_reports(&mut self) -> io::Result<()> {
        loop {
            match self.reports.try_recv() {
                Ok(GatewayReport::Snapshot(snapshot)) => {
                    self.state.apply(*snapshot, Instant::now());
                }
                Ok(GatewayReport::Done(decision, result)) => self.state.finish(&decision, result),
                Err(TryRecvError::Empty) => return Ok(()),
                Err(TryRecvError::Disconnected) => {
                    let text = "the connection to the gateways failed";
                    return Err(io::Error::other(text));
                }
            }
        }
    }

    /// Applies one event. The view is drawn before the next one, so a key acts on what was on the screen.
    fn handle_event(&mut self, event: Event) -> io::Result<()> {
        let effect = match event {
            Event::Key(key) if key.kind != KeyEventKind::Release => {
                handle_key(&mut self.state, key, Instant::now())
            }
            Event::Paste(text) => {
                handle_paste(&mut self.state, &text);
                None
            }
            _ => None,
        };
        match effect {
            None => {}
            Some(ViewEffect::Quit) if self.state.is_quitting => self.state.in_flight = 0,
            Some(ViewEffect::Quit) => self.state.is_quitting = true,
            Some(ViewEffect::Send(decision)) => self.send(decision),
            Some(ViewEffect::Edit { id, arguments }) => self.edit(id, &arguments)?,
        }
        Ok(())
    }

    fn send(&mut self, decision: OperatorDecision) {
        if self.decisions.try_send(decision).is_err() {
            self.state.in_flight -= 1;
            self.state.message = "too many decisions are queued; press the key again".to_owned();
        }
    }

    /// Opens the editor, and then the question about what it wrote.
    fn edit(&mut self, id: String, arguments: &str) -> io::Result<()> {
        self.terminal.suspend();
        let edited = self.run_editor(arguments);
        self.terminal.resume()?;
        self.receive_reports()?;
        let Some(request) = self.state.pending(&id) else {
            self.state.message =
                visible_line(&format!("{id} is no longer pending; nothing was sent"));
            return Ok(());
        };
        match edited {
            Err(why) => self.state.message = visible_line(&why),
            Ok(text) => {
                let diff = arguments_diff(request, &text);
                let error = object(text.trim()).err();
                if diff.is_empty() {
                    self.state.message =
                        "the arguments did not change; nothing was sent".to_owned();
                } else {
                    let review = EditReview {
                        id,
                        text,
                        diff,
                        error,
                    };
                    self.state.set_prompt(Some(ViewPrompt::Edited(review)));
                }
            }
        }
        Ok(())
    }

    /// Runs the editor to its end. The polls go on meanwhile.
    fn run_editor(&mut self, arguments: &str) -> Result<String, String> {
        let file = ArgumentsFile::create(self.data, arguments)
            .map_err(|error| format!("the file for the editor cannot be written: {error}"))?;
        let mut editor = file.start_editor()?;
        loop {
            let ended = editor.try_wait();
            let ended = ended.map_err(|error| format!("the editor cannot be awaited: {error}"))?;
            if let Some(status) = ended {
                return match status.success() {
                    true => file.read(),
                    false => Err(format!("the editor failed ({status}); nothing was sent")),
                };
            }
            if self.stop.is_set() {
                let _ = editor.kill();
                let _ = editor.wait();
                return Err("stopped by a signal".to_owned());
            }
            let received = self.receive_reports();
            received.map_err(|error| error.to_string())?;
            thread::sleep(Duration::from_millis(50));
        }
    }
}
