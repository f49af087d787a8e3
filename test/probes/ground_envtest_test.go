//go:build envtest

package probes

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/kruisekit/kruisekit/api/apps/v1alpha1"
	"github.com/kruisekit/kruisekit/controllers"
	"github.com/kruisekit/kruisekit/daemon"
	"github.com/kruisekit/kruisekit/daemon/cri"
	"github.com/kruisekit/kruisekit/test/cluster"
	"github.com/kruisekit/kruisekit/test/podbench"
	"github.com/kruisekit/kruisekit/test/rig/critest"
)

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard())
	os.Exit(cluster.Main(m))
}

// ground is an API server with the rights and policies of config, the reconcilers as the manager's account, and a
// daemon on one node with a container runtime in memory.
type ground struct {
	*podbench.Bench

	cluster *cluster.Cluster
	runtime *critest.Runtime
	page    *httptest.Server

	mu      sync.Mutex
	good    map[string]bool // by container ID
	page500 bool
}

const daemonNode = "node-a"

// as is the administrator's configuration for an account.
func as(c *cluster.Cluster, account, node string) *rest.Config {
	rc := rest.CopyConfig(c.Config)
	rc.Impersonate = rest.ImpersonationConfig{
		UserName: "system:serviceaccount:kruise-system:" + account,
		Groups:   []string{"system:serviceaccounts", "system:authenticated"},
	}
	if node != "" {
		rc.Impersonate.Extra = map[string][]string{"authentication.kubernetes.io/node-name": {node}}
	}
	return rc
}

func newGround(t *testing.T) *ground {
	t.Helper()
	scheme := podbench.Scheme(t, v1alpha1.AddToScheme)
	c := cluster.Start(t, cluster.Options{Private: true, Scheme: scheme, CRDDirs: []string{
		"../../config/crd/bases/apps.kruise.io_podprobemarkers.yaml",
		"../../config/crd/bases/apps.kruise.io_nodepodprobes.yaml",
		// The cache of a daemon needs its other kinds.
		"../../config/crd/bases/apps.kruise.io_nodeimages.yaml",
		"../../config/crd/bases/apps.kruise.io_containerrecreaterequests.yaml",
	}})
	g := &ground{Bench: podbench.On(t, c, scheme), cluster: c, good: map[string]bool{}}
	g.Cache = cache.Options{}
	g.Config = as(c, "kruise-manager", "")
	for _, name := range []string{"kruise-system", "kruise-daemon-config"} {
		g.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	g.apply("-k", "../../config/rbac")
	for _, file := range []string{"account", "role", "bindings", "policy"} {
		g.apply("-f", "../../config/daemon/"+file+".yaml")
	}
	g.page = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		g.mu.Lock()
		defer g.mu.Unlock()
		if g.page500 {
			w.WriteHeader(http.StatusInternalServerError)
		}
	}))
	t.Cleanup(g.page.Close)
	return g
}

func (g *ground) apply(args ...string) {
	g.Helper()
	if out, err := g.cluster.Kubectl(g.Context(), append([]string{"apply", "--server-side"}, args...)...); err != nil {
		g.Fatalf("%v\n%s", err, out)
	}
}

func (g *ground) create(o client.Object) {
	g.Helper()
	if err := g.Client.Create(g.Context(), o); err != nil {
		g.Fatal(err)
	}
}

// reconcile starts the reconcilers of a manager.
func (g *ground) reconcile() (stop func()) {
	g.Helper()
	return g.Run(func(mgr ctrl.Manager, _ client.WithWatch) error {
		return controllers.AddToManager(g.Context(), mgr, controllers.Options{Names: []string{
			"nodepodprobe", "podprobemarker",
		}})
	})
}

// daemonOn starts the daemon of a node.
func (g *ground) daemonOn(node string) {
	g.Helper()
	dir := g.TempDir()
	g.runtime = critest.Serve(g, filepath.Join(dir, "containerd.sock"))
	g.runtime.Answer(func(id string, _ []string) (int32, string) {
		g.mu.Lock()
		defer g.mu.Unlock()
		if g.good[id] {
			return 0, "idle"
		}
		return 1, "busy"
	})
	runtimes, err := cri.Detect(g.Context(), cri.Search{Root: dir}, cri.Options{})
	if err != nil {
		g.Fatal(err)
	}
	g.Cleanup(func() { _ = runtimes.Close() })
	options := daemon.Options{WithoutPods: true}
	mo, err := daemon.ManagerOptions(node, options)
	if err != nil {
		g.Fatal(err)
	}
	mo.Metrics, mo.HealthProbeBindAddress = server.Options{BindAddress: "0"}, "0"
	mgr, err := ctrl.NewManager(as(g.cluster, "kruise-daemon", node), mo)
	if err != nil {
		g.Fatal(err)
	}
	if err := daemon.AddToManager(g.Context(), mgr, daemon.Node{Name: node, Runtimes: runtimes}, options); err != nil {
		g.Fatal(err)
	}
	ctx, cancel := context.WithCancel(g.Context())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	g.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			g.Errorf("the daemon ended with %v", err)
		}
	})
}

// answer sets what commands in a container find, and what the page answers.
func (g *ground) answer(container string, good, page bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.good[container], g.page500 = good, !page
}

// readyNode creates a node with a kubelet that has reported.
func (g *ground) readyNode(name string) *corev1.Node {
	g.Helper()
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	g.create(n)
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	if err := g.Client.Status().Update(g.Context(), n); err != nil {
		g.Fatal(err)
	}
	return n
}

// runs creates a pod that a kubelet has started on a node.
func (g *ground) runs(name, node, app string) *corev1.Pod {
	g.Helper()
	pod := g.Pod(name, func(p *corev1.Pod) {
		p.Labels, p.Spec.NodeName = map[string]string{"app": app}, node
		p.Spec.Containers = []corev1.Container{{
			Name: "main", Image: "main", Ports: []corev1.ContainerPort{{Name: "page", ContainerPort: g.port()}},
		}}
	})
	g.Status(pod, func(p *corev1.Pod) {
		p.Status.Phase, p.Status.PodIP, p.Status.PodIPs = corev1.PodRunning, "127.0.0.1", []corev1.PodIP{{IP: "127.0.0.1"}}
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodInitialized, Status: corev1.ConditionTrue}}
	})
	return pod
}

func (g *ground) port() int32 {
	var port int32
	_, err := fmt.Sscanf(g.page.URL[strings.LastIndex(g.page.URL, ":"):], ":%d", &port)
	if err != nil {
		g.Fatal(err)
	}
	return port
}

// marks waits until a pod shows what it is to show.
func (g *ground) marks(pod *corev1.Pod, want string) {
	g.Helper()
	g.Until(func() error {
		if err := g.Look(pod); err != nil {
			return err
		}
		if got := shown(pod); got != want {
			return fmt.Errorf("pod %s shows %q, want %q", pod.Name, got, want)
		}
		return nil
	})
}

// gone waits for the end of an object.
func (g *ground) gone(o client.Object) {
	g.Helper()
	g.Until(func() error {
		if err := g.Look(o); client.IgnoreNotFound(err) != nil || err == nil {
			return errors.Join(errors.New("it is there"), err)
		}
		return nil
	})
}
