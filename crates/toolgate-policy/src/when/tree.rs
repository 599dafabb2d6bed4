//! Syntax tree of a CEL condition, built by the parser and walked by the evaluator.

use regex::Regex;

/// A node of the syntax tree.
#[derive(Clone, Debug)]
pub(super) enum Expr {
    Null,
    Bool(bool),
    Int(i128),
    Float(f64),
    Text(String),
    /// All arguments of the call.
    Args,
    Fact(Fact),
    /// A variable that a macro such as `all` or `exists` binds to each item.
    Var(String),
    List(Vec<Expr>),
    Select(Box<Expr>, String),
    Has(Box<Expr>, String),
    Index(Box<Expr>, Box<Expr>),
    Not(Box<Expr>),
    Neg(Box<Expr>),
    /// `&&`, flat, so that a long chain is not deeply nested.
    All(Vec<Expr>),
    /// `||`, flat.
    Any(Vec<Expr>),
    Cond(Box<[Expr; 3]>),
    Binary(Binary, Box<[Expr; 2]>),
    Call(Function, Vec<Expr>),
    Matches(Box<Expr>, Regex),
    Each(Each, Box<Expr>, String, Box<Expr>),
}

/// A fact about a call besides its arguments.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Fact {
    CallerName,
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

impl Fact {
    /// All facts with their names in conditions.
    pub(super) const ALL: &[(&str, Fact)] = &[
        ("caller.name", Fact::CallerName),
        ("server", Fact::Server),
        ("tool.name", Fact::ToolName),
        ("tool.kind", Fact::ToolKind),
        ("tool.read_only", Fact::ReadOnly),
        ("tool.destructive", Fact::Destructive),
        ("tool.idempotent", Fact::Idempotent),
        ("tool.open_world", Fact::OpenWorld),
        ("tool.pinned", Fact::Pinned),
        ("time.hour", Fact::Hour),
        ("time.minute", Fact::Minute),
        ("time.weekday", Fact::Weekday),
        ("time.date", Fact::Date),
        ("time.unix", Fact::Unix),
    ];

    pub(super) fn is_time(self) -> bool {
        matches!(
            self,
            Fact::Hour | Fact::Minute | Fact::Weekday | Fact::Date | Fact::Unix
        )
    }
}

/// A binary operator.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Binary {
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
pub(super) enum Function {
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
pub(super) enum Each {
    All,
    Exists,
    ExistsOne,
    Filter,
    Map,
}

/// The static type of an expression.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Gives {
    Bool,
    Number,
    Text,
    List,
    Null,
    Unknown,
}

impl Gives {
    pub(super) fn word(self) -> &'static str {
        match self {
            Gives::Bool => "true or false",
            Gives::Number => "a number",
            Gives::Text => "a string",
            Gives::List => "a list",
            Gives::Null => "null",
            Gives::Unknown => "anything",
        }
    }
}

impl Expr {
    /// Returns the static type.
    pub(super) fn gives(&self) -> Gives {
        match self {
            Expr::Null => Gives::Null,
            Expr::Int(_) | Expr::Float(_) | Expr::Neg(_) => Gives::Number,
            Expr::Text(_) => Gives::Text,
            Expr::List(_) | Expr::Each(Each::Filter | Each::Map, ..) => Gives::List,
            Expr::Bool(_) | Expr::Has(..) | Expr::Not(_) | Expr::All(_) | Expr::Any(_) => {
                Gives::Bool
            }
            Expr::Matches(..) | Expr::Each(..) => Gives::Bool,
            Expr::Fact(fact) => fact.gives(),
            Expr::Binary(binary, parts) => binary.gives(&parts[0]),
            Expr::Call(function, _) => function.gives(),
            Expr::Cond(parts) => match (parts[1].gives(), parts[2].gives()) {
                (yes, no) if yes == no => yes,
                _ => Gives::Unknown,
            },
            Expr::Args | Expr::Var(_) | Expr::Select(..) | Expr::Index(..) => Gives::Unknown,
        }
    }

    /// Returns the direct subexpressions.
    pub(super) fn parts(&self) -> Vec<&Expr> {
        match self {
            Expr::Select(of, _) | Expr::Has(of, _) | Expr::Matches(of, _) => vec![of],
            Expr::Not(of) | Expr::Neg(of) => vec![of],
            Expr::Index(of, at) => vec![of, at],
            Expr::Each(_, of, _, body) => vec![of, body],
            Expr::List(parts) | Expr::All(parts) | Expr::Any(parts) | Expr::Call(_, parts) => {
                parts.iter().collect()
            }
            Expr::Cond(parts) => parts.iter().collect(),
            Expr::Binary(_, parts) => parts.iter().collect(),
            _ => Vec::new(),
        }
    }

    /// Returns whether the predicate holds for this expression or any below it.
    pub(super) fn any(&self, such: &impl Fn(&Expr) -> bool) -> bool {
        such(self) || self.parts().into_iter().any(|part| part.any(such))
    }

    /// Returns a name for messages; never contains a value of a call.
    pub(super) fn name(&self) -> String {
        match self {
            Expr::Args => "args".to_owned(),
            Expr::Var(name) => name.clone(),
            Expr::Select(of, key) => format!("{}.{key}", of.name()),
            Expr::Index(of, _) => format!("{}[…]", of.name()),
            Expr::Fact(fact) => {
                let named = Fact::ALL.iter().find(|(_, known)| known == fact);
                named.map_or("a fact", |(name, _)| name).to_owned()
            }
            _ => "a value".to_owned(),
        }
    }
}

impl Fact {
    fn gives(self) -> Gives {
        match self {
            Fact::ReadOnly | Fact::Destructive | Fact::Idempotent | Fact::OpenWorld => Gives::Bool,
            Fact::Hour | Fact::Minute | Fact::Unix => Gives::Number,
            _ => Gives::Text,
        }
    }
}

impl Binary {
    fn gives(self, left: &Expr) -> Gives {
        match self {
            Binary::Add => left.gives(),
            Binary::Subtract | Binary::Multiply | Binary::Divide | Binary::Remainder => {
                Gives::Number
            }
            _ => Gives::Bool,
        }
    }
}

impl Function {
    fn gives(self) -> Gives {
        match self {
            Function::Size | Function::Int => Gives::Number,
            Function::LowerAscii | Function::Text => Gives::Text,
            _ => Gives::Bool,
        }
    }
}
