//! A work tree that a judge must not change: it is looked at before and after, and what was changed is taken back.

use std::path::{Path, PathBuf};

use super::command::GitError;
use super::files_at::Refused;
use super::moment::Moment;
use super::repository::Repository;
use super::writer::Writer;

/// A work tree as it must stay.
#[derive(Debug)]
pub(crate) struct Guarded {
    writer: Writer,
    workspace: PathBuf,
    before: Moment,
}

impl Guarded {
    /// Looks at the work tree; `None` outside of a repository.
    pub(crate) async fn begin(workspace: &Path) -> Result<Option<Self>, GitError> {
        let Some(repository) = Repository::around(workspace) else { return Ok(None) };
        let writer = Writer::open(repository)?;
        let before = writer.capture(workspace).await?;
        Ok(Some(Self { writer, workspace: workspace.to_owned(), before }))
    }

    /// How it is now, if it is different. An index that was only read again is not.
    pub(crate) async fn changed(&self) -> Result<Option<Moment>, GitError> {
        let now = self.writer.capture(&self.workspace).await?;
        let before = &self.before;
        let same = (&now.tree, &now.head, &now.branch) == (&before.tree, &before.head, &before.branch)
            && (now.index == before.index
                || self.staged(now.index.as_deref()).await? == self.staged(before.index.as_deref()).await?);
        Ok((!same).then_some(now))
    }

    /// Saves how it is now under this name, and makes it as it was. Gives the ref with what was saved.
    pub(crate) async fn put_back(&self, now: &Moment, name: &str) -> Result<String, Refused> {
        let saved = self.writer.save(now, name).await?;
        self.writer.go_to(now, &self.before, "take back what the judge changed").await?;
        Ok(saved)
    }

    /// What an index says, without what it remembers of files on disk.
    async fn staged(&self, index: Option<&str>) -> Result<Vec<u8>, GitError> {
        let Some(id) = index else { return Ok(Vec::new()) };
        let bytes = self.writer.git(&["cat-file", "blob", id], Vec::new()).await?.bytes;
        let place = self.writer.scratch("compared");
        std::fs::write(&place, bytes).map_err(|error| GitError::Failed(error.to_string()))?;
        let args = ["ls-files", "--stage", "-z"];
        let listed = self.writer.git_on(&place, &self.writer.repository.top, &args, Vec::new()).await;
        let _ = std::fs::remove_file(&place);
        Ok(listed?.bytes)
    }
}
