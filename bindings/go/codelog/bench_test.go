package codelog

import (
	"bytes"
	"encoding/binary"
	"os"
	"testing"
)

// BenchmarkPoll polls a log of 600 chunks in which nothing changed.
func BenchmarkPoll(b *testing.B) {
	data, err := os.ReadFile("../../../conformance/files/log-chunks.log")
	if err != nil {
		b.Fatal(err)
	}
	chunks := data[firstChunk : firstChunk+3*8192]
	whole := append([]byte(nil), data[:firstChunk]...)
	for n := 0; n < 200; n++ {
		whole = append(whole, chunks...)
	}
	binary.LittleEndian.PutUint32(whole[logItem+8:], 600)
	log, err := NewLogReader(bytes.NewReader(whole), false, DefaultLimits)
	if err != nil {
		b.Fatal(err)
	}
	poll := func() {
		if err := log.Poll(func(Event) {}); err != nil {
			b.Fatal(err)
		}
	}
	poll()
	b.SetBytes(int64(len(whole)))
	b.ReportAllocs()
	b.ResetTimer()
	for n := 0; n < b.N; n++ {
		poll()
	}
}
