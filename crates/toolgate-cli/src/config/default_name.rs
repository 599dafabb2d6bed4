//! Default name of a server, from its package, image, program or URL.

use super::server_names::normalize_id;
use std::path::Path;

/// Maximum length of a server name.
const MAX_NAME_CHARS: usize = 32;
/// Name if nothing else gives one.
const FALLBACK_NAME: &str = "server";

/// Programs that run a package, with the words between program and package, the options that take a value, and the
/// subject that they name.
const RUNNERS: &[Runner] = &[
    Runner::new("npx", &[], NODE_OPTIONS),
    Runner::new("bunx", &[], NODE_OPTIONS),
    Runner::new("pnpx", &[], NODE_OPTIONS),
    Runner::new("npm", &["exec"], NODE_OPTIONS),
    Runner::new("npm", &["x"], NODE_OPTIONS),
    Runner::new("pnpm", &["dlx"], NODE_OPTIONS),
    Runner::new("yarn", &["dlx"], NODE_OPTIONS),
    Runner::new("bun", &["x"], NODE_OPTIONS),
    Runner::new("bun", &["run"], NODE_OPTIONS),
    Runner::new("deno", &["run"], &[]),
    Runner::new("uvx", &[], PYTHON_OPTIONS),
    Runner::new("uv", &["tool", "run"], PYTHON_OPTIONS),
    Runner::new("uv", &["run"], PYTHON_OPTIONS),
    Runner::new(
        "pipx",
        &["run"],
        &["--spec", "--python", "--index-url", "-i"],
    ),
    Runner::new("docker", &["run"], CONTAINER_OPTIONS),
    Runner::new("docker", &["container", "run"], CONTAINER_OPTIONS),
    Runner::new("podman", &["run"], CONTAINER_OPTIONS),
    Runner::new("python", &["-m"], &[]),
    Runner::new("python3", &["-m"], &[]),
    Runner::new("python", &[], &["-W", "-X"]),
    Runner::new("python3", &[], &["-W", "-X"]),
    Runner::new("node", &[], &["-r", "--require", "--import", "--env-file"]),
    Runner::new("bun", &[], &[]),
    Runner::new("tsx", &[], &[]),
    Runner::new("java", &["-jar"], &[]),
    Runner::new("sh", &[], &[]),
    Runner::new("bash", &[], &[]),
    Runner::new("nohup", &[], &[]),
    Runner::new("env", &[], &["-u", "-C", "-S"]),
];
#[rustfmt::skip]
const NODE_OPTIONS: &[&str] = &["-p", "--package", "-c", "--call", "-w", "--workspace", "--registry"];
#[rustfmt::skip]
const PYTHON_OPTIONS: &[&str] = &[
    "--from", "--with", "--with-editable", "--with-requirements", "-p", "--python", "--directory", "--project",
    "--index", "--default-index", "--index-url", "--env-file", "--extra", "--group", "-m", "--module",
];
#[rustfmt::skip]
const CONTAINER_OPTIONS: &[&str] = &[
    "-e", "--env", "--env-file", "-v", "--volume", "--mount", "-p", "--publish", "--name", "--network", "--net", "-w",
    "--workdir", "-u", "--user", "--entrypoint", "-l", "--label", "--platform", "--pull", "--add-host", "-h",
    "--hostname", "--cpus", "-m", "--memory", "--restart", "--device", "--gpus", "--cap-add", "--cap-drop",
    "--security-opt", "--tmpfs", "--ulimit", "--shm-size", "--dns", "--log-driver", "--log-opt", "--pids-limit",
    "--ipc", "--pid", "--userns", "--runtime", "--group-add", "--volumes-from", "--stop-signal", "--stop-timeout",
];

/// Packages that connect to the URL in their arguments.
const URL_BRIDGES: [&str; 3] = ["mcp-remote", "supergateway", "mcp-proxy"];
/// Words of package names that say only that it is an MCP server.
const GENERIC_WORDS: [&str; 3] = ["mcp", "server", "stdio"];
/// File and directory names that name no server.
#[rustfmt::skip]
const GENERIC_FILES: [&str; 14] = [
    "index", "main", "server", "mcp", "mcp-server", "app", "cli", "run", "start", "dist", "build", "src", "lib", "bin",
];
/// Endings of script and program files.
#[rustfmt::skip]
const FILE_ENDINGS: [&str; 9] = [
    ".py", ".js", ".mjs", ".cjs", ".ts", ".sh", ".jar", ".exe", ".cmd",
];
/// First labels of host names that name no server.
const GENERIC_LABELS: [&str; 6] = ["mcp", "www", "api", "sse", "app", "remote"];
/// Domains of hosting services, whose customers have names below them.
#[rustfmt::skip]
const HOSTING_DOMAINS: [&str; 12] = [
    "workers.dev", "pages.dev", "vercel.app", "netlify.app", "fly.dev", "onrender.com", "herokuapp.com", "github.io",
    "azurewebsites.net", "ngrok-free.app", "ngrok.io", "hf.space",
];
/// Second labels of country domains such as `co.uk`.
const COUNTRY_LABELS: [&str; 6] = ["co", "com", "org", "net", "ac", "gov"];

/// Program that runs another one, whose name is better.
struct Runner {
    program: &'static str,
    words: &'static [&'static str],
    options: &'static [&'static str],
}

impl Runner {
    const fn new(
        program: &'static str,
        words: &'static [&'static str],
        options: &'static [&'static str],
    ) -> Runner {
        Runner {
            program,
            words,
            options,
        }
    }

    /// Returns the command line that the runner starts, with the package or file first.
    fn inner<'w>(&self, command: &'w [String]) -> Option<&'w [String]> {
        let (program, mut rest) = command.split_first()?;
        if base_name(program) != self.program {
            return None;
        }
        for word in self.words {
            let (first, after) = rest.split_first()?;
            if first != word {
                return None;
            }
            rest = after;
        }
        while let Some((word, after)) = rest.split_first() {
            let variable = self.program == "env" && word.contains('=');
            match word.as_str() {
                "-m" | "--module" if self.program == "uv" => return Some(after),
                word if self.options.contains(&word) => rest = after.get(1..)?,
                word if word.starts_with('-') || variable => rest = after,
                _ => return Some(rest),
            }
        }
        None
    }
}

/// Returns the default name of a server with that command: of its package, image or script, else of its program.
pub(crate) fn name_of_command(command: &[String]) -> String {
    let mut words = command;
    while let Some(inner) = RUNNERS.iter().find_map(|runner| runner.inner(words)) {
        words = inner;
    }
    let Some((subject, arguments)) = words.split_first() else {
        return FALLBACK_NAME.to_owned();
    };
    let bridged = URL_BRIDGES.contains(&without_version(subject));
    let url = arguments.iter().find(|word| word.contains("://"));
    match url.filter(|_| bridged) {
        Some(url) => name_of_url(url),
        None => cleaned(&name_of_subject(subject)),
    }
}

/// Returns the default name of a server with that URL: of its host, without `mcp` and the top-level domain.
pub(crate) fn name_of_url(url: &str) -> String {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = authority.rsplit('@').next().unwrap_or_default();
    if host.starts_with('[') {
        return FALLBACK_NAME.to_owned();
    }
    let host = host.split(':').next().unwrap_or_default().to_lowercase();
    if host
        .split('.')
        .all(|part| part.bytes().all(|b| b.is_ascii_digit()))
    {
        return FALLBACK_NAME.to_owned();
    }
    let hosted = HOSTING_DOMAINS
        .iter()
        .find_map(|domain| host.strip_suffix(domain)?.strip_suffix('.'));
    let labels: Vec<&str> = hosted.unwrap_or(&host).split('.').collect();
    let owned = match (hosted, labels.as_slice()) {
        (Some(_), labels) => labels,
        (None, [single]) => return cleaned(single),
        (None, [before @ .., second, country])
            if country.len() == 2 && COUNTRY_LABELS.contains(second) && !before.is_empty() =>
        {
            before
        }
        (None, [before @ .., _]) => before,
        (None, []) => return FALLBACK_NAME.to_owned(),
    };
    let named = owned
        .iter()
        .rev()
        .find(|label| !GENERIC_LABELS.contains(label));
    cleaned(named.or(owned.last()).copied().unwrap_or_default())
}

/// Returns the best name in a package, an image, a path or a module.
fn name_of_subject(subject: &str) -> String {
    let subject = subject
        .trim_start_matches("npm:")
        .trim_start_matches("jsr:");
    let subject = subject
        .split_once('#')
        .map_or(subject, |(before, _)| before);
    let subject = without_version(subject);
    if subject.contains("://") {
        // A repository, such as git+https://github.com/owner/name.git.
        let name = subject.trim_end_matches('/').rsplit('/').next();
        return short(name.unwrap_or_default().trim_end_matches(".git"));
    }
    let mut parts: Vec<&str> = subject.split('/').filter(|part| !part.is_empty()).collect();
    let Some(last) = parts.pop() else {
        return String::new();
    };
    let file = FILE_ENDINGS.iter().find_map(|end| last.strip_suffix(end));
    let is_path = file.is_some() || subject.starts_with(['/', '.', '~']);
    let own = file.unwrap_or(last);
    let own = own
        .strip_prefix("__")
        .and_then(|own| own.strip_suffix("__"))
        .unwrap_or(own);
    if is_path {
        let generic = |name: &str| GENERIC_FILES.contains(&normalize_id(name).as_str());
        let named = [own].into_iter().chain(parts.into_iter().rev());
        let named = named
            .filter(|name| !["..", "."].contains(name))
            .find(|name| !generic(name));
        return short(named.unwrap_or(own));
    }
    let name = short(own);
    match parts.last() {
        // `@playwright/mcp` and `mcp/server` say nothing behind the slash.
        Some(scope) if is_generic(&name) => short(scope.trim_start_matches('@')),
        _ => name,
    }
}

/// Returns a package without its version, extras, tag and digest.
fn without_version(package: &str) -> &str {
    let end = |text: &'static str| move |package: &str| package.find(text);
    let cut = |package: &str, at: Option<usize>| at.map_or(package.len(), |at| at);
    let mut name = package;
    if name.contains("://") {
        let path = name.rfind('/').unwrap_or_default();
        return &name[..name[path..].find('@').map_or(name.len(), |at| path + at)];
    }
    // A scope begins with `@` as well.
    name = &name[..name
        .get(1..)
        .and_then(|rest| rest.find('@'))
        .map_or(name.len(), |at| at + 1)];
    for text in ["==", ">=", "<=", "~=", "["] {
        name = &name[..cut(name, end(text)(name))];
    }
    let last = name.rfind('/').unwrap_or_default();
    &name[..name[last..].find(':').map_or(name.len(), |at| last + at)]
}

/// Removes the words of a name that say only that it is an MCP server.
fn short(name: &str) -> String {
    let name = normalize_id(name);
    let words: Vec<&str> = name.split('-').filter(|word| !word.is_empty()).collect();
    let generic = |(at, word): &(usize, &str)| match words.contains(&"mcp") {
        true => GENERIC_WORDS.contains(word),
        false => *at == 0 && *word == "server",
    };
    let own: Vec<&str> = (0..)
        .zip(words.iter().copied())
        .filter(|word| !generic(word))
        .map(|(_, word)| word)
        .collect();
    match own.is_empty() {
        true => words.join("-"),
        false => own.join("-"),
    }
}

fn is_generic(name: &str) -> bool {
    name.split('-')
        .all(|word| GENERIC_WORDS.contains(&word) || word.is_empty())
}

/// Returns a valid server name.
fn cleaned(name: &str) -> String {
    let id: String = normalize_id(name).chars().take(MAX_NAME_CHARS).collect();
    match id.trim_matches('-') {
        "" => FALLBACK_NAME.to_owned(),
        id => id.to_owned(),
    }
}

fn base_name(program: &str) -> &str {
    let name = Path::new(program)
        .file_name()
        .and_then(|name| name.to_str());
    let name = name.unwrap_or(program);
    name.strip_suffix(".exe")
        .or(name.strip_suffix(".cmd"))
        .unwrap_or(name)
}

#[cfg(test)]
#[path = "default_name/tests.rs"]
mod tests;
