//! Questions of the view, which every decision needs a second key to answer.

use super::{decision::OperatorDecision, wrap};
use crate::args::ApproveOptions;

/// Maximum length of a line that the person writes, in characters; the console has the same limit.
const MAX_INPUT_CHARS: usize = 500;

/// Line that the person writes. The cursor is at its end.
#[derive(Clone, Debug, Default)]
pub(super) struct TextInput(String);

impl TextInput {
    pub(super) fn as_str(&self) -> &str {
        self.0.trim()
    }

    /// Adds a character. Line ends and other controls of pasted text become spaces.
    pub(super) fn push(&mut self, c: char) {
        if self.0.chars().count() < MAX_INPUT_CHARS {
            self.0.push(if c.is_control() { ' ' } else { c });
        }
    }

    pub(super) fn pop(&mut self) {
        self.0.pop();
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    /// Returns the label and the end of the text, with the cursor, in at most `width` columns.
    pub(super) fn show(&self, label: &str, width: usize) -> String {
        let room = width.saturating_sub(wrap::columns(label) + 1);
        let text = toolgate_core::visible_line(&self.0);
        format!("{label}{}_", wrap::tail(&text, room))
    }
}

/// Labels of the fields of [`RememberForm`], with the option of `toolgate approve` that each stands for.
pub(super) const REMEMBER_FIELDS: [(&str, &str); 4] = [
    ("for or until (8h, 7d, 2027-01-31): ", "--for"),
    ("maximum calls: ", "--uses"),
    ("only when (CEL): ", "--when"),
    ("all callers (y or empty): ", "--all-callers"),
];

/// Form for the options of `toolgate approve --remember`. Empty fields are not passed.
#[derive(Clone, Debug, Default)]
pub(super) struct RememberForm {
    pub(super) id: String,
    pub(super) fields: [TextInput; REMEMBER_FIELDS.len()],
    /// Index of the field with the cursor.
    pub(super) focus: usize,
    pub(super) error: Option<String>,
}

impl RememberForm {
    /// Moves the cursor to another field.
    pub(super) fn move_focus(&mut self, back: bool) {
        let count = self.fields.len();
        let step = if back { count - 1 } else { 1 };
        self.focus = (self.focus + step) % count;
    }

    /// Returns the words that the person would pass to `toolgate approve`, the ID first.
    pub(super) fn words(&self) -> Vec<String> {
        let mut words = vec![self.id.clone(), "--remember".to_owned()];
        for (field, (_, option)) in self.fields.iter().zip(REMEMBER_FIELDS) {
            let text = field.as_str();
            match option {
                _ if text.is_empty() => {}
                "--all-callers" if text == "n" || text == "no" => {}
                "--all-callers" => words.push(option.to_owned()),
                // A date has dashes; a duration such as 8h has none.
                "--for" if text.contains('-') => words.push(format!("--until={text}")),
                _ => words.push(format!("{option}={text}")),
            }
        }
        words
    }

    /// Checks the fields as the command line does.
    ///
    /// # Errors
    /// The message of the command line.
    pub(super) fn options(&self) -> Result<ApproveOptions, String> {
        ApproveOptions::parse(&self.words())
    }
}

/// Arguments that the person edited, before they are sent.
#[derive(Clone, Debug)]
pub(super) struct EditReview {
    pub(super) id: String,
    /// Edited text.
    pub(super) text: String,
    /// Difference from the arguments of the call.
    pub(super) diff: String,
    /// Reason for which the text cannot be sent.
    pub(super) error: Option<String>,
}

/// Open question of the view.
#[derive(Clone, Debug)]
pub(super) enum ViewPrompt {
    /// Asks whether to send a decision.
    Confirm {
        decision: OperatorDecision,
        question: String,
        /// Only `y` answers, and Enter does not.
        needs_yes: bool,
    },
    /// Asks for the reason of a denial.
    Deny { id: String, reason: TextInput },
    /// Asks for the options of a remembered approval.
    Remember(RememberForm),
    /// Shows edited arguments.
    Edited(EditReview),
    /// Asks what to freeze.
    FreezeTarget { caller: String, server: String },
    /// Asks for the reason of a freeze.
    FreezeReason { what: String, reason: TextInput },
    /// Asks what to thaw.
    ThawTarget { targets: Vec<String> },
    /// Explains the keys.
    Help,
}

impl ViewPrompt {
    /// Returns the request that the question is about.
    pub(super) fn request_id(&self) -> Option<&str> {
        match self {
            ViewPrompt::Confirm { decision, .. } => decision.request_id(),
            ViewPrompt::Deny { id, .. } => Some(id),
            ViewPrompt::Remember(form) => Some(&form.id),
            ViewPrompt::Edited(review) => Some(&review.id),
            _ => None,
        }
    }

    /// Returns the line that the person writes.
    pub(super) fn input(&mut self) -> Option<&mut TextInput> {
        match self {
            ViewPrompt::Deny { reason, .. } | ViewPrompt::FreezeReason { reason, .. } => {
                Some(reason)
            }
            ViewPrompt::Remember(form) => form.fields.get_mut(form.focus),
            _ => None,
        }
    }
}
