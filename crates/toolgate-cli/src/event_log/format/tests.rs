use super::*;
use std::time::{Duration, UNIX_EPOCH};

/// 2027-01-31 18:00:59.123 UTC.
fn at() -> SystemTime {
    UNIX_EPOCH + Duration::from_millis(1_801_418_459_123)
}

/// Formats events as plain lines, with `TIME` for the time of day, which depends on the machine.
fn lines(events: &[GatewayEvent]) -> String {
    let mut clock = LocalClock::default();
    let time = clock.time_of_day(at());
    let line = |event: &GatewayEvent| plain(event, at(), &mut LocalClock::default(), false);
    events
        .iter()
        .map(line)
        .collect::<String>()
        .replace(&time, "TIME")
}

fn events() -> Vec<GatewayEvent> {
    let (server, tool) = ("files".to_owned(), "files.write_file".to_owned());
    let (id, caller) = ("a-k3x9pq".to_owned(), "key:ci".to_owned());
    vec![
        GatewayEvent::ServerStarted {
            server: server.clone(),
            revision: Some("2025-11-25"),
            restarts: 0,
        },
        GatewayEvent::ServerFailed {
            server: server.clone(),
            why: "it exited with status 3".to_owned(),
            retry: Some(Duration::from_millis(480)),
            stderr: vec!["loading".to_owned(), "no\u{1b}[31m folder".to_owned()],
        },
        GatewayEvent::ServerRestarting {
            server: server.clone(),
            restarts: 1,
        },
        GatewayEvent::ServerStopped { server },
        GatewayEvent::ApprovalRequested {
            id: id.clone(),
            tool: tool.clone(),
            caller: caller.clone(),
            expires_in: Duration::from_secs(600),
            needs_passkey: false,
            flags: " --data /d".to_owned(),
        },
        GatewayEvent::ApprovalDecided {
            id: id.clone(),
            tool: tool.clone(),
            caller: caller.clone(),
            decision: "denied".into(),
            by: Some("ann (terminal)".to_owned()),
            reason: Some("not now".to_owned()),
        },
        GatewayEvent::ApprovalDecided {
            id,
            tool: tool.clone(),
            caller: caller.clone(),
            decision: "expired".into(),
            by: None,
            reason: None,
        },
        GatewayEvent::ConfigReloaded {
            by: "file",
            servers: 2,
            rules: 1,
            changes: vec!["added server git".to_owned(), "rules: 1 added".to_owned()],
            notes: vec!["listen is another address now".to_owned()],
        },
        GatewayEvent::ConfigRefused {
            by: "file",
            why: "toolgate.toml:1:1: unknown key\nsecond line".to_owned(),
        },
        GatewayEvent::CallEnded {
            id: "c1".to_owned(),
            tool,
            caller,
            decision: "deny",
            outcome: "refused",
            code: Some("refused_rule"),
            duration: Duration::from_millis(12),
        },
    ]
}

#[test]
fn plain_lines() {
    let wanted = "\
TIME the server files is running, revision 2025-11-25
TIME the server files is not running: it exited with status 3; it is started again in 0.5 s
         | loading
         | no\\u001b[31m folder
TIME the server files is starting again (restart 1)
TIME the server files was stopped
TIME approval a-k3x9pq: key:ci calls files.write_file and waits 600 s; run: toolgate approve a-k3x9pq --data /d, or: toolgate deny a-k3x9pq -m REASON --data /d
TIME approval a-k3x9pq: denied by ann (terminal): files.write_file for key:ci: not now
TIME approval a-k3x9pq: expired: files.write_file for key:ci
TIME the config was reloaded: 2 servers, 1 rule; added server git; rules: 1 added
         | listen is another address now
TIME the config was rejected; the previous config stays active: toolgate.toml:1:1: unknown key
         second line
TIME call files.write_file by key:ci: deny, refused (refused_rule), 12 ms
";
    assert_eq!(lines(&events()), wanted);
}

#[test]
fn json_lines_have_the_time_and_the_name_and_no_control_characters() {
    for event in events() {
        let line = json_line(&event, at());
        let body = line.strip_suffix('\n').unwrap();
        assert!(!body.contains(|c: char| c.is_control()), "{body:?}");
        let parsed: Value = serde_json::from_str(body).unwrap();
        assert_eq!(parsed["time"], "2027-01-31T18:00:59.123Z");
        assert_eq!(parsed["event"], event.name());
        assert!(!parsed["message"].as_str().unwrap().is_empty());
    }
    let failed: Value = serde_json::from_str(&json_line(&events()[1], at())).unwrap();
    assert_eq!(failed["retry_milliseconds"], 480);
    assert_eq!(failed["level"], "error");
}

#[test]
fn secrets_are_redacted_in_both_formats() {
    let secret = format!("ghp_{}", "a1B2".repeat(9));
    let event = GatewayEvent::ServerFailed {
        server: "files".to_owned(),
        why: format!("token {secret}"),
        retry: None,
        stderr: vec![format!("key {secret}")],
    };
    let both = lines(std::slice::from_ref(&event)) + &json_line(&event, at());
    assert!(!both.contains(&secret), "{both}");
    assert!(both.contains("[redacted:"), "{both}");
}

#[test]
fn colors_are_on_a_terminal_only() {
    let colored = plain(&events()[1], at(), &mut LocalClock::default(), true);
    assert!(colored.contains("\x1b[31m"), "{colored:?}");
    assert!(!lines(&events()).contains('\x1b'));
}
