package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

const usage = "the lab's systemctl knows: start stop restart try-restart is-active is-enabled is-failed enable disable status show cat daemon-reload list-units\n"

// exit codes of systemctl(1): 3 a unit that is not active, 4 no such unit
const (
	notActive = 3
	noUnit    = 4
)

func (m *manager) handle(r request) reply {
	if r.Verb == "daemon-reload" || r.Verb == "is-system-running" || r.Verb == "reset-failed" {
		return reply{} // units are read at each use, so there is nothing to reload
	}
	if r.Verb == "list-units" {
		return m.each(m.names(), m.line)
	}
	verbs := map[string]func(string) reply{
		"start": m.startVerb, "stop": m.stopVerb, "restart": m.restartVerb, "try-restart": m.tryRestart,
		"is-active": m.isActive, "is-failed": m.isFailed, "is-enabled": isEnabled, "enable": enable, "disable": disable,
		"status": m.status, "cat": cat, "show": func(name string) reply { return m.show(name, r.Flags) },
	}
	verb, known := verbs[r.Verb]
	if !known || len(r.Units) == 0 {
		return reply{Errors: usage, Code: 1}
	}
	answer := m.each(r.Units, verb)
	if slices.Contains(r.Flags, "--quiet") || slices.Contains(r.Flags, "-q") {
		answer.Output = ""
	}
	if slices.Contains(r.Flags, "--now") && r.Verb == "enable" {
		return m.each(r.Units, m.startVerb)
	}
	return answer
}

// each runs a verb for every unit and keeps the worst code.
func (m *manager) each(units []string, verb func(string) reply) reply {
	var all reply
	for _, name := range units {
		one := verb(strings.TrimSuffix(name, ".service"))
		all.Output += one.Output
		all.Errors += one.Errors
		all.Code = max(all.Code, one.Code)
	}
	return all
}

func (m *manager) startVerb(name string) reply {
	if err := m.start(name); err != nil {
		return reply{Errors: err.Error() + "\n", Code: 5}
	}
	return reply{}
}

func (m *manager) stopVerb(name string) reply {
	if _, ok := loadUnit(name); !ok {
		return reply{Errors: fmt.Sprintf("Failed to stop %s.service: Unit %s.service not loaded.\n", name, name), Code: 5}
	}
	m.stop(name)
	return reply{}
}

func (m *manager) restartVerb(name string) reply {
	m.stop(name)
	return m.startVerb(name)
}

func (m *manager) tryRestart(name string) reply {
	if s := m.snapshot(name); s.pid == 0 {
		return reply{}
	}
	return m.restartVerb(name)
}

func (m *manager) snapshot(name string) service {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	return *m.get(name)
}

func (m *manager) isActive(name string) reply {
	if _, ok := loadUnit(name); !ok {
		return reply{Output: "inactive\n", Code: noUnit}
	}
	s := m.snapshot(name)
	if s.state != "active" {
		return reply{Output: s.state + "\n", Code: notActive}
	}
	return reply{Output: "active\n"}
}

func (m *manager) isFailed(name string) reply {
	s := m.snapshot(name)
	if s.state == "failed" {
		return reply{Output: "failed\n"}
	}
	return reply{Output: s.state + "\n", Code: 1}
}

func wants(name string) string {
	return filepath.Join(unitFolder, "multi-user.target.wants", name+".service")
}

func isEnabled(name string) reply {
	if _, err := os.Lstat(wants(name)); err != nil {
		return reply{Output: "disabled\n", Code: 1}
	}
	return reply{Output: "enabled\n"}
}

func enable(name string) reply {
	if _, ok := loadUnit(name); !ok {
		return reply{Errors: fmt.Sprintf("Failed to enable unit: Unit file %s.service does not exist.\n", name), Code: 1}
	}
	_ = os.MkdirAll(filepath.Dir(wants(name)), 0o755)
	_ = os.Symlink(filepath.Join(unitFolder, name+".service"), wants(name))
	return reply{}
}

func disable(name string) reply {
	_ = os.Remove(wants(name))
	return reply{}
}

func cat(name string) reply {
	u, ok := loadUnit(name)
	if !ok {
		return reply{Errors: fmt.Sprintf("No files found for %s.service.\n", name), Code: 1}
	}
	return reply{Output: u.text}
}

func (m *manager) line(name string) reply {
	s := m.snapshot(name)
	return reply{Output: fmt.Sprintf("%s.service loaded %s\n", name, s.state)}
}

func (m *manager) status(name string) reply {
	u, ok := loadUnit(name)
	if !ok {
		return reply{Errors: fmt.Sprintf("Unit %s.service could not be found.\n", name), Code: noUnit}
	}
	s := m.snapshot(name)
	text := fmt.Sprintf("%s.service - %s\n   Loaded: loaded (%s)\n   Active: %s since %s; %d restarts; last end: %s\n Main PID: %d\n",
		name, u.values["Description"], u.path, s.state, s.started.UTC().Format(time.RFC3339), s.restarts, first(s.exit, "none"), s.pid)
	if s.state != "active" {
		return reply{Output: text, Code: notActive}
	}
	return reply{Output: text}
}

// show prints NAME=VALUE lines; with -pNAME or --property=NAME[,NAME] only those, with --value only the values.
func (m *manager) show(name string, flags []string) reply {
	u, ok := loadUnit(name)
	s := m.snapshot(name)
	load := "loaded"
	if !ok {
		load = "not-found"
	}
	properties := [][2]string{
		{"Id", name + ".service"}, {"LoadState", load}, {"ActiveState", s.state}, {"MainPID", fmt.Sprint(s.pid)},
		{"NRestarts", fmt.Sprint(s.restarts)}, {"ActiveEnterTimestamp", s.started.UTC().Format("Mon 2006-01-02 15:04:05 UTC")},
		{"FragmentPath", u.path}, {"DropInPaths", strings.Join(u.dropIns, " ")}, {"ExecStart", u.values["ExecStart"]},
	}
	wanted, valueOnly := []string{}, slices.Contains(flags, "--value")
	for _, flag := range flags {
		for _, prefix := range []string{"-p", "--property="} {
			if names, found := strings.CutPrefix(flag, prefix); found && flag != "-p" {
				wanted = append(wanted, strings.Split(names, ",")...)
			}
		}
	}
	var out strings.Builder
	for _, property := range properties {
		switch {
		case len(wanted) > 0 && !slices.Contains(wanted, property[0]):
		case valueOnly:
			out.WriteString(property[1] + "\n")
		default:
			out.WriteString(property[0] + "=" + property[1] + "\n")
		}
	}
	return reply{Output: out.String()}
}
