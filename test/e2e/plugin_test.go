//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/test/cluster"
	"github.com/kruisekit/kruisekit/test/cluster/image"
)

var pluginBinary = flag.String("plugin", "",
	"the binary kubectl-kruise that TestPlugin runs; empty skips the test")

// TestPlugin runs the commands of kubectl kruise whose outcome nodes decide, as a user does, beside two replicas of the
// manager and three daemons. In the module of the plugin, TestCommandsOnAPIServer has a call for each documented right.
func TestPlugin(t *testing.T) {
	p := newPlugin(t)
	for name, test := range map[string]func(*testing.T){
		"rollout": p.testRollout, "restart": p.testRestart, "pull": p.testPull, "migrate": p.testMigrate,
		"adopt": p.testAdopt,
	} {
		t.Run(name, func(t *testing.T) { t.Parallel(); test(t) })
	}
}

// plugin is the binary, and the deployment that it works on.
type plugin struct {
	*deployed
	binary string
}

func newPlugin(t *testing.T) *plugin {
	t.Helper()
	if *pluginBinary == "" {
		t.Skip("runs a binary: run make plugin-test")
	}
	if _, err := os.Stat(*pluginBinary); err != nil {
		t.Fatal(err)
	}
	programs := build(t)
	c := cluster.Start(t, cluster.Options{Level: cluster.Real, Scheme: newScheme(t)})
	waitForRemoval(t, c)
	manager, daemon := programs.push(t, c, "kruise-manager"), programs.push(t, c, "kruise-daemon")
	arguments := []string{"--feature-gates=ImagePullJobGate=true", "--nodeimage-creation-delay=1s"}
	m := deploy(t, c, overlay(t, arguments, fullDisk, []string{"../../config/pulljobs"},
		manager, daemon), theManager, theDaemon)
	for _, name := range []string{"web:1", "web:2", "helper:1", "pull:1", "pull:2", "pull:3"} {
		m.Push(t, image.Spec{
			Name: "plugin/" + name, Files: map[string][]byte{"/usr/share/nginx/html/index.html": []byte(name)},
		})
	}
	eventually(t, func(ctx context.Context) error {
		var list v1beta1.NodeImageList
		if err := m.Client.List(ctx, &list); err != nil || len(list.Items) != nodes {
			return fmt.Errorf("%d NodeImages, %w", len(list.Items), err)
		}
		return nil
	})
	t.Cleanup(func() {
		if t.Failed() {
			logs, err := m.Kubectl(context.WithoutCancel(t.Context()), "logs", "-n", system, "--prefix", "--tail=100",
				"-l", "control-plane=controller-manager")
			t.Logf("the ends of the logs of managers: %v\n%s", err, logs)
		}
	})
	return &plugin{deployed: m, binary: *pluginBinary}
}

// said is what a call has printed, and its exit code.
type said struct {
	out, err string
	code     int
}

// run calls the plugin for a namespace, or without one, with an input.
func (p *plugin) run(t *testing.T, namespace, input string, words ...string) said {
	t.Helper()
	if namespace != "" {
		words = append([]string{"-n", namespace}, words...)
	}
	command := exec.CommandContext(t.Context(), p.binary, words...)
	command.Env = append(os.Environ(), "KUBECONFIG="+p.Kubeconfig, "KUBE_EDITOR=true")
	command.Stdin = strings.NewReader(input)
	var out, errs bytes.Buffer
	command.Stdout, command.Stderr = &out, &errs
	err := command.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatalf("kubectl kruise %s: %v", strings.Join(words, " "), err)
	}
	return said{out.String(), errs.String(), command.ProcessState.ExitCode()}
}

// space is a namespace that the plugin is called for.
type space struct {
	*plugin
	namespace string
}

func (p *plugin) space(t *testing.T) *space {
	t.Helper()
	return &space{p, p.Namespace(t)}
}

// exits calls the plugin, and expects an exit code.
func (s *space) exits(t *testing.T, code int, input string, words ...string) said {
	t.Helper()
	got := s.run(t, s.namespace, input, words...)
	if got.code != code {
		t.Fatalf("kubectl kruise %s: exit code %d, want %d\n%s%s", strings.Join(words, " "), got.code, code, got.out, got.err)
	}
	return got
}

// do calls the plugin, which succeeds, and returns what it prints.
func (s *space) do(t *testing.T, words ...string) string {
	t.Helper()
	got := s.exits(t, 0, "", words...)
	return got.out + got.err
}

// fails calls the plugin, which fails with a text.
func (s *space) fails(t *testing.T, text string, words ...string) {
	t.Helper()
	if got := s.exits(t, 1, "", words...); !strings.Contains(got.err, text) {
		t.Errorf("kubectl kruise %s: %q, want %q", strings.Join(words, " "), got.err, text)
	}
}

// prints calls the plugin, which succeeds and prints all texts.
func (s *space) prints(t *testing.T, texts []string, words ...string) {
	t.Helper()
	got := s.do(t, words...)
	for _, text := range texts {
		if !strings.Contains(got, text) {
			t.Errorf("kubectl kruise %s: no %q in\n%s", strings.Join(words, " "), text, got)
		}
	}
}

// apply applies a manifest with the plugin.
func (s *space) apply(t *testing.T, manifest string) {
	t.Helper()
	s.exits(t, 0, manifest, "apply", "-f", "-")
}

// field reads a field of an object by a path of jsonpath.
func (s *space) field(t *testing.T, object, path string) string {
	t.Helper()
	got, err := s.Kubectl(t.Context(), "get", "-n", s.namespace, object, "-o", "jsonpath={"+path+"}")
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// has expects the value of a field.
func (s *space) has(t *testing.T, object, path, want string) {
	t.Helper()
	if got := s.field(t, object, path); got != want {
		t.Errorf("%s of %s is %q, want %q", path, object, got, want)
	}
}

const kruiseApps = "apps.kruise.io/v1beta1"

// workload is the manifest of a workload of two containers, whose pods have its name as label app.
func workload(version, kind, name, spec string) string {
	const text = `
apiVersion: VERSION
kind: KIND
metadata: {name: NAME}
spec:
  SPEC
  selector: {matchLabels: {app: NAME}}
  template:
    metadata: {labels: {app: NAME}}
    spec:
      terminationGracePeriodSeconds: 1
      dnsPolicy: Default
      containers:
      - {name: app, image: "plugin/web:1", ports: [{containerPort: 80}]}
      - {name: helper, image: "plugin/helper:1", command: [sleep, "100000"]}
`
	return strings.NewReplacer("VERSION", version, "KIND", kind, "NAME", name, "SPEC", spec).Replace(text)
}

// clonesOf is the manifest of a CloneSet that updates one pod after the other in place.
func clonesOf(name string, replicas int) string {
	return workload(kruiseApps, "CloneSet", name, fmt.Sprintf(`replicas: %d
  updateStrategy: {rollingUpdate: {podUpdatePolicy: InPlaceIfPossible, maxUnavailable: 1}}`, replicas))
}

// onePod is what a test compares of a pod.
type onePod struct {
	uid      types.UID
	node     string
	images   map[string]string
	restarts map[string]int32
}

func onePodOf(pod *corev1.Pod) onePod {
	one := onePod{uid: pod.UID, node: pod.Spec.NodeName, images: map[string]string{}, restarts: map[string]int32{}}
	for _, c := range pod.Spec.Containers {
		one.images[c.Name] = c.Image
	}
	for name, status := range statuses(pod) {
		one.restarts[name] = status.RestartCount
	}
	return one
}

// pods are those with a label app, by name, once so many are ready and none terminates.
func (s *space) pods(t *testing.T, app string, replicas int) map[string]onePod {
	t.Helper()
	var all map[string]onePod
	eventually(t, func(ctx context.Context) error {
		var list corev1.PodList
		if err := s.Client.List(ctx, &list, client.InNamespace(s.namespace), client.MatchingLabels{"app": app}); err != nil {
			return err
		}
		all = map[string]onePod{}
		for i := range list.Items {
			pod := &list.Items[i]
			if !ready(pod) || pod.DeletionTimestamp != nil {
				return fmt.Errorf("pod %s is not ready or terminates: %v", pod.Name, pod.Status.Conditions)
			}
			all[pod.Name] = onePodOf(pod)
		}
		if len(all) != replicas {
			return fmt.Errorf("%d pods of %s, want %d", len(all), app, replicas)
		}
		return nil
	})
	return all
}

// kept expects that the pods are those of before, that their container app runs an image, and that it restarted so many
// times since, and the other container never.
func (s *space) kept(t *testing.T, app string, before map[string]onePod, image string, restarts int32) {
	t.Helper()
	for name, is := range s.pods(t, app, len(before)) {
		was, has := before[name]
		switch {
		case !has || was.uid != is.uid || was.node != is.node:
			t.Errorf("pod %s is another one", name)
		case is.images["app"] != image:
			t.Errorf("pod %s has image %s, want %s", name, is.images["app"], image)
		case is.restarts["app"]-was.restarts["app"] != restarts || is.restarts["helper"] != was.restarts["helper"]:
			t.Errorf("pod %s restarted %v times, was %v, want %d more of app", name, is.restarts, was.restarts, restarts)
		}
	}
}
