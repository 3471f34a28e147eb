//! Messages between the command, its helper and the workers: packets with attached descriptors.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags,
    SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recvmsg,
    sendmsg, socketpair, sockopt,
};

/// The maximum number of bytes in a packet.
pub const PACKET: usize = 1 << 16;

/// The maximum number of descriptors attached to a packet.
pub const DESCRIPTORS: usize = 16;

/// The two ends of a connection that preserves packet boundaries.
pub fn pair() -> io::Result<(OwnedFd, OwnedFd)> {
    Ok(socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?)
}

/// Limits how long [`send`] waits for space in this socket.
///
/// # Errors
/// The system's error.
pub fn bound_sending(socket: impl AsFd, time: Duration) -> io::Result<()> {
    Ok(sockopt::set_socket_timeout(socket, sockopt::Timeout::Send, Some(time))?)
}

/// Sends a packet, and waits until there is space for it.
///
/// # Errors
/// [`io::ErrorKind::BrokenPipe`] if the other end is closed, or [`io::ErrorKind::ConnectionReset`], once, if it was closed before
/// everything was read there; [`io::ErrorKind::TimedOut`] if there is no space within the limit set by [`bound_sending`].
pub fn send(socket: impl AsFd, bytes: &[&[u8]], descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
    send_with(socket, bytes, descriptors, SendFlags::empty())
}

/// Sends a packet if there is space for it.
///
/// # Errors
/// As for [`send`], at once.
pub fn send_at_once(socket: impl AsFd, bytes: &[&[u8]]) -> io::Result<()> {
    send_with(socket, bytes, &[], SendFlags::DONTWAIT)
}

fn send_with(
    socket: impl AsFd,
    bytes: &[&[u8]],
    descriptors: &[BorrowedFd<'_>],
    flags: SendFlags,
) -> io::Result<()> {
    let slices: Vec<IoSlice<'_>> = bytes.iter().map(|part| IoSlice::new(part)).collect();
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS))];
    let mut beside = SendAncillaryBuffer::new(&mut space);
    if !descriptors.is_empty() && !beside.push(SendAncillaryMessage::ScmRights(descriptors)) {
        return Err(io::Error::other("too many descriptors for a packet"));
    }
    let flags = flags | SendFlags::NOSIGNAL;
    match rustix::io::retry_on_intr(|| sendmsg(&socket, &slices, &mut beside, flags)) {
        Ok(_) => Ok(()),
        Err(Errno::AGAIN) => Err(io::Error::new(io::ErrorKind::TimedOut, "not responding")),
        Err(error) => Err(error.into()),
    }
}

/// Receives a packet into `room`. Returns its length, which is 0 if the other end is closed, and the attached descriptors.
pub fn receive(
    socket: impl AsFd,
    room: &mut [u8],
    flags: RecvFlags,
) -> io::Result<(usize, Vec<OwnedFd>)> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS))];
    let mut beside = RecvAncillaryBuffer::new(&mut space);
    let mut slices = [IoSliceMut::new(room)];
    let flags = flags | RecvFlags::CMSG_CLOEXEC;
    let received = rustix::io::retry_on_intr(|| recvmsg(&socket, &mut slices, &mut beside, flags))?;
    let mut descriptors = Vec::new();
    for message in beside.drain() {
        if let RecvAncillaryMessage::ScmRights(sent) = message {
            descriptors.extend(sent);
        }
    }
    // The kernel has dropped descriptors because this process has reached its limit. The indices of the others would be wrong.
    if received.flags.contains(ReturnFlags::CTRUNC) {
        return Err(Errno::MFILE.into());
    }
    Ok((received.bytes, descriptors))
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;

    #[test]
    fn a_socket_that_is_not_read_keeps_nobody_waiting_for_ever() {
        let (ours, theirs) = pair().expect("a pair");
        bound_sending(&ours, Duration::from_millis(50)).expect("bounded");
        // As much as the kernel keeps goes into it.
        let error = (0..1_000_000).find_map(|_| send(&ours, &[&[7; 1000]], &[]).err());
        assert_eq!(error.expect("it is full").kind(), io::ErrorKind::TimedOut);
        // What was sent is whole, and with room there, sending goes on.
        let mut room = [0; PACKET];
        assert_eq!(receive(&theirs, &mut room, RecvFlags::empty()).expect("a packet").0, 1000);
        while receive(&theirs, &mut room, RecvFlags::DONTWAIT).is_ok() {}
        send(&ours, &[b"more"], &[]).expect("room");
        // With something left that was not read, the first error is another.
        drop(theirs);
        for gone in [io::ErrorKind::ConnectionReset, io::ErrorKind::BrokenPipe] {
            assert_eq!(send(&ours, &[b"x"], &[]).unwrap_err().kind(), gone);
        }
    }

    #[test]
    fn descriptors_that_are_lost_make_the_packet_an_error() {
        let (ours, theirs) = pair().expect("a pair");
        let file = File::open("/dev/null").expect("opened");
        let mut room = [0; 8];
        let beside = [file.as_fd(); DESCRIPTORS];
        send(&ours, &[b"all"], &beside).expect("sent");
        let (count, descriptors) = receive(&theirs, &mut room, RecvFlags::empty()).expect("whole");
        assert_eq!((count, descriptors.len()), (3, DESCRIPTORS));
        // More than there is room for, as if this process could not have another.
        let beside = [file.as_fd(); 2 * DESCRIPTORS];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2 * DESCRIPTORS))];
        let mut message = SendAncillaryBuffer::new(&mut space);
        assert!(message.push(SendAncillaryMessage::ScmRights(&beside)));
        sendmsg(&ours, &[IoSlice::new(b"cut")], &mut message, SendFlags::empty()).expect("sent");
        let error = receive(&theirs, &mut room, RecvFlags::empty()).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(Errno::MFILE.raw_os_error()));
        // The next packet is whole again.
        send(&ours, &[b"next"], &beside[..1]).expect("sent");
        let (count, descriptors) = receive(&theirs, &mut room, RecvFlags::empty()).expect("whole");
        assert_eq!((count, descriptors.len()), (4, 1));
    }
}
