//! Files that the user has named: findings, reports, pictures. The one place that writes them.
//!
//! A regular file, or one that is not there yet, is written beside its place and then moved there: whole or not at all, and
//! whatever stands in its place by then, a link that somebody else has put there, say, is not followed. Everything
//! else (a device, a pipe, a link) stays what it is, and is written to: to replace `/dev/null` by a file would harm the
//! whole machine.
//!
//! In a directory that others may write, such as `/tmp`, such a thing may have been put there by somebody else, to lead
//! elsewhere: there it must belong to this user, or to root. A directory in the path that is a link is followed, as
//! everywhere; and if a directory is not only for others to write but lets them remove what is not theirs (no sticky bit), a
//! link can be exchanged after it was looked at.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

/// Writes `text` to what is at `path`, or to a new file.
pub fn write(path: &Path, text: &[u8]) -> io::Result<()> {
    match look(path)? {
        There::File(mode) => replace(path, text, mode),
        There::Other(before) => {
            in_place(path, &before, OpenOptions::new().create(true).truncate(true))?.write_all(text)
        }
    }
}

/// Makes an empty file for [`append`]. What is no regular file is left alone: whoever reads a pipe would take it for its
/// end.
pub fn clear(path: &Path) -> io::Result<()> {
    match look(path)? {
        There::File(mode) => replace(path, b"", mode),
        There::Other(_) => Ok(()),
    }
}

/// Writes `text` behind what is there.
pub fn append(path: &Path, text: &[u8]) -> io::Result<()> {
    let mut file = match look(path)? {
        There::File(_) => {
            let mut options = OpenOptions::new();
            let file = options
                .append(true)
                .create(true)
                .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK)
                .open(path)?;
            trust(path, &file.metadata()?)?;
            file
        }
        There::Other(before) => in_place(path, &before, OpenOptions::new().create(true).append(true))?,
    };
    file.write_all(text)
}

/// What is at a path.
enum There {
    /// A regular file of these permissions, or nothing.
    File(u32),
    /// Something else, which may be trusted.
    Other(Metadata),
}

/// The permissions of new files, but for those that the user does not give.
const NEW: u32 = 0o666;

fn look(path: &Path) -> io::Result<There> {
    let there = match fs::symlink_metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(There::File(NEW)),
        other => other?,
    };
    if there.is_dir() {
        return Err(ErrorKind::IsADirectory.into());
    }
    if !there.is_file() {
        trust(path, &there)?;
        return Ok(There::Other(there));
    }
    // To move another file to its place would need no permission of the file's own.
    if there.permissions().readonly() {
        return Err(io::Error::new(ErrorKind::PermissionDenied, "the file is read-only"));
    }
    Ok(There::File(there.mode() & 0o777))
}

/// May what is at `path` be written to as it is?
fn trust(path: &Path, there: &Metadata) -> io::Result<()> {
    let directory = match path.parent() {
        Some(parent) if parent != Path::new("") => fs::metadata(parent)?,
        _ => fs::metadata(".")?,
    };
    // SAFETY: a plain call, which cannot fail.
    let user = unsafe { libc::geteuid() };
    if is_trusted(user, (directory.uid(), directory.mode()), there.uid()) {
        return Ok(());
    }
    let why =
        "it belongs to another user, in a directory that others may write: remove it, or take another name";
    Err(io::Error::new(ErrorKind::PermissionDenied, why))
}

/// Would only `user` and root have put something of this owner into a directory of this owner and mode?
fn is_trusted(user: u32, directory: (u32, u32), owner: u32) -> bool {
    const OTHERS_WRITE: u32 = 0o022;
    let ours = |owner| owner == user || owner == 0;
    ours(owner) || ours(directory.0) && directory.1 & OTHERS_WRITE == 0
}

/// Opens what is no regular file.
fn in_place(path: &Path, before: &Metadata, options: &mut OpenOptions) -> io::Result<File> {
    // A pipe that nobody reads is an error, not something to wait for.
    let file = options.write(true).custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY).open(path);
    let file = match file {
        Err(error) if error.raw_os_error() == Some(libc::ENXIO) => {
            return Err(io::Error::new(ErrorKind::NotConnected, "nobody reads from it"));
        }
        other => other?,
    };
    let now = file.metadata()?;
    if !before.is_symlink() && (now.dev(), now.ino()) != (before.dev(), before.ino()) {
        return Err(io::Error::new(ErrorKind::PermissionDenied, "it was exchanged while it was opened"));
    }
    // One who reads slowly is waited for.
    // SAFETY: plain calls, for a file that is open.
    let changed = unsafe {
        let flags = libc::fcntl(file.as_raw_fd(), libc::F_GETFL);
        libc::fcntl(file.as_raw_fd(), libc::F_SETFL, flags & !libc::O_NONBLOCK)
    };
    if changed < 0 { Err(io::Error::last_os_error()) } else { Ok(file) }
}

/// So many names are tried for the file that becomes the wanted one.
const NAMES: u32 = 100;

/// Writes a new file and moves it to `path`.
fn replace(path: &Path, text: &[u8], mode: u32) -> io::Result<()> {
    for number in 0..NAMES {
        let partial = path.with_file_name(format!("dagsan.{}.{number}.partial", std::process::id()));
        // With `O_EXCL`: neither a file nor a link of that name is there.
        let mut file = match OpenOptions::new().write(true).create_new(true).mode(mode).open(&partial) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => continue,
            other => other?,
        };
        let written = file.write_all(text).and_then(|()| fs::rename(&partial, path));
        if written.is_err() {
            // Why it could not be written says more than why its beginning cannot be removed.
            let _ = fs::remove_file(&partial);
        }
        return written;
    }
    Err(io::Error::new(ErrorKind::AlreadyExists, "there is no free name for a file beside it"))
}

#[cfg(test)]
mod tests {
    use std::ffi::CString;
    use std::io::Read;
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::fs::{FileTypeExt, PermissionsExt, lchown, symlink};
    use std::path::PathBuf;
    use std::thread;

    use super::*;

    /// A directory that goes away.
    struct Directory(PathBuf);

    impl Directory {
        fn new(name: &str) -> Directory {
            let path = std::env::temp_dir().join(format!("dagsan-output-{name}-{}", std::process::id()));
            fs::create_dir(&path).unwrap();
            Directory(path)
        }

        fn file(&self, name: &str) -> PathBuf {
            self.0.join(name)
        }

        fn names(&self) -> Vec<String> {
            let name = |entry: io::Result<fs::DirEntry>| entry.unwrap().file_name().into_string().unwrap();
            let mut names: Vec<String> = fs::read_dir(&self.0).unwrap().map(name).collect();
            names.sort();
            names
        }
    }

    impl Drop for Directory {
        fn drop(&mut self) {
            // A test that has failed says more than what it leaves behind.
            let _ = fs::set_permissions(&self.0, fs::Permissions::from_mode(0o700));
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn is_root() -> bool {
        // SAFETY: a plain call.
        unsafe { libc::geteuid() == 0 }
    }

    fn make_fifo(path: &Path) {
        let name = CString::new(path.as_os_str().as_bytes()).unwrap();
        // SAFETY: a C string.
        assert_eq!(unsafe { libc::mkfifo(name.as_ptr(), 0o600) }, 0);
    }

    #[test]
    fn a_file_is_written_as_a_whole_and_nothing_else_is_left() {
        let directory = Directory::new("file");
        let file = directory.file("a.json");
        write(&file, b"one, and longer").unwrap();
        write(&file, b"two").unwrap();
        assert_eq!(fs::read(&file).unwrap(), b"two");
        append(&file, b", three").unwrap();
        append(&directory.file("b"), b"four").unwrap();
        assert_eq!(fs::read(&file).unwrap(), b"two, three");
        assert_eq!(fs::read(directory.file("b")).unwrap(), b"four");
        clear(&file).unwrap();
        assert_eq!(fs::read(&file).unwrap(), b"");
        assert_eq!(directory.names(), ["a.json", "b"]);
    }

    #[test]
    fn the_permissions_of_a_file_stay() {
        let directory = Directory::new("permissions");
        let file = directory.file("private");
        fs::write(&file, "one").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
        write(&file, b"two").unwrap();
        assert_eq!(fs::metadata(&file).unwrap().mode() & 0o777, 0o600);
        fs::set_permissions(&file, fs::Permissions::from_mode(0o400)).unwrap();
        assert_eq!(write(&file, b"three").unwrap_err().kind(), ErrorKind::PermissionDenied);
        assert_eq!(fs::read(&file).unwrap(), b"two");
    }

    #[test]
    fn a_link_to_a_device_stays_one() {
        let directory = Directory::new("link");
        let link = directory.file("null");
        symlink("/dev/null", &link).unwrap();
        for act in [write, append] {
            act(&link, b"text").unwrap();
        }
        clear(&link).unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert!(fs::metadata("/dev/null").unwrap().file_type().is_char_device());
        assert_eq!(directory.names(), ["null"]);
    }

    #[test]
    fn a_device_stays_one() {
        let directory = Directory::new("device");
        let device = directory.file("null");
        let name = CString::new(device.as_os_str().as_bytes()).unwrap();
        // SAFETY: a C string; the device is that of /dev/null.
        let made = unsafe { libc::mknod(name.as_ptr(), libc::S_IFCHR | 0o600, libc::makedev(1, 3)) };
        if made != 0 || File::open(&device).is_err() {
            // Only root may make one, and file systems may refuse to open it.
            return;
        }
        write(&device, b"text").unwrap();
        assert!(fs::metadata(&device).unwrap().file_type().is_char_device());
        assert_eq!(directory.names(), ["null"]);
    }

    #[test]
    fn links_to_files_are_followed_and_stay() {
        let directory = Directory::new("links");
        let (link, file) = (directory.file("link"), directory.file("file"));
        symlink("file", &link).unwrap();
        write(&link, b"one, and longer").unwrap();
        write(&link, b"two").unwrap();
        append(&link, b", three").unwrap();
        assert_eq!(fs::read(&file).unwrap(), b"two, three");
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    }

    #[test]
    fn a_pipe_is_written_to_if_somebody_reads() {
        let directory = Directory::new("fifo");
        let fifo = directory.file("fifo");
        make_fifo(&fifo);
        assert_eq!(write(&fifo, b"text").unwrap_err().kind(), ErrorKind::NotConnected);
        // More than a pipe holds at a time.
        let text = vec![b'x'; 1 << 20];
        let reader = thread::spawn({
            let fifo = fifo.clone();
            move || {
                let mut read = Vec::new();
                File::open(fifo).unwrap().read_to_end(&mut read).unwrap();
                read
            }
        });
        let sent = (0..10_000).any(|_| {
            thread::sleep(std::time::Duration::from_millis(1));
            write(&fifo, &text).is_ok()
        });
        assert!(sent);
        assert_eq!(reader.join().unwrap().len(), text.len());
        assert!(fs::metadata(&fifo).unwrap().file_type().is_fifo());
        clear(&fifo).unwrap();
    }

    #[test]
    fn directories_are_refused_and_so_are_places_in_what_is_read_only_or_not_there() {
        let directory = Directory::new("directory");
        let inner = directory.file("inner");
        fs::create_dir(&inner).unwrap();
        assert_eq!(write(&inner, b"text").unwrap_err().kind(), ErrorKind::IsADirectory);
        symlink("inner", directory.file("link")).unwrap();
        assert_eq!(write(&directory.file("link"), b"text").unwrap_err().kind(), ErrorKind::IsADirectory);
        assert_eq!(write(&directory.file("gone/a"), b"text").unwrap_err().kind(), ErrorKind::NotFound);
        fs::set_permissions(&inner, fs::Permissions::from_mode(0o500)).unwrap();
        if !is_root() {
            assert_eq!(write(&inner.join("a"), b"text").unwrap_err().kind(), ErrorKind::PermissionDenied);
        }
        assert_eq!(directory.names(), ["inner", "link"]);
    }

    #[test]
    fn a_file_that_stands_where_the_new_one_begins_is_left_alone() {
        let directory = Directory::new("partial");
        let partial = directory.file(&format!("dagsan.{}.0.partial", std::process::id()));
        let victim = directory.file("victim");
        fs::write(&victim, "dear").unwrap();
        symlink("victim", &partial).unwrap();
        write(&directory.file("a"), b"text").unwrap();
        assert_eq!(fs::read(&victim).unwrap(), b"dear");
        assert_eq!(fs::read(directory.file("a")).unwrap(), b"text");
    }

    /// Somebody else has put links and pipes where root will write.
    #[test]
    fn in_a_directory_for_everybody_the_things_of_others_are_not_followed() {
        let directory = Directory::new("sticky");
        fs::set_permissions(&directory.0, fs::Permissions::from_mode(0o1777)).unwrap();
        let victim = directory.file("victim");
        fs::write(&victim, "dear").unwrap();
        let [link, fifo] = ["link", "fifo"].map(|name| directory.file(name));
        symlink("victim", &link).unwrap();
        make_fifo(&fifo);
        write(&link, b"ours: followed").unwrap();
        assert_eq!(fs::read(&victim).unwrap(), b"ours: followed");
        if !is_root() {
            // Nobody else can give things away.
            return;
        }
        for path in [&link, &fifo] {
            lchown(path, Some(12345), Some(12345)).unwrap();
            for act in [write, append] {
                let error = act(path, b"text").unwrap_err();
                assert_eq!(error.kind(), ErrorKind::PermissionDenied);
                assert!(error.to_string().contains("belongs to another user"), "{error}");
            }
            assert!(clear(path).is_err());
        }
        assert_eq!(fs::read(&victim).unwrap(), b"ours: followed");
        let file = directory.file("file");
        fs::write(&file, "theirs").unwrap();
        lchown(&file, Some(12345), None).unwrap();
        assert!(append(&file, b"text").is_err());
        write(&file, b"ours").unwrap();
        assert_eq!(fs::metadata(&file).unwrap().uid(), 0);
    }

    #[test]
    fn who_is_trusted() {
        let (root, user, other) = (0, 7, 8);
        assert!(is_trusted(user, (root, 0o755), other));
        assert!(is_trusted(user, (user, 0o700), other));
        assert!(!is_trusted(user, (other, 0o755), other), "the owner of the directory may write");
        assert!(!is_trusted(user, (root, 0o1777), other));
        assert!(!is_trusted(user, (user, 0o775), other));
        assert!(is_trusted(user, (root, 0o1777), user) && is_trusted(user, (root, 0o1777), root));
        assert!(!is_trusted(root, (root, 0o1777), user));
    }
}
