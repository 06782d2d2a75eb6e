//! Races that somebody has accepted: by a suppression, which gives a reason, or by a baseline.
//!
//! An accepted race is counted and named in the verdict, and does not change the exit code. Suppressions are asked first. What is beyond
//! the number of races that are kept was compared with nothing, and counts.

mod baseline;
mod suppressions;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::Args;
use dagsan_report::{Acceptance, Accepted, Project, Report, fingerprint};
use serde::{Deserialize, Serialize};

pub use baseline::Baseline;
pub use suppressions::Suppressions;

/// The file of suppressions that is used without being named.
pub const FILE: &str = "dagsan.toml";

/// Which races do not count
#[derive(Debug, Clone, Default, PartialEq, Eq, Args, Serialize, Deserialize)]
pub struct AcceptArguments {
    /// Races that do not count, each with its reason; besides dagsan.toml, which is found in this directory, those above it in
    /// the repository, and beside the packages of the workspace; may be repeated
    #[arg(long, value_name = "FILE")]
    pub suppressions: Vec<PathBuf>,

    /// Those beside the packages of the workspace, whose programs may not all be run.
    #[arg(skip)]
    pub of_packages: Vec<PathBuf>,

    /// Races that are known, by their fingerprints: only others count
    #[arg(long, value_name = "FILE")]
    pub baseline: Option<PathBuf>,

    /// Write the races of this run to the baseline, in place of what it has
    #[arg(long, requires = "baseline")]
    pub update_baseline: bool,
}

impl AcceptArguments {
    /// With names that mean the same in every directory, and with the files that are used without being named: in `start` and above, and in the
    /// directories of `packages`.
    pub fn absolute(&self, start: &Path, packages: &[PathBuf]) -> Result<AcceptArguments> {
        let absolute =
            |path: &PathBuf| std::path::absolute(path).context("cannot tell the current directory");
        let named = self.suppressions.iter().map(absolute);
        let found = find(start);
        let beside = packages.iter().map(|package| package.join(FILE));
        let of_packages = beside.filter(|file| file.is_file() && !found.contains(file)).collect();
        Ok(AcceptArguments {
            suppressions: found.into_iter().map(Ok).chain(named).collect::<Result<_>>()?,
            of_packages,
            baseline: self.baseline.as_ref().map(absolute).transpose()?,
            update_baseline: self.update_baseline,
        })
    }
}

impl AcceptArguments {
    /// The file that is written, if one is.
    pub fn written(&self) -> Option<&Path> {
        self.baseline.as_deref().filter(|_| self.update_baseline)
    }

    /// The files that are read.
    pub fn read(&self) -> impl Iterator<Item = &Path> {
        let baseline = self.baseline.as_ref().filter(|_| !self.update_baseline);
        self.suppressions.iter().chain(&self.of_packages).chain(baseline).map(PathBuf::as_path)
    }
}

/// The files of suppressions in a directory and above, up to the root of the project, the nearest one first.
fn find(start: &Path) -> Vec<PathBuf> {
    let root = Project::around(start).root().to_owned();
    let directories = start.ancestors().take_while(|directory| directory.starts_with(&root));
    directories.map(|directory| directory.join(FILE)).filter(|file| file.is_file()).collect()
}

/// What one or more programs have met.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Met {
    /// The suppressions that matched, by their place in the list.
    pub matched: BTreeSet<usize>,
    /// The races, but for those that are suppressed: fingerprints, and what they are in words.
    pub races: Baseline,
}

impl Met {
    /// Adds what another one has met.
    pub fn add(&mut self, other: &Met) {
        self.matched.extend(&other.matched);
        self.races.add(&other.races);
    }
}

/// Decides which races count.
#[derive(Debug)]
pub struct Accepting {
    project: Project,
    suppressions: Suppressions,
    baseline: Option<(PathBuf, Baseline)>,
    update: bool,
}

impl Accepting {
    /// Reads the files of arguments that are [`absolute`](AcceptArguments::absolute).
    pub fn load(arguments: &AcceptArguments, project: Project) -> Result<Accepting> {
        let mut suppressions = Suppressions::read(&arguments.suppressions, &project)?;
        suppressions.add_of_packages(&arguments.of_packages, &project)?;
        let baseline = match &arguments.baseline {
            Some(path) if arguments.update_baseline => Some((path.clone(), Baseline::default())),
            Some(path) => Some((path.clone(), Baseline::read(path, &project)?)),
            None => None,
        };
        Ok(Accepting { project, suppressions, baseline, update: arguments.update_baseline })
    }

    /// Puts accepted races apart, and says what was met.
    pub fn apply(&self, report: &mut Report) -> Met {
        let mut met = Met::default();
        let baseline = self.baseline.as_ref().map(|(path, _)| self.project.name(&path.to_string_lossy()));
        for race in std::mem::take(&mut report.races) {
            if let Some(entry) = self.suppressions.find(report, &race, &self.project) {
                met.matched.insert(entry);
                let by = self.suppressions.acceptance(entry);
                report.accepted.push(Accepted { race, by });
                continue;
            }
            let print = fingerprint(report, &race, &self.project);
            let known = self.update || self.baseline.as_ref().is_some_and(|(_, known)| known.has(&print));
            met.races.insert(print, baseline::words(report, &race, &self.project));
            match &baseline {
                Some(baseline) if known => {
                    let by = Acceptance::Known { baseline: baseline.clone() };
                    report.accepted.push(Accepted { race, by });
                }
                _ => report.races.push(race),
            }
        }
        report.clean();
        met
    }

    /// When all programs have ended: writes the baseline, and says what is left over.
    pub fn finish(&self, met: &Met) -> Result<Vec<String>> {
        let mut warnings: Vec<String> = self
            .suppressions
            .unmatched(&met.matched)
            .map(|entry| {
                format!("{entry} matched no race in this run: remove it if it is not needed any more")
            })
            .collect();
        match &self.baseline {
            Some((path, _)) if self.update => met.races.write(path)?,
            Some((path, known)) => {
                let gone = known.without(&met.races);
                if gone > 0 {
                    let races = if gone == 1 { "1 race".to_owned() } else { format!("{gone} races") };
                    let name = self.project.name(&path.to_string_lossy());
                    warnings.push(format!(
                        "{races} of {name} did not come up in this run; --update-baseline forgets what is gone"
                    ));
                }
            }
            None => {}
        }
        Ok(warnings)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn files_of_the_workspace_and_of_its_packages_are_found() {
        let root = std::env::temp_dir().join(format!("dagsan-accept-{}", std::process::id()));
        let [a, b] = ["a", "b"].map(|package| root.join(package));
        for directory in [&root.join(".git"), &a, &b] {
            fs::create_dir_all(directory).unwrap();
        }
        let entry = |variable: &str| format!("[[suppress]]\nreason = \"r\"\nvariable = \"{variable}\"\n");
        fs::write(root.join(FILE), entry("all")).unwrap();
        fs::write(b.join(FILE), entry("b")).unwrap();
        let packages = [a.clone(), b.clone()];
        let found = |start: &Path| {
            let arguments = AcceptArguments::default().absolute(start, &packages).unwrap();
            let accepting = Accepting::load(&arguments, Project::around(start)).unwrap();
            // None is met: what is missed is what the command was started for.
            let missed = accepting.finish(&Met::default()).unwrap();
            let missed: Vec<String> =
                missed.iter().map(|text| text.split(' ').next().unwrap().to_owned()).collect();
            ([arguments.suppressions.len(), arguments.of_packages.len()], missed)
        };
        assert_eq!(found(&root), ([1, 1], vec!["dagsan.toml:1".to_owned()]));
        assert_eq!(found(&a), ([1, 1], vec!["dagsan.toml:1".to_owned()]));
        assert_eq!(found(&b), ([2, 0], vec!["b/dagsan.toml:1".to_owned(), "dagsan.toml:1".to_owned()]));
        fs::remove_dir_all(&root).unwrap();
    }
}
