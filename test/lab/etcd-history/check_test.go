package main

import (
	"strings"
	"testing"
	"time"
)

func write(call, end int64, value string, revision int64) Operation {
	return Operation{Kind: Write, Key: "a", Value: value, Call: call, Return: end, Revision: revision}
}

func read(call, end int64, value string) Operation {
	return Operation{Kind: Read, Key: "a", Value: value, Call: call, Return: end}
}

// sound has an unknown write (2) that takes effect late, and one (9) that never does.
func sound() History {
	events := []Event{{11, "a", "1"}, {12, "a", "3"}, {13, "a", "2"}, {14, "a", "4"}, {15, prefix + "end", "end"}}
	return History{
		Operations: []Operation{
			write(0, 10, "1", 11),
			{Kind: Write, Key: "a", Value: "2", Call: 11, Return: 20, Unknown: true},
			{Kind: Write, Key: "a", Value: "9", Call: 11, Return: 20, Unknown: true},
			read(21, 22, "1"),
			{Kind: Swap, Key: "a", Expected: "1", Value: "3", Swapped: true, Call: 23, Return: 24, Revision: 12},
			read(25, 26, "3"),
			read(30, 31, "2"),
			{Kind: Swap, Key: "a", Expected: "3", Value: "8", Found: "2", Call: 32, Return: 33},
			write(34, 40, "4", 14),
			{Kind: Read, Key: "a", Call: 41, Return: 45, Unknown: true},
		},
		Watchers: []Watcher{
			{Endpoint: "m1", From: 10, Events: append([]Event{}, events...)},
			{Endpoint: "m2", From: 11, Events: append([]Event{}, events...)},
		},
		Last: 15,
	}
}

func TestAcceptsSoundHistory(t *testing.T) {
	report := Check(sound(), time.Minute)
	if len(report.Violations) > 0 || report.Writes != 3 || report.Reads != 3 || report.Unknown != 3 || report.Events != 5 {
		t.Fatalf("%+v", report)
	}
}

func TestRefuses(t *testing.T) {
	for name, one := range map[string]struct {
		change func(*History)
		expect string
	}{
		"a stale read":         {func(h *History) { h.Operations[5].Value = "1" }, "not linearizable"},
		"a swap without match": {func(h *History) { h.Operations[4].Expected = "7" }, "not linearizable"},
		"a swap that should have matched": {func(h *History) {
			h.Operations[7].Expected = "2"
		}, "not linearizable"},
		"a lost write": {func(h *History) {
			for index := range h.Watchers {
				events := h.Watchers[index].Events
				h.Watchers[index].Events = append(events[:3:3], events[4])
			}
		}, "is lost"},
		"a write acknowledged with another value": {func(h *History) { h.Operations[0].Value = "5" }, "is lost"},
		"members that differ":                     {func(h *History) { h.Watchers[1].Events[2].Value = "9" }, "reported"},
		"a member that skips an event": {func(h *History) {
			events := h.Watchers[1].Events
			h.Watchers[1].Events = append(events[:2:2], events[3:]...)
		}, "4 events"},
		"an event twice": {func(h *History) {
			h.Watchers[0].Events = append([]Event{h.Watchers[0].Events[0]}, h.Watchers[0].Events...)
		}, "reported revision 11 after 11"},
		"a value that nobody wrote": {func(h *History) {
			for index := range h.Watchers {
				h.Watchers[index].Events[2].Value = "77"
			}
		}, "nobody wrote"},
		"a watcher that stopped": {func(h *History) { h.Watchers[1].Events = h.Watchers[1].Events[:3] }, "no event after revision 13"},
		"a compacted revision":   {func(h *History) { h.Watchers[0].Compacted = 12 }, "compacted"},
		"no watcher":             {func(h *History) { h.Watchers = nil }, "no watcher"},
		"nothing":                {func(h *History) { h.Operations = nil }, "no acknowledged write"},
	} {
		history := sound()
		one.change(&history)
		violations := strings.Join(Check(history, time.Minute).Violations, "\n")
		if !strings.Contains(violations, one.expect) {
			t.Errorf("%s: %q", name, violations)
		}
	}
}
