//go:build envtest && linux

package main_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/test/cluster"
	"github.com/kruisekit/kruisekit/test/rig/critest"
)

const (
	node    = "node-a"
	account = "system:serviceaccount:kruise-system:kruise-daemon"
	// pods are what kubelets allow on a node, nearly.
	pods = 100
	// quiet is how long nothing may be asked of anybody until the node counts as idle, window how long it is then watched.
	quiet, window = 3 * time.Second, 10 * time.Second
	// windows are watched at most, until one takes no more CPU than the budget.
	windows = 3

	// The budgets of an idle daemon: memory of its own, and with what is in memory of its program's file.
	mostOwn, mostMemory = 16 << 20, 30 << 20
	mostCPU             = window / 200
)

// The daemon as a process of its own, with the rights of config/daemon, on a node with pods of a CloneSet that all run:
// it makes no request, and takes next to nothing.
func TestIdle(t *testing.T) {
	log.SetLogger(logr.Discard())
	dir := t.TempDir()
	program, built := filepath.Join(dir, "kruise-daemon"), make(chan error, 1)
	go func() { built <- build(t.Context(), program) }() // which takes as long as the API server does
	c, audit := install(t, dir)
	engine := critest.Serve(t, filepath.Join(dir, "containerd.sock"))
	populate(t, c, engine)
	if err := <-built; err != nil {
		t.Fatal(err)
	}
	daemon := run(t, c, program, dir)
	cluster.Eventually(t, daemon.healthy)

	var before []event
	cluster.Eventually(t, func(context.Context) error {
		before = events(t, audit)
		if since := time.Since(before[len(before)-1].At.Time); since < quiet {
			return fmt.Errorf("the last request was %s ago", since)
		}
		return nil
	})
	engine.Calls()
	busy, watched := window, time.Duration(0)
	for range windows { // a busy machine raises what a window takes
		watched += window
		began := daemon.cpu(t)
		<-time.NewTimer(window).C
		if busy = min(busy, daemon.cpu(t)-began); busy <= mostCPU {
			break
		}
	}
	calls, memory := engine.Calls(), daemon.memory(t)
	after := events(t, audit)

	var writes []string
	for _, e := range after[len(before):] {
		switch e.Verb {
		case "create", "update", "patch", "delete":
			writes = append(writes, e.String())
		}
	}
	t.Logf("%d pods: %d requests until idle; in %s then: %d requests; %s of CPU in %s; resident %.1f MiB, "+
		"of which %.1f MiB are not the program's file",
		pods, len(before), watched, len(after)-len(before), busy, window,
		mebibytes(memory["VmRSS"]), mebibytes(memory["RssAnon"]))
	if len(writes) > 0 {
		t.Errorf("writes: %q", writes)
	}
	if len(calls) > 0 {
		t.Errorf("the runtime was asked: %v", calls)
	}
	if memory["RssAnon"] > mostOwn || memory["VmRSS"] > mostMemory {
		t.Errorf("%.1f and %.1f MiB, want %.1f and %.1f at most",
			mebibytes(memory["RssAnon"]), mebibytes(memory["VmRSS"]), mebibytes(mostOwn), mebibytes(mostMemory))
	}
	if busy > mostCPU {
		t.Errorf("%s of CPU in %s, want %s at most", busy, window, mostCPU)
	}
	works(t, c, engine)
	if err := daemon.stop(); err != nil {
		t.Errorf("it ended with %v", err)
	}
}

// works wants something of each part, which idles only because there is nothing to do.
func works(t *testing.T, c *cluster.Cluster, engine *critest.Runtime) {
	t.Helper()
	pod := &corev1.Pod{}
	name := client.ObjectKey{Namespace: "shop", Name: "web-0"}
	if err := c.Client.Get(t.Context(), name, pod); err != nil {
		t.Fatal(err)
	}
	request := &appsv1beta1.ContainerRecreateRequest{
		ObjectMeta: metav1.ObjectMeta{Namespace: name.Namespace, Name: "again", Labels: map[string]string{
			appsv1beta1.ContainerRecreateRequestNodeNameKey: node, appsv1beta1.ContainerRecreateRequestActiveKey: "true",
			appsv1beta1.ContainerRecreateRequestPodUIDKey: string(pod.UID),
		}},
		Spec: appsv1beta1.ContainerRecreateRequestSpec{
			PodName: name.Name, Containers: []appsv1beta1.ContainerRecreateRequestContainer{{
				Name: "web",
				StatusContext: &appsv1beta1.ContainerRecreateRequestContainerContext{
					ContainerID: pod.Status.ContainerStatuses[0].ContainerID,
				},
			}},
		},
	}
	changed := pod.DeepCopy()
	changed.Labels["changed"] = "true"
	if err := errors.Join(c.Client.Create(t.Context(), request),
		c.Client.Patch(t.Context(), changed, client.MergeFrom(pod))); err != nil {
		t.Fatal(err)
	}
	stops := 0
	cluster.Eventually(t, func(ctx context.Context) error {
		image := &appsv1beta1.NodeImage{}
		if err := errors.Join(c.Client.Get(ctx, client.ObjectKey{Name: node}, image),
			c.Client.Get(ctx, name, pod)); err != nil {
			return err
		}
		stops += engine.Calls()["StopContainer"]
		if told := pod.Annotations[kruise.RuntimeContainerMetaKey]; stops != 1 || image.Status.Succeeded != 1 ||
			!strings.Contains(told, "sidecar") {
			return fmt.Errorf("%d containers stopped, %d images pulled, containers described as %q",
				stops, image.Status.Succeeded, told)
		}
		return nil
	})
}

// build builds it as hack/deploy does.
func build(ctx context.Context, program string) error {
	cmd := exec.CommandContext(ctx, "go", "build", "-modfile=../../programs.mod", "-tags=grpcnotrace", "-trimpath",
		"-ldflags=-s -w", "-o", program, ".")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build: %w\n%s", err, out)
	}
	return nil
}

// install starts an API server that writes down what is asked of it, and gives the daemon's account its rights.
func install(t *testing.T, dir string) (c *cluster.Cluster, audit string) {
	t.Helper()
	policy := filepath.Join(dir, "policy.yaml")
	audit = filepath.Join(dir, "audit.log")
	text := "apiVersion: audit.k8s.io/v1\nkind: Policy\nomitStages: [RequestReceived]\nrules: [{level: Metadata}]\n"
	if err := os.WriteFile(policy, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	scheme := runtime.NewScheme()
	if err := errors.Join(corev1.AddToScheme(scheme), appsv1beta1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	c = cluster.Start(t, cluster.Options{
		Private: true, Scheme: scheme, CRDDirs: []string{"../../config/crd/bases"},
		APIServerFlags: []string{"--audit-policy-file=" + policy, "--audit-log-path=" + audit},
	})
	for _, args := range [][]string{
		{"create", "namespace", "kruise-system"},
		{"create", "namespace", "shop"},
		{"create", "namespace", "kruise-daemon-config"},
		{"apply", "-f", "../../config/daemon/role.yaml", "-f", "../../config/daemon/bindings.yaml"},
	} {
		if _, err := c.Kubectl(t.Context(), args...); err != nil {
			t.Fatal(err)
		}
	}
	return c, audit
}

// populate makes the node's NodeImage, with an image that was pulled, and pods as they are on a node that has run for
// long.
func populate(t *testing.T, c *cluster.Cluster, engine *critest.Runtime) {
	t.Helper()
	image := &appsv1beta1.NodeImage{
		ObjectMeta: metav1.ObjectMeta{Name: node}, Spec: appsv1beta1.NodeImageSpec{Images: map[string]appsv1beta1.ImageSpec{
			"nginx": {Tags: []appsv1beta1.ImageTagSpec{{Tag: "1", Version: 1, CreatedAt: ptr.To(metav1.Now())}}},
		}},
	}
	if err := c.Client.Create(t.Context(), image); err != nil {
		t.Fatal(err)
	}
	for i := range pods {
		uid := types.UID(fmt.Sprintf("11111111-2222-3333-4444-%012d", i))
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: "shop", Name: fmt.Sprintf("web-%d", i), Labels: map[string]string{"app": "web"},
				OwnerReferences: []metav1.OwnerReference{{
					APIVersion: "apps.kruise.io/v1beta1", Kind: "CloneSet", Name: "web", UID: uid, Controller: ptr.To(true),
				}},
			},
			Spec: corev1.PodSpec{NodeName: node, Containers: []corev1.Container{
				{Name: "web", Image: "nginx:1", Env: []corev1.EnvVar{{Name: "KEY", Value: strings.Repeat("x", 200)}}}, {
					Name: "sidecar", Image: "proxy:1",
				},
			}},
		}
		if err := c.Client.Create(t.Context(), pod); err != nil {
			t.Fatal(err)
		}
		pod.Status.Phase = corev1.PodRunning
		for _, container := range pod.Spec.Containers {
			id := fmt.Sprintf("%064x", pods*len(pod.Status.ContainerStatuses)+i)
			engine.Add(critest.Container{
				ID: id, PodUID: string(pod.UID), PodName: pod.Name, PodNamespace: "shop", Name: container.Name, Hash: 7,
			})
			pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, corev1.ContainerStatus{
				Name: container.Name, Image: container.Image, ImageID: "sha256:0", ContainerID: "containerd://" + id, Ready: true,
				State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.Now()}},
			})
		}
		if err := c.Client.Status().Update(t.Context(), pod); err != nil {
			t.Fatal(err)
		}
	}
}

// process is a running daemon.
type process struct {
	cmd  *exec.Cmd
	url  string
	logs bytes.Buffer
}

func run(t *testing.T, c *cluster.Cluster, program, dir string) *process {
	t.Helper()
	port := cluster.FreePort(t)
	p := &process{url: "http://127.0.0.1:" + port}
	p.cmd = exec.Command(program, "--socket-dir="+dir, "--addr=127.0.0.1:"+port,
		"--kubeconfig="+impersonate(t, c, dir), "-v=2")
	p.cmd.Env = append(os.Environ(), "NODE_NAME="+node)
	p.cmd.Stderr = &p.logs
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		if t.Failed() {
			t.Logf("it said:\n%s", p.logs.String())
		}
	})
	return p
}

// impersonate gives a kubeconfig of the administrator who acts as the daemon's account.
func impersonate(t *testing.T, c *cluster.Cluster, dir string) string {
	t.Helper()
	config, err := clientcmd.LoadFromFile(c.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	for _, user := range config.AuthInfos {
		user.Impersonate, user.ImpersonateGroups = account, []string{"system:serviceaccounts", "system:authenticated"}
	}
	path := filepath.Join(dir, "kubeconfig")
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		t.Fatal(err)
	}
	return path
}

func (p *process) healthy(context.Context) error {
	response, err := http.Get(p.url + "/healthz")
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return errors.New(response.Status)
	}
	return nil
}

// stop ends it as a kubelet does.
func (p *process) stop() error {
	return errors.Join(p.cmd.Process.Signal(syscall.SIGTERM), p.cmd.Wait())
}

// cpu is what it has used since its start.
func (p *process) cpu(t *testing.T) time.Duration {
	t.Helper()
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(content), ") ") // the name before may hold anything
	fields := strings.Fields(rest)
	const user, system, tick = 11, 12, 10 * time.Millisecond
	var ticks int
	for _, field := range []string{fields[user], fields[system]} {
		n, err := strconv.Atoi(field)
		if err != nil {
			t.Fatal(err)
		}
		ticks += n
	}
	return time.Duration(ticks) * tick
}

// memory in bytes.
func (p *process) memory(t *testing.T) map[string]int {
	t.Helper()
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]int{}
	for line := range strings.Lines(string(content)) {
		name, value, _ := strings.Cut(line, ":")
		if number, unit, _ := strings.Cut(strings.TrimSpace(value), " "); unit == "kB" {
			n, err := strconv.Atoi(number)
			if err != nil {
				t.Fatal(err)
			}
			all[name] = n << 10
		}
	}
	if all["VmRSS"] == 0 {
		t.Fatalf("no memory in %v", all)
	}
	return all
}

func mebibytes(n int) float64 { return float64(n) / (1 << 20) }

// event of the audit log.
type event struct {
	Verb      string
	UserAgent string
	At        metav1.MicroTime `json:"stageTimestamp"`
	ObjectRef struct{ Resource, Subresource, Name string }
}

func (e event) String() string {
	return strings.Join([]string{e.Verb, e.ObjectRef.Resource, e.ObjectRef.Subresource, e.ObjectRef.Name}, " ")
}

// events are all that the daemon has asked for.
func events(t *testing.T, audit string) []event {
	t.Helper()
	file, err := os.Open(audit)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var all []event
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var e event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			continue // the last line is being written
		}
		if strings.HasPrefix(e.UserAgent, "kruise-daemon") {
			all = append(all, e)
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	if len(all) == 0 {
		t.Fatal("the daemon has asked for nothing")
	}
	return all
}
