package codelog_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/jitscribe/jitscribe/bindings/go/codelog"
	"github.com/jitscribe/jitscribe/bindings/go/codelog/internal/reading"
)

const folder = "../../../conformance/files"

// files returns the conformance files.
func files(t testing.TB) []string {
	t.Helper()
	var found []string
	for _, pattern := range []string{"*.dump", "*.log"} {
		names, err := filepath.Glob(filepath.Join(folder, pattern))
		if err != nil {
			t.Fatal(err)
		}
		found = append(found, names...)
	}
	if len(found) < 100 {
		t.Fatalf("%s has only %d files", folder, len(found))
	}
	return found
}

func contents(t testing.TB, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// decoded is JSON with exact numbers.
func decoded(t testing.TB, data []byte) map[string]interface{} {
	t.Helper()
	found := make(map[string]interface{})
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	if err := decoder.Decode(&found); err != nil {
		t.Fatal(err)
	}
	return found
}

// TestConformance compares the readings of all conformance files with what a
// correct reader finds, in all fields.
func TestConformance(t *testing.T) {
	for _, path := range files(t) {
		data := contents(t, path)
		printed := reading.OfDump(data)
		if strings.HasSuffix(path, ".log") {
			printed = reading.OfLog(data)
		}
		encoded, err := json.Marshal(printed)
		if err != nil {
			t.Fatal(err)
		}
		found, wanted := decoded(t, encoded), decoded(t, contents(t, path+".json"))
		for _, field := range []string{"header", "left_out", "end"} {
			if !reflect.DeepEqual(found[field], wanted[field]) {
				t.Errorf("%s: %s is %v instead of %v", path, field, found[field], wanted[field])
			}
		}
		foundEvents, wantedEvents := found["events"].([]interface{}), wanted["events"].([]interface{})
		if len(foundEvents) != len(wantedEvents) {
			t.Errorf("%s: %d events instead of %d", path, len(foundEvents), len(wantedEvents))
			continue
		}
		for n := range wantedEvents {
			if !reflect.DeepEqual(foundEvents[n], wantedEvents[n]) {
				t.Errorf("%s: event %d is\n%v instead of\n%v", path, n, foundEvents[n], wantedEvents[n])
				break
			}
		}
	}
}

// growing is a file of which only the first bytes are there.
type growing struct {
	data []byte
	size int
}

func (g *growing) ReadAt(data []byte, at int64) (int, error) {
	return bytes.NewReader(g.data[:g.size]).ReadAt(data, at)
}

// TestFileReaderGrowing reads each whole dump as it grows by different steps:
// the events are those of the whole.
func TestFileReaderGrowing(t *testing.T) {
	for _, path := range files(t) {
		data := contents(t, path)
		whole, err := codelog.ParseDump(data)
		if err != nil || whole.End != codelog.EndComplete || strings.HasSuffix(path, ".log") {
			continue
		}
		isDamaged := false
		for _, e := range whole.Events {
			isDamaged = isDamaged || e.Kind == codelog.DamageEvent
		}
		if isDamaged {
			// Where damage ends depends on what follows.
			continue
		}
		steps := []int{7, 64, 1000, len(data)}
		if len(data) < 2000 {
			steps = append(steps, 1)
		}
		for _, step := range steps {
			file := &growing{data, 40}
			r, err := codelog.NewFileReader(file)
			if err != nil {
				t.Fatal(err)
			}
			var found []codelog.Event
			for file.size < len(data) {
				if file.size += step; file.size > len(data) {
					file.size = len(data)
				}
				if err := r.Poll(func(e codelog.Event) { found = append(found, e) }); err != nil {
					t.Fatal(err)
				}
			}
			if len(found) != len(whole.Events) {
				t.Errorf("%s by %d: %d events instead of %d", path, step, len(found), len(whole.Events))
				continue
			}
			for n, e := range found {
				if !reflect.DeepEqual(reading.Event(e), reading.Event(whole.Events[n])) {
					t.Errorf("%s by %d: event %d is\n%v instead of\n%v", path, step, n, reading.Event(e), reading.Event(whole.Events[n]))
					break
				}
			}
			if r.LeftOut() != whole.LeftOut {
				t.Errorf("%s: %v left out", path, r.LeftOut())
			}
		}
	}
}

// check uses all that a code offers.
func check(c *codelog.Code) {
	c.IRLines()
	c.Unwind()
	for _, l := range c.Lines() {
		if l.Address < c.Address || l.Address >= c.End() {
			panic("a line outside of its code")
		}
	}
	for n, call := range c.Inlined() {
		if call.Parent >= n {
			panic("a call before its parent")
		}
	}
	if frames := c.Frames(c.Address + c.Size/2); len(frames) == 0 {
		panic("a code without frames")
	}
}

func FuzzDump(f *testing.F) {
	for _, path := range files(f) {
		f.Add(contents(f, path), 100)
	}
	f.Fuzz(func(t *testing.T, data []byte, cut int) {
		dump, err := codelog.ParseDump(data)
		if err != nil {
			return
		}
		x := codelog.NewIndex()
		for _, e := range dump.Events {
			if e.Kind == codelog.LoadEvent {
				check(e.Code)
			}
			x.Add(e)
		}
		for _, e := range dump.Events {
			x.Frames(e.Offset, e.Time)
			if e.Kind == codelog.LoadEvent {
				x.Frames(e.Code.Address, e.Time)
			}
		}
		x.Prune(dump.Header.Time)
		if cut < 40 || cut > len(data) {
			cut = len(data)
		}
		file := &growing{data, cut}
		r, err := codelog.NewFileReader(file)
		if err != nil {
			return
		}
		for n := 0; n < 2; n++ {
			if err := r.Poll(func(codelog.Event) {}); err != nil {
				t.Fatal(err)
			}
			file.size = len(data)
		}
	})
}

// changing is a log that has other content at every other read.
type changing struct {
	data, other []byte
	reads       int
}

func (c *changing) ReadAt(data []byte, at int64) (int, error) {
	c.reads++
	from := c.data
	if c.reads%3 == 0 {
		from = c.other
	}
	return bytes.NewReader(from).ReadAt(data, at)
}

func FuzzLog(f *testing.F) {
	for _, path := range files(f) {
		if strings.HasSuffix(path, ".log") {
			f.Add(contents(f, path), 5000, []byte{1, 2, 3})
		}
	}
	limits := codelog.Limits{Held: 1 << 20, Read: 1 << 22, Codes: 1 << 10}
	f.Fuzz(func(t *testing.T, data []byte, at int, change []byte) {
		other := append([]byte(nil), data...)
		if at >= 0 && at < len(other) {
			copy(other[at:], change)
		}
		log, err := codelog.NewLogReader(&changing{data: data, other: other}, false, limits)
		if err != nil {
			return
		}
		for n := 0; n < 3; n++ {
			alive := 0
			if err := log.Poll(func(e codelog.Event) { alive++ }); err != nil {
				// The head may have become wrong.
				return
			}
			count := 0
			log.Codes(func(c *codelog.Code) bool {
				check(c)
				count++
				return true
			})
			if count != log.Len() || count > limits.Codes {
				t.Fatalf("%d codes of %d", count, log.Len())
			}
		}
	})
}
