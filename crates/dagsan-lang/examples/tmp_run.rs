//! Temporary.
use dagsan_lang::*;
fn main() {
    let s = std::fs::read_to_string(std::env::args().nth(1).unwrap()).unwrap();
    match Program::compile(&s, &Default::default()) { Err(d) => println!("{d:?}"), Ok(_) => println!("ok") }
}
