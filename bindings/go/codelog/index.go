package codelog

import "sort"

// LoadDelay is how much later than the code first ran its load may be recorded.
const LoadDelay = 20_000_000

const (
	pageBits = 14
	// mostPages is the most pages under which a code is listed.
	mostPages = 16
)

// Index answers which code was at an address at a time.
type Index struct {
	// pages lists the places of codes by page, in the order of time.
	pages map[uint64][]*place
	// large lists those that extend over more pages.
	large []*place
	// byIndex is the last code of each index, for moves.
	byIndex map[uint64]*place
	// serial numbers the places.
	serial  int
	unready map[uint64]bool
	largeUp bool
}

// place is a code at an address, from a time on.
type place struct {
	code    *Code
	from    uint64
	until   uint64
	address uint64
	serial  int
}

func (p *place) contains(address uint64) bool { return address-p.address < p.code.Size }

// NewIndex returns an empty index.
func NewIndex() *Index {
	return &Index{pages: make(map[uint64][]*place), byIndex: make(map[uint64]*place), unready: make(map[uint64]bool)}
}

// Add takes an event of a dump or a log.
func (x *Index) Add(e Event) {
	switch e.Kind {
	case LoadEvent:
		x.place(e.Code, e.Time, e.Code.Address)
	case MoveEvent:
		if old := x.moved(e.Move); old != nil {
			old.until = e.Time
			x.place(old.code, e.Time, e.Move.NewAddress)
		}
	}
}

// moved returns the code that a move means: that of its index, if it is at its
// old address; the last code there; that of its index, wherever it is.
func (x *Index) moved(m *Move) *place {
	named := x.byIndex[m.Index]
	if named != nil && named.address == m.OldAddress && named.until == 0 {
		return named
	}
	var there *place
	list := x.pages[m.OldAddress>>pageBits]
	for _, from := range [][]*place{list, x.large} {
		for _, p := range from {
			if p.address == m.OldAddress && p.until == 0 && p.code.Died == 0 && (there == nil || p.serial > there.serial) {
				there = p
			}
		}
	}
	if there != nil {
		return there
	}
	return named
}

func (x *Index) place(c *Code, from, address uint64) {
	x.serial++
	p := &place{code: c, from: from, address: address, serial: x.serial}
	x.byIndex[c.Index] = p
	if c.Size == 0 {
		return
	}
	first, last := address>>pageBits, addSaturating(address, c.Size-1)>>pageBits
	if last-first >= mostPages {
		x.large = append(x.large, p)
		x.largeUp = true
		return
	}
	for page := first; page <= last; page++ {
		list := append(x.pages[page], p)
		x.pages[page] = list
		if len(list) > 1 && list[len(list)-2].from > from {
			x.unready[page] = true
		}
	}
}

func inOrder(list []*place) {
	sort.SliceStable(list, func(a, b int) bool {
		if list[a].from != list[b].from {
			return list[a].from < list[b].from
		}
		return list[a].serial < list[b].serial
	})
}

// Lookup returns the code that was at an address at a time of the records'
// clock: that which was loaded there last, if it was not unloaded. A code whose
// load was recorded up to [LoadDelay] later counts, if nothing was there before.
func (x *Index) Lookup(address, time uint64) *Code {
	if p := x.lookup(address, time); p != nil {
		return p.code
	}
	return nil
}

func (x *Index) lookup(address, time uint64) *place {
	page := address >> pageBits
	if x.unready[page] {
		inOrder(x.pages[page])
		delete(x.unready, page)
	}
	if x.largeUp {
		inOrder(x.large)
		x.largeUp = false
	}
	var before, after *place
	for _, list := range [][]*place{x.pages[page], x.large} {
		next := sort.Search(len(list), func(n int) bool { return list[n].from > time })
		for n := next - 1; n >= 0; n-- {
			if p := list[n]; p.contains(address) {
				if before == nil || p.from > before.from || (p.from == before.from && p.serial > before.serial) {
					before = p
				}
				break
			}
		}
		for n := next; n < len(list) && list[n].from-time <= LoadDelay; n++ {
			if p := list[n]; p.contains(address) {
				if after == nil || p.from < after.from {
					after = p
				}
				break
			}
		}
	}
	if before == nil {
		return after
	}
	if died := before.code.Died; (died != 0 && died <= time) || (before.until != 0 && before.until <= time) {
		return nil
	}
	return before
}

// Frames returns the functions at an address at a time, the innermost first, and
// nothing if no code was there.
func (x *Index) Frames(address, time uint64) []Frame {
	p := x.lookup(address, time)
	if p == nil {
		return nil
	}
	// The code describes itself where it was loaded.
	return p.code.Frames(address - p.address + p.code.Address)
}

// Prune forgets codes that were unloaded or replaced before a time, which then
// can no longer be looked up.
func (x *Index) Prune(before uint64) {
	isKept := func(p *place) bool {
		died := p.code.Died
		return (died == 0 || died > before) && (p.until == 0 || p.until > before)
	}
	filter := func(list []*place) []*place {
		var kept []*place
		for _, p := range list {
			if isKept(p) {
				kept = append(kept, p)
			}
		}
		return kept
	}
	for page, list := range x.pages {
		if kept := filter(list); len(kept) > 0 {
			x.pages[page] = kept
		} else {
			delete(x.pages, page)
			delete(x.unready, page)
		}
	}
	x.large = filter(x.large)
	for index, p := range x.byIndex {
		if !isKept(p) {
			delete(x.byIndex, index)
		}
	}
}
