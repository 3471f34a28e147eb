package codelog

import (
	"errors"
	"fmt"
	"io"
)

// Dump is a jitdump that was read completely.
type Dump struct {
	Header Header
	// Events in the order of the file, which is not always that of time.
	Events []Event
	// LeftOut counts codes that the writer left out.
	LeftOut LeftOut
	End     End
}

// ParseDump reads a jitdump in memory. The codes refer to data.
func ParseDump(data []byte) (*Dump, error) {
	h, err := ParseHeader(data)
	if err != nil {
		return nil, err
	}
	dump := &Dump{Header: h}
	if h.firstRecord() > uint64(len(data)) {
		dump.End = EndCutOff
		return dump, nil
	}
	d := newDecoder(h)
	first := h.firstRecord()
	_, dump.End = d.decode(data[first:], first, true, func(e Event) { dump.Events = append(dump.Events, e) })
	dump.LeftOut = d.leftOut
	return dump, nil
}

// Codes calls each for the codes in the order of the file, until it returns
// false.
func (d *Dump) Codes(each func(*Code) bool) {
	for _, e := range d.Events {
		if e.Kind == LoadEvent && !each(e.Code) {
			return
		}
	}
}

// FileReader reads a jitdump while it grows: each [FileReader.Poll] reads what
// was appended. It holds only incomplete records, and records whose code has
// not come.
type FileReader struct {
	file    io.ReaderAt
	header  Header
	decoder *decoder
	// held are the bytes that were read and are not used yet.
	held []byte
	// next is the offset of the first byte that was not read.
	next    uint64
	scratch []byte
}

// readStep is how much is read at a time.
const readStep = 1 << 18

// NewFileReader reads the header of a jitdump.
func NewFileReader(file io.ReaderAt) (*FileReader, error) {
	head := make([]byte, headerSize)
	count, err := file.ReadAt(head, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("reading a jitdump at offset 0: %w", err)
	}
	h, err := ParseHeader(head[:count])
	if err != nil {
		return nil, err
	}
	return &FileReader{file: file, header: h, decoder: newDecoder(h), next: h.firstRecord(), scratch: make([]byte, readStep)}, nil
}

// Header returns the header of the file.
func (r *FileReader) Header() Header { return r.header }

// LeftOut counts codes that the writer left out so far.
func (r *FileReader) LeftOut() LeftOut { return r.decoder.leftOut }

// Poll passes the events whose records were completed since the last call.
// Records that are not complete are left for the next call, and so are zeros,
// which are space that will be filled.
func (r *FileReader) Poll(each func(Event)) error {
	for {
		count, err := r.file.ReadAt(r.scratch, int64(r.next))
		if err != nil && !errors.Is(err, io.EOF) {
			return fmt.Errorf("reading a jitdump at offset %#x: %w", r.next, err)
		}
		if count == 0 {
			return nil
		}
		begin := r.next - uint64(len(r.held))
		r.next += uint64(count)
		data := append(r.held, r.scratch[:count]...)
		used, _ := r.decoder.decode(data, begin, false, each)
		if used == 0 {
			r.held = data
		} else {
			// Codes refer to the first part; what is appended must not move it.
			r.held = append([]byte(nil), data[used:]...)
		}
		if count < readStep {
			return nil
		}
	}
}
