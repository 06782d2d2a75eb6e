//! The surface of the language: text to tree.

pub mod ast;
mod lexer;
mod parser;

pub use parser::parse;
