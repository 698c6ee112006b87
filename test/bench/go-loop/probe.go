package main

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"os"
	"strings"
	"sync"
	"time"
)

const dialsAtOnce = 128

// probe shakes hands with every host:port of a file, as `kcert probe HOST:PORT...` does, holds each chain against the CAs
// and the host against the leaf, and prints a line for each in the order of the file.
func probe(caFile, list string) error {
	pem, err := os.ReadFile(caFile)
	if err != nil {
		return err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(pem)
	text, err := os.ReadFile(list)
	if err != nil {
		return err
	}
	endpoints := strings.Fields(string(text))
	lines := make([]string, len(endpoints))
	turns := make(chan struct{}, dialsAtOnce)
	var all sync.WaitGroup
	for index, endpoint := range endpoints {
		all.Add(1)
		turns <- struct{}{}
		go func() {
			defer all.Done()
			lines[index] = shake(endpoint, roots)
			<-turns
		}()
	}
	all.Wait()
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	for _, line := range lines {
		fmt.Fprintln(out, line)
	}
	return nil
}

func shake(endpoint string, roots *x509.CertPool) string {
	host, _, err := net.SplitHostPort(endpoint)
	if err != nil {
		return endpoint + " " + err.Error()
	}
	started := time.Now()
	// The chain is judged below, as kcert does: a handshake that fails shows nothing.
	connection, err := tls.DialWithDialer(&net.Dialer{Timeout: 5 * time.Second}, "tcp", endpoint,
		&tls.Config{InsecureSkipVerify: true})
	if err != nil {
		return endpoint + " " + err.Error()
	}
	defer connection.Close()
	state := connection.ConnectionState()
	leaf := state.PeerCertificates[0]
	intermediates := x509.NewCertPool()
	for _, one := range state.PeerCertificates[1:] {
		intermediates.AddCert(one)
	}
	_, trust := leaf.Verify(x509.VerifyOptions{Roots: roots, Intermediates: intermediates})
	return fmt.Sprint(endpoint, " ", tls.VersionName(state.Version), " ", tls.CipherSuiteName(state.CipherSuite), " ",
		leaf.Subject.CommonName, " ", leaf.NotAfter.Format(time.RFC3339), " ", trust == nil, " ",
		leaf.VerifyHostname(host) == nil, " ", time.Since(started).Milliseconds(), "ms")
}
