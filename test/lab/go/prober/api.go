package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"
)

// fileCache parses a file once for each of its versions.
type fileCache struct {
	mutex   sync.Mutex
	entries map[string]*fileEntry
}

type fileEntry struct {
	changed time.Time
	size    int64
	parsed  any
}

func newFileCache() *fileCache { return &fileCache{entries: map[string]*fileEntry{}} }

// load returns parse(file), anew when one of the files has changed.
func (c *fileCache) load(key, watched string, parse func() (any, error)) (any, error) {
	info, err := os.Stat(watched)
	if err != nil {
		return nil, err
	}
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if e := c.entries[key]; e != nil && e.changed.Equal(info.ModTime()) && e.size == info.Size() {
		return e.parsed, nil
	}
	parsed, err := parse()
	if err != nil {
		return nil, err
	}
	c.entries[key] = &fileEntry{info.ModTime(), info.Size(), parsed}
	return parsed, nil
}

func (c *fileCache) roots(file string) (*x509.CertPool, error) {
	pool, err := c.load("roots "+file, file, func() (any, error) {
		data, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM(data) {
			return nil, fmt.Errorf("%s holds no certificate", file)
		}
		return pool, nil
	})
	if err != nil {
		return nil, err
	}
	return pool.(*x509.CertPool), nil
}

// credential is a client certificate or a bearer token.
type credential struct {
	certificate *tls.Certificate
	token       string
}

func (c *fileCache) credential(spec string) (credential, error) {
	kind, value, _ := strings.Cut(spec, ":")
	switch kind {
	case "token":
		data, err := os.ReadFile(value)
		return credential{token: strings.TrimSpace(string(data))}, err
	case "cert":
		certFile, keyFile, _ := strings.Cut(value, ",")
		loaded, err := c.load("pair "+value, certFile, func() (any, error) { return tls.LoadX509KeyPair(certFile, keyFile) })
		if err != nil {
			return credential{}, err
		}
		certificate := loaded.(tls.Certificate)
		return credential{certificate: &certificate}, nil
	default:
		return credential{}, fmt.Errorf("a credential is cert:CERT,KEY or token:FILE, not %q", spec)
	}
}

// apiProbe asks who it is, over a connection of its own: 401 is told from 200, and no permission is needed.
func apiProbe(files *fileCache, endpoint, trust, presented pair, timeout time.Duration) func(context.Context) (Sample, bool) {
	return func(ctx context.Context) (Sample, bool) {
		sample := Sample{Kind: "api", Endpoint: endpoint.name, Trust: trust.name, Credential: presented.name}
		roots, err := files.roots(trust.value)
		if err != nil {
			return sample, false
		}
		who, err := files.credential(presented.value)
		if err != nil {
			return sample, false
		}
		sample.Status, err = ask(ctx, endpoint.value, roots, who, timeout)
		sample.Outcome = classify(sample.Status, err)
		if err != nil {
			sample.Error = err.Error()
		}
		return sample, true
	}
}

const whoAmI = "/apis/authentication.k8s.io/v1/selfsubjectreviews"

func ask(ctx context.Context, address string, roots *x509.CertPool, who credential, timeout time.Duration) (int, error) {
	config := &tls.Config{RootCAs: roots}
	if who.certificate != nil {
		// Sent whatever CAs the server names: a client certificate that Go would withhold is one that is not tested.
		config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return who.certificate, nil }
	}
	client := &http.Client{Timeout: timeout, Transport: &http.Transport{TLSClientConfig: config, DisableKeepAlives: true}}
	body := `{"apiVersion":"authentication.k8s.io/v1","kind":"SelfSubjectReview"}`
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://"+address+whoAmI, strings.NewReader(body))
	if err != nil {
		return 0, err
	}
	request.Header.Set("Content-Type", "application/json")
	if who.token != "" {
		request.Header.Set("Authorization", "Bearer "+who.token)
	}
	response, err := client.Do(request)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	_, _ = io.Copy(io.Discard, response.Body)
	return response.StatusCode, nil
}

// classify names what happened: ok, unauthorized, forbidden, http, untrusted, tls, refused, timeout, cut, error.
func classify(status int, err error) string {
	var unknown x509.UnknownAuthorityError
	var verification *tls.CertificateVerificationError
	var alert tls.AlertError
	var network net.Error
	switch {
	case err == nil && status >= 200 && status < 300:
		return "ok"
	case err == nil && status == http.StatusUnauthorized:
		return "unauthorized"
	case err == nil && status == http.StatusForbidden:
		return "forbidden"
	case err == nil:
		return "http"
	case errors.As(err, &unknown), errors.As(err, &verification):
		return "untrusted"
	case errors.As(err, &alert):
		return "tls"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "refused"
	case errors.As(err, &network) && network.Timeout():
		return "timeout"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return "cut"
	case strings.Contains(err.Error(), "tls: "):
		return "tls"
	default:
		return "error"
	}
}

// counterProbe reads the counts that an in-pod client serves.
func counterProbe(counter pair, timeout time.Duration) func(context.Context) (Sample, bool) {
	client := &http.Client{Timeout: timeout, Transport: &http.Transport{DisableKeepAlives: true}}
	return func(ctx context.Context) (Sample, bool) {
		sample := Sample{Kind: "counter", Target: counter.name}
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, counter.value, nil)
		if err == nil {
			var response *http.Response
			if response, err = client.Do(request); err == nil {
				defer response.Body.Close()
				sample.Status = response.StatusCode
				var body []byte
				if body, err = io.ReadAll(response.Body); err == nil && json.Valid(body) {
					sample.Counts = body
				}
			}
		}
		sample.Outcome = classify(sample.Status, err)
		if err != nil {
			sample.Error = err.Error()
		}
		return sample, true
	}
}
