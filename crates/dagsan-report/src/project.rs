//! Names of files that mean the same to everybody: from the root of the project.
//!
//! Reports for people name files from the directory that they were asked for in. What is kept, compared or uploaded names them from
//! the root: of the repository, or of the workspace if there is none. Only names are looked at, so links are not followed.

use std::path::{Component, Path, PathBuf};

/// Where names are shown from, and where they are kept from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Project {
    current: PathBuf,
    root: PathBuf,
}

impl Project {
    /// Names are shown from `current`, and kept from `root`.
    pub fn new(current: impl Into<PathBuf>, root: impl Into<PathBuf>) -> Project {
        Project { current: current.into(), root: root.into() }
    }

    /// The project that a directory is in: the repository, else the workspace, else the directory itself.
    pub fn around(current: &Path) -> Project {
        let with = |name: &str| current.ancestors().find(|directory| directory.join(name).exists());
        let root = with(".git").or_else(|| with("Cargo.lock")).unwrap_or(current);
        Project::new(current, root)
    }

    /// The root.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The name from the root of a file that is shown as `shown`. A file outside has its whole name.
    pub fn name(&self, shown: &str) -> String {
        let mut path = PathBuf::new();
        for component in self.current.join(shown).components() {
            match component {
                Component::ParentDir => _ = path.pop(),
                Component::CurDir => {}
                other => path.push(other),
            }
        }
        path.strip_prefix(&self.root).unwrap_or(&path).to_string_lossy().into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_start_at_the_root() {
        let project = Project::new("/p/sub", "/p");
        assert_eq!(project.name("src/main.rs"), "sub/src/main.rs");
        assert_eq!(project.name("../other/./a.rs"), "other/a.rs");
        assert_eq!(project.name("/p/a.rs"), "a.rs");
        assert_eq!(project.name("/rustc/abc/vec.rs"), "/rustc/abc/vec.rs");
        assert_eq!(project.name("../../../x"), "/x");
    }

    #[test]
    fn the_root_is_the_repository_or_the_directory() {
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        let root = Project::around(&here.join("src")).root().to_owned();
        assert!(here.starts_with(&root) && root.join("Cargo.lock").exists());
        assert_eq!(Project::around(Path::new("/no/such")).root(), Path::new("/no/such"));
    }
}
