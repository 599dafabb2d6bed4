//! Form of a server's entry in the file of a host.

/// Form of a server's entry: which keys it has, and how their values are written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EntryStyle {
    /// Form of the command.
    pub(crate) command: CommandForm,
    /// Value of the key `type` for a server that the host starts, if the host wants one.
    pub(crate) process_type: Option<&'static str>,
    /// Key of the address for Streamable HTTP, or `None` if the host only starts servers.
    pub(crate) url: Option<&'static str>,
    /// Value of the key `type` for Streamable HTTP, if the host wants one.
    pub(crate) http_type: Option<&'static str>,
    /// Key of the HTTP headers.
    pub(crate) headers: &'static str,
    /// Form of a reference to an environment variable, if the host replaces them.
    pub(crate) variables: Option<VariableForm>,
    /// Key that names the environment variable with the bearer token, if the host has one.
    pub(crate) token_variable: Option<&'static str>,
    /// Lists that every entry has besides, such as `"tools": ["*"]`.
    pub(crate) required: &'static [(&'static str, &'static [&'static str])],
}

/// Form of the command in an entry.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum CommandForm {
    /// The program in `command`, its arguments in `args`.
    ProgramAndArgs,
    /// The program and its arguments in one list, `command`.
    OneList,
}

/// Form of a reference to an environment variable.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum VariableForm {
    /// `${NAME}`.
    Plain,
    /// `${env:NAME}`.
    EnvPrefix,
    /// `{env:NAME}`.
    Braces,
}

impl VariableForm {
    /// Returns a reference to the variable.
    pub(crate) fn reference(self, name: &str) -> String {
        match self {
            VariableForm::Plain => format!("${{{name}}}"),
            VariableForm::EnvPrefix => format!("${{env:{name}}}"),
            VariableForm::Braces => format!("{{env:{name}}}"),
        }
    }
}
