// prober opens fresh TLS connections to API servers, for every pair of trust and credential, and prints a JSON line a
// sample. It judges nothing: the verdict is another program's, by a table of what was to be expected when.
//
//	prober --endpoint cp1=10.200.0.11:6443 --endpoint lb=10.200.0.10:6443 \
//	       --trust old=old.crt --trust both=bundle.crt --trust new=new.crt \
//	       --credential old-cert=cert:old.crt,old.key --credential token=token:FILE \
//	       --logs w1=default/pod/container --exec w1=default/pod/container --counter go=http://10.244.21.3:8080/counts
//
// Files are read anew when they change, and a pair whose files do not exist yet is not probed.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"
)

// named is a flag that may be repeated: NAME=VALUE.
type named []pair

type pair struct{ name, value string }

func (n *named) String() string { return fmt.Sprint(*n) }

func (n *named) Set(text string) error {
	name, value, ok := strings.Cut(text, "=")
	if !ok || name == "" {
		return fmt.Errorf("want NAME=VALUE, not %q", text)
	}
	*n = append(*n, pair{name, value})
	return nil
}

// Sample is one line of the output.
type Sample struct {
	At         time.Time       `json:"at"`
	Kind       string          `json:"kind"` // api, logs, exec, counter
	Endpoint   string          `json:"endpoint,omitempty"`
	Trust      string          `json:"trust,omitempty"`
	Credential string          `json:"credential,omitempty"`
	Target     string          `json:"target,omitempty"` // logs and exec: the node; counter: its name
	Outcome    string          `json:"outcome"`          // ok, or the class of the failure: see classify
	Status     int             `json:"status,omitempty"`
	Ms         float64         `json:"ms"`
	Error      string          `json:"error,omitempty"`
	Counts     json.RawMessage `json:"counts,omitempty"`
}

type settings struct {
	endpoints, trusts, credentials, logs, execs, counters named
	interval, slow, timeout                               time.Duration
	kubeletTrust, kubeletCredential                       string
}

func main() {
	var s settings
	var output string
	var duration time.Duration
	flag.Var(&s.endpoints, "endpoint", "NAME=HOST:PORT of an API server or load balancer (repeat)")
	flag.Var(&s.trusts, "trust", "NAME=FILE of CA certificates that a client trusts (repeat)")
	flag.Var(&s.credentials, "credential", "NAME=cert:CERTFILE,KEYFILE or NAME=token:FILE (repeat)")
	flag.Var(&s.logs, "logs", "NODE=NAMESPACE/POD/CONTAINER whose log is read through each endpoint (repeat)")
	flag.Var(&s.execs, "exec", "NODE=NAMESPACE/POD/CONTAINER[/PROGRAM/ARGUMENT…] that is run through each endpoint (repeat)")
	flag.Var(&s.counters, "counter", "NAME=URL of an in-pod counter (repeat)")
	flag.StringVar(&s.kubeletTrust, "kubelet-trust", "", "trust for logs and exec (default: the last --trust)")
	flag.StringVar(&s.kubeletCredential, "kubelet-credential", "", "credential for logs and exec (default: the last --credential)")
	flag.DurationVar(&s.interval, "interval", 200*time.Millisecond, "time between two API probes of a pair")
	flag.DurationVar(&s.slow, "slow-interval", 2*time.Second, "time between two probes of logs, exec and counters")
	flag.DurationVar(&s.timeout, "timeout", 5*time.Second, "longest wait for an answer")
	flag.DurationVar(&duration, "duration", 0, "stop after this time (default: at SIGINT or SIGTERM)")
	flag.StringVar(&output, "output", "-", "file that samples are appended to")
	flag.Parse()
	if len(s.endpoints) == 0 || len(s.trusts) == 0 || len(s.credentials) == 0 {
		log.Fatal("prober: at least one --endpoint, one --trust and one --credential are needed; see --help")
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if duration > 0 {
		ctx, stop = context.WithTimeout(ctx, duration)
		defer stop()
	}
	out := os.Stdout
	if output != "-" {
		file, err := os.OpenFile(output, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
		if err != nil {
			log.Fatal(err)
		}
		defer file.Close()
		out = file
	}
	samples := make(chan Sample, 1024)
	go func() {
		probe(ctx, s, samples)
		close(samples)
	}()
	write(out, samples)
}

// write prints a line a sample and flushes each half second, so that a killed run keeps what it saw.
func write(out *os.File, samples <-chan Sample) {
	buffer := bufio.NewWriter(out)
	defer buffer.Flush()
	encoder := json.NewEncoder(buffer)
	tick := time.NewTicker(500 * time.Millisecond)
	for {
		select {
		case sample, open := <-samples:
			if !open {
				return
			}
			_ = encoder.Encode(sample)
		case <-tick.C:
			buffer.Flush()
		}
	}
}

// probe runs every cell on its own clock, its start spread over the interval so that probes do not come in bursts.
func probe(ctx context.Context, s settings, samples chan<- Sample) {
	files := newFileCache()
	var cells []func(context.Context) (Sample, bool)
	var slow []func(context.Context) (Sample, bool)
	for _, e := range s.endpoints {
		for _, t := range s.trusts {
			for _, c := range s.credentials {
				cells = append(cells, apiProbe(files, e, t, c, s.timeout))
			}
		}
		kubelet := newKubeletPath(files, e, pick(s.trusts, s.kubeletTrust), pick(s.credentials, s.kubeletCredential), s.timeout)
		for _, target := range s.logs {
			slow = append(slow, kubelet.logs(target))
		}
		for _, target := range s.execs {
			slow = append(slow, kubelet.exec(target))
		}
	}
	for _, counter := range s.counters {
		slow = append(slow, counterProbe(counter, s.timeout))
	}
	var group sync.WaitGroup
	start := func(probes []func(context.Context) (Sample, bool), interval time.Duration) {
		for i, one := range probes {
			offset := interval * time.Duration(i) / time.Duration(len(probes))
			group.Go(func() { every(ctx, offset, interval, one, samples) })
		}
	}
	start(cells, s.interval)
	start(slow, s.slow)
	group.Wait()
}

func every(ctx context.Context, offset, interval time.Duration, one func(context.Context) (Sample, bool), samples chan<- Sample) {
	timer := time.NewTimer(offset)
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		timer.Reset(interval) // a slow probe delays its own next one; it never runs twice at once
		begun := time.Now()
		sample, probed := one(ctx)
		if !probed || ctx.Err() != nil {
			continue // cut off by the end of the run: says nothing about the server
		}
		sample.At, sample.Ms = begun.UTC(), float64(time.Since(begun).Microseconds())/1000
		samples <- sample
	}
}

func pick(from named, name string) pair {
	for _, p := range from {
		if p.name == name {
			return p
		}
	}
	return from[len(from)-1]
}
