// Command kube-controllers runs the controllers of kube-controller-manager that workloads need: Deployments,
// ReplicaSets, namespaces, service accounts and garbage collection. It is upstream's code with upstream's numbers of
// workers.
//
// For volumes, nodes and autoscaling, kube-controller-manager compiles 380 packages that kube-apiserver does not have.
// These controllers compile 70 small ones. When not to use it: where nodes fail or pods have claims.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "kube-controllers:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("kube-controllers", flag.ContinueOnError)
	kubeconfig := flags.String("kubeconfig", "", "path of an administrator's kubeconfig")
	qps := flags.Float64("kube-api-qps", 20, "requests per second of each controller")
	burst := flags.Int("kube-api-burst", 30, "requests that a controller may send at once")
	klog.InitFlags(flags)
	if err := flags.Parse(args); err != nil {
		return err
	}
	config, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	if err != nil {
		return fmt.Errorf("read kubeconfig: %w", err)
	}
	config.QPS, config.Burst = float32(*qps), *burst
	return start(ctx, config)
}
