//! A person settles what rules leave open.

use crate::pipeline_fixture::{PipelineFixture, again, approval, said, text};
use serde_json::json;
use std::time::Duration;
use toolgate_core::{
    Call, CallArguments, Caller, ErrorKind, InputRequestKind, InputRequests, Json, Outcome,
    RefusalReason, TaskControl,
};
use toolgate_policy::{
    APPROVAL_KEY, ApprovalChannel, ApprovalError, ApprovalStatus, ApprovalTerms, ClientApprovals,
    GlobPattern, GrantTerms, QuorumRule, QuorumRules,
};

fn yes(
    fixture: &PipelineFixture,
    questions: &InputRequests,
) -> impl Future<Output = Result<ApprovalStatus, ApprovalError>> {
    let (desk, id) = (fixture.approvals().clone(), approval(questions));
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
    let fixture = PipelineFixture::new();
    let call = fixture.call("wipe", json!({"path": "/x"}));
    let questions = fixture.asked(&call).await;
    assert_eq!(fixture.reached(), 0);
    yes(&fixture, &questions).await.unwrap();
    assert_eq!(said(fixture.go(again(&call, &questions)).await), "done");
    let states: Vec<_> = fixture
        .events("approval")
        .iter()
        .map(|r| r["state"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(states, ["asked", "approved", "spent"]);
    let begin = &fixture.events("call.begin")[0];
    assert_eq!(begin["approval"], approval(&questions).as_str());
    assert_eq!(begin["tool"], "demo.wipe");
    // Of this round alone.
    let trail = [
        json!({"by": "access", "verdict": "ask", "why": "no rule matches, and the tool is not known to be read-only"}),
        json!({"by": "confirm", "verdict": "approved", "why": format!("{} by a person (console)", approval(&questions))}),
    ];
    assert_eq!(begin["trail"], json!(trail));
    let end = &fixture.events("call.end")[0];
    assert_eq!(end["out"], "ok");
    assert_eq!((&end["srv"], &end["tool"]), (&begin["srv"], &begin["tool"]));
    assert_eq!(fixture.events("deny").len(), 0);
}

#[tokio::test]
async fn the_question_shows_everything() {
    let fixture = PipelineFixture::new();
    let call = fixture.call("wipe", json!({"path": "/x"}));
    let questions = fixture.asked(&call).await;
    let InputRequestKind::Approve(shown) = &questions.requests[0].kind else {
        panic!()
    };
    assert_eq!(shown.arguments.as_str(), "{\"path\":\"/x\"}");
    assert_eq!(shown.item.full_name(), "demo.wipe");
    assert_eq!(
        shown.reasons,
        ["no rule matches, and the tool is not known to be read-only"]
    );
    let view = &fixture.approvals().list()[0];
    assert_eq!(
        (view.status.clone(), view.is_awaited),
        (ApprovalStatus::Pending, false)
    );
    let attended = shown.waiter.mark_waiting();
    assert!(fixture.approvals().list()[0].is_awaited);
    drop(attended);
    assert!(!fixture.approvals().list()[0].is_awaited);
}

#[tokio::test]
async fn a_replay_asks_again() {
    let fixture = PipelineFixture::new();
    let call = fixture.call("wipe", json!({}));
    let questions = fixture.asked(&call).await;
    yes(&fixture, &questions).await.unwrap();
    let second = again(&call, &questions);
    fixture.go(second.clone()).await.unwrap();
    // The very same round again, and the identical call under another id: both have to ask anew.
    assert_ne!(
        approval(&fixture.asked(&second).await),
        approval(&questions)
    );
    fixture.asked(&fixture.call("wipe", json!({}))).await;
    assert_eq!(fixture.reached(), 1);
}

#[tokio::test]
async fn anything_changed_asks_again() {
    let mut fixture = PipelineFixture::new();
    let call = fixture.call("wipe", json!({"path": "/x", "n": 9007199254740992_i64}));
    let questions = fixture.asked(&call).await;
    yes(&fixture, &questions).await.unwrap();
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
    fixture
        .asked(&with(
            "wipe",
            json!({"path": "/y", "n": 9007199254740992_i64}),
        ))
        .await;
    fixture
        .asked(&with(
            "wipe",
            json!({"path": "/x", "n": 9007199254740993_i64}),
        ))
        .await;
    let mut other = with("wipe", json!({"path": "/x", "n": 9007199254740992_i64}));
    other.caller = Caller::new("key:other");
    fixture.asked(&other).await;
    fixture.tools(vec![crate::pipeline_fixture::item(
        json!({"name": "wipe", "description": "new", "inputSchema": {"type": "object"}}),
    )]);
    fixture.asked(&again(&call, &questions)).await;
    fixture.tools(vec![crate::pipeline_fixture::item(
        json!({"name": "wipe", "inputSchema": {"type": "object"}}),
    )]);
    fixture.route.policy_id = "p2".into();
    fixture.asked(&again(&call, &questions)).await;
    assert_eq!(fixture.reached(), 0);
    // With everything as it was, the approval is still good. The order of members does not count.
    fixture.route.policy_id = "p1".into();
    fixture
        .go(with(
            "wipe",
            json!({"n": 9007199254740992_i64, "path": "/x"}),
        ))
        .await
        .unwrap();
}

#[tokio::test]
async fn a_new_policy_ends_what_waits() {
    let fixture = PipelineFixture::new();
    let call = fixture.call("wipe", json!({}));
    let questions = fixture.asked(&call).await;
    fixture.approvals().policy_changed("p1");
    assert_eq!(fixture.approvals().list().len(), 1);
    fixture.approvals().policy_changed("p2");
    assert_eq!(fixture.approvals().list().len(), 0);
    assert!(matches!(
        yes(&fixture, &questions).await,
        Err(ApprovalError::Decided(ApprovalStatus::Expired))
    ));
}

#[tokio::test]
async fn denied_says_why() {
    let fixture = PipelineFixture::new();
    let call = fixture.call("wipe", json!({}));
    let questions = fixture.asked(&call).await;
    let why = Some("not on \u{1b}[31mFridays\u{200b}".to_owned());
    fixture
        .approvals()
        .deny(&approval(&questions), ApprovalChannel::Terminal, why)
        .await
        .unwrap();
    let outcome = fixture.go(again(&call, &questions)).await;
    assert_eq!(
        outcome.as_ref().unwrap_err().kind(),
        &ErrorKind::Refused(RefusalReason::Approver)
    );
    assert_eq!(
        text(outcome),
        "refused: a person denied this call: not on Fridays"
    );
    let deny = &fixture.events("deny")[0];
    assert_eq!(
        (&deny["code"], &deny["out"]),
        (&json!("refused_person"), &json!("refused"))
    );
    let last = deny["trail"].as_array().unwrap().last().unwrap();
    assert_eq!(
        last,
        &json!({"by": "confirm", "verdict": "refuse", "why": "refused: a person denied this call: not on Fridays"})
    );
    assert_eq!(fixture.reached(), 0);
    // Another call may ask again.
    let next = fixture.call("wipe", json!({}));
    let questions = fixture.asked(&next).await;
    fixture
        .approvals()
        .deny(&approval(&questions), ApprovalChannel::Console, None)
        .await
        .unwrap();
    assert_eq!(
        text(fixture.go(again(&next, &questions)).await),
        "refused: a person denied this call"
    );
}

#[tokio::test]
async fn a_caller_that_gave_up_hears_the_no_and_uses_the_yes() {
    let fixture = PipelineFixture::new();
    let gone = fixture.call("wipe", json!({}));
    let questions = fixture.asked(&gone).await;
    fixture
        .approvals()
        .deny(&approval(&questions), ApprovalChannel::Console, None)
        .await
        .unwrap();
    assert_eq!(
        text(fixture.go(fixture.call("wipe", json!({}))).await),
        "refused: a person denied this call"
    );
    let questions = fixture.asked(&fixture.call("wipe", json!({}))).await;
    yes(&fixture, &questions).await.unwrap();
    assert_eq!(
        said(fixture.go(fixture.call("wipe", json!({}))).await),
        "done"
    );
    fixture.asked(&fixture.call("wipe", json!({}))).await;
}

#[tokio::test]
async fn a_no_wins_over_an_unused_yes() {
    let fixture = PipelineFixture::new();
    let call = fixture.call("wipe", json!({}));
    let questions = fixture.asked(&call).await;
    yes(&fixture, &questions).await.unwrap();
    fixture
        .approvals()
        .deny(&approval(&questions), ApprovalChannel::Console, None)
        .await
        .unwrap();
    assert!(matches!(
        yes(&fixture, &questions).await,
        Err(ApprovalError::Decided(ApprovalStatus::Denied(..)))
    ));
    text(fixture.go(again(&call, &questions)).await);
    assert_eq!(fixture.reached(), 0);
}

#[tokio::test]
async fn two_that_wait_for_the_same_share_the_question_not_the_yes() {
    let fixture = PipelineFixture::new();
    let (a, b) = (
        fixture.call("wipe", json!({})),
        fixture.call("wipe", json!({})),
    );
    let (qa, qb) = (fixture.asked(&a).await, fixture.asked(&b).await);
    assert_eq!(approval(&qa), approval(&qb));
    yes(&fixture, &qa).await.unwrap();
    let (one, two) = tokio::join!(fixture.go(again(&a, &qa)), fixture.go(again(&b, &qb)));
    let done = [&one, &two]
        .into_iter()
        .filter(|o| matches!(o, Ok(Outcome::Done(_))))
        .count();
    assert_eq!((done, fixture.reached()), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn nobody_decides_in_time() {
    let fixture = PipelineFixture::with(|m| m.desk.approval_lifetime = Duration::from_secs(600));
    let call = fixture.call("wipe", json!({}));
    let questions = fixture.asked(&call).await;
    let InputRequestKind::Approve(shown) = &questions.requests[0].kind else {
        panic!()
    };
    shown.waiter.wait_for_decision().await;
    let outcome = fixture.go(again(&call, &questions)).await;
    assert_eq!(
        outcome.as_ref().unwrap_err().kind(),
        &ErrorKind::Refused(RefusalReason::Expired)
    );
    assert_eq!(
        text(outcome),
        "refused: nobody approved this call within 10 min; call again to request a new approval"
    );
    assert!(matches!(
        yes(&fixture, &questions).await,
        Err(ApprovalError::Decided(ApprovalStatus::Expired))
    ));
    assert_eq!(
        fixture.events("approval").last().unwrap()["state"],
        "expired"
    );
}

#[tokio::test(start_paused = true)]
async fn a_call_that_can_run_as_a_task_waits_longer_for_a_person() {
    let day = Duration::from_secs(86_400);
    let fixture = PipelineFixture::with(|m| m.desk.task_approval_lifetime = day);
    let mut task = fixture.call("wipe", json!({}));
    task.task_control = TaskControl::new().0;
    let questions = fixture.asked(&task).await;
    let waits = fixture
        .asked(&fixture.call("wipe", json!({"path": "/x"})))
        .await;
    let state = |of: &InputRequests| fixture.approvals().find(&approval(of)).unwrap().status;
    tokio::time::advance(day - Duration::from_secs(1)).await;
    assert_eq!(state(&waits), ApprovalStatus::Expired, "of another call");
    assert_eq!(state(&questions), ApprovalStatus::Pending);
    tokio::time::advance(Duration::from_secs(1)).await;
    assert_eq!(state(&questions), ApprovalStatus::Expired);
    assert_eq!(
        text(fixture.go(again(&task, &questions)).await),
        "refused: nobody approved this call within 24 h; call again to request a new approval"
    );
}

#[tokio::test(start_paused = true)]
async fn a_yes_does_not_last_for_ever() {
    let fixture = PipelineFixture::new();
    let questions = fixture.asked(&fixture.call("wipe", json!({}))).await;
    yes(&fixture, &questions).await.unwrap();
    tokio::time::advance(Duration::from_secs(601)).await;
    fixture.asked(&fixture.call("wipe", json!({}))).await;
    assert_eq!(fixture.reached(), 0);
}

#[tokio::test]
async fn deciding_wakes_who_waits() {
    let fixture = PipelineFixture::new();
    let questions = fixture.asked(&fixture.call("wipe", json!({}))).await;
    let InputRequestKind::Approve(shown) = &questions.requests[0].kind else {
        panic!()
    };
    let (decided, approved) =
        tokio::join!(shown.waiter.wait_for_decision(), yes(&fixture, &questions));
    approved.unwrap();
    let () = decided;
}

#[tokio::test]
async fn a_yes_can_be_remembered_for_a_harmless_tool() {
    let fixture = PipelineFixture::new();
    let call = fixture.call("add", json!({"a": 1}));
    let questions = fixture.asked(&call).await;
    fixture
        .approvals()
        .approve(
            &approval(&questions),
            ApprovalChannel::Console,
            ApprovalTerms::with_grant(GrantTerms::default()),
        )
        .await
        .unwrap();
    fixture.go(again(&call, &questions)).await.unwrap();
    fixture
        .go(fixture.call("add", json!({"a": 2})))
        .await
        .unwrap();
    fixture
        .go(fixture.call("add", json!({"a": 3})))
        .await
        .unwrap();
    let grant = fixture.approvals().grants().remove(0);
    assert_eq!((grant.used, grant.tool.as_str()), (2, "add"));
    assert_eq!(fixture.events("call.begin")[2]["approval"], &*grant.id);
    let mut other = fixture.call("add", json!({"a": 2}));
    other.caller = Caller::new("key:other");
    fixture.asked(&other).await;
    let changed = json!({"name": "add", "description": "new", "inputSchema": {"type": "object"}, "annotations": {"destructiveHint": false}});
    fixture.tools(vec![crate::pipeline_fixture::item(changed)]);
    fixture.asked(&fixture.call("add", json!({"a": 3}))).await;
    assert_eq!(fixture.approvals().grants()[0].used, 2);
    fixture
        .approvals()
        .revoke(&grant.id, &ApprovalChannel::Console.into())
        .await
        .unwrap();
    fixture.asked(&fixture.call("add", json!({"a": 4}))).await;
}

#[tokio::test]
async fn a_yes_to_destroying_is_never_remembered() {
    let fixture = PipelineFixture::new();
    let questions = fixture.asked(&fixture.call("wipe", json!({}))).await;
    let kept = fixture
        .approvals()
        .approve(
            &approval(&questions),
            ApprovalChannel::Console,
            ApprovalTerms::with_grant(GrantTerms::default()),
        )
        .await;
    let why = kept.unwrap_err().to_string();
    assert!(why.contains("add a condition"), "{why}");
    assert_eq!(
        fixture.approvals().list()[0].status,
        ApprovalStatus::Pending
    );
}

/// Each cause has a text of its own, and the approval stays pending.
#[tokio::test]
async fn names_why_an_approval_cannot_be_remembered() {
    let fixture = PipelineFixture::new();
    let mut no_uses = GrantTerms::default();
    no_uses.max_uses = Some(0);
    let mut edited = ApprovalTerms::default();
    edited.edited_arguments = Some(Json::from_value(&json!({"a": 2})));
    edited.grant = Some(GrantTerms::default());
    for (terms, expected) in [
        (
            ApprovalTerms::with_grant(no_uses),
            "raise the number of uses",
        ),
        (edited, "the arguments of the call were edited"),
    ] {
        let questions = fixture.asked(&fixture.call("add", json!({"a": 1}))).await;
        let id = approval(&questions);
        let kept = fixture
            .approvals()
            .approve(&id, ApprovalChannel::Console, terms)
            .await;
        let why = kept.unwrap_err().to_string();
        assert!(why.contains(expected), "{why}");
        assert_eq!(
            fixture.approvals().find(&id).unwrap().status,
            ApprovalStatus::Pending
        );
    }
}

#[tokio::test]
async fn the_callers_own_client_may_answer_where_allowed() {
    let mut fixture = PipelineFixture::new();
    fixture.operator_mut().via_client = ClientApprovals::Always;
    let mut call = fixture.call("wipe", json!({}));
    call.capabilities.elicitation = true;
    let questions = fixture.asked(&call).await;
    let InputRequestKind::Approve(shown) = &questions.requests[0].kind else {
        panic!()
    };
    assert!(shown.via_client);
    let accepted = with_answer(
        again(&call, &questions),
        json!({"action": "accept", "content": {"approve": true}}),
    );
    assert_eq!(said(fixture.go(accepted).await), "done");
    let by = fixture
        .events("approval")
        .iter()
        .find(|r| r["state"] == "approved")
        .unwrap()["by"]
        .clone();
    assert_eq!(by, "client");
}

#[tokio::test]
async fn the_callers_own_client_says_no() {
    let mut fixture = PipelineFixture::new();
    fixture.operator_mut().via_client = ClientApprovals::Always;
    let no = [
        (
            json!({"action": "accept", "content": {"approve": false, "reason": "too late"}}),
            "refused: a person denied this call: too late",
        ),
        (
            json!({"action": "decline"}),
            "refused: a person denied this call",
        ),
        (
            json!({"action": "cancel"}),
            "refused: a person denied this call",
        ),
        (
            json!({"action": "accept"}),
            "refused: a person denied this call",
        ),
    ];
    for (answer, expected) in no {
        let mut call = fixture.call("wipe", json!({}));
        call.capabilities.elicitation = true;
        let questions = fixture.asked(&call).await;
        assert_eq!(
            text(
                fixture
                    .go(with_answer(again(&call, &questions), answer))
                    .await
            ),
            expected
        );
    }
    assert_eq!(fixture.reached(), 0);
}

#[tokio::test]
async fn the_clients_answer_counts_only_for_its_question() {
    let mut fixture = PipelineFixture::new();
    let accept = json!({"action": "accept", "content": {"approve": true}});
    let mut call = fixture.call("wipe", json!({}));
    call.capabilities.elicitation = true;
    // Destroying tools are not for the client by default.
    let questions = fixture.asked(&call).await;
    let InputRequestKind::Approve(shown) = &questions.requests[0].kind else {
        panic!()
    };
    assert!(!shown.via_client);
    fixture
        .asked(&with_answer(again(&call, &questions), accept.clone()))
        .await;
    // An answer without the slot, and one for other arguments.
    fixture.operator_mut().via_client = ClientApprovals::Always;
    fixture
        .asked(&with_answer(call.clone(), accept.clone()))
        .await;
    let mut changed = fixture.call("wipe", json!({"more": 1}));
    changed.capabilities.elicitation = true;
    changed.round = again(&call, &questions).round.clone();
    fixture.asked(&with_answer(changed, accept)).await;
    let first = fixture.approvals().find(&approval(&questions)).unwrap();
    assert_eq!(first.status, ApprovalStatus::Pending);
    assert_eq!(fixture.reached(), 0);
}

#[tokio::test]
async fn an_approval_holds_for_later_rounds_of_the_same_call() {
    let fixture = PipelineFixture::new();
    fixture.handle(|call| {
        Box::pin(async move {
            match call.round.answer("name") {
                Some(_) => Ok(Outcome::Done(toolgate_core::Output::text("done"))),
                None => {
                    let ask = toolgate_core::InputRequest {
                        key: "name".into(),
                        kind: InputRequestKind::Roots,
                    };
                    Ok(Outcome::InputRequired(InputRequests::new(vec![ask])))
                }
            }
        })
    });
    let call = fixture.call("wipe", json!({}));
    let questions = fixture.asked(&call).await;
    yes(&fixture, &questions).await.unwrap();
    let second = again(&call, &questions);
    let asked = fixture.asked(&second).await;
    let mut third = again(&second, &asked);
    third
        .round
        .answers
        .push(("name".to_owned(), Json::from_value(&json!("x"))));
    assert_eq!(said(fixture.go(third.clone()).await), "done");
    let outs: Vec<_> = fixture
        .events("call.end")
        .iter()
        .map(|r| r["out"].clone())
        .collect();
    assert_eq!(outs, ["input_required", "ok"]);
    // But each round counts once.
    fixture.asked(&third).await;
    assert_eq!(fixture.reached(), 2);
}

#[tokio::test]
async fn a_desk_has_room_for_so_many() {
    let fixture = PipelineFixture::with(|m| {
        m.desk.max_pending_per_caller = 2;
        m.desk.max_pending = 3;
    });
    fixture.asked(&fixture.call("wipe", json!({"n": 1}))).await;
    let second = fixture.asked(&fixture.call("wipe", json!({"n": 2}))).await;
    let outcome = fixture.go(fixture.call("wipe", json!({"n": 3}))).await;
    assert!(matches!(
        outcome.as_ref().unwrap_err().kind(),
        ErrorKind::Busy(_)
    ));
    assert!(text(outcome).contains("2 pending approvals"));
    let of = |caller: &str, n: i32| {
        let mut call = fixture.call("wipe", json!({"n": n}));
        call.caller = Caller::new(caller);
        call
    };
    fixture.asked(&of("b", 1)).await;
    assert!(text(fixture.go(of("c", 1)).await).contains("too many approvals are pending"));
    // A decision makes room.
    fixture
        .approvals()
        .deny(&approval(&second), ApprovalChannel::Console, None)
        .await
        .unwrap();
    fixture.asked(&of("c", 1)).await;
}

#[tokio::test]
async fn the_same_tool_of_another_server_is_another() {
    let fixture = PipelineFixture::new();
    let add = json!({"name": "add", "inputSchema": {"type": "object"}, "annotations": {"destructiveHint": false}});
    let of = |server: &str| crate::pipeline_fixture::item_of(server, true, add.clone());
    fixture.tools(vec![of("demo")]);
    let call = fixture.call("add", json!({}));
    let questions = fixture.asked(&call).await;
    fixture
        .approvals()
        .approve(
            &approval(&questions),
            ApprovalChannel::Console,
            ApprovalTerms::with_grant(GrantTerms::default()),
        )
        .await
        .unwrap();
    // Neither the approval nor the grant is good for it.
    fixture.tools(vec![of("other")]);
    fixture.asked(&again(&call, &questions)).await;
    fixture.tools(vec![of("demo")]);
    fixture.go(again(&call, &questions)).await.unwrap();
}

#[tokio::test]
async fn another_tool_of_the_same_look_is_another() {
    let fixture = PipelineFixture::new();
    let same = |name: &str| {
        let mut item = toolgate_core::Item::new(
            toolgate_core::Origin { server: "demo".into(), trusted: true },
            crate::pipeline_fixture::item(json!({"name": "t", "inputSchema": {"type": "object"}, "annotations": {"destructiveHint": false}})).def.clone(),
        );
        item.local_name = name.to_owned();
        std::sync::Arc::new(item)
    };
    fixture.tools(vec![same("one")]);
    let call = fixture.call("t", json!({}));
    let questions = fixture.asked(&call).await;
    fixture
        .approvals()
        .approve(
            &approval(&questions),
            ApprovalChannel::Console,
            ApprovalTerms::with_grant(GrantTerms::default()),
        )
        .await
        .unwrap();
    fixture.tools(vec![same("two")]);
    fixture.asked(&again(&call, &questions)).await;
}

#[tokio::test]
async fn a_no_that_comes_while_a_yes_is_written_wins() {
    let fixture = PipelineFixture::new();
    let call = fixture.call("wipe", json!({}));
    let questions = fixture.asked(&call).await;
    let id = approval(&questions);
    let no = fixture
        .approvals()
        .deny(&id, ApprovalChannel::Terminal, None);
    let (yes, no) = tokio::join!(yes(&fixture, &questions), no);
    // How far the yes came by then is up to the disk.
    let denied =
        |error: &ApprovalError| matches!(error, ApprovalError::Decided(ApprovalStatus::Denied(..)));
    assert!(yes.as_ref().err().is_none_or(denied), "{yes:?}");
    no.unwrap();
    assert_eq!(
        text(fixture.go(again(&call, &questions)).await),
        "refused: a person denied this call"
    );
}

#[tokio::test]
async fn so_many_grants() {
    let fixture = PipelineFixture::with(|m| m.desk.max_grants = 1);
    for (a, fits) in [(1, true), (2, false)] {
        let mut call = fixture.call("add", json!({"a": a}));
        call.caller = Caller::new(format!("key:{a}"));
        let questions = fixture.asked(&call).await;
        let kept = fixture
            .approvals()
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
    let fixture = PipelineFixture::with(|m| {
        m.desk.default_grant_lifetime = Duration::from_secs(60);
        m.desk.max_grant_lifetime = Duration::from_secs(120);
    });
    let hour = std::time::SystemTime::now() + Duration::from_secs(3600);
    for (number, (until, seconds)) in [(None, 60), (Some(hour), 120)].into_iter().enumerate() {
        let mut call = fixture.call("add", json!({"a": number}));
        call.caller = Caller::new(format!("key:{number}"));
        let questions = fixture.asked(&call).await;
        let mut terms = GrantTerms::default();
        terms.expires_at = until;
        let yes = ApprovalTerms::with_grant(terms);
        let desk = fixture.approvals();
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
    let fixture = PipelineFixture::new();
    let questions = fixture.asked(&fixture.call("wipe", json!({}))).await;
    let id = approval(&questions);
    tokio::time::advance(Duration::from_secs(601)).await;
    assert_eq!(
        fixture.approvals().find(&id).unwrap().status,
        ApprovalStatus::Expired
    );
    tokio::time::advance(Duration::from_secs(600)).await;
    assert!(fixture.approvals().find(&id).is_none());
}

#[tokio::test]
async fn a_reason_is_not_without_end() {
    let fixture = PipelineFixture::new();
    let call = fixture.call("wipe", json!({}));
    let questions = fixture.asked(&call).await;
    fixture
        .approvals()
        .deny(
            &approval(&questions),
            ApprovalChannel::Console,
            Some("x".repeat(5000)),
        )
        .await
        .unwrap();
    assert_eq!(
        text(fixture.go(again(&call, &questions)).await).len(),
        "refused: a person denied this call: ".len() + 1000
    );
}

#[tokio::test]
async fn a_used_approval_holds_for_nothing_but_its_own_call() {
    let fixture = PipelineFixture::new();
    let call = fixture.call("wipe", json!({}));
    let questions = fixture.asked(&call).await;
    yes(&fixture, &questions).await.unwrap();
    let second = again(&call, &questions);
    fixture.go(second.clone()).await.unwrap();
    // Later rounds with the slot of the used approval, but of another call, or with other arguments.
    let third = again(&second, &questions);
    let mut other = fixture.call("wipe", json!({}));
    other.round = third.round.clone();
    fixture.asked(&other).await;
    let mut changed = third.clone();
    changed.invocation.arguments = CallArguments::new(Json::from_value(&json!({"path": "/"})));
    fixture.asked(&changed).await;
    // Nor is it without the slot.
    let mut bare = third.clone();
    bare.round.slots.clear();
    fixture.asked(&bare).await;
    assert_eq!(fixture.reached(), 1);
    fixture.go(third).await.unwrap();
}

#[tokio::test]
async fn a_grant_with_a_condition_speaks_of_what_fits_it() {
    let fixture = PipelineFixture::new();
    let call = fixture.call("wipe", json!({"path": "/tmp/a"}));
    let questions = fixture.asked(&call).await;
    let (desk, id) = (fixture.approvals(), approval(&questions));
    let remember = |when: &str| {
        let mut grant_terms = GrantTerms::default();
        grant_terms.condition = Some(when.to_owned());
        ApprovalTerms::with_grant(grant_terms)
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
    fixture.go(again(&call, &questions)).await.unwrap();
    fixture
        .go(fixture.call("wipe", json!({"path": "/tmp/b"})))
        .await
        .unwrap();
    // What does not fit, and what cannot be judged, is asked about.
    for other in [json!({"path": "/etc/b"}), json!({"path": 5}), json!({})] {
        fixture.asked(&fixture.call("wipe", other)).await;
    }
    assert_eq!(fixture.reached(), 2);
    assert_eq!(desk.grants()[0].used, 1);
}

#[tokio::test]
async fn a_grant_of_one_approver_does_not_satisfy_a_rule_that_needs_two() {
    let mut fixture = PipelineFixture::new();
    let (first, second) = (json!({"a": 1}), json!({"a": 2}));
    let questions = fixture.asked(&fixture.call("add", first.clone())).await;
    let remember = ApprovalTerms::with_grant(GrantTerms::default());
    fixture
        .approvals()
        .approve(&approval(&questions), ApprovalChannel::Console, remember)
        .await
        .unwrap();
    // One approver suffices: the approval, and then the grant.
    fixture.go(fixture.call("add", first)).await.unwrap();
    fixture
        .go(fixture.call("add", second.clone()))
        .await
        .unwrap();
    assert_eq!(fixture.reached(), 2);
    // Then the operator requires two.
    let two = QuorumRule::new(vec![GlobPattern::new("demo.add")], 2);
    fixture.operator_mut().quorum = QuorumRules::new(vec![two]);
    fixture.asked(&fixture.call("add", second)).await;
    assert_eq!(fixture.reached(), 2, "the grant has one approver");
    assert_eq!(fixture.approvals().grants()[0].used, 1);
}

#[tokio::test]
async fn a_grant_ends_and_is_for_all_where_said() {
    let fixture = PipelineFixture::new();
    let call = fixture.call("add", json!({"a": 1}));
    let questions = fixture.asked(&call).await;
    let mut remember = GrantTerms::default();
    remember.expires_at = Some(std::time::SystemTime::now() + Duration::from_millis(300));
    remember.all_callers = true;
    let id = approval(&questions);
    let yes = ApprovalTerms::with_grant(remember);
    fixture
        .approvals()
        .approve(&id, ApprovalChannel::Console, yes)
        .await
        .unwrap();
    let mut other = fixture.call("add", json!({"a": 2}));
    other.caller = Caller::new("key:other");
    let grant = fixture.approvals().grants().remove(0);
    if grant.end_reason(std::time::SystemTime::now()).is_none() {
        let _ = fixture.go(other).await;
    }
    // The clock of the wall decides, as after a restart.
    while grant.end_reason(std::time::SystemTime::now()).is_none() {
        std::thread::yield_now();
    }
    assert_eq!(
        grant.end_reason(std::time::SystemTime::now()),
        Some("expired")
    );
    fixture.asked(&fixture.call("add", json!({"a": 3}))).await;
    let mut far = grant;
    far.expires_at = std::time::SystemTime::now() + Duration::from_secs(60);
    assert_eq!(far.end_reason(std::time::SystemTime::now()), None);
}

#[tokio::test]
async fn what_one_was_allowed_is_not_for_who_has_the_name_next() {
    let fixture = PipelineFixture::new();
    let of = |holder: Option<u64>, a: u8| {
        let mut call = fixture.call("add", json!({"a": a}));
        call.caller = Caller::new("corp:ann");
        if let Some(holder) = holder {
            call.caller = call.caller.clone().with_generation(holder);
        }
        call
    };
    // An approval that waits for the identical call.
    let questions = fixture.asked(&of(Some(1), 1)).await;
    yes(&fixture, &questions).await.unwrap();
    for next in [Some(2), None] {
        let other = fixture.asked(&of(next, 1)).await;
        assert_ne!(approval(&other), approval(&questions), "{next:?}");
    }
    let first = again(&of(Some(1), 1), &questions);
    assert_eq!(said(fixture.go(first).await), "done");
    // And one that is remembered.
    let questions = fixture.asked(&of(Some(1), 2)).await;
    let remember = ApprovalTerms::with_grant(GrantTerms::default());
    let desk = fixture.approvals().clone();
    let id = approval(&questions);
    desk.approve(&id, ApprovalChannel::Console, remember)
        .await
        .unwrap();
    assert_eq!(said(fixture.go(of(Some(1), 3)).await), "done");
    fixture.asked(&of(Some(2), 3)).await;
    fixture.asked(&of(None, 3)).await;
}
