//! The runtime that drives processes: one thread is enough, since all it does is wait.

use std::cell::OnceCell;

use tokio::runtime::Runtime;

use crate::error::UserError;

/// The runtime of this thread. A process belongs to the runtime it was started in, so one runtime lets a plug-in that was
/// loaded while a run was planned live on in the run.
pub fn runtime() -> Result<&'static Runtime, UserError> {
    thread_local! {
        static RUNTIME: OnceCell<&'static Runtime> = const { OnceCell::new() };
    }
    RUNTIME.with(|known| match known.get() {
        Some(runtime) => Ok(*runtime),
        None => build().map(|runtime| *known.get_or_init(|| Box::leak(Box::new(runtime)))),
    })
}

fn build() -> Result<Runtime, UserError> {
    // The runtime itself would panic.
    super::enough_files().map_err(|limit| {
        UserError::usage(format!("the limit of {limit} open files is too low")).hint("raise it: `ulimit -n 1024`")
    })?;
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| UserError::failed(format!("cannot start: {error}")))
}
