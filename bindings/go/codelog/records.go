package codelog

import "bytes"

// The types of records.
const (
	idLoad            = 0
	idMove            = 1
	idDebugInfo       = 2
	idClose           = 3
	idUnwindingInfo   = 4
	idSourcePositions = 0x31504d54
)

func isKnown(id uint32) bool { return id <= idUnwindingInfo }

func minSize(id uint32) uint32 {
	switch id {
	case idLoad:
		return 57
	case idMove:
		return 64
	case idDebugInfo:
		return 32
	case idUnwindingInfo:
		return 40
	}
	return recordHeaderSize
}

const (
	// timeAhead is how much later than the last record a record may be that is
	// found behind damage: nearly ten hours.
	timeAhead = 1 << 45
	// loadPadding is how far from its code the end of a LOAD's name may be
	// there.
	loadPadding = 16
	// mostHeld is how much of a growing file is held for one record.
	mostHeld = 1 << 27
	// largestWithoutBytes is the largest size that is believed of a code whose
	// bytes are not in the file.
	largestWithoutBytes = 1 << 28
)

type prefix struct {
	id, size uint32
	time     uint64
}

func readPrefix(data []byte, big bool) (prefix, bool) {
	f := fields{rest: data, big: big}
	p := prefix{id: f.u32(), size: f.u32(), time: f.u64()}
	return p, !f.bad
}

// End says how a file ends.
type End int

// The ways in which a file ends.
const (
	// EndComplete is the end of a record.
	EndComplete End = iota
	// EndCutOff is within a record.
	EndCutOff
	// EndZeros is space that was reserved and not used.
	EndZeros
	// EndDamaged is bytes that are no record.
	EndDamaged
)

func (e End) String() string {
	return [...]string{"complete", "cut-off", "zeros", "damaged"}[e]
}

// step is what records.next finds.
type step int

const (
	stepRecord step = iota
	stepDamage
	stepEnd
	// stepMore: it depends on bytes that are not there yet.
	stepMore
)

// records walks over the records in data.
type records struct {
	data []byte
	big  bool
	at   int
	// isWhole says that nothing follows data.
	isWhole bool
	// last is the time of the last record.
	last    uint64
	hasLast bool
	end     End
	// isEnded: what remains is damage that was already returned.
	isEnded bool
}

// next returns the next record with its header.
func (r *records) next() (step, prefix, []byte) {
	if r.isEnded {
		return stepEnd, prefix{}, nil
	}
	if r.at > len(r.data) {
		r.end = EndCutOff
		return r.orMore(stepEnd), prefix{}, nil
	}
	rest := r.data[r.at:]
	if p, ok := r.validRecord(rest); ok {
		return stepRecord, p, r.take(p, rest)
	}
	if len(rest) == 0 {
		r.end = EndComplete
		return r.orMore(stepEnd), prefix{}, nil
	}
	p, ok := readPrefix(rest, r.big)
	switch {
	case !ok:
		r.end = EndCutOff
		return r.orMore(stepEnd), p, nil
	case p == prefix{}:
		if !r.isWhole && len(rest) < mostHeld {
			// Space that will be filled.
			return stepMore, p, nil
		}
		return r.skip(true), p, nil
	case p.size < recordHeaderSize:
		return r.skip(false), p, nil
	case uint64(p.size) > uint64(len(rest)):
		if !r.isWhole && p.size < mostHeld {
			return stepMore, p, nil
		}
		return r.cutOff(p, rest), p, nil
	}
	record := rest[:p.size]
	if !isKnown(p.id) || !isSound(p, record[recordHeaderSize:], r.big) {
		return r.skip(false), p, nil
	}
	r.setTime(p.time)
	if found, ok := r.find(r.at+1, r.at+len(record)); ok {
		r.at = found
		return stepDamage, p, nil
	}
	return stepRecord, p, r.take(p, rest)
}

func (r *records) orMore(s step) step {
	if !r.isWhole {
		return stepMore
	}
	return s
}

func (r *records) setTime(time uint64) {
	if !r.hasLast {
		r.last, r.hasLast = time, true
	}
}

func (r *records) take(p prefix, rest []byte) []byte {
	record := rest[:p.size:p.size]
	r.at += len(record)
	if logRecordAt(record, r.big) == notOfALog {
		r.last, r.hasLast = p.time, true
	}
	return record[recordHeaderSize:]
}

// validRecord says whether rest begins with a complete record that is
// consistent with what is before and behind it.
func (r *records) validRecord(rest []byte) (prefix, bool) {
	p, ok := readPrefix(rest, r.big)
	if !ok || p.size < recordHeaderSize || uint64(p.size) > uint64(len(rest)) {
		return p, false
	}
	if logRecordAt(rest[:p.size], r.big) == filler {
		return p, true
	}
	if !isKnown(p.id) && r.hasLast && !r.isInTime(p) {
		return p, false
	}
	return p, mayFollow(rest[p.size:], r.big, p.time)
}

func (r *records) isInTime(p prefix) bool {
	if !r.hasLast {
		return p.time != 0
	}
	return isNear(p.time, r.last)
}

func isNear(time, last uint64) bool {
	return time >= last-last/4 && time <= addSaturating(last, timeAhead)
}

// skip moves to the next record behind damage.
func (r *records) skip(isZeros bool) step {
	from := r.at
	if !isZeros {
		from++
	}
	if found, ok := r.find(from, len(r.data)); ok {
		r.at = found
		return stepDamage
	}
	if !r.isWhole && len(r.data)-r.at < mostHeld {
		return stepMore
	}
	if isZeros && len(bytes.TrimLeft(r.data[r.at:], "\x00")) == 0 {
		r.end = EndZeros
		return stepEnd
	}
	r.end, r.isEnded = EndDamaged, true
	r.at = len(r.data)
	return stepDamage
}

// cutOff handles a record that extends past the end: the file ends there,
// unless complete records follow, or the header is not plausible.
func (r *records) cutOff(p prefix, rest []byte) step {
	isHeader := isPlausible(p, rest[recordHeaderSize:], r.big) && (isKnown(p.id) || r.isInTime(p))
	if isHeader && isKnown(p.id) {
		r.setTime(p.time)
	}
	if logRecordAt(rest, r.big) != filler {
		if !isHeader {
			return r.skip(false)
		}
		if _, ok := r.find(r.at+1, len(r.data)); ok {
			return r.skip(false)
		}
	}
	r.end = EndCutOff
	return stepEnd
}

// find returns the first place in a range where a complete record seems to
// begin.
func (r *records) find(from, to int) (int, bool) {
	if from >= to {
		return 0, false
	}
	// Zeros alone are no record, but a LOAD begins with up to seven of them.
	zeros := len(r.data) - from - len(bytes.TrimLeft(r.data[from:], "\x00"))
	if zeros == len(r.data)-from {
		return 0, false
	}
	if zeros > 7 {
		from += zeros - 7
	}
	for ; from < to; from++ {
		if r.isRecord(r.data[from:]) {
			return from, true
		}
	}
	return 0, false
}

func (r *records) isRecord(rest []byte) bool {
	p, ok := readPrefix(rest, r.big)
	if !ok || !isKnown(p.id) || p.size < minSize(p.id) || uint64(p.size) > uint64(len(rest)) {
		return false
	}
	payload := rest[recordHeaderSize:p.size]
	return (r.isInTime(p) || logRecordAt(rest, r.big) != notOfALog) &&
		isPlausible(p, payload, r.big) &&
		shapeFits(p, payload, r.big) &&
		mayFollow(rest[p.size:], r.big, p.time)
}

// mayFollow says whether rest, behind a record of this time, is the end, a
// hole, or looks like a record.
func mayFollow(rest []byte, big bool, time uint64) bool {
	p, ok := readPrefix(rest, big)
	return !ok || p == prefix{} || (p.size >= minSize(p.id) && isNear(p.time, time)) ||
		logRecordAt(rest, big) != notOfALog
}

// isPlausible says whether the fields that are there are consistent, so that
// the record's size can be trusted.
func isPlausible(p prefix, payload []byte, big bool) bool {
	if p.size < minSize(p.id) {
		return false
	}
	size := uint64(p.size) - recordHeaderSize
	f := fields{rest: payload, big: big}
	switch p.id {
	case idLoad:
		f.take(24)
		codeSize := f.u64()
		if f.bad || codeSize <= size-41 {
			return true
		}
		// Or it has no bytes, and the name extends to its end.
		return len(payload) <= 40 || bytes.IndexByte(payload[40:], 0) < 0
	case idDebugInfo:
		f.take(8)
		count := f.u64()
		return f.bad || count <= (size-16)/17
	case idUnwindingInfo:
		all, header := f.u64(), f.u64()
		return f.bad || (header <= all && all <= size-24)
	}
	return true
}

// shapeFits checks more of the types whose fields prove little.
func shapeFits(p prefix, payload []byte, big bool) bool {
	switch p.id {
	case idLoad:
		f := fields{rest: payload, big: big}
		f.take(24)
		codeSize := f.u64()
		if f.bad || codeSize > uint64(len(payload)) {
			return false
		}
		end := len(payload) - int(codeSize)
		start := end - loadPadding
		if start < 40 {
			start = 40
		}
		return start < end && bytes.IndexByte(payload[start:end], 0) >= 0
	case idMove:
		return p.size == minSize(idMove)
	case idClose:
		return p.size == recordHeaderSize
	}
	return true
}

// isSound says whether the body of a record of a known type can be parsed.
func isSound(p prefix, payload []byte, big bool) bool {
	switch p.id {
	case idLoad:
		_, ok := parseLoad(payload, big)
		return ok
	case idMove:
		return len(payload) >= 48
	case idDebugInfo:
		return len(payload) >= 16
	case idUnwindingInfo:
		_, ok := parseUnwinding(payload, big)
		return ok
	}
	return true
}

// logRecord is a kind of record that is not in the order of time.
type logRecord int

const (
	notOfALog logRecord = iota
	// filler is space that is not in use. It may contain complete old records.
	filler
	// tailRecord is a record that has only a tail.
	tailRecord
)

func logRecordAt(data []byte, big bool) logRecord {
	f := fields{rest: data, big: big}
	id, size, _ := f.u32(), f.u32(), f.u64()
	address, count := f.u64(), f.u64()
	if f.bad || id != idDebugInfo || count != 0 {
		return notOfALog
	}
	switch {
	case size >= 40 && f.u32() == tailMagic:
		return tailRecord
	case address == 0 && size >= 32 && size%8 == 0:
		return filler
	}
	return notOfALog
}

// loadRecord is the body of a LOAD.
type loadRecord struct {
	pid, tid         uint32
	vma, addr, index uint64
	size             uint64
	name             []byte
	// code is nil if the record does not contain it.
	code []byte
}

func parseLoad(payload []byte, big bool) (loadRecord, bool) {
	f := fields{rest: payload, big: big}
	l := loadRecord{pid: f.u32(), tid: f.u32(), vma: f.u64(), addr: f.u64(), size: f.u64(), index: f.u64()}
	l.name = f.text()
	if f.bad {
		return l, false
	}
	if len(f.rest) == 0 && l.size > 0 && l.size <= largestWithoutBytes {
		return l, true
	}
	l.code = f.take(l.size)
	return l, !f.bad
}
