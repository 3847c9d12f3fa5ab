//! The builds of python-build-standalone, which uv and others install, as a Go module carries them: made by clang, with
//! all that its optimisers do.

use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::require;
use crate::command::{run, shown};

/// A library for Go programs that run Python; its versions say which.
pub const MODULE: &str = "github.com/kluctl/go-embed-python";

/// Fetches a version by go, which checks it, and lays it out; gives the version of Python.
pub fn unpack(version: &str, architecture: &str, place: &Path, workshop: &Path) -> Result<Vec<String>> {
    require(&["go", "gzip"], "install golang-go and gzip")?;
    let mut go = Command::new("go");
    go.args(["mod", "download", "-json", &format!("{MODULE}@{version}")]).env("GOFLAGS", "-mod=mod");
    let answer = go.current_dir(workshop).stdin(Stdio::null()).output().context("go does not start")?;
    let answer: Value = serde_json::from_slice(&answer.stdout).context("go printed no JSON")?;
    if let Some(error) = answer["Error"].as_str() {
        bail!("{}: {error}", shown(&go));
    }
    let module = Path::new(answer["Dir"].as_str().context("go names no directory")?);
    let data = module.join("python/internal/data").join(format!("linux-{architecture}"));
    let list = std::fs::read(data.join("files.json")).with_context(|| format!("{}", data.display()))?;
    let list: Value = serde_json::from_slice(&list).context("files.json is no JSON")?;
    for entry in list["files"].as_array().context("files.json lists nothing")? {
        let name = entry["name"].as_str().context("a file without a name")?;
        lay(&data, place, name, entry).with_context(|| format!("{name} cannot be laid out"))?;
    }
    let python = version.split('-').nth(1).unwrap_or(version);
    Ok(vec![format!("python{python} of python-build-standalone")])
}

/// A directory, a link, or a file, which may be compressed.
fn lay(data: &Path, place: &Path, name: &str, entry: &Value) -> Result<()> {
    let (from, to) = (data.join(name), place.join(name));
    if name.split('/').any(|part| part == "..") || name.starts_with('/') {
        bail!("it would lie elsewhere");
    }
    if let Some(target) = entry["symlink"].as_str() {
        return Ok(symlink(target, to)?);
    }
    if from.is_dir() {
        return Ok(std::fs::create_dir_all(to)?);
    }
    if let Some(directory) = to.parent() {
        std::fs::create_dir_all(directory)?;
    }
    if entry["compressed"] == true {
        let mut gzip = Command::new("gzip");
        gzip.args(["--decompress", "--stdout"]).arg(data.join(format!("{name}.gz"))).stdin(Stdio::null());
        run(gzip.stdout(std::fs::File::create(&to)?)).with_context(|| shown(&gzip))?;
    } else {
        std::fs::copy(from, &to)?;
    }
    // what Go keeps may not be written to
    let mode = entry["perm"].as_u64().and_then(|mode| u32::try_from(mode & 0o777).ok()).unwrap_or(0o644);
    Ok(std::fs::set_permissions(to, std::fs::Permissions::from_mode(mode | 0o600))?)
}
