package codelog

import "sort"

// sourcePositions is the body of SAMPLY_JIT_CODE_DEBUG_INFO2.
type sourcePositions struct {
	addr            uint64
	rows, positions []byte
	rest            []byte
	stringCount     uint64
	big             bool
}

const (
	rowSize      = 8
	positionSize = 28
	// deepestCall is how deep calls are nested at most.
	deepestCall = 127
	// rangesPerRow bounds the ranges that are computed.
	rangesPerRow = 16
	// mostStrings is the most names and files of a code: each takes more memory
	// than its record may have for it. Further ones are empty.
	mostStrings = 1 << 20
)

func parsePositions(payload []byte, big bool) (sourcePositions, bool) {
	f := fields{rest: payload, big: big}
	p := sourcePositions{addr: f.u64(), big: big}
	rows, positions := f.u64(), f.u64()
	p.stringCount = f.u64()
	if f.bad || rows > uint64(len(payload)) || positions > uint64(len(payload)) {
		return p, false
	}
	p.rows, p.positions = f.take(rows*rowSize), f.take(positions*positionSize)
	p.rest = f.rest
	return p, !f.bad
}

func (p *sourcePositions) isEmpty() bool { return len(p.rows) == 0 || len(p.positions) == 0 }

type position struct {
	caller, file                 int64
	function, functionLine       uint32
	functionColumn, line, column uint32
}

func (p *sourcePositions) position(number uint64) (position, bool) {
	if number >= uint64(len(p.positions)/positionSize) {
		return position{}, false
	}
	f := fields{rest: p.positions[number*positionSize:], big: p.big}
	orNone := func(n uint32) int64 {
		if n == ^uint32(0) {
			return -1
		}
		return int64(n)
	}
	found := position{caller: orNone(f.u32()), function: f.u32(), file: orNone(f.u32())}
	found.functionLine, found.functionColumn = f.u32(), f.u32()
	found.line, found.column = f.u32(), f.u32()
	return found, true
}

func (p *sourcePositions) strings() [][]byte {
	f := fields{rest: p.rest, big: p.big}
	var found [][]byte
	for uint64(len(found)) < p.stringCount && len(found) < mostStrings {
		text := f.text()
		if f.bad {
			break
		}
		found = append(found, text)
	}
	return found
}

func stringAt(strings [][]byte, number int64) []byte {
	if number < 0 || number >= int64(len(strings)) {
		return nil
	}
	return strings[number]
}

type positionRow struct {
	offset uint32
	number uint32
}

func (p *sourcePositions) allRows() []positionRow {
	f := fields{rest: p.rows, big: p.big}
	found := make([]positionRow, 0, len(p.rows)/rowSize)
	for len(f.rest) > 0 {
		found = append(found, positionRow{f.u32(), f.u32()})
	}
	return found
}

// lines returns the lines of the functions that are innermost.
func (p *sourcePositions) lines(base uint64) []entry {
	strings := p.strings()
	var found []entry
	for _, row := range p.allRows() {
		e := entry{addr: addSaturating(base, uint64(row.offset))}
		if at, ok := p.position(uint64(row.number)); ok {
			e.file, e.line, e.column = stringAt(strings, at.file), at.line, at.column
		}
		found = append(found, e)
	}
	return found
}

// callKey identifies a call: the position of the call, and the function.
type callKey struct {
	caller                 int64
	function, line, column uint32
}

// calls computes the inlined calls of a code. Positions of one function with
// one caller belong to one call.
func (p *sourcePositions) calls(base, codeSize uint64) []InlinedCall {
	size := uint32(codeSize)
	if codeSize > uint64(^uint32(0)) {
		size = ^uint32(0)
	}
	var rows []positionRow
	for _, row := range p.allRows() {
		if row.offset < size {
			rows = append(rows, row)
		}
	}
	// Of several rows at one offset, the last one applies.
	sort.SliceStable(rows, func(a, b int) bool { return rows[a].offset < rows[b].offset })
	n := numbering{
		positions:   p,
		strings:     p.strings(),
		ofPositions: make(map[uint64]int),
		numbers:     make(map[callKey]int),
	}
	left := (len(p.rows)/rowSize + len(p.positions)/positionSize) * rangesPerRow
	for at, row := range rows {
		end := size
		if at+1 < len(rows) {
			end = rows[at+1].offset
		}
		if row.offset >= end {
			continue
		}
		rowStart, rowEnd := addSaturating(base, uint64(row.offset)), addSaturating(base, uint64(end))
		for next := n.ofPosition(uint64(row.number)); next >= 0; next = n.list[next].Parent {
			ranges := &n.list[next].Ranges
			if last := len(*ranges) - 1; last >= 0 && (*ranges)[last].End == rowStart {
				(*ranges)[last].End = rowEnd
			} else if left > 0 {
				left--
				*ranges = append(*ranges, Range{rowStart, rowEnd})
			}
		}
	}
	return n.list
}

// numbering numbers calls in the order in which they are first needed.
type numbering struct {
	positions   *sourcePositions
	strings     [][]byte
	list        []InlinedCall
	depths      []int
	ofPositions map[uint64]int
	numbers     map[callKey]int
}

// ofPosition returns the call that a position belongs to; -1: the code itself.
func (n *numbering) ofPosition(number uint64) int {
	type link struct {
		number uint64
		position
	}
	var chain []link
	known := -1
	for next := int64(number); next >= 0 && len(chain) <= deepestCall; {
		if call, ok := n.ofPositions[uint64(next)]; ok {
			known = call
			break
		}
		at, ok := n.positions.position(uint64(next))
		if !ok {
			break
		}
		chain = append(chain, link{uint64(next), at})
		next = at.caller
	}
	for at := len(chain) - 1; at >= 0; at-- {
		known = n.call(known, chain[at].position)
		n.ofPositions[chain[at].number] = known
	}
	return known
}

// call returns the call that a position belongs to, given that of its caller.
func (n *numbering) call(parent int, at position) int {
	if at.caller < 0 {
		return -1
	}
	site, ok := n.positions.position(uint64(at.caller))
	if !ok {
		return -1
	}
	depth := 0
	if parent >= 0 {
		depth = n.depths[parent] + 1
	}
	if depth >= deepestCall {
		return parent
	}
	key := callKey{at.caller, at.function, at.functionLine, at.functionColumn}
	if call, ok := n.numbers[key]; ok {
		return call
	}
	n.numbers[key] = len(n.list)
	n.depths = append(n.depths, depth)
	n.list = append(n.list, InlinedCall{
		Parent: parent,
		Name:   stringAt(n.strings, int64(at.function)),
		File:   stringAt(n.strings, site.file),
		Line:   site.line,
		Column: site.column,
	})
	return len(n.list) - 1
}
