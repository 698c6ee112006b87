package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/client/v3"
)

const prefix = "/kcert-history/"

// dial connects to one member. The files are read again for each TLS connection.
func (s settings) dial(endpoint string) (*clientv3.Client, error) {
	config := &tls.Config{
		MinVersion: tls.VersionTLS12,
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			pair, err := tls.LoadX509KeyPair(s.cert, s.key)
			return &pair, err
		},
		// VerifyConnection verifies with the CAs that the file has now.
		InsecureSkipVerify: true,
		VerifyConnection: func(state tls.ConnectionState) error {
			pem, err := os.ReadFile(s.ca)
			if err != nil {
				return err
			}
			roots, intermediates := x509.NewCertPool(), x509.NewCertPool()
			if !roots.AppendCertsFromPEM(pem) {
				return fmt.Errorf("%s contains no certificate", s.ca)
			}
			for _, certificate := range state.PeerCertificates[1:] {
				intermediates.AddCert(certificate)
			}
			_, err = state.PeerCertificates[0].Verify(x509.VerifyOptions{
				DNSName:       state.ServerName,
				Roots:         roots,
				Intermediates: intermediates,
			})
			return err
		},
	}
	return clientv3.New(clientv3.Config{
		Endpoints:            []string{endpoint},
		TLS:                  config,
		DialKeepAliveTime:    3 * time.Second,
		DialKeepAliveTimeout: 3 * time.Second,
	})
}

// fill writes values of 1 MiB, four at a time.
func fill(ctx context.Context, s settings) error {
	const size = 1 << 20
	client, err := s.dial(s.endpoints[0])
	if err != nil {
		return err
	}
	defer client.Close()
	random := rand.NewChaCha8([32]byte{1})
	value := make([]byte, size)
	errs := make(chan error, 4)
	for range cap(errs) {
		errs <- nil
	}
	for index := int64(0); index*size < s.fill; index++ {
		if err := <-errs; err != nil {
			return err
		}
		random.Read(value)
		text := string(value)
		go func() {
			_, err := client.Put(ctx, fmt.Sprintf("/kcert-fill/%d", index), text)
			errs <- err
		}()
	}
	for range cap(errs) {
		if err := <-errs; err != nil {
			return err
		}
	}
	return nil
}

type recorder struct {
	settings
	began time.Time

	mutex      sync.Mutex
	operations []Operation
	failures   map[string]int
	next       int
}

// record runs clients and watchers until the context ends, then until each watcher has seen the last revision.
func record(ctx context.Context, s settings) (*History, error) {
	r := &recorder{settings: s, began: time.Now(), failures: map[string]int{}}
	var clients []*clientv3.Client
	defer func() {
		for _, client := range clients {
			client.Close()
		}
	}()
	var work, watching sync.WaitGroup
	watchers := make([]Watcher, len(s.endpoints))
	watchContext, endWatching := context.WithCancel(context.Background())
	defer endWatching()
	var last int64
	lastKnown := make(chan struct{})
	for index, endpoint := range s.endpoints {
		client, err := s.dial(endpoint)
		if err != nil {
			return nil, err
		}
		clients = append(clients, client)
		start, err := client.Get(ctx, prefix)
		if err != nil {
			return nil, fmt.Errorf("read from %s: %w", endpoint, err)
		}
		watchers[index] = Watcher{Endpoint: endpoint, From: start.Header.Revision + 1}
		watching.Go(func() { watch(watchContext, client, &watchers[index], lastKnown, &last) })
	}
	for _, client := range clients {
		for range s.clients {
			work.Go(func() { r.work(ctx, client) })
		}
	}
	work.Wait()
	revision, err := finalRevision(clients)
	if err != nil {
		return nil, err
	}
	last = revision
	close(lastKnown)
	done := make(chan struct{})
	go func() { watching.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(2 * time.Minute):
		endWatching()
		<-done
	}
	return &History{Operations: r.operations, Watchers: watchers, Last: last, Failures: r.failures}, nil
}

// finalRevision writes a last key, so that each watcher has an event to wait for.
func finalRevision(clients []*clientv3.Client) (int64, error) {
	var err error
	for range 60 {
		for _, client := range clients {
			ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
			var put *clientv3.PutResponse
			put, err = client.Put(ctx, prefix+"end", "end")
			cancel()
			if err == nil {
				return put.Header.Revision, nil
			}
		}
		time.Sleep(time.Second)
	}
	return 0, fmt.Errorf("no member accepts a write after the history: %w", err)
}

func watch(ctx context.Context, client *clientv3.Client, w *Watcher, lastKnown <-chan struct{}, last *int64) {
	for ctx.Err() == nil {
		one, cancel := context.WithCancel(ctx)
		from := w.From
		if count := len(w.Events); count > 0 {
			from = w.Events[count-1].Revision + 1
		}
		for response := range client.Watch(one, prefix, clientv3.WithPrefix(), clientv3.WithRev(from)) {
			for _, event := range response.Events {
				w.Events = append(w.Events, Event{
					Revision: event.Kv.ModRevision,
					Key:      string(event.Kv.Key),
					Value:    string(event.Kv.Value),
				})
			}
			if response.CompactRevision > 0 {
				w.Compacted = response.CompactRevision
				cancel()
				return
			}
			select {
			case <-lastKnown:
				if count := len(w.Events); count > 0 && w.Events[count-1].Revision >= *last {
					cancel()
					return
				}
			default:
			}
		}
		cancel()
		time.Sleep(100 * time.Millisecond)
	}
}

// work runs operations until the context ends. An operation that has begun ends by itself.
func (r *recorder) work(ctx context.Context, client *clientv3.Client) {
	known := map[string]string{}
	for ctx.Err() == nil {
		generation := int(time.Since(r.began) / r.lifetime)
		key := fmt.Sprintf("%s%d/%d", prefix, generation, rand.IntN(r.keys))
		operation := Operation{Key: key, Kind: []Kind{Read, Write, Swap}[rand.IntN(3)]}
		if operation.Kind != Read {
			operation.Value = r.unique()
		}
		if operation.Kind == Swap {
			operation.Expected = known[key]
		}
		operation.Client = r.clientNumber(client)
		operation.Call = time.Since(r.began).Nanoseconds()
		opContext, cancel := context.WithTimeout(context.Background(), r.timeout)
		err := perform(opContext, client, &operation)
		cancel()
		operation.Return = time.Since(r.began).Nanoseconds()
		if err != nil {
			operation.Unknown = true
			time.Sleep(100 * time.Millisecond)
		} else if operation.Kind == Read || operation.Kind == Write || operation.Swapped {
			known[key] = operation.Value
		} else {
			known[key] = operation.Found
		}
		r.keep(operation, err)
		if len(known) > 10*r.keys {
			known = map[string]string{}
		}
		time.Sleep(r.pause)
	}
}

func (r *recorder) unique() string {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.next++
	return fmt.Sprint(r.next)
}

func (r *recorder) clientNumber(client *clientv3.Client) int {
	return slices.Index(r.endpoints, client.Endpoints()[0])
}

func (r *recorder) keep(operation Operation, err error) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.operations = append(r.operations, operation)
	if err != nil {
		r.failures[fmt.Sprintf("%s: %v", r.endpoints[operation.Client], err)]++
	}
}

func perform(ctx context.Context, client *clientv3.Client, operation *Operation) error {
	switch operation.Kind {
	case Read:
		got, err := client.Get(ctx, operation.Key)
		if err != nil {
			return err
		}
		operation.Value = valueOf(got.Kvs)
	case Write:
		put, err := client.Put(ctx, operation.Key, operation.Value)
		if err != nil {
			return err
		}
		operation.Revision = put.Header.Revision
	case Swap:
		// A key that does not exist has the version 0, and no value that a comparison would match.
		condition := clientv3.Compare(clientv3.Value(operation.Key), "=", operation.Expected)
		if operation.Expected == "" {
			condition = clientv3.Compare(clientv3.Version(operation.Key), "=", 0)
		}
		done, err := client.Txn(ctx).If(condition).
			Then(clientv3.OpPut(operation.Key, operation.Value)).
			Else(clientv3.OpGet(operation.Key)).
			Commit()
		if err != nil {
			return err
		}
		operation.Swapped = done.Succeeded
		if done.Succeeded {
			operation.Revision = done.Header.Revision
		} else {
			operation.Found = valueOf(done.Responses[0].GetResponseRange().Kvs)
		}
	}
	return nil
}

func valueOf(pairs []*mvccpb.KeyValue) string {
	if len(pairs) == 0 {
		return ""
	}
	return string(pairs[0].Value)
}
