//! The core of DagSan: task events and access sets in, determinacy races out.
//!
//! See ARCHITECTURE.md for the map. Front ends feed a [`Stream`]; what takes the stream is a
//! [`Consumer`].

mod access;
mod bytes;
mod error;
mod event;
mod ids;
pub mod order;
mod stream;
pub mod structure;

pub use access::{AccessKind, AccessSet, Run};
pub use bytes::{Bytes, LINE_BYTES, Lines, Location, OutOfAddressSpace};
pub use error::Error;
pub use event::{Construct, Event, TaskKind};
pub use ids::{PromiseId, RegionId, ScopeId, SiteId, StrandId, TaskId};
pub use stream::{Consumer, Strand, Stream};
pub use structure::{Phase, Step};
