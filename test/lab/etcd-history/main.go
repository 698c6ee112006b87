// Command etcd-history proves that etcd loses no write and stays linearizable while something happens to its members. Clients read,
// write and compare-and-swap keys through each member, and watchers record all events, until SIGINT or SIGTERM. Then it checks the
// whole history and prints a Report as JSON.
//
// Usage: etcd-history --endpoint https://10.0.0.1:2379 --ca ca.crt --cert client.crt --key client.key [--fill 2147483648]
// Exit code: 0 no violation, 3 violations, 1 it could not work.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

type settings struct {
	endpoints          []string
	ca, cert, key      string
	fill               int64
	clients, keys      int
	timeout, lifetime  time.Duration
	pause, checkWithin time.Duration
}

func main() {
	s := settings{}
	flag.Func("endpoint", "URL of a member (repeat)", func(value string) error {
		s.endpoints = append(s.endpoints, value)
		return nil
	})
	flag.StringVar(&s.ca, "ca", "", "CA certificates in PEM, read again for each connection")
	flag.StringVar(&s.cert, "cert", "", "client certificate in PEM, read again for each connection")
	flag.StringVar(&s.key, "key", "", "its private key")
	flag.Int64Var(&s.fill, "fill", 0, "bytes to write before the history begins")
	flag.IntVar(&s.clients, "clients", 2, "clients of each member")
	flag.IntVar(&s.keys, "keys", 3, "keys at the same time")
	flag.DurationVar(&s.timeout, "timeout", 5*time.Second, "after which the outcome of an operation is unknown")
	flag.DurationVar(&s.lifetime, "lifetime", 10*time.Second, "time after which the keys are replaced; bounds the cost of the check")
	flag.DurationVar(&s.pause, "pause", 40*time.Millisecond, "pause of each client after an operation")
	flag.DurationVar(&s.checkWithin, "check-within", 5*time.Minute, "how long the check may take")
	flag.Parse()
	report, err := run(s)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	out := json.NewEncoder(os.Stdout)
	out.SetIndent("", "  ")
	if err := out.Encode(report); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	if len(report.Violations) > 0 {
		os.Exit(3)
	}
}

func run(s settings) (*Report, error) {
	if len(s.endpoints) == 0 || flag.NArg() > 0 {
		return nil, errors.New("at least one --endpoint is needed, and no argument: " + strings.Join(flag.Args(), " "))
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if s.fill > 0 {
		if err := fill(ctx, s); err != nil {
			return nil, fmt.Errorf("fill the database: %w", err)
		}
	}
	history, err := record(ctx, s)
	if err != nil {
		return nil, err
	}
	return Check(*history, s.checkWithin), nil
}
