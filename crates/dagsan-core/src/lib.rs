//! The core of DagSan: task events and access sets in, determinacy races out.
//!
//! See ARCHITECTURE.md for the map. Front ends feed a [`Stream`]; what takes the stream is a
//! [`Consumer`].

mod access;
mod analysis;
mod bytes;
pub mod contract;
mod detector;
mod error;
mod event;
pub mod graph;
mod held;
mod history;
mod ids;
mod locks;
pub mod oracle;
pub mod order;
mod pages;
mod promises;
mod race;
mod recording;
mod repeats;
mod sections;
pub mod shared;
mod stand_in;
mod step;
mod stream;
pub mod structure;
mod table;
mod tasks;

pub use access::{AccessKind, AccessSet, Run, Span};
pub use bytes::{Bytes, LINE_BYTES, Lines, Location, OutOfAddressSpace};
pub use detector::{Detector, RACE_LIMIT, Stats};
pub use error::Error;
pub use event::{Construct, Event, TaskKind};
pub use ids::{LockId, PromiseId, RegionId, ScopeId, SiteId, StrandId, SyncId, TaskId};
pub use locks::{Held, LockMode};
pub use race::{Access, Allocator, Meeting, Race, RaceLog};
pub use recording::Recording;
pub use step::{Outlived, Phase, Step};
pub use stream::{Consumer, Dropped, Strand, Stream};
pub use table::Table;

/// So many entries of a table are no burden, whether they are still needed or not.
pub const RECENT: usize = 1 << 16;
