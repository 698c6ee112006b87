package main

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"time"
)

// verifyCase is one chain to judge; certificates are DER in base64.
type verifyCase struct {
	ID            string    `json:"id"`
	Leaf          []byte    `json:"leaf"`
	Roots         [][]byte  `json:"roots"`
	Intermediates [][]byte  `json:"intermediates"`
	At            time.Time `json:"at"`
	Purpose       string    `json:"purpose"` // server, client or any
	Name          string    `json:"name"`
}

type verdict struct {
	ID string `json:"id"`
	OK bool   `json:"ok"`
	// Kind is the error's type and, of a CertificateInvalidError, its reason's number.
	Kind  string `json:"kind,omitempty"`
	Error string `json:"error,omitempty"`
	// Chains are the SHA-256 fingerprints, leaf first.
	Chains [][]string `json:"chains,omitempty"`
}

func verify(c verifyCase) verdict {
	leaf, err := x509.ParseCertificate(c.Leaf)
	if err != nil {
		return verdict{ID: c.ID, Kind: "parse", Error: err.Error()}
	}
	chains, err := leaf.Verify(x509.VerifyOptions{
		Roots:         pool(c.Roots),
		Intermediates: pool(c.Intermediates),
		CurrentTime:   c.At,
		DNSName:       c.Name,
		KeyUsages:     usages(c.Purpose),
	})
	if err != nil {
		return verdict{ID: c.ID, Kind: kind(err), Error: err.Error()}
	}
	return verdict{ID: c.ID, OK: true, Chains: fingerprints(chains)}
}

// pool leaves out what cannot be parsed, as CertPool.AppendCertsFromPEM does.
func pool(ders [][]byte) *x509.CertPool {
	p := x509.NewCertPool()
	for _, der := range ders {
		if c, err := x509.ParseCertificate(der); err == nil {
			p.AddCert(c)
		}
	}
	return p
}

func usages(purpose string) []x509.ExtKeyUsage {
	switch purpose {
	case "client":
		return []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	case "any":
		return []x509.ExtKeyUsage{x509.ExtKeyUsageAny}
	}
	return []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
}

func kind(err error) string {
	var invalid x509.CertificateInvalidError
	if errors.As(err, &invalid) {
		return fmt.Sprintf("CertificateInvalidError/%d", invalid.Reason)
	}
	return fmt.Sprintf("%T", err)
}

func fingerprints(chains [][]*x509.Certificate) [][]string {
	all := make([][]string, len(chains))
	for i, chain := range chains {
		for _, c := range chain {
			sum := sha256.Sum256(c.Raw)
			all[i] = append(all[i], hex.EncodeToString(sum[:]))
		}
	}
	return all
}
