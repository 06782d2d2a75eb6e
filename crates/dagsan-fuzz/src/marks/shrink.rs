//! Smaller functions that one edit makes of a function.

use super::ast::{Function, Stmt};

/// All functions with one statement less, or with a part of a branch in its place. The reference may refuse some of them.
pub fn smaller(function: &Function) -> Vec<Function> {
    let with = |body: Vec<Stmt>| Function { body, ..function.clone() };
    blocks(&function.body).into_iter().map(with).collect()
}

fn blocks(block: &[Stmt]) -> Vec<Vec<Stmt>> {
    let mut all = Vec::new();
    for (at, stmt) in block.iter().enumerate() {
        let replaced = |by: &[Stmt]| [&block[..at], by, &block[at + 1..]].concat();
        all.push(replaced(&[]));
        if let Stmt::If { then, other, .. } = stmt {
            all.extend([then, other].into_iter().filter(|part| !part.is_empty()).map(|part| replaced(part)));
        }
        for number in 0..stmt.blocks().len() {
            for inner in blocks(stmt.blocks()[number]) {
                let mut changed = stmt.clone();
                *changed.blocks_mut()[number] = inner;
                all.push(replaced(&[changed]));
            }
        }
    }
    all
}
