//! The dynamic program structure tree (paper 000, section 4.1, after Raman et al. 2012).
//!
//! Leaves are steps; inner nodes are tasks and scopes. Of two steps, the left one precedes the right one
//! unless the child of their lowest common ancestor on the left side is a task. A scope that turns out
//! not to join all that was started in it is *open*: it is looked through, as if its children were its
//! parent's.

/// A node of the tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct NodeId(u32);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A leaf.
    Step,
    /// A task: parallel to what is right of it, below the same parent.
    Async,
    /// A scope that joins all that was started in it.
    Finish,
    /// A scope that does not.
    Open,
}

#[derive(Debug, Clone, Copy)]
struct Node {
    parent: u32,
    depth: u32,
    /// Its place among its siblings.
    place: u32,
    /// How many children it has.
    children: u32,
    kind: Kind,
}

#[derive(Debug)]
pub(super) struct Dpst {
    nodes: Vec<Node>,
}

impl Dpst {
    pub(super) const ROOT: NodeId = NodeId(0);

    pub(super) fn new() -> Dpst {
        let root = Node { parent: 0, depth: 0, place: 0, children: 0, kind: Kind::Finish };
        Dpst { nodes: vec![root] }
    }

    pub(super) fn clear(&mut self) {
        self.nodes.truncate(1);
        self.nodes[0].children = 0;
    }

    /// Adds a child at the right of the others.
    pub(super) fn push(&mut self, parent: NodeId, kind: Kind) -> NodeId {
        let above = &mut self.nodes[parent.0 as usize];
        let (place, depth) = (above.children, above.depth + 1);
        above.children += 1;
        self.nodes.push(Node { parent: parent.0, depth, place, children: 0, kind });
        NodeId(self.nodes.len() as u32 - 1)
    }

    pub(super) fn parent(&self, node: NodeId) -> NodeId {
        NodeId(self.nodes[node.0 as usize].parent)
    }

    pub(super) fn set_kind(&mut self, node: NodeId, kind: Kind) {
        self.nodes[node.0 as usize].kind = kind;
    }

    /// Does step `a` precede step `b` by tree joins alone?
    pub(super) fn precedes(&self, a: NodeId, b: NodeId) -> bool {
        let (mut x, mut y) = (a.0, b.0);
        if x == y {
            return true;
        }
        let node = |at: u32| &self.nodes[at as usize];
        while node(x).depth > node(y).depth {
            x = node(x).parent;
        }
        while node(y).depth > node(x).depth {
            y = node(y).parent;
        }
        while node(x).parent != node(y).parent {
            (x, y) = (node(x).parent, node(y).parent);
        }
        if node(x).place > node(y).place {
            return false;
        }
        // The child of the common ancestor on a's side, looking through open scopes.
        while node(x).kind == Kind::Open {
            let depth = node(x).depth + 1;
            x = a.0;
            while node(x).depth > depth {
                x = node(x).parent;
            }
        }
        node(x).kind != Kind::Async
    }

    pub(super) fn memory(&self) -> usize {
        self.nodes.capacity() * size_of::<Node>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_are_parallel_to_what_is_right_of_them_until_their_scope_ends() {
        let mut tree = Dpst::new();
        let before = tree.push(Dpst::ROOT, Kind::Step);
        let finish = tree.push(Dpst::ROOT, Kind::Finish);
        let task = tree.push(finish, Kind::Async);
        let inside = tree.push(task, Kind::Step);
        let beside = tree.push(finish, Kind::Step);
        let after = tree.push(Dpst::ROOT, Kind::Step);
        assert!(tree.precedes(before, inside) && tree.precedes(inside, after));
        assert!(!tree.precedes(inside, beside) && !tree.precedes(beside, inside));
        tree.set_kind(finish, Kind::Open);
        assert!(!tree.precedes(inside, after) && tree.precedes(beside, after));
    }
}
