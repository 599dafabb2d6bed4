//! Detection of a server's era, and the handshake.

use super::peer::{Opening, Peer, all, call, legacy, modern, options, soon, start, welcome};
use serde_json::{Value, json};
use std::time::Duration;
use toolgate::{
    Client, Service,
    client::{EraPreference, OpenError, RemoteOptions},
};
use toolgate_protocol::dialect;

/// Holds: VER-14, BASE-35, BASE-36
#[tokio::test(start_paused = true)]
async fn a_modern_server_is_found_by_one_request() {
    let (opening, mut peer) = start(options());
    let probe = peer.read().await;
    assert_eq!(probe["method"], "server/discover");
    let meta = &probe["params"]["_meta"];
    assert_eq!(
        meta["io.modelcontextprotocol/protocolVersion"],
        "2026-07-28"
    );
    assert_eq!(
        meta["io.modelcontextprotocol/clientCapabilities"],
        json!({})
    );
    assert_eq!(
        meta["io.modelcontextprotocol/clientInfo"]["name"],
        "toolgate"
    );
    let server = json!({"io.modelcontextprotocol/serverInfo": {"name": "s", "version": "7"}});
    let answer = json!({"resultType": "complete", "supportedVersions": ["2027-01-01", "2026-07-28"], "capabilities": {}, "_meta": server});
    peer.reply(&probe, answer).await;
    let status = opening.await.unwrap().unwrap().status();
    assert_eq!(
        (status.revision, status.server.unwrap().version.as_str()),
        ("2026-07-28", "7")
    );
}

/// Goes through the handshake after the probe, and says which revision is spoken.
async fn handshake(
    opening: Opening,
    mut peer: Peer,
    offer: &str,
) -> Result<&'static str, OpenError> {
    let hello = peer.read().await;
    assert_eq!(hello["method"], "initialize");
    assert_eq!(hello["params"]["protocolVersion"], "2025-11-25");
    assert_eq!(
        hello["params"]["capabilities"],
        json!({"elicitation": {"form": {}, "url": {}}, "sampling": {"context": {}, "tools": {}}}),
        "roots are asked for outside of calls, too, where nobody could answer"
    );
    peer.reply(&hello, welcome(offer, json!({}))).await;
    let remote = opening.await.unwrap()?;
    assert_eq!(peer.read().await["method"], "notifications/initialized");
    Ok(remote.status().revision)
}

/// Holds: LIFE-04, LIFE-07
#[tokio::test(start_paused = true)]
async fn any_other_answer_to_the_probe_means_legacy() {
    let errors = [
        (-32601, json!({})),
        (-32602, json!(null)),
        (-32600, json!({})),
        (-32000, json!({})),
        (-32022, json!({})),
    ];
    for (code, data) in errors {
        let (opening, mut peer) = start(options());
        let probe = peer.read().await;
        peer.reply_error(&probe, code, "what?", data).await;
        assert_eq!(
            handshake(opening, peer, "2025-06-18").await,
            Ok("2025-06-18"),
            "{code}"
        );
    }
    for result in [
        json!({}),
        json!({"supportedVersions": []}),
        json!({"supportedVersions": ["2025-11-25"], "capabilities": {}}),
        json!(7),
    ] {
        let (opening, mut peer) = start(options());
        let probe = peer.read().await;
        peer.reply(&probe, result.clone()).await;
        assert_eq!(
            handshake(opening, peer, "2025-11-25").await,
            Ok("2025-11-25"),
            "{result}"
        );
    }
}

/// Holds: LIFE-09, LIFE-14
#[tokio::test(start_paused = true)]
async fn every_legacy_revision_is_accepted_and_no_other() {
    for revision in ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"] {
        let (opening, mut peer) = start(options());
        let probe = peer.read().await;
        peer.reply_error(&probe, -32601, "method not found", json!(null))
            .await;
        assert_eq!(handshake(opening, peer, revision).await, Ok(revision));
    }
    let (opening, mut peer) = start(options());
    let probe = peer.read().await;
    peer.reply_error(&probe, -32601, "method not found", json!(null))
        .await;
    let hello = peer.read().await;
    assert_eq!(hello["method"], "initialize");
    peer.reply(&hello, welcome("1999-01-01", json!({}))).await;
    assert_eq!(
        soon(opening).await.unwrap().err(),
        Some(OpenError::NoRevision(vec!["1999-01-01".to_owned()]))
    );
    let rest = soon(peer.rest()).await;
    assert_eq!(
        rest, "",
        "the client closes the stream and says nothing more"
    );
}

/// A server's self-reported name has no effect: its tools have the name and the trust of the config.
///
/// Holds: BASE-41
#[tokio::test(start_paused = true)]
async fn a_name_of_a_server_changes_nothing() {
    let named = |name: &str| json!({"name": name, "version": "1", "title": name});
    let mut infos: Vec<Value> = ["files", "toolgate", "evil \u{202e}", ""]
        .map(named)
        .to_vec();
    infos.extend([json!(7), json!(null)]);
    let mut seen = Vec::new();
    for info in &infos {
        let (opening, mut peer) = start(options());
        let probe = peer.read().await;
        let found = json!({"resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}},
            "serverInfo": info, "_meta": {"io.modelcontextprotocol/serverInfo": info}});
        peer.reply(&probe, found).await;
        let remote = soon(opening).await.unwrap().unwrap();
        let (listed, ()) = tokio::join!(soon(remote.list(all())), async {
            let request = peer.read().await;
            let tools = json!([{"name": "a", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": true}}]);
            peer.reply(
                &request,
                json!({"resultType": "complete", "tools": tools, "ttlMs": 0}),
            )
            .await;
        });
        let listed = listed.unwrap();
        let item = &listed.items()[0];
        let (failed, ()) = tokio::join!(soon(remote.call(call("a", "{}"))), async {
            let request = peer.read().await;
            peer.reply_error(&request, -32603, "no", json!(null)).await;
        });
        seen.push((
            item.full_name(),
            item.origin.trusted,
            failed.unwrap_err().public_message().to_owned(),
        ));
    }
    let expected = (
        "files.a".to_owned(),
        false,
        "the server answered: no".to_owned(),
    );
    assert!(seen.iter().all(|one| *one == expected), "{seen:?}");
}

/// Holds: VER-02
#[tokio::test(start_paused = true)]
async fn a_modern_error_means_modern() {
    for (code, data) in [
        (-32020, json!({})),
        (-32021, json!({"requiredCapabilities": {"elicitation": {}}})),
    ] {
        let (opening, mut peer) = start(options());
        let probe = peer.read().await;
        peer.reply_error(&probe, code, "no", data).await;
        assert_eq!(
            opening.await.unwrap().unwrap().status().revision,
            "2026-07-28"
        );
    }
    let refused = |supported: Value| async move {
        let (opening, mut peer) = start(options());
        let probe = peer.read().await;
        peer.reply_error(
            &probe,
            -32022,
            "no",
            json!({"supported": supported, "requested": "2026-07-28"}),
        )
        .await;
        (opening, peer)
    };
    let (opening, _peer) = refused(json!(["2030-01-01"])).await;
    assert_eq!(
        opening.await.unwrap().err(),
        Some(OpenError::NoRevision(vec!["2030-01-01".to_owned()])),
        "no fallback"
    );
    let (opening, peer) = refused(json!(["2025-11-25"])).await;
    assert_eq!(
        handshake(opening, peer, "2025-11-25").await,
        Ok("2025-11-25"),
        "it lists it"
    );
}

/// Holds: VER-12
#[tokio::test(start_paused = true)]
async fn a_server_that_keeps_silent_gets_the_handshake() {
    let (opening, mut peer) = start(options());
    assert_eq!(peer.read().await["method"], "server/discover");
    let before = tokio::time::Instant::now();
    assert_eq!(
        handshake(opening, peer, "2025-11-25").await,
        Ok("2025-11-25")
    );
    assert_eq!(before.elapsed().as_secs(), 5);
}

#[tokio::test(start_paused = true)]
async fn a_slow_modern_server_is_found_in_the_end() {
    let (opening, mut peer) = start(options());
    let (probe, hello) = (peer.read().await, peer.read().await);
    assert_eq!(hello["method"], "initialize");
    peer.reply_error(&hello, -32601, "method not found", json!(null))
        .await;
    peer.reply(
        &probe,
        json!({"supportedVersions": ["2026-07-28"], "capabilities": {}}),
    )
    .await;
    assert_eq!(
        opening.await.unwrap().unwrap().status().revision,
        "2026-07-28"
    );
}

#[tokio::test(start_paused = true)]
async fn a_server_that_ends_at_the_probe_is_worth_another_try() {
    let (opening, mut peer) = start(options());
    peer.read().await;
    drop(peer);
    assert_eq!(
        opening.await.unwrap().err(),
        Some(OpenError::ClosedDuringProbe)
    );

    let mut unprobed = options();
    unprobed.probe = false;
    let (opening, mut peer) = start(unprobed);
    assert_eq!(peer.read().await["method"], "initialize");
    drop(peer);
    assert!(matches!(opening.await.unwrap(), Err(OpenError::Closed(_))));
}

/// Holds: CANC-02, LIFE-14
#[tokio::test(start_paused = true)]
async fn the_handshake_has_an_end() {
    let (opening, mut peer) = start(options());
    for method in ["server/discover", "initialize"] {
        assert_eq!(peer.read().await["method"], method);
    }
    assert_eq!(
        opening.await.unwrap().err(),
        Some(OpenError::Late(Duration::from_secs(30)))
    );
    assert_eq!(peer.rest().await, "", "a handshake is not cancelled");
}

/// Holds: LIFE-05
#[tokio::test(start_paused = true)]
async fn a_ping_is_answered_during_the_handshake() {
    let (opening, mut peer) = start(options());
    let probe = peer.read().await;
    peer.send(r#"{"jsonrpc":"2.0","id":"p","method":"ping"}"#)
        .await;
    assert_eq!(
        peer.line().await,
        "{\"jsonrpc\":\"2.0\",\"id\":\"p\",\"result\":{}}"
    );
    peer.reply_error(&probe, -32601, "method not found", json!(null))
        .await;
    assert_eq!(
        handshake(opening, peer, "2025-11-25").await,
        Ok("2025-11-25")
    );
}

/// Holds: STDIO-07
#[tokio::test(start_paused = true)]
async fn requests_of_the_server_are_refused_in_the_old_era_and_dropped_in_the_new() {
    let asks = ["roots/list", "sampling/createMessage", "elicitation/create"];
    let (_remote, mut peer) = legacy(json!({})).await;
    for method in asks {
        peer.send(&json!({"jsonrpc": "2.0", "id": 1, "method": method}).to_string())
            .await;
        let code = if method == "roots/list" {
            -32601
        } else {
            -32600
        };
        assert_eq!(peer.read().await["error"]["code"], code, "{method}");
    }
    let (remote, mut peer) = modern(json!({})).await;
    for method in asks {
        peer.send(&json!({"jsonrpc": "2.0", "id": 1, "method": method}).to_string())
            .await;
    }
    assert!(peer.is_left_alone().await);
    assert_eq!(remote.status().counters.stray_requests, 3);
}

/// Holds: VER-14
#[tokio::test(start_paused = true)]
async fn a_client_without_sessions_gives_up_after_its_probe() {
    let mut modern_only = options();
    modern_only.revisions = vec![dialect::find("2026-07-28").unwrap()];
    let (opening, mut peer) = start(modern_only);
    let probe = peer.read().await;
    assert_eq!(probe["method"], "server/discover");
    peer.reply_error(&probe, -32601, "method not found", json!(null))
        .await;
    let error = opening.await.unwrap().err();
    assert!(error.is_some(), "it has no other revision");
    assert_eq!(peer.rest().await, "", "no handshake follows");
}

#[tokio::test(start_paused = true)]
async fn a_preferred_session_is_opened_without_a_probe() {
    let mut sessions = options();
    sessions.era = EraPreference::Session;
    let (opening, peer) = start(sessions);
    let revision = handshake(opening, peer, "2025-11-25").await;
    assert_eq!(revision, Ok("2025-11-25"));
}

#[tokio::test(start_paused = true)]
async fn a_server_without_sessions_is_probed_after_it_refused_one() {
    for (code, data) in [
        (
            -32022,
            json!({"supported": ["2026-07-28"], "requested": "2025-11-25"}),
        ),
        (-32601, json!(null)),
    ] {
        let mut sessions = options();
        sessions.era = EraPreference::Session;
        let (opening, mut peer) = start(sessions);
        let hello = peer.read().await;
        assert_eq!(hello["method"], "initialize");
        peer.reply_error(&hello, code, "no", data).await;
        let probe = peer.read().await;
        assert_eq!(probe["method"], "server/discover");
        let found = json!({"resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": {}});
        peer.reply(&probe, found).await;
        let remote = opening.await.unwrap().unwrap();
        assert_eq!(remote.status().revision, "2026-07-28");
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_refuses_a_session_for_the_newest_revision_and_ends_is_worth_another_try() {
    let mut sessions = options();
    sessions.era = EraPreference::Session;
    let (opening, mut peer) = start(sessions.clone());
    let hello = peer.read().await;
    let supported = json!({"supported": ["2026-07-28"], "requested": "2025-11-25"});
    peer.reply_error(&hello, -32022, "no", supported).await;
    drop(peer);
    let error = opening.await.unwrap().err();
    assert_eq!(error, Some(OpenError::ClosedDuringProbe));

    // Any other refusal is the reason that a person reads.
    let (opening, mut peer) = start(sessions);
    let hello = peer.read().await;
    peer.reply_error(&hello, -32603, "no license", json!(null))
        .await;
    drop(peer);
    let error = opening.await.unwrap().err();
    assert_eq!(error, Some(OpenError::Refused("no license".to_owned())));
}

#[tokio::test(start_paused = true)]
async fn a_late_answer_to_the_handshake_still_opens_the_session() {
    let mut sessions = options();
    sessions.era = EraPreference::Session;
    let (opening, mut peer) = start(sessions);
    let hello = peer.read().await;
    // Within the last seconds of its start time the server is asked for the newest revision, too.
    let probe = peer.read().await;
    assert_eq!(probe["method"], "server/discover");
    peer.reply_error(&probe, -32601, "method not found", json!(null))
        .await;
    peer.reply(&hello, welcome("2025-11-25", json!({}))).await;
    let remote = opening.await.unwrap().unwrap();
    assert_eq!(remote.status().revision, "2025-11-25");
}

#[tokio::test(start_paused = true)]
async fn a_refused_session_without_a_newer_revision_keeps_its_reason() {
    let mut sessions = options();
    sessions.era = EraPreference::Session;
    let (opening, mut peer) = start(sessions);
    let hello = peer.read().await;
    peer.reply_error(&hello, -32603, "out of order", json!(null))
        .await;
    let probe = peer.read().await;
    peer.reply_error(&probe, -32601, "method not found", json!(null))
        .await;
    let error = opening.await.unwrap().err().unwrap();
    assert_eq!(error, OpenError::Refused("out of order".to_owned()));
}

#[tokio::test]
#[allow(
    clippy::disallowed_methods,
    reason = "the test plays the other side meanwhile"
)]
async fn the_builder_of_clients_can_prefer_sessions() {
    let (ours, theirs) = tokio::io::duplex(1 << 20);
    let (reader, writer) = tokio::io::split(ours);
    let builder = Client::builder().prefer_era(EraPreference::Session);
    let opening = tokio::spawn(builder.open(reader, writer));
    let mut peer = Peer::over(theirs);
    let hello = peer.read().await;
    assert_eq!(hello["method"], "initialize");
    peer.reply(&hello, welcome("2025-11-25", json!({}))).await;
    opening.await.unwrap().unwrap();
}

/// Options that allow no revision with a handshake.
fn newest_only() -> RemoteOptions {
    let mut options = options();
    options.revisions.retain(|dialect| dialect.stateless);
    options
}

#[tokio::test(start_paused = true)]
async fn a_legacy_server_is_refused_without_a_handshake_where_none_is_allowed() {
    let (opening, mut peer) = start(newest_only());
    let probe = peer.read().await;
    peer.reply_error(&probe, -32601, "method not found", json!(null))
        .await;
    let error = soon(opening).await.unwrap().err().unwrap();
    assert_eq!(
        error.to_string(),
        "it supports only protocol revisions with an initialize handshake, and the allowed revisions have none; allow an older revision, or update the server"
    );
    assert_eq!(soon(peer.rest()).await, "", "no handshake is tried");
}

#[tokio::test(start_paused = true)]
async fn a_slow_server_is_waited_for_where_no_handshake_is_allowed() {
    let (opening, mut peer) = start(newest_only());
    let probe = peer.read().await;
    tokio::time::sleep(Duration::from_secs(20)).await;
    let found =
        json!({"resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": {}});
    peer.reply(&probe, found).await;
    let remote = soon(opening).await.unwrap().unwrap();
    assert_eq!(remote.status().revision, "2026-07-28");
}
