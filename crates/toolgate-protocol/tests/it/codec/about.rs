//! Self-descriptions of programs.

use super::{json, object, text};
use proptest::prelude::*;
use toolgate_protocol::{
    dialect,
    method::{
        discover,
        initialize::{Implementation, InitializeParams, InitializeResult},
    },
};

fn program() -> impl Strategy<Value = Implementation> {
    let more = || prop::option::of(text());
    let icons = prop::option::of(prop::collection::vec(object(), 0..3));
    (text(), text(), more(), more(), more(), icons).prop_map(
        |(name, version, title, description, website, icons)| Implementation {
            name,
            version,
            title,
            description,
            website_url: website,
            icons: icons.map(|icons| json(&icons.into())),
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn a_program_is_read_back(program in program()) {
        prop_assert_eq!(Implementation::read(&program.json()), Some(program.clone()));
        for dialect in dialect::ALL {
            let told = Implementation::read(&dialect.implementation(program.clone()).json()).expect("a program");
            let title = program.title.clone().filter(|_| dialect.revision >= "2025-06-18");
            let newer = |text: &Option<String>| text.clone().filter(|_| dialect.revision >= "2025-11-25");
            prop_assert_eq!((&told.name, &told.version, &told.title), (&program.name, &program.version, &title));
            prop_assert_eq!((told.description, told.website_url), (newer(&program.description), newer(&program.website_url)));
            prop_assert_eq!(told.icons.is_some(), program.icons.is_some() && dialect.revision >= "2025-11-25");
        }
    }

    #[test]
    fn a_handshake_is_read_back(version in text(), can in object(), program in program(), words in prop::option::of(text())) {
        let capabilities = json(&can);
        let params = InitializeParams { version: version.clone(), capabilities: capabilities.clone(), client: Some(program.clone()) };
        let read = InitializeParams::read(Some(&params.json())).expect("parameters");
        prop_assert_eq!((&read.version, &read.capabilities, &read.client), (&params.version, &params.capabilities, &params.client));
        let answer = InitializeResult { version, capabilities, server: program, instructions: words };
        let read = InitializeResult::read(&answer.json()).expect("an answer");
        prop_assert_eq!((read.version, read.capabilities, read.server, read.instructions), (answer.version, answer.capabilities, answer.server, answer.instructions));
    }

    #[test]
    fn a_discovery_is_read_back(versions in prop::collection::vec(text(), 0..4), can in object(), server in prop::option::of(program()), instructions in prop::option::of(text())) {
        let answer = discover::DiscoverResult { versions, capabilities: json(&can), server, instructions };
        let read = discover::DiscoverResult::read(&answer.json()).expect("an answer");
        prop_assert_eq!((read.versions, read.capabilities, read.server, read.instructions), (answer.versions, answer.capabilities, answer.server, answer.instructions));
    }
}
