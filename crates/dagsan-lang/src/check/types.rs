//! Types and their unification.
//!
//! A type is a node in a union-find forest. Two array types that are unified become one node, so the root of
//! an array's type is also the set of arrays that it may alias (Steensgaard's analysis, for free):
//! the eliminations live on that. Recursive types (an array of itself) are allowed: nodes are merged
//! before their parts are, so unification ends.

/// A type: a node of [`Types`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Ty(u32);

impl Ty {
    /// The node as a table index.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// What a node is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Type {
    /// Not known yet.
    Unknown,
    /// Integers.
    Int,
    /// Truth values.
    Bool,
    /// No value: what `set p;` and procedures without a result give.
    Nothing,
    /// A reference to an array of such elements.
    Array(Ty),
    /// A handle of a promise or future, `sort` says which, and what it gives.
    Handle {
        /// [`Type::Promise`] or [`Type::Future`].
        sort: Ty,
        /// What `get` gives.
        gives: Ty,
    },
    /// The sort of promises.
    Promise,
    /// The sort of futures.
    Future,
    /// The same as another node.
    Same(Ty),
}

/// All types of a program.
#[derive(Debug)]
pub struct Types {
    nodes: Vec<Type>,
}

impl Types {
    /// `int`
    pub const INT: Ty = Ty(0);
    /// `bool`
    pub const BOOL: Ty = Ty(1);
    /// nothing
    pub const NOTHING: Ty = Ty(2);
    /// The sort of promises
    pub const PROMISE: Ty = Ty(3);
    /// The sort of futures
    pub const FUTURE: Ty = Ty(4);

    /// The basic types.
    pub fn new() -> Types {
        Types { nodes: vec![Type::Int, Type::Bool, Type::Nothing, Type::Promise, Type::Future] }
    }

    /// How many nodes there are.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// A new node.
    pub fn add(&mut self, ty: Type) -> Ty {
        self.nodes.push(ty);
        Ty(self.nodes.len() as u32 - 1)
    }

    /// A new type of which nothing is known.
    pub fn unknown(&mut self) -> Ty {
        self.add(Type::Unknown)
    }

    /// The node that stands for `ty`.
    pub fn root(&self, mut ty: Ty) -> Ty {
        while let Type::Same(next) = self.nodes[ty.index()] {
            ty = next;
        }
        ty
    }

    /// What is known of `ty`.
    pub fn get(&self, ty: Ty) -> Type {
        self.nodes[self.root(ty).index()]
    }

    /// Makes two types the same. `false` if they cannot be.
    pub fn unify(&mut self, a: Ty, b: Ty) -> bool {
        // A work list: the depth of types is not bounded by that of the program's text.
        let mut pending = vec![(a, b)];
        let mut same = true;
        while let Some((a, b)) = pending.pop() {
            let (a, b) = (self.root(a), self.root(b));
            if a == b {
                continue;
            }
            let (of_a, of_b) = (self.nodes[a.index()], self.nodes[b.index()]);
            match (of_a, of_b) {
                (Type::Unknown, _) => self.nodes[a.index()] = Type::Same(b),
                (_, Type::Unknown) => self.nodes[b.index()] = Type::Same(a),
                (Type::Array(x), Type::Array(y)) => {
                    self.nodes[a.index()] = Type::Same(b);
                    pending.push((x, y));
                }
                (Type::Handle { sort: s, gives: x }, Type::Handle { sort: t, gives: y }) => {
                    self.nodes[a.index()] = Type::Same(b);
                    pending.extend([(s, t), (x, y)]);
                }
                _ => same = false,
            }
        }
        same
    }

    /// The types of all that promises and futures give.
    pub fn all_given(&self) -> impl Iterator<Item = Ty> {
        self.nodes.iter().filter_map(|node| match *node {
            Type::Handle { gives, .. } => Some(gives),
            _ => None,
        })
    }

    /// The type in a message.
    pub fn describe(&self, ty: Ty) -> String {
        self.describe_to(ty, 4)
    }

    fn describe_to(&self, ty: Ty, depth: u32) -> String {
        if depth == 0 {
            return "…".to_owned();
        }
        match self.get(ty) {
            Type::Unknown => "an unknown type".to_owned(),
            Type::Int => "int".to_owned(),
            Type::Bool => "bool".to_owned(),
            Type::Nothing => "nothing".to_owned(),
            Type::Array(element) => match self.get(element) {
                Type::Unknown => "an array".to_owned(),
                _ => format!("[{}]", self.describe_to(element, depth - 1)),
            },
            Type::Handle { sort, gives } => {
                let sort = match self.get(sort) {
                    Type::Promise => "promise",
                    Type::Future => "future",
                    _ => "promise or future",
                };
                match self.get(gives) {
                    Type::Unknown | Type::Nothing => sort.to_owned(),
                    _ => format!("{sort} of {}", self.describe_to(gives, depth - 1)),
                }
            }
            Type::Promise => "promise".to_owned(),
            Type::Future => "future".to_owned(),
            Type::Same(_) => unreachable!("a root is not the same as another node"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrays_that_meet_become_one_class() {
        let mut types = Types::new();
        let (x, y) = (types.unknown(), types.unknown());
        let (a, b) = (types.add(Type::Array(x)), types.add(Type::Array(y)));
        assert_ne!(types.root(a), types.root(b));
        assert!(types.unify(a, b));
        assert_eq!(types.root(a), types.root(b));
        assert!(types.unify(x, Types::INT));
        assert_eq!(types.describe(b), "[int]");
        assert!(!types.unify(y, Types::BOOL));
    }

    #[test]
    fn recursive_types_end() {
        let mut types = Types::new();
        let (x, y) = (types.unknown(), types.unknown());
        let (a, b) = (types.add(Type::Array(x)), types.add(Type::Array(y)));
        assert!(types.unify(x, a) && types.unify(y, b) && types.unify(a, b));
        assert_eq!(types.describe(a), "[[[[…]]]]");
    }
}
