package codelog

import "bytes"

const tailMagic = 0x5243534a

// The tags of items.
const (
	tagCode     = 1
	tagName     = 2
	tagTier     = 3
	tagLines    = 4
	tagInlined  = 5
	tagEHFrame  = 6
	tagLeftOut  = 7
	tagLog      = 16
	tagChunk    = 17
	noParent    = ^uint32(0)
	noBytesFlag = 1
)

// item is an item of a tail.
type item struct {
	tag, detail uint16
	payload     []byte
}

// tailItems walks over the items of a tail.
type tailItems struct{ f fields }

// parseTail reads a tail at the start of data.
func parseTail(data []byte, big bool) (tailItems, bool) {
	f := fields{rest: data, big: big}
	if f.u32() != tailMagic {
		return tailItems{}, false
	}
	size := uint64(f.u32())
	if f.bad {
		return tailItems{}, false
	}
	if size%8 == 0 && size <= uint64(len(f.rest)) {
		f.rest = f.rest[:size]
	}
	return tailItems{f}, true
}

func (t *tailItems) next() (item, bool) {
	if len(t.f.rest) == 0 {
		return item{}, false
	}
	found := item{tag: t.f.u16(), detail: t.f.u16()}
	size := uint64(t.f.u32())
	found.payload = t.f.take(size)
	if t.f.bad {
		t.f.rest = nil
		return item{}, false
	}
	if padding := -size & 7; padding <= uint64(len(t.f.rest)) {
		t.f.rest = t.f.rest[padding:]
	} else {
		t.f.rest = nil
	}
	return found, true
}

// find returns the first item with a tag, and with a detail unless it is -1.
func (t tailItems) find(tag uint16, detail int) ([]byte, bool) {
	for {
		found, ok := t.next()
		if !ok {
			return nil, false
		}
		if found.tag == tag && (detail < 0 || int(found.detail) == detail) {
			return found.payload, true
		}
	}
}

// codeItem is the payload of CODE.
type codeItem struct {
	died, size, index uint64
	groupSize, tid    uint32
	kind, flags       uint8
}

// code returns the CODE item, which is the first of its tail.
func (t tailItems) code() (codeItem, bool) {
	first, ok := t.next()
	if !ok || first.tag != tagCode {
		return codeItem{}, false
	}
	f := fields{rest: first.payload, big: t.f.big}
	c := codeItem{died: f.u64(), size: f.u64(), index: f.u64(), groupSize: f.u32(), tid: f.u32(), kind: f.u8(), flags: f.u8()}
	f.take(6)
	return c, !f.bad
}

// tableLines decodes a LINES item of a code at base.
func tableLines(payload []byte, big bool, base uint64) []entry {
	f := fields{rest: payload, big: big}
	count, files := uint64(f.u32()), uint64(f.u32())
	rows := fields{rest: f.take(count * 16), big: big}
	if f.bad {
		return nil
	}
	var names [][]byte
	for uint64(len(names)) < files && len(names) < mostStrings {
		name := f.text()
		if f.bad {
			break
		}
		names = append(names, name)
	}
	found := make([]entry, 0, len(rows.rest)/16)
	for len(rows.rest) > 0 {
		e := entry{addr: addSaturating(base, uint64(rows.u32())), line: rows.u32(), column: rows.u32()}
		if file := uint64(rows.u32()); file < uint64(len(names)) {
			e.file = names[file]
		}
		found = append(found, e)
	}
	return found
}

// inlinedCalls decodes an INLINED item of a code of this size at base.
func inlinedCalls(payload []byte, big bool, base, size uint64) []InlinedCall {
	f := fields{rest: payload, big: big}
	callCount, rangeCount := uint64(f.u32()), uint64(f.u32())
	calls := fields{rest: f.take(callCount * 16), big: big}
	ranges := fields{rest: f.take(rangeCount * 8), big: big}
	if f.bad {
		return nil
	}
	var found []InlinedCall
	var file []byte
	for len(calls.rest) > 0 {
		parent := calls.u32()
		call := InlinedCall{Parent: -1, Line: calls.u32(), Column: calls.u32()}
		own := fields{rest: ranges.take(uint64(calls.u32()) * 8), big: big}
		call.Name = f.text()
		callFile := f.text()
		if parent != noParent {
			call.Parent = int(parent)
		}
		if ranges.bad || f.bad || call.Parent >= len(found) {
			break
		}
		if len(callFile) > 0 {
			file = callFile
		}
		call.File = file
		for len(own.rest) > 0 {
			start, end := uint64(own.u32()), uint64(own.u32())
			if end > size {
				end = size
			}
			start, end = addSaturating(base, start), addSaturating(base, end)
			if start < end {
				call.Ranges = append(call.Ranges, Range{start, end})
			}
		}
		found = append(found, call)
	}
	return found
}

// upToNUL returns the bytes before the first NUL.
func upToNUL(name []byte) []byte {
	if at := bytes.IndexByte(name, 0); at >= 0 {
		return name[:at]
	}
	return name
}
