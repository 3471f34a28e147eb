package codelog

import (
	"errors"
	"fmt"
)

const (
	headerSize       = 40
	recordHeaderSize = 16
	machineARM       = 40
	magic            = 0x4a695444
)

// Header is the header of a jitdump.
type Header struct {
	// BigEndian is the byte order of everything that follows.
	BigEndian bool
	Version   uint32
	// Size of the header according to the file.
	Size uint32
	// Machine is the ELF e_machine of the code.
	Machine uint32
	// Pad1 is reserved; V8 writes 0xdeadbeef.
	Pad1 uint32
	// PID is the process as it sees itself.
	PID uint32
	// Time when the file was created, not always by the clock of the records.
	Time  uint64
	Flags uint64
}

// ArchTimestamps says whether timestamps are counts of the processor's clock,
// and not nanoseconds of CLOCK_MONOTONIC.
func (h *Header) ArchTimestamps() bool { return h.Flags == 1 }

// ErrNotAJitdump is the error for files that do not begin like a jitdump.
var ErrNotAJitdump = errors.New("not a jitdump")

// ParseHeader reads the header at the start of a file.
func ParseHeader(data []byte) (Header, error) {
	if len(data) < headerSize {
		return Header{}, fmt.Errorf("%w: it has %d bytes, and its header should have %d", ErrNotAJitdump, len(data), headerSize)
	}
	f := fields{rest: data}
	switch f.u32() {
	case magic:
	case 0x4454694a:
		f.big = true
	default:
		return Header{}, fmt.Errorf("%w: it begins with % x", ErrNotAJitdump, data[:4])
	}
	h := Header{BigEndian: f.big}
	h.Version, h.Size, h.Machine = f.u32(), f.u32(), f.u32()
	h.Pad1, h.PID = f.u32(), f.u32()
	h.Time, h.Flags = f.u64(), f.u64()
	if h.Version > 1 {
		return Header{}, fmt.Errorf("unknown jitdump version %d", h.Version)
	}
	return h, nil
}

// firstRecord is where the records begin. A header that claims to be smaller
// was never filled in.
func (h *Header) firstRecord() uint64 {
	if h.Size < headerSize {
		return headerSize
	}
	return uint64(h.Size)
}
