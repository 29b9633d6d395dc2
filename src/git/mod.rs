//! The only room that knows git's formats or runs git.
//!
//! gix reads, writes objects and takes snapshots; the git program (through [`run`], its one door)
//! does what gix cannot: checkouts, branch moves with reflogs, merges. No type of gix leaves this
//! room. Absent: sessions and agents as ideas (their names appear only in ref names), and the
//! clock: every stored time is a parameter.

pub mod anew;
mod aside;
mod bundle;
mod capture;
pub mod changes;
pub mod finish;
pub mod guard;
pub mod health;
mod hidden;
pub mod hook_file;
pub mod include;
mod index;
mod lock;
mod mend;
mod notes;
pub mod objects;
pub mod place;
pub mod read;
pub mod refs;
pub mod run;
mod scratch;
pub mod snapshot;
mod sound;
mod submodules;
mod survey;
mod survey_by_git;
pub mod undo;
mod version;
mod wip;
pub mod worktree;

pub use bundle::KeptPack;
pub use lock::in_the_way;
pub use objects::Commit;
pub use refs::{
    NOTES_REF, aside_ref, branch_ref, kept_ref, moved_ref, result_ref, session_ref, snapshot_ref,
    undone_ref, wip_ref,
};
pub use snapshot::{Caps, Snapshot};

use crate::error::Fault;
use crate::model::names::Oid;
use anyhow::{Context, Result, bail};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

/// Whether a step must survive a power cut.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    #[default]
    Full,
    /// For tests.
    None,
}

/// A repository as seen from one of its worktrees, with every path that matters pinned at opening.
pub struct Repository {
    gix: gix::Repository,
    common_dir: PathBuf,
    git_dir: PathBuf,
    work_tree: PathBuf,
    main_work_tree: Option<PathBuf>,
    reftable: bool,
    durability: Durability,
}

impl Repository {
    /// Opens the repository that holds the directory `at`: a main or a linked worktree.
    ///
    /// `GIT_DIR` and its like are not looked at: inside a hook they name another worktree.
    pub fn open(at: &Path) -> Result<Self> {
        let (found, _trust) = gix::discover::upwards(at).map_err(|_| {
            Fault::refused(format!("`{}` is not in a git repository", at.display()))
                .hint("run this inside a repository, or make one: git init")
        })?;
        let (git_dir, work_dir) = found.into_repository_and_work_tree_directories();
        Self::from_gix(open_gix(&git_dir)?, work_dir.as_deref())
    }

    /// Opens by three paths recorded earlier; refuses when the git dir no longer belongs to that
    /// common dir.
    pub fn open_pinned(common_dir: &Path, git_dir: &Path, work_tree: &Path) -> Result<Self> {
        let common_dir = normal(common_dir)?;
        let git_dir = normal(git_dir)?;
        if git_dir != common_dir {
            let pointer = git_dir.join("commondir");
            let text = fs::read_to_string(&pointer)
                .with_context(|| format!("cannot read `{}`", pointer.display()))?;
            if normal(&git_dir.join(text.trim_end())).ok().as_ref() != Some(&common_dir) {
                bail!(
                    Fault::integrity(format!(
                        "`{}` points away from the repository",
                        pointer.display()
                    ))
                    .hint(
                        "the worktree was re-pointed while an agent ran in it; look before going on"
                    )
                );
            }
        }
        let mut gix = open_gix(&git_dir)?;
        let work_tree = normal(work_tree)?;
        gix.set_workdir(work_tree.clone())?;
        Self::from_gix(gix, Some(&work_tree))
    }

    fn from_gix(gix: gix::Repository, work_dir: Option<&Path>) -> Result<Self> {
        let common_dir = normal(gix.common_dir())?;
        let git_dir = normal(gix.git_dir())?;
        let storage = gix.config_snapshot().string("extensions.refStorage");
        let reftable = match storage {
            None => false,
            Some(format) if format.eq_ignore_ascii_case(b"files") => false,
            // gix does not know it and would write where git never looks.
            Some(format) if format.eq_ignore_ascii_case(b"reftable") => true,
            Some(format) => {
                bail!(Fault::environment(format!(
                    "refs are kept as `{format}`, which is not known here"
                )))
            }
        };
        let Some(work_tree) = gix.workdir().or(work_dir) else {
            bail!(
                Fault::refused(format!("`{}` is a bare repository", common_dir.display()))
                    .hint("sessions need a worktree: git worktree add ../work, and run this there")
            );
        };
        let work_tree = normal(work_tree)?;
        let main_work_tree =
            if git_dir == common_dir { Some(work_tree.clone()) } else { main_work_tree(&gix) };
        Ok(Self {
            gix,
            common_dir,
            git_dir,
            work_tree,
            main_work_tree,
            reftable,
            durability: Durability::default(),
        })
    }

    pub fn set_durability(&mut self, durability: Durability) {
        self.durability = durability;
    }

    pub fn durability(&self) -> Durability {
        self.durability
    }

    /// The git dir that all worktrees share, absolute and free of links.
    pub fn common_dir(&self) -> &Path {
        &self.common_dir
    }

    /// This worktree's own git dir; the common dir itself for the main worktree.
    pub fn git_dir(&self) -> &Path {
        &self.git_dir
    }

    pub fn work_tree(&self) -> &Path {
        &self.work_tree
    }

    /// The main worktree; `None` where the common repository is bare and has linked ones only.
    pub fn main_work_tree(&self) -> Option<&Path> {
        self.main_work_tree.as_deref()
    }

    /// `sha1` or `sha256`.
    pub fn object_format(&self) -> &'static str {
        match self.gix.object_hash() {
            gix::hash::Kind::Sha256 => "sha256",
            _ => "sha1",
        }
    }

    /// Whether refs are kept in git's reftable format.
    pub fn is_reftable(&self) -> bool {
        self.reftable
    }

    pub fn is_shallow(&self) -> bool {
        // A file that cannot be read says nothing: then history is not to be relied on either.
        self.gix.is_shallow().unwrap_or(true)
    }

    /// A path of git's merged configuration.
    pub fn config_path(&self, key: &str) -> Option<PathBuf> {
        self.gix.config_snapshot().trusted_path(key).ok()?
    }

    /// One value of git's merged configuration, for what only the user may decide in git's terms.
    pub fn config(&self, key: &str) -> Option<String> {
        self.gix.config_snapshot().string(key).map(|value| value.to_string())
    }

    /// The merge, rebase, cherry-pick, revert, bisect or am that is under way in this worktree.
    pub fn operation_in_progress(&self) -> Option<&'static str> {
        use gix::state::InProgress;
        if self.reftable {
            // These two are refs there, and no files that gix would see.
            for (name, word) in [("CHERRY_PICK_HEAD", "cherry-pick"), ("REVERT_HEAD", "revert")] {
                if self.read_ref(name).is_ok_and(|found| found.is_some()) {
                    return Some(word);
                }
            }
        }
        self.gix.state().map(|state| match state {
            InProgress::ApplyMailbox | InProgress::ApplyMailboxRebase => "am",
            InProgress::Bisect => "bisect",
            InProgress::CherryPick | InProgress::CherryPickSequence => "cherry-pick",
            InProgress::Merge => "merge",
            InProgress::Rebase | InProgress::RebaseInteractive => "rebase",
            InProgress::Revert | InProgress::RevertSequence => "revert",
        })
    }
}

fn open_gix(git_dir: &Path) -> Result<gix::Repository> {
    let mut permissions = gix::open::Permissions::all();
    // Configuration from the caller's environment is not ours: the git program gets none either.
    permissions.config.env = false;
    permissions.env.objects = gix::sec::Permission::Deny;
    // This one permission guards both git's own file locations and the variables below; where one
    // of those is set (inside a hook) they must not leak into another worktree.
    let inside_hook = ["GIT_INDEX_FILE", "GIT_WORK_TREE", "GIT_SHALLOW_FILE", "GIT_NAMESPACE"]
        .iter()
        .any(|name| std::env::var_os(name).is_some());
    if inside_hook {
        permissions.env.git_prefix = gix::sec::Permission::Deny;
    }
    let options = gix::open::Options::default()
        .permissions(permissions)
        .open_path_as_is(true)
        .bail_if_untrusted(true)
        .config_overrides([
            "core.fsmonitor=false",
            "core.hooksPath=/dev/null",
            // A replacement would put other content under a name that was signed.
            "core.useReplaceRefs=false",
            // Set by the user it refuses files whose line ends would not come back the same: a
            // snapshot must hold them all the same.
            "core.safecrlf=false",
        ]);
    match gix::open_opts(git_dir, options) {
        Ok(repository) => Ok(repository),
        Err(error) => {
            let text = error.to_string();
            let is_own = fs::metadata(git_dir)
                .is_ok_and(|found| found.uid() == rustix::process::geteuid().as_raw());
            if is_own && error_mentions(&error, "not owned") {
                bail!(
                    Fault::refused(format!(
                        "the worktree of `{}` is not there, or not yours",
                        git_dir.display()
                    ))
                    .hint("look at what says where it is: git config --show-origin core.worktree")
                );
            }
            if error_mentions(&error, "safe.directory") || error_mentions(&error, "not owned") {
                bail!(
                    Fault::refused(format!("`{}` belongs to somebody else", git_dir.display()))
                        .hint(
                            "if you trust it: git config --global --add safe.directory \"$(pwd)\""
                        )
                );
            }
            if error_mentions(&error, "object format") || error_mentions(&error, "extension") {
                bail!(Fault::environment(format!("cannot open `{}`: {text}", git_dir.display())));
            }
            Err(anyhow::Error::from(error))
                .with_context(|| Fault::refused(format!("cannot open `{}`", git_dir.display())))
        }
    }
}

fn error_mentions(error: &gix::Error, words: &str) -> bool {
    format!("{error:?} {error}").to_ascii_lowercase().contains(words)
}

fn main_work_tree(gix: &gix::Repository) -> Option<PathBuf> {
    let main = gix.main_repo().ok()?;
    normal(main.workdir()?).ok()
}

/// An absolute path without links or dots; the last part may be missing.
fn normal(path: &Path) -> Result<PathBuf> {
    if let Ok(path) = fs::canonicalize(path) {
        return Ok(path);
    }
    let (Some(parent), Some(Component::Normal(name))) =
        (path.parent(), path.components().next_back())
    else {
        bail!("cannot resolve `{}`", path.display());
    };
    let parent = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
    let parent =
        fs::canonicalize(parent).with_context(|| format!("cannot resolve `{}`", path.display()))?;
    Ok(parent.join(name))
}

fn to_gix(oid: &Oid) -> gix::ObjectId {
    gix::ObjectId::from_hex(oid.as_str().as_bytes()).expect("an Oid is 40 or 64 hex digits")
}

fn from_gix(id: &gix::oid) -> Oid {
    Oid::new(id.to_hex().to_string()).expect("git's own ids are full lower-case hex")
}
