//! Debian's package manager with a configuration and a state of its own: it installs nothing, and needs no right.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::require;
use crate::command::{asked, output, run};

/// Where mirrors are if this machine's own package manager names none.
const MIRROR: &str = "http://deb.debian.org/debian";
/// What signs Debian's archive.
const KEYRING: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";

/// The packages of one suite for one architecture.
pub struct Apt {
    home: PathBuf,
}

impl Apt {
    /// Reads the index of a suite; all that apt keeps is below `home`.
    pub fn new(suite: &str, architecture: &str, home: &Path) -> Result<Apt> {
        require(&["apt-get", "apt-cache", "dpkg-deb"], "this needs Debian, or one of its kin")?;
        if !Path::new(KEYRING).exists() {
            bail!("there is no {KEYRING}: install debian-archive-keyring");
        }
        for directory in ["lists/partial", "cache/archives/partial", "state"] {
            std::fs::create_dir_all(home.join(directory)).with_context(|| format!("{}", home.display()))?;
        }
        let write = |name: &str, text: String| {
            std::fs::write(home.join(name), text).with_context(|| format!("{name} in {}", home.display()))
        };
        let mirror = mirror(asked("apt-get", &["indextargets", "--format", "$(REPO_URI)"]).as_deref());
        let source = |kind: &str| format!("{kind} [signed-by={KEYRING}] {mirror} {suite} main\n");
        write("state/status", String::new())?;
        write("sources.list", source("deb") + &source("deb-src"))?;
        let inherited = inherited(&asked("apt-config", &["dump", "Acquire"]).unwrap_or_default());
        write("apt.conf", configuration(home, architecture) + &inherited)?;
        let apt = Apt { home: home.to_owned() };
        run(&mut apt.get("update"))?;
        Ok(apt)
    }

    /// Which version of a package the index offers.
    pub fn version(&self, package: &str) -> Result<Option<String>> {
        let policy = output(self.command("apt-cache").args(["policy", package]))?;
        let candidate = policy.lines().find_map(|line| line.trim().strip_prefix("Candidate: "));
        Ok(candidate.filter(|version| *version != "(none)").map(str::to_owned))
    }

    /// Fetches packages and all that they depend on, and checks them against the signed index.
    pub fn fetch(&self, packages: &[String]) -> Result<Vec<PathBuf>> {
        run(self.get("install").args(["--yes", "--download-only"]).args(packages))?;
        let archives = self.home.join("cache/archives");
        let entries = std::fs::read_dir(&archives).with_context(|| format!("{}", archives.display()))?;
        let files = entries.flatten().map(|entry| entry.path());
        Ok(files.filter(|file| file.extension().is_some_and(|extension| extension == "deb")).collect())
    }

    /// Fetches the source of a package as its authors have published it, without what Debian changes.
    pub fn fetch_source(&self, package: &str) -> Result<PathBuf> {
        let mut get = self.get("source");
        run(get.args(["--download-only", "--tar-only", package]).current_dir(&self.home))?;
        let entries = std::fs::read_dir(&self.home).with_context(|| format!("{}", self.home.display()))?;
        let mut files = entries.flatten().map(|entry| entry.path());
        let found = files.find(|file| file.to_string_lossy().contains(".orig.tar."));
        found.with_context(|| format!("apt-get source {package} fetched no source"))
    }

    fn get(&self, action: &str) -> Command {
        let mut command = self.command("apt-get");
        // one -q less would show what each connection does; two still show errors
        command.args(["-qq", action]);
        command
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.env("APT_CONFIG", self.home.join("apt.conf")).stdin(std::process::Stdio::null());
        command
    }
}

/// The mirror that this machine uses for Debian itself, if it does.
fn mirror(uris: Option<&str>) -> String {
    let mut uris = uris.into_iter().flat_map(str::lines).map(|uri| uri.trim_end_matches('/'));
    uris.find(|uri| uri.ends_with("/debian")).unwrap_or(MIRROR).to_owned()
}

/// What this machine says of fetching (proxies, time-outs, whether an index may be old), but not of what to fetch.
fn inherited(dump: &str) -> String {
    let other = ["Acquire::IndexTargets", "Acquire::Languages", "Acquire::GzipIndexes"];
    let lines = dump.lines().filter(|line| !other.iter().any(|name| line.starts_with(name)));
    lines.map(|line| format!("{line}\n")).collect()
}

fn configuration(home: &Path, architecture: &str) -> String {
    let home = home.display();
    format!(
        r#"Dir::Etc::main "/dev/null";
Dir::Etc::parts "/dev/null";
Dir::Etc::sourcelist "{home}/sources.list";
Dir::Etc::sourceparts "/dev/null";
Dir::Etc::preferences "/dev/null";
Dir::Etc::preferencesparts "/dev/null";
Dir::State "{home}/state";
Dir::State::lists "{home}/lists";
Dir::State::status "{home}/state/status";
Dir::Cache "{home}/cache";
APT::Architecture "{architecture}";
APT::Architectures {{ "{architecture}"; }};
APT::Install-Recommends "false";
APT::Sandbox::User "root";
APT::Update::Error-Mode "any";
Acquire::Languages "none";
Acquire::Retries "3";
"#
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mirror_is_the_machines_own() {
        let uris = "http://mirror.example/debian-security/\nhttp://mirror.example/debian/\nhttp://other.example/apt/\n";
        assert_eq!(mirror(Some(uris)), "http://mirror.example/debian");
        assert_eq!(mirror(Some("http://archive.example/ubuntu/\n")), MIRROR);
        assert_eq!(mirror(None), MIRROR);
    }

    #[test]
    fn how_to_fetch_is_inherited_and_what_is_not() {
        let dump = "Acquire::http::Proxy \"http://proxy.example:3128\";\nAcquire::IndexTargets::deb \"\";\n";
        assert_eq!(inherited(dump), "Acquire::http::Proxy \"http://proxy.example:3128\";\n");
    }
}
