package main

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestDropInForgetsTheEarlierExecStart(t *testing.T) {
	folder := t.TempDir()
	environment := filepath.Join(folder, "env")
	write(t, environment, "KUBELET_ARGS=\"--node-ip=10.0.0.1 --v=2\"\n")
	u := unit{values: map[string]string{}}
	u.readFrom(t, folder, "a", "[Service]\nExecStart=/bin/old\nRestart=always\n")
	u.readFrom(t, folder, "b", "[Service]\nEnvironment=\"CONFIG=--config=/c.yaml\"\nEnvironmentFile=-"+environment+"\nExecStart=\nExecStart=/bin/new \\\n  $CONFIG $KUBELET_ARGS $ABSENT\n")
	argv, _ := u.command()
	if want := []string{"/bin/new", "--config=/c.yaml", "--node-ip=10.0.0.1", "--v=2"}; !slices.Equal(argv, want) {
		t.Errorf("argv is %q, want %q", argv, want)
	}
	if u.values["Restart"] != "always" {
		t.Errorf("a drop-in forgets no other setting, but Restart is %q", u.values["Restart"])
	}
}

func TestBracesKeepOneWord(t *testing.T) {
	u := unit{values: map[string]string{"ExecStart": "/bin/x ${TWO} 'a b'"}, environment: []string{"TWO=one two"}}
	if argv, _ := u.command(); !slices.Equal(argv, []string{"/bin/x", "one two", "a b"}) {
		t.Errorf("argv is %q", argv)
	}
}

func TestOptionsWithAValueOfTheirOwn(t *testing.T) {
	r := parse([]string{"show", "-p", "MainPID", "--value", "kubelet"})
	if r.Verb != "show" || !slices.Equal(r.Units, []string{"kubelet"}) || !slices.Equal(r.Flags, []string{"-pMainPID", "--value"}) {
		t.Errorf("parsed as %+v", r)
	}
}

func (u *unit) readFrom(t *testing.T, folder, name, text string) {
	path := filepath.Join(folder, name)
	write(t, path, text)
	u.read(path)
}

func write(t *testing.T, path, text string) {
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}
