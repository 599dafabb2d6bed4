//! A person settles what rules leave open.

use crate::world::{World, again, approval, said, text};
use serde_json::json;
use std::time::Duration;
use toolgate_core::{
    Call, CallArguments, Caller, ErrorKind, InputRequestKind, InputRequests, Json, Outcome,
    RefusalReason,
};
use toolgate_policy::{
    APPROVAL_KEY, ApprovalChannel, ApprovalError, ApprovalStatus, ApprovalTerms, ClientApprovals,
    GrantTerms, GrantView,
};

fn yes(
    world: &World,
    questions: &InputRequests,
) -> impl Future<Output = Result<ApprovalStatus, ApprovalError>> {
    let (desk, id) = (world.route.approvals.clone(), approval(questions));
    async move {
        desk.approve(&id, ApprovalChannel::Console, ApprovalTerms::default())
            .await
    }
}

fn with_answer(mut call: Call, answer: serde_json::Value) -> Call {
    call.round
        .answers
        .push((APPROVAL_KEY.to_owned(), Json::from_value(&answer)));
    call
}

#[tokio::test]
async fn approved_runs_once_and_is_recorded() {
    let world = World::new();
    let call = world.call("wipe", json!({"path": "/x"}));
    let questions = world.asked(&call).await;
    assert_eq!(world.reached(), 0);
    yes(&world, &questions).await.unwrap();
    assert_eq!(said(world.go(again(&call, &questions)).await), "done");
    let states: Vec<_> = world
        .events("approval")
        .iter()
        .map(|r| r["state"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(states, ["asked", "approved", "spent"]);
    let begin = &world.events("call.begin")[0];
    assert_eq!(begin["approval"], approval(&questions).as_str());
    assert_eq!(begin["tool"], "demo.wipe");
    // Of this round alone.
    let trail = [
        json!({"by": "access", "verdict": "ask", "why": "no rule: not known to be read-only"}),
        json!({"by": "confirm", "verdict": "approved", "why": format!("{} by a person (console)", approval(&questions))}),
    ];
    assert_eq!(begin["trail"], json!(trail));
    let end = &world.events("call.end")[0];
    assert_eq!(end["out"], "ok");
    assert_eq!((&end["srv"], &end["tool"]), (&begin["srv"], &begin["tool"]));
    assert_eq!(world.events("deny").len(), 0);
}

#[tokio::test]
async fn the_question_shows_everything() {
    let world = World::new();
    let call = world.call("wipe", json!({"path": "/x"}));
    let questions = world.asked(&call).await;
    let InputRequestKind::Approve(shown) = &questions.requests[0].kind else {
        panic!()
    };
    assert_eq!(shown.arguments.as_str(), "{\"path\":\"/x\"}");
    assert_eq!(shown.item.full_name(), "demo.wipe");
    assert_eq!(shown.reasons, ["no rule: not known to be read-only"]);
    let view = &world.route.approvals.list()[0];
    assert_eq!(
        (view.status.clone(), view.is_awaited),
        (ApprovalStatus::Pending, false)
    );
    let attended = shown.waiter.mark_waiting();
    assert!(world.route.approvals.list()[0].is_awaited);
    drop(attended);
    assert!(!world.route.approvals.list()[0].is_awaited);
}

#[tokio::test]
async fn a_replay_asks_again() {
    let world = World::new();
    let call = world.call("wipe", json!({}));
    let questions = world.asked(&call).await;
    yes(&world, &questions).await.unwrap();
    let second = again(&call, &questions);
    world.go(second.clone()).await.unwrap();
    // The very same round again, and the identical call under another id: both have to ask anew.
    assert_ne!(approval(&world.asked(&second).await), approval(&questions));
    world.asked(&world.call("wipe", json!({}))).await;
    assert_eq!(world.reached(), 1);
}

#[tokio::test]
async fn anything_changed_asks_again() {
    let mut world = World::new();
    let call = world.call("wipe", json!({"path": "/x", "n": 9007199254740992_i64}));
    let questions = world.asked(&call).await;
    yes(&world, &questions).await.unwrap();
    let with = |name: &str, arguments: serde_json::Value| {
        let mut changed = Call::tool(
            call.id.clone(),
            call.caller.clone(),
            name,
            Json::from_value(&arguments),
        );
        changed.round = again(&call, &questions).round.clone();
        changed
    };
    world
        .asked(&with(
            "wipe",
            json!({"path": "/y", "n": 9007199254740992_i64}),
        ))
        .await;
    world
        .asked(&with(
            "wipe",
            json!({"path": "/x", "n": 9007199254740993_i64}),
        ))
        .await;
    let mut other = with("wipe", json!({"path": "/x", "n": 9007199254740992_i64}));
    other.caller = Caller::new("key:other");
    world.asked(&other).await;
    world.tools(vec![crate::world::item(
        json!({"name": "wipe", "description": "new", "inputSchema": {"type": "object"}}),
    )]);
    world.asked(&again(&call, &questions)).await;
    world.tools(vec![crate::world::item(
        json!({"name": "wipe", "inputSchema": {"type": "object"}}),
    )]);
    world.route.policy_id = "p2".into();
    world.asked(&again(&call, &questions)).await;
    assert_eq!(world.reached(), 0);
    // With everything as it was, the approval is still good. The order of members does not count.
    world.route.policy_id = "p1".into();
    world
        .go(with(
            "wipe",
            json!({"n": 9007199254740992_i64, "path": "/x"}),
        ))
        .await
        .unwrap();
}

#[tokio::test]
async fn a_new_policy_ends_what_waits() {
    let world = World::new();
    let call = world.call("wipe", json!({}));
    let questions = world.asked(&call).await;
    world.route.approvals.policy_changed("p1");
    assert_eq!(world.route.approvals.list().len(), 1);
    world.route.approvals.policy_changed("p2");
    assert_eq!(world.route.approvals.list().len(), 0);
    assert!(matches!(
        yes(&world, &questions).await,
        Err(ApprovalError::Decided(ApprovalStatus::Expired))
    ));
}

#[tokio::test]
async fn denied_says_why() {
    let world = World::new();
    let call = world.call("wipe", json!({}));
    let questions = world.asked(&call).await;
    let why = Some("not on \u{1b}[31mFridays\u{200b}".to_owned());
    world
        .route
        .approvals
        .deny(&approval(&questions), ApprovalChannel::Terminal, why)
        .await
        .unwrap();
    let outcome = world.go(again(&call, &questions)).await;
    assert_eq!(
        outcome.as_ref().unwrap_err().kind(),
        &ErrorKind::Refused(RefusalReason::Approver)
    );
    assert_eq!(text(outcome), "denied by a person: not on Fridays");
    let deny = &world.events("deny")[0];
    assert_eq!(
        (&deny["code"], &deny["out"]),
        (&json!("refused_person"), &json!("refused"))
    );
    let last = deny["trail"].as_array().unwrap().last().unwrap();
    assert_eq!(
        last,
        &json!({"by": "confirm", "verdict": "refuse", "why": "denied by a person: not on Fridays"})
    );
    assert_eq!(world.reached(), 0);
    // Another call may ask again.
    let next = world.call("wipe", json!({}));
    let questions = world.asked(&next).await;
    world
        .route
        .approvals
        .deny(&approval(&questions), ApprovalChannel::Console, None)
        .await
        .unwrap();
    assert_eq!(
        text(world.go(again(&next, &questions)).await),
        "denied by a person"
    );
}

#[tokio::test]
async fn a_caller_that_gave_up_hears_the_no_and_uses_the_yes() {
    let world = World::new();
    let gone = world.call("wipe", json!({}));
    let questions = world.asked(&gone).await;
    world
        .route
        .approvals
        .deny(&approval(&questions), ApprovalChannel::Console, None)
        .await
        .unwrap();
    assert_eq!(
        text(world.go(world.call("wipe", json!({}))).await),
        "denied by a person"
    );
    let questions = world.asked(&world.call("wipe", json!({}))).await;
    yes(&world, &questions).await.unwrap();
    assert_eq!(said(world.go(world.call("wipe", json!({}))).await), "done");
    world.asked(&world.call("wipe", json!({}))).await;
}

#[tokio::test]
async fn a_no_wins_over_an_unused_yes() {
    let world = World::new();
    let call = world.call("wipe", json!({}));
    let questions = world.asked(&call).await;
    yes(&world, &questions).await.unwrap();
    world
        .route
        .approvals
        .deny(&approval(&questions), ApprovalChannel::Console, None)
        .await
        .unwrap();
    assert!(matches!(
        yes(&world, &questions).await,
        Err(ApprovalError::Decided(ApprovalStatus::Denied(..)))
    ));
    text(world.go(again(&call, &questions)).await);
    assert_eq!(world.reached(), 0);
}

#[tokio::test]
async fn two_that_wait_for_the_same_share_the_question_not_the_yes() {
    let world = World::new();
    let (a, b) = (world.call("wipe", json!({})), world.call("wipe", json!({})));
    let (qa, qb) = (world.asked(&a).await, world.asked(&b).await);
    assert_eq!(approval(&qa), approval(&qb));
    yes(&world, &qa).await.unwrap();
    let (one, two) = tokio::join!(world.go(again(&a, &qa)), world.go(again(&b, &qb)));
    let done = [&one, &two]
        .into_iter()
        .filter(|o| matches!(o, Ok(Outcome::Done(_))))
        .count();
    assert_eq!((done, world.reached()), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn nobody_decides_in_time() {
    let world = World::with(|m| m.desk.approval_lifetime = Duration::from_secs(600));
    let call = world.call("wipe", json!({}));
    let questions = world.asked(&call).await;
    let InputRequestKind::Approve(shown) = &questions.requests[0].kind else {
        panic!()
    };
    shown.waiter.wait_for_decision().await;
    let outcome = world.go(again(&call, &questions)).await;
    assert_eq!(
        outcome.as_ref().unwrap_err().kind(),
        &ErrorKind::Refused(RefusalReason::Expired)
    );
    assert_eq!(
        text(outcome),
        "denied: the call was not approved within 10 min"
    );
    assert!(matches!(
        yes(&world, &questions).await,
        Err(ApprovalError::Decided(ApprovalStatus::Expired))
    ));
    assert_eq!(world.events("approval").last().unwrap()["state"], "expired");
}

#[tokio::test(start_paused = true)]
async fn a_yes_does_not_last_for_ever() {
    let world = World::new();
    let questions = world.asked(&world.call("wipe", json!({}))).await;
    yes(&world, &questions).await.unwrap();
    tokio::time::advance(Duration::from_secs(601)).await;
    world.asked(&world.call("wipe", json!({}))).await;
    assert_eq!(world.reached(), 0);
}

#[tokio::test]
async fn deciding_wakes_who_waits() {
    let world = World::new();
    let questions = world.asked(&world.call("wipe", json!({}))).await;
    let InputRequestKind::Approve(shown) = &questions.requests[0].kind else {
        panic!()
    };
    let (decided, approved) =
        tokio::join!(shown.waiter.wait_for_decision(), yes(&world, &questions));
    approved.unwrap();
    let () = decided;
}

#[tokio::test]
async fn a_yes_can_be_remembered_for_a_harmless_tool() {
    let world = World::new();
    let call = world.call("add", json!({"a": 1}));
    let questions = world.asked(&call).await;
    world
        .route
        .approvals
        .approve(
            &approval(&questions),
            ApprovalChannel::Console,
            ApprovalTerms::with_grant(GrantTerms::default()),
        )
        .await
        .unwrap();
    world.go(again(&call, &questions)).await.unwrap();
    world.go(world.call("add", json!({"a": 2}))).await.unwrap();
    world.go(world.call("add", json!({"a": 3}))).await.unwrap();
    let grant = world.route.approvals.grants().remove(0);
    assert_eq!((grant.used, grant.tool.as_str()), (2, "add"));
    assert_eq!(world.events("call.begin")[2]["approval"], &*grant.id);
    let mut other = world.call("add", json!({"a": 2}));
    other.caller = Caller::new("key:other");
    world.asked(&other).await;
    let changed = json!({"name": "add", "description": "new", "inputSchema": {"type": "object"}, "annotations": {"destructiveHint": false}});
    world.tools(vec![crate::world::item(changed)]);
    world.asked(&world.call("add", json!({"a": 3}))).await;
    assert_eq!(world.route.approvals.grants()[0].used, 2);
    world.route.approvals.revoke(&grant.id).await.unwrap();
    world.asked(&world.call("add", json!({"a": 4}))).await;
}

#[tokio::test]
async fn a_yes_to_destroying_is_never_remembered() {
    let world = World::new();
    let questions = world.asked(&world.call("wipe", json!({}))).await;
    let kept = world
        .route
        .approvals
        .approve(
            &approval(&questions),
            ApprovalChannel::Console,
            ApprovalTerms::with_grant(GrantTerms::default()),
        )
        .await;
    assert!(matches!(kept, Err(ApprovalError::GrantNotAllowed)));
    assert_eq!(
        world.route.approvals.list()[0].status,
        ApprovalStatus::Pending
    );
}

#[tokio::test]
async fn the_callers_own_client_may_answer_where_allowed() {
    let mut world = World::new();
    world.route.via_client = ClientApprovals::Always;
    let mut call = world.call("wipe", json!({}));
    call.capabilities.elicitation = true;
    let questions = world.asked(&call).await;
    let InputRequestKind::Approve(shown) = &questions.requests[0].kind else {
        panic!()
    };
    assert!(shown.via_client);
    let accepted = with_answer(
        again(&call, &questions),
        json!({"action": "accept", "content": {"approve": true}}),
    );
    assert_eq!(said(world.go(accepted).await), "done");
    let by = world
        .events("approval")
        .iter()
        .find(|r| r["state"] == "approved")
        .unwrap()["by"]
        .clone();
    assert_eq!(by, "client");
}

#[tokio::test]
async fn the_callers_own_client_says_no() {
    let mut world = World::new();
    world.route.via_client = ClientApprovals::Always;
    let no = [
        (
            json!({"action": "accept", "content": {"approve": false, "reason": "too late"}}),
            "denied by a person: too late",
        ),
        (json!({"action": "decline"}), "denied by a person"),
        (json!({"action": "cancel"}), "denied by a person"),
        (json!({"action": "accept"}), "denied by a person"),
    ];
    for (answer, expected) in no {
        let mut call = world.call("wipe", json!({}));
        call.capabilities.elicitation = true;
        let questions = world.asked(&call).await;
        assert_eq!(
            text(
                world
                    .go(with_answer(again(&call, &questions), answer))
                    .await
            ),
            expected
        );
    }
    assert_eq!(world.reached(), 0);
}

#[tokio::test]
async fn the_clients_answer_counts_only_for_its_question() {
    let mut world = World::new();
    let accept = json!({"action": "accept", "content": {"approve": true}});
    let mut call = world.call("wipe", json!({}));
    call.capabilities.elicitation = true;
    // Destroying tools are not for the client by default.
    let questions = world.asked(&call).await;
    let InputRequestKind::Approve(shown) = &questions.requests[0].kind else {
        panic!()
    };
    assert!(!shown.via_client);
    world
        .asked(&with_answer(again(&call, &questions), accept.clone()))
        .await;
    // An answer without the slot, and one for other arguments.
    world.route.via_client = ClientApprovals::Always;
    world
        .asked(&with_answer(call.clone(), accept.clone()))
        .await;
    let mut changed = world.call("wipe", json!({"more": 1}));
    changed.capabilities.elicitation = true;
    changed.round = again(&call, &questions).round.clone();
    world.asked(&with_answer(changed, accept)).await;
    let first = world.route.approvals.find(&approval(&questions)).unwrap();
    assert_eq!(first.status, ApprovalStatus::Pending);
    assert_eq!(world.reached(), 0);
}

#[tokio::test]
async fn an_approval_holds_for_later_rounds_of_the_same_call() {
    let world = World::new();
    world.handle(|call| {
        Box::pin(async move {
            match call.round.answer("name") {
                Some(_) => Ok(Outcome::Done(toolgate_core::Output::text("done"))),
                None => {
                    let ask = toolgate_core::InputRequest {
                        key: "name".into(),
                        kind: InputRequestKind::Roots,
                    };
                    Ok(Outcome::InputRequired(InputRequests {
                        requests: vec![ask],
                        ..Default::default()
                    }))
                }
            }
        })
    });
    let call = world.call("wipe", json!({}));
    let questions = world.asked(&call).await;
    yes(&world, &questions).await.unwrap();
    let second = again(&call, &questions);
    let asked = world.asked(&second).await;
    let mut third = again(&second, &asked);
    third
        .round
        .answers
        .push(("name".to_owned(), Json::from_value(&json!("x"))));
    assert_eq!(said(world.go(third.clone()).await), "done");
    let outs: Vec<_> = world
        .events("call.end")
        .iter()
        .map(|r| r["out"].clone())
        .collect();
    assert_eq!(outs, ["input_required", "ok"]);
    // But each round counts once.
    world.asked(&third).await;
    assert_eq!(world.reached(), 2);
}

#[tokio::test]
async fn a_desk_has_room_for_so_many() {
    let world = World::with(|m| {
        m.desk.max_pending_per_caller = 2;
        m.desk.max_pending = 3;
    });
    world.asked(&world.call("wipe", json!({"n": 1}))).await;
    let second = world.asked(&world.call("wipe", json!({"n": 2}))).await;
    let outcome = world.go(world.call("wipe", json!({"n": 3}))).await;
    assert!(matches!(
        outcome.as_ref().unwrap_err().kind(),
        ErrorKind::Busy(_)
    ));
    assert!(text(outcome).contains("2 pending approvals"));
    let of = |caller: &str, n: i32| {
        let mut call = world.call("wipe", json!({"n": n}));
        call.caller = Caller::new(caller);
        call
    };
    world.asked(&of("b", 1)).await;
    assert!(text(world.go(of("c", 1)).await).contains("too many approvals are pending"));
    // A decision makes room.
    world
        .route
        .approvals
        .deny(&approval(&second), ApprovalChannel::Console, None)
        .await
        .unwrap();
    world.asked(&of("c", 1)).await;
}

#[tokio::test]
async fn the_same_tool_of_another_server_is_another() {
    let world = World::new();
    let add = json!({"name": "add", "inputSchema": {"type": "object"}, "annotations": {"destructiveHint": false}});
    let of = |server: &str| crate::world::item_of(server, true, add.clone());
    world.tools(vec![of("demo")]);
    let call = world.call("add", json!({}));
    let questions = world.asked(&call).await;
    world
        .route
        .approvals
        .approve(
            &approval(&questions),
            ApprovalChannel::Console,
            ApprovalTerms::with_grant(GrantTerms::default()),
        )
        .await
        .unwrap();
    // Neither the approval nor the grant is good for it.
    world.tools(vec![of("other")]);
    world.asked(&again(&call, &questions)).await;
    world.tools(vec![of("demo")]);
    world.go(again(&call, &questions)).await.unwrap();
}

#[tokio::test]
async fn another_tool_of_the_same_look_is_another() {
    let world = World::new();
    let same = |name: &str| {
        let mut item = toolgate_core::Item::new(
            toolgate_core::Origin { server: "demo".into(), trusted: true },
            crate::world::item(json!({"name": "t", "inputSchema": {"type": "object"}, "annotations": {"destructiveHint": false}})).def.clone(),
        );
        item.local_name = name.to_owned();
        std::sync::Arc::new(item)
    };
    world.tools(vec![same("one")]);
    let call = world.call("t", json!({}));
    let questions = world.asked(&call).await;
    world
        .route
        .approvals
        .approve(
            &approval(&questions),
            ApprovalChannel::Console,
            ApprovalTerms::with_grant(GrantTerms::default()),
        )
        .await
        .unwrap();
    world.tools(vec![same("two")]);
    world.asked(&again(&call, &questions)).await;
}

#[tokio::test]
async fn a_no_that_comes_while_a_yes_is_written_wins() {
    let world = World::new();
    let call = world.call("wipe", json!({}));
    let questions = world.asked(&call).await;
    let id = approval(&questions);
    let no = world
        .route
        .approvals
        .deny(&id, ApprovalChannel::Terminal, None);
    let (yes, no) = tokio::join!(yes(&world, &questions), no);
    // How far the yes came by then is up to the disk.
    let denied =
        |error: &ApprovalError| matches!(error, ApprovalError::Decided(ApprovalStatus::Denied(..)));
    assert!(yes.as_ref().err().is_none_or(denied), "{yes:?}");
    no.unwrap();
    assert_eq!(
        text(world.go(again(&call, &questions)).await),
        "denied by a person"
    );
}

#[tokio::test]
async fn so_many_grants() {
    let world = World::with(|m| m.desk.max_grants = 1);
    for (a, fits) in [(1, true), (2, false)] {
        let mut call = world.call("add", json!({"a": a}));
        call.caller = Caller::new(format!("key:{a}"));
        let questions = world.asked(&call).await;
        let kept = world
            .route
            .approvals
            .approve(
                &approval(&questions),
                ApprovalChannel::Console,
                ApprovalTerms::with_grant(GrantTerms::default()),
            )
            .await;
        assert_eq!(kept.is_ok(), fits, "{kept:?}");
    }
}

#[tokio::test]
async fn a_yes_is_remembered_for_so_long() {
    let world = World::with(|m| {
        m.desk.default_grant_lifetime = Duration::from_secs(60);
        m.desk.max_grant_lifetime = Duration::from_secs(120);
    });
    let hour = std::time::SystemTime::now() + Duration::from_secs(3600);
    for (number, (until, seconds)) in [(None, 60), (Some(hour), 120)].into_iter().enumerate() {
        let mut call = world.call("add", json!({"a": number}));
        call.caller = Caller::new(format!("key:{number}"));
        let questions = world.asked(&call).await;
        let yes = ApprovalTerms::with_grant(GrantTerms {
            expires_at: until,
            ..GrantTerms::default()
        });
        let desk = &world.route.approvals;
        desk.approve(&approval(&questions), ApprovalChannel::Console, yes)
            .await
            .unwrap();
        let caller = Some(call.caller.clone());
        let grants = desk.grants();
        let grant = grants.iter().find(|g| g.caller == caller).unwrap();
        let life = grant.expires_at.duration_since(grant.created_at).unwrap();
        assert_eq!(life, Duration::from_secs(seconds));
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_over_is_forgotten() {
    let world = World::new();
    let questions = world.asked(&world.call("wipe", json!({}))).await;
    let id = approval(&questions);
    tokio::time::advance(Duration::from_secs(601)).await;
    assert_eq!(
        world.route.approvals.find(&id).unwrap().status,
        ApprovalStatus::Expired
    );
    tokio::time::advance(Duration::from_secs(600)).await;
    assert!(world.route.approvals.find(&id).is_none());
}

#[tokio::test]
async fn a_reason_is_not_without_end() {
    let world = World::new();
    let call = world.call("wipe", json!({}));
    let questions = world.asked(&call).await;
    world
        .route
        .approvals
        .deny(
            &approval(&questions),
            ApprovalChannel::Console,
            Some("x".repeat(5000)),
        )
        .await
        .unwrap();
    assert_eq!(
        text(world.go(again(&call, &questions)).await).len(),
        "denied by a person: ".len() + 1000
    );
}

#[tokio::test]
async fn a_used_approval_holds_for_nothing_but_its_own_call() {
    let world = World::new();
    let call = world.call("wipe", json!({}));
    let questions = world.asked(&call).await;
    yes(&world, &questions).await.unwrap();
    let second = again(&call, &questions);
    world.go(second.clone()).await.unwrap();
    // Later rounds with the slot of the used approval, but of another call, or with other arguments.
    let third = again(&second, &questions);
    let mut other = world.call("wipe", json!({}));
    other.round = third.round.clone();
    world.asked(&other).await;
    let mut changed = third.clone();
    changed.invocation.arguments = CallArguments::new(Json::from_value(&json!({"path": "/"})));
    world.asked(&changed).await;
    // Nor is it without the slot.
    let mut bare = third.clone();
    bare.round.slots.clear();
    world.asked(&bare).await;
    assert_eq!(world.reached(), 1);
    world.go(third).await.unwrap();
}

#[tokio::test]
async fn a_grant_with_a_condition_speaks_of_what_fits_it() {
    let world = World::new();
    let call = world.call("wipe", json!({"path": "/tmp/a"}));
    let questions = world.asked(&call).await;
    let (desk, id) = (&world.route.approvals, approval(&questions));
    let remember = |when: &str| {
        ApprovalTerms::with_grant(GrantTerms {
            condition: Some(when.to_owned()),
            ..GrantTerms::default()
        })
    };
    // One that looks at no argument, one that is none, one about what grants do not know.
    for wrong in [
        "true",
        "caller.name == \"key:test\"",
        "args.path.startsWith(",
        "",
    ] {
        let said = desk
            .approve(&id, ApprovalChannel::Console, remember(wrong))
            .await;
        assert!(
            matches!(said, Err(ApprovalError::InvalidCondition(_))),
            "{wrong}: {said:?}"
        );
    }
    let when = remember("args.path.startsWith(\"/tmp/\")");
    desk.approve(&id, ApprovalChannel::Console, when)
        .await
        .unwrap();
    world.go(again(&call, &questions)).await.unwrap();
    world
        .go(world.call("wipe", json!({"path": "/tmp/b"})))
        .await
        .unwrap();
    // What does not fit, and what cannot be judged, is asked about.
    for other in [json!({"path": "/etc/b"}), json!({"path": 5}), json!({})] {
        world.asked(&world.call("wipe", other)).await;
    }
    assert_eq!(world.reached(), 2);
    assert_eq!(desk.grants()[0].used, 1);
}

#[tokio::test]
async fn a_grant_ends_and_is_for_all_where_said() {
    let world = World::new();
    let call = world.call("add", json!({"a": 1}));
    let questions = world.asked(&call).await;
    let remember = GrantTerms {
        expires_at: Some(std::time::SystemTime::now() + Duration::from_millis(300)),
        all_callers: true,
        ..GrantTerms::default()
    };
    let id = approval(&questions);
    let yes = ApprovalTerms::with_grant(remember);
    world
        .route
        .approvals
        .approve(&id, ApprovalChannel::Console, yes)
        .await
        .unwrap();
    let mut other = world.call("add", json!({"a": 2}));
    other.caller = Caller::new("key:other");
    let grant = world.route.approvals.grants().remove(0);
    if grant.end_reason(std::time::SystemTime::now()).is_none() {
        let _ = world.go(other).await;
    }
    // The clock of the wall decides, as after a restart.
    while grant.end_reason(std::time::SystemTime::now()).is_none() {
        std::thread::yield_now();
    }
    assert_eq!(
        grant.end_reason(std::time::SystemTime::now()),
        Some("expired")
    );
    world.asked(&world.call("add", json!({"a": 3}))).await;
    let far = GrantView {
        expires_at: std::time::SystemTime::now() + Duration::from_secs(60),
        ..grant
    };
    assert_eq!(far.end_reason(std::time::SystemTime::now()), None);
}

#[tokio::test]
async fn what_one_was_allowed_is_not_for_who_has_the_name_next() {
    let world = World::new();
    let of = |holder: Option<u64>, a: u8| {
        let mut call = world.call("add", json!({"a": a}));
        call.caller = Caller::new("corp:ann");
        if let Some(holder) = holder {
            call.caller = call.caller.clone().with_generation(holder);
        }
        call
    };
    // An approval that waits for the identical call.
    let questions = world.asked(&of(Some(1), 1)).await;
    yes(&world, &questions).await.unwrap();
    for next in [Some(2), None] {
        let other = world.asked(&of(next, 1)).await;
        assert_ne!(approval(&other), approval(&questions), "{next:?}");
    }
    let first = again(&of(Some(1), 1), &questions);
    assert_eq!(said(world.go(first).await), "done");
    // And one that is remembered.
    let questions = world.asked(&of(Some(1), 2)).await;
    let remember = ApprovalTerms::with_grant(GrantTerms::default());
    let desk = world.route.approvals.clone();
    let id = approval(&questions);
    desk.approve(&id, ApprovalChannel::Console, remember)
        .await
        .unwrap();
    assert_eq!(said(world.go(of(Some(1), 3)).await), "done");
    world.asked(&of(Some(2), 3)).await;
    world.asked(&of(None, 3)).await;
}
