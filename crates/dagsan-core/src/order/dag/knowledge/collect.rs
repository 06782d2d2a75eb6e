//! Lets go set events that answer nothing any more, and the knowledge that is left without any.
//!
//! **What can be asked.** Whether a set event in some knowledge is at or after `l`, where `l` is a strand that the
//! history still remembers or a release that is still kept; call all of these *asked*. Strands and releases to come are
//! after all set events that there are. The knowledge is that of a *root* (a task, a promise that was set, a kept release, …)
//! or is made of roots and of new set events later.
//!
//! **What may go.** For a set event `p` of a node let U(p) be those of the asked that are at or before `p`.
//!
//! ```text
//!   p may go   <=   U(p) is empty,
//!              or   its node is no root, and every node M that includes it has an event q with U(p) before q
//! ```
//!
//! Proof that no answer changes: let a root R know `p`, and let `l` be in U(p). Take a way from R down to the node of
//! `p`. If `p` went, it was not because of an empty U(p); so the node of `p` is no root, and the node before it on the way has
//! a `q` after `l`. If `q` went too, there is another one further up; R itself is a root, and its events after `l` all stay.
//! Knowledge that is dropped when all its events SP-precede a position has lost nothing either: the events that stay are after
//! all `l` that those were after which went.
//!
//! In a chain of futures, where each gets the one before, all but the last link may go, although what the main task did before it
//! started them is before them all: it is also before the last.
//!
//! **How U(p) is compared.** A position is a point of the plane, by its places in the English and in the Hebrew order;
//! U(p) are the asked below and to the left of `p`, and they are all before `q` exactly if the last of them in English order
//! and the last of them in Hebrew order are. These two are found for all `p` by a sweep in English order (see [`Sweep`]).
//! The cost is O(n log n) for n positions; [`crate::order::Order::collect`] says when it is paid.

use rustc_hash::FxHashMap;

use super::{Knowledge, Known, NOTHING, Node, Point, SetEvent};
use crate::order::sp::{Position, Ranks, SeriesParallel};

/// The last of some positions in both orders, by rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Last {
    english: u32,
    hebrew: u32,
}

const UNREACHED: u8 = 0;
const REACHED: u8 = 1;
const ROOT: u8 = 2;

impl Knowledge {
    /// Forgets what answers nothing. `asked` are the positions of all that will be asked about; `roots` shows all
    /// knowledge that somebody has, and must show the same both times it is called.
    pub(in super::super) fn collect(
        &mut self,
        sp: &SeriesParallel,
        asked: Vec<Position>,
        mut roots: impl FnMut(&mut dyn FnMut(&mut Known)),
    ) {
        if self.nodes.len() == 1 {
            return;
        }
        let mut marks = vec![UNREACHED; self.nodes.len()];
        roots(&mut |known| marks[known.0 as usize] = ROOT);
        for number in (1..self.nodes.len()).rev() {
            if marks[number] != UNREACHED {
                for part in parts(&self.nodes[number], &self.included) {
                    let mark = &mut marks[part.0 as usize];
                    *mark = (*mark).max(REACHED);
                }
            }
        }
        let ranks = sp.ranks();
        let needed = self.needed(&ranks, &marks, asked);
        let renamed = self.rebuild(sp, &marks, &needed);
        roots(&mut |known| *known = renamed[known.0 as usize]);
        self.memo.fill((crate::ids::StrandId(0), Known::NOTHING, false));
    }

    /// Which of the points are needed.
    fn needed(&self, ranks: &Ranks, marks: &[u8], asked: Vec<Position>) -> Vec<bool> {
        let mut sweep = Sweep::new(ranks, asked);
        let mut order: Vec<u32> = Vec::new();
        for (node, _) in self.nodes.iter().zip(marks).filter(|(_, mark)| **mark != UNREACHED) {
            order.extend(node.first_point..node.first_point + node.points);
        }
        order.sort_unstable_by_key(|&point| ranks.english(self.points[point as usize].at));
        // The last asked before each point, if there are any.
        let mut before: Vec<Option<Last>> = vec![None; self.points.len()];
        for point in order {
            before[point as usize] = sweep.before(self.points[point as usize].at);
        }
        let mut needed = vec![false; self.points.len()];
        for (node, &mark) in self.nodes.iter().zip(marks) {
            let own = node.first_point as usize..(node.first_point + node.points) as usize;
            if mark == ROOT {
                own.for_each(|point| needed[point] = before[point].is_some());
            }
        }
        for (node, _) in self.nodes.iter().zip(marks).filter(|(_, mark)| **mark != UNREACHED) {
            let above = self.points(node);
            for part in parts(node, &self.included) {
                let part = self.node(part);
                for point in part.first_point as usize..(part.first_point + part.points) as usize {
                    if let Some(last) = before[point]
                        && !needed[point]
                    {
                        needed[point] = !covers(ranks, above, &self.points[point], last);
                    }
                }
            }
        }
        needed
    }

    /// Makes all nodes anew that were reached, of the points that are needed. Returns the new name of each old node.
    fn rebuild(&mut self, sp: &SeriesParallel, marks: &[u8], needed: &[bool]) -> Vec<Known> {
        let nodes = std::mem::replace(&mut self.nodes, vec![NOTHING]);
        let points = std::mem::take(&mut self.points);
        let included = std::mem::take(&mut self.included);
        let mut renamed = vec![Known::NOTHING; nodes.len()];
        // Nodes without points are sets of others, and the same set is one node.
        let mut sets: FxHashMap<Vec<Known>, Known> = FxHashMap::default();
        let (mut events, mut more) = (Vec::new(), Vec::new());
        for (number, node) in
            nodes.iter().enumerate().skip(1).filter(|(number, _)| marks[*number] != UNREACHED)
        {
            let own = node.first_point as usize..(node.first_point + node.points) as usize;
            events.clear();
            events.extend(own.filter(|&point| needed[point]).map(|point| {
                let Point { at, clock, learnt, .. } = points[point];
                SetEvent { at, clock, learnt, known: Known::NOTHING }
            }));
            more.clear();
            more.extend(parts(node, &included).map(|part| renamed[part.0 as usize]));
            more.retain(|&part| part != Known::NOTHING);
            more.sort_unstable_by_key(|part| part.0);
            more.dedup();
            renamed[number] = match (events.as_slice(), more.as_slice()) {
                ([], []) => Known::NOTHING,
                ([], [only]) => *only,
                ([], several) => match sets.get(several) {
                    Some(&same) => same,
                    None => {
                        let set = several.to_vec();
                        let known = self.push(sp, &mut events, &mut more);
                        sets.insert(set, known);
                        known
                    }
                },
                _ => self.push(sp, &mut events, &mut more),
            };
        }
        renamed
    }
}

/// What a node includes.
fn parts<'a>(node: &Node, included: &'a [Known]) -> impl Iterator<Item = Known> + use<'a> {
    let others = &included[node.first_included as usize..][..node.included as usize];
    let spine = Some(node.spine).filter(|&spine| spine != Known::NOTHING);
    others.iter().copied().chain(spine)
}

/// Is one of these points after all the asked that `point` is after, of which `last` are the last?
fn covers(ranks: &Ranks, above: &[Point], point: &Point, last: Last) -> bool {
    let from = above.partition_point(|other| ranks.english(other.at) <= last.english);
    if above.get(from).is_some_and(|other| ranks.hebrew(other.hebrew) > last.hebrew) {
        return true;
    }
    // Or there is a later event of the same task, which has not moved.
    let here = above.partition_point(|other| ranks.english(other.at) < ranks.english(point.at));
    let mut here = above[here..].iter().take_while(|other| other.at == point.at);
    here.any(|other| other.clock >= point.clock && other.learnt >= point.learnt)
}

/// The asked, by English order, and a tree over the Hebrew order of those that the sweep has passed: the last of each
/// stretch of them (Fenwick 1994, with maxima).
struct Sweep<'a> {
    ranks: &'a Ranks,
    /// Those to come, the next one last.
    asked: Vec<Position>,
    tree: Vec<Option<Last>>,
}

impl<'a> Sweep<'a> {
    fn new(ranks: &'a Ranks, mut asked: Vec<Position>) -> Sweep<'a> {
        asked.sort_unstable_by_key(|&at| std::cmp::Reverse(ranks.english(at)));
        asked.dedup();
        Sweep { ranks, asked, tree: vec![None; ranks.len() + 1] }
    }

    /// The last of the asked that are at or before `at`. Positions come in English order.
    fn before(&mut self, at: Position) -> Option<Last> {
        let (ranks, english) = (self.ranks, self.ranks.english(at));
        while let Some(next) = self.asked.pop_if(|next| ranks.english(*next) <= english) {
            let found = Last { english: ranks.english(next), hebrew: ranks.hebrew(next) };
            let mut at = found.hebrew as usize + 1;
            while at < self.tree.len() {
                self.tree[at] = later(self.tree[at], Some(found));
                at += at & at.wrapping_neg();
            }
        }
        let mut last = None;
        let mut at = ranks.hebrew(at) as usize + 1;
        while at > 0 {
            last = later(last, self.tree[at]);
            at &= at - 1;
        }
        last
    }
}

fn later(a: Option<Last>, b: Option<Last>) -> Option<Last> {
    match (a, b) {
        (Some(a), Some(b)) => {
            Some(Last { english: a.english.max(b.english), hebrew: a.hebrew.max(b.hebrew) })
        }
        (a, b) => a.or(b),
    }
}
