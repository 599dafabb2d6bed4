//! The server of the suite, as this program uses it.

use std::sync::Arc;

use serde_json::Value;
use toolgate::client::{HttpOptions, Remote, RemoteOptions};
use toolgate::{
    Abilities, Call, Caller, Item, ItemKind, Json, List, Op, Origin, Outcome, Output, Questions,
    Round, Service,
};

use crate::{Failed, answers};

/// An open server.
pub(crate) struct Peer(Remote);

/// A call whose question has to be answered before it goes on.
pub(crate) struct Asked {
    call: Call,
    questions: Questions,
}

impl Peer {
    /// Opens the server at a URL.
    ///
    /// # Errors
    /// It cannot be opened.
    pub(crate) async fn connect(url: &str) -> Result<Peer, Failed> {
        let origin = Origin {
            server: "suite".into(),
            trusted: false,
        };
        let options = RemoteOptions::new(origin);
        let remote = Remote::connect(url, options, HttpOptions::default()).await?;
        Ok(Peer(remote))
    }

    /// All that it offers of one kind.
    ///
    /// # Errors
    /// It does not list.
    pub(crate) async fn list(&self, kind: ItemKind) -> Result<Vec<Arc<Item>>, Failed> {
        let ask = List::all(caller(), kind);
        Ok(self.0.list(ask).await?.items().to_vec())
    }

    /// Uses one of its things, and answers what it asks on the way.
    ///
    /// # Errors
    /// The use fails.
    pub(crate) async fn used(
        &self,
        op: Op,
        name: &str,
        arguments: &Value,
    ) -> Result<Output, Failed> {
        let mut outcome = self.begin(op, name, arguments).await?;
        loop {
            match outcome {
                Ok(output) => return Ok(output),
                Err(asked) => outcome = self.answer(asked).await?,
            }
        }
    }

    /// The first round of a use: a result, or a question.
    ///
    /// # Errors
    /// The use fails.
    pub(crate) async fn begin(
        &self,
        op: Op,
        name: &str,
        arguments: &Value,
    ) -> Result<Result<Output, Asked>, Failed> {
        let mut call = Call::new("c-1", caller(), op, name, Json::from_value(arguments));
        call.abilities = Abilities {
            elicitation: true,
            sampling: true,
            roots: true,
            ..Abilities::default()
        };
        self.round(call).await
    }

    /// The next round: the questions are answered.
    ///
    /// # Errors
    /// The use fails.
    pub(crate) async fn answer(&self, asked: Asked) -> Result<Result<Output, Asked>, Failed> {
        let Asked {
            mut call,
            questions,
        } = asked;
        call.round = Round {
            number: call.round.number + 1,
            answers: questions.asks.iter().map(answers::to).collect(),
            slots: questions.slots,
        };
        self.round(call).await
    }

    async fn round(&self, call: Call) -> Result<Result<Output, Asked>, Failed> {
        Ok(match self.0.call(call.clone()).await? {
            Outcome::Done(output) => Ok(output),
            Outcome::Ask(questions) => Err(Asked { call, questions }),
        })
    }
}

fn caller() -> Caller {
    Caller::new("suite")
}
