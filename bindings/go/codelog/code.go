package codelog

import "sort"

// Kind is what a code is to its runtime.
type Kind uint8

// The kinds of code.
const (
	Function          Kind = 0
	Stub              Kind = 1
	Trampoline        Kind = 2
	BytecodeHandler   Kind = 3
	Wrapper           Kind = 4
	RegularExpression Kind = 5
	// JavaMethod is a method that HotSpot's interpreter executes: not machine
	// code, but its bytecode.
	JavaMethod Kind = 6
	OtherKind  Kind = 255
)

func (k Kind) String() string {
	names := [...]string{"function", "stub", "trampoline", "bytecode-handler", "wrapper", "regular-expression", "java-method"}
	if int(k) < len(names) {
		return names[k]
	}
	return "other"
}

// FramePointer is how a code keeps a frame pointer.
type FramePointer uint8

// The ways to keep a frame pointer.
const (
	FramePointerUnknown FramePointer = iota
	// FramePointerPrologue: the code sets it up by the machine's standard
	// prologue.
	FramePointerPrologue
	// FramePointerThroughout: the code has its caller's.
	FramePointerThroughout
)

func (p FramePointer) String() string {
	return [...]string{"", "prologue", "throughout"}[p]
}

// Code is a code load: from Time on, this code is at its address.
type Code struct {
	// Offset of its last record in the file, or of its group in a log.
	Offset uint64
	// Time of the load by the clock of the records.
	Time uint64
	// PID is the process as the writer saw it.
	PID, TID uint32
	// Address of the first byte, without the Thumb bit.
	Address, Size uint64
	// Index is the number by which a [Move] refers to the code.
	Index uint64
	// Name is any bytes, mostly UTF-8.
	Name []byte
	// Bytes is the machine code; nil if it is only in the process's memory.
	Bytes []byte
	Kind  Kind
	// Tier names the compiler's tier; nil if it is not known.
	Tier []byte
	// Died is when the code was unloaded or moved away; 0 while it is loaded,
	// or if the writer does not record it.
	Died         uint64
	FramePointer FramePointer

	quirks    *quirks
	debug     *debugInfo
	positions *sourcePositions
	unwinding *Unwind
	tail      tailItems
	hasTail   bool
	big       bool
}

// Line says that from Address on, up to the next line, the code comes from
// Line of File.
type Line struct {
	Address uint64
	File    []byte
	// Line counts from 1; 0: the code comes from no line.
	Line uint32
	// Column counts from 1; 0: unknown.
	Column uint32
}

// Range is the addresses from Start on, without End.
type Range struct{ Start, End uint64 }

// InlinedCall is a call that was inlined into a code.
type InlinedCall struct {
	// Parent is the number of the call into whose body this one was inlined;
	// -1: into the code itself. It is less than the call's own number.
	Parent int
	// Name of the function that was called.
	Name []byte
	// File, Line and Column of the call.
	File         []byte
	Line, Column uint32
	// Ranges of its code.
	Ranges []Range
}

// End is the address behind the code's last byte.
func (c *Code) End() uint64 { return addSaturating(c.Address, c.Size) }

// Lines returns the source lines in the order of the file, which mostly
// ascends: within the code, and corrected for the quirks of known writers.
func (c *Code) Lines() []Line {
	switch {
	case c.positions != nil:
		return c.normalized(listed(c.positions.lines(c.Address)), 0)
	case c.debug != nil:
		var bias uint64
		if !c.hasTail {
			bias = c.quirks.bias()
		}
		within := addressRange{addSaturating(c.Address, bias), addSaturating(c.End(), bias)}
		repaired := c.debug.repaired(within, c.Name)
		return c.normalized(repaired.next, bias)
	}
	return c.table(0)
}

// IRLines returns the lines in the bytecode or intermediate representation.
func (c *Code) IRLines() []Line { return c.table(1) }

func (c *Code) table(detail int) []Line {
	if !c.hasTail {
		return nil
	}
	payload, ok := c.tail.find(tagLines, detail)
	if !ok {
		return nil
	}
	return c.normalized(listed(tableLines(payload, c.big, c.Address)), 0)
}

func listed(list []entry) func() (entry, bool) {
	return func() (entry, bool) {
		if len(list) == 0 {
			return entry{}, false
		}
		first := list[0]
		list = list[1:]
		return first, true
	}
}

// normalized turns entries into lines.
func (c *Code) normalized(next func() (entry, bool), bias uint64) []Line {
	var lines []Line
	var file []byte
	// before is the last entry before the code; it applies where the code
	// begins.
	var before *Line
	flush := func() {
		if before != nil {
			lines = append(lines, *before)
			before = nil
		}
	}
	for {
		e, ok := next()
		if !ok {
			break
		}
		if !e.isSame {
			file = e.file
		}
		if e.addr < bias {
			continue
		}
		line := Line{Address: c.quirks.address(e.addr - bias), File: file, Line: e.line, Column: e.column}
		isBlank := line.Line == 0 && len(file) == 0
		if line.Address < c.Address {
			if len(lines) == 0 {
				before = nil
				if !isBlank && c.Size > 0 {
					line.Address = c.Address
					before = &line
				}
			}
			continue
		}
		if line.Address >= c.End() {
			continue
		}
		if line.Address > c.Address {
			flush()
		}
		before = nil
		if isBlank {
			if len(lines) == 0 || lines[len(lines)-1].Line == 0 {
				continue
			}
			line.File, line.Column = lines[len(lines)-1].File, 0
		}
		lines = append(lines, line)
	}
	flush()
	return lines
}

// Inlined returns the calls that were inlined, each after its parent.
func (c *Code) Inlined() []InlinedCall {
	if c.positions != nil {
		return c.positions.calls(c.Address, c.Size)
	}
	if !c.hasTail {
		return nil
	}
	payload, ok := c.tail.find(tagInlined, -1)
	if !ok {
		return nil
	}
	return inlinedCalls(payload, c.big, c.Address, c.Size)
}

// Unwind returns the unwind tables; nil if there are none.
func (c *Code) Unwind() *Unwind {
	if c.unwinding != nil {
		return c.unwinding
	}
	if c.hasTail {
		if frame, ok := c.tail.find(tagEHFrame, -1); ok {
			return &Unwind{EHFrame: frame}
		}
	}
	return nil
}

// Frame is a function at an address: the code itself, or a function that was
// inlined into it.
type Frame struct {
	Function []byte
	File     []byte
	// Line and Column are 0 if they are not known.
	Line, Column uint32
	// Inlined says that the function has no frame of its own.
	Inlined bool
}

// Frames returns the functions at an address in the code, the innermost first:
// the calls that were inlined there, and the code itself. It decodes the code's
// lines and calls each time.
func (c *Code) Frames(address uint64) []Frame {
	at := lineAt(c.Lines(), address)
	calls := c.Inlined()
	innermost := -1
	for n := len(calls) - 1; n >= 0 && innermost < 0; n-- {
		for _, r := range calls[n].Ranges {
			if r.Start <= address && address < r.End {
				innermost = n
				break
			}
		}
	}
	var frames []Frame
	for n := innermost; n >= 0; n = calls[n].Parent {
		frames = append(frames, Frame{Function: calls[n].Name, File: at.File, Line: at.Line, Column: at.Column, Inlined: true})
		at = Line{File: calls[n].File, Line: calls[n].Line, Column: calls[n].Column}
	}
	return append(frames, Frame{Function: c.Name, File: at.File, Line: at.Line, Column: at.Column})
}

// lineAt returns the line that applies at an address.
func lineAt(lines []Line, address uint64) Line {
	sort.SliceStable(lines, func(a, b int) bool { return lines[a].Address < lines[b].Address })
	after := sort.Search(len(lines), func(n int) bool { return lines[n].Address > address })
	if after == 0 || lines[after-1].Line == 0 {
		return Line{}
	}
	return lines[after-1]
}
