package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/test/rig/critest"
)

const (
	// podsOfNode are what kubelets allow on a node, nearly, and probed how many of them have a probe.
	podsOfNode, probed = 100, 64
	// period of a probe, in seconds.
	period = 10
)

// node is scenario G: the daemon of a node. Its container runtime is one in memory that counts calls.
func node(ctx context.Context, e *env) error {
	r, err := e.settled(ctx)
	if err != nil {
		return err
	}
	name := e.cluster.Nodes[0]
	marker := fmt.Sprintf(`{apiVersion: apps.kruise.io/v1alpha1, kind: PodProbeMarker,
metadata: {name: web, namespace: %s}, spec: {selector: {matchLabels: {probed: "yes"}}, probes: [
{name: idle, containerName: main, podConditionType: example.com/idle,
probe: {exec: {command: ["true"]}, periodSeconds: %d}}]}}`, namespace, period)
	runtime := &runtimeOf{ctx: ctx}
	defer runtime.end()
	engine := critest.Serve(runtime, filepath.Join(e.dir, "containerd.sock"))
	engine.Answer(func(string, []string) (int32, string) { return 0, "" })
	if err := e.populate(ctx, name, engine); err != nil {
		return err
	}
	e.report.table(fmt.Sprintf("The daemon of a node with %d pods", podsOfNode),
		"probes", "CPU of a core", "RSS MiB", "calls of the runtime per s")
	daemon, err := e.daemon(ctx, name)
	if err != nil {
		return err
	}
	defer func() { _ = daemon.Process.Signal(syscall.SIGTERM); _ = daemon.Wait() }()
	for _, probes := range []int{0, probed} {
		if probes > 0 {
			if err := errors.Join(e.apply(ctx, []string{marker}), r.idle(ctx, 3*time.Second)); err != nil {
				return err
			}
		}
		row, err := e.watchDaemon(ctx, daemon.Process.Pid, engine)
		if err != nil {
			return err
		}
		e.report.row(append([]string{fmt.Sprint(probes)}, row...)...)
	}
	return errors.Join(runtime.err, e.hasProbes(ctx, name))
}

// hasProbes returns an error where the daemon had no probes to make.
func (e *env) hasProbes(ctx context.Context, name string) error {
	probes := &unstructured.Unstructured{}
	probes.SetAPIVersion("apps.kruise.io/v1alpha1")
	probes.SetKind("NodePodProbe")
	if err := e.client.Get(ctx, client.ObjectKey{Name: name}, probes); err != nil {
		return fmt.Errorf("get NodePodProbe: %w", err)
	}
	if pods, _, _ := unstructured.NestedSlice(probes.Object, "spec", "podProbes"); len(pods) != probed {
		return fmt.Errorf("the node probes %d pods, want %d", len(pods), probed)
	}
	return nil
}

// populate fills the node and its runtime.
func (e *env) populate(ctx context.Context, node string, engine *critest.Runtime) error {
	for i := range podsOfNode {
		pod := podNamed(fmt.Sprintf("web-%d", i), "web")
		pod.Namespace, pod.Spec.NodeName = namespace, node
		if i < probed {
			pod.Labels["probed"] = "yes"
		}
		if err := e.client.Create(ctx, pod); err != nil {
			return fmt.Errorf("create pod: %w", err)
		}
	}
	return poll(ctx, time.Minute, func(ctx context.Context) error {
		list := &corev1.PodList{}
		if err := e.client.List(ctx, list, client.InNamespace(namespace)); err != nil {
			return fmt.Errorf("list pods: %w", err)
		}
		for i := range list.Items {
			if len(list.Items[i].Status.ContainerStatuses) == 0 {
				return fmt.Errorf("pod %s does not run", list.Items[i].Name)
			}
		}
		for i := range list.Items {
			pod := &list.Items[i]
			engine.Add(critest.Container{
				ID:     strings.TrimPrefix(pod.Status.ContainerStatuses[0].ContainerID, "containerd://"),
				PodUID: string(pod.UID), PodName: pod.Name, PodNamespace: namespace, Name: "main", Hash: 7,
			})
		}
		return nil
	})
}

// daemon starts the daemon of a node.
func (e *env) daemon(ctx context.Context, name string) (*exec.Cmd, error) {
	cmd := exec.CommandContext(ctx, e.programs["kruise-daemon"], "--socket-dir="+e.dir, "--addr=0",
		"--kubeconfig="+e.cluster.Plane.Kubeconfig, "-v=2", "--feature-gates=PodProbeMarkerGate=true")
	cmd.Env = append(os.Environ(), "NODE_NAME="+name)
	return cmd, e.launch(cmd, "daemon")
}

// watchDaemon reports what the daemon takes once what begins has settled.
func (e *env) watchDaemon(ctx context.Context, pid int, engine *critest.Runtime) ([]string, error) {
	if err := wait(ctx, time.Duration(e.pick(5, 15))*time.Second); err != nil {
		return nil, err
	}
	engine.Calls()
	before, err := cpuOf(pid)
	if err != nil {
		return nil, err
	}
	window := time.Duration(e.pick(10, 40)) * time.Second
	if err := wait(ctx, window); err != nil {
		return nil, err
	}
	after, err := cpuOf(pid)
	if err != nil {
		return nil, err
	}
	rss, _, err := memoryOf(pid)
	if err != nil {
		return nil, err
	}
	calls := 0
	for _, n := range engine.Calls() {
		calls += n
	}
	return []string{
		fmt.Sprintf("%.2f %%", (after-before).Seconds()/window.Seconds()*100), mib(rss),
		fmt.Sprintf("%.1f", float64(calls)/window.Seconds()),
	}, nil
}

// runtimeOf is what critest asks of a test.
type runtimeOf struct {
	testing.TB

	ctx   context.Context //nolint:containedctx // as in a test
	ended []func()
	err   error
}

func (*runtimeOf) Helper()                    {}
func (r *runtimeOf) Context() context.Context { return r.ctx }
func (r *runtimeOf) Cleanup(f func())         { r.ended = append(r.ended, f) }
func (r *runtimeOf) Fatal(args ...any)        { r.err = errors.New(fmt.Sprint(args...)) }

func (r *runtimeOf) end() {
	for _, f := range r.ended {
		f()
	}
}
