//! Input requests that a server may make during a call: keys of `[server.NAME]`.

use super::{
    rate::RateSetting,
    reader::{ConfigWord, inline_schema},
};
use schemars::json_schema;
use serde::Deserialize;
use toolgate_policy::{ElicitationPolicy, RateQuota, SamplingPolicy};

/// Policy for the input requests of a server.
#[derive(Clone, Copy, Debug, PartialEq)]
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
            elicitation_forms: ElicitationPolicy::default(),
            elicitation_urls: true,
            sampling: SamplingPolicy::default(),
            sampling_tokens: 4_096,
            roots: true,
        }
    }
}

impl ConfigWord for ElicitationPolicy {
    const WORDS: &'static [(&'static str, ElicitationPolicy)] = &[
        ("check", ElicitationPolicy::Check),
        ("warn", ElicitationPolicy::Warn),
        ("off", ElicitationPolicy::Off),
    ];
}

/// Policy for sampling as written: `"off"`, `"ask"` or a rate.
#[derive(Deserialize)]
#[serde(try_from = "String")]
pub(super) struct SamplingSetting(pub(super) SamplingPolicy);

impl TryFrom<String> for SamplingSetting {
    type Error = String;

    fn try_from(text: String) -> Result<SamplingSetting, String> {
        let policy = match text.as_str() {
            "off" => SamplingPolicy::Off,
            "ask" => SamplingPolicy::Ask,
            rate => {
                let RateSetting { count, period: per } =
                    RateSetting::parse(rate).map_err(|_| {
                        format!("is {rate:?}; write \"off\", \"ask\", or a rate such as \"20/h\"")
                    })?;
                SamplingPolicy::RateLimited(RateQuota { count, per })
            }
        };
        Ok(SamplingSetting(policy))
    }
}

inline_schema!(SamplingSetting, |generator| json_schema!({"anyOf": [
    {"type": "string", "enum": ["off", "ask"]},
    RateSetting::json_schema(generator),
]}));
