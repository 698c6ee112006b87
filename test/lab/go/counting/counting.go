// Package counting is what the lab's in-pod clients in Go share: a fresh TLS connection to the API server each second, counted and served.
package counting

import (
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
)

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

// Run asks host each second by client, for ever; with `ok` as argument it prints ok, for exec probes.
func Run(name string, newClient func() (client *http.Client, host string, err error)) {
	if len(os.Args) > 1 && os.Args[1] == "ok" {
		fmt.Println("ok")
		return
	}
	client, host, err := newClient()
	if err != nil {
		log.Fatal(err)
	}
	if os.Getenv("ONCE") != "" { // a Job: ten requests, then done
		runOnce(client, host)
		return
	}
	c := &counts{Client: name, Started: time.Now(), LastSuccess: time.Now(), Errors: map[string]int{}}
	go serve(c)
	for range time.Tick(time.Second) {
		c.record(get(client, host))
	}
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
