//! What a server may ask in the middle of a call: keys of `[server.NAME]`.

use super::{error::ConfigError, rate::Rate, section::Section};
use toolgate_policy::{OnForm, OnSample, Quota};

/// What a server may ask.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asking {
    /// Whether it may put forms to users.
    pub(crate) forms: OnForm,
    /// Whether it may lead users to pages.
    pub(crate) pages: bool,
    /// Whether it may ask the models of callers.
    pub(crate) sampling: OnSample,
    /// The tokens that one answer of a model may have.
    pub(crate) sampling_tokens: u64,
    /// Whether it may ask for the roots of clients.
    pub(crate) roots: bool,
}

impl Default for Asking {
    fn default() -> Asking {
        Asking {
            forms: OnForm::Check,
            pages: true,
            sampling: OnSample::Off,
            sampling_tokens: 4_096,
            roots: true,
        }
    }
}

impl Asking {
    /// Reads its keys.
    pub(super) fn read(section: &Section<'_>) -> Result<Asking, ConfigError> {
        let mut asking = Asking::default();
        if let Some(field) = section.get("forms") {
            let words = [
                ("check", OnForm::Check),
                ("warn", OnForm::Warn),
                ("off", OnForm::Off),
            ];
            asking.forms = field.word(&words)?;
        }
        if let Some(field) = section.get("pages") {
            asking.pages = field.word(&[("check", true), ("off", false)])?;
        }
        if let Some(field) = section.get("sampling") {
            asking.sampling = match field.text()? {
                "off" => OnSample::Off,
                "ask" => OnSample::Ask,
                rate => often(rate).ok_or_else(|| {
                    field.is(format!(
                        "is {rate:?}; write \"off\", \"ask\", or how often, such as \"20/h\""
                    ))
                })?,
            };
        }
        if let Some(field) = section.get("sampling_tokens") {
            asking.sampling_tokens = field.number(1..=1_000_000)?;
        }
        if let Some(field) = section.get("roots") {
            asking.roots = field.boolean()?;
        }
        Ok(asking)
    }
}

fn often(rate: &str) -> Option<OnSample> {
    let Rate { count, per } = Rate::parse(rate).ok()?;
    Some(OnSample::Often(Quota { count, per }))
}
