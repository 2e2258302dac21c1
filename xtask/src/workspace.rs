//! The workspace as cargo and git see it: packages, who depends on whom, and the files that are kept.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use crate::process;

/// All that the rules look at.
#[derive(Clone, Debug, Default)]
pub struct Workspace {
    pub root: PathBuf,
    /// The folder in which cargo builds.
    pub target: PathBuf,
    pub members: Vec<Package>,
    /// Packages from elsewhere that members need, directly or not, on any platform.
    pub foreign: Vec<Package>,
    /// Files that git keeps or would keep, if they are text.
    pub files: Vec<TextFile>,
    /// All files that git keeps or would keep.
    pub sizes: Vec<FileSize>,
}

/// A package, a member or from elsewhere.
#[derive(Clone, Debug, Default)]
pub struct Package {
    pub name: String,
    pub version: String,
    /// Its folder, relative to the root for members.
    pub folder: String,
    pub edition: String,
    pub rust_version: String,
    /// Its licence as an SPDX expression.
    pub licence: Option<String>,
    /// Whether a registry may have it.
    pub publishable: bool,
    pub dependencies: Vec<Dependency>,
    pub targets: Vec<Target>,
    /// `role` of `[package.metadata.chappe]`; what it means is in `rules/roles.rs`.
    pub role: Option<String>,
    /// `also` of the same table: members that this one may build on, though its role may not.
    pub also: Vec<String>,
    /// `also-for-tests` of the same table.
    pub also_for_tests: Vec<String>,
    /// `hosted` of the same table: why this one needs an operating system, though its role needs none.
    pub hosted: Option<String>,
}

/// A library, program, test, example or benchmark of a package.
#[derive(Clone, Debug, Default)]
pub struct Target {
    /// `lib`, `bin`, `test`, `bench`, ...
    pub kind: String,
    pub name: String,
    /// Its root file, relative to the workspace's root for members.
    pub file: String,
}

/// An edge of the dependency graph.
#[derive(Clone, Debug)]
pub struct Dependency {
    pub name: String,
    pub kind: Kind,
}

/// What a dependency is needed for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The package itself, or its build script.
    Normal,
    /// Its tests, examples and benchmarks.
    Dev,
}

/// A file of the repository that is text.
#[derive(Clone, Debug)]
pub struct TextFile {
    /// Relative to the root, with `/`.
    pub path: String,
    pub text: String,
}

/// How long a file of the repository is, text or not.
#[derive(Clone, Debug)]
pub struct FileSize {
    /// Relative to the root, with `/`.
    pub path: String,
    pub octets: u64,
}

impl Workspace {
    /// The workspace that this program belongs to.
    pub fn load() -> Result<Workspace, String> {
        let root = root()?;
        let mut workspace = Workspace::from_metadata(&metadata(&root)?)?;
        (workspace.files, workspace.sizes) = kept_files(&root)?;
        Ok(workspace)
    }

    /// The member of this name.
    pub fn member(&self, name: &str) -> Option<&Package> {
        self.members.iter().find(|p| p.name == name)
    }

    /// The text of a kept file.
    pub fn text(&self, path: &str) -> Option<&str> {
        let file = self.files.iter().find(|f| f.path == path)?;
        Some(&file.text)
    }

    /// Folders of the packages that stand outside the workspace: proofs, and benchmarks beside other libraries.
    pub fn stand_alone(&self) -> Vec<&str> {
        let manifests = self
            .files
            .iter()
            .filter_map(|f| f.path.strip_suffix("/Cargo.toml"));
        let outside = |folder: &&str| folder.starts_with("proof/") || folder.starts_with("bench/");
        manifests.filter(outside).collect()
    }

    /// Where those are built. One folder, since they share procedural macros and most libraries; a program replaces that
    /// of another package that has its name.
    pub fn stand_alone_target(&self) -> PathBuf {
        self.target.join("xtask/stand-alone")
    }

    fn from_metadata(metadata: &Value) -> Result<Workspace, String> {
        let root = PathBuf::from(string(metadata, "workspace_root")?);
        let mut workspace = Workspace {
            target: PathBuf::from(string(metadata, "target_directory")?),
            root: root.clone(),
            ..Workspace::default()
        };
        let members = array(metadata, "workspace_members");
        for value in array(metadata, "packages") {
            let package = package(value, &root)?;
            let is_member = members.contains(&value["id"]);
            let list = if is_member {
                &mut workspace.members
            } else {
                &mut workspace.foreign
            };
            list.push(package);
        }
        Ok(workspace)
    }
}

/// The root folder: the parent of this package's own.
pub fn root() -> Result<PathBuf, String> {
    // Compiled in, so that the program works from any folder; the environment wins where cargo sets it, since a
    // checkout may have been moved after it was built.
    let own = std::env::var_os("CARGO_MANIFEST_DIR")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
    let root = own.parent().ok_or("xtask stands in no workspace")?;
    Ok(root.to_owned())
}

fn metadata(root: &Path) -> Result<Value, String> {
    let mut command = process::cargo(root, ["metadata", "--format-version", "1"]);
    let json = process::take(&mut command, Duration::from_secs(300))
        .map_err(|why| format!("cargo metadata: {why}"))?;
    serde_json::from_str(&json).map_err(|why| format!("cargo metadata: {why}"))
}

fn package(value: &Value, root: &Path) -> Result<Package, String> {
    let manifest = PathBuf::from(string(value, "manifest_path")?);
    let folder = manifest.parent().unwrap_or(root);
    let folder = folder.strip_prefix(root).unwrap_or(folder);
    let dependencies = array(value, "dependencies").iter().map(|d| {
        Ok(Dependency {
            name: string(d, "name")?,
            kind: match d["kind"].as_str() {
                Some("dev") => Kind::Dev,
                _ => Kind::Normal,
            },
        })
    });
    let targets = array(value, "targets").iter().map(|t| {
        let file = PathBuf::from(string(t, "src_path")?);
        let file = file.strip_prefix(root).unwrap_or(&file);
        Ok(Target {
            kind: t["kind"][0].as_str().unwrap_or_default().to_owned(),
            name: string(t, "name")?,
            file: file.to_string_lossy().into_owned(),
        })
    });
    let declared = &value["metadata"]["chappe"];
    Ok(Package {
        name: string(value, "name")?,
        version: string(value, "version")?,
        folder: folder.to_string_lossy().into_owned(),
        edition: string(value, "edition")?,
        rust_version: value["rust_version"]
            .as_str()
            .unwrap_or_default()
            .to_owned(),
        licence: value["license"].as_str().map(str::to_owned),
        publishable: value["publish"].is_null(),
        dependencies: dependencies.collect::<Result<_, String>>()?,
        targets: targets.collect::<Result<_, String>>()?,
        role: declared["role"].as_str().map(str::to_owned),
        also: names(declared, "also"),
        also_for_tests: names(declared, "also-for-tests"),
        hosted: declared["hosted"].as_str().map(str::to_owned),
    })
}

fn kept_files(root: &Path) -> Result<(Vec<TextFile>, Vec<FileSize>), String> {
    let mut git = Command::new("git");
    git.current_dir(root).args([
        "ls-files",
        "-z",
        "--cached",
        "--others",
        "--exclude-standard",
    ]);
    let names = process::take(&mut git, Duration::from_secs(60))
        .map_err(|why| format!("git ls-files: {why}"))?;
    let (mut files, mut sizes) = (Vec::new(), Vec::new());
    for path in names.split('\0').filter(|name| !name.is_empty()) {
        // A file that was deleted but not yet committed has nothing to judge.
        let Ok(content) = fs::read(root.join(path)) else {
            continue;
        };
        sizes.push(FileSize {
            path: path.to_owned(),
            octets: content.len() as u64,
        });
        if let Ok(text) = String::from_utf8(content) {
            let path = path.to_owned();
            files.push(TextFile { path, text });
        }
    }
    Ok((files, sizes))
}

fn string(value: &Value, key: &str) -> Result<String, String> {
    match value[key].as_str() {
        Some(text) => Ok(text.to_owned()),
        None => Err(format!("cargo metadata has no `{key}` where one is due")),
    }
}

/// The strings of an array; none where there is no such array.
fn names(value: &Value, key: &str) -> Vec<String> {
    let names = array(value, key).iter().filter_map(Value::as_str);
    names.map(str::to_owned).collect()
}

fn array<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value[key].as_array().map(Vec::as_slice).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_workspace_can_be_read() {
        let workspace = Workspace::load().unwrap();
        let own = workspace.member("xtask").unwrap();
        assert_eq!(own.folder, "xtask");
        let program = own.targets.iter().find(|t| t.kind == "bin").unwrap();
        assert_eq!(program.file, "xtask/src/main.rs");
        assert!(own.dependencies.iter().any(|d| d.name == "serde_json"));
        assert!(workspace.foreign.iter().any(|p| p.name == "serde_json"));
        assert!(workspace.text("xtask/src/workspace.rs").is_some());
        assert!(workspace.stand_alone().contains(&"proof/no-std"));
    }
}
