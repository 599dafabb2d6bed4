//! Approvals that passkeys sign: what counts, and what an attacker may try who can use every interface of the gateway.

use crate::authenticator::{Signing, SoftPasskey, unhex};
use crate::passkey_attacks::forged_assertions;
use crate::pipeline_fixture::{PipelineFixture, again, approval, said, text};
use serde_json::{Value, json};
use toolgate_core::{Call, InputRequests, Json, Outcome};
use toolgate_policy::{
    APPROVAL_KEY, ApprovalChannel, ApprovalError, ApprovalRequirement, ApprovalStatus,
    ApprovalTerms, Approver, ClientApprovals, GlobPattern, GrantTerms, QuorumRule, QuorumRules,
    WritePrecondition,
    passkeys::{
        EnrollOutcome, PasskeyAssertion, PasskeyChange, PasskeyPublicKey, PasskeyRequest,
        PasskeySettings, RelyingParty, challenge_of,
    },
};

pub(crate) const ORIGIN: &str = "http://localhost:8665";

/// Two people with passkeys, and one without.
pub(crate) struct Scene {
    fixture: PipelineFixture,
    pub(crate) ann: SoftPasskey,
    pub(crate) ben: SoftPasskey,
    pub(crate) removed: SoftPasskey,
    pub(crate) requested: SoftPasskey,
    pub(crate) mallory: SoftPasskey,
}

fn person(name: &str) -> Approver {
    Approver::named(ApprovalChannel::Console, name)
}

fn assertion(value: &Value) -> PasskeyAssertion {
    PasskeyAssertion::read(value).unwrap()
}

pub(crate) fn signing(text: &str) -> Signing {
    Signing::new("localhost", ORIGIN, &challenge_of(text))
}

fn settings(anchor: Option<&str>) -> PasskeySettings {
    let mut settings = PasskeySettings::default();
    settings.anchor = anchor.map(str::to_owned);
    settings.parties = vec![RelyingParty::new("localhost", ORIGIN)];
    settings
}

fn request(key: &SoftPasskey, name: &str, is_admin: bool) -> PasskeyRequest {
    let public = PasskeyPublicKey::from_spki(&key.spki()).unwrap();
    let new = (&*key.credential, &public);
    PasskeyRequest::new(new, name, "key", "localhost", is_admin).unwrap()
}

impl Scene {
    async fn new(needs: ApprovalRequirement) -> Scene {
        let mut fixture = PipelineFixture::new();
        let rule = QuorumRule::new(vec![GlobPattern::new("demo.wipe")], needs);
        fixture.operator_mut().quorum = QuorumRules::new(vec![rule]);
        let [ann, ben, removed, requested, mallory] =
            ["ann", "ben", "old", "new", "mallory"].map(SoftPasskey::new);
        let scene = Scene {
            fixture,
            ann,
            ben,
            removed,
            requested,
            mallory,
        };
        let registry = scene.fixture.approvals().passkeys();
        registry.configure(settings(None));
        let first = scene.request(&scene.ann, "ann", true).await;
        let EnrollOutcome::First(anchor) = first else {
            panic!("{first:?}");
        };
        registry.configure(settings(Some(&anchor)));
        scene.enroll(&scene.ben, "ben").await;
        scene.enroll(&scene.removed, "ann").await;
        scene
            .change(&PasskeyChange::Remove(scene.removed.credential.clone()))
            .await;
        scene.request(&scene.requested, "ann", false).await;
        scene
    }

    async fn signed() -> Scene {
        Scene::new(passkey_requirement(1)).await
    }

    async fn request(&self, key: &SoftPasskey, name: &str, is_admin: bool) -> EnrollOutcome {
        let request = request(key, name, is_admin);
        let proof = assertion(&key.sign(&signing(request.text())));
        let registry = self.fixture.approvals().passkeys();
        let who = person(name);
        let made = registry.request(request.text(), proof, &who);
        made.await.unwrap()
    }

    async fn enroll(&self, key: &SoftPasskey, name: &str) {
        self.request(key, name, false).await;
        let request = request(key, name, false);
        self.change(&PasskeyChange::Enroll(Box::new(request))).await;
    }

    /// Changes the list with the signature of ann.
    async fn change(&self, change: &PasskeyChange) {
        let registry = self.fixture.approvals().passkeys();
        let text = registry.change_text(change).unwrap();
        let by = assertion(&self.ann.sign(&signing(&text)));
        registry.change(&text, &by, &person("ann")).await.unwrap();
    }

    fn text(&self, id: &str, edited: Option<&Json>) -> String {
        let service = self.fixture.approvals();
        let signed = service.text_to_sign(id, &person("ann"), edited).unwrap();
        signed.as_str().to_owned()
    }

    async fn approve(
        &self,
        id: &str,
        who: Approver,
        passkey: Option<&Value>,
    ) -> Result<ApprovalStatus, ApprovalError> {
        let mut terms = ApprovalTerms::default();
        terms.passkey = passkey.and_then(PasskeyAssertion::read);
        self.fixture.approvals().approve(id, who, terms).await
    }

    async fn asked(&self) -> (Call, InputRequests, String) {
        let call = self.fixture.call("wipe", json!({"path": "/x"}));
        let questions = self.fixture.asked(&call).await;
        let id = approval(&questions);
        (call, questions, id)
    }

    /// Replaces a member of the row of an approval, as a program that can write to the store.
    async fn write_row(&self, id: &str, change: impl FnOnce(&mut Value)) {
        let mut row = self.fixture.store.row("approvals", id).unwrap().value;
        change(&mut row);
        let store = &self.fixture.store;
        let written = store.write("approvals", id, Some(row), WritePrecondition::Any);
        written.await.unwrap();
    }
}

fn passkey_requirement(count: u32) -> ApprovalRequirement {
    let mut needs = ApprovalRequirement::of_count(count);
    needs.passkey = true;
    needs
}

#[tokio::test]
async fn a_signed_approval_runs_its_call_once_and_is_recorded() {
    let scene = Scene::signed().await;
    let (call, questions, id) = scene.asked().await;
    let text = scene.text(&id, None);
    let good = scene.ann.sign(&signing(&text));
    let status = scene.approve(&id, person("ann"), Some(&good)).await;
    assert!(matches!(status, Ok(ApprovalStatus::Approved(_))));
    let outcome = scene.fixture.go(again(&call, &questions)).await;
    assert_eq!(said(outcome), "done");
    let records = scene.fixture.events("approval");
    let states = records.iter().map(|record| &record["state"]);
    assert_eq!(states.collect::<Vec<_>>(), ["asked", "approved", "spent"]);
    assert!(
        records
            .iter()
            .all(|record| record["passkey_required"] == true)
    );
    let (record, signed) = (&records[1], &records[1]["passkey"]);
    assert_eq!(record["who"], "ann");
    assert_eq!(signed["signature"], good["signature"]);
    assert_eq!(
        unhex(signed["signed"].as_str().unwrap()),
        text.as_bytes(),
        "redaction leaves it as it is"
    );
    let begin = &scene.fixture.events("call.begin")[0];
    let text: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(text["args_mac"], begin["args_mac"]);
    for name in [
        "approval",
        "caller",
        "srv",
        "tool",
        "tool_hash",
        "policy_hash",
    ] {
        assert_eq!(text[name], record[name], "{name}");
    }
    // It is good for one use, and the signature for one approval.
    let (_, _, other) = scene.asked().await;
    assert_ne!(other, id);
    assert!(
        scene
            .approve(&other, person("ann"), Some(&good))
            .await
            .is_err()
    );
}

#[tokio::test]
async fn other_spelling_of_the_arguments_needs_a_signature_of_its_own() {
    let scene = Scene::signed().await;
    let (call, questions, id) = scene.asked().await;
    let good = scene.ann.sign(&signing(&scene.text(&id, None)));
    scene
        .approve(&id, person("ann"), Some(&good))
        .await
        .unwrap();
    let spelled = Json::read(b"{ \"path\":\"/x\" }".to_vec(), &Default::default()).unwrap();
    let mut other = Call::tool(call.id.clone(), call.caller.clone(), "wipe", spelled);
    other.round = again(&call, &questions).round.clone();
    let asked = scene.fixture.asked(&other).await;
    assert_ne!(approval(&asked), id);
    assert_eq!(
        said(scene.fixture.go(again(&call, &questions)).await),
        "done"
    );
}

#[tokio::test]
async fn an_edited_call_is_signed_as_edited() {
    let scene = Scene::signed().await;
    let (call, questions, id) = scene.asked().await;
    let edited = Json::from_value(&json!({"path": "/y"}));
    let terms = |json: &Json, signature: &Value| {
        let mut terms = ApprovalTerms::with_arguments(json.clone());
        terms.passkey = PasskeyAssertion::read(signature);
        terms
    };
    let service = scene.fixture.approvals();
    let plain = scene.ann.sign(&signing(&scene.text(&id, None)));
    let good = scene.ann.sign(&signing(&scene.text(&id, Some(&edited))));
    let other = Json::from_value(&json!({"path": "/"}));
    for (json, signature) in [(&edited, &plain), (&other, &good)] {
        let terms = terms(json, signature);
        assert!(service.approve(&id, person("ann"), terms).await.is_err());
    }
    assert!(
        scene
            .approve(&id, person("ann"), Some(&good))
            .await
            .is_err()
    );
    let approved = service.approve(&id, person("ann"), terms(&edited, &good));
    approved.await.unwrap();
    assert_eq!(
        said(scene.fixture.go(again(&call, &questions)).await),
        "done"
    );
    assert_eq!(
        scene.fixture.script.reached.lock().unwrap().as_slice(),
        ["{\"path\":\"/y\"}"]
    );
}

#[tokio::test]
async fn no_forged_assertion_is_accepted() {
    let scene = Scene::signed().await;
    // An approval of the same call before: its signature can be read from the audit log and the store.
    let (call, questions, before) = scene.asked().await;
    let replay = scene.ann.sign(&signing(&scene.text(&before, None)));
    scene
        .approve(&before, person("ann"), Some(&replay))
        .await
        .unwrap();
    assert_eq!(
        said(scene.fixture.go(again(&call, &questions)).await),
        "done"
    );

    let (call, questions, id) = scene.asked().await;
    let text = scene.text(&id, None);
    let attacks = forged_assertions(&scene, &id, &text, &replay);
    assert!(attacks.len() >= 50, "{}", attacks.len());
    let mut accepted = Vec::new();
    for (name, who, value) in &attacks {
        let done = scene.approve(&id, person(who), Some(value)).await;
        let status = scene.fixture.approvals().find(&id).unwrap().status;
        if done.is_ok() || status != ApprovalStatus::Pending {
            accepted.push(name);
        }
        scene.fixture.asked(&again(&call, &questions)).await;
    }
    println!(
        "{} forged assertions: {} accepted",
        attacks.len(),
        accepted.len()
    );
    assert!(accepted.is_empty(), "{accepted:?}");
    assert_eq!(scene.fixture.reached(), 1);
    // The same approval with a good signature.
    let good = scene.ann.sign(&signing(&text));
    scene
        .approve(&id, person("ann"), Some(&good))
        .await
        .unwrap();
    assert_eq!(
        said(scene.fixture.go(again(&call, &questions)).await),
        "done"
    );
}

#[tokio::test]
async fn only_the_console_can_send_a_signature() {
    let scene = Scene::signed().await;
    let (_, _, id) = scene.asked().await;
    let good = scene.ann.sign(&signing(&scene.text(&id, None)));
    let channels = [
        ApprovalChannel::Terminal,
        ApprovalChannel::Client,
        ApprovalChannel::Chat,
    ];
    for channel in channels {
        let who = Approver::named(channel, "ann");
        for passkey in [None, Some(&good)] {
            let done = scene.approve(&id, who.clone(), passkey).await;
            assert!(
                matches!(&done, Err(ApprovalError::PasskeyRequired(at)) if at == ORIGIN),
                "{channel:?}: {done:?}"
            );
        }
        let service = scene.fixture.approvals();
        assert!(service.text_to_sign(&id, &who, None).is_err());
    }
    // A denial needs no signature.
    let who = Approver::named(ApprovalChannel::Terminal, "ann");
    scene
        .fixture
        .approvals()
        .deny(&id, who, None)
        .await
        .unwrap();
}

#[tokio::test]
async fn neither_a_grant_nor_the_callers_client_replaces_a_signature() {
    let mut scene = Scene::signed().await;
    scene.fixture.operator_mut().via_client = ClientApprovals::Always;
    // A grant from before the rule.
    let rules = std::mem::take(&mut scene.fixture.operator_mut().quorum);
    let (call, questions, id) = scene.asked().await;
    let mut grant = GrantTerms::default();
    grant.condition = Some("args.path == \"/x\"".to_owned());
    let service = scene.fixture.approvals().clone();
    let granted = service.approve(&id, person("ann"), ApprovalTerms::with_grant(grant.clone()));
    granted.await.unwrap();
    assert_eq!(
        said(scene.fixture.go(again(&call, &questions)).await),
        "done"
    );
    let next = scene.fixture.call("wipe", json!({"path": "/x"}));
    assert_eq!(
        said(scene.fixture.go(next).await),
        "done",
        "the grant holds"
    );
    scene.fixture.operator_mut().quorum = rules;
    let (call, questions, id) = scene.asked().await;
    let mut answered = again(&call, &questions);
    answered.round.answers.push((
        APPROVAL_KEY.to_owned(),
        Json::from_value(&json!({"action": "accept", "content": {"approve": true}})),
    ));
    scene.fixture.asked(&answered).await;
    assert_eq!(scene.fixture.reached(), 2);
    // A signed approval gives no grant.
    let mut terms = ApprovalTerms::with_grant(grant);
    let good = scene.ann.sign(&signing(&scene.text(&id, None)));
    terms.passkey = PasskeyAssertion::read(&good);
    let done = service.approve(&id, person("ann"), terms).await;
    assert!(
        matches!(done, Err(ApprovalError::GrantNotAllowed(_))),
        "{done:?}"
    );
}

#[tokio::test]
async fn a_quorum_needs_the_passkeys_of_different_people() {
    let scene = Scene::new(passkey_requirement(2)).await;
    let second = SoftPasskey::new("ann-2");
    scene.enroll(&second, "ann").await;
    let (call, questions, id) = scene.asked().await;
    let good = signing(&scene.text(&id, None));
    let by_ann = scene.ann.sign(&good);
    let first = scene.approve(&id, person("ann"), Some(&by_ann)).await;
    assert_eq!(first.unwrap(), ApprovalStatus::Pending);
    for (who, key) in [
        ("ann", &scene.ann),
        ("ann", &second),
        ("ben", &scene.ann),
        ("ben", &second),
        ("mallory", &scene.mallory),
    ] {
        let signed = key.sign(&good);
        let done = scene.approve(&id, person(who), Some(&signed)).await;
        assert!(done.is_err(), "{who}");
    }
    let by_ben = scene.ben.sign(&good);
    let done = scene.approve(&id, person("ben"), Some(&by_ben)).await;
    assert!(matches!(done, Ok(ApprovalStatus::Approved(_))));
    assert_eq!(
        said(scene.fixture.go(again(&call, &questions)).await),
        "done"
    );
}

#[tokio::test]
async fn a_writer_of_the_store_approves_nothing() {
    let approved = |who: &Value| json!({"is": "approved", "who": who});
    let ann = json!({"by": "console", "name": "ann", "owner": false});
    let ben = json!({"by": "console", "name": "ben", "owner": false});
    let scene = Scene::signed().await;
    // A signature of another call, which the store and the audit log show.
    let (call, questions, before) = scene.asked().await;
    let replay = scene.ann.sign(&signing(&scene.text(&before, None)));
    scene
        .approve(&before, person("ann"), Some(&replay))
        .await
        .unwrap();
    assert_eq!(
        said(scene.fixture.go(again(&call, &questions)).await),
        "done"
    );
    let attacks: [(&str, Vec<Value>, Vec<Value>, Value); 7] = [
        (
            "no signature",
            vec![ann.clone()],
            vec![],
            json!({"count": 1, "groups": [], "passkey": true}),
        ),
        (
            "no approver",
            vec![],
            vec![],
            json!({"count": 1, "groups": [], "passkey": true}),
        ),
        (
            "a replay",
            vec![ann.clone()],
            vec![replay.clone()],
            json!({"count": 1, "groups": [], "passkey": true}),
        ),
        (
            "an unknown key",
            vec![ann.clone()],
            vec![json!("mallory")],
            json!({"count": 1, "groups": [], "passkey": true}),
        ),
        ("a weaker requirement", vec![ann.clone()], vec![], json!(1)),
        (
            "the key of another person",
            vec![ben.clone()],
            vec![json!("ann")],
            json!({"count": 1, "groups": [], "passkey": true}),
        ),
        (
            "too many approvers",
            vec![ann.clone(), ben.clone()],
            vec![json!("ann")],
            json!({"count": 1, "groups": [], "passkey": true}),
        ),
    ];
    let count = attacks.len();
    for (name, approvers, signatures, needs) in attacks {
        let (call, questions, id) = scene.asked().await;
        let good = signing(&scene.text(&id, None));
        let signatures: Vec<Value> = signatures
            .into_iter()
            .map(|one| match one.as_str() {
                Some("mallory") => scene.mallory.sign(&good),
                Some(_) => scene.ann.sign(&good),
                None => one,
            })
            .collect();
        scene
            .write_row(&id, |row| {
                row["standing"] = approved(&ann);
                row["needs"] = needs;
                row["yeses"] = approvers.into();
                row["signatures"] = signatures.into();
            })
            .await;
        let outcome = scene.fixture.go(again(&call, &questions)).await;
        assert!(!matches!(outcome, Ok(Outcome::Done(_))), "{name}");
        assert_eq!(scene.fixture.reached(), 1, "{name}");
    }
    println!("{count} forged rows: 0 accepted");
    // The row of a used approval, put back as it was before its use.
    let (call, questions, id) = scene.asked().await;
    let good = scene.ann.sign(&signing(&scene.text(&id, None)));
    scene
        .approve(&id, person("ann"), Some(&good))
        .await
        .unwrap();
    let unused = scene.fixture.store.row("approvals", &id).unwrap().value;
    assert_eq!(
        said(scene.fixture.go(again(&call, &questions)).await),
        "done"
    );
    scene.write_row(&id, |row| *row = unused).await;
    let again_used = scene
        .fixture
        .go(scene.fixture.call("wipe", json!({"path": "/x"})))
        .await;
    assert!(!matches!(again_used, Ok(Outcome::Done(_))));
    assert_eq!(scene.fixture.reached(), 2);
}

#[tokio::test]
async fn a_passkey_that_is_removed_before_the_call_runs_does_not_count() {
    let scene = Scene::signed().await;
    let (call, questions, id) = scene.asked().await;
    let good = scene.ben.sign(&signing(&scene.text(&id, None)));
    scene
        .approve(&id, person("ben"), Some(&good))
        .await
        .unwrap();
    scene
        .change(&PasskeyChange::Remove(scene.ben.credential.clone()))
        .await;
    let refused = text(scene.fixture.go(again(&call, &questions)).await);
    assert!(refused.contains("not valid; call again"), "{refused}");
    let (_, _, other) = scene.asked().await;
    assert_ne!(other, id);
    assert_eq!(scene.fixture.reached(), 0);
}
