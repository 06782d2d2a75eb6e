//! Puts the sources of what is built for checked programs into the command: the runtimes, the pass and the drop-in for rayon.
//!
//! They are in `runtime`, by links to the crates beside this one. `cargo package` follows links to files and to directories, and leaves out directories with
//! a `Cargo.toml`: so manifests have another name there. What comes out is `carried.rs`: the files, under the names that they have in the workspace
//! that is unpacked (`src/native/sources.rs`), and a digest of all of them.

use std::env;
use std::error::Error;
use std::fmt::Write;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

const DIRECTORY: &str = "runtime";

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed={DIRECTORY}");
    let output = PathBuf::from(env::var("OUT_DIR")?);
    let directory = Path::new(&env::var("CARGO_MANIFEST_DIR")?).join(DIRECTORY);
    let mut files = Vec::new();
    collect(&directory, &mut files)?;
    files.sort();

    let mut digest = DefaultHasher::new();
    let mut list = String::new();
    for file in files {
        // Directories that are linked to are not looked into for changes.
        println!("cargo::rerun-if-changed={}", file.display());
        let mut path = file.clone();
        let name = unpacked(file.strip_prefix(&directory)?)?;
        if name == "Cargo.toml" {
            path = output.join("workspace.toml");
            fs::write(&path, workspace(&fs::read_to_string(&file)?)?)?;
        }
        (&name, fs::read(&path)?).hash(&mut digest);
        writeln!(list, "    ({name:?}, include_bytes!({path:?})),")?;
    }
    let carried = format!(
        "/// A name, and what the file holds.\npub const FILES: &[(&str, &[u8])] = &[\n{list}];\n\n\
         /// Changes with them.\npub const DIGEST: &str = \"{:016x}\";\n",
        digest.finish()
    );
    fs::write(output.join("carried.rs"), carried)?;
    Ok(())
}

fn collect(directory: &Path, files: &mut Vec<PathBuf>) -> Result<(), Box<dyn Error>> {
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        match path.is_dir() {
            true => collect(&path, files)?,
            false => files.push(path),
        }
    }
    Ok(())
}

/// The name in the workspace that is unpacked.
fn unpacked(path: &Path) -> Result<String, Box<dyn Error>> {
    let name = path.to_str().ok_or("a name that is not UTF-8")?;
    Ok(match name {
        "workspace.toml" => "Cargo.toml".to_owned(),
        "workspace.lock" => "Cargo.lock".to_owned(),
        _ => format!("crates/{}", name.replace("/manifest.toml", "/Cargo.toml")),
    })
}

/// The manifest of the workspace, with the crates that are carried as its only members.
fn workspace(manifest: &str) -> Result<String, Box<dyn Error>> {
    let is_list = |line: &&str| {
        ["members = ", "exclude = ", "default-members = "].iter().any(|key| line.starts_with(key))
    };
    let (lists, others): (Vec<&str>, Vec<&str>) = manifest.lines().partition(is_list);
    if lists.iter().any(|line| !line.ends_with(']')) {
        return Err("the lists of members are expected to be on one line each".into());
    }
    Ok(others.join("\n").replace("[workspace]\n", "[workspace]\nmembers = [\"crates/*\"]\n") + "\n")
}
