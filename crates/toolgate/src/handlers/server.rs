//! Collects what is offered, and builds what an edge serves.

use super::{
    BuildError, IntoPrompt, IntoTool, Registry, Resource, Skill, TaskSupport, Template, ToolSet,
    mount::{self, Built},
    registry::Offered,
};
use crate::{
    aggregate::{Override, Overrides},
    edge::{self, Offers, ServerLimits, TaskOffer},
};
use std::{path::PathBuf, sync::Arc};
use toolgate_core::{CacheHint, Json, Rule};
use toolgate_policy::{
    AtOnce, Deadline, OnLeak, OnPlaceholder, OnSecret, OutputSchema, PerServer, Quota, Rate,
    Recorder, Scopes, Size, Standard,
};
use toolgate_wire::method::{initialize::Implementation, meta};

/// A server in the making. Every duty of a server is on: arguments are checked against their schemas, calls are limited
/// in number, rate and time and recorded, results are checked, cleaned and limited in size, and a panic ends one call.
///
/// ```
/// use toolgate::handlers::{Cx, Server, Stop, Tool};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let now = Tool::dynamic("now", serde_json::json!({"type": "object"}), |_, _: Cx| async {
///     Ok::<_, Stop>("noon")
/// });
/// let server = Server::new("clock", "1.0.0").tool(now.read_only()).build()?;
/// # let _ = server;
/// # Ok(())
/// # }
/// ```
pub struct Server {
    info: Implementation,
    instructions: Option<String>,
    offered: Offered,
    duties: Standard,
    limits: ServerLimits,
    extensions: Vec<(String, Json)>,
    completions: bool,
    key: Option<[u8; 32]>,
    audit: Option<PathBuf>,
    pub(super) mounts: Vec<(String, Server)>,
    pub(super) overrides: Overrides,
}

impl Server {
    /// A server that offers nothing yet.
    pub fn new(name: &str, version: &str) -> Server {
        let mut duties = Standard::default();
        // Arguments have arrived: where they were meant to go.
        duties.cleaning.leaks.found = PerServer::all(OnLeak::Pass);
        duties.cleaning.placeholders.found = PerServer::all(OnPlaceholder::Allow);
        // A question checks its answer, and is asked again where it does not fit.
        duties.asking.answers = false;
        // Its own pictures and links: whoever receives them has to look.
        duties.cleaning.media.check = PerServer::all(false);
        duties.cleaning.links.check = PerServer::all(false);
        Server {
            info: Implementation::new(name, version),
            instructions: None,
            offered: Offered::default(),
            duties,
            limits: ServerLimits::default(),
            extensions: Vec::new(),
            completions: false,
            key: None,
            audit: None,
            mounts: Vec::new(),
            overrides: Overrides::default(),
        }
    }

    /// What people call it.
    pub fn title(mut self, title: &str) -> Server {
        self.info.title = Some(title.to_owned());
        self
    }

    /// What it is.
    pub fn description(mut self, text: &str) -> Server {
        self.info.description = Some(text.to_owned());
        self
    }

    /// Where people read more.
    pub fn website(mut self, url: &str) -> Server {
        self.info.website = Some(url.to_owned());
        self
    }

    /// Its icons, as the protocol writes them: an array of objects with `src`.
    pub fn icons(mut self, icons: serde_json::Value) -> Server {
        self.info.icons = Some(Json::from_value(&icons));
        self
    }

    /// How a model should use it all.
    pub fn instructions(mut self, text: &str) -> Server {
        self.instructions = Some(text.to_owned());
        self
    }

    /// Offers a tool.
    pub fn tool(mut self, tool: impl IntoTool) -> Server {
        self.offered.tools.push(tool.into_tool());
        self
    }

    /// Offers tools over one state.
    pub fn tools(mut self, tools: impl ToolSet) -> Server {
        self.offered.tools.extend(Arc::new(tools).tools());
        self
    }

    /// Offers a prompt.
    pub fn prompt(mut self, prompt: impl IntoPrompt) -> Server {
        let prompt = prompt.into_prompt();
        self.completions |= !prompt.completers.is_empty();
        self.offered.prompts.push(prompt);
        self
    }

    /// Offers a resource.
    pub fn resource(mut self, resource: Resource) -> Server {
        self.offered.resources.push(resource);
        self
    }

    /// Offers resources by a template.
    pub fn template(mut self, template: Template) -> Server {
        self.completions |= !template.completers.is_empty();
        self.offered.templates.push(template);
        self
    }

    /// Offers a skill, and its `SKILL.md` as a resource (2026-07-28).
    pub fn skill(mut self, skill: Skill) -> Server {
        self.offered.skills.push(skill);
        self
    }

    /// Offers skills; those of a folder are [`Skill::all_in`].
    pub fn skills(mut self, skills: impl IntoIterator<Item = Skill>) -> Server {
        self.offered.skills.extend(skills);
        self
    }

    /// Puts another server inside this one. Its tools and prompts are called `NAME_tool` here; a name that hosts do not
    /// take is changed as the gateway does it. Its resources keep their URIs, but for pages of tools and skills: `ui://app` is
    /// `ui://NAME/app` here. Of two with one URI the outer server's counts, then that of the server that was mounted first. Everything that the inner server does about its calls it
    /// still does, inside what this one does; of its own edge (its name and version, [`Server::limits`],
    /// [`Server::seal_key`]) nothing is used. NAME has at most 32 of `[A-Za-z0-9-]`.
    ///
    /// ```
    /// use toolgate::{Cx, Server, Stop, Tool};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let now = Tool::dynamic("now", serde_json::json!({"type": "object"}), |_, _: Cx| async {
    ///     Ok::<_, Stop>("noon")
    /// });
    /// let clock = Server::new("clock", "1.0.0").tool(now.read_only());
    /// // Its tool is `clock_now`.
    /// let house = Server::new("house", "1.0.0").mount("clock", clock).build()?;
    /// # let _ = house;
    /// # Ok(())
    /// # }
    /// ```
    pub fn mount(mut self, name: &str, server: Server) -> Server {
        self.mounts.push((name.to_owned(), server));
        self
    }

    /// What callers are shown of a tool of its own instead of what it says; mounted servers have theirs.
    ///
    /// ```
    /// use toolgate::{Cx, Override, Server, Stop, Tool};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let schema = serde_json::json!({"type": "object", "properties": {"zone": {"type": "string"}}});
    /// let now = Tool::dynamic("now", schema, |args, _: Cx| async move {
    ///     Ok::<_, Stop>(format!("noon in {}", args["zone"]))
    /// });
    /// let here = Override::new().name("now_here").argument("zone", "UTC");
    /// let clock = Server::new("clock", "1.0.0").tool(now).overriding("now", here);
    /// # clock.build()?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn overriding(mut self, tool: &str, shown: Override) -> Server {
        self.overrides.set(tool, shown);
        self
    }

    /// How long its lists are fresh, in milliseconds, and whether one caller's may be given to another (2026-07-28).
    /// Stale at once and private, where nobody says more.
    pub fn cache(mut self, ttl_ms: u64, public: bool) -> Server {
        self.offered.hint = CacheHint { ttl_ms, public };
        self
    }

    /// Declares an extension by its identifier, with its settings: an object (2026-07-28).
    pub fn extension(mut self, id: &str, settings: Json) -> Server {
        self.extensions.push((id.to_owned(), settings));
        self
    }

    /// Adds a rule about who may use what. What a caller may not see is told not to exist.
    pub fn guard(mut self, rule: impl Rule) -> Server {
        self.duties.rules.push(Arc::new(rule));
        self
    }

    /// What the tokens of callers have to be good for, where it is [`protected`](crate::Http::protected). Tools are named
    /// as in the record: `*.name` fits whatever this server is called.
    pub fn scopes(mut self, scopes: Scopes) -> Server {
        self.duties.scopes = scopes;
        self
    }

    /// How often each caller may use each tool; 6,000 a minute.
    pub fn rate(mut self, quota: Quota) -> Server {
        self.duties.rate = Rate::new(Vec::new(), quota);
        self
    }

    /// How many calls may run at once, of one caller and in all; 64 and 1,024.
    pub fn at_once(mut self, per_caller: usize, all: usize) -> Server {
        self.duties.at_once = AtOnce::new(per_caller, all);
        self
    }

    /// How long a call may take; 60 s without progress, at most 15 minutes.
    pub fn deadline(mut self, deadline: Deadline) -> Server {
        self.duties.deadline = deadline;
        self
    }

    /// What becomes of results that break their schema; they are held back.
    pub fn output_schema(mut self, duty: OutputSchema) -> Server {
        self.duties.output_schema = duty;
        self
    }

    /// What becomes of secrets in results; they are redacted. A tool that hands out keys needs [`OnSecret::Pass`].
    pub fn secrets(mut self, found: OnSecret) -> Server {
        self.duties.cleaning.secrets.found = PerServer::all(found);
        self
    }

    /// How large things may be.
    pub fn size(mut self, size: Size) -> Server {
        self.duties.size = size;
        self
    }

    /// Where calls are recorded; as events of `tracing`, without contents. [`Server::audit_in`] keeps a log that stands
    /// as evidence.
    pub fn record(mut self, recorder: Arc<Recorder>) -> Server {
        self.audit = None;
        self.duties.recorder = recorder;
        self
    }

    /// Records calls in a hash-chained log in that folder: on the disk before the function runs and before the answer
    /// leaves. Where it cannot be written, nothing is called.
    pub fn audit_in(mut self, folder: impl Into<PathBuf>) -> Server {
        self.audit = Some(folder.into());
        self
    }

    /// The limits of the serving edge.
    pub fn limits(mut self, limits: ServerLimits) -> Server {
        self.limits = limits;
        self
    }

    /// The key by which state is sealed that leaves with a question. Replicas that answer each other's calls share one;
    /// else each process has its own.
    pub fn seal_key(mut self, key: [u8; 32]) -> Server {
        self.key = Some(key);
        self
    }

    /// Builds it: what an edge serves.
    ///
    /// # Errors
    /// [`BuildError`] names the definition that is wrong, and says why.
    pub fn build(self) -> Result<Arc<edge::Front>, BuildError> {
        self.build_with_registry().map(|(server, _)| server)
    }

    /// Builds it, with the means to change what it offers while it runs.
    ///
    /// # Errors
    /// As [`Server::build`].
    pub fn build_with_registry(mut self) -> Result<(Arc<edge::Front>, Registry), BuildError> {
        let (limits, key) = (self.limits.clone(), self.key.take());
        let info = self.info.clone();
        let built = self.built()?;
        let own = built.alone.then(|| built.registry.clone());
        let mirrors = own.map(|own| move || own.offered().mirrors);
        let unsealed = |error: toolgate_core::Error| BuildError::new("the seal", error.public());
        let mut server = edge::Front::new(built.service, &info.name, &info.version, limits)
            .map_err(unsealed)?
            .with_info(info)
            .with_offers(built.offers)
            .with_mirrors(mirrors)
            .with_instructions(built.instructions);
        if let Some(key) = key {
            server = server.with_seal_keys(&[key]).map_err(unsealed)?;
        }
        Ok((Arc::new(server), built.registry))
    }

    /// Its duties over what it offers, without an edge.
    pub(super) fn built(mut self) -> Result<Built, BuildError> {
        let mut offers = self.offers()?;
        if let Some(folder) = &self.audit {
            let recorder = Recorder::in_folder(folder);
            let unwritable = |error| {
                BuildError::new(
                    format!("the log in {}", folder.display()),
                    format!("{error}"),
                )
            };
            self.duties.recorder = Arc::new(recorder.map_err(unwritable)?);
        }
        let mut inner = Vec::new();
        for (name, server) in std::mem::take(&mut self.mounts) {
            let built = server
                .built()
                .map_err(|error| error.within(&format!("the mounted server {name:?}")))?;
            inner.push((name, built));
        }
        self.offered.mounts = inner.iter().map(|(name, _)| name.clone()).collect();
        let mounted = inner.iter();
        let mounted = mounted.map(|(name, built)| (name.clone(), built.registry.clone()));
        let registry = Registry::new(&self.info.name, self.offered, mounted.collect())?;
        let mut words: Vec<String> = self.instructions.into_iter().collect();
        for (name, built) in &inner {
            let theirs = built.instructions.as_ref();
            words.extend(theirs.map(|text| format!("{name}: {text}")));
            offers = mount::both(&offers, &built.offers);
        }
        let alone = self.overrides.is_empty() && inner.is_empty();
        let end = mount::whole(&registry, self.overrides, inner)?;
        Ok(Built {
            service: Arc::new(self.duties.over(end)),
            registry,
            alone,
            offers,
            instructions: (!words.is_empty()).then(|| words.join("\n\n")),
        })
    }

    fn offers(&self) -> Result<Offers, BuildError> {
        let skills = !self.offered.skills.is_empty();
        let resources =
            skills || !self.offered.resources.is_empty() || !self.offered.templates.is_empty();
        let mut extensions = toolgate_wire::json::ObjectWriter::new();
        for (id, settings) in &self.extensions {
            if settings.kind() != toolgate_wire::json::Kind::Object
                || !id.contains('/')
                || !meta::is_key(id)
            {
                let why = "an identifier has a prefix, as in com.example/thing, and settings are an object";
                return Err(BuildError::new(format!("the extension {id:?}"), why));
            }
            if id == toolgate_wire::method::skills::EXTENSION {
                let why = "it is declared where there are skills; add one with Server::skill";
                return Err(BuildError::new(format!("the extension {id:?}"), why));
            }
            extensions.raw(id, settings);
        }
        Ok(Offers {
            // Tools can come later, and an empty list is legal.
            tools: true,
            resources,
            subscribe: resources,
            prompts: !self.offered.prompts.is_empty(),
            completions: self.completions,
            list_changed: true,
            tasks: if self
                .offered
                .tools
                .iter()
                .any(|t| t.support() != TaskSupport::Forbidden)
            {
                TaskOffer::Marked
            } else {
                TaskOffer::None
            },
            skills,
            extensions: (!self.extensions.is_empty()).then(|| extensions.finish()),
        })
    }
}
