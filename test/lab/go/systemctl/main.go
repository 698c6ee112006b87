// systemctl is the lab's stand-in for systemd on a node: run as process 1 it is the service manager, run under the name
// systemctl it asks that manager. It knows what kubeadm, kcert and an operator use of systemd and nothing more:
// service units with drop-ins in /etc/systemd/system, and the verbs of usage below.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net"
	"os"
)

const socketPath = "/run/systemd/lab.sock"

type request struct {
	Verb  string
	Units []string
	Flags []string
}

type reply struct {
	Output string
	Errors string
	Code   int
}

func main() {
	if os.Getpid() == 1 {
		if err := manage(); err != nil {
			fmt.Fprintln(os.Stderr, "systemctl: the manager stopped:", err)
			os.Exit(1)
		}
		return
	}
	answer, err := ask(parse(os.Args[1:]))
	if err != nil {
		fmt.Fprintln(os.Stderr, "Failed to connect to bus:", err)
		os.Exit(1)
	}
	fmt.Print(answer.Output)
	fmt.Fprint(os.Stderr, answer.Errors)
	os.Exit(answer.Code)
}

// parse takes the verb, the units and the options apart; `-p NAME` and `-n NUMBER` carry a value of their own.
func parse(args []string) request {
	var r request
	for i := 0; i < len(args); i++ {
		switch arg := args[i]; {
		case (arg == "-p" || arg == "-n") && i+1 < len(args):
			i++
			r.Flags = append(r.Flags, arg+args[i])
		case len(arg) > 0 && arg[0] == '-':
			r.Flags = append(r.Flags, arg)
		case r.Verb == "":
			r.Verb = arg
		default:
			r.Units = append(r.Units, arg)
		}
	}
	return r
}

func ask(r request) (reply, error) {
	var answer reply
	connection, err := net.Dial("unix", socketPath)
	if err != nil {
		return answer, err
	}
	defer connection.Close()
	if err := json.NewEncoder(connection).Encode(r); err != nil {
		return answer, err
	}
	err = json.NewDecoder(bufio.NewReader(connection)).Decode(&answer)
	return answer, err
}
