//! A kernel, built for each tool, with and without its seeded race; and Archer.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use crate::bench::native::{succeed, target_directory};

/// The compiler of all builds.
const CLANG: &str = "clang-19";

/// The executables of a kernel.
pub struct Builds {
    pub name: String,
    pub directory: PathBuf,
    pub plain: PathBuf,
    pub archer: PathBuf,
    pub archer_race: PathBuf,
    pub dagsan: PathBuf,
    pub dagsan_race: PathBuf,
}

impl Builds {
    /// Builds them, all optimised alike.
    pub fn make(root: &Path, source: &Path) -> Result<Builds> {
        let name = source.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        println!("building {name}");
        let directory = target_directory(root).join("native").join("kernels").join("openmp");
        fs::create_dir_all(&directory).with_context(|| format!("cannot make {}", directory.display()))?;
        let dagsan = dagsan(root)?;
        let build = |tool: &str, race: bool| -> Result<PathBuf> {
            let mut command = match tool {
                "dagsan" => Command::new(&dagsan),
                _ => Command::new(CLANG),
            };
            let path = directory.join(format!("{name}-{tool}{}", if race { "-race" } else { "" }));
            command.args((tool == "dagsan").then_some("cc"));
            command.args((tool == "archer").then_some("-fsanitize=thread"));
            command.args(race.then_some("-DRACE"));
            command.args(["-O2", "-g", "-fopenmp", "-o"]).arg(&path).arg(source).arg("-lm");
            command.env("DAGSAN_CACHE", target_directory(root).join("openmp-cache"));
            command.env_remove("DAGSAN_CC").env_remove("DAGSAN_PASS");
            succeed(&mut command)?;
            Ok(path)
        };
        Ok(Builds {
            plain: build("plain", false)?,
            archer: build("archer", false)?,
            archer_race: build("archer", true)?,
            dagsan: build("dagsan", false)?,
            dagsan_race: build("dagsan", true)?,
            name,
            directory,
        })
    }
}

/// The `dagsan` of this workspace.
fn dagsan(root: &Path) -> Result<PathBuf> {
    let mut command = Command::new("cargo");
    command.args(["build", "--release", "--quiet", "--package", "dagsan", "--bin", "dagsan"]);
    succeed(command.current_dir(root))?;
    Ok(target_directory(root).join("release").join("dagsan"))
}

/// LLVM's tool that tells ThreadSanitizer what OpenMP orders.
pub struct Archer {
    library: PathBuf,
    /// Does the machine place memory where ThreadSanitizer cannot have it?
    fixed_addresses: bool,
}

impl Archer {
    /// Finds it, and sees that it is at work in a program that is run with it.
    pub fn find() -> Result<Archer> {
        let packages = "apt-get install clang-19 libomp-19-dev libclang-rt-19-dev";
        let asked = Command::new(CLANG).arg("-print-file-name=libarcher.so").output();
        let asked = asked.with_context(|| format!("cannot start {CLANG}: {packages}"))?;
        let library = PathBuf::from(String::from_utf8_lossy(&asked.stdout).trim());
        ensure!(library.is_absolute() && library.exists(), "Archer is not there: {packages}");
        let directory = env::temp_dir().join(format!("dagsan-archer-{}", std::process::id()));
        fs::create_dir_all(&directory).with_context(|| format!("cannot make {}", directory.display()))?;
        let tried = Archer::at_work(&library, &directory);
        fs::remove_dir_all(&directory).with_context(|| format!("cannot remove {}", directory.display()))?;
        tried
    }

    fn at_work(library: &Path, directory: &Path) -> Result<Archer> {
        let (source, program) = (directory.join("empty.c"), directory.join("empty"));
        fs::write(&source, "int main(void) {\n#pragma omp parallel\n    {}\n    return 0;\n}\n")
            .with_context(|| format!("cannot write {}", source.display()))?;
        succeed(
            Command::new(CLANG).args(["-fsanitize=thread", "-fopenmp", "-o"]).arg(&program).arg(&source),
        )?;
        let mut said = String::new();
        for fixed_addresses in [false, true] {
            let archer = Archer { library: library.to_owned(), fixed_addresses };
            let mut command = Command::new(&program);
            archer.prepare(&mut command, "exitcode=1").env("ARCHER_OPTIONS", "verbose=1");
            let ended = command.output().context("cannot start a program with Archer")?;
            said = String::from_utf8_lossy(&ended.stderr).into_owned();
            said += &String::from_utf8_lossy(&ended.stdout);
            if ended.status.success() && said.contains("Archer detected OpenMP application with TSan") {
                return Ok(archer);
            }
        }
        bail!("Archer is not at work in a program that was compiled for it: {said}")
    }

    /// The program is run with it.
    pub fn prepare<'a>(&self, command: &'a mut Command, options: &str) -> &'a mut Command {
        if self.fixed_addresses {
            let program = command.get_program().to_owned();
            let mut fixed = Command::new("setarch");
            fixed.args(["--addr-no-randomize", "--"]).arg(program);
            for (name, value) in command.get_envs() {
                match value {
                    Some(value) => fixed.env(name, value),
                    None => fixed.env_remove(name),
                };
            }
            *command = fixed;
        }
        // What libomp does itself is not to be reported, as its documentation says.
        let options = format!("ignore_noninstrumented_modules=1 {options}");
        command.env("OMP_TOOL_LIBRARIES", &self.library).env("TSAN_OPTIONS", options)
    }
}
