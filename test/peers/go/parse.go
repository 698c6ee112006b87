package main

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

type parseCase struct {
	ID  string `json:"id"`
	DER []byte `json:"der"`
}

type parsed struct {
	ID                string    `json:"id,omitempty"`
	Source            string    `json:"source,omitempty"`
	OK                bool      `json:"ok"`
	Error             string    `json:"error,omitempty"`
	Version           int       `json:"version,omitempty"`
	Subject           string    `json:"subject,omitempty"`
	Issuer            string    `json:"issuer,omitempty"`
	SerialNumber      string    `json:"serialNumber,omitempty"`
	NotBefore         time.Time `json:"notBefore,omitzero"`
	NotAfter          time.Time `json:"notAfter,omitzero"`
	IsCA              bool      `json:"isCa,omitempty"`
	DNSNames          []string  `json:"dns,omitempty"`
	IPAddresses       []string  `json:"ip,omitempty"`
	EmailAddresses    []string  `json:"email,omitempty"`
	URIs              []string  `json:"uri,omitempty"`
	SubjectKeyID      string    `json:"subjectKeyId,omitempty"`
	AuthorityKeyID    string    `json:"authorityKeyId,omitempty"`
	UnhandledCritical []string  `json:"unhandledCritical,omitempty"`
	Fingerprint       string    `json:"fingerprintSha256,omitempty"`
}

func parse(c parseCase) parsed {
	answer := describe(c.DER)
	answer.ID = c.ID
	return answer
}

func describe(der []byte) parsed {
	c, err := x509.ParseCertificate(der)
	if err != nil {
		return parsed{Error: err.Error()}
	}
	sum := sha256.Sum256(c.Raw)
	p := parsed{
		OK:             true,
		Version:        c.Version,
		Subject:        c.Subject.String(),
		Issuer:         c.Issuer.String(),
		SerialNumber:   hex.EncodeToString(c.SerialNumber.Bytes()),
		NotBefore:      c.NotBefore,
		NotAfter:       c.NotAfter,
		IsCA:           c.IsCA,
		DNSNames:       c.DNSNames,
		EmailAddresses: c.EmailAddresses,
		SubjectKeyID:   hex.EncodeToString(c.SubjectKeyId),
		AuthorityKeyID: hex.EncodeToString(c.AuthorityKeyId),
		Fingerprint:    hex.EncodeToString(sum[:]),
	}
	for _, ip := range c.IPAddresses {
		p.IPAddresses = append(p.IPAddresses, ip.String())
	}
	for _, uri := range c.URIs {
		p.URIs = append(p.URIs, uri.String())
	}
	for _, oid := range c.UnhandledCriticalExtensions {
		p.UnhandledCritical = append(p.UnhandledCritical, oid.String())
	}
	return p
}

// parsePaths is the plain loop that benchmarks measure against: read, decode PEM, parse, print.
func parsePaths(paths []string, out io.Writer) error {
	writer := bufio.NewWriterSize(out, 1<<20)
	defer writer.Flush()
	answers := json.NewEncoder(writer)
	for _, root := range paths {
		err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			content, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			for _, der := range certificatesIn(content) {
				answer := describe(der)
				answer.Source = path
				if err := answers.Encode(answer); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func certificatesIn(content []byte) [][]byte {
	if !bytes.Contains(content, []byte("-----BEGIN")) {
		return [][]byte{content}
	}
	var ders [][]byte
	for block, rest := pem.Decode(content); block != nil; block, rest = pem.Decode(rest) {
		if block.Type == "CERTIFICATE" {
			ders = append(ders, block.Bytes)
		}
	}
	return ders
}
