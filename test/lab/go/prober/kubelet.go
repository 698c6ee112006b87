package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/remotecommand"
)

// kubeletPath reads logs and runs programs through one endpoint: the way API server → kubelet.
type kubeletPath struct {
	files           *fileCache
	endpoint, trust pair
	presented       pair
	timeout         time.Duration
}

var handshakeStatus = regexp.MustCompile(`bad handshake \((\d+) `)

func newKubeletPath(files *fileCache, endpoint, trust, presented pair, timeout time.Duration) *kubeletPath {
	return &kubeletPath{files, endpoint, trust, presented, timeout}
}

// config is made anew for each probe, so that its connection is fresh.
func (k *kubeletPath) config() (*rest.Config, error) {
	config := &rest.Config{Host: "https://" + k.endpoint.value, Timeout: k.timeout, TLSClientConfig: rest.TLSClientConfig{CAFile: k.trust.value}}
	kind, value, _ := strings.Cut(k.presented.value, ":")
	if kind == "cert" {
		config.TLSClientConfig.CertFile, config.TLSClientConfig.KeyFile, _ = strings.Cut(value, ",")
		return config, nil
	}
	who, err := k.files.credential(k.presented.value)
	config.BearerToken = who.token
	return config, err
}

func (k *kubeletPath) sample(kind string, target pair, err error) Sample {
	sample := Sample{Kind: kind, Endpoint: k.endpoint.name, Trust: k.trust.name, Credential: k.presented.name, Target: target.name, Status: http.StatusOK}
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		sample.Status, sample.Error = int(status.Status().Code), err.Error()
		sample.Outcome = classify(sample.Status, nil)
		return sample
	}
	if err != nil {
		sample.Status, sample.Error = 0, err.Error()
	}
	// A refused upgrade says its HTTP status in its text alone.
	if refused := handshakeStatus.FindStringSubmatch(sample.Error); refused != nil {
		sample.Status, _ = strconv.Atoi(refused[1])
		sample.Outcome = classify(sample.Status, nil)
		return sample
	}
	sample.Outcome = classify(sample.Status, err)
	return sample
}

func (k *kubeletPath) logs(target pair) func(context.Context) (Sample, bool) {
	return func(ctx context.Context) (Sample, bool) {
		return k.sample("logs", target, k.readLog(ctx, strings.Split(target.value, "/"))), true
	}
}

func (k *kubeletPath) readLog(ctx context.Context, pod []string) error {
	config, err := k.config()
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	one := int64(1)
	stream, err := client.CoreV1().Pods(pod[0]).GetLogs(pod[1], &corev1.PodLogOptions{Container: pod[2], TailLines: &one}).Stream(ctx)
	if err != nil {
		return err
	}
	defer stream.Close()
	_, err = io.Copy(io.Discard, stream)
	return err
}

func (k *kubeletPath) exec(target pair) func(context.Context) (Sample, bool) {
	return func(ctx context.Context) (Sample, bool) {
		ctx, cancel := context.WithTimeout(ctx, k.timeout)
		defer cancel()
		return k.sample("exec", target, k.runIn(ctx, strings.Split(target.value, "/"))), true
	}
}

// runIn runs `/client ok` unless the target names a program after the container.
func (k *kubeletPath) runIn(ctx context.Context, pod []string) error {
	config, err := k.config()
	if err != nil {
		return err
	}
	config.Timeout = 0 // the stream has no answer to wait for; the context ends it
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	command := []string{"/client", "ok"}
	if len(pod) > 3 {
		command = pod[3:]
	}
	request := client.CoreV1().RESTClient().Get().Resource("pods").Namespace(pod[0]).Name(pod[1]).SubResource("exec").
		VersionedParams(&corev1.PodExecOptions{Container: pod[2], Command: command, Stdout: true}, scheme.ParameterCodec)
	executor, err := remotecommand.NewWebSocketExecutor(config, http.MethodGet, request.URL().String())
	if err != nil {
		return err
	}
	return executor.StreamWithContext(ctx, remotecommand.StreamOptions{Stdout: &bytes.Buffer{}})
}
