//! Parser of CEL conditions. It rejects expressions that fail on every call, with the position of the error.

use super::{
    calls,
    lex::{Token, Word, Wrong, words},
    tree::{Binary, Expr, Fact, Gives},
};

/// A recursive descent parser over tokens.
pub(super) struct Parser {
    tokens: Vec<Token>,
    next: usize,
    depth: usize,
    deepest: usize,
    /// Variables in scope, outermost first.
    pub(super) names: Vec<String>,
}

/// Parses a condition with a maximum nesting of `deepest`.
pub(super) fn parse(text: &str, deepest: usize) -> Result<Expr, Wrong> {
    let mut parser = Parser {
        tokens: words(text)?,
        next: 0,
        depth: 0,
        deepest,
        names: Vec::new(),
    };
    if *parser.peek() == Word::End {
        return Err((0, "the condition is empty".to_owned()));
    }
    let expr = parser.expression()?;
    match parser.peek() {
        Word::End if matches!(expr.gives(), Gives::Bool | Gives::Unknown) => Ok(expr),
        Word::End => {
            let wrong = format!(
                "the condition evaluates to {}, not true or false",
                expr.gives().word()
            );
            Err((0, wrong))
        }
        _ => Err(parser.unexpected("an operator or the end")),
    }
}

impl Parser {
    pub(super) fn at(&self) -> usize {
        self.tokens.get(self.next).map_or(0, |token| token.at)
    }

    fn peek(&self) -> &Word {
        let token = self.tokens.get(self.next);
        token.map_or(&Word::End, |token| &token.word)
    }

    fn take(&mut self) -> Word {
        let word = self.peek().clone();
        self.next += 1;
        word
    }

    /// Consumes the next token if it is this operator or bracket.
    pub(super) fn takes(&mut self, sign: &str) -> bool {
        let is = matches!(self.peek(), Word::Sign(next) if *next == sign);
        self.next += usize::from(is);
        is
    }

    pub(super) fn needs(&mut self, sign: &str) -> Result<(), Wrong> {
        if self.takes(sign) {
            Ok(())
        } else {
            Err(self.unexpected(sign))
        }
    }

    fn unexpected(&self, wanted: &str) -> Wrong {
        let found = match self.peek() {
            Word::End => "unexpected end of the condition".to_owned(),
            Word::Name(name) => format!("unexpected {name}"),
            Word::Sign(sign) => format!("unexpected {sign}"),
            Word::Int(_) | Word::Float(_) => "unexpected number".to_owned(),
            Word::Text(_) => "unexpected string".to_owned(),
        };
        (self.at(), format!("{found}, expected {wanted}"))
    }

    /// Parses `a ? b : c` and everything with a higher precedence.
    pub(super) fn expression(&mut self) -> Result<Expr, Wrong> {
        self.depth += 1;
        if self.depth > self.deepest {
            return Err((self.at(), too_deep(self.deepest)));
        }
        let test = self.chain("||", Expr::Any, |p| {
            p.chain("&&", Expr::All, Parser::comparison)
        })?;
        let expr = if self.takes("?") {
            let yes = self.expression()?;
            self.needs(":")?;
            Expr::Cond(Box::new([test, yes, self.expression()?]))
        } else {
            test
        };
        self.depth -= 1;
        Ok(expr)
    }

    fn chain(
        &mut self,
        sign: &str,
        joined: fn(Vec<Expr>) -> Expr,
        part: impl Fn(&mut Parser) -> Result<Expr, Wrong>,
    ) -> Result<Expr, Wrong> {
        let from = self.at();
        let first = part(self)?;
        let mut parts = vec![(from, first)];
        while self.takes(sign) {
            parts.push((self.at(), part(self)?));
        }
        if parts.len() == 1 {
            return Ok(parts.remove(0).1);
        }
        for (at, part) in &parts {
            if !matches!(part.gives(), Gives::Bool | Gives::Unknown) {
                let gives = part.gives().word();
                let wrong = format!("{sign} needs true or false on both sides, not {gives}");
                return Err((*at, wrong));
            }
        }
        Ok(joined(parts.into_iter().map(|(_, part)| part).collect()))
    }

    fn comparison(&mut self) -> Result<Expr, Wrong> {
        let left = self.operation(0)?;
        let Some(binary) = self.compares() else {
            return Ok(left);
        };
        let at = self.at();
        self.next += 1;
        let right = self.operation(0)?;
        if self.compares().is_some() {
            let wrong = "comparisons cannot be chained; join two with &&".to_owned();
            return Err((self.at(), wrong));
        }
        let (l, r) = (left.gives(), right.gives());
        let known = |gives| !matches!(gives, Gives::Unknown | Gives::Null);
        if binary != Binary::In && known(l) && known(r) && l != r {
            let wrong = format!("cannot compare {} with {}", l.word(), r.word());
            return Err((at, wrong));
        }
        Ok(Expr::Binary(binary, Box::new([left, right])))
    }

    fn compares(&self) -> Option<Binary> {
        Some(match self.peek() {
            Word::Sign("==") => Binary::Equal,
            Word::Sign("!=") => Binary::Unequal,
            Word::Sign("<") => Binary::Less,
            Word::Sign("<=") => Binary::AtMost,
            Word::Sign(">") => Binary::More,
            Word::Sign(">=") => Binary::AtLeast,
            Word::Name(name) if name == "in" => Binary::In,
            _ => return None,
        })
    }

    /// Parses sums at level 0, products at level 1.
    fn operation(&mut self, level: usize) -> Result<Expr, Wrong> {
        let part = |p: &mut Parser| match level {
            0 => p.operation(1),
            _ => p.unary(),
        };
        let mut left = part(self)?;
        let mut links = self.depth;
        loop {
            let binary = match (level, self.peek()) {
                (0, Word::Sign("+")) => Binary::Add,
                (0, Word::Sign("-")) => Binary::Subtract,
                (1, Word::Sign("*")) => Binary::Multiply,
                (1, Word::Sign("/")) => Binary::Divide,
                (1, Word::Sign("%")) => Binary::Remainder,
                _ => return Ok(left),
            };
            links += 1;
            if links > self.deepest {
                return Err((self.at(), too_deep(self.deepest)));
            }
            self.next += 1;
            left = Expr::Binary(binary, Box::new([left, part(self)?]));
        }
    }

    fn unary(&mut self) -> Result<Expr, Wrong> {
        let not = self.takes("!");
        if !not && !self.takes("-") {
            return self.member();
        }
        self.depth += 1;
        if self.depth > self.deepest {
            return Err((self.at(), too_deep(self.deepest)));
        }
        let at = self.at();
        let of = self.unary()?;
        self.depth -= 1;
        let wanted = if not { Gives::Bool } else { Gives::Number };
        match of {
            of if of.gives() != wanted && of.gives() != Gives::Unknown => {
                let (sign, gives) = (if not { "!" } else { "-" }, of.gives().word());
                Err((at, format!("{sign} cannot be applied to {gives}")))
            }
            Expr::Int(int) => Ok(Expr::Int(-int)),
            Expr::Float(float) => Ok(Expr::Float(-float)),
            of if not => Ok(Expr::Not(Box::new(of))),
            of => Ok(Expr::Neg(Box::new(of))),
        }
    }

    fn member(&mut self) -> Result<Expr, Wrong> {
        let mut expr = self.primary()?;
        let mut links = self.depth;
        loop {
            links += 1;
            if links > self.deepest {
                return Err((self.at(), too_deep(self.deepest)));
            }
            if self.takes(".") {
                let at = self.at();
                let name = self.name("the name of a field")?;
                expr = if self.takes("(") {
                    calls::method(self, expr, &name, at)?
                } else {
                    Expr::Select(Box::new(expr), name)
                };
            } else if self.takes("[") {
                let index = self.expression()?;
                self.needs("]")?;
                expr = Expr::Index(Box::new(expr), Box::new(index));
            } else {
                return Ok(expr);
            }
        }
    }

    pub(super) fn name(&mut self, wanted: &str) -> Result<String, Wrong> {
        match self.peek() {
            Word::Name(name) if !matches!(name.as_str(), "in" | "true" | "false" | "null") => {
                let name = name.clone();
                self.next += 1;
                Ok(name)
            }
            _ => Err(self.unexpected(wanted)),
        }
    }

    fn primary(&mut self) -> Result<Expr, Wrong> {
        let at = self.at();
        match self.peek() {
            Word::Sign("(") => {
                self.next += 1;
                let inner = self.expression()?;
                self.needs(")")?;
                Ok(inner)
            }
            Word::Sign("[") => {
                self.next += 1;
                Ok(Expr::List(self.list("]")?))
            }
            Word::Sign("{") => Err((at, "objects cannot be written in a condition".to_owned())),
            Word::Sign(_) | Word::End => Err(self.unexpected("a value")),
            Word::Name(name) if name == "in" => Err(self.unexpected("a value")),
            _ => match self.take() {
                Word::Int(int) => Ok(Expr::Int(int.into())),
                Word::Float(float) => Ok(Expr::Float(float)),
                Word::Text(text) => Ok(Expr::Text(text)),
                Word::Name(name) => self.named(name, at),
                Word::Sign(_) | Word::End => Err(self.unexpected("a value")),
            },
        }
    }

    /// Parses expressions separated by commas, up to the closing bracket.
    pub(super) fn list(&mut self, close: &str) -> Result<Vec<Expr>, Wrong> {
        let mut parts = Vec::new();
        while !self.takes(close) {
            if !parts.is_empty() {
                self.needs(",")?;
            }
            parts.push(self.expression()?);
        }
        Ok(parts)
    }

    fn named(&mut self, name: String, at: usize) -> Result<Expr, Wrong> {
        match name.as_str() {
            "true" => return Ok(Expr::Bool(true)),
            "false" => return Ok(Expr::Bool(false)),
            "null" => return Ok(Expr::Null),
            _ => {}
        }
        if self.takes("(") {
            return calls::function(self, &name, at);
        }
        if self.names.contains(&name) {
            return Ok(Expr::Var(name));
        }
        match name.as_str() {
            "args" => Ok(Expr::Args),
            "server" => Ok(Expr::Fact(Fact::Server)),
            "caller" | "tool" | "time" => self.fact(&name, at),
            other => {
                let known = ["args", "caller", "server", "time", "tool"];
                let known = known
                    .into_iter()
                    .chain(self.names.iter().map(String::as_str));
                Err((at, calls::unknown("name", other, known)))
            }
        }
    }

    fn fact(&mut self, of: &str, at: usize) -> Result<Expr, Wrong> {
        let fields = Fact::ALL.iter().filter_map(|(name, fact)| {
            let (whose, field) = name.split_once('.')?;
            (whose == of).then_some((field, *fact))
        });
        if !self.takes(".") {
            let fields: Vec<&str> = fields.map(|(field, _)| field).collect();
            let wrong = format!("{of} is not a value; its fields are {}", fields.join(", "));
            return Err((at, wrong));
        }
        let at = self.at();
        let name = self.name("the name of a field")?;
        let mut known = fields.clone();
        match known.find(|(field, _)| *field == name) {
            Some((_, fact)) => Ok(Expr::Fact(fact)),
            None => {
                let what = format!("field of {of}");
                let known = fields.map(|(field, _)| field);
                Err((at, calls::unknown(&what, &name, known)))
            }
        }
    }
}

fn too_deep(deepest: usize) -> String {
    format!("the condition is nested deeper than {deepest}")
}
