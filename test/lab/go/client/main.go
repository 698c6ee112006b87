// client is the lab's in-pod client in Go: a fresh TLS connection to the API server each second, counted and served.
//
// MODE=client-go (default) uses client-go's in-cluster configuration, which re-reads the CA file from time to time;
// MODE=plain reads the CA once, as most hand-written clients do. `client ok` prints ok, for exec probes.
package main

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/rest"
)

const account = "/var/run/secrets/kubernetes.io/serviceaccount/"

// counts is what every in-pod client of the lab serves, in whatever language.
type counts struct {
	Client        string         `json:"client"`
	Started       time.Time      `json:"started"`
	Attempts      int            `json:"attempts"`
	Failures      int            `json:"failures"`
	EarlyFailures int            `json:"earlyFailures"` // before the first success: the node's own start, not the cluster's
	LastSuccess   time.Time      `json:"lastSuccess"`
	LongestGapMs  int64          `json:"longestGapMs"`
	Errors        map[string]int `json:"errors"`
	mutex         sync.Mutex
}

func main() {
	if len(os.Args) > 1 && os.Args[1] == "ok" {
		fmt.Println("ok")
		return
	}
	mode := os.Getenv("MODE")
	if mode == "" {
		mode = "client-go"
	}
	client, host, err := newClient(mode)
	if err != nil {
		log.Fatal(err)
	}
	if os.Getenv("ONCE") != "" { // a Job: ten requests, then done
		runOnce(client, host)
		return
	}
	c := &counts{Client: "go/" + mode, Started: time.Now(), LastSuccess: time.Now(), Errors: map[string]int{}}
	go serve(c)
	for range time.Tick(time.Second) {
		c.record(get(client, host))
	}
}

func newClient(mode string) (*http.Client, string, error) {
	config, err := rest.InClusterConfig()
	if err != nil {
		return nil, "", err
	}
	config.Timeout = 5 * time.Second
	if mode == "client-go" {
		client, err := rest.HTTPClientFor(config)
		return client, config.Host, err
	}
	ca, err := os.ReadFile(account + "ca.crt")
	if err != nil {
		return nil, "", err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, DisableKeepAlives: true}
	return &http.Client{Transport: bearer{transport}, Timeout: 5 * time.Second}, config.Host, nil
}

// bearer sends the service account's token, read anew each time since the kubelet renews it.
type bearer struct{ next http.RoundTripper }

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	token, err := os.ReadFile(account + "token")
	if err != nil {
		return nil, err
	}
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+string(token))
	return b.next.RoundTrip(r)
}

func get(client *http.Client, host string) error {
	request, err := http.NewRequest(http.MethodGet, host+"/version", nil)
	if err != nil {
		return err
	}
	request.Close = true // the next request makes a connection and a handshake of its own
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	_, _ = io.Copy(io.Discard, response.Body)
	if response.StatusCode != http.StatusOK {
		return errors.New(response.Status)
	}
	return nil
}

func (c *counts) record(err error) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if err != nil && c.Attempts == 0 {
		c.EarlyFailures++
		return
	}
	c.Attempts++
	if err != nil {
		c.Failures++
		text := err.Error()
		c.Errors[strings.TrimPrefix(text[strings.LastIndex(text, "\": ")+1:], ": ")]++
		log.Print(err)
		return
	}
	if c.Attempts > 1 {
		c.LongestGapMs = max(c.LongestGapMs, time.Since(c.LastSuccess).Milliseconds())
	}
	c.LastSuccess = time.Now()
}

func serve(c *counts) {
	http.HandleFunc("/counts", func(w http.ResponseWriter, _ *http.Request) {
		c.mutex.Lock()
		defer c.mutex.Unlock()
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(c)
	})
	log.Fatal(http.ListenAndServe(":8080", nil))
}

func runOnce(client *http.Client, host string) {
	for range 10 {
		if err := get(client, host); err != nil {
			log.Fatal(err)
		}
	}
	fmt.Println("ten requests answered")
}
