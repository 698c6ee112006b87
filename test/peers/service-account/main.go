// Prints the values of test/fixtures/service-account-keys.ts: key IDs and tokens by Kubernetes' own code. In a copy of this folder
// with test/lab/kubernetes/1.36.mod and 1.36.sum as go.mod and go.sum:
//
//	CGO_ENABLED=0 go run -mod=mod -trimpath .
package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"time"

	"gopkg.in/go-jose/go-jose.v2/jwt"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/keyutil"
	"k8s.io/kubernetes/pkg/serviceaccount"
)

func main() {
	rsaKey, _ := rsa.GenerateKey(rand.Reader, 2048)
	ecKey, _ := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	out := []map[string]string{}
	for _, key := range []any{rsaKey, ecKey} {
		var pub any
		switch k := key.(type) {
		case *rsa.PrivateKey:
			pub = &k.PublicKey
		case *ecdsa.PrivateKey:
			pub = &k.PublicKey
		}
		der, err := x509.MarshalPKIXPublicKey(pub)
		must(err)
		text := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
		keys, err := keyutil.ParsePublicKeysPEM(text)
		must(err)
		getter, err := serviceaccount.StaticPublicKeysGetter(keys)
		must(err)
		generator, err := serviceaccount.JWTTokenGenerator("https://kubernetes.default.svc.cluster.local", key)
		must(err)
		legacy, err := serviceaccount.JWTTokenGenerator(serviceaccount.LegacyIssuer, key)
		must(err)
		account := v1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "9cf2d8f5-5a0b-4f0e-8b7c-3b9c6f1d2e3a"}}
		secret := v1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-token"}}
		old, err := legacy.GenerateToken(context.Background(), first(serviceaccount.LegacyClaims(account, secret)), second(serviceaccount.LegacyClaims(account, secret)))
		must(err)
		bound, err := generator.GenerateToken(context.Background(), &jwt.Claims{
			Subject:  "system:serviceaccount:shop:web",
			Audience: jwt.Audience{"https://kubernetes.default.svc.cluster.local"},
			IssuedAt: jwt.NewNumericDate(at(1795000000)), NotBefore: jwt.NewNumericDate(at(1795000000)), Expiry: jwt.NewNumericDate(at(1795003607)),
			ID: "5a8d3f0e-4c1b-4c55-9d0a-2f8f6f0b7c11",
		}, map[string]any{"kubernetes.io": map[string]any{"namespace": "shop",
			"pod":            map[string]string{"name": "web-0", "uid": "0b3c9b6e-0d4e-4a86-8d4f-7c1f0b3d9a55"},
			"serviceaccount": map[string]string{"name": "web", "uid": "9cf2d8f5-5a0b-4f0e-8b7c-3b9c6f1d2e3a"},
			"warnafter":      1795003607}})
		must(err)
		for _, one := range getter.GetPublicKeys(context.Background(), "") {
			out = append(out, map[string]string{"publicKey": string(text), "keyId": one.KeyID, "legacyToken": old, "boundToken": bound})
		}
	}
	text, _ := json.MarshalIndent(out, "", "  ")
	fmt.Println(string(text))
}

func first(claims *jwt.Claims, _ any) *jwt.Claims { return claims }
func second(_ *jwt.Claims, private any) any       { return private }
func at(seconds int64) time.Time                  { return time.Unix(seconds, 0) }
func must(err error) {
	if err != nil {
		panic(err)
	}
}
