package main

import (
	"fmt"
	"math"
	"time"

	"github.com/anishathalye/porcupine"
)

// Kind is what an operation does.
type Kind string

const (
	Read  Kind = "read"
	Write Kind = "write"
	Swap  Kind = "swap" // compare and swap
)

// Operation is one request of a client and its outcome. Times are nanoseconds since the beginning.
type Operation struct {
	Client       int
	Call, Return int64
	Kind         Kind
	Key          string
	// Value is what was read ("" for no key), or what was to be written.
	Value string
	// Expected is the value that a swap requires; "" requires that there is no key.
	Expected string
	Swapped  bool
	// Found is the value because of which a swap did nothing.
	Found string
	// Revision is that of an acknowledged write or swap.
	Revision int64
	// Unknown means that there was no answer. A write may have taken effect, or may still do so.
	Unknown bool
}

// Event is one change that a watcher saw.
type Event struct {
	Revision   int64
	Key, Value string
}

// Watcher is what one member reported.
type Watcher struct {
	Endpoint string
	// From is the revision from which it watched.
	From      int64
	Events    []Event
	Compacted int64
}

// History is everything that clients and watchers saw, up to the revision Last.
type History struct {
	Operations []Operation
	Watchers   []Watcher
	Last       int64
	Failures   map[string]int
}

// Report is the result of a check.
type Report struct {
	Operations int `json:"operations"`
	Reads      int `json:"reads"`
	// Writes counts acknowledged writes and swaps.
	Writes  int `json:"acknowledgedWrites"`
	Unknown int `json:"unknown"`
	Events  int `json:"events"`
	// LongestPauseMs is the longest time without an acknowledged write through any member.
	LongestPauseMs int64          `json:"longestPauseMs"`
	Failures       map[string]int `json:"failures"`
	Violations     []string       `json:"violations"`
}

// Check verifies that each key is linearizable, that all watchers saw the same events in the order of their revisions, that each
// acknowledged write is among them, and that no event has a value that nobody wrote. What cannot be checked is a violation.
func Check(history History, within time.Duration) *Report {
	report := &Report{Operations: len(history.Operations), Failures: history.Failures, Violations: []string{}}
	var lastWrite int64
	for _, operation := range history.Operations {
		switch {
		case operation.Unknown:
			report.Unknown++
		case operation.Kind == Read:
			report.Reads++
		case operation.Kind == Write || operation.Swapped:
			report.Writes++
		}
		if operation.Revision > 0 {
			report.LongestPauseMs = max(report.LongestPauseMs, (operation.Return-lastWrite)/1e6)
			lastWrite = max(lastWrite, operation.Return)
		}
	}
	if report.Writes == 0 || report.Reads == 0 {
		report.violate("the history has no acknowledged write or no read")
	}
	report.linearizable(history.Operations, within)
	report.watched(history)
	return report
}

func (r *Report) violate(format string, values ...any) {
	if len(r.Violations) < 100 {
		r.Violations = append(r.Violations, fmt.Sprintf(format, values...))
	}
}

func (r *Report) linearizable(operations []Operation, within time.Duration) {
	deadline := time.Now().Add(within)
	byKey := map[string][]porcupine.Operation{}
	for _, one := range operations {
		if one.Unknown && one.Kind == Read {
			continue
		}
		end := one.Return
		if one.Unknown {
			end = math.MaxInt64
		}
		byKey[one.Key] = append(byKey[one.Key], porcupine.Operation{
			ClientId: one.Client, Input: one, Output: one, Call: one.Call, Return: end,
		})
	}
	for key, history := range byKey {
		switch porcupine.CheckOperationsTimeout(register, history, max(time.Millisecond, time.Until(deadline))) {
		case porcupine.Illegal:
			r.violate("%s is not linearizable (%d operations)", key, len(history))
		case porcupine.Unknown:
			r.violate("%s could not be checked in time (%d operations)", key, len(history))
		}
	}
}

// register is one key. An unknown write that never took effect fits at the end of the history.
var register = porcupine.Model{
	Init: func() any { return "" },
	Step: func(state, _, output any) (bool, any) {
		value, one := state.(string), output.(Operation)
		switch one.Kind {
		case Read:
			return one.Value == value, state
		case Write:
			return true, one.Value
		}
		matches := value == one.Expected
		switch {
		case one.Unknown && matches:
			return true, one.Value
		case one.Unknown:
			return true, state
		case one.Swapped:
			return matches, one.Value
		}
		return !matches && one.Found == value, state
	},
	Equal: func(a, b any) bool { return a == b },
}

func (r *Report) watched(history History) {
	if len(history.Watchers) == 0 {
		r.violate("there is no watcher")
		return
	}
	var from int64
	for _, watcher := range history.Watchers {
		from = max(from, watcher.From)
	}
	seen := make([]map[int64]Event, len(history.Watchers))
	for index, watcher := range history.Watchers {
		if watcher.Compacted > 0 {
			r.violate("%s had compacted revision %d before its watcher read it", watcher.Endpoint, watcher.Compacted)
		}
		seen[index] = map[int64]Event{}
		var before int64
		for _, event := range watcher.Events {
			if event.Revision <= before {
				r.violate("%s reported revision %d after %d", watcher.Endpoint, event.Revision, before)
			}
			before = event.Revision
			if event.Revision >= from && event.Revision <= history.Last {
				seen[index][event.Revision] = event
			}
		}
		if before < history.Last {
			r.violate("%s reported no event after revision %d; the last one is %d", watcher.Endpoint, before, history.Last)
		}
	}
	r.Events = len(seen[0])
	for index, events := range seen[1:] {
		endpoint := history.Watchers[index+1].Endpoint
		for revision, event := range events {
			if seen[0][revision] != event {
				r.violate("%s reported %v, and %s %v", endpoint, event, history.Watchers[0].Endpoint, seen[0][revision])
			}
		}
		if len(events) != len(seen[0]) {
			r.violate("%s reported %d events, and %s %d", endpoint, len(events), history.Watchers[0].Endpoint, len(seen[0]))
		}
	}
	values := map[string]bool{prefix + "end end": true}
	for _, one := range history.Operations {
		if one.Kind == Read {
			continue
		}
		values[one.Key+" "+one.Value] = true
		if one.Revision < from {
			continue
		}
		if event := seen[0][one.Revision]; event.Key != one.Key || event.Value != one.Value {
			r.violate("the acknowledged write of %s = %s at revision %d is lost", one.Key, one.Value, one.Revision)
		}
	}
	for _, event := range seen[0] {
		if !values[event.Key+" "+event.Value] {
			r.violate("nobody wrote %v", event)
		}
	}
}
