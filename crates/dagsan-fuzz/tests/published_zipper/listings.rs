//! Zipper's listings (paper 002, section 3.2), for async, finish and isolated: what the paper prints, with its
//! mistakes, as far as it can be run. The engine `zipper` is what we make of it.
//!
//! Repaired without asking, since nothing runs otherwise: line 21 of ASYNC_NODE analyses `n` again under a branch
//! number that is not its own; here it analyses the successor `n'` under `id`. RECURSIVE_ANALYZE goes on to
//! OTHER_NODE after the other two; here each node is analysed by one of the three.

use std::collections::BTreeSet;

use dagsan_core::Bytes;
use dagsan_fuzz::{Program, Stmt};

/// Which of the lines in question are read as the paper's text says.
#[derive(Clone, Copy)]
pub struct Reading {
    /// checkDown, line 7, and checkUp, line 8: sections come from the P-bag, not from the node's own branch.
    pub sections_of_the_bag: bool,
    /// checkUp, line 9: sections before slider↑ are looked at, not those after it.
    pub smaller_on_the_way_up: bool,
    /// What neither says: ASYNC_NODE, lines 27 and 28, also add the branches inside the branch.
    pub inner_branches: bool,
}

enum Kind {
    Async { next: [usize; 2], join: usize },
    Wait { opened_by: Option<usize>, next: usize },
    Other { section: Option<usize>, next: usize },
    End,
}

struct Node {
    kind: Kind,
    access: Option<(Bytes, bool)>,
}

type Set = BTreeSet<usize>;

/// The listings' variables. A slider that is NULL is before, or after, every section.
pub struct Published {
    reading: Reading,
    nodes: Vec<Node>,
    sections: usize,
    down: Vec<Set>,
    up: Vec<Set>,
    down_lambda: Vec<Set>,
    up_lambda: Vec<Set>,
    slider_down: Option<usize>,
    slider_up: usize,
    ready: Set,
    seen: Vec<Set>,
    of_branch: Vec<Set>,
    pairs: Vec<BTreeSet<(usize, usize)>>,
    bag_lambda: Vec<Set>,
    bag_sections: Vec<Set>,
    race: bool,
}

const NULL: usize = usize::MAX;

impl Published {
    /// Do the listings find a race?
    pub fn race(program: &Program, reading: Reading) -> bool {
        let mut zipper = Published {
            reading,
            nodes: Vec::new(),
            sections: 0,
            down: Vec::new(),
            up: Vec::new(),
            down_lambda: Vec::new(),
            up_lambda: Vec::new(),
            slider_down: None,
            slider_up: NULL,
            ready: Set::new(),
            seen: Vec::new(),
            of_branch: Vec::new(),
            pairs: Vec::new(),
            bag_lambda: vec![Set::new(); 2],
            bag_sections: vec![Set::new(); 2],
            race: false,
        };
        let end = zipper.node(Kind::End, None);
        let wait = zipper.node(Kind::Wait { opened_by: None, next: end }, None);
        let entry = zipper.build(&program.body, wait, wait);
        zipper.down = vec![Set::new(); zipper.sections];
        zipper.up = vec![Set::new(); zipper.sections];
        let main = zipper.new_branch();
        zipper.analyze(entry, main, 0, 1);
        zipper.race
    }

    // ---- the graph ---------------------------------------------------------------------------

    fn node(&mut self, kind: Kind, access: Option<(Bytes, bool)>) -> usize {
        self.nodes.push(Node { kind, access });
        self.nodes.len() - 1
    }

    /// The nodes of `body`, inside a finish that ends at `wait`; what follows is `next`. Sections are numbered
    /// as they run: depth first, which is the order of the text.
    fn build(&mut self, body: &[Stmt], next: usize, wait: usize) -> usize {
        let Some((first, rest)) = body.split_first() else { return next };
        match first {
            Stmt::Read { bytes, .. } | Stmt::Write { bytes, .. } => {
                let access = Some((*bytes, matches!(first, Stmt::Write { .. })));
                let node = self.node(Kind::End, access);
                self.nodes[node].kind = Kind::Other { section: None, next: self.build(rest, next, wait) };
                node
            }
            Stmt::Isolated(inner) if inner.is_empty() => {
                let section = Some(self.sections);
                self.sections += 1;
                let node = self.node(Kind::End, None);
                self.nodes[node].kind = Kind::Other { section, next: self.build(rest, next, wait) };
                node
            }
            Stmt::Async(inner) => {
                let node = self.node(Kind::End, None);
                // The first of a finish is the one that the wait node belongs to.
                if let Kind::Wait { opened_by: opened_by @ None, .. } = &mut self.nodes[wait].kind {
                    *opened_by = Some(node);
                }
                let child = self.build(inner, wait, wait);
                let goes_on = self.build(rest, next, wait);
                self.nodes[node].kind = Kind::Async { next: [child, goes_on], join: wait };
                node
            }
            Stmt::Finish(inner) => {
                let end = self.node(Kind::Wait { opened_by: None, next: NULL }, None);
                let entry = self.build(inner, end, end);
                // Its sections are numbered after those inside, so it is built after them.
                let after = self.build(rest, next, wait);
                if let Kind::Wait { next, .. } = &mut self.nodes[end].kind {
                    *next = after;
                }
                entry
            }
            other => panic!("the listings do not know {other:?}"),
        }
    }

    fn conflicts(&self, a: usize, b: usize) -> bool {
        let (Some((a, a_writes)), Some((b, b_writes))) = (self.nodes[a].access, self.nodes[b].access) else {
            return false;
        };
        (a_writes || b_writes) && a.start() < b.end() && b.start() < a.end()
    }

    // ---- the listings ------------------------------------------------------------------------

    fn new_branch(&mut self) -> usize {
        for sets in [&mut self.down_lambda, &mut self.up_lambda, &mut self.seen, &mut self.of_branch] {
            sets.push(Set::new());
        }
        self.pairs.push(BTreeSet::new());
        self.seen.len() - 1
    }

    fn new_bag(&mut self, like: Option<usize>) -> usize {
        let of = |bags: &[Set]| like.map_or_else(Set::new, |bag| bags[bag].clone());
        let (lambda, sections) = (of(&self.bag_lambda), of(&self.bag_sections));
        self.bag_lambda.push(lambda);
        self.bag_sections.push(sections);
        self.bag_lambda.len() - 1
    }

    fn analyze(&mut self, n: usize, branch: usize, s_bag: usize, p_bag: usize) {
        match self.nodes[n].kind {
            Kind::Async { next, join } => self.async_node(n, next, join, branch, s_bag, p_bag),
            Kind::Wait { opened_by, next } => {
                if opened_by.is_none_or(|node| self.ready.contains(&node)) {
                    self.analyze(next, branch, s_bag, p_bag);
                } else {
                    let seen = std::mem::take(&mut self.seen[branch]);
                    self.down_lambda[branch].extend(seen);
                }
            }
            Kind::Other { section, next } => self.other_node(n, section, next, branch, s_bag, p_bag),
            Kind::End => {}
        }
    }

    fn async_node(
        &mut self,
        n: usize,
        next: [usize; 2],
        join: usize,
        branch: usize,
        s_bag: usize,
        p_bag: usize,
    ) {
        let thread_bag = self.new_bag(Some(p_bag));
        let (up, down) = (self.slider_up, self.slider_down);
        let (mut least_up, mut most_down) = (up, down);
        for successor in next {
            (self.slider_up, self.slider_down) = (up, down);
            let id = self.new_branch();
            let new_bag = self.new_bag(None);
            self.analyze(successor, id, new_bag, thread_bag);
            self.up_lambda[id] = self.seen[id].clone();
            least_up = least_up.min(self.slider_up);
            most_down = most_down.max(self.slider_down);
            let (mut branches, mut sections) = (Set::from([id]), self.of_branch[id].clone());
            if self.reading.inner_branches {
                branches.extend(&self.bag_lambda[new_bag]);
                sections.extend(&self.bag_sections[new_bag]);
            }
            for bag in [s_bag, thread_bag] {
                self.bag_lambda[bag].extend(&branches);
                self.bag_sections[bag].extend(&sections);
            }
        }
        self.slider_down = most_down;
        self.ready.insert(n);
        self.analyze(join, branch, s_bag, p_bag);
        self.slider_up = least_up;
    }

    fn other_node(
        &mut self,
        n: usize,
        section: Option<usize>,
        next: usize,
        branch: usize,
        s_bag: usize,
        p_bag: usize,
    ) {
        self.seen[branch].insert(n);
        if let Some(section) = section {
            self.slider_down = Some(section);
            if section + 1 < self.sections {
                let seen = std::mem::take(&mut self.seen[branch]);
                self.down[section].extend(seen);
                self.of_branch[branch].insert(section);
            }
        }
        self.check_down(n, branch, p_bag);
        self.analyze(next, branch, s_bag, p_bag);
        self.check_up(n, branch, p_bag);
        self.seen[branch].insert(n);
        if let Some(section) = section {
            self.slider_up = section;
            if section > 0 {
                let seen = std::mem::take(&mut self.seen[branch]);
                self.up[section].extend(seen);
                self.of_branch[branch].insert(section);
            }
        }
    }

    fn sections_to_check(&self, branch: usize, p_bag: usize) -> Set {
        let bags = if self.reading.sections_of_the_bag {
            &self.bag_sections[p_bag]
        } else {
            &self.of_branch[branch]
        };
        bags.clone()
    }

    fn check_down(&mut self, n: usize, branch: usize, p_bag: usize) {
        for &other in &self.bag_lambda[p_bag] {
            self.pairs[branch].extend(self.down_lambda[other].iter().map(|&earlier| (n, earlier)));
        }
        for section in self.sections_to_check(branch, p_bag) {
            if Some(section) > self.slider_down {
                self.pairs[branch].extend(self.down[section].iter().map(|&earlier| (n, earlier)));
            }
        }
    }

    fn check_up(&mut self, n: usize, branch: usize, p_bag: usize) {
        let mut earlier: Set =
            self.bag_lambda[p_bag].iter().flat_map(|&b| self.up_lambda[b].clone()).collect();
        for section in self.sections_to_check(branch, p_bag) {
            let skip = if self.reading.smaller_on_the_way_up {
                section >= self.slider_up
            } else {
                self.slider_up != NULL && section <= self.slider_up
            };
            if !skip {
                earlier.extend(&self.up[section]);
            }
        }
        let found = |&e: &usize| self.pairs[branch].contains(&(n, e)) && self.conflicts(n, e);
        self.race |= earlier.iter().any(found);
    }
}
