package main

import (
	"bytes"
	"crypto"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
	"os"
	"time"
)

// sign is the peer of `kcert ca sign`: every request of a PEM file is parsed, its signature checked, and a certificate made
// of it as kube-controller-manager does; all serial numbers are in the issuance log, on the disk, before the certificates are
// written.
func sign(caFile, keyFile, requestFile, logFile, outFile string) error {
	ca, key, err := authority(caFile, keyFile)
	if err != nil {
		return err
	}
	rest, err := os.ReadFile(requestFile)
	if err != nil {
		return err
	}
	var log, out bytes.Buffer
	entries := json.NewEncoder(&log)
	limit := new(big.Int).Lsh(big.NewInt(1), 128)
	taken := map[string]bool{}
	now := time.Now()
	for {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		request, err := x509.ParseCertificateRequest(block.Bytes)
		if err != nil {
			return err
		}
		if err := request.CheckSignature(); err != nil {
			return err
		}
		serial, err := rand.Int(rand.Reader, limit)
		if err != nil {
			return err
		}
		if taken[serial.String()] {
			return fmt.Errorf("serial number %x for the second time", serial)
		}
		taken[serial.String()] = true
		template := &x509.Certificate{
			SerialNumber:          serial,
			Subject:               request.Subject,
			DNSNames:              request.DNSNames,
			IPAddresses:           request.IPAddresses,
			EmailAddresses:        request.EmailAddresses,
			URIs:                  request.URIs,
			NotBefore:             now.Add(-5 * time.Minute),
			NotAfter:              now.Add(8760*time.Hour - 5*time.Minute),
			KeyUsage:              x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment,
			ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
			BasicConstraintsValid: true,
		}
		der, err := x509.CreateCertificate(rand.Reader, template, ca, request.PublicKey, key)
		if err != nil {
			return err
		}
		fingerprint := sha256.Sum256(der)
		entry := map[string]string{
			"serialNumber":      serial.Text(16),
			"subject":           request.Subject.String(),
			"notBefore":         template.NotBefore.UTC().Format(time.RFC3339),
			"notAfter":          template.NotAfter.UTC().Format(time.RFC3339),
			"fingerprintSha256": hex.EncodeToString(fingerprint[:]),
		}
		if err := entries.Encode(entry); err != nil {
			return err
		}
		if err := pem.Encode(&out, &pem.Block{Type: "CERTIFICATE", Bytes: der}); err != nil {
			return err
		}
	}
	if err := writeDurably(logFile, log.Bytes()); err != nil {
		return err
	}
	return writeDurably(outFile, out.Bytes())
}

func authority(caFile, keyFile string) (*x509.Certificate, crypto.Signer, error) {
	caBlock, err := firstBlock(caFile)
	if err != nil {
		return nil, nil, err
	}
	ca, err := x509.ParseCertificate(caBlock)
	if err != nil {
		return nil, nil, err
	}
	keyBlock, err := firstBlock(keyFile)
	if err != nil {
		return nil, nil, err
	}
	key, err := x509.ParsePKCS8PrivateKey(keyBlock)
	if err != nil {
		return nil, nil, err
	}
	return ca, key.(crypto.Signer), nil
}

func firstBlock(file string) ([]byte, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, fmt.Errorf("%s: no PEM", file)
	}
	return block.Bytes, nil
}

func writeDurably(path string, content []byte) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	defer file.Close()
	if _, err := file.Write(content); err != nil {
		return err
	}
	return file.Sync()
}
