//! Revision 2025-03-26.

use super::{Dialect, Structured};
use crate::method::tools_call::ContentKind::{Audio, Image, Resource, Text};

pub(super) static DIALECT: Dialect = Dialect {
    revision: "2025-03-26",
    stateless: false,
    content: &[Text, Image, Resource, Audio],
    unknown_tool_members: &["title", "outputSchema", "_meta", "icons", "execution"],
    structured: Structured::Unknown,
    bad_arguments_are_tool_errors: false,
    progress_message: true,
    elicitation: false,
    batches: true,
};
