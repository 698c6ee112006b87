package main

import (
	"crypto/rand"
	"crypto/x509"
	"math/big"
	"time"
)

// signQuestion asks for a certificate as kube-controller-manager's authority signs it. Everything that it decides or draws
// is given, so that two signers can be compared octet by octet. The key is PKCS#8.
type signQuestion struct {
	CA, Key, Request    []byte
	Serial              string
	NotBefore, NotAfter time.Time
	KeyUsage            int
	ExtKeyUsage         []int
}

type signAnswer struct {
	Certificate []byte `json:"certificate,omitempty"`
	Error       string `json:"error,omitempty"`
}

func sign(question signQuestion) signAnswer {
	certificate, err := signed(question)
	if err != nil {
		return signAnswer{Error: err.Error()}
	}
	return signAnswer{Certificate: certificate}
}

func signed(question signQuestion) ([]byte, error) {
	ca, err := x509.ParseCertificate(question.CA)
	if err != nil {
		return nil, err
	}
	key, err := x509.ParsePKCS8PrivateKey(question.Key)
	if err != nil {
		return nil, err
	}
	request, err := x509.ParseCertificateRequest(question.Request)
	if err != nil {
		return nil, err
	}
	if err := request.CheckSignature(); err != nil {
		return nil, err
	}
	serial, _ := new(big.Int).SetString(question.Serial, 16)
	template := &x509.Certificate{
		SerialNumber:          serial,
		Subject:               request.Subject,
		DNSNames:              request.DNSNames,
		IPAddresses:           request.IPAddresses,
		EmailAddresses:        request.EmailAddresses,
		URIs:                  request.URIs,
		PublicKeyAlgorithm:    request.PublicKeyAlgorithm,
		PublicKey:             request.PublicKey,
		KeyUsage:              x509.KeyUsage(question.KeyUsage),
		BasicConstraintsValid: true,
		NotBefore:             question.NotBefore,
		NotAfter:              question.NotAfter,
	}
	for _, usage := range question.ExtKeyUsage {
		template.ExtKeyUsage = append(template.ExtKeyUsage, x509.ExtKeyUsage(usage))
	}
	return x509.CreateCertificate(rand.Reader, template, ca, request.PublicKey, key)
}
