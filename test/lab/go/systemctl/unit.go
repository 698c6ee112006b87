package main

import (
	"os"
	"path/filepath"
	"sort"
	"strings"
)

const unitFolder = "/etc/systemd/system"

// unit is what the lab's units say: systemd.service(5) names, last value wins, an empty ExecStart= forgets the earlier ones.
type unit struct {
	name        string
	path        string
	dropIns     []string
	text        string
	values      map[string]string
	environment []string // KEY=VALUE, and "@path" or "@-path" for an EnvironmentFile, in order
}

// loadUnit reads NAME.service and its drop-ins; ok is false when there is no such file.
func loadUnit(name string) (unit, bool) {
	u := unit{name: name, path: filepath.Join(unitFolder, name+".service"), values: map[string]string{}}
	if !u.read(u.path) {
		return u, false
	}
	u.dropIns, _ = filepath.Glob(u.path + ".d/*.conf")
	sort.Strings(u.dropIns)
	for _, path := range u.dropIns {
		u.read(path)
	}
	return u, true
}

func (u *unit) read(path string) bool {
	data, err := os.ReadFile(path)
	if err != nil {
		return false
	}
	u.text += "# " + path + "\n" + string(data) + "\n"
	joined := strings.ReplaceAll(string(data), "\\\n", " ")
	for _, line := range strings.Split(joined, "\n") {
		key, value, found := strings.Cut(strings.TrimSpace(line), "=")
		if !found || strings.HasPrefix(key, "#") || strings.HasPrefix(key, "[") {
			continue
		}
		switch key, value = strings.TrimSpace(key), strings.TrimSpace(value); key {
		case "Environment":
			u.environment = append(u.environment, words(value)...)
		case "EnvironmentFile":
			u.environment = append(u.environment, "@"+value)
		default:
			u.values[key] = value
		}
	}
	return true
}

// command returns the argument vector and the environment that ExecStart is run with.
func (u *unit) command() (argv, environment []string) {
	variables := map[string]string{}
	for _, entry := range u.environment {
		if path, isFile := strings.CutPrefix(entry, "@"); isFile {
			readEnvironmentFile(strings.TrimPrefix(path, "-"), variables)
		} else if key, value, ok := strings.Cut(entry, "="); ok {
			variables[key] = value
		}
	}
	for key, value := range variables {
		environment = append(environment, key+"="+value)
	}
	for _, word := range words(u.values["ExecStart"]) {
		// A word that is $NAME alone is split at blanks, as systemd does; ${NAME} stays one word.
		if strings.HasPrefix(word, "$") && !strings.HasPrefix(word, "${") {
			argv = append(argv, words(variables[word[1:]])...)
		} else {
			argv = append(argv, os.Expand(word, func(name string) string { return variables[name] }))
		}
	}
	return argv, environment
}

func readEnvironmentFile(path string, into map[string]string) {
	data, err := os.ReadFile(path)
	if err != nil {
		return
	}
	for _, line := range strings.Split(string(data), "\n") {
		if key, value, ok := strings.Cut(strings.TrimSpace(line), "="); ok && !strings.HasPrefix(key, "#") {
			into[key] = strings.Trim(value, `"'`)
		}
	}
}

// words splits at blanks, and takes the quotes off a word that has them.
func words(line string) []string {
	var out []string
	var word strings.Builder
	quote, open := rune(0), false
	for _, c := range line + " " {
		switch {
		case quote != 0 && c == quote:
			quote = 0
		case quote != 0:
			word.WriteRune(c)
		case c == '"' || c == '\'':
			quote, open = c, true
		case c == ' ' || c == '\t':
			if open || word.Len() > 0 {
				out = append(out, word.String())
			}
			word.Reset()
			open = false
		default:
			word.WriteRune(c)
		}
	}
	return out
}
