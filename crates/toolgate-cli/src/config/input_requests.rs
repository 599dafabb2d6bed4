//! Input requests that a server may make during a call: keys of `[server.NAME]`.

use super::{error::ConfigError, rate::RateSetting, section::ConfigSection};
use toolgate_policy::{ElicitationPolicy, RateQuota, SamplingPolicy};

/// Policy for the input requests of a server.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InputRequestSettings {
    /// Policy for form elicitation.
    pub(crate) elicitation_forms: ElicitationPolicy,
    /// True if URL elicitation is allowed.
    pub(crate) elicitation_urls: bool,
    /// Policy for sampling.
    pub(crate) sampling: SamplingPolicy,
    /// Maximum tokens of one sampling response, from 1 to 1,000,000; default 4,096.
    pub(crate) sampling_tokens: u64,
    /// True if the server may request the roots of clients.
    pub(crate) roots: bool,
}

impl Default for InputRequestSettings {
    fn default() -> InputRequestSettings {
        InputRequestSettings {
            elicitation_forms: ElicitationPolicy::Check,
            elicitation_urls: true,
            sampling: SamplingPolicy::Off,
            sampling_tokens: 4_096,
            roots: true,
        }
    }
}

impl InputRequestSettings {
    /// Reads the keys of a server's section.
    pub(super) fn read(section: &ConfigSection<'_>) -> Result<InputRequestSettings, ConfigError> {
        let mut asking = InputRequestSettings::default();
        if let Some(field) = section.get("elicitation_forms") {
            let words = [
                ("check", ElicitationPolicy::Check),
                ("warn", ElicitationPolicy::Warn),
                ("off", ElicitationPolicy::Off),
            ];
            asking.elicitation_forms = field.one_of(&words)?;
        }
        if let Some(field) = section.get("elicitation_urls") {
            asking.elicitation_urls = field.one_of(&[("check", true), ("off", false)])?;
        }
        if let Some(field) = section.get("sampling") {
            asking.sampling = match field.text()? {
                "off" => SamplingPolicy::Off,
                "ask" => SamplingPolicy::Ask,
                rate => parse_sampling_rate(rate).ok_or_else(|| {
                    field.key_error(format!(
                        "is {rate:?}; write \"off\", \"ask\", or a rate such as \"20/h\""
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

fn parse_sampling_rate(rate: &str) -> Option<SamplingPolicy> {
    let RateSetting { count, period: per } = RateSetting::parse(rate).ok()?;
    Some(SamplingPolicy::RateLimited(RateQuota { count, per }))
}
