//! The policy table: a program has each part of the gateway's pipeline, in the same order, or a reason why not.

use crate::pipeline_fixture::PipelineFixture;
use toolgate_core::Pipeline;
use toolgate_policy::{Pins, Policy, ProgramApproval};

/// Layers of the gateway only, with the reason why other programs lack them.
const GATEWAY_ONLY: [(&str, &str); 3] = [
    (
        "stop",
        "a program has no operator beside it: who made a call drops its future, and that stops it",
    ),
    (
        "freeze",
        "a freeze is an operator's word to callers and servers of others; a program that wants none ends",
    ),
    (
        "circuit breaker",
        "a client has one server and sees itself that it fails; a server is not upstream of itself",
    ),
];

/// Layers that a client has and a server lacks.
const CLIENT_ONLY: [(&str, &str); 1] = [(
    "pins",
    "a server may change its own definitions; a client holds those of another to what it saw first",
)];

/// Layers and rules, in their order.
fn duties(pipeline: &Pipeline) -> (Vec<&'static str>, Vec<&'static str>) {
    (pipeline.policy_names(), pipeline.rules())
}

fn without(all: Vec<&'static str>, left_out: &[(&str, &str)]) -> Vec<&'static str> {
    let stays = |duty: &&str| !left_out.iter().any(|(out, _)| out == duty);
    all.into_iter().filter(stays).collect()
}

#[tokio::test]
async fn a_program_has_each_part_of_the_gateway_in_its_order_or_a_reason_why_not() {
    let fixture = PipelineFixture::unrecorded();
    let (layers, rules) = duties(&fixture.pipeline());
    let pins = Pins::new(fixture.store.clone(), fixture.route.recorder.clone());
    let mut client = Policy::for_program();
    client.pins = Some(pins);
    client.approval = ProgramApproval::Program;
    let client = duties(&client.over(fixture.script.clone()));
    let layers = without(layers, &GATEWAY_ONLY);
    let rules = without(rules, &GATEWAY_ONLY);
    assert_eq!(client, (layers.clone(), rules.clone()));
    // A server that sets nothing loses nothing but what it says here.
    let server = duties(&Policy::for_program().over(fixture.script.clone()));
    let (layers, rules) = (without(layers, &CLIENT_ONLY), without(rules, &CLIENT_ONLY));
    assert_eq!(server, (layers, rules));
    // What is left out is one of the gateway's, or the reason is stale.
    let gateway = duties(&fixture.pipeline());
    for (duty, _) in GATEWAY_ONLY.iter().chain(&CLIENT_ONLY) {
        let known = gateway.0.contains(duty) || gateway.1.contains(duty);
        assert!(known, "{duty}");
    }
}
