package codelog

import "bytes"

// debugInfo is the body of a DEBUG_INFO.
type debugInfo struct {
	addr, count uint64
	// rest has the entries and what follows them.
	rest []byte
	big  bool
}

func parseDebugInfo(payload []byte, big bool) (debugInfo, bool) {
	f := fields{rest: payload, big: big}
	d := debugInfo{addr: f.u64(), count: f.u64(), big: big}
	d.rest = f.rest
	return d, !f.bad
}

type entry struct {
	addr         uint64
	line, column uint32
	file         []byte
	// isSame: the file of the entry before.
	isSame bool
}

// entries walks over the entries of a record.
type entries struct {
	f            fields
	left         uint64
	near, within addressRange
	codeName     []byte
	isGarbled    bool
	isLost       bool
}

// addressRange is [start, end).
type addressRange struct{ start, end uint64 }

func (r addressRange) contains(a uint64) bool { return r.start <= a && a < r.end }

const (
	// overwritten is how many bytes of a freed block glibc overwrites.
	overwritten = 16
	// nearCode is the largest distance of an entry from its code.
	nearCode = 1 << 24
)

// raw walks over the entries as they are.
func (d *debugInfo) raw() entries {
	return entries{f: fields{rest: d.rest, big: d.big}, left: d.count, isLost: true}
}

// repaired walks over the entries, across NULs in file names that V8 wrote from
// freed memory. within is where the entries' addresses of the code are.
func (d *debugInfo) repaired(within addressRange, codeName []byte) entries {
	near := addressRange{0, addSaturating(within.end, nearCode)}
	if within.start > nearCode {
		near.start = within.start - nearCode
	}
	e := d.raw()
	e.near, e.within, e.codeName, e.isLost = near, within, codeName, false
	return e
}

func (e *entries) next() (entry, bool) {
	if e.left == 0 {
		return entry{}, false
	}
	var start []byte
	if len(e.f.rest) > 16 {
		start = e.f.rest[16:]
	}
	found := entry{addr: e.f.u64(), line: e.f.u32(), column: e.f.u32()}
	found.file = e.f.text()
	if e.f.bad {
		e.left = 0
		return entry{}, false
	}
	e.left--
	if len(found.file) == 1 && found.file[0] == 0xff {
		found.file, found.isSame = nil, true
	}
	if e.isLost || found.isSame {
		return found, true
	}
	if !e.near.contains(found.addr) {
		e.isLost = true
	} else if size, ok := e.garbled(start); ok {
		e.isGarbled = true
		found.file = e.recovered(start[:size])
		e.f.rest = nil
		if size+1 <= len(start) {
			e.f.rest = start[size+1:]
		}
	}
	return found, true
}

// garbled returns the size of the name at start, if it extends past its first
// NUL.
func (e *entries) garbled(start []byte) (int, bool) {
	rest := e.f.rest
	read := len(start) - len(rest)
	if e.left == 0 {
		// What is behind the last entry may be an extension.
		if !e.isGarbled {
			return 0, false
		}
		more := len(bytes.TrimRight(rest, "\x00"))
		return read + more, more > 0
	}
	if a, ok := addressAt(rest, e.f.big); !ok || e.near.contains(a) {
		return 0, false
	}
	for at := read; at < len(start); at++ {
		if start[at-1] != 0 {
			continue
		}
		if a, ok := addressAt(start[at:], e.f.big); ok && e.within.contains(a) {
			return at - 1, true
		}
	}
	e.isLost = true
	return 0, false
}

func addressAt(data []byte, big bool) (uint64, bool) {
	f := fields{rest: data, big: big}
	return f.u64(), !f.bad
}

// recovered is the file's name: from the name of the code, which V8 ends with
// file:line:column, or what the allocator left of it.
func (e *entries) recovered(garbled []byte) []byte {
	var left []byte
	if len(garbled) > overwritten {
		left = garbled[overwritten:]
	}
	file := withoutNumber(withoutNumber(e.codeName))
	if len(left) > 0 && len(file) >= len(garbled) {
		if whole := file[len(file)-len(garbled):]; bytes.HasSuffix(whole, left) {
			return whole
		}
	}
	return left
}

// withoutNumber returns text without a colon and a number at its end.
func withoutNumber(text []byte) []byte {
	at := len(text)
	for at > 0 && len(text)-at < 10 && text[at-1] >= '0' && text[at-1] <= '9' {
		at--
	}
	if at == len(text) || at == 0 || text[at-1] != ':' {
		return text
	}
	return text[:at-1]
}
