//! Text to tokens.

use crate::ast::Position;
use crate::error::SyntaxError;

/// A token and where it starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Token<'a> {
    pub(crate) position: Position,
    pub(crate) kind: TokenKind<'a>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TokenKind<'a> {
    /// A name or a keyword.
    Word(&'a str),
    Number(i64),
    /// An operator or a bracket.
    Symbol(&'static str),
    End,
}

/// Longest first: the first that fits is taken.
const SYMBOLS: [&str; 26] = [
    "<<", ">>", "==", "!=", "<=", ">=", "&&", "||", "+", "-", "*", "/", "%", "&", "|", "^", "<",
    ">", "=", "!", "(", ")", "{", "}", ",", ";",
];

/// Cuts the text into tokens; the last is [`TokenKind::End`]. `//` starts a comment.
pub(crate) fn tokens(text: &str) -> Result<Vec<Token<'_>>, SyntaxError> {
    let mut tokens = Vec::new();
    let mut line = 0;
    for text in text.lines() {
        line += 1;
        let mut rest = text;
        loop {
            rest = rest.trim_start();
            if rest.is_empty() || rest.starts_with("//") {
                break;
            }
            let position = Position { line, column: (text.len() - rest.len() + 1) as u32 };
            let (kind, length) = token(rest, position)?;
            tokens.push(Token { position, kind });
            rest = &rest[length..];
        }
    }
    tokens.push(Token { position: Position { line: line + 1, column: 1 }, kind: TokenKind::End });
    Ok(tokens)
}

/// The token at the start of `text`, which is not empty, and its length in bytes.
fn token(text: &str, position: Position) -> Result<(TokenKind<'_>, usize), SyntaxError> {
    let word = text.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(text.len());
    if text.starts_with(|c: char| c.is_ascii_digit()) {
        let number = text[..word].parse().map_err(|_| SyntaxError::number(position))?;
        return Ok((TokenKind::Number(number), word));
    }
    if word > 0 {
        return Ok((TokenKind::Word(&text[..word]), word));
    }
    match SYMBOLS.iter().find(|symbol| text.starts_with(**symbol)) {
        Some(symbol) => Ok((TokenKind::Symbol(symbol), symbol.len())),
        None => Err(SyntaxError::character(position, text.chars().next().unwrap_or(' '))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_count_lines_and_columns_from_one() {
        let tokens = tokens("a // rest\n\n  <<b").unwrap();
        let seen: Vec<_> =
            tokens.iter().map(|t| (t.position.line, t.position.column, t.kind)).collect();
        assert_eq!(
            seen,
            [
                (1, 1, TokenKind::Word("a")),
                (3, 3, TokenKind::Symbol("<<")),
                (3, 5, TokenKind::Word("b")),
                (4, 1, TokenKind::End),
            ]
        );
    }

    #[test]
    fn a_number_too_large_and_a_stray_character_are_errors() {
        assert_eq!(tokens("9223372036854775808").unwrap_err().position.column, 1);
        assert_eq!(tokens("a €").unwrap_err().position.column, 3);
    }
}
