package codelog

// Move says that a code was moved.
type Move struct {
	Offset                 uint64
	Time                   uint64
	PID, TID               uint32
	OldAddress, NewAddress uint64
	Size, Index            uint64
}

// EventKind is what happened.
type EventKind int

// The kinds of events.
const (
	// LoadEvent: Code was loaded. What was in its address range is gone.
	LoadEvent EventKind = iota
	// MoveEvent: a code was moved.
	MoveEvent
	// CloseEvent: the writer ended in an orderly way.
	CloseEvent
	// DamageEvent: bytes that are no record, or a record that cannot be read.
	DamageEvent
	// UnloadEvent: Code was unloaded at Code.Died. Only [LogReader] returns it.
	UnloadEvent
)

// Event is what a file says.
type Event struct {
	Kind EventKind
	// Offset in the file.
	Offset uint64
	// Time by the clock of the records; 0 for damage.
	Time uint64
	Code *Code
	Move *Move
}

// LeftOut counts codes that a writer left out for lack of space.
type LeftOut struct{ Count, First, Last uint64 }

func (l *LeftOut) add(other LeftOut) {
	switch {
	case other.Count == 0:
		return
	case l.Count == 0:
		*l = other
		return
	}
	l.Count = addSaturating(l.Count, other.Count)
	if other.First < l.First {
		l.First = other.First
	}
	if other.Last > l.Last {
		l.Last = other.Last
	}
}

// debugWindow is how many records may be between a DEBUG_INFO and its LOAD.
const debugWindow = 256

type pendingDebug struct {
	number uint64
	info   debugInfo
}

// pending has the records of codes whose LOAD has not come.
type pending struct {
	number    uint64
	debug     []pendingDebug
	positions *sourcePositions
	// positionsAt is the number of that record.
	positionsAt uint64
	unwinding   *Unwind
	// isAdjacent: the last of debug may belong to the next LOAD by its place.
	isAdjacent bool
	group      *tailItems
	groupAddr  uint64
	groupAt    uint64
}

func (p *pending) forget() { *p = pending{number: p.number} }

// decoder assembles events from records.
type decoder struct {
	header  Header
	quirks  *quirks
	pending pending
	leftOut LeftOut
	last    uint64
	hasLast bool
}

func newDecoder(h Header) *decoder {
	q := &quirks{isThumb: h.Machine == machineARM, isV8: h.Pad1 == 0xdeadbeef}
	q.votes[0].bias, q.votes[1].bias = 0x40, 0x34
	return &decoder{header: h, quirks: q}
}

// decode passes the events in data, which begins at offset, and returns how many
// bytes were used. isWhole says that nothing follows.
func (d *decoder) decode(data []byte, offset uint64, isWhole bool, each func(Event)) (int, End) {
	d.quirks.isWhole = d.quirks.isWhole || isWhole
	r := records{data: data, big: d.header.BigEndian, isWhole: isWhole, last: d.last, hasLast: d.hasLast}
	for {
		begin := r.at
		s, p, payload := r.next()
		d.last, d.hasLast = r.last, r.hasLast
		at := addSaturating(offset, uint64(begin))
		switch s {
		case stepRecord:
			d.record(p, payload, at, each)
		case stepDamage:
			d.pending.forget()
			each(Event{Kind: DamageEvent, Offset: at})
		default:
			return begin, r.end
		}
	}
}

func (d *decoder) record(p prefix, payload []byte, at uint64, each func(Event)) {
	big := d.header.BigEndian
	damage := func() {
		d.pending.forget()
		each(Event{Kind: DamageEvent, Offset: at})
	}
	d.pending.number++
	switch p.id {
	case idLoad:
		l, ok := parseLoad(payload, big)
		if !ok {
			damage()
			return
		}
		c := d.load(l, p.time, at)
		d.quirks.examine(c)
		each(Event{Kind: LoadEvent, Offset: at, Time: p.time, Code: c})
	case idMove:
		f := fields{rest: payload, big: big}
		m := &Move{Offset: at, Time: p.time, PID: f.u32(), TID: f.u32()}
		f.u64()
		m.OldAddress, m.NewAddress = d.quirks.address(f.u64()), d.quirks.address(f.u64())
		m.Size, m.Index = f.u64(), f.u64()
		if f.bad {
			damage()
			return
		}
		each(Event{Kind: MoveEvent, Offset: at, Time: p.time, Move: m})
	case idClose:
		d.pending.forget()
		each(Event{Kind: CloseEvent, Offset: at, Time: p.time})
	case idDebugInfo:
		info, ok := parseDebugInfo(payload, big)
		if !ok {
			damage()
			return
		}
		if info.count == 0 {
			if c := d.tail(&info, p.time, at); c != nil {
				each(Event{Kind: LoadEvent, Offset: at, Time: p.time, Code: c})
			}
			return
		}
		if len(d.pending.debug) >= debugWindow {
			d.pending.debug = d.pending.debug[1:]
		}
		d.pending.debug = append(d.pending.debug, pendingDebug{d.pending.number, info})
		d.pending.isAdjacent = true
	case idUnwindingInfo:
		u, ok := parseUnwinding(payload, big)
		if !ok {
			damage()
			return
		}
		d.pending.unwinding = &u
	case idSourcePositions:
		if s, ok := parsePositions(payload, big); ok {
			d.pending.positions, d.pending.positionsAt = &s, d.pending.number
		}
	}
}

func (d *decoder) load(l loadRecord, time, at uint64) *Code {
	addr := l.addr
	if addr == 0 {
		addr = l.vma
	}
	c := &Code{
		Offset: at, Time: time, PID: l.pid, TID: l.tid,
		Address: d.quirks.address(addr), Size: l.size, Index: l.index,
		Name: l.name, Bytes: l.code,
		quirks: d.quirks, big: d.header.BigEndian,
	}
	p := &d.pending
	group := p.group
	p.group = nil
	if group != nil && d.quirks.address(p.groupAddr) == c.Address {
		// What came before the group belongs to another code.
		kept := p.debug[:0:0]
		for _, info := range p.debug {
			if info.number > p.groupAt {
				kept = append(kept, info)
			}
		}
		p.debug = kept
		if p.positions != nil && p.positionsAt < p.groupAt {
			p.positions = nil
		}
		c.setTail(*group)
	}
	if s := p.positions; s != nil && d.quirks.address(s.addr) == c.Address && !s.isEmpty() {
		c.positions = s
	}
	p.positions = nil
	c.debug = d.debugOf(c)
	c.unwinding, p.unwinding = p.unwinding, nil
	p.isAdjacent = false
	return c
}

// debugOf takes the DEBUG_INFO of a code, and drops those that can no longer
// belong to any.
func (d *decoder) debugOf(c *Code) *debugInfo {
	p := &d.pending
	for len(p.debug) > 0 && p.debug[0].number+debugWindow < p.number {
		p.debug = p.debug[1:]
	}
	if len(p.debug) == 0 {
		return nil
	}
	within := addressRange{c.Address, c.End()}
	isOf := func(info *debugInfo) bool { return d.quirks.address(info.addr) == c.Address }
	last := &p.debug[len(p.debug)-1].info
	var found *debugInfo
	if isOf(last) || (p.isAdjacent && within.contains(last.addr)) {
		found = last
	} else {
		for n := len(p.debug) - 1; n >= 0 && found == nil; n-- {
			if isOf(&p.debug[n].info) {
				found = &p.debug[n].info
			}
		}
	}
	var kept []pendingDebug
	for n := range p.debug {
		if info := &p.debug[n].info; !isOf(info) && !within.contains(info.addr) {
			kept = append(kept, p.debug[n])
		}
	}
	p.debug = kept
	return found
}

// tail handles a record that has no entries. For a code without bytes it is the
// only record.
func (d *decoder) tail(info *debugInfo, time, at uint64) *Code {
	items, ok := parseTail(info.rest, info.big)
	if !ok {
		return nil
	}
	if described, ok := items.code(); ok {
		d.pending.group, d.pending.unwinding = nil, nil
		if described.flags&noBytesFlag == 0 {
			d.pending.group, d.pending.groupAddr, d.pending.groupAt = &items, info.addr, d.pending.number
			return nil
		}
		if described.size > largestWithoutBytes {
			return nil
		}
		name, _ := items.find(tagName, -1)
		c := &Code{
			Offset: at, Time: time, PID: d.header.PID, TID: described.tid,
			Address: d.quirks.address(info.addr), Size: described.size, Index: described.index,
			Name:   upToNUL(name),
			quirks: d.quirks, big: info.big,
		}
		c.setTail(items)
		return c
	}
	for {
		found, ok := items.next()
		if !ok {
			return nil
		}
		f := fields{rest: found.payload, big: info.big}
		switch found.tag {
		case tagLog:
			f.take(24)
		case tagLeftOut:
		default:
			continue
		}
		if l := (LeftOut{f.u64(), f.u64(), f.u64()}); !f.bad {
			d.leftOut.add(l)
		}
	}
}

func (c *Code) setTail(items tailItems) {
	c.tail, c.hasTail = items, true
	described, _ := items.code()
	c.Kind = OtherKind
	if described.kind <= uint8(JavaMethod) {
		c.Kind = Kind(described.kind)
	}
	switch {
	case described.flags&2 != 0:
		c.FramePointer = FramePointerPrologue
	case described.flags&4 != 0:
		c.FramePointer = FramePointerThroughout
	}
	c.Tier, _ = items.find(tagTier, -1)
	c.setDied(described.died)
	if described.flags&noBytesFlag != 0 {
		c.Bytes = nil
	}
}

// setDied sets when the code was unloaded: never before its load.
func (c *Code) setDied(died uint64) {
	if died != 0 && died < c.Time {
		died = c.Time
	}
	c.Died = died
}
