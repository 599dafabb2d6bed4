//! Revision 2026-07-28.

use super::{Dialect, Structured};
use crate::method::tools_call::ContentKind::{Audio, Image, Resource, ResourceLink, Text};

pub(super) static DIALECT: Dialect = Dialect {
    revision: "2026-07-28",
    stateless: true,
    content: &[Text, Image, Resource, Audio, ResourceLink],
    unknown_tool_members: &["execution"],
    structured: Structured::Any,
    bad_arguments_are_tool_errors: true,
    progress_message: true,
    elicitation: true,
    batches: false,
};
