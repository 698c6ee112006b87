// client asks the API server by client-go's in-cluster configuration, which reads the CA file again from time to time.
package main

import (
	"net/http"
	"time"

	"k8s.io/client-go/rest"

	"kcert/lab/counting"
)

func main() {
	counting.Run("go/client-go", func() (*http.Client, string, error) {
		config, err := rest.InClusterConfig()
		if err != nil {
			return nil, "", err
		}
		config.Timeout = 5 * time.Second
		client, err := rest.HTTPClientFor(config)
		return client, config.Host, err
	})
}
