//! The program on a real terminal, which is tmux.

use super::{SOON, TempDir, command, output, tool, until};
use std::{path::PathBuf, process::Output};

/// A tmux server of its own with one window, ended with the value.
pub(crate) struct Screen {
    tmux: PathBuf,
    dir: TempDir,
}

impl Screen {
    /// Runs a shell script in a window of that size. `None` if tmux is not installed.
    pub(crate) fn start(script: &str, width: u16, height: u16) -> Option<Screen> {
        let tmux = tool("tmux")?;
        let dir = TempDir::new("tmux");
        let screen = Screen { tmux, dir };
        let file = screen.dir.write("run", script);
        let (width, height) = (width.to_string(), height.to_string());
        let file = file.to_str().unwrap();
        let size = ["-d", "-x", &width, "-y", &height];
        screen.tmux(&[&["new-session"], &size[..], &["sh", file]].concat());
        Some(screen)
    }

    fn tmux(&self, words: &[&str]) -> Output {
        let mut run = command(&self.tmux);
        run.args(["-u", "-f", "/dev/null", "-S"])
            .arg(self.dir.file("socket"))
            .args(words)
            .env_remove("TMUX");
        let out = output(&mut run);
        assert!(out.status.success(), "tmux {words:?}: {out:?}");
        out
    }

    /// Presses keys, by the names of tmux.
    pub(crate) fn press(&self, keys: &[&str]) {
        self.tmux(&[&["send-keys"], keys].concat());
    }

    /// Types text.
    pub(crate) fn type_text(&self, text: &str) {
        self.tmux(&["send-keys", "-l", text]);
    }

    pub(crate) fn resize(&self, width: u16, height: u16) {
        let (width, height) = (width.to_string(), height.to_string());
        self.tmux(&["resize-window", "-x", &width, "-y", &height]);
    }

    /// What the window shows.
    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.tmux(&["capture-pane", "-p"]).stdout).unwrap()
    }

    /// A property of the window, such as `#{alternate_on}`.
    pub(crate) fn property(&self, format: &str) -> String {
        let out = self.tmux(&["display-message", "-p", format]).stdout;
        String::from_utf8(out).unwrap().trim().to_owned()
    }

    /// Waits until the window shows this text; everything it then shows.
    #[track_caller]
    pub(crate) fn shows(&self, text: &str) -> String {
        self.comes(&format!("the screen shows {text:?}"), |shown| {
            shown.contains(text)
        })
    }

    /// Waits until the window is as wanted.
    #[track_caller]
    pub(crate) fn comes(&self, what: &str, is_wanted: impl Fn(&str) -> bool) -> String {
        let mut last = String::new();
        let found = super::within(SOON, || {
            last = self.text();
            is_wanted(&last).then_some(())
        });
        assert!(found.is_some(), "{what}; it shows:\n{last}");
        last
    }

    /// Presses a key until the window shows this text: keys do nothing just after the selection moved by itself.
    #[track_caller]
    pub(crate) fn press_until(&self, key: &str, text: &str) -> String {
        until(&format!("{key} leads to {text:?}"), SOON, || {
            self.press(&[key]);
            super::within(std::time::Duration::from_secs(1), || {
                let shown = self.text();
                shown.contains(text).then_some(shown)
            })
        })
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("the screen shows:\n{}", self.text());
        }
        let mut run = command(&self.tmux);
        run.arg("-S")
            .arg(self.dir.file("socket"))
            .arg("kill-server");
        let _ = output(&mut run);
    }
}
