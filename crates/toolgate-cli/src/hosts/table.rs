//! Table of the known hosts.

use super::{
    ANY_KEY, CommandForm, EntryStyle, Host, HostFile, HostPath, HostScope, HostSyntax, VariableForm,
};

const MCP_SERVERS: &[&str] = &["mcpServers"];

/// Form of most hosts: `command`, `args`, `env`, and `url` with `headers`.
const COMMON: EntryStyle = EntryStyle {
    command: CommandForm::ProgramAndArgs,
    process_type: None,
    url: Some("url"),
    http_type: None,
    headers: "headers",
    variables: None,
    token_variable: None,
    required: &[],
};

/// Returns a file with the same path on both systems.
const fn file(
    scope: HostScope,
    path: HostPath,
    syntax: HostSyntax,
    servers: &'static [&'static str],
) -> HostFile {
    HostFile {
        scope,
        linux: path,
        macos: path,
        syntax,
        servers,
    }
}

/// Returns a file of an application that has its own directory on macOS.
const fn application_file(
    linux: &'static str,
    macos: &'static str,
    syntax: HostSyntax,
    servers: &'static [&'static str],
) -> HostFile {
    HostFile {
        scope: HostScope::User,
        linux: HostPath::Config(linux),
        macos: HostPath::Home(macos),
        syntax,
        servers,
    }
}

/// All known hosts, in the order in which they are shown.
pub(crate) const HOSTS: &[Host] = &[
    Host {
        id: "claude-desktop",
        name: "Claude Desktop",
        files: &[application_file(
            "Claude/claude_desktop_config.json",
            "Library/Application Support/Claude/claude_desktop_config.json",
            HostSyntax::Json,
            MCP_SERVERS,
        )],
        style: EntryStyle {
            url: None,
            ..COMMON
        },
    },
    Host {
        id: "claude-code",
        name: "Claude Code",
        files: &[
            file(HostScope::User, CLAUDE_JSON, HostSyntax::Json, MCP_SERVERS),
            file(
                HostScope::Local,
                CLAUDE_JSON,
                HostSyntax::Json,
                &["projects", ANY_KEY, "mcpServers"],
            ),
            file(
                HostScope::Project,
                HostPath::Project(".mcp.json"),
                HostSyntax::Json,
                MCP_SERVERS,
            ),
        ],
        style: EntryStyle {
            process_type: Some("stdio"),
            http_type: Some("http"),
            variables: Some(VariableForm::Plain),
            ..COMMON
        },
    },
    Host {
        id: "vscode",
        name: "VS Code",
        files: &[
            application_file(
                "Code/User/mcp.json",
                "Library/Application Support/Code/User/mcp.json",
                HostSyntax::Jsonc,
                VSCODE_SERVERS,
            ),
            application_file(
                "Code/User/settings.json",
                "Library/Application Support/Code/User/settings.json",
                HostSyntax::Jsonc,
                VSCODE_SETTINGS,
            ),
            VSCODE_PROJECT,
        ],
        style: VSCODE,
    },
    Host {
        id: "vscode-insiders",
        name: "VS Code Insiders",
        files: &[
            application_file(
                "Code - Insiders/User/mcp.json",
                "Library/Application Support/Code - Insiders/User/mcp.json",
                HostSyntax::Jsonc,
                VSCODE_SERVERS,
            ),
            application_file(
                "Code - Insiders/User/settings.json",
                "Library/Application Support/Code - Insiders/User/settings.json",
                HostSyntax::Jsonc,
                VSCODE_SETTINGS,
            ),
            VSCODE_PROJECT,
        ],
        style: VSCODE,
    },
    Host {
        id: "cursor",
        name: "Cursor",
        files: &[
            file(
                HostScope::User,
                HostPath::Home(".cursor/mcp.json"),
                HostSyntax::Jsonc,
                MCP_SERVERS,
            ),
            file(
                HostScope::Project,
                HostPath::Project(".cursor/mcp.json"),
                HostSyntax::Jsonc,
                MCP_SERVERS,
            ),
        ],
        style: EntryStyle {
            variables: Some(VariableForm::EnvPrefix),
            ..COMMON
        },
    },
    Host {
        id: "codex",
        name: "Codex",
        files: &[
            file(
                HostScope::User,
                HostPath::Variable {
                    name: "CODEX_HOME",
                    default: ".codex",
                    file: "config.toml",
                },
                HostSyntax::Toml,
                CODEX_SERVERS,
            ),
            file(
                HostScope::Project,
                HostPath::Project(".codex/config.toml"),
                HostSyntax::Toml,
                CODEX_SERVERS,
            ),
        ],
        style: EntryStyle {
            headers: "http_headers",
            token_variable: Some("bearer_token_env_var"),
            ..COMMON
        },
    },
    Host {
        id: "windsurf",
        name: "Windsurf",
        files: &[file(
            HostScope::User,
            HostPath::Home(".codeium/windsurf/mcp_config.json"),
            HostSyntax::Json,
            MCP_SERVERS,
        )],
        style: EntryStyle {
            url: Some("serverUrl"),
            variables: Some(VariableForm::EnvPrefix),
            ..COMMON
        },
    },
    Host {
        id: "zed",
        name: "Zed",
        files: &[
            file(
                HostScope::User,
                HostPath::Config("zed/settings.json"),
                HostSyntax::Jsonc,
                ZED_SERVERS,
            ),
            file(
                HostScope::Project,
                HostPath::Project(".zed/settings.json"),
                HostSyntax::Jsonc,
                ZED_SERVERS,
            ),
        ],
        style: EntryStyle { ..COMMON },
    },
    Host {
        id: "gemini-cli",
        name: "Gemini CLI",
        files: &[
            file(
                HostScope::User,
                HostPath::Home(".gemini/settings.json"),
                HostSyntax::Jsonc,
                MCP_SERVERS,
            ),
            file(
                HostScope::Project,
                HostPath::Project(".gemini/settings.json"),
                HostSyntax::Jsonc,
                MCP_SERVERS,
            ),
        ],
        style: EntryStyle {
            url: Some("httpUrl"),
            variables: Some(VariableForm::Plain),
            ..COMMON
        },
    },
    Host {
        id: "cline",
        name: "Cline",
        files: &[application_file(
            "Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json",
            "Library/Application Support/Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json",
            HostSyntax::Json,
            MCP_SERVERS,
        )],
        style: EntryStyle {
            http_type: Some("streamableHttp"),
            ..COMMON
        },
    },
    Host {
        id: "roo-code",
        name: "Roo Code",
        files: &[
            application_file(
                "Code/User/globalStorage/rooveterinaryinc.roo-cline/settings/mcp_settings.json",
                "Library/Application Support/Code/User/globalStorage/rooveterinaryinc.roo-cline/settings/mcp_settings.json",
                HostSyntax::Json,
                MCP_SERVERS,
            ),
            file(
                HostScope::Project,
                HostPath::Project(".roo/mcp.json"),
                HostSyntax::Json,
                MCP_SERVERS,
            ),
        ],
        style: EntryStyle {
            http_type: Some("streamable-http"),
            variables: Some(VariableForm::EnvPrefix),
            ..COMMON
        },
    },
    Host {
        id: "amazon-q",
        name: "Amazon Q Developer",
        files: &[
            file(
                HostScope::User,
                HostPath::Home(".aws/amazonq/mcp.json"),
                HostSyntax::Json,
                MCP_SERVERS,
            ),
            file(
                HostScope::Project,
                HostPath::Project(".amazonq/mcp.json"),
                HostSyntax::Json,
                MCP_SERVERS,
            ),
        ],
        style: EntryStyle {
            http_type: Some("http"),
            variables: Some(VariableForm::EnvPrefix),
            ..COMMON
        },
    },
    Host {
        id: "kiro",
        name: "Kiro",
        files: &[
            file(
                HostScope::User,
                HostPath::Home(".kiro/settings/mcp.json"),
                HostSyntax::Json,
                MCP_SERVERS,
            ),
            file(
                HostScope::Project,
                HostPath::Project(".kiro/settings/mcp.json"),
                HostSyntax::Json,
                MCP_SERVERS,
            ),
        ],
        style: EntryStyle {
            variables: Some(VariableForm::Plain),
            ..COMMON
        },
    },
    Host {
        id: "lm-studio",
        name: "LM Studio",
        files: &[file(
            HostScope::User,
            HostPath::Home(".lmstudio/mcp.json"),
            HostSyntax::Json,
            MCP_SERVERS,
        )],
        style: EntryStyle { ..COMMON },
    },
    Host {
        id: "opencode",
        name: "opencode",
        files: &[
            file(
                HostScope::User,
                HostPath::Config("opencode/opencode.json"),
                HostSyntax::Jsonc,
                OPENCODE_SERVERS,
            ),
            file(
                HostScope::User,
                HostPath::Config("opencode/opencode.jsonc"),
                HostSyntax::Jsonc,
                OPENCODE_SERVERS,
            ),
            file(
                HostScope::Project,
                HostPath::Project("opencode.json"),
                HostSyntax::Jsonc,
                OPENCODE_SERVERS,
            ),
            file(
                HostScope::Project,
                HostPath::Project("opencode.jsonc"),
                HostSyntax::Jsonc,
                OPENCODE_SERVERS,
            ),
        ],
        style: EntryStyle {
            command: CommandForm::OneList,
            process_type: Some("local"),
            http_type: Some("remote"),
            variables: Some(VariableForm::Braces),
            ..COMMON
        },
    },
    Host {
        id: "copilot-cli",
        name: "GitHub Copilot CLI",
        files: &[
            file(
                HostScope::User,
                HostPath::Variable {
                    name: "COPILOT_HOME",
                    default: ".copilot",
                    file: "mcp-config.json",
                },
                HostSyntax::Json,
                MCP_SERVERS,
            ),
            file(
                HostScope::Project,
                HostPath::Project(".github/mcp.json"),
                HostSyntax::Json,
                MCP_SERVERS,
            ),
        ],
        style: EntryStyle {
            process_type: Some("local"),
            http_type: Some("http"),
            variables: Some(VariableForm::Plain),
            required: &[("tools", &["*"])],
            ..COMMON
        },
    },
];

const CLAUDE_JSON: HostPath = HostPath::Variable {
    name: "CLAUDE_CONFIG_DIR",
    default: "",
    file: ".claude.json",
};
const CODEX_SERVERS: &[&str] = &["mcp_servers"];
const OPENCODE_SERVERS: &[&str] = &["mcp"];
const VSCODE_SERVERS: &[&str] = &["servers"];
const VSCODE_SETTINGS: &[&str] = &["mcp", "servers"];
const ZED_SERVERS: &[&str] = &["context_servers"];

const VSCODE_PROJECT: HostFile = file(
    HostScope::Project,
    HostPath::Project(".vscode/mcp.json"),
    HostSyntax::Jsonc,
    VSCODE_SERVERS,
);
const VSCODE: EntryStyle = EntryStyle {
    process_type: Some("stdio"),
    http_type: Some("http"),
    variables: Some(VariableForm::EnvPrefix),
    ..COMMON
};
