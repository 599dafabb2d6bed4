//! JSON Schemas of the outputs, generated from their structs.

use crate::cli::{commands::outputs::*, history};
use schemars::{
    JsonSchema, Schema,
    generate::SchemaSettings,
    transform::{Transform, transform_subschemas},
};

/// Schema of what a command prints with `--json`.
pub(crate) struct OutputSchema {
    /// Command, with the option that changes its output.
    pub(crate) command: &'static str,
    /// True for one object per line, false for one document.
    pub(crate) is_stream: bool,
    generate: fn() -> Schema,
}

/// All outputs, in the order of the reference.
pub(crate) const OUTPUT_SCHEMAS: &[OutputSchema] = &[
    document::<CheckOutput>("check"),
    document::<DoctorOutput>("doctor"),
    document::<ImportOutput>("import --dry-run"),
    document::<Vec<HostOutput>>("connect"),
    document::<Vec<PendingOutput>>("inbox"),
    document::<Vec<GrantOutput>>("grants list"),
    document::<PasskeyListOutput>("passkeys list"),
    document::<Vec<FreezeOutput>>("freeze list"),
    document::<Vec<StatusOutput>>("status"),
    stream::<LogLineOutput>("logs"),
    document::<Vec<ItemOutput>>("tools"),
    document::<Vec<ItemOutput>>("resources"),
    document::<Vec<ItemOutput>>("prompts"),
    document::<Vec<CallOutput>>("calls"),
    document::<Vec<TaskOutput>>("tasks list"),
    document::<DryRunOutput>("explain"),
    document::<history::HistoryOutput>("explain --history"),
    document::<history::ReplayOutput>("replay"),
    document::<Vec<PinOutput>>("pins list"),
    document::<Vec<PinDiffOutput>>("pins diff"),
    document::<Vec<LoginOutput>>("logins"),
    stream::<AuditRecordOutput>("audit tail"),
    stream::<AuditRecordOutput>("audit search"),
    document::<VerifyOutput>("audit verify"),
    document::<FleetVerifyOutput>("audit verify --fleet"),
    document::<Vec<AuditCopyOutput>>("audit copies"),
    document::<Vec<KeyOutput>>("keys list"),
    document::<Vec<StoreTableOutput>>("store check"),
    document::<ServiceOutput>("service status"),
    document::<UninstallOutput>("uninstall"),
];

const fn document<T: JsonSchema>(command: &'static str) -> OutputSchema {
    OutputSchema {
        command,
        is_stream: false,
        generate: generate::<T>,
    }
}

const fn stream<T: JsonSchema>(command: &'static str) -> OutputSchema {
    OutputSchema {
        is_stream: true,
        ..document::<T>(command)
    }
}

fn generate<T: JsonSchema>() -> Schema {
    let settings = SchemaSettings::draft2020_12().for_serialize();
    let settings = settings.with_transform(OutputTransform);
    settings.into_generator().into_root_schema_for::<T>()
}

impl OutputSchema {
    /// Finds the schema of a command by its name.
    pub(crate) fn find(name: &str) -> Option<&'static OutputSchema> {
        let name = name.replace("--", "");
        OUTPUT_SCHEMAS.iter().find(|schema| schema.name() == name)
    }

    /// Returns the name for `toolgate schema`: the command without the dashes of an option.
    pub(crate) fn name(&self) -> String {
        self.command.replace("--", "")
    }

    /// Returns the schema as text.
    pub(crate) fn text(&self) -> String {
        let what = match self.is_stream {
            true => "Line of the output",
            false => "Output",
        };
        let mut schema = (self.generate)();
        schema.insert(
            "title".to_owned(),
            format!("{what} of `toolgate {} --json`", self.command).into(),
        );
        format!("{:#}\n", schema.to_value())
    }
}

/// Fits the schemas of Rust's types to outputs: no defaults, no formats of integers, no line breaks of comments.
#[derive(Clone)]
struct OutputTransform;

impl Transform for OutputTransform {
    fn transform(&mut self, schema: &mut Schema) {
        transform_subschemas(self, schema);
        schema.remove("default");
        let format = schema.get("format").and_then(|format| format.as_str());
        if format.is_some_and(|format| format != "date-time") {
            schema.remove("format");
        }
        if let Some(serde_json::Value::String(text)) = schema.get_mut("description") {
            *text = text.replace('\n', " ");
        }
    }
}

#[cfg(test)]
#[path = "schemas/tests.rs"]
mod tests;
