//! Parser of CEL conditions. It rejects expressions that fail on every call, with the position of the error.

use super::{
    calls,
    lex::{CelError, CelToken, TokenKind, tokenize},
    tree::{BinaryOperator, CallFact, CelExpr, StaticType},
};

/// A recursive descent parser over tokens.
pub(super) struct CelParser {
    tokens: Vec<CelToken>,
    next: usize,
    depth: usize,
    max_depth: usize,
    /// Variables in scope, outermost first.
    pub(super) names: Vec<String>,
}

/// Parses a condition with a maximum nesting of `max_depth`.
pub(super) fn parse(text: &str, deepest: usize) -> Result<CelExpr, CelError> {
    let mut parser = CelParser {
        tokens: tokenize(text)?,
        next: 0,
        depth: 0,
        max_depth: deepest,
        names: Vec::new(),
    };
    if *parser.peek() == TokenKind::End {
        return Err((0, "the condition is empty".to_owned()));
    }
    let expr = parser.expression()?;
    match parser.peek() {
        TokenKind::End if matches!(expr.static_type(), StaticType::Bool | StaticType::Unknown) => {
            Ok(expr)
        }
        TokenKind::End => {
            let wrong = format!(
                "the result of the condition is {}, not a boolean",
                expr.static_type().name()
            );
            Err((0, wrong))
        }
        _ => Err(parser.unexpected("an operator or the end of the condition")),
    }
}

impl CelParser {
    pub(super) fn at(&self) -> usize {
        self.tokens.get(self.next).map_or(0, |token| token.at)
    }

    fn peek(&self) -> &TokenKind {
        let token = self.tokens.get(self.next);
        token.map_or(&TokenKind::End, |token| &token.kind)
    }

    fn take(&mut self) -> TokenKind {
        let word = self.peek().clone();
        self.next += 1;
        word
    }

    /// Consumes the next token if it is this operator or bracket.
    pub(super) fn accept(&mut self, sign: &str) -> bool {
        let is = matches!(self.peek(), TokenKind::Operator(next) if *next == sign);
        self.next += usize::from(is);
        is
    }

    pub(super) fn expect(&mut self, sign: &str) -> Result<(), CelError> {
        if self.accept(sign) {
            Ok(())
        } else {
            Err(self.unexpected(sign))
        }
    }

    fn unexpected(&self, wanted: &str) -> CelError {
        let found = match self.peek() {
            TokenKind::End => "unexpected end of the condition".to_owned(),
            TokenKind::Name(name) => format!("unexpected {name}"),
            TokenKind::Operator(sign) => format!("unexpected {sign}"),
            TokenKind::Int(_) | TokenKind::Float(_) => "unexpected number".to_owned(),
            TokenKind::Text(_) => "unexpected string".to_owned(),
        };
        (self.at(), format!("{found}, expected {wanted}"))
    }

    /// Parses `a ? b : c` and everything with a higher precedence.
    pub(super) fn expression(&mut self) -> Result<CelExpr, CelError> {
        self.depth += 1;
        if self.depth > self.max_depth {
            return Err((self.at(), too_deep(self.max_depth)));
        }
        let test = self.chain("||", CelExpr::Any, |p| {
            p.chain("&&", CelExpr::All, CelParser::comparison)
        })?;
        let expr = if self.accept("?") {
            let yes = self.expression()?;
            self.expect(":")?;
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
        while self.accept(sign) {
            parts.push((self.at(), part(self)?));
        }
        if parts.len() == 1 {
            return Ok(parts.remove(0).1);
        }
        for (at, part) in &parts {
            if !matches!(part.static_type(), StaticType::Bool | StaticType::Unknown) {
                let gives = part.static_type().name();
                let wrong = format!("{sign} needs a boolean on both sides, not {gives}");
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
            let wrong = "comparisons cannot be chained; join two comparisons with &&".to_owned();
            return Err((self.at(), wrong));
        }
        let (l, r) = (left.static_type(), right.static_type());
        let known = |gives| !matches!(gives, StaticType::Unknown | StaticType::Null);
        if binary != BinaryOperator::In && known(l) && known(r) && l != r {
            let wrong = format!("cannot compare {} with {}", l.name(), r.name());
            return Err((at, wrong));
        }
        Ok(CelExpr::Binary(binary, Box::new([left, right])))
    }

    fn compares(&self) -> Option<BinaryOperator> {
        Some(match self.peek() {
            TokenKind::Operator("==") => BinaryOperator::Equal,
            TokenKind::Operator("!=") => BinaryOperator::Unequal,
            TokenKind::Operator("<") => BinaryOperator::Less,
            TokenKind::Operator("<=") => BinaryOperator::AtMost,
            TokenKind::Operator(">") => BinaryOperator::More,
            TokenKind::Operator(">=") => BinaryOperator::AtLeast,
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
                (0, TokenKind::Operator("+")) => BinaryOperator::Add,
                (0, TokenKind::Operator("-")) => BinaryOperator::Subtract,
                (1, TokenKind::Operator("*")) => BinaryOperator::Multiply,
                (1, TokenKind::Operator("/")) => BinaryOperator::Divide,
                (1, TokenKind::Operator("%")) => BinaryOperator::Remainder,
                _ => return Ok(left),
            };
            links += 1;
            if links > self.max_depth {
                return Err((self.at(), too_deep(self.max_depth)));
            }
            self.next += 1;
            left = CelExpr::Binary(binary, Box::new([left, part(self)?]));
        }
    }

    fn unary(&mut self) -> Result<CelExpr, CelError> {
        let not = self.accept("!");
        if !not && !self.accept("-") {
            return self.member();
        }
        self.depth += 1;
        if self.depth > self.max_depth {
            return Err((self.at(), too_deep(self.max_depth)));
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
            of if of.static_type() != wanted && of.static_type() != StaticType::Unknown => {
                let (sign, gives) = (if not { "!" } else { "-" }, of.static_type().name());
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
            if links > self.max_depth {
                return Err((self.at(), too_deep(self.max_depth)));
            }
            if self.accept(".") {
                let at = self.at();
                let name = self.name("the name of a field")?;
                expr = if self.accept("(") {
                    calls::method(self, expr, &name, at)?
                } else {
                    CelExpr::Select(Box::new(expr), name)
                };
            } else if self.accept("[") {
                let index = self.expression()?;
                self.expect("]")?;
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
            TokenKind::Operator("(") => {
                self.next += 1;
                let inner = self.expression()?;
                self.expect(")")?;
                Ok(inner)
            }
            TokenKind::Operator("[") => {
                self.next += 1;
                Ok(CelExpr::List(self.list("]")?))
            }
            TokenKind::Operator("{") => Err((at, "object literals are not supported".to_owned())),
            TokenKind::Operator(_) | TokenKind::End => Err(self.unexpected("a value")),
            TokenKind::Name(name) if name == "in" => Err(self.unexpected("a value")),
            _ => match self.take() {
                TokenKind::Int(int) => Ok(CelExpr::Int(int.into())),
                TokenKind::Float(float) => Ok(CelExpr::Float(float)),
                TokenKind::Text(text) => Ok(CelExpr::Text(text)),
                TokenKind::Name(name) => self.named(name, at),
                TokenKind::Operator(_) | TokenKind::End => Err(self.unexpected("a value")),
            },
        }
    }

    /// Parses expressions separated by commas, up to the closing bracket.
    pub(super) fn list(&mut self, close: &str) -> Result<Vec<CelExpr>, CelError> {
        let mut parts = Vec::new();
        while !self.accept(close) {
            if !parts.is_empty() {
                self.expect(",")?;
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
        if self.accept("(") {
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
                Err((at, calls::unknown_name_message("name", other, known)))
            }
        }
    }

    fn fact(&mut self, of: &str, at: usize) -> Result<CelExpr, CelError> {
        let fields = CallFact::ALL.iter().filter_map(|(name, fact)| {
            let (whose, field) = name.split_once('.')?;
            (whose == of).then_some((field, *fact))
        });
        if !self.accept(".") {
            let fields: Vec<&str> = fields.map(|(field, _)| field).collect();
            let wrong = format!(
                "{of} has no value of its own; use one of its fields: {}",
                fields.join(", ")
            );
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
                Err((at, calls::unknown_name_message(&what, &name, known)))
            }
        }
    }
}

fn too_deep(deepest: usize) -> String {
    format!("the condition is nested more than {deepest} levels deep; simplify it")
}
