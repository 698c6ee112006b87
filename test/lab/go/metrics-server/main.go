// metrics-server is the lab's aggregated API server: metrics-server's own packages, started for the Kubernetes version
// of this module. Its upstream command sets a field that the generic API server of 1.36 no longer has.
//
// It trusts kubelets by a CA file alone (no insecure mode), serves with a certificate of the cluster CA, and reads
// kube-system/extension-apiserver-authentication for the front-proxy CA, as every aggregated API server does.
package main

import (
	"flag"
	"log"
	"net"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apiserver/pkg/endpoints/openapi"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/options"
	"k8s.io/apiserver/pkg/util/compatibility"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"k8s.io/kube-openapi/pkg/common"
	"k8s.io/kube-openapi/pkg/util"
	"sigs.k8s.io/metrics-server/pkg/api"
	generatedopenapi "sigs.k8s.io/metrics-server/pkg/api/generated/openapi"
	"sigs.k8s.io/metrics-server/pkg/scraper/client"
	"sigs.k8s.io/metrics-server/pkg/server"
)

type flags struct {
	serving        *options.SecureServingOptionsWithLoopback
	authentication *options.DelegatingAuthenticationOptions
	authorization  *options.DelegatingAuthorizationOptions
	kubeletCAFile  string
	resolution     time.Duration
}

func main() {
	f := parseFlags()
	stop := make(chan struct{})
	go func() {
		signals := make(chan os.Signal, 1)
		signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
		<-signals
		close(stop)
	}()
	if err := run(f, stop); err != nil {
		log.Fatal(err)
	}
}

func parseFlags() flags {
	f := flags{
		serving:        options.NewSecureServingOptions().WithLoopback(),
		authentication: options.NewDelegatingAuthenticationOptions(),
		authorization:  options.NewDelegatingAuthorizationOptions(),
	}
	set := pflag.CommandLine
	f.serving.AddFlags(set)
	f.authentication.AddFlags(set)
	f.authorization.AddFlags(set)
	set.StringVar(&f.kubeletCAFile, "kubelet-certificate-authority", "", "the CA file that kubelets' serving certificates are verified with")
	set.DurationVar(&f.resolution, "metric-resolution", 15*time.Second, "how often kubelets are read")
	klog.InitFlags(nil)
	set.AddGoFlagSet(flag.CommandLine)
	pflag.Parse()
	return f
}

func run(f flags, stop <-chan struct{}) error {
	apiServer, err := apiServerConfig(f)
	if err != nil {
		return err
	}
	inCluster, err := rest.InClusterConfig()
	if err != nil {
		return err
	}
	kubelet := rest.CopyConfig(inCluster)
	kubelet.TLSClientConfig.CAFile, kubelet.TLSClientConfig.CAData = f.kubeletCAFile, nil
	config := server.Config{
		Apiserver:        apiServer,
		Rest:             inCluster,
		MetricResolution: f.resolution,
		ScrapeTimeout:    f.resolution * 2 / 3,
		Kubelet: &client.KubeletClientConfig{
			Scheme:              "https",
			DefaultPort:         10250,
			AddressTypePriority: []corev1.NodeAddressType{corev1.NodeInternalIP},
			Client:              *kubelet,
		},
	}
	s, err := config.Complete()
	if err != nil {
		return err
	}
	return s.RunUntil(stop)
}

func apiServerConfig(f flags) (*genericapiserver.Config, error) {
	config := genericapiserver.NewConfig(api.Codecs)
	if err := f.serving.MaybeDefaultWithSelfSignedCerts("localhost", nil, []net.IP{net.ParseIP("127.0.0.1")}); err != nil {
		return nil, err
	}
	if err := f.serving.ApplyTo(&config.SecureServing, &config.LoopbackClientConfig); err != nil {
		return nil, err
	}
	if err := f.authentication.ApplyTo(&config.Authentication, config.SecureServing, nil); err != nil {
		return nil, err
	}
	if err := f.authorization.ApplyTo(&config.Authorization); err != nil {
		return nil, err
	}
	config.EffectiveVersion = compatibility.DefaultBuildEffectiveVersion()
	names := openapi.NewDefinitionNamer(api.Scheme)
	config.OpenAPIConfig = genericapiserver.DefaultOpenAPIConfig(definitions, names)
	config.OpenAPIV3Config = genericapiserver.DefaultOpenAPIV3Config(definitions, names)
	return config, nil
}

// definitions names metrics-server's models both by their Go types, as it generated them, and as 1.36 looks them up.
func definitions(ref common.ReferenceCallback) map[string]common.OpenAPIDefinition {
	models := generatedopenapi.GetOpenAPIDefinitions(ref)
	for name, model := range models {
		models[util.ToRESTFriendlyName(name)] = model
	}
	return models
}
