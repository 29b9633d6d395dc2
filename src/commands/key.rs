//! `git relay key`

use super::open_hub;
use crate::cli::Key;
use crate::store::keys;
use crate::ui::out;
use anyhow::Result;
use serde_json::json;

pub(super) fn run(args: &Key) -> Result<u8> {
    let hub = open_hub()?;
    let public = keys::load_key(&hub.repo)?.public();
    let path = keys::key_path(&hub.repo)?;
    if args.json {
        let value = json!({
            "fingerprint": public.fingerprint(), "publicKey": public.to_openssh_line("git-relay"),
            "path": out::path(&path), "publicPath": out::path(path.with_extension("pub")),
        });
        out::json("key", &value)?;
    } else {
        out::line(public.to_openssh_line("git-relay"))?;
        out::say(format!("{}  {}", public.fingerprint(), path.display()));
    }
    Ok(0)
}
