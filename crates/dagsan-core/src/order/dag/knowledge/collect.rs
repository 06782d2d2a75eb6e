//! Lets go set events that answer nothing any more, and the knowledge that is left without any.
//!
//! **What can be asked.** Whether a set event in some knowledge is at or after `l`, where `l` is a strand that the
//! history still remembers or a release that is still kept; call all of these *asked*. Strands and releases to come are
//! after all set events that there are. The knowledge is that of a *root* (a task, a promise that was set, a kept release, …)
//! or is made of roots and of new set events later.
//!
//! A root has a *holder*, at some position: whoever has the root's knowledge later is there, or after it in the SP order, or
//! knows a set event that is there or after it.
//!
//! **What may go.** For a set event `p` of a node let U(p) be those of the asked that are at or before `p`.
//!
//! ```text
//!   p may go   <=   U(p) is empty,
//!              or   on every way from a root down to the node of p there is another event q, or the root's holder is a q,
//!                   with all of U(p) before q
//! ```
//!
//! Proof that no answer changes: let a root R know `p`, and let `l` be in U(p). Take a way from R down to the node of
//! `p`. If `p` went, there is a `q` after `l` further up on the way. If `q` went too, there is another one further up, and so on;
//! the last one is an event that stays, or R's holder, which whoever asks is after, or knows an event after.
//! Knowledge that is dropped when all its events SP-precede a position has lost nothing either: the events that stay are after
//! all `l` that those were after which went.
//!
//! In a chain of futures, where each gets the one before, all links may go, although what the main task did before it
//! started them is before them all: it is also before the last future. Of two tasks that wait for each other in turn, each
//! needs to know the other's last event only.
//!
//! What is on every way to a node is looked at exactly for the nodes that include it, and else for a few events ([`Above`]).
//!
//! **How U(p) is compared.** A position is a point of the plane, by its places in the English and in the Hebrew order;
//! U(p) are the asked below and to the left of `p`, and they are all before `q` exactly if the last of them in English order
//! and the last of them in Hebrew order are. These two are found for all `p` by a sweep in English order (see [`Sweep`]).
//! The cost is O(n log n) for n positions; [`crate::order::Order::collect`] says when it is paid.

use rustc_hash::FxHashMap;

use super::{Knowledge, Known, NOTHING, Node, Point, SetEvent};
use crate::ids::StrandId;
use crate::order::sp::{Position, Ranks, SeriesParallel};

/// The last of some positions in both orders, by rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Last {
    english: u32,
    hebrew: u32,
}

/// A moment of a task: an event, or where somebody is who has knowledge.
#[derive(Debug, Clone, Copy)]
pub(in super::super) struct Moment {
    pub(in super::super) at: Position,
    pub(in super::super) clock: u32,
    pub(in super::super) learnt: u32,
}

impl Moment {
    /// Is all that is at or before this one, at or before the other one, too?
    fn is_covered_by(&self, ranks: &Ranks, other: &Moment) -> bool {
        let last = Last { english: ranks.english(self.at), hebrew: ranks.hebrew(self.at) };
        other.covers(ranks, self, last)
    }

    /// Is this one after all the asked that `other` is after, of which `last` are the last?
    fn covers(&self, ranks: &Ranks, other: &Moment, last: Last) -> bool {
        if self.at == other.at {
            return self.clock >= other.clock && self.learnt >= other.learnt;
        }
        ranks.english(self.at) > last.english && ranks.hebrew(self.at) > last.hebrew
    }
}

impl From<&Point> for Moment {
    fn from(&Point { at, clock, learnt, .. }: &Point) -> Moment {
        Moment { at, clock, learnt }
    }
}

/// Some moments of which each, or one that covers it, is on every way from a root to a node.
#[derive(Debug, Clone, Copy, Default)]
struct Above([Option<Moment>; FEW]);

const FEW: usize = 4;

impl Above {
    /// The first of these that are not covered by others.
    fn of(moments: impl IntoIterator<Item = Moment>, ranks: &Ranks) -> Above {
        let mut above = Above::default();
        for moment in moments {
            if above.iter().any(|other| moment.is_covered_by(ranks, &other)) {
                continue;
            }
            let place = |place: &&mut Option<Moment>| {
                place.as_ref().is_none_or(|other| other.is_covered_by(ranks, &moment))
            };
            match above.0.iter_mut().find(place) {
                Some(place) => *place = Some(moment),
                None => break,
            }
        }
        above
    }

    fn iter(&self) -> impl Iterator<Item = Moment> + use<> {
        self.0.into_iter().flatten()
    }

    /// What is on the ways of both.
    fn meet(&self, other: &Above, ranks: &Ranks) -> Above {
        let in_both = |a: Above, b: Above| {
            a.iter().filter(move |moment| b.iter().any(|other| moment.is_covered_by(ranks, &other)))
        };
        Above::of(in_both(*self, *other).chain(in_both(*other, *self)), ranks)
    }

    fn covers(&self, ranks: &Ranks, point: &Point, last: Last) -> bool {
        self.iter().any(|moment| moment.covers(ranks, &point.into(), last))
    }
}

impl Knowledge {
    /// Forgets what answers nothing. `asked` are the positions of all that will be asked about; `roots` shows all
    /// knowledge that somebody has, with its holder, and must show the same both times it is called.
    pub(in super::super) fn collect(
        &mut self,
        sp: &SeriesParallel,
        asked: Vec<Position>,
        mut roots: impl FnMut(&mut dyn FnMut(&mut Known, Moment)),
    ) {
        if self.nodes.len() == 1 {
            return;
        }
        let ranks = sp.ranks();
        // What is above the nodes that are reached.
        let mut above: Vec<Option<Above>> = vec![None; self.nodes.len()];
        roots(&mut |known, holder| reach(&mut above, *known, Above::of([holder], &ranks), &ranks));
        let needed = self.needed(&ranks, &mut above, asked);
        let renamed = self.rebuild(sp, &above, &needed);
        roots(&mut |known, _| *known = renamed[known.0 as usize]);
        self.memo.fill((StrandId(0), Known::NOTHING, false));
    }

    /// Which of the points are needed. Goes on from what is above the roots.
    fn needed(&self, ranks: &Ranks, above: &mut [Option<Above>], asked: Vec<Position>) -> Vec<bool> {
        let mut sweep = Sweep::new(ranks, asked);
        let mut order: Vec<u32> = (0..self.points.len() as u32).collect();
        order.sort_unstable_by_key(|&point| ranks.english(self.points[point as usize].at));
        // The last asked before each point, if there are any.
        let mut before: Vec<Option<Last>> = vec![None; self.points.len()];
        for point in order {
            before[point as usize] = sweep.before(self.points[point as usize].at);
        }
        let mut needed = vec![false; self.points.len()];
        let mut need = |node: &Node, covers: &dyn Fn(&Point, Last) -> bool| {
            for point in node.first_point as usize..(node.first_point + node.points) as usize {
                if let (false, Some(last)) = (needed[point], before[point]) {
                    needed[point] = !covers(&self.points[point], last);
                }
            }
        };
        for (node, above) in self.nodes.iter().zip(&*above) {
            if let Some(above) = above {
                need(node, &|point, last| above.covers(ranks, point, last));
            }
        }
        // What includes others has the larger number.
        for (number, node) in self.nodes.iter().enumerate().rev() {
            let Some(higher) = above[number] else { continue };
            let own = self.points(node);
            let here = Above::of(own.iter().map(Moment::from).chain(higher.iter()), ranks);
            for part in parts(node, &self.included) {
                need(self.node(part), &|point, last| {
                    one_covers(ranks, own, point, last) || higher.covers(ranks, point, last)
                });
                reach(above, part, here, ranks);
            }
        }
        needed
    }

    /// Makes all nodes anew that were reached, of the points that are needed. Returns the new name of each old node.
    fn rebuild(&mut self, sp: &SeriesParallel, above: &[Option<Above>], needed: &[bool]) -> Vec<Known> {
        let nodes = std::mem::replace(&mut self.nodes, vec![NOTHING]);
        let points = std::mem::take(&mut self.points);
        let included = std::mem::take(&mut self.included);
        let mut renamed = vec![Known::NOTHING; nodes.len()];
        // Nodes without points are sets of others, and the same set is one node.
        let mut sets: FxHashMap<Vec<Known>, Known> = FxHashMap::default();
        let (mut events, mut more) = (Vec::new(), Vec::new());
        for (number, node) in nodes.iter().enumerate().skip(1).filter(|(number, _)| above[*number].is_some())
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
            // As it was, if it is still there.
            let spine = match renamed[node.spine.0 as usize] {
                Known::NOTHING => self.choose_spine(&events, &more),
                spine => spine,
            };
            renamed[number] = match (events.as_slice(), more.as_slice()) {
                ([], []) => Known::NOTHING,
                ([], [only]) => *only,
                ([], several) => match sets.get(several) {
                    Some(&same) => same,
                    None => {
                        let set = several.to_vec();
                        let known = self.push(sp, &mut events, several, spine);
                        sets.insert(set, known);
                        known
                    }
                },
                _ => self.push(sp, &mut events, &more, spine),
            };
        }
        renamed
    }
}

/// There is one more way to a node, with this on it.
fn reach(above: &mut [Option<Above>], node: Known, way: Above, ranks: &Ranks) {
    let all = &mut above[node.0 as usize];
    *all = Some(all.map_or(way, |other| other.meet(&way, ranks)));
}

/// What a node includes.
fn parts<'a>(node: &Node, included: &'a [Known]) -> impl Iterator<Item = Known> + use<'a> {
    let others = &included[node.first_included as usize..][..node.included as usize];
    let spine = Some(node.spine).filter(|&spine| spine != Known::NOTHING);
    others.iter().copied().chain(spine)
}

/// Is one of these points after all the asked that `point` is after, of which `last` are the last?
fn one_covers(ranks: &Ranks, above: &[Point], point: &Point, last: Last) -> bool {
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
