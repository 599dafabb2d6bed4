//! Units of systemd and launchd for the gateway.

use std::fmt::Write;

/// Command and environment of a service.
pub(super) struct ServiceUnit {
    /// Path of this program.
    pub(super) program: String,
    /// Arguments behind `serve` and `reload`: `--config` and `--data` with their paths.
    pub(super) arguments: Vec<String>,
    /// Directories in which the servers' programs are looked up.
    pub(super) path: String,
}

impl ServiceUnit {
    /// Returns the systemd unit for one account.
    pub(super) fn systemd_user(&self) -> String {
        let mut text = "[Unit]\nDescription=Toolgate MCP gateway\n\n[Service]\n".to_owned();
        self.write_service_lines(&mut text);
        text.push_str("\n[Install]\nWantedBy=default.target\n");
        text
    }

    /// Returns the systemd unit for the whole system, which runs under the account `toolgate`.
    pub(super) fn systemd_system(&self) -> String {
        let mut text = "[Unit]\nDescription=Toolgate MCP gateway\nWants=network-online.target\nAfter=network-online.target\n\n[Service]\nUser=toolgate\n".to_owned();
        self.write_service_lines(&mut text);
        text.push_str(
            "StateDirectory=toolgate\nStateDirectoryMode=0700\nCacheDirectory=toolgate\n\
             Environment=HOME=/var/cache/toolgate\nNoNewPrivileges=yes\nPrivateTmp=yes\nPrivateDevices=yes\n\
             ProtectHome=yes\nProtectSystem=strict\nProtectKernelTunables=yes\nProtectKernelModules=yes\n\
             ProtectControlGroups=yes\nRestrictSUIDSGID=yes\nLockPersonality=yes\n\n\
             [Install]\nWantedBy=multi-user.target\n",
        );
        text
    }

    fn write_service_lines(&self, text: &mut String) {
        let words = |command: &str| {
            let own = [self.program.as_str(), command].into_iter();
            let all = own.chain(self.arguments.iter().map(String::as_str));
            all.map(systemd_word).collect::<Vec<_>>().join(" ")
        };
        // Writing to a String cannot fail.
        let _ = write!(
            text,
            "Type=exec\nExecStart={}\nExecReload={}\nEnvironment={}\nUMask=0077\nRestart=on-failure\nRestartSec=2\n\
             RestartPreventExitStatus=2\nTimeoutStopSec=45\nKillMode=mixed\n",
            words("serve"),
            words("reload"),
            systemd_word(&format!("PATH={}", self.path)),
        );
    }

    /// Returns the property list of launchd for one account.
    pub(super) fn launchd(&self, label: &str, log: &str) -> String {
        let string = |text: &str| format!("<string>{}</string>", xml_text(text));
        let own = [self.program.as_str(), "serve"].into_iter();
        let words: String = own
            .chain(self.arguments.iter().map(String::as_str))
            .map(|word| format!("    {}\n", string(word)))
            .collect();
        format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
             <!DOCTYPE plist PUBLIC \"-//Apple//DTD PLIST 1.0//EN\" \"http://www.apple.com/DTDs/PropertyList-1.0.dtd\">\n\
             <plist version=\"1.0\">\n<dict>\n  <key>Label</key>\n  {}\n  <key>ProgramArguments</key>\n  <array>\n{words}  </array>\n  \
             <key>EnvironmentVariables</key>\n  <dict>\n    <key>PATH</key>\n    {}\n  </dict>\n  \
             <key>RunAtLoad</key>\n  <true/>\n  <key>KeepAlive</key>\n  <dict>\n    <key>SuccessfulExit</key>\n    <false/>\n  </dict>\n  \
             <key>ExitTimeOut</key>\n  <integer>45</integer>\n  <key>StandardErrorPath</key>\n  {}\n</dict>\n</plist>\n",
            string(label),
            string(&self.path),
            string(log),
        )
    }
}

/// Quotes a word for a unit of systemd, which expands `%` and `$` also inside quotes.
fn systemd_word(word: &str) -> String {
    let escaped = word.replace('%', "%%").replace('$', "$$");
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+=:@%,$".contains(c);
    match !escaped.is_empty() && escaped.chars().all(plain) {
        true => escaped,
        false => format!("\"{}\"", escaped.replace('\\', "\\\\").replace('"', "\\\"")),
    }
}

fn xml_text(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unit() -> ServiceUnit {
        ServiceUnit {
            program: "/opt/my tools/toolgate".to_owned(),
            arguments: vec!["--config".to_owned(), "/h/50% $x \"y\".toml".to_owned()],
            path: "/usr/bin:/h/a&b".to_owned(),
        }
    }

    #[test]
    fn words_of_units_are_quoted() {
        let text = unit().systemd_user();
        assert!(
            text.contains("\nExecStart=\"/opt/my tools/toolgate\" serve --config \"/h/50%% $$x \\\"y\\\".toml\"\n"),
            "{text}"
        );
        assert!(
            text.contains("\nEnvironment=\"PATH=/usr/bin:/h/a&b\"\n"),
            "{text}"
        );
        let text = unit().launchd("dev.toolgate.gateway", "/l");
        assert!(
            text.contains("<string>/usr/bin:/h/a&amp;b</string>"),
            "{text}"
        );
    }
}
