// Command codelog prints what the package codelog reads, as JSON: a jitdump, the
// memory of a code log, or the code logs of a process.
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/jitscribe/jitscribe/bindings/go/codelog"
	"github.com/jitscribe/jitscribe/bindings/go/codelog/internal/reading"
)

const usage = `usage: codelog read FILE      print a jitdump, or a file NAME.log with the memory of a code log
       codelog process PID [N]
                              print the codes in the code logs of a process, after
                              reading what changed in them N times (default: 1)`

// largestFile is how much is read of a file.
const largestFile = 1 << 30

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintf(os.Stderr, "error: %v\n", err)
		os.Exit(1)
	}
}

func run(arguments []string) error {
	polls := 1
	if len(arguments) == 3 && arguments[0] == "process" {
		number, err := strconv.Atoi(arguments[2])
		if err != nil || number < 1 {
			return fmt.Errorf("%q is not a number of times", arguments[2])
		}
		polls, arguments = number, arguments[:2]
	}
	if len(arguments) != 2 {
		fmt.Fprintln(os.Stderr, usage)
		os.Exit(2)
	}
	out := json.NewEncoder(os.Stdout)
	out.SetEscapeHTML(false)
	switch arguments[0] {
	case "read":
		file, err := os.Open(arguments[1])
		if err != nil {
			return err
		}
		defer file.Close()
		data, err := io.ReadAll(io.LimitReader(file, largestFile+1))
		if err != nil {
			return err
		}
		if len(data) > largestFile {
			return fmt.Errorf("%s: larger than %d bytes", arguments[1], largestFile)
		}
		if strings.HasSuffix(arguments[1], ".log") {
			return out.Encode(reading.OfLog(data))
		}
		return out.Encode(reading.OfDump(data))
	case "process":
		pid, err := strconv.Atoi(arguments[1])
		if err != nil {
			return fmt.Errorf("%q is not a process id", arguments[1])
		}
		process, err := codelog.Open(pid, codelog.DefaultLimits)
		if err != nil {
			return err
		}
		defer process.Close()
		for _, log := range process.Logs() {
			events, err := follow(log, polls)
			if err != nil {
				return err
			}
			for _, event := range events {
				if err := out.Encode(event); err != nil {
					return err
				}
			}
		}
		return nil
	}
	fmt.Fprintln(os.Stderr, usage)
	os.Exit(2)
	return nil
}

// follow reads what changed in a log a number of times, and returns the codes in
// it. The changes must lead to the same as the codes.
func follow(log *codelog.LogReader, polls int) ([]map[string]interface{}, error) {
	alive := make(map[*codelog.Code]bool)
	change := func(e codelog.Event) {
		switch e.Kind {
		case codelog.LoadEvent:
			alive[e.Code] = true
		case codelog.UnloadEvent:
			delete(alive, e.Code)
		}
	}
	for n := 0; n < polls; n++ {
		if err := log.Poll(change); err != nil {
			return nil, err
		}
	}
	missing := 0
	log.Codes(func(c *codelog.Code) bool {
		if c.Died == 0 {
			if !alive[c] {
				missing++
			}
			delete(alive, c)
		}
		return true
	})
	if len(alive) > 0 || missing > 0 {
		return nil, fmt.Errorf("%d codes are gone and %d are there without an event", len(alive), missing)
	}
	return reading.LogCodes(log), nil
}
