package codelog

import (
	"bytes"
	"encoding/binary"
	"os"
	"reflect"
	"strings"
	"testing"
)

func file(t *testing.T, name string) []byte {
	t.Helper()
	data, err := os.ReadFile("../../../conformance/files/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// memory is a log that a test changes, and that counts what is read.
type memory struct {
	data []byte
	read int
}

func (m *memory) ReadAt(data []byte, at int64) (int, error) {
	count, err := bytes.NewReader(m.data).ReadAt(data, at)
	m.read += count
	return count, err
}

func poll(t *testing.T, log *LogReader) (loads, unloads []string) {
	t.Helper()
	err := log.Poll(func(e Event) {
		switch e.Kind {
		case LoadEvent:
			loads = append(loads, string(e.Code.Name))
		case UnloadEvent:
			unloads = append(unloads, string(e.Code.Name))
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return loads, unloads
}

// place returns where the group of a code with a name begins, in a log in which
// each name occurs once.
func groupOf(t *testing.T, data []byte, name string) int {
	t.Helper()
	at := bytes.Index(data, []byte(name+"\x00"))
	if at < 0 {
		t.Fatalf("no %s", name)
	}
	for at &^= 7; at > 0; at -= 8 {
		if bytes.Equal(data[at+32:at+36], []byte("JSCR")) && data[at+40] == tagCode {
			return at
		}
	}
	t.Fatalf("no group of %s", name)
	return 0
}

func TestPollPassesOnlyChanges(t *testing.T) {
	whole := file(t, "log-chunks.log")
	// At first, the second chunk is not in use.
	m := &memory{data: append([]byte(nil), whole...)}
	binary.LittleEndian.PutUint32(m.data[logItem+8:], 1)
	log, err := NewLogReader(m, true, DefaultLimits)
	if err != nil {
		t.Fatal(err)
	}
	if loads, unloads := poll(t, log); !reflect.DeepEqual(loads, []string{"function 2", "function 4"}) || unloads != nil {
		t.Fatal(loads, unloads)
	}
	if loads, unloads := poll(t, log); loads != nil || unloads != nil {
		t.Fatal(loads, unloads)
	}
	binary.LittleEndian.PutUint32(m.data[logItem+8:], 3)
	if loads, unloads := poll(t, log); !reflect.DeepEqual(loads, []string{"function 1", "function 3"}) || unloads != nil {
		t.Fatal(loads, unloads)
	}
	// An unload is a store.
	group := groupOf(t, m.data, "function 4")
	died := binary.LittleEndian.Uint64(m.data[group+8:]) + 50
	binary.LittleEndian.PutUint64(m.data[group+codeDiedAt:], died)
	if loads, unloads := poll(t, log); loads != nil || !reflect.DeepEqual(unloads, []string{"function 4"}) {
		t.Fatal(loads, unloads)
	}
	if loads, unloads := poll(t, log); loads != nil || unloads != nil || log.Len() != 4 {
		t.Fatal(loads, unloads, log.Len())
	}
	// The space of both codes of the first chunk is reused by others: the epoch
	// changes, and function 2 was unloaded in between.
	other := file(t, "log-unload.log")
	copy(m.data[firstChunk:firstChunk+8192], other[firstChunk:])
	binary.LittleEndian.PutUint64(m.data[firstChunk+48:], 2)
	loads, unloads := poll(t, log)
	if !reflect.DeepEqual(loads, []string{"function 1", "function 2"}) {
		t.Fatal(loads)
	}
	if !reflect.DeepEqual(unloads, []string{"function 1", "function 2"}) || log.Len() != 4 {
		t.Fatal(unloads, log.Len())
	}
}

// TestEpochThatChanges: a chunk whose epoch changes while it is read is read
// again, so that no code of two moments is returned.
func TestEpochThatChanges(t *testing.T) {
	before, after := file(t, "log-unload.log"), file(t, "log.log")
	after = append([]byte(nil), after...)
	binary.LittleEndian.PutUint64(after[firstChunk+48:], 2)
	for switched := 1; switched < 12; switched++ {
		s := &switching{before: before, after: after, left: switched}
		log, err := NewLogReader(s, false, DefaultLimits)
		if err != nil {
			t.Fatal(err)
		}
		loads, _ := poll(t, log)
		for _, name := range loads {
			if log.Torn() > 0 || !strings.HasPrefix(name, "function ") {
				t.Fatal(switched, loads, log.Torn())
			}
		}
		if len(loads) != 2 {
			t.Fatal(switched, loads)
		}
		var described int
		log.Codes(func(c *Code) bool {
			if c.Tier != nil {
				described++
			}
			return true
		})
		if described != 0 && described != 2 {
			t.Fatalf("after %d reads: codes of two moments", switched)
		}
	}
}

type switching struct {
	before, after []byte
	left          int
}

func (s *switching) ReadAt(data []byte, at int64) (int, error) {
	s.left--
	if s.left >= 0 {
		return bytes.NewReader(s.before).ReadAt(data, at)
	}
	return bytes.NewReader(s.after).ReadAt(data, at)
}

func TestLimits(t *testing.T) {
	log, err := NewLogReader(bytes.NewReader(file(t, "log-chunks.log")), false, Limits{Held: 600, Read: 1 << 20, Codes: 10})
	if err != nil {
		t.Fatal(err)
	}
	// The two codes of the first chunk have more than 600 bytes.
	if loads, _ := poll(t, log); len(loads) != 1 || !log.IsCut() || log.held > 600 {
		t.Fatal(loads, log.IsCut())
	}
}

func TestInherited(t *testing.T) {
	log, err := NewLogReader(bytes.NewReader(file(t, "log-unload.log")), false, DefaultLimits)
	if err != nil {
		t.Fatal(err)
	}
	// function 1 is loaded before the fork, and unloaded after it; function 2 is
	// loaded later.
	loaded := groupTime(t, "log-unload.log", "function 1")
	log.until = loaded + 1
	loads, unloads := poll(t, log)
	if !reflect.DeepEqual(loads, []string{"function 1"}) || unloads != nil {
		t.Fatal(loads, unloads)
	}
}

func groupTime(t *testing.T, name, code string) uint64 {
	data := file(t, name)
	return binary.LittleEndian.Uint64(data[groupOf(t, data, code)+8:])
}

func TestIndex(t *testing.T) {
	q := newDecoder(Header{}).quirks
	code := func(name string, time, address, size, died uint64) Event {
		return Event{Kind: LoadEvent, Time: time, Code: &Code{Time: time, Address: address, Size: size, Died: died, Name: []byte(name), Index: time, quirks: q}}
	}
	x := NewIndex()
	const second = 1_000_000_000
	for _, e := range []Event{
		code("late", 30*second, 0x1000, 0x100, 0),
		code("early", 10*second, 0x1000, 0x100, 0),
		code("dead", 20*second, 0x1080, 0x10, 25*second),
		code("large", 5*second, 0x10_0000, 0x20_0000, 0),
		code("inside", 6*second, 0x11_0000, 0x10, 0),
		{Kind: MoveEvent, Time: 40 * second, Move: &Move{OldAddress: 0x11_0000, NewAddress: 0x9000, Index: 6 * second}},
	} {
		x.Add(e)
	}
	for _, wanted := range []struct {
		address, time uint64
		name          string
	}{
		{0x1000, 9 * second, ""},
		{0x1000, 10*second - LoadDelay, "early"},
		{0x1000, 10*second - LoadDelay - 1, ""},
		{0x1000, 29 * second, "early"},
		{0x1000, 30 * second, "late"},
		{0x10ff, 50 * second, "late"},
		{0x1100, 50 * second, ""},
		{0x1084, 22 * second, "dead"},
		// What it replaced stays gone.
		{0x1084, 26 * second, ""},
		{0x20_0000, 7 * second, "large"},
		{0x11_0004, 39 * second, "inside"},
		{0x11_0004, 40 * second, ""},
		{0x9004, 39 * second, ""},
		{0x9004, 41 * second, "inside"},
	} {
		name := ""
		if c := x.Lookup(wanted.address, wanted.time); c != nil {
			name = string(c.Name)
		}
		if name != wanted.name {
			t.Errorf("%#x at %d: %q instead of %q", wanted.address, wanted.time, name, wanted.name)
		}
	}
	x.Prune(60 * second)
	if c := x.Lookup(0x1084, 22*second); c != nil && string(c.Name) == "dead" {
		t.Error("a code that was pruned")
	}
	if c := x.Lookup(0x9004, 41*second); c == nil {
		t.Error("a code that moved was pruned")
	}
}

// TestIndexLikeAList compares the index with a list that is searched from its
// end.
func TestIndexLikeAList(t *testing.T) {
	q := newDecoder(Header{}).quirks
	state := uint64(1)
	random := func(limit uint64) uint64 {
		state = state*6364136223846793005 + 1442695040888963407
		return state >> 33 % limit
	}
	x := NewIndex()
	var codes []*Code
	for n := uint64(0); n < 3000; n++ {
		c := &Code{Time: 1e12 + random(3000)*1e8, Address: random(1 << 16), Size: random(600), Index: n, quirks: q}
		if random(20) == 0 {
			c.Size = random(4 << 20)
		}
		if random(3) == 0 {
			c.Died = c.Time + random(1e11)
		}
		codes = append(codes, c)
		x.Add(Event{Kind: LoadEvent, Time: c.Time, Code: c})
	}
	for n := 0; n < 20_000; n++ {
		address, time := random(1<<16), 1e12+random(3000)*1e8
		var last *Code
		isNear := false
		for _, c := range codes {
			if address < c.Address || address >= c.End() {
				continue
			}
			if c.Time <= time && (last == nil || c.Time >= last.Time) {
				last = c
			}
			isNear = isNear || (c.Time > time && c.Time-time <= LoadDelay)
		}
		if last == nil && isNear {
			continue
		}
		if last != nil && last.Died != 0 && last.Died <= time {
			last = nil
		}
		if found := x.Lookup(address, time); found != last {
			t.Fatalf("%#x at %d: %v instead of %v", address, time, found, last)
		}
	}
}

func TestFrames(t *testing.T) {
	data := file(t, "extension-group.dump")
	dump, err := ParseDump(data)
	if err != nil {
		t.Fatal(err)
	}
	c := dump.Events[0].Code
	show := func(offset uint64) string {
		var shown []string
		for _, f := range c.Frames(c.Address + offset) {
			shown = append(shown, string(f.Function)+" "+string(f.File)+":"+string(rune('0'+f.Line%10)))
		}
		return strings.Join(shown, ", ")
	}
	for offset, wanted := range map[uint64]string{
		0:  "function 1 /src/a.lang:3",
		18: "inner /src/a.lang:3, function 1 /src/a.lang:4",
		24: "innermost /src/a.lang:0, inner /src/a.lang:2, function 1 /src/a.lang:4",
		50: "other /src/b.lang:2, function 1 /src/b.lang:5",
		80: "function 1 /src/b.lang:2",
	} {
		if found := show(offset); found != wanted {
			t.Errorf("at %d: %s instead of %s", offset, found, wanted)
		}
	}
}

func TestMappings(t *testing.T) {
	const text = `7f0000000000-7f0000001000 rw-s 00000000 00:01 1234   /memfd:jitscribe (deleted)
7f0000001000-7f0000100000 rw-s 00001000 00:01 1234   /memfd:jitscribe (deleted)
7f0000200000-7f0000300000 rw-p 00000000 00:01 1235   /memfd:jitscribe (deleted)
7f0000400000-7f0000500000 r--s 00000000 00:01 1236   /memfd:jitscribe (deleted)
7f0000600000-7f0000700000 rw-s 00001000 00:01 1237   /memfd:jitscribe (deleted)
7f0000800000-7f0000900000 rw-s 00000000 08:01 99     /tmp/a b/jit-12.dump
7f0000a00000-7f0000b00000 rw-s 00000000 00:01 77     /dev/zero (deleted)
nonsense
7f0000c00000-7f0000d00000 rw-s 00000000 00:0x 77     /dev/zero (deleted)
`
	found, err := findCandidates(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	wanted := []candidate{
		{0x7f0000000000, 0x7f0000100000, 0x7f0000001000, [2]uint64{1, 1234}, memoryLog, "/memfd:jitscribe (deleted)"},
		{0x7f0000800000, 0x7f0000900000, 0x7f0000900000, [2]uint64{8<<32 | 1, 99}, dumpLog, "/tmp/a b/jit-12.dump"},
		{0x7f0000a00000, 0x7f0000b00000, 0x7f0000b00000, [2]uint64{1, 77}, anonymousLog, "/dev/zero (deleted)"},
	}
	if !reflect.DeepEqual(found, wanted) {
		t.Fatalf("%+v", found)
	}
}

func TestOpenWithoutLog(t *testing.T) {
	if p, err := Open(os.Getpid(), DefaultLimits); err == nil {
		p.Close()
		t.Fatal("a log in a test of Go")
	}
}
