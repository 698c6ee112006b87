// Command peer answers what client-go makes of kubeconfigs, for kcert's tests to compare with: one file a line on standard
// input, one answer a line on standard output. It dials nothing and starts no plugin.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"

	_ "k8s.io/client-go/plugin/pkg/client/auth"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
)

type question struct {
	Content []byte `json:"content"`
	// Folder that the paths in it are relative to.
	Folder string `json:"folder"`
}

type cluster struct {
	Server        string `json:"server"`
	TLSServerName string `json:"tlsServerName"`
	Insecure      bool   `json:"insecure"`
	CAData        []byte `json:"caData"`
	CAFile        string `json:"caFile"`
}

type user struct {
	CertData []byte `json:"certData"`
	CertFile string `json:"certFile"`
	KeyFile  string `json:"keyFile"`
	HasKey   bool   `json:"hasKey"`
	Exec     bool   `json:"exec"`
	Provider bool   `json:"provider"`
	Token    bool   `json:"token"`
	Basic    bool   `json:"basic"`
}

type context struct {
	Cluster   string `json:"cluster"`
	User      string `json:"user"`
	Namespace string `json:"namespace"`
	// Why no client can be created from it; empty where one can.
	Error string `json:"error"`
}

type answer struct {
	// Why the whole file is refused; empty where it is not.
	Error          string             `json:"error"`
	CurrentContext string             `json:"currentContext"`
	Clusters       map[string]cluster `json:"clusters"`
	Users          map[string]user    `json:"users"`
	Contexts       map[string]context `json:"contexts"`
}

func main() {
	questions, answers := json.NewDecoder(bufio.NewReaderSize(os.Stdin, 1<<20)), json.NewEncoder(os.Stdout)
	for {
		var q question
		if err := questions.Decode(&q); err == io.EOF {
			return
		} else if err != nil {
			fmt.Fprintln(os.Stderr, "peer:", err)
			os.Exit(1)
		}
		if err := answers.Encode(ask(q)); err != nil {
			fmt.Fprintln(os.Stderr, "peer:", err)
			os.Exit(1)
		}
	}
}

func ask(q question) (a answer) {
	// goyaml.v2 panics on some texts, and a client that reads such a file ends there.
	defer func() {
		if r := recover(); r != nil {
			a = answer{Error: fmt.Sprint("panic: ", r)}
		}
	}()
	config, err := clientcmd.Load(q.Content)
	if err != nil {
		return answer{Error: err.Error()}
	}
	a = answer{CurrentContext: config.CurrentContext, Clusters: map[string]cluster{}, Users: map[string]user{}, Contexts: map[string]context{}}
	for name, c := range config.Clusters {
		a.Clusters[name] = cluster{c.Server, c.TLSServerName, c.InsecureSkipTLSVerify, c.CertificateAuthorityData, c.CertificateAuthority}
	}
	for name, u := range config.AuthInfos {
		a.Users[name] = user{
			u.ClientCertificateData, u.ClientCertificate, u.ClientKey, len(u.ClientKeyData) > 0,
			u.Exec != nil, u.AuthProvider != nil, u.Token != "", u.Username != "" || u.Password != "",
		}
	}
	for name, c := range config.Contexts {
		a.Contexts[name] = context{c.Cluster, c.AuthInfo, c.Namespace, ""}
	}
	// As clientcmd.LoadFromFile does, so that relative paths are found.
	for _, c := range config.Clusters {
		c.LocationOfOrigin = filepath.Join(q.Folder, "config")
	}
	for _, u := range config.AuthInfos {
		u.LocationOfOrigin = filepath.Join(q.Folder, "config")
	}
	if err := clientcmd.ResolveLocalPaths(config); err != nil {
		return answer{Error: err.Error()}
	}
	for name, c := range a.Contexts {
		if err := usable(config, name); err != nil {
			c.Error = err.Error()
		}
		a.Contexts[name] = c
	}
	return a
}

func usable(config *api.Config, name string) error {
	restConfig, err := clientcmd.NewNonInteractiveClientConfig(*config, name, &clientcmd.ConfigOverrides{}, nil).ClientConfig()
	if err != nil {
		return err
	}
	_, err = rest.TransportFor(restConfig)
	return err
}
