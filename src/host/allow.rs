//! Which shared `.relay.toml` may run its commands: the clone keeps the digests of the contents
//! that somebody has looked at and allowed.

use super::files;
use anyhow::{Context, Result};
use sha2::{Digest, Sha256};
use std::path::{Path, PathBuf};

const SHARED_BYTES_MOST: u64 = 256 * 1024;
const LIST_BYTES_MOST: u64 = 1 << 20;

/// The list: one digest a line.
fn list_path(common_dir: &Path) -> PathBuf {
    common_dir.join("relay/allowed")
}

/// Whether the content of the file at `shared`, as it is now, has been allowed in this clone.
pub fn is_allowed(common_dir: &Path, shared: &Path) -> Result<bool> {
    let Some(digest) = digest(shared)? else { return Ok(false) };
    Ok(listed(common_dir)?.contains(&digest))
}

/// Allows the content as it is now, or allows no content of that file any more.
pub fn set(common_dir: &Path, shared: &Path, allowed: bool) -> Result<()> {
    let path = list_path(common_dir);
    if !allowed {
        return files::remove(&path);
    }
    let digest = digest(shared)?.context("the shared file was there a moment ago")?;
    let mut digests = listed(common_dir)?;
    if !digests.contains(&digest) {
        digests.push(digest);
    }
    files::replace(&path, format!("{}\n", digests.join("\n")).as_bytes(), 0o600)
}

fn listed(common_dir: &Path) -> Result<Vec<String>> {
    let text = files::read_text(&list_path(common_dir), LIST_BYTES_MOST)?.unwrap_or_default();
    Ok(text.lines().map(str::to_owned).collect())
}

fn digest(shared: &Path) -> Result<Option<String>> {
    let Some(bytes) = files::read(shared, SHARED_BYTES_MOST)? else { return Ok(None) };
    let digest = Sha256::digest(&bytes);
    Ok(Some(digest.iter().map(|byte| format!("{byte:02x}")).collect()))
}
