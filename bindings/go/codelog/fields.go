package codelog

import (
	"bytes"
	"encoding/binary"
)

// fields takes fields off the front of a slice. After a field that is not
// there, ok is false and all further fields are zero.
type fields struct {
	rest []byte
	big  bool
	bad  bool
}

func (f *fields) take(size uint64) []byte {
	if f.bad || size > uint64(len(f.rest)) {
		f.bad = true
		return nil
	}
	taken := f.rest[:size:size]
	f.rest = f.rest[size:]
	return taken
}

func (f *fields) u8() uint8 {
	if taken := f.take(1); taken != nil {
		return taken[0]
	}
	return 0
}

func (f *fields) u16() uint16 {
	taken := f.take(2)
	if taken == nil {
		return 0
	}
	if f.big {
		return binary.BigEndian.Uint16(taken)
	}
	return binary.LittleEndian.Uint16(taken)
}

func (f *fields) u32() uint32 {
	taken := f.take(4)
	if taken == nil {
		return 0
	}
	if f.big {
		return binary.BigEndian.Uint32(taken)
	}
	return binary.LittleEndian.Uint32(taken)
}

func (f *fields) u64() uint64 {
	taken := f.take(8)
	if taken == nil {
		return 0
	}
	if f.big {
		return binary.BigEndian.Uint64(taken)
	}
	return binary.LittleEndian.Uint64(taken)
}

// text returns the bytes up to the next NUL, which is consumed as well.
func (f *fields) text() []byte {
	if f.bad {
		return nil
	}
	size := bytes.IndexByte(f.rest, 0)
	if size < 0 {
		f.bad = true
		return nil
	}
	text := f.rest[:size:size]
	f.rest = f.rest[size+1:]
	return text
}

// addSaturating returns a + b, or the largest number.
func addSaturating(a, b uint64) uint64 {
	if sum := a + b; sum >= a {
		return sum
	}
	return ^uint64(0)
}
