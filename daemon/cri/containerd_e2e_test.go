//go:build e2e && linux

package cri_test

import (
	"context"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	criv1 "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kruisekit/kruisekit/daemon/cri"
	"github.com/kruisekit/kruisekit/test/cluster/image"
	"github.com/kruisekit/kruisekit/test/cluster/packages"
	"github.com/kruisekit/kruisekit/test/containerd"
)

// ground is a containerd, a registry with some images, and what is under test.
type ground struct {
	node     *containerd.Node
	registry *containerd.Registry
	runtime  *cri.Runtime
	images   map[string]image.Image
	kubelet  criv1.RuntimeServiceClient
}

func newGround(t *testing.T) *ground {
	t.Helper()
	programs := containerd.Programs(t)
	g := &ground{registry: containerd.NewRegistry(t), images: map[string]image.Image{}}
	pusher, err := image.NewPusher(t.Context(), g.registry.URL, packages.Busybox)
	if err != nil {
		t.Fatal(err)
	}
	pause, err := os.ReadFile(programs["pause"])
	if err != nil {
		t.Fatal(err)
	}
	first := image.Program("pause", pause)
	first.Name = "registry.test/pause:1"
	for _, s := range []image.Spec{
		first,
		{Name: "registry.test/app:v1"},
		{Name: "registry.test/app:v2"},
		{Name: "registry.test/private/app:v1"},
		{Name: "registry.test/slow/app:v1"},
		{Name: "registry.test/slow/app:v2"},
		{Name: "registry.test/torn/app:v1"},
	} {
		if g.images[s.Name], err = pusher.Push(t.Context(), s); err != nil {
			t.Fatal(err)
		}
	}
	g.node = containerd.Start(t, programs, g.registry.URL)
	// containerd makes its socket a little before it serves.
	found, err := cri.Detect(t.Context(), cri.Search{Root: g.node.Run()}, cri.Options{OpenTimeout: eventually})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := found.Close(); err != nil {
			t.Error(err)
		}
	})
	g.runtime, g.kubelet = found.Default(), kubeletOf(t, g.node)
	return g
}

// kubeletOf a node does what the package has no call for.
func kubeletOf(t *testing.T, n *containerd.Node) criv1.RuntimeServiceClient {
	t.Helper()
	conn, err := grpc.NewClient("unix://"+n.Socket(), grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithAuthority("localhost"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return criv1.NewRuntimeServiceClient(conn)
}

func TestContainerd(t *testing.T) {
	g := newGround(t)
	version, err := g.runtime.Version(t.Context())
	if err != nil || version.Name != "containerd" || version.API != "v1" || g.runtime.Name() != "containerd" {
		t.Errorf("it is %+v, %v", version, err)
	}
	if err := ping(t.Context(), g.runtime); err != nil {
		t.Error(err)
	}
	t.Run("pull", g.pull)
	t.Run("credentials", g.credentials)
	t.Run("cancel", g.cancel)
	t.Run("registry", g.badRegistry)
	t.Run("containers", g.containers)
	t.Run("restart", g.restart)
}

func (g *ground) mustPull(t *testing.T, reference string) string {
	t.Helper()
	id, err := g.runtime.Pull(t.Context(), reference, cri.Credentials{}, cri.SandboxConfig{
		Annotations: map[string]string{"apps.kruise.io/pulling-image-by": "kruise-daemon"},
	})
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func (g *ground) pull(t *testing.T) {
	v1, v2 := g.images["registry.test/app:v1"], g.images["registry.test/app:v2"]
	_, err := g.runtime.Image(t.Context(), v1.Name)
	wantOnly(t, err, cri.ErrNotFound)
	id := g.mustPull(t, v1.Name)
	if !strings.HasSuffix(id, v1.ID) {
		t.Errorf("pulled %s, want %s", id, v1.ID)
	}
	byDigest := "registry.test/app@" + v2.Digest
	g.mustPull(t, byDigest)
	for reference, want := range map[string]image.Image{v1.Name: v1, id: v1, byDigest: v2} {
		got, err := g.runtime.Image(t.Context(), reference)
		if err != nil {
			t.Error(err)
			continue
		}
		if got.ID != want.ID || !slices.Contains(got.Digests, "registry.test/app@"+want.Digest) {
			t.Errorf("image %s is %+v, want %+v", reference, got, want)
		}
	}
	all, err := g.runtime.Images(t.Context())
	if err != nil || !slices.ContainsFunc(all, func(i cri.Image) bool { return slices.Contains(i.Tags, v1.Name) }) {
		t.Errorf("images are %+v, %v, want %s among them", all, err, v1.Name)
	}
	_, err = g.runtime.Pull(t.Context(), "registry.test/app:absent", cri.Credentials{}, cri.SandboxConfig{})
	wantOnly(t, err, cri.ErrNotFound)
	_, err = g.runtime.Pull(t.Context(), "NOT/a:reference:", cri.Credentials{}, cri.SandboxConfig{})
	if err == nil {
		t.Error("want an error for what is no reference")
	}
	wantOnly(t, err, nil)
}

// A registry that breaks off in the middle of a layer, and one that is away, are not the runtime.
func (g *ground) badRegistry(t *testing.T) {
	_, err := g.runtime.Pull(t.Context(), "registry.test/torn/app:v1", cri.Credentials{}, cri.SandboxConfig{})
	if wantOnly(t, err, nil); err == nil || g.registry.Torn() == 0 {
		t.Errorf("a layer that breaks off: %v", err)
	}
	g.registry.Down(true)
	defer g.registry.Down(false)
	_, err = g.runtime.Pull(t.Context(), "registry.test/app:absent", cri.Credentials{}, cri.SandboxConfig{})
	if wantOnly(t, err, nil); err == nil {
		t.Error("a pull from no registry succeeds")
	}
}

func (g *ground) credentials(t *testing.T) {
	const private = "registry.test/private/app:v1"
	for why, wrong := range map[string]cri.Credentials{
		"none": {}, "wrong ones": {Username: containerd.User, Password: "guess"},
	} {
		_, err := g.runtime.Pull(t.Context(), private, wrong, cri.SandboxConfig{})
		t.Logf("%s: %v", why, err)
		wantOnly(t, err, cri.ErrCredentials)
	}
	right := cri.Credentials{Username: containerd.User, Password: containerd.Password}
	if _, err := g.runtime.Pull(t.Context(), private, right, cri.SandboxConfig{}); err != nil {
		t.Error(err)
	}
}

func (g *ground) cancel(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	failed := make(chan error, 1)
	go func() {
		_, err := g.runtime.Pull(ctx, "registry.test/slow/app:v1", cri.Credentials{}, cri.SandboxConfig{})
		failed <- err
	}()
	await(t, "containerd asks for a blob", g.registry.Stalled)
	cancel()
	wantOnly(t, <-failed, nil)
	await(t, "containerd gives it up", g.registry.Left)
}

func (g *ground) restart(t *testing.T) {
	id, _ := g.newContainer(t, "survivor", "main")
	awaitConnection(t, g.runtime, isUp)
	for len(g.registry.Stalled) > 0 { // requests that came before
		<-g.registry.Stalled
	}
	failed := make(chan error, 1)
	go func() {
		_, err := g.runtime.Pull(t.Context(), "registry.test/slow/app:v2", cri.Credentials{}, cri.SandboxConfig{})
		failed <- err
	}()
	await(t, "containerd asks for a blob", g.registry.Stalled)
	g.node.StopContainerd(t)
	wantOnly(t, <-failed, cri.ErrUnavailable)
	awaitConnection(t, g.runtime, isDown)
	g.node.StartContainerd(t)
	// It waits until the runtime is back, which may say then that it is not ready yet.
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	c, err := find(t.Context(), g.runtime, id)
	for ; err != nil && !t.Failed(); c, err = find(t.Context(), g.runtime, id) {
		wantOnly(t, err, cri.ErrUnavailable)
		<-tick.C
	}
	if c.State != cri.Running {
		t.Errorf("the container is %+v, %v", c, err)
	}
	awaitConnection(t, g.runtime, isUp)
}
