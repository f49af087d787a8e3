//go:build e2e && linux

package imagepull

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/daemon/cri"
	"github.com/kruisekit/kruisekit/test/cluster/image"
	"github.com/kruisekit/kruisekit/test/cluster/packages"
	"github.com/kruisekit/kruisekit/test/containerd"
)

// patience bounds what is to happen soon. It is long because the machine may be busy.
const patience = 2 * time.Minute

// ground is a node with a real containerd. The API server is not real, but time is.
type ground struct {
	*world
	node     *containerd.Node
	registry *containerd.Registry
	cri      *cri.Runtime
	images   map[string]image.Image
}

func newGround(t *testing.T) *ground {
	t.Helper()
	programs := containerd.Programs(t)
	g := &ground{world: newWorld(t), registry: containerd.NewRegistry(t), images: map[string]image.Image{}}
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
		{Name: "registry.test/app:v3"},
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
	found, err := cri.Detect(t.Context(), cri.Search{Root: g.node.Run()}, cri.Options{OpenTimeout: patience})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := found.Close(); err != nil {
			t.Error(err)
		}
	})
	g.cri = found.Default()
	g.runtime, g.options.MaxPulls = g.cri, 3
	g.begin()
	t.Cleanup(func() { g.end() })
	return g
}

// until waits for an image to be in a phase.
func (g *ground) until(t *testing.T, image string, phase v1beta1.ImagePullPhase) v1beta1.ImageTagStatus {
	t.Helper()
	tick, limit := time.NewTicker(20*time.Millisecond), time.NewTimer(patience)
	defer tick.Stop()
	defer limit.Stop()
	for {
		if s := g.tag(image); s.Phase == phase {
			return s
		}
		select {
		case <-tick.C:
		case <-limit.C:
			t.Fatalf("%s is not %s: %+v", image, phase, g.tag(image))
		}
	}
}

// pulled waits for success, and compares what the status says with what was pushed.
func (g *ground) pulled(t *testing.T, asked, pushed string) {
	t.Helper()
	s := g.until(t, asked, v1beta1.ImagePhaseSucceeded)
	want := mustParse(asked).Name + "@" + g.images[pushed].ID
	if s.ImageID != want || s.Message != "" {
		t.Errorf("%s: status %+v, want the ID %s", asked, s, want)
	}
	if found, err := g.cri.Image(t.Context(), asked); err != nil || found.ID != g.images[pushed].ID {
		t.Errorf("%s: the node has %+v, %v", asked, found, err)
	}
}

// failed waits for failure.
func (g *ground) failed(t *testing.T, asked, because string) {
	t.Helper()
	if s := g.until(t, asked, v1beta1.ImagePhaseFailed); !strings.Contains(s.Message, because) {
		t.Errorf("%s: %q, want something about %q", asked, s.Message, because)
	}
}

func await(t *testing.T, what string, happens <-chan struct{}) {
	t.Helper()
	limit := time.NewTimer(patience)
	defer limit.Stop()
	select {
	case <-happens:
	case <-limit.C:
		t.Fatalf("it does not come to pass that %s", what)
	}
}

func TestContainerd(t *testing.T) {
	g := newGround(t)
	t.Run("pull", g.pull)
	t.Run("credentials", g.credentials)
	t.Run("cancel", g.cancel)
	t.Run("registry", g.badRegistry)
	t.Run("restart", g.restart)
}

func (g *ground) pull(t *testing.T) {
	g.spec(asks("registry.test/app:v1", 0))
	g.pulled(t, "registry.test/app:v1", "registry.test/app:v1")
	digest := "registry.test/app@" + g.images["registry.test/app:v2"].Digest
	g.spec(asks(digest, 0))
	g.pulled(t, digest, "registry.test/app:v2")
	g.spec(asks("registry.test/app:absent", 0, limited(0)))
	g.failed(t, "registry.test/app:absent", "not found")
	// What is there needs no registry, by tag and by digest.
	g.registry.Down(true)
	defer func() {
		g.registry.Down(false)
		if len(g.registry.Refused) > 0 {
			t.Error("the registry was asked")
		}
	}()
	for asked, pushed := range map[string]string{
		"registry.test/app:v1": "registry.test/app:v1", digest: "registry.test/app:v2",
	} {
		g.spec(asks(asked, 1, ifNotPresent, limited(0)))
		g.pulled(t, asked, pushed)
	}
}

func (g *ground) credentials(t *testing.T) {
	const private = "registry.test/private/app:v1"
	right, wrong := dockerConfig("right", "registry.test", containerd.User), dockerConfig("wrong",
		"registry.test/private", "nobody")
	right.Data[".dockerconfigjson"] = []byte(`{"auths":{"registry.test":{"username":"` + containerd.User +
		`","password":"` + containerd.Password + `"}}}`)
	g.store.keep(wrong)
	g.spec(asks(private, 0, limited(0)))
	g.failed(t, private, cri.ErrCredentials.Error())
	g.spec(asks(private, 1, limited(0)), logsInWith("registry.test/private/app", "wrong"))
	g.failed(t, private, cri.ErrCredentials.Error())
	// The wrong one is tried first, for it is more specific.
	g.store.keep(right)
	g.spec(asks(private, 2, limited(0)), logsInWith("registry.test/private/app", "right"))
	g.pulled(t, private, private)
}

func (g *ground) cancel(t *testing.T) {
	g.spec(asks("registry.test/slow/app:v1", 0))
	await(t, "containerd asks for a blob", g.registry.Stalled)
	g.spec(leaves("registry.test/slow/app"))
	await(t, "containerd gives it up", g.registry.Left)
	g.spec(asks("registry.test/slow/app:v1", 1, within(2), limited(0)))
	g.failed(t, "registry.test/slow/app:v1", "no result within 2s")
	g.spec(leaves("registry.test/slow/app"))
}

// A registry that breaks off in the middle of a layer, and one that is away, cost attempts.
func (g *ground) badRegistry(t *testing.T) {
	g.spec(asks("registry.test/torn/app:v1", 0, limited(1)))
	g.failed(t, "registry.test/torn/app:v1", "pull image")
	if g.registry.Torn() < 2 {
		t.Errorf("%d layers broke off in two attempts", g.registry.Torn())
	}
	g.registry.Down(true)
	g.spec(asks("registry.test/app:v3", 0, limited(100)))
	await(t, "containerd finds nobody", g.registry.Refused)
	g.registry.Down(false)
	g.pulled(t, "registry.test/app:v3", "registry.test/app:v3")
}

// A runtime that goes away in the middle of a pull costs none.
func (g *ground) restart(t *testing.T) {
	g.drain()
	g.spec(asks("registry.test/slow/app:v2", 0, limited(0)))
	await(t, "containerd asks for a blob", g.registry.Stalled)
	g.node.StopContainerd(t)
	g.registry.Sound()
	g.node.StartContainerd(t)
	g.pulled(t, "registry.test/slow/app:v2", "registry.test/slow/app:v2")
}

// drain forgets of requests that came before.
func (g *ground) drain() {
	for {
		select {
		case <-g.registry.Stalled:
		default:
			return
		}
	}
}
