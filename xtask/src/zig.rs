//! Zig from PyPI as a C compiler for other targets: one version on all machines.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::install;

/// Environment variables that name a C compiler and its archiver.
pub(crate) type CompilerVariables = Vec<(String, PathBuf)>;

/// Writes two scripts into `folder` that pass on to Zig what it understands: it has its own names of targets.
pub(crate) fn compiler(
    target: &str,
    zig_target: &str,
    folder: &Path,
) -> Result<CompilerVariables, String> {
    let python = install::zig()?;
    fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let script = |name: &str, text: String| {
        let path = folder.join(name);
        let write = || {
            fs::write(&path, &text)?;
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755))
        };
        match write() {
            Ok(()) => Ok(path),
            Err(error) => Err(format!("{}: {error}", path.display())),
        }
    };
    // Without optimization, Zig adds checks that need a library of its own.
    let python = python.display();
    let compile = format!(
        "#!/bin/sh\nfor arg do\n  shift\n  case $arg in\n    \
         --target=*|-mmacosx-version-min=*|-arch|arm64) ;;\n    *) set -- \"$@\" \"$arg\" ;;\n  esac\ndone\n\
         exec '{python}' -m ziglang cc -target {zig_target} -fno-sanitize=undefined \"$@\"\n"
    );
    let archive = format!("#!/bin/sh\nexec '{python}' -m ziglang ar \"$@\"\n");
    let name = target.replace('-', "_");
    Ok(vec![
        (format!("CC_{name}"), script("cc", compile)?),
        (format!("AR_{name}"), script("ar", archive)?),
    ])
}
