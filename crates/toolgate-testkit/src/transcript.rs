//! Transcripts: text files with the messages of a stream.

use crate::line_stream::{LineObserver, LineStream};
use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};
use toolgate::{Caller, edge};

/// A text file with the messages of a stream, in order.
///
/// A line with `> ` is sent, and one with `< ` must come back. `! ` marks an action of the test, and `# ` a comment.
/// Sealed state differs in each run; the file has `…` in its place. With `UPDATE=1` in the environment, the messages
/// that came back are written to the file.
pub struct Transcript {
    path: PathBuf,
    text: String,
}

/// Plays the file against a server and asserts that its responses match the file.
pub async fn play(path: impl AsRef<Path>, server: &Arc<edge::ProtocolServer>) {
    Transcript::read(path).play_with(server, None, |_| {}).await;
}

impl Transcript {
    /// Reads the file.
    pub fn read(path: impl AsRef<Path>) -> Transcript {
        let path = path.as_ref().to_owned();
        let text = fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        Transcript { path, text }
    }

    /// Plays the file against a server and passes every line to `watch`; `act` receives the text after each `! `.
    pub async fn play_with(
        &self,
        server: &Arc<edge::ProtocolServer>,
        watch: Option<LineObserver>,
        act: impl Fn(&str),
    ) {
        let (near, far) = tokio::io::duplex(1 << 20);
        let (read, write) = tokio::io::split(far);
        let serving = edge::stdio::serve(server.clone(), Caller::new("test"), read, write);
        let (served, got) = tokio::join!(serving, self.actual(LineStream::new(near, watch), act));
        served.expect("the stream ends well");
        if std::env::var_os("UPDATE").is_some() {
            fs::write(&self.path, &got).expect("the transcript can be written");
        }
        assert_eq!(got, self.text, "{}", self.path.display());
    }

    /// Plays the file and returns it with the actual responses.
    async fn actual(&self, mut wire: LineStream, act: impl Fn(&str)) -> String {
        let mut got = String::new();
        for line in self.text.lines() {
            if let Some(sent) = line.strip_prefix("> ") {
                wire.send(sent).await;
            }
            if let Some(what) = line.strip_prefix("! ") {
                act(what);
            }
            if line.starts_with("< ") {
                let came = wire.next().await.expect("an answer");
                got.push_str(&format!("< {}\n", masked(&came)));
            } else {
                got.push_str(&format!("{line}\n"));
            }
        }
        got
    }
}

/// Replaces state that differs in each run by `…`.
fn masked(line: &str) -> String {
    let Some((before, after)) = line.split_once("\"requestState\":\"") else {
        return line.to_owned();
    };
    let rest = after.split_once('"').map_or("", |(_, rest)| rest);
    format!("{before}\"requestState\":\"…\"{rest}")
}
