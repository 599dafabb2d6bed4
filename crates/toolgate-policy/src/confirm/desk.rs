//! Where approvals lie: open ones, decided ones, and grants. In memory; the journal keeps what was decided.

use super::{
    Binding, By, GrantView, Standing, harmless, id,
    slip::{Expiry, Slip},
    waiting::Wait,
};
use crate::{Recorder, words};
use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, SystemTime},
};
use tokio::sync::watch;
use toolgate_core::{Call, Error, Item, Json, Kind, Refusal, Seen, Waiting};
use toolgate_journal::{Entry, Event};

/// How much fits on a desk.
#[derive(Clone, Copy, Debug)]
pub struct DeskLimits {
    /// How long an approval may be decided and used.
    pub life: Duration,
    /// Open approvals of one caller.
    pub per_caller: usize,
    /// Open approvals in all.
    pub open: usize,
    /// Grants.
    pub grants: usize,
}

impl Default for DeskLimits {
    /// 600 s, 16, 256, 1,000.
    fn default() -> DeskLimits {
        DeskLimits {
            life: Duration::from_secs(600),
            per_caller: 16,
            open: 256,
            grants: 1000,
        }
    }
}

/// An approval as the console and the command line show it.
#[derive(Clone, Debug)]
pub struct ApprovalView {
    /// Names it, `a-…`.
    pub id: Arc<str>,
    /// What it is good for.
    pub binding: Binding,
    /// What would be used.
    pub item: Arc<Item>,
    /// The exact arguments.
    pub arguments: Json,
    /// Why somebody has to look.
    pub reasons: Vec<String>,
    /// The calls that asked for it.
    pub calls: Vec<Arc<str>>,
    /// How the edge saw the first of them.
    pub seen: Arc<Seen>,
    /// When it was asked.
    pub asked: SystemTime,
    /// When it expires.
    pub expires: SystemTime,
    /// Where it stands.
    pub standing: Standing,
    /// Whether a caller waits for it right now.
    pub connected: bool,
    /// Whether a yes may be remembered.
    pub may_remember: bool,
}

/// Why a decision did not count.
#[derive(Debug)]
pub enum DeskError {
    /// There is no such approval or grant.
    Unknown,
    /// It was decided already, or its time is over.
    Decided(Standing),
    /// A yes to this tool cannot be remembered.
    NotRemembered,
    /// The decision could not be recorded.
    Unrecorded(Error),
}

impl fmt::Display for DeskError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DeskError::Unknown => f.write_str("there is none of that id; it may be over for long"),
            DeskError::Decided(Standing::Spent { .. }) => f.write_str("it was approved and used already"),
            DeskError::Decided(standing) => write!(f, "it is {} already", standing.as_str()),
            DeskError::NotRemembered => f.write_str(
                "a yes can be remembered only for tools that a trusted server calls harmless, and only so many; approve it once",
            ),
            DeskError::Unrecorded(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for DeskError {}

/// What the desk has for a call.
#[derive(Debug)]
pub(super) enum Claim {
    /// An approval, used up by this.
    Spent { id: Arc<str>, why: String },
    /// A grant.
    Granted { why: String },
    /// Nothing yet.
    Open,
}

/// An approval that waits.
pub(super) struct Opened {
    pub(super) id: Arc<str>,
    pub(super) expires: SystemTime,
    pub(super) waiting: Arc<dyn Waiting>,
}

/// Where approvals lie.
pub struct Desk {
    recorder: Arc<Recorder>,
    limits: DeskLimits,
    state: Mutex<State>,
    changed: watch::Sender<u64>,
}

#[derive(Default)]
struct State {
    slips: Vec<Slip>,
    grants: Vec<GrantView>,
}

impl State {
    fn slip(&mut self, id: &str) -> Option<&mut Slip> {
        self.slips.iter_mut().find(|slip| &*slip.id == id)
    }

    fn bound(&mut self, binding: &Binding, fits: impl Fn(&Slip) -> bool) -> Option<&mut Slip> {
        self.slips
            .iter_mut()
            .find(|slip| slip.binding == *binding && fits(slip))
    }

    /// Whether a person said no to this call. An identical call of another id hears it if nobody has yet.
    fn denied(&mut self, call: &Call, binding: &Binding) -> Option<Error> {
        let hears = |slip: &Slip| {
            matches!(slip.standing, Standing::Denied(..))
                && (slip.told.is_empty() || slip.calls.contains(&call.id))
        };
        let slip = self.bound(binding, hears)?;
        slip.told.insert(call.id.clone());
        slip.calls.insert(call.id.clone());
        let Standing::Denied(_, reason) = &slip.standing else {
            return None;
        };
        let text = match reason {
            Some(reason) => format!("denied by a person: {reason}"),
            None => "denied by a person".to_owned(),
        };
        Some(Error::new(Kind::Refused(Refusal::Person), text))
    }

    /// Uses up an approval, or goes on with the one that this call used in an earlier round.
    fn spend(
        &mut self,
        call: &Call,
        binding: &Binding,
        slot: Option<&str>,
    ) -> Option<(Entry, Arc<str>, String)> {
        let (id, round) = (call.id.clone(), call.round.number);
        let own = |slip: &Slip| {
            let Standing::Spent {
                call: by_call,
                round: last,
                ..
            } = &slip.standing
            else {
                return false;
            };
            // Each round counts once, or a repeated round would be a second use.
            Some(&*slip.id) == slot && *by_call == id && round > *last
        };
        let slip = match self
            .slips
            .iter()
            .position(|s| s.binding == *binding && own(s))
        {
            Some(at) => &mut self.slips[at],
            None => self.bound(binding, |slip| {
                matches!(slip.standing, Standing::Approved(_))
            })?,
        };
        let (Standing::Approved(by) | Standing::Spent { by, .. }) = slip.standing else {
            return None;
        };
        slip.set(Standing::Spent {
            call: id.clone(),
            round,
            by,
        });
        let why = format!("{} by a person ({})", slip.id, by.as_str());
        Some((
            slip_record(slip).with("call", &*id).with("round", round),
            slip.id.clone(),
            why,
        ))
    }

    fn granted(&mut self, binding: &Binding) -> Option<String> {
        let grant = self.grants.iter_mut().find(|grant| grant.covers(binding))?;
        grant.use_once();
        Some(format!("{} remembered", grant.id))
    }
}

impl Desk {
    /// Slips that are remembered at most; the oldest that are over go first.
    const MOST: usize = 4096;

    /// An empty desk.
    pub fn new(recorder: Arc<Recorder>, limits: DeskLimits) -> Arc<Desk> {
        Arc::new(Desk {
            recorder,
            limits,
            state: Mutex::default(),
            changed: watch::Sender::new(0),
        })
    }

    /// Counts the changes on the desk.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    /// The approvals that can still be decided or used, oldest first.
    pub fn list(&self) -> Vec<ApprovalView> {
        self.sweep();
        self.state()
            .slips
            .iter()
            .filter(|slip| slip.alive())
            .map(view)
            .collect()
    }

    /// One approval, whatever became of it, as long as it is remembered.
    pub fn find(&self, id: &str) -> Option<ApprovalView> {
        self.sweep();
        self.state().slip(id).map(|slip| view(slip))
    }

    /// Says yes: good for one use of exactly this call. With `remember`, also for later calls of this tool by this
    /// caller until the gateway stops.
    ///
    /// # Errors
    /// It is decided already, unknown, or the yes could not be recorded; then nothing changed.
    pub async fn approve(&self, id: &str, by: By, remember: bool) -> Result<(), DeskError> {
        self.sweep();
        let (record, grant) = self.yes(id, by, remember)?;
        self.written(record).await?;
        let mut state = self.state();
        let slip = state.slip(id).ok_or(DeskError::Unknown)?;
        if slip.standing != Standing::Open || slip.expiry.past() {
            // A no that came meanwhile wins.
            return Err(DeskError::Decided(slip.standing.clone()));
        }
        slip.set(Standing::Approved(by));
        state.grants.extend(grant);
        drop(state);
        self.touch();
        Ok(())
    }

    fn yes(
        &self,
        id: &str,
        by: By,
        remember: bool,
    ) -> Result<(Entry, Option<GrantView>), DeskError> {
        let mut state = self.state();
        let room = state.grants.len() < self.limits.grants;
        let slip = state.slip(id).ok_or(DeskError::Unknown)?;
        if slip.standing != Standing::Open {
            return Err(DeskError::Decided(slip.standing.clone()));
        }
        let record = slip_record(slip)
            .with("state", "approved")
            .with("by", by.as_str());
        if !remember {
            return Ok((record, None));
        }
        if !room || !harmless(&slip.item) {
            return Err(DeskError::NotRemembered);
        }
        let grant = GrantView::new(
            id::fresh('g').map_err(DeskError::Unrecorded)?,
            &slip.binding,
        );
        Ok((record.with("grant", &*grant.id), Some(grant)))
    }

    /// Says no, with a reason that the model reads. Wins over a yes that was not used yet.
    ///
    /// # Errors
    /// It is used up, denied or expired already, unknown, or the no could not be recorded.
    pub async fn deny(&self, id: &str, by: By, reason: Option<String>) -> Result<(), DeskError> {
        self.sweep();
        let reason = reason
            .map(|r| crate::text::clean(r.trim()).into_owned())
            .filter(|r| !r.is_empty());
        let record = {
            let mut state = self.state();
            let slip = state.slip(id).ok_or(DeskError::Unknown)?;
            if !slip.alive() {
                return Err(DeskError::Decided(slip.standing.clone()));
            }
            let record = slip_record(slip)
                .with("state", "denied")
                .with("by", by.as_str());
            record.with("reason", reason.as_deref().unwrap_or_default())
        };
        // At once: a yes must not slip through while the no is on its way to the disk.
        self.hold(id, by, reason);
        let written = self.written(record).await;
        self.touch();
        written
    }

    /// Puts the no in its place. It stands even if it cannot be recorded: that is the safe side.
    fn hold(&self, id: &str, by: By, reason: Option<String>) {
        if let Some(slip) = self.state().slip(id).filter(|slip| slip.alive()) {
            slip.set(Standing::Denied(by, reason));
        }
    }

    /// The remembered yeses.
    pub fn grants(&self) -> Vec<GrantView> {
        self.state().grants.clone()
    }

    /// Forgets a remembered yes.
    ///
    /// # Errors
    /// There is no such grant, or its end could not be recorded; it is gone all the same.
    pub async fn revoke(&self, id: &str) -> Result<(), DeskError> {
        let grant = {
            let mut state = self.state();
            let at = state
                .grants
                .iter()
                .position(|grant| &*grant.id == id)
                .ok_or(DeskError::Unknown)?;
            state.grants.remove(at)
        };
        self.touch();
        let record = Entry::new(Event::APPROVAL)
            .with("state", "revoked")
            .with("grant", id);
        self.written(
            record
                .with("caller", grant.caller.name())
                .with("srv", &*grant.server)
                .with("tool", grant.tool),
        )
        .await
    }

    /// Ends all approvals that were asked under another policy: their calls are judged anew.
    pub fn policy_changed(&self, policy: &str) {
        self.expire(|slip| *slip.binding.policy != *policy);
    }

    /// Whether this approval waits for a decision on exactly this.
    pub(super) fn is_open(&self, id: &str, binding: &Binding) -> bool {
        let mut state = self.state();
        state
            .slip(id)
            .is_some_and(|slip| slip.alive() && slip.binding == *binding)
    }

    /// What there is for a call: a no, a yes that this uses up, a remembered yes, or nothing yet.
    pub(super) async fn claim(
        &self,
        call: &Call,
        binding: &Binding,
        slot: Option<&str>,
    ) -> Result<Claim, Error> {
        self.sweep();
        let spent = {
            let mut state = self.state();
            if let Some(error) = state.denied(call, binding) {
                return Err(error);
            }
            match state.spend(call, binding, slot) {
                Some(spent) => spent,
                None => match state.granted(binding) {
                    Some(why) => return Ok(Claim::Granted { why }),
                    None => return self.expired(&mut state, binding, slot),
                },
            }
        };
        // Used up in memory before it is on the disk: two calls at once cannot both have it. If the record fails, or
        // the caller leaves right now, the approval is lost, and nothing happens with it.
        let (record, id, why) = spent;
        self.touch();
        self.recorder.append(record)?.await?;
        Ok(Claim::Spent { id, why })
    }

    fn expired(
        &self,
        state: &mut State,
        binding: &Binding,
        slot: Option<&str>,
    ) -> Result<Claim, Error> {
        let over = |slip: &Slip| Some(&*slip.id) == slot && slip.standing == Standing::Expired;
        if state.bound(binding, over).is_none() {
            return Ok(Claim::Open);
        }
        let text = format!(
            "denied: nobody approved this call within {}",
            words::span(self.limits.life)
        );
        Err(Error::new(Kind::Refused(Refusal::Expired), text))
    }

    /// A new approval, or the one that waits for exactly this already.
    pub(super) async fn open(
        self: &Arc<Desk>,
        call: &Call,
        item: &Arc<Item>,
        binding: Binding,
        reasons: &[String],
    ) -> Result<Opened, Error> {
        let (opened, record) = self.place(call, item, binding, reasons)?;
        let Some(record) = record else {
            return Ok(opened);
        };
        self.touch();
        let written = match self.recorder.append(record) {
            Ok(written) => written.await,
            Err(error) => Err(error),
        };
        if let Err(error) = written {
            self.state().slips.retain(|slip| slip.id != opened.id);
            self.touch();
            return Err(error);
        }
        Ok(opened)
    }

    fn place(
        self: &Arc<Desk>,
        call: &Call,
        item: &Arc<Item>,
        binding: Binding,
        reasons: &[String],
    ) -> Result<(Opened, Option<Entry>), Error> {
        let mut state = self.state();
        if let Some(slip) = state.bound(&binding, Slip::alive) {
            slip.calls.insert(call.id.clone());
            return Ok((self.opened(slip), None));
        }
        self.room(&state, &binding)?;
        let id = loop {
            let id = id::fresh('a')?;
            if state.slip(&id).is_none() {
                break id;
            }
        };
        let slip = Slip {
            id,
            binding,
            item: item.clone(),
            arguments: call.arguments().raw().clone(),
            reasons: reasons.to_vec(),
            seen: call.seen.clone(),
            asked: SystemTime::now(),
            expiry: Expiry::after(self.limits.life),
            standing: Standing::Open,
            calls: [call.id.clone()].into(),
            told: Default::default(),
            waiters: 0,
            decided: watch::Sender::new(false),
        };
        let arguments = self
            .recorder
            .journal()
            .mac(slip.arguments.as_str().as_bytes());
        let record = slip_record(&slip)
            .with("call", &*call.id)
            .with("reasons", reasons)
            .with("args_len", slip.arguments.as_str().len())
            .with("args_mac", arguments);
        let opened = self.opened(&slip);
        state.slips.push(slip);
        Ok((opened, Some(record)))
    }

    fn room(&self, state: &State, binding: &Binding) -> Result<(), Error> {
        let open = || {
            state
                .slips
                .iter()
                .filter(|slip| slip.standing == Standing::Open)
        };
        let own = open()
            .filter(|slip| slip.binding.caller == binding.caller)
            .count();
        let text = if own >= self.limits.per_caller {
            format!(
                "{own} calls of this caller wait for a person already; wait until some are decided"
            )
        } else if open().count() >= self.limits.open {
            "too many calls wait for a person already; try again later".to_owned()
        } else {
            return Ok(());
        };
        Err(Error::new(Kind::Busy(None), text))
    }

    fn opened(self: &Arc<Desk>, slip: &Slip) -> Opened {
        let wait = Wait {
            desk: self.clone(),
            id: slip.id.clone(),
            decided: slip.decided.subscribe(),
            expiry: slip.expiry,
        };
        Opened {
            id: slip.id.clone(),
            expires: slip.expiry.wall,
            waiting: Arc::new(wait),
        }
    }

    /// Counts who waits for an approval.
    pub(super) fn count(&self, id: &str, more: bool) {
        if let Some(slip) = self.state().slip(id) {
            slip.waiters = if more {
                slip.waiters + 1
            } else {
                slip.waiters.saturating_sub(1)
            };
        }
        self.touch();
    }

    /// Ends what is over, and forgets what has been over for a life.
    fn sweep(&self) {
        self.expire(|slip| slip.expiry.past());
        let mut state = self.state();
        state
            .slips
            .retain(|slip| slip.alive() || !slip.expiry.past_by(self.limits.life));
        while state.slips.len() > Desk::MOST {
            let Some(at) = state.slips.iter().position(|slip| !slip.alive()) else {
                break;
            };
            state.slips.remove(at);
        }
    }

    fn expire(&self, over: impl Fn(&Slip) -> bool) {
        let mut expired = Vec::new();
        for slip in self
            .state()
            .slips
            .iter_mut()
            .filter(|slip| slip.alive() && over(slip))
        {
            slip.set(Standing::Expired);
            expired.push(slip_record(slip));
        }
        if !expired.is_empty() {
            expired
                .into_iter()
                .for_each(|record| self.recorder.note(record));
            self.touch();
        }
    }

    async fn written(&self, record: Entry) -> Result<(), DeskError> {
        let written = self
            .recorder
            .append(record)
            .map_err(DeskError::Unrecorded)?;
        written.await.map_err(DeskError::Unrecorded)
    }

    fn touch(&self) {
        self.changed.send_modify(|n| *n += 1);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn view(slip: &Slip) -> ApprovalView {
    ApprovalView {
        id: slip.id.clone(),
        binding: slip.binding.clone(),
        item: slip.item.clone(),
        arguments: slip.arguments.clone(),
        reasons: slip.reasons.clone(),
        calls: slip.calls.iter().cloned().collect(),
        seen: slip.seen.clone(),
        asked: slip.asked,
        expires: slip.expiry.wall,
        standing: slip.standing.clone(),
        connected: slip.waiters > 0,
        may_remember: harmless(&slip.item),
    }
}

fn slip_record(slip: &Slip) -> Entry {
    Entry::new(Event::APPROVAL)
        .with("approval", &*slip.id)
        .with("state", slip.standing.as_str())
        .with("caller", slip.binding.caller.name())
        .with("srv", &*slip.binding.server)
        .with("tool", slip.item.full_name())
        .with("tool_hash", slip.binding.definition.as_str())
        .with("policy_hash", &*slip.binding.policy)
}
