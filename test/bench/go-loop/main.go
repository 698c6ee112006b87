// The peer of kcert in the bench, by Go's own libraries.
//
// goloop table DIR, as `kcert inspect DIR`: reads every file below a folder, parses its certificates with crypto/x509 and
// prints a table by expiry. goloop report DIR, as with -o json: also every field, the digests, and each one's issuer
// among them, proved by the signature.
//
// goloop sign CA KEY REQUESTS LEDGER OUT, as `kcert ca sign`: see sign.go.
package main

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"time"
)

type row struct {
	source      string
	certificate *x509.Certificate
	fingerprint string
	pin         string
	issuer      string
}

func main() {
	if len(os.Args) == 7 && os.Args[1] == "sign" {
		if err := sign(os.Args[2], os.Args[3], os.Args[4], os.Args[5], os.Args[6]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	whole := len(os.Args) == 3 && os.Args[1] == "report"
	rows, err := read(os.Args[len(os.Args)-1], whole)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	if whole {
		link(rows)
	}
	sort.Slice(rows, func(a, b int) bool { return rows[a].certificate.NotAfter.Before(rows[b].certificate.NotAfter) })
	if whole {
		printReport(rows, time.Now())
	} else {
		printTable(rows, time.Now())
	}
}

func read(folder string, whole bool) ([]*row, error) {
	var rows []*row
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		rest, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for {
			var block *pem.Block
			if block, rest = pem.Decode(rest); block == nil {
				return nil
			}
			if block.Type != "CERTIFICATE" {
				continue
			}
			certificate, err := x509.ParseCertificate(block.Bytes)
			if err != nil {
				return fmt.Errorf("%s: %w", path, err)
			}
			found := &row{source: path, certificate: certificate}
			if whole {
				fingerprint := sha256.Sum256(certificate.Raw)
				pin := sha256.Sum256(certificate.RawSubjectPublicKeyInfo)
				found.fingerprint, found.pin = hex.EncodeToString(fingerprint[:]), hex.EncodeToString(pin[:])
			}
			rows = append(rows, found)
		}
	})
	return rows, err
}

func link(rows []*row) {
	bySubject := map[string][]*row{}
	for _, row := range rows {
		if row.certificate.IsCA {
			bySubject[string(row.certificate.RawSubject)] = append(bySubject[string(row.certificate.RawSubject)], row)
		}
	}
	for _, row := range rows {
		for _, candidate := range bySubject[string(row.certificate.RawIssuer)] {
			if len(row.certificate.AuthorityKeyId) > 0 && !bytes.Equal(row.certificate.AuthorityKeyId, candidate.certificate.SubjectKeyId) {
				continue
			}
			if row.certificate.CheckSignatureFrom(candidate.certificate) == nil {
				row.issuer = candidate.source
			}
		}
	}
}

func printTable(rows []*row, now time.Time) {
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	for _, row := range rows {
		c := row.certificate
		status := "ok"
		if now.After(c.NotAfter) {
			status = "expired"
		}
		fmt.Fprintf(out, "%s %s %s %s %s\n", status, c.NotAfter.Sub(now).Round(time.Hour),
			c.NotAfter.UTC().Format(time.RFC3339), c.Subject, row.source)
	}
}

func printReport(rows []*row, now time.Time) {
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	for _, row := range rows {
		c := row.certificate
		fmt.Fprintf(out, "%s %s %s %x %s %s %v %v %v %s %s %s\n", row.source, c.Subject, c.Issuer, c.SerialNumber,
			c.NotAfter.UTC().Format(time.RFC3339), c.NotAfter.Sub(now).Round(time.Hour), c.DNSNames, c.IPAddresses,
			c.ExtKeyUsage, row.fingerprint, row.pin, row.issuer)
	}
}
