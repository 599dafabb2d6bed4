//! Arguments of a call as the console shows them.

use crate::pretty_json;
use toolgate_core::Json;
use toolgate_policy::SecretRedactor;

/// Bytes of a call's arguments in the console's list. An approval shows all of them.
const MAX_SHOWN_ARGUMENT_BYTES: usize = 16 * 1024;
/// Bytes of arguments that are kept as they are until somebody looks at the list.
const MAX_RAW_ARGUMENT_BYTES: usize = 2 * 1024;

/// Arguments of a call as the console shows them.
#[derive(Clone)]
pub(super) enum ShownArguments {
    /// Short arguments as compact JSON, which is made presentable once somebody looks at it.
    Raw(Json),
    /// Arguments that were made presentable at once, so that no long ones are kept.
    Presented(PresentedArguments),
}

#[derive(Clone)]
pub(super) struct PresentedArguments {
    pub(super) text: String,
    /// Number of masked values.
    pub(super) masked: usize,
}

impl ShownArguments {
    pub(super) fn new(arguments: &Json) -> ShownArguments {
        match arguments.as_str().len() <= MAX_RAW_ARGUMENT_BYTES {
            // Detached: a part of a message keeps all of the message in memory.
            true => ShownArguments::Raw(arguments.detached()),
            false => ShownArguments::Presented(PresentedArguments::new(arguments)),
        }
    }

    pub(super) fn present(&self) -> PresentedArguments {
        match self {
            ShownArguments::Raw(arguments) => PresentedArguments::new(arguments),
            ShownArguments::Presented(presented) => presented.clone(),
        }
    }
}

impl PresentedArguments {
    fn new(arguments: &Json) -> PresentedArguments {
        let (text, masked) = pretty_json::pretty_masked(arguments, MAX_SHOWN_ARGUMENT_BYTES);
        let text = SecretRedactor::redact_for_display(&text).into_owned();
        PresentedArguments { text, masked }
    }
}
