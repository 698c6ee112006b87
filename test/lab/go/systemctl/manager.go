package main

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// service is a unit as it runs. All fields are guarded by manager.mutex.
type service struct {
	name     string
	pid      int // 0 when it does not run
	wanted   bool
	state    string // active, activating (between restarts), inactive, failed
	started  time.Time
	restarts int
	exit     string
	gone     chan struct{} // closed when pid has ended
}

type manager struct {
	mutex    sync.Mutex
	services map[string]*service
}

// manage starts the enabled units and serves requests; it reaps every orphan of the node, as process 1 must.
func manage() error {
	m := &manager{services: map[string]*service{}}
	if err := os.MkdirAll(filepath.Dir(socketPath), 0o755); err != nil {
		return err
	}
	_ = os.Remove(socketPath)
	listener, err := net.Listen("unix", socketPath)
	if err != nil {
		return err
	}
	go m.reap()
	enabled, _ := filepath.Glob(unitFolder + "/multi-user.target.wants/*.service")
	for _, path := range enabled {
		m.start(strings.TrimSuffix(filepath.Base(path), ".service"))
	}
	for {
		connection, err := listener.Accept()
		if err != nil {
			return err
		}
		go m.serve(connection)
	}
}

func (m *manager) serve(connection net.Conn) {
	defer connection.Close()
	var r request
	if json.NewDecoder(connection).Decode(&r) == nil {
		_ = json.NewEncoder(connection).Encode(m.handle(r))
	}
}

// reap waits for every child: the lock makes sure that a process is in the table before its end is looked up.
func (m *manager) reap() {
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, 0, nil)
		if err != nil {
			time.Sleep(50 * time.Millisecond) // no child at the moment
			continue
		}
		m.mutex.Lock()
		for _, s := range m.services {
			if s.pid == pid {
				m.ended(s, status)
			}
		}
		m.mutex.Unlock()
	}
}

func (m *manager) ended(s *service, status syscall.WaitStatus) {
	s.pid, s.exit = 0, fmt.Sprintf("exit status %d", status.ExitStatus())
	close(s.gone)
	if status.Signaled() {
		s.exit = "signal " + status.Signal().String()
	}
	u, _ := loadUnit(s.name)
	if !s.wanted {
		s.state = "inactive"
	} else if restart := u.values["Restart"]; restart == "always" || (restart == "on-failure" && status.ExitStatus() != 0) {
		s.state = "activating"
		time.AfterFunc(seconds(u.values["RestartSec"], 100*time.Millisecond), func() { m.again(s.name) })
	} else if s.state = "inactive"; status.ExitStatus() != 0 {
		s.state = "failed"
	}
}

func (m *manager) again(name string) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if s := m.services[name]; s.wanted && s.pid == 0 {
		s.restarts++
		m.launch(s)
	}
}

func (m *manager) get(name string) *service {
	s := m.services[name]
	if s == nil {
		s = &service{name: name, state: "inactive"}
		m.services[name] = s
	}
	return s
}

func (m *manager) start(name string) error {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	s := m.get(name)
	if s.pid != 0 {
		return nil
	}
	s.wanted, s.restarts = true, 0
	return m.launch(s)
}

// launch starts the process of a unit in a session of its own, its output appended to /var/log/NAME.log.
func (m *manager) launch(s *service) error {
	u, ok := loadUnit(s.name)
	if !ok {
		s.wanted = false
		return fmt.Errorf("Unit %s.service not found.", s.name)
	}
	if path := u.values["ConditionPathExists"]; path != "" {
		if _, err := os.Stat(path); err != nil {
			s.wanted, s.state = false, "inactive"
			return nil
		}
	}
	argv, environment := u.command()
	if len(argv) == 0 {
		return fmt.Errorf("Unit %s.service has no ExecStart.", s.name)
	}
	log, err := os.OpenFile("/var/log/"+s.name+".log", os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o640)
	if err != nil {
		return err
	}
	defer log.Close()
	pid, err := syscall.ForkExec(argv[0], argv, &syscall.ProcAttr{
		Dir:   first(u.values["WorkingDirectory"], "/"),
		Env:   append([]string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root"}, environment...),
		Files: []uintptr{0, log.Fd(), log.Fd()},
		Sys:   &syscall.SysProcAttr{Setsid: true},
	})
	if err != nil {
		s.state, s.exit = "failed", err.Error()
		return fmt.Errorf("Failed to start %s.service: %v", s.name, err)
	}
	s.pid, s.state, s.started, s.gone = pid, "active", time.Now(), make(chan struct{})
	return nil
}

// stop ends the process (KillMode=process) or its whole process group, by SIGTERM first and by SIGKILL after TimeoutStopSec.
func (m *manager) stop(name string) {
	m.mutex.Lock()
	s := m.get(name)
	s.wanted = false
	pid, gone := s.pid, s.gone
	if s.state == "activating" {
		s.state = "inactive"
	}
	m.mutex.Unlock()
	if pid == 0 {
		return
	}
	u, _ := loadUnit(name)
	target := -pid
	if u.values["KillMode"] == "process" {
		target = pid
	}
	_ = syscall.Kill(target, syscall.SIGTERM)
	select {
	case <-gone:
	case <-time.After(seconds(u.values["TimeoutStopSec"], 90*time.Second)):
		_ = syscall.Kill(target, syscall.SIGKILL)
		<-gone
	}
}

func (m *manager) names() []string {
	paths, _ := filepath.Glob(unitFolder + "/*.service")
	var names []string
	for _, path := range paths {
		names = append(names, strings.TrimSuffix(filepath.Base(path), ".service"))
	}
	sort.Strings(names)
	return names
}

func seconds(text string, otherwise time.Duration) time.Duration {
	if number, err := strconv.Atoi(strings.TrimSuffix(text, "s")); err == nil {
		return time.Duration(number) * time.Second
	}
	if d, err := time.ParseDuration(text); err == nil {
		return d
	}
	return otherwise
}

func first(values ...string) string {
	for _, value := range values {
		if value != "" {
			return value
		}
	}
	return ""
}
