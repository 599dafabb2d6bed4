//! Syntax tree of a CEL condition, built by the parser and walked by the evaluator.

use regex::Regex;

/// A node of the syntax tree.
#[derive(Clone, Debug)]
pub(super) enum CelExpr {
    Null,
    Bool(bool),
    Int(i128),
    Float(f64),
    Text(String),
    /// All arguments of the call.
    Args,
    Fact(CallFact),
    /// A variable that a macro such as `all` or `exists` binds to each item.
    Var(String),
    List(Vec<CelExpr>),
    Select(Box<CelExpr>, String),
    Has(Box<CelExpr>, String),
    Index(Box<CelExpr>, Box<CelExpr>),
    Not(Box<CelExpr>),
    Neg(Box<CelExpr>),
    /// `&&`, flat, so that a long chain is not deeply nested.
    All(Vec<CelExpr>),
    /// `||`, flat.
    Any(Vec<CelExpr>),
    Cond(Box<[CelExpr; 3]>),
    Binary(BinaryOperator, Box<[CelExpr; 2]>),
    Call(CelFunction, Vec<CelExpr>),
    Matches(Box<CelExpr>, Regex),
    Each(CelMacro, Box<CelExpr>, String, Box<CelExpr>),
}

/// A fact about a call besides its arguments.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum CallFact {
    CallerName,
    CallerGroups,
    CallerRoles,
    CallerClaims,
    Server,
    ToolName,
    ToolKind,
    ReadOnly,
    Destructive,
    Idempotent,
    OpenWorld,
    Pinned,
    Hour,
    Minute,
    Weekday,
    Date,
    Unix,
}

impl CallFact {
    /// All facts with their names in conditions.
    pub(super) const ALL: &[(&str, CallFact)] = &[
        ("caller.name", CallFact::CallerName),
        ("caller.groups", CallFact::CallerGroups),
        ("caller.roles", CallFact::CallerRoles),
        ("caller.claims", CallFact::CallerClaims),
        ("server", CallFact::Server),
        ("tool.name", CallFact::ToolName),
        ("tool.kind", CallFact::ToolKind),
        ("tool.read_only", CallFact::ReadOnly),
        ("tool.destructive", CallFact::Destructive),
        ("tool.idempotent", CallFact::Idempotent),
        ("tool.open_world", CallFact::OpenWorld),
        ("tool.pinned", CallFact::Pinned),
        ("time.hour", CallFact::Hour),
        ("time.minute", CallFact::Minute),
        ("time.weekday", CallFact::Weekday),
        ("time.date", CallFact::Date),
        ("time.unix", CallFact::Unix),
    ];

    pub(super) fn is_time(self) -> bool {
        matches!(
            self,
            CallFact::Hour | CallFact::Minute | CallFact::Weekday | CallFact::Date | CallFact::Unix
        )
    }
}

/// A binary operator.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum BinaryOperator {
    Equal,
    Unequal,
    Less,
    AtMost,
    More,
    AtLeast,
    In,
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
}

/// A function or method. The receiver of a method is the first argument.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum CelFunction {
    Size,
    StartsWith,
    EndsWith,
    Contains,
    LowerAscii,
    Int,
    Text,
}

/// A macro over the items of a list or the keys of an object.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum CelMacro {
    All,
    Exists,
    ExistsOne,
    Filter,
    Map,
}

/// The static type of an expression.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum StaticType {
    Bool,
    Number,
    Text,
    List,
    Null,
    Unknown,
}

impl StaticType {
    pub(super) fn name(self) -> &'static str {
        match self {
            StaticType::Bool => "a boolean",
            StaticType::Number => "a number",
            StaticType::Text => "a string",
            StaticType::List => "a list",
            StaticType::Null => "null",
            StaticType::Unknown => "anything",
        }
    }
}

impl CelExpr {
    /// Returns the static type.
    pub(super) fn static_type(&self) -> StaticType {
        match self {
            CelExpr::Null => StaticType::Null,
            CelExpr::Int(_) | CelExpr::Float(_) | CelExpr::Neg(_) => StaticType::Number,
            CelExpr::Text(_) => StaticType::Text,
            CelExpr::List(_) | CelExpr::Each(CelMacro::Filter | CelMacro::Map, ..) => {
                StaticType::List
            }
            CelExpr::Bool(_)
            | CelExpr::Has(..)
            | CelExpr::Not(_)
            | CelExpr::All(_)
            | CelExpr::Any(_) => StaticType::Bool,
            CelExpr::Matches(..) | CelExpr::Each(..) => StaticType::Bool,
            CelExpr::Fact(fact) => fact.static_type(),
            CelExpr::Binary(binary, parts) => binary.static_type(&parts[0]),
            CelExpr::Call(function, _) => function.static_type(),
            CelExpr::Cond(parts) => match (parts[1].static_type(), parts[2].static_type()) {
                (yes, no) if yes == no => yes,
                _ => StaticType::Unknown,
            },
            CelExpr::Args | CelExpr::Var(_) | CelExpr::Select(..) | CelExpr::Index(..) => {
                StaticType::Unknown
            }
        }
    }

    /// Returns the direct subexpressions.
    pub(super) fn parts(&self) -> Vec<&CelExpr> {
        match self {
            CelExpr::Select(of, _) | CelExpr::Has(of, _) | CelExpr::Matches(of, _) => vec![of],
            CelExpr::Not(of) | CelExpr::Neg(of) => vec![of],
            CelExpr::Index(of, at) => vec![of, at],
            CelExpr::Each(_, of, _, body) => vec![of, body],
            CelExpr::List(parts)
            | CelExpr::All(parts)
            | CelExpr::Any(parts)
            | CelExpr::Call(_, parts) => parts.iter().collect(),
            CelExpr::Cond(parts) => parts.iter().collect(),
            CelExpr::Binary(_, parts) => parts.iter().collect(),
            _ => Vec::new(),
        }
    }

    /// Returns whether the predicate holds for this expression or any below it.
    pub(super) fn any(&self, such: &impl Fn(&CelExpr) -> bool) -> bool {
        such(self) || self.parts().into_iter().any(|part| part.any(such))
    }

    /// Returns a name for messages; never contains a value of a call.
    pub(super) fn name(&self) -> String {
        match self {
            CelExpr::Args => "args".to_owned(),
            CelExpr::Var(name) => name.clone(),
            CelExpr::Select(of, key) => format!("{}.{key}", of.name()),
            CelExpr::Index(of, _) => format!("{}[…]", of.name()),
            CelExpr::Fact(fact) => {
                let named = CallFact::ALL.iter().find(|(_, known)| known == fact);
                named.map_or("a field", |(name, _)| name).to_owned()
            }
            _ => CelExpr::UNNAMED.to_owned(),
        }
    }

    /// Name of an expression that has none, such as a literal.
    pub(super) const UNNAMED: &'static str = "a value";
}

impl CallFact {
    fn static_type(self) -> StaticType {
        match self {
            CallFact::ReadOnly
            | CallFact::Destructive
            | CallFact::Idempotent
            | CallFact::OpenWorld => StaticType::Bool,
            CallFact::Hour | CallFact::Minute | CallFact::Unix => StaticType::Number,
            CallFact::CallerGroups | CallFact::CallerRoles => StaticType::List,
            CallFact::CallerClaims => StaticType::Unknown,
            _ => StaticType::Text,
        }
    }
}

impl BinaryOperator {
    fn static_type(self, left: &CelExpr) -> StaticType {
        match self {
            BinaryOperator::Add => left.static_type(),
            BinaryOperator::Subtract
            | BinaryOperator::Multiply
            | BinaryOperator::Divide
            | BinaryOperator::Remainder => StaticType::Number,
            _ => StaticType::Bool,
        }
    }
}

impl CelFunction {
    fn static_type(self) -> StaticType {
        match self {
            CelFunction::Size | CelFunction::Int => StaticType::Number,
            CelFunction::LowerAscii | CelFunction::Text => StaticType::Text,
            _ => StaticType::Bool,
        }
    }
}
