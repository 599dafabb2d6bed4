//! Parser of CEL conditions. It rejects expressions that fail on every call, with the position of the error.

use super::{
    calls,
    lex::{CelError, CelToken, TokenKind, words},
    tree::{BinaryOperator, CallFact, CelExpr, StaticType},
};

/// A recursive descent parser over tokens.
pub(super) struct CelParser {
    tokens: Vec<CelToken>,
    next: usize,
    depth: usize,
    deepest: usize,
    /// Variables in scope, outermost first.
    pub(super) names: Vec<String>,
}

/// Parses a condition with a maximum nesting of `deepest`.
pub(super) fn parse(text: &str, deepest: usize) -> Result<CelExpr, CelError> {
    let mut parser = CelParser {
        tokens: words(text)?,
        next: 0,
        depth: 0,
        deepest,
        names: Vec::new(),
    };
    if *parser.peek() == TokenKind::End {
        return Err((0, "the condition is empty".to_owned()));
    }
    let expr = parser.expression()?;
    match parser.peek() {
        TokenKind::End if matches!(expr.gives(), StaticType::Bool | StaticType::Unknown) => {
            Ok(expr)
        }
        TokenKind::End => {
            let wrong = format!(
                "the condition evaluates to {}, not true or false",
                expr.gives().word()
            );
            Err((0, wrong))
        }
        _ => Err(parser.unexpected("an operator or the end")),
    }
}

impl CelParser {
    pub(super) fn at(&self) -> usize {
        self.tokens.get(self.next).map_or(0, |token| token.at)
    }

    fn peek(&self) -> &TokenKind {
        let token = self.tokens.get(self.next);
        token.map_or(&TokenKind::End, |token| &token.word)
    }

    fn take(&mut self) -> TokenKind {
        let word = self.peek().clone();
        self.next += 1;
        word
    }

    /// Consumes the next token if it is this operator or bracket.
    pub(super) fn takes(&mut self, sign: &str) -> bool {
        let is = matches!(self.peek(), TokenKind::Sign(next) if *next == sign);
        self.next += usize::from(is);
        is
    }

    pub(super) fn needs(&mut self, sign: &str) -> Result<(), CelError> {
        if self.takes(sign) {
            Ok(())
        } else {
            Err(self.unexpected(sign))
        }
    }

    fn unexpected(&self, wanted: &str) -> CelError {
        let found = match self.peek() {
            TokenKind::End => "unexpected end of the condition".to_owned(),
            TokenKind::Name(name) => format!("unexpected {name}"),
            TokenKind::Sign(sign) => format!("unexpected {sign}"),
            TokenKind::Int(_) | TokenKind::Float(_) => "unexpected number".to_owned(),
            TokenKind::Text(_) => "unexpected string".to_owned(),
        };
        (self.at(), format!("{found}, expected {wanted}"))
    }

    /// Parses `a ? b : c` and everything with a higher precedence.
    pub(super) fn expression(&mut self) -> Result<CelExpr, CelError> {
        self.depth += 1;
        if self.depth > self.deepest {
            return Err((self.at(), too_deep(self.deepest)));
        }
        let test = self.chain("||", CelExpr::Any, |p| {
            p.chain("&&", CelExpr::All, CelParser::comparison)
        })?;
        let expr = if self.takes("?") {
            let yes = self.expression()?;
            self.needs(":")?;
            CelExpr::Cond(Box::new([test, yes, self.expression()?]))
        } else {
            test
        };
        self.depth -= 1;
        Ok(expr)
    }

    fn chain(
        &mut self,
        sign: &str,
        joined: fn(Vec<CelExpr>) -> CelExpr,
        part: impl Fn(&mut CelParser) -> Result<CelExpr, CelError>,
    ) -> Result<CelExpr, CelError> {
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
            if !matches!(part.gives(), StaticType::Bool | StaticType::Unknown) {
                let gives = part.gives().word();
                let wrong = format!("{sign} needs true or false on both sides, not {gives}");
                return Err((*at, wrong));
            }
        }
        Ok(joined(parts.into_iter().map(|(_, part)| part).collect()))
    }

    fn comparison(&mut self) -> Result<CelExpr, CelError> {
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
        let known = |gives| !matches!(gives, StaticType::Unknown | StaticType::Null);
        if binary != BinaryOperator::In && known(l) && known(r) && l != r {
            let wrong = format!("cannot compare {} with {}", l.word(), r.word());
            return Err((at, wrong));
        }
        Ok(CelExpr::Binary(binary, Box::new([left, right])))
    }

    fn compares(&self) -> Option<BinaryOperator> {
        Some(match self.peek() {
            TokenKind::Sign("==") => BinaryOperator::Equal,
            TokenKind::Sign("!=") => BinaryOperator::Unequal,
            TokenKind::Sign("<") => BinaryOperator::Less,
            TokenKind::Sign("<=") => BinaryOperator::AtMost,
            TokenKind::Sign(">") => BinaryOperator::More,
            TokenKind::Sign(">=") => BinaryOperator::AtLeast,
            TokenKind::Name(name) if name == "in" => BinaryOperator::In,
            _ => return None,
        })
    }

    /// Parses sums at level 0, products at level 1.
    fn operation(&mut self, level: usize) -> Result<CelExpr, CelError> {
        let part = |p: &mut CelParser| match level {
            0 => p.operation(1),
            _ => p.unary(),
        };
        let mut left = part(self)?;
        let mut links = self.depth;
        loop {
            let binary = match (level, self.peek()) {
                (0, TokenKind::Sign("+")) => BinaryOperator::Add,
                (0, TokenKind::Sign("-")) => BinaryOperator::Subtract,
                (1, TokenKind::Sign("*")) => BinaryOperator::Multiply,
                (1, TokenKind::Sign("/")) => BinaryOperator::Divide,
                (1, TokenKind::Sign("%")) => BinaryOperator::Remainder,
                _ => return Ok(left),
            };
            links += 1;
            if links > self.deepest {
                return Err((self.at(), too_deep(self.deepest)));
            }
            self.next += 1;
            left = CelExpr::Binary(binary, Box::new([left, part(self)?]));
        }
    }

    fn unary(&mut self) -> Result<CelExpr, CelError> {
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
        let wanted = if not {
            StaticType::Bool
        } else {
            StaticType::Number
        };
        match of {
            of if of.gives() != wanted && of.gives() != StaticType::Unknown => {
                let (sign, gives) = (if not { "!" } else { "-" }, of.gives().word());
                Err((at, format!("{sign} cannot be applied to {gives}")))
            }
            CelExpr::Int(int) => Ok(CelExpr::Int(-int)),
            CelExpr::Float(float) => Ok(CelExpr::Float(-float)),
            of if not => Ok(CelExpr::Not(Box::new(of))),
            of => Ok(CelExpr::Neg(Box::new(of))),
        }
    }

    fn member(&mut self) -> Result<CelExpr, CelError> {
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
                    CelExpr::Select(Box::new(expr), name)
                };
            } else if self.takes("[") {
                let index = self.expression()?;
                self.needs("]")?;
                expr = CelExpr::Index(Box::new(expr), Box::new(index));
            } else {
                return Ok(expr);
            }
        }
    }

    pub(super) fn name(&mut self, wanted: &str) -> Result<String, CelError> {
        match self.peek() {
            TokenKind::Name(name) if !matches!(name.as_str(), "in" | "true" | "false" | "null") => {
                let name = name.clone();
                self.next += 1;
                Ok(name)
            }
            _ => Err(self.unexpected(wanted)),
        }
    }

    fn primary(&mut self) -> Result<CelExpr, CelError> {
        let at = self.at();
        match self.peek() {
            TokenKind::Sign("(") => {
                self.next += 1;
                let inner = self.expression()?;
                self.needs(")")?;
                Ok(inner)
            }
            TokenKind::Sign("[") => {
                self.next += 1;
                Ok(CelExpr::List(self.list("]")?))
            }
            TokenKind::Sign("{") => {
                Err((at, "objects cannot be written in a condition".to_owned()))
            }
            TokenKind::Sign(_) | TokenKind::End => Err(self.unexpected("a value")),
            TokenKind::Name(name) if name == "in" => Err(self.unexpected("a value")),
            _ => match self.take() {
                TokenKind::Int(int) => Ok(CelExpr::Int(int.into())),
                TokenKind::Float(float) => Ok(CelExpr::Float(float)),
                TokenKind::Text(text) => Ok(CelExpr::Text(text)),
                TokenKind::Name(name) => self.named(name, at),
                TokenKind::Sign(_) | TokenKind::End => Err(self.unexpected("a value")),
            },
        }
    }

    /// Parses expressions separated by commas, up to the closing bracket.
    pub(super) fn list(&mut self, close: &str) -> Result<Vec<CelExpr>, CelError> {
        let mut parts = Vec::new();
        while !self.takes(close) {
            if !parts.is_empty() {
                self.needs(",")?;
            }
            parts.push(self.expression()?);
        }
        Ok(parts)
    }

    fn named(&mut self, name: String, at: usize) -> Result<CelExpr, CelError> {
        match name.as_str() {
            "true" => return Ok(CelExpr::Bool(true)),
            "false" => return Ok(CelExpr::Bool(false)),
            "null" => return Ok(CelExpr::Null),
            _ => {}
        }
        if self.takes("(") {
            return calls::function(self, &name, at);
        }
        if self.names.contains(&name) {
            return Ok(CelExpr::Var(name));
        }
        match name.as_str() {
            "args" => Ok(CelExpr::Args),
            "server" => Ok(CelExpr::Fact(CallFact::Server)),
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

    fn fact(&mut self, of: &str, at: usize) -> Result<CelExpr, CelError> {
        let fields = CallFact::ALL.iter().filter_map(|(name, fact)| {
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
            Some((_, fact)) => Ok(CelExpr::Fact(fact)),
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
