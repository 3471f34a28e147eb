package codelog

// quirks is how the writer of a dump deviates from the format. It is shared by
// all codes of a dump, and changes as more of them are seen.
type quirks struct {
	isThumb bool
	// isV8 says that the header is one of V8's, which adds to the addresses of
	// entries. This counts before enough is known of the data.
	isV8    bool
	isWhole bool
	votes   [2]biasVotes
}

func (q *quirks) address(a uint64) uint64 {
	if q.isThumb {
		return a &^ 1
	}
	return a
}

// bias is what the writer adds to the addresses of entries.
func (q *quirks) bias() uint64 {
	for at := range q.votes {
		if q.votes[at].isAccepted() {
			return q.votes[at].bias
		}
	}
	if q.isV8 && !q.isWhole && q.votes[0].codes < biasCodes {
		return 0x40
	}
	return 0
}

const (
	// biasCodes is how many codes suffice to detect a bias.
	biasCodes = 8
	// mostBiasCodes is how many codes are examined for it.
	mostBiasCodes = 1000
	// biasEntries is how many entries of each code are.
	biasEntries = 64
)

// biasVotes counts what speaks for a bias, and against it.
type biasVotes struct {
	bias  uint64
	codes int
	// below counts codes whose lowest entry is below the bias.
	below int
	// exact counts codes whose lowest entry is at it.
	exact int
	// overrun counts codes with an entry past their end that the bias explains.
	overrun int
}

func (v *biasVotes) add(low, high, size int64) {
	bias := int64(v.bias)
	v.codes++
	if low < bias {
		v.below++
	}
	if low == bias {
		v.exact++
	}
	if high >= size && high-bias <= size {
		v.overrun++
	}
}

func (v *biasVotes) isAccepted() bool {
	return v.codes > 0 && v.below*20 <= v.codes && v.exact*4 >= v.codes &&
		(v.codes >= biasCodes || v.overrun > 0)
}

// examine learns from a code.
func (q *quirks) examine(c *Code) {
	if c.debug == nil || c.hasTail || q.votes[0].codes >= mostBiasCodes {
		return
	}
	raw := c.debug.raw()
	var low, high int64
	isFirst := true
	for n := 0; n < biasEntries; n++ {
		e, ok := raw.next()
		if !ok {
			break
		}
		if e.line == 0 {
			continue
		}
		delta := int64(e.addr - c.Address)
		if isFirst || delta < low {
			low = delta
		}
		if isFirst || delta > high {
			high = delta
		}
		isFirst = false
	}
	if isFirst {
		return
	}
	for at := range q.votes {
		q.votes[at].add(low, high, int64(c.Size))
	}
}
