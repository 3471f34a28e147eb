// Package reading prints what the package codelog reads in the form of the
// conformance files.
package reading

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"sort"
	"unicode/utf8"

	"github.com/jitscribe/jitscribe/bindings/go/codelog"
)

// Fields has the names of all fields.
var Fields = []string{
	"header", "end", "left_out", "log", "damage", "move", "close", "time", "pid", "tid", "address",
	"size", "index", "name", "bytes", "lines", "columns", "ir_lines", "inlined", "unwind", "kind",
	"tier", "died", "frame_pointer",
}

type object = map[string]interface{}

// Refused is the reading of a file that is refused.
func Refused() object {
	return object{"fields": Fields, "header": nil, "events": []object{}, "left_out": nil, "end": nil}
}

// OfDump reads a jitdump.
func OfDump(data []byte) object {
	dump, err := codelog.ParseDump(data)
	if err != nil {
		return Refused()
	}
	events := []object{}
	for _, e := range dump.Events {
		events = append(events, Event(e))
	}
	return reading(dump.Header, events, dump.LeftOut, dump.End.String())
}

// OfLog reads the memory of a code log.
func OfLog(data []byte) object {
	log, err := codelog.NewLogReader(bytes.NewReader(data), false, codelog.DefaultLimits)
	if err != nil {
		return Refused()
	}
	if err := log.Poll(func(codelog.Event) {}); err != nil {
		return Refused()
	}
	return reading(log.Header(), LogCodes(log), log.Head().LeftOut, "complete")
}

// LogCodes returns the loads of the codes in a log that was polled, in the order
// of time, and damage.
func LogCodes(log *codelog.LogReader) []object {
	var codes []*codelog.Code
	log.Codes(func(c *codelog.Code) bool {
		codes = append(codes, c)
		return true
	})
	sort.Slice(codes, func(a, b int) bool {
		return codes[a].Time < codes[b].Time || (codes[a].Time == codes[b].Time && codes[a].Address < codes[b].Address)
	})
	events := []object{}
	for _, c := range codes {
		events = append(events, Load(c))
	}
	if log.Torn() > 0 {
		events = append(events, object{"event": "damage"})
	}
	return events
}

func reading(h codelog.Header, events []object, leftOut codelog.LeftOut, end string) object {
	endian := "little"
	if h.BigEndian {
		endian = "big"
	}
	found := object{
		"fields": Fields,
		"header": object{
			"endian": endian, "version": h.Version, "machine": h.Machine, "pid": h.PID,
			"time": h.Time, "flags": h.Flags,
		},
		"events":   events,
		"left_out": nil,
		"end":      end,
	}
	if leftOut.Count > 0 {
		found["left_out"] = object{"count": leftOut.Count, "first": leftOut.First, "last": leftOut.Last}
	}
	return found
}

// Event is one event.
func Event(e codelog.Event) object {
	switch e.Kind {
	case codelog.LoadEvent:
		return Load(e.Code)
	case codelog.MoveEvent:
		m := e.Move
		return object{
			"event": "move", "time": m.Time, "pid": m.PID, "tid": m.TID,
			"old_address": address(m.OldAddress), "new_address": address(m.NewAddress),
			"size": m.Size, "index": m.Index,
		}
	case codelog.CloseEvent:
		return object{"event": "close", "time": e.Time}
	}
	return object{"event": "damage"}
}

// Load is a code.
func Load(c *codelog.Code) object {
	found := object{
		"event": "load", "time": c.Time, "pid": c.PID, "tid": c.TID,
		"address": address(c.Address), "size": c.Size, "index": c.Index,
		"name": text(c.Name), "bytes": nil,
		"lines": lines(c.Lines()), "ir_lines": lines(c.IRLines()), "inlined": calls(c.Inlined()),
		"unwind": nil, "kind": c.Kind.String(), "tier": nil, "died": nil, "frame_pointer": nil,
	}
	if c.Bytes != nil {
		found["bytes"] = hex.EncodeToString(c.Bytes)
	}
	if u := c.Unwind(); u != nil {
		found["unwind"] = object{
			"eh_frame": hex.EncodeToString(u.EHFrame), "eh_frame_hdr": hex.EncodeToString(u.EHFrameHdr),
			"mapped_size": u.MappedSize,
		}
	}
	if c.Tier != nil {
		found["tier"] = text(c.Tier)
	}
	if c.Died != 0 {
		found["died"] = c.Died
	}
	if c.FramePointer != codelog.FramePointerUnknown {
		found["frame_pointer"] = c.FramePointer.String()
	}
	return found
}

func lines(list []codelog.Line) []object {
	found := []object{}
	for _, l := range list {
		found = append(found, object{"address": address(l.Address), "file": text(l.File), "line": l.Line, "column": l.Column})
	}
	return found
}

func calls(list []codelog.InlinedCall) []object {
	found := []object{}
	for _, call := range list {
		ranges := [][2]string{}
		for _, r := range call.Ranges {
			ranges = append(ranges, [2]string{address(r.Start), address(r.End)})
		}
		entry := object{
			"parent": nil, "name": text(call.Name), "file": text(call.File), "line": call.Line,
			"column": call.Column, "ranges": ranges,
		}
		if call.Parent >= 0 {
			entry["parent"] = call.Parent
		}
		found = append(found, entry)
	}
	return found
}

func address(a uint64) string { return fmt.Sprintf("%#x", a) }

func text(b []byte) interface{} {
	if utf8.Valid(b) {
		return string(b)
	}
	return object{"hex": hex.EncodeToString(b)}
}
