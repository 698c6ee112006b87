// plain-client reads the CA once, as most hand-written clients do, and has no client-go.
package main

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http"
	"os"
	"time"

	"kcert/lab/counting"
)

const account = "/var/run/secrets/kubernetes.io/serviceaccount/"

func main() {
	counting.Run("go/plain", func() (*http.Client, string, error) {
		ca, err := os.ReadFile(account + "ca.crt")
		if err != nil {
			return nil, "", err
		}
		roots := x509.NewCertPool()
		roots.AppendCertsFromPEM(ca)
		transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, DisableKeepAlives: true}
		host := "https://" + net.JoinHostPort(os.Getenv("KUBERNETES_SERVICE_HOST"), os.Getenv("KUBERNETES_SERVICE_PORT"))
		return &http.Client{Transport: bearer{transport}, Timeout: 5 * time.Second}, host, nil
	})
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
