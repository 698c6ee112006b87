// The peer of kcert in the bench, by Go's own libraries.
//
// goloop table DIR, as `kcert inspect DIR`: reads every file below a folder, parses its certificates with crypto/x509 and
// prints a table by expiry. goloop report DIR, as with -o json: also every field, the digests, and each one's issuer
// among them, proved by the signature.
//
// goloop table-all DIR, as table, with a goroutine for each processor that reads and parses.
//
// goloop verify CA LEAF, as `kcert verify LEAF --roots CA`: one chain, one answer.
//
// goloop probe CA FILE, as `kcert probe HOST:PORT... --ca CA`: see probe.go.
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
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sort"
	"sync"
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
	if len(os.Args) == 4 && os.Args[1] == "verify" {
		if err := verify(os.Args[2], os.Args[3]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	if len(os.Args) == 4 && os.Args[1] == "probe" {
		if err := probe(os.Args[2], os.Args[3]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	whole := len(os.Args) == 3 && os.Args[1] == "report"
	folder := os.Args[len(os.Args)-1]
	readAll := read
	if os.Args[1] == "table-all" {
		readAll = readByAll
	}
	rows, err := readAll(folder, whole)
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
		found, err := readFile(path, whole)
		rows = append(rows, found...)
		return err
	})
	return rows, err
}

// readByAll is read with a goroutine for each processor.
func readByAll(folder string, whole bool) ([]*row, error) {
	workers := runtime.GOMAXPROCS(0)
	paths := make(chan string, 1024)
	rows, errs := make([][]*row, workers), make([]error, workers)
	var all sync.WaitGroup
	for worker := range workers {
		all.Add(1)
		go func() {
			defer all.Done()
			for path := range paths {
				found, err := readFile(path, whole)
				rows[worker] = append(rows[worker], found...)
				errs[worker] = errors.Join(errs[worker], err)
			}
		}()
	}
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Type().IsRegular() {
			paths <- path
		}
		return err
	})
	close(paths)
	all.Wait()
	return slices.Concat(rows...), errors.Join(append(errs, err)...)
}

func readFile(path string, whole bool) ([]*row, error) {
	var rows []*row
	rest, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	for {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			return rows, nil
		}
		if block.Type != "CERTIFICATE" {
			continue
		}
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		found := &row{source: path, certificate: certificate}
		if whole {
			fingerprint := sha256.Sum256(certificate.Raw)
			pin := sha256.Sum256(certificate.RawSubjectPublicKeyInfo)
			found.fingerprint, found.pin = hex.EncodeToString(fingerprint[:]), hex.EncodeToString(pin[:])
		}
		rows = append(rows, found)
	}
}

// verify judges one chain and prints the answer.
func verify(caFile, leafFile string) error {
	text, err := os.ReadFile(caFile)
	if err != nil {
		return err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(text)
	leaves, err := readFile(leafFile, false)
	if err != nil {
		return err
	}
	if _, err := leaves[0].certificate.Verify(x509.VerifyOptions{Roots: roots}); err != nil {
		return err
	}
	fmt.Println(leafFile, "is accepted")
	return nil
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
