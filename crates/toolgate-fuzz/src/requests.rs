//! Target for requests of clients, in every revision.

use crate::protocol::read;
use toolgate_protocol::{
    dialect,
    method::{
        initialize::InitializeParams,
        notifications::Progress,
        operation::{COMPLETE, OperationParams},
        tasks::TaskMetadata,
    },
};

/// Readers of the parameters of requests: a method, a newline, the parameters.
pub fn request(bytes: &[u8]) {
    let at = bytes.iter().position(|byte| *byte == b'\n');
    let (method, params) = bytes.split_at(at.unwrap_or(0));
    let Some(json) = read(params) else {
        return;
    };
    let method = String::from_utf8_lossy(method);
    for method in [
        &*method,
        "tools/call",
        "resources/read",
        "prompts/get",
        COMPLETE,
    ] {
        if let Ok(params) = OperationParams::read(method, Some(&json)) {
            assert!(read(params.arguments.as_str().as_bytes()).is_some());
        }
    }
    let _ = InitializeParams::read(Some(&json));
    let _ = TaskMetadata::read(Some(&json));
    let _ = Progress::read(&json);
    for dialect in dialect::ALL {
        let written = [dialect.sampling(&json), dialect.form(&json)];
        for written in written.into_iter().flatten() {
            assert!(read(written.as_str().as_bytes()).is_some(), "not JSON");
        }
    }
}
