//! Keys of the view.

use super::{
    decision::OperatorDecision,
    editor::editable_arguments,
    prompt::{EditReview, RememberForm, TextInput, ViewPrompt},
    state::InboxState,
};
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use std::time::Instant;
use toolgate_core::visible_line;

/// Work that a key asks for, outside of the state.
#[derive(Debug)]
pub(super) enum ViewEffect {
    /// Sends a decision to the gateways.
    Send(OperatorDecision),
    /// Opens the editor with arguments for a request.
    Edit { id: String, arguments: String },
    /// Ends the view.
    Quit,
}

/// Applies a key. A decision key acts on the selected ID and only opens a question.
pub(super) fn handle_key(
    state: &mut InboxState,
    key: KeyEvent,
    now: Instant,
) -> Option<ViewEffect> {
    let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
    if is_control && key.code == KeyCode::Char('c') {
        return match state.prompt.is_some() {
            true => cancel(state),
            false => Some(ViewEffect::Quit),
        };
    }
    // What is not drawn cannot be decided.
    if state.is_too_small() {
        return (key.code == KeyCode::Char('q')).then_some(ViewEffect::Quit);
    }
    let other = KeyModifiers::ALT | KeyModifiers::SUPER | KeyModifiers::META;
    let clears_field = is_control && key.code == KeyCode::Char('u');
    // Ctrl-A is no `a`: it may be the prefix of a terminal multiplexer.
    if key.modifiers.intersects(other) || (is_control && !clears_field) {
        return None;
    }
    if scroll(state, key.code) {
        return None;
    }
    match state.prompt.take() {
        None => main_key(state, key.code, now),
        Some(prompt) => prompt_key(state, prompt, key.code, is_control),
    }
}

/// Applies pasted text: only a line that the person writes takes it. Elsewhere its letters would be decisions.
pub(super) fn handle_paste(state: &mut InboxState, text: &str) {
    if let Some(input) = state.prompt.as_mut().and_then(ViewPrompt::input) {
        text.chars().for_each(|c| input.push(c));
    }
}

fn cancel(state: &mut InboxState) -> Option<ViewEffect> {
    state.set_prompt(None);
    None
}

fn scroll(state: &mut InboxState, key: KeyCode) -> bool {
    let page = isize::try_from(state.pane_height()).unwrap_or(1);
    // One row of the last page stays, so that the person does not lose the place.
    let page = (page - 1).max(1);
    match key {
        KeyCode::PageDown => state.scroll(page),
        KeyCode::PageUp => state.scroll(-page),
        KeyCode::Home => state.scroll(isize::MIN / 2),
        KeyCode::End => state.scroll(isize::MAX / 2),
        _ => return false,
    }
    true
}

fn main_key(state: &mut InboxState, key: KeyCode, now: Instant) -> Option<ViewEffect> {
    state.message.clear();
    match key {
        KeyCode::Char('q') => return Some(ViewEffect::Quit),
        KeyCode::Down | KeyCode::Char('j') => state.move_selection(true),
        KeyCode::Up | KeyCode::Char('k') => state.move_selection(false),
        KeyCode::Char(' ') => {
            scroll(state, KeyCode::PageDown);
        }
        KeyCode::Char('?') => state.set_prompt(Some(ViewPrompt::Help)),
        KeyCode::Char('t') => begin_thaw(state),
        KeyCode::Char(c @ ('a' | 'd' | 'e' | 'r' | 'f')) => {
            return begin_decision(state, c, now).unwrap_or_else(|why| {
                state.message = why;
                state.refresh();
                None
            });
        }
        _ => {}
    }
    state.refresh();
    None
}

/// Opens the question of a decision key.
///
/// # Errors
/// The reason for which the selected request cannot be decided so.
fn begin_decision(
    state: &mut InboxState,
    key: char,
    now: Instant,
) -> Result<Option<ViewEffect>, String> {
    let request = state.decidable(now)?;
    let id = request.id.clone();
    let prompt = match key {
        'a' | 'e' | 'r' if request.needs_passkey => {
            return Err(
                "a passkey has to sign this call: approve it at the console, which `toolgate console` opens"
                    .to_owned(),
            );
        }
        'a' => confirm_approval(state, OperatorDecision::approve(&id), ""),
        'd' => ViewPrompt::Deny {
            id,
            reason: TextInput::default(),
        },
        'e' if !request.may_edit => {
            return Err(
                "the arguments cannot be edited: only tool calls that need one approver can"
                    .to_owned(),
            );
        }
        'e' => {
            let arguments = editable_arguments(request);
            return Ok(Some(ViewEffect::Edit { id, arguments }));
        }
        'r' if request.required_approvers > 1 => {
            return Err("a call that needs several approvers cannot be remembered".to_owned());
        }
        'r' => ViewPrompt::Remember(RememberForm {
            error: (!request.may_remember).then(|| {
                "This tool may be destructive or is not trusted: fill in \"only when\".".to_owned()
            }),
            id,
            ..RememberForm::default()
        }),
        _ => ViewPrompt::FreezeTarget {
            caller: request.caller.clone(),
            server: request.server.clone(),
        },
    };
    state.set_prompt(Some(prompt));
    Ok(None)
}

/// Builds the question before an approval. Enter is not enough if the call may destroy something, or if the person
/// cannot have read all of it.
fn confirm_approval(state: &InboxState, decision: OperatorDecision, how: &str) -> ViewPrompt {
    let id = decision.request_id().unwrap_or_default();
    let request = state.pending(id);
    let is_destructive = request.is_some_and(|request| request.is_destructive());
    let unseen = state.unseen_rows();
    let mut question = format!("Approve {id}{how}");
    if let Some(request) = request {
        let caller = visible_line(&request.caller);
        question.push_str(&format!(": {} for {caller}", request.full_name()));
    }
    question.push('?');
    if is_destructive {
        question = format!("DESTRUCTIVE. {question}");
    }
    if unseen > 0 {
        question = format!("{unseen} LINES NOT SEEN. {question}");
    }
    ViewPrompt::Confirm {
        needs_yes: is_destructive || unseen > 0 || !how.is_empty(),
        decision,
        question,
    }
}

fn begin_thaw(state: &mut InboxState) {
    let targets: Vec<String> = state
        .freezes
        .iter()
        .map(|freeze| freeze.what.clone())
        .collect();
    match targets.is_empty() {
        true => state.message = "nothing is frozen".to_owned(),
        false => state.set_prompt(Some(ViewPrompt::ThawTarget { targets })),
    }
}

/// Applies a key to a question, which was taken out of the state.
fn prompt_key(
    state: &mut InboxState,
    mut prompt: ViewPrompt,
    key: KeyCode,
    is_control: bool,
) -> Option<ViewEffect> {
    if key == KeyCode::Esc {
        return cancel(state);
    }
    if let Some(input) = prompt.input() {
        match key {
            KeyCode::Char('u') if is_control => input.clear(),
            KeyCode::Char(c) if !is_control => input.push(c),
            KeyCode::Backspace => input.pop(),
            _ => return field_key(state, prompt, key),
        }
        state.set_prompt(Some(prompt));
        return None;
    }
    match (prompt, key) {
        (ViewPrompt::Confirm { decision, .. }, KeyCode::Char('y')) => send(state, decision),
        (
            ViewPrompt::Confirm {
                decision,
                needs_yes: false,
                ..
            },
            KeyCode::Enter,
        ) => send(state, decision),
        (ViewPrompt::Confirm { .. }, KeyCode::Char('n')) => cancel(state),
        (ViewPrompt::Edited(review), KeyCode::Char('y')) if review.error.is_none() => {
            let decision = OperatorDecision::approve_edited(&review.id, review.text.trim());
            send(state, decision)
        }
        (ViewPrompt::Edited(EditReview { id, text, .. }), KeyCode::Char('e')) => {
            state.set_prompt(None);
            Some(ViewEffect::Edit {
                id,
                arguments: text,
            })
        }
        (ViewPrompt::FreezeTarget { caller, .. }, KeyCode::Char('c')) => {
            freeze_reason(state, format!("caller {caller}"))
        }
        (ViewPrompt::FreezeTarget { server, .. }, KeyCode::Char('s')) => {
            freeze_reason(state, format!("server {server}"))
        }
        (ViewPrompt::FreezeTarget { .. }, KeyCode::Char('a')) => {
            freeze_reason(state, "all".to_owned())
        }
        (ViewPrompt::ThawTarget { targets }, KeyCode::Char(digit @ '1'..='9')) => {
            let at = digit as usize - '1' as usize;
            let decision = targets
                .get(at)
                .map(|what| OperatorDecision::Thaw { what: what.clone() });
            match decision {
                Some(decision) => send(state, decision),
                None => {
                    state.set_prompt(Some(ViewPrompt::ThawTarget { targets }));
                    None
                }
            }
        }
        (ViewPrompt::Help, KeyCode::Char('q' | '?') | KeyCode::Enter) => cancel(state),
        (prompt, _) => {
            state.set_prompt(Some(prompt));
            None
        }
    }
}

fn freeze_reason(state: &mut InboxState, what: String) -> Option<ViewEffect> {
    let reason = TextInput::default();
    state.set_prompt(Some(ViewPrompt::FreezeReason { what, reason }));
    None
}

/// Applies a key that does not change the text of a field.
fn field_key(state: &mut InboxState, prompt: ViewPrompt, key: KeyCode) -> Option<ViewEffect> {
    match (prompt, key) {
        (ViewPrompt::Deny { id, reason }, KeyCode::Enter) => {
            let reason = reason.as_str().to_owned();
            send(state, OperatorDecision::Deny { id, reason })
        }
        (ViewPrompt::FreezeReason { what, reason }, KeyCode::Enter) => {
            let reason = reason.as_str().to_owned();
            send(state, OperatorDecision::Freeze { what, reason })
        }
        (ViewPrompt::Remember(mut form), KeyCode::Enter) => {
            let prompt = match form.options() {
                Ok(options) => {
                    let words = form.words();
                    let how = format!(" {}", visible_line(&words[1..].join(" ")));
                    confirm_approval(state, OperatorDecision::Approve(options), &how)
                }
                Err(why) => {
                    form.error = Some(why);
                    ViewPrompt::Remember(form)
                }
            };
            state.set_prompt(Some(prompt));
            None
        }
        (
            ViewPrompt::Remember(mut form),
            KeyCode::Tab | KeyCode::Down | KeyCode::BackTab | KeyCode::Up,
        ) => {
            form.move_focus(matches!(key, KeyCode::BackTab | KeyCode::Up));
            state.set_prompt(Some(ViewPrompt::Remember(form)));
            None
        }
        (prompt, _) => {
            state.set_prompt(Some(prompt));
            None
        }
    }
}

/// Sends a decision, and closes the question.
fn send(state: &mut InboxState, decision: OperatorDecision) -> Option<ViewEffect> {
    state.set_prompt(None);
    state.in_flight += 1;
    Some(ViewEffect::Send(decision))
}
