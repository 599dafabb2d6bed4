//! A rule of the author hides things; no other way leads to them.

use super::peer::{NEWEST_REVISION, Peer, REVISIONS};
use serde_json::json;
use toolgate::{
    Call, Caller, HandlerExit,
    core::{Item, MaybeReady},
    edge::ServerLimits,
    handlers::{Resource, ResourceContents, ResourceTemplate, Server},
    rule::{Rule, RuleDecision},
};

/// Hides what is named so.
struct Hide;

impl Rule for Hide {
    fn name(&self) -> &'static str {
        "hide"
    }

    fn is_visible(&self, _: &Caller, item: &Item) -> bool {
        !item.def.name().contains("admin")
    }

    fn decide<'a>(&'a self, _: &'a Call, _: &'a Item) -> MaybeReady<'a> {
        MaybeReady::Ready(RuleDecision::Allow)
    }
}

/// Holds: COMP-05
#[tokio::test]
async fn what_is_hidden_is_not_reached_by_a_template_that_fits_too() {
    let admin = ResourceTemplate::new("t://admin/{name}", "admin", |_, _| async {
        Ok::<_, HandlerExit>("hidden")
    });
    let admin = admin.complete("name", |_, _| async {
        Ok::<_, HandlerExit>(vec!["hidden".to_owned()])
    });
    let any = ResourceTemplate::new("t://{+any}", "any", |_, _| async {
        Ok::<_, HandlerExit>("shown")
    });
    let key = Resource::fixed("t://admin", "key", ResourceContents::text("hidden"));
    let server = Server::new("s", "1")
        .template(admin)
        .template(any)
        .resource(key);
    let server = server.rule(Hide).build().unwrap();
    for revision in REVISIONS {
        let mut peer = Peer::open(&server, revision, json!({})).await;
        // A template of the same server fits too; no other would be known to read something else.
        let hidden = peer
            .error("resources/read", json!({"uri": "t://admin/x"}))
            .await;
        assert!(!hidden.to_string().contains("shown"), "{hidden}");
        // Nor does a template lead to a listed resource that is hidden.
        let key = peer
            .error("resources/read", json!({"uri": "t://admin"}))
            .await;
        assert!(!key.to_string().contains("shown"), "{revision} {key}");
        let other = json!({"uri": "t://other"});
        let read = peer.result("resources/read", other).await;
        assert_eq!(read["contents"][0]["text"], "shown", "{revision}");
        let params = json!({"ref": {"type": "ref/resource", "uri": "t://admin/x"},
            "argument": {"name": "name", "value": ""}});
        let completed = peer.request("completion/complete", params).await;
        assert!(!completed.to_string().contains("hidden"), "{completed}");
    }
}

/// A name or URI over the limit is refused before anything is compared with it.
#[tokio::test]
async fn a_long_name_is_not_looked_up() {
    let any = ResourceTemplate::new("t://{+any}", "any", |_, _| async {
        Ok::<_, HandlerExit>("read")
    });
    let mut limits = ServerLimits::default();
    limits.max_name_bytes = 128;
    let server = Server::new("s", "1").template(any).limits(limits);
    let server = server.build().unwrap();
    let uri = |length: usize| format!("t://{}", "x".repeat(length - 4));
    for revision in REVISIONS {
        let mut peer = Peer::open(&server, revision, json!({})).await;
        let read = peer.result("resources/read", json!({"uri": uri(128)}));
        assert_eq!(read.await["contents"][0]["text"], "read");
        let completed = json!({"ref": {"type": "ref/resource", "uri": uri(129)},
            "argument": {"name": "any", "value": ""}});
        let mut over = vec![
            ("resources/read", json!({"uri": uri(129)})),
            ("tools/call", json!({"name": "x".repeat(129)})),
            ("prompts/get", json!({"name": "x".repeat(129)})),
            ("completion/complete", completed),
        ];
        over.push(match revision {
            NEWEST_REVISION => (
                "subscriptions/listen",
                json!({"notifications": {"resourceSubscriptions": [uri(129)]}}),
            ),
            _ => ("resources/subscribe", json!({"uri": uri(129)})),
        });
        for (method, params) in over {
            if revision == REVISIONS[0] && method == "completion/complete" {
                continue;
            }
            let error = peer.error(method, params).await;
            let said = error["message"].as_str().unwrap();
            assert!(said.contains("128 bytes"), "{revision} {method}: {said}");
        }
    }
}
