use super::*;
use toolgate_core::{
    BoxFuture, Call, ChangeFilter, ChangeStream, Definition, DefinitionPin, Error, Item, Json,
    Origin, Outcome, PinState,
};
use toolgate_policy::{AccessRule, GlobPattern, RuleAction};

/// Two servers: `files` has a tool, `notes` a resource.
struct KnownServers;

impl Service for KnownServers {
    fn list(&self, ask: ListRequest) -> BoxFuture<'_, Result<Catalog, Error>> {
        let item = |server: &str, json| {
            let origin = Origin {
                server: server.into(),
                trusted: true,
            };
            let def = Definition::read(ask.kind, Json::from_value(&json)).unwrap();
            // As the pin layer returns it.
            let pin = DefinitionPin::new("d", PinState::Accepted);
            Arc::new(Item::new(origin, def).with_pin(Arc::new(pin)))
        };
        let items = match ask.kind {
            ItemKind::Tool => {
                vec![item(
                    "files",
                    serde_json::json!({"name": "read", "inputSchema": {"type": "object"}}),
                )]
            }
            ItemKind::Resource => {
                vec![item(
                    "notes",
                    serde_json::json!({"name": "n", "uri": "notes://1"}),
                )]
            }
            ItemKind::Template | ItemKind::Prompt | ItemKind::Skill => Vec::new(),
        };
        let about = |server: &str| {
            let mut instructions = ServerInstructions::new(format!("{server} help"));
            instructions.server = Some(server.into());
            instructions
        };
        let about = vec![about("files"), about("notes"), about("nothing")];
        let catalog = Catalog::new(items).with_server_instructions(about);
        Box::pin(async { Ok(catalog) })
    }

    fn call(&self, _: Call) -> BoxFuture<'_, Result<Outcome, Error>> {
        unreachable!()
    }

    fn changes(&self, _: ChangeFilter) -> BoxFuture<'_, Result<ChangeStream, Error>> {
        unreachable!()
    }
}

fn instructions_for(denied: Option<&str>, most: usize) -> Option<String> {
    let rule =
        |tools: &str| AccessRule::new("rule 1", RuleAction::Deny, vec![GlobPattern::new(tools)]);
    let instructions = VisibleInstructions {
        known: Arc::new(KnownServers),
        access: AccessRules::new(denied.into_iter().map(rule).collect()),
        max_bytes: most,
    };
    instructions.instructions(&Caller::new("test"))
}

#[test]
fn lists_the_servers_that_the_caller_sees() {
    let all = "files: files help\n\nnotes: notes help";
    assert_eq!(instructions_for(None, 1000).as_deref(), Some(all));
    assert_eq!(
        instructions_for(Some("files.*"), 1000).as_deref(),
        Some("notes: notes help")
    );
    assert_eq!(
        instructions_for(Some("notes.*"), 1000).as_deref(),
        Some("files: files help")
    );
    assert_eq!(instructions_for(Some("*"), 1000), None);
}

#[test]
fn truncates_a_long_text() {
    let all = instructions_for(None, 1000).unwrap();
    assert_eq!(instructions_for(None, 0), None);
    assert_eq!(instructions_for(None, all.len()), Some(all.clone()));
    assert_eq!(
        instructions_for(None, all.len() - 1),
        Some(format!("{}…", &all[..all.len() - 1]))
    );
}
