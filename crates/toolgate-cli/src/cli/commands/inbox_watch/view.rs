//! Draws a state of the view into a buffer.
//!
//! Untrusted text never shares a row with other text to its right, except in the list, where its columns are cut to
//! fixed widths. So a character whose width the terminal counts differently cannot move text of ours.

use super::{
    pending_request::PendingRequest,
    prompt::{REMEMBER_FIELDS, ViewPrompt},
    state::InboxState,
    wrap::{WrappedRow, columns, cut, wrap_line},
};
use crate::timestamp::millis;
use ratatui_core::{
    buffer::Buffer,
    layout::Rect,
    style::{Modifier, Style},
};
use std::time::SystemTime;
use toolgate_core::visible_line;
use toolgate_protocol::plural::count_of;

/// Smallest terminal that the view fits into.
pub(super) const MIN_SIZE: (u16, u16) = (40, 10);
/// Rows of the status line, the separator and the key line.
const FIXED_ROWS: u16 = 3;
/// Maximum rows of a question or message.
const MAX_FOOTER_ROWS: u16 = 4;

/// Text of the help.
pub(super) const HELP_TEXT: &str = "\
up, down, k, j    select a request
PgUp, PgDn        scroll its details; Space is PgDn
Home, End         first and last rows of the details
a                 approve the call
d                 deny it; asks for a reason, which the model receives
e                 edit the arguments in $VISUAL or $EDITOR, then approve
r                 approve and remember, with the options of `toolgate approve`
f                 freeze the caller, the server or everything
t                 thaw
q, Ctrl-C         quit; pending requests stay pending

The view asks you to confirm every decision. Enter confirms an approval.
Only y confirms it if the definition says that the tool is destructive,
if you remember the approval or edited the arguments, or if you have not
seen all rows of the request.
Keys do nothing for a moment after the selection moved by itself.

In the list, ~ marks a request whose caller no longer waits.

A row that begins with + continues the row above it. \\u202e and the like
are characters that a terminal would hide or interpret.";

/// Heights of the parts of the view.
pub(super) struct ScreenLayout {
    pub(super) list: u16,
    /// Pane of the detail, a diff, the form or the help.
    pub(super) pane: u16,
    /// Rows of the question or message.
    pub(super) footer: Vec<WrappedRow>,
}

/// Computes the heights of the parts for the size of the terminal.
pub(super) fn screen_layout(state: &InboxState) -> ScreenLayout {
    let (width, height) = state.size;
    let mut footer = Vec::new();
    for (text, is_bold) in footer_lines(state) {
        wrap_line(&text, width, is_bold, &mut footer);
    }
    let rest = height.saturating_sub(FIXED_ROWS);
    let count = u16::try_from(state.requests.len()).unwrap_or(u16::MAX);
    let list = count.clamp(1, (rest / 3).max(1));
    let room = rest.saturating_sub(list);
    let most = MAX_FOOTER_ROWS.min(room.saturating_sub(1));
    footer.truncate(usize::from(most));
    let used = u16::try_from(footer.len()).unwrap_or(most);
    ScreenLayout {
        list,
        pane: room.saturating_sub(used),
        footer,
    }
}

/// Draws the view.
pub(super) fn draw(state: &InboxState, area: Rect, buffer: &mut Buffer) {
    let plain = Style::new();
    if state.is_too_small() {
        let text = format!("Needs {}x{} or more. q quits.", MIN_SIZE.0, MIN_SIZE.1);
        buffer.set_stringn(0, 0, text, usize::from(area.width), plain);
        return;
    }
    let layout = screen_layout(state);
    let width = usize::from(area.width);
    let bold = plain.add_modifier(Modifier::BOLD);
    let reversed = plain.add_modifier(Modifier::REVERSED);
    let mut y = 0;
    let mut row = |text: &str, style: Style| {
        let padded = format!("{text}{}", " ".repeat(width.saturating_sub(columns(text))));
        let text = if style == reversed { &padded } else { text };
        buffer.set_stringn(0, y, text, width, style);
        y += 1;
    };
    row(&cut(&status_text(state), width), bold);
    let now = millis(SystemTime::now());
    for (text, is_selected) in list_rows(state, layout.list, width, now) {
        row(&text, if is_selected { reversed } else { plain });
    }
    row(&separator(state, layout.pane, width), plain);
    let pane = pane_rows(state, width);
    let shown = pane.iter().skip(state.offset);
    for at in shown
        .map(Some)
        .chain(std::iter::repeat(None))
        .take(usize::from(layout.pane))
    {
        let style = |line: &WrappedRow| if line.is_bold { bold } else { plain };
        row(at.map_or("", |line| &line.text), at.map_or(plain, style));
    }
    for line in &layout.footer {
        row(&line.text, bold);
    }
    row(&cut(key_text(state, width), width), reversed);
}

/// Returns the rows of the scrolled pane.
fn pane_rows(state: &InboxState, width: usize) -> Vec<WrappedRow> {
    let Some(ViewPrompt::Remember(form)) = &state.prompt else {
        return state.rows.clone();
    };
    let fields = form.fields.iter().zip(REMEMBER_FIELDS).enumerate();
    let field = |(at, (field, (label, _)))| {
        let is_focused = at == form.focus;
        let mut text = (field as &super::prompt::TextInput).show(label, width.saturating_sub(2));
        if !is_focused {
            text.pop();
        }
        WrappedRow {
            text: format!("{}{text}", if is_focused { "> " } else { "  " }),
            is_bold: is_focused,
        }
    };
    fields.map(field).collect()
}

fn status_text(state: &InboxState) -> String {
    if state.gateways == 0 {
        let text = match (&state.problem, state.was_connected) {
            (Some(problem), _) => format!("No gateway responds, waiting… {problem}"),
            (None, true) => "The gateway stopped; waiting for one…".to_owned(),
            (None, false) => "No gateway is running; waiting for one…".to_owned(),
        };
        return visible_line(&text);
    }
    let pending = state.requests.iter().filter(|r| r.end.is_none()).count();
    let mut text = format!(
        "{pending} pending, {}",
        count_of(state.gateways as u64, "gateway")
    );
    if !state.freezes.is_empty() {
        let what = state.freezes.iter().map(|freeze| freeze.what.as_str());
        let what: Vec<&str> = what.collect();
        text.push_str(&format!(", FROZEN: {}", what.join(", ")));
    }
    if let Some(problem) = &state.problem {
        text.push_str(&format!(", {problem}"));
    }
    visible_line(&text)
}

/// Returns the rows of the list around the selected request.
fn list_rows(state: &InboxState, height: u16, width: usize, now: u64) -> Vec<(String, bool)> {
    let height = usize::from(height);
    if state.requests.is_empty() {
        let mut rows = vec![("  no calls are waiting for approval".to_owned(), false)];
        rows.resize(height.max(1), (String::new(), false));
        return rows;
    }
    let is_selected = |request: &PendingRequest| state.selected.as_ref() == Some(&request.id);
    let at = state.requests.iter().position(is_selected).unwrap_or(0);
    let first = (at + 1).saturating_sub(height);
    let rows = state.requests.iter().skip(first).take(height);
    rows.map(|request| (list_row(request, width, now), is_selected(request)))
        .collect()
}

/// Returns a row of the list: ID, time left, tool, caller, and the argument that says most.
fn list_row(request: &PendingRequest, width: usize, now: u64) -> String {
    let id = visible_line(&request.id);
    let left = match request.end.is_some() {
        true => "ended".to_owned(),
        false => time_left(request.expires.saturating_sub(now) / 1000),
    };
    let gone = if request.is_awaited { " " } else { "~" };
    let head = format!(" {id} {left:>5}{gone} ");
    let rest = width.saturating_sub(columns(&head));
    let fixed = |text: &str, room: usize| {
        let text = cut(text, room);
        format!("{text}{}", " ".repeat(room.saturating_sub(columns(&text))))
    };
    let caller = visible_line(&request.caller);
    // Narrow terminals show no argument in the list; the detail has it.
    let (tool_room, caller_room) = match rest {
        0..40 => (rest * 3 / 5, rest - rest * 3 / 5 - 1),
        _ => ((rest / 3).min(32), (rest / 4).min(24)),
    };
    let line = format!(
        "{head}{} {} {}",
        fixed(&request.full_name(), tool_room),
        fixed(&caller, caller_room),
        request.main_argument()
    );
    cut(&line, width)
}

fn time_left(seconds: u64) -> String {
    match seconds {
        0..100 => format!("{seconds}s"),
        100..6000 => format!("{}m", seconds / 60),
        _ => format!("{}h", seconds / 3600),
    }
}

/// Returns the line above the pane, which says what part of it is shown.
fn separator(state: &InboxState, height: u16, width: usize) -> String {
    let total = state.rows.len();
    let last = (state.offset + usize::from(height)).min(total);
    let what = match &state.prompt {
        Some(ViewPrompt::Remember(_)) => "-- approve and remember ".to_owned(),
        Some(ViewPrompt::Help) => format!("-- keys, {}-{last} of {total} ", state.offset + 1),
        Some(ViewPrompt::Edited(_)) => {
            format!("-- edited, {}-{last} of {total} ", state.offset + 1)
        }
        _ if total == 0 => String::new(),
        _ => format!("-- line {}-{last} of {total} ", state.offset + 1),
    };
    let more = match last < total && !matches!(state.prompt, Some(ViewPrompt::Remember(_))) {
        true => " MORE BELOW (PgDn) --",
        false => "",
    };
    let dashes = width.saturating_sub(what.len() + more.len());
    cut(&format!("{what}{}{more}", "-".repeat(dashes)), width)
}

/// Returns the question, or the result of the last action.
fn footer_lines(state: &InboxState) -> Vec<(String, bool)> {
    let width = usize::from(state.size.0).saturating_sub(2);
    let question = match &state.prompt {
        None if state.in_flight > 0 => "waiting for the gateway…".to_owned(),
        None | Some(ViewPrompt::Help) => state.message.clone(),
        Some(ViewPrompt::Confirm { question, .. }) => question.clone(),
        Some(ViewPrompt::Deny { id, reason }) => {
            reason.show(&format!("Deny {id}, reason: "), width)
        }
        Some(ViewPrompt::FreezeReason { what, reason }) => reason.show(
            &format!("Freeze {}, reason: ", cut(&visible_line(what), width / 2)),
            width,
        ),
        Some(ViewPrompt::FreezeTarget { caller, server }) => {
            format!("Freeze: c the caller {caller}, s the server {server}, a everything?")
        }
        Some(ViewPrompt::ThawTarget { targets }) => {
            let numbered = targets.iter().enumerate();
            let numbered = numbered.map(|(at, what)| format!("{}: {what}", at + 1));
            format!("Thaw {}?", numbered.collect::<Vec<_>>().join(", "))
        }
        Some(ViewPrompt::Remember(form)) => match &form.error {
            Some(error) => error.clone(),
            None => format!("Approve {} and remember it?", form.id),
        },
        Some(ViewPrompt::Edited(review)) => match &review.error {
            Some(error) => format!("Not sent: {error}"),
            None => format!("Approve {} with these arguments?", review.id),
        },
    };
    match question.is_empty() {
        true => Vec::new(),
        false => vec![(question, true)],
    }
}

/// Returns the keys that do something now.
fn key_text(state: &InboxState, width: usize) -> &'static str {
    match &state.prompt {
        None if width < 78 => " a d e r f t: decide, ?: help, q: quit",
        None => {
            " a approve  d deny  e edit  r remember  f freeze  t thaw  PgDn scroll  ? help  q quit"
        }
        Some(ViewPrompt::Confirm {
            needs_yes: true, ..
        }) => " y: yes, Esc: no",
        Some(ViewPrompt::Confirm { .. }) => " y or Enter: yes, Esc: no",
        Some(ViewPrompt::Deny { .. }) => " Enter: deny, Esc: cancel",
        Some(ViewPrompt::FreezeReason { .. }) => " Enter: freeze, Esc: cancel",
        Some(ViewPrompt::FreezeTarget { .. }) => " c, s or a, Esc: cancel",
        Some(ViewPrompt::ThawTarget { .. }) => " number, Esc: cancel",
        Some(ViewPrompt::Remember(_)) => " Tab: next, Enter: review, Esc: cancel",
        Some(ViewPrompt::Edited(review)) if review.error.is_some() => " e: edit again, Esc: cancel",
        Some(ViewPrompt::Edited(_)) => " y: approve, e: edit again, Esc: no",
        Some(ViewPrompt::Help) => " PgDn: scroll, Esc: close",
    }
}
