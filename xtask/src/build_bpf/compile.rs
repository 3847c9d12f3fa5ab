//! Compiles the BPF programs so that nothing of the machine's paths gets into the object.
//!
//! | what would get in | what is done |
//! |---|---|
//! | paths of sources, in the line information of BTF | prefixes are remapped: `/wholestack`, `/cargo`, `/rust` |
//! | the hash of a crate in the names of its functions, which cargo makes of the checkout's path | the compiler's stand-in sets it ([`super::compiler`]) |
//! | whichever LLVM bpf-linker finds first, by the order of files in a directory | the stand-in shows it only the compiler's own |

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use serde_json::Value;

use super::compiler;
use super::strip::strip;
use super::toolchain::Toolchain;
use crate::command::{self, cargo_at, output, run};
use crate::tree;

/// The target of all objects; the kernel's architecture is a matter of the configuration.
pub const TARGET: &str = "bpfel-unknown-none";

/// Compiles, links and strips; `locked` forbids changes of `bpf/Cargo.lock`.
pub fn object(toolchain: &Toolchain, architecture: &str, locked: bool) -> Result<Vec<u8>> {
    let target = tree::target()?.join("bpf");
    let lock = locked.then_some("--locked");
    let mut command = cargo(toolchain, "rustc");
    command.args(["--release", "--bin=sampler", "-Zbuild-std=core", "--target", TARGET]);
    command.arg("--target-dir").arg(&target);
    command.args(lock).arg("--").arg(format!("--cfg=bpf_target_arch=\"{architecture}\""));
    command.env("CARGO_ENCODED_RUSTFLAGS", flags(toolchain, lock)?.join("\u{1f}"));
    // for the build scripts of aya's crates; as a flag for all crates it would build core once per architecture
    command.env("AYA_BPF_TARGET_ARCH", architecture);
    compiler::stand_in(&mut command, &toolchain.llvm, &target.join("llvm"))?;
    run(&mut command)?;
    let linked = target.join(TARGET).join("release/sampler");
    let linked = std::fs::read(&linked).with_context(|| format!("{} cannot be read", linked.display()))?;
    strip(&linked)
}

fn cargo(toolchain: &Toolchain, subcommand: &str) -> Command {
    let mut command = match &toolchain.cargo {
        Some(cargo) => cargo_at(cargo, subcommand),
        None => command::cargo(subcommand),
    };
    command.arg("--manifest-path").arg(manifest());
    command.env("RUSTC", &toolchain.rustc).env("RUSTC_BOOTSTRAP", "1");
    for name in ["RUSTFLAGS", "CARGO_BUILD_TARGET", "CARGO_INCREMENTAL", "RUSTC_WORKSPACE_WRAPPER", "RUSTUP_TOOLCHAIN"]
    {
        command.env_remove(name);
    }
    command
}

fn manifest() -> PathBuf {
    tree::root().join("bpf/Cargo.toml")
}

fn flags(toolchain: &Toolchain, lock: Option<&str>) -> Result<Vec<String>> {
    let linker = format!("-Clinker={}", text(&toolchain.bpf_linker)?);
    let mut flags = vec![linker, "-Clink-arg=--btf".to_owned(), "-Cdebuginfo=2".to_owned()];
    let source = toolchain.sysroot.join("lib/rustlib/src/rust");
    let mut prefixes = vec![(tree::root(), "/wholestack")];
    prefixes.extend(dependencies(toolchain, lock)?.into_iter().map(|path| (path, "/cargo")));
    prefixes.extend(source.canonicalize().into_iter().chain([source]).map(|path| (path, "/rust")));
    for (path, name) in prefixes {
        flags.push(format!("--remap-path-prefix={}={name}", text(&path)?));
    }
    Ok(flags)
}

fn text(path: &Path) -> Result<&str> {
    path.to_str().with_context(|| format!("{} is not valid UTF-8", path.display()))
}

/// The directories in which cargo keeps the sources of dependencies.
fn dependencies(toolchain: &Toolchain, lock: Option<&str>) -> Result<Vec<PathBuf>> {
    let metadata = output(cargo(toolchain, "metadata").arg("--format-version=1").args(lock))?;
    let metadata: Value = serde_json::from_str(&metadata).context("cargo metadata printed no JSON")?;
    Ok(registries(&metadata))
}

fn registries(metadata: &Value) -> Vec<PathBuf> {
    let packages = metadata["packages"].as_array().map(Vec::as_slice).unwrap_or_default();
    let fetched = packages.iter().filter(|package| !package["source"].is_null());
    let manifests = fetched.filter_map(|package| package["manifest_path"].as_str());
    let mut directories: Vec<_> =
        manifests.filter_map(|path| Path::new(path).ancestors().nth(2)).map(Path::to_owned).collect();
    directories.sort();
    directories.dedup();
    directories
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_of_dependencies_are_found_and_those_of_the_checkout_are_not() {
        let metadata = serde_json::json!({ "packages": [
            { "source": null, "manifest_path": "/home/me/wholestack/bpf/Cargo.toml" },
            { "source": "registry+x", "manifest_path": "/home/me/.cargo/registry/src/index-1/aya-ebpf-0.2.1/Cargo.toml" },
            { "source": "registry+x", "manifest_path": "/home/me/.cargo/registry/src/index-1/paste-1.0.15/Cargo.toml" },
            { "source": "registry+y", "manifest_path": "/vendor/cty-0.2.2/Cargo.toml" },
        ] });
        let expected = [PathBuf::from("/home/me/.cargo/registry/src/index-1"), PathBuf::from("/vendor")];
        assert_eq!(registries(&metadata), expected);
        assert_eq!(registries(&Value::Null), Vec::<PathBuf>::new());
    }
}
