//! Why a task was not started, and why a wait has failed.

use std::sync::Arc;

use crate::{fiber, workers};

/// Why a task was not started.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Refused {
    #[error("a task is started in an isolated section, which may not start tasks")]
    Isolated,
    #[error("a task is started through a scope whose finish is not around the present task")]
    OtherFinish,
    #[error("a procedure spawns while another one, which it has called, has not returned")]
    OtherFrame,
    #[error(transparent)]
    Stack(#[from] fiber::Error),
    #[error(transparent)]
    Workers(#[from] workers::Error),
}

/// Why a wait has failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failed {
    #[error("a task would have to wait for {0} in an isolated section, where it may not")]
    Isolated(String),
    #[error("a procedure syncs while another one, which it has called, has not returned")]
    OtherFrame,
    #[error("{0}")]
    Deadlock(Arc<str>),
}
