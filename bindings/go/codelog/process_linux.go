package codelog

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/bits"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

const (
	// mostLogs is the most logs of one process.
	mostLogs = 32
	// mostMappings is how much is read of the list of mappings.
	mostMappings = 64 << 20
	// mostOfMemory is how much is read of a process's memory in a poll: reading
	// a page that was not touched allocates it, and it counts as the process's.
	mostOfMemory = 512 << 20
	seekData     = 3
	seekHole     = 4
)

// ErrNoLog is the error for a process that has no code log.
var ErrNoLog = errors.New("the process has no code log")

// Process is a running process with one or more code logs.
type Process struct {
	// PID is the process as the caller sees it.
	PID  int
	logs []*LogReader
	open []io.Closer
}

// Logs returns the process's logs: its own first, then those of processes that
// it was forked from, whose code it has as well. Of those, the readers return
// only the codes that belong to this process.
func (p *Process) Logs() []*LogReader { return p.logs }

// Poll polls all logs.
func (p *Process) Poll(each func(Event)) error {
	for _, log := range p.logs {
		if err := log.Poll(each); err != nil {
			return fmt.Errorf("process %d: %w", p.PID, err)
		}
	}
	return nil
}

// Close closes the files of the process.
func (p *Process) Close() error {
	var first error
	for _, file := range p.open {
		if err := file.Close(); err != nil && first == nil {
			first = err
		}
	}
	p.open = nil
	return first
}

// Open finds the code logs of a process, by its mappings: its descriptors may
// change at any time. It needs the rights of the process's user, and to read
// its memory those to trace it.
//
// The readers stay on these logs: after an exec, or once a forked child has its
// own log, open the process again.
func Open(pid int, limits Limits) (*Process, error) {
	root := "/proc/" + strconv.Itoa(pid)
	// The memory first, the mappings second: if the process runs another program
	// in between, the descriptor refers to the old program's memory.
	memory, memoryErr := os.Open(root + "/mem")
	maps, err := os.Open(root + "/maps")
	if err != nil {
		closeAll(memory)
		return nil, fmt.Errorf("process %d: %w", pid, err)
	}
	candidates, err := findCandidates(maps)
	maps.Close()
	if err != nil {
		closeAll(memory)
		return nil, fmt.Errorf("process %d: reading its mappings: %w", pid, err)
	}
	p := &Process{PID: pid}
	if memoryErr == nil {
		p.open = append(p.open, memory)
	}
	var found []foundLog
	seen := make(map[[2]uint64]bool)
	lastErr := memoryErr
	for _, c := range candidates {
		// The same log may be mapped twice.
		if seen[c.identity] || len(found) == mostLogs {
			continue
		}
		log, err := p.openLog(root, c, memory, limits)
		if err != nil {
			lastErr = err
			continue
		}
		seen[c.identity] = true
		found = append(found, foundLog{c, log})
	}
	if len(found) == 0 {
		p.Close()
		if len(candidates) > 0 && lastErr != nil {
			return nil, fmt.Errorf("process %d: %w", pid, lastErr)
		}
		return nil, fmt.Errorf("process %d: %w", pid, ErrNoLog)
	}
	p.choose(root, found)
	return p, nil
}

func closeAll(file *os.File) {
	if file != nil {
		file.Close()
	}
}

type logKind int

const (
	memoryLog logKind = iota
	// dumpLog is a file that other tools read as a jitdump.
	dumpLog
	// anonymousLog is shared memory without a descriptor.
	anonymousLog
)

// candidate is a mapping that may be a log.
type candidate struct {
	start, end uint64
	// firstEnd is the end of its first mapping in the list.
	firstEnd uint64
	identity [2]uint64
	kind     logKind
	name     string
}

type foundLog struct {
	candidate
	log *LogReader
}

// findCandidates returns the shared, writable mappings from the beginning of
// files with suitable names.
func findCandidates(maps io.Reader) ([]candidate, error) {
	var found []candidate
	lines := bufio.NewReader(io.LimitReader(maps, mostMappings))
	// isOpen: the last candidate may be continued by the next line.
	isOpen := false
	for {
		text, err := lines.ReadString('\n')
		if err != nil {
			if errors.Is(err, io.EOF) {
				return found, nil
			}
			return found, err
		}
		m, ok := parseMapping(text)
		if !ok {
			isOpen = false
			continue
		}
		if isOpen {
			// madvise on a part splits a mapping in the list.
			last := &found[len(found)-1]
			if last.end == m.start && last.identity == m.identity && last.name == m.name && m.offset == last.end-last.start {
				last.end = m.end
				continue
			}
		}
		kind, ok := kindOf(m.name)
		isOpen = ok && m.offset == 0 && len(found) < 4*mostLogs
		if isOpen {
			found = append(found, candidate{m.start, m.end, m.end, m.identity, kind, m.name})
		}
	}
}

type mapping struct {
	start, end, offset uint64
	identity           [2]uint64
	name               string
}

// parseMapping parses a line of /proc/PID/maps that is shared and writable.
func parseMapping(text string) (mapping, bool) {
	text = strings.TrimSuffix(text, "\n")
	words := strings.SplitN(text, " ", 6)
	if len(words) < 6 || len(words[1]) != 4 || words[1][1] != 'w' || words[1][3] != 's' {
		return mapping{}, false
	}
	dash := strings.IndexByte(words[0], '-')
	colon := strings.IndexByte(words[3], ':')
	if dash < 0 || colon < 0 {
		return mapping{}, false
	}
	number := func(text string, base int) uint64 {
		value, err := strconv.ParseUint(text, base, 64)
		if err != nil {
			colon = -1
		}
		return value
	}
	m := mapping{start: number(words[0][:dash], 16), end: number(words[0][dash+1:], 16), offset: number(words[2], 16)}
	major, minor := number(words[3][:colon], 16), number(words[3][colon+1:], 16)
	m.identity = [2]uint64{major<<32 | minor, number(words[4], 10)}
	m.name = strings.TrimLeft(words[5], " ")
	return m, colon >= 0 && m.start < m.end
}

func kindOf(name string) (logKind, bool) {
	name = strings.TrimSuffix(name, " (deleted)")
	switch name {
	case "/memfd:jitscribe":
		return memoryLog, true
	case "/dev/zero":
		return anonymousLog, true
	}
	file := filepath.Base(name)
	return dumpLog, strings.HasPrefix(file, "jit-") && strings.HasSuffix(file, ".dump")
}

// openLog opens a log, by its file or in the process's memory. A file that is no
// memfd may be truncated at any time; its mapping keeps what was read.
func (p *Process) openLog(root string, c candidate, memory *os.File, limits Limits) (*LogReader, error) {
	inMemory := func() (*LogReader, error) {
		if memory == nil {
			return nil, fmt.Errorf("the log at %#x: the process's memory cannot be read", c.start)
		}
		bounded := limits
		if bounded.Read > mostOfMemory {
			bounded.Read = mostOfMemory
		}
		log, err := NewLogReader(memorySource{memory, c.start, c.end}, true, bounded)
		if err != nil {
			return nil, fmt.Errorf("the log at %#x: %w", c.start, err)
		}
		return log, nil
	}
	if c.kind != memoryLog && memory != nil {
		return inMemory()
	}
	if c.kind != anonymousLog {
		if file := findFile(root, c); file != nil {
			log, err := NewLogReader(fileSource{file}, true, limits)
			if err != nil {
				file.Close()
				return nil, fmt.Errorf("the log at %#x: %w", c.start, err)
			}
			p.open = append(p.open, file)
			return log, nil
		}
	}
	return inMemory()
}

// findFile opens the file of a mapping, if it is the one.
func findFile(root string, c candidate) *os.File {
	paths := []string{fmt.Sprintf("%s/map_files/%x-%x", root, c.start, c.firstEnd)}
	entries, _ := os.ReadDir(root + "/fd")
	for _, entry := range entries {
		path := root + "/fd/" + entry.Name()
		// This only saves work; the opened file is checked.
		if link, err := os.Readlink(path); err == nil {
			if kind, ok := kindOf(link); ok && kind == c.kind {
				paths = append(paths, path)
			}
		}
	}
	for _, path := range paths {
		// Opening something else than a file may have effects, or wait.
		if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() || identityOf(info) != c.identity {
			continue
		}
		file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOCTTY, 0)
		if err != nil {
			continue
		}
		if info, err := file.Stat(); err == nil && info.Mode().IsRegular() && identityOf(info) == c.identity {
			return file
		}
		file.Close()
	}
	return nil
}

// identityOf is the device and inode of a file, as in the list of mappings.
func identityOf(info os.FileInfo) [2]uint64 {
	status, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return [2]uint64{}
	}
	dev := uint64(status.Dev)
	major := dev>>8&0xfff | dev>>32&^0xfff
	minor := dev&0xff | dev>>12&^0xff
	return [2]uint64{major<<32 | minor&0xffffffff, status.Ino}
}

// choose puts the process's own log first, and bounds those that it inherited.
func (p *Process) choose(root string, found []foundLog) {
	inner, hasInner := innerPID(root)
	started, hasStarted := startTime(root)
	var inherited []*LogReader
	for _, f := range found {
		head := f.log.Head()
		if !hasInner || head.PID == inner {
			p.logs = append(p.logs, f.log)
			continue
		}
		isReferred := false
		for _, other := range found {
			if other.log.Head().Inherited == f.start {
				isReferred = true
				f.log.until = other.log.Head().Forked
			}
		}
		if !isReferred {
			// Once no log refers to a part of a log, the other has its codes.
			if f.end-f.start < head.Limit {
				continue
			}
			if hasStarted && !head.ArchTimestamps {
				f.log.until = started
			}
		}
		inherited = append(inherited, f.log)
	}
	p.logs = append(p.logs, inherited...)
}

// innerPID is the process as it sees itself.
func innerPID(root string) (uint32, bool) {
	status, err := os.ReadFile(root + "/status")
	if err != nil {
		return 0, false
	}
	for _, text := range bytes.Split(status, []byte("\n")) {
		if rest := bytes.TrimPrefix(text, []byte("NStgid:")); len(rest) < len(text) {
			words := bytes.Fields(rest)
			if len(words) == 0 {
				return 0, false
			}
			pid, err := strconv.ParseUint(string(words[len(words)-1]), 10, 32)
			return uint32(pid), err == nil
		}
	}
	return 0, false
}

// startTime is when the process started, in nanoseconds of CLOCK_MONOTONIC: the
// end of the hundredth of a second that the kernel names. On a machine that was
// suspended it is later than that, so that a child keeps more of the code of its
// parent than it should.
func startTime(root string) (uint64, bool) {
	stat, err := os.ReadFile(root + "/stat")
	if err != nil {
		return 0, false
	}
	// The name, in parentheses, may contain anything.
	words := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(words) < 20 {
		return 0, false
	}
	ticks, err := strconv.ParseUint(string(words[19]), 10, 64)
	if err != nil {
		return 0, false
	}
	high, low := bits.Mul64(ticks, perTick)
	return low + perTick, high == 0
}

// perTick is the length of a tick in nanoseconds; USER_HZ is 100 on all machines
// that Go supports on Linux.
const perTick = 10_000_000

// fileSource is a log in a memfd.
type fileSource struct{ file *os.File }

func (s fileSource) ReadAt(data []byte, at int64) (int, error) { return s.file.ReadAt(data, at) }

func (s fileSource) NextData(start, end uint64) (from, to uint64, found bool) {
	first, err := s.file.Seek(int64(start), seekData)
	if err != nil {
		// Behind the last data; or the file system knows no holes.
		if errors.Is(err, syscall.ENXIO) {
			return 0, 0, false
		}
		return start, end, true
	}
	last, err := s.file.Seek(first, seekHole)
	if err != nil || uint64(last) > end {
		last = int64(end)
	}
	return uint64(first), uint64(last), uint64(first) < end
}

// memorySource is a log in the memory of its process.
type memorySource struct {
	memory     *os.File
	start, end uint64
}

func (s memorySource) ReadAt(data []byte, at int64) (int, error) {
	if at < 0 || uint64(at) >= s.end-s.start {
		return 0, io.EOF
	}
	from := s.start + uint64(at)
	isShort := false
	if left := s.end - from; uint64(len(data)) > left {
		data, isShort = data[:left], true
	}
	count, err := s.memory.ReadAt(data, int64(from))
	if err == nil && isShort {
		err = io.EOF
	}
	return count, err
}
