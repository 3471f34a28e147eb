package codelog

// Unwind has the unwind tables of a code. Pointers in them are relative to
// their own position, computed as if the tables followed the code at the next
// multiple of 8, in the order of the record.
type Unwind struct {
	// EHFrame is the section .eh_frame; empty for code that is unwound by its
	// frame pointer.
	EHFrame []byte
	// EHFrameHdr is the section .eh_frame_hdr, if there is one.
	EHFrameHdr []byte
	// HdrFirst says that .eh_frame_hdr comes first.
	HdrFirst bool
	// MappedSize is the number of bytes of the tables behind the code in the
	// process's memory; 0 if they are not there.
	MappedSize uint64
}

func parseUnwinding(payload []byte, big bool) (Unwind, bool) {
	f := fields{rest: payload, big: big}
	all, hdr, mapped := f.u64(), f.u64(), f.u64()
	data := f.take(all)
	if f.bad || hdr > all {
		return Unwind{}, false
	}
	frameSize := all - hdr
	u := Unwind{EHFrame: data[:frameSize], EHFrameHdr: data[frameSize:], MappedSize: mapped}
	other := Unwind{EHFrame: data[hdr:], EHFrameHdr: data[:hdr], MappedSize: mapped, HdrFirst: true}
	if !u.fits(big) && other.fits(big) {
		return other, true
	}
	return u, true
}

// fits says whether both sections begin as such sections do.
func (u *Unwind) fits(big bool) bool {
	if hdr := u.EHFrameHdr; len(hdr) > 0 {
		if hdr[0] != 1 || len(hdr) < 4 {
			return false
		}
		for _, encoding := range hdr[1:4] {
			if encoding != 0xff && encoding&0x0f > 0x0c {
				return false
			}
		}
	}
	if len(u.EHFrame) == 0 {
		return true
	}
	f := fields{rest: u.EHFrame, big: big}
	if f.u32() == 0 && !f.bad {
		return true
	}
	return f.u32() == 0 && !f.bad
}
