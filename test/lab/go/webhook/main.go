// webhook is the lab's validating admission webhook: it admits everything, by a certificate that it reads anew when the
// file changes (as controller-runtime's webhooks do), and refuses an object labelled lab.local/refuse=true.
package main

import (
	"crypto/tls"
	"encoding/json"
	"flag"
	"log"
	"net/http"

	admission "k8s.io/api/admission/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func main() {
	certFile := flag.String("tls-cert-file", "/tls/tls.crt", "serving certificate, leaf first")
	keyFile := flag.String("tls-private-key-file", "/tls/tls.key", "its key")
	address := flag.String("listen", ":8443", "address to serve at")
	flag.Parse()
	http.HandleFunc("/validate", validate)
	http.HandleFunc("/healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("ok")) })
	server := &http.Server{Addr: *address, TLSConfig: &tls.Config{
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			pair, err := tls.LoadX509KeyPair(*certFile, *keyFile)
			return &pair, err
		},
	}}
	log.Fatal(server.ListenAndServeTLS("", ""))
}

func validate(w http.ResponseWriter, r *http.Request) {
	var review admission.AdmissionReview
	if err := json.NewDecoder(r.Body).Decode(&review); err != nil || review.Request == nil {
		http.Error(w, "not an AdmissionReview", http.StatusBadRequest)
		return
	}
	review.Response = &admission.AdmissionResponse{UID: review.Request.UID, Allowed: true}
	var object meta.PartialObjectMetadata
	if json.Unmarshal(review.Request.Object.Raw, &object) == nil && object.Labels["lab.local/refuse"] == "true" {
		review.Response.Allowed = false
		review.Response.Result = &meta.Status{Message: "labelled lab.local/refuse"}
	}
	review.Request = nil
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(review)
}
