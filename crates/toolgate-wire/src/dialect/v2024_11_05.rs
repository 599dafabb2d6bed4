//! Revision 2024-11-05.

use super::{Dialect, Structured};
use crate::method::tools_call::ContentKind::{Image, Resource, Text};

pub(super) static DIALECT: Dialect = Dialect {
    revision: "2024-11-05",
    stateless: false,
    content: &[Text, Image, Resource],
    unknown_tool_members: &[
        "annotations",
        "title",
        "outputSchema",
        "_meta",
        "icons",
        "execution",
    ],
    structured: Structured::Unknown,
    bad_arguments_are_tool_errors: false,
    progress_message: false,
    elicitation: false,
    batches: false,
};
