//! A rule of the author hides things; no other way leads to them.

use super::peer::{Peer, REVISIONS};
use serde_json::json;
use toolgate::{
    Call, Caller, Decision, Item, Rule, Verdict,
    handlers::{Contents, Resource, Server, Template},
};

/// Hides what is named so.
struct Hide;

impl Rule for Hide {
    fn name(&self) -> &'static str {
        "hide"
    }

    fn sees(&self, _: &Caller, item: &Item) -> bool {
        !item.def.name().contains("admin")
    }

    fn decide<'a>(&'a self, _: &'a Call, _: &'a Item) -> Decision<'a> {
        Decision::Now(Verdict::Allow)
    }
}

#[tokio::test]
async fn what_is_hidden_is_not_reached_by_a_template_that_fits_too() {
    let admin = Template::new("t://admin/{name}", "admin", |_, _| async { Ok("hidden") });
    let admin = admin.complete("name", |_, _| async { Ok(vec!["hidden".to_owned()]) });
    let any = Template::new("t://{+any}", "any", |_, _| async { Ok("shown") });
    let key = Resource::fixed("t://admin", "key", Contents::text("hidden"));
    let server = Server::new("s", "1")
        .template(admin)
        .template(any)
        .resource(key);
    let server = server.guard(Hide).build().unwrap();
    for revision in REVISIONS {
        let mut peer = Peer::open(&server, revision, json!({})).await;
        // A template of the same server fits too; no other would be known to read something else.
        let hidden = peer
            .error("resources/read", json!({"uri": "t://admin/x"}))
            .await;
        assert!(!hidden.to_string().contains("shown"), "{hidden}");
        for uri in ["t://admin", "t://other"] {
            let read = peer.result("resources/read", json!({"uri": uri})).await;
            assert_eq!(read["contents"][0]["text"], "shown", "{revision} {uri}");
        }
        let params = json!({"ref": {"type": "ref/resource", "uri": "t://admin/x"},
            "argument": {"name": "name", "value": ""}});
        let completed = peer.ask("completion/complete", params).await;
        assert!(!completed.to_string().contains("hidden"), "{completed}");
    }
}
