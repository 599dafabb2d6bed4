//! Lexer of CEL conditions.

/// A lexical token, without its position.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum TokenKind {
    /// An identifier, or a keyword such as `in`.
    Name(String),
    /// An integer literal, without its sign.
    Int(u64),
    /// A number literal with a point or an exponent.
    Float(f64),
    /// A string literal, without escapes.
    Text(String),
    /// An operator or a bracket.
    Operator(&'static str),
    /// The end of the text.
    End,
}

/// A token with its byte offset.
#[derive(Clone, Debug)]
pub(super) struct CelToken {
    pub(super) kind: TokenKind,
    pub(super) at: usize,
}

/// A syntax error: byte offset and message.
pub(super) type CelError = (usize, String);

/// Operators and brackets, longer ones first.
const OPERATORS: &[&str] = &[
    "&&", "||", "==", "!=", "<=", ">=", "<", ">", "+", "-", "*", "/", "%", "!", "?", ":", ",", ".",
    "(", ")", "[", "]", "{", "}",
];

/// Splits a text into tokens, with [`TokenKind::End`] as the last.
pub(super) fn tokenize(text: &str) -> Result<Vec<CelToken>, CelError> {
    let mut tokens = Vec::new();
    let mut at = 0;
    while let Some(first) = text[at..].chars().next() {
        let rest = &text[at..];
        let (word, length) = match first {
            c if c.is_ascii_whitespace() => {
                at += 1;
                continue;
            }
            '/' if rest.starts_with("//") => {
                at += rest.find('\n').unwrap_or(rest.len());
                continue;
            }
            '"' | '\'' => quoted(rest, first).map_err(|wrong| (at, wrong))?,
            c if c.is_ascii_digit() => number(rest).map_err(|wrong| (at, wrong))?,
            c if c.is_ascii_alphabetic() || c == '_' => name(rest).map_err(|wrong| (at, wrong))?,
            c => sign(rest, c).map_err(|wrong| (at, wrong))?,
        };
        tokens.push(CelToken { kind: word, at });
        at += length;
    }
    tokens.push(CelToken {
        kind: TokenKind::End,
        at: text.len(),
    });
    Ok(tokens)
}

fn sign(rest: &str, first: char) -> Result<(TokenKind, usize), String> {
    if let Some(sign) = OPERATORS.iter().find(|sign| rest.starts_with(**sign)) {
        return Ok((TokenKind::Operator(sign), sign.len()));
    }
    Err(match first {
        '=' => "a single = is not an operator; write ==".to_owned(),
        '&' => "a single & is not an operator; write &&".to_owned(),
        '|' => "a single | is not an operator; write ||".to_owned(),
        other => format!("unexpected character {other:?}"),
    })
}

fn name(rest: &str) -> Result<(TokenKind, usize), String> {
    let more = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let length = rest.find(|c| !more(c)).unwrap_or(rest.len());
    if rest[length..].starts_with(['"', '\'']) && length <= 2 {
        return Err("strings with a prefix (raw strings, bytes) are not supported".to_owned());
    }
    Ok((TokenKind::Name(rest[..length].to_owned()), length))
}

fn number(rest: &str) -> Result<(TokenKind, usize), String> {
    let bytes = rest.as_bytes();
    let digits = |from: usize| {
        let more = bytes[from..].iter().take_while(|b| b.is_ascii_digit());
        from + more.count()
    };
    if rest.starts_with("0x") {
        return Err("hexadecimal numbers are not supported".to_owned());
    }
    let (mut end, mut float) = (digits(0), false);
    if bytes.get(end) == Some(&b'.') && bytes.get(end + 1).is_some_and(u8::is_ascii_digit) {
        (end, float) = (digits(end + 1), true);
    }
    if matches!(bytes.get(end), Some(b'e' | b'E')) {
        let signed = usize::from(matches!(bytes.get(end + 1), Some(b'+' | b'-')));
        let from = end + 1 + signed;
        if !bytes.get(from).is_some_and(u8::is_ascii_digit) {
            return Err("the exponent of this number has no digits".to_owned());
        }
        (end, float) = (digits(from), true);
    }
    let text = &rest[..end];
    let word = if float {
        let float = text.parse::<f64>().ok().filter(|float| float.is_finite());
        TokenKind::Float(float.ok_or("this number is too large")?)
    } else {
        TokenKind::Int(text.parse().map_err(|_| "this number is too large")?)
    };
    // CEL marks unsigned integers with `u`; here all integers have one type.
    let unsigned = usize::from(!float && matches!(bytes.get(end), Some(b'u' | b'U')));
    match bytes.get(end + unsigned) {
        Some(b) if b.is_ascii_alphanumeric() || *b == b'_' => {
            Err("a letter or digit or _ directly follows a number".to_owned())
        }
        _ => Ok((word, end + unsigned)),
    }
}

fn quoted(rest: &str, quote: char) -> Result<(TokenKind, usize), String> {
    let mut text = String::new();
    let mut chars = rest.char_indices().skip(1);
    while let Some((at, c)) = chars.next() {
        match c {
            c if c == quote => return Ok((TokenKind::Text(text), at + 1)),
            '\\' => text.push(escape(&mut chars)?),
            '\n' => break,
            c => text.push(c),
        }
    }
    Err(format!("this string is not closed; {quote} is missing"))
}

fn escape(chars: &mut impl Iterator<Item = (usize, char)>) -> Result<char, String> {
    let digits = match chars.next().map(|(_, c)| c) {
        Some(same @ ('\\' | '"' | '\'' | '`' | '?')) => return Ok(same),
        Some('n') => return Ok('\n'),
        Some('r') => return Ok('\r'),
        Some('t') => return Ok('\t'),
        Some('x') => 2,
        Some('u') => 4,
        Some('U') => 8,
        _ => return Err("this escape sequence is unknown; write \\\\ for a backslash".to_owned()),
    };
    let hex: String = chars.take(digits).map(|(_, c)| c).collect();
    let whole = hex.len() == digits && hex.bytes().all(|b| b.is_ascii_hexdigit());
    let code = u32::from_str_radix(&hex, 16).ok().filter(|_| whole);
    code.and_then(char::from_u32).ok_or_else(|| {
        format!(
            "this escape sequence needs {digits} hexadecimal digits that denote a Unicode character"
        )
    })
}
