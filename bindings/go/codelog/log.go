package codelog

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sort"
	"time"
)

const (
	firstChunk     = 4096
	logItem        = headerSize + 48
	chunkHeadSize  = 64
	largestLog     = 32 << 30
	smallestChunk  = 4096
	largestChunk   = 1 << 28
	attempts       = 8
	mostWaits      = 200
	windowSize     = 1 << 16
	pageSize       = 4096
	groupHeader    = 88
	codeFlagsAt    = 48 + 33
	groupSizeAt    = 48 + 24
	codeDiedAt     = 48
	codeIndexAt    = 48 + 16
	inheritedUnit  = 1 << 15
	logVersion     = 1
	sharedInherits = 1
)

// ErrNotALog is the error for what does not begin like a code log.
var ErrNotALog = errors.New("not a code log")

// Head is the head of a code log, as it was when it was read.
type Head struct {
	// PID is the process as it sees itself. In a forked child that has not
	// announced anything yet, this is its parent's.
	PID            uint32
	ArchTimestamps bool
	ChunkSize      uint32
	// Chunks in use.
	Chunks  uint32
	Control uint32
	// Limit is the size to which the log may grow.
	Limit   uint64
	LeftOut LeftOut
	// Paused and Resumed are when the log was last turned off and on; 0: never.
	Paused, Resumed uint64
	// Forked is when the process was forked from one with a log.
	Forked uint64
	Parent uint32
	// Inherited is the address of the parent's log in this process, if codes of
	// it belong to this process.
	Inherited uint64
}

// Logs are in the byte order of the machine. Go knows it by unsafe alone, so it
// is taken from the log's first word: a log of the other order is none of this
// machine, but a core file or an image may be.
func orderOf(data []byte) (binary.ByteOrder, bool) {
	if len(data) < 4 {
		return nil, false
	}
	if binary.LittleEndian.Uint32(data) == magic {
		return binary.LittleEndian, true
	}
	return binary.BigEndian, binary.BigEndian.Uint32(data) == magic
}

// parseHead reads the first bytes of a log.
func parseHead(data []byte) (Head, Header, error) {
	h, err := ParseHeader(data)
	if err != nil {
		return Head{}, h, fmt.Errorf("%w: %v", ErrNotALog, err)
	}
	if h.Size != headerSize || len(data) < firstChunk {
		return Head{}, h, fmt.Errorf("%w: it is too short, or its header is too large", ErrNotALog)
	}
	order, _ := orderOf(data)
	if order.Uint32(data[headerSize:]) != idDebugInfo || order.Uint32(data[headerSize+32:]) != tailMagic ||
		order.Uint16(data[headerSize+40:]) != tagLog || order.Uint16(data[headerSize+42:]) != 0 {
		return Head{}, h, fmt.Errorf("%w: its first record does not describe one", ErrNotALog)
	}
	f := fields{rest: data[logItem:], big: h.BigEndian}
	if version := f.u32(); version != logVersion {
		return Head{}, h, fmt.Errorf("code log version %d is not supported; this package reads version %d", version, logVersion)
	}
	head := Head{PID: h.PID, ArchTimestamps: h.ArchTimestamps(), ChunkSize: f.u32(), Chunks: f.u32(), Control: f.u32(), Limit: f.u64()}
	head.LeftOut = LeftOut{f.u64(), f.u64(), f.u64()}
	head.Paused, head.Resumed, head.Forked = f.u64(), f.u64(), f.u64()
	head.Parent = f.u32()
	head.Inherited = uint64(f.u32()&^sharedInherits) * inheritedUnit
	if head.ChunkSize < smallestChunk || head.ChunkSize > largestChunk || head.ChunkSize%8 != 0 {
		return Head{}, h, fmt.Errorf("%w: its chunk size is %d", ErrNotALog, head.ChunkSize)
	}
	if uint64(head.ChunkSize)*uint64(head.Chunks) > largestLog {
		return Head{}, h, fmt.Errorf("%w: it claims %d chunks", ErrNotALog, head.Chunks)
	}
	return head, h, nil
}

// Source is where a log is read from: its file, or the memory of its process.
type Source interface {
	io.ReaderAt
}

// dataSource is a source with holes, which read as zeros and take no memory.
type dataSource interface {
	// NextData returns the next range of data in [start, end). found is false
	// if there is none.
	NextData(start, end uint64) (from, to uint64, found bool)
}

// Limits bound what is read of a log, which may claim content that does not
// exist, and whose process may keep changing it.
type Limits struct {
	// Held is the most bytes that are held for codes.
	Held uint64
	// Read is the most bytes that are read in a poll.
	Read uint64
	// Codes is the most codes.
	Codes int
}

// DefaultLimits suffice for the logs that the library writes by default.
var DefaultLimits = Limits{Held: 512 << 20, Read: 4 << 30, Codes: 1 << 20}

// LogReader reads a code log, repeatedly. Each [LogReader.Poll] walks over the
// chunks, and reads the records of those codes that it has not seen.
type LogReader struct {
	source Source
	limits Limits
	// until is when the process was forked from that of the log; 0: the log is
	// its own.
	until uint64
	// mayChange says that a process may be writing the log.
	mayChange bool

	header Header
	head   Head
	order  binary.ByteOrder
	quirks *quirks
	chunks map[uint32]*chunkState
	held   uint64
	count  int
	// torn counts chunks of the last poll that could not be read completely.
	torn  int
	isCut bool

	read  uint64
	waits int
	// newest is the latest time of any code.
	newest uint64
	// scratch is the buffer of windows.
	scratch []byte
}

type chunkState struct {
	epoch  uint64
	span   uint32
	groups map[uint64]*logCode
	seen   uint64
}

// logCode is a code with what identifies it.
type logCode struct {
	code *Code
	key  groupKey
	size uint64
	// isPassed: its load was passed to the caller.
	isPassed bool
}

type groupKey struct {
	time, address, index uint64
	size                 uint64
}

// NewLogReader makes a reader of the log in source. mayChange says that its
// process may be running.
func NewLogReader(source Source, mayChange bool, limits Limits) (*LogReader, error) {
	r := &LogReader{source: source, mayChange: mayChange, limits: limits, chunks: make(map[uint32]*chunkState)}
	if err := r.readHead(); err != nil {
		return nil, err
	}
	r.quirks = newDecoder(r.header).quirks
	r.quirks.isWhole = true
	return r, nil
}

func (r *LogReader) readHead() error {
	data := make([]byte, firstChunk)
	count, err := r.readAt(data, 0)
	if err != nil {
		return err
	}
	r.head, r.header, err = parseHead(data[:count])
	if err != nil {
		return err
	}
	r.order, _ = orderOf(data)
	return nil
}

// readAt reads what is there.
func (r *LogReader) readAt(data []byte, at uint64) (int, error) {
	count, err := r.source.ReadAt(data, int64(at))
	if err != nil && !errors.Is(err, io.EOF) {
		return count, fmt.Errorf("reading the code log at offset %#x: %w", at, err)
	}
	r.read += uint64(count)
	return count, nil
}

// Head returns the head as of the last poll.
func (r *LogReader) Head() Head { return r.head }

// Header returns the log's header.
func (r *LogReader) Header() Header { return r.header }

// Torn returns the number of chunks that could not be read completely in the
// last poll: damaged, or changing all the time.
func (r *LogReader) Torn() int { return r.torn }

// IsCut says that the log exceeded the limits in the last poll.
func (r *LogReader) IsCut() bool { return r.isCut }

// Len returns the number of codes in the log.
func (r *LogReader) Len() int { return r.count }

// Codes calls each for all codes in the log, dead ones included, in no order,
// until it returns false.
func (r *LogReader) Codes(each func(*Code) bool) {
	for _, state := range r.chunks {
		for _, found := range state.groups {
			if !each(found.code) {
				return
			}
		}
	}
}

// Poll passes what changed since the last call, in the order of time: loads of
// codes, and unloads. A code that was unloaded and whose space was reused in
// between was unloaded at an unknown time; Died is then the latest time of any
// code that the reader knows, which is not earlier.
func (r *LogReader) Poll(each func(Event)) error {
	if err := r.readHead(); err != nil {
		return err
	}
	r.read, r.waits, r.torn, r.isCut = 0, 0, 0, false
	var events []Event
	emit := func(e Event) { events = append(events, e) }
	var data addressRange
	lastHead := -1
	for number := uint32(0); number < r.head.Chunks && !r.isCut; {
		there := r.skipHole(number, &data)
		if there > number {
			// A chunk in use has been written to.
			r.torn++
			r.dropBetween(number, there, emit)
			number = there
			continue
		}
		span, isHead, err := r.chunk(number, lastHead, emit)
		if err != nil {
			return err
		}
		if isHead {
			lastHead = int(number)
		}
		if span == 0 {
			break
		}
		number += span
		r.isCut = r.isCut || (r.read >= r.limits.Read && number < r.head.Chunks)
	}
	sort.SliceStable(events, func(a, b int) bool { return events[a].Time < events[b].Time })
	for _, e := range events {
		each(e)
	}
	return nil
}

func (r *LogReader) chunkStart(number uint32) uint64 {
	return firstChunk + uint64(number)*uint64(r.head.ChunkSize)
}

// skipHole returns the first chunk from number on that has any data.
func (r *LogReader) skipHole(number uint32, data *addressRange) uint32 {
	source, ok := r.source.(dataSource)
	start := r.chunkStart(number)
	if !ok || data.contains(start) {
		return number
	}
	from, to, found := source.NextData(start, r.chunkStart(r.head.Chunks))
	if !found {
		return r.head.Chunks
	}
	*data = addressRange{from, to}
	if from <= start {
		return number
	}
	return number + uint32((from-start)/uint64(r.head.ChunkSize))
}

type chunkHead struct {
	epoch uint64
	span  uint32
}

func (r *LogReader) headAt(at uint64) (chunkHead, bool, bool, error) {
	// Looking at it costs a page.
	r.read += pageSize
	data := make([]byte, chunkHeadSize)
	count, err := r.readAt(data, at)
	if err != nil || count < chunkHeadSize {
		return chunkHead{}, false, true, err
	}
	if r.order.Uint32(data[32:]) != tailMagic || r.order.Uint16(data[40:]) != tagChunk {
		return chunkHead{}, false, false, nil
	}
	head := chunkHead{r.order.Uint64(data[48:]), r.order.Uint32(data[56:])}
	if head.span == 0 {
		head.span = 1
	}
	return head, true, false, nil
}

// steadyHead waits until the head of a chunk is not being changed.
func (r *LogReader) steadyHead(at uint64) (head chunkHead, found, isEnd bool, err error) {
	for {
		head, found, isEnd, err = r.headAt(at)
		if err != nil || !found || head.epoch%2 == 0 || r.waits >= mostWaits || !r.mayChange {
			return
		}
		r.waits++
		time.Sleep(time.Millisecond)
	}
}

// chunk reads a chunk, and returns how many it covers; 0 at the end of the log.
func (r *LogReader) chunk(number uint32, lastHead int, emit func(Event)) (uint32, bool, error) {
	start := r.chunkStart(number)
	left := r.head.Chunks - number
	for attempt := 0; attempt < attempts; attempt++ {
		before, found, isEnd, err := r.steadyHead(start)
		if err != nil || isEnd {
			return 0, false, err
		}
		if !found {
			return r.withoutHead(number, lastHead, emit), false, nil
		}
		span := before.span
		if span > left {
			span = left
		}
		state := r.chunks[number]
		isNew := state == nil || state.epoch != before.epoch || state.span != span || before.epoch%2 == 1
		var known map[uint64]*logCode
		if !isNew {
			known = state.groups
		}
		taken, isTorn, isChanged, err := r.groups(start, span, known)
		if err != nil {
			return 0, false, err
		}
		after, stillFound, _, err := r.headAt(start)
		if err != nil {
			return 0, false, err
		}
		if r.isCut {
			// What was read is not complete: what is known stays.
			r.merge(number, before.epoch, span, taken, false, emit)
			return span, true, nil
		}
		if !isChanged && stillFound && after == before {
			if isTorn {
				r.torn++
			}
			r.merge(number, before.epoch, span, taken, true, emit)
			return span, true, nil
		}
	}
	r.torn++
	return 1, true, nil
}

// withoutHead returns how many chunks to skip where there is no head: those that
// belong to a chunk before, or one.
func (r *LogReader) withoutHead(number uint32, lastHead int, emit func(Event)) uint32 {
	r.dropBetween(number, number+1, emit)
	if lastHead >= 0 {
		// The chunks between may have been joined to it since it was read.
		if head, found, _, err := r.headAt(r.chunkStart(uint32(lastHead))); err == nil && found {
			if end := uint64(lastHead) + uint64(head.span); end > uint64(number) {
				if end > uint64(r.head.Chunks) {
					end = uint64(r.head.Chunks)
				}
				return uint32(end - uint64(number))
			}
		}
	}
	r.torn++
	return 1
}

// foundGroup is a valid group in a chunk.
type foundGroup struct {
	key  groupKey
	died uint64
	// known is the code if it is one that was read before.
	known *logCode
	code  *Code
	size  uint64
}

// groups reads a chunk twice: what is valid in the first pass is complete in
// the second. Codes in known are not read again.
func (r *LogReader) groups(start uint64, span uint32, known map[uint64]*logCode) (found map[uint64]*foundGroup, isTorn, isChanged bool, err error) {
	size := uint64(r.head.ChunkSize) * uint64(span)
	found = make(map[uint64]*foundGroup)
	held, count := r.held, r.count
	var order []uint64
	w := window{reader: r, start: start, size: size}
	for at := uint64(chunkHeadSize); at < size; {
		header, err := w.get(at, groupHeader)
		if err != nil {
			return nil, false, false, err
		}
		if len(header) == 0 {
			break
		}
		end, isGroup, ok := r.piece(header, at, size)
		if !ok {
			isTorn = true
			break
		}
		if isGroup {
			group := &foundGroup{size: end - at, died: r.order.Uint64(header[codeDiedAt:]), key: r.keyOf(header, end-at)}
			if old := known[at]; old != nil && old.key == group.key {
				group.known = old
			}
			if len(found) >= r.limits.Codes {
				r.isCut = true
				break
			}
			found[at] = group
			order = append(order, at)
		}
		at = end
		if r.read >= r.limits.Read {
			r.isCut = true
			break
		}
	}
	w.forget()
	for _, at := range order {
		group := found[at]
		if group.known != nil {
			continue
		}
		held, count = held+group.size, count+1
		if held > r.limits.Held || count > r.limits.Codes {
			r.isCut = true
			delete(found, at)
			continue
		}
		data, err := w.copy(at, group.size)
		if err != nil {
			return nil, false, false, err
		}
		if uint64(len(data)) < group.size {
			// A hole, or the file ends within the group.
			isTorn = true
			delete(found, at)
			continue
		}
		// Words of the first pass may be of different moments.
		end, isGroup, ok := r.piece(data, at, size)
		if !ok || !isGroup || end-at != group.size {
			return nil, false, true, nil
		}
		group.key, group.died = r.keyOf(data, group.size), r.order.Uint64(data[codeDiedAt:])
		group.code = r.decode(data, start+at)
		if group.code == nil {
			isTorn = true
			delete(found, at)
		}
	}
	return found, isTorn, false, nil
}

func (r *LogReader) keyOf(header []byte, size uint64) groupKey {
	return groupKey{r.order.Uint64(header[8:]), r.order.Uint64(header[16:]), r.order.Uint64(header[codeIndexAt:]), size}
}

// piece examines what is at a place of a chunk: a valid group, or a record that
// describes no code.
func (r *LogReader) piece(header []byte, at, size uint64) (end uint64, isGroup, ok bool) {
	if len(header) < 8 {
		return 0, false, false
	}
	recordSize := uint64(r.order.Uint32(header[4:]))
	if recordSize < recordHeaderSize {
		return 0, false, false
	}
	length := recordSize
	// Groups are aligned; what is not is within a group that is not valid yet.
	if at%8 == 0 && len(header) >= groupHeader && recordSize >= groupHeader &&
		r.order.Uint32(header) == idDebugInfo && r.order.Uint64(header[24:]) == 0 &&
		r.order.Uint32(header[32:]) == tailMagic &&
		r.order.Uint16(header[40:]) == tagCode && r.order.Uint16(header[42:]) == 0 {
		group := uint64(r.order.Uint32(header[groupSizeAt:]))
		hasBytes := header[codeFlagsAt]&noBytesFlag == 0
		// Otherwise its space is being cleared.
		if recordSize < group || (recordSize == group && !hasBytes) {
			if group%8 != 0 {
				return 0, false, false
			}
			length, isGroup = group, true
		}
	}
	end = at + length
	switch {
	case end <= size:
		return end, isGroup, true
	case !isGroup && end%uint64(r.head.ChunkSize) == 0:
		// While chunks are joined or split, a filler may cover several.
		return end, false, true
	}
	return 0, false, false
}

// decode decodes the records of a group.
func (r *LogReader) decode(data []byte, offset uint64) *Code {
	d := newDecoder(r.header)
	d.quirks = r.quirks
	var found *Code
	d.decode(data, offset, true, func(e Event) {
		if e.Kind == LoadEvent && found == nil {
			found = e.Code
		}
	})
	if found != nil {
		found.Offset = offset
	}
	return found
}

// merge takes what was found in a chunk.
func (r *LogReader) merge(number uint32, epoch uint64, span uint32, found map[uint64]*foundGroup, isComplete bool, emit func(Event)) {
	state := r.chunks[number]
	if state == nil {
		state = &chunkState{groups: make(map[uint64]*logCode)}
		r.chunks[number] = state
	}
	state.epoch, state.span = epoch, span
	// Chunks that were joined to this one.
	r.dropBetween(number+1, number+span, emit)
	if isComplete {
		for at, old := range state.groups {
			if group := found[at]; group == nil || group.key != old.key {
				r.drop(state, at, emit)
			}
		}
	}
	for at, group := range found {
		if r.until != 0 {
			if group.key.time > r.until {
				continue
			}
			if group.died > r.until {
				group.died = 0
			}
		}
		old := state.groups[at]
		if old == nil || old.key != group.key {
			if group.code == nil {
				continue
			}
			old = &logCode{code: group.code, key: group.key, size: group.size}
			state.groups[at] = old
			r.held += group.size
			r.count++
			if group.key.time > r.newest {
				r.newest = group.key.time
			}
			old.code.setDied(group.died)
			emit(Event{Kind: LoadEvent, Offset: old.code.Offset, Time: old.code.Time, Code: old.code})
			if old.code.Died != 0 {
				emit(Event{Kind: UnloadEvent, Offset: old.code.Offset, Time: old.code.Died, Code: old.code})
			}
			continue
		}
		if group.died != 0 && old.code.Died == 0 {
			old.code.setDied(group.died)
			emit(Event{Kind: UnloadEvent, Offset: old.code.Offset, Time: old.code.Died, Code: old.code})
		}
	}
}

// drop forgets a code whose space was reused.
func (r *LogReader) drop(state *chunkState, at uint64, emit func(Event)) {
	old := state.groups[at]
	delete(state.groups, at)
	r.held -= old.size
	r.count--
	if old.code.Died == 0 {
		old.code.setDied(r.newest)
		emit(Event{Kind: UnloadEvent, Offset: old.code.Offset, Time: old.code.Died, Code: old.code})
	}
}

func (r *LogReader) dropBetween(from, to uint32, emit func(Event)) {
	if uint64(to)-uint64(from) > uint64(len(r.chunks)) {
		for number, state := range r.chunks {
			if number >= from && number < to {
				r.dropChunk(number, state, emit)
			}
		}
		return
	}
	for ; from < to; from++ {
		if state := r.chunks[from]; state != nil {
			r.dropChunk(from, state, emit)
		}
	}
}

func (r *LogReader) dropChunk(number uint32, state *chunkState, emit func(Event)) {
	for at := range state.groups {
		r.drop(state, at, emit)
	}
	delete(r.chunks, number)
}

// window is a part of a chunk that was read.
type window struct {
	reader *LogReader
	start  uint64
	size   uint64
	data   []byte
	at     uint64
}

func (w *window) forget() { w.data = nil }

// get returns bytes of the chunk; fewer at its end, or that of the log. They are
// valid until the next call. size is at most windowSize.
func (w *window) get(at, size uint64) ([]byte, error) {
	if at+size > w.size {
		size = w.size - at
	}
	if w.data == nil || at < w.at || at+size > w.at+uint64(len(w.data)) {
		count := w.size - at
		if count > windowSize {
			count = windowSize
		}
		if count < size {
			count = size
		}
		if uint64(len(w.reader.scratch)) < count {
			w.reader.scratch = make([]byte, windowSize)
		}
		data := w.reader.scratch[:count]
		read, err := w.reader.readAt(data, w.start+at)
		if err != nil {
			return nil, err
		}
		w.data, w.at = data[:read], at
	}
	from := at - w.at
	to := from + size
	if to > uint64(len(w.data)) {
		to = uint64(len(w.data))
	}
	return w.data[from:to:to], nil
}

// copy returns a copy of bytes of the chunk, for the codes that refer to it.
func (w *window) copy(at, size uint64) ([]byte, error) {
	if size <= windowSize {
		data, err := w.get(at, size)
		return append([]byte(nil), data...), err
	}
	// A large group has no holes: every byte of it was written.
	if source, ok := w.reader.source.(dataSource); ok {
		begin := w.start + at
		if from, to, found := source.NextData(begin, begin+size); !found || from != begin || to != begin+size {
			return nil, nil
		}
	}
	// A piece at a time: the size may not be true.
	var data []byte
	for uint64(len(data)) < size {
		more := size - uint64(len(data))
		if more > 1<<20 {
			more = 1 << 20
		}
		piece := make([]byte, more)
		count, err := w.reader.readAt(piece, w.start+at+uint64(len(data)))
		data = append(data, piece[:count]...)
		if err != nil || uint64(count) < more {
			return data, err
		}
	}
	return data, nil
}
