//! The TCP sockets that a process listens on, according to `/proc`.

use std::collections::BTreeSet;
use std::io::{self, Read};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use rustix::fs::{Dir, Mode, OFlags, openat, readlinkat};

use crate::record::agent::Target;

/// The most bytes that are read of a list of sockets. A line has 150 bytes.
const MOST: u64 = 16 << 20;

/// The most descriptors that are looked at.
const DESCRIPTORS: usize = 1 << 16;

/// The state of a socket that listens (`TCP_LISTEN`).
const LISTEN: &str = "0A";

/// A socket that listens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Listener {
    /// Where it listens.
    pub address: SocketAddr,
    /// Its number in the kernel.
    pub inode: u64,
}

/// All sockets that listen in the process's network namespace.
pub fn all(target: &Target) -> io::Result<Vec<Listener>> {
    let mut listeners = Vec::new();
    for name in ["net/tcp", "net/tcp6"] {
        let mut text = String::new();
        // Without IPv6, there is no second list.
        match target.file(name) {
            Ok(file) => drop(file.take(MOST).read_to_string(&mut text)?),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        listeners.extend(text.lines().filter_map(parse));
    }
    Ok(listeners)
}

/// Those of them that the process has open.
pub fn own(target: &Target, all: &[Listener]) -> io::Result<Vec<Listener>> {
    let inodes = sockets(target)?;
    Ok(all.iter().copied().filter(|listener| inodes.contains(&listener.inode)).collect())
}

/// The numbers of the sockets that the process has open.
fn sockets(target: &Target) -> io::Result<BTreeSet<u64>> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let folder = openat(target.folder(), "fd", flags, Mode::empty())?;
    let entries = Dir::read_from(&folder)?.flatten().take(DESCRIPTORS);
    let inode = |entry: rustix::fs::DirEntry| {
        let link = readlinkat(&folder, entry.file_name(), Vec::new()).ok()?;
        let text = link.to_str().ok()?.strip_prefix("socket:[")?.strip_suffix(']')?;
        text.parse().ok()
    };
    Ok(entries.filter_map(inode).collect())
}

/// A line of `/proc/PID/net/tcp` or `tcp6`, if its socket listens.
fn parse(line: &str) -> Option<Listener> {
    let mut words = line.split_ascii_whitespace();
    let local = words.nth(1)?;
    // Behind the remote address.
    if words.nth(1)? != LISTEN {
        return None;
    }
    // Behind the queues, the timer, the retransmits, the user and the timeout.
    let inode = words.nth(5)?.parse().ok()?;
    let (ip, port) = local.split_once(':')?;
    let port = u16::from_str_radix(port, 16).ok()?;
    Some(Listener { address: SocketAddr::new(address(ip)?, port), inode })
}

/// An address: words of four bytes, each as the number that it is for this processor.
fn address(text: &str) -> Option<IpAddr> {
    let word = |text: &[u8]| {
        let number = u32::from_str_radix(std::str::from_utf8(text).ok()?, 16).ok()?;
        Some(number.to_ne_bytes())
    };
    let bytes: Vec<_> = text.as_bytes().chunks(8).map(word).collect::<Option<Vec<_>>>()?.concat();
    if let Ok(four) = <[u8; 4]>::try_from(&*bytes) {
        return Some(Ipv4Addr::from(four).into());
    }
    <[u8; 16]>::try_from(&*bytes).ok().map(|sixteen| Ipv6Addr::from(sixteen).into())
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn own_sockets_are_told_from_others() {
        let this = Target::open(std::process::id()).expect("this process");
        let four = TcpListener::bind("127.0.0.1:0").expect("a socket");
        let six = TcpListener::bind("[::1]:0");
        let listeners = || own(&this, &all(&this).expect("read")).expect("read");
        let is_there = |address| listeners().iter().any(|listener| listener.address == address);
        assert!(is_there(four.local_addr().expect("its address")));
        if let Ok(six) = six {
            assert!(is_there(six.local_addr().expect("its address")));
        }
        let parent = Target::open(
            rustix::process::getppid().expect("a parent").as_raw_nonzero().get().cast_unsigned(),
        );
        if let Ok(theirs) = parent.and_then(|parent| own(&parent, &all(&parent)?)) {
            let address = four.local_addr().expect("its address");
            assert!(theirs.iter().all(|listener| listener.address != address));
        }
    }

    #[test]
    fn other_lines_are_skipped() {
        let line = "   1: 0100007F:240D 00000000:0000 0A 00000000:00000000 00:00000000 00000000  0 0 4711 1 0 100";
        assert_eq!(parse(line).map(|it| it.inode), Some(4711));
        for other in [
            "",
            "sl  local_address rem_address   st tx_queue",
            &line.replace("0A ", "01 "),
            &line.replace("0100007F:240D", "0100007F"),
            &line.replace("0100007F:240D", "0100007F01:240D"),
            &line.replace("4711", "x"),
            "1: 0100007F:240D 00000000:0000 0A",
        ] {
            assert!(parse(other).is_none(), "{other}");
        }
    }
}
